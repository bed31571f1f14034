"""A study, read for the commands that look at it before it runs; most of them at those of somebody's own images."""

import copy
import os
from pathlib import Path

import yaml

from dpstudy.config.including import read_config
from dpstudy.config.loading import load
from dpstudy.config.locations import books_of, records_of
from dpstudy.core.errors import StudyError
from dpstudy.data.own import own_reader
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.spending import Spending
from dpstudy.schema.spelling import check_keys


def read_study(study: str) -> tuple[dict, dict]:
    """The config as it stands in the file, and as it is with defaults.

    Raises:
        StudyError: it has a mistake.
    """
    try:
        check_keys(Path(study))
        config = read_config(study)
        return config, load(copy.deepcopy(config))
    except StudyError as error:
        raise StudyError(f"{study}: {error}") from None
    except yaml.YAMLError as error:
        raise StudyError(f"{study}: no YAML ({str(error).splitlines()[0]})") from None


def read_own_study(study: str) -> tuple[dict, dict, list[str]]:
    """The same, with its data sets of one's own.

    Raises:
        StudyError: it has a mistake, or no such data set.
    """
    config, loaded = read_study(study)
    own = [name for name, entry in config["datasets"].items() if own_reader(entry)]
    if not own:
        raise StudyError(f"{study}: no data set of your own in it (docs/own-data.md); run it as it is")
    return config, loaded, own


def in_the_book(study: dict, name: str) -> tuple[float | None, str]:
    """What was spent of a data set's records before, by the books beside the data: epsilon (None where trainings
    without a guarantee stand there), and a sentence."""
    book = Spending(os.devnull, shared=books_of(study, [name]))  # and no folder's own
    spent = book.before(name, float(study["datasets"][name]["delta"]), records_of(study, name))
    budget = study["release"].get("budget")
    told = "trainings without a guarantee stand" if spent is None else f"ε = {upper_bound(spent)} stands"
    where = ", ".join(str(one.path) for one in book.shared)
    of = f", and the budget is {budget}" if budget else ""
    return spent, f"of {name} {told} in the budget log already{of}" + (f" ({where})" if where else "")
