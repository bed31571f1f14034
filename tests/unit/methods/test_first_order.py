"""First-order training against slow references: autograd per example, torch's optimisers, counted batches."""

import math
import secrets
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from dpstudy.core.arrays import to_numpy
from dpstudy.core.errors import StudyError
from dpstudy.methods import first_order, records, sampling, schedule
from dpstudy.methods.gradients import Head, clipped_sum
from dpstudy.methods.private_normalisation import Normalisation
from dpstudy.methods.problem import Problem
from dpstudy.methods.sampling import batches
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.ledger import check_releases
from dpstudy.privacy.noise import NoiseSource

N, DIM, CLASSES = 37, 9, 5


@pytest.fixture
def quick_plan(monkeypatch):
    """Plans with noise multiplier 2, without the seconds that an accountant takes for sampled batches."""
    monkeypatch.setattr(schedule, "calibrate", lambda events_at, budget: 2.0)


@pytest.fixture
def problem():
    return Problem(N, (DIM,), CLASSES, Budget("2", 1e-5))


@pytest.fixture
def rows():
    rng = np.random.default_rng(7)
    return (3 * rng.standard_normal((N, DIM))).astype(np.float32), rng.integers(CLASSES, size=N)


def settings(**options):
    return first_order.Parameters(**({"learning_rate": 0.5, "clipping_norm": 0.8, "steps": 4} | options))


def source(seed=None):
    return NoiseSource("seeded", "test", secrets.randbits(50) if seed is None else seed)


def head_of(rows, parameters, problem, weights=None):
    """The head's clipped sums at some weights (default: zero) over chosen records."""
    records = first_order.prepare([rows], parameters, problem).records
    clip = parameters.clipping_norm if problem.clipped else math.inf
    head = Head(parameters.loss, parameters.bias, clip, parameters.clipping)
    at = head.start(records) if weights is None else records.place.array(weights, "float32")
    return lambda index=None: to_numpy(clipped_sum(records, at, head, index))


def trained(rows, parameters, problem, plan, noise, monitor=None):
    return first_order.fit(first_order.prepare([rows], parameters, problem), parameters, problem, plan, noise, monitor)


def slow_gradients(rows, weights, loss, bias):
    """One example at a time, by autograd, in float64."""
    x, y = torch.from_numpy(rows[0]).double(), torch.from_numpy(rows[1])
    gradients = []
    for row, label in zip(x, y, strict=True):
        parameters = torch.tensor(weights, dtype=torch.float64, requires_grad=True)
        if bias == "learned":
            scores = parameters[:, :-1] @ row + parameters[:, -1]
        else:
            scores = parameters @ row + bias
        if loss == "softmax":
            value = torch.nn.functional.cross_entropy(scores[None], label[None])
        else:
            target = torch.nn.functional.one_hot(label, len(scores)).double()
            value = torch.nn.functional.binary_cross_entropy_with_logits(scores, target)
        gradients.append(torch.autograd.grad(value, parameters)[0].numpy())
    return gradients


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
@pytest.mark.parametrize("bias", ["learned", -2.0])
def test_clipped_sum_equals_a_loop_over_examples(kind, rows, problem, loss, bias):
    weights = 0.3 * np.random.default_rng(1).standard_normal((CLASSES, DIM + (bias == "learned")))
    gradients = slow_gradients(rows, weights, loss, bias)
    norm = float(np.median([np.linalg.norm(gradient) for gradient in gradients]))  # half of the examples are clipped
    bound = (1 - 1e-6) * norm  # so much is left for rounding
    expected = sum(gradient * min(1.0, bound / np.linalg.norm(gradient)) for gradient in gradients)
    head = head_of(rows, settings(loss=loss, bias=bias, clipping_norm=norm), problem, weights)
    assert head(None) == pytest.approx(expected, abs=2e-5)


def test_a_batch_is_the_sum_over_its_rows_and_blocks_change_nothing(kind, rows, problem):
    head = head_of(rows, settings(), problem, np.random.default_rng(2).standard_normal((CLASSES, DIM + 1)))
    index = np.array([3, 30, 4, 17, 36])
    whole, chosen = head(None), head(index)
    single = [head(index[i : i + 1]) for i in range(5)]
    assert chosen == pytest.approx(sum(single), abs=1e-5)
    head.block = 3
    assert head(None) == pytest.approx(whole, abs=1e-5)
    assert head(index) == pytest.approx(chosen, abs=1e-5)


def test_blocks_change_neither_the_noise_nor_its_count(rows, problem, monkeypatch):
    parameters, models = settings(optimiser="adam", learning_rate=0.05), []
    plan = first_order.plan(parameters, problem)
    for values in (1 << 20, 1):
        monkeypatch.setattr(records, "_BLOCK_VALUES", {"cpu": values, "cuda": values})
        noise = source(5)
        models.append(trained(rows, parameters, problem, plan, noise).model)
        assert noise.drawn == {"gradient": 4}
    assert models[0].weights == pytest.approx(models[1].weights, abs=1e-4)


def test_an_empty_batch_takes_a_noisy_step(rows, problem, monkeypatch, quick_plan):
    monkeypatch.setattr(sampling, "batches", lambda *args, **rest: iter([np.array([], int)]))
    parameters = settings(steps=1, batch_size=8, optimiser="sgd", learning_rate=1.0)
    plan = first_order.plan(parameters, problem)
    model = trained(rows, parameters, problem, plan, source(3)).model
    noise = source(3).gaussian("gradient", (CLASSES, DIM + 1), plan.noise["gradient"], step=1)
    assert model.weights == pytest.approx(-noise[:, :-1] / 8, rel=1e-5)
    assert model.bias == pytest.approx(-noise[:, -1] / 8, rel=1e-5)


@pytest.mark.parametrize("realised", [2, 20])
def test_the_sum_is_divided_by_the_public_batch_size(rows, problem, monkeypatch, quick_plan, realised):
    monkeypatch.setattr(sampling, "batches", lambda *args, **rest: iter([np.arange(realised)]))
    parameters = settings(steps=1, batch_size=8, optimiser="sgd", learning_rate=1.0)
    plan = replace(first_order.plan(parameters, problem), noise={"gradient": 0.0})
    model = trained(rows, parameters, problem, plan, source()).model
    total = head_of(rows, parameters, problem)(np.arange(realised))
    assert np.column_stack([model.weights, model.bias]) == pytest.approx(-total / 8, abs=1e-5)


def test_records_that_deduplication_dropped_leave_the_divisor_alone(rows, problem):
    parameters = settings(steps=1, optimiser="sgd", learning_rate=1.0)
    plan = replace(first_order.plan(parameters, problem), noise={"gradient": 0.0})
    fewer = (rows[0][:20], rows[1][:20])
    model = trained(fewer, parameters, problem, plan, source()).model
    total = head_of(fewer, parameters, problem)(None)
    assert model.weights == pytest.approx(-total[:, :-1] / N, abs=1e-6)


def test_poisson_batches_of_a_run_are_drawn_at_its_rate(rows, problem, monkeypatch, quick_plan):
    seen = []
    monkeypatch.setattr(
        first_order,
        "clipped_sum",
        lambda records, weights, head, index: seen.append(len(index)) or 0 * weights,
    )
    parameters = settings(steps=3000, batch_size=6)
    plan = first_order.plan(parameters, problem)
    trained(rows, parameters, problem, plan, source())
    (event,) = plan.events
    assert (event.sampling, event.sampling_rate, event.count) == ("poisson", 6 / N, len(seen))
    assert stats.binomtest(sum(seen), N * len(seen), event.sampling_rate).pvalue > 1e-7


def test_shuffled_participation_never_exceeds_the_accounted_passes(problem, monkeypatch, quick_plan):
    for kept, batch_size, steps in ((N, 6, 20), (N - 4, 6, 20), (N - 9, 5, 33), (N, 37, 9)):
        parameters = settings(steps=steps, batch_size=batch_size, sampling="shuffle")
        (event,) = first_order.plan(parameters, problem).events
        passes = event.epochs or event.count
        taken = np.zeros(kept)
        generator = np.random.default_rng(secrets.randbits(60))
        for index in batches(kept, parameters.rate(problem), steps, "shuffle", generator, slots=N):
            taken[slice(None) if index is None else index] += 1
        assert taken.max() <= passes


def test_shuffle_keeps_the_noise_of_poisson_and_certifies_what_it_is_worth(problem, quick_plan):
    poisson = first_order.plan(settings(steps=24, batch_size=6), problem)
    shuffle = first_order.plan(settings(steps=24, batch_size=6, sampling="shuffle"), problem)
    assert shuffle.noise == poisson.noise
    assert (shuffle.events[0].sampling, shuffle.events[0].epochs, shuffle.events[0].count) == ("shuffle", 4, 24)


@pytest.mark.parametrize(
    ("options", "steps"),
    [({"steps": 7}, 7), ({"steps": None, "epochs": 3}, 3), ({"steps": None, "epochs": 2.5, "batch_size": 8}, 12)],
)
def test_steps_taken_are_steps_accounted(rows, problem, quick_plan, options, steps):
    parameters, noise, seen = settings(**options), source(), []
    plan = first_order.plan(parameters, problem)
    trained(rows, parameters, problem, plan, noise, monitor=lambda step, model: seen.append(step))
    assert plan.events[0].count == plan.facts["steps"] == steps
    assert noise.drawn == {"gradient": steps}
    assert seen[-1] == steps
    check_releases(plan.events, noise.drawn)


@pytest.mark.parametrize("sampling", ["poisson", "shuffle"])
def test_what_is_spent_grows_to_the_whole(problem, quick_plan, sampling):
    parameters = settings(steps=24, batch_size=6, sampling=sampling, normalisation=Normalisation(1.0, 1.0, 8.0))
    plan = first_order.plan(parameters, problem)
    assert first_order.spent(plan, 24) == plan.events
    part = first_order.spent(plan, 7)
    assert [event.count for event in part] == [1, 1, 7]
    assert part[-1].epochs == (None if sampling == "poisson" else 2)  # the seventh step opens the second pass


def test_learning_rate_is_scaled_by_the_batch(problem):
    assert settings(learning_rate=4.0, learning_rate_batch=512, batch_size=32).step_size(problem) == pytest.approx(0.25)
    assert settings(learning_rate=4.0).step_size(problem) == 4.0


def test_without_noise_training_equals_plain_gradient_descent(kind, rows):
    problem = Problem(N, (DIM,), CLASSES, Budget("inf", 1e-5))
    parameters = settings(optimiser="momentum", steps=30, learning_rate=0.2)
    model = trained(rows, parameters, problem, first_order.plan(parameters, problem), source()).model
    layer = torch.nn.Linear(DIM, CLASSES)
    torch.nn.init.zeros_(layer.weight), torch.nn.init.zeros_(layer.bias)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.2, momentum=0.9)
    for _ in range(30):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(layer(torch.from_numpy(rows[0])), torch.from_numpy(rows[1])).backward()
        optimiser.step()
    assert model.weights == pytest.approx(layer.weight.detach().numpy(), abs=1e-4)
    assert model.bias == pytest.approx(layer.bias.detach().numpy(), abs=1e-4)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 3e38, 1e20])
def test_records_without_finite_numbers_take_no_part(kind, rows, problem, bad):
    features = rows[0].copy()
    features[[2, 9]] = bad
    weights = np.random.default_rng(2).standard_normal((CLASSES, DIM + 1))
    fine = np.setdiff1d(np.arange(N), [2, 9])
    broken = head_of((features, rows[1]), settings(), problem, weights)(None)
    without = head_of((rows[0][fine], rows[1][fine]), settings(), problem, weights)(None)
    assert broken == pytest.approx(without, abs=1e-5)


def test_divergence_is_refused_not_written(rows):
    problem = Problem(N, (DIM,), CLASSES, Budget("inf", 1e-5))
    parameters = settings(learning_rate=3e38, steps=5)
    plan = first_order.plan(parameters, problem)
    with pytest.raises(StudyError, match="diverged.*learning rate"):
        trained(rows, parameters, problem, plan, source())


def test_a_fixed_bias_stays(rows, problem):
    parameters = settings(loss="sigmoid", bias=-10)
    model = trained(rows, parameters, problem, first_order.plan(parameters, problem), source()).model
    assert (model.bias == -10).all()


def test_normalised_training_folds_into_the_released_model(rows, problem, quick_plan):
    parameters = settings(normalisation={"mean_clip": 20.0, "square_clip": 200.0, "noise_multiplier": 8.0})
    noise = source()
    plan = first_order.plan(parameters, problem)
    model = trained(rows, parameters, problem, plan, noise).model
    check_releases(plan.events, noise.drawn)
    assert [event.name for event in plan.events] == ["normalisation_mean", "normalisation_square", "gradient"]
    slow = ((rows[0] - model.center) * model.scale) @ model.weights.T + model.bias
    assert model.scores(rows[0]) == pytest.approx(slow, abs=1e-3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"optimiser": "adamw"}, "optimiser 'adamw'.*'sgd', 'momentum', 'adam'"),
        ({"loss": "hinge"}, "loss 'hinge'.*'softmax', 'sigmoid'"),
        ({"sampling": "poison"}, "sampling 'poison'.*'poisson', 'shuffle'"),
        ({"clipping_norm": math.inf}, "clipping_norm inf"),
        ({"clipping_norm": -1}, "clipping_norm -1"),
        ({"steps": 0}, "steps 0"),
        ({"steps": -3}, "steps -3"),
        ({"epochs": 3}, "one of `epochs`, `steps` and `noise_multiplier`"),
        ({"steps": None}, "one of `epochs`, `steps` and `noise_multiplier`"),
        ({"batch_size": "half"}, "batch_size 'half'"),
        ({"bias": "none"}, "bias 'none'"),
    ],
)
def test_hyper_parameters_without_meaning_are_refused(options, words):
    with pytest.raises(StudyError, match=words):
        settings(**options)


def test_a_batch_above_n_is_refused(problem):
    with pytest.raises(StudyError, match="batch_size 64 exceeds the 37"):
        first_order.plan(settings(batch_size=64), problem)


def test_given_the_noise_the_steps_follow(problem):
    """Both directions meet: the noise for T steps affords T steps again."""
    given_steps = first_order.plan(settings(steps=9), problem)
    noise = given_steps.facts["noise_multiplier"]
    parameters = settings(steps=None, noise_multiplier=noise)
    plan = first_order.plan(parameters, problem)
    assert plan.facts["steps"] == 9 and plan.events[-1].noise_multiplier == noise
    free = Problem(problem.n, problem.shape, problem.classes, Budget("inf", 1e-5))
    with pytest.raises(StudyError, match="noise_multiplier gives no number of steps where no noise is added"):
        first_order.plan(parameters, free)


def test_given_both_they_are_taken_as_they_are_or_refused(problem):
    """A published setting that the exact accountant finds cheaper than its target is certified for what it costs."""
    noise = first_order.plan(settings(steps=9), problem).facts["noise_multiplier"]
    plan = first_order.plan(settings(steps=7, noise_multiplier=noise), problem)
    assert plan.facts["steps"] == 7 and plan.events[-1].noise_multiplier == noise
    assert certify(plan.events, problem.budget.delta).epsilon < 0.95 * problem.budget.target
    with pytest.raises(StudyError, match="10 steps at noise_multiplier .* above the target 2; leave one"):
        first_order.plan(settings(steps=10, noise_multiplier=noise), problem)


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1}, {"optimiser": "adam", "learning_rate": 0.01}])
def test_a_normalised_update_does_not_depend_on_the_unit_of_the_clipping_norm(rows, problem, quick_plan, options):
    """Gradients that are all clipped, and their noise, are proportional to C: over C they train the same model."""
    models = []
    for clip in (1e-3, 1e-5):
        parameters = settings(normalised=True, clipping_norm=clip, steps=5, **options)
        plan = first_order.plan(parameters, problem)
        data = first_order.prepare([rows], parameters, problem)
        models.append(first_order.fit(data, parameters, problem, plan, source(1)).model.weights)
    assert np.abs(models[0]).max() > 1e-2
    assert models[1] == pytest.approx(models[0], rel=1e-3, abs=1e-6)
    free = Problem(problem.n, problem.shape, problem.classes, Budget("inf", 1e-5), sanitise="none")
    parameters = settings(normalised=True, clipping_norm=0.1)
    assert parameters.gradient_divisor(free) == pytest.approx(10 * parameters.gradient_divisor(problem))
