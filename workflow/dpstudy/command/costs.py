"""`dpstudy epsilon`: the epsilon of Gaussian releases by each accountant, or the noise that a target epsilon needs."""

import math

from dpstudy.core.errors import StudyError
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.calibration import calibrate
from dpstudy.privacy.events import Event
from dpstudy.privacy.printed import upper_bound

_ACCOUNTANTS = {
    "exact": "exact Gaussian DP",
    "pld": "privacy loss distributions",
    "rdp": "Rényi DP",
    "zcdp": "zero-concentrated DP",
}


def costs(
    n: int | None, batch: float | None, steps: int, delta: float, noise: float | None, epsilon: str | None
) -> list[str]:
    """The lines to print: the epsilon of these releases by each accountant, or the noise for a target.

    Args:
        n: units; may be left out without a batch.
        batch: expected size of a Poisson batch; None: every step sees all units.
        steps: noisy sums that are released.
        delta: in (0, 1).
        noise: noise multiplier; or None, and
        epsilon: the target, a number as text.

    Raises:
        StudyError: a number out of its range, or a target that no noise reaches.

    >>> print("\\n".join(costs(None, None, 1, 1e-5, 4.0, None)))
    1 release from all units, noise multiplier 4
    certified: ε = 0.9264 at δ = 1e-5, adding or removing one unit
      exact Gaussian DP             0.9264
      privacy loss distributions    0.9264
      Rényi DP                      1.013
      zero-concentrated DP          1.231
    """
    if steps < 1:
        raise StudyError(f"--steps {steps}: must be at least 1")
    if not 0 < delta < 1:
        raise StudyError("--delta: must lie between 0 and 1")
    if noise is not None and not (noise > 0 and math.isfinite(noise)):
        raise StudyError(f"--noise {noise:g}: must be a number above 0")
    rate = _rate(n, batch)

    def events_at(scale: float) -> list[Event]:
        return [Event("sums", "gaussian", scale, 1.0, steps, "poisson" if rate < 1 else "none", rate)]

    if noise is None:
        budget = Budget(str(epsilon), delta)
        if not budget.private:
            raise StudyError("--epsilon inf: costs no noise; give a number")
        noise = calibrate(events_at, budget)
    certificate = certify(events_at(noise), delta, complete=True)
    seen = "all units" if rate == 1 else f"Poisson batches, each unit with probability {rate:.6g}"
    return [
        f"{steps:,} release{'s' if steps > 1 else ''} from {seen}, noise multiplier {noise:.6g}",
        f"certified: ε = {upper_bound(certificate.epsilon)} at δ = {upper_bound(delta)}, adding or removing one unit",
        *(
            f"  {_ACCOUNTANTS.get(name, name):<30}{upper_bound(value)}"
            for name, value in certificate.epsilon_by.items()
            if value is not None and math.isfinite(value)
        ),
    ]


def _rate(n: int | None, batch: float | None) -> float:
    """q."""
    if n is not None and n < 1:
        raise StudyError(f"--n {n}: must be at least 1")
    if batch is None:
        return 1.0
    if n is None:
        raise StudyError("--batch: of how many? give --n too")
    if not 0 < batch <= n:
        raise StudyError(f"--batch {batch:g}: must lie between 0 and --n, {n}")
    return batch / n
