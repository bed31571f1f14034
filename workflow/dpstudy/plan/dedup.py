"""De-duplication: which shards are compared with which, and by what."""

from dpstudy.data.names import LABELS, is_drawn_by
from dpstudy.features import extractor_modules
from dpstudy.plan import paths
from dpstudy.plan.publics import backbone_files, weights_files
from dpstudy.plan.sources import all_files, is_planted, options_of, shards, splits


def private_images(study: dict) -> list[str]:
    """Every private data set that brings images."""
    return [name for name, options in study["datasets"].items() if options["reader"] != LABELS]


def is_drawn(study: dict, public: str) -> bool:
    """Whether a program drew a public set without seeing an image, so that it has no copies of any."""
    return is_drawn_by(options_of(study, public)["reader"]) and not is_planted(study, public)


def rule_options(study: dict) -> dict:
    """The thresholds of likeness that the config sets."""
    return {key: study["dedup"][key] for key in ("threshold", "possible", "margin") if key in study["dedup"]}


def embedding_options(study: dict) -> dict | None:
    """The feature set that finds candidates, or None for the default."""
    name = study["dedup"].get("embedding")
    return study["features"][name] if name else None


def embedding_files(study: dict) -> list[str]:
    """The files of its network, where it has one."""
    options = embedding_options(study) or {}
    return [*backbone_files(options), *weights_files(study, options)]


def embedding_modules(study: dict) -> list[str]:
    """Its extractor's module, and its parts'."""
    return extractor_modules(embedding_options(study) or {"extractor": "scatternet"})


def described(source: str, split: str, shard: int) -> list:
    """A shard's folder of images, its number, and the file that describes it: a `dedup.jobs.Shard`."""
    folder = paths.DATA.format(source=source, split=split)
    return [folder, shard, paths.DESCRIPTION.format(source=source, split=split, shard=paths.shard_name(shard))]


def descriptions(study: dict, source: str) -> list[str]:
    """What is known of the images of each shard of a data set."""
    return [described(source, split, shard)[2] for split, shard in shards(study, source)]


def basis_files(study: dict, public: str) -> list[str]:
    """The shards of a public training split that likeness is fitted to."""
    return [described(public, split, shard)[2] for split, shard in shards(study, public) if split == "train"][:8]


def all_private_descriptions(study: dict) -> list[str]:
    """What is known of all private images."""
    return [path for dataset in private_images(study) for path in descriptions(study, dataset)]


def all_private_shards(study: dict) -> list[list]:
    """[name, and what `described` says] of every shard of private images."""
    return [
        [f"{dataset}/{split}/{paths.shard_name(shard)}", *described(dataset, split, shard)]
        for dataset in private_images(study)
        for split, shard in shards(study, dataset)
    ]


def public_shards(study: dict, public: str) -> list[list]:
    """[split, and what `described` says] of every shard of a public set."""
    return [[split, *described(public, split, shard)] for split, shard in shards(study, public)]


def candidate_files(study: dict, public: str) -> list[str]:
    """What the search of each shard of a public set found."""
    return [
        paths.CANDIDATES.format(public=public, split=split, shard=paths.shard_name(shard))
        for split, shard in shards(study, public)
    ]


def copies_files(study: dict, public: str) -> list[str]:
    """Which copies were found of the images of each private shard; none where there can be none."""
    return [
        paths.COPIES.format(public=public, dataset=dataset, split=split, shard=paths.shard_name(shard))
        for dataset in ([] if is_drawn(study, public) else private_images(study))
        for split, shard in shards(study, dataset)
    ]


def calibrations(study: dict, public: str) -> list[str]:
    """How many changed copies of each private set's images were found; none where there can be none."""
    names = [] if is_drawn(study, public) else private_images(study)
    return [paths.CALIBRATION.format(public=public, dataset=dataset) for dataset in names]


def compared_files(study: dict, public: str) -> list[str]:
    """All images that are compared with each other, private ones last."""
    return all_files(study, public, *private_images(study))


def split_folders(study: dict, public: str) -> dict[str, str]:
    """Split -> the folder of a public set's images."""
    return {split: paths.DATA.format(source=public, split=split) for split in splits(study, public)}


def private_folders(study: dict) -> list[list[str]]:
    """[data set, split, folder] of all private images."""
    return [
        [dataset, split, paths.DATA.format(source=dataset, split=split)]
        for dataset in private_images(study)
        for split in splits(study, dataset)
    ]


def described_shard(study: dict, source: str, split: str, shard: str) -> list:
    """The same of the shard that wildcards name."""
    return described(source, split, int(shard))


def first_of_training(template: str, source: str) -> str:
    """The manifest, or the first shard, of a training split, by its path's template.

    Args:
        source: the data set, or the wildcard that names it.
    """
    return template.replace("{source}", source).replace("{split}", "train").replace("{shard}", paths.shard_name(0))
