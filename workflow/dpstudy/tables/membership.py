"""What attacks by the loss of trained models found, beside the paper's numbers, as de2022's Table 9."""

import os
from dataclasses import dataclass

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.evaluation.summary import cell_name
from dpstudy.privacy.printed import lower_bound, upper_bound
from dpstudy.tables.names import check_names, datasets_of
from dpstudy.tables.published import lookup
from dpstudy.tables.results import Results
from dpstudy.tables.sheet import Sheet, write_sheet

_METRICS = {  # key of black-box.json -> metric of results.csv
    "epsilon_lower": "eps_lower_bound",
    "auc": "membership_auc",
    "advantage": "membership_advantage",
    "advantage_upper": "membership_advantage_upper_bound",
}
_SETTING = ("canary", "learning_rate", "clipping_norm", "steps")
_FACTS = ("records", "delta", "epsilon_certified", "runs", "confidence")
CSV_HEADER = (
    *("dataset", "features", "entry", "epsilon", *_FACTS, *_SETTING),
    *(column for key in _METRICS for column in (key, f"published_{key}")),
)
_HEADER = ("|D|", "ε", "ε at least", "paper", "AUC", "paper", "advantage", "paper", "at most", "paper")


@dataclass(frozen=True)
class Attacked:
    """A cell with its black-box.json, and what the paper prints of each metric, as text; "" where it does not."""

    place: tuple[str, str, str, str]
    label: str
    found: dict
    published: dict[str, str]


def build_membership_table(
    name: str, spec: dict, results: Results, tex_path: str | os.PathLike, csv_path: str | os.PathLike
) -> None:
    """Write what was found as .tex and .csv, a line a cell. Raises: as `lay_membership`."""
    blocks = lay_membership(name, spec, results)
    write_csv(csv_path, CSV_HEADER, (_line(cell) for block in blocks for cell in block))
    write_sheet(_sheet(name, spec, blocks), tex_path)


def membership_sheet(name: str, spec: dict, results: Results) -> Sheet:
    """The same as text."""
    return _sheet(name, spec, lay_membership(name, spec, results))


def lay_membership(name: str, spec: dict, results: Results) -> list[list[Attacked]]:
    """The cells of each row of a table, by epsilon, in config order.

    Raises:
        StudyError: a name that the study does not have, or a row without any attacked cell.
    """
    blocks = []
    for row in spec["rows"]:
        where, dataset = f"table {name}", row.get("dataset", datasets_of(name, spec, results.axes)[0])
        check_names(where, "data set", [dataset], results.axes["datasets"])
        place = (dataset, row["features"], row["entry"])
        block = []
        for epsilon in spec.get("epsilons", results.axes["epsilons"]):
            cell = cell_name(*place, epsilon)
            if cell in results.black_boxes:
                found, filter_ = read_json(results.black_boxes[cell]), row.get("published")
                label = row.get("label", f"{found['records']:,}")
                block.append(Attacked((*place, epsilon), label, found, _published(filter_, epsilon)))
        if not block:
            raise StudyError(f"{where}: no cell of {'/'.join(place)} is attacked; name its entry in black_box.entries")
        blocks.append(block)
    return blocks


def _published(filter_: dict | None, epsilon: str) -> dict[str, str]:
    printed = {key: filter_ and lookup(filter_ | {"metric": metric}, epsilon) for key, metric in _METRICS.items()}
    return {key: value.text if value else "" for key, value in printed.items()}


def _line(cell: Attacked) -> list:
    values = [value for key in _METRICS for value in (cell.found[key], cell.published[key])]
    setting = [cell.found["chosen"].get(key, "") for key in _SETTING]
    return [*cell.place, *(cell.found[key] for key in _FACTS), *setting, *values]


def _sheet(name: str, spec: dict, blocks: list[list[Attacked]]) -> Sheet:
    texts = tuple(tuple(_texts(cell, cell is block[0]) for cell in block) for block in blocks)
    return Sheet(name, spec.get("caption", ""), _HEADER, "lr|rr|rr|rr|rr", texts, tuple(_notes(blocks)))


def _texts(cell: Attacked, first: bool) -> tuple[str, ...]:
    ours = {key: f"{cell.found[key]:.2f}" for key in _METRICS}
    ours["advantage_upper"] = upper_bound(cell.found["advantage_upper"], places=2)
    ours["epsilon_lower"] = lower_bound(cell.found["epsilon_lower"], places=2)
    pairs = [text for key in _METRICS for text in (ours[key], cell.published[key] or "–")]
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
