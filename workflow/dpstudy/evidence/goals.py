"""The page docs/goals.md: each goal, the recorded result, and the command that measures it."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic
from dpstudy.evidence.markdown import table
from dpstudy.evidence.measured import Measured
from dpstudy.provenance.code import WORKFLOW

GOALS = WORKFLOW / "published" / "goals.yaml"
PAGE = WORKFLOW.parent / "docs" / "goals.md"
_HEAD = """\
# Goals

What dpstudy promises, and what became of it. `make evidence` writes this page from `workflow/published/goals.yaml` and
the recorded cells: accuracy in percent at a certified ε, mean over seeds, of the best features and entry. Of the others
it has what their command said.

"""
_CELL = {"promise", "at_least", "study", "dataset", "epsilon"}
_OF = {"features"}  # optional beside a cell's: only these feature sets count
_COMMAND = {"promise", "command", "goal"}
_SAID = {"measured"}  # optional beside a command's: its output, with place and date


def read(path: Path = GOALS) -> list[dict]:
    """The goals, validated.

    Raises:
        StudyError: one has other keys than a cell's or a command's.
    """
    import yaml

    promises = yaml.safe_load(path.read_text(encoding="utf-8"))
    for number, goal in enumerate(promises, start=1):
        if set(goal) not in (_CELL, _CELL | _OF, _COMMAND, _COMMAND | _SAID):
            raise StudyError(
                f"{path}: promise {number}: must have {sorted(_CELL)}, to which {sorted(_OF)} may come, or "
                f"{sorted(_COMMAND)}, to which {sorted(_SAID)} may"
            )
    return promises


def text(goals: Iterable[dict], measured: Sequence[Measured]) -> str:
    """The text of the page."""
    return _HEAD + table(("promise", "goal", "recorded", "measured by"), (_row(goal, measured) for goal in goals))


def write(measured: Sequence[Measured], page: Path = PAGE) -> None:
    """Write the page.

    Raises:
        StudyError: as `read`.
    """
    with atomic(page) as temporary:
        Path(temporary).write_text(text(read(), measured), encoding="utf-8")


def _row(goal: dict, measured: Sequence[Measured]) -> tuple[str, ...]:
    if "command" in goal:
        return goal["promise"], goal["goal"], goal.get("measured", "not yet"), f"`{goal['command']}`"
    place = (goal["study"], goal["dataset"], goal["epsilon"], "top1")
    there = [row for row in measured if (row.study, row.dataset, row.epsilon, row.metric) == place]
    kept = [row for row in there if row.certified and float(row.certified) <= float(row.epsilon)]
    rows = [row for row in kept if row.features == goal.get("features", row.features)]
    best = max(rows, key=lambda row: row.mean, default=None)
    result = "not yet"
    if best is not None:
        missed = ", missed" if best.mean < goal["at_least"] else ""
        result = f"{best.mean:.1f} ± {best.std:.1f}, {best.features}, {best.entry}{missed}"
    asked = f"{goal['at_least']} at ε = {goal['epsilon']}"
    return goal["promise"], asked, result, f"`studies/{goal['study']}.yaml`"
