"""The history of a search survives kills: the same trials come out, in whatever pieces they were made."""

import math

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.tuning.history import History
from dpstudy.tuning.trials import Trial

SPACE = {
    "rate": {"low": 1e-8, "high": 1e8, "log": True, "integer": False},
    "loss": {"choices": ["softmax", "sigmoid"]},
    "steps": {"low": 1, "high": 30, "log": False, "integer": True},
}


def value(tried):
    return 50 - abs(math.log10(tried["rate"]) - 2) + 5 * (tried["loss"] == "sigmoid") + 0.1 * tried["steps"]


def search(path, trials, seed=0, space=SPACE):
    history = History(path, space, seed)
    while len(history.trials) < trials:
        tried = history.suggest()
        history.add(Trial(tried, value(tried), 0.25, "odd" if tried["steps"] == 1 else None))
    return history.trials


def test_a_search_in_pieces_is_the_search_in_one(tmp_path):
    whole = search(tmp_path / "whole.log", 30)
    assert [trial.value for trial in whole] == [value(trial.hyperparameters) for trial in whole]
    for until in (1, 2, 11, 12, 25, 30):
        pieces = search(tmp_path / "pieces.log", until)
        assert pieces == whole[:until]


def test_a_suggestion_that_was_never_finished_comes_again(tmp_path):
    first = History(tmp_path / "j.log", SPACE, 0)
    for _ in range(14):
        tried = first.suggest()
        first.add(Trial(tried, value(tried), 0.0))
    tried = first.suggest()
    assert History(tmp_path / "j.log", SPACE, 0).suggest() == tried


@pytest.mark.parametrize("cut", [1, 5, 60])
def test_a_line_that_a_kill_cut_is_dropped(tmp_path, cut):
    whole = search(tmp_path / "j.log", 15)
    content = (tmp_path / "j.log").read_bytes()
    (tmp_path / "j.log").write_bytes(content[:-cut])
    assert History(tmp_path / "j.log", SPACE, 0).trials == whole[:14]
    assert search(tmp_path / "j.log", 15) == whole


def test_a_damaged_journal_is_named(tmp_path):
    search(tmp_path / "j.log", 3)
    lines = (tmp_path / "j.log").read_bytes().splitlines(keepends=True)
    (tmp_path / "j.log").write_bytes(b"".join([*lines[:2], b"{ not json\n", *lines[2:]]))
    with pytest.raises(StudyError, match="j.log: damaged; delete it"):
        History(tmp_path / "j.log", SPACE, 0)


def test_seeds_differ_and_the_order_of_the_space_does_not_matter(tmp_path):
    one = search(tmp_path / "1.log", 15, seed=1)
    assert search(tmp_path / "2.log", 15, seed=2) != one
    turned = search(tmp_path / "3.log", 15, seed=1, space=dict(reversed(SPACE.items())))
    assert turned == one


def test_the_journal_is_private(tmp_path):
    search(tmp_path / "new" / "j.log", 2)
    assert (tmp_path / "new" / "j.log").stat().st_mode & 0o777 == 0o600


def test_the_sampler_learns(tmp_path):
    values = [trial.value for trial in search(tmp_path / "j.log", 60)]
    assert sum(values[40:]) / 20 > sum(values[:10]) / 10 + 2
    assert max(values) > 55
