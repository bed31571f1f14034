"""An independent bound on the epsilon of a ledger's sampled releases, by dp-accounting's loss distributions.

It adds up rounded numbers: its delta may be too small by 64 units (of 2^-53) a release that it composes. It is asked at
what that leaves of delta, and not at all where it leaves nothing. Of batches that are cut to a largest size there are
two bounds: dp-accounting's, and

    delta = delta_0 + (1 + e^epsilon) T P[a batch is cut],

delta_0 as if batches were not cut: both runs are the same unless one is (privacy/truncation.py).
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence

CUT = "truncated-poisson"
ROUNDING = 64 * 2.0**-53
_CLEAR = 1e3  # times what rounding can take


def events_sampled(events: Sequence[Mapping]) -> bool:
    """Whether any event is of a random sample of the records."""
    return any(event["sampling"] in ("poisson", CUT) for event in events)


def clear(events: Sequence[Mapping], delta: float) -> bool:
    """Whether delta is far above the rounding errors of these events."""
    return delta > _CLEAR * _taken(events)


def finite(bound: float) -> float | None:
    """The bound, or None where it is infinite."""
    return bound if math.isfinite(bound) else None


def pld(events: Sequence[Mapping], delta: float, size: float | None = None) -> float:
    """The epsilon by privacy loss distributions, on a grid that is fine relative to `size` or to the result."""
    from dp_accounting.pld import PLDAccountant

    left = delta - _taken(events)
    if left <= 0:
        return math.inf
    if size is None:
        size = float(PLDAccountant(value_discretization_interval=1e-3).compose(_composed(events)).get_epsilon(left))
        if not size or size >= 10:
            return size
    interval = max(1e-4 * size, 1e-8)
    return float(PLDAccountant(value_discretization_interval=interval).compose(_composed(events)).get_epsilon(left))


def uncut(events: Sequence[Mapping]) -> list[dict]:
    """The same events with untruncated Poisson batches."""
    return [dict(event) | ({"sampling": "poisson"} if event["sampling"] == CUT else {}) for event in events]


def chance_of_a_cut(events: Sequence[Mapping]) -> float:
    """A bound on the probability that any batch is truncated, with SciPy's error included."""
    from scipy.stats import binom

    return sum(
        event["count"] * (_tail(binom.sf(event["largest_batch"], event["units"] + 1, event["sampling_rate"])))
        for event in events
        if event["sampling"] == CUT
    )


def _tail(chance: float) -> float:
    return float(chance) * (1 + 1e-6) + sys.float_info.min  # never 0, where the chance underflows


def beside_cuts(epsilon_at: Callable[[float], float], chance: float, delta: float) -> float:
    """The least epsilon found with delta_0 + (1 + e^epsilon) chance <= delta; infinite where there is none.

    Args:
        epsilon_at: delta_0 -> the epsilon if no batch were cut.
    """
    if not chance:
        return epsilon_at(delta)
    least, rest = math.inf, delta / 2
    for _ in range(3):
        if rest <= 0 or rest + 2 * chance > delta:
            break
        epsilon = epsilon_at(rest)
        if epsilon > 700 or rest + (1 + math.exp(epsilon)) * chance > delta * (1 + 1e-12):
            break
        least, rest = min(least, epsilon), delta - (1 + math.exp(epsilon)) * chance
    return least


def _taken(events: Sequence[Mapping]) -> float:
    """What rounding can take from the delta; full-batch releases of an event are composed as one."""
    return ROUNDING * sum(1 + (event["count"] if event["sampling"] in ("poisson", CUT) else 1) for event in events)


def _composed(events: Sequence[Mapping]):
    import dp_accounting

    return dp_accounting.ComposedDpEvent([_dp_event(event) for event in events])


def _dp_event(event: Mapping):
    import dp_accounting

    release = dp_accounting.GaussianDpEvent(event["noise_multiplier"])
    if event["sampling"] == "poisson":
        release = dp_accounting.PoissonSampledDpEvent(event["sampling_rate"], release)
    elif event["sampling"] == CUT:
        release = dp_accounting.TruncatedSubsampledGaussianDpEvent(
            event["units"] + 1, event["sampling_rate"], event["largest_batch"], event["noise_multiplier"]
        )
    return dp_accounting.SelfComposedDpEvent(release, event["count"])
