"""Benchmarks that wait for a machine: they run at toy size."""

import pytest

from benchmarks import gpu
from benchmarks.intervals import Case, measured


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
