"""Classifier weights from released class sums of random Fourier features: post-processing."""

from collections.abc import Iterable

import numpy as np

_SMALLEST = 1e-9  # relative to the largest eigenvalue


def widened(sums: np.ndarray, frequencies: np.ndarray, extra: float) -> np.ndarray:
    """(rows, 2D) class sums for kernels that are wider by `extra`.

    A Gaussian's transform damps the frequency w by exp(-extra^2 |w|^2/2).
    """
    damping = np.exp(-0.5 * extra**2 * (frequencies.astype(np.float64) ** 2).sum(1))
    return sums * np.concatenate([damping, damping])


def bayes_weights(sums: np.ndarray, std: float, n: int, public: Iterable, exclusive: bool = True) -> np.ndarray:
    """(m, 2D) linear weights that predict labels, from noisy sums and the second moment of public psi.

    With labels y_t = theta_t psi + rest and E psi psi^T = M, the sums divided by n are M theta_t, plus the release's
    noise (tau = std/n) and that of drawing n records (about M/n). For theta_t ~ N(0, v I) the posterior mean is, in M's
    eigenvectors, e v/(e^2 v + tau^2 + e v/n) times the sum's coordinate. E |sum/n|^2 = v tr(M^2) + 2D tau^2 gives v.

    Args:
        sums: (m, 2D) released sums.
        std: of their noise.
        n: public number of records.
        public: blocks (rows, 2D) of psi of public records.
        exclusive: a record has one label, so that the mean over classes says nothing and is subtracted.
    """
    second, rows = 0.0, 0
    for block in public:
        second = second + (block.T @ block).astype(np.float64)
        rows += len(block)
    values, vectors = np.linalg.eigh(second / rows)
    values = np.maximum(values, _SMALLEST * values[-1])
    targets = (sums - sums.mean(0) if exclusive else sums) / n
    tau = std / n
    variance = ((targets**2).sum() / len(targets) - len(values) * tau**2) / (values**2).sum()
    variance = max(variance, 1e-12 / (values**2).sum())
    gains = values * variance / (values**2 * variance + tau**2 + values * variance / n)
    return ((targets @ vectors) * gains) @ vectors.T
