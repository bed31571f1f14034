"""Checks of studies with secure noise, whose models may be released: their records, searches and budget."""

from dpstudy.config.tuned import unpaid_searches
from dpstudy.core.errors import StudyError
from dpstudy.data.own import own_data
from dpstudy.schema.reading import schema

_READ_OFF_FOLDERS = ("image_folder", "imagenet")  # of which class names are sub-folders, where nothing else is said


def check_secure(config: dict) -> None:
    """Refuse settings under which a released model could depend on private records beyond its ledger.

    Raises:
        StudyError: scores are not kept; class names would be read off private folders; nobody says whether the test
            records of a data set in a benchmark's format are private; or a budget beside a search that it cannot count.
    """
    if config["noise"] != "secure":
        return
    if not config["evaluation"]["keep_scores"]:
        raise StudyError(
            "evaluation.keep_scores: false and noise 'secure': a model that was paid for could not be judged anew, "
            "nor trained again; leave it out"
        )
    taken = schema("config")["$defs"]["source"]["x-readers"]
    for name, entry in config["datasets"].items():
        reader = entry["reader"]
        if reader in _READ_OFF_FOLDERS and "classes" not in entry:
            raise StudyError(
                f"datasets.{name}: the key 'classes' is missing; name the classes, in label order: read off the "
                "folders, they would depend on private records"
            )
        if "location" in taken[reader] and not own_data(reader) and "test_split" not in entry:
            raise StudyError(
                f"datasets.{name}: the key 'test_split' is missing; where noise is secure say 'private' if the files "
                f"that the reader {reader!r} finds are your own records, 'public' if they are the published benchmark"
            )


def check_budget(config: dict) -> None:
    """Refuse a budget for studies with searches that it cannot account for.

    Raises:
        StudyError: naming the entry.
    """
    if config["noise"] != "secure" or "budget" not in config["release"]:
        return
    for entry in unpaid_searches(config):
        raise StudyError(
            f"release.budget: the search of methods.{entry} is not paid for, so no budget covers its trials; give its "
            "tuning `pay`, or its hyper-parameters values"
        )
