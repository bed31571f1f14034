"""A search trains on train, scores on validation, shares what it may, and says what failed."""

import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpstudy import methods
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_table
from dpstudy.methods import first_order, least_squares
from dpstudy.methods.keeper import Keeper
from dpstudy.methods.sufficient_statistics import accumulate
from dpstudy.models import tanh_cnn
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource
from dpstudy.schema.methods import method_names, method_schema
from dpstudy.tuning.objective import Objective
from dpstudy.tuning.search import tune
from dpstudy.tuning.trials import best_trial
from tests.unit.tuning.conftest import FIRST_ORDER, LEARNING, ROWS, inputs_of, request_of, tuned, write_split

ROOT = Path(__file__).parents[3]
RIDGE = {"ridge": {"low": 1e-3, "high": 1e3}}


def outcome(path) -> list[dict]:
    return [{key: row[key] for key in row if key != "seconds"} for row in read_table(path).to_pylist()]


def accuracy(model, features, labels) -> float:
    return 100 * np.mean((features @ model.weights.T + model.bias).argmax(1) == labels)


def search(request, inputs, folder: Path) -> list[dict]:
    tune(request, inputs, str(folder / "trials.parquet"))
    return outcome(folder / "trials.parquet")


@pytest.mark.parametrize("epsilon", ["1", "inf"])
def test_a_trial_is_what_a_cell_would_do_on_train_scored_on_validation(toy_features, rows, tmp_path, epsilon):
    found = search(request_of(tuned(FIRST_ORDER), epsilon), inputs_of(toy_features), tmp_path)
    assert len(found) == 12 and {row["state"] for row in found} == {"complete"}
    problem = Objective(request_of(tuned(FIRST_ORDER), epsilon), inputs_of(toy_features))._problem
    assert problem.n == ROWS["train"] and problem.budget == Budget(epsilon, 1e-4)
    for row in found:
        parameters = first_order.Parameters(
            learning_rate=row["learning_rate"], loss=row["loss"], clipping_norm=1.0, steps=5, optimiser="adam"
        )
        plan = first_order.plan(parameters, problem)
        data = first_order.prepare([rows["train"]], parameters, problem)
        source = NoiseSource("seeded", "toy/pixels/entry/eps=" + epsilon, "tune", row["trial"], 0)
        model = first_order.fit(data, parameters, problem, plan, source).model
        assert row["value"] == pytest.approx(accuracy(model, *rows["validation"]))


def test_least_squares_trials_share_one_pass_and_one_release(toy_features, rows, tmp_path, monkeypatch):
    statistics = accumulate([rows["train"]], 3, 1.0)
    statistics.save(tmp_path / "s.safetensors")
    released = []
    release = least_squares.release
    monkeypatch.setattr(least_squares, "release", lambda *args: released.append(release(*args)) or released[-1])
    monkeypatch.setattr(least_squares, "prepare", None)  # no pass over the features
    request = request_of(tuned({"method": "least_squares", "clipping_norm": 1.0}, RIDGE))
    inputs = inputs_of(toy_features, statistics=(str(tmp_path / "s.safetensors"),))
    found = search(request, inputs, tmp_path)
    assert len(released) == 1
    assert not np.allclose(released[0]["gram"], statistics.gram)
    values, vectors = np.linalg.eigh(released[0]["gram"].astype(np.float64))
    centred = released[0]["targets"] - released[0]["targets"].mean(0)
    for row in found:
        weights = centred @ vectors @ np.diag(1 / (np.maximum(values, 0) + row["ridge"])) @ vectors.T
        features, labels = rows["validation"]
        assert row["value"] == pytest.approx(100 * np.mean((features @ weights.T).argmax(1) == labels), abs=0.51)


def test_another_plan_draws_other_noise_and_the_same_one_its_own(toy_features, rows, tmp_path):
    accumulate([rows["train"]], 3, 1.0).save(tmp_path / "s.safetensors")
    request = request_of(tuned({"method": "least_squares"}, {"gram_share": {"choices": [0.2, 0.5]}}))
    objective = Objective(request, inputs_of(toy_features, statistics=(str(tmp_path / "s.safetensors"),)))
    exact = accumulate([rows["train"]], 3, 1.0).targets
    noise = {}
    for number, share in enumerate((0.2, 0.5, 0.2)):
        objective(number, {"gram_share": share})
        noise[number] = objective._released[1]["targets"] - exact
    assert np.allclose(noise[0], noise[2])
    assert abs(np.corrcoef(noise[0].ravel(), noise[1].ravel())[0, 1]) < 0.9  # scaled copies would have 1


def test_two_searches_are_equal_and_another_seed_tries_other_settings(toy_features, tmp_path):
    request = request_of(tuned(FIRST_ORDER))
    first = search(request, inputs_of(toy_features), tmp_path / "a")
    assert search(request, inputs_of(toy_features), tmp_path / "b") == first
    assert search(request_of(tuned(FIRST_ORDER, seed=1)), inputs_of(toy_features), tmp_path / "c") != first


KILLED = """
import sys
from pathlib import Path
from dpstudy.tuning.search import tune
from tests.unit.tuning.conftest import FIRST_ORDER, inputs_of, request_of, tuned
request = request_of(tuned(FIRST_ORDER | dict(steps={steps}), trials=24))
tune(request, inputs_of(Path(sys.argv[1])), sys.argv[2])
"""


def test_a_killed_search_continues_and_ends_with_the_same_trials(toy_features, tmp_path):
    program = [sys.executable, "-c", KILLED.format(steps=60), str(toy_features)]
    subprocess.run([*program, str(tmp_path / "whole" / "trials.parquet")], cwd=ROOT, check=True)
    killed = tmp_path / "killed" / "trials.parquet"
    reached = []
    for least in (4, 12):
        process = subprocess.Popen([*program, str(killed)], cwd=ROOT)
        while process.poll() is None:
            journals = list(killed.parent.glob("journal-*.log"))
            if journals and journals[0].read_bytes().count(b"\n") > least:
                process.send_signal(signal.SIGKILL)
                process.wait()
            time.sleep(0.005)
        assert process.returncode == -signal.SIGKILL
        reached.append(journals[0].read_bytes().count(b"\n"))
        assert journals[0].stat().st_mode & 0o777 == 0o600
    assert 4 < reached[0] < reached[1] < 25  # it went on from where it was
    subprocess.run([*program, str(killed)], cwd=ROOT, check=True)
    assert outcome(killed) == outcome(tmp_path / "whole" / "trials.parquet")
    assert [path.name for path in killed.parent.iterdir()] == ["trials.parquet"]


def test_a_trial_that_was_killed_goes_on_from_its_checkpoint(rows, tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(tanh_cnn.LAYERS, "tiny", [("conv", 2, 3, 2, 1)])
    for split in ("train", "validation"):
        features, labels = rows[split]
        write_split(tmp_path / "images", split, np.tile(features, 6), labels, (1, 6, 6))
    network = {"method": "network_dpsgd", "network": "tiny", "clipping_norm": 1.0, "normalised": True, "steps": 6}
    options = network | {"batch_size": "full", "checkpoint_minutes": 0}
    request = request_of(tuned(options, {"learning_rate": {"low": 0.1, "high": 10.0}}, trials=3))
    inputs = inputs_of(tmp_path / "images")
    whole = search(request, inputs, tmp_path / "whole")
    save, saved = Keeper.save, []

    def dying(self, tensors, facts):
        save(self, tensors, facts)
        saved.append(facts["done"])
        if len(saved) == 5 + 3:  # of five between the steps of the first trial
            raise KeyboardInterrupt

    monkeypatch.setattr(Keeper, "save", dying)
    with pytest.raises(KeyboardInterrupt):
        search(request, inputs, tmp_path / "killed")
    assert sorted(path.suffix for path in (tmp_path / "killed").iterdir()) == [".log", ".safetensors"]
    caplog.set_level("INFO")
    assert search(request, inputs, tmp_path / "killed") == whole
    assert [line for line in caplog.messages if "goes on after step" in line][0].startswith(
        "training goes on after step 3"
    )
    assert saved == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5]
    assert [path.name for path in (tmp_path / "killed").iterdir()] == ["trials.parquet"]


def interrupted(toy_features, tmp_path, monkeypatch, request) -> Path:
    """A search that breaks off in its fourth trial; its journal."""
    score = Objective._score

    def broken(self, model):
        broken.calls += 1
        if broken.calls == 4:
            raise KeyboardInterrupt
        return score(self, model)

    broken.calls = 0
    monkeypatch.setattr(Objective, "_score", broken)
    with pytest.raises(KeyboardInterrupt):
        tune(request, inputs_of(toy_features), str(tmp_path / "trials.parquet"))
    monkeypatch.setattr(Objective, "_score", score)
    (journal,) = tmp_path.glob("journal-*.log")
    return journal


@pytest.mark.parametrize("change", ["options", "noise", "metric", "library", "data"])
def test_the_journal_of_another_search_is_not_continued(toy_features, rows, tmp_path, monkeypatch, change):
    request = request_of(tuned(FIRST_ORDER))
    journal = interrupted(toy_features, tmp_path, monkeypatch, request)
    inputs = inputs_of(toy_features)
    if change == "options":
        request = request_of(tuned(FIRST_ORDER | {"steps": 6}))
    elif change == "noise":
        request = replace(request, noise="secure")
    elif change == "metric":
        request = replace(request, metrics=["balanced_accuracy"])
    elif change == "library":
        (tmp_path / "code.py").write_text("# edited\n")
        from dpstudy.provenance.hashes import library_hash

        code = [str(tmp_path / "code.py")]
        request = replace(request, code=code, library=library_hash(code))
    else:
        shutil.copytree(toy_features, tmp_path / "moved" / "pixels")
        manifest = tmp_path / "moved" / "pixels" / "train" / "manifest.json"
        manifest.write_text(manifest.read_text() + "\n")
        inputs = inputs_of(tmp_path / "moved" / "pixels")
    assert len(search(request, inputs, tmp_path)) == 12
    assert not journal.exists()
    if change not in ("noise",):
        fresh = tmp_path / "fresh"
        assert search(request, inputs, fresh) == outcome(tmp_path / "trials.parquet")


def test_an_edited_library_is_refused(toy_features, tmp_path):
    request = replace(request_of(tuned(FIRST_ORDER)), library="of-another-day")
    with pytest.raises(StudyError, match="the library was edited while the study ran"):
        tune(request, inputs_of(toy_features), str(tmp_path / "trials.parquet"))


def test_a_setting_that_fails_counts_zero_and_is_never_chosen(toy_features, tmp_path):
    space = {"learning_rate": {"choices": [1.0, 3e38]}}  # more than one step of it overflows float32
    found = search(request_of(tuned(FIRST_ORDER, space), "inf"), inputs_of(toy_features), tmp_path)
    for row in found:
        failed = row["learning_rate"] == "3e+38"
        assert row["state"] == ("failed" if failed else "complete")
        assert (row["value"] == 0) == failed
    assert {row["state"] for row in found} == {"failed", "complete"}
    full = request_of(tuned(FIRST_ORDER, space), "inf").options["tuning"]["space"]
    assert best_trial(tmp_path / "trials.parquet", full).hyperparameters == {"learning_rate": 1.0}


def test_a_search_of_failures_only_says_the_first(toy_features, rows, tmp_path, monkeypatch):
    def singular(*args):
        raise np.linalg.LinAlgError("the system is singular")

    accumulate([rows["train"]], 3, 1.0).save(tmp_path / "s.safetensors")
    inputs = inputs_of(toy_features, statistics=(str(tmp_path / "s.safetensors"),))
    request = request_of(tuned({"method": "least_squares"}, RIDGE))
    monkeypatch.setattr(least_squares, "solve", singular)
    sentence = "cell toy/pixels/entry/eps=1: each of 12 trials failed; the first: the system is singular"
    with pytest.raises(StudyError, match=f"^{sentence}$"):
        tune(request, inputs, str(tmp_path / "trials.parquet"))
    assert not (tmp_path / "trials.parquet").exists()


@pytest.mark.parametrize("when", ["at once", "while training"])
def test_a_damaged_shard_is_nobodys_hyper_parameter(toy_features, tmp_path, monkeypatch, when):
    root = tmp_path / "pixels"
    shutil.copytree(toy_features, root)
    if when == "while training":  # features that are read anew for each pass
        monkeypatch.setattr("dpstudy.methods.records.HOLD_BYTES", 0)
        read = first_order.Records.read

        def spoilt(*given, **named):
            found = read(*given, **named)
            (root / "train" / "part-00001.parquet").write_bytes(b"damaged")
            return found

        monkeypatch.setattr(first_order.Records, "read", spoilt)
    else:
        (root / "train" / "part-00001.parquet").write_bytes(b"damaged")
    with pytest.raises(StudyError, match="part-00001.parquet: (its SHA-256 differs|it was changed)") as caught:
        tune(request_of(tuned(FIRST_ORDER)), inputs_of(root), str(tmp_path / "trials.parquet"))
    assert "trials failed" not in str(caught.value)
    monkeypatch.undo()
    shutil.rmtree(root)
    shutil.copytree(toy_features, root)
    mended = search(request_of(tuned(FIRST_ORDER)), inputs_of(root), tmp_path)
    assert mended == search(request_of(tuned(FIRST_ORDER)), inputs_of(toy_features), tmp_path / "other")


def test_a_share_of_the_records_keeps_the_noise_of_an_average(toy_features, rows, monkeypatch):
    seen = []
    fit = first_order.fit

    def watched(data, parameters, problem, plan, source):
        seen.append((data.records.rows, problem.n, plan.noise["gradient"], plan.events))
        return fit(data, parameters, problem, plan, source)

    monkeypatch.setattr(first_order, "fit", watched)
    for options in (tuned(FIRST_ORDER), tuned(FIRST_ORDER, records=100), tuned(FIRST_ORDER, records=5000)):
        Objective(request_of(options), inputs_of(toy_features))(0, {"learning_rate": 1.0, "loss": "softmax"})
    (rows_all, n_all, std_all, events_all), (rows_some, n_some, std_some, events_some), more = seen
    assert (rows_all, n_all) == (ROWS["train"], ROWS["train"])
    assert more == seen[0]
    assert n_some == 100 and 70 < rows_some < 130
    assert std_some / n_some == pytest.approx(std_all / n_all)
    assert events_some == tuple(event.scaled(100 / ROWS["train"]) for event in events_all)  # a record weighs as before


def test_which_records_take_part_depends_on_each_id_alone(toy_features):
    def ids(records):
        objective = Objective(request_of(tuned(FIRST_ORDER, records=records)), inputs_of(toy_features))
        return {row.tobytes() for features, _ in objective._rows for row in features}

    assert ids(50) < ids(100) < ids(300)


def test_noise_that_does_not_scale_with_the_records_is_refused(toy_features, tmp_path):
    normalisation = {"mean_clip": 1.0, "square_clip": 1.0, "noise_multiplier": 30.0}
    options = tuned(FIRST_ORDER | {"normalisation": normalisation}, records=100)
    with pytest.raises(StudyError, match="the release 'normalisation_mean' cannot be scaled to fewer records"):
        tune(request_of(options), inputs_of(toy_features), str(tmp_path / "trials.parquet"))


BASES = [
    ("feature_covariance", {"variant": "published", "learning_rate": 0.5, "clipping_norm": 0.7, "steps": 2}, "1"),
    ("feature_covariance", {"steps": 2}, "1"),
    ("feature_covariance", {"steps": 2}, "inf"),
    ("iterated_sgd", {"learning_rate": 0.5, "clipping_norm": 0.7, "batch_size": 8, "epochs": 2}, "1"),
]
for name in method_names():
    rules = method_schema(name)
    base = {"learning_rate": 0.5, "clipping_norm": 0.7, "steps": 1}
    if rules["x-reads"] == "features" and name not in {other for other, *_ in BASES}:
        base |= {"network": "scatter-28", "projected_dim": 2}
        BASES.append((name, {key: value for key, value in base.items() if key in rules["properties"]}, "1"))


def changes(name, parameters):
    """Each parameter with another value: numbers halved, or one more; switches turned; another choice."""
    rules = method_schema(name)["properties"]
    for key, value in vars(parameters).items():
        if isinstance(value, bool):
            yield key, not value
        elif isinstance(value, int):
            yield key, value + 1
        elif isinstance(value, float) and np.isfinite(value):
            yield key, value / 2 or 0.5
        elif others := [choice for choice in rules.get(key, {}).get("enum", ()) if choice != value]:
            yield key, others[0]


@pytest.mark.parametrize(("name", "base", "epsilon"), BASES)
def test_settings_that_share_prepared_records_could_have_their_own(toy_features, rows, name, base, epsilon):
    """prepared_by is the whole truth: whatever number of a setting changes, sharing changes nothing."""
    method = methods.load(name)
    if not hasattr(method, "prepared_by"):
        return  # nothing is shared
    problem = Objective(request_of(tuned({"method": name} | base)), inputs_of(toy_features))._problem
    problem = replace(problem, budget=Budget(epsilon, 1e-4), shape=(1, 2, 3))
    one = methods.parameters(name, base)
    numbers = {key: value for key, value in vars(one).items() if isinstance(value, float) and 0 < value < 1}
    assert ("clipping_norm" in numbers) == ("clipping_norm" in method_schema(name)["properties"]) and numbers
    looked_at = set()
    for key, value in changes(name, one):
        try:
            two = methods.parameters(name, base | {key: value})
            method.plan(two, problem)
        except StudyError:  # no setting that goes with the others
            continue
        looked_at.add(key)
        if getattr(two, "needs_public", False):
            continue  # no points that it could take
        shared_key = [method.prepared_by(p) for p in (one, two)]
        if shared_key[0] != shared_key[1] and key not in numbers:
            continue  # nothing is shared
        weights = []
        for prepared_for in (one, two):
            data = method.prepare([rows["train"]], prepared_for, problem)
            method.fit(data, one, problem, method.plan(one, problem), NoiseSource("seeded", "first"))
            fitted = method.fit(data, two, problem, method.plan(two, problem), NoiseSource("seeded", "second"))
            held = [*getattr(fitted.model, "state", {}).values(), *map(vars(fitted.model).get, ("weights", "points"))]
            weights.append(next(value for value in held if value is not None))
        if shared_key[0] == shared_key[1]:
            assert np.array_equal(*weights), f"{name}: `prepare` depends on {key}, and `prepared_by` does not name it"
        elif key in numbers:
            assert not np.array_equal(*weights), f"{name}: `prepared_by` names {key}, on which nothing depends"
    assert looked_at >= set(numbers)


def test_records_are_prepared_anew_only_where_the_method_asks_for_it(toy_features, monkeypatch):
    prepared = []
    prepare = first_order.prepare
    monkeypatch.setattr(first_order, "prepare", lambda *args: prepared.append(args[1]) or prepare(*args))
    objective = Objective(request_of(tuned(FIRST_ORDER)), inputs_of(toy_features))
    settings = [{"learning_rate": rate, "loss": "softmax"} for rate in (1.0, 2.0, 1.0)]
    values = [objective(7, setting) for setting in settings]
    assert len(prepared) == 1
    assert values[0] == values[2]
    monkeypatch.setattr(first_order, "prepared_by", lambda parameters: parameters.learning_rate, raising=False)
    objective = Objective(request_of(tuned(FIRST_ORDER)), inputs_of(toy_features))
    assert [objective(7, setting) for setting in settings] == values
    assert len(prepared) == 1 + 3
    monkeypatch.delattr(first_order, "prepared_by")  # one that does not say must not get what was clipped for another
    objective = Objective(request_of(tuned(FIRST_ORDER)), inputs_of(toy_features))
    assert [objective(7, setting) for setting in settings] == values
    assert len(prepared) == 1 + 3 + 3


def test_the_first_metric_is_what_is_tuned(toy_features, rows, tmp_path):
    request = replace(request_of(tuned(FIRST_ORDER)), metrics=["auc", "top1"])
    assert all(0 <= row["value"] <= 1 for row in search(request, inputs_of(toy_features), tmp_path))
    request = replace(request_of(tuned(FIRST_ORDER, LEARNING)), metrics=["top5"])
    with pytest.raises(StudyError, match="evaluation.metrics: 'top5' has no value for 3 classes"):
        tune(request, inputs_of(toy_features), str(tmp_path / "t.parquet"))


def test_a_grid_is_tried_once_over_whatever_trials_says(toy_features, tmp_path):
    space = {"learning_rate": {"choices": [0.5, 0.1, 2.0]}, "loss": {"choices": ["softmax", "sigmoid"]}}
    request = request_of(tuned(FIRST_ORDER, space, sampler="grid", trials=2))
    found = search(request, inputs_of(toy_features), tmp_path)
    settings = [(row["learning_rate"], row["loss"]) for row in found]
    expected = [(rate, loss) for rate in ("0.5", "0.1", "2.0") for loss in ("softmax", "sigmoid")]
    assert settings == expected


def test_random_settings_do_not_depend_on_what_was_found(toy_features, tmp_path):
    """TPE's first ten are random too; after those the two part."""
    found = {}
    for sampler in ("random", "tpe"):
        request = request_of(tuned(FIRST_ORDER, sampler=sampler, trials=16))
        rows = search(request, inputs_of(toy_features), tmp_path / sampler)
        found[sampler] = [(row["learning_rate"], row["loss"]) for row in rows]
    assert found["random"][:10] == found["tpe"][:10] and found["random"][10:] != found["tpe"][10:]
    assert len(set(found["random"])) == 16
