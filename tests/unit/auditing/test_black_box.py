"""The black-box audit of de2022 A.2: its parts against slow computations, and both phases on tiny networks."""

import math
import secrets
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from dpstudy.auditing.black_box import Arena, Setting, black_box, bounded, settings_of
from dpstudy.auditing.black_box_canaries import make_canary
from dpstudy.auditing.loss_journal import LossJournal
from dpstudy.auditing.membership import advantage, area_under_curve, largest_advantage
from dpstudy.auditing.total_variation import fitted_distance, total_variation
from dpstudy.core.errors import StudyError
from dpstudy.methods import network_dpsgd
from dpstudy.methods.network_dpsgd import Parameters
from dpstudy.methods.problem import Problem
from dpstudy.models import tanh_cnn
from dpstudy.privacy import gaussian
from dpstudy.privacy.audit import epsilon_lower
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

SHAPE, CLASSES, N = (1, 6, 6), ("0", "1", "2"), 20
PAIRS = [
    (0.0, 1.0, 0.0, 1.0),
    (0.0, 1.0, 1.3, 1.0),
    (2.0, 0.3, 2.1, 0.30000001),
    (-1.0, 0.5, 0.2, 2.5),
    (5.0, 0.01, 5.03, 0.002),
    (0.0, 1.0, 0.0, 3.0),
    (0.0, 1.0, 40.0, 1.0),
]


@pytest.mark.parametrize(("mean", "std", "other_mean", "other_std"), PAIRS)
def test_the_distance_is_half_the_integral_of_the_difference(mean, std, other_mean, other_std):
    def difference(x):
        return abs(norm.pdf(x, mean, std) - norm.pdf(x, other_mean, other_std)) / 2

    ends = sorted(m + k * s for m, s in ((mean, std), (other_mean, other_std)) for k in np.linspace(-9, 9, 37))
    slow = sum(quad(difference, low, high, limit=200)[0] for low, high in zip(ends, ends[1:], strict=False))
    assert total_variation(mean, std, other_mean, other_std) == pytest.approx(slow, abs=1e-6)
    assert total_variation(other_mean, other_std, mean, std) == pytest.approx(slow, abs=1e-6)


def test_point_masses_are_all_or_nothing_apart():
    assert total_variation(1.0, 0.0, 1.0, 0.0) == 0
    assert total_variation(1.0, 0.0, 2.0, 0.0) == total_variation(1.0, 0.0, 1.0, 0.5) == 1
    with pytest.raises(ValueError, match="at least two"):
        fitted_distance([1.0], [1.0, 2.0])


def test_the_largest_advantage_is_that_of_humphries():
    for epsilon, printed in (("1", 0.47), ("2", 0.76), ("4", 0.96), ("8", 1.0)):  # Table 9, |D| = 100
        slow = (math.exp(float(epsilon)) - 1 + 2 * 0.01) / (math.exp(float(epsilon)) + 1)
        assert largest_advantage(float(epsilon), 0.01) == pytest.approx(slow)
        assert round(slow, 2) == pytest.approx(printed)


def test_a_known_pair_of_gaussians_gives_the_bound_of_its_errors():
    """N(1.5, 1) against N(0, 1): the bound is that of a threshold's errors, and below the truth."""
    rng, mu, models, delta = np.random.default_rng(5), 1.5, 40_000, 0.01
    present, absent = rng.normal(mu, size=models), rng.normal(size=models)
    found = bounded(present, absent, 8.0, delta, 0.999)
    assert (found["held_out"], found["runs"]) == (8000, 32_000)
    best = max(
        epsilon_lower(round(32_000 * ndtr(-t)), 32_000, round(32_000 * ndtr(t - mu)), 32_000, delta)
        for t in np.linspace(-1, 4, 200)
    )
    assert 0.8 * best < found["epsilon_lower"] < gaussian.epsilon_of(mu, delta)
    assert found["auc"] == pytest.approx(ndtr(mu / math.sqrt(2)), abs=0.01)
    assert found["advantage"] == pytest.approx(2 * ndtr(mu / 2) - 1, abs=0.02)


def test_the_paper_holds_out_ten_thousand_of_its_models():
    statistic = np.arange(60_000.0)
    found = bounded(statistic, statistic, 1.0, 0.01, 0.999)
    assert (found["held_out"], found["runs"]) == (10_000, 50_000)


def test_ties_and_useless_statistics_give_nothing():
    same = np.zeros(50)
    assert area_under_curve(same, same) == 0.5
    assert advantage((same, same), (same, same)) == 0
    assert bounded(same, same, 1.0, 0.01, 0.999)["epsilon_lower"] == 0


def test_canaries_are_what_their_names_say():
    images, labels = np.arange(12 * 36).reshape(12, 36).astype(np.uint8), np.arange(12) % 3
    rng = np.random.default_rng(0)
    blank, label = make_canary("blank", images, labels, CLASSES, rng)
    assert not blank.any() and blank.dtype == np.uint8 and label == 0
    noise, _ = make_canary("noise", images, labels, CLASSES, rng)
    assert noise.min() < 60 and noise.max() > 200 and noise.dtype == np.uint8
    shown, said = make_canary("2-as-0", images, labels, CLASSES, rng)
    assert np.array_equal(shown, images[2]) and said == 0
    with pytest.raises(StudyError, match="there are 0, 1, 2"):
        make_canary("2-as-7", images, labels, CLASSES, rng)
    with pytest.raises(StudyError, match="no test image is of class '2'"):
        make_canary("2-as-0", images[:2], labels[:2], CLASSES, rng)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(tanh_cnn.LAYERS, "tiny", [("conv", 2, 3, 2, 1)])


def arena(epsilon="1", **options):
    """A tiny network on random images, with a canary of each kind."""
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (N + 5, math.prod(SHAPE))).astype(np.uint8)
    labels = rng.integers(len(CLASSES), size=N + 5)
    names = ("blank", "noise", f"{labels[N]}-as-{(labels[N] + 1) % 3}")
    canaries = {name: make_canary(name, images[N:], labels[N:], CLASSES, rng) for name in names}
    settings = {"network": "tiny", "optimiser": "sgd", "learning_rate": 0.1, "clipping_norm": 1.0, "normalised": True}
    return Arena(
        network_dpsgd,
        Parameters(**settings | {"batch_size": 10, "epochs": 2, "sampling": "poisson"} | options),
        Problem(N, SHAPE, len(CLASSES), Budget(epsilon, 1 / N)),
        images[:N],
        labels[:N],
        canaries,
        key=(secrets.token_hex(8),),
        beside={"scaling": "unit"},
    )


@pytest.mark.slow
def test_both_phases_on_a_tiny_network(tiny):
    space = {"learning_rate": [0.1, 1.0], "steps": [2]}
    found = black_box(arena("2"), space, pilot=5, models=40, confidence=0.999)
    assert len(found["tried"]) == 2 * 3
    assert {one["canary"] for one in found["tried"]} == set(arena().canaries)
    assert found["chosen"]["distance"] == max(one["distance"] for one in found["tried"]) <= 1
    assert found["chosen"]["clipping_norm"] == 1.0 and found["records"] == N and found["delta"] == 1 / N
    assert found["epsilon_lower"] <= found["epsilon_certified"] <= found["epsilon"] == 2
    assert 0 <= found["auc"] <= 1 and -1 <= found["advantage"] <= 1
    assert (found["held_out"], found["runs"]) == (8, 32)


def test_the_space_is_every_combination_or_the_entrys_own(tiny):
    assert settings_of({}) == [Setting()]
    found = settings_of({"learning_rate": [0.1, 0.5], "clipping_norm": [1.0], "steps": [5, 10]})
    assert len(set(found)) == 4 and Setting(0.5, 1.0, 10) in found
    own = arena().parameters
    assert Setting().of(own) == own
    changed = Setting(steps=7).of(own)
    assert changed.steps == 7 and changed.epochs is None and changed.learning_rate == own.learning_rate


def test_only_noise_and_batches_differ_between_runs(tiny, monkeypatch):
    """All start alike; without noise and sampling all models are the same one."""
    noisy = arena(batch_size="full", epochs=None, steps=2)
    with monkeypatch.context() as silence:
        silence.setattr(NoiseSource, "gaussian", quiet)
        same = noisy.losses("phase I", Setting(), None, 3)
    assert same.shape == (3, 3) and np.ptp(same, axis=0).max() == 0
    once, again = (noisy.losses("phase I", Setting(), None, 3) for _ in range(2))
    assert np.ptp(once, axis=0).min() > 0 and np.array_equal(once, again)
    assert not np.isin(once, noisy.losses("phase II", Setting(), None, 3)).any()
    assert not np.isin(once, noisy.losses("phase I", Setting(), "blank", 3)).any()


def quiet(self, name, shape, std, step=0, tensor="", dtype=np.float32):
    """Counted as usual, but nothing is added."""
    self._enter(name, std, step, tensor)
    return np.zeros(shape, dtype)


@pytest.mark.slow
def test_an_audit_that_was_killed_goes_on_after_its_last_model(tiny, tmp_path, monkeypatch):
    def played(name, made_by="this"):
        journal = LossJournal(tmp_path / name, made_by)
        return black_box(replace(arena("2"), key=("k",), journal=journal), {}, pilot=3, models=6, confidence=0.9)

    whole = played("whole")
    assert (tmp_path / "whole").stat().st_mode & 0o777 == 0o600
    assert len((tmp_path / "whole").read_bytes().splitlines()) == 1 + 3 * 4 + 6 * 2
    trained, fit = [], network_dpsgd.fit

    def dying(*arguments):
        trained.append(arguments[4].key)
        if len(trained) == 8:
            raise KeyboardInterrupt
        return fit(*arguments)

    monkeypatch.setattr(network_dpsgd, "fit", dying)
    with pytest.raises(KeyboardInterrupt):
        played("killed")
    with open(tmp_path / "killed", "ab") as file:
        file.write(b'["half a li')
    assert played("killed") == whole
    assert len(trained) == 8 + (3 * 4 + 6 * 2 - 7) and len(set(trained)) == len(trained) - 1
    assert (tmp_path / "killed").read_bytes() == (tmp_path / "whole").read_bytes()
    trained[:] = trained[:9]
    assert played("killed", made_by="other code") == whole and len(trained) == 9 + 3 * 4 + 6 * 2
    (tmp_path / "killed").write_text('"this"\nnothing\n')
    with pytest.raises(StudyError, match="killed: damaged; delete it"):
        LossJournal(tmp_path / "killed", "this")


def refuted(models):
    """Whether both phases prove more than the nominal epsilon of 1."""
    whole = arena("1", batch_size="full", epochs=None, steps=4)  # the chance of batches would hide what noise does not
    found = black_box(whole, {}, pilot=10, models=models, confidence=0.999)
    return found["epsilon_lower"] > found["epsilon"]


@pytest.mark.slow
def test_a_tenth_of_the_accounted_noise_is_refuted(tiny, monkeypatch):
    draw = NoiseSource._draw  # behind the check of what the source is asked for

    def less(self, shape, std, *arguments):
        return draw(self, shape, 0.1 * std, *arguments)

    assert not refuted(100)
    monkeypatch.setattr(NoiseSource, "_draw", less)
    assert refuted(100)
