"""Unicode normalisation of text that looks the same, such as é as one character or as two (in macOS file names)."""

import unicodedata


def composed(text: str) -> str:
    """`text` in Unicode normalisation form C, in which names are compared.

    >>> composed("e\\u0301") == "\\u00e9"
    True
    """
    return unicodedata.normalize("NFC", text)


def heading(text: str) -> str:
    """A column name as it is compared: in form C, without surrounding spaces and invisible marks."""
    return composed(text).strip("\ufeff\u200b \t\r\n\xa0")
