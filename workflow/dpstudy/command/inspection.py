"""`dpstudy inspect`: a ledger's guarantee in words, with its epsilon computed again."""

from pathlib import Path

from dpstudy.cell.errata import errata
from dpstudy.core.errors import StudyError, in_a_sentence
from dpstudy.core.files import read_json
from dpstudy.plan.paths import TOTAL
from dpstudy.privacy.certificate import recertify
from dpstudy.release.statement import NOTHING_LEFT_OUT, guarantee_lines, not_covered
from dpstudy.schema.reading import check
from dpstudy.tables.words import bounds_on_epsilon, event_in_words

_NONE = {
    "none": "There is no guarantee.",
    "claimed": "A guarantee is claimed by this method's authors, and nobody proved it.",
}
_COMPUTED = "- **Computed by** {}; by accountants that had no part in the training: {}. Each is an upper bound."
_TOTAL = f"{TOTAL} says what is spent in all; a ledger.json, or a bundle, is what is inspected here"
_NOISE = {
    "seeded": "from a seeded generator: for research, and not for release",
    "secure": "from the operating system's entropy",
}


def inspected(path: str) -> list[str]:
    """Lines of Markdown about the ledger of a bundle, or about a ledger.json.

    Raises:
        StudyError: it is not there, damaged, or no ledger; or its epsilon is not what its releases are worth.
    """
    file = Path(path, "ledger.json") if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise StudyError(
            f"{path}: " + ("no bundle and no ledger.json" if Path(path).exists() else "no such folder or file")
        )
    if file.suffix == ".jsonl":
        raise StudyError(f"{file}: is a book of what was spent, a line a training; leave it where it is. {_TOTAL}")
    ledger = read_json(file)
    if "datasets" in ledger and "guarantee" not in ledger:
        raise StudyError(f"{file}: is no ledger of one model. {_TOTAL}")
    with in_a_sentence(f"{file}: is no ledger of dpstudy"):
        if "version" in ledger:
            check(ledger, "ledger", str(file))
        return _lines(ledger, str(file))


def _lines(ledger: dict, name: str) -> list[str]:
    promised, verified = ledger["guarantee"] == "proved", recertify(ledger)
    if verified["faults"]:
        raise StudyError(f"{name}: does not stand: {'; '.join(verified['faults'])}. Take it from its owner again")
    return [
        f"# {name}",
        "",
        *(guarantee_lines(ledger) if promised else [_NONE[ledger["guarantee"]]]),
        *([_COMPUTED.format(ledger["accountant"], bounds_on_epsilon(verified["bounds"]))] if promised else []),
        f"- **Noise**: {_NOISE[ledger['noise']]}.",
        f"- **Scope**: {ledger['scope']}. Other models of the same records spend privacy of their own; it adds up.",
        "",
        "## What was released of the private records",
        "",
        *([f"- {event_in_words(event)}" for event in ledger["events"]] or ["Nothing under noise."]),
        "",
        "## What this does not cover",
        "",
        *(f"- **Erratum**: an earlier version of dpstudy wrote this ledger; {each}." for each in errata(ledger)),
        *([] if ledger["not_accounted"] else [f"- {NOTHING_LEFT_OUT}"]),
        *(f"- {sentence}" for sentence in (not_covered(ledger) if promised else ledger["not_accounted"])),
    ]
