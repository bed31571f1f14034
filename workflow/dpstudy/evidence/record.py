"""Recording cells of a results folder in `measured.csv`, after checking their files and guarantees."""

import datetime
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpstudy.cell.bound import Binding, PaidHashes
from dpstudy.comparison.tree import Cell as Documents
from dpstudy.comparison.tree import read_cell
from dpstudy.config.cells import Cell, unfold
from dpstudy.config.loading import read_study
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.aggregate import mean_interval, mean_median_std
from dpstudy.evidence.measured import FULL, KINDS, Measured
from dpstudy.plan.code import cell_hash
from dpstudy.plan.targets import private_tests
from dpstudy.privacy.certificate import recertify
from dpstudy.privacy.printed import lower_bound, upper_bound
from dpstudy.privacy.spending import Spending
from dpstudy.provenance.code import WORKFLOW
from dpstudy.provenance.commit import commit
from dpstudy.tables.intervals import joined

_ON_TRAINING = "train_top1"


def shipped_studies() -> Iterator[dict]:
    """The checked configs of the studies in studies/."""
    return (read_study(path) for path in sorted((WORKFLOW.parent / "studies").glob("*.yaml")))


def record(study: dict, results: str | os.PathLike, kind: str, what: str = "", machine: str = "") -> list[Measured]:
    """The lines to record of a study's finished cells in a results folder, in the study's order.

    Args:
        study: the checked config.
        results: the folder.
        kind, what: as of `Measured`.
        machine: what the cells were made on; "": this machine's processor.

    Raises:
        StudyError: nothing is recorded: a cell's files do not belong together, its guarantee does not stand, its test
            records are private, or no cell is there.
    """
    if kind not in KINDS or bool(what) == (kind == FULL):
        raise StudyError("say what kind of numbers these are: full, or reduced or stand-in with what is so")
    if hidden := private_tests(study):
        raise StudyError(
            f"the scores of {hidden[0]} are of private test records, and the file is published; leave it out"
        )
    book = Spending(Path(results, "privacy", "spent.jsonl"))
    binding, rows, now = Binding(PaidHashes(book), str(results)), [], commit()
    for cell in unfold(study):
        if not Path(results, "cells", cell.path, "metrics.json").exists():
            continue
        documents = read_cell(results, cell.path)
        faults = binding.faults(cell.path) or _wrong(documents, study["seeds"])
        if faults:
            raise StudyError(f"nothing was recorded: {faults[0]}")
        of_code = now if documents.metrics["made_by"]["library"] == cell_hash(study, cell) else ""
        proved = attacked(Path(results, "audit", cell.path, "audit.json"), documents.ledger)
        rows += _rows(study["study"], cell, documents, proved, (kind, what), of_code, machine or processor())
    if not rows:
        raise StudyError(f"nothing was recorded: {results} has no finished cell of {study['study']}")
    return rows


def processor() -> str:
    """The name of this machine's processor."""
    path = Path("/proc/cpuinfo")
    names = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    named = (line.partition(":")[2].strip() for line in names if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def _wrong(documents: Documents, seeds: Sequence[int]) -> list[str]:
    trained = [row["seed"] for row in documents.metrics["seeds"]]
    if trained != list(seeds):
        wanted = f"the study has {list(seeds)}; finish the study"
        return [f"cell {documents.name}: was trained for the seeds {trained}, and {wanted}"]
    verified = recertify(documents.ledger, [row["releases"] for row in documents.metrics["seeds"] if "releases" in row])
    return [f"cell {documents.name}: {fault}" for fault in verified["faults"]]


def attacked(path: Path, ledger: dict) -> str:
    """The largest lower bound on the epsilon of a proved cell in its audit, rounded down; "" where there is none.

    Attacks for another adjacency than the ledger's do not count: what they bound is another epsilon.

    Raises:
        StudyError: it is damaged, or of another guarantee than the cell's.
    """
    if not path.exists() or ledger["guarantee"] != "proved":
        return ""
    try:
        audit = read_json(path)
        of_this = abs(audit["epsilon_certified"] - ledger["epsilon"]) <= 1e-9 * ledger["epsilon"]
        bounds = [each["epsilon_lower"] for each in audit["audits"] if each["adjacency"] == ledger["adjacency"]]
    except (KeyError, TypeError) as error:
        raise StudyError(
            f"nothing was recorded: {path}: damaged ({error!r}); delete it and run the study again"
        ) from None
    if not of_this:
        raise StudyError(f"nothing was recorded: {path}: is of another guarantee; delete it and run the study again")
    return lower_bound(max(bounds), 3) if bounds else ""


def _rows(
    study: str, cell: Cell, documents: Documents, proved: str, kind: tuple[str, str], of_code: str, machine: str
) -> list[Measured]:
    metrics, ledger = documents.metrics, documents.ledger
    made = datetime.datetime.fromtimestamp(os.stat(documents.path).st_mtime, datetime.UTC).date().isoformat()
    certified = upper_bound(ledger["epsilon"]) if ledger["guarantee"] == "proved" else ""
    rows = []
    for metric in metrics["mean"]:
        if metric == _ON_TRAINING:
            continue
        values = [float(row[metric]) for row in metrics["seeds"]]
        mean, _, std = mean_median_std(values)
        low, high = joined(values, mean_interval(metrics["seeds"], metric), metric) or (None, None)
        rows.append(
            Measured(
                study, cell.dataset, cell.features, cell.entry, cell.epsilon, metric, mean, std, len(values), low, high,
                certified, proved, str(ledger["delta"]), ledger["n"], ledger["unit"], ledger["guarantee"],
                ledger["noise"], *kind, made, of_code, metrics["made_by"]["library"], machine,
            )
        )  # fmt: skip
    return rows
