"""`dpstudy.fit` and `dpstudy.predict`: training from arrays, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse

import dpstudy
from dpstudy.core.errors import StudyError
from dpstudy.methods import least_squares
from dpstudy.methods.api import CLASSES_READ, FEATURES_BROUGHT
from dpstudy.methods.problem import Fit
from dpstudy.models.linear import LinearModel
from dpstudy.schema import validating
from dpstudy.schema.reading import check


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=600)
    centers = 4 * rng.standard_normal((3, 8))
    return (centers[labels] + rng.standard_normal((600, 8))).astype(np.float32), labels


FIRST_ORDER = {"learning_rate": 1.0, "clipping_norm": 1.0, "steps": 20}


METHODS = [("least_squares", {}), ("first_order", FIRST_ORDER), ("feature_covariance", {}), ("newton", {})]


@pytest.mark.parametrize(("name", "options"), METHODS)
@pytest.mark.parametrize("epsilon", [2, 0.5, "1", "inf"])
def test_a_model_its_scores_and_its_ledger(rows, name, options, epsilon):
    result = dpstudy.fit(name, *rows, epsilon=epsilon, delta=1e-4, **options)
    scores = dpstudy.predict(result.model, rows[0])
    assert scores.shape == (600, 3)
    check(result.ledger, "ledger", "ledger")
    assert result.ledger["n"] == 600
    if epsilon == "inf":
        assert result.ledger["guarantee"] == "none"
        assert (scores.argmax(1) == rows[1]).mean() > 0.9
    else:
        assert result.ledger["guarantee"] == "proved"
        assert float(epsilon) * (1 - 2e-4) <= result.ledger["epsilon"] <= float(epsilon)
        assert (scores.argmax(1) == rows[1]).mean() > 0.5


def test_seeds_choose_the_noise_and_secure_noise_has_none(rows):
    def weights(**options):
        return dpstudy.fit("least_squares", *rows, epsilon=1, delta=1e-4, **options).model.weights

    assert np.array_equal(weights(seed=1), weights(seed=1))
    assert not np.allclose(weights(seed=1), weights(seed=2))
    assert not np.allclose(weights(seed=1, noise="secure"), weights(seed=1, noise="secure"))


def test_other_settings_at_the_same_seed_draw_other_noise(rows):
    """At clipping norms 1 and 2 shared noise would leave a multiple of it in both."""
    nothing = np.zeros_like(rows[0])
    one, two = (
        dpstudy.fit("first_order", nothing, rows[1], epsilon=1, delta=1e-4, **(FIRST_ORDER | {"clipping_norm": norm}))
        for norm in (1.0, 2.0)
    )
    assert not np.allclose(two.model.weights, 2 * one.model.weights, rtol=1e-2)


NETWORK = {
    "network": "lenet",
    "optimiser": "sgd",
    "learning_rate": 0.1,
    "clipping_norm": 1.0,
    "batch_size": 20,
    "steps": 2,
}


@pytest.mark.parametrize(
    ("name", "options", "changes"),
    [
        (
            "network_dpsgd",
            NETWORK,
            {"micro_batch": 7, "checkpoint_steps": 1, "checkpoint_minutes": 0, "curve_points": 1},
        ),
        ("first_order", FIRST_ORDER, {"curve_points": 1}),
        ("feature_covariance", {}, {"curve_points": 1}),
        ("newton", {}, {"curve_points": 1}),
    ],
)
def test_what_changes_no_result_changes_no_noise(rows, name, options, changes):
    features, labels, shape = *rows, None
    if name == "network_dpsgd":
        features, labels, shape = np.tile(features[:60], (1, 98)), labels[:60], (1, 28, 28)

    def scores(more):
        fitted = dpstudy.fit(name, features, labels, epsilon=2, delta=1e-4, shape=shape, classes=3, **options, **more)
        return dpstudy.predict(fitted.model, features)

    np.testing.assert_allclose(scores({}), scores(changes), rtol=1e-4, atol=1e-4)


def test_clipping_without_noise_has_no_guarantee(rows):
    result = dpstudy.fit("least_squares", *rows, epsilon="inf", delta=1e-4, sanitise="clip")
    assert result.ledger["guarantee"] == "none" and result.ledger["events"] == []
    with pytest.raises(StudyError, match="sanitise: clip gives no guarantee, so epsilon must be 'inf', not '1'"):
        dpstudy.fit("least_squares", *rows, epsilon=1, delta=1e-4, sanitise="clip")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "least_square"}, "method 'least_square'"),
        ({"name": "clipping"}, "method 'clipping'"),
        ({"clip": 1.0}, "unknown hyper-parameter 'clip'; it has variant, clipping_norm"),
        ({"epsilon": 0}, "epsilon '0'"),
        ({"epsilon": -1}, "epsilon '-1'"),
        ({"epsilon": "one"}, "epsilon 'one'"),
        ({"delta": 0}, "delta 0"),
        ({"delta": 0.01}, "not below 1/n = 1/600"),
        ({"unit": "subject"}, "unit 'subject'"),
        ({"accounting": "mehta2022"}, "accounting 'mehta2022'"),
        ({"sanitise": "some"}, "sanitise 'some'"),
        ({"classes": 2}, "label 2 lies outside 0..1"),
        ({"features": np.zeros((5, 8))}, r"labels of shape \(600,\): must be \(5,\)"),
        ({"features": np.zeros(5)}, r"features of shape \(5,\)"),
        ({"features": np.zeros((600, 0))}, r"features of shape \(600, 0\)"),
        ({"features": sparse.csr_array((600, 8))}, r"features are sparse: give a dense array, features.toarray\(\)"),
        ({"features": np.ma.zeros((600, 8))}, "features are masked"),
        ({"features": torch.zeros(600, 8, requires_grad=True)}, r"features are no array: .*detach\(\)"),
        ({"features": [[1.0, 2.0], [3.0]]}, "features are no array"),
        ({"features": np.full((600, 8), "a")}, "features are of type <U1: must be real numbers"),
        ({"features": np.full((600, 8), "a", dtype=object)}, "features are not all numbers: .*'a'"),
        ({"features": np.ones((600, 8), complex)}, "features are of type complex128"),
        ({"labels": np.full(600, "a")}, "labels are of type <U1: class indices must be integers"),
        ({"name": None}, "method None"),
        ({"noise": "secured"}, "noise 'secured': one of 'seeded', 'secure'"),
        ({"shared_noise": "no"}, "shared_noise 'no'"),
        ({"seed": None}, "seed None: must be an integer"),
        ({"classes": 0}, "classes 0: must be an integer of at least 1"),
        ({"classes": 3.0}, "classes 3.0: must be an integer"),
        ({"positives": 1.5}, "positives 1.5: must be an integer"),
        ({"epsilon": None}, "epsilon None"),
        ({"epsilon": float("nan")}, "epsilon 'nan'"),
        ({"delta": "1e-5"}, "delta '1e-5': must be a number"),
        ({"delta": float("nan")}, "delta nan is not below"),
        ({"shape": (1, 3, 3)}, r"shape \(1, 3, 3\) has 9 numbers, but records have 8 features"),
        ({"shape": 8}, "shape 8"),
        ({"public": np.zeros((5, 8))}, "least_squares: reads no public features"),
        ({"floor": "yes"}, "least_squares: floor 'yes': must be a boolean$"),
        ({"unit": "subject", "subjects": np.zeros((600, 2))}, r"subjects of shape \(600, 2\): must be \(600,\)"),
        ({"unit": "subject", "subjects": ["a", None] * 300, "per_subject": 300}, "row 1: names no subject"),
        ({"unit": "subject", "subjects": ["a", np.nan] * 300, "per_subject": 300}, "row 1: names no subject"),
    ],
)
def test_mistakes_are_named_in_one_sentence(rows, change, words):
    arguments = {"name": "least_squares", "features": rows[0], "labels": rows[1], "epsilon": 1, "delta": 1e-4} | change
    with pytest.raises(StudyError, match=words) as caught:
        dpstudy.fit(arguments.pop("name"), arguments.pop("features"), arguments.pop("labels"), **arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("epsilon", [2.9999999, 0.12345678, 123456.7, 1e-7, np.float32(0.1), np.int64(2)])
def test_no_more_is_spent_than_a_number_of_many_digits_asks_for(rows, epsilon):
    ledger = dpstudy.fit("least_squares", *rows, epsilon=epsilon, delta=1e-4).ledger
    assert (1 - 1e-6) * epsilon < ledger["epsilon"] <= float(epsilon)


def test_the_ledger_says_that_labels_chose_the_number_of_classes(rows):
    """A record of a further class would change the shape of what is published, whatever the noise."""
    said, given, columns = (
        dpstudy.fit("least_squares", rows[0], labels, epsilon=1, delta=1e-4, **options).ledger["not_accounted"]
        for labels, options in ((rows[1], {}), (rows[1], {"classes": 3}), (np.eye(3, dtype=int)[rows[1]], {}))
    )
    assert said == [CLASSES_READ, *given] and columns == given
    assert given[0] == FEATURES_BROUGHT  # what they were made with nobody told


def test_a_method_without_a_schema_is_told_where_it_belongs(rows, monkeypatch):
    monkeypatch.setattr(validating, "method_names", lambda: ["newton"])
    with pytest.raises(StudyError, match="write workflow/dpstudy/schemas/methods/least_squares.schema.yaml"):
        dpstudy.fit("least_squares", *rows, epsilon=1, delta=1e-4)


@pytest.mark.parametrize("name", ["least_squares", "feature_covariance", "kernel_mean"])
def test_predict_refuses_what_does_not_fit(rows, name):
    result = dpstudy.fit(name, *rows, epsilon=1, delta=1e-4)
    for features in (rows[0][:, :1], np.hstack([rows[0]] * 2)):
        with pytest.raises(StudyError, match="do not fit this model"):
            dpstudy.predict(result.model, features)
    with pytest.raises(StudyError, match=r"features of shape \(8,\): must be \(n, d\)"):
        dpstudy.predict(result.model, rows[0][0])
    with pytest.raises(StudyError, match="Result is no model"):
        dpstudy.predict(result, rows[0])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda fitted: fitted.model, "its `fit` gave back LinearModel, must be dpstudy.methods.problem.Fit"),
        (lambda fitted: None, "its `fit` gave back NoneType"),
        (lambda fitted: Fit(None), "the model of its `fit`, NoneType, has no scores and no parameters and no finite"),
        (
            lambda fitted: Fit(replace(fitted.model, weights=fitted.model.weights.T)),
            r"gave back weights \(\d+, 3\) and",
        ),
        (
            lambda fitted: Fit(replace(fitted.model, bias=np.zeros((3, 1)))),
            r"bias \(3, 1\); must be \(3, \d+\) and \(3,\)",
        ),
        (lambda fitted: Fit(replace(fitted.model, bias=np.full(3, np.nan))), "weights that are NaN or infinite"),
    ],
)
def test_what_a_method_gives_back_is_looked_at(rows, spoil, words, monkeypatch):
    fit = least_squares.fit
    monkeypatch.setattr(least_squares, "fit", lambda *args: spoil(fit(*args)))
    with pytest.raises(StudyError, match=f"method 'least_squares': .*{words}"):
        dpstudy.fit("least_squares", *rows, epsilon=1, delta=1e-4)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda plan: plan.events, "its `plan` gave back tuple, must be dpstudy.methods.problem.Plan"),
        (
            lambda plan: replace(plan, events=plan.events[0]),
            r"the events of its `plan` are Event\(.*; must be a tuple of",
        ),
        (lambda plan: replace(plan, events=("gram",)), r"the events of its `plan` are \('gram',\); must be a tuple of"),
        (lambda plan: replace(plan, events=()), "its `plan` has no event at epsilon 1, so nothing would account"),
        (
            lambda plan: replace(plan, events=tuple(event.scaled(0.9) for event in plan.events)),
            r"its `plan` is certified for epsilon 1\.1\d+ at delta 0.0001, beyond the target 1; calibrate",
        ),
    ],
)
def test_what_a_method_plans_is_looked_at(rows, spoil, words, monkeypatch):
    plan = least_squares.plan
    monkeypatch.setattr(least_squares, "plan", lambda *args: spoil(plan(*args)))
    with pytest.raises(StudyError, match=f"method 'least_squares': {words}"):
        dpstudy.fit("least_squares", *rows, epsilon=1, delta=1e-4)


def test_what_is_beyond_its_target_by_its_nature_is_no_mistake(rows):
    options = {"epsilon": 1, "delta": 1e-4, "learning_rate": 0.5, "clipping_norm": 1.0, "steps": 3}
    shuffled = dpstudy.fit("first_order", *rows, **options, batch_size=10, sampling="shuffle", accounting="tramer2021")
    assert shuffled.ledger["epsilon"] > 1


def test_missing_hyper_parameters_are_named(rows):
    with pytest.raises(StudyError, match="method 'first_order'.*'learning_rate' and 'clipping_norm'"):
        dpstudy.fit("first_order", *rows, epsilon=1, delta=1e-4, steps=3)


def test_models_survive_their_file(tmp_path):
    rng = np.random.default_rng(3)
    features = rng.standard_normal((20, 6)).astype(np.float32)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((4, 6), (4,), (6,), (6,))]
    for model in (LinearModel(*arrays[:2]), LinearModel(*arrays)):
        model.save(tmp_path / "model.safetensors")
        again = LinearModel.load(tmp_path / "model.safetensors")
        assert np.array_equal(again.scores(features), model.scores(features))
        center, scale = (0, 1) if model.center is None else (model.center, model.scale)
        slow = ((features - center) * scale) @ model.weights.T + model.bias
        assert model.scores(features) == pytest.approx(slow, abs=1e-4)


def test_shared_noise_is_a_control_without_a_guarantee(rows):
    result = dpstudy.fit("least_squares", *rows, epsilon=1, delta=1e-4, shared_noise=True)
    check(result.ledger, "ledger", "ledger")
    assert result.ledger["guarantee"] == "none" and result.ledger["epsilon"] is None
    assert result.ledger["epsilon_by"] == dict.fromkeys(("exact", "pld", "rdp", "zcdp"))
    assert result.ledger["not_accounted"][0].startswith("One noise vector was added to every class and step")
