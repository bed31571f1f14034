"""Confusion matrices in percent of each class, for the whole test split and for subgroups.

Of several labels a record it tells how many of those with one are found, and of those without it left alone.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.confusion import SEVERAL, WHOLE
from dpstudy.evaluation.summary import cell_name
from dpstudy.tables.checks import check_crossed
from dpstudy.tables.facts import facts_of
from dpstudy.tables.keys import row_schema
from dpstudy.tables.names import line_label
from dpstudy.tables.results import Results
from dpstudy.tables.selecting import meet, named
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.style import SCORED, Printed, Study, TableStyle

CSV_HEADER = ("dataset", "features", "entry", "epsilon", "seed", "group", "class", "told", "records")
_MOST = 12  # classes that fit beside each other on a page


def _table(name: str, spec: dict, results: Results) -> Printed:
    asked = [content for path in results.metrics.values() if _is_asked(spec, content := read_json(path))]
    cells = [content for content in asked if all("confusion" in row for row in content["seeds"])]
    rows = [line for content in cells for line in _lines(content)]
    return Printed(CSV_HEADER, rows, (_sheet(name, spec, cells, results, len(asked) - len(cells)),))


def _is_asked(spec: Mapping, content: Mapping) -> bool:
    place = {axis: [content[axis]] for axis in ("dataset", "features", "entry", "epsilon")}
    return any(meet((named(spec), named(row), place)) is not None for row in spec["rows"])


def _place(content: Mapping) -> tuple[str, str, str, str]:
    return content["dataset"], content["features"], content["entry"], content["epsilon"]


def _lines(content: Mapping) -> Iterator[tuple]:
    for row in content["seeds"]:
        confusion = row["confusion"]
        for group, counts in confusion["counts"].items():
            for label, line in zip(confusion["classes"], counts, strict=True):
                for predicted, count in zip(confusion["told"], line, strict=True):
                    yield (*_place(content), row["seed"], group, label, predicted, count)


def _sheet(name: str, spec: dict, cells: Sequence[Mapping], results: Results, left_out: int) -> Sheet:
    labels = {(row["features"], row["entry"]): line_label(row) for row in spec["rows"]}
    first = cells[0]["seeds"][0]["confusion"] if cells else {"told": SEVERAL}
    several = tuple(first["told"]) == SEVERAL
    count_heads = ("with it", "found (%)", "without it", "left alone (%)") if several else ("n", *first["told"][:_MOST])
    blocks = []
    for content in cells:
        _, features, entry, epsilon = _place(content)
        method = f"{labels[features, entry]}, ε = {'∞' if epsilon == 'inf' else epsilon}"
        for group in content["seeds"][0]["confusion"]["counts"]:
            seeds = [row["confusion"]["counts"] for row in content["seeds"]]
            counts = np.mean([by_group[group] for by_group in seeds if group in by_group], 0)
            heads = [(method if group == WHOLE else "", group.replace("=", ": ") or "all")]
            heads += [("", "")] * (len(first["classes"]) - 1)
            lines = zip(heads, first["classes"], _several(counts) if several else _one(counts), strict=True)
            blocks.append(tuple((*head, label, *line) for head, label, line in lines))
    header = ("Method", "group", "finding" if several else "is", *count_heads)
    notes = [
        "In percent of the test records of each row, means over seeds, without noise that would protect these records; "
        + ("a finding is told from a probability of 1/2 on." if several else "columns: what has the largest score."),
    ]
    if not several and len(first["told"]) > _MOST:
        notes.append(f"Columns after the first {_MOST} stand in the CSV.")
    if left_out:
        notes.append(f"Of {left_out} cells scores are no probabilities (too few units, or no `calibration`).")
    notes += facts_of((cell_name(*_place(content)) for content in cells), results)
    return Sheet(name, spec.get("caption", ""), header, "lll" + "r" * len(count_heads), tuple(blocks), tuple(notes))


def _one(counts: np.ndarray) -> list[tuple[str, ...]]:
    return [(f"{row.sum():.0f}", *(_share(one, row.sum()) for one in row[:_MOST])) for row in counts]


def _several(counts: np.ndarray) -> list[tuple[str, ...]]:
    return [
        (f"{missed + hits:.0f}", _share(hits, missed + hits), f"{left + alarms:.0f}", _share(left, left + alarms))
        for left, alarms, missed, hits in counts
    ]


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else "–"


def _check(place: str, spec: dict, study: Study) -> None:
    if not study.config["evaluation"].get("confusion"):
        raise StudyError(f"{place}: the style 'confusion' needs evaluation.confusion: true")


STYLE = TableStyle(
    keys={"rows": row_schema("features", "entry", "label")},
    needs=("rows",),
    check=(check_crossed, _check),
    documents=SCORED,
    table=_table,
    measures=False,
    names=True,
)
