"""Whether a private model is worth training: the forecast compared with a threshold that the owner has set."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dpstudy.forecast.model import Forecast, Question, signal_of

WORTH, NOT, OPEN = "worth it", "not", "open"
_SIZES = [int(round(10 ** (exponent / 8))) for exponent in range(16, 49)]  # 100 to a million
_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True)
class Useful:
    """The config's `useful` (metric and threshold), with the metric's chance level and its maximum."""

    metric: str
    at_least: float
    chance: float
    most: float
    without_privacy: float | None = None

    def values(self, low: float, middle: float, high: float) -> tuple[float, float, float] | None:
        """The metric where these shares of the gain survive; None where the gain is not known."""
        if self.without_privacy is None:
            return None
        gain = self.without_privacy - self.chance
        return self.chance + low * gain, self.chance + middle * gain, self.chance + high * gain

    def needed(self, share: float) -> float:
        """The metric that a model without privacy must have, for `at_least` to be met with this share of the gain."""
        return self.chance + (self.at_least - self.chance) / share if share > 0 else math.inf


@dataclass(frozen=True)
class Verdict:
    """The forecast of one model, and whether it is worth training.

    Attributes:
        share: (low, middle, high) of the gain that survives.
        value: the same of the metric; None where the gain is not known.
        verdict: WORTH where all of the interval is enough, NOT where none of it is, else OPEN.
    """

    share: tuple[float, float, float]
    value: tuple[float, float, float] | None
    verdict: str


@dataclass(frozen=True)
class Plan:
    """The facts of a planned study.

    Attributes:
        units: that are learned from.
        epsilons, delta: finite ones, of its cells.
        scale: of the signal: records a unit has on average, over the most that noise is for.
        persons: whether the units are persons.
    """

    units: int
    epsilons: Sequence[float]
    delta: float
    scale: float = 1.0
    persons: bool = True


def verdict(forecast: Forecast, question: Question, useful: Useful) -> Verdict:
    """The verdict on a model."""
    share = forecast.share(question)
    value = useful.values(*share)
    if value is None:
        return Verdict(share, None, NOT if useful.needed(share[2]) > useful.most else OPEN)
    return Verdict(share, value, WORTH if value[0] >= useful.at_least else NOT if value[2] < useful.at_least else OPEN)


def what_would_do(
    forecasts: Mapping[str, Forecast], question: Question, useful: Useful, plan: Plan
) -> tuple[str, int, float] | None:
    """(method, units, epsilon): the fewest units, and then the smallest epsilon, that make a model worth it.

    None where a million units at an epsilon of 8 are not enough.
    """
    for size in [plan.units, *(size for size in _SIZES if size > plan.units)]:
        for epsilon in sorted({*plan.epsilons, *_EPSILONS}):
            for method, forecast in forecasts.items():
                signal = plan.scale * signal_of(size, epsilon, plan.delta)
                asked = replace(question, method=method, n=size, signal=signal)
                if verdict(forecast, asked, useful).verdict == WORTH:
                    return method, size, epsilon
    return None
