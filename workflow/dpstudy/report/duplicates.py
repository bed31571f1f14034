"""De-duplication described in words.

How many private records matched is a statistic of them: it is told only on a page that is not for publication.
"""

from collections.abc import Mapping

from dpstudy.dedup.outcome import told
from dpstudy.dedup.rule import SQUARES_THRESHOLD, Rule

_DROPPED = {
    "private": "Private records that match a fixed public set are dropped: a rule per record, which costs no privacy.",
    "public": (
        "Public records that match private ones are dropped, as in the papers: what is pre-trained on the rest then "
        "depends on private records, which no ledger accounts for."
    ),
}


def describe_dedup(drop: str, method: str, rule: Mapping | None = None, counted: Mapping | None = None) -> str:
    """Sentences on which images are dropped, and when two images match.

    Args:
        drop: "private" or "public".
        method: "aligned" or "squares".
        rule: its thresholds where they are not the defaults.
        counted: the report.json of de-duplication, on the owner's own page; None elsewhere.
    """
    sentence = _rule_in_words(drop, method, rule)
    if counted is None:
        return sentence
    counts = "; ".join(told(counted)) or "no image matches"
    return f"{sentence} For the owner alone: {counts}."


def _rule_in_words(drop: str, method: str, rule: Mapping | None) -> str:
    if method == "squares":
        threshold = (rule or {}).get("threshold", SQUARES_THRESHOLD)
        return f"{_DROPPED[drop]} Two images match if small grey squares of them correlate by {threshold:g} or more."
    chosen = Rule(**(rule or {}))
    return (
        f"{_DROPPED[drop]} Two images match if, laid on each other, they correlate by {chosen.threshold:g} or more, or "
        f"by {chosen.possible:g} where they stand out from other images."
    )
