"""The certifying accountant's Renyi divergences, against many digits."""

import mpmath
import pytest

from dpstudy.privacy.renyi_certificate import divergence_of


@pytest.mark.parametrize(("noise", "rate"), [(0.7, 0.3), (4.0, 0.01), (900.0, 0.5), (1.0, 1e-4)])
@pytest.mark.parametrize("order", [1.75, 2, 5.5, 40])
def test_divergences_by_integration_are_those_of_many_digits(noise, rate, order):
    with mpmath.workdps(40):
        q, s = mpmath.mpf(rate), mpmath.mpf(noise)

        def logarithm(power):
            ends = sorted([-14, -5, 0, 5, 14, 14 + abs(order) / noise, *(k * order / noise / 4 for k in range(5))])
            return mpmath.log(
                mpmath.quad(
                    lambda x: mpmath.npdf(x) * (1 - q + q * mpmath.exp((2 * s * x - 1) / (2 * s * s))) ** power, ends
                )
            )

        exact = max(logarithm(mpmath.mpf(power)) for power in (order, 1 - order)) / (order - 1)
    found = divergence_of([{"noise_multiplier": noise, "sampling_rate": rate, "count": 3}])(order)
    assert found == pytest.approx(3 * float(exact), rel=1e-6)
