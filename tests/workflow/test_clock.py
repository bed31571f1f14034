"""A clock that jumps: files from the future, and outputs that are older than what they were made of."""

import os
import random

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
