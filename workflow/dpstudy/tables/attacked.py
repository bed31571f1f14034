"""Results of black-box audits of cells, beside the numbers that a paper prints."""

from dataclasses import dataclass

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.summary import cell_name
from dpstudy.tables.names import datasets_of
from dpstudy.tables.published import lookup
from dpstudy.tables.results import Results

DOCUMENTS = ("metrics", "black_boxes")  # that such tables read
FOUND = {  # key of black-box.json -> metric of results.csv
    "epsilon_lower": "eps_lower_bound",
    "auc": "membership_auc",
    "advantage": "membership_advantage",
    "advantage_upper": "membership_advantage_upper_bound",
}


@dataclass(frozen=True)
class Attacked:
    """A cell with its black-box.json, and the paper's printed value of each metric as text, "" where it has none."""

    place: tuple[str, str, str, str]
    label: str
    found: dict
    published: dict[str, str]


def lay_membership(name: str, spec: dict, results: Results) -> list[list[Attacked]]:
    """The audited cells of each row of a table, by epsilon, in config order.

    Raises:
        StudyError: a data set that the study does not have, or a row without any attacked cell.
    """
    blocks = []
    for row in spec["rows"]:
        where, dataset = f"table {name}", row.get("dataset", datasets_of(name, spec, results.axes)[0])
        place = (dataset, row["features"], row["entry"])
        block = []
        for epsilon in spec.get("epsilons", results.axes["epsilons"]):
            cell = cell_name(*place, epsilon)
            if cell in results.black_boxes:
                attack, filter_ = read_json(results.black_boxes[cell]), row.get("published")
                label = row.get("label", f"{attack['records']:,}")
                block.append(Attacked((*place, epsilon), label, attack, _published(filter_, epsilon)))
        if not block:
            raise StudyError(f"{where}: no cell of {'/'.join(place)} is attacked; name its entry in black_box.entries")
        blocks.append(block)
    return blocks


def _published(filter_: dict | None, epsilon: str) -> dict[str, str]:
    printed = {key: filter_ and lookup(filter_ | {"metric": metric}, epsilon) for key, metric in FOUND.items()}
    return {key: value.text if value else "" for key, value in printed.items()}
