"""What the bundle of one cell is made of, and what its papers must say."""

from collections.abc import Callable
from dataclasses import asdict

from dpstudy.config.cells import Cell
from dpstudy.data.own import test_is_public
from dpstudy.plan import paths, publics
from dpstudy.plan.fingerprints import stated_of
from dpstudy.plan.outside import is_chosen, is_planted
from dpstudy.plan.sources import decoding, has_unnamed_rows
from dpstudy.plan.training import start_of


def facts(study: dict, cell: Cell) -> dict:
    """What the release of a cell is told of its folder, of its features and of the public data that made them."""
    features = study["features"][cell.features]
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
        "test_public": test_is_public(study["datasets"][cell.dataset]),
    }


def _where(study: dict, cell: Cell, holds: Callable[[str, dict], bool]) -> list[str]:
    return [
        public for public in publics.publics_of(study, cell.features, start_of(study, cell)) if holds(public, study)
    ]


def feature_files(study: dict, features: str) -> list[str]:
    """The files that the features of a bundle's model are made with: network, projection, and weights that were
    brought."""
    options = study["features"][features]
    made = [*publics.backbone_files(options), *publics.fit_files(options)]
    return [*made, *publics.weights_files(study, options)]


def test_manifest(study: dict, dataset: str) -> str:
    """What is public of the records that the model was scored on."""
    return paths.DATA_MANIFEST.format(source=dataset, split="test")


def certified_cell(study: dict, cell: Cell) -> dict:
    """What certifying a bundle's cell is told: what it learned from may be gone."""
    return {
        "name": cell.path,
        "stated": stated_of(study, cell) | {"manifests": []},
        "unnamed": has_unnamed_rows(study, cell.dataset),
    }


def kept_replays(study: dict, dataset: str) -> str:
    """Replays that certifying the data set has made. No input of the rule: all other cells would have to be there."""
    return paths.REPLAYS.format(dataset=dataset)
