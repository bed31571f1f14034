"""A faster computation of dp-accounting's loss distributions of sampled Gaussian releases, with identical results.

For each point of its grid, tens of thousands, dp-accounting asks in Python where the privacy loss passes it. Here all
points are asked for at once, by the same formula (`AdditiveNoisePrivacyLoss.inverse_privacy_loss`, its three
adjacencies); a few are compared with what dp-accounting itself says, and where one differs all are its own.
"""

import contextlib
import math
import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np

_CLOSE = 1e-9  # math.isclose
_COMPARED = 7  # points


@contextlib.contextmanager
def all_at_once() -> Iterator[None]:
    """A context in which dp-accounting evaluates all points of its grid at once."""
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    theirs = GaussianPrivacyLoss.get_delta_for_epsilon
    GaussianPrivacyLoss.get_delta_for_epsilon = lambda loss, epsilon: _deltas(loss, epsilon, theirs)
    try:
        yield
    finally:
        GaussianPrivacyLoss.get_delta_for_epsilon = theirs


def _deltas(loss: Any, epsilon: Any, theirs: Any) -> Any:
    """Hockey-stick divergences, as `get_delta_for_epsilon` of a GaussianPrivacyLoss gives them."""
    kind = loss.adjacency_type.name
    if isinstance(epsilon, numbers.Number) or loss.sampling_prob == 1:
        return theirs(loss, epsilon)
    epsilons = np.asarray(epsilon)
    deltas, edge = np.zeros_like(epsilons, dtype=float), math.log1p(-loss.sampling_prob)
    passed = np.full(epsilons.shape, True)
    if kind == "ADD":
        passed = epsilons < -edge
    elif kind == "REMOVE":
        passed = epsilons > edge
        deltas[~passed] = -np.expm1(epsilons[~passed])
    asked = epsilons[passed]
    places = _inverse_replace(loss, asked) if kind == "REPLACE" else _inverse(loss, asked, kind == "ADD")
    some = np.unique(np.linspace(0, len(asked) - 1, _COMPARED).astype(int)) if len(asked) else ()
    if any(places[place] != loss.inverse_privacy_loss(asked[place]) for place in some):
        return theirs(loss, epsilon)
    deltas[passed] = loss.mu_upper_cdf(places) - np.exp(asked + loss.mu_lower_log_cdf(places))
    return np.clip(deltas, 0, 1)


def _inverse(loss: Any, losses: np.ndarray, adding: bool) -> np.ndarray:
    """The largest x at which the privacy loss is at least each of `losses`, which the sampling allows."""
    q, sign = loss.sampling_prob, -1.0 if adding else 1.0
    factor, rest, edge = 1 / q, 1 - 1 / q, math.log(1 - q)
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = sign * losses + np.log(factor)
        whole = whole + np.log1p(-np.exp(np.log(-rest) - whole))  # log(factor exp(sign loss) + rest)
    whole[losses == 0] = np.log(factor + rest)
    whole[np.abs(sign * losses - edge) <= _CLOSE * np.maximum(np.abs(losses), abs(edge))] = -np.inf
    if adding:
        return loss._inverse_privacy_loss_without_subsampling_add(-whole)
    return loss._inverse_privacy_loss_without_subsampling_remove(whole)


def _inverse_replace(loss: Any, losses: np.ndarray) -> np.ndarray:
    """The same where a record is replaced (`GaussianPrivacyLoss._inverse_privacy_loss_replace`)."""
    half = np.abs(losses) / 2
    alpha = (
        0.5 * (loss.sensitivity / loss.standard_deviation) ** 2
        + math.log1p(-loss.sampling_prob)
        - math.log(loss.sampling_prob)
    )
    # By math, as dp-accounting has these two: NumPy's differ in the last bit.
    shorter = np.array([math.log1p(-math.exp(-2 * one)) if one else -math.inf for one in half.tolist()])
    with np.errstate(invalid="ignore"):
        whole = alpha + (half + shorter - math.log(2))
        turned = np.where(losses >= 0, -1.0, 1.0) * np.logaddexp(0.5 * np.logaddexp(0, 2 * whole), whole)
        inverse = loss.standard_deviation**2 / loss.sensitivity * (turned - losses / 2)
    return np.where(losses == 0, 0.0, inverse)
