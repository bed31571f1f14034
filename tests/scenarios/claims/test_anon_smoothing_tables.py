"""The table of anon_smoothing's claims, from a study on disk, and its spec."""

import copy
import csv
import math

import pyarrow as pa
import pytest

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json, write_table
from dpstudy.evaluation.summary import cell_name, read_summary, write_summary
from dpstudy.tables.build import build_table
from dpstudy.tables.claims.gather import gather
from dpstudy.tables.results import Results
from dpstudy.tables.styles.tables import claims
from tests.scenarios.claims.agreeing_smoothing import audit

ENTRIES = {"smoothing": ("claimed", None), "sgd": ("proved", 0.99), "means": ("proved", 0.99), "loose": ("proved", 1.1)}
MEANS = {"smoothing": 85.0, "sgd": 78.0, "means": 80.0, "loose": 99.0}
AXES = {"datasets": ["photos", "chests"], "features": ["small", "large"], "entries": list(ENTRIES)}
AXES |= {"epsilons": ["3", "8", "inf"]}


def role(entry):
    return [{"features": features, "entry": entry} for features in AXES["features"]]


ROLES = {"instance-smoothing": role("smoothing"), "dp-sgd": [*role("sgd"), *role("loose")]}
ROLES |= {"nonprivate": role("smoothing"), "kernel-mean": role("means")}
SPEC = {
    "style": "claims",
    "paper": "anon_smoothing",
    "caption": "Claims",
    "counterparts": {"photos": {"dataset": "CIFAR-10"}, "chests": {"dataset": "CheXpert"}},
    "roles": {dataset: ROLES for dataset in AXES["datasets"]},
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Accuracies of MEANS, one more for each epsilon and four more on the larger features; areas two below."""
    folder, cells = tmp_path_factory.mktemp("claims"), []
    ledgers, metrics, curves, audits = {}, {}, {}, {}
    for dataset in AXES["datasets"]:
        for i, features in enumerate(AXES["features"]):
            for entry, (guarantee, share) in ENTRIES.items():
                for k, epsilon in enumerate(AXES["epsilons"]):
                    cell = {"dataset": dataset, "features": features, "entry": entry, "epsilon": epsilon}
                    name, mean = cell_name(**cell), MEANS[entry] + 4 * i + k
                    seeds = [_seed(s, mean + d) for s, d in enumerate((-0.1, 0.0, 0.1))]
                    content = {"method": "m", "classes": 10, "hyperparameters": {}, "seeds": seeds, "made_by": {}}
                    write_json(folder / name / "metrics.json", cell | content)
                    finite = epsilon != "inf"
                    ledger = {"n": 50_000, "guarantee": guarantee if finite else "none"}
                    certified = share * float(epsilon) if share and finite else None
                    write_json(folder / name / "ledger.json", ledger | {"epsilon": certified})
                    ledgers[name], metrics[name] = folder / name / "ledger.json", folder / name / "metrics.json"
                    if entry == "smoothing":
                        write_json(folder / name / "audit.json", audit(12.5) if finite else {"audits": []})
                        _write_curve(folder / name / "curve.parquet", mean)
                        audits[name], curves[name] = folder / name / "audit.json", folder / name / "curve.parquet"
                    cells.append(cell | {"metrics": metrics[name]})
    write_summary(cells, folder / "summary.csv", folder / "summary.parquet")
    return Results(
        AXES, read_summary(folder / "summary.parquet"), ledgers=ledgers, metrics=metrics, curves=curves, audits=audits
    )


def _write_curve(path, mean):
    """One point, one accuracy below the end, and three percent."""
    columns = {"seed": [0, 0], "step": [1, 1], "epsilon_spent": [3.0, 3.0]}
    write_table(path, pa.table(columns | {"metric": ["top1", "auc"], "value": [mean - 1, mean / 100 - 0.03]}))


def _seed(seed, mean):
    by_label = {f"label={name}": {"n": n, "auc": mean / 100 - 0.01 * n} for name, n in (("a", 10), ("b", 20))}
    return {"seed": seed, "split": "test", "top1": mean, "auc": mean / 100 - 0.02, "groups": by_label}


def test_each_backbone_is_a_data_set_and_claimed_cells_count(results):
    found = gather("t", SPEC, results)
    ours = found.ours
    assert ours.get("CIFAR-10, large", "instance-smoothing", 8.0).mean == pytest.approx(90.0)
    assert ours.get("CIFAR-10, small", "dp-sgd", 3.0).mean == pytest.approx(78.0)  # not what is certified above it
    assert ours.get("CIFAR-10, small", "nonprivate", math.inf).mean == pytest.approx(87.0)
    assert {(run.data, run.backbone) for run in ours.runs if run.dataset == "CheXpert, large"} == {
        ("CheXpert", "large")
    }
    private = [run for run in ours.of_role("instance-smoothing") if not math.isinf(run.epsilon)]
    assert len(private) == 8 and all(run.audit["audits"][0]["epsilon_lower"] == 12.5 for run in private)
    assert not any(run.audit for run in ours.of_role("dp-sgd"))
    assert found.metric == "top1" and private[0].curve[0].accuracy.mean == pytest.approx(84.0)


def test_areas_stand_in_percent(results):
    found = gather("t", SPEC | {"metric": "auc"}, results)
    value = found.ours.get("CheXpert, small", "instance-smoothing", 3.0)
    assert value.mean == pytest.approx(83.0) and value.error == pytest.approx(0.1 / math.sqrt(3))
    run = found.ours.of_role("instance-smoothing")[0]
    assert found.metric == "auc" and run.curve[0].accuracy.mean == pytest.approx(82.0)


def test_the_claims_table(results, tmp_path):
    build_table("t", SPEC | {"metric": "auc"}, results, tmp_path / "t.tex", tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 20
    found = {(row["section"], row["claim"].split()[0]): row for row in rows}
    for key in (("4.3, Table 1", "The"), ("4.3, Table 1", "Accuracy"), ("4.4; Figure 3", "Figure")):
        assert (found[key]["verdict"], found[key]["decided_by"]) == ("holds", "these cells")
    assert found["4.3, Table 1", "Larger"]["verdict"] == "cannot be decided here"  # both backbones lose as much
    assert "refute the claimed ε in 4 of 8 cells" in found["3.1, Theorem 1", "rho-zCDP"]["here"]
    assert "gap between labels no more than 2 above" in found["4.4", "Group"]["here"]
    assert r"\begin{longtable}" in (tmp_path / "t.tex").read_text()
    sheet = claims.STYLE.table("t", SPEC | {"sections": ["4.3, Table 1"]}, results).sheets[0]
    assert sheet.notes[0].startswith("Of 4 claims") and "is not that of equal privacy" in sheet.notes[-1]


def test_the_table_compiles(results, tmp_path, compiles):
    build_table("claims", SPEC, results, tmp_path / "claims.tex", tmp_path / "claims.csv")
    compiles(tmp_path, "claims", packages="booktabs,longtable")


DIGITS = {"reader": "digits", "delta": "1e-4", "splits": {"test": 0.2, "validation": 0.1}}
CONFIG = {
    "study": "claims",
    "datasets": {name: DIGITS for name in AXES["datasets"]},
    "features": {name: {"extractor": "pixels"} for name in AXES["features"]},
    "methods": {entry: {"method": "least_squares"} for entry in ENTRIES},
    "epsilons": ["8"],
    "seeds": [0],
    "evaluation": {"metrics": ["top1", "auc"]},
}
OTHER = {"paper": "de2022", "roles": {"photos": {"wrn-16-4": role("sgd")}}, "metric": "auc"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sections": ["9.9"]}, "tables.t.sections: unknown section or claim of anon_smoothing '9.9'"),
        ({"roles": {"photos": {"dpsgd": role("sgd")}}}, "role of anon_smoothing 'dpsgd' (did you mean 'dp-sgd'?)"),
        ({"roles": {"photos": {"dp-sgd": role("sgdd")}}}, "tables.t.roles.photos.dp-sgd.entry: unknown"),
        ({"methods": {"DP-LS": "sgd"}}, "this key goes with the paper mehta2023, not with anon_smoothing"),
        ({"metric": "average_precision"}, "tables.t.metric: 'average_precision' is not among evaluation.metrics"),
        (OTHER, "tables.t.metric: the claims of de2022 are about top1; only those of anon_smoothing are judged by"),
    ],
)
def test_mistakes_in_the_spec_are_named(change, message):
    with pytest.raises(StudyError) as caught:
        load(CONFIG | {"tables": {"t": copy.deepcopy(SPEC) | change}})
    assert message in str(caught.value)


def test_the_spec_loads():
    loaded = load(CONFIG | {"tables": {"claims": SPEC | {"metric": "auc"}}})
    assert loaded["tables"]["claims"]["roles"]["photos"]["nonprivate"][0]["entry"] == "smoothing"
