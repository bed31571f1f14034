"""The sums that least squares is made of, by each of the ways they are made, against float64."""

import math
import secrets
import subprocess
import sys

import numpy as np
import pytest
import torch

from dpstudy.core.arrays import Place
from dpstudy.core.errors import StudyError
from dpstudy.methods import sufficient_statistics
from dpstudy.methods.averaging import Subjects, weighted
from dpstudy.methods.clipping import clip_rows
from dpstudy.methods.device_sums import DeviceSums
from dpstudy.methods.sufficient_statistics import accumulate

DIM, CLASSES = 6, 4
SIZES = (50, 1, 30)


class Large(list):
    """Batches that say they take much memory."""

    nbytes = 1 << 40


def make_batches(multi_label, dtype=np.float16):
    rng = np.random.default_rng(secrets.randbits(60))
    found = []
    for size in SIZES:
        features = (rng.standard_normal((size, DIM)) * rng.choice([0.1, 1, 5], (size, 1)) + 0.2).astype(dtype)
        labels = rng.integers(0, CLASSES, size).astype(np.int32)
        if multi_label:
            labels = (rng.random((size, CLASSES)) < 0.4).astype(np.int8)
        found.append((features, labels))
    found[0][0][7, 2] = math.nan
    found[2][0][4, 0] = -math.inf
    return found


def reference(batches, norm):
    gram, targets, class_grams = np.zeros((DIM, DIM)), np.zeros((CLASSES, DIM)), np.zeros((CLASSES, DIM, DIM))
    for features, labels in batches:
        for x, label in zip(features.astype(np.float64), labels, strict=True):
            if not np.isfinite(x).all():
                continue
            x = x * min(1, norm / np.linalg.norm(x))
            gram += np.outer(x, x)
            for index in np.flatnonzero(label) if np.ndim(label) else [label]:
                targets[index] += x
                class_grams[index] += np.outer(x, x)
    return gram, targets, class_grams


def check(found, batches, norm, per_class):
    for sums, expected in zip(found, reference(batches, norm), strict=True):
        if sums is None:
            assert not per_class
            continue
        assert sums.dtype == np.float32
        assert sums == pytest.approx(expected, rel=1e-5, abs=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("norm", [0.7, math.inf])
def test_torch_and_numpy_make_the_same_sums(multi_label, per_class, norm, monkeypatch):
    for dtype in (np.float16, np.float32):
        batches = make_batches(multi_label, dtype)
        options = {"positives": CLASSES, "per_class": per_class}
        for rows in (3, 8192):
            monkeypatch.setattr("dpstudy.methods.device_sums._BLOCK", rows)
            monkeypatch.setattr(sufficient_statistics, "_BLOCK", rows)
            monkeypatch.setattr(sufficient_statistics, "_CLASS_BLOCK", rows)
            device = DeviceSums(DIM, CLASSES, norm, per_class, Place(torch, "cpu"))
            for features, labels in batches:
                device.add(features, labels)
            check(device.totals(), batches, norm, per_class)
            for source, threads in ((batches, 1), (batches, 3), (Large(batches), 1), (Large(batches), 2)):
                found = accumulate(source, CLASSES, norm, threads=threads, **options)
                check((found.gram, found.targets, found.class_grams), batches, norm, per_class)
                assert np.array_equal(found.gram, found.gram.T)
                assert (found.class_grams is not None) == per_class


def test_sums_are_made_on_a_gpu_where_there_is_one(monkeypatch):
    """The machine's GPU is played by its CPU."""
    batches, used = make_batches(False), []

    class Watched(DeviceSums):
        def __init__(self, *arguments, **more):
            used.append(arguments[-1].device)
            super().__init__(*arguments[:-1], Place(torch, "cpu"), **more)

    monkeypatch.setattr("dpstudy.methods.device_sums.DeviceSums", Watched)
    for there in (False, True):
        monkeypatch.setattr("torch.cuda.is_available", lambda there=there: there)
        monkeypatch.setattr("dpstudy.core.arrays.has_driver", lambda: True)
        found = accumulate(batches, CLASSES, 0.7)
        check((found.gram, found.targets, None), batches, 0.7, False)
    assert used == ["cuda"]


def test_small_sums_need_no_torch():
    code = (
        "import sys, dpstudy.core.arrays; dpstudy.core.arrays.has_driver = lambda: False\n"
        "import numpy as np; from dpstudy.methods.sufficient_statistics import accumulate\n"
        "accumulate([(np.ones((3, 2), np.float16), np.array([0, 1, 1]))], 2, 1.0)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_threads_are_given_back(monkeypatch):
    given, before = [], torch.get_num_threads()
    monkeypatch.setattr(torch, "set_num_threads", given.append)
    accumulate(make_batches(False), CLASSES, 1.0, threads=2)
    assert given == [1, before]


def test_labels_are_checked_whatever_makes_the_sums():
    for source in (list, Large):
        with pytest.raises(StudyError, match="row 1: label 4 lies outside"):
            accumulate(source([(np.zeros((2, DIM), np.float16), np.array([0, 4]))]), CLASSES, 1.0)
        with pytest.raises(StudyError, match="no training rows"):
            accumulate(source([(np.zeros((0, DIM), np.float16), np.zeros(0, np.int32))]), CLASSES, 1.0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_clipping_leaves_what_it_was_given_alone(dtype):
    features = (np.arange(24).reshape(4, 6) / 3).astype(dtype)
    features[1, 2] = math.nan
    kept = features.copy()
    assert not np.array_equal(clip_rows(features, 0.5), features)
    np.testing.assert_array_equal(features, kept)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("exact", [False, True])
def test_persons_are_averaged_whatever_makes_the_sums(exact, per_class):
    """On the CPU by NumPy, by threads and by torch: each record's part divided by how many its person has."""
    rng = np.random.default_rng(0)
    who, features = rng.integers(30, size=81), rng.standard_normal((81, DIM)).astype(np.float32)
    labels, batches = rng.integers(CLASSES, size=81), []
    cuts = (0, 50, 51, 81)
    for start, stop in zip(cuts[:-1], cuts[1:], strict=True):
        batches.append((features[start:stop], labels[start:stop]))
    counts = np.bincount(who)[who]
    clipped = 0.7 * features / np.maximum(0.7, np.linalg.norm(features.astype(np.float64), axis=1, keepdims=True))
    outer = np.einsum("ni,nj->nij", clipped, clipped) / counts[:, None, None]
    one = np.eye(CLASSES)[labels]
    expected = outer.sum(0), one.T @ (clipped / counts[:, None]), np.einsum("nm,nij->mij", one, outer)
    device = DeviceSums(DIM, CLASSES, 0.7, per_class, Place(torch, "cpu"), exact=exact)
    for features_of, labels_of, weights in weighted(Subjects(batches, who), True):
        device.add(features_of, labels_of, weights)
    found = [device.totals()]
    for threads in (1, 2):
        own = accumulate(Subjects(batches, who), CLASSES, 0.7, 1, per_class, threads, exact=exact, averaged=True)
        found.append((own.gram, own.targets, own.class_grams))
    for sums in found:
        for value, right in zip(sums, expected, strict=True):
            if value is not None:
                np.testing.assert_allclose(value, right, atol=3e-3 if exact else 3e-5)  # a grid of 2^-15
    if exact:
        for sums in found[1:]:
            assert all(np.array_equal(a, b) for a, b in zip(sums, found[0], strict=True) if a is not None)


@pytest.mark.parametrize("per_class", [False, True])
def test_sums_without_a_bound_are_made_where_noise_would_be_secure(per_class):
    """Of an infinite epsilon, averaged or not: then nothing is noised."""
    batches, who = make_batches(False), np.arange(sum(SIZES)) // 2
    device = DeviceSums(DIM, CLASSES, math.inf, per_class, Place(torch, "cpu"), exact=True)
    for features, labels, weights in weighted(Subjects(batches, who), True):
        device.add(features, labels, weights)
    own = accumulate(Subjects(batches, who), CLASSES, math.inf, 1, per_class, exact=True, averaged=True)
    np.testing.assert_allclose(own.gram, device.totals()[0], rtol=1e-6)
    plain = accumulate(batches, CLASSES, math.inf, 1, per_class, exact=True)
    assert 0.3 < np.trace(own.gram) / np.trace(plain.gram) < 0.7
