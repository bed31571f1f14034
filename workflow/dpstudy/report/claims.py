"""Verdicts on a paper's claims: by the study's cells where they match the paper's, else by the printed numbers."""

from collections.abc import Mapping

from dpstudy.tables.claims.finding import FAILS, HOLDS, OPEN
from dpstudy.tables.claims.judge import claims_notes, claims_rows, judge_study
from dpstudy.tables.results import Results

REFERENCES = {  # authors, title, where: what to cite, by the paper's name in workflow/published
    "mehta2023": (
        "H. Mehta, W. Krichene, A. Thakurta, A. Kurakin and A. Cutkosky",
        "Differentially Private Image Classification from Features",
        "2022, arXiv:2211.13403",
    ),
    "de2022": (
        "S. De, L. Berrada, J. Hayes, S. L. Smith and B. Balle",
        "Unlocking High-Accuracy Differentially Private Image Classification through Scale",
        "2022, arXiv:2204.13650",
    ),
    "tramer2021": (
        "F. Tramèr and D. Boneh",
        "Differentially Private Learning Needs Better Features (or Much More Data)",
        "ICLR 2021, arXiv:2011.11660",
    ),
    "anon_smoothing": (
        "Anonymous authors",
        "Enhancing Privacy and Utility in Differentially Private Deep Learning through Instance-Level Smoothing",
        "under review",
    ),
}
# A table in which no cell stands for any of a paper's experiments.
_ALONE = {"style": "claims", "roles": {}, "methods": {}, "datasets": []}
NOTHING = Results({"datasets": [], "features": [], "entries": [], "epsilons": []}, [], {}, {})


def judge_paper(paper: str, name: str = "", spec: Mapping | None = None, results: Results = NOTHING) -> dict:
    """The verdict on every claim of a paper.

    Args:
        paper: as workflow/published names it.
        name, spec: of the config's table of style `claims` for this paper, which says what cells stand for which of its
            experiments; its `sections` are no bound here. None: no cell does.
        results: of the study, where there is such a table.

    Returns:
        {"paper", "table" (its name or ""), "counts" (verdict -> number), "rows" ([verdict, claim, verdict with what
        decided it, what the printed numbers say, what the cells say]), "notes" (sentences)}.

    Raises:
        StudyError: as `judge_study`.
    """
    chosen = {key: value for key, value in (spec or _ALONE | {"paper": paper}).items() if key != "sections"}
    judged = judge_study(name or "claims", chosen, results)
    counts = {verdict: sum(one.verdict == verdict for _, one in judged) for verdict in (HOLDS, FAILS, OPEN)}
    rows = [[one.verdict, *row] for row, (_, one) in zip(claims_rows(judged), judged, strict=True)]
    return {"paper": paper, "table": name, "counts": counts, "rows": rows, "notes": list(claims_notes(paper, judged))}


def describe_verdict(found: Mapping) -> dict:
    """The verdicts of a paper for the page.

    `rows` have {"verdict" (holds, fails or open), "texts"}; `beside`: whether cells of the study stand beside the
    paper, and `reference`: what to cite.
    """
    marks = {HOLDS: "holds", FAILS: "fails"}
    rows = [{"verdict": marks.get(verdict, "open"), "texts": texts} for verdict, *texts in found["rows"]]
    return {**found, "rows": rows, "beside": bool(found["table"]), "reference": ", ".join(REFERENCES[found["paper"]])}
