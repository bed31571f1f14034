"""Searches through the real workflow: what runs, what reruns, and that the test split has no part in them."""

import copy
import json
import shutil
import time

import pytest

from dpstudy.config.tuned import PAID
from dpstudy.core.files import read_table
from dpstudy.privacy.ledger import SEEDED
from tests.workflow.conftest import StudyFolder, make_folder
from tests.workflow.kills import Run

ADAM = {"method": "first_order", "optimiser": "adam", "steps": 5, "curve_points": 1}
RATES = {"learning_rate": {"low": 1e-3, "high": 10.0}, "clipping_norm": {"low": 0.01, "high": 10.0}}
TUNED = {
    "study": "tuned",
    "datasets": {
        "digits": {"reader": "digits", "splits": {"test": 0.2, "validation": 0.2}, "shards": 2, "delta": "1e-4"}
    },
    "features": {"pixels": {"extractor": "pixels", "normalise": "l2"}},
    "methods": {
        "ls": {"method": "least_squares", "tuning": {"trials": 3, "space": {"ridge": {"low": 0.1, "high": 1000.0}}}},
        "adam": ADAM | {"tuning": {"trials": 3, "space": RATES}},
        "plain": ADAM | {"learning_rate": 0.3, "clipping_norm": 1.0},
        "ls-paid": {
            "method": "least_squares",
            "tuning": {"pay": "choice", "sampler": "grid", "space": {"ridge": {"choices": [1.0, 1000.0]}}},
        },
        "adam-paid": ADAM | {"tuning": {"pay": "repeats", "sampler": "random", "trials": 2, "space": RATES}},
    },
    "epsilons": ["1", "inf"],
    "seeds": [0, 1],
    "tables": {"tuned": {"dataset": "digits"}},
}
AFTER_CELLS = [
    ("build_report", "results/report/index.html"),
    ("build_table", "results/tables/tuned.tex"),
    ("certify_cells", "results/privacy/certificates/digits.json"),
    ("summarise_cells", "results/summary.csv"),
    ("total_privacy", "results/privacy/total.json"),
]
RULES = {
    "ls": "train_closed_form",
    "adam": "train_stepped",
    "plain": "train_stepped",
    "ls-paid": "train_closed_form",
    "adam-paid": "train_stepped",
}


def trains(entry, *epsilons):
    cells = [f"results/cells/digits/pixels/{entry}/eps={e}" for e in epsilons]
    return [(RULES[entry], f"{cell}/run.json") for cell in cells] + [("score_cell", f"{c}/metrics.json") for c in cells]


def searches(entry, *epsilons):
    return [("tune_entry", f"results/tuning/digits/pixels/{entry}/eps={e}/trials.parquet") for e in epsilons]


def outcome(study, cell) -> list[dict]:
    rows = read_table(study.path / "results/tuning/digits/pixels" / cell / "trials.parquet").to_pylist()
    return [{key: row[key] for key in row if key != "seconds"} for row in rows]


@pytest.fixture(scope="module")
def finished_search(tmp_path_factory) -> StudyFolder:
    folder = make_folder(tmp_path_factory.mktemp("tuned") / "study")
    folder.write_config(TUNED)
    result = folder.snakemake()
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


@pytest.fixture
def searched(finished_search, tmp_path) -> StudyFolder:
    copied = tmp_path / "study"
    shutil.copytree(finished_search.path, copied, copy_function=shutil.copy2)
    return StudyFolder(copied)


def test_each_cell_has_a_search_of_its_own_and_takes_its_winner(finished_search):
    found = set()
    for entry in ("ls", "adam"):
        for epsilon in ("1", "inf"):
            cell = f"{entry}/eps={epsilon}"
            trials = outcome(finished_search, cell)
            metrics = json.loads(finished_search.read(f"cells/digits/pixels/{cell}/metrics.json"))
            ledger = json.loads(finished_search.read(f"cells/digits/pixels/{cell}/ledger.json"))
            best = max(trials, key=lambda row: row["value"])
            assert len(trials) == 3
            assert metrics["tuning"] == {"trials": 3, "failed": 0, "value": best["value"]}
            name = "ridge" if entry == "ls" else "learning_rate"
            assert metrics["hyperparameters"][name] == best[name]
            assert any("chosen by 3 trials" in sentence for sentence in ledger["not_accounted"])
            found.add(json.dumps([row["value"] for row in trials]))
    assert len(found) == 4
    plain = json.loads(finished_search.read("cells/digits/pixels/plain/eps=1/ledger.json"))
    assert not any("trials" in sentence for sentence in plain["not_accounted"])


def test_cells_count_the_rows_of_both_splits_and_a_search_leaves_no_journal(finished_search):
    rows = {
        split: json.loads(finished_search.read(f"data/digits/{split}/manifest.json"))["rows"]
        for split in ("train", "validation")
    }
    for entry in ("ls", "adam", "plain"):
        ledger = json.loads(finished_search.read(f"cells/digits/pixels/{entry}/eps=1/ledger.json"))
        assert ledger["n"] == rows["train"] + rows["validation"]
    assert list((finished_search.path / "results").rglob("journal-*")) == []


def test_a_search_that_is_paid_for_is_part_of_its_cell_and_of_its_ledger(finished_search):
    folder = finished_search.path / "results/tuning/digits/pixels"
    assert sorted(path.name for path in folder.iterdir()) == ["adam", "ls"]
    n = json.loads(finished_search.read("cells/digits/pixels/plain/eps=1/ledger.json"))["n"]
    certified = json.loads(finished_search.read("privacy/certificates/digits.json"))
    for entry, mechanism in (("ls-paid", "exponential"), ("adam-paid", "repeat-and-select")):
        cell = f"cells/digits/pixels/{entry}/eps=1"
        metrics, ledger = (json.loads(finished_search.read(f"{cell}/{name}.json")) for name in ("metrics", "ledger"))
        assert ledger["guarantee"] == "proved" and 0.99 < ledger["epsilon"] <= 1 and ledger["n"] == n
        assert ledger["not_accounted"] == [SEEDED]
        assert mechanism in {event["mechanism"] for event in ledger["events"]}
        assert metrics["tuned_on"] == PAID and len(metrics["tuning"]["chosen"]) == 2
        assert f"digits/pixels/{entry}/eps=1" in json.dumps(certified)
    report = finished_search.read("report/index.html").decode()
    assert (
        "exponential mechanism" in report and "Of a secret number of runs (geometric, mean 2) one is released" in report
    )


def test_another_candidate_reruns_the_cells_that_choose_among_them(searched):
    config = copy.deepcopy(TUNED)
    config["methods"]["ls-paid"]["tuning"]["space"]["ridge"]["choices"] = [1.0, 100.0, 1000.0]
    searched.write_config(config)
    assert searched.planned() == sorted(trains("ls-paid", "1", "inf") + AFTER_CELLS)


def test_a_tuned_study_has_nothing_to_do_after_a_run(searched):
    assert searched.planned() == []


def test_a_new_epsilon_searches_and_trains_that_epsilon_only(searched):
    searched.write_config(TUNED | {"epsilons": ["1", "2", "inf"]})
    new = [job for entry in ("ls", "adam") for job in searches(entry, "2")]
    assert searched.planned() == sorted(new + [job for e in RULES for job in trains(e, "2")] + AFTER_CELLS)


def test_more_trials_of_an_entry_rerun_that_entry_only(searched):
    config = copy.deepcopy(TUNED)
    config["methods"]["adam"]["tuning"]["trials"] = 4
    searched.write_config(config)
    assert searched.planned() == sorted(searches("adam", "1", "inf") + trains("adam", "1", "inf") + AFTER_CELLS)


def test_an_override_that_fixes_a_hyper_parameter_reruns_its_cell_only(searched):
    config = copy.deepcopy(TUNED)
    config["overrides"] = [{"match": {"entry": "ls", "epsilon": "1"}, "set": {"ridge": 30.0}}]
    searched.write_config(config)
    assert searched.planned() == sorted(trains("ls", "1") + AFTER_CELLS)


def test_another_seed_or_table_searches_nothing(searched):
    config = copy.deepcopy(TUNED) | {"seeds": [0, 1, 2]}
    config["tables"]["tuned"]["caption"] = "Another caption"
    searched.write_config(config)
    assert [job for job in searched.planned() if job[0] == "tune_entry"] == []


def test_a_second_metric_searches_nothing_and_another_first_one_everything(searched):
    searched.write_config(TUNED | {"evaluation": {"metrics": ["top1", "balanced_accuracy"]}})
    rules = {rule for rule, _ in searched.planned()}
    assert "score_cell" in rules and not {rule for rule in rules if rule.startswith(("tune", "train"))}
    searched.write_config(TUNED | {"evaluation": {"metrics": ["balanced_accuracy", "top1"]}})
    every = [job for entry in ("ls", "adam") for job in searches(entry, "1", "inf")]
    assert [job for job in searched.planned() if job[0] == "tune_entry"] == sorted(every)


def test_a_search_runs_without_the_test_split(searched):
    """The search is made anew from damaged test shards, without complaint and to the same end."""
    before = outcome(searched, "ls/eps=1"), outcome(searched, "adam/eps=1")
    for folder in ("data", "features/digits/pixels"):
        place = searched.path / "results" / folder / ("digits/test" if folder == "data" else "test")
        for shard in place.glob("*"):
            shard.write_bytes(b"poison")
    shutil.rmtree(searched.path / "results" / "tuning")
    targets = [f"results/tuning/digits/pixels/{entry}/eps=1/trials.parquet" for entry in ("ls", "adam")]
    jobs = searched.planned(*targets)
    assert jobs == sorted(searches("ls", "1") + searches("adam", "1"))
    result = searched.snakemake(*targets)
    assert result.returncode == 0, result.stdout + result.stderr
    assert (outcome(searched, "ls/eps=1"), outcome(searched, "adam/eps=1")) == before


def test_a_search_that_was_killed_continues(searched):
    config = copy.deepcopy(TUNED)
    config["methods"]["adam"] |= {"steps": 200, "tuning": {"trials": 18, "space": RATES}}
    config["cells"] = [{"entries": ["adam"], "epsilons": ["1"]}]
    searched.write_config(config)
    trials = "results/tuning/digits/pixels/adam/eps=1/trials.parquet"
    run = Run(searched, trials)
    folder = searched.path / "results/tuning/digits/pixels/adam/eps=1"
    deadline = time.monotonic() + 60
    while not any(journal.read_bytes().count(b"\n") > 7 for journal in folder.glob("journal-*.log")):
        assert time.monotonic() < deadline and run.process.poll() is None, run.said()
        time.sleep(0.01)
    run.kill_all()
    (journal,) = folder.glob("journal-*.log")
    done = journal.read_bytes().count(b"\n") - 1  # its first line names the search
    last = Run(searched, trials)
    assert last.wait() == 0, last.said()
    continued = outcome(searched, "adam/eps=1")
    log = (searched.path / "results/logs/tune_entry/digits/pixels/adam/eps=1.log").read_text()
    assert 6 < done < 18 and f"trial {done}:" in log and f"trial {done - 1}:" not in log
    shutil.rmtree(folder)
    again = Run(searched, trials)
    assert again.wait() == 0, again.said()
    assert outcome(searched, "adam/eps=1") == continued and len(continued) == 18
