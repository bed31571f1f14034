"""Inputs and parameters of a cell's release (its bundle)."""

from collections.abc import Callable
from dataclasses import asdict

from dpstudy.config.cells import Cell
from dpstudy.data.own import may_be_dicom, test_is_public
from dpstudy.plan import paths, publics
from dpstudy.plan.fingerprints import stated_of
from dpstudy.plan.outside import is_chosen, is_planted
from dpstudy.plan.sources import decoding, has_unnamed_rows
from dpstudy.plan.training import start_of


def facts(study: dict, cell: Cell) -> dict:
    """The parameters of a release about the cell's folder, its features and the public data behind them."""
    features, dataset = study["features"][cell.features], study["datasets"][cell.dataset]
    return {
        "cell": paths.CELL_FOLDER.format(**asdict(cell)),
        "features": features,
        "backbone": publics.backbone_folder(features),
        "fit": publics.fit_folder(features),
        "weights": publics.brought_weights(study, features),
        "image": decoding(study, cell.dataset),
        "unmatched": publics.never_compared(study, cell.features, start_of(study, cell)),
        "chosen": _where(study, cell, is_chosen),
        "planted": _where(study, cell, is_planted),
        "test_public": test_is_public(dataset),
        "may_be_dicom": may_be_dicom(dataset),
    }


def _where(study: dict, cell: Cell, holds: Callable[[str, dict], bool]) -> list[str]:
    names = publics.publics_of(study, cell.features, start_of(study, cell))
    return [public for public in names if holds(public, study)]


def feature_files(study: dict, features: str) -> list[str]:
    """The files that a bundle's features are computed with: network, projection and user-supplied weights."""
    options = study["features"][features]
    made = [*publics.backbone_files(options), *publics.fit_files(options)]
    return [*made, *publics.weights_files(study, options)]


def test_manifest(study: dict, dataset: str) -> str:
    """The manifest of the test split, the public facts of the records that the model was scored on."""
    return paths.DATA_MANIFEST.format(source=dataset, split="test")


def certified_cell(study: dict, cell: Cell) -> dict:
    """The parameters of a bundle's certificate; its training data may be deleted already."""
    stated = stated_of(study, cell) | {"manifests": []}
    return {"name": cell.path, "stated": stated, "unnamed": has_unnamed_rows(study, cell.dataset)}
