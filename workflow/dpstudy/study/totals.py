"""results/privacy/total.json: what would be spent if every seed and cell of a data set were published."""

from collections.abc import Sequence

from dpstudy.files import read_json, write_json
from dpstudy.privacy.ledger import total
from dpstudy.privacy.spending import Spending


def write_totals(cells: Sequence[dict], deltas: dict[str, str], path: str, spent: str | None = None) -> None:
    """Add up the ledgers of a study's cells, per private data set, and what secure noise has spent on it so far.

    Args:
        cells: {"dataset", "ledger" (path), "metrics" (path)} of each cell.
        deltas: data set -> its delta.
        path: of the JSON to write.
        spent: where trainings with secure noise are written down.
    """
    trained = list(Spending(spent).entries()) if spent else []
    datasets = {}
    for name, delta in deltas.items():
        mine = [cell for cell in cells if cell["dataset"] == name]
        ledgers = [(read_json(cell["ledger"]), len(read_json(cell["metrics"])["seeds"])) for cell in mine]
        if ledgers:
            past = [(entry["ledger"], 1) for entry in trained if entry["dataset"] == name]
            datasets[name] = total(ledgers, float(delta)) | {"spent": total(past, float(delta)) if past else None}
    write_json(path, {"datasets": datasets})
