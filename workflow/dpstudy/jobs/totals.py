"""The job that adds up privacy costs per data set: if everything were published, and with secure noise so far."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from dpstudy.core.files import read_json, write_json
from dpstudy.privacy.ledger_sums import total
from dpstudy.privacy.spending import Spending
from dpstudy.privacy.spent_lines import about
from dpstudy.privacy.spent_sums import Protected, uncounted
from dpstudy.tables.grouping import by_key


def write_totals(
    cells: Sequence[dict],
    deltas: dict[str, str],
    path: str,
    spent: Spending | None = None,
    records: Mapping[str, str] | None = None,
) -> None:
    """Write the total privacy cost of a study's cells per private data set, and what secure noise has spent.

    Data sets of the study that have records in common, as entries that read one folder in two ways, are added up too:
    each has the sum under "together", with the names of the others.

    Trainings count for a data set whatever it was called when they were run, if its records are the same. Those that
    protected single records are no bound for persons: there they are counted apart, as `by_record`, and the epsilon of
    all is None. So are, as `by_person`, those that learned from one record of each person, where records are protected;
    and, as `by_other_persons`, those that tell persons apart by another column.

    Args:
        cells: {"dataset", "ledger" (path), "run" (path)} of each cell.
        deltas: data set -> its delta.
        path: of the JSON to write; records that this folder's cells learned from, but none of this study, stand under
            "others".
        spent: where trainings with secure noise are written down, those of other folders among them.
        records: data set -> which records it has (locations.records_of).
    """
    book, known, datasets = spent.everywhere() if spent else [], records or {}, {}
    read: dict[str, list[tuple[dict, int]]] = {name: [] for name in deltas}
    for cell in cells:
        read[cell["dataset"]].append((read_json(cell["ledger"]), len(read_json(cell["run"])["seeds"])))
    for name, delta in deltas.items():
        ledgers = read[name]
        if ledgers:
            whom = Protected.of_ledger(ledgers[0][0])
            entries = [entry for entry in book if about(entry, name, known.get(name))]
            alike = [other for other in read if other != name and read[other] and _alike(other, name, known)]
            datasets[name] = total(ledgers, float(delta)) | {"unit": whom.unit} | _spent(entries, float(delta), whom)
            if alike:
                every = [*ledgers, *(counted_ledger for other in alike for counted_ledger in read[other])]
                datasets[name]["together"] = {"with": alike} | _counted(every, float(delta), whom)
    others = defaultdict(list)
    for entry in spent.trainings() if spent else ():  # the names of other folders' data are not this one's to publish
        if not any(about(entry, name, known.get(name)) for name in datasets):
            others[entry["dataset"]].append(entry)
    write_json(path, {"datasets": datasets, "others": {name: _alone(entries) for name, entries in others.items()}})


def _alike(other: str, name: str, known: Mapping[str, str]) -> bool:
    """Whether two data sets of a study may have records in common."""
    return about({"dataset": other, "records": known.get(other)}, name, known.get(name))


def _of_unit(ledgers: Sequence[tuple[dict, int]], whom: Protected) -> tuple[list[tuple[dict, int]], dict]:
    """Those that bound what the unit loses, and how many do not, by why (`uncounted`)."""
    by_why = by_key(ledgers, lambda one: uncounted(whom, one[0]))
    return by_why.pop("", []), {why: len(left_out) for why, left_out in by_why.items()}


def _whole(counted: Sequence[tuple[dict, int]], delta: float, others: Mapping) -> dict:
    """Their total; without an epsilon where there are others, which it would leave out."""
    return total(counted, delta, same_parts=False) | ({"epsilon": None} if others else {})


def _counted(ledgers: Sequence[tuple[dict, int]], delta: float, whom: Protected) -> dict:
    """The total of those that bound what the unit loses, and how many do not."""
    counted, others = _of_unit(ledgers, whom)
    return _whole(counted, delta, others) | others


def _spent(entries: Iterable[dict], delta: float, whom: Protected) -> dict:
    """What stands in the book for the unit that is protected, and how many trainings bound nothing for it."""
    counted, others = _of_unit([(entry["ledger"], 1) for entry in entries], whom)
    return {"spent": _whole(counted, delta, others) if counted else None} | others


def _alone(entries: list[dict]) -> dict:
    ledgers = [entry["ledger"] for entry in entries]
    whom = Protected.of_ledger(next((one for one in ledgers if one["unit"] == "record"), ledgers[0]))
    delta = max(float(ledger["delta"]) for ledger in ledgers)
    return _spent(entries, delta, whom) | {"unit": whom.unit}
