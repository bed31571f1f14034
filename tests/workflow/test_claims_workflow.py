"""Tables of claims and of parameters in the real Snakefile: curves and searches reach them as declared inputs."""

import csv
import io

from tests.workflow.conftest import TINY

SGD = {"features": "pixels", "entry": "sgd"}
TABLES = {
    "claims": {
        "style": "claims",
        "paper": "tramer2021",
        "sections": ["Abstract; 3.2; Figure 1", "1; 3.2", "Figure 1"],
        "counterparts": {"digits": {"dataset": "CIFAR-10"}},
        "roles": {"digits": {"linear": SGD}},
    },
    "sizes": {"style": "parameters", "dataset": "digits", "models": [SGD, {"features": "cnn", "entry": "ls"}]},
}


def test_claims_read_curves_and_sizes_read_metrics(study):
    study.write_config(TINY | {"tables": TABLES})
    done = study.snakemake("results/tables/claims.csv", "results/tables/sizes.csv")
    assert done.returncode == 0, done.stdout + done.stderr

    def rows(name):
        return list(csv.DictReader(io.StringIO(study.read(f"tables/{name}.csv").decode())))

    claims = rows("claims")
    assert [row["section"] for row in claims] == ["Abstract; 3.2; Figure 1", "1; 3.2", "1; 3.2", "Figure 1"]
    budget = claims[1]
    assert "66.2 % is" in budget["here"]  # what a training curve alone can tell
    assert budget["verdict"] == "cannot be decided here" and "fewer records than the paper's" in budget["here"]
    assert [row["parameters"] for row in rows("sizes")] == [str(10 * 65), str(10 * 17)]
    assert study.planned("results/tables/claims.csv") == []
    curve = study.path / "results/cells/digits/pixels/sgd/eps=1/curve.parquet"
    curve.write_bytes(study.read("cells/digits/pixels/sgd/eps=inf/curve.parquet"))
    assert ("build_table", "results/tables/claims.tex") in study.planned("results/tables/claims.csv")
    assert ("build_table", "results/tables/sizes.tex") not in study.planned("results/tables/sizes.csv")


SMOOTHING = {
    "method": "instance_smoothing",
    "projected_dim": 4,
    "epochs": 2,
    "curve_points": 2,
    "references": 200,
    "attack_runs": 200,
}
CLAIMED = {
    "style": "claims",
    "paper": "anon_smoothing",
    "sections": ["3.1, Theorem 1"],
    "counterparts": {"digits": {"dataset": "CIFAR-10"}},
    "roles": {"digits": {"instance-smoothing": {"features": "pixels", "entry": "smoothing"}, "dp-sgd": SGD}},
}


def test_claims_read_the_audits_of_their_roles(study):
    study.write_config(TINY | {"methods": TINY["methods"] | {"smoothing": SMOOTHING}, "tables": {"claimed": CLAIMED}})
    done = study.snakemake("results/tables/claimed.csv")
    assert done.returncode == 0, done.stdout + done.stderr
    (theorem,) = csv.DictReader(io.StringIO(study.read("tables/claimed.csv").decode()))
    assert (theorem["verdict"], theorem["decided_by"]) == ("does not hold", "computation")
    assert "removing one allows. CIFAR-10, pixels: ε ≥ " in theorem["here"]
    assert study.planned("results/tables/claimed.csv") == []
    audits = study.path / "results/audit/digits"
    (audits / "cnn/smoothing/eps=1/audit.json").write_text("{}")  # of no role
    assert study.planned("results/tables/claimed.csv") == []
    (audits / "pixels/smoothing/eps=1/audit.json").write_bytes(
        (audits / "pixels/smoothing/eps=inf/audit.json").read_bytes()
    )
    assert ("build_table", "results/tables/claimed.tex") in study.planned("results/tables/claimed.csv")
