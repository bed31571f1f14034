"""Text that people read as equal: é is one character, or an e and an accent (as macOS writes file names)."""

import unicodedata


def composed(text: str) -> str:
    """`text` in Unicode's form NFC, in which names are compared.

    >>> composed("e\\u0301") == "\\u00e9"
    True
    """
    return unicodedata.normalize("NFC", text)


def heading(text: str) -> str:
    """A column's name as it is compared: composed, without the spaces and invisible marks around it."""
    return composed(text).strip("\ufeff\u200b \t\r\n\xa0")
