"""Names that people read as equal."""

import unicodedata

from dpstudy.core.text import composed, heading, visible


def test_accents_are_one_character():
    for text in ("Pneumonie à gauche", "Ödem", "なし"):
        assert {composed(unicodedata.normalize(form, text)) for form in ("NFC", "NFD")} == {text}


def test_what_nobody_sees_is_no_part_of_a_text():
    """A joiner within, a mark of direction, a NUL that pads; a tab within is seen."""
    for text in ("P\u200d4", "P4\u200e", "\u2060P4", "P4\0\0", "\xa0P4\u3000", "P\xad4\r\n", "P4"):
        assert visible(text) == "P4"
    assert visible("P 4") == "P 4" and visible("P\t4") == "P\t4" and visible("A\u200b\u030a") == "Å"


def test_a_heading_has_no_spaces_or_marks_around_it():
    assert [heading(name) for name in (" path ", "\ufeffpath", "path\u200b", "a b", "a\u0308")] == [
        *["path"] * 3,
        "a b",
        "ä",
    ]
