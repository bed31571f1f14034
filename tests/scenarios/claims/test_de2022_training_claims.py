"""What de2022 says of accuracies on training records, judged where a study measures them."""

import dataclasses

import pytest

from dpstudy.tables.claims.de2022_techniques import copies, setting
from dpstudy.tables.claims.finding import CELLS, FAILS, HOLDS
from tests.scenarios.claims.agreeing_de2022 import FUNCTIONS, as_the_paper_says, evidence

BATCHES = "larger-batches"
COPIES = "more-copies"
PLAIN = "plain-descent"
NOISE = "noise-at-the-optimum"


def ahead_by(points):
    """Cells as the paper says, each seed `points(run)` better on training records than on test records."""

    def with_seeds(run):
        mean = run.accuracy.mean
        rows = [{"top1": mean + d, "train_top1": mean + d + points(run)} for d in (-0.05, 0.0, 0.05)]
        return dataclasses.replace(run, metrics={**run.metrics, "seeds": rows})

    scores = as_the_paper_says()
    return dataclasses.replace(scores, runs=[with_seeds(run) for run in scores.runs])


def judged(claim, points):
    found = FUNCTIONS[claim](evidence(ahead_by(points)))
    return found.verdict, found.decided_by, found.here


@pytest.mark.parametrize(
    ("claim", "agreeing", "contrary", "text"),
    [
        (
            BATCHES,
            lambda run: (setting(run, "batch_size") or 0) / 1000,
            lambda run: -(setting(run, "batch_size") or 0) / 1000,
            "What training records are ahead of test records, largest over smallest",
        ),
        (
            COPIES,
            lambda run: 1.0,
            lambda run: 9.0 if copies(run) == 1 else 1.0,
            "No augmentation over K = 1, on training records",
        ),
        (
            NOISE,
            lambda run: 1.0,
            lambda run: 9.0 if setting(run, "noise_multiplier") == 6.0 else 1.0,
            "The same on training records, over the most",
        ),
        (
            PLAIN,
            lambda run: 1.0,
            lambda run: 9.0 if run.role == "regularised" else 1.0,
            "Without weight decay over with it, on training records",
        ),
    ],
)
def test_they_count_where_all_cells_have_them(claim, agreeing, contrary, text):
    verdict, by, here = judged(claim, agreeing)
    assert (verdict, by) == (HOLDS, CELLS) and text in here
    verdict, by, here = judged(claim, contrary)
    assert (verdict, by) == (FAILS, CELLS) and text in here


@pytest.mark.parametrize("claim", [BATCHES, COPIES, NOISE, PLAIN])
def test_without_them_nothing_is_said_of_them(claim):
    found = FUNCTIONS[claim](evidence(as_the_paper_says()))
    assert (found.verdict, found.decided_by) == (HOLDS, CELLS) and "training records" not in found.here
