"""The studies that come with the repository load, and unfold into the cells that they promise."""

import csv
from fractions import Fraction
from pathlib import Path

import pytest

from dpstudy.config.cells import unfold
from dpstudy.config.including import read_config
from dpstudy.config.loading import read_study
from dpstudy.tables.published import combine, lookup
from dpstudy.tables.trials import STATISTICS

ROOT = Path(__file__).parents[3]
STUDIES = [ROOT / "config.yaml", *sorted((ROOT / "studies").glob("*.yaml"))]


def loaded(path):
    return read_study(path)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_of_the_repository_loads(path):
    config, written = loaded(path), read_config(path)
    cells = unfold(config)
    assert {cell.entry for cell in cells} == set(config["methods"])
    of_others = {name for features in written["features"].values() for name in features.get("parts", [])}
    of_others |= {fit["features"] for fit in written.get("fits", {}).values() if "features" in fit}
    assert {cell.features for cell in cells} | of_others == set(config["features"])
    assert {cell.dataset for cell in cells} == set(config["datasets"])


@pytest.mark.parametrize("name", ["mehta2023", "mehta2023-small"])
def test_the_grid_of_mehta2023_is_whole(name):
    config = loaded(ROOT / "studies" / f"{name}.yaml")
    grid = [cell for cell in unfold(config) if not cell.entry.endswith("-shared")]
    kinds = {(cell.dataset, cell.features) for cell in grid}
    entries = {cell.entry for cell in grid}
    assert len(grid) == len(kinds) * len(entries) * 9 >= 400
    assert len(config["seeds"]) == 5 and len(config["datasets"]) == 3
    assert {"dp-ls", "dp-newton-1", "dp-newton-10", "dp-fc-1", "dp-fc-10", "dp-adam-100"} < entries
    for entry, options in config["methods"].items():
        assert options["method"] != "newton" or options["variant"] == "published", entry
        assert ("shared_noise" in options and options["shared_noise"]) == entry.endswith("-shared"), entry


def test_the_grid_has_no_more_than_the_paper_searched():
    """Trials and ranges of Tables 6-9."""
    for options in loaded(ROOT / "studies" / "mehta2023.yaml")["methods"].values():
        if "tuning" in options:
            assert options["tuning"]["trials"] == (300 if options["method"] == "newton" else 200)
            assert all((a["low"], a["high"]) == (1e-8, 1e8) for a in options["tuning"]["space"].values())
            assert options["clipping_norm"] == 0.005


COMPARED = [path for path in STUDIES if path.stem.startswith(("tramer2021", "de2022"))]


@pytest.mark.parametrize("path", COMPARED, ids=lambda path: path.stem)
def test_each_published_filter_finds_a_printed_number(path):
    """A filter that finds nothing at any epsilon of its table would print nothing beside ours, silently."""
    config = loaded(path)
    for name, spec in config["tables"].items():
        metric = spec.get("metric", "top1")
        for row in spec.get("rows", []):
            if "published" in row:
                where = {"metric": metric} | combine(spec, row.get("dataset", spec.get("dataset")), row)
                found = [lookup(where, epsilon) for epsilon in spec.get("epsilons", config["epsilons"])]
                assert any(found), (name, row["label"])
        for row in spec.get("searches", []):
            for statistic in STATISTICS if "published" in row else ():
                assert lookup(row["published"] | {"statistic": statistic}, row["epsilon"]), (name, row["label"])


PRINTED = {"mnist": "MNIST", "fashion": "Fashion-MNIST", "cifar10": "CIFAR-10"}


@pytest.mark.parametrize(("study", "dataset"), PRINTED.items())
def test_the_tables_of_tramer2021_are_whole(study, dataset):
    """Every number of its Tables 1, 2, 11, 19 and 20 stands in the table's target, beside a cell or as a cited one."""
    config = loaded(ROOT / "studies" / f"tramer2021-{study}.yaml")
    cells = {(cell.features, cell.entry, cell.epsilon) for cell in unfold(config)}
    with (ROOT / "workflow/published/results.csv").open(encoding="utf-8") as file:
        printed = [row for row in csv.DictReader(file) if (row["paper"], row["dataset"]) == ("tramer2021", dataset)]
    for table in ("1", "2", "11", "19", *(["20"] if study == "cifar10" else [])):
        spec = config["tables"][f"tramer2021-table-{table}-{study}"]
        own = [row for row in printed if row["table"] == table]
        assert own
        for number in own:

            def is_of(row, number=number):
                return all(number[key] == value for key, value in row.get("published", {"paper": ""}).items())

            assert number["epsilon"] in spec["epsilons"], number
            if number["source"]:
                assert any(map(is_of, spec["cited"])), number
            else:
                beside = [row for row in spec["rows"] if is_of(row)]
                assert [(row["features"], row["entry"], number["epsilon"]) in cells for row in beside] == [True], number
    assert len(config["tables"][f"tramer2021-table-4-{study}"]["models"]) >= 3
    assert all("published" in row for row in config["tables"][f"tramer2021-table-4-{study}"]["models"])
    assert config["tables"][f"tramer2021-claims-{study}"]["paper"] == "tramer2021"


BEST = {"linear": "dp-sgd", "ScatterNet+CNN": "scatter-cnn", "CNN": "cnn"}


@pytest.mark.parametrize(("study", "dataset"), PRINTED.items())
def test_the_presets_of_tramer2021_are_those_printed(study, dataset):
    """Table 13 at epsilon = 3, Table 10 for clipping without noise; what differs does not say that it is printed."""
    config = loaded(ROOT / "studies" / f"tramer2021-{study}.yaml")
    best, clipped = printed_settings("13", dataset), printed_settings("10", dataset)
    bounds = {key: float(value) for key, value in printed_settings("12", dataset).popitem()[1].items() if "_C" in key}
    assert sorted(best) == sorted(BEST) and len(clipped) == 1
    for cell in unfold(config):
        options = cell.options(config)
        source = options.get("tuned_on", "")
        normalise = config["features"][cell.features].get("normalise", "none")
        if "normalisation" in options:
            kept = {"data_norm_C1": options["normalisation"]["mean_clip"]}
            assert kept | {"data_norm_C2": options["normalisation"]["square_clip"]} == bounds
        if "Table 13" in source:
            model = {"tanh": "CNN", "scat": "ScatterNet+CNN"}.get(options.get("network", "")[:4], "linear")
            groups, sigma = best[model]["group_norm_groups_G"], best[model]["data_norm_sigma"]
            assert normalise == ("none" if groups == "-" else {"group_norm": int(groups)}), cell
            found = options.get("normalisation", {}).get("noise_multiplier", "-")
            assert found == sigma or found == float(sigma), cell
            check_rates(options, best[model], "base_learning_rate")
            assert options["clipping_norm"] == 0.1 and options["momentum"] == 0.9
        if "Table 10" in source:
            (printed,) = clipped.values()
            check_rates(options, printed, "learning_rate")
            assert options["sanitise"] == "clip" and options["clipping_norm"] == float(printed["clipping_norm"])
            assert normalise in ("none", {"group_norm": int(printed["best_groups_G"])})
    told = {entry: config["methods"][entry]["tuned_on"] for entry in BEST.values()}
    assert all("Table 13" in source for source in told.values()), "at epsilon = 3, where nothing is overridden"


def printed_settings(table, dataset):
    """{model: {parameter: value}} of a table of tramer2021."""
    with (ROOT / "workflow/published/hyperparameters.csv").open(encoding="utf-8") as file:
        keys = {"paper": "tramer2021", "table": table, "dataset": dataset}
        rows = [row for row in csv.DictReader(file) if keys.items() <= row.items()]
    models = dict.fromkeys(row["model"] for row in rows)
    return {name: {row["parameter"]: row["value"] for row in rows if row["model"] == name} for name in models}


def check_rates(options, printed, rate):
    assert (options["batch_size"], options["epochs"]) == (int(printed["batch_size"]), int(printed["epochs"]))
    assert options["learning_rate"] == float(Fraction(printed[rate])) and options["learning_rate_batch"] == 512
    assert options["curve_points"] == options["epochs"], "accuracy after each epoch"
