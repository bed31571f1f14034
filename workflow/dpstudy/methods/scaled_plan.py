"""Plans whose releases share one scale of noise, calibrated to the budget."""

from collections.abc import Mapping, Sequence

from dpstudy.methods.problem import Plan
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.calibration import calibrate
from dpstudy.privacy.events import Event


def scaled_plan(
    unit: Sequence[Event], budget: Budget, facts: Mapping[str, float] | None = None, fixed: Sequence[Event] = ()
) -> Plan:
    """The plan that releases `unit` with as little noise as the budget allows.

    Args:
        unit: the releases at the noise whose common scale is sought; each of another name, or the last of a name
            stands for it in the plan's noise and facts.
        budget: a finite one, of these releases and the `fixed` ones.
        facts: of the plan; the noise multipliers come after them.
        fixed: releases beside them, which are not in the plan.

    Raises:
        StudyError: no scale meets the budget (`calibrate`).
    """
    scale = calibrate(lambda scale: (*fixed, *(event.scaled(scale) for event in unit)), budget)
    events = tuple(event.scaled(scale) for event in unit)
    multipliers = {f"noise_multiplier_{event.name}": event.noise_multiplier for event in events}
    return Plan(events, {event.name: event.deviation for event in events}, {**(facts or {}), **multipliers})
