"""A training that is killed ends as it would have ended."""

import json
import math

import numpy as np
import pytest

from dpstudy.core.files import read_tensor_metadata
from dpstudy.methods import network_dpsgd, network_run, schedule
from dpstudy.methods.keeper import Keeper
from dpstudy.methods.problem import Problem
from dpstudy.methods.record_gradients import RecordGradients
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.ledger import check_run
from dpstudy.privacy.noise import NoiseSource

N, SHAPE, CLASSES, STEPS = 40, (3, 8, 8), 3, 7


class KilledError(Exception):
    pass


@pytest.fixture(autouse=True)
def quick_plan(monkeypatch):
    monkeypatch.setattr(schedule, "calibrate", lambda events_at, budget: 1.5)


def trained(path=None, killed_at=None, mode="seeded", **options):
    """The model and the curve of one run, which may be killed after a step's checkpoint."""
    random = np.random.default_rng(2)
    rows = random.standard_normal((N, math.prod(SHAPE))).astype(np.float32), random.integers(CLASSES, size=N)
    problem = Problem(N, SHAPE, CLASSES, Budget("2", 1e-5), secure=mode == "secure")
    parameters = network_dpsgd.Parameters(
        **{
            "network": "wrn-10-1",
            "learning_rate": 0.5,
            "clipping_norm": 0.3,
            "steps": STEPS,
            "batch_size": 10,
            "curve_points": STEPS,
        }
        | options
    )
    plan = network_dpsgd.plan(parameters, problem)
    source = NoiseSource(mode, "cell", "train", 0, 0)
    minutes = 60 if parameters.checkpoint_steps else 0
    keeper = Keeper(path, {"config": "a"}, minutes, parameters.checkpoint_steps) if path else None
    curve = keeper.curve if keeper else []

    def monitor(step, model):
        (keeper.curve if keeper else curve).append((step, float(model.state["0.bias"][0])))
        if step - 1 == killed_at:
            raise KilledError

    data = network_dpsgd.prepare([rows], parameters, problem)
    model = network_dpsgd.fit(data, parameters, problem, plan, source, monitor, keeper).model
    check_run(plan.events, source)
    return model, keeper.curve if keeper else curve


@pytest.mark.parametrize(
    "options",
    [
        {"optimiser": "momentum", "moving_average": 0.9},
        {"optimiser": "adam", "learning_rate": 0.01},
        {"optimiser": "sgd", "augmentation": {"multiplicity": 2}},
        {"sampling": "shuffle"},
        {"normalisation": {"mean_clip": 5.0, "square_clip": 30.0, "noise_multiplier": 8.0}},
    ],
)
def test_a_killed_run_ends_as_an_uninterrupted_one(tmp_path, options):
    whole, curve = trained(**options)
    path = tmp_path / "seed=0" / "checkpoint.safetensors"
    for step in (2, 5):
        with pytest.raises(KilledError):
            trained(path, killed_at=step, **options)
    again, pieced = trained(path, **options)
    assert [tuple(row) for row in pieced] == curve
    assert set(again.state) == set(whole.state)
    for name in whole.state:
        assert np.array_equal(again.state[name], whole.state[name]), name
    if whole.center is not None:
        assert np.array_equal(again.center, whole.center) and np.array_equal(again.scale, whole.scale)


def test_a_checkpoint_comes_by_time_or_by_steps(tmp_path):
    by_time = Keeper(tmp_path / "checkpoint.safetensors", {}, 60)
    by_steps = Keeper(tmp_path / "checkpoint.safetensors", {}, 60, 3)
    assert [step for step in range(1, 8) if by_time.due(step)] == []
    assert [step for step in range(1, 8) if by_steps.due(step)] == [3, 6]
    assert Keeper(tmp_path / "checkpoint.safetensors", {}, 0).due(1)


def test_a_run_that_is_killed_between_two_checkpoints_by_steps_ends_as_an_uninterrupted_one(tmp_path):
    whole, _ = trained()
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KilledError):
        trained(path, killed_at=4, checkpoint_steps=2)
    assert json.loads(read_tensor_metadata(path)["facts"])["done"] == 4
    again, _ = trained(path, checkpoint_steps=2)
    assert all(np.array_equal(again.state[name], whole.state[name]) for name in whole.state)


def test_a_resumed_run_keeps_the_size_of_its_micro_batches(tmp_path, monkeypatch):
    """A GPU with less free memory would choose another, and sums in other parts round otherwise."""
    taken, clipped_sum = [], RecordGradients.clipped_sum

    def watched(self, records, *more, **keywords):
        taken.append(len(records))
        return clipped_sum(self, records, *more, **keywords)

    monkeypatch.setattr(network_run, "check_network", lambda *network, **facts: None)  # which takes batches of its own
    monkeypatch.setattr(RecordGradients, "clipped_sum", watched)
    monkeypatch.setattr(RecordGradients, "micro_batch", lambda self, record: 3)
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KilledError):
        trained(path, killed_at=2)
    assert max(taken) == 3
    monkeypatch.setattr(RecordGradients, "micro_batch", lambda self, record: 8)
    before = len(taken)
    trained(path)
    assert max(taken[before:]) == 3


@pytest.mark.parametrize(("before", "now"), [(8, 3), (3, 8)])
def test_under_secure_noise_a_resumed_run_takes_the_smaller_micro_batches_and_their_rounding_bound(
    tmp_path, monkeypatch, before, now
):
    """The larger ones may not have fitted into memory."""
    taken, bounded, clipped_sum, bound = [], [], RecordGradients.clipped_sum, network_run.clipped_for

    def watched(self, records, *more, **keywords):
        taken.append(len(records))
        return clipped_sum(self, records, *more, **keywords)

    def watched_bound(norm, records, micro_batch, *more):
        bounded.append(micro_batch)
        return bound(norm, records, micro_batch, *more)

    monkeypatch.setattr(network_run, "check_network", lambda *network, **facts: None)  # which takes batches of its own
    monkeypatch.setattr(RecordGradients, "clipped_sum", watched)
    monkeypatch.setattr(network_run, "clipped_for", watched_bound)
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KilledError):
        trained(path, killed_at=2, mode="secure", micro_batch=before, batch_size="full")
    assert max(taken) == before and set(bounded) == {before}
    taken.clear()
    bounded.clear()
    trained(path, mode="secure", micro_batch=now, batch_size="full")
    assert max(taken) == 3 and set(bounded) == {3}


def test_under_secure_noise_a_resumed_run_releases_nothing_twice(tmp_path):
    """The normalisation that was released stays; the ledger is held against draws of both parts (check_run)."""
    options = {"normalisation": {"mean_clip": 5.0, "square_clip": 30.0, "noise_multiplier": 8.0}, "mode": "secure"}
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KilledError):
        trained(path, killed_at=3, **options)
    released = Keeper(path, {"config": "a"}, 0).load()[0]
    model, _ = trained(path, **options)
    assert np.array_equal(model.center, released["center"]) and np.array_equal(model.scale, released["scale"])


def test_a_checkpoint_holds_nothing_but_releases(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KilledError):
        trained(path, killed_at=3, moving_average=0.5)
    tensors, facts = Keeper(path, {"config": "a"}, 0).load()
    assert {name.split(".")[0] for name in tensors} == {"weight", "average", "optimiser"}
    assert isinstance(facts.pop("micro_batch"), int)  # by network, shape and memory, never by records
    assert facts.pop("start").keys() == {"initialisation", "low-rank layers"}  # drawn before any record is read
    assert facts == {"done": 3, "averaged": 3, "made": {"gradient": [[pytest.approx(1.5 * 0.3), 3]]}}


def test_another_runs_checkpoint_and_a_damaged_one_are_not_used(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    keeper = Keeper(path, {"config": "a"}, 0)
    assert keeper.load() is None
    keeper.curve.append((1, 0.5))
    keeper.save({"x": np.ones(3, np.float32)}, {"done": 1})
    assert Keeper(path, {"config": "b"}, 0).load() is None
    again = Keeper(path, {"config": "a"}, 0)
    tensors, facts = again.load()
    assert facts == {"done": 1} and again.curve == [(1, 0.5)] and json.dumps(tensors["x"].tolist()) == "[1.0, 1.0, 1.0]"
    path.write_bytes(path.read_bytes()[:-2])
    assert Keeper(path, {"config": "a"}, 0).load() is None


def test_checkpoints_wait_for_their_time_and_diverged_runs_keep_the_last_finite_one(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    assert not Keeper(path, {}, 60).due() and Keeper(path, {}, 0).due()
    keeper = Keeper(path, {}, 0)
    keeper.save({"x": np.zeros(2, np.float32)}, {"done": 1})
    keeper.save({"x": np.array([np.nan, 1], np.float32)}, {"done": 2})
    assert Keeper(path, {}, 0).load()[1] == {"done": 1}


def test_shuffled_batches_under_secure_noise_start_anew(tmp_path):
    """A second permutation within an epoch could let a record take part more often than the ledger has it."""
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KilledError):
        trained(path, killed_at=3, sampling="shuffle", mode="secure")
    assert not path.exists()


@pytest.mark.parametrize(
    ("options", "shared", "expected"),
    [
        ({"sampling": "shuffle"}, False, 2 * math.sqrt(2)),  # above the target of 2, as its ledger says
        ({"sampling": "poisson"}, False, None),
        ({"sampling": "poisson"}, True, "nothing"),
    ],
)
def test_the_note_never_understates_what_is_spent(options, shared, expected):
    problem = Problem(N, SHAPE, CLASSES, Budget("2", 1e-5))
    parameters = network_dpsgd.Parameters(
        network="wrn-10-1", learning_rate=0.5, clipping_norm=0.3, steps=STEPS, batch_size=10, **options
    )
    plan = network_dpsgd.plan(parameters, problem)
    note = network_dpsgd._note(plan, problem, 10.0, 0, not shared)(STEPS)
    if expected == "nothing":
        assert "epsilon" not in note
        return
    said = float(note.split("epsilon at most ")[1].split()[0])
    certified = certify(network_dpsgd.spent(plan, STEPS), 1e-5).epsilon
    assert said >= certified > 2 and said <= math.ceil(100 * certified) / 100, "after all steps it is what is certified"
    assert expected is None or said > expected
