"""Common parts of tables of accuracies: CSV lines, marks for weaker guarantees, and notes."""

from dpstudy.evaluation.intervals import FEWEST
from dpstudy.evaluation.metrics import metric_of
from dpstudy.tables.layout import Cell, Column, Table
from dpstudy.tables.numbers import over_seeds
from dpstudy.tables.published import Published
from dpstudy.tables.remarks import remarks

CSV_HEADER = (
    *("dataset", "features", "entry", "epsilon", "certified_epsilon", "guarantee", "statistic"),
    *("ours", "std", "seeds", "published", "published_std", "difference", "low", "high", "audited_epsilon"),
)
INTERVALS = (
    "Intervals: 95 % for the mean, from the spread over seeds (Student's t) together with that over test records, or "
    f"persons where they are known; none where fewer than {FEWEST} of these are on a side (in a class; with a label or "
    "without it)."
)
UNDEFINED = "no label is borne by some test records and not by others"
MARKS = {"claimed": r"$^{\dagger}$", "none": r"$^{\ddagger}$"}
MEANINGS = {"claimed": "guarantee claimed by its authors, not proved", "none": "no guarantee"}


def mark_of(cell: Cell, column: Column | None) -> str:
    """The guarantee to mark a cell with, if its column mixes several and the cell's is not the strongest; else "".

    Where columns are no epsilons (None) each cell bears its own mark, but that nothing is guaranteed at epsilon = inf
    goes without saying.
    """
    told = cell.epsilon != "inf" if column is None else column.guarantee == "mixed"
    return cell.guarantee if told and cell.guarantee in MEANINGS else ""


def notes(table: Table, beside: str = "; in brackets ours minus published") -> list[str]:
    """The notes below the table, a sentence each, without markup.

    Args:
        beside: how the sentence on published numbers ends.
    """
    metric = metric_of(table.metric).label
    spread = over_seeds(table.statistic, (cell.seeds for row in table.rows for cell in row.cells))
    sentences = [f"{metric[0].upper()}{metric[1:]}: {spread}."]
    if any(row.has_intervals for row in table.rows):
        sentences.append(INTERVALS)
    without = [cell for row in table.rows if not row.is_cited for cell in row.cells if cell.ours is None]
    if not all(cell.undefined for cell in without):
        sentences.append("– marks a missing cell.")
    if any(cell.undefined for cell in without):
        sentences.append(f"–: {UNDEFINED}.")
    if any(column.audited is not None for column in table.columns):
        sentences.append("Attacked: the highest lower bound on ε that attacks on a column's releases gave.")
    if table.sources:
        sentences.append(f"Published: {'; '.join(table.sources)}{beside}.")
    cited = [(cell.published, cell.epsilon) for row in table.rows if row.is_cited for cell in row.cells]
    if works := dict.fromkeys(f"{p.source} at ε = {epsilon}" for p, epsilon in cited if p and p.source):
        sentences.append(f"Cited there: {'; '.join(works)}.")
    if table.has_bounds:
        sentences.append("Where only a bound is published, the paper prints the cell as at most 20 %.")
    return [*sentences, *table.facts, *remarks(table)]


def marks(table: Table) -> dict[str, str]:
    """The guarantees that cells are marked with, and their meanings."""
    columns = table.columns or [None] * len(table.heads)
    pairs = [pair for row in table.rows for pair in zip(row.cells, columns, strict=True)]
    used = {mark_of(cell, column) for cell, column in pairs}
    return {mark: text for mark, text in MEANINGS.items() if mark in used}


def printed(published: Published | None) -> float | str | None:
    """A published number as a CSV field: its value, or its bound."""
    if published is None:
        return None
    if published.value is not None:
        return published.value
    return f"<={published.at_most:g}"


def fields_beside(published: Published | None, difference: float | None) -> tuple:
    """CSV fields of what stands beside a cell: what is published, its standard deviation, and ours minus that."""
    rounded = None if difference is None else round(difference, 6)
    return printed(published), published and published.std, rounded


def csv_row(cell: Cell, table: Table) -> tuple:
    """A cell as a CSV line with the columns of `CSV_HEADER`."""
    place = (cell.dataset, cell.features, cell.entry, cell.epsilon, cell.certified, cell.guarantee, table.statistic)
    ours, ends = (cell.ours, cell.std, cell.seeds), cell.interval or (None, None)
    return (*place, *ours, *fields_beside(cell.published, cell.difference), *ends, cell.audited)
