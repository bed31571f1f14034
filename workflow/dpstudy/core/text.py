"""Unicode normalisation of text that looks the same, such as é as one character or as two (in macOS file names)."""

import unicodedata


def composed(text: str) -> str:
    """`text` in Unicode normalisation form C, in which names are compared.

    >>> composed("e\\u0301") == "\\u00e9"
    True
    """
    return unicodedata.normalize("NFC", text)


def visible(text: str) -> str:
    r"""`text` in form C, without surrounding spaces or what nobody sees, such as zero-width marks.

    >>> visible("\ufeff P4\u200b\0 "), visible("a\u00adb\tc")
    ('P4', 'ab\tc')
    """
    if not text.isprintable():
        text = "".join(each for each in text if each.isspace() or unicodedata.category(each) not in ("Cf", "Cc"))
    return composed(text).strip()


def heading(text: str) -> str:
    """A column name as it is compared."""
    return visible(text)
