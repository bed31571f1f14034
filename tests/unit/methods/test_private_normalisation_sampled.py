"""Private normalisation from Poisson samples: what is taken, noised and divided by is what the ledger's events say."""

import math
import secrets

import numpy as np
import pytest
from scipy import stats

from dpstudy.core.errors import StudyError
from dpstudy.methods import first_order, iterated_sgd, network_dpsgd, schedule
from dpstudy.methods.private_normalisation import (
    MEAN,
    SQUARE,
    ChannelSums,
    Normalisation,
    channel_sums,
    release,
)
from dpstudy.methods.private_normalisation import events as events_of
from dpstudy.methods.problem import Problem
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import check_releases
from dpstudy.privacy.noise import NoiseSource
from dpstudy.privacy.renyi import rdp_epsilon

RATE, N = 0.3, 4000
SAMPLED = Normalisation(mean_clip=0.7, square_clip=1.9, noise_multiplier=8.0, sampling_rate=RATE)
BUDGET = Budget("2", 1e-5)


def events(normalisation):
    return events_of(normalisation, Problem(N, (5,), 4, BUDGET))


def source(seed=None):
    return NoiseSource("seeded", "test", secrets.randbits(60) if seed is None else seed)


def taken(seed=None, rows=500, blocks=1):
    """(2, rows): who took part in the sums of means and of squares; record i has its own channel i."""
    problem = Problem(rows, (rows,), 4, BUDGET)
    loud = Normalisation(1.0, 1.0, 8.0, sampling_rate=RATE)
    parts = np.array_split(np.eye(rows, dtype=np.float32), blocks)
    sums = channel_sums(parts, loud, problem, source(seed))
    return np.stack([sums.mean, sums.square]) > 0


def test_each_release_takes_each_record_at_the_accounted_rate_independently_of_the_other():
    found = np.concatenate([taken() for _ in range(16)], axis=1)
    for who, event in zip(found, events(SAMPLED), strict=True):
        assert event.sampling == "poisson"
        assert stats.binomtest(int(who.sum()), who.size, event.sampling_rate).pvalue > 1e-7
    both = stats.binomtest(int((found[0] & found[1]).sum()), found.shape[1], RATE**2)
    assert both.pvalue > 1e-7, "one sample for both releases would be another mechanism than the two events"


def test_a_sample_is_never_everybody_for_want_of_a_source():
    with pytest.raises(ValueError, match="needs a noise source"):
        channel_sums([np.ones((4, 5), np.float32)], SAMPLED, Problem(N, (5,), 4, BUDGET))


def test_samples_are_fresh_for_each_seed_and_do_not_depend_on_blocks():
    one, same, other = taken(5, 600), taken(5, 600, blocks=7), taken(6, 600)
    assert np.array_equal(one, same)
    for first, second in zip(one, other, strict=True):
        assert stats.binomtest(int((first & second).sum()), 600, RATE**2).pvalue > 1e-7


@pytest.mark.parametrize("shape", [(6,), (3, 1, 2)])
def test_one_record_changes_a_sampled_sum_by_at_most_its_sensitivity(shape):
    rng, rows = np.random.default_rng(secrets.randbits(60)), 12
    problem = Problem(rows, shape, 4, BUDGET)
    base = rng.standard_normal((rows, 6)).astype(np.float32)
    largest = {MEAN: 0.0, SQUARE: 0.0}
    for seed in range(12):  # in some of them the record takes part
        before = channel_sums([base], SAMPLED, problem, source(seed))
        for scale in (0.01, 1.0, 1e3, np.nan):
            more = np.vstack([base, np.full((1, 6), scale, np.float32)])
            after = channel_sums([more], SAMPLED, problem, source(seed))
            largest[MEAN] = max(largest[MEAN], float(np.linalg.norm(after.mean - before.mean)))
            largest[SQUARE] = max(largest[SQUARE], float(np.linalg.norm(after.square - before.square)))
    for event in events(SAMPLED):
        assert 0.99 * event.sensitivity <= largest[event.name] <= event.sensitivity * (1 + 1e-5)


def test_the_noise_is_what_the_ledger_says_and_the_divisor_is_the_public_expectation():
    channels, level = 20_000, 500.0
    problem = Problem(10, (channels,), 4, BUDGET)
    sums = ChannelSums(np.full(channels, 3.0), np.full(channels, level))
    center, scale = release(sums, SAMPLED, problem, source())
    mean = center.astype(np.float64) * RATE * problem.n
    square = (scale.astype(np.float64) ** -2 + center.astype(np.float64) ** 2) * RATE * problem.n
    for values, expected, event in zip((mean, square), (3.0, level), events(SAMPLED), strict=True):
        std = event.noise_multiplier * event.sensitivity
        assert values.std() == pytest.approx(std, rel=0.05)
        assert values.mean() == pytest.approx(expected, abs=6 * std / math.sqrt(channels))


def test_the_sampled_statistics_are_those_of_the_whole_on_average():
    rng = np.random.default_rng(3)
    rows = (0.1 * rng.standard_normal((N, 5)) + np.arange(5) / 100).astype(np.float32)
    problem = Problem(N, (5,), 4, Budget("inf", 1e-5))
    sums = channel_sums([rows], SAMPLED, problem, source())
    center, scale = release(sums, SAMPLED, problem, source())
    error = 6 * np.sqrt((rows.astype(np.float64) ** 2).mean(0) * (1 - RATE) / (RATE * N))
    assert (np.abs(center - rows.mean(0)) < error).all()
    assert scale**-2.0 == pytest.approx((rows**2).mean(0) - center**2, rel=0.35)  # 6 standard errors


def test_the_accountant_amplifies_by_the_rate_and_composes_both():
    fixed = Normalisation(0.7, 1.9, 2.0)
    halved = Normalisation(0.7, 1.9, 2.0, sampling_rate=0.5)
    whole = certify(events(fixed), 1e-5).epsilon
    found = certify(events(halved), 1e-5)
    assert found.accountant.startswith("PLD")
    assert found.epsilon < 0.75 * whole
    assert found.epsilon <= rdp_epsilon(events(halved), 1e-5)
    # the other provable way, one sample for both sums: a joint Gaussian of multiplier sigma/sqrt(2), sampled once
    joint = certify([Event("both", "gaussian", 2.0 / math.sqrt(2), 1.0, 1, "poisson", 0.5)], 1e-5).epsilon
    assert found.epsilon == pytest.approx(joint, rel=0.35)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (first_order, {"batch_size": 100}),
        (first_order, {}),
        (network_dpsgd, {"network": "scatter-28", "batch_size": 100}),
    ],
)
def test_a_fit_draws_its_samples_and_its_ledger_bears_them(method, options, monkeypatch):
    shape, rows = (3, 7, 7), 400
    rng = np.random.default_rng(1)
    data = rng.standard_normal((rows, 147)).astype(np.float32), rng.integers(4, size=rows)
    normalisation = {"mean_clip": 20.0, "square_clip": 90.0, "noise_multiplier": 8.0, "sampling_rate": RATE}
    settings = {"learning_rate": 0.1, "clipping_norm": 0.5, "steps": 2, "normalisation": normalisation} | options
    parameters = method.Parameters(**settings)
    problem = Problem(rows, shape, 4, BUDGET)
    monkeypatch.setattr(schedule, "calibrate", lambda events_at, budget: 4.0)
    plan = method.plan(parameters, problem)
    assert [(event.name, event.sampling, event.sampling_rate) for event in plan.events[:2]] == [
        (MEAN, "poisson", RATE),
        (SQUARE, "poisson", RATE),
    ]
    prepared = method.prepare([data], parameters, problem)
    assert prepared.sums is None, "sums that seeds share would be one sample for all of them"
    noise = source()
    model = method.fit(prepared, parameters, problem, plan, noise).model
    check_releases(plan.events, noise.drawn)
    assert np.isfinite(model.center).all()
    quiet = Problem(rows, shape, 4, Budget("inf", 1e-5))
    models = [method.fit(prepared, parameters, quiet, method.plan(parameters, quiet), source(s)).model for s in (1, 2)]
    assert not np.allclose(models[0].center, models[1].center), "each seed has samples of its own"


def test_a_plan_with_sampled_statistics_stays_within_its_budget():
    budget = Budget("2", 1e-5, "tramer2021")  # Renyi DP: quick, and never below what is certified
    parameters = first_order.Parameters(0.1, 0.1, batch_size=500, steps=20, normalisation=SAMPLED)
    plan = first_order.plan(parameters, Problem(1000, (5,), 10, budget))
    certified = certify(plan.events, 1e-5)
    assert 1.5 < certified.epsilon <= 2 and certified.adjacency == "add-remove-one"
    assert certified.epsilon_by["exact"] is None, "no closed form once anything is sampled"
    assert [event.count for event in first_order.spent(plan, 2)] == [1, 1, 2]


@pytest.mark.parametrize("rate", [0, -0.1, 1.5, math.nan])
def test_a_rate_without_meaning_is_refused(rate):
    with pytest.raises(StudyError, match="normalisation: sampling_rate .*above 0 and at most 1"):
        Normalisation(1.0, 1.0, 8.0, sampling_rate=rate)


def test_batches_that_are_not_sampled_beside_a_sampled_normalisation_are_refused():
    shared = {"learning_rate": 1.0, "clipping_norm": 0.1, "batch_size": 10, "normalisation": SAMPLED}
    with pytest.raises(StudyError, match=r"first_order: .*no common adjacency.*normalisation\.sampling_rate"):
        first_order.Parameters(steps=2, sampling="shuffle", **shared)
    with pytest.raises(StudyError, match=r"iterated_sgd: .*no common adjacency.*normalisation\.sampling_rate"):
        iterated_sgd.Parameters(epochs=2, **shared)
