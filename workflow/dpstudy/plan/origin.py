"""A hash of the config that determines a cell's inputs."""

from itertools import chain

from dpstudy.config.cells import Cell
from dpstudy.evaluation.on_training import ON_TRAINING
from dpstudy.features import parts_of
from dpstudy.plan.publics import extraction_options, fit_options, kept_for, kept_for_training
from dpstudy.plan.sources import facts, reading_options
from dpstudy.plan.tags import paid_configs, without_unused
from dpstudy.provenance.hashes import cell_fingerprint, config_hash


def origin_of(study: dict, cell: Cell) -> str:
    """A hash of all config that a cell's inputs are made from: images, features, networks, fits, public sets.

    Tags of DICOM files that nothing uses are none of it, unless a training that was paid for had them in its hash.
    """
    reading = reading_options(study, cell.dataset)
    variants = without_unused(reading)
    first = next(variants)
    paid = paid_configs().get(cell.path, set()) if first != reading else set()
    for images in chain([first], variants) if paid else ():
        options, of_data, origin = cell.options(study), facts(study, cell.dataset), _origin(study, cell, images)
        on_training = ON_TRAINING in study["evaluation"]["metrics"]
        for seeds in (study["seeds"], *([seed] for seed in study["seeds"])):
            if cell_fingerprint(options, of_data, seeds, study["noise"], on_training, origin) in paid:
                return origin
    return _origin(study, cell, first)


def _origin(study: dict, cell: Cell, images: dict) -> str:
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
            "images": images,
            "features": extraction_options(study, cell.features),
            "fit": fit_options(study, options["fit"]) if fit else {},
            "networks": networks,
            "publics": {name: reading_options(study, name) for name in publics},
            "dedup": study["dedup"] if matched else None,
        }
    )
