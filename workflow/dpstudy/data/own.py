"""Which data sets are a user's own."""

from dpstudy.study.schema import schema


def own_data(reader: str | None) -> bool:
    """Whether people bring their own records with a reader: `x-own-data` of the config's schema.

    A list in code would make all cells stale when a reader is added to it.
    """
    return reader in schema("config")["$defs"]["source"]["x-own-data"]


def own_reader(options: dict) -> str | None:
    """The reader for own data among those of a data set and of what enlarges it (`extra`), told from its config entry;
    None where all its records come from published benchmarks. Whoever says that the test records are private has
    records of their own in a benchmark's format."""
    if options.get("test_split") == "private":
        return options["reader"]
    readers = (options["reader"], options.get("extra", {}).get("reader"))
    return next((reader for reader in readers if own_data(reader)), None)


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
