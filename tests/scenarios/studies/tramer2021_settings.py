"""What tramer2021's tables print (hyperparameters.csv) and what its studies have, for tests that compare them."""

import csv
import re
from fractions import Fraction
from pathlib import Path

from dpstudy.config.cells import unfold
from dpstudy.config.loading import read_study

ROOT = Path(__file__).parents[3]
SHORT = {"MNIST": "mnist", "Fashion-MNIST": "fashion-mnist", "CIFAR-10": "cifar10"}
MODELS = {"linear": "linear", "scatter-28": "ScatterNet+CNN", "scatter-32": "ScatterNet+CNN", "tanh-28": "CNN"}
MODELS |= {"tanh-32": "CNN", "tanh-32-smaller": "CNN"}


def loaded(study):
    path = ROOT / "studies" / f"tramer2021-{study}.yaml"
    return read_study(path)


def cells_of(study):
    """(cell, options) of a study."""
    config = loaded(study)
    return config, [(cell, cell.options(config)) for cell in unfold(config)]


def printed(table, **keys):
    """parameter -> text of a table, in the rows that these columns tell apart."""
    wanted = {"paper": "tramer2021", "table": table} | keys
    with (ROOT / "workflow/published/hyperparameters.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if wanted.items() <= row.items()]
    found = {row["parameter"]: row["value"] for row in rows}
    assert rows and len(found) == len(rows), "one row a parameter"
    return found


def numbers(text):
    """{1/4, 1/2} * B/512 -> [0.25, 0.5]; {512, 1024, ..., 16384}: doubling."""
    inside = re.match(r"\{(.*)\}", text)[1]
    values = [value.strip() for value in inside.split(",")]
    if "..." in values:
        first, last = int(values[0]), int(values[-1])
        return [first * 2**power for power in range((last // first).bit_length())]
    return [float(Fraction(value)) for value in values]


def model_of(options):
    return MODELS[options.get("network", "linear")]


def check_data_norm(options, bounds):
    assert options["normalisation"]["mean_clip"] == float(bounds["data_norm_C1"])
    assert options["normalisation"]["square_clip"] == float(bounds["data_norm_C2"])


def delta_of(config, dataset):
    return float(Fraction(config["datasets"][dataset]["delta"]))
