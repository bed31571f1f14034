"""A mechanism and an accountant of one's own are one file each, and all that accounts for releases knows them."""

import importlib
import math
import sys
from collections import Counter

import numpy as np
import pytest

from dpstudy.privacy import accountants, event_bounds, mechanisms
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.adjacency import epsilons_by_adjacency
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.certificate import recertify
from dpstudy.privacy.event_bounds import bounds
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import build_ledger, check_run
from dpstudy.privacy.ledger_sums import total
from dpstudy.privacy.noise import NoiseSource
from dpstudy.privacy.second_accountant import bracket
from dpstudy.tables.words import event_in_words

DELTA, SCALE, POSITIVES = 1e-6, 4.0, 2
MODULE = "tests.scenarios.extension.laplace"


@pytest.fixture
def laplace():
    """The file, known while a test runs."""
    yield importlib.import_module(MODULE)
    sys.modules.pop(MODULE)
    mechanisms.MECHANISMS.pop("laplace")
    event_bounds.PURE.discard("laplace")


def test_without_the_file_nobody_knows_the_mechanism():
    with pytest.raises(ValueError, match="unknown mechanism 'laplace'"):
        Event("counts", "laplace", 1.0, 1.0)


def test_a_release_is_certified_alone_and_beside_others(laplace):
    alone = certify([laplace.event(SCALE, POSITIVES)], 1e-12)
    assert alone.epsilon == pytest.approx(POSITIVES / SCALE, rel=1e-9) and alone.accountant == "pure DP"
    beside = [laplace.event(SCALE, POSITIVES), Event("sum", "gaussian", 5.0, 1.0, 3)]
    least = _discretised(beside, DELTA)
    assert least <= certify(beside, DELTA).epsilon <= 1.2 * least  # what is pure is more than what is Laplace


def _discretised(events, delta: float) -> float:
    """By dp-accounting, which knows the Laplace mechanism itself."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(value_discretization_interval=1e-4)
    for event in events:
        kind = dp_accounting.LaplaceDpEvent if event.mechanism == "laplace" else dp_accounting.GaussianDpEvent
        accountant.compose(kind(event.noise_multiplier), event.count)
    return float(accountant.get_epsilon(delta))


def test_its_ledger_stands_and_a_wrong_one_does_not(laplace):
    events = [laplace.event(SCALE, POSITIVES), Event("sum", "gaussian", 5.0, 1.0, 3)]
    ledger = build_ledger(events, Budget("2", DELTA), n=1000, unit="record", noise="secure")
    assert ledger["guarantee"] == "proved" and ledger["epsilon"] == certify(events, DELTA).epsilon
    assert recertify(ledger)["faults"] == []
    assert bounds(ledger["events"], DELTA, bracket) == pytest.approx([ledger["epsilon"]] * 2)
    assert "laplace mechanism, noise multiplier 2" in event_in_words(ledger["events"][0])
    assert ledger["trade_off"]["mu"] is None and epsilons_by_adjacency(ledger)["replace-one"] > ledger["epsilon"]
    assert total([(ledger, 2)], DELTA)["epsilon"] > ledger["epsilon"]
    for factor in (0.5, 2.0):
        wrong = dict(ledger["events"][0]) | {"noise_multiplier": factor * SCALE / POSITIVES}
        assert recertify(ledger | {"events": [wrong, *ledger["events"][1:]]})["faults"]


def test_whoever_has_not_the_file_vouches_for_nothing(laplace):
    ledger = build_ledger([laplace.event(SCALE, 1)], Budget("2", DELTA), n=1000, unit="record", noise="secure")
    event_bounds.PURE.discard("laplace")
    other = ledger | {"delta": 2 * DELTA}  # what was found before is remembered
    assert recertify(other)["faults"] == ["no accountant bounds its events"]
    with pytest.raises(ValueError, match="the mechanism laplace is not known"):
        bounds(ledger["events"], DELTA, bracket)


@pytest.mark.parametrize("mode", ["seeded", "secure"])
def test_its_noise_is_drawn_and_held_against_the_ledger(laplace, mode):
    event, draws = laplace.event(SCALE, POSITIVES), []
    for seed in range(400):
        source = NoiseSource(mode, "cell", "train", 0, seed)
        draws += laplace.released(source, [0] * 5, SCALE)
        check_run([event], source)
    with pytest.raises(RuntimeError, match="was already drawn"):
        laplace.released(source, [0], SCALE)
    assert abs(np.mean(draws)) < 5 * SCALE * math.sqrt(2 / len(draws))
    assert np.mean(np.abs(draws)) == pytest.approx(SCALE, rel=0.12)  # half or twice the scale is neither
    assert Counter(draws)[0] / len(draws) == pytest.approx(math.tanh(1 / SCALE / 2), rel=0.35)
    source = NoiseSource(mode, "cell", "train", 0, 401)
    laplace.released(source, [0] * 5, SCALE / 2)
    with pytest.raises(RuntimeError, match="accounts for noise of standard deviation 4"):
        check_run([event], source)


def test_an_accountant_of_ones_own_is_asked_where_it_has_a_bound(laplace, monkeypatch):
    class LaplaceLosses:
        key = "laplace-losses"

        def supports(self, events):
            return all(event.mechanism == "laplace" for event in events)

        def bounds(self, events, delta, known, complete):
            return {"PLD of Laplace noise": _discretised(events, delta)}

    many = [laplace.event(20.0, 1)] * 30
    before = certify(many, DELTA)
    assert before.accountant == accountants.RDP  # of too many releases there is no closed form
    monkeypatch.setattr(accountants, "ACCOUNTANTS", [*accountants.ACCOUNTANTS, LaplaceLosses()])
    monkeypatch.setattr("dpstudy.privacy.accounting.ACCOUNTANTS", accountants.ACCOUNTANTS)
    after = certify(many, DELTA)
    assert after.accountant == "PLD of Laplace noise" and after.epsilon < before.epsilon
    assert after.epsilon_by["laplace-losses"] == after.epsilon and after.epsilon_by["rdp"] == before.epsilon
    gaussian = [Event("sum", "gaussian", 5.0, 1.0)]
    assert certify(gaussian, DELTA).epsilon_by["laplace-losses"] is None
