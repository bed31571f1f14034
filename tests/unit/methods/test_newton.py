"""DP-Newton against float64 references; what a record can change, and what noise is added, against the ledger."""

import math
import secrets
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from dpstudy.core.arrays import to_numpy
from dpstudy.core.errors import StudyError
from dpstudy.methods import newton, records
from dpstudy.methods.gradients import Head
from dpstudy.methods.newton import Parameters
from dpstudy.methods.problem import Problem
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.ledger import check_releases
from dpstudy.privacy.noise import NoiseSource

N, DIM, CLASSES = 140, 7, 5
PUBLISHED = {"variant": "published", "learning_rate": 0.6, "ridge": 0.03}
VARIANTS = [
    Parameters(**PUBLISHED, steps=3, clipping_norm=1.3),
    Parameters(steps=3, clipping_norm=1.3),
    Parameters(steps=3, clipping_norm=1.3, preconditioner="shared"),
]


@pytest.fixture
def rows():
    rng = np.random.default_rng(17)
    labels = rng.integers(CLASSES, size=N)
    return (rng.standard_normal((N, DIM)) + np.eye(CLASSES, DIM)[labels]).astype(np.float32), labels


def problem_of(epsilon="inf", n=N, dim=DIM, classes=CLASSES, **options):
    return Problem(n, (dim,), classes, Budget(epsilon, 1e-5), **options)


def source():
    return NoiseSource("seeded", "test", secrets.randbits(50))


def trained(rows, parameters, problem, noise=None, plan=None, monitor=None):
    plan = plan or newton.plan(parameters, problem)
    data = newton.prepare([rows], parameters, problem)
    return newton.fit(data, parameters, problem, plan, noise or source(), monitor).model


def clipped(x, norm):
    return x * np.minimum(1, norm / np.linalg.norm(x, axis=1, keepdims=True))


def probabilities(scores, variant):
    if variant == "published":
        return 1 / (1 + np.exp(-scores))
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True)


def slow_newton(x, labels, parameters):
    """By a loop over records and classes in float64."""
    weights, classes, dim = np.zeros((CLASSES, x.shape[1])), CLASSES, x.shape[1]
    for _ in range(parameters.steps):
        gradient, blocks = np.zeros_like(weights), np.zeros((classes, dim, dim))
        for row, label in zip(x, labels, strict=True):
            p = probabilities(weights @ row, parameters.variant)
            for j in range(classes):
                gradient[j] += (p[j] - (label == j)) * row
                blocks[j] += p[j] * (1 - p[j]) * np.outer(row, row)
        if parameters.preconditioner == "shared":
            blocks[:] = blocks.mean(0)
        for j in range(classes):
            system = blocks[j] / len(x) + parameters.ridge * np.eye(dim)
            weights[j] -= parameters.learning_rate * np.linalg.solve(system, gradient[j] / len(x))
    return weights


@pytest.mark.parametrize("parameters", VARIANTS)
def test_without_noise_it_equals_a_loop_over_examples(rows, parameters):
    parameters = replace(parameters, ridge=0.03, learning_rate=0.6)
    model = trained(rows, parameters, problem_of(sanitise="clip"))
    x = clipped(rows[0].astype(np.float64), 1.3)
    expected = slow_newton(x, rows[1], parameters)
    assert model.weights == pytest.approx(expected, rel=1e-4, abs=1e-4 * np.abs(expected).max())
    assert not model.bias.any()


def test_full_steps_reach_the_optimum_of_the_regularised_logistic_loss(rows):
    """Adding ridge x identity to the Hessian alone damps; at the optimum of the loss itself the step is zero."""
    parameters = Parameters(variant="published", steps=60, learning_rate=1.0, ridge=1e-3)
    weights = trained(rows, parameters, problem_of()).weights.astype(np.float64)
    x, y = rows[0].astype(np.float64), np.eye(CLASSES)[rows[1]]
    gradient = (probabilities(x @ weights.T, "published") - y).T @ x / N
    assert np.abs(gradient).max() < 1e-5


def test_one_full_step_solves_the_first_system_to_five_digits(rows):
    parameters = Parameters(variant="published", learning_rate=1.0, ridge=1e-3)
    x, y = rows[0].astype(np.float64), np.eye(CLASSES)[rows[1]]
    expected = np.linalg.solve(x.T @ x / 4 / N + 1e-3 * np.eye(DIM), -x.T @ (0.5 - y) / N).T
    assert trained(rows, parameters, problem_of()).weights == pytest.approx(expected, abs=1e-5)


def test_several_labels_a_record_equal_independent_logistic_regressions(rows):
    labels = (np.random.default_rng(6).random((N, CLASSES)) < 0.4).astype(np.int8)
    parameters = Parameters(**PUBLISHED, steps=3)
    together = trained((rows[0], labels), parameters, problem_of(positives=CLASSES)).weights
    for j in range(CLASSES):
        alone = np.zeros((N, CLASSES), np.int8)
        alone[:, j] = labels[:, j]
        single = trained((rows[0], alone), parameters, problem_of()).weights[j]
        assert together[j] == pytest.approx(single, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("parameters", VARIANTS)
@pytest.mark.parametrize("epsilon", ["0.1", "4"])
def test_a_newton_plan_spends_the_budget_and_the_run_what_the_plan_says(rows, parameters, epsilon):
    problem = problem_of(epsilon)
    plan, noise = newton.plan(parameters, problem), source()
    trained(rows, parameters, problem, noise, plan)
    check_releases(plan.events, noise.drawn)
    assert float(epsilon) * (1 - 1e-6) <= certify(plan.events, 1e-5).epsilon <= float(epsilon)


def test_a_published_run_is_t_over_sigma_squared_zcdp():
    plan = newton.plan(replace(VARIANTS[0], steps=10), problem_of("1"))
    (sigma,) = {event.noise_multiplier for event in plan.events}
    assert sum(event.count / (2 * event.noise_multiplier**2) for event in plan.events) == pytest.approx(10 / sigma**2)
    bounds = {event.name: event.sensitivity for event in plan.events}
    assert bounds == pytest.approx({"gradient": math.sqrt(5) * 1.3, "hessian": math.sqrt(5) * 1.3**2 / 4})


def test_the_hessians_get_their_share_of_mu_squared():
    for preconditioner in ("per-class", "shared"):
        parameters = Parameters(steps=4, hessian_share=0.2, preconditioner=preconditioner)
        spent = Counter()
        for event in newton.plan(parameters, problem_of("1")).events:
            spent[event.name] += event.count / event.noise_multiplier**2
        assert spent["hessian"] == pytest.approx(0.25 * spent["gradient"])


def test_the_bounds_of_later_steps_are_the_largest_over_all_probabilities():
    """Climbed from many starts, over the scores of two to ten classes, and nowhere exceeded; they are charged."""
    rng = np.random.default_rng(secrets.randbits(60))

    def sums(scores):
        p = np.exp(scores - scores.max())
        p /= p.sum()
        residual = p - np.eye(len(p))[0]
        return {"gradient": residual @ residual, "hessian": ((p * (1 - p)) ** 2).sum(), "shared": (p * (1 - p)).sum()}

    for classes in (2, 3, 4, 5, 6, 10):
        bounds = {"gradient": 2.0, "hessian": 4 / 27 if classes > 2 else 1 / 8, "shared": 1 - 1 / classes}
        for name, bound in bounds.items():
            starts = 4 * rng.standard_normal((15, classes))
            climbed = max(-minimize(lambda x, name=name: -sums(x)[name], start).fun for start in starts)
            assert 0.99 * bound < climbed <= bound * (1 + 1e-9), name
        for preconditioner, hessian in (("per-class", bounds["hessian"]), ("shared", bounds["shared"] ** 2)):
            parameters = Parameters(steps=3, clipping_norm=1.5, preconditioner=preconditioner)
            events = newton.plan(parameters, problem_of("1", classes=classes)).events
            later = {event.name: event.sensitivity for event in events if event.count == 2}
            assert later["gradient"] == pytest.approx(1.5 * math.sqrt(bounds["gradient"]))
            assert later["hessian"] == pytest.approx(1.5**2 * math.sqrt(hessian))
        at_zero = {"gradient": 1 - 1 / classes, "hessian": (1 - 1 / classes) ** 2 / classes, "shared": 1 - 1 / classes}
        assert sums(np.zeros(classes)) == pytest.approx(at_zero)


@pytest.mark.parametrize("parameters", VARIANTS)
def test_later_steps_have_the_noise_of_the_first_and_cost_more(parameters):
    problem = problem_of("1")
    once, several = (newton.plan(replace(parameters, steps=steps), problem) for steps in (1, 4))
    assert {event.name: event.count for event in once.events} == {"gradient": 1, "hessian": 1}
    for name in ("gradient", "hessian"):
        events = [event for event in several.events if event.name == name]
        assert sum(event.count for event in events) == 4
        stds = [event.noise_multiplier * event.sensitivity for event in events]
        assert stds == pytest.approx([several.noise[name]] * len(events))
    first = {event.name: event.sensitivity for event in once.events}
    if parameters.variant == "softmax":
        assert first["gradient"] == pytest.approx(1.3 * math.sqrt(0.8))  # of five classes


def test_softmax_of_one_class_is_refused():
    with pytest.raises(StudyError, match="two classes at least"):
        newton.plan(Parameters(), problem_of("1", classes=1))


@pytest.mark.parametrize("parameters", VARIANTS)
def test_dropped_records_leave_what_newton_sums_are_divided_by(rows, parameters):
    """A place in the public n whose record is gone counts like one that holds no numbers."""
    problem, parameters = problem_of("1"), replace(parameters, ridge=0.03)
    plan = replace(newton.plan(parameters, problem), noise={"gradient": 0.0, "hessian": 0.0})
    gone = rows[0].copy()
    gone[90:] = math.nan
    kept = trained((rows[0][:90], rows[1][:90]), parameters, problem, plan=plan).weights
    assert kept == pytest.approx(trained((gone, rows[1]), parameters, problem, plan=plan).weights, abs=1e-5)


def worst_points(rng):
    """Weights at which one direction has residuals and curvatures as large as they get, and random ones."""
    point = np.zeros((CLASSES, DIM))
    yield point
    three = np.full(CLASSES, -60.0)
    three[:3] = 0
    yield three[:, None] * np.eye(DIM)[0]  # three classes equally likely along the first axis
    one = np.full(CLASSES, -60.0)
    one[0] = 60
    yield one[:, None] * np.eye(DIM)[0]
    wrong = np.full((CLASSES, 1), 60.0)
    yield wrong * np.eye(DIM)[0]
    for scale in (1.0, 30.0, 1e20):
        yield scale * rng.standard_normal((CLASSES, DIM))


@pytest.mark.parametrize("parameters", VARIANTS)
def test_no_record_changes_a_newton_release_by_more_than_its_sensitivity(rows, parameters):
    rng = np.random.default_rng(secrets.randbits(60))
    problem = problem_of("1")
    plan = newton.plan(parameters, problem)
    head, largest = Head(parameters.loss, 0.0, math.inf, mean=False), dict.fromkeys(plan.events, 0.0)
    points = [point.astype(np.float32) for point in worst_points(rng)]

    def released(x, y):
        data = newton.prepare([(x, y)], parameters, problem)
        silent = replace(plan, noise=dict.fromkeys(plan.noise, 0.0))
        found = {"gradient": [], "hessian": []}
        for step, point in enumerate(points, start=1):
            point = data.records.place.array(point)
            found["gradient"].append(newton._gradient(data, point, head, step))
            blocks = newton._noisy_hessians(data, point, parameters, silent, source(), step)
            scale = CLASSES if parameters.preconditioner == "shared" else 1
            found["hessian"].append(np.array([to_numpy(block) * scale for _, block in blocks]))
        return found

    def adversarial():
        for scale in (0.0, 1e-30, 0.3, 1.3, 7.0, 1e10, 1e16, 3e37):
            yield scale * rng.standard_normal(DIM)
            yield scale * np.eye(DIM)[0]
            yield -scale * np.eye(DIM)[0]
        yield np.full(DIM, math.nan)

    before = released(*rows)
    for row in adversarial():
        for label in range(CLASSES):
            with np.errstate(over="ignore"):
                x = np.vstack([rows[0], row[None].astype(np.float32)])
            after = released(x, np.append(rows[1], label))
            for name in before:
                (first, *_, last) = 2 * [event for event in plan.events if event.name == name]
                for step, (one, other) in enumerate(zip(before[name], after[name], strict=True)):
                    change, event = np.linalg.norm(one.astype(np.float64) - other), last if step else first
                    assert change <= event.sensitivity * (1 + 1e-4), (name, step)
                    largest[event] = max(largest[event], change)
    for event, reached in largest.items():
        assert reached >= 0.99 * event.sensitivity, event


@pytest.mark.parametrize("parameters", VARIANTS)
def test_newton_noise_is_what_the_ledger_says_fresh_for_each_step_and_class(parameters, monkeypatch):
    dim, classes, n = 60, 4, 30
    rows = np.full((n, dim), math.nan, np.float32), np.arange(n) % classes
    problem = problem_of("1", n, dim, classes)
    plan = newton.plan(parameters, problem)
    gradients, matrices = [], []

    def watched(matrix, ridge, right):
        matrices.append(matrix * n)
        gradients.append(right * n)
        return np.zeros_like(right)

    monkeypatch.setattr(newton, "solve_floored", watched)
    trained(rows, parameters, problem, source(), plan)
    bounds = {event.name: event.noise_multiplier * event.sensitivity for event in plan.events}
    flat = np.concatenate([gradient.reshape(-1, dim) for gradient in gradients])
    assert len(flat) == classes * parameters.steps
    assert flat.std() == pytest.approx(bounds["gradient"], rel=6 / math.sqrt(2 * flat.size))
    upper = np.triu_indices(dim, 1)
    shared = parameters.preconditioner == "shared"
    assert len(matrices) == parameters.steps * (1 if shared else classes)
    draws = np.array([math.sqrt(2) * matrix[upper] for matrix in matrices]) * (classes if shared else 1)
    assert draws.std() == pytest.approx(bounds["hessian"], rel=6 / math.sqrt(2 * draws.size))
    for group in (flat, draws):
        limit = 7 / math.sqrt(group.shape[1])
        assert np.abs(np.corrcoef(group)[np.triu_indices(len(group), 1)]).max() < limit


@pytest.mark.parametrize("parameters", VARIANTS)
def test_blocks_of_classes_and_of_rows_change_nothing(rows, parameters, monkeypatch):
    problem, models = problem_of("2"), []
    for size, values in ((1 << 31, 1 << 20), (12 * DIM * DIM * 2, 1)):
        monkeypatch.setattr(newton, "_BLOCK_BYTES", size)
        monkeypatch.setattr(records, "_BLOCK_VALUES", {"cpu": values, "cuda": values})
        models.append(trained(rows, parameters, problem, NoiseSource("seeded", "same")).weights)
    assert models[0] == pytest.approx(models[1], rel=1e-3, abs=1e-4 * float(np.abs(models[0]).max()))


@pytest.mark.parametrize("parameters", VARIANTS)
def test_records_that_are_streamed_train_the_same_head(rows, parameters):
    class Streamed(list):
        nbytes = 1 << 40

    problem = problem_of("2")
    plan = newton.plan(parameters, problem)
    held = trained(rows, parameters, problem, NoiseSource("seeded", "same"), plan)
    batches = Streamed([(rows[0][:50], rows[1][:50]), (rows[0][50:], rows[1][50:])])
    data = newton.prepare(batches, parameters, problem)
    assert not data.records.held
    streamed = newton.fit(data, parameters, problem, plan, NoiseSource("seeded", "same")).model
    assert streamed.weights == pytest.approx(held.weights, rel=1e-3, abs=1e-4 * float(np.abs(held.weights).max()))


@pytest.mark.parametrize("preconditioner", ["per-class", "shared"])
def test_a_known_noise_ridge_is_half_the_spectral_norm_of_the_noise(preconditioner, monkeypatch):
    dim, n, seen = 300, 50, []
    monkeypatch.setattr(newton, "solve_floored", lambda *system: seen.append(system[:2]) or np.zeros_like(system[2]))
    rows = np.full((n, dim), math.nan, np.float32), np.arange(n) % 3
    trained(rows, Parameters(preconditioner=preconditioner), problem_of("1", n, dim, 3))
    assert len(seen) == (1 if preconditioner == "shared" else 3)
    for noise, ridge in seen:
        assert ridge == pytest.approx(np.abs(np.linalg.eigvalsh(noise)).max() / 2, rel=0.1)


@pytest.mark.parametrize("parameters", VARIANTS)
def test_without_the_floor_the_noisy_system_is_solved_as_it_is(rows, parameters, monkeypatch):
    seen, original = [], newton.solve_ridge

    def watched(matrix, ridge, right):
        seen.append((np.linalg.eigvalsh(matrix.astype(np.float64)).min(), ridge))
        return original(matrix, ridge, right)

    monkeypatch.setattr(newton, "solve_ridge", watched)
    trained(rows, replace(parameters, floor=False, ridge="known-noise"), problem_of("0.1"))
    assert len(seen) == 3 * (1 if parameters.preconditioner == "shared" else CLASSES)
    assert min(lowest for lowest, _ in seen) < 0 < min(lowest + ridge for lowest, ridge in seen)


@pytest.mark.parametrize("parameters", VARIANTS)
def test_the_newton_curve_ends_where_the_model_and_the_budget_do(rows, parameters):
    problem, path = problem_of("1"), []
    parameters = replace(parameters, steps=6, curve_points=3)
    plan = newton.plan(parameters, problem)
    model = trained(rows, parameters, problem, plan=plan, monitor=lambda step, model: path.append((step, model)))
    assert [step for step, _ in path] == [2, 4, 6]
    assert np.array_equal(path[-1][1].weights, model.weights) and not np.allclose(path[0][1].weights, model.weights)
    assert newton.spent(plan, 6) == plan.events
    for step in (1, 2, 5):
        counts = Counter()
        for event in newton.spent(plan, step):
            counts[event.name] += event.count
        assert counts == {"gradient": step, "hessian": step}
    once = newton.spent(plan, 1)
    assert [event.sensitivity for event in once] == [
        next(event.sensitivity for event in plan.events if event.name == name) for name in ("gradient", "hessian")
    ]


def test_trials_of_both_variants_on_one_preparation_do_not_share_their_losses(rows):
    problem = problem_of("1")
    data = newton.prepare([rows], Parameters(), problem)
    for parameters in (Parameters(**PUBLISHED), Parameters(), Parameters(preconditioner="shared")):
        plan = newton.plan(parameters, problem)
        after = newton.fit(data, parameters, problem, plan, NoiseSource("seeded", "same")).model
        alone = trained(rows, parameters, problem, NoiseSource("seeded", "same"), plan)
        assert np.array_equal(after.weights, alone.weights)


def test_every_newton_seed_and_trial_shares_what_is_free_of_noise(rows, monkeypatch):
    problem, calls = problem_of("1"), []
    for name in ("gram", "clipped_sum"):
        original = getattr(newton, name)
        monkeypatch.setattr(newton, name, lambda *given, original=original: calls.append(1) or original(*given))
    parameters = replace(VARIANTS[0], steps=1)
    plan = newton.plan(parameters, problem)
    data = newton.prepare([rows], parameters, problem)
    noise = [NoiseSource("seeded", "same") for _ in range(2)]
    shared = [newton.fit(data, parameters, problem, plan, one).model.weights for one in noise]
    alone = trained(rows, parameters, problem, NoiseSource("seeded", "same"), plan).weights
    assert np.array_equal(shared[0], alone) and np.array_equal(shared[1], alone)
    assert len(calls) == 4  # a Gram and a gradient for each preparation


@pytest.mark.parametrize("parameters", VARIANTS)
def test_hard_newton_data_leave_a_finite_model(parameters):
    rng = np.random.default_rng(3)
    wide = rng.standard_normal((10, 40)).astype(np.float32)
    twins = np.repeat(rng.standard_normal((30, 3)), 2, axis=1).astype(np.float32)
    twins[:, 0] = 0
    for x in (wide, twins, np.zeros((8, 5), np.float32)):
        labels = np.zeros(len(x), np.int64)
        for epsilon in ("0.01", "1", "inf"):
            for ridge in (1e-8, 1e8, "known-noise"):
                problem = problem_of(epsilon, len(x), x.shape[1], 3)
                model = trained((x, labels), replace(parameters, ridge=ridge), problem)
                assert np.isfinite(model.weights).all()


def test_refused_newton_settings(rows):
    for options, sentence in (
        ({"variant": "sigmoid"}, "variant 'sigmoid': one of 'softmax', 'published'"),
        ({"variant": "published", "preconditioner": "shared"}, "goes with the variant 'softmax' only"),
        ({"hessian_share": 1.0}, "must lie between 0 and 1"),
        ({"steps": 0}, "steps 0: must be an integer of at least 1"),
        ({"ridge": "auto"}, "ridge 'auto': must be a number above 0"),
    ):
        with pytest.raises(StudyError, match=sentence):
            Parameters(**options)
    labels = np.eye(CLASSES, dtype=np.int8)[rows[1]]
    labels[0] = 1
    with pytest.raises(StudyError, match="takes one label a record; use variant: published for several"):
        newton.plan(Parameters(), problem_of("1", positives=2))
    with pytest.raises(StudyError, match="row 0: 5 positive labels where at most 2 are declared"):
        trained((rows[0], labels), VARIANTS[0], problem_of("1", positives=2))
