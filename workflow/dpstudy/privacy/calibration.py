"""Calibration of noise to a privacy budget."""

import contextlib
import math
from collections.abc import Callable, Sequence

from dpstudy.core.errors import StudyError
from dpstudy.privacy import gaussian
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import TRUNCATED, Event, known_to_renyi, unamplified
from dpstudy.privacy.loss_distributions import coarse_epsilon, pld_floor
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.published import CONVERSIONS
from dpstudy.privacy.renyi import rough_epsilon

_TOLERANCE = 1e-4  # relative, in epsilon, always on the safe side
_EXACT_TOLERANCE = 1e-9  # where epsilon is a closed form
_LARGEST_LOG_SCALE = 20.0
_SMALLEST_SUBSAMPLED = 0.3  # smaller noise multipliers are not tried, since accountants are slow and loose there
_LEAST_REACHED = 0.9  # share of the target epsilon that a calibration must reach


class _UnreachableError(StudyError):
    """No scale reaches the target."""


def calibrate(events_at: Callable[[float], Sequence[Event]], budget: Budget) -> float:
    """The smallest noise scale, to 1e-4 in epsilon, whose events spend at most the budget.

    Args:
        events_at: maps a noise scale > 0 to the events of one seed; more scale, less epsilon. Events that do
            not depend on the scale (a normalisation with its own noise) are part of what is composed.
        budget: a finite target; with `accounting` other than "certified" the paper's conversion decides.

    Returns:
        The scale. The epsilon it certifies is never above the target.

    >>> from dpstudy.privacy.events import Event
    >>> round(calibrate(lambda noise: [Event("gradients", "gaussian", noise, 1.0, count=100)], Budget("1", 1e-5)), 2)
    37.31

    Raises:
        StudyError: no scale reaches the target, because the fixed events alone cost more; or every scale that keeps it
            is certified for far less, because no accountant has a bound between.
    """
    if not budget.private:
        raise ValueError("an infinite epsilon needs no calibration")
    epsilon_of = _conversion(budget)
    subsampled = not unamplified(events_at(1.0))
    if subsampled and budget.accounting == "mehta2023":
        raise StudyError(
            "accounting 'mehta2023': its conversion (zCDP) knows no sampling; "
            "use batch_size: full, or accounting: certified"
        )
    tolerance = _TOLERANCE if subsampled or budget.accounting != "certified" else _EXACT_TOLERANCE

    def excess(scale: float, bound=epsilon_of) -> float:  # log(epsilon / goal); the goal lies just below the target
        epsilon = bound(events_at(scale), budget.delta)
        return math.log(max(epsilon, 1e-300) / budget.target) + tolerance / 2

    guess, step = _first_guess(events_at, budget), 1.1
    if subsampled and budget.accounting == "certified":
        bound = _quick(events_at(1.0), budget.delta)
        with contextlib.suppress(_UnreachableError):  # the looser bound may not reach what the certifying one does
            guess = _solve(lambda scale: excess(scale, bound), guess, 1.5, budget, tolerance)
            step = step if bound is rough_epsilon else 1.001
    try:
        scale = _solve(excess, guess, step, budget, tolerance)
    except _UnreachableError:
        if all(one != other for one, other in zip(events_at(1.0), events_at(2.0), strict=True)):
            raise _no_bound(budget, "none is certified") from None
        raise
    while (reached := epsilon_of(events_at(scale), budget.delta)) > budget.target:  # the search ended above the target
        scale *= 1 + tolerance
    if reached < _LEAST_REACHED * budget.target:
        raise _no_bound(budget, f"the nearest below is {upper_bound(reached)}, at noise multiplier {scale:.3g}")
    return scale


def _no_bound(budget: Budget, nearest: str) -> StudyError:
    return StudyError(
        f"epsilon {budget.epsilon} at delta {upper_bound(budget.delta)} cannot be reached: no accountant has a bound "
        f"near it for these releases ({nearest}); take a larger delta, another epsilon, or batch_size: full"
    )


def _quick(events: Sequence[Event], delta: float) -> Callable[[Sequence[Event], float], float]:
    """What stands in for the certifying accountant while a search is far off."""
    return rough_epsilon if known_to_renyi(events) or delta <= pld_floor(events) else coarse_epsilon


def affordable(events_after: Callable[[int], Sequence[Event]], budget: Budget, most: int = 10**7) -> int:
    """The largest number of steps within the budget, given the noise (de2022 section 3.1: given sigma and q).

    >>> from dpstudy.privacy.events import Event
    >>> affordable(lambda steps: [Event("gradients", "gaussian", 10.0, 1.0, count=steps)], Budget("1", 1e-5))
    7

    Args:
        events_after: maps a number of steps to the events of one seed.
        budget: a finite target.
        most: no more steps than this.

    Raises:
        StudyError: not even one step is within the budget.
    """
    epsilon_of = _conversion(budget)

    def most_within(bound, low: int) -> int:
        """The most steps that `bound` allows; `low` is known to be allowed, or 0."""

        def excess(steps: int) -> float:
            return math.log(max(bound(events_after(steps), budget.delta), 1e-300) / budget.target)

        below, above, high = None, None, low + max(1, low // 8)
        while high <= most and (above := excess(high)) <= 0:
            low, below, high = high, above, 2 * high
        if high > most:
            high, above = most + 1, None
        while high - low > 1:
            middle = (low + high) // 2
            if below is not None and above is not None and above < math.inf:
                # epsilon is close to a power of the number of steps
                share = below / (below - above)
                middle = min(high - 1, max(low + 1, int(low * (high / low) ** share)))
            beyond = excess(middle)
            if beyond <= 0:
                low, below = middle, beyond
            else:
                high, above = middle, beyond
        return low

    quick = 0
    one = events_after(1)
    if budget.accounting == "certified" and not unamplified(one):
        quick = most_within(_quick(one, budget.delta), 0)
        if quick and epsilon_of(events_after(quick), budget.delta) > budget.target:
            quick = 0  # the coarser grid, or set of Renyi orders, may give a slightly smaller epsilon
    steps = most_within(epsilon_of, quick)
    if not steps:
        raise StudyError(
            f"epsilon {budget.epsilon} at delta {upper_bound(budget.delta)}: not even one step is within it; raise the "
            "noise multiplier"
        )
    return steps


def _conversion(budget: Budget) -> Callable[[Sequence[Event], float], float]:
    if budget.accounting == "certified":
        return lambda events, delta: certify(events, delta).epsilon
    if budget.accounting not in CONVERSIONS:
        raise StudyError(
            f"accounting {budget.accounting!r}: unknown; one of 'certified', {', '.join(map(repr, CONVERSIONS))}"
        )
    return CONVERSIONS[budget.accounting]


def _first_guess(events_at: Callable[[float], Sequence[Event]], budget: Budget) -> float:
    """The scale at which q sqrt(T)/s composes to the target's mu: the central limit of subsampled Gaussians."""
    goal = gaussian.mu_of(budget.target, budget.delta)
    unit = 0.0
    for event in events_at(1.0):
        rate = event.sampling_rate if event.sampling in ("poisson", TRUNCATED) else 1.0
        unit += event.participations * (rate / max(event.noise_multiplier, 1e-12)) ** 2
    guess = math.sqrt(unit) / goal
    return guess if unamplified(events_at(1.0)) else max(guess, _SMALLEST_SUBSAMPLED)


def _solve(excess: Callable[[float], float], guess: float, step: float, budget: Budget, tolerance: float) -> float:
    """The root of a decreasing function of log(scale), bracketed from a guess."""
    from scipy.optimize import brentq  # late: the closed form for full batches needs only a few evaluations

    values: dict[float, float] = {}

    def at(logarithm: float) -> float:
        if logarithm not in values:
            values[logarithm] = excess(math.exp(logarithm))
        return values[logarithm]

    low = high = math.log(guess)
    width = math.log(step)
    if at(guess_log := low) > 0:
        while at(high := high + width) > 0:
            low, width = high, 2 * width
            if high > _LARGEST_LOG_SCALE:
                raise _UnreachableError(
                    f"epsilon {budget.epsilon} at delta {upper_bound(budget.delta)} cannot be reached: the releases "
                    "whose noise is fixed (such as a normalisation) already cost more; raise their noise multiplier or "
                    "the epsilon"
                )
    else:
        high = guess_log
        while at(low := low - width) <= 0:
            high, width = low, 2 * width
    return math.exp(brentq(at, low, high, xtol=tolerance / 20, rtol=1e-12))
