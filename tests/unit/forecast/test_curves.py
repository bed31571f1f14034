"""The file of curves: what is written is read, damage is told, and the library's own is whole."""

import dataclasses

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.forecast.curves import CLASSES, ONE, SEVERAL, Point, read, write

POINT = Point("digits", "pixels", 64, CLASSES, 10, 0.1, 100, 1.0, 1e-5, "least_squares", "top1", 40.0, 10.0, 85.0, 3)


def test_what_is_written_is_read(tmp_path):
    other = dataclasses.replace(POINT, n=30, task=ONE)
    write([POINT, other], tmp_path / "curves.csv")
    assert read(tmp_path / "curves.csv") == [POINT, other]


@pytest.mark.parametrize(
    ("value", "best", "share"), [(40.0, 85.0, 0.4), (5.0, 85.0, 0.0), (90.0, 85.0, 1.0), (40.0, 9.0, 0.0)]
)
def test_a_share_is_of_the_gain_over_guessing(value, best, share):
    assert dataclasses.replace(POINT, value=value, best=best).share == pytest.approx(share)


def test_a_missing_or_damaged_file_is_one_sentence(tmp_path):
    with pytest.raises(StudyError, match="no such file; `dpstudy curves` makes it"):
        read(tmp_path / "none.csv")
    write([POINT], path := tmp_path / "curves.csv")
    path.write_text(path.read_text().replace("100", "many"))
    with pytest.raises(StudyError, match="is no file of curves"):
        read(path)


def test_the_library_has_points_of_five_sets_three_tasks_and_all_sizes():
    points = read()
    assert len({point.dataset for point in points}) == 5
    for dataset in {point.dataset for point in points}:
        own = [point for point in points if point.dataset == dataset]
        assert {point.task for point in own} == {CLASSES, ONE, SEVERAL}
        assert {point.method for point in own} == {"least_squares", "feature_covariance", "kernel_mean"}
        assert min(point.n for point in own) == 100 and max(point.n for point in own) >= 5000
        assert {point.epsilon for point in own} == {0.5, 1.0, 2.0, 4.0, 8.0}
    for point in points:
        assert point.delta <= 0.1 / point.n and point.chance < point.best and point.draws >= 3
