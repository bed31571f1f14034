"""Verdicts on the claims of a paper, with the numbers behind them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import isfunction
from types import ModuleType
from typing import Any

from dpstudy.core.errors import StudyError
from dpstudy.tables.claims import (
    anon_smoothing_experiments,
    anon_smoothing_privacy,
    comparing,
    de2022_accuracy,
    de2022_privacy,
    de2022_schedule,
    de2022_techniques,
    gather,
    mehta2023_accuracy,
    mehta2023_settings,
    tramer2021_accuracy,
    tramer2021_settings,
)
from dpstudy.tables.claims.finding import FAILS, HOLDS, OPEN, TOLERATED, Finding, noted
from dpstudy.tables.claims.names import ROLES
from dpstudy.tables.claims.scores import Evidence
from dpstudy.tables.published import claims_of
from dpstudy.tables.results import Results

PAPERS: dict[str, tuple[ModuleType, ...]] = {  # whose functions judge
    "mehta2023": (mehta2023_accuracy, mehta2023_settings),
    "tramer2021": (tramer2021_accuracy, tramer2021_settings),
    "de2022": (de2022_accuracy, de2022_privacy, de2022_schedule, de2022_techniques),
    "anon_smoothing": (anon_smoothing_experiments, anon_smoothing_privacy),
}
_PRINTED_NOTES = {
    "mehta2023": "Printed numbers have no seeds: they contradict a claim, but confirm only what is said of the tables "
    "themselves. Cells printed as at most 20 % count, but no difference is formed with them.",
    "tramer2021": "Printed numbers contradict a claim, but confirm only what is said of the tables themselves; their ± "
    "counts as that of five runs. A claim about three data sets is judged on those that this study has. What a claim "
    "leaves open (close, similar, stable) is given a number beside its verdict.",
    "de2022": "Printed numbers contradict a claim, but confirm only what is said of the tables themselves; their "
    "standard deviation counts as that of five runs. Accuracy on training records is private: what is said of it "
    "counts where a study measures it all the same. What a claim leaves open (small, about) is given a number beside "
    "its verdict.",
    "anon_smoothing": "Printed numbers have no seeds: they contradict a claim, but confirm only what is said of the "
    "tables themselves. Smoothing stands at the ε that it claims and nothing proves, so that beside DP-SGD and kernel "
    "means, whose ε is proved, its accuracy is not that of equal privacy. Each backbone on a data set counts as one of "
    "its own. What a claim leaves open (narrow, similar) is given a number beside its verdict.",
}

Judged = list[tuple[dict[str, Any], Finding]]  # entries of claims


def judge_study(name: str, spec: dict, results: Results) -> Judged:
    """(claim, finding) for the claims of a table's paper (of its `sections`, or all), by a study's results."""
    return judge(spec["paper"], gather.gather(name, spec, results), spec.get("sections"))


def judge(paper: str, evidence: Evidence, sections: Sequence[str] | None = None) -> Judged:
    """(claim, finding) for the claims of a paper in workflow/published/claims/, in order.

    Raises:
        StudyError: a claim whose entry does not say how it is judged, and that no function judges.
    """
    findings = [(row, _judge_of(paper, name, row)(evidence)) for name, row in chosen(paper, sections).items()]
    left_out = ". ".join(evidence.left_out)  # where other cells decide, these are not missed
    return [(row, noted(one, here=left_out) if one.verdict == OPEN else one) for row, one in findings]


def chosen(paper: str, sections: Sequence[str] | None) -> dict[str, dict]:
    """Claim id -> entry, of the claims in some sections or with some ids; of all for None."""
    claims = claims_of(paper).items()
    return {name: row for name, row in claims if sections is None or name in sections or row["section"] in sections}


def judges(paper: str) -> dict[str, Callable[[Any], Finding]]:
    """Claim id -> the function that judges the claim, for every claim of a paper.

    Raises:
        StudyError: nothing does, or several do.
    """
    return {name: _judge_of(paper, name, row) for name, row in claims_of(paper).items()}


def _judge_of(paper: str, claim: str, row: dict) -> Callable[[Any], Finding]:
    name = claim.replace("-", "_")
    candidates = {vars(module)[name] for module in PAPERS[paper] if name in vars(module)}  # one may use another's
    if {"compare", "computed", "open"} & set(row):
        printed, functions = gather.PAPERS.get(paper), _functions(paper)
        comparing.check(claim, row, paper, (*ROLES[paper], *printed.cited) if printed else (), functions)
        candidates.add(partial(comparing.finding, row, printed, functions=functions))
    if len(candidates) != 1:
        raise StudyError(
            f"{paper}.yaml: {len(candidates)} judges of the claim {claim!r}; each needs one: `compare`, `computed` or "
            f"`open` in its entry, or a function of the name {name} in a module of dpstudy.tables.claims that "
            "`judge.PAPERS` has"
        )
    return candidates.pop()


def _functions(paper: str) -> dict[str, Callable[..., Any]]:
    """Name -> function of those in a paper's modules that its entries may name."""
    return {
        name: one
        for module in PAPERS[paper]
        for name, one in vars(module).items()
        if isfunction(one) and one.__module__ == module.__name__ and not name.startswith("_")
    }


def claims_rows(judged: Judged) -> tuple[tuple[str, ...], ...]:
    """Table rows of each claim: claim, verdict, what the printed numbers say, what the study's cells say."""
    return tuple((printed_claim(row), _verdict(one), _stopped(one.printed), _stopped(one.here)) for row, one in judged)


def claims_notes(paper: str, judged: Judged) -> tuple[str, ...]:
    """Sentences on how many claims hold, and how they were judged."""
    counts = ", ".join(
        f"{sum(finding.verdict == verdict for _, finding in judged)} {text}"
        for verdict, text in ((HOLDS, "hold"), (FAILS, "do not hold"), (OPEN, "cannot be decided here"))
    )
    return (
        f"Of {len(judged)} claims {counts}.",
        "A difference counts for or against a claim if it exceeds two standard errors over seeds, else it is a tie; "
        "± is two standard errors of the mean difference; with one seed all are ties. A claim fails if more than "
        f"{TOLERATED:.0%} of its comparisons contradict it, else holds if more than {TOLERATED:.0%} support it. Where "
        "noise leaves that undecided, it fails if their mean difference, and three standard errors, are less than half "
        "of the least difference that the paper prints.",
        _PRINTED_NOTES[paper],
    )


def _verdict(found: Finding) -> str:
    return f"{found.verdict} ({found.decided_by})" if found.decided_by else found.verdict


def printed_claim(row: Mapping[str, str]) -> str:
    """A claim in our words, with its section."""
    return f"{_stopped(row['claim'])} ({row['section']})"


def _stopped(text: str) -> str:
    return text if not text or text.endswith(".") else f"{text}."
