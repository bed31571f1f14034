"""results/privacy/total.json: what would be spent if every seed and cell of a data set were published."""

from collections.abc import Sequence

from dpstudy.files import read_json, write_json
from dpstudy.privacy.ledger import total


def write_totals(cells: Sequence[dict], deltas: dict[str, str], path: str) -> None:
    """Add up the ledgers of a study's cells, per private data set.

    Args:
        cells: {"dataset", "ledger" (path), "metrics" (path)} of each cell.
        deltas: data set -> its delta.
        path: of the JSON to write.
    """
    datasets = {}
    for name, delta in deltas.items():
        mine = [cell for cell in cells if cell["dataset"] == name]
        ledgers = [(read_json(cell["ledger"]), len(read_json(cell["metrics"])["seeds"])) for cell in mine]
        if ledgers:
            datasets[name] = total(ledgers, float(delta))
    write_json(path, {"datasets": datasets})
