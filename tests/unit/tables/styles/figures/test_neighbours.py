"""Distances within a class: against a loop over all pairs."""

import csv
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dpstudy
from dpstudy.core.errors import StudyError
from dpstudy.features import shards
from dpstudy.report.page import Making, build_report
from dpstudy.tables.build import build_figure
from dpstudy.tables.results import Results
from dpstudy.tables.styles.figures.neighbours import BINS, spacings
from tests.unit.tables.conftest import Inputs

SCRIPT = Path(dpstudy.__file__).parents[1] / "scripts" / "draw_figure.py"
SPEC = {"style": "neighbours", "dataset": "toy", "features": "net", "title": "Spacing"}
CLASSES = ("near", "far", "alone")


def write(folder, labels, spread=(0.5, 3.0, 1.0), dtype=np.float32, classes=CLASSES):
    """Features of a split in two shards; returns (n, d) of them."""
    rng = np.random.default_rng(0)
    first = labels.argmax(1) if labels.ndim == 2 else labels
    features = rng.standard_normal((len(labels), 6)) * np.resize(spread, len(classes))[first][:, None]
    features = features.astype(dtype)
    paths = [folder / "part-00000.parquet", folder / "part-00001.parquet"]
    for path, part in zip(paths, np.array_split(np.arange(len(labels)), 2), strict=True):
        ids = np.array([f"r{i}" for i in part])
        table = shards.FeatureTable(ids, features[part], labels[part], shape=(6,), classes=classes)
        shards.write_shard(path, table, private=True)
    shards.write_manifest(
        folder / "manifest.json",
        dataset="toy",
        features="net",
        split="train",
        shard_paths=paths,
        classes=list(classes),
        private=True,
    )
    return features.astype(np.float64)


def by_hand(points, neighbours):
    """The mean distance of each point to its nearest others, pair by pair."""
    found = []
    for i, point in enumerate(points):
        others = sorted(float(np.linalg.norm(point - other)) for j, other in enumerate(points) if j != i)
        found.append(np.mean(others[:neighbours]))
    return np.array(found)


LABELS = np.array([0] * 30 + [1] * 20 + [2], np.int32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_each_record_is_measured_within_its_own_class(tmp_path, dtype):
    features = write(tmp_path, LABELS, dtype=dtype)
    near, far, alone = spacings("figure f", tmp_path, None, 5)
    assert near.distances == pytest.approx(by_hand(features[:30], 5), rel=1e-4)
    assert far.distances == pytest.approx(by_hand(features[30:50], 5), rel=1e-4)
    assert (near.name, near.n, alone.n, alone.mean, len(alone.distances)) == ("near", 30, 1, None, 0)
    assert near.mean == pytest.approx(by_hand(features[:30], 5).mean(), rel=1e-4) and far.mean > 3 * near.mean


def test_a_record_with_several_labels_belongs_to_each_of_its_classes(tmp_path):
    labels = np.zeros((40, 3), np.int8)
    labels[:25, 0] = labels[15:38, 1] = 1  # ten of both, two of none
    features = write(tmp_path, labels)
    near, far, none = spacings("figure f", tmp_path, None, 1)
    assert near.distances == pytest.approx(by_hand(features[:25], 1), rel=1e-4)
    assert far.distances == pytest.approx(by_hand(features[15:38], 1), rel=1e-4)
    assert (near.n, far.n, none.n) == (25, 23, 0)


def build(folder, out, name="f", **changes):
    paths = [out / f"{name}.{kind}" for kind in ("pdf", "png", "csv", "svg")]
    results = Results({}, [], features={"toy/net": folder / "manifest.json"})
    build_figure("f", SPEC | changes, results, *paths)
    with open(paths[2], newline="") as file:
        return [path.read_bytes() for path in paths], list(csv.DictReader(file))


def test_the_numbers_have_a_line_a_class_and_every_record_in_a_bin(tmp_path):
    features = write(tmp_path, LABELS)
    _, rows = build(tmp_path, tmp_path, neighbours=3)
    assert [(row["class"], row["n"], row["neighbours"]) for row in rows] == [
        ("near", "30", "3"),
        ("far", "20", "3"),
        ("alone", "1", "3"),
    ]
    distances = by_hand(features[30:50], 3)
    assert float(rows[1]["mean"]) == pytest.approx(distances.mean(), rel=1e-4)
    assert float(rows[1]["std"]) == pytest.approx(distances.std(ddof=1), rel=1e-3)
    counts = [[int(row[f"bin_{i}"]) for i in range(1, BINS + 1)] for row in rows]
    assert [sum(each) for each in counts] == [30, 20, 0] and rows[2]["mean"] == ""
    start, width = float(rows[1]["bins_from"]), float(rows[1]["bin_width"])
    centres = start + width * (np.arange(BINS) + 0.5)
    assert np.average(centres, weights=counts[1]) == pytest.approx(distances.mean(), abs=width)


def test_only_the_named_classes_are_drawn_in_their_order(tmp_path):
    write(tmp_path, LABELS)
    assert [row["class"] for row in build(tmp_path, tmp_path, classes=["far", "near"])[1]] == ["far", "near"]
    assert build(tmp_path, tmp_path, "a")[0] == build(tmp_path, tmp_path, "b")[0]


def test_what_cannot_be_drawn_is_named(tmp_path):
    write(tmp_path / "few", LABELS)
    with pytest.raises(StudyError, match="figure f.classes: the data set has no class 'far out'; there are near, far"):
        build(tmp_path / "few", tmp_path, classes=["far out"])
    with pytest.raises(StudyError, match="figure f: no class has two training records"):
        build(tmp_path / "few", tmp_path, classes=["alone"])
    many = tuple(f"c{i}" for i in range(33))
    write(tmp_path / "many", np.arange(66, dtype=np.int32) % 33, classes=many)
    with pytest.raises(StudyError, match="figure f: 33 classes cannot be told apart; name at most 32 in 'classes'"):
        build(tmp_path / "many", tmp_path)


def test_the_script_reads_beside_the_manifest_and_the_page_warns(tmp_path, study, monkeypatch):
    folder = tmp_path / "features"
    write(folder, LABELS)
    out = {kind: tmp_path / f"f.{kind}" for kind in ("pdf", "png", "csv", "svg")}
    job = SimpleNamespace(
        log=[str(tmp_path / "logs" / "f.log")],
        wildcards=SimpleNamespace(figure="f"),
        input=Inputs(summary=study.summary, features=[folder / "manifest.json"]),
        output=SimpleNamespace(**out),
        params=SimpleNamespace(spec=SPEC, axes={}, documents={"features": ["toy/net"]}),
    )
    monkeypatch.syspath_prepend(SCRIPT.parent)
    runpy.run_path(str(SCRIPT), init_globals={"snakemake": job}, run_name="__main__")
    page = tmp_path / "page.html"
    figures, paths = {"f": SPEC}, {"f": out["png"]}
    build_report("s", study.results, {}, figures, paths, page, making=Making("", "", {}))
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert "Spacing: distances from training records of toy to the nearest of their class, on the features net" in text
    assert "private records without noise: no guarantee covers this figure, and it is not for publication." in text
