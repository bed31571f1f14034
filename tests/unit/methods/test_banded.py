"""Noise correlated across steps: against dense matrices, a slow training, and an attacker who sees all releases."""

import math
import secrets
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpstudy.auditing.canaries import game_of
from dpstudy.auditing.many_runs import attack
from dpstudy.auditing.one_run import play_once
from dpstudy.core.errors import StudyError
from dpstudy.methods import first_order, network_dpsgd, sampling
from dpstudy.methods.banded import BandedReleases, coefficients
from dpstudy.methods.problem import Problem
from dpstudy.methods.schedule import spent
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.certificate import recertify
from dpstudy.privacy.ledger import build_ledger, check_run
from dpstudy.privacy.ledger_events import from_ledger
from dpstudy.privacy.noise import NoiseSource

N, DIM, CLASSES = 240, 6, 3


@pytest.fixture
def problem():
    return Problem(N, (DIM,), CLASSES, Budget("2", 1e-5))


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    return (2 * rng.standard_normal((N, DIM))).astype(np.float32), rng.integers(CLASSES, size=N)


def settings(**options):
    chosen = {"learning_rate": 0.5, "clipping_norm": 0.8, "steps": 10, "batch_size": 24, "bands": 4}
    return first_order.Parameters(**chosen | options)


def source(key=None):
    made = NoiseSource("seeded", "test", secrets.randbits(50) if key is None else key)
    made.transcript = []
    return made


def dense(bands, steps, momentum=0.0):
    """C, (steps, steps)."""
    matrix, column = np.zeros((steps, steps)), coefficients(bands, momentum)
    for step in range(steps):
        below = column[: steps - step]
        matrix[step : step + len(below), step] = below
    return matrix


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_coefficients_are_those_of_the_square_root_of_sums_and_steps_of_a_unit_share_no_row(momentum):
    steps = 12
    sums = np.tril(np.ones((steps, steps)))
    carried = np.tril(momentum ** np.abs(np.subtract.outer(np.arange(steps), np.arange(steps))))  # 0 ** 0 is 1
    root = dense(steps, steps, momentum)
    root /= root[0, 0]
    assert root @ root == pytest.approx(sums @ carried)  # to take steps is to sum up what momentum makes of gradients
    matrix = dense(4, steps, momentum)
    assert np.linalg.norm(matrix, axis=0).max() == pytest.approx(1.0)
    for first in range(4):
        own = matrix[:, first::4]
        assert own.T @ own == pytest.approx(np.diag(np.diag(own.T @ own)))
    assert np.abs(np.linalg.inv(dense(4, 400, momentum))).sum(1).max() < 30  # rounding does not grow with the steps


def test_estimates_are_gradients_and_what_the_inverse_makes_of_independent_noise():
    rng, noise = np.random.default_rng(4), source()
    gradients, releases = rng.standard_normal((11, 5)), BandedReleases(4, 0.5)
    found = np.array([releases.released(noise, "gradient", g, 0.3, step) for step, g in enumerate(gradients, start=1)])
    rows = np.array([row for *_, row in noise.transcript])
    matrix = dense(4, 11, 0.5)
    assert matrix @ found == pytest.approx(rows, abs=1e-5)
    assert np.std(rows - matrix @ gradients) == pytest.approx(0.3, rel=0.5)
    silent = BandedReleases(4, 0.5)
    for step, gradient in enumerate(gradients, start=1):
        assert silent.released(source(), "gradient", gradient, 0.0, step) == pytest.approx(gradient, abs=1e-5)


def test_one_band_is_dpsgd_to_the_bit(problem, rows):
    made = []
    for options in ({}, {"bands": 1}):
        parameters = settings(**{"bands": 1} | options)
        plan = first_order.plan(parameters, problem)
        made.append(
            first_order.fit(first_order.prepare([rows], parameters, problem), parameters, problem, plan, source(1))
        )
    assert made[0].model.weights.tobytes() == made[1].model.weights.tobytes()
    assert "bands" not in repr(settings(bands=1)) and "bands=4" in repr(settings())  # what keys the noise of fit


def test_a_unit_takes_part_in_every_fourth_step_at_most_and_at_the_rate_of_its_group():
    taken, told = np.zeros((300, 400)), []
    drawn = sampling.grouped_batches(400, 0.3, 4, 300, source(), lambda *counts: told.append(counts))
    for step, index in enumerate(drawn):
        taken[step, index] += 1
    assert taken.max() == 1
    turns = taken.reshape(75, 4, 400).sum(0)  # of each unit, how often in which place of a turn
    assert (np.count_nonzero(turns, axis=0) <= 1).all()
    groups = np.bincount(turns.argmax(0), minlength=4)
    assert stats.chisquare(groups).pvalue > 1e-7
    assert stats.binomtest(int(taken.sum()), 75 * 400, 0.3).pvalue > 1e-7
    assert sum(took for took, _ in told) == taken.sum() and sum(count for _, count in told) == 75 * 400


def test_training_equals_a_slow_one_that_adds_the_noise_of_the_inverse(problem, rows):
    parameters = settings(momentum=0.5)
    plan, noise = first_order.plan(parameters, problem), source(5)
    data = first_order.prepare([rows], parameters, problem)
    fitted = first_order.fit(data, parameters, problem, plan, noise).model
    assert plan.facts["sampling_rate"] == 0.1 and plan.events[0].sampling_rate == pytest.approx(0.4)
    check_run(plan.events, noise, N)
    estimates = np.linalg.inv(dense(4, 10, 0.5)) @ np.array([row.ravel() for *_, row in noise.transcript])
    weights = velocity = np.zeros(estimates.shape[1])
    for estimate in estimates:
        velocity = 0.5 * velocity + estimate / 24
        weights = weights - 0.5 * velocity
    bias = fitted.bias if getattr(fitted, "bias", None) is not None else np.zeros((CLASSES, 0))
    assert np.column_stack([fitted.weights, bias]).ravel() == pytest.approx(weights, abs=1e-4)


def test_the_ledger_has_turns_on_samples_of_a_group(problem):
    events = first_order.plan(settings(), problem).events
    (event,) = events
    assert (event.count, event.bands, event.sampling) == (3, 4, "poisson")  # 10 steps: the third turn is half a one
    assert (event.sampling_rate, event.sensitivity) == (pytest.approx(24 * 4 / N), 0.8)
    stated = build_ledger(events, problem.budget, n=N, unit="record", noise="seeded")
    assert stated["guarantee"] == "proved" and from_ledger(stated["events"]) == events
    plan = first_order.plan(settings(), problem)
    assert [spent(plan, step)[0].count for step in (1, 4, 5, 8, 9, 10)] == [1, 1, 2, 2, 3, 3]
    (whole,) = first_order.plan(settings(bands=10), problem).events
    assert (whole.sampling, whole.sampling_rate, whole.count) == ("none", 1.0, 1)


def moved(parameters, problem, rows, record):
    """(turns, rows of a turn, numbers) what a record adds to the rows on the path of one run; everybody takes part."""
    plan, features, labels = first_order.plan(parameters, problem), *rows
    run = source(9)
    data = first_order.prepare([rows], parameters, problem)
    first_order.fit(data, parameters, problem, plan, run)

    class Played(NoiseSource):
        def released(self, name, query, std, step=0, tensor="", symmetric=False):
            queries.append(np.array(query))
            return run.transcript[len(queries) - 1][3].copy()

        def sampling(self, name):
            generator = super().sampling(name)
            return type(
                "Everybody", (), {"random": lambda self, n, dtype: np.zeros(n), "integers": generator.integers}
            )()

    sums = []
    for extra in (0, 1):
        queries: list[np.ndarray] = []
        sums.append(queries)
        more = (np.vstack([features, record[None]][: 1 + extra]), np.append(labels, np.zeros(extra, labels.dtype)))
        chosen = first_order.prepare([more], parameters, problem)
        first_order.fit(chosen, parameters, problem, plan, Played("seeded", "test", 9))
    return np.array(sums[1], dtype=np.float64) - sums[0]


def test_a_record_moves_the_rows_of_each_step_of_its_own_by_its_clipping_norm(problem, rows):
    parameters = settings(steps=12, learning_rate=1e-9)  # so that no record is learned
    change = moved(parameters, problem, rows, np.full(DIM, 1e4, np.float32)).reshape(12, -1)
    lengths = np.linalg.norm(change, axis=1)
    first = int(np.flatnonzero(lengths > 1e-4)[0])
    assert first < 4
    for start in range(first, 12, 4):
        part = np.linalg.norm(change[start : start + 4])
        whole = 0.8 if start + 4 <= 12 else 0.8 * np.linalg.norm(coefficients(4, 0.9)[: 12 - start])
        assert part == pytest.approx(whole, rel=1e-3)
    assert lengths[:first].max(initial=0) < 1e-4


def test_an_attacker_with_all_releases_finds_what_is_certified_and_no_more():
    """Exact log-likelihood ratios of a record whose gradient never changes: the loss that the accountant composes."""
    bands, steps, rate, noise = 3, 12, 0.25, 1.2  # the rate within a group
    rng, runs = np.random.default_rng(secrets.randbits(60)), 40_000
    matrix, group = dense(bands, steps), rng.integers(bands, size=runs)
    own = (np.arange(steps)[None] % bands == group[:, None]) & (rng.random((runs, steps)) < rate)
    ends = {}
    for present in (True, False):
        rows = (own * present) @ matrix.T + noise * rng.standard_normal((runs, steps))
        each = np.zeros((runs, bands))  # by the group that the record might be in, which nobody tells the attacker
        for place in range(bands):
            for step in range(place, steps, bands):
                column = matrix[:, step]
                full = (rows @ column - column @ column / 2) / noise**2
                each[:, place] += np.logaddexp(np.log1p(-rate), np.log(rate) + full)
        ends[present] = each[np.arange(runs), group]  # an attacker who knows the group loses nothing
    problem = Problem(1000, (2,), 2, Budget("50", 1e-2))
    options = {"noise_multiplier": noise, "batch_size": round(1000 * rate / bands), "steps": steps, "bands": bands}
    (event,) = first_order.plan(settings(**options), problem).events
    assert (event.noise_multiplier, event.count) == (noise, 4) and event.sampling_rate == pytest.approx(rate, rel=0.01)
    ledger = build_ledger([event], Budget("50", 1e-2), n=1000, unit="record", noise="seeded")
    losses = np.sort(ends[True])
    for epsilon in (0.9 * ledger["epsilon"], 1.1 * ledger["epsilon"]):
        delta = np.mean(np.maximum(0.0, -np.expm1(epsilon - losses)))
        error = 5 * np.std(np.maximum(0.0, -np.expm1(epsilon - losses))) / math.sqrt(runs)
        assert (delta + error > 1e-2) == (epsilon < ledger["epsilon"]), (delta, error)


@pytest.mark.slow
@pytest.mark.parametrize(("batch_size", "factor"), [(60, 0.25), (20, 0.1)])
def test_the_audit_finds_less_than_is_certified_and_more_with_less_noise(monkeypatch, batch_size, factor):
    problem = Problem(N, (DIM,), CLASSES, Budget("4", 1e-5))
    game = game_of("first_order", settings(batch_size=batch_size, steps=8), problem)
    assert 0.1 < max(bound["epsilon_lower"] for bound in attack(game, 4000, 1 - 1e-6)) <= 4
    released = NoiseSource.released
    monkeypatch.setattr(
        NoiseSource, "released", lambda self, name, query, std, *more: released(self, name, query, factor * std, *more)
    )
    assert max(bound["epsilon_lower"] for bound in attack(game, 12_000, 0.999)) > 4


@pytest.mark.slow
def test_networks_are_attacked_by_estimates_of_their_gradients():
    options = {"network": "lenet", "learning_rate": 0.1, "clipping_norm": 1.0, "steps": 4, "batch_size": 15_000}
    problem = Problem(60_000, (1, 28, 28), CLASSES, Budget("1000", 1e-5))
    for bands, least in (
        (1, 0.1),
        (4, 0.8),
    ):  # of four steps a canary is in each with probability 1/4, or in one for sure
        game = game_of("network_dpsgd", network_dpsgd.Parameters(**options, bands=bands), problem)
        assert np.corrcoef(play_once(game, 60))[0, 1] > least


def test_what_cannot_go_with_bands_is_said(problem):
    for wrong in ({"batch_size": "full"}, {"sampling": "shuffle"}, {"largest_batch": 60}):
        with pytest.raises(StudyError, match="bands 4: is for Poisson batches without largest_batch"):
            settings(**wrong)
    with pytest.raises(StudyError, match="bands 11 x batch_size 24 exceed the 240 training records"):
        first_order.plan(settings(bands=11), problem)
    with pytest.raises(StudyError, match="bands 4: mixes sums of several steps, .* set bands: 1"):
        first_order.plan(settings(), replace(problem, secure=True))


@pytest.mark.parametrize("batch_size", [60, 20])
def test_independent_accountants_agree_with_the_ledger(batch_size):
    problem = Problem(N, (DIM,), CLASSES, Budget("2", 1e-5))
    events = first_order.plan(settings(batch_size=batch_size), problem).events
    ledger = build_ledger(events, problem.budget, n=N, unit="record", noise="seeded")
    found = recertify(ledger, [{event.name: event.count for event in events}])
    assert found["faults"] == [] and found["bounds"]["rdp"] >= 0.99 * ledger["epsilon"]
    assert recertify(ledger | {"epsilon": ledger["epsilon"] / 1.2})["faults"]
