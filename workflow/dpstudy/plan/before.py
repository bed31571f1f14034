"""Checks before the first job of a run, so that no run starts that would be refused later or lose paid models."""

import os
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from dpstudy.cell.bound import own_binding, refuse
from dpstudy.cell.bound_before import BoundBefore
from dpstudy.cell.paid_models import PaidForError, PaidModels, guard
from dpstudy.config.cells import Cell, unfold
from dpstudy.config.locations import books_of, data_root
from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json
from dpstudy.core.job import check_writable
from dpstudy.data.own import own_reader
from dpstudy.plan import paths
from dpstudy.plan.fingerprints import data_of, due_trainings, trainings
from dpstudy.plan.first_spending import DRAWN, ask_on_terminal, first_spending, refuse_together
from dpstudy.plan.foreseen import foresee
from dpstudy.plan.internals import Job
from dpstudy.plan.sources import book_of, numbered, record_names, together
from dpstudy.plan.study import used
from dpstudy.plan.targets import final_targets
from dpstudy.plan.wildcards import cell_of
from dpstudy.privacy.spending import BOOK, Spending
from dpstudy.privacy.spent_sums import Protected
from dpstudy.tables.pdflatex import find_latex

_OF_A_CELL = re.compile(re.escape(paths.METRICS).replace(re.escape(paths.CELL), ".+"))


def check(
    study: dict, due: Sequence[Job], touch: bool, copied: Sequence[str] = (), planned: bool = False
) -> tuple[bool, list[str]]:
    """Refuse a run that cannot finish properly.

    Args:
        due: the jobs that it is about to start.
        copied: outputs of those that are due because files were copied without their times.
        touch: they are marked as done, and none is run.
        planned: nor is any run but named: nothing is written, and that it could not be is told elsewhere.

    Returns:
        whether a job of the run may refuse to train a cell, so that the others are to go on; and what the user should
        know of their own data, a sentence each.

    Raises:
        StudyError: says what is wrong.
    """
    try:
        if not planned:
            check_writable(paths.RESULTS)
        if touch:
            return False, []
        if copied:
            raise StudyError(
                f"{paths.RESULTS}: files have other times than when they were made, as after a copy without times, and "
                f"{len(copied)} jobs ({copied[0]}, ...) would run again; copy with cp -a or rsync -a; or, if neither "
                "files nor config nor code were changed since, run snakemake --cores 1 --touch (--forceall: make them "
                "anew)"
            )
        if has("compile_paper", due):
            find_latex()
        warnings = look_through_own_data(study, due)
    except StudyError as error:
        raise StudyError(f"nothing was run: {error}") from None
    refusing = guard_paid_models(study, due, planned)  # first of all: what was paid for might be lost
    check_cells(study, due)
    try:
        check_budget(study, due)
        foresee(study, due)
        if study["noise"] == "secure":
            book = book_of(study, used(study)["datasets"])
            warnings = warnings + first_spending(study, due, book, None if planned else ask_on_terminal)
    except StudyError as error:
        raise StudyError(f"nothing was run: {error}") from None
    return refusing, warnings


def look_through_own_data(study: dict, due: Sequence[Job]) -> list[str]:
    """Check the user's own tables and folders that are about to be read.

    Returns:
        what the user should know, a sentence each.

    Raises:
        StudyError: says what is wrong with one.
    """
    read = {job.wildcards["source"] for job in due if job.rule == "prepare_shard"}
    names = [name for name, entry in study["datasets"].items() if name in read and own_reader(entry)]
    if not names:
        return []
    from dpstudy.data.prepare import look_through

    root, warnings = Path(data_root(study)), []
    for name in names:
        entry = study["datasets"][name]
        sentences = look_through(name, entry, root, entry["delta"], numbered(study, name))
        warnings += [f"datasets.{name}: {sentence}" for sentence in sentences]
    return warnings


def refusal(study: dict, due: Sequence[Job], copied: Sequence[str]) -> tuple[str, bool]:
    """The sentences that refuse a run of these jobs ("" for none), and whether they concern paid models only.

    Nothing is written.
    """
    try:
        check(study, due, False, copied, planned=True)
    except StudyError as error:
        return str(error).replace("nothing was run: ", ""), isinstance(error, PaidForError)
    return "", False


def guard_paid_models(study: dict, due: Sequence[Job], planned: bool = False) -> bool:
    """Store paid models (and notes of their data) that a run is about to remove.

    Args:
        planned: as of `check`.

    Returns:
        whether a job of the run may refuse to train a cell.

    Raises:
        StudyError: something would be lost.
    """
    secure, book = study["noise"] == "secure", Path(BOOK)
    if not (secure or book.exists()):
        return False
    again = study["release"].get("spend_again", False)
    spending = book_of(study, used(study)["datasets"] if secure else [], again=again)
    trained = [training for _, _, training in due_trainings(study, due)]
    scored = {cell_of(job.wildcards).path for job in due if job.rule == "score_cell"}
    others = not scored <= {training.cell for training in trained}
    refusing = guard(trained, spending, secure, others, keep=not planned)
    if secure:
        try:
            for data_book in spending.shared:
                data_book.check()
            if not planned:
                spending.tell_others()
                if unwritten := PaidModels(spending).unwritten:
                    spending.restore(unwritten)
        except StudyError as error:
            raise StudyError(f"nothing was run: {error}") from None
        if not planned:
            _note_records(study, spending, {path for job in due for path in job.writes})
    return refusing


def check_budget(study: dict, due: Sequence[Job]) -> None:
    """Refuse trainings beyond the owner's budget, by the budget log alone, before anything is made for them.

    Raises:
        StudyError: names the first, and how many more there are.
    """
    ceiling = study["release"].get("budget")
    if study["noise"] != "secure" or ceiling is None:
        return
    spending = book_of(study, used(study)["datasets"], ceiling=ceiling)
    paid, refused = PaidModels(spending), {}
    planned: dict[str, list[Cell]] = {}
    for job, cell, training in due_trainings(study, due):
        if paid.has(training):  # taken as it is
            continue
        dataset, records = study["datasets"][cell.dataset], record_names(study, cell.dataset)
        delta, whom = float(dataset["delta"]), Protected.of_dataset(dataset)
        if sentence := spending.hopeless(cell.dataset, cell.path, cell.epsilon, delta, records, whom):
            refused[cell.path] = sentence
        planned.setdefault(cell.dataset, []).extend([cell] * len(job.seeds))
    if refused:
        more = f" ({len(refused) - 1} more cells likewise)" if len(refused) > 1 else ""
        raise StudyError(f"{next(iter(refused.values()))}{more}")
    for name in planned:
        alike = together(study, name, planned)
        refuse_together(study, name, [cell for other in alike for cell in planned[other]], spending)


def _note_records(study: dict, book: Spending, made_anew: set[str]) -> None:
    """Of what paid models learned from, note which records it is, as long as it is there."""
    paid = PaidModels(book)
    cells = paid.cells()
    read = {path for cell in unfold(study) if cell.path in cells for path in data_of(study, cell).values()}
    for path in sorted(read & made_anew):
        if os.path.exists(path):
            paid.store.note_content(path)


def check_cells(study: dict, due: Sequence[Job]) -> None:
    """Refuse to build on cells whose files do not belong together; files about to be remade are not checked.

    Raises:
        StudyError: names the cells, and what does not fit.
    """
    made = {path for job in due for path in job.writes}
    folders = {os.path.dirname(path) for job in due for path in job.inputs if path not in made}
    shared = books_of(study, used(study)["datasets"]) if study["noise"] == "secure" else []
    seen, faults = BoundBefore(own_binding(shared)), []
    for cell in unfold(study):
        run, metrics = (path.format(**asdict(cell)) for path in (paths.RUN, paths.METRICS))
        if os.path.dirname(run) in folders and run not in made:
            faults += seen.faults(cell.path, metrics=metrics not in made)
    seen.keep()
    refuse([f"nothing was run: {fault}" for fault in faults])


def has(rule: str, jobs: Sequence[Job]) -> bool:
    """Whether one of the jobs runs this rule."""
    return any(job.rule == rule for job in jobs)


def plan_of(study: dict, jobs: Sequence[Job], due: Sequence[Job]) -> dict:
    """The plan of a run for workflow/run.py: the number of cells asked for, and each due job.

    A due job is its rule, its wildcards, and whether it makes a cell.
    """
    cells = sum(_is_cell(job) for job in jobs)
    due_jobs = [[job.rule, dict(job.wildcards), _is_cell(job)] for job in due if job.writes]
    return {"event": "plan", "study": study["study"], "cells": cells, "due": due_jobs}


def _is_cell(job: Job) -> bool:
    return bool(_OF_A_CELL.match(job.outputs.get("metrics", "")))


def note_kept(study: dict, path: str) -> None:
    """Write the trainings, [cell, seeds], that are reused from the store when due; for workflow/status.py.

    Raises:
        StudyError: the book of what was spent is damaged.
    """
    paid = PaidModels(book_of(study, used(study)["datasets"]))
    listed = [training for cell in unfold(study) for training in trainings(study, cell)]
    kept = [[one.cell, list(one.seeds)] for one in listed if paid.has(one)]
    write_json(path, kept)


def made(study: dict) -> list[str]:
    """The lines to print at the end of a run: the study's results; no files for a rehearsal, whose results go."""
    seeds, cells = len(study["seeds"]), len(unfold(study))
    counted = f"{cells} cell{'s' * (cells != 1)}, {seeds} seed{'s' * (seeds != 1)} each"
    first = f"\nStudy {study['study']!r} is complete: {counted}."
    kept = () if DRAWN in os.environ else final_targets(study)
    return [first, *(f"  {path}" for path in kept if os.path.exists(path))]
