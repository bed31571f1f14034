"""What reruns after a change, and above all what does not: the exact list of jobs."""

import copy
import json
import os
import shutil
import time

import pytest

from tests.workflow.conftest import TINY

AFTER_CELLS = [
    ("build_report", "results/report/index.html"),
    ("build_table", "results/tables/tiny.tex"),
    ("draw_figure", "results/figures/tiny.pdf"),
    ("certify_cells", "results/privacy/certificates/digits.json"),
    ("summarise_cells", "results/summary.csv"),
    ("total_privacy", "results/privacy/total.json"),
]


def trainings(entry, epsilons=("1", "inf"), features=("cnn", "pixels")):
    rule = {"ls": "train_closed_form", "sgd": "train_stepped"}[entry]
    return [(rule, f"results/cells/digits/{f}/{entry}/eps={e}/run.json") for f in features for e in epsilons]


def scored(trainings):
    return [("score_cell", output.replace("run.json", "metrics.json")) for _, output in trainings]


def cells(*args, **kwargs):
    trained = trainings(*args, **kwargs)
    return trained + scored(trained)


def changed(**changes):
    config = copy.deepcopy(TINY)
    for path, value in changes.items():
        node = config
        *parents, last = path.split("__")
        for part in parents:
            node = node[part]
        node[last] = value
    return config


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_cell_that_was_taken_away_is_made_again(study):
    shutil.rmtree(study.path / "results/cells/digits/cnn/ls/eps=1")
    assert study.planned() == sorted(cells("ls", ["1"], ["cnn"]) + AFTER_CELLS)


def test_a_hyperparameter_reruns_only_its_entrys_cells(study):
    study.write_config(changed(methods__sgd__learning_rate=1.0))
    assert study.planned() == sorted(cells("sgd") + AFTER_CELLS)


EVERY = trainings("ls") + trainings("sgd")
WITHOUT_PRIVACY = [job for job in AFTER_CELLS if job[0] not in ("certify_cells", "total_privacy")]


def test_another_metric_scores_anew_and_trains_and_certifies_nothing(study):
    study.write_config(changed(evaluation={"metrics": ["top1", "auc"], "intervals": 20, "per_label": True}))
    assert study.planned() == sorted(scored(EVERY) + WITHOUT_PRIVACY)


def test_code_that_judges_scores_reruns_no_training(study):
    edit_module(study, "evaluation/groups.py", old=True)
    planned = set(study.planned())
    assert set(scored(EVERY)) < planned
    assert not {rule for rule, _ in planned} & {"train_closed_form", "train_stepped", "certify_cells", "total_privacy"}


def test_training_accuracies_are_of_the_training_that_is_then_anew(study):
    study.write_config(changed(evaluation={"metrics": ["top1", "train_top1"]}))
    assert set(EVERY) < set(study.planned())


def test_metrics_that_were_taken_away_are_made_of_the_scores(study):
    (study.path / "results/cells/digits/cnn/ls/eps=1/metrics.json").unlink()
    assert study.planned() == sorted(scored(trainings("ls", ["1"], ["cnn"])) + WITHOUT_PRIVACY)


def test_scores_that_are_not_kept_are_not_missed_until_another_metric_asks(study):
    config = changed(evaluation={"metrics": ["top1"], "keep_scores": False}, epsilons=["1"], features={"pixels": {}})
    config["features"]["pixels"] = {"extractor": "pixels"}
    study.write_config(config)
    shutil.rmtree(study.path / "results/cells")
    result = study.snakemake("results/privacy/total.json")  # which needs no metric: they are made all the same
    assert result.returncode == 0, result.stderr
    assert not list((study.path / "results/cells").rglob("scores.parquet"))
    assert {rule for rule, _ in study.planned("results/summary.csv")} == {"summarise_cells", "certify_cells"}
    config["evaluation"]["metrics"] = ["top1", "auc"]
    study.write_config(config)
    assert [job for job in study.planned() if job[0].startswith("train")] == sorted(
        trainings("ls", ["1"], ["pixels"]) + trainings("sgd", ["1"], ["pixels"])
    )


def test_a_closed_form_hyperparameter_reruns_no_pass_over_the_data(study):
    study.write_config(changed(methods__ls__gram_share=0.3))
    assert study.planned() == sorted(cells("ls") + AFTER_CELLS)


def test_an_entry_that_did_not_change_is_not_replayed_again(study):
    log, before = "logs/certify_cells/digits.log", json.loads(study.read("privacy/replays/digits.json"))["entries"]
    assert study.read(log).decode().count("replay of ") == 4
    study.write_config(changed(methods__ls__alpha=2.0))
    result = study.snakemake("results/privacy/certificates/digits.json")
    assert result.returncode == 0, result.stdout + result.stderr
    told, after = study.read(log).decode(), json.loads(study.read("privacy/replays/digits.json"))["entries"]
    assert told.count("replay of ") == 2 and "replay of pixels/ls:" in told and "replay of cnn/ls:" in told
    assert after["pixels/sgd"] == before["pixels/sgd"] and after["pixels/ls"] != before["pixels/ls"]


def test_a_new_epsilon_runs_only_new_cells(study):
    study.write_config(changed(epsilons=["1", "2", "inf"]))
    assert study.planned() == sorted(cells("ls", ["2"]) + cells("sgd", ["2"]) + AFTER_CELLS)


def test_a_new_entry_runs_only_its_cells(study):
    config = changed()
    config["methods"]["adam"] = config["methods"]["sgd"] | {"optimiser": "adam"}
    study.write_config(config)
    new = [(rule, output.replace("/sgd/", "/adam/")) for rule, output in cells("sgd")]
    assert study.planned() == sorted(new + AFTER_CELLS)


def test_an_override_reruns_only_the_cells_it_matches(study):
    config = changed()
    config["overrides"] = [{"match": {"entry": "sgd", "epsilon": "1", "features": "cnn"}, "set": {"steps": 6}}]
    study.write_config(config)
    assert study.planned() == sorted(cells("sgd", ["1"], ["cnn"]) + AFTER_CELLS)


def edit_module(study, name, old):
    """Append to a module; `old`: with a time before the results were made, as code of another version may have."""
    path = study.path / "workflow" / "dpstudy" / name
    path.write_text(path.read_text() + "\n# an edit\n")
    if old:
        os.utime(path, (time.time() - 86_400,) * 2)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(("module", "entry"), [("least_squares", "ls"), ("first_order", "sgd")])
def test_editing_a_methods_module_reruns_only_its_cells(study, module, entry, old):
    edit_module(study, f"methods/{module}.py", old)
    assert study.planned() == sorted(cells(entry) + AFTER_CELLS)


@pytest.mark.parametrize("old", [False, True])
def test_editing_an_extractor_makes_its_features_anew(study, old):
    edit_module(study, "features/pixels.py", old)
    made = [output for rule, output in study.planned() if rule == "extract_shard"]
    assert made == [
        f"results/features/digits/pixels/{s}/part-0000{i}.parquet" for s in ("test", "train") for i in (0, 1)
    ]


@pytest.mark.parametrize("old", [False, True])
def test_editing_a_reader_reruns_what_it_reads(study, old):
    edit_module(study, "data/readers/glyphs.py", old)
    first = [job for job in study.planned() if job[0] in ("prepare_shard", "prepare_manifest")]
    assert first == [
        ("prepare_manifest", "results/data/glyphs/train/manifest.json"),
        ("prepare_manifest", "results/data/glyphs/validation/manifest.json"),
        ("prepare_shard", "results/data/glyphs/train/part-00000.parquet"),
        ("prepare_shard", "results/data/glyphs/validation/part-00000.parquet"),
    ]


@pytest.mark.parametrize(("style", "rerun"), [("tables/plain", 1), ("figures/epsilons", 2), ("tables/best", None)])
def test_editing_a_style_rebuilds_what_is_in_it_and_the_page(study, style, rerun):
    edit_module(study, f"tables/styles/{style}.py", True)
    assert study.planned() == ([AFTER_CELLS[0], AFTER_CELLS[rerun]] if rerun else [])


def test_touching_files_reruns_nothing(study):
    later = time.time() + 60
    touched = [
        study.path / "workflow" / "scripts" / "train_cell.py",
        study.path / "workflow" / "dpstudy" / "methods" / "least_squares.py",
        study.path / "workflow" / "rules" / "train.smk",
        study.path / "workflow" / "dpstudy" / "schemas" / "config.schema.yaml",
        study.path / "config.yaml",
        study.path / "results" / "data" / "digits" / "train" / "manifest.json",
    ]
    for path in touched:
        os.utime(path, (later, later))
    assert study.planned() == []


def test_a_comment_in_the_config_reruns_nothing(study):
    path = study.path / "config.yaml"
    path.write_text("# a comment\n" + path.read_text() + "# and another\n")
    assert study.planned() == []


def test_threads_rerun_nothing(study):
    rule = "        model=paths.MODEL,\n    log:\n"
    edit(study.path / "workflow" / "rules" / "train.smk", rule, rule.replace("    log:", "    threads: 2\n    log:"))
    assert study.planned("--set-threads", "train_stepped=2") == []


def test_the_order_of_keys_in_the_config_reruns_no_cell(study):
    config = changed()
    config["methods"]["sgd"] = dict(reversed(config["methods"]["sgd"].items()))
    study.write_config(config)
    assert [job for job in study.planned() if job[0].startswith("train")] == []


def test_a_changed_table_rebuilds_the_table_and_the_page(study):
    study.write_config(changed(tables__tiny__caption="Another caption"))
    assert study.planned() == [AFTER_CELLS[0], AFTER_CELLS[1]]


def test_a_study_given_on_the_command_line_replaces_the_default(study):
    config = changed(epsilons=["2"], features={"pixels": {"extractor": "pixels"}})
    del config["backbones"], config["public"]
    study.write_config(config, "other.yaml")
    trained = [job for job in study.planned("--configfile", "other.yaml") if job[0].startswith("train")]
    assert trained == sorted(trainings("ls", ["2"], ["pixels"]) + trainings("sgd", ["2"], ["pixels"]))


def test_a_changed_delta_reruns_the_cells_and_no_reading_of_data(study):
    study.write_config(changed(datasets__digits__delta="1e-5"))
    assert study.planned() == sorted(cells("ls") + cells("sgd") + AFTER_CELLS)


def test_part_of_a_study_makes_no_other_cell(study):
    """With `only` on the command line, as every job is told it; what is there stays."""
    config = changed()
    config["tables"]["part"] = {"dataset": "digits", "rows": [{"features": "pixels", "entry": "ls"}]}
    study.write_config(config)
    shutil.rmtree(study.path / "results/cells")
    part = ["--config", "only=part"]
    outputs = [output for rule, output in study.planned(*part) if rule.startswith("train")]
    assert outputs == [output for _, output in trainings("ls", features=["pixels"])]
    result = study.snakemake(*part)
    assert result.returncode == 0, result.stderr
    assert study.planned(*part) == [] and study.read("tables/part.csv").count(b"pixels") >= 2
    assert study.read("summary.csv").count(b"\n") == 1 + len(outputs) * len(TINY["seeds"])
    missing = [output for rule, output in study.planned() if rule.startswith("train")]
    assert sorted(missing + outputs) == sorted(output for entry in ("ls", "sgd") for _, output in trainings(entry))
