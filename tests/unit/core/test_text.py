"""Names that people read as equal."""

import unicodedata

from dpstudy.core.text import composed, heading


def test_accents_are_one_character():
    for text in ("Pneumonie à gauche", "Ödem", "なし"):
        assert {composed(unicodedata.normalize(form, text)) for form in ("NFC", "NFD")} == {text}


def test_a_heading_has_no_spaces_or_marks_around_it():
    assert [heading(name) for name in (" path ", "\ufeffpath", "path\u200b", "a b", "a\u0308")] == [
        *["path"] * 3,
        "a b",
        "ä",
    ]
