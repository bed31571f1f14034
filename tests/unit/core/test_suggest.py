"""A name that does not exist is answered with the one that was meant."""

import pytest

from dpstudy.core.suggest import neighbour, suggestion


@pytest.mark.parametrize(
    ("name", "meant"),
    [("epsilon", "epsilons"), ("DELTA", "delta"), ("seed", "seeds"), ("completely-else", None), (7, "77"), ("", None)],
)
def test_the_close_name_is_suggested_and_no_far_one(name, meant):
    expected = f" (did you mean {meant!r}?)" if meant else ""
    assert suggestion(name, ["epsilons", "delta", "seeds", "77"]) == expected


def test_upper_and_lower_case_come_before_spelling():
    assert suggestion("ILL", ["ill", "ILLS"]) == " (did you mean 'ill'?)"


def test_a_file_beside_it_is_suggested(tmp_path):
    (tmp_path / "hospitals").mkdir()
    assert neighbour(tmp_path / "hospital") == " (did you mean 'hospitals'?)"
    assert neighbour(tmp_path / "xrays") == "" and neighbour(tmp_path / "none" / "hospital") == ""
