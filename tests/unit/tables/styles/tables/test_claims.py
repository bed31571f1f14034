"""The tables of claims and of ceilings, from a study on disk."""

import copy
import csv
import dataclasses
import math

import pytest

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.evaluation.summary import cell_name, read_summary, write_summary
from dpstudy.provenance.hashes import config_hash
from dpstudy.tables.build import build_table
from dpstudy.tables.claims.gather import gather
from dpstudy.tables.claims.mehta2023_printed import Place
from dpstudy.tables.claims.names import why_another
from dpstudy.tables.results import Results
from dpstudy.tables.styles.tables import claims

ENTRIES = {"dp-ls": 1, "dp-ls-wide": 1, "dp-ls-shared": 1, "dp-adam-1": 1, "dp-adam-100": 100}
LEVEL = {"dp-ls": 90.0, "dp-ls-wide": 91.0, "dp-ls-shared": 95.0, "dp-adam-1": 85.0, "dp-adam-100": 80.0}
AXES = {
    "datasets": ["fashion"],
    "features": ["pixels", "cnn"],
    "entries": list(ENTRIES),
    "epsilons": ["0.01", "1", "inf"],
}
SPEC = {
    "style": "claims",
    "paper": "mehta2023",
    "caption": "Claims & verdicts",
    "methods": {"DP-LS": ["dp-ls", "dp-ls-wide"], "DP-Adam": {"1": "dp-adam-1", 100: "dp-adam-100"}},
    "pretraining": {"none": "pixels", "some": ["cnn"]},
    "counterparts": {"fashion": {"dataset": "CIFAR-10"}},
}
CEILING = {
    "style": "ceiling",
    "paper": "mehta2023",
    "caption": "Ceilings",
    "controls": [{"features": "cnn", "entry": "dp-ls-shared", "independent": "dp-ls"}],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims")
    cells, ledgers, metrics = [], {}, {}
    for features in AXES["features"]:
        for entry, epochs in ENTRIES.items():
            for epsilon in AXES["epsilons"]:
                cell = {"dataset": "fashion", "features": features, "entry": entry, "epsilon": epsilon}
                name = cell_name(**cell)
                base = LEVEL[entry] - 5 * (features == "pixels")
                seeds = [{"seed": s, "split": "test", "top1": base + d} for s, d in enumerate((-0.1, 0.0, 0.1))]
                content = {"method": "m", "classes": 10, "seeds": seeds, "hyperparameters": {}, "made_by": {}}
                write_json(folder / name / "metrics.json", cell | content)
                write_json(folder / name / "ledger.json", _ledger(entry, epochs, epsilon))
                ledgers[name], metrics[name] = folder / name / "ledger.json", folder / name / "metrics.json"
                cells.append(cell | {"metrics": metrics[name]})
    write_summary(cells, folder / "summary.csv", folder / "summary.parquet")
    return Results(AXES, read_summary(folder / "summary.parquet"), ledgers=ledgers, metrics=metrics)


def _ledger(entry, epochs, epsilon):
    event = {"name": "targets" if "ls" in entry else "gradient", "noise_multiplier": 10 / float(epsilon)}
    event |= {"sensitivity": 1.0, "count": epochs, "sampling": "none", "sampling_rate": 1.0}
    proved = epsilon != "inf" and entry != "dp-ls-shared"
    return {
        "n": 5000,
        "guarantee": "proved" if proved else "none",
        "unit": "record",
        "adjacency": "add-remove-one",
        "delta": 1e-5,
        "accountant": "pld",
        "epsilon": float(epsilon) if proved else None,
        "events": [event] if epsilon != "inf" else [],
    }


def built(results, spec, folder, name="t"):
    build_table(name, spec, results, folder / f"{name}.tex", folder / f"{name}.csv")
    with open(folder / f"{name}.csv", newline="") as file:
        return (folder / f"{name}.tex").read_text(), list(csv.DictReader(file))


def test_evidence_from_a_study(results):
    found = gather("t", SPEC, results)
    assert found.ours.datasets == [Place("CIFAR-10", "none"), Place("CIFAR-10", "some")]
    assert found.ours.order == ("none", "some") and {run.metrics["classes"] for run in found.ours.runs} == {10}
    value = found.ours.get(Place("CIFAR-10", "some"), ("DP-LS", 1), 1.0)
    assert value.mean == pytest.approx(91.0)  # the better of the two entries
    assert value.error == pytest.approx(0.1 / math.sqrt(3))
    assert found.ours.rows == [("DP-LS", 1), ("DP-Adam", 1), ("DP-Adam", 100)]
    assert len(found.ours.runs) == 2 * 4 * 3


def test_cells_without_a_proved_epsilon_do_not_count(results, tmp_path):
    spec = SPEC | {"methods": {"DP-LS": "dp-ls-shared"}}
    assert {key[2] for key in gather("t", spec, results).ours.values} == {math.inf}
    above = dict(results.ledgers)
    name = cell_name("fashion", "cnn", "dp-ls", "1")
    write_json(tmp_path / "ledger.json", _ledger("dp-ls", 1, "1") | {"epsilon": 1.001})
    study = dataclasses.replace(results, ledgers=above | {name: tmp_path / "ledger.json"})
    grid = gather("t", SPEC | {"methods": {"DP-LS": "dp-ls"}}, study).ours
    assert grid.get(Place("CIFAR-10", "some"), ("DP-LS", 1), 1.0) is None
    assert grid.get(Place("CIFAR-10", "none"), ("DP-LS", 1), 1.0) is not None


def with_classes(results, folder, count, part=""):
    """The same study, whose cells (of a part) tell so many classes apart."""
    metrics = dict(results.metrics)
    for name, path in results.metrics.items():
        if part in name:
            metrics[name] = folder / name / "metrics.json"
            write_json(metrics[name], read_json(path) | {"classes": count})
    return dataclasses.replace(results, metrics=metrics)


WHY = "Not judged by the cells of fashion, which tell 5 classes apart: CIFAR-10 has 10"


def test_cells_of_other_classes_than_the_papers_are_no_evidence(results, tmp_path):
    found = gather("t", SPEC, with_classes(results, tmp_path, 5))
    assert not found.ours.values and not found.ours.runs and found.left_out == (WHY,)
    found = gather("t", SPEC, with_classes(results, tmp_path / "part", 5, "/pixels/"))
    assert found.ours.datasets == [Place("CIFAR-10", "some")] and found.left_out == (WHY,)
    assert gather("t", SPEC, results).left_out == ()


def test_the_claims_table_says_why_they_are_left_out(results, tmp_path):
    _, known = built(results, SPEC, tmp_path)
    _, rows = built(with_classes(results, tmp_path, 5), SPEC, tmp_path, "other")
    assert "these cells" in {row["decided_by"] for row in known}
    assert "these cells" not in {row["decided_by"] for row in rows}
    assert all((WHY in row["here"]) == (row["verdict"] == "cannot be decided here") for row in rows)
    assert not any("Not judged" in row["here"] for row in known)


def test_a_data_set_that_no_paper_has_is_compared_as_it_is():
    assert why_another("own", "own", 5) == why_another("mnist", "MNIST", 10) == ""
    assert (
        why_another("mnist", "mnist", 5) == "Not judged by the cells of mnist, which tell 5 classes apart: mnist has 10"
    )
    assert why_another("c", "CIFAR-100", 20).endswith("20 classes apart: CIFAR-100 has 100")


def test_the_claims_table(results, tmp_path):
    tex, rows = built(results, SPEC, tmp_path)
    assert len(rows) == 35 and rows[0]["section"] == "Abstract; 1; 2.4"
    adam = rows[1]
    assert (adam["verdict"], adam["decided_by"]) == ("does not hold", "these cells")
    assert "LS over best of Adam: 4 of 4 for, 0 ties, 0 against; mean difference +6.00 ± 0.08" in adam["here"]
    assert adam["here"].endswith("less than half of the least printed, +1.10")  # the lead is the same at each epsilon
    assert r"Claims \& verdicts" in tex and r"\endhead" in tex
    sheet = claims.STYLE.table("t", SPEC, results).sheets[0]
    assert len(sheet.blocks[0]) == 35 and "35 claims" in sheet.notes[0]


def test_the_ceiling_table(results, tmp_path):
    tex, rows = built(results, CEILING, tmp_path)
    printed = [row for row in rows if row["kind"] == "published"]
    assert len(printed) == 8 * 8 * 8 and sum(int(row["above"]) for row in printed) == 59
    assert "59 of 492 printed accuracies" in tex and "77.2*" in tex
    control = [row for row in rows if row["kind"] == "control"]
    assert [(row["epsilon"], row["above"], row["independent_above"]) for row in control] == [
        ("0.01", "1", "1"),
        ("1", "0", "0"),
    ]
    assert float(control[0]["accuracy"]) == pytest.approx(95) and float(control[0]["independent"]) == pytest.approx(90)
    assert float(control[0]["ceiling"]) == pytest.approx(19.98, abs=0.2)  # SNR = 0.5: the draws of test_ceiling
    assert "95.0*" in tex and "Noise shared over classes" in tex


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (SPEC | {"methods": {"DP-SGD": "dp-ls"}}, "table t: method 'DP-SGD' is not in the study"),
        (SPEC | {"methods": {"DP-LS": "ls"}}, "table t: entry 'ls' is not"),
        (SPEC | {"pretraining": {"none": "pixel"}}, "table t: features 'pixel' is not"),
        (SPEC | {"datasets": ["minst"]}, "data set 'minst' is not"),
    ],
)
def test_names_that_the_study_of_claims_does_not_have(results, tmp_path, spec, message):
    with pytest.raises(StudyError, match=message):
        built(results, spec, tmp_path)
    assert not list(tmp_path.iterdir())


def test_long_tables_compile_with_booktabs_and_longtable(results, tmp_path, compiles):
    built(results, SPEC, tmp_path, "claims")
    built(results, CEILING, tmp_path, "ceiling")
    compiles(tmp_path, "claims", "ceiling", packages="booktabs,longtable")


CONFIG = {
    "study": "claims",
    "datasets": {"fashion": {"reader": "digits", "delta": "1e-4", "splits": {"test": 0.2}}},
    "features": {"pixels": {"extractor": "pixels"}, "cnn": {"extractor": "scatternet"}},
    "methods": {entry: {"method": "least_squares"} for entry in ENTRIES},
    "epsilons": ["1"],
    "seeds": [0],
}


@pytest.mark.parametrize(
    ("spec", "change", "message"),
    [
        (SPEC, {"methods": {"DP-SGD": "dp-ls"}}, "tables.t.methods: unknown method of mehta2023 'DP-SGD'"),
        (SPEC, {"methods": {"DP-FC": {10: "dp-fc"}}}, "tables.t.methods.DP-FC.10: unknown method entry 'dp-fc'"),
        (SPEC, {"methods": None}, "tables.t: the key 'methods' is missing; the style 'claims' needs it"),
        (SPEC, {"paper": None}, "tables.t: the key 'paper' is missing; the style 'claims' needs it"),
        (SPEC, {"paper": "mehta2022"}, "tables.t.paper: 'mehta2022' is not one of 'mehta2023', 'tramer2021'"),
        (SPEC, {"pretraining": {"some": "cn"}}, "tables.t.pretraining.some: unknown feature set 'cn'"),
        (SPEC, {"counterparts": {"minst": {"dataset": "MNIST"}}}, "tables.t.counterparts: unknown data set 'minst'"),
        (SPEC, {"controls": []}, "tables.t.controls: the style 'claims' does not take this key"),
        (CEILING, {"paper": None}, "tables.t: the key 'paper' is missing; the style 'ceiling' needs it"),
        (
            CEILING,
            {"controls": [{"features": "cnn", "entry": "dp-ls-shared", "independent": "dp-lss"}]},
            "tables.t.controls[0].independent: unknown method entry 'dp-lss' (did you mean 'dp-ls'",
        ),
        (CEILING, {"controls": [{"features": "cnn", "entry": "dp-ls"}]}, "the key 'independent' is missing"),
    ],
)
def test_mistakes_in_the_spec_of_claims_are_named(spec, change, message):
    spec = {key: value for key, value in (copy.deepcopy(spec) | change).items() if value is not None}
    with pytest.raises(StudyError) as caught:
        load(CONFIG | {"tables": {"t": spec}})
    assert message in str(caught.value)


def test_the_specs_of_claims_and_ceilings_load():
    loaded = load(CONFIG | {"tables": {"claims": SPEC, "ceiling": CEILING}})
    assert loaded["tables"]["claims"]["methods"]["DP-Adam"] == {"1": "dp-adam-1", "100": "dp-adam-100"}
    assert config_hash(loaded)  # numbers among text keys could not be sorted
