"""Kernel means of the classes: what a record changes, what is drawn, and what is made of it."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import chi2

import dpstudy
from dpstudy import methods
from dpstudy.core.arrays import HOST
from dpstudy.core.errors import StudyError
from dpstudy.methods.kernel_mean import Parameters, _class_sums, feature_map
from dpstudy.methods.kernel_weights import bayes_weights, widened
from dpstudy.methods.problem import Problem
from dpstudy.models.random_features import FeatureMap, Landmarks, RandomFeatureModel
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

N, DIM, CLASSES = 50, 6, 3
PLAIN = {"projection": "none", "frequencies": 40}
KINDS = {
    "plain": PLAIN,
    "counts": PLAIN | {"class_shares": "released"},
    "dp-sgd": {"projection": "dp-sgd", "frequencies": 40},
    "feature_covariance": {"frequencies": 40, "class_shares": "released"},
}


def records(seed=0, n=N, positives=1):
    rng = np.random.default_rng(seed)
    features = 3 * rng.standard_normal((n, DIM)).astype(np.float32)
    if positives == 1:
        return features, rng.integers(CLASSES, size=n)
    labels = np.zeros((n, CLASSES), np.uint8)
    for row in labels:
        row[rng.permutation(CLASSES)[:positives]] = 1
    return features, labels


def set_up(kind, epsilon="1", positives=1, **changes):
    method = methods.load("kernel_mean")
    parameters = Parameters(**KINDS[kind] | changes)
    problem = Problem(N, (DIM,), CLASSES, Budget(epsilon, 1e-3), positives)
    return method, parameters, problem, method.plan(parameters, problem)


def sums_of(data, parameters, problem, projection=None):
    method = methods.load("kernel_mean")
    prepared = method.prepare([data], parameters, problem)
    mapping = feature_map(parameters, problem, prepared, projection)
    return _class_sums(prepared.records, mapping, whole=problem.positives > 1), mapping


@pytest.mark.parametrize("positives", [1, 2, 3])
def test_a_record_changes_the_sums_by_exactly_the_sensitivity(positives):
    """Every record has as many labels as it may: a sensitivity twice as large, or half, would be seen."""
    _, parameters, problem, plan = set_up("counts", positives=positives)
    bounds = {event.name: event.sensitivity for event in plan.events}
    features, labels = records(positives=positives)
    whole, counts = sums_of((features, labels), parameters, problem)[0]
    for gone in (0, 7):
        rest = np.delete(features, gone, 0), np.delete(labels, gone, 0)
        less, fewer = sums_of(rest, parameters, problem)[0]
        assert np.linalg.norm(whole - less) == pytest.approx(bounds["class_sums"], rel=1e-5)
        assert np.linalg.norm(counts - fewer) == pytest.approx(bounds["class_counts"], rel=1e-5)


def test_records_with_a_nan_take_no_part_and_extreme_ones_no_more_than_others():
    _, parameters, problem, _ = set_up("plain")
    features, labels = records()
    whole = sums_of((features, labels), parameters, problem)[0][0]
    for value, change in ((math.nan, 0.0), (1e8, 1.0), (-1e-10, 1.0)):
        more = np.concatenate([features, np.full((1, DIM), value, np.float32)]), np.append(labels, 1)
        assert np.linalg.norm(sums_of(more, parameters, problem)[0][0] - whole) == pytest.approx(change, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "8"])
def test_the_whole_budget_is_spent_and_never_more(kind, epsilon):
    _, _, _, plan = set_up(kind, epsilon)
    found = certify(plan.events, 1e-3, complete=True)
    assert float(epsilon) * (1 - 1e-6) < found.epsilon <= float(epsilon)
    assert found.epsilon_by["exact"] <= found.epsilon_by["pld"] * (1 + 1e-6)
    mu_squared = {}
    for event in plan.events:
        own = event.name if event.name.startswith("class_") else "projection"
        mu_squared[own] = mu_squared.get(own, 0) + event.count / event.noise_multiplier**2
    total = sum(mu_squared.values())
    assert mu_squared.get("projection", 0) / total == pytest.approx(0.8 if "projection" in mu_squared else 0, rel=1e-5)
    assert mu_squared.get("class_counts", 0) / total == pytest.approx(0.02 if "class_counts" in mu_squared else 0)


def test_what_is_released_has_the_noise_of_the_ledger():
    method, parameters, problem, plan = set_up("counts")
    data = method.prepare([records()], parameters, problem)
    mapping = feature_map(parameters, problem, data, None)
    sums, counts = _class_sums(data.records, mapping, whole=False)
    events = {event.name: event.noise_multiplier * event.sensitivity for event in plan.events}
    squares = {name: [] for name in events}
    for seed in range(30):
        released = method.release(data, mapping, parameters, problem, plan, NoiseSource("secure", seed))
        for name, true in (("class_sums", sums), ("class_counts", counts)):
            squares[name].append(((released[name] - true) / events[name]) ** 2)
    for values in squares.values():
        values = np.array(values)
        assert chi2.ppf(1e-6, values.size) < values.sum() < chi2.ppf(1 - 1e-6, values.size)


def test_random_features_are_a_gaussian_kernel_of_norm_1():
    rng = np.random.default_rng(0)
    frequencies = (rng.standard_normal((20_000, 2)) / 0.7).astype(np.float32)
    x = rng.standard_normal((9, 2)).astype(np.float32)
    mapping = FeatureMap(frequencies)
    psi = mapping(x, HOST).astype(np.float64)
    assert np.linalg.norm(psi, axis=1) == pytest.approx(1, abs=1e-5)
    points = x / np.linalg.norm(x, axis=1, keepdims=True)
    squares = ((points[:, None] - points[None]) ** 2).sum(2)
    assert psi @ psi.T == pytest.approx(np.exp(-squares / (2 * 0.7**2)), abs=0.03)
    wide = widened(psi, frequencies, 0.9)
    variance = 0.7**2 + 0.9**2
    expected = 0.7**2 / variance * np.exp(-squares / (2 * variance))  # a Gaussian's transform, in two dimensions
    assert psi @ wide.T == pytest.approx(expected, abs=0.03)


def test_points_far_from_public_ones_have_wider_kernels_and_no_larger_norm():
    rng = np.random.default_rng(0)
    frequencies = (rng.standard_normal((20_000, 2)) / 0.5).astype(np.float32)
    marks = Landmarks(np.array([[1, 0], [0.99, 0.1]], np.float32), neighbours=2, threshold=0.2, extra=0.3)
    mapping = FeatureMap(frequencies, landmarks=marks)
    near, far = np.array([[2.0, 0.1]], np.float32), np.array([[-3.0, 0.0]], np.float32)
    psi = mapping(np.concatenate([near, far]), HOST).astype(np.float64)
    distance = (2 + np.hypot(1.99, 0.1)) / 2
    extra = 0.3 * distance / 0.2
    assert np.linalg.norm(psi[0]) == pytest.approx(1, abs=1e-5)
    damped = np.exp(-(extra**2) * (frequencies.astype(float) ** 2).sum(1))
    assert np.linalg.norm(psi[1]) == pytest.approx(math.sqrt(damped.mean()), rel=1e-3) and np.linalg.norm(psi[1]) < 0.9


def test_where_kernels_widen_follows_from_public_points_alone():
    """Whatever the private records are, and however many, the map is the same."""
    rng = np.random.default_rng(0)
    problem, public = Problem(60, (6,), 3, Budget("2", 1e-5)), rng.standard_normal((30, 6)).astype(np.float32)
    parameters = Parameters(frequencies=20, projection="none", extra_bandwidth=0.5)
    marks = []
    for count, size in ((60, 1.0), (45, 9.0)):
        rows = size * rng.standard_normal((count, 6)).astype(np.float32), rng.integers(0, 3, count)
        data = methods.load("kernel_mean").prepare([rows], parameters, problem, public)
        mapping = feature_map(parameters, problem, data, None)
        marks.append((mapping.frequencies.tobytes(), mapping.landmarks.points.tobytes(), mapping.landmarks.threshold))
    assert marks[0] == marks[1] and marks[0][-1] > 0


def test_bayes_weights_are_the_posterior_mean():
    rng = np.random.default_rng(0)
    psi = rng.standard_normal((200, 8)) * np.linspace(0.1, 1, 8)
    sums = 40 * rng.standard_normal((3, 8)) @ (psi.T @ psi / 200)
    found = bayes_weights(sums, 2.0, 100, [psi[:90], psi[90:]])
    second, targets, tau = psi.T @ psi / 200, (sums - sums.mean(0)) / 100, 0.02
    v = ((targets**2).sum() / 3 - 8 * tau**2) / np.trace(second @ second)
    # theta ~ N(0, v), targets = M theta + N(0, tau^2 + M/n)
    covariance = v * second @ second + tau**2 * np.eye(8) + v * second / 100
    assert found == pytest.approx((v * second @ np.linalg.solve(covariance, targets.T)).T, rel=1e-6)
    several = bayes_weights(sums, 2.0, 100, [psi], exclusive=False)
    assert not np.allclose(several, found)
    drowned = bayes_weights(sums, 1e6, 100, [psi])
    assert np.abs(drowned).max() < 1e-3 * np.abs(found).max()


def test_scores_are_shares_of_the_kernel_mass():
    """Of several labels too: the sum over records that bear a label over that of all, as a loop has it."""
    for positives in (1, 2):
        method, parameters, problem, plan = set_up("plain", "inf", positives=positives)
        features, labels = records(positives=positives)
        data = method.prepare([(features, labels)], parameters, problem)
        model = method.fit(data, parameters, problem, plan, NoiseSource("seeded", "a")).model
        psi = model.map(features, HOST).astype(np.float64)
        member = labels if labels.ndim == 2 else np.eye(CLASSES)[labels]
        mass = psi[:5] @ psi.T
        expected = mass @ member / np.maximum(mass.sum(1, keepdims=True), 1)
        assert model.scores(features[:5]) == pytest.approx(expected, abs=1e-4)


def test_classes_can_be_taken_for_equally_likely():
    method, parameters, problem, plan = set_up("counts", "inf")
    features, labels = records()
    free, equal, public = (
        method.fit(
            method.prepare([(features, labels)], own, problem), own, problem, plan, NoiseSource("seeded", "a")
        ).model.scores(features)
        for own in (Parameters(**PLAIN), parameters, Parameters(**PLAIN, class_shares=(0.2, 0.3, 0.5)))
    )
    counts = np.bincount(labels, minlength=CLASSES)
    assert equal == pytest.approx(free / (counts / N), rel=1e-3, abs=1e-4)
    assert public == pytest.approx(free / [0.2, 0.3, 0.5], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_and_its_model_survives_a_file(kind, tmp_path):
    rng = np.random.default_rng(1)
    labels = rng.integers(CLASSES, size=900)
    features = (rng.standard_normal((900, DIM)) + 4 * np.eye(CLASSES, DIM)[labels]).astype(np.float32)
    result = dpstudy.fit(
        "kernel_mean", features[:600], labels[:600], epsilon=4, delta=1e-4, classes=CLASSES, **KINDS[kind]
    )
    assert result.ledger["guarantee"] == "proved" and 3.999 < result.ledger["epsilon"] <= 4
    scores = result.model.scores(features[600:])
    assert (scores.argmax(1) == labels[600:]).mean() > 0.85
    result.model.save(tmp_path / "model.safetensors")
    assert np.array_equal(RandomFeatureModel.load(tmp_path / "model.safetensors").scores(features[600:]), scores)


def test_public_points_smooth(tmp_path):
    rng = np.random.default_rng(1)
    labels = rng.integers(CLASSES, size=900)
    features = (rng.standard_normal((900, DIM)) + 4 * np.eye(CLASSES, DIM)[labels]).astype(np.float32)
    public = (rng.standard_normal((300, DIM)) + 4 * np.eye(CLASSES, DIM)[rng.integers(CLASSES, size=300)]).astype("f4")
    for options in ({"smoothing": "public"}, {"extra_bandwidth": 0.5}):
        result = dpstudy.fit(
            *("kernel_mean", features[:600], labels[:600]),
            **dict(epsilon=4, delta=1e-4, classes=CLASSES, public=public),
            **(PLAIN | options),
        )
        scores = result.model.scores(features[600:])
        assert (scores.argmax(1) == labels[600:]).mean() > 0.85
        result.model.save(tmp_path / "model.safetensors")
        assert np.array_equal(RandomFeatureModel.load(tmp_path / "model.safetensors").scores(features[600:]), scores)


def test_searches_share_sums_only_of_the_same_map():
    """What is prepared for one setting serves another as if it were its own."""
    method, parameters, problem, plan = set_up("plain")
    features, labels = records()
    public = records(seed=9)[0]
    shared = method.prepare([(features, labels)], parameters, problem)
    shared = type(shared)(shared.records, None, public)
    for options in (
        {"extra_bandwidth": 0.5},
        {"extra_bandwidth": 2.0},
        {"extra_bandwidth": 2.0, "percentile": 90.0},
        {},
    ):
        own = Parameters(**PLAIN | options)
        found = [
            method.fit(data, own, problem, plan, NoiseSource("seeded", str(options))).model.weights
            for data in (shared, method.prepare([(features, labels)], own, problem, public=public))
        ]
        assert np.array_equal(*found)


def test_a_single_nearest_point_is_another_one():
    """A public point is no neighbour of its own, or half of them would be at distance 0."""
    method, parameters, problem, _ = set_up("plain", extra_bandwidth=0.5, neighbours=1)
    data = method.prepare([records()], parameters, problem, public=records(seed=9, n=200)[0])
    marks = feature_map(parameters, problem, data, None).landmarks
    points = torch.from_numpy(marks.points)
    squares = torch.cdist(points.double(), points.double()).fill_diagonal_(math.inf)
    assert marks.threshold == pytest.approx(float(np.percentile(squares.min(1).values, 50)), rel=1e-3)


@pytest.mark.parametrize("epsilon", ["0.001", "30"])
def test_extreme_budgets_are_divided_too(epsilon):
    assert certify(set_up("dp-sgd", epsilon)[3].events, 1e-3).epsilon <= float(epsilon)
    with pytest.raises(StudyError, match="epsilon 0.0001 is too small to be divided at delta 0.001; set projection"):
        set_up("dp-sgd", "0.0001")


def test_what_it_cannot_do_is_said():
    method, parameters, problem, _ = set_up("plain", smoothing="public")
    with pytest.raises(StudyError, match="give it a fit on a public set"):
        method.prepare([records()], parameters, problem)
    with pytest.raises(StudyError, match="class_shares has 2 numbers for 3 classes"):
        method.plan(Parameters(class_shares=(0.5, 0.5)), problem)
    with pytest.raises(StudyError, match="set accounting: certified"):
        method.plan(Parameters(), Problem(N, (DIM,), CLASSES, Budget("1", 1e-3, "mehta2023")))
    with pytest.raises(StudyError, match="must add up to less than 1"):
        Parameters(projection_share=0.99)
