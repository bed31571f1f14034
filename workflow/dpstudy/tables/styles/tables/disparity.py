"""A metric on each subgroup of the test split, and the gap between the best and the worst."""

from collections.abc import Iterator, Mapping

from dpstudy.evaluation.groups import OTHERS
from dpstudy.evaluation.intervals import FEWEST as PERSONS
from dpstudy.evaluation.judge import FEWEST, LABEL
from dpstudy.evaluation.metrics import metric_of
from dpstudy.evaluation.summary import cell_name
from dpstudy.tables.checks import check_column, check_crossed
from dpstudy.tables.facts import facts_of
from dpstudy.tables.grouping import by_key
from dpstudy.tables.keys import COLUMN, row_schema
from dpstudy.tables.names import line_label, marked, private_tests
from dpstudy.tables.numbers import usual_decimals
from dpstudy.tables.remarks import spec_remarks
from dpstudy.tables.results import Results
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.style import SCORED, Printed, TableStyle
from dpstudy.tables.subgroups import CSV_HEADER, GAP, WHOLE, Score, csv_rows, lay_disparities
from dpstudy.tables.unlike import unlike_rows

_NAMES = {WHOLE: "all", GAP: "best less worst"}


def _table(name: str, spec: dict, results: Results) -> Printed:
    scores = lay_disparities(name, spec, results)
    rows = csv_rows(scores, spec["column"], spec.get("metric", "top1"))
    return Printed(CSV_HEADER, rows, (_sheet(name, spec, scores, results),))


def _sheet(name: str, spec: dict, scores: list[Score], results: Results) -> Sheet:
    metric, axes = spec.get("metric", "top1"), results.axes
    epsilons = list(dict.fromkeys(score.place[3] for score in scores))
    values = {(score.place, score.group): score for score in scores}
    digits = usual_decimals((score.std for score in scores), metric)
    blocks, by_method = [], by_key(scores, lambda score: score.place[1:3])
    for row in (row for row in spec["rows"] if (row["features"], row["entry"]) in by_method):
        mine = by_method[row["features"], row["entry"]]
        block: list[tuple[str, ...]] = []
        for group, of_group in by_key(mine, lambda score: score.group).items():
            size = next((str(score.n) for score in of_group if score.n is not None), "")
            label = marked(line_label(row), row["entry"], axes) if not block else ""
            shown = [values.get(((*mine[0].place[:3], epsilon), group)) for epsilon in epsilons]
            block.append((label, _NAMES.get(group, group), size, *(_text(score, digits) for score in shown)))
        blocks.append(tuple(block))
    header = ("Method", spec["column"].replace("_", " "), "n", *(f"ε = {'∞' if e == 'inf' else e}" for e in epsilons))
    counted = "the group's test records" + (", those that bear the label" if spec["column"] == LABEL else "")
    label = metric_of(metric).label
    what = label[0].upper() + label[1:]
    over = "means over seeds, with 95 % intervals over seeds and test records (persons, where they are known) together"
    if all(score.seeds == 1 for score in scores):
        over = "of one draw of noise, where another draw gives others, with 95 % intervals over test records (persons, "
        over += "where they are known)"
    notes: tuple[str, ...] = (
        f"{what} on the test split, without noise that would protect its records: {over}, where at least "
        f"{PERSONS} of these are on each side. n: {counted}.",
        *_labels_told(metric, spec["column"], scores, results),
        *_small_told(spec["column"], scores, results),
    )
    if any(score.mean is None for score in scores):
        notes += ("–: too few of the group's records bear a label, or too few do not.",)
    places = (cell_name(*score.place) for score in scores)
    unlike = unlike_rows(_scored(spec, scores, results), private_tests([scores[0].place[0]], axes))
    notes += (*facts_of(places, results), *unlike, *spec_remarks(spec, axes))
    return Sheet(name, spec.get("caption", ""), header, "llr" + "r" * len(epsilons), tuple(blocks), notes)


def _small_told(column: str, scores: list[Score], results: Results) -> list[str]:
    """What became of groups that are too small to be told of."""
    groups = {score.group for score in scores}
    fewer = "fewer test records (persons, where they are known) than `evaluation.smallest_group` says"
    if not groups - {WHOLE, GAP} and column != LABEL:
        return [f"No group by {column.replace('_', ' ')}: each has {fewer}, or the records name none."]
    if column == LABEL:
        return []
    if OTHERS in groups:
        return [f"{OTHERS}: groups that have {fewer}, together."]
    place = scores[0].place
    shown = sum(score.n or 0 for score in scores if score.place == place and score.group not in (WHOLE, GAP))
    tested = results.tested(cell_name(*place))
    return [f"Groups that have {fewer} are left out."] if tested and shown < tested["records"] else []


def _labels_told(metric: str, column: str, scores: list[Score], results: Results) -> list[str]:
    """Which labels the row of all test records is about."""
    kind, groups = metric_of(metric), {s.group for s in scores if s.group not in (WHOLE, GAP) and s.mean is not None}
    if column == LABEL:
        classes = results.classes(cell_name(*scores[0].place))
        few = classes - len(groups)
        return (
            [f"All: on every label that test records bear; {few} of {classes} have too few for a row."] if few else []
        )
    if not kind.area and not kind.by_class:
        return []
    if not groups:
        return ["All: on every label."]
    borne = "bear and as many do not" if kind.area else "bear"
    return [
        f"Groups, and all together, are compared on the same labels: those that {FEWEST} records of each group "
        f"(persons, where they are known) {borne}."
    ]


def _scored(spec: dict, scores: list[Score], results: Results) -> Iterator[tuple[str, str, Mapping | None]]:
    labels = {(row["features"], row["entry"]): line_label(row) for row in spec["rows"]}
    for dataset, features, entry, epsilon in dict.fromkeys(score.place for score in scores):
        yield dataset, labels[features, entry], results.tested(cell_name(dataset, features, entry, epsilon))


def _text(score: Score | None, digits: int) -> str:
    if score is None or score.mean is None:
        return "–"
    ends = "" if score.low is None else f" ({score.low:.{digits}f}–{score.high:.{digits}f})"
    return f"{score.mean:.{digits}f}{ends}"


STYLE = TableStyle(
    keys={"rows": row_schema("features", "entry", "label"), "column": COLUMN},
    needs=("rows", "column"),
    check=(check_column, check_crossed),
    documents=SCORED,
    table=_table,
    names=True,
)
