"""Means over repeated splits of the same records, with an interval: a row per features and entry, a column per epsilon.

Its data sets differ in `splits.draw` alone, so that every record is in the test split of some and in the training split
of others: of few persons this says more than any single split.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.aggregate import mean_median_std
from dpstudy.evaluation.metrics import metric_of
from dpstudy.evaluation.summary import cell_name, values_by_cell
from dpstudy.privacy.printed import upper_bound
from dpstudy.tables.accuracies import UNDEFINED
from dpstudy.tables.checks import check_crossed
from dpstudy.tables.facts import facts_of
from dpstudy.tables.intervals import over_draws
from dpstudy.tables.keys import row_schema
from dpstudy.tables.names import datasets_of, line_label, private_tests
from dpstudy.tables.numbers import decimals, interval_text
from dpstudy.tables.remarks import private_scores
from dpstudy.tables.results import Results
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.style import SCORED, Printed, Study, TableStyle

_KIND = ("features", "entry", "epsilon")
CSV_HEADER = (*_KIND, "certified_epsilon", "guarantee", "draws", "seeds", "mean", "std", "low", "high")


@dataclass(frozen=True)
class Mean:
    """The mean of one kind of cell over repeated splits; `std` is over these, `certified` the largest."""

    certified: float | None
    guarantee: str
    draws: int
    seeds: int
    mean: float
    std: float
    interval: tuple[float, float] | None


def _table(name: str, spec: dict, results: Results) -> Printed:
    kinds = [(row["features"], row["entry"]) for row in spec["rows"]]
    epsilons = spec.get("epsilons", results.axes["epsilons"])
    means = {(*kind, epsilon): _mean(name, spec, results, *kind, epsilon) for kind in kinds for epsilon in epsilons}
    rows = (
        (*key, mean.certified, mean.guarantee, mean.draws, mean.seeds, mean.mean, mean.std, *(mean.interval or "  "))
        for key, mean in means.items()
        if mean
    )
    return Printed(CSV_HEADER, rows, (_sheet(name, spec, results, epsilons, means),))


def _mean(name: str, spec: dict, results: Results, features: str, entry: str, epsilon: str) -> Mean | None:
    values = values_by_cell(results.summary, spec["metric"])
    names = [cell_name(each, features, entry, epsilon) for each in datasets_of(name, spec, results.axes)]
    present = [cell for cell in names if values.get(cell)]
    if not present:
        return None
    ledgers = [results.ledger(cell) for cell in present]
    by_draw = [values[cell] for cell in present]
    mean, _, std = mean_median_std([sum(seeds) / len(seeds) for seeds in by_draw])
    certified = max((ledger["epsilon"] for ledger in ledgers if ledger["epsilon"] is not None), default=None)
    guarantee = "/".join(dict.fromkeys(ledger["guarantee"] for ledger in ledgers))
    interval = over_draws(by_draw, _tested(present, results), spec["metric"])
    return Mean(certified, guarantee, len(present), min(map(len, by_draw)), mean, std, interval)


def _tested(cells: list[str], results: Results) -> float:
    """How many units are tested for each that is learned from, on average over the draws."""
    shares = []
    for cell in cells:
        dataset = cell.partition("/")[0]
        parts = {split: read_json(path) for split, path in results.splits[dataset].items()}
        unit = "subjects" if all(part.get("subjects") for part in parts.values()) else "rows"
        shares.append(parts["test"][unit] / sum(part[unit] for split, part in parts.items() if split != "test"))
    return sum(shares) / len(shares)


def _sheet(name: str, spec: dict, results: Results, epsilons: list[str], found: Mapping) -> Sheet:
    blocks = [_certified(epsilons, found)]
    for row in spec["rows"]:
        means = [found[row["features"], row["entry"], epsilon] for epsilon in epsilons]
        digits = decimals(max((mean.std for mean in means if mean), default=None), spec["metric"])
        texts = [f"{mean.mean:.{digits}f} ± {mean.std:.{digits}f}" if mean else "–" for mean in means]
        ends = [interval_text(mean.interval, digits) if mean else "" for mean in means]
        blocks.append(((line_label(row), *texts), ("interval", *ends)))
    heads = ["ε = ∞" if epsilon == "inf" else f"ε = {epsilon}" for epsilon in epsilons]
    notes = _notes(name, spec, results, found)
    return Sheet(name, spec.get("caption", ""), ("Method", *heads), "l" + "c" * len(heads), tuple(blocks), notes)


def _certified(epsilons: list[str], found: Mapping) -> tuple[tuple[str, ...], ...]:
    known = [(key[2], mean.certified) for key, mean in found.items() if mean and mean.certified]
    most = [max((certified for at, certified in known if at == epsilon), default=None) for epsilon in epsilons]
    return (("certified ε at most, of one draw", *("–" if one is None else upper_bound(one) for one in most)),)


def _notes(name: str, spec: dict, results: Results, found: Mapping) -> tuple[str, ...]:
    metric, datasets = metric_of(spec["metric"]).label, datasets_of(name, spec, results.axes)
    draws = sorted({mean.draws for mean in found.values() if mean})
    counted = " or ".join(map(str, draws)) or "no"
    first = facts_of((cell for cell in results.metrics if cell.partition("/")[0] == datasets[0]), results)
    private = [f"{each} and its other splits" for each in private_tests(datasets[:1], results.axes)]
    return (
        f"{metric[0].upper()}{metric[1:]}: mean ± standard deviation over {counted} splits of the "
        "same records, each cut and trained anew.",
        "Intervals: 95 % for the mean that such splits of other records would have, from the spread over splits and "
        "how much these overlap; wider than that where noise is large.",
        *([] if draws else [f"–: {UNDEFINED}."]),
        *(f"Of the first: {sentence}" for sentence in first),
        *filter(None, [private_scores(private)]),
    )


def _check(place: str, spec: dict, study: Study) -> None:
    datasets = spec.get("datasets", list(study.config["datasets"]))
    entries = [study.config["datasets"][each] for each in datasets]
    if len(datasets) < 2 or "dataset" in spec:
        raise StudyError(f"{place}.datasets: the style 'draws' takes two or more, which differ in splits.draw")
    alike = [{**entry, "splits": {**entry["splits"], "draw": None}} for entry in entries]
    other = next((datasets[i] for i in range(1, len(alike)) if alike[i] != alike[0]), None)
    if other:
        raise StudyError(f"{place}.datasets: {other!r} differs from {datasets[0]!r} in more than splits.draw")
    drawn = [entry["splits"].get("draw", 0) for entry in entries]
    if twice := next((datasets[i] for i, draw in enumerate(drawn) if draw in drawn[:i]), None):
        raise StudyError(f"{place}.datasets: {twice!r} has the splits.draw of another; number each anew")


STYLE = TableStyle(
    keys={"rows": row_schema("features", "entry", "label")},
    needs=("rows",),
    check=(check_crossed, _check),
    documents=SCORED,
    table=_table,
    names=True,
)
