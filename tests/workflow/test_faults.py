"""A user's mistake, damaged data or a broken privacy claim: one sentence, and once it is mended the run goes on."""

import os
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpstudy.core.files import read_json, write_json
from tests.workflow.conftest import TINY, make_folder
from tests.workflow.faults import fails, make_study, with_value, works

ROWS, CLASSES = 60, 3
SGD = {"method": "first_order", "learning_rate": 1.0, "clipping_norm": 1.0, "steps": 3}
OWN = {
    "study": "own",
    "datasets": {"own": {"reader": "labels", "location": "own", "classes": CLASSES, "delta": "1e-3"}},
    "features": {"brought": {"extractor": "precomputed", "location": "own"}},
    "methods": {"ls": {"method": "least_squares"}, "sgd": SGD},
    "epsilons": ["1"],
    "seeds": [0],
}
OWN_FEATURES = "results/features/own/brought/train/part-00000.parquet"
OWN_CELL = "results/cells/own/brought/{}/eps=1/metrics.json"


def write_own(folder: Path, rows: int = ROWS) -> None:
    """Labels and features that a user brings."""
    generator = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for pool in ("train", "test"):
        labels = np.arange(rows) % CLASSES
        np.save(folder / f"{pool}_labels.npy", labels)
        features = generator.normal(size=(rows, 4)) + np.eye(CLASSES, 4)[labels] * 5
        np.save(folder / f"{pool}.npy", features.astype(np.float32))


@pytest.fixture
def own(empty):
    """A study of features that the user brings."""
    write_own(empty.path / "data" / "own")
    empty.write_config(OWN)
    return empty


# ---- data


def test_features_that_are_replaced_are_read_again_and_nothing_else_is(own):
    data, folder = own.path / "data" / "own", own.path / "data" / "brought"
    folder.mkdir()
    for pool in ("train", "test"):
        (data / f"{pool}.npy").rename(folder / f"{pool}.npy")
    own.write_config(OWN | {"features": {"brought": {"extractor": "precomputed", "location": "brought"}}})
    done = own.snakemake(OWN_FEATURES)
    assert done.returncode == 0, done.stdout + done.stderr
    features = np.load(folder / "train.npy")
    np.save(folder / "test.npy", features + 1)
    assert "Nothing to be done" in own.snakemake(OWN_FEATURES, "-n").stdout
    np.save(folder / "train.npy", features + 1)
    planned = own.snakemake(OWN_FEATURES, "-n").stdout
    assert "rule extract_shard:" in planned and "rule prepare_shard:" not in planned


@pytest.mark.parametrize(
    ("kind", "damage"), [("images", "decay"), ("images", "edit"), ("features", "cut"), ("features", "gone")]
)
def test_a_shard_that_is_no_longer_what_its_manifest_says(empty, kind, damage):
    """A disk's decay leaves the time of the file, an edit does not; what is gone is made anew."""
    folder, target = {
        "images": ("results/data/digits/train", "results/features/digits/pixels/train/part-00000.parquet"),
        "features": (
            "results/features/digits/pixels/train",
            "results/private/statistics/digits/pixels/train/clip=1.0/shared.safetensors",
        ),
    }[kind]
    works(empty, f"{folder}/manifest.json")
    shard = empty.path / folder / "part-00000.parquet"
    times, content = shard.stat(), bytearray(shard.read_bytes())
    whole = bytes(content)
    content[len(content) // 2] ^= 0xFF
    shard.write_bytes(content[: len(content) // 2] if damage == "cut" else content)
    if damage == "decay":
        os.utime(shard, ns=(times.st_atime_ns, times.st_mtime_ns))
    if damage != "gone":
        fails(empty, target, f"{folder}/part-00000.parquet", "delete it and run the study again")
    shard.unlink()
    works(empty, target)
    assert shard.read_bytes() == whole


def idx(values: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes()


def test_a_truncated_idx_file(empty):
    folder = empty.path / "data" / "idx"
    folder.mkdir(parents=True)
    images = np.random.default_rng(0).integers(0, 256, (20, 4, 4), dtype=np.uint8)
    for pool in ("train", "t10k"):
        (folder / f"{pool}-images-idx3-ubyte").write_bytes(idx(images))
        (folder / f"{pool}-labels-idx1-ubyte").write_bytes(idx((np.arange(20) % 10).astype(np.uint8)))
    dataset = {"reader": "idx", "location": "idx", "delta": "1e-3"}
    empty.write_config(OWN | {"datasets": {"idx": dataset}, "features": {"pixels": {"extractor": "pixels"}}})
    target = "results/data/idx/train/part-00000.parquet"
    file = folder / "train-images-idx3-ubyte"
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    fails(empty, target, str(file.relative_to(empty.path)), "truncated in row 13")
    file.write_bytes(whole)
    works(empty, target)


def write_images(folder: Path, rows: int) -> None:
    """A table of images, two classes."""
    folder.mkdir(parents=True)
    lines = ["path,finding"]
    for row in range(rows):
        Image.fromarray(np.full((6, 6), row, np.uint8)).save(folder / f"{row}.png")
        lines.append(f"{row}.png,{('no', 'yes')[row % 2]}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture
def scans(empty):
    write_images(empty.path / "data" / "scans", 40)
    dataset = {
        "reader": "image_table",
        "location": "scans",
        "table": "labels.csv",
        "path_column": "path",
        "label_column": "finding",
        "classes": ["no", "yes"],
        "size": [6, 6],
        "channels": 1,
        "splits": {"test": 0.2},
        "delta": "1e-3",
    }
    empty.write_config(OWN | {"datasets": {"scans": dataset}, "features": {"pixels": {"extractor": "pixels"}}})
    return empty


def test_a_truncated_image_and_a_label_out_of_range(scans):
    target = "results/data/scans/test/part-00000.parquet"
    folder = scans.path / "data" / "scans"
    images = {path: path.read_bytes() for path in folder.glob("*.png")}
    for path, content in images.items():
        path.write_bytes(content[:-30])
    fails(scans, target, "labels.csv", "row ", ".png")
    for path, content in images.items():
        path.write_bytes(content)
    table = (folder / "labels.csv").read_text()
    (folder / "labels.csv").write_text(table.replace("7.png,yes", "7.png,perhaps", 1))
    fails(scans, target, "labels.csv", "row 7", "'perhaps'")
    (folder / "labels.csv").write_text(table)
    works(scans, target)


def test_a_label_out_of_range(own):
    path = own.path / "data" / "own" / "train_labels.npy"
    labels = np.load(path)
    np.save(path, np.where(np.arange(ROWS) == 17, CLASSES, labels))
    target = "results/data/own/train/part-00000.parquet"
    fails(own, target, "own/train_labels.npy", "row 17 has label 3", "0 to 2")
    np.save(path, labels)
    works(own, target)


def test_a_feature_that_is_not_a_number(own):
    path = own.path / "data" / "own" / "train.npy"
    features = np.load(path)
    broken = features.copy()
    broken[23, 1] = np.nan
    np.save(path, broken)
    fails(own, OWN_FEATURES, "own/train", "NaN", "row 23")
    np.save(path, features)
    works(own, OWN_FEATURES)


# ---- privacy


@pytest.mark.parametrize("content", ["", "{}", '{"dim": "wide", "classes": 3}'])
def test_a_damaged_manifest_of_features(own, content):
    """Snakemake looks into it too, for the memory that sums take."""
    target = OWN_CELL.format("ls")
    works(own, target)
    (own.path / target).unlink()
    shutil.rmtree(own.path / "results/private")
    manifest = own.path / "results/features/own/brought/train/manifest.json"
    manifest.write_text(content)
    fails(own, target, "results/features/own/brought/train/manifest.json: ")


def test_an_epsilon_out_of_reach_and_a_weak_delta(own):
    target = OWN_CELL.format("sgd")
    normalisation = {"mean_clip": 1.0, "square_clip": 1.0, "noise_multiplier": 0.01}
    own.write_config(with_value(OWN, "methods.sgd", SGD | {"normalisation": normalisation}))
    fails(
        own,
        target,
        "methods.sgd.normalisation: the noise of the normalisation alone costs",
        "raise its noise_multiplier",
    )
    noisy = {key: value for key, value in SGD.items() if key != "steps"} | {"noise_multiplier": 0.01}
    own.write_config(with_value(OWN, "methods.sgd", noisy))
    fails(own, target, "epsilon 1 at delta 0.001: not even one step is within it", "raise the noise multiplier")
    own.write_config(with_value(OWN, "datasets.own.delta", "0.02"))
    fails(own, target, "datasets.own.delta: 0.02 is not below 1/n = 1/60")
    own.write_config(OWN)
    works(own, target)


def test_a_ledger_that_does_not_stand(own):
    certificates = "results/privacy/certificates/own.json"
    works(own, certificates)
    ledger = own.path / OWN_CELL.format("ls").replace("metrics", "ledger")
    content = read_json(ledger)
    write_json(ledger, content | {"epsilon": content["epsilon"] / 2})
    cell = "own/brought/ls/eps=1"
    refused = own.snakemake(certificates)
    assert refused.returncode and f"nothing was run: results/cells/{cell}/ledger.json: is not what" in refused.stderr
    run = ledger.with_name("run.json")  # as whoever changes a ledger might change that too
    write_json(run, {key: value for key, value in read_json(run).items() if key != "files"})
    fails(
        own, certificates, f"cell {cell}: its ledger does not stand", "is stated, where", f"Delete results/cells/{cell}"
    )
    shutil.rmtree(ledger.parent)
    works(own, certificates)


# ---- the config: refused before anything runs

ELSEWHERE = {"reader": "idx", "location": "nowhere", "delta": "1e-5"}
MISTAKES = [
    ("misspelt_key", "epsilon", ["1"], "epsilon: unknown key (did you mean 'epsilons'?)"),
    ("nested_key", "datasets.digits.shard", 2, "datasets.digits.shard: unknown key (did you mean 'shards'?)"),
    ("hyperparameter", "methods.sgd.learning_rat", 1.0, "(did you mean 'learning_rate'?)"),
    ("method", "methods.ls.method", "least_square", "unknown method 'least_square' (did you mean 'least_squares'?)"),
    ("dataset", "tables.tiny.dataset", "digit", "unknown data set 'digit' (did you mean 'digits'?)"),
    ("reader", "datasets.digits.reader", "digit", "(did you mean 'digits'?)"),
    ("zero", "epsilons", ["0"], "'0' must be 'inf' or a positive decimal number"),
    ("words", "epsilons", ["abc"], "'abc' must be 'inf' or a positive decimal number"),
    ("number", "epsilons", [1], "quote it"),
    ("steps", "methods.sgd.steps", -5, "methods.sgd.steps: -5 must be at least 1"),
    ("folder", "datasets.digits", ELSEWHERE, "datasets.digits.location: data/nowhere does not exist"),
    ("unknown", "release", {"runs": 3}, "release.runs: unknown key"),
]  # fmt: skip


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("mistaken") / "study")


@pytest.mark.parametrize(("place", "value", "sentence"), [case[1:] for case in MISTAKES], ids=[c[0] for c in MISTAKES])
def test_a_mistake_in_the_config(mistaken, place, value, sentence):
    mistaken.write_config(with_value(TINY, place, value))
    result = mistaken.snakemake()
    assert result.returncode != 0
    (said,) = [line for line in result.stderr.splitlines() if line.startswith("config.yaml: ")]
    assert sentence in said
    assert "Traceback" not in result.stderr
    assert not (mistaken.path / "results").exists()


def test_a_config_that_is_not_there(mistaken):
    result = make_study(mistaken, "--configfile", "studies/nothing.yaml")
    assert result.returncode == 1
    assert result.stderr.startswith("dpstudy: studies/nothing.yaml: no such file")
    assert result.stderr.count("\n") == 1


# ---- what is said last


def test_the_sentence_is_repeated_once_at_the_end(empty):
    path = empty.path / "workflow" / "dpstudy" / "data" / "readers" / "digits.py"
    source = path.read_text()
    broken = source.replace("def open(", "def open(*_):\n    raise StudyError('digits are out')\n\n\ndef _open(", 1)
    path.write_text("from dpstudy.core.errors import StudyError\n" + broken)
    result = make_study(empty)
    assert result.returncode == 1
    said = result.stderr
    assert said.count("dpstudy: ") == 2, said  # and not by the job, nor by Snakemake
    assert "failed: prepare_shard digits/" in said and "CalledProcessError" not in said
    *_, last = said.split("failed: ")
    assert "dpstudy: data set 'digits': digits are out\n  job: prepare_shard digits/" in last
    assert "\n  log: results/logs/prepare_shard/digits/" in last
    assert "the study stopped; what is finished is kept, the same command continues once what is named" in last
    assert "\x1b" not in said
