"""What a ledger states follows from the config: one in which a fact was changed, and epsilon with it, is refused."""

import copy
from dataclasses import replace

import pytest

from dpstudy import methods
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.jobs.certificates import write_certificates
from dpstudy.jobs.restated import restated_faults
from dpstudy.methods.calibrated import Calibrated
from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import build_ledger

N, M = 1000, 10
BATCHES = {"learning_rate": 0.5, "clipping_norm": 0.7, "batch_size": 64}
NORMALISED = {"mean_clip": 0.1, "square_clip": 0.2, "noise_multiplier": 12.0, "groups": 1}
ENTRIES = {
    "least squares": ({"method": "least_squares", "clipping_norm": 0.5}, 3, 1),
    "as published": ({"method": "least_squares", "clipping_norm": 0.5, "variant": "published", "ridge": 1.0}, 3, 2),
    "default": ({"method": "feature_covariance"}, 1, 2),
    "covariance as published": (
        {"method": "feature_covariance", "variant": "published", "gram_clipping_norm": 0.7, "clipping_norm": 0.3,
         "steps": 3, "learning_rate": 0.1, "ridge": 1.0}, 1, 1),
    "newton": ({"method": "newton", "clipping_norm": 2.0, "steps": 3, "ridge": "known-noise"}, 1, 1),
    "newton, one Hessian": (
        {"method": "newton", "clipping_norm": 2.0, "steps": 1, "preconditioner": "shared"}, 1, 2),
    "DP-SGD": ({"method": "first_order", "epochs": 2.0, **BATCHES}, 1, 2),
    "cut": ({"method": "first_order", "steps": 4, "noise_multiplier": 9.0, "largest_batch": 200, **BATCHES}, 1, 1),
    "bands": ({"method": "first_order", "epochs": 2.0, "bands": 3, **BATCHES}, 1, 2),
    "shuffled": ({"method": "first_order", "epochs": 2.0, "sampling": "shuffle", **BATCHES}, 1, 1),
    "full batches": ({"method": "first_order", "steps": 5, **BATCHES, "batch_size": "full"}, 1, 2),
    "noise given": ({"method": "first_order", "noise_multiplier": 3.0, **BATCHES}, 1, 1),
    "iterated": ({"method": "iterated_sgd", "epochs": 2, **BATCHES}, 1, 1),
    "kernel mean": ({"method": "kernel_mean", "class_shares": "released", "projection": "none"}, 3, 2),
}  # fmt: skip


def made(name, epsilon="2", averaged=False):
    """The ledger that a method's own plan makes, its run and the config's facts."""
    options, labels, records = ENTRIES[name]
    method = options["method"]
    own = {key: value for key, value in options.items() if key != "method"}
    known = methods.load(method).Parameters.__dataclass_fields__
    parameters = methods.parameters(method, {key: value for key, value in own.items() if key in known})
    problem = Problem(N, (16,), M, Budget(epsilon, 1e-5), labels, unit_records=records, averaged=averaged)
    problem = replace(problem, secure="bands" not in options)  # whose sums are not exact
    plan = methods.load(method).plan(parameters, problem)
    hyper = {key: getattr(parameters, key) for key in known}
    unit = "record" if records == 1 else "subject"
    bounds, how = {"records": records} if records > 1 else {}, {"contributions": "average"} if averaged else {}
    bounds |= how
    bounds |= {"positives": labels, "beyond": "refuse"} if labels > 1 else {}
    ledger = build_ledger(plan.events, problem.budget, n=N, unit=unit, noise="secure", bounds=bounds)
    dataset = {"unit": unit, "delta": "1e-5", "positives": labels} | ({"per_subject": records} if records > 1 else {})
    dataset |= how
    run = {"classes": M, "hyperparameters": hyper | dict(plan.facts)}
    facts = {"dataset": dataset, "options": options, "noise": "secure", "epsilon": epsilon, "n": N}
    return ledger, run, facts


@pytest.mark.parametrize("name", ENTRIES)
def test_what_a_method_plans_is_what_the_config_says(name):
    ledger, run, facts = made(name)
    assert ledger["events"] and restated_faults(ledger, run, facts) == []
    assert restated_faults(ledger, run, facts | {"n": None}) == []


def test_thresholds_are_charged_a_record_in_one_bin_of_each_class():
    for records, averaged in ((1, False), (2, False), (2, True)):
        problem = Problem(5000, (16,), M, Budget("8", 1e-5), unit_records=records, averaged=averaged)
        stands_for = Calibrated(methods.load("least_squares"), 0.1, lambda: [], 0.1)
        plan = stands_for.plan(methods.parameters("least_squares", {}), problem)
        bounds = ({"records": records} if records > 1 else {}) | ({"contributions": "average"} if averaged else {})
        unit = "subject" if records > 1 else "record"
        ledger = build_ledger(plan.events, problem.budget, n=5000, unit=unit, noise="seeded", bounds=bounds)
        dataset = {"unit": unit, "delta": "1e-5", "positives": 1, "per_subject": records} | bounds
        options = {"method": "least_squares", "clipping_norm": 1.0, "variant": "improved", "calibration": 0.1}
        run = {"classes": M, "hyperparameters": dict(plan.facts)}
        facts = {
            "dataset": dataset,
            "options": options | {"thresholds": 0.1},
            "noise": "seeded",
            "epsilon": "8",
            "n": 5000,
        }
        assert restated_faults(ledger, run, facts) == []
        (mine,) = (event for event in ledger["events"] if event["name"] == "operating_points")
        mine["sensitivity"] /= 2
        assert restated_faults(ledger, run, facts)[0].startswith("it states sensitivity of operating_points")


@pytest.mark.parametrize("name", [name for name, (_, _, records) in ENTRIES.items() if records > 1])
def test_averages_are_stated_and_charged_as_one_record(name):
    ledger, run, facts = made(name, averaged=True)
    assert ledger["events"] and restated_faults(ledger, run, facts) == []
    summed = made(name)[0]
    assert [2 * e["sensitivity"] for e in ledger["events"]] == pytest.approx(
        [e["sensitivity"] for e in summed["events"]]
    )
    for changed in (ledger | {"bounds": summed["bounds"]}, summed | {"bounds": ledger["bounds"]}):
        assert restated_faults(changed, run, facts)


@pytest.mark.parametrize("name", ENTRIES)
def test_a_changed_sensitivity_is_told_of_each_release(name):
    ledger, run, facts = made(name)
    for number, event in enumerate(ledger["events"]):
        changed = copy.deepcopy(ledger)
        changed["events"][number]["sensitivity"] *= 0.7
        (told, *_) = restated_faults(changed, run, facts)
        assert told.startswith(f"it states sensitivity of {event['name']} ")
        del changed["events"][number]
        assert any(f"events named '{event['name']}'" in told for told in restated_faults(changed, run, facts))


def changed_by_hand(ledger, what):
    events = ledger["events"]
    if what in ledger:
        ledger[what] = {"unit": "subject", "delta": 1e-4, "n": N + 1, "noise": "seeded", "target_epsilon": "3"}[what]
    elif what == "records":
        ledger["bounds"]["records"] = 1
    elif what == "positives":
        ledger["bounds"]["positives"] = 1
    elif what == "beyond":
        ledger["bounds"]["beyond"] = "truncate"
    elif events[-1]["mechanism"] == "iterated-gaussian":
        events[-1] |= {"count": 48, "params": events[-1]["params"] | {"epochs": 3}}
    else:
        events[-1][what] = {"sampling_rate": 0.063, "count": events[-1]["count"] - 1, "sampling": "none"}[what]
    return ledger


CHANGES = [
    ("least squares", "unit", "unit subject"),
    ("least squares", "delta", "delta 0.0001"),
    ("least squares", "n", "n 1001"),
    ("least squares", "noise", "noise seeded"),
    ("least squares", "target_epsilon", "target_epsilon 3"),
    ("default", "records", "a contribution bound (records of a subject) 1"),
    ("least squares", "positives", "labels per record 1"),
    ("least squares", "beyond", "what becomes of more labels truncate"),
    ("DP-SGD", "sampling_rate", "sampling rate of gradient 0.063"),
    ("DP-SGD", "sampling", "sampling of gradient none"),
    ("DP-SGD", "count", "count of gradient 30"),
    ("iterated", "count", "count of gradient 48"),
    ("newton", "count", "count of hessian 1"),
    ("covariance as published", "count", "count of gradient 2"),
]


@pytest.mark.parametrize(("name", "what", "words"), CHANGES)
def test_a_fact_that_was_changed_by_hand_is_refused_with_epsilon_computed_anew(tmp_path, name, what, words):
    """By the certificate, which the changed ledger would stand before otherwise."""
    ledger, run, facts = made(name)
    ledger = changed_by_hand(copy.deepcopy(ledger), what)
    events = [Event.from_json(event) for event in ledger["events"]]
    try:
        anew = build_ledger(
            events, Budget(ledger["target_epsilon"], ledger["delta"]), n=N, unit="record", noise="secure"
        )
        ledger |= {key: anew[key] for key in ("epsilon", "epsilon_by", "accountant")}
    except ValueError:
        pass
    drawn = {}
    for event in events:
        drawn[event.name] = drawn.get(event.name, 0) + event.count
    write_json(tmp_path / "ledger.json", ledger)
    write_json(tmp_path / "run.json", run | {"seeds": [{"releases": drawn}]})
    write_json(tmp_path / "manifest.json", {"rows": N, "subjects": N})
    cell = {"name": "c", "ledger": str(tmp_path / "ledger.json"), "run": str(tmp_path / "run.json")}
    stated = facts | {"manifests": [str(tmp_path / "manifest.json")]}
    write_certificates([cell], tmp_path / "without.json", {})  # nothing else notices
    assert read_json(tmp_path / "without.json")["cells"]["c"]["faults"] == []
    with pytest.raises(StudyError, match="its ledger does not stand") as told:
        write_certificates([cell | {"stated": stated}], tmp_path / "with.json", {})
    assert f"it states {words}, where the config and public metadata give" in str(told.value)
    assert not (tmp_path / "with.json").exists()


def test_tuned_values_are_those_of_the_run():
    ledger, run, facts = made("DP-SGD")
    options = {key: value for key, value in facts["options"].items() if key != "clipping_norm"}
    assert restated_faults(ledger, run, facts | {"options": options}) == []
    run["hyperparameters"]["clipping_norm"] = 0.8
    assert "sensitivity of gradient 1.4, where" in restated_faults(ledger, run, facts | {"options": options})[0]
    assert restated_faults(ledger, run, facts) == []  # what the config fixes is not asked of the run


def test_of_earlier_ledgers_and_other_methods_what_they_have_is_asked():
    ledger, run, facts = made("default")
    older = {key: value for key, value in ledger.items() if key not in ("version", "bounds", "trade_off")}
    assert restated_faults(older, run, facts) == []
    other = facts | {"options": {"method": "somebody's"}}
    assert restated_faults(ledger, run, other) == []
    assert restated_faults(ledger | {"delta": 1e-6}, run, other) != []
