"""Replay: what passes around the releases is found, in each thing that a cell gives, and what does not is not."""

import inspect
import logging
from dataclasses import replace

import numpy as np
import pytest

from dpstudy.auditing.replay import LeakError, Playing, Recording
from dpstudy.core.errors import StudyError
from dpstudy.jobs.made_up import Layout
from dpstudy.jobs.replays import replay, replayed, shortened
from dpstudy.methods import first_order, least_squares
from dpstudy.tuning import paid_repeats
from tests.unit.release.test_bundle import METHODS
from tests.unit.tuning.conftest import request_of, tuned, write_split

RECORD = {"unit": "record", "positives": 1, "delta": "1e-5"}
LEAST, STEPS = (
    {"method": "least_squares"},
    {"method": "first_order", "learning_rate": 0.5, "clipping_norm": 1.0, "steps": 9},
)
RIDGES = {"ridge": {"choices": [1e-3, 1.0, 100.0]}}
FLAT, PICTURES = Layout((20,), 3), Layout((3, 8, 8), 3, scaling="unit")
NETWORK = {"method": "network_dpsgd", "network": "wrn-10-1", "learning_rate": 0.1, "clipping_norm": 1.0, "epochs": 9}
CASES = {
    **{name: (options, RECORD, FLAT) for name, options in METHODS.items() if name != "network"},
    "correlated noise": (STEPS | {"batch_size": 4096, "bands": 16}, RECORD, FLAT),
    "correlated noise, a network": (NETWORK | {"batch_size": 4, "bands": 3}, RECORD, PICTURES),
    "persons": (STEPS, RECORD | {"unit": "subject", "per_subject": 3}, FLAT),
    "several labels": (STEPS | {"loss": "sigmoid"}, RECORD | {"positives": 3}, Layout((20,), 5, multi_label=True)),
    "several labels, sums": (LEAST, RECORD | {"positives": 3}, Layout((20,), 5, multi_label=True)),
    "a calibration": (STEPS | {"calibration": 0.3}, RECORD, FLAT),
    "a calibration, persons": (LEAST | {"calibration": 0.3}, RECORD | {"unit": "subject", "per_subject": 3}, FLAT),
    "averages": (STEPS, RECORD | {"unit": "subject", "per_subject": 3, "contributions": "average"}, FLAT),
    "averages, calibrated": (
        LEAST | {"calibration": "auto", "thresholds": True},
        RECORD | {"unit": "subject", "per_subject": 3, "contributions": "average"},
        FLAT,
    ),
    "much for a calibration": (LEAST | {"calibration": 0.85, "thresholds": True}, RECORD, FLAT),
    "averages, a network": (
        NETWORK | {"batch_size": 4},
        RECORD | {"unit": "subject", "per_subject": 3, "contributions": "average"},
        PICTURES,
    ),
    "averages, a choice": (
        tuned(LEAST, RIDGES, pay="choice"),
        RECORD | {"unit": "subject", "per_subject": 3, "contributions": "average"},
        FLAT,
    ),
    "classes that are weighed": (LEAST, RECORD | {"class_weights": {"many": 0.2, "few": 1.0}}, FLAT),
    "thresholds": (STEPS | {"calibration": "auto", "thresholds": True}, RECORD, FLAT),
    "a calibration of several labels": (
        LEAST | {"calibration": 0.3},
        RECORD | {"positives": 3},
        Layout((20,), 5, multi_label=True),
    ),
    "a choice": (tuned(LEAST, RIDGES, pay="choice"), RECORD, FLAT),
    "a choice, then all records": (tuned(LEAST, RIDGES, pay="choice", retrain=True), RECORD, FLAT),
    "repeats": (tuned(STEPS, {"learning_rate": {"low": 0.01, "high": 10.0}}, pay="repeats"), RECORD, FLAT),
    "a search": (tuned(STEPS, {"learning_rate": {"low": 0.01, "high": 10.0}}), RECORD, FLAT),
    "public points": ({"method": "kernel_mean", "frequencies": 20, "smoothing": "public"}, RECORD, FLAT),
    "a network, warm start": (
        NETWORK
        | {"batch_size": 512, "augmentation": {"multiplicity": 4}, "start": {"weights": "w", "sha256": "0" * 64}},
        RECORD,
        PICTURES,
    ),
}


def run(case: str, noise: str = "secure", epsilon: str = "1") -> dict:
    options, dataset, layout = CASES[case]
    return replay(request_of(options).options, dataset, noise, layout, epsilon)


@pytest.mark.parametrize("case", CASES)
def test_what_is_made_of_releases_alone_is_the_same_with_other_records(case):
    found = run(case, **({"noise": "seeded"} if "correlated" in case else {}))
    assert found == {"pairs": 4, "records": 12 if "network" in case else 64}


def fit_of(module, change):
    """The module's `fit`, whose outcome is changed by `change(fitted, data, source)`."""
    before = module.fit

    def fit(data, parameters, problem, plan, source, **more):
        return change(before(data, parameters, problem, plan, source, **more), data, source)

    return fit


def seen(data) -> float:
    """Something of private records."""
    if hasattr(data, "targets"):
        return float(data.targets.sum())
    return float(sum(np.nansum(block.features) for block in data.records.blocks(64)))


def in_weights(fitted, data, source):
    model = fitted.model
    return replace(fitted, model=replace(model, weights=model.weights + np.float32(1e-3 * seen(data))))


def in_metadata(fitted, data, source):
    return replace(fitted, model=replace(fitted.model, metadata={"norm": f"{seen(data):.1f}"}))


def in_a_message(fitted, data, source):
    logging.getLogger("dpstudy").info("learned from features of sum %.2f", seen(data))
    return fitted


def in_print(fitted, data, source):
    print(seen(data))
    return fitted


def in_a_further_release(fitted, data, source):
    if seen(data) > 0:
        source.released("beside", np.zeros(2), 1.0)
    return fitted


def in_a_failure(fitted, data, source):
    if seen(data) > 0:
        raise RuntimeError("the features are large")
    return fitted


@pytest.mark.parametrize("module, case", [(least_squares, "least squares"), (first_order, "gradients")])
@pytest.mark.parametrize(
    "change, told",
    [
        (in_weights, "its model is another one"),
        (in_metadata, "its model is another one"),
        (in_a_message, "its messages says .*learned from features of sum"),
        (in_print, "its messages"),
        (in_a_further_release, "release 'beside' is (not )?made|drew"),
        (in_a_failure, "its training fails: the features are large|the features are large"),
    ],
)
def test_a_leak_is_found_wherever_it_is(module, case, change, told, monkeypatch):
    monkeypatch.setattr(module, "fit", fit_of(module, change))
    with pytest.raises((LeakError, RuntimeError), match=told):
        run(case)


def test_a_curve_of_models_without_noise_is_found(monkeypatch):
    def shown(data, parameters, problem, plan, source, monitor=None, **more):
        def told(step, model):
            monitor(step, replace(model, weights=model.weights * np.float32(seen(data))))

        return before(data, parameters, problem, plan, source, monitor=told)

    before = first_order.fit
    monkeypatch.setattr(first_order, "fit", shown)
    with pytest.raises(LeakError, match="its curve is another one"):
        run("gradients")


def test_noise_scaled_by_records_is_found(monkeypatch):
    def scaled(data, parameters, problem, plan, source, **more):
        noise = {name: (1 + abs(seen(data))) * std for name, std in plan.noise.items()}
        return before(data, parameters, problem, replace(plan, noise=noise), source, **more)

    before = first_order.fit
    monkeypatch.setattr(first_order, "fit", scaled)
    with pytest.raises(
        LeakError, match=r"with other records, the (release|noise) .* has .* and noise .*, where it had"
    ):
        run("gradients")


def test_a_divisor_of_the_records_that_are_there_is_found(monkeypatch):
    """The same public n stands before fewer records where de-duplication left some out."""

    def divided(data, parameters, problem, plan, source, **more):
        return before(data, parameters, replace(problem, n=data.records.rows), plan, source, **more)

    before = first_order.fit
    monkeypatch.setattr(first_order, "fit", divided)
    with pytest.raises(LeakError, match="with the same releases and fewer and tiny records behind the same n"):
        run("gradients")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "size_told(sizes, borne, scale, asked, problem)",
            "size_told(count_sizes(records[0], True), borne, 0.0, asked, problem)",
        ),
        (
            "borne = released(ASKED, total, asked, source, 0)[:m]",
            "borne = total[:m] + 0 * released(ASKED, total, asked, source, 0)[:m]",
        ),
        (
            "released(ASKED, total, asked, source, query) / units",
            "(total + 0 * released(ASKED, total, asked, source, query)) / units",
        ),
    ],
)
def test_a_calibration_by_sums_without_noise_is_found(old, new, monkeypatch):
    """At an epsilon of 50: at a small one little of so few records would show."""
    from dpstudy.methods import calibrated

    source = inspect.getsource(calibrated.calibrate_scores)
    assert source.count(old) == 1
    assert run("a calibration", epsilon="50")["pairs"] == 4
    exec(source.replace(old, new), vars(calibrated), found := {})  # noqa: S102
    monkeypatch.setattr(calibrated, "calibrate_scores", found["calibrate_scores"])
    with pytest.raises(LeakError):
        run("a calibration", epsilon="50")


def test_thresholds_by_counts_without_noise_are_found(monkeypatch):
    from dpstudy.methods import calibrated

    run("thresholds", epsilon="50")
    plain = calibrated.with_counts
    counted = calibrated.operating_points.counted
    seen = []
    monkeypatch.setattr(calibrated.operating_points, "counted", lambda *given: seen.append(counted(*given)) or seen[-1])
    monkeypatch.setattr(calibrated, "with_counts", lambda model, counts, noise: plain(model, seen[-1], noise))
    with pytest.raises(LeakError):
        run("thresholds", epsilon="50")


@pytest.mark.parametrize("noise", ["seeded", "secure"])
def test_the_best_by_scores_without_noise_is_found(noise, monkeypatch):
    scores, made, before = [], paid_repeats._Run, paid_repeats.Tuning.score

    def scored(self, model, problem):
        scores.append(before(self, model, problem))
        return scores[-1]

    monkeypatch.setattr(paid_repeats.Tuning, "score", scored)
    monkeypatch.setattr(paid_repeats, "_Run", lambda noisy, *more: made(scores[-1], *more))
    with pytest.raises(LeakError, match="its model is another one"):
        run("repeats", noise)


def test_a_choice_by_scores_without_noise_is_found(monkeypatch):
    for source in (Recording, Playing):

        def best(self, name, scores, epsilon, before=source.chosen):
            before(self, name, scores, epsilon)
            return int(np.argmax(scores))

        monkeypatch.setattr(source, "chosen", best)
    with pytest.raises(LeakError, match="its model is another one"):
        run("a choice", "seeded")


def test_options_are_shortened():
    options = request_of(STEPS | {"batch_size": 4096, "largest_batch": 9000}).options
    short = shortened(options)
    assert (short["steps"], short["batch_size"], short["largest_batch"], short["curve_points"]) == (3, 24, 24, 2)
    assert options["steps"] == 9 and options["batch_size"] == 4096
    by_noise = {key: value for key, value in options.items() if key != "steps"} | {"noise_multiplier": 1.0}
    assert shortened(by_noise)["steps"] == 3 and "noise_multiplier" not in shortened(by_noise)
    paid = shortened(tuned(options, {"steps": {"choices": [2, 8, 9]}}, pay="repeats"))
    assert paid["tuning"]["space"] == {"steps": {"choices": [2, 3]}}


def test_an_entry_is_replayed_once_until_it_changes(tmp_path, monkeypatch):
    write_split(tmp_path, "train", np.zeros((6, 20)), np.zeros(6))
    made, path = [], str(tmp_path / "replays.json")
    monkeypatch.setattr("dpstudy.jobs.replays.replay", lambda *told: made.append(told) or {"pairs": 4, "records": 64})
    entry = {"name": "pixels/ls", "epsilon": "1", "options": request_of(LEAST).options, "dataset": RECORD}
    entry |= {"folder": str(tmp_path / "train"), "scaling": None, "library": "code"}
    changes = [{}, {}, {"epsilon": "2"}, {"library": "edited"}, {"dataset": RECORD | {"positives": 2}}]
    counts = []
    for change in changes:
        assert replayed([entry | change], "secure", path) == {"pixels/ls": {"pairs": 4, "records": 64}}
        counts.append(len(made))
    assert counts == [1, 1, 1, 2, 3]
    assert made[0][3] == Layout((20,), 3)


def test_a_training_that_fails_on_made_up_records_is_said_to(tmp_path):
    write_split(tmp_path, "train", np.zeros((6, 20)), np.zeros(6))
    options = request_of({"method": "instance_smoothing", "projected_dim": 64}).options
    entry = {"name": "pixels/one", "epsilon": "1", "options": options, "dataset": RECORD, "library": "code"}
    told = "pixels/one: its replay on made-up records fails: instance_smoothing: projected_dim 64: records have 20"
    with pytest.raises(StudyError, match=f"^{told}"):
        replayed([entry | {"folder": str(tmp_path / "train"), "scaling": None}], "secure", str(tmp_path / "kept.json"))
    assert not (tmp_path / "kept.json").exists()
