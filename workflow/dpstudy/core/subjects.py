"""Names of subjects (persons), as text; rows that name nobody are refused, since privacy per person relies on names."""

import re
from collections.abc import Callable, Iterable

from dpstudy.core.errors import StudyError
from dpstudy.core.text import composed, visible

# in lower case and without punctuation, so that "N/A", "<NA>" and "n.a." are one; then "unknown" in other languages
_NOBODY = frozenset(
    "na nan nat none null nil blank tbd tba noid noname unknown unk missing undefined notavailable notknown "
    "notapplicable unidentified anonymous nopatient nosubject noperson entfällt other others "
    # what anonymisers write over a name
    "anon anonym anonymized anonymised anonymouspatient anonymizedpatient anonymisedpatient anonpatient patientanon "
    "deidentified deid deidentifiedpatient removed redacted deleted erased masked withheld suppressed "
    "anonymisiert anonymisé anonymisée anonimizado anonimizada anónimo anónima anonimizzato anonimizzata anoniem "
    "geanonimiseerd "
    "nodata notgiven notstated unbekannt inconnu inconnue desconocido desconocida sconosciuto sconosciuta "
    "desconhecido desconhecida onbekend okänd ukendt ukjent tuntematon nieznany nieznana neznámý neznámá ismeretlen "
    "bilinmiyor неизвестно неизвестный неизвестная невідомо άγνωστο 不明 未知 알수없음 미상".split()
)
_ANYBODY = frozenset(
    "patient patients subject person participant proband case name id pat the no".split()
)  # beside these
# missing values' codes: of pandas, what it becomes as an integer of 32 and of 64 bits, and of statistics programs
_CODES = frozenset(("-1", "-2147483648", "-9223372036854775808", "-9", "-99", "-999", "-9999", "-99999"))
_OF_SPREADSHEETS = re.compile(r"#.*[!?]|#N/[AVD]|#NV", re.IGNORECASE)  # #REF!, #NAME?, #WERT! and the like
_CROSSED_OUT = re.compile("x{3,}")
_WHOLE = re.compile(r"(-?[0-9]+)\.0*")
_ROUNDED = re.compile(r"[+-]?[0-9](\.[0-9]+)?[eE]\+[0-9]{2,}")  # how spreadsheets, and floats, write long numbers
EXACT = 2**53  # above it some whole numbers are no 64-bit floats


def name_of(value: object) -> str:
    """The name of a subject as text.

    A whole number is one name, whether a table holds it as integer, float or text; so is a text with accents in either
    form, with or without what nobody sees, and a DICOM name without or with its empty components (PS3.5, 6.2.1).

    >>> [name_of(value) for value in (17, 17.0, "17.0", " 17 ", "007", "P4\u200b", "Doe^J", "Doe ^J^^^=")]
    ['17', '17', '17', '17', '007', 'P4', 'Doe^J', 'Doe^J']
    """
    text = plain(value)
    if "^" not in text:
        return text
    groups = ("^".join(map(str.strip, group.split("^"))).rstrip("^") for group in text.split("="))
    return "=".join(groups).rstrip("=")


def plain(value: object) -> str:
    """A value as it is compared: a whole number in one form, and text without what nobody sees."""
    text = _text(value)
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def names_nobody(text: str) -> bool:
    """Whether a field says that the subject is unknown: no letters or digits, or a code for a missing value.

    >>> [names_nobody(text) for text in ("", " ", "-", "?", "N/A", "<NA>", "NaN", "Unknown", "-1", "0", "P-1", "Nadia")]
    [True, True, True, True, True, True, True, True, True, False, False, False]
    """
    words = re.findall(r"[^\W_]+", composed(text).casefold())
    letters = "".join(words)
    return bool(
        not letters
        or letters in _NOBODY
        or (not _NOBODY.isdisjoint(words) and _NOBODY | _ANYBODY >= {*words})  # Unknown^Patient
        or _CROSSED_OUT.fullmatch(letters)
        or plain(text) in _CODES
        or _OF_SPREADSHEETS.fullmatch(text.strip())
    )


def check_named(values: Iterable, where: Callable[[int], str], column: str = "", exact: int = EXACT) -> None:
    """Refuse rows without a subject's name: they would all be taken for one person.

    Args:
        values: as they were given, before `name_of`.
        where: how a message names a row.
        column: that they stand in, if they stand in one.
        exact: up to which whole numbers are as they were before something made them floats.

    Raises:
        StudyError: with the number of such rows; or a long number was rounded, so that persons may have become one.
    """
    texts = [_text(value) for value in values]
    place = f" in the column {column!r}" if column else ""
    nobody, rounded = (
        [row for row, text in enumerate(texts) if text in wrong]
        for wrong in ({*filter(names_nobody, set(texts))}, {text for text in set(texts) if _is_rounded(text, exact)})
    )
    first = (nobody or rounded or [0])[0]
    if nobody:
        fault = f"names no subject, but {texts[first]!r}{place}" if texts[first] or not column else f"no value{place}"
        advice = "they would count as one person: leave them out, or say whose each is"
        raise StudyError(f"{where(first)}: {fault} ({len(nobody)} of {len(texts)} rows); {advice}")
    if rounded:
        raise StudyError(
            f"{where(first)}: {texts[first]!r}{place} is a long number that was rounded ({len(rounded)} of {len(texts)}"
            " rows), so that several persons may have become one; keep such numbers as text"
        )


def _text(value: object) -> str:
    return visible(value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value))


def _is_rounded(text: str, exact: int) -> bool:
    whole = _WHOLE.fullmatch(text)
    return bool(_ROUNDED.fullmatch(text)) or (whole is not None and abs(float(text)) >= exact)
