"""The noise that an algorithm needs for a budget, by accounting alone, without records.

The noise multiplier s is always the standard deviation of the noise on a *sum* of gradients, divided by the bound on
one record's gradient: the clipping norm for DP-SGD, the Lipschitz constant for iteration. Equal s are equal noise.
"""

import math

from dpstudy.privacy.budget import Budget
from dpstudy.privacy.calibration import calibrate
from dpstudy.privacy.events import ITERATED, Event
from dpstudy.privacy.iteration import for_a_share

PROTECTED_SHARE = 0.99  # tramer2021, footnote 12


def noise_level(
    algorithm: str, accounting: str, epsilon: str, delta: float, *, records: int, batch_size: int, epochs: int
) -> float:
    """The noise multiplier that an algorithm needs for this budget.

    >>> round(noise_level("iteration", "certified", "3", 1e-5, records=50_000, batch_size=512, epochs=10), 2)
    1.07

    Args:
        algorithm: "dp-sgd" (Poisson sampling), "iteration" (99 % of the records have the budget, the order being
            known), or "iteration-secret" (all have it, the order being random and secret).
        accounting: "certified" (PLD for DP-SGD, exact Gaussian DP for iteration; one record is added, removed or
            emptied), or "tramer2021": see `_published_iteration` and `published.tramer2021`.
        epsilon: finite, as in a config.
        records, batch_size, epochs: n, B and K.

    Raises:
        StudyError: no noise reaches the budget in this accounting (Renyi DP of few orders at a small epsilon).
    """
    rate, batches = batch_size / records, math.ceil(records / batch_size)
    budget = Budget(epsilon, delta, accounting)
    if algorithm == "dp-sgd":
        steps = max(1, round(epochs / rate))
        return calibrate(lambda s: (Event("gradient", "gaussian", s, 1.0, steps, "poisson", rate),), budget)
    if accounting != "certified":
        return _published_iteration(epsilon, delta, batches, epochs)
    secret = algorithm == "iteration-secret"

    def iterated(s: float) -> tuple[Event, ...]:
        return (Event("gradient", ITERATED, s, 1.0, batches * epochs, "shuffle", rate, epochs, secret),)

    if secret:
        return calibrate(iterated, budget)
    return calibrate(lambda s: for_a_share(iterated(s), PROTECTED_SHARE), budget)


def _published_iteration(epsilon: str, delta: float, batches: int, epochs: int) -> float:
    """As tramer2021 seems to have computed it, for its Figure 9: one record is replaced, which moves the sum by twice
    the bound (Feldman et al. 2018, Theorem 22); the conversion of Lemma B.4 at the best of all orders, which is
    rho + 2 sqrt(rho ln(1/delta)); batches counted as equal, so that 99 % of 98 of them is all.

    The paper states none of the three. They give its crossing with DP-SGD at epsilon above 40; the one at 0.2 is where
    DP-SGD's curve ends, because the orders in use reach no smaller epsilon than ln(1/delta)/62.
    """

    def iterated(s: float) -> tuple[Event, ...]:
        step = Event("gradient", ITERATED, s / 2, 2.0, batches * epochs, "shuffle", 1 / batches, epochs)
        return for_a_share((step,), PROTECTED_SHARE)

    return calibrate(iterated, Budget(epsilon, delta, "mehta2023"))
