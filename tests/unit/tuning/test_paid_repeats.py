"""The best of several runs, paid for: what is released, what it is worth, and what is refused."""

import math
import secrets
from dataclasses import replace

import numpy as np
import pytest

from dpstudy import methods
from dpstudy.cell.monitor import Monitor
from dpstudy.core.errors import StudyError
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.ledger import check_run
from dpstudy.privacy.noise import NoiseSource
from dpstudy.schema.methods import method_names, method_schema
from dpstudy.schema.reading import schema
from dpstudy.tuning import paid_choice, paid_repeats
from dpstudy.tuning.held_out import how_right
from tests.unit.tuning.conftest import (
    DELTA,
    FIRST_ORDER,
    LEARNING,
    LS,
    RIDGES,
    ROWS,
    fitted,
    inputs,
    inputs_of,
    paying,
    set_up,
)


def repeats(epsilon="1", options=FIRST_ORDER, space=LEARNING, **tuning):
    return paying(options, space, epsilon, **{"pay": "repeats", "sampler": "random", "trials": 4} | tuning)


def features_only(toy_features):
    return inputs_of(toy_features, validation=f"{toy_features}/validation")


SAMPLED = FIRST_ORDER | {"batch_size": 40, "steps": 20}


@pytest.mark.slow
@pytest.mark.parametrize("options", [FIRST_ORDER, SAMPLED], ids=["full-batch", "sampled"])
def test_repeats_spend_the_whole_budget_on_either_part(toy_features, options):
    tuning, problem, plan = set_up(repeats(options=options), features_only(toy_features))
    assert [event.part for event in plan.events] == ["train", "validation"]
    assert {event.trials for event in plan.events} == {4.0}
    for event in plan.events:
        assert 0.995 < certify([event], DELTA).epsilon <= 1
    assert tuning._problem.n == ROWS["train"] and problem.n == ROWS["train"] + ROWS["validation"]
    assert plan.facts["epsilon_trial"] < 0.7


def test_noise_of_a_trial_is_what_the_ledger_says(toy_features, monkeypatch):
    """Of the gradients and of the score: standard deviation / sensitivity of what is drawn, at the latest setting."""
    tuning, problem, plan = set_up(repeats(), features_only(toy_features))
    released = []
    monkeypatch.setattr(
        NoiseSource,
        "released",
        lambda self, name, query, std, *args, **more: released.append((name, std)) or np.array([1.0]),
    )
    monkeypatch.setattr(tuning.method, "fit", lambda *args, **more: (_ for _ in ()).throw(ValueError("no matter")))
    with pytest.raises(StudyError, match="training failed with the setting that was chosen"):
        tuning.fit(None, None, problem, plan, NoiseSource("seeded", "cell"))
    assert set(released) == {("validation score", plan.events[-1].noise_multiplier)}
    for norm in (0.1, 2.0):
        options = FIRST_ORDER | {"clipping_norm": norm}
        other, _, planned = set_up(repeats(options=options), features_only(toy_features))
        _, trial = other._planned({"learning_rate": 0.1, "loss": "softmax"})
        assert trial.noise["gradient"] == pytest.approx(norm * planned.events[0].noise_multiplier)


def test_the_number_of_trials_is_geometric_and_told_to_nobody(toy_features, monkeypatch):
    tuning, problem, plan = set_up(repeats(), features_only(toy_features))
    counted = []
    run = tuning._run
    monkeypatch.setattr(tuning, "_run", lambda *args: counted.append(0) or LAST[0])
    LAST = [run(NoiseSource("seeded", "cell").part("trial", 0), None)]
    numbers, key = [], secrets.randbits(60)
    for seed in range(2000):
        counted.clear()
        source = NoiseSource("seeded", key, seed)
        tuning.fit(None, None, problem, plan, source)
        numbers.append(len(counted))
        assert dict(source.drawn) == {"gradient": 5, "validation score": 1}  # of the released trial alone
        assert tuning.seconds == LAST[0].seconds  # what all took would tell
    assert min(numbers) == 1 and np.mean(numbers) == pytest.approx(4, abs=0.6)
    assert np.mean(np.array(numbers) == 1) == pytest.approx(0.25, abs=0.07)


def test_the_best_noisy_score_is_released_with_its_own_curve(toy_features, rows):
    request = repeats("inf", trials=6)
    test = type("Table", (), {"features": rows["test"][0], "labels": rows["test"][1]})
    monitor = Monitor(0, test, ["a", "b", "c"])
    for seed in range(4):
        monitor.rows.clear()
        tuning, problem, plan, fit, source = fitted(request, features_only(toy_features), seed, monitor=monitor)
        assert plan.events == ()
        tried = []
        for trial in range(40):
            run = tuning._run(NoiseSource("seeded", "cell", seed).part("trial", trial), monitor.anew())
            tried.append(run)
            if run.setting == tuning.chosen[0]:
                break
        assert tuning.chosen[0] == max(tried, key=lambda run: run.noisy_score).setting
        np.testing.assert_array_equal(fit.model.weights, tried[-1].model.weights)
        assert monitor.rows == tried[-1].curve


@pytest.mark.parametrize("pay", ["repeats", "choice"])
def test_what_is_written_depends_on_scores_behind_their_noise_alone(
    pay, toy_features, rows, tmp_path, monkeypatch, caplog, capsys
):
    """Other validation scores under the same noisy ones, or the same choice, change nothing."""
    request, given = repeats(), features_only(toy_features)
    if pay == "choice":
        request, given = paying(LS, RIDGES, pay="choice", sampler="grid"), inputs(toy_features, rows, tmp_path)
    released, chosen = NoiseSource.released, NoiseSource.chosen

    def replayed(self, name, *arguments, **more):
        noisy = released(self, name, *arguments, **more)
        return np.array([int(self.key[-1]) * 3 % 4.0]) if name == paid_repeats.SCORE else noisy

    monkeypatch.setattr(NoiseSource, "released", replayed)
    monkeypatch.setattr(NoiseSource, "chosen", lambda self, *arguments: chosen(self, *arguments) * 0 + 2)

    def outcome(scores, seed):
        tuning, problem, plan = set_up(request, given)
        left = iter(scores)
        monkeypatch.setattr(tuning, "score", lambda model, problem: float(next(left)))
        monitor = Monitor(0, type("Table", (), {"features": rows["test"][0], "labels": rows["test"][1]}), list("abc"))
        source = NoiseSource("seeded", "cell", seed)
        fit = tuning.fit(None, None, problem, plan, source, **({"monitor": monitor} if pay == "repeats" else {}))
        model = {name: value.tobytes() for name, value in vars(fit.model).items() if isinstance(value, np.ndarray)}
        return tuning.summary, model, fit.model.metadata, fit.curve, monitor.rows, source.made(), source.took_part

    for seed in range(3):  # of several numbers of trials
        upwards = outcome(range(1000), seed)
        assert outcome(range(1000, 0, -1), seed) == upwards
        assert outcome(np.random.default_rng(seed).integers(200, size=1000), seed) == upwards
    assert not caplog.text and not "".join(capsys.readouterr())


def test_trials_draw_settings_and_noise_of_their_own(toy_features):
    tuning, problem, plan = set_up(repeats(), features_only(toy_features))
    runs = [tuning._run(NoiseSource("seeded", "cell").part("trial", number), None) for number in range(6)]
    assert len({str(run.setting) for run in runs}) == 6 and len({run.noisy_score for run in runs}) == 6
    rates = [run.setting["learning_rate"] for run in runs]
    assert all(1e-3 <= rate <= 1e3 for rate in rates) and min(rates) < 0.3 and max(rates) > 3
    tuning, *_ = set_up(replace(repeats(), noise="secure"), features_only(toy_features))
    secure = [tuning._run(NoiseSource("secure", "cell").part("trial", 0), None).setting for _ in range(2)]
    assert secure[0] != secure[1]  # the same key: nobody can say which trial it was


def test_settings_that_cost_differently_are_refused(toy_features):
    space = {"steps": {"low": 5, "high": 50, "integer": True}}
    with pytest.raises(StudyError, match="whose releases cost alike, and those of {'steps': 50} do not"):
        set_up(repeats(options=FIRST_ORDER | {"learning_rate": 0.1}, space=space), features_only(toy_features))
    space = {"clipping_norm": {"low": 0.1, "high": 10.0}}
    *_, plan = set_up(repeats(options=FIRST_ORDER | {"learning_rate": 0.1}, space=space), features_only(toy_features))
    assert plan.events[0].sensitivity == 1.0


def halved(plan):
    return replace(plan, noise={name: std / 2 for name, std in plan.noise.items()})


def test_half_the_noise_of_the_second_release_ends_the_run(toy_features, rows, tmp_path, monkeypatch):
    request = paying(LS, RIDGES, pay="choice", sampler="grid", retrain=True, share=0.3)
    given = inputs(toy_features, rows, tmp_path, ("train", "validation"))
    for which in ("_plan", "_second"):
        tuning, problem, plan = set_up(request, given)
        setattr(tuning, which, halved(getattr(tuning, which)))
        source = NoiseSource("secure", "cell")
        tuning.fit(None, None, problem, plan, source)
        with pytest.raises(RuntimeError, match="accounts for noise of standard deviation"):
            check_run(plan.events, source)


def test_half_the_noise_of_a_trial_ends_the_run_whatever_its_clipping_norm(toy_features, monkeypatch):
    """The ledger's sensitivity is 1 where clipping norms are searched: noise is held against the trial's own."""
    space = {"clipping_norm": {"choices": [0.1, 10.0]}}
    request = repeats(options=FIRST_ORDER | {"learning_rate": 0.1}, space=space, sampler="grid")
    tuning, _, plan, _, source = fitted(request, features_only(toy_features))
    assert list(source.deviations()["gradient"]) == [pytest.approx(plan.events[0].noise_multiplier)]
    tuning, problem, plan = set_up(request, features_only(toy_features))
    planned = tuning.method.plan
    monkeypatch.setattr(tuning.method, "plan", lambda *arguments: halved(planned(*arguments)))
    with pytest.raises(RuntimeError, match="in the release 'gradient'"):
        tuning.fit(None, None, problem, plan, NoiseSource("seeded", "cell"))


def test_a_combination_that_costs_otherwise_is_said_and_not_taken_for_a_failure(toy_features, monkeypatch):
    tuning, problem, plan = set_up(repeats(), features_only(toy_features))
    planned = tuning.method.plan
    monkeypatch.setattr(
        tuning.method,
        "plan",
        lambda *arguments: replace(planned(*arguments), events=tuple(e.scaled(2) for e in planned(*arguments).events)),
    )
    with pytest.raises(StudyError, match="whose releases cost alike"):
        tuning.fit(None, None, problem, plan, NoiseSource("seeded", "cell"))


def test_too_little_for_a_selection_is_said(toy_features):
    with pytest.raises(StudyError, match="choosing the best of several runs alone costs more than epsilon"):
        set_up(repeats("0.0001"), features_only(toy_features))


def test_a_record_adds_at_most_one_to_a_score():
    rng = np.random.default_rng(secrets.randbits(60))
    for labels in (rng.integers(0, 4, 30), rng.integers(0, 2, (30, 4))):
        scores = rng.standard_normal((30, 4)).astype(np.float32)
        scores[3], scores[4, 1] = 0.0, np.nan
        for row in range(30):
            rest = np.arange(30) != row
            added = how_right(scores, labels) - how_right(scores[rest], labels[rest])
            assert 0 <= added <= 1
    assert how_right(np.eye(4), np.arange(4)) == 4
    several = np.array([[1, 1, 0], [0, 1, 0], [1, 1, 1]])
    assert how_right(np.array([[3.0, 2, 1], [3, 2, 1], [3, 2, 1]]), several) == 1.5


def test_who_solves_from_one_release_says_so():
    for name in method_names():
        method = methods.load(name)
        assert method_schema(name).get("x-one-release", False) == (
            hasattr(method, "release") and hasattr(method, "solve")
        ), name


def test_both_ways_have_the_name_that_the_config_calls_them_by():
    ways = {module.__name__.removeprefix("dpstudy.tuning.paid_") for module in (paid_choice, paid_repeats)}
    assert {"nothing", *ways} == set(schema("tuning")["properties"]["pay"]["enum"])


def test_a_budget_that_repeats_leave_nearly_whole_is_an_error():
    def saved(logarithm):
        return -1.0 if logarithm < 0.3 else 0.95

    with pytest.raises(StudyError, match="repeats: no accountant has a bound near epsilon"):
        paid_repeats._least(saved, 0.0, 1.0)
    assert paid_repeats._least(saved, 0.0, math.inf) == pytest.approx(0.3, abs=2e-3)  # of whole steps
    assert paid_repeats._least(lambda logarithm: logarithm - 0.3, 0.0, 1.0) == pytest.approx(0.3, abs=2e-3)


@pytest.mark.parametrize("pay", ["choice", "repeats"])
def test_what_a_trial_presumes_stands_beside_its_events(pay, toy_features, rows, tmp_path, monkeypatch):
    request, given = repeats(), features_only(toy_features)
    if pay == "choice":
        request, given = paying(LS, RIDGES, pay="choice", sampler="grid"), inputs(toy_features, rows, tmp_path)
    method = methods.load(request.options["method"])
    plan = method.plan
    monkeypatch.setattr(method, "plan", lambda *given: replace(plan(*given), not_accounted=("Nobody proved it.",)))
    assert set_up(request, given)[-1].not_accounted == ("Nobody proved it.",)


@pytest.mark.parametrize("pay", ["choice", "repeats"])
def test_what_any_setting_presumes_is_said_whichever_is_first(pay, toy_features, rows, tmp_path, monkeypatch):
    """Also of combinations that stand at no end of the ranges."""
    losses, optimisers, ridges = ["softmax", "sigmoid"], ["adam", "sgd"], RIDGES["ridge"]["choices"]
    space = {"loss": {"choices": losses}, "optimiser": {"choices": optimisers}}
    request, given = repeats(options=FIRST_ORDER | {"learning_rate": 0.1}, space=space), features_only(toy_features)
    expected = {f"{loss} by {optimiser}" for loss in losses for optimiser in optimisers}
    if pay == "choice":
        request, given = paying(LS, RIDGES, pay="choice", sampler="grid"), inputs(toy_features, rows, tmp_path)
        expected = {f"{ridge:g}" for ridge in ridges}
    method = methods.load(request.options["method"])
    plan = method.plan

    def presuming(parameters, problem):
        said = f"{parameters.ridge:g}" if pay == "choice" else f"{parameters.loss} by {parameters.optimiser}"
        return replace(plan(parameters, problem), not_accounted=(said, "Of all."))

    monkeypatch.setattr(method, "plan", presuming)
    sentences = set_up(request, given)[-1].not_accounted
    assert set(sentences) == {*expected, "Of all."} and len(sentences) == len(expected) + 1
