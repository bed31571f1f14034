"""Which data sets are a user's own."""

OWN_DATA = ("image_folder", "image_table", "labels")  # readers


def test_is_public(options: dict) -> bool:
    """Whether the records that models are scored on are public, told from a data set's config entry.

    A published benchmark's are, a user's own are not, unless `test_split` says otherwise.
    """
    return options.get("test_split", "private" if options["reader"] in OWN_DATA else "public") == "public"
