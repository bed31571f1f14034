"""The study that a run is about: its config loaded, and all that it names looked for."""

from dpstudy.config.loading import load
from dpstudy.config.locations import check_locations
from dpstudy.core.job import keep_to_owner
from dpstudy.data.own import is_confidential
from dpstudy.plan import paths
from dpstudy.plan.code import check_modules
from dpstudy.plan.internals import RECORDS
from dpstudy.plan.resources import gpus


def load_study(raw: dict) -> dict:
    """The study that a config describes; of a confidential one, what it makes is for its owner's eyes from now on.

    Raises:
        StudyError: the first mistake in the config, or data or code that is missing.
    """
    study = load(raw)
    check_locations(study)
    check_modules(study)
    gpus()
    if is_confidential(study):
        keep_to_owner(paths.RESULTS, ".snakemake", RECORDS)
    return study
