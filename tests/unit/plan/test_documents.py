"""Which files tables and figures read: as their styles say, and only what the study makes."""

import pytest

from dpstudy.config.loading import load
from dpstudy.plan import documents
from dpstudy.plan.documents import KINDS, claims_table, files_of, names_of
from dpstudy.plan.targets import audits
from dpstudy.tables.results import Results

PLACE = {"features": "pixels", "entry": "ls"}
LINE = {"dataset": "digits", "features": "pixels", "entry": "sgd", "epsilon": "1"}
SEARCH = {"label": "SGD", "dataset": "digits", "epsilon": "1", "cells": [{"features": "pixels", "entry": "tuned"}]}
SGD = {"method": "first_order", "clipping_norm": 1.0, "steps": 2}
BY_SIZE = {"style": "size", "datasets": ["digits"], "lines": [PLACE | {"epsilon": "1"}]}
CONFIG = {
    "study": "test",
    "datasets": {
        "digits": {"reader": "digits", "delta": "1e-4", "shards": 2, "splits": {"test": 0.2, "validation": 0.1}}
    },
    "public": {"glyphs": {"reader": "glyphs", "count": 100}, "other": {"reader": "glyphs", "count": 50}},
    "features": {"pixels": {"extractor": "pixels"}},
    "methods": {
        "ls": {"method": "least_squares"},
        "sgd": SGD | {"learning_rate": 1.0},
        "tuned": SGD | {"tuning": {"space": {"learning_rate": {"choices": [1, 2]}}}},
    },
    "epsilons": ["1", "inf"],
    "seeds": [0],
    "audit": {"entries": ["ls"]},
    "tables": {
        "main": {"rows": [PLACE]},
        "searches": {"style": "search", "searches": [SEARCH]},
        "splits": {"style": "splits", "counterparts": {"glyphs": {"dataset": "ImageNet"}}},
        "claims": {
            "style": "claims",
            "paper": "tramer2021",
            "roles": {"digits": {"linear": PLACE, "cnn": {"features": "pixels", "entry": "sgd"}}},
        },
    },
    "figures": {
        "curves": {"style": "curve", "panels": [{"lines": [LINE, LINE]}]},
        "near": {"style": "neighbours", "dataset": "digits", "features": "pixels"},
        "sizes": BY_SIZE,
    },
}
LS, SGDS = ([f"digits/pixels/{entry}/eps={epsilon}" for epsilon in ("1", "inf")] for entry in ("ls", "sgd"))
DIGITS = [["digits", split] for split in ("train", "validation", "test")]


@pytest.fixture(scope="module")
def study():
    return load(CONFIG)


def names(found):
    """Kind -> names, of the kinds that are there."""
    assert tuple(found) == KINDS
    return {kind: whose for kind, whose in found.items() if whose}


def files(study, found):
    """All files of documents."""
    return [path for paths in files_of(study, found).values() for path in paths]


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("tables", "main", {"ledgers": LS, "metrics": LS, "audits": LS[:1], "splits": DIGITS}),
        ("tables", "searches", {"trials": ["digits/pixels/tuned/eps=1"]}),
        (
            "tables",
            "splits",
            {"splits": [*DIGITS, ["glyphs", "train"]]},
        ),
        ("tables", "claims", {"ledgers": LS + SGDS, "metrics": LS + SGDS, "curves": SGDS, "audits": LS[:1]}),
        ("figures", "curves", {"metrics": SGDS[:1], "curves": SGDS[:1]}),
        ("figures", "near", {"features": ["digits/pixels"]}),
        ("figures", "sizes", {"ledgers": LS[:1], "metrics": LS[:1]}),
    ],
)
def test_a_table_or_figure_reads_what_its_style_says_and_the_study_makes(study, kind, name, expected):
    assert names(names_of(study, kind, [name])) == expected


def test_several_read_what_each_reads_once(study):
    found = names_of(study, "tables", ["main", "claims"])
    assert names(found)["ledgers"] == LS + SGDS and len(files(study, found)) == 4 + 4 + 2 + 1 + 3


def test_files_are_manifests_of_every_split_and_shards_of_features(study):
    assert files(study, names_of(study, "figures", ["near"])) == [
        f"results/features/digits/pixels/train/{name}"
        for name in ("manifest.json", "part-00000.parquet", "part-00001.parquet")
    ]
    manifests = ["digits/train", "digits/validation", "digits/test", "glyphs/train"]
    assert files(study, names_of(study, "tables", ["splits"])) == [
        f"results/data/{place}/manifest.json" for place in manifests
    ]
    assert files(study, names_of(study, "tables", ["searches"])) == [
        "results/tuning/digits/pixels/tuned/eps=1/trials.parquet"
    ]


def test_claims_are_attacked_always_and_other_entries_at_a_finite_epsilon(study):
    assert list(audits(study)) == LS[:1]
    smoothing = {"method": "instance_smoothing", "projected_dim": 2, "epochs": 1, "attack_runs": 100}
    claimed = load(CONFIG | {"methods": CONFIG["methods"] | {"claimed": smoothing}})
    assert list(audits(claimed)) == LS[:1] + [f"digits/pixels/claimed/eps={epsilon}" for epsilon in ("1", "inf")]


def test_the_table_of_a_papers_claims_is_found(study):
    assert claims_table(study, "tramer2021") == "claims" and claims_table(study, "de2022") == ""


def test_a_tables_code_is_that_of_its_style_alone(study):
    """An edit of another style, or of a metric that the study does not have, rebuilds none of it."""
    main, searches = (documents.table_code(study, table) for table in ("main", "searches"))
    assert any(path.endswith("styles/tables/plain.py") for path in main)
    assert not any(path.endswith(("styles/tables/search.py", "metrics/auc.py")) for path in main)
    assert any(path.endswith("styles/tables/search.py") for path in searches)
    drawn = documents.figure_code(study, "sizes")
    assert any(path.endswith("styles/figures/size.py") for path in drawn)
    assert not any("styles/tables/" in path and not path.endswith("__init__.py") for path in drawn)
    assert {path for path in main + searches if "/styles/" in path} <= {*documents.report_code(study)}


def test_the_report_shows_every_ledger_and_audit(study):
    found = documents.names_of_report(study)
    assert found["ledgers"] == found["metrics"] and len(found["ledgers"]) == 6 and found["audits"] == LS[:1]
    assert documents.files_of_report(study)["ledgers"][0] == f"results/cells/{LS[0]}/ledger.json"


def test_captions_of_figures_tell_of_the_cells_that_they_draw(study):
    drawn = documents.cells_of_figures(study)
    assert drawn == {"curves": SGDS[:1], "near": [], "sizes": LS[:1]}
    cells = [LS[0], SGDS[0]]
    assert names(documents.names_of_paper(study)) == {"ledgers": cells, "metrics": cells, "splits": DIGITS}
    assert documents.files_of_paper(study)["ledgers"][0] == f"results/cells/{LS[0]}/ledger.json"
    bare = study | {"tables": {}}
    assert documents.names_of_report(bare)["splits"] == DIGITS


def test_claims_without_a_table_read_nothing(study):
    assert (
        names(documents.names_of_claims(study, "de2022")) == {} and documents.summary_of_claims(study, "de2022") == []
    )
    assert documents.spec_of_claims(study, "de2022") is None and documents.axes_of_claims(study, "de2022") == {}
    assert not any("/metrics/top1.py" in path for path in documents.claims_code(study, "de2022"))
    assert any("/metrics/top1.py" in path for path in documents.claims_code(study, "tramer2021"))
    assert documents.names_of_claims(study, "tramer2021") == documents.names_of_table(study, "claims")
    assert documents.summary_of_claims(study, "tramer2021") == ["results/summary.parquet"]


def test_names_and_files_are_put_together_again(study, tmp_path, monkeypatch):
    monkeypatch.setattr("dpstudy.tables.results.read_summary", lambda path: [])
    for kind, name in (("tables", "main"), ("tables", "splits"), ("figures", "near")):
        wanted = names_of(study, kind, [name])
        results = Results.open({}, "summary", wanted, files_of(study, wanted))
        if name == "main":
            assert results.ledgers == {cell: f"results/cells/{cell}/ledger.json" for cell in LS}
        elif name == "splits":
            assert results.splits["digits"]["validation"] == "results/data/digits/validation/manifest.json"
            assert list(results.splits) == ["digits", "glyphs"]
        else:
            assert results.features == {"digits/pixels": "results/features/digits/pixels/train/manifest.json"}
    with pytest.raises(ValueError, match="zip"):
        Results.open({}, "summary", {"ledgers": LS}, {"ledgers": ["one"]})
