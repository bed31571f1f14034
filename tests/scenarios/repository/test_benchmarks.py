"""Benchmarks that wait for a machine: they run at toy size."""

import numpy as np
import pytest

from benchmarks import gpu, groups, leaks
from benchmarks.intervals import Case, measured
from dpstudy.auditing.membership import area_under_curve


def test_the_gpu_benchmark_measures_each_way_and_holds_ours_against_float64(tmp_path):
    ways = ("plain", "dpstudy", "vmap", "Opacus ghost")
    found = gpu._measure(gpu.Case("wrn-10-1-gn", "float32", copies=1, side=8, ways=ways), repeats=1, rows=2)
    assert [line["way"] for line in found] == list(ways)
    assert all(line["images_per_second"] > 0 for line in found)
    assert float(found[1]["off_float64"]) < 1e-4
    gpu._write(str(tmp_path / "gpu.csv"), found)
    assert len((tmp_path / "gpu.csv").read_text().splitlines()) == 1 + len(ways)


@pytest.mark.parametrize(
    "case",
    [
        Case("auc", 10, 77, 0.9),  # percentiles of the samples cover 87 % here
        Case("auc", 10, 77, 0.7, images=3),
        Case("average_precision", 10, 77, 0.9),
        Case("top1", 10, 10, 0.7, images=3),
        Case("balanced_accuracy", 10, 20, 0.9, images=3),
    ],
    ids=str,
)
def test_intervals_cover_and_are_no_longer_than_they_must_be(case):
    coverage, length = measured(case, 200)
    assert coverage >= 0.93 and length <= 1.3


def test_a_projection_tells_more_of_a_record_after_more_epochs():
    few, many = (
        area_under_curve(*(leaks.statistics(epochs, present, 60) for present in (True, False))) for epochs in (1, 10)
    )
    assert few < 0.65 and many > 0.75


def test_the_attacked_record_lies_in_a_direction_that_no_other_has():
    (with_it, labels), (without, others) = leaks.records(True), leaks.records(False)
    assert np.array_equal(with_it[1:], without) and np.array_equal(labels[1:], others)
    assert with_it[0, -1] == 1 and not without[:, -1].any()
    assert np.linalg.norm(with_it, axis=1) == pytest.approx(np.ones(len(with_it)), abs=1e-6)


def test_a_tenth_of_one_class_is_left_and_the_others_whole():
    labels = np.arange(1000) % 10
    kept = groups.thinned(labels, 3)
    assert np.bincount(labels[kept]).tolist() == [100, 100, 100, 10, *6 * [100]]


def test_accuracy_of_the_rare_class_and_the_mean_of_the_others():
    labels = np.arange(2000) % 10
    features = np.eye(10, dtype=np.float32)[labels]
    wrong = np.where(labels == 4, 5, labels)  # in the test records every 4 looks like a 5
    found = groups.accuracies([features, labels], [np.eye(10, dtype=np.float32)[wrong], labels], 4, float("inf"), 0)
    assert found.tolist() == [0.0, 100.0]
