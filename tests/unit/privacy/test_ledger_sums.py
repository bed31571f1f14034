"""Ledgers that touch the same records, added up."""

import functools
import math

import pytest

from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.ledger_sums import total
from dpstudy.privacy.renyi import rdp_epsilon

GAUSSIAN = Event("gram", "gaussian", 5.0, 1.0)
POISSON = Event("gradient", "gaussian", 4.0, 1.0, 20, "poisson", 0.05)
SHUFFLE = Event("gradient", "gaussian", 4.0, 1.0, 20, "shuffle", 0.05, epochs=1)


@functools.cache
def ledger_of(*events, epsilon="2", noise="secure", **options):
    return build_ledger(events, Budget(epsilon, 1e-5), n=1000, unit="record", noise=noise, **options)


def test_total_of_full_batch_cells_composes_exactly_over_seeds():
    result = total([(ledger_of(GAUSSIAN), 3), (ledger_of(GAUSSIAN.scaled(2.0)), 2)], 1e-5)
    mu = math.sqrt(3 / 25 + 2 / 100)
    assert result["epsilon"] == pytest.approx(certify([Event("", "gaussian", 1 / mu, 1.0)], 1e-5).epsilon)
    assert result == {
        "delta": 1e-5,
        "cells": 2,
        "seeds": 5,
        "epsilon": result["epsilon"],
        "accountant": "exact Gaussian DP",
        "unbounded": 0,
        "epsilon_of_proved": result["epsilon"],
        "adjacencies": ["add-remove-one"],
        "noise": ["secure"],
        "not_accounted": [],
    }


def test_total_ignores_sensitivities_but_not_noise():
    loud = Event("a", "gaussian", 5.0, 100.0)
    assert total([(ledger_of(loud), 1)], 1e-5)["epsilon"] == pytest.approx(ledger_of(GAUSSIAN)["epsilon"])


def test_total_with_sampled_cells_is_renyi_of_everything():
    result = total([(ledger_of(GAUSSIAN), 1), (ledger_of(POISSON), 2)], 1e-5)
    doubled = Event("gradient", "gaussian", 4.0, 1.0, 40, "poisson", 0.05)
    assert result["epsilon"] == pytest.approx(rdp_epsilon([GAUSSIAN, doubled], 1e-5))
    assert result["epsilon"] > ledger_of(GAUSSIAN)["epsilon"]


def test_total_of_shuffled_seeds_adds_their_passes():
    result = total([(ledger_of(SHUFFLE), 3)], 1e-5)
    assert result["epsilon"] == pytest.approx(certify([Event("", "gaussian", 4.0, 1.0, 3)], 1e-5).epsilon)
    mixed = total([(ledger_of(SHUFFLE), 1), (ledger_of(POISSON), 1)], 1e-5)
    assert mixed["epsilon"] is None and mixed["epsilon_of_proved"] is None


def test_a_cell_without_a_guarantee_makes_the_total_unbounded():
    result = total([(ledger_of(GAUSSIAN), 1), (ledger_of(epsilon="inf"), 4)], 1e-5)
    assert result["epsilon"] is None
    assert result["unbounded"] == 1
    assert result["epsilon_of_proved"] == pytest.approx(ledger_of(GAUSSIAN)["epsilon"])
    assert total([], 1e-5)["epsilon"] == 0
