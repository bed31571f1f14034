"""What the selections of a finished ledger are worth, by formulas that had no part in training.

The best of several runs: Papernot and Steinke (2022), Theorem 2, written down from the paper over the Renyi divergences
of Opacus. Choices: randomised response as a discretised privacy loss distribution (dp-accounting), composed
with those of the Gaussian releases beside it; and in closed form, the mean over its two losses.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence

_ORDERS = (*(1 + x / 20 for x in range(5, 400)), *range(21, 257), *(2.0 ** (k / 2) for k in range(17, 29)))


def best_run_bound(events: Sequence[Mapping], delta: float) -> float:
    """Epsilon of the best of a secret number of runs, each of which makes these releases.

    Args:
        events: as dictionaries, all with the same `trials`, the mean of their geometric number.
    """
    mean = events[0]["trials"]
    once = [sum(_renyi(event, order) for event in events) for order in _ORDERS]
    pairs = list(zip(_ORDERS, once, strict=True))
    constant = min(2 * (1 - 1 / order) * rdp + 2 * math.log(mean) / order for order, rdp in pairs)  # gamma = 1/mean
    whole = [rdp + constant + math.log(mean) / (order - 1) for order, rdp in pairs]
    return max(
        0.0,
        min(
            rdp + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)
            for order, rdp in zip(_ORDERS, whole, strict=True)
        ),
    )


def _renyi(event: Mapping, order: float) -> float:
    if event["sampling"] == "none" or event["sampling_rate"] == 1:
        return event["count"] * order / (2 * event["noise_multiplier"] ** 2)
    from opacus.accountants.analysis.rdp import compute_rdp

    rate, noise = event["sampling_rate"], event["noise_multiplier"]
    with warnings.catch_warnings():  # of logarithms of zero that are masked
        warnings.simplefilter("ignore")
        return float(compute_rdp(q=rate, noise_multiplier=noise, steps=event["count"], orders=float(order)))


def choice_delta(gaussian: Callable[[float], float] | None, choices: Sequence[float]) -> Callable[[float], float]:
    """delta as a function of epsilon of choices that are eps-DP each, beside releases of which `gaussian` is that."""
    if not choices:
        return gaussian or (lambda epsilon: max(0.0, 1 - math.exp(epsilon)))
    first, *others = choices
    rest = choice_delta(gaussian, others)
    share = math.exp(first) / (1 + math.exp(first))
    return lambda epsilon: share * rest(epsilon - first) + (1 - share) * rest(epsilon + first)


def choice_pld(events: Sequence[Mapping], choices: Sequence[float], delta: float, interval: float) -> float:
    """Epsilon by discretised privacy loss distributions.

    Args:
        events: the Gaussian releases, without sampling.
        choices: the eps of each choice.
    """
    from dp_accounting.pld import common, privacy_loss_distribution

    found = [
        privacy_loss_distribution.from_gaussian_mechanism(
            event["noise_multiplier"], value_discretization_interval=interval
        ).self_compose(event["count"])
        for event in events
    ]
    found += [
        privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(eps, 0), value_discretization_interval=interval
        )
        for eps in choices
    ]
    total = found[0]
    for other in found[1:]:
        total = total.compose(other)
    return float(total.get_epsilon_for_delta(delta))
