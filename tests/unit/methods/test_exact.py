"""Under secure noise sums are exact: a record moves them by what it contributes, and nothing else moves them at all."""

import math
import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from dpstudy import fit
from dpstudy.core.arrays import Place, to_numpy
from dpstudy.core.errors import StudyError
from dpstudy.methods import exact, records, row_map, sufficient_statistics
from dpstudy.methods.clipping import clip_rows
from dpstudy.methods.gradients import Head, clipped_sum
from dpstudy.methods.records import Records
from dpstudy.methods.row_map import RowMap
from dpstudy.methods.sufficient_statistics import accumulate, add_up
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import check_run
from dpstudy.privacy.noise import NoiseSource
from tests.unit.methods.exact_releases import CLASSES, RELEASES, C, moved_by, problem_of, rows_of, weights_of

N = 1_300_000
MOVED = RowMap(unit_first=True, center=np.full(1, 0.1, np.float32), unit=True)
DIMS = (5, 10, 50) if os.environ.get("DPSTUDY_EXACT") else (5,)  # the others take minutes


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["equal", "half and half", "random"])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", RELEASES)
def test_the_first_of_a_million_records_moves_no_release_by_more_than_its_sensitivity(name, dim, pattern):
    found = moved_by(name, rows_of(pattern, N, dim), problem_of(N, dim))
    assert 0.01 < found <= 1, found


def test_sums_in_float32_move_by_more():
    """What the test above would say of them: it does see rounding."""
    x = rows_of("random", N, 5)
    assert max(moved_by(name, x, problem_of(N, 5, secure=False)) for name in ("kernel_mean class_sums",)) > 1.1


@pytest.mark.parametrize("name", RELEASES)
def test_order_and_blocks_change_no_release(name, kind, monkeypatch):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((300, 9)).astype(np.float32) * rng.lognormal(0, 3, (300, 1)).astype(np.float32)
    x[7, 2], y = math.nan, rng.integers(0, CLASSES, 300)
    release, _ = RELEASES[name]
    found = release(x, y, problem_of(300, 9)).tobytes()
    for values in (1, 50, 1 << 20):
        monkeypatch.setattr(records, "_BLOCK_VALUES", {"cpu": values, "cuda": values})
        monkeypatch.setattr(row_map, "_CACHED_VALUES", values)
        order = rng.permutation(300)
        if not name.startswith("normalisation"):  # channel means are float32 of each record, and exact from there on
            assert release(x[order], y[order], problem_of(300, 9)).tobytes() == found


def test_statistics_have_the_same_bytes_however_they_are_made(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((5000, 40)).astype(np.float32), rng.integers(0, 6, 5000)
    whole = accumulate([(x, y)], 6, 0.7, per_class=True, exact=True)

    def same(other):
        return all(getattr(whole, name).tobytes() == getattr(other, name).tobytes() for name in ("gram", "targets"))

    order = rng.permutation(5000)
    assert same(accumulate([(x[order], y[order])], 6, 0.7, exact=True))
    assert same(accumulate([(x, y)], 6, 0.7, exact=True, threads=2))
    for rows in (100, 1 << 14):
        monkeypatch.setattr(sufficient_statistics, "_BLOCK", rows)
        assert same(accumulate([(x[:1234], y[:1234]), (x[1234:], y[1234:])], 6, 0.7, exact=True))
    for share in range(3):
        accumulate([(x[share::3], y[share::3])], 6, 0.7, exact=True).save(tmp_path / f"{share}.safetensors")
    joined = add_up([tmp_path / f"{share}.safetensors" for share in range(3)])
    assert joined.exact and joined.gram.dtype == np.float64 and same(joined)
    with pytest.raises(ValueError, match="do not add up"):
        whole + accumulate([(x, y)], 6, 0.7, per_class=True)


def test_statistics_are_the_sums_of_the_rounded_rows():
    """Against whole numbers of any size."""
    rng = np.random.default_rng(6)
    x, y = 2 * rng.standard_normal((200, 4)).astype(np.float32), rng.integers(0, 3, 200)
    rows = clip_rows(x, 0.7, exact=True)
    whole = (rows * 2**exact.FEATURE_BITS).astype(int).astype(object)
    assert (whole / 2**exact.FEATURE_BITS == rows).all()
    found = accumulate([(x, y)], 3, 0.7, exact=True)
    assert (found.gram == (whole.T @ whole) / 4**exact.FEATURE_BITS).all()
    assert (found.targets[1] == whole[y == 1].sum(0) / 2**exact.FEATURE_BITS).all()
    near = accumulate([(x, y)], 3, 0.7)
    assert found.gram == pytest.approx(near.gram, rel=1e-3, abs=1e-2)


@pytest.mark.parametrize("dim", [1, 7, 3000])
@pytest.mark.parametrize(
    "rule",
    [
        RowMap(clip=0.7),
        RowMap(unit=True),
        RowMap(unit_first=True, center=np.full(1, 0.1, np.float32), unit=True),
        RowMap(),
    ],
)
def test_no_row_grows_by_rounding(kind, rule, dim):
    rng = np.random.default_rng(8)
    x = rng.standard_normal((60, dim)) * 10.0 ** rng.uniform(-30, 11, (60, 1))
    x[0], x[1], x[2, 0], x[3] = 0, math.inf, math.nan, 1e30
    found, norms = replace(rule, exact=True)(kind.array(x.astype(np.float32)))
    plain, _ = rule(kind.array(x.astype(np.float32)))
    wide, norms = to_numpy(found).astype(np.float64), to_numpy(norms)
    lengths = [math.sqrt(math.fsum(v * v for v in row)) for row in wide]
    assert np.isnan(norms[1:4]).all() and not wide[1:4].any() and (rule.center is not None or not wide[0].any())
    assert all(length <= most for length, most in zip(lengths[4:], norms[4:], strict=True))
    assert (norms[4:] <= rule.bound).all()
    scale = np.maximum(norms[4:, None], 1e-15) if math.isinf(rule.bound) else rule.bound
    assert (np.abs(wide - to_numpy(plain))[4:] <= 2.0**-14 * scale + 1e-12).all()


def test_long_rows_are_clipped_to_what_is_said(kind):
    """float32 norms of equal numbers are low, the more so the longer the row."""
    for count in (25_000, 1_000_000):
        row = kind.array(np.full((1, count), 0.37, np.float32))
        for rule in (RowMap(clip=1.0), RowMap(clip=1.0, exact=True), RowMap(unit=True)):
            length = np.linalg.norm(to_numpy(rule(row)[0]).astype(np.float64))
            assert 0.9 < length <= 1


def test_a_residual_of_many_classes_is_clipped_to_what_is_said():
    classes = 20_000
    for capacity in (None, 2):
        read = Records.read([(np.ones((1, 1), np.float32), np.zeros(1, int))], classes, capacity=capacity)
        weights = read.place.zeros(classes, 1)
        weights[1:] = 0.3
        total = to_numpy(clipped_sum(read, weights, Head("sigmoid", 0.0, 0.01, mean=False))).astype(np.float64)
        assert 0.009 < np.linalg.norm(total) <= 0.01


@pytest.mark.parametrize("where", [Place(np, "cpu"), Place(torch, "cpu")])
def test_elementwise_functions_give_the_same_bits_wherever_a_number_stands(where):
    """What makes a contribution a function of its record alone."""
    values = np.random.default_rng(9).normal(0, 3, 40)
    for one in (where.xp.exp, where.xp.cos, where.xp.sin, lambda found: abs(found) ** 0.5, exact.sigmoid):
        alone = [float(one(where.array(values[index : index + 1]))[0]) for index in range(len(values))]
        for start in range(len(values)):
            for stop in (start + 1, start + 3, start + 8, len(values)):
                part = where.array(values[start:stop])
                assert to_numpy(one(part)).tolist() == alone[start : start + len(part)]


def test_exact_gradients_are_those_of_a_loop():
    rng = np.random.default_rng(10)
    x, y = 3 * rng.standard_normal((50, 6)).astype(np.float32), rng.integers(0, CLASSES, 50)
    read = Records.read([(x, y)], CLASSES, capacity=51)
    weights = weights_of(CLASSES, 7)
    found = to_numpy(clipped_sum(read, read.place.array(weights), Head("softmax", "learned", C)))
    expected = np.zeros((CLASSES, 7))
    for row, label in zip(x.astype(np.float64), y, strict=True):
        inputs = np.append(row, 1)
        scores = np.exp(weights @ inputs - (weights @ inputs).max())
        gradient = np.outer(scores / scores.sum() - np.eye(CLASSES)[label], inputs)
        expected += gradient * min(1, C / np.linalg.norm(gradient))
    assert found.dtype == np.float64 and found == pytest.approx(expected, abs=50 * 2e-4)


def test_more_records_than_sums_have_room_for_are_refused():
    with pytest.raises(StudyError, match="n times per_subject may be 8,388,607 at most"):
        replace(problem_of(exact.CAPACITY, 3), n=exact.CAPACITY).capacity  # noqa: B018
    with pytest.raises(StudyError, match="sums of 9,000,009 records"):
        replace(problem_of(1_000_000, 3), unit_records=9).capacity  # noqa: B018
    assert problem_of(exact.CAPACITY, 3, secure=False).capacity is None
    with pytest.raises(StudyError, match=r"2 records, where exact sums \(noise: secure\) have room for 1"):
        Records.read([(np.ones((2, 1), np.float32), np.zeros(2, int))], 1, capacity=1)


def test_secure_noise_takes_no_sum_that_was_rounded():
    source, event = NoiseSource("secure", "cell"), Event("sums", "gaussian", 1.0, 1.0)
    source.released("sums", np.zeros(3, np.float32), 1.0)
    with pytest.raises(RuntimeError, match="release 'sums': its sum is float32"):
        check_run([event], source)
    drawn = np.random.default_rng(11)
    x, y = drawn.standard_normal((200, 5)).astype(np.float32), drawn.integers(0, 3, 200)
    for method, options in {
        "least_squares": {"variant": "published"},
        "feature_covariance": {"start_share": 0.1},
        "newton": {"steps": 2},
        "kernel_mean": {"frequencies": 20},
        "first_order": {"learning_rate": 1.0, "clipping_norm": 0.1, "steps": 2},
        "iterated_sgd": {"learning_rate": 0.1, "clipping_norm": 1.0, "batch_size": 50, "epochs": 1},
    }.items():
        found = fit(method, x, y, classes=3, epsilon=1, delta=1e-4, noise="secure", **options)
        assert found.ledger["guarantee"] == "proved" and found.model.finite
