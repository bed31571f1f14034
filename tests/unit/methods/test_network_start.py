"""Private training from public weights: what is taken over, what starts anew, and what stays as it is."""

import math

import numpy as np
import pytest
import timm
import torch

from dpstudy.core.errors import StudyError
from dpstudy.core.files import sha256, write_tensors
from dpstudy.features.weights import read_shapes
from dpstudy.methods import network_dpsgd, schedule
from dpstudy.methods.network_dpsgd import Parameters
from dpstudy.methods.network_run import NetworkRun
from dpstudy.methods.network_start import begin, check_start, read_start
from dpstudy.methods.problem import Problem
from dpstudy.methods.ranks import current
from dpstudy.models import networks
from dpstudy.models.network import NetworkModel
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.ledger import check_releases
from dpstudy.privacy.noise import NoiseSource

N, SHAPE, CLASSES = 12, (1, 8, 8), 3
HEAD = {"trained": "classifier", "augmentation": {"multiplicity": 1, "pad": 0, "flip": False}}
FINE = {
    "learning_rate": 0.5,
    "clipping_norm": 0.3,
    "steps": 2,
    "optimiser": "sgd",
    "network": "wrn-10-1",
    "start": "public",
}


@pytest.fixture
def rows():
    rng = np.random.default_rng(2)
    return rng.standard_normal((N, math.prod(SHAPE))).astype(np.float32), rng.integers(CLASSES, size=N)


@pytest.fixture
def public(tmp_path):
    """Weights of the same network, trained for five classes."""
    torch.manual_seed(8)
    state = networks.build("wrn-10-1", SHAPE, 5).state_dict()
    write_tensors(tmp_path / "public.safetensors", {name: value.numpy() for name, value in state.items()})
    return tmp_path / "public.safetensors", state


@pytest.fixture(autouse=True)
def quick_plan(monkeypatch):
    monkeypatch.setattr(schedule, "calibrate", lambda events_at, budget: 2.0)


def trained(rows, path, seed=0, **options):
    parameters, problem = Parameters(**FINE | options), Problem(N, SHAPE, CLASSES, Budget("2", 1e-5))
    plan, noise = network_dpsgd.plan(parameters, problem), NoiseSource("seeded", "cell", "train", 0, seed)
    data = network_dpsgd.prepare([rows], parameters, problem, path)
    model = network_dpsgd.fit(data, parameters, problem, plan, noise).model
    check_releases(plan.events, noise.drawn)
    return model, plan


def test_all_but_the_classifier_starts_from_the_public_weights(rows, public):
    path, state = public
    model, _ = trained(rows, path, learning_rate=1e-9)
    for name, value in model.state.items():
        same = np.allclose(value, state[name].numpy(), atol=1e-6) if value.shape == state[name].shape else False
        assert same == (not name.startswith("8.")), name
    other, _ = trained(rows, path, learning_rate=1e-9, seed=1)
    assert not np.allclose(model.state["8.weight"], other.state["8.weight"]), "each seed has a classifier of its own"


def test_the_classifier_alone_is_trained_and_noised(rows, public, tmp_path):
    """Its steps are those of the linear layer on the features of each copy, clipped over it alone."""
    path, state = public
    model, plan = trained(rows, path, **HEAD)
    assert [(event.name, event.sensitivity, event.count) for event in plan.events] == [("gradient", 0.3, 2)]
    for name, value in model.state.items():
        if not name.startswith("8."):
            np.testing.assert_array_equal(value, state[name].numpy(), err_msg=name)
    model.save(tmp_path / "model.safetensors")
    read = NetworkModel.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(read.scores(rows[0]), model.scores(rows[0]))

    network = networks.build("wrn-10-1", SHAPE, CLASSES).double()
    network.load_state_dict({name: torch.from_numpy(value).double() for name, value in model.state.items()})
    with torch.no_grad():
        features = network[:-1](torch.from_numpy(rows[0]).double().reshape(-1, *SHAPE))
    first, _ = trained(rows, path, **HEAD, steps=1)
    head = torch.nn.Linear(64, CLASSES).double()
    head.load_state_dict({name: torch.from_numpy(first.state[f"8.{name}"]).double() for name in ("weight", "bias")})
    total = {name: torch.zeros_like(value) for name, value in head.named_parameters()}
    for feature, label in zip(features, rows[1], strict=True):
        loss = torch.nn.functional.cross_entropy(head(feature[None]), torch.tensor([label]))
        gradients = torch.autograd.grad(loss, list(head.parameters()))
        length = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
        for name, gradient in zip(total, gradients, strict=True):
            total[name] += gradient * min(1.0, 0.3 / length)
    noise = NoiseSource("seeded", "cell", "train", 0, 0)
    for name, gradient in total.items():
        drawn = noise.gaussian("gradient", tuple(gradient.shape), 2.0 * 0.3, 2, f"8.{name}")
        expected = first.state[f"8.{name}"] - 0.5 * (gradient.numpy() + drawn) / N
        np.testing.assert_allclose(model.state[f"8.{name}"], expected, atol=1e-5)


def test_files_that_do_not_fit_are_refused(rows, public, tmp_path):
    path, state = public
    with pytest.raises(StudyError, match=r"'0.weight' of network 'wrn-10-1': the file has it with shape"):
        write_tensors(tmp_path / "other.safetensors", {"0.weight": np.zeros((2, 2), np.float32)})
        trained(rows, tmp_path / "other.safetensors")
    with pytest.raises(StudyError, match="the file lacks it"):
        write_tensors(tmp_path / "other.safetensors", {"0.weight": state["0.weight"].numpy()})
        trained(rows, tmp_path / "other.safetensors")
    with pytest.raises(StudyError, match="another file"):
        trained(rows, path, start={"weights": "public.safetensors", "sha256": 64 * "0"})
    trained(rows, path, start={"weights": "public.safetensors", "sha256": sha256(path)}, steps=1)
    with pytest.raises(StudyError, match="go together"):
        trained(rows, None)
    with pytest.raises(StudyError, match="'classifier' needs `augmentation`"):
        Parameters(**FINE | {"trained": "classifier"})
    with pytest.raises(StudyError, match="`trained` goes with `start`"):
        Parameters(**FINE | {"trained": "biases", "start": None})
    for wrong, sentence in (
        ("bias", "trained 'bias'"),
        ({"last": 0}, "trained.last"),
        ({"lora": 2, "last": 1}, "must be {last: layers}, {lora: rank}"),
    ):
        with pytest.raises(StudyError, match=sentence):
            Parameters(**FINE | {"trained": wrong})


@pytest.mark.parametrize(
    ("part", "moved"),
    [
        ("biases", lambda name: name.endswith(".bias")),
        ({"last": 1}, lambda name: name.startswith("5.")),
        ({"last": 3}, lambda name: name.startswith(("5.", "4.0.branch"))),
    ],
)
def test_a_part_is_trained_and_the_rest_stays(rows, public, part, moved):
    path, state = public
    model, plan = trained(rows, path, trained=part)
    assert [(event.name, event.sensitivity, event.count) for event in plan.events] == [("gradient", 0.3, 2)]
    changed = {
        name
        for name, value in model.state.items()
        if not name.startswith("8.") and not np.array_equal(value, state[name].numpy())
    }
    body = [name for name in model.state if not name.startswith("8.")]
    assert changed and (not isinstance(part, str) or changed == set(filter(moved, body)))
    if isinstance(part, dict):
        layers = list(dict.fromkeys(name.rpartition(".")[0] for name in body))
        assert {name.rpartition(".")[0] for name in changed} == set(layers[-part["last"] :])
    with pytest.raises(StudyError, match="the network has nothing for 'lora' to train"):
        trained(rows, path, trained={"lora": 2})
    with pytest.raises(StudyError, match="trained.last: 99: the network has"):
        trained(rows, path, trained={"last": 99})


@pytest.mark.parametrize("options", [{}, {"moving_average": 0.9}, {"record_by_record": True}])
def test_the_classifier_first_and_then_all_layers_under_one_ledger(rows, public, options):
    path, state = public
    parameters, problem = (
        Parameters(**FINE | {"trained": {"head_first": 2}, "steps": 3} | options),
        Problem(N, SHAPE, CLASSES, Budget("2", 1e-5)),
    )
    plan, noise = network_dpsgd.plan(parameters, problem), NoiseSource("seeded", "cell", "train", 0, 0)
    assert [(event.sensitivity, event.count) for event in plan.events] == [(0.3, 3)]
    run = NetworkRun(network_dpsgd.prepare([rows], parameters, problem, path), parameters, problem, noise, current())
    kept = None
    for step in (1, 2, 3):
        run.step(None, plan, noise)
        body = {name for name, value in run._network.named_parameters() if not name.startswith("8.")}
        stays = {name for name in body if torch.equal(run._network.get_parameter(name), state[name])}
        assert stays == (body if step < 3 else set())
        kept = kept or run.state(noise)
    check_releases(plan.events, noise.drawn)
    model = run.model()
    other = NoiseSource("seeded", "cell", "train", 0, 0)
    again = NetworkRun(network_dpsgd.prepare([rows], parameters, problem, path), parameters, problem, other, current())
    again.restore(*kept, other)
    for _ in (2, 3):
        again.step(None, plan, other)
    for name, value in again.model().state.items():
        np.testing.assert_array_equal(value, model.state[name], err_msg=name)


@pytest.mark.parametrize("options", [{"steps": 2}, {"steps": None, "epochs": 2}])
def test_some_step_trains_more_than_the_classifier(options):
    parameters = Parameters(**FINE | {"trained": {"head_first": 2}} | options)
    with pytest.raises(StudyError, match="trained.head_first 2: must be less than the 2 steps"):
        network_dpsgd.plan(parameters, Problem(N, SHAPE, CLASSES, Budget("2", 1e-5)))


def test_steps_of_the_classifier_alone_are_those_of_a_training_of_it(rows, public):
    path, _ = public
    alone, _ = trained(rows, path, **HEAD, steps=1)
    both, _ = trained(rows, path, trained={"head_first": 1}, augmentation=HEAD["augmentation"], learning_rate=0.5)
    parameters = Parameters(**FINE | {"trained": {"head_first": 1}, "augmentation": HEAD["augmentation"]})
    problem = Problem(N, SHAPE, CLASSES, Budget("2", 1e-5))
    noise = NoiseSource("seeded", "cell", "train", 0, 0)
    run = NetworkRun(network_dpsgd.prepare([rows], parameters, problem, path), parameters, problem, noise, current())
    run.step(None, network_dpsgd.plan(parameters, problem), noise)
    for name in ("8.weight", "8.bias"):
        np.testing.assert_allclose(run.model().state[name], alone.state[name], atol=1e-6)
        assert not np.allclose(both.state[name], alone.state[name])


@pytest.fixture
def transformer(tmp_path):
    torch.manual_seed(8)
    state = networks.build("timm:test_vit", (3, 32, 32), 5).state_dict()
    write_tensors(tmp_path / "vit.safetensors", {name: value.numpy() for name, value in state.items()})
    return tmp_path / "vit.safetensors", state


def test_low_rank_layers_are_merged_into_the_model(transformer):
    path, state = transformer
    parameters = Parameters(**FINE | {"network": "timm:test_vit", "trained": {"lora": 2}, "learning_rate": 5.0})
    problem = Problem(N, (3, 32, 32), CLASSES, Budget("2", 1e-5))
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((N, 3 * 32 * 32)).astype(np.float32), rng.integers(CLASSES, size=N)
    plan = network_dpsgd.plan(parameters, problem)
    runs = []
    for seed in (0, 0, 1):
        noise = NoiseSource("seeded", "cell", "train", 0, seed)
        run = NetworkRun(
            network_dpsgd.prepare([rows], parameters, problem, path), parameters, problem, noise, current()
        )
        for _ in range(2):
            run.step(None, plan, noise)
        runs.append((run, run.model()))
    run, model = runs[0]
    assert model.state.keys() == networks.build("timm:test_vit", (3, 32, 32), CLASSES).state_dict().keys()
    with torch.no_grad():
        expected = run._network(torch.from_numpy(rows[0]).reshape(-1, 3, 32, 32)).numpy()
    np.testing.assert_allclose(model.scores(rows[0]), expected, atol=1e-4)
    changes = {name: value - state[name].numpy() for name, value in model.state.items() if not name.startswith("head.")}
    moved = {name for name, change in changes.items() if np.abs(change).max() > 0}
    linear = {name for name in changes if name.endswith((".qkv.weight", ".proj.weight", ".fc1.weight", ".fc2.weight"))}
    assert moved == {name for name in linear if "patch_embed" not in name} and moved
    assert all(np.linalg.matrix_rank(changes[name], tol=1e-4) <= 2 for name in moved)
    trained_count = sum(value.numel() for value in run._weights.values())
    assert trained_count < sum(value.size for value in model.state.values()) / 4
    assert all(np.array_equal(runs[1][1].state[name], value) for name, value in model.state.items()), "a seed"
    assert not np.array_equal(runs[2][1].state["head.weight"], model.state["head.weight"])


def test_a_frozen_batch_normalisation_starts_from_public_statistics(tmp_path):
    torch.manual_seed(8)
    theirs = timm.create_model("test_resnet", num_classes=5)
    for name, value in theirs.named_buffers():
        if "running" in name:
            value.uniform_(0.5, 1.5)
    write_tensors(tmp_path / "bn.safetensors", {name: value.numpy() for name, value in theirs.state_dict().items()})
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((N, 3 * 32 * 32)).astype(np.float32), rng.integers(CLASSES, size=N)
    parameters = Parameters(**FINE | {"network": "timm:test_resnet+frozen", "learning_rate": 1e-9})
    problem = Problem(N, (3, 32, 32), CLASSES, Budget("2", 1e-5))
    data = network_dpsgd.prepare([rows], parameters, problem, tmp_path / "bn.safetensors")
    noise = NoiseSource("seeded", "cell", "train", 0, 0)
    model = network_dpsgd.fit(data, parameters, problem, network_dpsgd.plan(parameters, problem), noise).model
    images = torch.from_numpy(rows[0]).reshape(-1, 3, 32, 32)
    ours = networks.build("timm:test_resnet+frozen", (3, 32, 32), CLASSES)
    ours.load_state_dict({name: torch.from_numpy(value) for name, value in model.state.items()})
    with torch.no_grad():
        expected = theirs.eval().forward_features(images)
        np.testing.assert_allclose(ours.eval().forward_features(images), expected, rtol=1e-3, atol=1e-4)
    model.save(tmp_path / "model.safetensors")
    read = NetworkModel.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(read.scores(rows[0]), model.scores(rows[0]))
    moved = {name for name, value in model.state.items() if name.endswith("running_var")}
    assert moved and all(np.array_equal(model.state[name], theirs.state_dict()[name]) for name in moved)


def state_of(name, shape, classes=2, prefix=""):
    state = networks.build(name, shape, classes).state_dict()
    return {prefix + key: value.numpy() for key, value in state.items()}


@pytest.mark.parametrize(
    ("network", "file", "said"),
    [
        ("nf-resnet-26", "timm:nf_resnet26", "not those of network 'nf-resnet-26' but of 'timm:nf_resnet26'; write"),
        ("timm:nf_resnet26", "nf-resnet-26", None),  # which has all that timm's has, and a gain for each branch
        ("wrn-10-1", "wrn-10-1-plain", "but of 'wrn-10-1-plain'; write `network: wrn-10-1-plain`"),
        ("wrn-10-1", "wrn-10-2", "'wrn-10-1': the file has it with shape (32, 16, 3, 3), not (16, 16, 3, 3); mend"),
        ("wrn-10-1", "small", "the file lacks it; mend `network`"),
    ],
)  # fmt: skip
def test_weights_of_a_network_of_like_name_are_told_before_and_in_a_training(tmp_path, network, file, said):
    shape = (3, 32, 32)
    tensors = {"other": np.ones(3)} if file == "small" else state_of(file, shape)
    write_tensors(tmp_path / "start.safetensors", tensors)
    found, own = read_start(tmp_path / "start.safetensors", {}), networks.build(network, shape, 4)
    if said is None:
        begin(own, found, network, shape)
        check_start(tmp_path / "start.safetensors", network, shape, True)
        return
    for refused in (
        lambda: begin(own, found, network, shape),
        lambda: check_start(tmp_path / "start.safetensors", network, shape, True),
    ):
        with pytest.raises(StudyError) as caught:
            refused()
        assert said in str(caught.value)


def test_before_a_record_is_read_shapes_are_compared_only_where_they_are_known(tmp_path):
    write_tensors(tmp_path / "start.safetensors", state_of("lenet", (1, 28, 28)))
    check_start(tmp_path / "start.safetensors", "lenet", (3, 28, 28), False)
    with pytest.raises(StudyError, match="has it with shape"):
        check_start(tmp_path / "start.safetensors", "lenet", (3, 28, 28), True)


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod."])
def test_what_a_wrapper_puts_before_every_name_is_taken_off(tmp_path, prefix):
    whole, wrapped = state_of("lenet", (1, 28, 28)), {}
    for key, value in whole.items():
        wrapped[prefix + key] = value
    write_tensors(tmp_path / "start.safetensors", wrapped)
    found = read_start(tmp_path / "start.safetensors", {})
    assert found.keys() == whole.keys() and all(np.array_equal(found[key].numpy(), whole[key]) for key in whole)
    assert read_shapes(tmp_path / "start.safetensors") == {key: value.shape for key, value in whole.items()}
    mixed = dict([*list(wrapped.items())[:1], *list(whole.items())[1:]])
    write_tensors(tmp_path / "start.safetensors", mixed)
    assert read_start(tmp_path / "start.safetensors", {}).keys() == mixed.keys(), "not before every name"
