"""A hash of the config that determines a cell's inputs."""

from dpstudy.config.cells import Cell
from dpstudy.features import parts_of
from dpstudy.plan.publics import extraction_options, fit_options, kept_for, kept_for_training
from dpstudy.plan.sources import reading_options
from dpstudy.provenance.hashes import config_hash


def origin_of(study: dict, cell: Cell) -> str:
    """A hash of all config that a cell's inputs are made from: images, features, networks, fits, public sets."""
    options, start = study["features"][cell.features], cell.options(study).get("start")
    fit = study["fits"].get(options.get("fit"), {})
    parts = (*parts_of(options), *parts_of(fit.get("features", fit)))
    named = [start if isinstance(start, str) else None, *(part.get("backbone") for part in parts)]
    networks = {name: study["backbones"][name] for name in named if name in study["backbones"]}
    publics = {made["public"] for made in (fit, *networks.values()) if made}
    # What a brought start was trained on is among the cell's options.
    matched = kept_for(study, cell.features, start if isinstance(start, str) else None)
    matched = matched or [path for public in publics for path in kept_for_training(study, public)]
    return config_hash(
        {
            "images": reading_options(study, cell.dataset),
            "features": extraction_options(study, cell.features),
            "fit": fit_options(study, options["fit"]) if fit else {},
            "networks": networks,
            "publics": {name: reading_options(study, name) for name in publics},
            "dedup": study["dedup"] if matched else None,
        }
    )
