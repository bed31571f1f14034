"""Confirmation by the owner before secure noise spends budget on their own records."""

import math
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from dpstudy.cell.paid_models import PaidModels
from dpstudy.config.cells import Cell
from dpstudy.config.tuned import pays
from dpstudy.core.errors import StudyError
from dpstudy.core.progress import ANSWERED, ASKS, SHOWN
from dpstudy.data.own import own_reader
from dpstudy.plan.fingerprints import due_trainings
from dpstudy.plan.internals import Job
from dpstudy.plan.resources import is_sampled
from dpstudy.plan.sources import record_names, together
from dpstudy.privacy import gaussian
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.spending import Spending
from dpstudy.privacy.spent_lines import about, has_failed, in_words, is_begun, lost_in_words
from dpstudy.privacy.spent_sums import Protected, fitting
from dpstudy.schema.methods import method_schema

DRAWN = "DPSTUDY_DRAWN"  # set by a rehearsal, whose records are drawn ones
# Of an epsilon that is reckoned as of Gaussian releases, where batches are samples (True: see `fitting`) or not: what
# is enough for a budget, and beyond what it is certainly too much. EXACT: where all releases are full-batch Gaussian.
ENOUGH, EXACT = {False: 1.02, True: 1.25}, 1 + 1e-9
_LEAVING_SECONDS = 1.0  # four times as long as a view takes to hear of it
_YES = ("y", "yes")


def first_spending(
    study: dict, due: Sequence[Job], book: Spending, ask: Callable[[str], str | None] | None
) -> list[str]:
    """State what a run will spend on the user's own data sets, besides earlier spending, and have it confirmed.

    Where the config has a budget, nothing is asked: its owner has said how much may be spent. Of trainings that were
    begun, and go on, the book has all that they spend: they are not asked for again.

    Args:
        ask: puts a question to whoever started the run, None where nobody is there; None: nothing is asked, nor
            refused.

    Returns:
        a sentence for each data set.

    Raises:
        StudyError: the answer was no, or nobody was there to give one.
    """
    spent, paid, sentences = book.everywhere(), PaidModels(book), []
    # Begun in this folder: elsewhere a training of the same name is another one, and so is one that begins again.
    here = [] if study["release"].get("spend_again") else book.trainings()
    begun = [one for one in here if is_begun(one) and not has_failed(one)]
    by_dataset = {} if DRAWN in os.environ else _due(study, due, paid, begun)
    told: set[frozenset[str]] = set()
    for name in by_dataset:
        alike = together(study, name, by_dataset)
        if frozenset(alike) in told:  # data sets that all read the same records are told of, and asked for, once
            continue
        told.add(frozenset(alike))
        cells = [cell for other in alike for cell in by_dataset[other]]
        records = record_names(study, name)
        delta = book.smallest_delta(name, min(float(study["datasets"][one]["delta"]) for one in alike), records)
        finite = [cell for cell in cells if cell.epsilon != "inf"]
        sampled = any(is_sampled(cell.options(study)) for cell in finite)
        mu = composed_mu(study, finite)
        reckoned = gaussian.epsilon_of(mu, delta) if finite else 0.0
        in_all = upper_bound(reckoned * (ENOUGH[True] if sampled else 1))
        models = f"{len(finite)} model{'s' if len(finite) != 1 else ''}"
        several = f" (epsilon {', '.join(dict.fromkeys(cell.epsilon for cell in finite))})"
        bare = f"; {len(cells) - len(finite)} without noise protect nobody" if len(finite) < len(cells) else ""
        claimed = sum(bool(method_schema(cell.options(study)["method"]).get("x-audited")) for cell in finite)
        bare += f"; of {claimed} it is claimed and not proved, and may be more" if claimed else ""
        whom, apart, what = protected_by(study, finite)
        bare += f"; {apart} of them {what}" if apart else ""
        most = "at most about" if sampled and not claimed else "about"
        before = book.before(name, delta, records, whom)
        whole = reckoned if isinstance(before, str) else with_before(before, mu, delta)
        budget = study["release"].get("budget")
        others = [entry for entry in spent if not about(entry, name, records)]
        earlier = _with_earlier(book, len(others) < len(spent), others, before, whole, sampled, budget)
        also = f", those of {' and '.join(map(repr, alike[1:]))} among them" if len(alike) > 1 else ""
        sentence = (
            f"datasets.{name}: this run spends {most} epsilon {in_all} of its records at delta {upper_bound(delta)}, "
            f"by {models}{several}{also}{bare}{earlier}. What is spent stays spent{_elsewhere(spent, name, records)}"
        )
        sentences.append(sentence)
        if ask is None or budget is not None:
            continue
        answer = ask(f"{sentence}. Go on? [y/N] ")
        if answer is None:
            enough = upper_bound(whole * ENOUGH[sampled])
            write = (
                "write into the config how much may be spent of these records in all, by earlier studies too, such as "
                f'`release: {{budget: "{enough}"}}`, or '
            )
            raise StudyError(
                f"{sentence}, and nobody is here to say yes: {'' if apart or isinstance(before, str) else write}"
                "start it in a terminal; `make rehearse` spends nothing"
            )
        if answer.strip().casefold() not in _YES:
            raise StudyError(f"datasets.{name}: not confirmed, and nothing was spent")
    return sentences


def _with_earlier(
    book: Spending,
    known: bool,
    others: Sequence[Mapping],
    before: float | str,
    whole: float,
    sampled: bool,
    budget: str | None,
) -> str:
    """What it comes to with what was spent before, and where that stands.

    Args:
        known: something was.
        others: lines about other records.
        before, whole: epsilon that was spent, or why nobody can tell; and with this run.
    """
    where = f" ({', '.join(str(one.path) for one in book.shared)})" if book.shared else ""
    of = f", of a budget of {budget}" if budget is not None else ""
    if not known and others:
        are = "are" if len(others) > 1 else "is"
        return f"; in the budget log{where} {are} {in_words(others)}, none on these records{of}"
    if not known:
        return f"; nothing was spent of them before{where}{of}"
    if isinstance(before, str):
        return f"; {before}{where}, so that nobody can tell the sum"
    whole *= ENOUGH[True] if sampled else 1
    return (
        f"; with epsilon {upper_bound(before)} that was spent before{where} about {upper_bound(whole)} in all (less "
        f"than their sum, since noise adds up by squares){of}"
    )


def refuse_together(study: dict, dataset: str, cells: Sequence[Cell], spending: Spending) -> None:
    """Refuse models that fit the budget one by one but not together: which ones got trained would be chance.

    Args:
        dataset: of whose records the sum is.
        cells: that are due, one for each seed, of data sets with the same records too. What one of them has begun, and
            goes on with, counts once.

    Raises:
        StudyError: says what they would come to, and what fits.
    """
    ceiling, records = float(spending.ceiling or 0), record_names(study, dataset)
    deltas = {name: float(study["datasets"][name]["delta"]) for name in sorted({cell.dataset for cell in cells})}
    delta = spending.smallest_delta(dataset, min(deltas.values()), records)
    whom, apart, what = protected_by(study, cells)
    if apart:
        raise StudyError(
            f"release: {{budget: {spending.ceiling}}}: of {' and '.join(map(repr, deltas))}, which may have the same "
            f"records, {apart} of {len(cells)} models {what}: nobody can tell what all come to; give all of them "
            "unit: subject, and the same subject_column"
        )
    before = spending.before(dataset, delta, records, whom, {cell.path for cell in cells})
    if isinstance(before, str):  # `hopeless` has refused each of them
        return
    whole = with_before(before, composed_mu(study, cells), delta)
    sampled = any(is_sampled(cell.options(study)) for cell in cells)
    past = [line["ledger"] for line in spending.everywhere() if about(line, dataset, records)]
    if whole <= margin(study, cells, sampled, past) * ceiling:  # near it the accountants of the trainings decide
        return
    count, most = len(cells), fitting(ceiling, before, len(cells), delta, sampled, max(deltas.values()))
    largest = f"{most:g}" if most else ""  # as the config wants it: 3, not 3.0
    fits = f"one with ε = {largest} fits" if count == 1 else f"{count} fit, each with ε = {largest}"
    fewer = "leave it out" if count == 1 else "ask for fewer"
    raise StudyError(
        f"release: {{budget: {spending.ceiling}}}: {count} model{'s' if count > 1 else ''} of "
        f"{' and '.join(map(repr, deltas))} would bring what is spent to about ε = {upper_bound(whole)} (before "
        f"{upper_bound(before)}); {f'{fits}, or {fewer}' if largest else fewer}{spending.lost(dataset, records)}"
    )


def margin(study: dict, cells: Sequence[Cell], sampled: bool, past: Sequence[Mapping]) -> float:
    """How far the epsilon of models and past trainings may be from what is reckoned as of Gaussian releases.

    Args:
        sampled: whether any model's batches are samples.
        past: ledgers.
    """
    events = (event for ledger in past for event in ledger["events"])
    gaussian_past = all(event["mechanism"] == "gaussian" and event["sampling"] == "none" for event in events)
    paid = any(pays(cell.options(study)) for cell in cells)  # by an exponential mechanism, or runs that are repeated
    return ENOUGH[sampled] if sampled or paid or not gaussian_past else EXACT


def protected_by(study: dict, cells: Sequence[Cell]) -> tuple[Protected, int, str]:
    """Whom a sum over models of the same records is about: persons where any cell protects them.

    With it how many of the models bound nothing for them, and what these do instead, in words.
    """
    each = [Protected.of_dataset(study["datasets"][cell.dataset]) for cell in cells]
    whom = next((one for one in each if one.unit == "subject"), Protected("record"))
    if single := sum(one.unit != whom.unit for one in each):
        return whom, single, "protect single records and bound nothing for persons"
    others = [one.persons for one in each if one != whom]
    apart = f"tell persons apart by {others[0]!r}, not {whom.persons!r}, and bound nothing for these" if others else ""
    return whom, len(others), apart


def with_before(before: float, mu: float, delta: float) -> float:
    """The epsilon of models of this mu together with what was spent before."""
    return gaussian.epsilon_of(math.hypot(gaussian.mu_of(before, delta) if before else 0.0, mu), delta)


def composed_mu(study: dict, cells: Sequence[Cell]) -> float:
    """mu of models of these cells composed, as if each release were Gaussian; finite epsilons."""
    squares = (gaussian.mu_of(float(one.epsilon), float(study["datasets"][one.dataset]["delta"])) ** 2 for one in cells)
    return math.sqrt(sum(squares))


def _elsewhere(spent: Sequence[Mapping], name: str, records: str) -> str:
    """What to know of trainings on a folder that is not found, or that a data set of this name was read from before."""
    lost = lost_in_words(spent, name, records)
    others = sum(entry["dataset"] == name and not about(entry, name, records) for entry in spent)
    if not others:
        return lost
    trainings, stand = ("trainings", "stand") if others > 1 else ("training", "stands")
    return (
        f"{lost}; {others} {trainings} on another folder {stand} in the budget log under this name: if the records "
        "were moved or copied from there, that was spent of them too"
    )


def _due(study: dict, due: Sequence[Job], paid: PaidModels, begun: Sequence[Mapping]) -> dict[str, list[Cell]]:
    """data set of one's own -> the cell of each model that is to be trained, seed by seed, and was not begun."""
    by_dataset: dict[str, list[Cell]] = defaultdict(list)
    known = {(entry["cell"], entry["seed"]) for entry in begun}
    for job, cell, training in due_trainings(study, due):
        if own_reader(study["datasets"][cell.dataset]) and not paid.has(training):
            new = [seed for seed in job.seeds if (cell.path, int(seed)) not in known]
            by_dataset[cell.dataset] += [cell] * len(new)
    return {name: cells for name, cells in by_dataset.items() if cells}


def ask_on_terminal(question: str) -> str | None:
    """The answer typed on the terminal that the run was started from; None where there is none.

    Whoever draws there (workflow/terminal) is told before, and leaves it.
    """
    drawn = SHOWN in os.environ
    try:
        with open("/dev/tty", encoding="utf-8") as terminal, open("/dev/tty", "w", encoding="utf-8") as back:
            if os.tcgetpgrp(terminal.fileno()) != os.getpgrp():  # in the background, where a question would stop it
                return None
            if drawn:
                print(ASKS, file=sys.stderr, flush=True)
                time.sleep(_LEAVING_SECONDS)
            print(f"\n{question}", end="", file=back, flush=True)
            answer = terminal.readline()
            if drawn:
                print(ANSWERED, file=sys.stderr, flush=True)
            return answer
    except OSError:
        return None
