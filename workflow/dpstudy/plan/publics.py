"""What a study takes from public data: networks, weights, projections, and which public images matched private ones."""

from dpstudy.config.locations import weights_file
from dpstudy.config.origins import publics_trained_on
from dpstudy.features import parts_of
from dpstudy.plan import paths
from dpstudy.plan.sources import all_files, split_files

Start = str | dict | None  # the name of a backbone, or a file of weights: what a cell's training starts from


def start_files(study: dict, start: Start) -> list[str]:
    """The file of weights that a cell's training starts from."""
    if start is None:
        return []
    if isinstance(start, str):
        return [paths.BACKBONE_MODEL.format(backbone=start)]
    return [str(weights_file(study, start))]


def publics_of(study: dict, features: str, start: Start = None) -> list[str]:
    """The public sets that a feature set's network, or a start, was trained on, or its projection fitted on."""
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
    """What de-duplication kept, where private records that match a public set are dropped; else nothing."""
    if study["dedup"]["drop"] != "private":
        return []
    return [paths.KEPT.format(public=one) for one in publics_of(study, features, start) if is_matched(study, one)]


def kept_for_training(study: dict, public: str) -> list[str]:
    """What de-duplication kept of a public set; nothing where it drops private records: then what is trained or fitted
    on the set does not depend on them at all."""
    if study["dedup"]["drop"] == "private" or not is_matched(study, public):
        return []
    return [paths.KEPT.format(public=public)]


def matching_of(study: dict, public: str) -> dict | None:
    """How a public set was matched before a network is trained on it, for the network's card; None: it was not."""
    if not is_matched(study, public):
        return None
    return {"drop": "private"} if study["dedup"]["drop"] == "private" else study["dedup"]


def never_compared(study: dict, features: str, start: Start) -> list[str]:
    """What made a cell's features, or its start, and was never compared with the private records."""
    found = [public for public in publics_of(study, features, start) if not is_matched(study, public)]
    if isinstance(start, dict) and isinstance(start["trained_on"], str):
        found.append(start["weights"])
    found += [
        part["model"]
        for part in parts_of(study["features"][features])
        if part.get("weights", "random") != "random" and isinstance(part["trained_on"], str)
    ]
    return list(dict.fromkeys(found))


def backbone_folder(options: dict) -> str | None:
    """Where the backbone of a feature set or fit lies, or a package's weights, converted; of several parts, where all
    of them lie; None for an extractor without one."""
    if "parts" in options:
        return paths.BACKBONES
    if package := package_of(options):
        return paths.PACKAGED.format(package=package)
    return paths.BACKBONE.format(backbone=options["backbone"]) if "backbone" in options else None


def backbone_files(options: dict) -> list[str]:
    """The files of its backbones."""
    return [
        path.format(backbone=part["backbone"])
        for part in parts_of(options)
        if "backbone" in part
        for path in (paths.BACKBONE_MODEL, paths.BACKBONE_CARD)
    ]


def fit_folder(options: dict) -> str | None:
    """Where the fit of a feature set lies; None where it has none."""
    return paths.FIT.format(fit=options["fit"]) if "fit" in options else None


def fit_files(options: dict) -> list[str]:
    """Its files."""
    return [path.format(fit=options["fit"]) for path in (paths.PROJECTION, paths.FIT_CARD)] if "fit" in options else []


def fit_points(options: dict) -> list[str]:
    """Its public points; none where a feature set has no fit."""
    return [paths.FIT_POINTS.format(fit=options["fit"])] if "fit" in options else []


def package_of(options: dict) -> str | None:
    """The Python package that the weights of a feature set's network come from."""
    weights = options.get("weights")
    return weights["package"] if isinstance(weights, dict) else None


def packages(study: dict) -> list[str]:
    """Those of a study."""
    parts = (part for options in study["features"].values() for part in parts_of(options))
    return sorted({package for part in parts if (package := package_of(part))})


def weights_files(study: dict, options: dict) -> list[str]:
    """The files of public networks that the user brings, others make the features anew; and those of packages' weights,
    converted, with their cards."""
    found = []
    for part in parts_of(options):
        if package := package_of(part):
            found += [path.format(package=package) for path in (paths.PACKAGED_MODEL, paths.PACKAGED_CARD)]
        elif path := weights_file(study, part):
            found.append(str(path))
    return found


def brought_weights(study: dict, options: dict) -> list[str]:
    """Of these files those that the user brings, in the order of the parts."""
    return [str(path) for part in parts_of(options) if (path := weights_file(study, part))]


def devices_of_backbone(study: dict, backbone: str) -> int:
    """How many processes share a pre-training."""
    return study["backbones"][backbone].get("devices", 1)


def threads_of_backbone(study: dict, backbone: str) -> int:
    """One each, and one for each process that makes pictures."""
    return devices_of_backbone(study, backbone) * (1 + study["backbones"][backbone].get("workers", 0))


def backbone_options(study: dict, backbone: str) -> dict:
    """The config entry of a backbone."""
    return study["backbones"][backbone]


def images_of_backbone(study: dict, backbone: str) -> list[str]:
    """The public images that a backbone is trained on."""
    return all_files(study, study["backbones"][backbone]["public"])


def folder_of_backbone(study: dict, backbone: str) -> str:
    """The folder of the splits of these images."""
    return paths.SOURCE.format(source=study["backbones"][backbone]["public"])


def kept_for_backbone(study: dict, backbone: str) -> list[str]:
    """What de-duplication kept of these images, where it drops public ones."""
    return kept_for_training(study, study["backbones"][backbone]["public"])


def matching_of_backbone(study: dict, backbone: str) -> dict | None:
    """How these images were matched, for the network's card."""
    return matching_of(study, study["backbones"][backbone]["public"])


def checkpoint_of_backbone(study: dict, backbone: str) -> str:
    """Where its training keeps its checkpoint."""
    return paths.BACKBONE_CHECKPOINT.format(backbone=backbone)


def fitted_on(study: dict, fit: str) -> dict:
    """What a projection is fitted on: a feature set, or what its own keys say of one."""
    return study["fits"][fit].get("features", study["fits"][fit])


def fit_options(study: dict, fit: str) -> dict:
    """The config entry of a fit, with what its features are extracted by."""
    options = study["fits"][fit]
    return options | ({"features": _told(options["features"])} if "features" in options else {})


def images_of_fit(study: dict, fit: str) -> list[str]:
    """The public images that a projection is fitted on."""
    return split_files(study, study["fits"][fit]["public"], "train")


def folder_of_fit(study: dict, fit: str) -> str:
    """The folder of the splits of these images."""
    return paths.SOURCE.format(source=study["fits"][fit]["public"])


def kept_for_fit(study: dict, fit: str) -> list[str]:
    """What de-duplication kept of these images, where it drops public ones."""
    return kept_for_training(study, study["fits"][fit]["public"])


def backbone_files_of_fit(study: dict, fit: str) -> list[str]:
    """The files of the networks whose features are projected, where there are any."""
    options = fitted_on(study, fit)
    return list(dict.fromkeys([*backbone_files(options), *weights_files(study, options)]))


def backbone_folder_of_fit(study: dict, fit: str) -> str | None:
    """Their folder."""
    return backbone_folder(fitted_on(study, fit))


def backbone_folder_of_features(study: dict, features: str) -> str | None:
    """The folder of the network that makes features."""
    return backbone_folder(study["features"][features])


def fit_folder_of_features(study: dict, features: str) -> str | None:
    """The folder of the projection of features."""
    return fit_folder(study["features"][features])


def extraction_options(study: dict, features: str) -> dict:
    """What an extraction is told of a feature set: not what only ledgers say."""
    return _told(study["features"][features])


def _told(options: dict) -> dict:
    told = {key: value for key, value in options.items() if key != "trained_on"}
    return told | ({"parts": list(map(_told, options["parts"]))} if "parts" in options else {})


def extraction_inputs(study: dict, dataset: str, features: str, split: str, shard: str) -> list[str]:
    """The image shard with its manifest, and the network and the projection where the feature set has them."""
    options, names = study["features"][features], {"source": dataset, "split": split, "shard": shard}
    images = [path.format(**names) for path in (paths.DATA_MANIFEST, paths.DATA_SHARD)]
    made = [*backbone_files(options), *weights_files(study, options), *fit_files(options)]
    return list(dict.fromkeys([*images, *made]))  # of one network at two sizes once
