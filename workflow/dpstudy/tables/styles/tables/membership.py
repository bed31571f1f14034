"""Results of black-box audits, beside the paper's numbers, as in de2022's Table 9."""

from dpstudy.evaluation.summary import cell_name
from dpstudy.privacy.printed import lower_bound, upper_bound
from dpstudy.tables.attacked import DOCUMENTS, FOUND, Attacked, lay_membership
from dpstudy.tables.checks import check_published
from dpstudy.tables.keys import row_schema
from dpstudy.tables.results import Results
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.style import Printed, TableStyle

_SETTING = ("canary", "learning_rate", "clipping_norm", "steps")
_FACTS = ("records", "delta", "epsilon_certified", "runs", "confidence")
CSV_HEADER = (
    *("dataset", "features", "entry", "epsilon", *_FACTS, *_SETTING),
    *(column for key in FOUND for column in (key, f"published_{key}")),
)
_HEADER = ("|D|", "ε", "ε at least", "paper", "AUC", "paper", "advantage", "paper", "at most", "paper")


def _table(name: str, spec: dict, results: Results) -> Printed:
    blocks = lay_membership(name, spec, results)
    rows = (_line(cell) for block in blocks for cell in block)
    texts = tuple(tuple(_texts(cell, cell is block[0]) for cell in block) for block in blocks)
    sheet = Sheet(name, spec.get("caption", ""), _HEADER, "lr|rr|rr|rr|rr", texts, tuple(_notes(blocks)))
    return Printed(CSV_HEADER, rows, (sheet,))


def _line(cell: Attacked) -> list:
    values = [value for key in FOUND for value in (cell.found[key], cell.published[key])]
    setting = [cell.found["chosen"].get(key, "") for key in _SETTING]
    return [*cell.place, *(cell.found[key] for key in _FACTS), *setting, *values]


def _texts(cell: Attacked, first: bool) -> tuple[str, ...]:
    ours = {key: f"{cell.found[key]:.2f}" for key in FOUND}
    ours["advantage_upper"] = upper_bound(cell.found["advantage_upper"], places=2)
    ours["epsilon_lower"] = lower_bound(cell.found["epsilon_lower"], places=2)
    pairs = [text for key in FOUND for text in (ours[key], cell.published[key] or "–")]
    return (cell.label if first else "", cell.place[-1], *pairs)


def _notes(blocks: list[list[Attacked]]) -> list[str]:
    cells = [cell for block in blocks for cell in block]
    counts = sorted({(cell.found["runs"], cell.found["confidence"]) for cell in cells})
    runs = ", ".join(f"{runs:,} models a side with {100 * confidence:g} % confidence" for runs, confidence in counts)
    chosen = "; ".join(f"{cell_name(*cell.place)}: {_setting(cell.found['chosen'])}" for cell in cells)
    return [f"Counted on {runs}.", f"Chosen in phase I: {chosen}."]


def _setting(chosen: dict) -> str:
    steps = f", {chosen['steps']} steps" if "steps" in chosen else ""
    return f"z {chosen['canary']}, rate {chosen['learning_rate']:g}, C {chosen['clipping_norm']:g}{steps}"


STYLE = TableStyle(
    keys={"rows": row_schema("dataset", "features", "entry", "label", "epochs", "published")},
    needs=("rows",),
    check=check_published,
    documents=DOCUMENTS,
    table=_table,
)
