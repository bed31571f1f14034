"""Faults inside every rule: a study with all of them, killed in each, and on a disk that fills again and again.

A command of its own, since it takes minutes: DPSTUDY_FAULTS=1 python -m pytest tests/workflow/test_every_rule.py. What
always runs is the check that the study has every rule.
"""

import copy
import os
import random
import re
import shutil
from pathlib import Path

import pytest
import yaml

from tests.workflow.conftest import ROOT, TINY, StudyFolder, make_folder
from tests.workflow.faults import mount, small_disk
from tests.workflow.kills import (
    OUTPUTS,
    Run,
    as_measured,
    kill_inside,
    results_of,
    temporary_files,
    wait_until,
    work_seconds,
    workers_of,
)

ASKED = bool(os.environ.get("DPSTUDY_FAULTS"))
EVERY = yaml.safe_load(Path(__file__).with_name("every_rule.yaml").read_text())
RELEASED = TINY | {"noise": "secure", "methods": {"ls": TINY["methods"]["ls"]}, "tables": {}, "figures": {}}
BUNDLE = "results/release/digits/cnn/ls/eps=1"
PAPER = {"write_paper": "tables/all.tex", "compile_paper": "tables/all.pdf"}  # made on demand
ELSEWHERE = {"match_public", "sum_statistics", "write_bundle", *PAPER}  # of other settings, and of what is released


def rules() -> list[str]:
    """Every rule of the repository."""
    text = "".join(path.read_text() for path in sorted((ROOT / "workflow" / "rules").glob("*.smk")))
    return re.findall(r"^ *(?:use rule \w+ as|rule) (\w+)(?: with)?:", text, re.MULTILINE)


def test_the_study_has_every_rule(tmp_path):
    study = make_folder(tmp_path / "study")
    study.write_config(EVERY)
    planned = {rule for rule, _ in study.planned()}
    assert planned | ELSEWHERE == set(rules()) and not planned & ELSEWHERE
    assert set(OUTPUTS) == set(rules())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> StudyFolder:
    """The study, complete."""
    study = make_folder(tmp_path_factory.mktemp("every") / "study")
    study.write_config(EVERY)
    result = study.snakemake()
    assert result.returncode == 0, result.stdout + result.stderr
    return study


def check_equal(study: StudyFolder, expected: StudyFolder) -> None:
    """The same files with the same bytes, times that were measured apart, and no half-written one."""
    before, after = as_measured(results_of(expected)), as_measured(results_of(study))
    assert after.keys() == before.keys()
    assert [name for name in before if after[name] != before[name]] == []
    assert temporary_files(study) == []


@pytest.mark.skipif(not ASKED, reason="DPSTUDY_FAULTS=1 asks for it")
@pytest.mark.parametrize("kind", ["job", "snakemake", "everything"])
def test_kills_inside_each_rule_change_no_byte(undisturbed, tmp_path, capsys, kind):
    study, wanted = make_folder(tmp_path / "study"), [rule for rule in OUTPUTS if rule not in ELSEWHERE]
    study.write_config(EVERY)
    hit = kill_inside_each(study, undisturbed, wanted, kind)
    with capsys.disabled():
        print(f"\n{kind} killed inside {len(hit)} of {len(wanted)} rules; not inside {sorted(set(wanted) - set(hit))}")
    assert len(hit) >= len(wanted) - 2  # some are over too soon


@pytest.mark.skipif(not ASKED, reason="DPSTUDY_FAULTS=1 asks for it")
@pytest.mark.parametrize("kind", ["job", "snakemake", "everything"])
def test_kills_inside_rules_of_other_settings_change_no_byte(finished, tmp_path, kind):
    study, wanted = make_folder(tmp_path / "study"), ["match_public", "sum_statistics"]
    assert kill_inside_each(study, finished, wanted, kind) == wanted


def kill_inside_each(study: StudyFolder, expected: StudyFolder, wanted: list[str], kind: str) -> list[str]:
    """Kill a job, Snakemake or everything inside each rule in turn, then let the study end; the rules that were hit."""
    chance, hit = random.Random(5), []
    for rule in wanted:
        longest = work_seconds(expected, rule)
        delays = iter([chance.uniform(0, longest), chance.uniform(0, longest / 4), 0.0, 0.0])
        if any(kill_inside(study, rule, delays, kind) for _ in range(4)):
            hit.append(rule)
    last = Run(study)
    assert last.wait() == 0, last.said()
    check_equal(study, expected)
    return hit


@pytest.mark.skipif(not ASKED, reason="DPSTUDY_FAULTS=1 asks for it")
def test_a_disk_that_fills_again_and_again_changes_no_byte(undisturbed, tmp_path, capsys):
    study, size, failures, rules_hit = make_folder(tmp_path / "study"), 64, 0, set()
    study.write_config(EVERY)
    with small_disk(study.path / "results", f"{size}k"):
        while (run := study.snakemake("--keep-going")).returncode:
            said = run.stdout + run.stderr
            # a disk too small for Snakemake's own records is told by Snakemake
            assert "the disk is full" in said or "No space left on device" in said, said
            assert "Traceback" not in said, said
            rules_hit |= set(re.findall(r"^Error in rule (\w+):", said, re.MULTILINE))
            failures += 1
            size = int(1.15 * size)
            assert size < 1 << 16
            assert mount("-o", f"remount,size={size}k", str(study.path / "results"))
        check_equal(study, undisturbed)
    with capsys.disabled():
        print(f"\n{failures} full disks up to {size} kB, in {len(rules_hit)} rules: {', '.join(sorted(rules_hit))}")
    assert failures >= 10


@pytest.mark.skipif(not ASKED, reason="DPSTUDY_FAULTS=1 asks for it")
def test_a_bundle_that_is_killed_is_made_again_of_the_same_bytes(tmp_path):
    study = make_folder(tmp_path / "study")
    study.write_config(RELEASED)
    assert study.snakemake(BUNDLE).returncode == 0
    whole = {path.name: path.read_bytes() for path in Path(study.path / BUNDLE).rglob("*") if path.is_file()}
    for delay in (0.0, 0.2, 0.6):
        shutil.rmtree(study.path / BUNDLE)
        kill_inside(study, "write_bundle", iter([delay]), "everything", BUNDLE)
        again = Run(study, BUNDLE)
        assert again.wait() == 0, again.said()
        after = {path.name: path.read_bytes() for path in Path(study.path / BUNDLE).rglob("*") if path.is_file()}
        assert after == whole


@pytest.mark.skipif(not ASKED or shutil.which("pdflatex") is None, reason="DPSTUDY_FAULTS=1 asks for it; takes LaTeX")
def test_a_paper_that_is_killed_or_does_not_fit_is_made_again_of_the_same_bytes(finished, tmp_path):
    study, pdf = make_folder(tmp_path / "study"), f"results/{PAPER['compile_paper']}"
    with small_disk(study.path / "results", "64m"):
        shutil.copytree(finished.path / "results", study.path / "results", dirs_exist_ok=True)
        assert study.snakemake(pdf).returncode == 0
        whole = [study.read(name) for name in PAPER.values()]
        for rule, output in PAPER.items():
            for kill in (lambda run, rule=rule: run.kill_job(rule), Run.kill_snakemake, Run.kill_all):
                for path in {
                    study.path / "results" / output,
                    study.path / pdf,
                }:  # nobody misses what made what is there
                    path.unlink()
                run = Run(study, pdf)
                assert run.wait_for(rule)
                kill(run)
                assert run.wait(), run.said()
                again = Run(study, pdf)
                assert again.wait() == 0, again.said()
                assert [study.read(name) for name in PAPER.values()] == whole
            for path in {study.path / "results" / output, study.path / pdf}:
                path.unlink()
            used = shutil.disk_usage(study.path / "results").used
            assert mount("-o", f"remount,size={used + 8192}", str(study.path / "results"))
            full = study.snakemake(pdf)
            assert full.returncode and "the disk is full" in full.stdout + full.stderr, full.stderr
            assert mount("-o", "remount,size=64m", str(study.path / "results"))
            assert study.snakemake(pdf).returncode == 0
            assert [study.read(name) for name in PAPER.values()] == whole
            assert temporary_files(study) == []


@pytest.mark.skipif(not ASKED, reason="DPSTUDY_FAULTS=1 asks for it")
def test_a_pre_training_whose_worker_is_killed_goes_on_to_the_same_bytes(tmp_path):
    config = copy.deepcopy(TINY)
    config["backbones"]["cnn"] |= {"devices": 2, "epochs": 6, "checkpoint_minutes": 0}
    weights, folders = "results/backbones/cnn/model.safetensors", []
    for name in ("whole", "study"):
        folders.append(make_folder(tmp_path / name))
        folders[-1].write_config(config)
    whole, study = folders
    assert Run(whole, weights).wait() == 0
    run = Run(study, weights)
    wait_until((study.path / weights).with_name("checkpoint.safetensors").exists, run)
    _, second = sorted(workers_of(run, "dpstudy.pretraining.rank"), key=lambda process: process.pid)
    second.kill()
    assert run.wait() == 1
    assert "one of the 2 processes that share this job was ended by SIGKILL" in run.said()
    assert not (study.path / weights).exists() and temporary_files(study) == []
    again = Run(study, weights)
    assert again.wait() == 0, again.said()
    assert "goes on after step" in (study.path / "results/logs/pretrain_backbone/cnn.log").read_text()
    assert (study.path / weights).read_bytes() == (whole.path / weights).read_bytes()
