"""Reading a study for commands that inspect it before it runs, mostly on a user's own images."""

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpstudy.config.cells import Cell, unfold
from dpstudy.config.loading import read_study
from dpstudy.config.locations import books_of, records_of
from dpstudy.core.errors import StudyError
from dpstudy.data.own import own_reader
from dpstudy.plan.first_spending import ENOUGH
from dpstudy.plan.resources import is_sampled
from dpstudy.privacy import gaussian
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.spending import BOOK, Spending
from dpstudy.privacy.spent_lines import about


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
        book, records = Spending(Path(folder, BOOK), shared=books_of(loaded, [name])), records_of(loaded, name)
        paid = [entry for entry in book.everywhere() if entry["cell"] == cell and about(entry, name, records)]
        here = any(entry["cell"] == cell for entry in book.trainings())
    except StudyError:
        return  # the run reports the error
    if paid and not here:
        raise StudyError(
            f"{cell}: no model of it was trained in {os.path.abspath(folder)}, and one was in another folder, on "
            f"{paid[-1]['when'][:10]}: name that one (make release IN=..., dpstudy release --in ...); to train it here "
            "would spend as much again, as release: {spend_again: true} allows"
        )


def in_the_book(study: dict, name: str) -> tuple[float | None, str]:
    """The epsilon already spent on a data set's records by the budget logs beside the data, and a sentence about it.

    None stands for trainings without a guarantee.
    """
    book = Spending(os.devnull, shared=books_of(study, [name]))  # only the budget logs beside the data
    spent = book.before(name, float(study["datasets"][name]["delta"]), records_of(study, name))
    budget = study["release"].get("budget")
    in_words = "trainings without a guarantee stand" if spent is None else f"ε = {upper_bound(spent)} stands"
    where = ", ".join(str(one.path) for one in book.shared)
    of = f", and the budget is {budget}" if budget else ""
    return spent, f"of {name} {in_words} in the budget log already{of}" + (f" ({where})" if where else "")


def beside_the_book(study: dict, name: str) -> Iterator[str]:
    """Sentences on the budget already spent on a data set, and whether the study fits in what is left.

    Empty where noise is not secure.
    """
    if study["noise"] != "secure":
        return
    spent, sentence = in_the_book(study, name)
    yield sentence
    if spent is not None and "budget" in study["release"]:
        cells, delta = [one for one in unfold(study) if one.dataset == name], float(study["datasets"][name]["delta"])
        mu = together_mu(study, [one for one in cells if one.epsilon != "inf"])
        whole = gaussian.epsilon_of(math.hypot(mu, gaussian.mu_of(spent, delta) if spent else 0.0), delta)
        sampled = any(is_sampled(cell.options(study)) for cell in cells)
        fits = "allows" if whole <= ENOUGH[sampled] * float(study["release"]["budget"]) else "refuses"
        yield f"with these models it would be about {upper_bound(whole)}, which a run {fits}"


def together_mu(study: dict, cells: Sequence[Cell]) -> float:
    """mu of all models of these cells composed, as if each release were Gaussian; one data set, finite epsilons."""
    squares = (gaussian.mu_of(float(one.epsilon), float(study["datasets"][one.dataset]["delta"])) ** 2 for one in cells)
    return math.sqrt(len(study["seeds"]) * sum(squares))
