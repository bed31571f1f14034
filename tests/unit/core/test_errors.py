"""Whatever a library raises on somebody else's file becomes one sentence."""

import pytest

from dpstudy.core.errors import Mistakes, StudyError, in_a_sentence


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (KeyError("kind"), "the file is damaged (KeyError: 'kind')"),
        (ValueError("first line\nsecond line"), "the file is damaged (ValueError: first line)"),
        (RecursionError(), "the file is damaged (RecursionError)"),
        (ValueError("x" * 1000), f"the file is damaged (ValueError: {'x' * 300})"),
        (StudyError("said already"), "said already"),
    ],
)
def test_any_error_becomes_one_sentence(error, sentence):
    with pytest.raises(StudyError) as caught, in_a_sentence("the file is damaged"):
        raise error
    assert str(caught.value) == sentence


def test_what_is_no_error_of_a_file_is_left_alone():
    with pytest.raises(KeyboardInterrupt), in_a_sentence("the file is damaged"):
        raise KeyboardInterrupt


def test_one_mistake_at_several_keys_is_told_once():
    mistakes = Mistakes()
    for sentence in (
        *(f"tables.{name}.rows[0].entry: unknown entry 'x'; there is: y" for name in "abcdefg"),
        "a sentence: without a key",
        "seeds: must not be empty",
        "epsilons: must not be empty",
        "the same",
        "the same",
        "word",
    ):
        with mistakes.kept():
            raise StudyError(sentence)
    with pytest.raises(StudyError) as caught:
        mistakes.tell()
    assert caught.value.args == (
        "tables.a.rows[0].entry, tables.b.rows[0].entry, tables.c.rows[0].entry, tables.d.rows[0].entry, and 3 more: "
        "unknown entry 'x'; there is: y",
        "a sentence: without a key",
        "seeds, epsilons: must not be empty",
        "the same",
        "word",
    )
