"""Augmented copies against numpy's padding and slicing, and training on them against a loop."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch

from dpstudy.core.errors import StudyError
from dpstudy.methods import network_dpsgd, network_run, schedule
from dpstudy.methods.augmentation import Augmentation
from dpstudy.methods.problem import Problem
from dpstudy.models.network import NetworkModel
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource
from dpstudy.privacy.secure_sampling import SecureGenerator

N, SHAPE, CLASSES, STD = 12, (2, 28, 28), 3, 2.0


def start_of(noise):
    return int(noise.sampling("initialisation").integers(1 << 62))


def pictures(n=5, shape=SHAPE):
    return torch.from_numpy(np.random.default_rng(1).standard_normal((n, *shape)).astype(np.float32))


RULES = [
    Augmentation(6),
    Augmentation(3, pad=0),
    Augmentation(4, pad=7, flip=False),
    Augmentation(9, pad=0, crop=(6, 5)),
    Augmentation(9, pad=1, crop=[8, 9]),
]


@pytest.mark.parametrize("rule", RULES)
def test_copies_are_windows_of_the_mirrored_picture(rule):
    images = pictures(shape=(2, 9, 7))
    choices = rule.choose(5, (2, 9, 7), np.random.default_rng(2))
    height, width = rule.crop or (9, 7)
    copies = rule(images, choices)
    assert copies.shape == (5 * rule.multiplicity, 2, height, width)
    for record in range(5):
        wide = np.pad(images[record].numpy(), ((0, 0), (rule.pad,) * 2, (rule.pad,) * 2), mode="symmetric")
        for copy in range(rule.multiplicity):
            down, across, flipped = choices[record, copy].tolist()
            window = wide[:, down : down + height, across : across + width]
            expected = window[:, :, ::-1] if flipped else window
            assert np.array_equal(copies[record * rule.multiplicity + copy].numpy(), expected)


@pytest.mark.parametrize("secure", [False, True])
def test_mixtures_are_of_two_copies_of_one_record(secure):
    rule = Augmentation(3, pad=2, mixed=4, alpha=0.5)
    images = pictures(shape=(2, 9, 7))
    choices = rule.choose(5, (2, 9, 7), SecureGenerator() if secure else np.random.default_rng(2))
    found = rule(images, choices).unflatten(0, (5, 7))
    plain = Augmentation(3, pad=2)(images, choices[:, :3]).unflatten(0, (5, 3))
    assert rule.copies == 7 and torch.equal(found[:, :3], plain)
    weights = choices[:, 3:, 2]
    assert ((weights >= 0) & (weights <= 1)).all() and len(weights.unique()) == 20
    for record in range(5):
        for place, (first, second, weight) in enumerate(choices[record, 3:].tolist()):
            assert first != second
            expected = plain[record, int(first)] * weight + plain[record, int(second)] * (1 - weight)
            assert torch.allclose(found[record, 3 + place], expected, atol=1e-6)
    images[1:] = 1e6  # another record's pictures have no part in a mixture
    assert torch.equal(rule(images, choices).unflatten(0, (5, 7))[0], found[0])


def test_weights_of_mixtures_follow_the_beta_distribution():
    drawn = Augmentation(2, mixed=50, alpha=0.2)._mixtures(400, np.random.default_rng(0))[..., 2].ravel()
    assert scipy.stats.kstest(drawn, scipy.stats.beta(0.2, 0.2).cdf).pvalue > 1e-3


def test_what_keys_noise_says_mixtures_where_there_are_some():
    assert repr(Augmentation(4)) == "Augmentation(multiplicity=4, pad=4, flip=True, crop=None)"
    assert repr(Augmentation(4, mixed=2)).endswith("crop=None, mixed=2, alpha=0.2)")
    for wrong in ({"multiplicity": 1, "mixed": 2}, {"multiplicity": 4, "mixed": -1}, {"multiplicity": 4, "alpha": 0.0}):
        with pytest.raises(StudyError, match="augmentation: "):
            Augmentation(**wrong)


def test_places_and_flips_are_uniform_and_no_flip_is_none():
    choices = Augmentation(8, pad=1).choose(4000, SHAPE, np.random.default_rng(3)).flatten(0, 1)
    counts = torch.unique(choices, dim=0, return_counts=True)[1]
    assert len(counts) == 3 * 3 * 2
    assert ((counts - 32000 / 18).abs() < 5 * math.sqrt(32000 / 18)).all()
    assert not Augmentation(8, flip=False).choose(100, SHAPE, np.random.default_rng(3))[..., 2].any()


def test_windows_reach_every_corner():
    """With room of 3 down and 1 across, padding included, all places are drawn and none beyond."""
    rule = Augmentation(50, pad=1, flip=False, crop=(27, 29))
    places = rule.choose(40, SHAPE, np.random.default_rng(3)).flatten(0, 1)
    found = {tuple(place) for place in places[:, :2].tolist()}
    assert found == {(down, across) for down in range(4) for across in (0, 1)}


@pytest.fixture
def quick_plan(monkeypatch):
    monkeypatch.setattr(schedule, "calibrate", lambda events_at, budget: STD)


@pytest.fixture
def problem():
    return Problem(N, SHAPE, CLASSES, Budget("2", 1e-5))


class TooMany(list):
    """Batches of more records than memory holds."""

    nbytes = 1 << 40


def trained(problem, noise=None, shards=None, **options):
    random = np.random.default_rng(5)
    rows = random.standard_normal((N, math.prod(SHAPE))).astype(np.float32), random.integers(CLASSES, size=N)
    parameters = network_dpsgd.Parameters(
        **{"network": "tanh-28", "learning_rate": 0.5, "clipping_norm": 0.3, "steps": 2, "optimiser": "sgd"} | options
    )
    cut = zip(*(np.split(part, shards) for part in rows), strict=True) if shards else [rows]
    data = network_dpsgd.prepare(TooMany(cut) if shards else [rows], parameters, problem)
    noise = noise or NoiseSource("seeded", "cell", "train", 0, 0)
    plan = network_dpsgd.plan(parameters, problem)
    return rows, network_dpsgd.fit(data, parameters, problem, plan, noise).model


@pytest.mark.parametrize("mixed", [0, 2])
@pytest.mark.parametrize("clip", [0.3, 20.0])  # the second clips nothing: a sum instead of a mean would show
def test_a_records_copies_are_averaged_before_it_is_clipped(problem, quick_plan, clip, mixed):
    """Two steps in float64 over a loop of copies and records (de2022, Eq. 4), with the noise of the same source."""
    rule = {"multiplicity": 3, "pad": 2, "mixed": mixed}
    (features, labels), model = trained(problem, augmentation=rule, normalised=True, clipping_norm=clip)
    noise = NoiseSource("seeded", "cell", "train", 0, 0)
    parameters = network_dpsgd.Parameters(network="tanh-28", learning_rate=0.5, clipping_norm=clip, steps=2)
    network = network_run.initialised(parameters.network, problem, start_of(noise)).double()
    for step in (1, 2):
        choices = Augmentation(**rule).choose(N, SHAPE, noise.sampling(f"augmentation {step}"))
        total = {name: torch.zeros_like(value) for name, value in network.named_parameters()}
        for record in range(N):
            image = torch.from_numpy(features[record]).reshape(1, *SHAPE)
            mean = {name: torch.zeros_like(value) for name, value in network.named_parameters()}
            for copy in Augmentation(**rule)(image, choices[record : record + 1]).double():
                loss = torch.nn.functional.cross_entropy(network(copy[None]), torch.tensor([labels[record]]))
                for name, gradient in zip(mean, torch.autograd.grad(loss, list(network.parameters())), strict=True):
                    mean[name] += gradient / (3 + mixed)
            length = math.sqrt(sum(float(gradient.square().sum()) for gradient in mean.values()))
            for name, gradient in mean.items():
                total[name] += gradient * min(1.0, clip / length)
        with torch.no_grad():
            for name, value in network.named_parameters():
                drawn = noise.gaussian(schedule.GRADIENT, tuple(value.shape), STD * clip, step, name)
                value -= 0.5 / clip * (total[name] + torch.from_numpy(drawn)) / N
    for name, value in network.named_parameters():
        assert model.state[name] == pytest.approx(value.detach().numpy(), abs=5e-5), name


def test_micro_batches_change_no_copy(problem, quick_plan):
    models = [
        trained(problem, augmentation={"multiplicity": 4}, batch_size=6, micro_batch=size)[1] for size in (1, 5, "auto")
    ]
    for other in models[1:]:
        assert max(np.abs(models[0].state[name] - other.state[name]).max() for name in other.state) < 1e-5


def test_full_batches_of_records_that_memory_does_not_hold_are_augmented_alike(problem, quick_plan):
    """Shards end within micro-batches, whose copies are drawn for micro-batches of one size."""
    options = {"augmentation": {"multiplicity": 2}, "micro_batch": 4}
    (_, held), (_, filed) = (trained(problem, shards=shards, **options) for shards in (None, [5, 6]))
    for name, value in held.state.items():
        np.testing.assert_array_equal(filed.state[name], value, err_msg=name)


@pytest.mark.parametrize("mixed", [0, 3])
def test_a_record_with_many_copies_moves_a_step_by_at_most_the_clipping_norm(quick_plan, mixed):
    """Neighbouring data sets under full batches: the last record has no weight where its pixels are not numbers."""
    problem = Problem(N, SHAPE, CLASSES, Budget("inf", 1e-5), sanitise="clip")
    random = np.random.default_rng(5)
    features, labels = random.standard_normal((N, math.prod(SHAPE))).astype(np.float32), random.integers(3, size=N)
    parameters = network_dpsgd.Parameters(
        network="tanh-28",
        learning_rate=1.0,
        clipping_norm=0.01,
        steps=1,
        optimiser="sgd",
        augmentation={"multiplicity": 5, "mixed": mixed},
    )
    models = []
    for last in (1.0, math.nan):
        rows = features.copy()
        rows[-1] *= last
        data = network_dpsgd.prepare([(rows, labels)], parameters, problem)
        plan = network_dpsgd.plan(parameters, problem)
        models.append(network_dpsgd.fit(data, parameters, problem, plan, NoiseSource("seeded", "cell")).model.state)
    moved = math.sqrt(sum(float(np.square(models[0][name] - models[1][name]).sum()) for name in models[0]))
    assert moved == pytest.approx(0.01 / N, rel=2e-3)


@pytest.mark.parametrize(
    ("options", "shape", "words"),
    [
        ({"multiplicity": 2}, (784,), r"augmentation: needs images of layout \(C, H, W\), not features \(784,\)"),
        ({"multiplicity": 2, "pad": 9}, (1, 8, 8), "augmentation: pad 9 exceeds the images of 8x8"),
        ({"multiplicity": 0}, (1, 8, 8), "multiplicity"),
        ({"multiplicity": 1, "pad": -1}, (1, 8, 8), "pad -1"),
    ],
)
def test_what_cannot_be_augmented_is_refused(options, shape, words):
    with pytest.raises(StudyError, match=words):
        Augmentation(**options).check(shape)


def test_a_network_for_crops_scores_resized_images(problem, quick_plan, tmp_path):
    """Trained on windows of 32 x 32 out of images of 36 x 36, it is evaluated on the whole image at 32 x 32."""
    larger = replace(problem, shape=(2, 36, 36))
    random = np.random.default_rng(5)
    features = random.standard_normal((N, 2 * 36 * 36)).astype(np.float32)
    crops = {"multiplicity": 2, "pad": 0, "crop": [32, 32]}
    parameters = network_dpsgd.Parameters(
        network="lenet", learning_rate=0.5, clipping_norm=0.3, steps=1, optimiser="sgd", augmentation=crops
    )
    data = network_dpsgd.prepare([(features, np.arange(N) % CLASSES)], parameters, larger)
    noise = NoiseSource("seeded", "cell", "train", 0, 0)
    model = network_dpsgd.fit(data, parameters, larger, network_dpsgd.plan(parameters, larger), noise).model
    model.save(tmp_path / "model.safetensors")
    model = NetworkModel.load(tmp_path / "model.safetensors")
    assert model.shape == (2, 36, 36) and model.input_size == (32, 32)
    small = torch.nn.functional.interpolate(
        torch.from_numpy(features).view(-1, 2, 36, 36), (32, 32), mode="bilinear", antialias=True
    )
    plain = replace(model, shape=(2, 32, 32), input_size=None)
    np.testing.assert_allclose(model.scores(features), plain.scores(small.flatten(1).numpy()), rtol=1e-5, atol=1e-6)
    with pytest.raises(StudyError, match=r"crop \(40, 32\) exceeds the images of 36x36 by 4"):
        network_dpsgd.plan(replace(parameters, augmentation=Augmentation(2, 0, crop=(40, 32))), larger)
