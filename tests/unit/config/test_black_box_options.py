"""Which attacks a config may ask for, and what of the data set they are told."""

import numpy as np
import pytest

from dpstudy.auditing.black_box import black_box
from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.config.black_box_options import attacked, options_for
from dpstudy.config.cells import Cell
from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.data import shards
from dpstudy.data.records import Records
from dpstudy.jobs import black_box as study_black_box
from dpstudy.jobs.black_box import audit_black_box
from dpstudy.privacy.audit import certified_verdict

NET = {"method": "network_dpsgd", "network": "lenet", "learning_rate": 1.0, "clipping_norm": 1.0, "steps": 2}
BASE = {
    "study": "test",
    "datasets": {"digits": {"reader": "digits", "delta": "1e-4", "splits": {"test": 0.2}}},
    "features": {"images": {"extractor": "images", "scaling": "unit"}, "pixels": {"extractor": "pixels"}},
    "methods": {"net": NET, "other": NET, "ls": {"method": "least_squares"}},
    "cells": [{"features": ["images"], "entries": ["net", "other"]}, {"features": ["pixels"], "entries": ["ls"]}],
    "epsilons": ["1", "8", "inf"],
    "seeds": [0],
}
OWN = {"reader": "image_folder", "location": "own", "delta": "1e-9", "splits": {"test": 0.2}}
ENLARGED = BASE["datasets"]["digits"] | {"extra": {"reader": "image_folder", "location": "own"}}
PERSONS = {"reader": "nih", "location": "nih", "delta": "1e-9", "unit": "subject", "splits": {"validation": 0}}
GRID = {"method": "network_dpsgd", "network": "lenet", "clipping_norm": 1.0, "steps": 2}
TUNED = GRID | {"tuning": {"space": {"learning_rate": {"choices": [0.1, 1.0]}}}}
VALIDATED = {"reader": "digits", "delta": "1e-4", "splits": {"test": 0.2, "validation": 0.1}}


def with_(options, **more):
    return BASE | {"black_box": {"entries": ["net"]} | options} | more


def test_cells_at_a_finite_epsilon_are_attacked():
    config = load(with_({}))
    assert [cell.path for cell in attacked(config)] == [f"digits/images/net/eps={e}" for e in ("1", "8")]
    assert attacked(load(BASE)) == []
    assert options_for(config, "net") == {
        "models": 1000, "pilot": 50, "confidence": 0.999, "space": {"canaries": ["blank"]}
    }  # fmt: skip


def test_steps_may_differ_between_entries():
    steps = {"space": {"steps": {"net": [3, 4]}}, "entries": ["net", "other"]}
    config = load(with_(steps))
    assert options_for(config, "net")["space"]["steps"] == [3, 4]
    assert "steps" not in options_for(config, "other")["space"]
    config = load(with_({"space": {"steps": [5]}}))
    assert options_for(config, "net")["space"]["steps"] == [5]


@pytest.mark.parametrize(
    ("options", "more", "message"),
    [
        ({"entries": ["nets"]}, {}, "black_box.entries: unknown entry 'nets'.*did you mean 'net'"),
        ({"entries": ["ls"]}, {}, "'ls' is of the method 'least_squares', which reads no images"),
        ({"model": 5}, {}, "black_box.model: unknown key.*'models'"),
        ({"space": {"step": [1]}}, {}, "black_box.space.step: unknown key"),
        ({"space": {"canaries": ["black"]}}, {}, "canaries.*'black' must be blank, noise, or an image"),
        ({"space": {"steps": {"other": [1]}}}, {}, "black_box.space.steps: unknown entry of black_box 'other'"),
        ({"space": {"steps": {"net": [0]}}}, {}, "must be at least 1"),
        ({}, {"cells": [{"features": ["pixels"], "entries": ["net"]}]}, "needs features of the extractor 'images'"),
        ({}, {"datasets": {"digits": OWN}}, "black_box: what it writes depends on .* your own .reader 'image_folder'"),
        (
            {},
            {"datasets": {"digits": ENLARGED}},
            "black_box: what it writes depends on .* your own .reader 'image_folder'",
        ),
        ({}, {"datasets": {"digits": PERSONS}}, "needs records, not subjects"),
        ({}, {"methods": BASE["methods"] | {"net": TUNED}, "datasets": {"digits": VALIDATED}}, "'net' is tuned"),
        ({}, {"methods": BASE["methods"] | {"net": NET | {"shared_noise": True}}}, "'net' shares its noise"),
        ({}, {"methods": BASE["methods"] | {"net": NET | {"sampling": "shuffle"}}}, "'net' has sampling 'shuffle'"),
    ],
)
def test_what_cannot_be_attacked_is_refused_in_a_sentence(options, more, message):
    with pytest.raises(StudyError, match=message):
        load(with_(options, **more))


def test_the_verdict_says_whether_more_was_found_than_is_certified():
    assert certified_verdict(0.499, 1.0) == "consistent: epsilon is at least 0.49, and 1 is certified."
    assert certified_verdict(1.5, 1.0).startswith("refuted: epsilon is at least 1.50")


@pytest.fixture
def folders(tmp_path):
    """Two splits of images, the train split in two shards."""
    rng = np.random.default_rng(0)
    for split, sizes in (("train", (8, 5)), ("test", (6,))):
        folder, paths = tmp_path / split, []
        for number, rows in enumerate(sizes):
            records = Records(
                ids=np.array([f"{split}-{number}-{row}" for row in range(rows)]),
                images=rng.integers(0, 256, (rows, 28, 28, 1)).astype(np.uint8),
                labels=(np.arange(rows) % 3).astype(np.int32),
            )
            paths.append(folder / f"part-{number:05d}.parquet")
            shards.write_shard(paths[-1], records, private=True)
        facts = {"dataset": "toy", "split": split, "shard_paths": paths, "classes": ["a", "b", "c"]}
        shards.write_manifest(folder / "manifest.json", **facts, private=True)
    return CellInputs((str(tmp_path / "train"),), str(tmp_path / "test"), scaling="unit")


def request(**dataset):
    facts = {"reader": "idx", "delta": "1e-4", "unit": "record", "positives": 1} | dataset
    options = NET | {"sanitise": "full", "accounting": "certified", "tuned_on": "nothing", "shared_noise": False}
    return CellRequest(Cell("toy", "images", "net", "8"), options, facts, [0], "seeded", [], [], [], "")


OPTIONS = {"models": 10, "pilot": 2, "confidence": 0.9, "space": {"canaries": ["blank", "b-as-c"]}}


def test_d_is_the_first_records_and_delta_one_over_their_number(folders, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        study_black_box, "black_box", lambda arena, *rest: seen.append(arena) or black_box(arena, *rest)
    )
    audit_black_box(request(), folders, OPTIONS | {"records": 10}, tmp_path / "black-box.json")
    (arena,) = seen
    assert (arena.problem.n, arena.problem.budget.delta) == (10, 0.1)
    first = shards.load(tmp_path / "train").images.reshape(13, -1)[:10]
    assert np.array_equal(arena.images, first) and len(arena.labels) == 10
    shown = shards.load(tmp_path / "test").images.reshape(6, -1)
    assert np.array_equal(arena.canaries["b-as-c"][0], shown[1]) and arena.canaries["b-as-c"][1] == 2
    found = read_json(tmp_path / "black-box.json")
    assert (found["records"], found["delta"], found["epsilon"]) == (10, 0.1, 8.0)
    assert found["verdict"].startswith("consistent") and len(found["tried"]) == 2


def test_too_few_records_and_own_data_are_refused(folders, tmp_path):
    with pytest.raises(StudyError, match="black_box.records: 14, but the train split has 13"):
        audit_black_box(request(), folders, OPTIONS | {"records": 14}, tmp_path / "black-box.json")
    with pytest.raises(StudyError, match="they are your own .reader 'labels'"):
        audit_black_box(request(reader="labels"), folders, OPTIONS, tmp_path / "black-box.json")
    assert not (tmp_path / "black-box.json").exists()
