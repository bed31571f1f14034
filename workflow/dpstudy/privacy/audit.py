"""Lower bounds on epsilon from attacks, by an attacker's error rates on two neighbouring data sets.

Any (epsilon, delta)-private mechanism forces each test between neighbours to errors alpha + e^epsilon beta >= 1 - delta
and beta + e^epsilon alpha >= 1 - delta (Kairouz, Oh and Viswanath 2015). Clopper-Pearson upper bounds on alpha and beta
make the smallest epsilon that they allow a lower bound with a known confidence. Of a mechanism that is Gaussian-DP, as
all full-batch Gaussian releases are, they bound mu instead, and mu gives more at a small delta (Nasr et al. 2023).
Right guesses about many records of one run prove something too (Steinke et al. 2023).
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dpstudy.privacy import gaussian
from dpstudy.privacy.printed import lower_bound, upper_bound

_FINE = 1e-4  # precision of an epsilon that guesses prove


ELSEWHERE = "not what this cell publishes: "  # prefix of audit.json's entries on what the cell does not publish
REFUTED = "refuted"  # how a verdict begins that an attack found to be wrong
CALIBRATED = "what calibrates its scores was not attacked"  # how a statistic of a calibrated cell ends
OF_MODEL = "the published weights along what a canary adds to them"  # what an attack on a model alone looks at
_REPLACED = 2  # an add/remove guarantee of epsilon allows replace-one so many times epsilon


def highest(audits: Sequence[Mapping]) -> float | None:
    """The highest lower bound on epsilon that concerns what a cell publishes; None where there is none."""
    bounds = [entry["epsilon_lower"] for entry in audits if not entry["statistic"].startswith(ELSEWHERE)]
    return max(bounds, default=None)


def refuted(audits: Sequence[Mapping], claimed: float) -> bool:
    """Whether replace-one attacks on a cell refute an epsilon claimed for add/remove adjacency."""
    return (highest(audits) or 0.0) > _REPLACED * claimed


def certified_verdict(lower: float | None, certified: float | None) -> str:
    """The verdict on a certified epsilon after an attack that gave a lower bound, as a sentence of its document.

    Raises:
        ValueError: it gave none.
    """
    if lower is None:
        raise ValueError("no attack gave a bound on what the cell publishes")
    if certified is None:
        return f"nothing is proved: epsilon is at least {lower_bound(lower, places=2)}."
    what = REFUTED if lower > certified else "consistent"
    return f"{what}: epsilon is at least {lower_bound(lower, places=2)}, and {upper_bound(certified)} is certified."


def verdict(audits: Sequence[Mapping], claimed: str) -> str:
    """The verdict on a claimed epsilon, as a sentence of audit.json."""
    lower = highest(audits)
    if lower is None:
        return "Nothing is claimed."
    sentence = (
        f"replacing one has epsilon at least {lower_bound(lower, places=2)}, and {claimed} is claimed for adding or "
        f"removing a record, which allows {upper_bound(_REPLACED * float(claimed))}."
    )
    return f"refuted: {sentence}" if refuted(audits, float(claimed)) else f"not refuted by these attacks: {sentence}"


def epsilon_lower(
    false_alarms: int, absent: int, misses: int, present: int, delta: float, confidence: float = 0.999
) -> float:
    """The lower bound on epsilon that a test's errors prove, at the given confidence.

    >>> round(epsilon_lower(0, 10_000, 5_000, 10_000, delta=1e-5), 2)  # no false alarm, every second target missed
    6.46

    Args:
        false_alarms: how many of `absent` runs without the target were taken for runs with it.
        misses: how many of `present` runs with the target were taken for runs without it.
        delta: of the guarantee under attack.
        confidence: that both error rates are below their bounds.
    """
    return float(_bounds(np.array([false_alarms]), absent, np.array([misses]), present, delta, confidence)[0])


def _bounds(false_alarms, absent: int, misses, present: int, delta: float, confidence: float) -> np.ndarray:
    alpha, missed = _upper_bounds(false_alarms, absent, misses, present, confidence)
    with np.errstate(divide="ignore"):
        either = np.maximum(
            np.log(np.maximum(1 - delta - missed, 0)) - np.log(alpha),
            np.log(np.maximum(1 - delta - alpha, 0)) - np.log(missed),
        )
    return np.maximum(either, 0.0)


def _upper_bounds(false_alarms, absent: int, misses, present: int, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Clopper-Pearson upper bounds on both error rates, which hold together with the given confidence."""
    from scipy.stats import beta

    level = 1 - (1 - confidence) / 2

    def bound(errors: np.ndarray, runs: int) -> np.ndarray:
        return np.where(errors >= runs, 1.0, beta.ppf(level, errors + 1, np.maximum(runs - errors, 1)))

    return bound(false_alarms, absent), bound(misses, present)


def distinguished(
    held_out: tuple[np.ndarray, np.ndarray],
    runs: tuple[np.ndarray, np.ndarray],
    delta: float,
    confidence: float = 0.999,
    gaussian_dp: bool = False,
) -> float:
    """The lower bound on epsilon of the test "the statistic exceeds a threshold", set on held-out runs.

    Args:
        held_out, runs: the statistic in runs with the target and in runs without it; larger speaks for it.
        gaussian_dp: the mechanism is known to be mu-Gaussian-DP for some mu: bound mu, and give its epsilon.

    Raises:
        ValueError: there are no runs.
    """
    if not all(len(part) for part in (*held_out, *runs)):
        raise ValueError("an audit needs runs with and without the target")
    if gaussian_dp:  # at equal error rates, where their confidence bounds lower mu least
        threshold = np.array([sum(float(np.mean(part)) for part in held_out) / 2])
        return gaussian.epsilon_of(float(_gaussian_mus(*_errors(runs, threshold), confidence)[0]), delta)
    values = np.unique(np.concatenate(held_out))
    middles = np.concatenate([[-math.inf], values[:-1] + np.diff(values) / 2, [math.inf]])
    bounds = _bounds(*_errors(held_out, middles), delta, confidence)
    best = np.flatnonzero(bounds == bounds.max())
    threshold = middles[best[len(best) // 2]]
    return float(_bounds(*_errors(runs, np.array([threshold])), delta, confidence)[0])


def _gaussian_mus(false_alarms, absent: int, misses, present: int, confidence: float) -> np.ndarray:
    """mu >= Phi^-1(1 - alpha) - Phi^-1(beta) for the upper bounds on both errors."""
    from scipy.special import ndtri

    alpha, missed = _upper_bounds(false_alarms, absent, misses, present, confidence)
    with np.errstate(invalid="ignore"):
        return np.maximum(np.nan_to_num(ndtri(1 - alpha) - ndtri(missed), nan=0.0), 0.0)


def _errors(runs: tuple[np.ndarray, np.ndarray], thresholds: np.ndarray) -> tuple[np.ndarray, int, np.ndarray, int]:
    """(false alarms, runs without the target, misses, runs with it), errors (thresholds,) each."""
    present, absent = (np.sort(part) for part in runs)
    alarms = len(absent) - np.searchsorted(absent, thresholds, side="right")
    return alarms, len(absent), np.searchsorted(present, thresholds, side="right"), len(present)


def guessed(correct: int, guesses: int, canaries: int, delta: float, confidence: float) -> float:
    """The lower bound on epsilon that guesses about many canaries in one training run prove.

    Each canary took part by a coin of its own; of `guesses` of them the attacker said which way it fell. Of an
    (epsilon, delta)-private run the number of right guesses is at least v with probability at most

        P[B >= v] + 2 canaries delta max_{i >= 1} P[v - i <= B < v] / i,    B binomial(guesses, e^eps/(1 + e^eps))

    (Steinke, Nasr and Jagielski 2023, Theorem 5.2).

    >>> round(guessed(95, 100, 1_000, delta=1e-5, confidence=0.95), 2)
    2.17

    Raises:
        ValueError: more guesses than canaries, or more of them right than were made.
    """
    if not 0 <= correct <= guesses <= canaries:
        raise ValueError(f"{correct} of {guesses} guesses right, about {canaries} canaries: no such thing")
    low, high = 0.0, 50.0
    if _chance_of(correct, guesses, canaries, 0.0, delta) > 1 - confidence:
        return 0.0
    while high - low > _FINE:
        middle = (low + high) / 2
        enough = _chance_of(correct, guesses, canaries, middle, delta) <= 1 - confidence
        low, high = (middle, high) if enough else (low, middle)
    return low


def _chance_of(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """An upper bound on the chance of so many right guesses."""
    from scipy.stats import binom

    if correct == 0:
        return 1.0
    rate = 1 / (1 + math.exp(-epsilon))
    below = binom.pmf(np.arange(correct - 1, -1, -1), guesses, rate)
    worst = float(np.max(np.cumsum(below) / np.arange(1, correct + 1)))
    return min(1.0, float(binom.sf(correct - 1, guesses, rate)) + 2 * canaries * delta * worst)


def guesses_to_make(canaries: int, mu: float, delta: float, confidence: float) -> int:
    """The number of canaries to guess for the best expected bound, if each is seen with Gaussian parameter mu.

    It depends on public numbers only, so that it is fixed before anything is seen.
    """
    from scipy.special import ndtr

    thresholds = np.linspace(0, 4 + mu, 400)
    right, wrong = ndtr(mu / 2 - thresholds), ndtr(-mu / 2 - thresholds)  # of coins at least this clear
    best, most = math.ceil(canaries / 3), 0.0  # where no bound above 0 is expected, as many as would reveal a fault
    for guesses in np.unique(np.geomspace(max(1, min(10, canaries)), canaries, 25).round().astype(int)):
        at = int(np.argmin(np.abs(canaries * (right + wrong) - guesses)))
        bound = guessed(int(guesses * right[at] / (right[at] + wrong[at])), int(guesses), canaries, delta, confidence)
        if bound > most:
            best, most = int(guesses), bound
    return best
