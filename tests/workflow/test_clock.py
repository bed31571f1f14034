"""A clock that jumps: files from the future, and outputs that are older than what they were made of."""

import os
import random

from tests.workflow.conftest import TINY, make_folder
from tests.workflow.kills import as_measured, results_of

DAY = 86_400


def shift(study, seconds: float, share: float = 1.0) -> None:
    """As if the clock had been wrong while (a random part of) the results were made."""
    chance = random.Random(0)
    for path in sorted((study.path / "results").rglob("*")):
        if path.is_file() and chance.random() < share:
            moment = path.stat().st_mtime + seconds
            os.utime(path, (moment, moment))


def test_results_from_tomorrow_are_kept_and_a_change_is_seen(study):
    config = (study.path / "config.yaml").read_text()
    (study.path / "config.yaml").write_text(config.replace("learning_rate: 2.0", "learning_rate: 1.5"))
    expected = study.planned()
    assert {rule for rule, _ in expected} >= {"train_stepped"}
    shift(study, DAY)
    assert study.planned() == expected
    (study.path / "config.yaml").write_text(config)
    assert study.planned() == []


def test_a_clock_that_went_back_while_the_study_ran_changes_no_byte(study, finished):
    shift(study, -DAY, share=0.5)
    result = study.snakemake()
    assert result.returncode == 0, result.stderr
    assert as_measured(results_of(study)) == as_measured(results_of(finished))
    assert study.planned() == []


def test_a_clock_that_went_back_six_days_draws_no_secure_noise_until_it_is_set(tmp_path):
    """As if all that a training reads had been made before the clock went back."""
    study, cell = make_folder(tmp_path / "study"), "digits/pixels/sgd/eps=1"
    config = {key: TINY[key] for key in ("study", "datasets")} | {
        "features": {"pixels": {"extractor": "pixels"}},
        "methods": {"sgd": TINY["methods"]["sgd"]},
        "epsilons": ["1"],
        "seeds": [0],
        "noise": "secure",
    }
    study.write_config(config)
    splits = ("train", "test")
    made = study.snakemake(*(f"results/features/digits/pixels/{split}/manifest.json" for split in splits))
    assert made.returncode == 0, made.stderr
    shift(study, 6 * DAY)
    refused = study.snakemake(f"results/cells/{cell}/run.json")
    assert refused.returncode and "which the clock of this machine has not reached; nothing was" in refused.stderr
    assert not (study.path / "results/privacy/spent.jsonl").exists()
    shift(study, -6 * DAY)
    done = study.snakemake(f"results/cells/{cell}/run.json")
    assert done.returncode == 0, done.stderr
    book = study.read("privacy/spent.jsonl")
    shift(study, 6 * DAY)
    (study.path / "results/cells" / cell / "run.json").unlink()
    assert study.snakemake(f"results/cells/{cell}/run.json").returncode, "Snakemake removes outputs of such a clock"
    shift(study, -6 * DAY)
    done = study.snakemake(f"results/cells/{cell}/run.json")
    assert done.returncode == 0, done.stderr
    assert study.read("privacy/spent.jsonl") == book
