"""Sums over lines of budget logs: the epsilon of several trainings, and what a budget leaves."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dpstudy.privacy import gaussian
from dpstudy.privacy.printed import upper_bound

# Why a training is left out of a sum: keys of total.json, which stand beside how many there are.
RECORDS, ONE_EACH, OTHERS = "by_record", "by_person", "by_other_persons"
_WHY = {
    RECORDS: "protect single records and bound nothing for persons",
    ONE_EACH: "learned from one record of each person, which bounds less of a record than of a person",
    OTHERS: "tell persons apart by {before!r}, not {now!r}, and bound nothing for these (if both are the same persons, "
    "give the column the name that it had)",
}
_SURE, _LEAST = {False: 0.97, True: 0.8}, 0.01  # of an epsilon that is told to fit, where batches are samples or not


def beyond(cell: str, ceiling: str, past: Sequence[Mapping], ledger: Mapping, models: int) -> str:
    """The reason why so many models of a cell are beyond a budget, of which others have spent; "" if they are not.

    A budget has no delta of its own: it is added up at the smallest of all, since a larger one would let more through.

    Args:
        past: ledgers of what was trained before.
        ledger: of each of the models.
    """
    delta = min([ledger["delta"], *(one["delta"] for one in past)])
    at = f" at δ = {upper_bound(delta)}, the smallest so far," if delta < ledger["delta"] else ""
    budget = f"release: {{budget: {ceiling}}}"
    before = spent_for(Protected.of_ledger(ledger), past, delta)
    if isinstance(before, str):
        return unbudgeted(cell, before, ceiling)
    spent = epsilon_of_all([(one, 1) for one in past] + [(ledger, models)], delta)
    if spent is None:
        return f"cell {cell}: its guarantee is {ledger['guarantee']!r}, without a bound, beyond {budget}"
    if spent <= float(ceiling):
        return ""
    used_up = before >= float(ceiling)
    sampled = any(event["sampling"] != "none" for event in ledger["events"])
    largest = fitting(float(ceiling), before, models, delta, sampled, ledger["delta"])
    less = ", or take a smaller ε" + (f" ({largest:g} fits)" if largest else "")
    limit, less = (f"{budget}, of which nothing is left", "") if used_up else (budget, less)
    return (
        f"cell {cell}: with it trainings would have spent ε = {upper_bound(spent)}{at} on these records (before it "
        f"{upper_bound(before)}), beyond {limit}; leave the cell out{less}"
    )


class Protected(NamedTuple):
    """Whom a guarantee is about.

    Attributes:
        unit: "record" or "subject".
        persons: the column that tells persons apart; "" where there is none, or (earlier versions) nobody noted it.
    """

    unit: str
    persons: str = ""

    @classmethod
    def of_ledger(cls, ledger: Mapping) -> "Protected":
        """Whom the guarantee of a training is about."""
        return cls(ledger["unit"], ledger.get("bounds", {}).get("persons", ""))

    @classmethod
    def of_dataset(cls, dataset: Mapping) -> "Protected":
        """Whom the guarantees of a data set's cells are about.

        Args:
            dataset: its entry in a config.
        """
        return cls(dataset["unit"], dataset.get("subject_column", "") if dataset["unit"] == "subject" else "")


def uncounted(protected: Protected, ledger: Mapping) -> str:
    """Why the guarantee of a training bounds nothing of what each protected unit loses, as a key; "" if it does.

    Who protects persons protects each of their records: what a person with and without one of them adds differs by no
    more than what they add. Not so (ONE_EACH) where one record of each is learned from (`per_subject: 1`): another
    takes its place, which is twice as far. Who protects records (RECORDS) bounds nothing for a person, who may have any
    number; nor who protects persons by another column (OTHERS), of which a person may be several.
    """
    theirs = Protected.of_ledger(ledger)
    if protected.unit == "record":
        return "" if theirs.unit == "record" or ledger.get("bounds", {}).get("records", 1) > 1 else ONE_EACH
    if theirs.unit == "record":
        return RECORDS
    return OTHERS if protected.persons and theirs.persons and protected.persons != theirs.persons else ""


def spent_for(protected: Protected, past: Sequence[Mapping], delta: float) -> float | str:
    """The epsilon that trainings have spent of each unit; or why nobody can tell, in words.

    Args:
        protected: now.
        past: their ledgers.
    """
    for ledger in past:
        if why := uncounted(protected, ledger):
            by = Protected.of_ledger(ledger).persons
            return f"trainings before it {_WHY[why].format(now=protected.persons, before=by)}"
    spent = epsilon_of_all([(one, 1) for one in past], delta) if past else 0.0
    return "trainings without a guarantee stand in the log of these records" if spent is None else spent


def unbudgeted(cell: str, why: str, ceiling: str | None) -> str:
    """The sentence that refuses a cell since nobody can tell, for this reason, what is spent already."""
    return f"cell {cell}: {why}: nobody can tell whether it keeps release: {{budget: {ceiling}}}"


def fitting(ceiling: float, before: float, models: int, delta: float, sampled: bool, own: float | None = None) -> float:
    """The epsilon that each of `models` models may have within the budget, if all were Gaussian; 0 if too small.

    Args:
        delta: at which the budget is added up.
        own: the delta of the models, where it is another.
        sampled: their batches are samples, whose epsilons add up otherwise: of fifteen sums, two to nine models of
            epsilon 1 to 8, accountants gave 0.86 to 1.20 times what is reckoned.
    """
    left = gaussian.mu_of(ceiling, delta) ** 2 - gaussian.mu_of(before, delta) ** 2
    if left <= 0:
        return 0.0
    epsilon = _SURE[sampled] * gaussian.epsilon_of(math.sqrt(left / models), own or delta)
    digits = 1 - math.floor(math.log10(epsilon)) if epsilon > 0 else 0
    largest = math.floor(epsilon * 10**digits) / 10**digits
    return largest if largest >= _LEAST else 0.0


def epsilon_of_all(ledgers: Sequence[tuple[Mapping, int]], delta: float) -> float | None:
    """The epsilon of all of them together; None where one has no proved guarantee."""
    from dpstudy.privacy.ledger_sums import total

    return total([(dict(ledger), seeds) for ledger, seeds in ledgers], delta, same_parts=False)["epsilon"]
