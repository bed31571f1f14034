"""DP-SGD for networks: what a step releases, and that nothing else decides the result."""

import math

import numpy as np
import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.methods import network_dpsgd, network_run, schedule
from dpstudy.methods.network_dpsgd import Parameters
from dpstudy.methods.problem import Problem
from dpstudy.methods.record_gradients import RecordGradients
from dpstudy.methods.schedule import GRADIENT
from dpstudy.models.network import NetworkModel
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.ledger import check_releases
from dpstudy.privacy.noise import NoiseSource

N, SHAPE, CLASSES, STD = 40, (9, 7, 7), 3, 2.0


def settings(**options) -> Parameters:
    return Parameters(**{"network": "scatter-28", "learning_rate": 0.5, "clipping_norm": 0.3, "steps": 3} | options)


@pytest.fixture
def rows():
    rng = np.random.default_rng(2)
    return rng.standard_normal((N, math.prod(SHAPE))).astype(np.float32), rng.integers(CLASSES, size=N)


@pytest.fixture
def problem():
    return Problem(N, SHAPE, CLASSES, Budget("2", 1e-5))


@pytest.fixture
def quick_plan(monkeypatch):
    monkeypatch.setattr(schedule, "calibrate", lambda events_at, budget: STD)


def source(seed=0, **options):
    return NoiseSource("seeded", "cell", "train", 0, seed, **options)


def start_of(noise):
    return int(noise.sampling("initialisation").integers(1 << 62))


def trained(rows, parameters, problem, noise=None, **options):
    plan = network_dpsgd.plan(parameters, problem)
    noise = noise or source()
    data = network_dpsgd.prepare([rows], parameters, problem)
    model = network_dpsgd.fit(data, parameters, problem, plan, noise, **options).model
    check_releases(plan.events, noise.drawn)
    return model


def differs(one, other):
    return max(float(np.abs(one.state[name] - other.state[name]).max()) for name in one.state)


@pytest.mark.parametrize(("penalty", "decay"), [(0.0, "none"), (0.1, "cosine")])
def test_steps_equal_a_slow_training(rows, problem, quick_plan, penalty, decay):
    """Momentum over a loop of records in float64, with the noise of the same source."""
    parameters = settings(steps=4, micro_batch=7, weight_decay=penalty, learning_rate_decay=decay)
    noise, found = source(), trained(rows, parameters, problem)
    network = network_run.initialised(parameters.network, problem, start_of(noise)).double()
    velocity = {name: 0.0 for name, _ in network.named_parameters()}
    for step in range(1, 5):
        total = {name: torch.zeros_like(value) for name, value in network.named_parameters()}
        for features, label in zip(*rows, strict=True):
            scores = network(torch.from_numpy(features).double().reshape(1, *SHAPE))
            loss = torch.nn.functional.cross_entropy(scores, torch.tensor([label]))
            gradients = torch.autograd.grad(loss, list(network.parameters()))
            length = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
            for name, gradient in zip(total, gradients, strict=True):
                total[name] += gradient * min(1.0, 0.3 / length)
        with torch.no_grad():
            for name, value in network.named_parameters():
                drawn = noise.gaussian(GRADIENT, tuple(value.shape), STD * 0.3, step, name)
                gradient = (total[name] + torch.from_numpy(drawn)) / N + penalty * value
                velocity[name] = 0.9 * velocity[name] + gradient
                falling = 0.5 + 0.5 * math.cos(math.pi * (step - 1) / 4) if decay == "cosine" else 1.0
                value -= 0.5 * falling * velocity[name]
    for name, value in network.named_parameters():
        assert found.state[name] == pytest.approx(value.detach().numpy(), abs=2e-5), name


def test_what_is_left_of_a_batch_comes_in_few_sizes(rows, problem, quick_plan, monkeypatch):
    """So that memory that was freed fits again; what is filled up takes no part."""
    sizes, clipped_sum = [], RecordGradients.clipped_sum

    def spy(self, records, labels, loss, norm, copies, part):
        sizes.append((len(records), len(labels), len(part)))
        return clipped_sum(self, records, labels, loss, norm, copies, part)

    monkeypatch.setattr(network_run, "check_network", lambda *network, **facts: None)  # which takes batches of its own
    monkeypatch.setattr(RecordGradients, "clipped_sum", spy)
    found = trained(rows, settings(micro_batch=32, batch_size=10, steps=8), problem)
    assert {len(set(size)) for size in sizes} == {1} and {size[0] % 4 for size in sizes} == {0} and len(set(sizes)) > 1
    monkeypatch.setattr(network_run, "_PARTS", 10**6)
    other = trained(rows, settings(micro_batch=32, batch_size=10, steps=8), problem)
    assert {size[0] % 4 for size in sizes} != {0} and differs(found, other) < 1e-5


def test_micro_batches_change_speed_alone(rows, problem, quick_plan):
    models = [trained(rows, settings(micro_batch=size, batch_size=16), problem) for size in (1, 6, 128, "auto")]
    assert max(differs(models[0], other) for other in models[1:]) < 1e-5


def test_noise_is_fresh_for_each_step_tensor_and_seed(rows, problem, quick_plan):
    draws = []

    class Recording(NoiseSource):
        def gaussian(self, name, shape, std, step=0, tensor="", dtype=np.float32):
            drawn = super().gaussian(name, shape, std, step, tensor, dtype)
            draws.append((std, drawn.ravel()[:3]))
            return drawn

    for seed in (0, 1):
        trained(rows, settings(), problem, Recording("seeded", "cell", "train", 0, seed))
    assert len(draws) == 2 * 3 * 8 and {std for std, _ in draws} == {STD * 0.3}
    values = np.concatenate([start for _, start in draws])
    assert len(np.unique(values)) == len(values)


def test_an_empty_batch_takes_a_noisy_step(rows, quick_plan):
    far = Problem(10_000, SHAPE, CLASSES, Budget("2", 1e-5))
    parameters = settings(batch_size=1, steps=1)
    quiet = source(1)  # a seed whose only batch is empty: 40 rows at rate 1e-4
    start = network_run.initialised(parameters.network, far, start_of(source(1)))
    model = trained(rows, parameters, far, quiet)
    moved = model.state["0.weight"] - start.state_dict()["0.weight"].numpy()
    assert moved.std() == pytest.approx(0.5 * STD * 0.3, rel=0.1), "noise over q n = 1"


def test_one_record_moves_a_step_by_at_most_the_clipping_norm(rows, problem, quick_plan, monkeypatch):
    """Neighbouring data sets, the same noise: weights after one step of rate 1 differ by at most C / n."""
    parameters = settings(steps=1, learning_rate=1.0, optimiser="sgd")
    features, labels = rows
    worst = 0.0
    for scale in (1.0, 100.0):
        more = np.concatenate([features, scale * features[:1]]), np.append(labels, 2)
        one, other = trained(rows, parameters, problem), trained(more, parameters, problem)
        moved = math.sqrt(sum(float(np.square(one.state[name] - other.state[name]).sum()) for name in one.state))
        assert moved <= 0.3 / N * 1.001
        worst = max(worst, moved)
    assert worst == pytest.approx(0.3 / N, rel=1e-3)


def test_without_noise_nothing_is_drawn_and_clipping_stays_where_asked(rows):
    models = {}
    for sanitise in ("clip", "none"):
        problem = Problem(N, SHAPE, CLASSES, Budget("inf", 1e-5), sanitise=sanitise)
        noise = source()
        models[sanitise] = trained(rows, settings(clipping_norm=0.01), problem, noise)
        assert not noise.drawn
    assert differs(models["clip"], models["none"]) > 0.01


def test_the_moving_average_is_the_model(rows, problem, quick_plan):
    seen = []
    plain = settings(steps=5, curve_points=5)
    trained(rows, plain, problem, monitor=lambda step, model: seen.append(model.state["0.bias"]))
    start = network_run.initialised(plain.network, problem, start_of(source())).state_dict()["0.bias"].numpy()
    slow = start.copy()
    for count, value in enumerate(seen):
        keep = min(0.5, (1 + count) / (10 + count))
        slow = keep * slow + (1 - keep) * value
    averaged = trained(rows, settings(steps=5, moving_average=0.5), problem)
    assert averaged.state["0.bias"] == pytest.approx(slow, abs=1e-6)


def test_the_start_depends_on_the_seed_alone(rows, problem):
    with torch.random.fork_rng():
        starts = []
        for seed, torch_seed in ((3, 1), (3, 2), (4, 1)):
            torch.manual_seed(torch_seed)
            starts.append(network_run.initialised(settings().network, problem, start_of(source(seed)))[0].weight)
    assert torch.equal(starts[0], starts[1]) and not torch.equal(starts[0], starts[2])


def test_normalisation_is_part_of_the_model(rows, problem, quick_plan, tmp_path):
    rule = {"mean_clip": 20.0, "square_clip": 200.0, "noise_multiplier": 8.0}
    model = trained(rows, settings(normalisation=rule), problem)
    model.save(tmp_path / "model.safetensors")
    again = NetworkModel.load(tmp_path / "model.safetensors")
    assert (again.scores(rows[0]) == model.scores(rows[0])).all()
    without = NetworkModel(model.architecture, model.shape, model.classes, model.state)
    by_hand = without.scores((rows[0] - model.center) * model.scale)
    assert model.scores(rows[0]) == pytest.approx(by_hand, abs=1e-4)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 3e38])
def test_broken_records_take_no_part(rows, bad):
    problem = Problem(N, SHAPE, CLASSES, Budget("inf", 1e-5), sanitise="clip")
    features = rows[0].copy()
    features[[2, 9], 5] = bad
    fine = np.setdiff1d(np.arange(N), [2, 9])
    one = trained((features, rows[1]), settings(), problem)
    other = trained((rows[0][fine], rows[1][fine]), settings(), problem)
    assert differs(one, other) < 1e-6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"network": "resnet"}, "network 'resnet': there is none"),
        ({"steps": None}, "network_dpsgd: give one of `epochs`, `steps`"),
        ({"moving_average": 1.0}, "moving_average 1.0"),
        ({"weight_decay": -0.1}, "weight_decay -0.1"),
        ({"learning_rate_decay": "linear"}, "learning_rate_decay"),
        ({"micro_batch": 0}, "micro_batch"),
        ({"loss": "hinge"}, "loss 'hinge'"),
    ],
)
def test_bad_settings_are_named(options, words):
    with pytest.raises(StudyError, match=words):
        settings(**options)


def test_flat_features_are_refused(rows):
    flat = Problem(N, (math.prod(SHAPE),), CLASSES, Budget("inf", 1e-5))
    with pytest.raises(StudyError, match=r"needs features of layout \(C, H, W\)"):
        trained(rows, settings(), flat)


def test_divergence_is_refused_not_written(rows):
    problem = Problem(N, SHAPE, CLASSES, Budget("inf", 1e-5))
    with pytest.raises(StudyError, match="diverged.*learning rate"):
        trained(rows, settings(learning_rate=3e38, steps=6, optimiser="adam"), problem)
