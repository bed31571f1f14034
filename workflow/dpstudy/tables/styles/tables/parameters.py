"""Parameter counts of models, beside those printed in tramer2021's Table 4 and those of its printed layers.

The layers are those of Tables 5 to 9.
"""

from dataclasses import dataclass

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.summary import cell_name
from dpstudy.schema.messages import check_known
from dpstudy.tables import printed_layers
from dpstudy.tables.keys import TEXT, mapping, several
from dpstudy.tables.names import datasets_of
from dpstudy.tables.results import Results
from dpstudy.tables.selecting import like, named
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.style import Printed, Study, TableStyle

CSV_HEADER = ("model", "dataset", "features", "entry", "parameters", "published", "as_printed_in_layers")
_HEADER = ("Model", "Parameters", "Table 4", "Tables 5–9")


@dataclass(frozen=True)
class Counted:
    """One model's number of parameters: ours, Table 4's text, and by the printed layers; None where not printed."""

    label: str
    place: tuple[str, str, str]
    parameters: int
    published: str | None
    layers: int | None


def _table(name: str, spec: dict, results: Results) -> Printed:
    models = lay_parameters(name, spec, results)
    rows = ((row.label, *row.place, row.parameters, row.published, row.layers) for row in models)
    return Printed(CSV_HEADER, rows, (_sheet(name, spec, models),))


def lay_parameters(name: str, spec: dict, results: Results) -> list[Counted]:
    """The rows of a table, in config order; a model has the same number of parameters at every epsilon.

    Raises:
        StudyError: a data set that the study does not have, or a row without any cell.
    """
    models = []
    for row in spec["models"]:
        dataset = row.get("dataset", datasets_of(name, spec, results.axes)[0])
        place = (dataset, row["features"], row["entry"])
        cells = [cell_name(*place, epsilon) for epsilon in results.axes["epsilons"]]
        cell = next((cell for cell in cells if cell in results.metrics), None)
        if cell is None:
            where = f"table {name}: the study has no cell of {'/'.join(place)}"
            raise StudyError(f"{where}, whose parameters could be counted")
        model, ours = row.get("published"), read_json(results.metrics[cell])["parameters"]
        printed = (printed_layers.table_4()[model], printed_layers.parameters(model)) if model else (None, None)
        models.append(Counted(row.get("label", row["entry"]), place, ours, *printed))
    return models


def _sheet(name: str, spec: dict, rows: list[Counted]) -> Sheet:
    texts = tuple(
        (row.label, f"{row.parameters:,}", row.published or "–", "–" if row.layers is None else f"{row.layers:,}")
        for row in rows
    )
    return Sheet(name, spec.get("caption", ""), _HEADER, "lrrr", (texts,), tuple(_notes(rows)))


def _notes(rows: list[Counted]) -> list[str]:
    notes = ["Weights and biases. Tables 5–9: what the layers give as tramer2021 prints them."]
    small, large = "ScatterNet+CNN (MNIST and Fashion-MNIST)", "ScatterNet+CNN (CIFAR-10)"
    if any(row.layers not in (None, row.parameters) for row in rows):
        notes.append(
            "The layers of Tables 8 and 9 do not give Table 4's counts of the CNNs on ScatterNet features: they do "
            f"without the two poolings of Table 8 ({printed_layers.parameters(small, [0, 1]):,}) and with one of the "
            f"two of Table 9 ({printed_layers.parameters(large, [1]):,}); such networks are trained here."
        )
    return notes


def _check(place: str, spec: dict, study: Study) -> None:
    for number, row in enumerate(spec["models"]):
        if "published" in row:
            where = f"{place}.models[{number}].published"
            check_known(where, row["published"], printed_layers.table_4(), "model of tramer2021's Table 4")


_MODELS = several(
    mapping(("features", "entry"), dataset=TEXT, features=TEXT, entry=TEXT, label=TEXT, published=TEXT),
    "A row each. published: the model's name in workflow/published/architectures.csv (Table 4).",
)
STYLE = TableStyle(
    keys={"models": _MODELS},
    needs=("models",),
    check=_check,
    cells=lambda spec, study: like(study.cells, spec, map(named, spec["models"])),
    table=_table,
)
