"""The results of a finished study, as read by tables: the summary, and each cell's documents."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.aggregate import mean_interval
from dpstudy.evaluation.summary import read_summary
from dpstudy.tables.ceiling import cell_ceiling, label_norm

Paths = Mapping[str, str | os.PathLike]


@dataclass(frozen=True)
class Results:
    """The results of a finished study.

    Attributes:
        axes: {"datasets", "features", "entries", "epsilons"}: the study's names, in config order.
        summary: rows of the summary (`read_summary`).
        ledgers: cell name -> path of its ledger.json; this and all that follow of what a table or figure reads.
        metrics: cell name -> path of its metrics.json.
        trials: cell name -> path of its search's trials.parquet.
        curves: cell name -> path of its curve.parquet.
        audits: cell name -> path of its audit.json, where it is attacked.
        black_boxes: cell name -> path of its black-box.json, where it is attacked so.
        splits: data set -> split -> path of the manifest of its images.
        features: "DATASET/FEATURES" -> path of the manifest of its training split.
    """

    axes: Mapping[str, list[str]]
    summary: list[dict]
    ledgers: Paths = field(default_factory=dict)
    metrics: Paths = field(default_factory=dict)
    trials: Paths = field(default_factory=dict)
    curves: Paths = field(default_factory=dict)
    audits: Paths = field(default_factory=dict)
    black_boxes: Paths = field(default_factory=dict)
    splits: Mapping[str, Paths] = field(default_factory=dict)
    features: Paths = field(default_factory=dict)

    @classmethod
    def open(
        cls, axes: Mapping[str, list[str]], summary_path: str, names: Mapping[str, list], files: Mapping
    ) -> "Results":
        """The results from a rule's input files, with the summary in a file; see `assemble`."""
        return cls.assemble(axes, read_summary(summary_path), names, files)

    @classmethod
    def assemble(
        cls, axes: Mapping[str, list[str]], summary: list[dict], names: Mapping[str, list], files: Mapping
    ) -> "Results":
        """The results from a study's (or part of a study's) document files.

        Args:
            summary: its rows.
            names: kind of document -> whose they are: cells, "DATASET/FEATURES", or [data set, split].
            files: kind -> their files, in the same order; others beside them (`plan.documents`).
        """
        return cls(axes, summary, **_documents(names, files))

    def ledger(self, cell: str) -> dict:
        """The ledger of a cell that has metrics.

        Raises:
            StudyError: there is none.
        """
        return self._document(self.ledgers, cell, "ledger.json")

    def ceiling(self, cell: str) -> float | None:
        """The highest top-1 accuracy, in percent, that a cell's noise allows; see `cell_ceiling`.

        Raises:
            StudyError: the cell has no metrics.json or no ledger.
        """
        metrics = self._document(self.metrics, cell, "metrics.json")
        return cell_ceiling(self.ledger(cell), metrics["classes"], label_norm(metrics))

    def classes(self, cell: str) -> int:
        """The number of classes (or labels) of a cell's models.

        Raises:
            StudyError: the cell has no metrics.json.
        """
        return self._document(self.metrics, cell, "metrics.json")["classes"]

    def interval(self, cell: str, metric: str) -> tuple[float, float] | None:
        """The mean interval of a cell over test records, averaged over seeds; None where it has none.

        Raises:
            StudyError: the cell has no metrics.json.
        """
        return mean_interval(self._document(self.metrics, cell, "metrics.json")["seeds"], metric)

    def tested(self, cell: str) -> dict | None:
        """The test records of a cell (`score_file.scored_records`); None if an earlier version scored it.

        Raises:
            StudyError: the cell has no metrics.json.
        """
        seeds = self._document(self.metrics, cell, "metrics.json")["seeds"]
        return next((row["tested"] for row in seeds if "tested" in row), None)

    def searched(self, cell: str) -> bool:
        """Whether a cell's hyper-parameters come from a search that its ledger does not pay for.

        Raises:
            StudyError: the cell has no metrics.json.
        """
        tuning = self._document(self.metrics, cell, "metrics.json").get("tuning", {})
        return bool(tuning) and "pay" not in tuning

    def audited(self, cell: str) -> float | None:
        """The highest lower bound on epsilon from audits of a cell; None where it was not audited."""
        from dpstudy.privacy.audit import highest

        return highest(read_json(self.audits[cell])["audits"]) if cell in self.audits else None

    @staticmethod
    def _document(paths: Mapping[str, str | os.PathLike], cell: str, name: str) -> dict:
        if cell not in paths:
            raise StudyError(f"cell {cell}: it is in the summary but has no {name}; run snakemake again to remake it")
        return read_json(paths[cell])


def _documents(names: Mapping[str, list], files: Mapping) -> dict[str, Any]:
    """Kind of document -> whose it is -> its file."""
    documents: dict[str, Any] = {
        kind: dict(zip(whose, files.get(kind, []), strict=True)) for kind, whose in names.items() if kind != "splits"
    }
    splits: dict[str, dict] = {}
    for (dataset, split), path in zip(names.get("splits", []), files.get("splits", []), strict=True):
        splits.setdefault(dataset, {})[split] = path
    return documents | {"splits": splits}
