"""Run time and memory of a study's jobs by rule, from Snakemake's benchmark files."""

import ast
import csv
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RuleRun:
    """Run time and memory of the latest jobs of one rule.

    Attributes:
        rule: its name.
        jobs: how many.
        seconds: wall-clock time of all together; `longest`: of the longest.
        cpu_seconds: processor time of all together.
        peak_mb: the most resident memory that one took, in MB.
        declared_mb: the most that one had declared, in MB; None where none had.
    """

    rule: str
    jobs: int
    seconds: float
    longest: float
    cpu_seconds: float
    peak_mb: float
    declared_mb: int | None


def read_runs(folder: str | os.PathLike, rules: Iterable[str]) -> list[RuleRun]:
    """The rules that ran, in the given order; values missing in benchmark files count as 0.

    Args:
        folder: with RULE/**/*.tsv.
        rules: names.
    """
    rows_by_rule = defaultdict(list)
    for path in sorted(Path(folder).rglob("*.tsv")):
        with open(path, newline="", encoding="utf-8") as file:
            row = next(csv.DictReader(file, delimiter="\t"), None)
        rule = path.relative_to(folder).parts[0]
        if row is not None:
            rows_by_rule[rule].append(row)
    return [_rule(rule, rows_by_rule[rule]) for rule in rules if rule in rows_by_rule]


def _rule(rule: str, rows: list[dict]) -> RuleRun:
    seconds, processor, memory = ([_number(row, name) for row in rows] for name in ("s", "cpu_time", "max_rss"))
    declared = max((number for row in rows if (number := _declared(row)) is not None), default=None)
    return RuleRun(rule, len(rows), sum(seconds), max(seconds), sum(processor), max(memory), declared)


def _number(row: dict, name: str) -> float:
    """A measured number; a job that ended before it was looked at has none ("-" or "NA")."""
    try:
        return float(row.get(name) or 0)
    except ValueError:
        return 0.0


def _declared(row: dict) -> int | None:
    try:
        return int(ast.literal_eval(row.get("resources") or "{}")["mem_mb"])
    except (ValueError, SyntaxError, KeyError, TypeError):
        return None
