"""Subgroup performance of a study's cells: the gap between the best and the worst subgroup."""

from collections.abc import Iterator, Mapping
from operator import itemgetter
from types import MappingProxyType

from dpstudy.core.files import read_json
from dpstudy.evaluation.metrics import metric_of, ordered
from dpstudy.tables.names import line_label, marked
from dpstudy.tables.numbers import decimals
from dpstudy.tables.results import Results
from dpstudy.tables.subgroups import GAP, WHOLE, Score, lay_disparities


def describe_groups(results: Results, labels: Mapping[str, str] = MappingProxyType({})) -> list[dict]:
    """A table for each data set and each grouping of its test records, of the first metric that has groups.

    Args:
        results: of the study.
        labels: what its tables call its methods (`labels_of`).

    Returns:
        Dictionaries {"dataset", "column", "metric", "epsilons", "rows"}; a row has "label" and a cell for each epsilon,
        {"order", "value", "told"} (the groups in words), or None.
    """
    tables = []
    axes = results.axes
    pairs = [{"features": features, "entry": entry} for features in axes["features"] for entry in axes["entries"]]
    for dataset, column, metric in _grouped(results):
        spec = {"dataset": dataset, "column": column, "metric": metric, "rows": pairs}
        scores = lay_disparities("groups", spec, results)
        epsilons = [e for e in axes["epsilons"] if any(score.place[3] == e for score in scores)]
        rows = []
        for pair in pairs:
            of_pair = [score for score in scores if score.place[1:3] == (pair["features"], pair["entry"])]
            cells = [_cell([score for score in of_pair if score.place[3] == epsilon], metric) for epsilon in epsilons]
            if any(cells):
                label = labels.get("{features}/{entry}".format_map(pair), line_label(pair))
                rows.append({"label": marked(label, pair["entry"], axes), "cells": cells})
        named = {"dataset": dataset, "column": column.replace("_", " "), "metric": metric_of(metric).label}
        if rows:
            tables.append(named | {"epsilons": ["∞" if e == "inf" else e for e in epsilons], "rows": rows})
    return tables


def _grouped(results: Results) -> Iterator[tuple[str, str, str]]:
    """(data set, column, metric), in the study's order; the first cell of a data set tells its columns."""
    seen: dict[str, Mapping] = {}
    for cell, path in results.metrics.items():
        dataset = cell.partition("/")[0]
        if dataset not in seen:
            seen[dataset] = read_json(path)["seeds"][0]
    for dataset in results.axes["datasets"]:
        groups = seen.get(dataset, {}).get("groups", {})
        for column in dict.fromkeys(name.partition("=")[0] for name in groups):
            entries = [entry for name, entry in groups.items() if name.startswith(f"{column}=")]
            metric = next((m for m in ordered(seen[dataset]) if any(m in entry for entry in entries)), None)
            if metric is not None:
                yield dataset, column, metric


def _cell(scores: list[Score], metric: str) -> dict | None:
    gap = next((score for score in scores if score.group == GAP), None)
    groups = [score for score in scores if score.group not in (GAP, WHOLE)]
    means = sorted(((s.mean, s.group) for s in groups if s.mean is not None), key=itemgetter(0))
    if gap is None or len(means) < 2:
        return None
    digits = decimals(gap.std, metric)
    worst, best = means[0], means[-1]
    return {
        "order": repr(gap.mean),
        "value": f"{gap.mean:.{digits}f}" + (f" ± {gap.std:.{digits}f}" if gap.seeds > 1 else ""),
        "told": f"worst: {worst[1]} {worst[0]:.{digits}f}, best: {best[1]} {best[0]:.{digits}f}",
    }
