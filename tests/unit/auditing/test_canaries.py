"""The canaries' game: as strong as the noise allows against each method, and never stronger than what is certified."""

import math

import numpy as np
import pytest

from dpstudy import methods
from dpstudy.auditing import canaries
from dpstudy.auditing.canaries import PACK, game_of, per_canary, play
from dpstudy.auditing.many_runs import attack
from dpstudy.auditing.tapes import EnoughError, Replay, Watched
from dpstudy.core.errors import StudyError
from dpstudy.methods.problem import Problem
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.gaussian import composed_mu
from dpstudy.privacy.noise import NoiseSource

SGD = {"learning_rate": 1.0, "clipping_norm": 0.7}
NORMALISATION = {"mean_clip": 1.0, "square_clip": 1.0, "noise_multiplier": 3.0}
FULL_BATCH = {  # method, settings, and whether a canary reaches the sensitivity that is charged for
    "least squares": ("least_squares", {}, True),
    "least squares, published": ("least_squares", {"variant": "published"}, True),
    "covariance": ("feature_covariance", {}, True),
    "covariance, published": ("feature_covariance", {"variant": "published", "steps": 3, "learning_rate": 1.0}, True),
    "newton": ("newton", {}, True),
    "newton, shared": ("newton", {"preconditioner": "shared"}, True),
    "newton, three steps": ("newton", {"steps": 3}, False),
    "newton, published": ("newton", {"variant": "published"}, False),
    "gradients": ("first_order", SGD | {"steps": 6}, True),
    "gradients, sigmoid": ("first_order", SGD | {"steps": 6, "loss": "sigmoid", "bias": -10.0}, True),
    "gradients, normalised": ("first_order", SGD | {"steps": 4, "normalisation": NORMALISATION}, True),
    "kernel means": ("kernel_mean", {"projection": "none", "frequencies": 16}, True),
}


def game(name, settings, epsilon="4", pack=PACK, sees_model=False, **facts):
    shape = (50, 1, 1) if "normalisation" in settings else (50,)
    problem = Problem(60_000, shape, 10, Budget(epsilon, 1e-5), **facts)
    return game_of(name, methods.parameters(name, settings), problem, pack=pack, sees_model=sees_model)


@pytest.mark.parametrize("case", FULL_BATCH)
@pytest.mark.parametrize("facts", [{}, {"unit_records": 3}])
def test_the_likelihood_ratio_is_that_of_the_planned_mu(case, facts):
    """For a Gaussian mechanism it is normal with mean +-mu^2/2 and variance mu^2, mu as planned or less."""
    name, settings, reached = FULL_BATCH[case]
    played = game(name, settings, **facts)
    present, absent = play(played, 1500)
    mu, planned = math.sqrt((present.var() + absent.var()) / 2), composed_mu(played.plan.events)
    error = 6 / math.sqrt(2 * 3000)
    assert mu < planned * (1 + error)
    if reached:
        assert mu > planned * (1 - error)
    assert present.mean() - absent.mean() == pytest.approx(mu**2, abs=6 * mu * math.sqrt(2 / 1500) + 2 * error * mu**2)


@pytest.mark.parametrize("name", ["least_squares", "kernel_mean"])
def test_canaries_are_of_classes_that_count_in_full(name):
    settings = {"projection": "none", "frequencies": 16} if name == "kernel_mean" else {}
    played = game(name, settings, class_weights=(0.1, *[1.0] * 10))
    present, absent = play(played, 1500)
    mu = math.sqrt((present.var() + absent.var()) / 2)
    assert mu == pytest.approx(composed_mu(played.plan.events), rel=6 / math.sqrt(6000))


def test_several_labels_reach_their_sensitivity_too():
    played = game("least_squares", {}, positives=3)
    present, absent = play(played, 1500)
    mu = math.sqrt((present.var() + absent.var()) / 2)
    assert mu == pytest.approx(composed_mu(played.plan.events), rel=6 / math.sqrt(6000))


@pytest.mark.parametrize("mode", ["seeded", "secure"])
def test_both_kinds_of_noise_are_attacked(mode):
    played = game("least_squares", {})
    (pair, by_mu) = attack(played, 4000, 1 - 1e-6, mode)
    assert (pair["bound"], by_mu["bound"]) == ("clopper-pearson", "gaussian-dp")
    certified = certify(played.plan.events, 1e-5).epsilon
    assert 0.5 * certified < by_mu["epsilon_lower"] <= certified and pair["epsilon_lower"] < by_mu["epsilon_lower"]


def test_samples_are_attacked_as_mixtures():
    """With q = 1 the same mechanism is much weaker: that batches are samples is seen by the attack."""
    sampled = game("first_order", SGD | {"steps": 20, "batch_size": 6000}, epsilon="8")
    (bound,) = attack(sampled, 3000, 1 - 1e-6)
    assert bound["bound"] == "clopper-pearson" and 0.3 < bound["epsilon_lower"] <= 8


def test_where_features_mix_canaries_have_classes_of_their_own():
    played = game("kernel_mean", {"projection": "none", "frequencies": 16})
    assert (played.canaries, played.problem.dim) == (10, 13)


@pytest.mark.parametrize("projection", ["dp-sgd", "feature_covariance"])
def test_a_trained_projection_is_attacked_with_all_that_follows(projection):
    played = game("kernel_mean", {"projection": projection, "frequencies": 16, "class_shares": "released"})
    present, absent = play(played, 600)
    mu = math.sqrt((present.var() + absent.var()) / 2)
    assert mu == pytest.approx(composed_mu(played.plan.events), rel=6 / math.sqrt(2400))


def test_where_classes_are_shared_too_one_canary_plays():
    played = game("kernel_mean", {"projection": "none", "frequencies": 16}, positives=3)
    assert played.canaries == 1
    present, absent = play(played, 300)
    mu = math.sqrt((present.var() + absent.var()) / 2)
    assert mu == pytest.approx(composed_mu(played.plan.events), rel=6 / math.sqrt(1200))


@pytest.mark.slow
def test_a_network_is_attacked_by_one_canary_of_its_images_shape():
    settings = {"network": "wrn-10-1", "learning_rate": 0.1, "clipping_norm": 1.0, "steps": 2}
    problem = Problem(60_000, (1, 12, 12), 3, Budget("4", 1e-5))
    played = game_of("network_dpsgd", methods.parameters("network_dpsgd", settings), problem)
    assert played.canaries == 1 and played.problem.shape == (1, 12, 12)
    present, absent = play(played, 60)
    mu, planned = math.sqrt((present.var() + absent.var()) / 2), composed_mu(played.plan.events)
    assert mu == pytest.approx(planned, rel=6 / math.sqrt(240))


def test_of_an_iterated_method_the_model_alone_is_seen():
    settings = {"learning_rate": 1e-3, "clipping_norm": 1.0, "batch_size": 20_000, "epochs": 1}
    played = game("iterated_sgd", settings, epsilon="8")
    assert played.last_iterate_only
    (bound, *_) = attack(played, 1500, 1 - 1e-6)
    assert bound["statistic"].startswith("the published weights") and 0 < bound["epsilon_lower"] <= 8


@pytest.mark.parametrize("case", FULL_BATCH)
def test_shared_noise_hides_nothing(case):
    """A control without a guarantee: differences between classes are released without noise, and tell each coin."""
    name, settings, _ = FULL_BATCH[case]
    played = game(name, settings, epsilon="4" if "normalisation" in settings else "1")
    (bound,) = attack(played, 1000, 0.999, shared=True)
    assert bound["epsilon_lower"] > 4.6  # all of 800 coins: no number of runs proves more


def test_a_network_has_no_such_control():
    settings = {"network": "lenet", "learning_rate": 0.1, "clipping_norm": 1.0, "steps": 1}
    problem = Problem(60_000, (1, 28, 28), 3, Budget("4", 1e-5))
    played = game_of("network_dpsgd", methods.parameters("network_dpsgd", settings), problem)
    with pytest.raises(StudyError, match="shared_noise: the release 'gradient' .* the control is for linear methods"):
        attack(played, 1, 0.999, shared=True)


MODEL_ALONE = {  # the share of mu that an attack reaches which sees the model and no release
    "least squares": 0.7,
    "covariance": 0.5,
    "covariance, published": 0.7,
    "newton": 0.75,
    "gradients": 0.8,
    "gradients, sigmoid": 0.85,
    "gradients, normalised": 0.7,
}


def share_by_model(played, runs=3000):
    present, absent = play(played, runs, key=["the model alone"])
    assert len(present) == len(absent) == runs
    spread = math.sqrt((present.var() + absent.var()) / 2)
    return (present.mean() - absent.mean()) / spread / composed_mu(played.plan.events)


@pytest.mark.parametrize("case", MODEL_ALONE)
def test_the_returned_model_alone_tells_canaries_apart_by_no_more_than_mu(case):
    name, settings, _ = FULL_BATCH[case]
    assert MODEL_ALONE[case] < share_by_model(game(name, settings, sees_model=True)) < 1 + 6 * math.sqrt(2 / 3000)


def test_half_the_noise_is_seen_in_the_model_alone(monkeypatch):
    true = Watched.released

    def half(self, name, query, std, *more, **options):
        return true(self, name, query, std / 2, *more, **options)

    monkeypatch.setattr(Watched, "released", half)
    assert share_by_model(game("first_order", SGD | {"steps": 6}, sees_model=True)) > 1.7


def test_models_that_mix_features_are_not_attacked_alone():
    with pytest.raises(StudyError, match="audit: sees: model is for linear methods, .* not for 'kernel_mean'"):
        game("kernel_mean", {"projection": "none", "frequencies": 16}, sees_model=True)


def test_elements_belong_to_canaries():
    matrix = np.arange(PACK * PACK).reshape(PACK, PACK)
    assert np.array_equal(per_canary(matrix, PACK, PACK), matrix.diagonal())
    gradient = np.ones((10, PACK + 1))
    gradient[:, -1] = 99  # of the bias
    assert np.array_equal(per_canary(gradient, PACK, PACK), np.full(PACK, 10.0))
    assert np.array_equal(per_canary(gradient[:, :PACK].T, PACK, PACK), np.full(PACK, 10.0))
    assert np.array_equal(per_canary(np.ones(PACK), PACK, PACK), np.ones(PACK))
    assert per_canary(gradient, 1, 8) == gradient.sum()
    by_class = np.arange(130.0).reshape(10, 13)  # ten classes, thirteen features
    assert np.array_equal(per_canary(by_class, 10, 13), by_class.sum(0)[:10])
    assert np.array_equal(per_canary(np.ones((10, 32)), 10, 13), np.full(10, 32.0))
    for shape in ((3, 4), (PACK, PACK, 2)):
        with pytest.raises(ValueError, match="does not say which part"):
            per_canary(np.ones(shape), PACK, PACK)


def test_a_repetition_that_releases_something_else_is_noticed():
    run = NoiseSource("seeded", "run")
    run.transcript = []
    run.released("gram", np.zeros(3), 1.0)
    run.released("mean", np.zeros(3), 1.0)
    again = Replay(run)
    assert np.array_equal(again.released("gram", np.ones(3), 1.0), run.transcript[0][3])
    assert np.array_equal(again.queries[0], np.ones(3))
    with pytest.raises(EnoughError):
        again.released("mean", np.ones(3), 1.0)
    assert len(again.queries) == 2
    with pytest.raises(RuntimeError, match="the run released 'gram' at step 0, its repetition 'mean'"):
        Replay(run).released("mean", np.zeros(3), 1.0)


@pytest.mark.parametrize("case", ["least squares, published", "newton, published", "covariance"])
def test_runs_that_end_with_their_last_release_show_what_whole_ones_do(case, monkeypatch):
    """The same statistic, of the same noise, whether trainings go on to the end or not."""
    played, found, lasts = game(*FULL_BATCH[case][:2]), [], []
    watched = canaries.Watched

    def whole(mode, shared, last, *key):
        lasts.append(last)
        return watched(mode, shared, None, *key)

    found.append(play(played, 3 * PACK, key=["the same noise"]))
    monkeypatch.setattr(canaries, "Watched", whole)
    monkeypatch.setattr(canaries, "EnoughError", type("NeverError", (Exception,), {}))
    monkeypatch.setattr(Replay, "released", released_to_the_end)
    found.append(play(played, 3 * PACK, key=["the same noise"]))
    assert np.array_equal(found[0], found[1]) and lasts[0] is None and lasts[-1] > 1


def test_a_seeded_game_is_played_again_as_it_was_and_no_other_is():
    played, runs = game("least_squares", {}), 2 * PACK
    (present, absent), (again, away) = (play(played, runs, key=["a cell"]) for _ in range(2))
    assert np.array_equal(present, again) and np.array_equal(absent, away)
    others = [
        play(played, runs, *other)[0] for other in (("seeded", False, ["b"]), (), (), ("secure", False, ["a cell"]))
    ]
    values = np.concatenate([present, *others])
    assert len(set(values)) == len(values), "noise is fresh in every run, and in games of other keys"


def released_to_the_end(self, name, query, std, step=0, tensor="", symmetric=False):
    self.queries.append(np.array(query))
    return self._tape[len(self.queries) - 1][3].copy()


def test_canaries_are_drawn_with_fair_coins(monkeypatch):
    """Half of them take part, whichever: nothing but the noise tells the two worlds apart."""
    seen = []
    monkeypatch.setattr(canaries, "_by_transcript", lambda g, present, source: seen.append(present) or present * 1.0)
    present, absent = play(game("least_squares", {}), 3000)
    assert (present == 1).all() and (absent == 0).all() and len(present) == len(absent) == 3000
    assert abs(np.concatenate(seen).mean() - 0.5) < 6 * 0.5 / math.sqrt(6000)
