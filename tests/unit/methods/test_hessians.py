"""Class-diagonal Hessian blocks against a loop over examples, and the inequalities that Newton's proofs rest on."""

import math
import secrets

import numpy as np
import pytest

from dpstudy.methods.hessians import class_hessians, shared_hessian
from dpstudy.methods.records import Records

N, DIM, CLASSES = 140, 7, 5


@pytest.fixture
def rows():
    rng = np.random.default_rng(17)
    return rng.standard_normal((N, DIM)).astype(np.float32), rng.integers(CLASSES, size=N)


def probabilities(scores, loss):
    if loss == "sigmoid":
        return 1 / (1 + np.exp(-scores))
    scores = np.exp(scores - scores.max())
    return scores / scores.sum()


@pytest.mark.parametrize("loss", ["sigmoid", "softmax"])
def test_class_hessians_equal_a_loop_over_examples(kind, rows, loss):
    """A record that holds no numbers and one whose scores overflow contribute zero."""
    features, labels = (
        np.vstack([rows[0], np.full((1, DIM), math.nan), np.full((1, DIM), 1e8)]),
        np.append(rows[1], [0, 0]),
    )
    features[-1, 1:] = 0
    weights = np.random.default_rng(4).standard_normal((CLASSES, DIM)).astype(np.float32)
    found = Records.read([(features.astype(np.float32), labels)], CLASSES)
    expected = np.zeros((CLASSES, DIM, DIM))
    for row in rows[0].astype(np.float64):
        p = probabilities(weights @ row, loss)
        expected += (p * (1 - p))[:, None, None] * np.outer(row, row)
    at = kind.array(weights)
    assert class_hessians(found, at, loss, range(CLASSES)) == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert class_hessians(found, at, loss, range(1, 3)) == pytest.approx(expected[1:3], rel=1e-4, abs=1e-4)
    if loss == "softmax":
        assert shared_hessian(found, at) == pytest.approx(expected.sum(0), rel=1e-4, abs=1e-4)
    beyond = np.full((CLASSES, DIM), 1e35, np.float32)
    assert np.isfinite(class_hessians(found, kind.array(beyond), loss, range(CLASSES))).all()


def test_the_full_softmax_hessian_is_at_most_twice_its_block_diagonal(rows):
    for scale in (0.0, 0.5, 3.0):
        weights = scale * np.random.default_rng(5).standard_normal((CLASSES, DIM))
        full, diagonal = np.zeros((CLASSES * DIM, CLASSES * DIM)), np.zeros((CLASSES * DIM, CLASSES * DIM))
        for row in rows[0].astype(np.float64):
            p = probabilities(weights @ row, "softmax")
            full += np.kron(np.diag(p) - np.outer(p, p), np.outer(row, row))
            diagonal += np.kron(np.diag(p * (1 - p)), np.outer(row, row))
        assert np.linalg.eigvalsh(2 * diagonal - full).min() > -1e-9 * np.abs(full).max()


def test_no_probabilities_bend_the_blocks_by_more_than_the_proof_says():
    rng = np.random.default_rng(secrets.randbits(60))
    for classes in (2, 3, 10, 100):
        p = rng.dirichlet(np.full(classes, 0.3), size=20_000)
        together = ((p * (1 - p)) ** 2).sum(1)
        assert together.max() <= (1 / 8 if classes == 2 else 4 / 27) + 1e-12
        assert (1 - (p**2).sum(1)).max() <= 1 - 1 / classes + 1e-12
        residual = p.copy()
        residual[:, 0] -= 1
        assert (residual**2).sum(1).max() <= 2 + 1e-12
    third = np.full(3, 1 / 3)
    assert ((third * (1 - third)) ** 2).sum() == pytest.approx(4 / 27)
