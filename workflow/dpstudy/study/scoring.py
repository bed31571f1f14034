"""What the scores of a cell's models are worth: metrics, intervals and subgroups, of each seed and over all.

Models are asked once, where they are trained. What is made of it here is made anew without them, and spends nothing.
"""

from collections.abc import Mapping, Sequence

from dpstudy.errors import StudyError
from dpstudy.evaluation.aggregate import aggregate
from dpstudy.evaluation.judge import judge
from dpstudy.evaluation.metrics import evaluate
from dpstudy.evaluation.score_file import SeedScores, read_scores
from dpstudy.files import read_json, write_json
from dpstudy.study.provenance import evaluation_fingerprint
from dpstudy.study.schema import check


def score_cell(run: str, scores: Sequence[str], evaluation: Mapping, library: str, output: str) -> None:
    """Write metrics.json of a cell.

    Args:
        run: its run.json.
        scores: its files of scores; together they have those of each seed of the run once.
        evaluation: the config's: metrics, intervals, smallest_group, small_groups, per_label.
        library: a hash of the code that answers.

    Raises:
        StudyError: a file is missing or damaged, scores and run are not of the same seeds, or a metric does not fit the
            labels.
    """
    content = read_json(run)
    found = {given.seed: given for path in scores for given in read_scores(path)}
    rows = content["seeds"]
    if sorted(found) != sorted(row["seed"] for row in rows):
        raise StudyError(f"{scores[0]}: is not of the seeds of {run}; delete both and run the study again")
    rows = [
        {"seed": row["seed"], "split": row["split"], **judged(found[row["seed"]], evaluation), **row} for row in rows
    ]
    metrics = content | {
        "seeds": rows,
        "made_by": content["made_by"] | {"evaluation": evaluation_fingerprint(evaluation, library)},
    }
    metrics |= dict(zip(("mean", "median", "std"), aggregate(rows), strict=True))
    check(metrics, "metrics", output)
    write_json(output, metrics)


def judged(given: SeedScores, evaluation: Mapping) -> dict:
    """What metrics.json has of one seed's scores."""
    classes, names = list(given.classes), list(evaluation["metrics"])
    scores = evaluate(given.scores, given.labels, names, classes)
    return scores | judge(given.scores, given.labels, classes, evaluation, given.groups, given.subjects)
