"""DP-FC against float64 references; what a record can change, and what noise is added, against the ledger."""

import math
import secrets
from dataclasses import replace

import numpy as np
import pytest

from dpstudy.core.arrays import to_numpy
from dpstudy.core.errors import StudyError
from dpstudy.methods import feature_covariance, private_mean
from dpstudy.methods.feature_covariance import Parameters
from dpstudy.methods.gradients import clipped_sum
from dpstudy.methods.grams import gram
from dpstudy.methods.problem import Problem
from dpstudy.methods.row_map import RowMap
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.ledger import check_releases
from dpstudy.privacy.noise import NoiseSource

N, DIM, CLASSES = 150, 9, 4
PUBLISHED = {"variant": "published", "steps": 3, "learning_rate": 0.7, "ridge": 0.05}


@pytest.fixture
def rows():
    rng = np.random.default_rng(13)
    labels = rng.integers(CLASSES, size=N)
    return (rng.standard_normal((N, DIM)) + 0.7 * np.eye(CLASSES, DIM)[labels] + 0.4).astype(np.float32), labels


def problem_of(epsilon="inf", n=N, dim=DIM, classes=CLASSES, **options):
    return Problem(n, (dim,), classes, Budget(epsilon, 1e-5), **options)


def source():
    return NoiseSource("seeded", "test", secrets.randbits(50))


def trained(rows, parameters, problem, noise=None, plan=None, monitor=None):
    plan = plan or feature_covariance.plan(parameters, problem)
    data = feature_covariance.prepare([rows], parameters, problem)
    return feature_covariance.fit(data, parameters, problem, plan, noise or source(), monitor).model


def noiseless(plan):
    return replace(plan, noise=dict.fromkeys(("mean", "gram", "targets", "gradient"), 0.0))


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def softmax(scores):
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True)


@pytest.mark.parametrize("clipped", [True, False])
def test_published_equals_algorithm_4_in_a_loop_over_examples(rows, clipped):
    norms = {"clipping_norm": 0.8, "gram_clipping_norm": 1.5}
    problem = problem_of(sanitise="clip" if clipped else "full")
    model = trained(rows, Parameters(**PUBLISHED, **norms), problem)
    x, y = rows[0].astype(np.float64), np.eye(CLASSES)[rows[1]]
    covariance = np.zeros((DIM, DIM))
    for row in x:
        row = row * min(1, 1.5 / np.linalg.norm(row)) if clipped else row
        covariance += np.outer(row, row) / N
    inverse = np.linalg.inv(covariance + 0.05 * np.eye(DIM))
    weights = np.zeros((CLASSES, DIM))
    for _ in range(3):
        total = np.zeros_like(weights)
        for row, target in zip(x, y, strict=True):
            gradient = np.outer(1 / (1 + np.exp(10 - weights @ row)) - target, row) / CLASSES
            total += gradient * min(1, 0.8 / np.linalg.norm(gradient)) if clipped else gradient
        weights -= 0.7 * total / N @ inverse
    assert model.weights == pytest.approx(weights, rel=1e-4, abs=1e-4 * np.abs(weights).max())
    assert (model.bias == -10).all()


def test_improved_equals_its_description_in_a_loop_over_examples(rows):
    parameters = Parameters(steps=4, learning_rate=0.9, ridge=0.02, start_share=0.1)
    model = trained(rows, parameters, problem_of(sanitise="clip"))
    first, labels = unit(rows[0].astype(np.float64)), rows[1]
    center = first.mean(0)
    x, y = unit(first - center), np.eye(CLASSES)[labels]
    inverse = np.linalg.inv(x.T @ x / N / 2 + 0.02 * np.eye(DIM))
    weights = (y - 1 / CLASSES).T @ x / N @ inverse
    for _ in range(4):
        total = np.zeros_like(weights)
        for row, target in zip(x, y, strict=True):
            gradient = np.outer(softmax(weights @ row) - target, row)
            total += gradient * min(1, 0.2 / np.linalg.norm(gradient))
        weights -= 0.9 * total / N @ inverse
    assert model.weights == pytest.approx(weights, rel=1e-4, abs=1e-4 * np.abs(weights).max())
    assert model.center == pytest.approx(center, abs=1e-6)
    assert model.scores(rows[0]) == pytest.approx(x @ weights.T, abs=1e-3)


def test_without_privacy_the_improved_form_fits_as_logistic_regression_does(rows):
    from sklearn.linear_model import LogisticRegression

    model = trained(rows, Parameters(steps=2000, learning_rate=1.0, mean_share=0.0, ridge=1e-6), problem_of())
    x = unit(rows[0].astype(np.float64))
    reference = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(x, rows[1])
    ours = softmax(model.scores(rows[0]).astype(np.float64))
    assert ours == pytest.approx(reference.predict_proba(x), abs=2e-3)


def test_without_privacy_the_default_is_regularised_and_what_is_set_by_hand_holds(rows):
    """Records of few dimensions are not learned by heart; those of many would be."""
    rng = np.random.default_rng(5)
    labels = rng.integers(CLASSES, size=500)
    x = (rng.standard_normal((500, 200)) + 2 * np.eye(CLASSES, 200)[labels]).astype(np.float32)
    new = (rng.standard_normal((2000, 200)) + 2 * np.eye(CLASSES, 200)[labels.repeat(4)]).astype(np.float32)
    problem = problem_of(n=500, dim=200)
    right = {
        name: np.mean(trained((x, labels), parameters, problem).scores(new).argmax(1) == labels.repeat(4))
        for name, parameters in {"default": Parameters(), "by hand": Parameters(steps=300)}.items()
    }
    assert right["default"] > right["by hand"] + 0.03
    steps = []
    trained((x, labels), Parameters(curve_points=4), problem, monitor=lambda step, model: steps.append(step))
    assert steps == [25, 50, 75, 100]
    facts = feature_covariance.plan(Parameters(), problem).facts
    assert (facts["steps"], facts["learning_rate_applied"]) == (100, 1.0)
    assert feature_covariance.plan(Parameters(steps=300), problem).facts["learning_rate_applied"] == 1.9


VARIANTS = [
    Parameters(),
    Parameters(start_share=0.2, steps=5, mean_share=0.0),
    Parameters(start_share=0.5, steps=0),
    Parameters(**PUBLISHED, clipping_norm=0.005),
    Parameters(**PUBLISHED, clipping_norm=0.2, gram_clipping_norm=3.0),
]


@pytest.mark.parametrize("parameters", VARIANTS)
@pytest.mark.parametrize("epsilon", ["0.1", "4"])
def test_the_plan_spends_the_budget_and_the_run_what_the_plan_says(rows, parameters, epsilon):
    problem = problem_of(epsilon)
    plan, noise = feature_covariance.plan(parameters, problem), source()
    trained(rows, parameters, problem, noise, plan)
    check_releases(plan.events, noise.drawn)
    assert float(epsilon) * (1 - 1e-6) <= certify(plan.events, 1e-5).epsilon <= float(epsilon)


def test_shares_of_mu_squared_are_as_asked_for():
    parameters = Parameters(start_share=0.2, steps=5, mean_share=0.05, gram_share=0.15)
    plan = feature_covariance.plan(parameters, problem_of("1"))
    spent = {event.name: event.count / event.noise_multiplier**2 for event in plan.events}
    total = sum(spent.values())
    assert {name: value / total for name, value in spent.items()} == pytest.approx(
        {"mean": 0.05, "gram": 0.15, "targets": 0.2, "gradient": 0.6}
    )


def adversarial(rng):
    for scale in (0.0, 1e-30, 1e-3, 0.3, 1.0, 7.0, 1e4, 1e10, 1e14, 1e16, 1e30, 3e37):
        yield scale * rng.standard_normal(DIM)
        yield scale * np.eye(DIM)[rng.integers(DIM)]
    for bad in (math.nan, math.inf):
        yield np.full(DIM, bad)


@pytest.mark.parametrize("parameters", VARIANTS)
def test_no_record_changes_a_release_by_more_than_its_sensitivity(rows, parameters):
    rng = np.random.default_rng(secrets.randbits(60))
    problem = problem_of("1")
    plan = feature_covariance.plan(parameters, problem)
    head = parameters.head(problem)
    center = (0.6 * rng.standard_normal(DIM)).astype(np.float32)
    points = [scale * rng.standard_normal((CLASSES, DIM)).astype(np.float32) for scale in (0.0, 3.0, 1e3, 1e20)]

    def released(x, y):
        data = feature_covariance.prepare([(x, y)], parameters, problem)
        mean = problem.n * private_mean.release(data.covariates, problem, noiseless(plan), source())
        if parameters.mean_share and parameters.variant == "improved":
            moved = data.records.mapped(RowMap(unit_first=True, center=center, unit=True))
            data = replace(data, covariates=moved, records=moved)
        found = {"mean": [mean], "gram": [gram(data.covariates)]}
        targets = feature_covariance._release_targets(data.records, problem, noiseless(plan), source())
        found["targets"] = [to_numpy(targets) * problem.n]
        here = data.records.place.array
        found["gradient"] = [to_numpy(clipped_sum(data.records, here(point), head)) for point in points]
        return found

    before, largest = released(*rows), {event.name: 0.0 for event in plan.events}
    for row in adversarial(rng):
        with np.errstate(over="ignore"):
            x = np.vstack([rows[0], row[None].astype(np.float32)])
        after = released(x, np.append(rows[1], rng.integers(CLASSES)))
        for event in plan.events:
            for one, other in zip(before[event.name], after[event.name], strict=True):
                change = np.linalg.norm(one.astype(np.float64) - other)
                assert change <= event.sensitivity * (1 + 1e-4), event.name
                largest[event.name] = max(largest[event.name], change)
    for event in plan.events:
        # centring over classes makes the targets' own change smaller than the release's, by sqrt(1 - 1/m)
        slack = math.sqrt(1 - 1 / CLASSES) if event.name == "targets" else 1.0
        assert largest[event.name] >= 0.99 * slack * event.sensitivity, event.name


@pytest.mark.parametrize("parameters", [Parameters(steps=4, start_share=0.2), Parameters(**PUBLISHED)])
def test_the_noise_is_what_the_ledger_says_fresh_for_each_step_and_class(parameters, monkeypatch):
    """Records that hold no numbers leave nothing but noise."""
    dim, classes, n = 400, 6, 50
    rows = np.full((n, dim), math.nan, np.float32), np.arange(n) % classes
    problem = problem_of("1", n, dim, classes)
    plan = feature_covariance.plan(parameters, problem)
    seen = {event.name: [] for event in plan.events}
    gaussian = NoiseSource.gaussian

    def watched(self, name, *arguments, **named):
        noise = gaussian(self, name, *arguments, **named)
        seen[name].append(noise.copy())
        return noise

    identity = type("Identity", (), {"__init__": lambda self, matrix, *rest: setattr(self, "matrix", matrix)})
    identity.__call__ = lambda self, gradients: matrices.append(self.matrix) or gradients
    matrices, path = [], [np.zeros((classes, dim))]
    monkeypatch.setattr(NoiseSource, "gaussian", watched)
    monkeypatch.setattr(feature_covariance, "Preconditioner", identity)
    steps = replace(parameters, learning_rate=1.0, curve_points=parameters.steps)
    trained(rows, steps, problem, source(), plan, lambda step, model: path.append(model.weights))
    for event in plan.events:
        assert len(seen[event.name]) == event.count
        for draw in seen[event.name]:
            spread = 6 / math.sqrt(2 * draw.size)
            assert draw.std() == pytest.approx(event.noise_multiplier * event.sensitivity, rel=spread), event.name
    # what was drawn is what was added: to the sum, once a step
    for before, after, draw in zip(path[-len(seen["gradient"]) - 1 :], path[1:], seen["gradient"], strict=False):
        if before.any() or not parameters.start_share:  # a start is not on the path
            assert (before - after) * n == pytest.approx(draw, rel=1e-3, abs=1e-3 * float(draw.std()))
    scale = n * (2 if parameters.variant == "improved" else 1)
    assert np.diag(matrices[0]).std() * scale == pytest.approx(plan.noise["gram"], rel=0.25)
    flat = np.array([draw.ravel() for draw in seen["gradient"]]).reshape(-1, dim)
    assert np.abs(np.corrcoef(flat)[np.triu_indices(len(flat), 1)]).max() < 6 / math.sqrt(dim)


def test_the_mean_shrinks_to_nothing_where_noise_drowns_it(rows):
    problem = problem_of("0.01", dim=DIM)
    parameters = Parameters()
    plan = feature_covariance.plan(parameters, problem)
    records = feature_covariance.prepare([rows], parameters, problem).covariates
    std = plan.noise["mean"]
    # Of the float32 records as they are: where the mean almost vanishes, their rounding shows.
    total = sum(block.features.sum(0, dtype=np.float64) for block in records.blocks())
    assert total == pytest.approx(unit(rows[0]).sum(0), rel=1e-5, abs=1e-5)
    for _ in range(20):
        noise = source()
        released = private_mean.release(records, problem, plan, noise)
        raw = total + NoiseSource("seeded", *noise.key).gaussian("mean", (DIM,), std, dtype=np.float64)
        factor = max(0.0, 1 - (DIM - 2) * std**2 / (raw @ raw))
        assert released == pytest.approx(factor * raw / N, rel=1e-4, abs=1e-7)


def test_a_known_noise_ridge_is_the_spectral_norm_of_the_noise():
    dim, n = 300, 1000
    problem = problem_of("1", n, dim)
    plan = feature_covariance.plan(Parameters(), problem)
    data = feature_covariance.prepare([(np.zeros((3, dim), np.float32), np.arange(3))], Parameters(), problem)
    seen = {}
    original = feature_covariance.Preconditioner

    def watched(matrix, ridge, *rest):
        seen.update(matrix=matrix.copy(), ridge=ridge)
        return original(matrix, ridge, *rest)

    feature_covariance.Preconditioner = watched
    try:
        feature_covariance._preconditioner(data, Parameters(), problem, plan, source())
    finally:
        feature_covariance.Preconditioner = original
    norm = np.abs(np.linalg.eigvalsh(seen["matrix"])).max()  # of the noise of G/2
    assert seen["ridge"] == pytest.approx(2 * norm, rel=0.1)


def test_every_seed_and_trial_shares_what_is_free_of_noise(rows, monkeypatch):
    problem, calls = problem_of("1"), []
    original = feature_covariance.gram
    monkeypatch.setattr(feature_covariance, "gram", lambda records: calls.append(1) or original(records))
    parameters = Parameters(**PUBLISHED)
    plan = feature_covariance.plan(parameters, problem)
    data = feature_covariance.prepare([rows], parameters, problem)
    models = [
        feature_covariance.fit(data, replace(parameters, learning_rate=rate), problem, plan, source()).model
        for rate in (0.1, 1.0, 10.0)
    ]
    alone = trained(rows, parameters, problem, NoiseSource("seeded", "same"), plan)
    shared = feature_covariance.fit(data, parameters, problem, plan, NoiseSource("seeded", "same")).model
    assert np.array_equal(alone.weights, shared.weights)
    assert len(calls) == 2 and not np.allclose(models[0].weights, models[1].weights)


@pytest.mark.parametrize("parameters", VARIANTS)
def test_hard_data_leave_a_finite_model(parameters):
    rng = np.random.default_rng(3)
    wide = rng.standard_normal((10, 40)).astype(np.float32)
    twins = np.repeat(rng.standard_normal((30, 3)), 2, axis=1).astype(np.float32)  # singular, with a zero column
    twins[:, 0] = 0
    for x in (wide, twins, np.zeros((8, 5), np.float32)):
        labels = np.zeros(len(x), np.int64)  # the other classes have no example
        for epsilon in ("0.01", "1", "inf"):
            problem = problem_of(epsilon, len(x), x.shape[1], 3)
            model = trained((x, labels), parameters, problem)
            assert np.isfinite(model.weights).all() and np.isfinite(model.scores(x)).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"variant": "pubished"}, "variant 'pubished': one of 'improved', 'published'"),
        ({"variant": "published"}, "steps: the published variant needs a number"),
        ({"variant": "published", "steps": 10}, "learning_rate: the published variant needs a number"),
        (PUBLISHED | {"start_share": 0.5}, "start_share: the published variant starts at zero weights; leave it out"),
        ({"steps": 0}, "steps 0: must be an integer of at least 1"),
        ({"mean_share": 0.5, "gram_share": 0.5}, "their sum must be below 1"),
        ({"clipping_norm": 0}, "clipping_norm 0: must be a number above 0"),
        ({"ridge": -1}, "ridge -1: must be a number above 0"),
        ({"loss": "hinge"}, "loss 'hinge'"),
    ],
)
def test_refused_settings(options, sentence):
    with pytest.raises(StudyError, match=sentence):
        Parameters(**options)


def test_several_labels_a_record_need_the_sigmoid_loss(rows):
    labels = np.eye(CLASSES, dtype=np.int8)[rows[1]]
    labels[0] = 1
    with pytest.raises(StudyError, match="takes one label a record; set loss: sigmoid"):
        feature_covariance.plan(Parameters(), problem_of("1", positives=2))
    with pytest.raises(StudyError, match="row 0: 4 positive labels where at most 2 are declared"):
        trained((rows[0], labels), Parameters(loss="sigmoid"), problem_of("1", positives=2))
