"""Reasons why a cell's model may not be released."""

from collections.abc import Mapping, Sequence

from dpstudy.config.tuned import PAID
from dpstudy.privacy.printed import upper_bound

NOT_FOR_RELEASE = "cell {}: not for release: {}"
BROUGHT = "its features were brought, so that nobody could make them of new images"


def refusals(
    ledger: Mapping,
    tuned_on: str,
    unmatched: Sequence[str],
    accept: Sequence[str] = (),
    audit: Mapping | None = None,
    chosen: Sequence[str] = (),
    planted: Sequence[str] = (),
    errata: Sequence[str] = (),
) -> list[str]:
    """The reasons against publishing a cell's model, a sentence each; empty where it may be published.

    Args:
        ledger: of the cell.
        tuned_on: what its hyper-parameters were chosen on, "nothing" where they were not.
        unmatched: public sets or weights that made its features, or its start, and were never compared with the private
            records.
        accept: what the data owner answers for: "tuning" that was not paid for, "unmatched" public data that holds no
            private record, "drop_public" of a public set that was chosen by private records, "errata" that do not
            concern these records. Planted copies are not to be accepted: they are private records.
        audit: of the cell, where it was attacked.
        errata: what an earlier version may have stated falsely in the ledger (cell/errata.py).
        chosen, planted: of the public sets that made its features, or its start, those without the images that matched
            private records, and those that hold copies of private records.
    """
    reasons = []
    if ledger["noise"] != "secure":
        reasons.append("its noise is seeded, and can be drawn again by whoever has the config: set noise: secure")
    if ledger["guarantee"] != "proved":
        reasons.append(f"its guarantee is {ledger['guarantee']!r}, not proved")
    if ledger["delta"] * ledger["n"] >= 1:
        reasons.append(
            f"delta {upper_bound(ledger['delta'])} is not below 1/n = 1/{ledger['n']}: that permits publishing "
            "somebody's records outright"
        )
    if tuned_on not in ("nothing", PAID) and "tuning" not in accept:
        reasons.append(
            f"its hyper-parameters were chosen beforehand (tuned on: {tuned_on}), which was not paid for: where no "
            "private record had a part in that, write release: {accept: [tuning]}; the statement will name it"
        )
    if "unmatched" not in accept:
        reasons += [
            f"{name!r}, which made its features or its start, was never compared with the private records: where none "
            "of them can be in what it was trained on, write release: {accept: [unmatched]}; the statement will name it"
            for name in unmatched
        ]
    if "drop_public" not in accept:
        reasons += [
            f"the images of {name!r}, which made its features or its start, were chosen by comparing them with private "
            "records, which was not paid for: set dedup: {drop: private}, or where that may be known write release: "
            "{accept: [drop_public]}; the statement will name it"
            for name in chosen
        ]
    reasons += [
        f"copies of private records were planted in {name!r}, which made its features or its start: leave `plant` out"
        for name in planted
    ]
    if "errata" not in accept:
        reasons += [
            f"{sentence}; where that is not so of these records, write release: {{accept: [errata]}}; the statement "
            "will name it"
            for sentence in errata
        ]
    if audit and audit["verdict"].startswith("refuted"):
        reasons.append(f"an attack refutes its guarantee ({audit['verdict']})")
    return reasons
