"""A table of a paper's claims, with verdicts and the numbers behind them."""

import itertools
from collections.abc import Mapping

from dpstudy.core.errors import StudyError
from dpstudy.schema.messages import check_known
from dpstudy.tables.checks import check_searches
from dpstudy.tables.claims.names import METHODS, MODELS, ROLES, entries_of, roles_of
from dpstudy.tables.keys import COUNTERPARTS, NAMES, ONE_OR_MORE, PAPER, SEARCHES, TEXT, by_name, mapping, several
from dpstudy.tables.published import claims_of
from dpstudy.tables.results import Results
from dpstudy.tables.selecting import Pattern, like, listed, named, searched
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.style import Printed, Study, TableStyle

CSV_HEADER = ("paper", "section", "claim", "verdict", "decided_by", "printed", "here")
_HEADER = ("Claim", "Verdict", "The paper's numbers", "This study's cells")
_COLUMNS = "".join(rf"p{{{width}\linewidth}}" for width in (0.24, 0.10, 0.32, 0.27))
# Key -> the papers that have such a thing.
_PAPERS_OF = {"roles": tuple(ROLES), "searches": ("tramer2021",)}
_PAPERS_OF |= dict.fromkeys(("methods", "pretraining", "resolutions"), ("mehta2023",))
_ANY_METRIC = ("anon_smoothing",)
_PLACE = mapping(("features", "entry"), features=TEXT, entry=TEXT)
_ROLES = by_name(
    by_name({"anyOf": [_PLACE, several(_PLACE)]}),
    "What is what in the experiments of a paper but mehta2023, {data set: {role: {features, entry}, or a list}}. The "
    "roles stand in workflow/dpstudy/tables/claims/names.py; a claim whose roles have no cells stays open. Of a list "
    "the best counts, but for roles that compare the entries of their list, such as cnn-batches, which runs from the "
    "smallest to the largest. For anon_smoothing, which compares backbones, each feature set of a data set stands for"
    " one, from the smallest to the largest.",
)
_METHODS = by_name(
    {"anyOf": [ONE_OR_MORE, by_name(ONE_OR_MORE)]},
    "What mehta2023's methods are called here: {method: entry, or {epochs: entry}}. Of a list of entries the best "
    "counts.",
)
_PRETRAINING = by_name(
    ONE_OR_MORE, "Pre-trainings from the least to the most: {label: features, or a list of them over data sets}."
)
_RESOLUTIONS = several(
    NAMES | {"minItems": 2},
    "Feature sets that differ in the size of the images alone, from the smallest to the largest; a list for each "
    "network.",
)


def _table(name: str, spec: dict, results: Results) -> Printed:
    from dpstudy.tables.claims.judge import claims_notes, claims_rows, judge_study

    paper, judged = spec["paper"], judge_study(name, spec, results)
    rows = (
        (paper, row["section"], row["claim"], finding.verdict, finding.decided_by, finding.printed, finding.here)
        for row, finding in judged
    )
    texts, notes = (claims_rows(judged),), claims_notes(paper, judged)
    sheet = Sheet(name, spec.get("caption", ""), _HEADER, _COLUMNS, texts, notes)
    return Printed(CSV_HEADER, rows, (sheet,), long=True)


def _check(place: str, spec: dict, study: Study) -> None:
    config, paper = study.config, spec["paper"]
    for key, papers in _PAPERS_OF.items():
        if key in spec and paper not in papers:
            raise StudyError(f"{place}.{key}: this key goes with the paper {' or '.join(papers)}, not with {paper}")
    if paper not in ROLES and "methods" not in spec:
        raise StudyError(f"{place}: the key 'methods' is missing; the style 'claims' needs it")
    if spec["metric"] != "top1" and paper not in _ANY_METRIC:
        raise StudyError(
            f"{place}.metric: the claims of {paper} are about top1; only those of {' or '.join(_ANY_METRIC)} are "
            "judged by another metric"
        )
    if "sections" in spec:
        claims = claims_of(paper)
        known = [*dict.fromkeys(claim["section"] for claim in claims.values()), *claims]
        for section in spec["sections"]:
            check_known(f"{place}.sections", section, known, f"section or claim of {paper}")
    for dataset, role, features, entry in roles_of(spec):
        where = f"{place}.roles.{dataset}.{role}"
        check_known(f"{place}.roles", dataset, config["datasets"], "data set")
        check_known(f"{place}.roles.{dataset}", role, ROLES[paper], f"role of {paper}")
        check_known(f"{where}.features", features, config["features"], "feature set")
        check_known(f"{where}.entry", entry, config["methods"], "method entry")
    for method, epochs, entry in entries_of(spec):
        check_known(f"{place}.methods", method, METHODS, "method of mehta2023")
        check_known(f"{place}.methods.{method}.{epochs}", entry, config["methods"], "method entry")
    for label, features in spec.get("pretraining", {}).items():
        for name in listed(features):
            check_known(f"{place}.pretraining.{label}", name, config["features"], "feature set")
    for name in itertools.chain(*spec.get("resolutions", [])):
        check_known(f"{place}.resolutions", name, config["features"], "feature set")
    for number, row in enumerate(spec.get("searches", [])):
        check_known(f"{place}.searches[{number}].label", row["label"], MODELS, "model of tramer2021")
    check_searches(place, spec, study)


def _in_roles(spec: Mapping) -> list[Pattern]:
    return [{"dataset": [d], "features": [f], "entry": [e]} for d, _, f, e in roles_of(spec)]


def _cells(spec: Mapping, study: Study) -> list[str]:
    patterns = _in_roles(spec) + [named(row) | named(part) for row in spec.get("searches", []) for part in row["cells"]]
    if "methods" in spec:
        features = [name for given in spec.get("pretraining", {}).values() for name in listed(given)]
        features += itertools.chain(*spec.get("resolutions", [])) if features else []
        entries = [entry for _, _, entry in entries_of(spec)]
        patterns.append({"entry": entries} | ({"features": features} if features else {}))
    return like(study.cells, spec, patterns or [{}])


def _documents(spec: Mapping, study: Study) -> dict[str, list[str]]:
    cells, roles = _cells(spec, study), like(study.cells, {}, _in_roles(spec))
    of_cells, of_roles = dict.fromkeys(("ledgers", "metrics"), cells), ("curves", "audits", "black_boxes")
    return of_cells | dict.fromkeys(of_roles, roles) | {"trials": searched(spec)}


STYLE = TableStyle(
    keys={
        "paper": PAPER,
        "sections": NAMES
        | {"description": "Sections or ids of claims in workflow/published/claims/: these alone; all where absent."},
        "methods": _METHODS,
        "pretraining": _PRETRAINING,
        "resolutions": _RESOLUTIONS,
        "counterparts": COUNTERPARTS,
        "roles": _ROLES,
        "searches": SEARCHES,
    },
    needs=("paper",),
    check=_check,
    cells=_cells,
    documents=_documents,
    table=_table,
    judges=True,
)
