"""Paths of a study's data, weights and budget logs, and checks that they exist; no file is opened."""

import os
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import neighbour
from dpstudy.data.source import files_of
from dpstudy.features import parts_of
from dpstudy.features.packaged import file_of
from dpstudy.privacy.data_book import NAME, below, books_around
from dpstudy.privacy.spent_lines import names_of, parents_of


def sources_of(config: dict) -> Iterator[tuple[str, dict]]:
    """(place in the config, entry) of every source that a reader opens."""
    for kind in ("datasets", "public"):
        for name, entry in config[kind].items():
            yield f"{kind}.{name}", entry
            if "extra" in entry:
                yield f"{kind}.{name}.extra", entry["extra"]


def data_root(config: dict) -> str:
    """The folder of all data sets: the environment variable DPSTUDY_DATA, else the config's `data_root`."""
    return os.environ.get("DPSTUDY_DATA") or config["data_root"]


def records_of(config: dict, dataset: str, links: bool = True) -> str:
    """Identifiers, joined by "+", of the records of a data set, whatever the study calls it.

    Behind a "<" stand those of all enclosing folders (`spent_lines.about` reads them).

    Each folder, or file, that is read has a name, a second one that enlarges the data set too; two data sets with a
    name in common may have records in common: those that read, cut, sample or protect the same folder in two ways, or
    one of which reads a folder around the other's. A folder that was moved is another one, except to the log that was
    moved with it. The first name is of the reader too, as in books that earlier versions wrote. Symbolic links are
    followed: folders that they lead to count as read.

    Args:
        config: a study's, checked or as it was read.
        dataset: one of its private ones.
        links: look for links, which takes a second for each million files.
    """
    inside: list[str] = []
    around: list[Path] = []
    for reader, folders in _read(config, dataset, links):
        inside += [f"{reader} {folders[0] if folders else ''}", *map(str, folders)]
        around += parents_of(folders)
    return names_of(inside, around)


def folders_of(config: dict, dataset: str) -> list[str]:
    """The folders that a data set is read from, with those that links lead to."""
    return [str(folder) for _, folders in _read(config, dataset) for folder in folders]


def _read(config: dict, dataset: str, links: bool = True) -> Iterator[tuple[str, list[Path]]]:
    """(reader, folders) of a data set, what enlarges it, and features brought for it: each with those behind links."""
    entry = next(entry for name, entry in config["datasets"].items() if str(name) == dataset)
    root = data_root({"data_root": "data"} | config)
    for source in (entry, *([entry["extra"]] if "extra" in entry else [])):
        folder = Path(root, source["location"]).resolve() if "location" in source else None
        yield source["reader"], [folder, *(below(folder).linked if links else ())] if folder else []
    for folder in _brought(config, dataset):
        yield "precomputed", [folder.resolve(), *(below(folder.resolve()).linked if links else ())]


def books_of(config: dict, datasets: Collection[str]) -> list[str]:
    """The paths of the budget logs beside the data (privacy/data_book.py) of some private data sets.

    They lie in `data_root`, or beside a folder that lies elsewhere, and beside what its links lead to; a study may name
    one. Whoever reads the same folder, or one around it or inside it, by another `data_root`
    has a book there: that is found and counts, too. Records that come with the program, which are public, have none.
    """
    root, books = Path(data_root({"data_root": "data"} | config)).resolve(), set()
    for name in datasets:
        for folder in (*_folders(config, name), *_brought(config, name)):
            if named := config["release"].get("book"):
                books.add(Path(root, named))
                continue
            real = folder.resolve()
            books.add((root if real.is_relative_to(root) else folder.parent.resolve()) / NAME)
            books |= {one.parent / NAME for one in (real, *below(real).linked) if not one.is_relative_to(root)}
    return sorted({*map(str, books), *books_around(folders_looked_at(config, datasets))})


def other_records(config: dict) -> bool:
    """Whether the owner says that trainings whose folder is not found are about other records (Spending's `others`)."""
    return "other_records" in config["release"].get("accept", ())


def folders_looked_at(config: dict, datasets: Collection[str]) -> list[str]:
    """The private data sets' folders around and inside which other budget logs are searched for.

    None where the study names its budget log.
    """
    if config["release"].get("book"):
        return []
    every = (folder for name in datasets for folder in (*_folders(config, name), *_brought(config, name)))
    real = [folder.resolve() for folder in every]
    return sorted({str(one) for folder in real for one in (folder, *below(folder).linked)})


def _folders(config: dict, dataset: str) -> list[Path]:
    """Where a data set, and what enlarges it, lies."""
    root, entry = Path(data_root({"data_root": "data"} | config)).resolve(), config["datasets"][dataset]
    return [Path(root, one["location"]) for one in (entry, entry.get("extra", {})) if "location" in one]


def _brought(config: dict, dataset: str) -> list[Path]:
    """Where the features lie that are brought for a data set's cells: they are of the same records."""
    root, sets = Path(data_root({"data_root": "data"} | config)).resolve(), config.get("features", {})
    blocks = [block for block in config.get("cells", [{}]) if _names(block, "datasets", dataset)]
    used = [options for name, options in sets.items() if any(_names(block, "features", str(name)) for block in blocks)]
    parts = (sets[part] if isinstance(part, str) else part for options in used for part in parts_of(options))
    brought = (part.get("location") for part in parts if part.get("extractor") == "precomputed")
    return [root / location for location in dict.fromkeys(brought) if location]


def _names(block: Mapping, key: str, name: str) -> bool:
    return any(fnmatchcase(name, str(pattern)) for pattern in block.get(key, ["*"]))


def weights_file(config: dict, features: dict) -> Path | None:
    """The file of weights of a feature set's network, or of a training's start.

    None where weights come as a package, are fetched or random, or where there are none.
    """
    weights = features.get("weights", "random")
    return None if isinstance(weights, dict) or weights in ("random", "hub") else Path(data_root(config)) / weights


def check_run_folder(config: dict, folder: Path) -> None:
    """Refuse to run a study inside the image folder of one of its private data sets.

    Raises:
        StudyError: names the key.
    """
    for name in config["datasets"]:
        for images in _folders(config, name):
            if folder.is_relative_to(images) and images != Path(data_root(config)).resolve():
                raise StudyError(
                    f"datasets.{name}.location: {images} holds what this study reads, and {folder}, where it is run, "
                    "lies in it; run it elsewhere (make's IN=DIR, --in DIR)"
                )


def check_book(config: dict) -> None:
    """Refuse a budget log of another name among the records: it would be read as one of them, or ask to be moved, after
    which the budget began anew.

    Raises:
        StudyError: names the key.
    """
    if named := config["release"].get("book"):
        book = Path(data_root(config), named).resolve()
        for name in config["datasets"]:
            for folder in _folders(config, name):
                if book.is_relative_to(folder.resolve()) and book.name != NAME:
                    raise StudyError(
                        f"release.book: {named} lies in {folder}, among the records of {name}; call it {NAME} there, "
                        "or put it elsewhere"
                    )


def check_locations(config: dict, used: Mapping[str, Collection[str]] | None = None) -> None:
    """Refuse data sets whose folder, or networks whose weights, do not exist.

    Args:
        used: names of the datasets, public, features and methods that are needed; all where None.

    Raises:
        StudyError: names the key and the path looked at, and what else is missing.
    """
    if used is not None:
        config = config | {
            kind: {name: config[kind][name] for name in config[kind] if name in used[kind]} for kind in used
        }
    missing = list(_missing(config))
    if missing:
        others = ", ".join(f"{place} ({path})" for place, path, _ in missing[1:])
        raise StudyError(missing[0][2] + (f". Nor are there: {others}" if others else ""))


def _not_installed(place: str, package: str) -> Iterator[tuple[str, Path, str]]:
    try:
        file_of(package)
    except StudyError as error:
        yield place, Path(package), f"{place}: {error}"


def _absent(place: str, path: Path, wrong: str) -> tuple[str, Path, str]:
    return place, path, f"{place}: {path}{wrong}"


def _no_weights(place: str, path: Path, weights: str) -> tuple[str, Path, str]:
    remedy = f"put {weights} there, as safetensors (docs/features.md), or set data_root or DPSTUDY_DATA"
    return _absent(place, path, f" does not exist; {remedy}")


def _missing(config: dict) -> Iterator[tuple[str, Path, str]]:
    """(key, path looked at, sentence) of each."""
    for name, features in ((name, part) for name, one in config["features"].items() for part in parts_of(one)):
        if isinstance(weights := features.get("weights"), dict):
            yield from _not_installed(f"features.{name}.weights", weights["package"])
        path = weights_file(config, features)
        if path is not None and not path.exists():
            yield _no_weights(f"features.{name}.weights", path, f"the weights of {features['model']!r}")
    entries = {f"methods.{name}": entry for name, entry in config["methods"].items()}
    entries |= {f"overrides[{number}].set": one["set"] for number, one in enumerate(config.get("overrides", ()))}
    for place, entry in entries.items():
        start = entry.get("start")
        if isinstance(start, dict) and isinstance(start["weights"], dict):
            yield from _not_installed(f"{place}.start.weights", start["weights"]["package"])
    for name, entry in config["methods"].items():
        start = entry.get("start")
        if not isinstance(start, dict) or isinstance(start["weights"], dict):
            continue
        path = weights_file(config, start)
        if path is None:
            raise StudyError(
                f"methods.{name}.start.weights: {start['weights']!r} names no file; give a safetensors file below "
                "data_root, or leave `start` out for random weights"
            )
        if not path.exists():
            yield _no_weights(f"methods.{name}.start.weights", path, f"weights of {entry['network']!r}")
    features = ((f"features.{name}", entry) for name, entry in config["features"].items())
    for place, entry in (*sources_of(config), *features):
        if "location" in entry and "download" not in entry:
            path = Path(data_root(config)) / entry["location"]
            if not path.exists():
                wrong = (
                    f"{place}.location: {path}{_from(path)} does not exist{neighbour(path)}; put the data there, or "
                )
                yield f"{place}.location", path, f"{wrong}set data_root or DPSTUDY_DATA"
                continue
            for key in ("table", "mosaic"):
                if key in entry and not (file := path / entry[key]).is_file() and not files_of(path, entry[key]):
                    wrong = f" does not exist{neighbour(file)}; `{key}` names a file in the folder of `location`"
                    yield _absent(f"{place}.{key}", file, wrong)


def _from(path: Path) -> str:
    """' (from ...)' where a relative path counts from another folder than the repository, as with `--in`."""
    return "" if path.is_absolute() or Path.cwd() == Path(__file__).parents[3] else f" (from {Path.cwd()})"
