"""A hash of how the config makes what a cell reads."""

from dpstudy.config.cells import Cell
from dpstudy.plan.publics import kept_for, kept_for_training
from dpstudy.plan.sources import reading_options
from dpstudy.provenance.hashes import config_hash


def origin_of(study: dict, cell: Cell) -> str:
    """A hash of all that the config says of what a cell is made from: images, features, networks, fits, public sets."""
    options, start = study["features"][cell.features], cell.options(study).get("start")
    fit = study["fits"].get(options.get("fit"), {})
    named = [options.get("backbone"), start if isinstance(start, str) else None, fit.get("backbone")]
    networks = {name: study["backbones"][name] for name in named if name in study["backbones"]}
    publics = {made["public"] for made in (fit, *networks.values()) if made}
    # What a brought start was trained on is among the cell's options.
    matched = kept_for(study, cell.features, start if isinstance(start, str) else None)
    matched = matched or [path for public in publics for path in kept_for_training(study, public)]
    return config_hash(
        {
            "images": reading_options(study, cell.dataset),
            "features": {key: value for key, value in options.items() if key != "trained_on"},
            "fit": fit,
            "networks": networks,
            "publics": {name: reading_options(study, name) for name in publics},
            "dedup": study["dedup"] if matched else None,
        }
    )
