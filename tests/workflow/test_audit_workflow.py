"""Attacks as jobs of a study: which cells, what they find, where it is printed, and what does not rerun."""

import csv
import io
import json

from tests.workflow.conftest import TINY

ATTACKED = {"entries": ["ls"], "epsilons": ["1"], "runs": 8000}
AUDIT = "results/audit/digits/{}/ls/eps=1/audit.json"
PRINTED = [
    ("build_report", "results/report/index.html"),
    ("build_table", "results/tables/tiny.tex"),
]


def test_named_entries_are_attacked_and_tables_say_what_was_found(study):
    study.write_config(TINY | {"audit": ATTACKED})
    attacks = [("audit_cell", AUDIT.format(features)) for features in ("cnn", "pixels")]
    assert study.planned() == sorted(attacks + PRINTED)  # no cell is trained anew
    done = study.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(study.read("audit/digits/pixels/ls/eps=1/audit.json"))
    bounds = {entry["bound"]: entry["epsilon_lower"] for entry in found["audits"]}
    assert 0.1 < bounds["gaussian-dp"] <= found["epsilon_certified"] <= 1 and bounds["clopper-pearson"] <= 1
    assert found["epsilon_certified"] == json.loads(study.read("cells/digits/pixels/ls/eps=1/ledger.json"))["epsilon"]
    assert found["verdict"].startswith("consistent: epsilon is at least 0.")
    rows = list(csv.DictReader(io.StringIO(study.read("tables/tiny.csv").decode())))
    attacked = {(row["entry"], row["epsilon"]) for row in rows if row["audited_epsilon"]}
    assert attacked == {("ls", "1")}
    assert b"attacked" in study.read("tables/tiny.tex") and "attacked ≥ 0." in study.read("report/index.html").decode()
    study.write_config(TINY | {"audit": ATTACKED, "seeds": [0, 1, 2]})
    assert [
        job for job in study.planned() if job[0] == "audit_cell"
    ] == []  # an attack is on a method with its settings


def test_any_cell_can_be_attacked_by_its_path(study):
    study.write_config(TINY | {"audit": {"runs": 500}})
    path = "results/audit/digits/pixels/sgd/eps=1/audit.json"
    assert study.planned(path) == [("audit_cell", path)]
    nothing = study.snakemake("results/audit/digits/pixels/sgd/eps=inf/audit.json")
    assert nothing.returncode != 0
