"""Which data sets are a user's own."""

from dpstudy.schema.reading import schema


def own_data(reader: str | None) -> bool:
    """Whether people bring their own records with a reader: `x-own-data` of the config's schema.

    A list in code would make all cells stale when a reader is added to it.
    """
    return reader in schema("config")["$defs"]["source"]["x-own-data"]


def own_sources(options: dict) -> list[dict]:
    """Which of a data set's config entry and its `extra` have records of the user's own, not a published benchmark's.
    Whoever says that the test records are private has records of their own in a benchmark's format."""
    sources = [options, *([options["extra"]] if "extra" in options else [])]
    return [each for each in sources if options.get("test_split") == "private" or own_data(each.get("reader"))]


def own_reader(options: dict) -> str | None:
    """The reader of the first of these; None where all records come from published benchmarks."""
    return next((source["reader"] for source in own_sources(options)), None)


def with_own_names(options: dict) -> dict:
    """The config entry for `open_reader`, telling it which records are the user's own (data/own_names.py)."""
    own = own_sources(options)
    told = options | {"own_names": any(source is options for source in own)}
    if "extra" in options:
        told["extra"] = options["extra"] | {"own_names": any(source is options["extra"] for source in own)}
    return told


def test_is_public(options: dict) -> bool:
    """Whether the records that models are scored on are public, told from a data set's config entry.

    A published benchmark's are, a user's own are not, unless `test_split` says otherwise. What enlarges a data set
    joins its training split alone.
    """
    return options.get("test_split", "private" if own_data(options["reader"]) else "public") == "public"


def is_confidential(config: dict) -> bool:
    """Whether what a study makes is for its owner's eyes: it has records of the user's own, or such as are not public,
    or draws noise that nobody else may know."""
    return config["noise"] == "secure" or any(
        own_reader(options) or not test_is_public(options) for options in config["datasets"].values()
    )
