"""Faults in the mechanisms, applied to the running code: each is caught, under fresh seeds, by attack or by check.

docs/privacy.md has the table of which catches which.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from dpstudy import methods
from dpstudy.auditing.canaries import game_of
from dpstudy.auditing.many_runs import attack
from dpstudy.methods import first_order, gradients, least_squares, sampling
from dpstudy.methods.problem import Problem
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.ledger import check_run
from dpstudy.privacy.noise import NoiseSource

RUNS, LEVEL = 4000, 1 - 1e-6
SGD = {"learning_rate": 1.0, "clipping_norm": 0.7, "steps": 5}
METHODS = {
    "least_squares": {},
    "feature_covariance": {},
    "newton": {},
    "first_order": SGD,
}


def refuted(method, settings=None, runs=RUNS, epsilon="8", **facts):
    """Whether the attack finds more than is certified, and by how much."""
    problem = Problem(60_000, (50,), 10, Budget(epsilon, 1e-5), **facts)
    settings = METHODS[method] if settings is None else settings
    game = game_of(method, methods.parameters(method, settings), problem)
    certified = certify(game.plan.events, 1e-5).epsilon
    return max(bound["epsilon_lower"] for bound in attack(game, runs, LEVEL)) > certified


@pytest.mark.parametrize("method", METHODS)
def test_as_it_is_nothing_is_refuted(method):
    assert not refuted(method, runs=2000)


@pytest.mark.parametrize(("factor", "method"), [(0.5, name) for name in METHODS] + [(0.9, "least_squares")])
def test_less_noise_is_caught_by_attack(monkeypatch, method, factor):
    """A tenth less on the tight ones; Newton's canaries do not reach its sensitivity, but half the noise shows."""
    released = NoiseSource.released

    def less(self, name, query, std, *arguments, **options):
        return released(self, name, query, factor * std, *arguments, **options)

    monkeypatch.setattr(NoiseSource, "released", less)
    assert refuted(method, runs=30_000 if factor > 0.5 else RUNS)


def test_a_gradient_that_is_not_clipped_is_caught_by_attack(monkeypatch):
    clipped = gradients.clipped_sum

    def unclipped(records, weights, head, *more):
        return clipped(records, weights, replace(head, clipping_norm=math.inf), *more)

    monkeypatch.setattr(first_order, "clipped_sum", unclipped)
    assert refuted("first_order", runs=1000)


def test_features_that_are_not_clipped_are_caught_by_attack(monkeypatch):
    summed = least_squares.accumulate

    def unclipped(batches, classes, norm, *more, **options):
        return replace(summed(batches, classes, math.inf, *more, **options), clipping_norm=norm)

    monkeypatch.setattr(least_squares, "accumulate", unclipped)
    assert refuted("least_squares", runs=1000)


def test_a_record_that_counts_twice_is_caught_by_attack(monkeypatch):
    clipped = gradients.clipped_sum
    monkeypatch.setattr(first_order, "clipped_sum", lambda *arguments: 2 * clipped(*arguments))
    assert refuted("first_order")


def test_a_bias_that_is_appended_after_the_clip_is_caught_by_attack(monkeypatch):
    """Then a record adds its whole residual to the bias: at C = 0.005 nearly 200 times what is charged for."""
    clipped = gradients.clipped_sum

    def late(records, weights, head, *more):
        found = clipped(records, weights, head, *more)
        residual = torch.full((len(found),), 1 / len(found))
        residual[0] -= 1  # at zero weights, of the canary's class 0
        found[:, -1] = residual * sum(int((~torch.isnan(block.norms)).sum()) for block in records.blocks())
        return found

    def caught():
        problem = Problem(60_000, (50,), 10, Budget("8", 1e-5))
        game = game_of("first_order", methods.parameters("first_order", SGD | {"clipping_norm": 0.005}), problem)
        game = replace(game, canaries=1)  # the bias is hers too
        certified = certify(game.plan.events, 1e-5).epsilon
        return max(bound["epsilon_lower"] for bound in attack(game, 300, 0.999)) > certified

    assert not caught()
    monkeypatch.setattr(first_order, "clipped_sum", late)
    assert caught()


def test_noise_that_is_used_again_is_caught_by_the_source():
    source = NoiseSource("secure", "cell")
    query = np.zeros(5)
    source.released("gradient", query, 1.0, step=1)
    with pytest.raises(RuntimeError, match="already drawn"):
        source.released("gradient", query, 1.0, step=1)


def test_a_rate_that_is_one_over_the_batches_is_caught_at_the_end_of_the_run(monkeypatch):
    """1/13 where 4096 of 50,000 is accounted: what a loader of 13 batches would take."""
    settings = SGD | {"batch_size": 4096, "steps": 30}
    problem = Problem(50_000, (3,), 2, Budget("8", 1e-5))
    parameters = methods.parameters("first_order", settings)
    plan = first_order.plan(parameters, problem)
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(50_000, 3)).astype(np.float32), rng.integers(0, 2, 50_000))]
    batches = sampling.batches

    def run():
        source = NoiseSource("secure", "cell")
        first_order.fit(first_order.prepare(rows, parameters, problem), parameters, problem, plan, source)
        check_run(plan.events, source)

    run()
    monkeypatch.setattr(sampling, "batches", lambda count, rate, *more: batches(count, 1 / 13, *more))
    with pytest.raises(RuntimeError, match="not what chance allows"):
        run()
