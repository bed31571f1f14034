"""The job that evaluates the test scores of a cell: metrics, intervals and subgroups, per seed and overall.

Models are asked once, where they are trained. What is made of it here is made anew without them, and spends nothing.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpstudy.cell.bound import AXES
from dpstudy.config.tuned import PUBLIC
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, sha256, write_json
from dpstudy.evaluation.aggregate import aggregate
from dpstudy.evaluation.confusion import confusion
from dpstudy.evaluation.evaluate import evaluate, undefined
from dpstudy.evaluation.groups import members
from dpstudy.evaluation.judge import judge
from dpstudy.evaluation.metrics import metric_of
from dpstudy.evaluation.score_file import SeedScores, cell_of_scores, read_scores, scored_records
from dpstudy.methods.calibrated_publicly import for_calibration
from dpstudy.provenance.hashes import evaluation_fingerprint, origin_of_scores
from dpstudy.schema.reading import check

_log = logging.getLogger("dpstudy")


def score_cell(run: str, scores: Sequence[str], evaluation: Mapping, library: str, output: str) -> None:
    """Write a cell's metrics.json.

    Args:
        run: its run.json.
        scores: its files of scores; together they have those of each seed of the run once.
        evaluation: the config's: metrics, intervals, smallest_group, small_groups, per_label.
        library: a hash of the code that answers.

    Raises:
        StudyError: a file is missing or damaged, scores and run are not of the same models, or a metric does not fit
            the labels.
    """
    content = read_json(run)
    by_file = [(path, list(read_scores(path))) for path in scores]
    by_model = [given for _, several in by_file for given in several]
    by_seed = {given.seed: given for given in by_model}
    for row in content["seeds"]:
        if row.get("calibration", {}).get("on") == PUBLIC and row["seed"] in by_seed:
            by_seed[row["seed"]] = _others(by_seed[row["seed"]])
    named = [cell_of_scores(path) or content for path in scores]
    if (
        sorted(given.seed for given in by_model) != sorted(row["seed"] for row in content["seeds"])
        or not all(_is_of(content, path, several) for path, several in by_file)
        or any(names[axis] != content[axis] for names in named for axis in AXES)
    ):
        raise StudyError(
            f"{scores[0]}: its scores are not those of the models of {run}; restore both as the training left them, or "
            "delete both and run the study again"
        )
    rows: list[dict] = []
    without: dict[str, None] = {}
    for row in content["seeds"]:
        given = by_seed[row["seed"]]
        scored = judged(given, evaluation, "calibration" in row)
        if "calibration" in row:
            scored["before"] = before(given, row["calibration"], evaluation)
        _log.info(
            "seed %s: %s", row["seed"], {name: scored[name] for name in scored if name not in ("groups", "confusion")}
        )
        without |= dict.fromkeys(undefined(given.labels, list(evaluation["metrics"]), list(given.classes)))
        rows.append({"seed": row["seed"], "split": row["split"], "tested": scored_records(given), **scored, **row})
    made_by = content["made_by"] | {"evaluation": evaluation_fingerprint(evaluation, library)}
    files = content.get("files", {}) | {os.path.basename(run): sha256(run)}
    metrics = content | {"seeds": rows, "made_by": made_by, "files": files}
    metrics |= dict(zip(("mean", "median", "std"), aggregate(rows), strict=True))
    if without:
        metrics["undefined"] = list(without)
        _log.warning(
            "%s: no value of %s, since no label is borne by some test records and not by others",
            output,
            ", ".join(without),
        )
    check(metrics, "metrics", output)
    write_json(output, metrics)


def _others(given: SeedScores) -> SeedScores:
    """Those of the test records by which the model was not calibrated."""
    rows = ~for_calibration(given.ids, given.subjects)
    subjects = None if given.subjects is None else given.subjects[rows]
    groups = {name: values[rows] for name, values in given.groups.items()}
    scored = {"ids": given.ids[rows], "scores": given.scores[rows], "labels": given.labels[rows]}
    return replace(given, **scored, subjects=subjects, groups=groups)


def _is_of(run: Mapping, path: str, found: Sequence[SeedScores]) -> bool:
    """Whether a file of scores is of a run's models: by its hash, where the run has it, else by what made both."""
    file, files = Path(path), run.get("files", {})
    if known := files.get(f"{file.parent.name}/{file.name}") or files.get(file.name):
        return sha256(path) == known
    return all(given.origin == origin_of_scores(run["made_by"]) for given in found)


def before(given: SeedScores, calibration: Mapping, evaluation: Mapping) -> dict[str, float]:
    """The probability metrics of the scores before calibration."""
    names = [name for name in evaluation["metrics"] if metric_of(name).probabilities]
    scores = (given.scores - np.array(calibration["offsets"])) / calibration["slope"]
    return evaluate(scores, given.labels, names, list(given.classes))


def judged(given: SeedScores, evaluation: Mapping, calibrated: bool = False) -> dict:
    """One seed's entry in metrics.json; with `calibrated` the scores are log odds."""
    classes, names = list(given.classes), list(evaluation["metrics"])
    scores: dict = dict(evaluate(given.scores, given.labels, names, classes))
    if evaluation.get("confusion"):
        masks = members(given.groups or {}, evaluation["smallest_group"], evaluation["small_groups"], given.subjects)
        counts = confusion(given.scores, given.labels, classes, masks, calibrated)
        scores |= {"confusion": counts} if counts else {}
    return scores | judge(given.scores, given.labels, classes, evaluation, given.groups, given.subjects)
