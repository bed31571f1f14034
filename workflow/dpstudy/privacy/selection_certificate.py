"""An independent computation of private selection's cost in a finished ledger.

The best of several runs: Papernot and Steinke (2022), Theorem 2, written down from the paper over Renyi divergences by
integration (privacy/renyi_certificate.py). Choices: randomised response as a discretised privacy loss distribution
(dp-accounting), composed with those of the Gaussian releases beside it; and in closed form, the mean over its losses.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from dpstudy.privacy.renyi_certificate import ORDERS, divergence_of, least_epsilon


def best_run_bound(events: Sequence[Mapping], delta: float, orders: Sequence[float] = ORDERS) -> float:
    """Epsilon of repeat and select: the best of a geometric number of runs, each with these releases.

    Args:
        events: as dictionaries, all with the same `trials`, the mean of their geometric number.
    """
    mean = events[0]["trials"]
    once = dict(zip(orders, map(divergence_of(events), orders), strict=True))
    constant = min(2 * (1 - 1 / order) * once[order] + 2 * math.log(mean) / order for order in orders)  # gamma = 1/mean
    whole, least = {}, math.inf
    for order in reversed(orders):  # a divergence of a larger order bounds those of smaller ones
        whole[order] = least = min(least, once[order] + constant + math.log(mean) / (order - 1))
    return least_epsilon(whole.__getitem__, delta, orders)


def choice_delta(gaussian: Callable[[float], float] | None, choices: Sequence[float]) -> Callable[[float], float]:
    """A function epsilon -> delta of eps-DP choices, composed with releases whose function is `gaussian`."""
    if not choices:
        return gaussian or (lambda epsilon: max(0.0, 1 - math.exp(epsilon)))
    first, *others = choices
    rest = choice_delta(gaussian, others)
    share = math.exp(first) / (1 + math.exp(first))
    return lambda epsilon: share * rest(epsilon - first) + (1 - share) * rest(epsilon + first)


def choice_pld(events: Sequence[Mapping], choices: Sequence[float], delta: float, interval: float) -> float:
    """Epsilon of choices and Gaussian releases by discretised privacy loss distributions.

    Args:
        events: the Gaussian releases, without sampling.
        choices: the eps of each choice.
    """
    from dp_accounting.pld import common, privacy_loss_distribution

    losses = [
        privacy_loss_distribution.from_gaussian_mechanism(
            event["noise_multiplier"], value_discretization_interval=interval
        ).self_compose(event["count"])
        for event in events
    ]
    losses += [
        privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(eps, 0), value_discretization_interval=interval
        )
        for eps in choices
    ]
    total = losses[0]
    for other in losses[1:]:
        total = total.compose(other)
    return float(total.get_epsilon_for_delta(delta))
