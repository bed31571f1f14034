"""Whether models reach the threshold in the config's `useful`, in the same words as `dpstudy plan` uses beforehand."""

from collections.abc import Mapping

from dpstudy.evaluation.metrics import metric_of
from dpstudy.evaluation.summary import values_by_cell
from dpstudy.tables.accuracies import UNDEFINED
from dpstudy.tables.intervals import joined
from dpstudy.tables.numbers import decimals, interval_text
from dpstudy.tables.results import Results


def describe_usefulness(useful: Mapping | None, results: Results) -> list[str]:
    """A sentence for each cell with a proved epsilon; none where the config sets no threshold.

    Args:
        useful: {"metric", "at_least"}.
        results: of the study.

    Raises:
        StudyError: a cell has no metrics.json.
    """
    if not useful:
        return []
    name, least, sentences = useful["metric"], useful["at_least"], []
    metric = metric_of(name)
    if all(row["metric"] != name for row in results.summary):
        return [f"{metric.label} of at least {least:g} was asked for; name {name} in evaluation.metrics, to have it."]
    for cell, values in values_by_cell(results.summary, name).items():
        if results.ledger(cell)["guarantee"] != "proved":
            continue
        if not values:
            sentences.append(f"{cell}: no {metric.label}, since {UNDEFINED}; {least:g} was asked for.")
            continue
        mean = sum(values) / len(values)
        ends = joined(values, results.interval(cell, name), name)
        digits = decimals(None, name)
        value = f"{mean:.{digits}f}" + (f", 95 % interval {interval_text(ends, digits)}" if ends else "")
        sentences.append(f"{cell}: {metric.label} {value}; {least:g} was asked for: {_verdict(mean, ends, least)}.")
    return sentences


def _verdict(mean: float, ends: tuple[float, float] | None, least: float) -> str:
    if ends is None:
        return "no interval tells whether it is reached"
    if ends[0] >= least:
        return "useful"
    return "not useful" if ends[1] < least else "open, the interval has it within"
