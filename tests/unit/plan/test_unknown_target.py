"""A target that no rule makes is answered with the name in it that the study does not have."""

import pytest

from dpstudy.plan.unknown_target import no_such_target

NAMES = {"data set": ["own"], "feature set": ["pixels"], "entry": [f"e{n}" for n in range(10)], "epsilon": ["1", "2"]}


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("results/cells/owm/pixels/e0/eps=1", "has no data set 'owm' (did you mean 'own'?); it has own"),
        ("results/release/own/pixels/none/eps=1", "has no entry 'none'; it has e0, e1, e2, e3, e4, e5, e6, e7, ..."),
        ("results/audit/own/pixels/e0/eps=3", "has no epsilon '3'; it has 1, 2"),
        ("results/cells/own/pixels/e0/eps=1/else", "a cell's folder is results/cells/DATASET/FEATURES/ENTRY/eps=E"),
        ("results/tables/man.csv", "is called so (did you mean 'results/tables/main.csv'?); another study's results"),
        ("elsewhere", "nothing that mine.yaml makes is called so; another study's results need that study"),
    ],
)
def test_the_name_that_is_wrong_is_said(target, words):
    said = no_such_target(target, "mine.yaml", NAMES, ["results/tables/main.csv"])
    assert said.startswith(f"{target}: ") and words in said and "\n" not in said
