"""Noisy SGD whose last iterate alone is released: its constants by search, its steps against a slow training, its
noise by the distribution of what it releases, its ledger."""

import math
import secrets
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from dpstudy import methods
from dpstudy.core.arrays import add_scaled
from dpstudy.core.errors import StudyError
from dpstudy.methods import iterated_sgd
from dpstudy.methods.gradients import Head, clipped_sum
from dpstudy.methods.iterated_sgd import GRADIENT, Parameters
from dpstudy.methods.problem import Problem
from dpstudy.methods.records import Records
from dpstudy.methods.row_map import RowMap
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.iteration import record_mus
from dpstudy.privacy.ledger import check_releases
from dpstudy.privacy.noise import NoiseSource
from dpstudy.schema.reading import check

N, DIM, CLASSES = 23, 6, 4


def settings(**options):
    return Parameters(**{"learning_rate": 0.7, "clipping_norm": 0.9, "batch_size": 5, "epochs": 3} | options)


def source(seed=None):
    return NoiseSource("seeded", "test", secrets.randbits(50) if seed is None else seed)


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    return rng.standard_normal((N, DIM)).astype(np.float32), rng.integers(CLASSES, size=N)


@pytest.fixture
def problem():
    return Problem(N, (DIM,), CLASSES, Budget("2", 1e-5))


def trained(rows, parameters, problem, noise=None):
    plan, noise = iterated_sgd.plan(parameters, problem), noise or source()
    model = iterated_sgd.fit(iterated_sgd.prepare([rows], parameters, problem), parameters, problem, plan, noise).model
    check_releases(plan.events, noise.drawn)
    return model


def one_step(x, y, weights, rate):
    """w - rate x the gradient of one record, float64."""
    return weights - rate * np.outer(softmax(weights @ x) - y, x)


@pytest.mark.parametrize("positives", [1, 3])
def test_no_record_has_a_longer_gradient(positives, problem):
    """L by search over scores and labels, attained at scores that are certain and wrong."""
    rng, bound, longest = np.random.default_rng(0), 0.0, 0.0
    problem = Problem(N, (DIM,), 8, Budget("2", 1e-5), positives)
    bound = settings().lipschitz(problem)
    for _ in range(2000):
        labels = np.zeros(8)
        labels[: rng.integers(positives + 1)] = 1
        certain = rng.permutation(8) if rng.random() < 0.5 else np.arange(8)
        residual = softmax(rng.choice([0.1, 1, 50]) * certain) - labels
        longest = max(longest, np.linalg.norm(residual) * 0.9)
    assert 0.999 * bound < longest <= bound


def test_the_largest_rate_is_the_largest_that_contracts(problem):
    """Two starts never move apart at 4/C^2, and do beyond it: one record of norm C at even odds of two classes."""
    norm = 0.9
    limit = 4 / norm**2
    rng = np.random.default_rng(1)
    for _ in range(500):
        x = rng.standard_normal(DIM)
        x *= norm / np.linalg.norm(x)
        y = np.eye(CLASSES)[rng.integers(CLASSES)]
        one, other = rng.choice([0.01, 1, 10]) * rng.standard_normal((2, CLASSES, DIM))
        moved = one_step(x, y, one, limit) - one_step(x, y, other, limit)
        assert np.linalg.norm(moved) <= np.linalg.norm(one - other) * (1 + 1e-12)
    x, apart = np.eye(DIM)[0] * norm, 1e-4 * np.outer([1, -1], np.eye(DIM)[0])
    stretched = one_step(x, np.eye(2)[0], apart, 1.02 * limit) - one_step(x, np.eye(2)[0], 0 * apart, 1.02 * limit)
    assert np.linalg.norm(stretched) > 1.03 * np.linalg.norm(apart)
    settings(learning_rate=limit)
    iterated_sgd.plan(settings(learning_rate=limit), problem)
    with pytest.raises(StudyError, match=r"4/clipping_norm\^2 = 4.938.*contractions"):
        iterated_sgd.plan(settings(learning_rate=limit / 5 * 1.01, learning_rate_batch=1), problem)


@pytest.mark.parametrize("radius", [None, 0.4])
def test_steps_equal_a_slow_training(rows, problem, radius):
    """Fixed batches in one order, float64 records one by one, with the order and the noise of the same source."""
    parameters = settings(radius=radius)
    plan, noise = iterated_sgd.plan(parameters, problem), source(5)
    order = noise.sampling("order").permutation(N)
    features, labels = np.array(rows[0], np.float64), np.eye(CLASSES)[rows[1]]
    features *= np.minimum(1, 0.9 / np.linalg.norm(features, axis=1))[:, None]
    weights, step = np.zeros((CLASSES, DIM)), 0
    for _ in range(3):
        for start in range(0, N, 5):
            step += 1
            total = noise.gaussian(GRADIENT, weights.shape, plan.noise[GRADIENT], step=step).astype(np.float64)
            for row in order[start : start + 5]:
                total += np.outer(softmax(weights @ features[row]) - labels[row], features[row])
            weights -= 0.7 / 5 * total
            weights *= min(1.0, (radius or math.inf) / np.linalg.norm(weights))
    assert step == 15 == plan.events[0].count
    model = trained(rows, parameters, problem, source(5))
    np.testing.assert_allclose(model.weights, weights, atol=2e-5)
    assert not model.bias.any()


def test_the_projection_moves_no_two_points_apart():
    """Or iteration would hide nothing: inside the ball everything stays where it is."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        one, other = rng.standard_normal((2, CLASSES, DIM)) * rng.uniform(0, 1, (2, 1, 1))
        before, kept = np.linalg.norm(one - other), one.copy()
        iterated_sgd._project(one, 1.5)
        iterated_sgd._project(other, 1.5)
        assert np.linalg.norm(one - other) <= before * (1 + 1e-12) and np.linalg.norm(one) <= 1.5 * (1 + 1e-12)
        assert np.linalg.norm(kept) > 1.5 or (one == kept).all()


def test_what_is_released_is_as_private_as_it_says():
    """Two neighbouring sets, one record of which all labels are wrong guesses: the distance of the two distributions
    of the released weights, in standard deviations, is near what the ledger charges, and not above."""
    runs, classes, positives = 4000, 24, 3
    problem = Problem(2, (1,), classes, Budget("2", 1e-5), positives, several=False)  # only for the bound
    parameters = Parameters(learning_rate=1.0, clipping_norm=0.5, batch_size=2, epochs=1)
    labels = np.zeros((2, classes), np.int64)
    labels[0, :positives] = 1
    features = np.array([[40.0], [0.0]], np.float32)
    without = np.zeros_like(features)
    plan = iterated_sgd.plan(parameters, problem)
    noise_free = trained((features, labels), parameters, replace(problem, budget=Budget("inf", 1e-5), sanitise="clip"))
    direction = noise_free.weights[:, 0] / np.linalg.norm(noise_free.weights)
    samples = []
    for held in (features, without):
        data, key = iterated_sgd.prepare([(held, labels)], parameters, problem), secrets.randbits(50)
        fits = (iterated_sgd.fit(data, parameters, problem, plan, source(f"{key} {run}")) for run in range(runs))
        samples.append([fit.model.weights[:, 0] @ direction for fit in fits])
    measured = (np.mean(samples[0]) - np.mean(samples[1])) / np.std(samples)
    charged = 1 / plan.events[0].noise_multiplier
    # |p - y| is 0.83 of its bound where nothing is learnt yet; the standard error is 0.045 of the charge
    assert 0.65 * charged < abs(measured) < charged


def test_what_is_hidden_behind_later_batches_is_as_private_as_it_says():
    """The same of three batches of one slot each, whose order is known, and a record in the first of them: the noise of
    all three hides it. The others are empty, so that nothing else moves."""
    runs, classes, positives, batches = 2000, 24, 3, 3
    problem = Problem(batches, (1,), classes, Budget("8", 1e-5), positives, several=False)  # only for the bound
    parameters = Parameters(learning_rate=1.0, clipping_norm=0.5, batch_size=1, epochs=1, protected_share=1.0)
    labels = np.zeros((batches, classes), np.int64)
    labels[:, :positives] = 1
    plan = iterated_sgd.plan(parameters, problem)
    direction = 1.0 - classes * labels[0]  # of a gradient at zero weights
    direction /= np.linalg.norm(direction)
    samples = []
    for held in (40.0, 0.0):
        key, found = secrets.randbits(50), []
        for run in range(runs):
            features = np.zeros((batches, 1), np.float32)
            features[source(f"{key} {run}").sampling("order").permutation(batches)[0]] = held
            data = iterated_sgd.prepare([(features, labels)], parameters, problem)
            fitted = iterated_sgd.fit(data, parameters, problem, plan, source(f"{key} {run}"))
            found.append(fitted.model.weights[:, 0] @ direction)
        samples.append(found)
    measured = (np.mean(samples[0]) - np.mean(samples[1])) / np.std(samples)
    mus, shares = record_mus(plan.events)
    assert shares == pytest.approx(1 / batches) and mus[0] == pytest.approx(mus[-1] / math.sqrt(batches))
    # 0.83 of it, as above; the standard error is 0.03 of the charge
    assert 0.65 * mus[0] < abs(measured) < mus[0]


def test_a_known_order_misses_the_target_openly_and_a_secret_one_keeps_it(rows):
    options = {"epsilon": "1", "delta": 1e-5, "classes": CLASSES}
    options |= {"learning_rate": 0.5, "clipping_norm": 1.0, "batch_size": 5, "epochs": 4}
    public = methods.fit("iterated_sgd", *rows, **options, protected_share=0.7).ledger
    check(public, "ledger", "ledger.json")
    assert public["guarantee"] == "proved" and public["adjacency"] == "zero-out"
    assert public["epsilon"] > 1.2
    # batches of 5, 5, 5, 5 and 3: the first four are 86.9 %
    assert "86.9 % of them have epsilon at most 1;" in " ".join(public["not_accounted"])
    assert public["events"][0]["sensitivity"] == pytest.approx(math.sqrt(2))
    assert public["events"][0]["count"] == 20
    secret = methods.fit("iterated_sgd", *rows, **options, order="secret").ledger
    assert 0.99 < secret["epsilon"] <= 1
    whole = methods.fit("iterated_sgd", *rows, **options, protected_share=1.0).ledger
    assert 0.99 < whole["epsilon"] <= 1


def test_broken_and_missing_records_contribute_nothing_and_move_no_other(rows):
    features, labels = rows
    broken, zeroed = features.copy(), features.copy()
    broken[-1], broken[-2], zeroed[-2:] = np.nan, np.inf, 0
    problem, fewer = (Problem(N, (DIM,), CLASSES, Budget("2", 1e-5)) for _ in range(2))
    models = [
        trained(data, settings(), pose, source(8)).weights
        for data, pose in (
            ((broken, labels), problem),
            ((zeroed, labels), problem),
            ((features[:-2], labels[:-2]), fewer),  # dropped by de-duplication: n stays
        )
    ]
    np.testing.assert_array_equal(models[0], models[1])
    np.testing.assert_allclose(models[0], models[2], atol=1e-6)


def test_a_private_normalisation_is_paid_from_the_same_budget(rows, problem):
    normalisation = {"mean_clip": 1.0, "square_clip": 1.0, "noise_multiplier": 9.0}
    with_it, without = (
        iterated_sgd.plan(settings(order="secret", **more), problem) for more in ({"normalisation": normalisation}, {})
    )
    assert [event.name for event in with_it.events] == ["normalisation_mean", "normalisation_square", GRADIENT]
    assert with_it.facts["noise_multiplier"] > without.facts["noise_multiplier"]
    model = trained(rows, settings(order="secret", normalisation=normalisation), problem)
    assert model.center is not None and model.scale is not None


def test_no_noise_needs_no_contraction(rows):
    free = Problem(N, (DIM,), CLASSES, Budget("inf", 1e-5), sanitise="none")
    labels = rows[0][:, :CLASSES].argmax(1)
    model = trained((rows[0], labels), settings(learning_rate=5.0, epochs=40), free)
    assert (model.scores(rows[0]).argmax(1) == labels).mean() == 1
    assert iterated_sgd.plan(settings(), free).events == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "known"}, "order 'known': one of 'public', 'secret'"),
        ({"epochs": 2.5}, "epochs 2.5: must be an integer"),
        ({"protected_share": 1.2}, "protected_share 1.2: must be above 0 and at most 1"),
        ({"radius": 0}, "radius 0: must be a number above 0"),
        ({"batch_size": 24}, "batch_size 24 exceeds the 23 training records"),
    ],
)
def test_mistakes_are_named(options, message, problem):
    with pytest.raises(StudyError, match=f"iterated_sgd: {message}"):
        iterated_sgd.plan(settings(**options), problem)


def test_a_paper_s_accounting_knows_no_secret_order():
    problem = Problem(N, (DIM,), CLASSES, Budget("2", 1e-5, "tramer2021"))
    assert iterated_sgd.plan(settings(), problem).facts["noise_multiplier"] > 0
    with pytest.raises(StudyError, match="accounting 'tramer2021' knows no secret order"):
        iterated_sgd.plan(settings(order="secret"), problem)


def test_a_ledger_of_secure_noise_says_that_steps_contract_but_for_rounding(problem):
    for secure in (False, True):
        said = iterated_sgd.plan(settings(), replace(problem, secure=secure)).not_accounted
        assert said == ((iterated_sgd.ROUNDED,) if secure else ())


def test_rounding_moves_two_iterates_apart_by_no_more_than_is_said():
    """What ROUNDED states, in float32 with the exact sums of secure noise, at distances at which it shows."""
    rng, batch, rate = np.random.default_rng(0), 512, 1.0
    problem = Problem(60_000, (784,), CLASSES, Budget("1", 1e-6), secure=True)
    rows = np.abs(rng.standard_normal((batch, 784))).astype(np.float32), rng.integers(CLASSES, size=batch)
    records = Records.of([rows], problem, picked=True).mapped(RowMap(clip=1.0))
    unit, head = rate * math.sqrt(2) / batch, Head("softmax", 0.0, math.inf)
    weights = (0.3 * rng.standard_normal((CLASSES, 784))).astype(np.float32)
    apart = []
    for distance in (1e-3, 1e-4):
        away = rng.standard_normal(weights.shape)
        pair = [weights.copy(), (weights + distance * unit * away / np.linalg.norm(away)).astype(np.float32)]
        noise, before = (
            rng.standard_normal(weights.shape) * batch * unit,
            np.linalg.norm(np.subtract(*pair, dtype=float)),
        )
        for one in pair:
            add_scaled(one, (clipped_sum(records, one, head) + noise).astype(np.float32), -rate / batch)
        apart.append((np.linalg.norm(np.subtract(*pair, dtype=float)) - before) / unit)
    assert max(apart) < 1e-5
