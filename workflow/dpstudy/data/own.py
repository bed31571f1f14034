"""Tells data sets of a user's own records from published benchmarks."""

from dpstudy.schema.reading import schema


def own_data(reader: str | None) -> bool:
    """Whether a reader is for users' own records: `x-own-data` of the config's schema.

    A list in code would make all cells stale when a reader is added to it.
    """
    return reader in schema("config")["$defs"]["source"]["x-own-data"]


def own_sources(options: dict) -> list[dict]:
    """The sources of a data set, its config entry and its `extra`, that hold the user's own records.

    Whoever says that the test records are private has records of their own in a benchmark's format.
    """
    sources = [options, *([options["extra"]] if "extra" in options else [])]
    return [each for each in sources if options.get("test_split") == "private" or own_data(each.get("reader"))]


def own_reader(options: dict) -> str | None:
    """The reader of the first source with the user's own records; None where all are published benchmarks."""
    return next((source["reader"] for source in own_sources(options)), None)


def with_own_names(options: dict, numbered: bool = False) -> dict:
    """The config entry for `open_reader`, with a mark on sources of the user's own records (data/own_names.py).

    Args:
        numbered: records without names keep row numbers, as of `OwnNames`.
    """
    own = own_sources(options)

    def marked(source: dict) -> dict:
        return source | {"own_names": any(source is each for each in own), "numbered": numbered}

    return marked(options) | ({"extra": marked(options["extra"])} if "extra" in options else {})


def may_be_dicom(options: dict) -> bool:
    """Whether a data set may have DICOM files: it has image files of the user's own."""
    keys = schema("config")["$defs"]["source"]["x-readers"]
    return any("window" in keys[source["reader"]] for source in own_sources(options))


def test_is_public(options: dict) -> bool:
    """Whether the test records are public, by a data set's config entry.

    A published benchmark's are, a user's own are not, unless `test_split` says otherwise. What enlarges a data set
    joins its training split alone.
    """
    return options.get("test_split", "private" if own_data(options["reader"]) else "public") == "public"


def is_confidential(config: dict) -> bool:
    """Whether only the owner may see a study's results.

    It is so for records of the user's own or otherwise not public, and for secure noise, which nobody else may know.
    """
    return config["noise"] == "secure" or any(
        own_reader(options) or not test_is_public(options) for options in config["datasets"].values()
    )
