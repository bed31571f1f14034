"""Cells: what a study unfolds into, and which hyper-parameters each gets."""

import pytest

from dpstudy.config.cells import Cell, beyond_target, unfold
from dpstudy.config.loading import load
from dpstudy.config.public_points import reads_public
from dpstudy.core.errors import StudyError
from dpstudy.schema.methods import hyperparameters

RAW = {
    "study": "test",
    "datasets": {
        "b-set": {"reader": "digits", "delta": "1e-4"},
        "a-set": {"reader": "digits", "delta": "1e-4"},
    },
    "features": {"pixels": {"extractor": "pixels"}, "raw": {"extractor": "images"}},
    "methods": {
        "sgd": {"method": "first_order", "learning_rate": 1.0, "clipping_norm": 1.0, "steps": 10},
        "clip-only": {"method": "least_squares", "sanitise": "clip"},
        "ls": {"method": "least_squares"},
    },
    "epsilons": ["2", "1", "inf"],
    "seeds": [0],
}


def study(**changes):
    return load(RAW | changes)


def test_cells_unfold_in_the_order_of_the_config_and_only_where_they_fit():
    paths = [cell.path for cell in unfold(study())]
    expected = [
        f"{dataset}/pixels/{entry}/eps={epsilon}"
        for dataset in ("b-set", "a-set")
        for entry in ("sgd", "clip-only", "ls")
        for epsilon in ("2", "1", "inf")
        if entry != "clip-only" or epsilon == "inf"
    ]
    assert paths == expected  # none on raw images, which no method of the study reads


def test_blocks_of_cells_restrict_and_overlap_without_repetition():
    config = study(cells=[{"datasets": ["a-set"], "entries": ["ls"]}, {"entries": ["ls"], "epsilons": ["1"]}])
    assert [cell.path for cell in unfold(config)] == [
        "a-set/pixels/ls/eps=2",
        "a-set/pixels/ls/eps=1",
        "a-set/pixels/ls/eps=inf",
        "b-set/pixels/ls/eps=1",
    ]


def test_later_overrides_win_and_leave_other_cells_alone():
    config = study(
        overrides=[
            {"match": {"entry": "sgd"}, "set": {"steps": 20, "momentum": 0.5}},
            {"match": {"entry": "sgd", "epsilon": ["1", "2"]}, "set": {"steps": 30}},
            {"match": {"dataset": "a-set", "epsilon": "1"}, "set": {"clipping_norm": 0.1}},
        ]
    )

    def options(dataset, entry, epsilon):
        found = Cell(dataset, "pixels", entry, epsilon).options(config)
        return found.get("steps"), found.get("momentum"), found["clipping_norm"]

    assert options("b-set", "sgd", "inf") == (20, 0.5, 1.0)
    assert options("b-set", "sgd", "1") == (30, 0.5, 1.0)
    assert options("a-set", "sgd", "1") == (30, 0.5, 0.1)
    assert options("a-set", "ls", "1") == (None, None, 0.1)
    assert options("b-set", "ls", "1") == (None, None, 1.0)
    assert config["methods"]["sgd"]["steps"] == 10


def test_options_are_a_copy():
    config = study()
    cell = unfold(config)[0]
    cell.options(config)["steps"] = 99
    assert cell.options(config)["steps"] == 10


def test_an_infinite_epsilon_neither_clips_nor_noises_unless_clipping_is_asked_for():
    config = study()
    assert Cell("a-set", "pixels", "ls", "inf").options(config)["sanitise"] == "none"
    assert Cell("a-set", "pixels", "ls", "1").options(config)["sanitise"] == "full"
    assert Cell("a-set", "pixels", "clip-only", "inf").options(config)["sanitise"] == "clip"


def test_an_entry_has_its_own_accounting_before_the_study_s():
    methods = RAW["methods"] | {"old": {"method": "least_squares", "accounting": "mehta2023"}}
    config = study(methods=methods, accounting="de2022")
    assert Cell("a-set", "pixels", "old", "1").options(config)["accounting"] == "mehta2023"
    assert Cell("a-set", "pixels", "ls", "1").options(config)["accounting"] == "de2022"


def test_only_cells_that_read_public_points_need_a_fit():
    public = {"glyphs": {"reader": "glyphs", "count": 50}}
    fits = {"glyphs": {"public": "glyphs", "extractor": "pixels", "dim": 8}}
    features = {"plain": {"extractor": "pixels"}, "projected": {"extractor": "pixels", "fit": "glyphs"}}
    reading = {"method": "kernel_mean", "projection": "none", "smoothing": "public"}
    sources = {"public": public, "fits": fits, "features": features}
    config = study(**sources, methods={"means": {"method": "kernel_mean"}})
    assert not any(reads_public(cell.options(config)) for cell in unfold(config))
    for entry in (reading, {"method": "kernel_mean", "extra_bandwidth": 1.0}):
        with pytest.raises(StudyError, match="the feature set 'plain' has not; give features.plain a fit"):
            study(**sources, methods={"means": entry})
        apart = [{"features": ["projected"], "entries": ["means"]}]
        config = study(**sources, methods={"means": entry}, cells=apart)
        assert all(reads_public(cell.options(config)) for cell in unfold(config))


def test_entries_that_certify_more_than_their_target_are_known():
    methods = {
        "shuffled": {"method": "first_order", "sampling": "shuffle"},
        "sampled": {"method": "first_order"},
        "changed": {"method": "first_order"},
        "iterated": {"method": "iterated_sgd"},
        "hidden": {"method": "iterated_sgd", "order": "secret"},
        "least": {"method": "least_squares"},
        "searched": {"method": "first_order", "tuning": {"space": {"sampling": {"choices": ["poisson", "shuffle"]}}}},
    }
    overrides = [{"match": {"entry": "changed", "epsilon": "3"}, "set": {"sampling": "shuffle"}}]
    assert beyond_target({"methods": methods, "overrides": overrides}) == [
        "shuffled",
        "changed",
        "iterated",
        "searched",
    ]


def test_what_an_entry_says_of_its_ledgers_is_no_hyperparameter():
    raw = study(overrides=[{"match": {"epsilon": "1"}, "set": {"not_accounted": ["A sentence."]}}])
    config = load(raw)
    said = {cell.epsilon: cell.options(config).get("not_accounted") for cell in unfold(config)}
    assert said == {"2": None, "1": ["A sentence."], "inf": None}
    assert all("not_accounted" not in hyperparameters(cell.options(config)) for cell in unfold(config))
