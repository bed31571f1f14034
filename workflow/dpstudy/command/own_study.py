"""A study of somebody's own images, read for the commands that look at it before it runs."""

import copy
from pathlib import Path

import yaml

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.data.own import own_reader
from dpstudy.schema.spelling import check_keys


def read_own_study(study: str) -> tuple[dict, dict, list[str]]:
    """The config as it stands in the file, as it is with defaults, and its data sets of one's own.

    Raises:
        StudyError: it has a mistake, or no data set of one's own.
    """
    try:
        check_keys(Path(study))
        config = yaml.safe_load(Path(study).read_text(encoding="utf-8"))
        loaded = load(copy.deepcopy(config))
    except StudyError as error:
        raise StudyError(f"{study}: {error}") from None
    except yaml.YAMLError as error:
        raise StudyError(f"{study}: no YAML ({str(error).splitlines()[0]})") from None
    own = [name for name, entry in config["datasets"].items() if own_reader(entry)]
    if not own:
        raise StudyError(f"{study}: no data set of your own in it (docs/own-data.md); run it as it is")
    return config, loaded, own
