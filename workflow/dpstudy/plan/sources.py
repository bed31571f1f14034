"""Files and parameters of the jobs that prepare data sets, and facts about data sets, splits and shards."""

import functools
from collections.abc import Collection, Iterable
from pathlib import Path
from types import SimpleNamespace

from dpstudy.cell.errata import own_rows
from dpstudy.config.locations import books_of, data_root, other_records, records_of
from dpstudy.data.names import COUNTED, caveats, crops, split_names
from dpstudy.data.own import own_data, own_reader
from dpstudy.data.source import files_of
from dpstudy.plan import paths
from dpstudy.privacy.spending import BOOK, Spending
from dpstudy.privacy.spent_lines import about, identity

_OF_A_CELL = ("reader", "extra", *COUNTED)
_OF_OTHERS = ("delta", "not_accounted", "matched", "sum_jobs")  # of an entry: none that reading needs


def options_of(study: dict, source: str) -> dict:
    """The config entry of a private or public data set."""
    return study["datasets"][source] if source in study["datasets"] else study["public"][source]


def entry_of(study: dict, name: str, of: str) -> dict:
    """An entry of one of the config's sections."""
    return study[of][name]


def sources(study: dict) -> list[str]:
    """All data sets, the private ones first."""
    return [*study["datasets"], *study["public"]]


def is_private(study: dict, source: str) -> bool:
    """Whether a data set is one of the private ones."""
    return source in study["datasets"]


def is_planted(study: dict, source: str) -> bool:
    """Whether a public set has planted copies of private images, for a demonstration."""
    return "plant" in study["public"].get(source, {})


def splits(study: dict, source: str) -> tuple[str, ...]:
    """The names of a data set's splits."""
    return split_names(options_of(study, source), private=source in study["datasets"])


def training_splits(study: dict, dataset: str) -> list[str]:
    """The splits that cells are trained on: all except test, since validation serves only for tuning."""
    return [split for split in splits(study, dataset) if split != "test"]


def shards(study: dict, source: str) -> list[tuple[str, int]]:
    """(split, shard) of every shard of a data set, in order."""
    return [(split, shard) for split in splits(study, source) for shard in range(options_of(study, source)["shards"])]


def shard_files(study: dict, source: str, split: str) -> list[str]:
    """The image shards of one split."""
    return _fill(paths.DATA_SHARD, options_of(study, source)["shards"], source=source, split=split)


def split_files(study: dict, source: str, split: str) -> list[str]:
    """The manifest and image shards of one split."""
    return [paths.DATA_MANIFEST.format(source=source, split=split), *shard_files(study, source, split)]


def all_files(study: dict, *names: str) -> list[str]:
    """The manifests and image shards of all splits of these data sets."""
    return [path for source in names for split in splits(study, source) for path in split_files(study, source, split)]


def _fill(template: str, shards: int, **names: str) -> list[str]:
    return [template.format(shard=paths.shard_name(number), **names) for number in range(shards)]


def feature_shards(study: dict, dataset: str, features: str, split: str) -> list[str]:
    """The feature shards of one split."""
    count = study["datasets"][dataset]["shards"]
    return _fill(paths.FEATURES_SHARD, count, dataset=dataset, features=features, split=split)


def scaling_of(study: dict, features: str) -> str | None:
    """The image scaling of a feature set of raw images; None where features are extracted."""
    options = study["features"][features]
    return options["scaling"] if options["extractor"] == "images" else None


def feature_files(study: dict, dataset: str, features: str, split: str) -> list[str]:
    """The manifest and shards of one split of a feature set; for raw images, those of the images."""
    if scaling_of(study, features):
        return split_files(study, dataset, split)
    manifest = paths.FEATURES_MANIFEST.format(dataset=dataset, features=features, split=split)
    return [manifest, *feature_shards(study, dataset, features, split)]


def feature_folder(study: dict, dataset: str, features: str, split: str) -> str:
    """The folder of one split of a feature set; for raw images, that of the images."""
    if scaling_of(study, features):
        return paths.DATA.format(source=dataset, split=split)
    return paths.FEATURES.format(dataset=dataset, features=features, split=split)


def other_splits(study: dict, source: str, split: str) -> list[str]:
    """The shards of other splits, to which a user's own images are compared.

    If subjects are known no two may share an image; else it is enough that one split is told of copies.
    """
    options = options_of(study, source)
    if source not in study["datasets"] or not own_data(options["reader"]):
        return []
    if "subject_column" not in options and split != split_names(options)[-1]:
        return []
    return [path for other in split_names(options) if other != split for path in shard_files(study, source, other)]


def planted_files(study: dict, source: str, split: str, shard: str) -> list[str]:
    """The private shards whose images are planted in the last shard of a public training split."""
    if not is_planted(study, source) or split != "train" or int(shard) != study["public"][source]["shards"] - 1:
        return []
    plant = study["public"][source]["plant"]
    return split_files(study, plant["dataset"], plant["split"])


def source_table(study: dict, source: str) -> list[str]:
    """The user's table of paths and labels, or the files that a pattern names; editing them remakes the shards."""
    options = options_of(study, source)
    if "table" not in options:
        return []
    folder = Path(data_root(study)) / options["location"]
    return [str(path) for path in files_of(folder, options["table"])] or [str(folder / options["table"])]


def reader_modules(study: dict, source: str) -> list[str]:
    """The reader modules of a data set and of its `extra` source."""
    options = options_of(study, source)
    readers = [options["reader"], *([options["extra"]["reader"]] if "extra" in options else [])]
    return [f"dpstudy.data.readers.{reader}" for reader in readers]


def reading_options(study: dict, source: str) -> dict:
    """The options of a data set that reading depends on; others, such as delta, must not remake shards."""
    options, others = options_of(study, source), list(_OF_OTHERS)
    others += [] if options.get("beyond") == "truncate" else ["positives", "beyond"]
    # Whose the test records are says how records are named, where it says that they are the user's own at all.
    named = options.get("test_split") == "private" and not own_data(options["reader"]) and not numbered(study, source)
    others += [] if named else ["test_split"]
    return {key: value for key, value in options.items() if key not in others}


def checking_options(study: dict, source: str) -> SimpleNamespace:
    """Parameters of checks while a shard is read, and the data folder; changing them does not remake shards."""
    options = study["datasets"].get(source, {})
    positives = options.get("positives", 1) if source in study["datasets"] else None
    return SimpleNamespace(data_root=data_root(study), delta=options.get("delta"), positives=positives)


def numbered(study: dict, source: str) -> bool:
    """Whether a user's own records are named by row numbers, as an earlier budget log requires.

    Raises:
        StudyError: the book is damaged.
    """
    if source not in study["datasets"] or not own_reader(study["datasets"][source]):
        return False
    return _is_numbered(source, records_of(study, source, links=False))


@functools.cache
def _is_numbered(source: str, records: str) -> bool:
    return Spending(BOOK).numbered(source, records)


# Thousands of jobs ask for the same.
_states: dict[str, str] = {}
_record_names: dict[str, str] = {}


def record_names(study: dict, dataset: str) -> str:
    """The identifiers of a data set's records in the budget log (config.locations.records_of)."""
    key = repr((study["datasets"][dataset], data_root(study)))
    if key not in _record_names:
        _record_names[key] = records_of(study, dataset)
    return _record_names[key]


def state_of_images(study: dict, source: str) -> str:
    """A hash of the state of the user's image files; adding, removing or replacing one remakes the shards."""
    from dpstudy.data.state import state_of

    entry, root = options_of(study, source), data_root(study)
    key = repr((entry, root))
    if key not in _states:
        _states[key] = state_of(entry, Path(root))
    return _states[key]


def facts(study: dict, dataset: str) -> dict:
    """The facts of its data set that a cell depends on."""
    options = study["datasets"][dataset]
    entry = {key: options[key] for key in _OF_A_CELL if key in options}
    sentences = caveats(options, numbered(study, dataset))
    return entry | ({"not_accounted": sentences} if sentences else {})


def has_unnamed_rows(study: dict, dataset: str) -> bool:
    """Whether a data set has a user's own records in a format that names no record."""
    return own_rows(study["datasets"][dataset])


def place_of_data(study: dict) -> SimpleNamespace:
    """The folder of all data sets; moving it remakes nothing."""
    return SimpleNamespace(data_root=data_root(study))


def decoding(study: dict, dataset: str) -> dict:
    """The decoding options of a data set's images besides size and channels, for bundle.json.

    They are `crop`, and maybe `frame` and `window`.
    """
    options = study["datasets"][dataset]
    crop = options.get("resize", "crop" if crops(options["reader"]) else "stretch") == "crop"
    return {"crop": crop} | {key: options[key] for key in ("frame", "window") if key in options}


def sum_jobs(study: dict, dataset: str) -> int:
    """The number of jobs that share a pass for private sums over a split; at most its number of shards."""
    options = study["datasets"][dataset]
    return min(options.get("sum_jobs", 1), options["shards"])


def share_files(study: dict, dataset: str, features: str, split: str, share: str) -> list[str]:
    """The manifest and the shards of one job's share of a pass for private sums."""
    from dpstudy.features.batches import share_of

    manifest, *parts = feature_files(study, dataset, features, split)
    return [manifest, *share_of(parts, int(share), sum_jobs(study, dataset))]


def all_shares(study: dict, dataset: str, features: str, split: str, clip: str, grams: str) -> list[str]:
    """The files of partial sums of all jobs that share a pass."""
    names = {"dataset": dataset, "features": features, "split": split, "clip": clip, "grams": grams}
    return [paths.SUMS_SHARE.format(**names, share=f"{share:03d}") for share in range(sum_jobs(study, dataset))]


def folder(study: dict, source: str, split: str) -> str:
    """The folder of one split's images."""
    return paths.DATA.format(source=source, split=split)


def contributions(study: dict, dataset: str) -> dict:
    """The contribution bounds of records in private sums: maximum labels, averaging per subject, class weights."""
    options = study["datasets"][dataset]
    rules = {"positives": options["positives"], "averaged": options.get("contributions") == "average"}
    return rules | {key: options[key] for key in ("class_weights",) if key in options}


def summed_at_once(study: dict) -> list[str]:
    """The data sets whose private sums one job computes."""
    return [name for name in study["datasets"] if sum_jobs(study, name) == 1]


def summed_in_shares(study: dict) -> list[str]:
    """The data sets whose private sums several jobs share."""
    return [name for name in study["datasets"] if sum_jobs(study, name) > 1]


def book_of(study: dict, datasets: Collection[str], **more) -> Spending:
    """The budget log of this folder, with those beside some private data sets; `more` as of Spending."""
    return Spending(BOOK, shared=books_of(study, datasets), others=other_records(study), **more)


def together(study: dict, dataset: str, among: Iterable[str]) -> list[str]:
    """Those of some data sets that may have records in common with one of them, which is the first."""
    names = {name: record_names(study, name) for name in (dataset, *among)}
    alike = (other for other in among if about({"dataset": other, "records": names[other]}, dataset, names[dataset]))
    return [dataset, *(other for other in alike if other != dataset)]


def all_record_names(study: dict) -> SimpleNamespace:
    """The record identifiers and budget logs of all data sets; changing them does not remake the total."""
    names = {name: record_names(study, name) for name in study["datasets"]}
    return SimpleNamespace(of=names, books=books_of(study, study["datasets"]), others=other_records(study))


def spent_elsewhere(study: dict) -> list[str]:
    """The spending on the study's records by other folders; any increase remakes the total.

    Raises:
        StudyError: a book is damaged.
    """
    book = book_of(study, study["datasets"])
    known = {identity(entry) for entry in book.trainings()}
    names = {name: record_names(study, name) for name in study["datasets"]} if book.shared else {}
    others = (entry for entry in book.everywhere() if any(about(entry, *each) for each in names.items()))
    return sorted({identity(entry) for entry in others} - known)
