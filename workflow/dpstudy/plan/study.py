"""Loading the study of a run, with checks that everything it names exists."""

from collections.abc import Iterable
from pathlib import Path

from dpstudy.config.cells import unfold
from dpstudy.config.including import with_included
from dpstudy.config.loading import load
from dpstudy.config.locations import check_book, check_locations, check_run_folder
from dpstudy.core.errors import Mistakes
from dpstudy.core.job import keep_to_owner
from dpstudy.data.own import is_confidential
from dpstudy.plan import paths
from dpstudy.plan.code import check_modules
from dpstudy.plan.internals import RECORDS
from dpstudy.plan.publics import is_matched, publics_of
from dpstudy.plan.resources import gpus
from dpstudy.schema.spelling import check_keys


def load_study(raw: dict, files: Iterable[str | Path] = ()) -> dict:
    """The checked study of a config; if it is confidential, new files become readable by their owner alone.

    Args:
        raw: what the files hold, and what the command line changed of it.
        files: where it was read.

    Raises:
        StudyError: the first mistake in the config, or data or code that is missing.
    """
    files = list(files)
    for file in files:
        check_keys(file)
    study = load(with_included(raw, files))
    mistakes = Mistakes()
    with mistakes.kept():
        check_locations(study, used(study))
        check_run_folder(study, Path.cwd())
        check_book(study)
    with mistakes.kept():
        check_modules(study)
    mistakes.tell()
    gpus()
    if is_confidential(study):
        keep_to_owner(paths.RESULTS, ".snakemake", RECORDS)
    return study


def used(study: dict) -> dict[str, set[str]]:
    """The data sets, public sets, feature sets and entries that the study's cells need.

    A part of a study (`only`) has few of the whole's.

    A public set is compared with every private one, so that these are needed where one is.
    """
    names: dict[str, set[str]] = {kind: set() for kind in ("datasets", "public", "features", "methods")}
    for cell in unfold(study):
        names["datasets"].add(cell.dataset)
        names["features"].add(cell.features)
        names["methods"].add(cell.entry)
        names["public"] |= set(publics_of(study, cell.features, cell.options(study).get("start")))
    if any(is_matched(study, public) for public in names["public"]):
        names["datasets"] |= study["datasets"].keys()
    return names
