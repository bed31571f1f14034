"""Least squares against float64 references, and the private sums against a loop."""

import math
import secrets
import stat
from dataclasses import replace

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_tensors, write_tensors
from dpstudy.methods import least_squares, sufficient_statistics
from dpstudy.methods.clipping import clip_rows
from dpstudy.methods.labels import one_hot
from dpstudy.methods.least_squares import Parameters
from dpstudy.methods.problem import Problem
from dpstudy.methods.spectral import solve_floored, solve_ridge
from dpstudy.methods.sufficient_statistics import Statistics, accumulate
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.ledger import check_releases
from dpstudy.privacy.noise import NoiseSource

N, DIM, CLASSES = 200, 11, 5


@pytest.fixture
def rows():
    rng = np.random.default_rng(11)
    labels = rng.integers(CLASSES, size=N)
    return (rng.standard_normal((N, DIM)) + labels[:, None] / 3).astype(np.float32), labels


def problem_of(epsilon="inf", **options):
    return Problem(N, (DIM,), CLASSES, Budget(epsilon, 1e-5), **options)


def source():
    return NoiseSource("seeded", "test", secrets.randbits(50))


def fitted(rows, parameters, problem):
    plan = least_squares.plan(parameters, problem)
    statistics = least_squares.prepare([rows], parameters, problem)
    return least_squares.fit(statistics, parameters, problem, plan, source()).model


def slow_sums(rows, norm):
    """The three sums by a loop over records in float64."""
    gram, targets = np.zeros((DIM, DIM)), np.zeros((CLASSES, DIM))
    class_grams = np.zeros((CLASSES, DIM, DIM))
    for x, label in zip(rows[0].astype(np.float64), rows[1], strict=True):
        if not np.isfinite(x).all():
            continue
        x = x * min(1.0, norm / np.linalg.norm(x)) if x.any() else x
        for j in range(CLASSES):
            if (label == j) if np.ndim(label) == 0 else label[j]:
                targets[j] += x
                class_grams[j] += np.outer(x, x)
        gram += np.outer(x, x)
    return gram, targets, class_grams


@pytest.mark.parametrize("ridge", [0.5, 20.0])
@pytest.mark.parametrize("center", [True, False])
def test_improved_without_privacy_equals_a_float64_solution(rows, ridge, center):
    model = fitted(rows, Parameters(ridge=ridge, center_targets=center), problem_of())
    x, y = rows[0].astype(np.float64), np.eye(CLASSES)[rows[1]]
    right = (y - 1 / CLASSES).T @ x if center else y.T @ x
    expected = np.linalg.solve(x.T @ x + ridge * np.eye(DIM), right.T).T
    assert model.weights == pytest.approx(expected, rel=1e-5, abs=1e-5 * np.abs(expected).max())
    assert not model.bias.any()
    assert model.scores(rows[0]) == pytest.approx(x @ expected.T, abs=1e-4)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 3.5])
def test_published_without_privacy_equals_algorithm_3(rows, alpha):
    model = fitted(rows, Parameters(variant="published", alpha=alpha, ridge=2.0), problem_of())
    x = rows[0].astype(np.float64)
    for j in range(CLASSES):
        mine = x[rows[1] == j]
        expected = np.linalg.solve(mine.T @ mine + alpha * x.T @ x + 2.0 * np.eye(DIM), mine.sum(0))
        assert model.weights[j] == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("per_class", [True, False])
@pytest.mark.parametrize("norm", [0.7, 3.5, math.inf])
@pytest.mark.parametrize("multi", [True, False])
def test_one_pass_equals_a_loop_in_any_batches(rows, norm, per_class, multi, monkeypatch):
    monkeypatch.setattr(sufficient_statistics, "_BLOCK", 17)
    features, labels = rows
    if multi:
        labels = (np.random.default_rng(1).random((N, CLASSES)) < 0.4).astype(np.int8)
    cuts = [(features[a:b], labels[a:b]) for a, b in ((0, 3), (3, 3), (3, 90), (90, N))]
    statistics = accumulate(cuts, CLASSES, norm, positives=CLASSES if multi else 1, per_class=per_class)
    gram, targets, class_grams = slow_sums((features, labels), norm)
    assert statistics.gram == pytest.approx(gram, rel=1e-4, abs=1e-4)
    assert statistics.targets == pytest.approx(targets, rel=1e-4, abs=1e-4)
    assert np.array_equal(statistics.gram, statistics.gram.T)
    if not per_class:
        assert statistics.class_grams is None
        return
    assert statistics.class_grams == pytest.approx(class_grams, rel=1e-4, abs=1e-4)
    if not multi:
        assert statistics.class_grams.sum(0) == pytest.approx(statistics.gram, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 3e38])
@pytest.mark.parametrize("epsilon", ["inf", "1"])
def test_records_without_finite_numbers_contribute_zero(rows, bad, epsilon):
    features = rows[0].copy()
    features[[3, 50], 2] = bad
    fine = np.setdiff1d(np.arange(N), [3, 50])
    for variant in ("improved", "published"):
        parameters = Parameters(variant=variant)
        with_bad = least_squares.prepare([(features, rows[1])], parameters, problem_of(epsilon))
        without = least_squares.prepare([(rows[0][fine], rows[1][fine])], parameters, problem_of(epsilon))
        assert with_bad.gram == pytest.approx(without.gram, rel=1e-5, abs=1e-4)
        assert with_bad.targets == pytest.approx(without.targets, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("norm", [1e-6, 0.005, 1.0, 50.0])
def test_no_row_is_longer_than_the_norm_and_short_rows_stay(norm):
    rng = np.random.default_rng(5)
    rows = (10.0 ** rng.uniform(-8, 37, (400, 1)) * rng.standard_normal((400, 7))).astype(np.float32)
    clipped = clip_rows(rows, norm).astype(np.float64)
    lengths, before = np.linalg.norm(clipped, axis=1), np.linalg.norm(rows.astype(np.float64), axis=1)
    assert lengths.max() <= norm
    assert np.array_equal(clipped[before <= norm], rows[before <= norm])
    long = (before > norm) & (before < 1e15)
    assert lengths[long].min() >= norm * (1 - 1e-5)
    directions = clipped[long] / lengths[long, None] - rows[long] / before[long, None]
    assert np.abs(directions).max() < 1e-4


@pytest.mark.parametrize("epsilon", ["inf", "0.5"])
@pytest.mark.parametrize("variant", ["improved", "published"])
@pytest.mark.parametrize(
    "kind", ["d > n", "zero features", "duplicated features", "all zero", "empty class", "no number"]
)
def test_degenerate_data_gives_finite_models(rows, epsilon, variant, kind):
    features, labels = rows[0].copy(), rows[1].copy()
    if kind == "d > n":
        features, labels = features[:4], labels[:4]
    elif kind == "zero features":
        features[:, ::2] = 0
    elif kind == "duplicated features":
        features[:, 1:] = features[:, :1]
    elif kind == "all zero":
        features[:] = 0
    elif kind == "empty class":
        labels[labels == 2] = 1
    else:
        features[::2] = math.nan
    model = fitted((features, labels), Parameters(variant=variant), problem_of(epsilon))
    assert model.weights.shape == (CLASSES, DIM)
    assert np.isfinite(model.weights).all()


def test_no_nan_reaches_a_file(tmp_path):
    with pytest.raises(ValueError, match="'weights' holds a NaN"):
        write_tensors(tmp_path / "model.safetensors", {"weights": np.array([1.0, math.nan], np.float32)})
    assert not list(tmp_path.iterdir())


def test_too_many_positives_are_refused(rows):
    labels = np.zeros((N, CLASSES), np.int8)
    labels[7, :3] = 1
    parameters = Parameters()
    least_squares.prepare([(rows[0], labels)], parameters, problem_of(positives=3))
    with pytest.raises(StudyError, match="row 7: 3 positive labels where at most 2"):
        least_squares.prepare([(rows[0], labels)], parameters, problem_of(positives=2))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.array([0, 1, 5]), "row 2: label 5 lies outside 0..4"),
        (np.array([0, -1, 2]), "row 1: label -1"),
        (np.array([0.0, 1.5, 2.0]), "must be integers"),
        (np.array([[0, 2, 0, 0, 0]] * 3), "neither 0 nor 1"),
        (np.array([[0, 1, 0]] * 3), "3 columns where 5 classes"),
    ],
)
def test_labels_out_of_range_are_refused(labels, words):
    with pytest.raises(StudyError, match=words):
        one_hot(labels, CLASSES)


def test_no_rows_are_refused():
    with pytest.raises(StudyError, match="no training rows"):
        accumulate([], CLASSES, 1.0)


def test_centering_is_a_function_of_the_released_targets(rows):
    parameters, problem = Parameters(), problem_of("1")
    plan = least_squares.plan(parameters, problem)
    released = least_squares.release(least_squares.prepare([rows], parameters, problem), parameters, plan, source())
    model = least_squares.solve(released, parameters, plan)
    shifted = released | {"targets": released["targets"] + np.arange(DIM, dtype=np.float32)}
    assert least_squares.solve(shifted, parameters, plan).weights == pytest.approx(model.weights, rel=1e-3, abs=1e-4)
    centred = released | {"targets": released["targets"] - released["targets"].mean(0)}
    plain = least_squares.solve(centred, replace(parameters, center_targets=False), plan)
    assert plain.weights == pytest.approx(model.weights, rel=1e-5)


@pytest.mark.parametrize("variant", ["improved", "published"])
@pytest.mark.parametrize("positives", [1, 4])
def test_the_plan_spends_the_target_and_says_what_it_releases(rows, variant, positives):
    parameters, problem = Parameters(variant=variant, clipping_norm=0.3), problem_of("2", positives=positives)
    plan = least_squares.plan(parameters, problem)
    assert 2 * (1 - 2e-4) <= certify(plan.events, 1e-5).epsilon <= 2
    noise = source()
    least_squares.fit(least_squares.prepare([rows], parameters, problem), parameters, problem, plan, noise)
    check_releases(plan.events, noise.drawn)
    assert noise.drawn == {event.name: 1 for event in plan.events}
    if variant == "improved":
        spent = {event.name: event.noise_multiplier**-2 for event in plan.events}
        assert spent["gram"] / sum(spent.values()) == pytest.approx(0.2)


@pytest.mark.parametrize("change", [{"clipping_norm": 2.0}, {"positives": 3}])
def test_sums_made_for_another_plan_are_refused(rows, change):
    parameters, problem = Parameters(), problem_of("1")
    statistics = replace(least_squares.prepare([rows], parameters, problem), **change)
    with pytest.raises(ValueError, match="do not fit"):
        least_squares.fit(statistics, parameters, problem, least_squares.plan(parameters, problem), source())


def test_statistics_survive_a_file_that_only_the_owner_reads(rows, tmp_path):
    for per_class in (True, False):
        statistics = accumulate([rows], CLASSES, 1.5, positives=2, per_class=per_class)
        path = tmp_path / "sums" / f"{per_class}.safetensors"
        statistics.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        again = Statistics.load(path)
        assert (again.clipping_norm, again.positives) == (1.5, 2)
        assert np.array_equal(again.gram, statistics.gram) and np.array_equal(again.targets, statistics.targets)
        assert set(read_tensors(path)) == {"gram", "targets"} | ({"class_grams"} if per_class else set())
    statistics = accumulate([rows], CLASSES, math.inf)
    statistics.save(path)
    assert math.isinf(Statistics.load(path).clipping_norm)


def indefinite(size=30):
    rng = np.random.default_rng(8)
    noise = rng.standard_normal((size, size))
    return (noise + noise.T) / 2, rng.standard_normal((4, size))


@pytest.mark.parametrize("ridge", [1e-3, 5.0])
def test_solve_floored_equals_a_slow_eigendecomposition(ridge):
    matrix, right = indefinite()
    values, vectors = np.linalg.eigh(matrix)
    assert values.min() < -1
    floored = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T + ridge * np.eye(len(matrix))
    expected = np.linalg.solve(floored, right.T).T
    kept = matrix.copy()
    assert solve_floored(matrix, ridge, right) == pytest.approx(expected, rel=1e-4, abs=1e-4 * np.abs(expected).max())
    assert np.array_equal(matrix, kept)
    with pytest.raises(ValueError, match="positive"):
        solve_floored(matrix, 0.0, right)


@pytest.mark.parametrize("shift", [0.1, 30.0])
def test_solve_ridge_equals_a_plain_solution_definite_or_not(shift):
    matrix, right = indefinite()
    expected = np.linalg.solve(matrix + shift * np.eye(len(matrix)), right.T).T
    assert solve_ridge(matrix, shift, right) == pytest.approx(expected, rel=1e-4, abs=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(
    "options",
    [
        {"variant": "publised"},
        {"clipping_norm": 0.0},
        {"clipping_norm": math.inf},
        {"gram_share": 1.0},
        {"gram_share": 0},
        {"alpha": -1.0},
        {"ridge": 0.0},
        {"ridge": "large"},
    ],
)
def test_hyper_parameters_without_meaning_are_refused_by_name(options):
    with pytest.raises(StudyError, match=f"least_squares: {next(iter(options))}"):
        Parameters(**options)


@pytest.mark.parametrize("variant", ["improved", "published"])
def test_the_floor_decides_how_a_noisy_system_is_solved(rows, variant):
    problem = problem_of("0.5")
    parameters = Parameters(variant=variant, ridge=0.7, center_targets=False)
    plan = least_squares.plan(parameters, problem)
    released = least_squares.release(least_squares.prepare([rows], parameters, problem), parameters, plan, source())
    for floor in (True, False):
        model = least_squares.solve(released, replace(parameters, floor=floor), plan)
        for j in range(CLASSES):
            system = released["gram"].astype(np.float64)
            if variant == "published":
                system = system + released["class_grams"][j]
            values, vectors = np.linalg.eigh(system)
            assert values.min() < 0
            values = np.maximum(values, 0) if floor else values
            expected = vectors @ ((vectors.T @ released["targets"][j]) / (values + 0.7))
            assert model.weights[j] == pytest.approx(expected, rel=1e-2, abs=1e-3 * np.abs(expected).max())


def test_noise_in_every_entry_is_solved_as_it_is_drawn(rows):
    """Without symmetry the system is what Algorithm 3 prints: A_j + alpha G + lambda I with independent entries."""
    parameters = Parameters(variant="published", symmetric=False, floor=False, ridge=40.0, clipping_norm=2.0)
    problem = problem_of("4")
    plan = least_squares.plan(parameters, problem)
    statistics = least_squares.prepare([rows], parameters, problem)
    released = least_squares.release(statistics, parameters, plan, source())
    model = least_squares.solve(released, parameters, plan)
    for j in range(CLASSES):
        system = released["class_grams"][j].astype(np.float64) + released["gram"] + 40.0 * np.eye(DIM)
        assert not np.allclose(system, system.T)
        expected = np.linalg.solve(system, released["targets"][j].astype(np.float64))
        assert model.weights[j] == pytest.approx(expected, rel=1e-4, abs=1e-5)
    noise = [released["gram"] - statistics.gram, *(released["class_grams"] - statistics.class_grams)]
    for name, draws in (("gram", noise[:1]), ("class_grams", noise[1:])):
        draws = np.array(draws)
        assert draws.std() == pytest.approx(plan.noise[name], rel=6 / math.sqrt(2 * draws.size))
    upper = np.triu_indices(DIM, 1)
    pairs = np.array([(draw[upper], draw.T[upper]) for draw in noise])
    assert abs(np.corrcoef(pairs[:, 0].ravel(), pairs[:, 1].ravel())[0, 1]) < 6 / math.sqrt(pairs.size / 2)
    with pytest.raises(StudyError, match="set floor: false too"):
        Parameters(symmetric=False)
