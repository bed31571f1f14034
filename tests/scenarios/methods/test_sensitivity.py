"""Sensitivity by search: what one record can change, against what the ledger says.

For each release the noise-free sum is compared on neighbouring data sets: random base, random and extreme records.
The largest change must not exceed the event's sensitivity, and must come within 1 % of it.
"""

import math
import secrets
from dataclasses import replace

import numpy as np
import pytest

from dpstudy.core.arrays import to_numpy
from dpstudy.methods import first_order, least_squares, private_normalisation, schedule
from dpstudy.methods.gradients import Head, clipped_sum
from dpstudy.methods.private_normalisation import Normalisation
from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

DIM, CLASSES, BASE = 6, 4, 12
NAN, INF = float("nan"), float("inf")
ROUNDING = 1 + 1e-5


@pytest.fixture
def quick_plan(monkeypatch):
    """Plans with noise multiplier 2, without the seconds that an accountant takes for sampled batches."""
    monkeypatch.setattr(schedule, "calibrate", lambda events_at, budget: 2.0)


def generator():
    return np.random.default_rng(secrets.randbits(64))


def base_rows(rng, dim=DIM):
    return rng.standard_normal((BASE, dim)).astype(np.float32)


def records(rng, dim=DIM):
    """Adversarial records: every scale that float32 holds, the corners of the axes, zeros, and no numbers at all."""
    for scale in (0.0, 1e-30, 1e-3, 0.3, 1.0, 7.0, 1e4, 1e10, 1e14, 1e16, 1e20, 1e30, 3e37):
        yield scale * rng.standard_normal(dim)
        yield scale * np.eye(dim)[rng.integers(dim)]
        yield scale * np.ones(dim)
    for bad in (NAN, INF, -INF):
        row = rng.standard_normal(dim)
        row[rng.integers(dim)] = bad
        yield row
        yield np.full(dim, bad)


def with_record(rows, row):
    with np.errstate(over="ignore"):
        return np.vstack([rows, np.asarray(row, np.float32)[None]])


def noiseless(plan):
    """The same plan with every standard deviation zero: the release runs, the sums stay."""
    return replace(plan, noise=dict.fromkeys(plan.noise, 0.0))


def source():
    return NoiseSource("seeded", "sensitivity", secrets.randbits(60))


def assert_tight(largest, plan):
    assert set(largest) == {event.name for event in plan.events}
    for event in plan.events:
        assert largest[event.name] <= event.sensitivity * ROUNDING, event.name
        assert largest[event.name] >= event.sensitivity * 0.99, event.name


@pytest.mark.parametrize("variant", ["improved", "published"])
@pytest.mark.parametrize("clipping_norm", [0.005, 1.0, 40.0])
@pytest.mark.parametrize("positives", [1, 3])
def test_least_squares(variant, clipping_norm, positives):
    rng = generator()
    problem = Problem(BASE, (DIM,), CLASSES, Budget("1", 1e-5), positives)
    parameters = least_squares.Parameters(variant=variant, clipping_norm=clipping_norm)
    plan = least_squares.plan(parameters, problem)
    rows = base_rows(rng) * clipping_norm  # some clipped, some not
    choices = np.eye(CLASSES, dtype=np.int8)[rng.integers(CLASSES, size=BASE)]
    labels = choices if positives > 1 else choices.argmax(1)

    def released(x, y):
        statistics = least_squares.prepare([(x, y)], parameters, problem)
        return least_squares.release(statistics, parameters, noiseless(plan), source())

    before = released(rows, labels)
    largest = dict.fromkeys(before, 0.0)
    for row in records(rng):
        label = rng.permutation(np.arange(CLASSES) < positives).astype(np.int8)
        after = released(with_record(rows, row), np.concatenate([labels, [label if positives > 1 else label.argmax()]]))
        for name in largest:
            change = float(np.linalg.norm(after[name].astype(np.float64) - before[name]))
            assert np.isfinite(change)
            largest[name] = max(largest[name], change)
    assert_tight(largest, plan)


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
@pytest.mark.parametrize("bias", ["learned", -10.0])
@pytest.mark.parametrize("clipping_norm", [0.01, 0.2])
@pytest.mark.parametrize("clipping", ["norm", "automatic"])
def test_first_order_at_any_weights(kind, loss, bias, clipping_norm, clipping):
    rng = generator()
    problem = Problem(BASE, (DIM,), CLASSES, Budget("1", 1e-5))
    parameters = first_order.Parameters(learning_rate=1.0, clipping_norm=clipping_norm, loss=loss, bias=bias, steps=3)
    plan = first_order.plan(parameters, problem)
    rows, labels = base_rows(rng), rng.integers(CLASSES, size=BASE)
    largest = 0.0
    for weight_scale in (0.0, 1.0, 1e3, 1e25):
        weights = weight_scale * rng.standard_normal((CLASSES, DIM + (bias == "learned")))

        def released(x, y, weights=weights):
            data = first_order.prepare([(x, y)], parameters, problem).records
            head = Head(loss, bias, clipping_norm, clipping)
            return to_numpy(clipped_sum(data, data.place.array(weights, "float32"), head)).astype(np.float64)

        before = released(rows, labels)
        for row in records(rng):
            after = released(with_record(rows, row), np.append(labels, rng.integers(CLASSES)))
            change = float(np.linalg.norm(after - before))
            assert np.isfinite(change)
            largest = max(largest, change)
    assert_tight({"gradient": largest}, plan)


@pytest.mark.parametrize("batch_size", ["full", BASE - 1])
@pytest.mark.parametrize("sampling", ["poisson", "shuffle"])
def test_first_order_through_training(batch_size, sampling, quick_plan):
    """One step of gradient descent with rate 1: the weights are minus the released sum over q n."""
    rng = generator()
    problem = Problem(BASE + 1, (DIM,), CLASSES, Budget("1", 1e-5))
    parameters = first_order.Parameters(
        learning_rate=1.0,
        clipping_norm=0.1,
        optimiser="sgd",
        batch_size=batch_size,
        sampling=sampling,
        steps=1,
    )
    plan = first_order.plan(parameters, problem)
    expected = problem.n * parameters.rate(problem)
    rows, labels = base_rows(rng), rng.integers(CLASSES, size=BASE)
    seed, largest = secrets.randbits(60), 0.0
    for row in (*records(rng), *(100.0 * rng.standard_normal((30, DIM)))):
        seed += 1  # the record takes part in most, not in all

        def released(x, y, seed=seed):
            data = first_order.prepare([(x, y)], parameters, problem)
            noise = NoiseSource("seeded", "sensitivity", seed)
            model = first_order.fit(data, parameters, problem, noiseless(plan), noise).model
            return expected * np.column_stack([model.weights, model.bias]).astype(np.float64)

        nothing = np.zeros((1, DIM), np.float32) * NAN
        before = released(np.vstack([rows, nothing]), np.append(labels, 0))  # the place is there, the record is not
        after = released(with_record(rows, row), np.append(labels, rng.integers(CLASSES)))
        largest = max(largest, float(np.linalg.norm(after - before)))
    assert_tight({"gradient": largest}, plan)


@pytest.mark.parametrize("shape", [(3, 4, 2), (24,)])
def test_private_normalisation(shape):
    rng = generator()
    normalisation = Normalisation(mean_clip=0.7, square_clip=1.9, noise_multiplier=8.0)
    problem = Problem(BASE, shape, CLASSES, Budget("1", 1e-5))
    events = {event.name: event for event in private_normalisation.events(normalisation, problem)}
    rows = base_rows(rng, problem.dim)

    def sums(x):
        found = private_normalisation.channel_sums([x], normalisation, problem)
        return {"normalisation_mean": found.mean, "normalisation_square": found.square}

    before, largest = sums(rows), dict.fromkeys(events, 0.0)
    with np.errstate(all="ignore"):
        for row in records(rng, problem.dim):
            after = sums(with_record(rows, row))
            for name in events:
                largest[name] = max(largest[name], float(np.linalg.norm(after[name] - before[name])))
    for name, event in events.items():
        assert 0.99 * event.sensitivity <= largest[name] <= event.sensitivity * ROUNDING


def test_the_noise_that_least_squares_adds_is_what_its_ledger_says():
    dim, classes = 120, 12
    problem = Problem(BASE, (dim,), classes, Budget("1", 1e-5), positives=2)
    rows = base_rows(generator(), dim)
    labels = np.eye(classes, dtype=np.int8)[np.arange(BASE) % classes]
    for variant in ("improved", "published"):
        parameters = least_squares.Parameters(variant=variant, clipping_norm=0.3)
        plan = least_squares.plan(parameters, problem)
        statistics = least_squares.prepare([(rows, labels)], parameters, problem)
        clean = least_squares.release(statistics, parameters, noiseless(plan), source())
        noisy = least_squares.release(statistics, parameters, plan, source())
        upper = np.triu_indices(dim, 1)
        for event in plan.events:
            noise = (noisy[event.name] - clean[event.name]).astype(np.float64)
            if event.name != "targets":  # coordinates in which the Frobenius norm is the Euclidean one
                noise = np.atleast_3d(noise.reshape(-1, dim, dim))
                noise = np.concatenate([np.einsum("jkk->jk", noise).ravel(), math.sqrt(2) * noise[:, *upper].ravel()])
            assert noise.std() == pytest.approx(event.noise_multiplier * event.sensitivity, rel=0.05 * 2), event.name
            if noise.size > 5000:
                assert noise.std() == pytest.approx(event.noise_multiplier * event.sensitivity, rel=0.05), event.name


def test_the_noise_that_first_order_adds_is_what_its_ledger_says_at_every_step(quick_plan):
    """Records that hold no numbers leave nothing but noise, also in empty batches."""
    dim, classes, steps = 999, 10, 4
    problem = Problem(5, (dim,), classes, Budget("2", 1e-5))
    data_rows = [(np.full((5, dim), NAN, np.float32), np.arange(5))]
    for sampling, batch_size in (("poisson", "full"), ("poisson", 1), ("shuffle", 1)):
        parameters = first_order.Parameters(
            learning_rate=1.0,
            clipping_norm=0.1,
            optimiser="sgd",
            steps=steps,
            batch_size=batch_size,
            sampling=sampling,
            curve_points=steps,
        )
        plan = first_order.plan(parameters, problem)
        (event,) = plan.events
        noise, path = source(), [np.zeros((classes, dim + 1))]
        first_order.fit(
            first_order.prepare(data_rows, parameters, problem),
            parameters,
            problem,
            plan,
            noise,
            monitor=lambda step, model, path=path: path.append(np.column_stack([model.weights, model.bias])),
        )
        assert noise.drawn == {"gradient": event.count} == {"gradient": steps}
        draws = np.diff(path, axis=0).reshape(steps, -1) * problem.n * parameters.rate(problem)
        for draw in draws:
            assert draw.std() == pytest.approx(event.noise_multiplier * event.sensitivity, rel=0.05)
        shared = np.abs(np.corrcoef(draws)[np.triu_indices(steps, 1)])
        assert shared.max() < 6 / math.sqrt(draws.shape[1])


def test_the_noise_that_the_normalisation_adds_is_what_its_ledger_says():
    channels = 20_000
    normalisation = Normalisation(mean_clip=0.7, square_clip=1.9, noise_multiplier=0.5)
    problem = Problem(10, (channels,), CLASSES, Budget("1", 1e-5))
    level = np.full(channels, 500.0)
    sums = private_normalisation.ChannelSums(np.zeros(channels), level)
    center, scale = private_normalisation.release(sums, normalisation, problem, source())
    mean = center.astype(np.float64) * problem.n
    square = (scale.astype(np.float64) ** -2 + center.astype(np.float64) ** 2) * problem.n - level
    first, second = private_normalisation.events(normalisation, problem)
    assert mean.std() == pytest.approx(first.noise_multiplier * first.sensitivity, rel=0.05)
    assert square.std() == pytest.approx(second.noise_multiplier * second.sensitivity, rel=0.05)
    assert abs(np.corrcoef(mean, square)[0, 1]) < 6 / math.sqrt(channels)


def test_published_noise_is_fresh_for_each_class_and_matrix():
    dim, classes = 70, 6
    problem = Problem(BASE, (dim,), classes, Budget("1", 1e-5))
    parameters = least_squares.Parameters(variant="published")
    plan = least_squares.plan(parameters, problem)
    statistics = least_squares.prepare([(base_rows(generator(), dim), np.arange(BASE) % classes)], parameters, problem)
    clean = least_squares.release(statistics, parameters, noiseless(plan), source())
    noisy = least_squares.release(statistics, parameters, plan, source())
    upper = np.triu_indices(dim, 1)
    draws = [(noisy["gram"] - clean["gram"])[upper]]
    draws += [(noisy["class_grams"][j] - clean["class_grams"][j])[upper] for j in range(classes)]
    shared = np.abs(np.corrcoef(draws)[np.triu_indices(classes + 1, 1)])
    assert shared.max() < 6 / math.sqrt(len(upper[0]))
    targets = noisy["targets"] - clean["targets"]
    assert np.abs(np.corrcoef(targets)[np.triu_indices(classes, 1)]).max() < 6 / math.sqrt(dim)
