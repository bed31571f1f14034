"""Black-box attacks as jobs of a study: which cells get one, what it writes, and where it is printed."""

import csv
import io
import json

from tests.workflow.conftest import TINY, make_folder

NET = {"method": "network_dpsgd", "network": "scatter-28", "batch_size": "full", "steps": 2}
ATTACKED = {
    "study": "attacked",
    "datasets": TINY["datasets"],
    "features": {"images": {"extractor": "images", "scaling": "unit"}},
    "methods": {"net": NET | {"learning_rate": 0.1, "clipping_norm": 1.0, "normalised": True}},
    "epsilons": ["2", "inf"],
    "seeds": [0],
    "black_box": {
        "entries": ["net"],
        "records": 30,
        "models": 10,
        "pilot": 2,
        "space": {"learning_rate": [0.1, 1.0], "canaries": ["blank", "7-as-8"]},
    },
    "tables": {
        "attacks": {"style": "membership", "rows": [{"features": "images", "entry": "net"}]},
        "tried": {"style": "pilot", "rows": [{"features": "images", "entry": "net"}]},
        "sizes": {"style": "splits"},
        "claims": {
            "style": "claims",
            "paper": "de2022",
            "sections": ["A.2, Table 9"],
            "counterparts": {"digits": {"dataset": "MNIST"}},
            "roles": {"digits": {"audit": {"features": "images", "entry": "net"}}},
        },
    },
}
FOUND = "results/audit/digits/images/net/eps=2/black-box.json"


def test_named_entries_are_attacked_and_a_table_prints_it(tmp_path):
    study = make_folder(tmp_path / "study")
    study.write_config(ATTACKED)
    assert [output for rule, output in study.planned() if rule == "audit_black_box"] == [FOUND]
    done = study.snakemake(FOUND, *(f"results/tables/{name}.csv" for name in ATTACKED["tables"]))
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((study.path / FOUND).read_text())
    assert found["records"] == 30 and found["delta"] == 1 / 30 and len(found["tried"]) == 4
    assert found["verdict"].startswith("consistent: epsilon is at least ")
    (row,) = csv.DictReader(io.StringIO(study.read("tables/attacks.csv").decode()))
    assert row["epsilon"] == "2" and float(row["auc"]) == found["auc"]
    assert len(study.read("tables/tried.csv").splitlines()) == 1 + 4
    (sizes,) = csv.DictReader(io.StringIO(study.read("tables/sizes.csv").decode()))
    assert int(sizes["train"]) + int(sizes["test"]) == 1797 and sizes["classes"] == "10"
    (claim,) = csv.DictReader(io.StringIO(study.read("tables/claims.csv").decode()))
    assert claim["verdict"] == "holds" and claim["here"].startswith("1 of 1 attacked cells are consistent")
    study.write_config(ATTACKED | {"seeds": [0, 1]})
    assert "audit_black_box" not in {rule for rule, _ in study.planned()}  # the cell's own seeds are not the attack's


def test_own_data_are_refused_before_anything_runs(tmp_path):
    study = make_folder(tmp_path / "study")
    own = {"reader": "image_folder", "location": "own", "splits": {"test": 0.2}, "delta": "1e-9"}
    study.write_config(ATTACKED | {"datasets": {"own": own}, "tables": {}})
    done = study.snakemake("--dry-run")
    assert done.returncode != 0
    assert "what it writes depends on the records of data set 'own'" in done.stdout + done.stderr
