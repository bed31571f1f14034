"""The figure of a forecast is drawn, and looks at what it should."""

import pytest
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.forecast import drawing
from dpstudy.forecast.curves import ONE, read
from dpstudy.forecast.decide import Plan, Useful
from dpstudy.forecast.model import Forecast, Question, signal_of

PLAN = Plan(300, (1.0, 8.0), 1e-4, scale=0.5)
QUESTION = Question("least_squares", ONE, 2, 0.1, 300, 0.0, 0.85)


@pytest.mark.parametrize("useful", [Useful("auc", 0.75, 0.5, 1.0, 0.85), Useful("auc", float("nan"), 0.5, 1.0)])
def test_a_file_of_each_kind_is_written(tmp_path, useful):
    forecast = Forecast("least_squares", ONE, read())
    for suffix in drawing.SUFFIXES:
        drawing.draw(str(tmp_path / f"plan{suffix}"), "least_squares", forecast, QUESTION, useful, PLAN)
        assert (tmp_path / f"plan{suffix}").stat().st_size > 3000
    assert Image.open(tmp_path / "plan.png").size == (840, 600)
    with pytest.raises(StudyError, match=r"must end in \.png, \.pdf, \.svg"):
        drawing.draw(str(tmp_path / "plan.txt"), "least_squares", forecast, QUESTION, useful, PLAN)


def test_what_is_drawn_is_what_the_plan_says():
    forecast, useful = Forecast("least_squares", ONE, read()), Useful("auc", 0.75, 0.5, 1.0, 0.85)
    low, middle, high = drawing._at(300, 8.0, forecast, QUESTION, useful, PLAN)
    asked = Question("least_squares", ONE, 2, 0.1, 300, 0.5 * signal_of(300, 8.0, 1e-4), 0.85)
    assert (low, middle, high) == pytest.approx([0.5 + 0.35 * share for share in forecast.share(asked)])
    shares = drawing._at(300, 8.0, forecast, QUESTION, Useful("auc", 0.75, 0.5, 1.0), PLAN)
    assert shares == pytest.approx(forecast.share(asked))
