"""Calibration never spends more than the target, nor much less."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpstudy.core.errors import StudyError
from dpstudy.privacy import calibration, gaussian
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.calibration import affordable, calibrate
from dpstudy.privacy.events import Event
from dpstudy.privacy.renyi import rough_epsilon

TARGETS = ["0.01", "0.05", "0.1", "0.5", "1", "2.93", "8", "50"]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    epsilon=st.sampled_from(TARGETS),
    log_delta=st.floats(-14, -2),
    count=st.integers(1, 3000),
    share=st.floats(0.01, 0.99),
)
def test_full_batch_targets_are_met_from_below(epsilon, log_delta, count, share):
    delta = 10**log_delta

    def events_at(scale):
        return (
            Event("a", "gaussian", scale / math.sqrt(share), 3.0),
            Event("b", "gaussian", scale / math.sqrt(1 - share), 1.0, count),
        )

    spent = certify(events_at(calibrate(events_at, Budget(epsilon, delta))), delta).epsilon
    assert float(epsilon) * (1 - 2e-4) <= spent <= float(epsilon)


@pytest.mark.parametrize(("epsilon", "rate", "count"), [("2", 0.1, 40)])
def test_poisson_targets_are_met_from_below(epsilon, rate, count):
    def events_at(scale):
        return (Event("gradient", "gaussian", scale, 1.0, count, "poisson", rate),)

    scale = calibrate(events_at, Budget(epsilon, 1e-5))
    spent = certify(events_at(scale), 1e-5).epsilon
    assert float(epsilon) * (1 - 2e-4) <= spent <= float(epsilon)


def test_fixed_events_are_paid_from_the_same_budget():
    fixed = Event("normalisation", "gaussian", 8.0, 1.0, 2)

    def events_at(scale):
        return (fixed, Event("gradient", "gaussian", scale, 1.0, 10))

    scale = calibrate(events_at, Budget("1", 1e-5))
    goal = gaussian.mu_of(1.0, 1e-5)
    assert 10 / scale**2 == pytest.approx(goal**2 - 2 / 64, rel=1e-6)


@pytest.mark.parametrize("sampling", [("none", 1.0), ("poisson", 0.1)])
def test_an_unreachable_target_is_refused_in_one_sentence(sampling, monkeypatch):
    monkeypatch.setattr(calibration, "_LARGEST_LOG_SCALE", 6.0)
    monkeypatch.setattr(calibration, "certify", central_limit)

    def events_at(scale):
        return (Event("fixed", "gaussian", 0.5, 1.0), Event("gradient", "gaussian", scale, 1.0, 10, *sampling))

    with pytest.raises(StudyError, match="epsilon 1 at delta 1e-5 cannot be reached.*noise multiplier"):
        calibrate(events_at, Budget("1", 1e-5))


def central_limit(events, delta):
    """A quick stand-in for the certifying accountant, smaller than the rough Renyi bound."""
    mu = math.sqrt(sum(event.count * (event.sampling_rate / event.noise_multiplier) ** 2 for event in events))
    return SimpleNamespace(epsilon=gaussian.epsilon_of(mu, delta))


def test_a_target_that_only_the_tight_accountant_reaches_is_reached(monkeypatch):
    fixed = Event("normalisation", "gaussian", 3.75, 1.0)
    assert certify([fixed], 1e-5).epsilon < 1 < rough_epsilon([fixed], 1e-5)
    monkeypatch.setattr(calibration, "certify", central_limit)

    def events_at(scale):
        return (fixed, Event("gradient", "gaussian", scale, 1.0, 10, "poisson", 0.1))

    scale = calibrate(events_at, Budget("1", 1e-5))
    assert 1 - 2e-4 <= central_limit(events_at(scale), 1e-5).epsilon <= 1


def test_an_infinite_target_needs_no_noise():
    with pytest.raises(ValueError, match="infinite"):
        calibrate(lambda scale: (Event("a", "gaussian", scale, 1.0),), Budget("inf", 1e-5))


def test_unknown_accounting_names_what_there_is():
    with pytest.raises(StudyError, match="'mehta2024'.*'certified', 'mehta2023', 'tramer2021', 'de2022'"):
        calibrate(lambda scale: (Event("a", "gaussian", scale, 1.0),), Budget("1", 1e-5, "mehta2024"))


def test_zcdp_accounting_of_sampled_batches_is_refused():
    with pytest.raises(StudyError, match="mehta2023.*batch_size: full"):
        calibrate(
            lambda scale: (Event("a", "gaussian", scale, 1.0, 5, "poisson", 0.1),), Budget("1", 1e-5, "mehta2023")
        )


@pytest.mark.parametrize(("epsilon", "multiplier", "rate"), [("3", 2.0, 1.0), ("2", 2.0, 0.1), ("0.5", 6.0, 0.2)])
def test_affordable_steps_are_the_most_within_the_budget(epsilon, multiplier, rate):
    budget = Budget(epsilon, 1e-5)
    sampling = "none" if rate == 1 else "poisson"

    def events(steps):
        return (Event("gradient", "gaussian", multiplier, 1.0, steps, sampling, rate),)

    steps = affordable(events, budget)
    assert certify(events(steps), 1e-5).epsilon <= float(epsilon) < certify(events(steps + 1), 1e-5).epsilon


def test_noise_too_small_for_one_step_is_refused():
    with pytest.raises(StudyError, match="not even one step is within it; raise the noise multiplier"):
        affordable(lambda steps: (Event("gradient", "gaussian", 0.5, 1.0, steps),), Budget("1", 1e-5))


def test_affordable_steps_stop_at_the_most():
    assert affordable(lambda steps: (Event("g", "gaussian", 1e3, 1.0, steps),), Budget("8", 1e-5), most=1000) == 1000
