"""Every path once: no other place of the library, rules or scripts writes one out."""

import re
import string
from pathlib import Path

import pytest

from dpstudy.plan import paths

WORKFLOW = Path(__file__).parents[3] / "workflow"
TEMPLATES = {name: value for name, value in vars(paths).items() if name.isupper() and isinstance(value, str)}


def wildcards(template: str) -> set[str]:
    return {field for _, field, _, _ in string.Formatter().parse(template) if field}


def test_the_contract_of_paths_is_kept():
    """design's list of files, which other tools rely on."""
    cell = "{dataset}/{features}/{entry}/eps={epsilon}"
    assert paths.DATA_SHARD == "results/data/{source}/{split}/part-{shard}.parquet"
    assert paths.DATA_MANIFEST == "results/data/{source}/{split}/manifest.json"
    assert paths.KEPT == "results/dedup/{public}/kept.parquet"
    assert paths.MATCHES == "results/dedup/{public}/matches.parquet"
    assert paths.DEDUP_REPORT == "results/dedup/{public}/report.json"
    assert paths.BACKBONE_MODEL == "results/backbones/{backbone}/model.safetensors"
    assert paths.BACKBONE_CARD == "results/backbones/{backbone}/card.json"
    assert paths.FIT == "results/fits/{fit}"
    assert paths.FEATURES_SHARD == "results/features/{dataset}/{features}/{split}/part-{shard}.parquet"
    assert paths.FEATURES_MANIFEST == "results/features/{dataset}/{features}/{split}/manifest.json"
    assert paths.TRIALS == f"results/tuning/{cell}/trials.parquet"
    assert paths.METRICS == f"results/cells/{cell}/metrics.json"
    assert paths.LEDGER == f"results/cells/{cell}/ledger.json"
    assert paths.MODEL == f"results/cells/{cell}/model.safetensors"
    assert paths.CURVE == f"results/cells/{cell}/curve.parquet"
    assert paths.AUDIT == f"results/audit/{cell}/audit.json"
    assert paths.TOTAL == "results/privacy/total.json"
    assert (paths.SUMMARY_CSV, paths.SUMMARY) == ("results/summary.csv", "results/summary.parquet")
    assert (paths.TABLE_TEX, paths.TABLE_CSV) == ("results/tables/{table}.tex", "results/tables/{table}.csv")
    assert [paths.FIGURE_PDF, paths.FIGURE_PNG, paths.FIGURE_CSV, paths.FIGURE_SVG] == [
        f"results/figures/{{figure}}.{kind}" for kind in ("pdf", "png", "csv", "svg")
    ]
    assert paths.REPORT == "results/report/index.html"
    assert paths.BUNDLE == f"results/release/{cell}"
    assert paths.log("rule", cell) == f"results/logs/rule/{cell}.log"
    assert paths.benchmark("rule", cell) == f"results/benchmarks/rule/{cell}.tsv"


def test_no_two_names_have_one_path():
    assert len(set(TEMPLATES.values())) == len(TEMPLATES)


@pytest.mark.parametrize("seed", ["SEED_RUN", "SEED_SCORES", "SEED_LEDGER", "SEED_MODEL", "SEED_CURVE"])
def test_a_seeds_file_is_called_as_its_cells(seed):
    own, whole = TEMPLATES[seed], TEMPLATES[seed.removeprefix("SEED_")]
    assert own.rpartition("/")[2] == whole.rpartition("/")[2]
    assert wildcards(own) == wildcards(whole) | {"seed"}


def test_rules_and_scripts_write_no_path_out():
    literal = re.compile(r"""["']results/|\bf["']\{?RESULTS""")
    files = [WORKFLOW.parent / "Snakefile", *WORKFLOW.glob("rules/*.smk"), *WORKFLOW.glob("scripts/*.py")]
    found = [
        (path.name, line.strip()) for path in files for line in path.read_text().splitlines() if literal.search(line)
    ]
    assert found == []


def test_no_script_imports_the_plan():
    """Another table's path would else make every cell stale."""
    assert [path.name for path in WORKFLOW.glob("scripts/*.py") if "dpstudy.plan" in path.read_text()] == []
