"""What cells take from public data: networks, weights and projections, and how public sets were de-duplicated."""

from pathlib import Path

from dpstudy.config.locations import data_root, weights_file
from dpstudy.config.origins import publics_trained_on, weights_name
from dpstudy.features import parts_of
from dpstudy.plan import paths
from dpstudy.plan.sources import all_files, split_files

Start = str | dict | None  # the name of a backbone, or a file of weights: what a cell's training starts from


def start_files(study: dict, start: Start) -> list[str]:
    """The weights that a training starts from."""
    if start is None:
        return []
    if isinstance(start, str):
        return [paths.BACKBONE_MODEL.format(backbone=start)]
    if package := package_of(start):
        return [paths.PACKAGED_MODEL.format(package=package)]
    return [str(weights_file(study, start))]


def publics_of(study: dict, features: str, start: Start = None) -> list[str]:
    """The public sets behind a feature set or a start: of pre-training, of its fit, and of user-supplied weights."""
    options = study["features"][features]
    parts = parts_of(options)
    named = [study["backbones"][part["backbone"]]["public"] for part in parts if "backbone" in part]
    named += [study["fits"][options["fit"]]["public"]] if "fit" in options else []
    named += [study["backbones"][start]["public"]] if isinstance(start, str) else publics_trained_on(start)
    return list(dict.fromkeys([*named, *(public for part in parts for public in publics_trained_on(part))]))


def is_matched(study: dict, public: str) -> bool:
    """Whether de-duplication compares a public set with the private records."""
    return study["public"][public]["matched"]


def kept_for(study: dict, features: str, start: Start = None) -> list[str]:
    """The lists of private records that de-duplication kept; none unless it drops private records."""
    if study["dedup"]["drop"] != "private":
        return []
    return [paths.KEPT.format(public=one) for one in publics_of(study, features, start) if is_matched(study, one)]


def kept_for_training(study: dict, public: str) -> list[str]:
    """The list of a public set's images that de-duplication kept; none where it drops private records.

    Then what is trained or fitted on the set does not depend on private records at all.
    """
    if study["dedup"]["drop"] == "private" or not is_matched(study, public):
        return []
    return [paths.KEPT.format(public=public)]


def matching_of(study: dict, public: str) -> dict | None:
    """The de-duplication of a public set before a network is trained on it, for the network's card; None for none."""
    if not is_matched(study, public):
        return None
    return {"drop": "private"} if study["dedup"]["drop"] == "private" else study["dedup"]


def never_compared(study: dict, features: str, start: Start) -> list[str]:
    """The public sets and weights behind a cell's features or start that were not de-duplicated."""
    names = [public for public in publics_of(study, features, start) if not is_matched(study, public)]
    if isinstance(start, dict) and isinstance(start["trained_on"], str):
        names.append(weights_name(start))
    brought = (part for part in parts_of(study["features"][features]) if part.get("weights", "random") != "random")
    names += [part["model"] for part in brought if isinstance(part["trained_on"], str)]
    return list(dict.fromkeys(names))


def backbone_folder(options: dict) -> str | None:
    """The folder of a feature set's or fit's backbone; None for an extractor without one.

    It is that of a package's converted weights, or of several parts the folder of all backbones.
    """
    if "parts" in options:
        return paths.BACKBONES
    if package := package_of(options):
        return paths.PACKAGED.format(package=package)
    return paths.BACKBONE.format(backbone=options["backbone"]) if "backbone" in options else None


def backbone_files(options: dict) -> list[str]:
    """The backbone files of a feature set."""
    names = [part["backbone"] for part in parts_of(options) if "backbone" in part]
    return [path.format(backbone=name) for name in names for path in (paths.BACKBONE_MODEL, paths.BACKBONE_CARD)]


def fit_folder(options: dict) -> str | None:
    """The folder of a feature set's fit; None where it has none."""
    return paths.FIT.format(fit=options["fit"]) if "fit" in options else None


def fit_files(options: dict) -> list[str]:
    """The files of a feature set's fit."""
    return [path.format(fit=options["fit"]) for path in (paths.PROJECTION, paths.FIT_CARD)] if "fit" in options else []


def fit_points(options: dict) -> list[str]:
    """The public points of a feature set's fit; none where it has no fit."""
    return [paths.FIT_POINTS.format(fit=options["fit"])] if "fit" in options else []


def package_of(options: dict) -> str | None:
    """The Python package with the weights of a feature set's network, or of a start; None for other weights."""
    weights = options.get("weights")
    return weights["package"] if isinstance(weights, dict) else None


def packages(study: dict) -> list[str]:
    """The Python packages with weights that a study uses."""
    options = [part for options in study["features"].values() for part in parts_of(options)]
    entries = [*study["methods"].values(), *(override["set"] for override in study["overrides"])]
    options += [entry["start"] for entry in entries if isinstance(entry.get("start"), dict)]
    return sorted({package for each in options if (package := package_of(each))})


def weights_files(study: dict, options: dict) -> list[str]:
    """The files of public networks' weights behind a feature set: the user's, and converted ones of packages.

    Other weights make the features anew. Those of packages come with their cards.
    """
    files = []
    for part in parts_of(options):
        if package := package_of(part):
            files += [path.format(package=package) for path in (paths.PACKAGED_MODEL, paths.PACKAGED_CARD)]
        elif path := weights_file(study, part):
            files.append(str(path))
    return files


def brought_weights(study: dict, options: dict) -> list[str]:
    """The files of weights that the user supplies for a feature set, in the order of its parts."""
    return [str(path) for part in parts_of(options) if (path := weights_file(study, part))]


def devices_of_backbone(study: dict, backbone: str) -> int:
    """The number of processes of a pre-training."""
    return study["backbones"][backbone].get("devices", 1)


def threads_of_backbone(study: dict, backbone: str) -> int:
    """The number of threads of a pre-training: one per process and data worker."""
    return devices_of_backbone(study, backbone) * (1 + study["backbones"][backbone].get("workers", 0))


def images_of_backbone(study: dict, backbone: str) -> list[str]:
    """The public images that a backbone is trained on."""
    return all_files(study, study["backbones"][backbone]["public"])


def public_folder(study: dict, name: str, of: str) -> str:
    """The folder of the public set that a backbone is trained on, or a projection is fitted on.

    Args:
        of: backbones or fits.
    """
    return paths.SOURCE.format(source=study[of][name]["public"])


def kept_for_backbone(study: dict, backbone: str) -> list[str]:
    """The list of a backbone's public images that de-duplication kept, if it drops public images."""
    return kept_for_training(study, study["backbones"][backbone]["public"])


def matching_of_backbone(study: dict, backbone: str) -> dict | None:
    """The de-duplication of a backbone's public images, for its card."""
    return matching_of(study, study["backbones"][backbone]["public"])


def fitted_on(study: dict, fit: str) -> dict:
    """The feature set that a projection is fitted on, named or given by the fit's own keys."""
    return study["fits"][fit].get("features", study["fits"][fit])


def fit_options(study: dict, fit: str) -> dict:
    """The config entry of a fit, with the extraction options of its features."""
    options = study["fits"][fit]
    return options | ({"features": _told(options["features"])} if "features" in options else {})


def images_of_fit(study: dict, fit: str) -> list[str]:
    """The public images that a projection is fitted on."""
    return split_files(study, study["fits"][fit]["public"], "train")


def kept_for_fit(study: dict, fit: str) -> list[str]:
    """The list of a fit's public images that de-duplication kept, if it drops public images."""
    return kept_for_training(study, study["fits"][fit]["public"])


def backbone_files_of_fit(study: dict, fit: str) -> list[str]:
    """The files of the networks whose features are projected, if any."""
    options = fitted_on(study, fit)
    return list(dict.fromkeys([*backbone_files(options), *weights_files(study, options)]))


def backbone_folder_of_fit(study: dict, fit: str) -> str | None:
    """The folder of the networks whose features are projected."""
    return backbone_folder(fitted_on(study, fit))


def backbone_folder_of_features(study: dict, features: str) -> str | None:
    """The folder of a feature set's network."""
    return backbone_folder(study["features"][features])


def fit_folder_of_features(study: dict, features: str) -> str | None:
    """The folder of a feature set's projection."""
    return fit_folder(study["features"][features])


def extraction_options(study: dict, features: str) -> dict:
    """The options of a feature set that its extraction depends on; those for ledgers only are left out."""
    return _told(study["features"][features])


def extraction_of_split(study: dict, features: str, split: str) -> dict:
    """The same, with the state (names, sizes, times) of a split's files where features are brought.

    A changed file is read again, as an image is (data/state.py).
    """
    options = extraction_options(study, features)
    return options | ({"state": _state_of(study, options, split)} if options["extractor"] == "precomputed" else {})


def _state_of(study: dict, options: dict, split: str) -> str:
    files = (Path(data_root(study), options["location"], f"{split}{end}") for end in (".parquet", ".npy"))
    seen = ((path.name, path.stat()) for path in files if path.exists())
    return ", ".join(f"{name} {state.st_size} {state.st_mtime_ns}" for name, state in seen)


def _told(options: dict) -> dict:
    kept = {key: value for key, value in options.items() if key != "trained_on"}
    return kept | ({"parts": list(map(_told, options["parts"]))} if "parts" in options else {})


def extraction_inputs(study: dict, dataset: str, features: str, split: str, shard: str) -> list[str]:
    """The input files of an extraction: an image shard, its manifest, and any network and projection."""
    options, names = study["features"][features], {"source": dataset, "split": split, "shard": shard}
    images = [path.format(**names) for path in (paths.DATA_MANIFEST, paths.DATA_SHARD)]
    made = [*backbone_files(options), *weights_files(study, options), *fit_files(options)]
    return list(dict.fromkeys([*images, *made]))  # of one network at two sizes once
