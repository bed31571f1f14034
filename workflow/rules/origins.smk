# What a cell says of how it was made.


@functools.cache
def origin(dataset, features, start):
    """A hash of all that the config says of what a cell is made from: images, features, networks, fits, public sets."""
    options = STUDY["features"][features]
    fit = STUDY["fits"].get(options.get("fit"), {})
    named = [options.get("backbone"), start, fit.get("backbone")]
    networks = {name: STUDY["backbones"][name] for name in named if name in STUDY["backbones"]}
    publics = {made["public"] for made in (fit, *networks.values()) if made}
    matched = kept_for(features, start) or [path for public in publics for path in kept_for_training(public)]
    return config_hash(
        {
            "images": reading_options(dataset),
            "features": {key: value for key, value in options.items() if key != "trained_on"},
            "fit": fit,
            "networks": networks,
            "publics": {name: reading_options(name) for name in publics},
            "dedup": STUDY["dedup"] if matched else None,
        }
    )


def origin_of(cell):
    """The same for a cell, or the wildcards that name it."""
    start = start_of(cell)
    return origin(cell.dataset, cell.features, start if isinstance(start, str) else None)


def whole_fingerprint(cell):
    """The config hash of a cell with all its seeds."""
    told = (cell.options(STUDY), dataset_facts(cell.dataset), STUDY["seeds"], STUDY["noise"], STUDY["evaluation"])
    return cell_fingerprint(*told, origin_of(cell))


def expected_makers():
    """The hashes that each cell must bear: a cell that another config or library made is never tabled."""
    return {
        cell.path: {"config": whole_fingerprint(cell), "library": library_hash(method_code(cell.options(STUDY)))}
        for cell in CELLS
    }
