"""The privacy statement of a release, in plain words, in the spirit of NIST SP 800-226.

Who is protected, how well and by what, and what is left out.
"""

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal

from dpstudy.privacy.audit import CALIBRATED, OF_MODEL, highest
from dpstudy.privacy.printed import lower_bound, upper_bound
from dpstudy.tables.words import (
    bounds_in_words,
    bounds_on_epsilon,
    caught_in_words,
    event_in_words,
    replay_in_words,
)

_UNIT = {"record": "one record (an image)", "subject": "one person with all of that person's records"}
_NUMBER = (
    "The number of {many} that are learned from, {n}, and of each of their splits, those included that may have been "
    "left out as copies of public images: it is exact, and counts as public."
)
_MANY = {"record": "records", "subject": "persons"}
NOTHING_LEFT_OUT = "Nothing is known to be left out of the list above."
_SEVERAL_OF_ONE = (
    "Persons as such: what is promised holds for each image by itself. Who has several, or one that stands in the "
    "data twice, is protected less, at k images with kε and a larger δ."
)
OTHERS = "Other models of the same records spend privacy of their own; it adds up."
_CHOICE = (
    "How this model was chosen: if several were trained on these records and it was taken for its scores on them, that "
    "choice depends on private records too. So do settings that somebody learned from them beforehand."
)
_CHANGE = {
    "add-remove-one": "adding or removing {unit}",
    "replace-one": "replacing {unit}",
    "zero-out": "leaving the place of {unit} empty, so that it contributes nothing,",
}


def statement(
    ledger: Mapping,
    name: str,
    bounds: Mapping[str, float | None],
    audit: Mapping | None = None,
    errata: Sequence[str] = (),
    replay: Mapping | None = None,
) -> str:
    """The statement as Markdown.

    Args:
        ledger: of the cell.
        name: what the model is called.
        bounds: on epsilon, by accountants that had no part in the training.
        audit: of the cell, where it was attacked.
        errata: what the ledger may state falsely.
        replay: of the training, as a certificate has it.
    """
    percent = _percent(ledger)
    lines = [
        f"# Privacy statement: {name}",
        "",
        "This model was trained on private records with differential privacy.",
        "",
        *guarantee_lines(ledger),
        "- **In plain words**: let a coin decide whether somebody's records are used. Whoever then guesses from this "
        f"model which way it fell, and knows all other records, is right at most {percent} % of the time; without the "
        "model, 50 %.",
        *([f"- **If suspected**: {caught_in_words(ledger['trade_off'])}"] if "trade_off" in ledger else []),
        f"- **Computed by** {ledger['accountant']} from the list of releases below, and again by accountants that had "
        f"no part in the training: {bounds_on_epsilon(bounds)}. Each is an upper bound.",
        *([f"- **Replayed**: {replay_in_words(replay)}"] if replay else []),
        f"- **Noise**: from the operating system's entropy ({ledger['noise']}).",
        f"- **Scope**: {ledger['scope']}. {OTHERS}",
        "",
        "## What was released of the private records",
        "",
        *(f"- {event_in_words(event)}" for event in ledger["events"]),
        "",
        "## What this statement does not cover",
        "",
        *(f"- **Erratum**: an earlier version of dpstudy wrote this ledger; {sentence}." for sentence in errata),
        *(
            f"- {sentence}"
            for sentence in [*([] if ledger["not_accounted"] else [NOTHING_LEFT_OUT]), *not_covered(ledger)]
        ),
        "",
        "## Attacked",
        "",
        _attacked(audit),
        "",
    ]
    return "\n".join(lines)


def not_covered(ledger: Mapping) -> list[str]:
    """What the guarantee does not cover, in one or two sentences each."""
    return [
        *ledger["not_accounted"],
        _NUMBER.format(many=_MANY[ledger["unit"]], n=ledger["n"]),
        *([_SEVERAL_OF_ONE] if ledger["unit"] == "record" else []),
        _CHOICE,
        *([] if "version" in ledger else ["Rounding inside floating-point sums of records."]),
        "What follows from the population as a whole: such a model may reveal that a group is at risk, whether or "
        "not somebody of it took part.",
    ]


def guarantee_lines(ledger: Mapping) -> list[str]:
    """The lines that state the guarantee wherever it is quoted: who is protected, what counts, the promise."""
    unit, epsilon = _UNIT[ledger["unit"]], ledger["epsilon"]
    change = _CHANGE[ledger["adjacency"]].format(unit=unit)
    return [
        f"- **Who is protected**: {unit}, among {ledger['n']} that were learned from.",
        *(f"- **What counts**: {sentence}" for sentence in bounds_in_words(ledger.get("bounds", {}))),
        f"- **The promise**: {change} changes the probability of any outcome of the training (this model, or anything "
        f"computed from it) by a factor of at most e^ε = {_factor(epsilon)}, apart from a probability δ = "
        f"{upper_bound(ledger['delta'])}. ε = {upper_bound(epsilon)}.",
    ]


def _attacked(audit: Mapping | None) -> str:
    lower = highest(audit["audits"]) if audit else None
    if audit is None or lower is None:
        return "This cell was not attacked."
    first = audit["audits"][0]
    seen = "the published model alone" if first["statistic"].startswith(OF_MODEL) else "the training's own releases"
    runs, one = first["runs"], first.get("bound") == "one-run"
    played = f"one run with {runs} canaries" if one else f"{runs} runs with a canary and as many without it"
    but = f"; {CALIBRATED}" if first["statistic"].endswith(CALIBRATED) else ""
    return (
        f"Attacks on {seen} show that ε is at least {lower_bound(lower, places=2)} ({played}{but}): {audit['verdict']}"
    )


def _factor(epsilon: float) -> str:
    """e^epsilon, rounded up to two decimals, or to six figures where these are more."""
    factor = Decimal(epsilon).exp()  # to 28 figures; of math.exp the last might be too small
    unit = Decimal(1).scaleb(max(-2, factor.adjusted() - 5))
    text = f"{factor.quantize(unit, ROUND_CEILING):g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def _percent(ledger: Mapping) -> str:
    """How often a guess between two equally likely neighbours can be right, rounded up: by the trade-off curve, or
    (e^eps + delta)/(1 + e^eps), where an earlier version wrote none."""
    odds = Decimal(min(ledger["epsilon"], 700.0)).exp()
    share = min(Decimal(1), (odds + Decimal(ledger["delta"])) / (1 + odds))
    if "trade_off" in ledger:
        share = min(share, Decimal(ledger["trade_off"]["right"]))
    return f"{(100 * share).quantize(Decimal('0.1'), ROUND_CEILING).normalize():f}"
