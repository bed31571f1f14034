"""Reading a study for commands that inspect it before it runs, mostly on a user's own images."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dpstudy.cell.paid_models import PaidModels
from dpstudy.config.cells import Cell, unfold
from dpstudy.config.loading import read_study
from dpstudy.config.locations import books_of, other_records, records_of
from dpstudy.core.errors import StudyError
from dpstudy.data.own import own_reader
from dpstudy.plan.fingerprints import trainings
from dpstudy.plan.first_spending import EXACT, composed_mu, margin, protected_by, with_before
from dpstudy.plan.resources import is_sampled
from dpstudy.privacy.data_book import DataBook
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.spending import BOOK, Spending
from dpstudy.privacy.spent_lines import about, has_failed, in_words
from dpstudy.privacy.spent_sums import Protected


def read_own_study(study: str) -> tuple[dict, list[str]]:
    """The checked config of a study, and the names of its data sets of the user's own records.

    Raises:
        StudyError: it has a mistake, or no such data set.
    """
    loaded = read_study(study)
    names = [name for name, entry in loaded["datasets"].items() if own_reader(entry)]
    if not names:
        raise StudyError(f"{study}: no data set of your own in it (docs/own-data.md); run it as it is")
    return loaded, names


def check_paid_here(study: str, cell: str, folder: str | os.PathLike) -> None:
    """Refuse to release a cell that this folder has not trained but another folder has paid for.

    Raises:
        StudyError: it has; training the cell here would spend as much again.
    """
    try:
        loaded = read_study(study)
        name = cell.partition("/")[0]
        known = any(cell == one.path for one in unfold(loaded))  # otherwise the run refuses it, and lists the cells
        if loaded["noise"] != "secure" or loaded["release"].get("spend_again") or not known:
            return
        book = Spending(Path(folder, BOOK), shared=books_of(loaded, [name]), others=other_records(loaded))
        records = records_of(loaded, name)
        paid = [entry for entry in book.everywhere() if entry["cell"] == cell and about(entry, name, records)]
        here = cell in PaidModels(book).cells() or any(entry["cell"] == cell for entry in book.trainings())
    except StudyError:
        return  # the run reports the error
    if paid and not here:
        raise StudyError(
            f"{cell}: no model of it was trained in {os.path.abspath(folder)}, and one was in another folder, on "
            f"{paid[-1]['when'][:10]}: name that one (make release IN=..., dpstudy release --in ...); to train it here "
            "would spend as much again, as release: {spend_again: true} allows"
        )


def _beside(study: dict, name: str) -> Spending:
    """The budget logs beside a data set, and no folder's own."""
    return Spending(os.devnull, shared=books_of(study, [name]), others=other_records(study))


def in_the_book(study: dict, name: str, delta: float, whom: Protected) -> tuple[float | str, float, str]:
    """The epsilon already spent on a data set's records by the budget logs beside the data, and a sentence about it.

    It is reckoned at the smallest delta of all trainings, which is the second. Where nobody can tell, the first is why.
    """
    book = _beside(study, name)
    records, lines = records_of(study, name), book.everywhere()
    delta = book.smallest_delta(name, delta, records)
    spent = book.before(name, delta, records, whom)
    budget = study["release"].get("budget")
    where = ", ".join(str(one.path) for one in book.shared)
    of = f", and the budget is {budget}" if budget else ""
    others = [line for line in lines if not about(line, name, records)]
    beside = f", beside {in_words(others)} on other records" if others else ""
    stands = f"ε = {upper_bound(spent)} stands in the budget log already" if isinstance(spent, float) else spent
    said = f"of {name}{':' * isinstance(spent, str)} {stands}{beside}{of}" + (f" ({where})" if where else "")
    return spent, delta, said + book.lost(name, records)


def beside_the_book(study: dict, name: str) -> Iterator[str]:
    """Sentences on the budget already spent on a data set, and whether the study fits in what is left.

    Empty where noise is not secure.
    """
    if study["noise"] != "secure":
        return
    names = {other: records_of(study, other) for other in study["datasets"]}
    alike = [other for other in names if about({"dataset": other, "records": names[other]}, name, names[name])]
    cells = [one for one in unfold(study) if one.dataset in alike]
    whom, apart, _ = protected_by(study, cells)
    spent, delta, sentence = in_the_book(
        study, name, min(float(study["datasets"][other]["delta"]) for other in alike), whom
    )
    yield sentence
    try:
        for path in books_of(study, [name]):
            DataBook(path).check()
    except StudyError as error:
        yield f"a run refuses: {error}"
        return
    if "budget" not in study["release"]:
        return
    if apart or isinstance(spent, str):
        yield f"what it would be with the models of {' and '.join(alike)} nobody can tell, which a run refuses"
    else:
        past = [line for line in _beside(study, name).everywhere() if about(line, name, names[name])]
        finite, done = _to_be_trained(study, [one for one in cells if one.epsilon != "inf"], past)
        if done and not finite:
            yield "these models stand there already: in the folder where they were trained nothing more is spent"
            return
        whole = with_before(spent, composed_mu(study, finite), delta)
        sampled, budget = any(is_sampled(cell.options(study)) for cell in cells), float(study["release"]["budget"])
        most = margin(study, finite, sampled, [line["ledger"] for line in past])
        near = most > EXACT and most * whole > budget
        fits = "refuses" if whole > most * budget else "may refuse" if near else "allows"
        these = "these models" + "".join(f" and those of {other}" for other in alike if other != name)
        these += f", but for {done} that stand there already," if done else ""
        yield f"with {these} it would be about {upper_bound(whole)}, which a run {fits}"


def _to_be_trained(study: dict, cells: Sequence[Cell], past: Sequence[Mapping]) -> tuple[list[Cell], int]:
    """The cell of each model that the budget logs do not have, seed by seed, and how many others there are."""
    logged = {(line["cell"], line["seed"], line.get("config")) for line in past if not has_failed(line)}
    known, due = {cell for cell, *_ in logged}, []
    for cell in cells:
        each = trainings(study, cell) if cell.path in known else []
        of_seed = {seed: one.fingerprint for one in each for seed in one.seeds}
        due += [cell for seed in study["seeds"] if (cell.path, seed, of_seed.get(seed, "")) not in logged]
    return due, len(cells) * len(study["seeds"]) - len(due)


def together_mu(study: dict, cells: Sequence[Cell]) -> float:
    """mu of all models of these cells composed, of each seed, as if each release were Gaussian; finite epsilons."""
    return math.sqrt(len(study["seeds"])) * composed_mu(study, cells)
