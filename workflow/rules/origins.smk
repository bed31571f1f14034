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


def fingerprint_of(cell, seeds):
    """The config hash of a cell with these seeds."""
    told = (cell.options(STUDY), dataset_facts(cell.dataset), seeds, STUDY["noise"], scored_on_training())
    return cell_fingerprint(*told, origin_of(cell))


def whole_fingerprint(cell):
    """The config hash of a cell with all its seeds."""
    return fingerprint_of(cell, STUDY["seeds"])


def data_of(cell):
    """What vouches for all that a cell reads, by the names that it has for each."""
    options, start = cell.options(STUDY), start_of(cell)
    splits = splits_of(cell.dataset) if not pays(options) or options["tuning"]["retrain"] else ["train", "test"]
    splits = dict.fromkeys([*splits, *(["validation"] if pays(options) else [])])
    found = {split: feature_files(cell.dataset, cell.features, split)[0] for split in splits}
    found |= {f"kept-{i}": path for i, path in enumerate(kept_for(cell.features, start))}
    found |= {
        name: path for name, paths in (("start", start_files(cell)), ("public", public_points(cell))) for path in paths
    }
    return found


def stated_of(cell):
    """What the ledger of a cell must state by the config, and the manifests that tell how many units it learns from."""
    learnt = [path for split, path in data_of(cell).items() if split in training_splits(cell.dataset)]
    facts = {"dataset": dataset_facts(cell.dataset), "options": cell.options(STUDY), "noise": STUDY["noise"]}
    return facts | {"epsilon": cell.epsilon, "manifests": learnt}


def all_stated(dataset):
    """The same of all cells of a data set, in the study's order."""
    return [stated_of(cell) for cell in CELLS if cell.dataset == dataset]


def data_of_all():
    """The same of all cells, each file once."""
    return list(dict.fromkeys(path for cell in CELLS for path in data_of(cell).values()))


def expected_makers():
    """What each cell must bear: one that another config, library or data made is never tabled."""
    return {
        cell.path: {
            "config": whole_fingerprint(cell),
            "library": library_hash(method_code(cell.options(STUDY))),
            "evaluation": evaluation_hash(),
            "data": data_of(cell),
        }
        for cell in CELLS
    }
