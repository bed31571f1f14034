"""Claims of de2022 about depth without extra data (appendix B.2, Figure 9)."""

from collections.abc import Callable, Sequence

from dpstudy.tables.claims.de2022_techniques import copies
from dpstudy.tables.claims.finding import Finding, Part, number, on_cells
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.role_evidence import Evidence, curve_value
from dpstudy.tables.claims.scores import Run, Scores

_EARLY = 8.0  # the epsilon at which Figure 9 compares early in training
_MISSING = "The study has no networks of several depths, {}, in the role depths"


def _early(run: Run) -> Value | None:
    """The accuracy at epsilon 8, at the end of training or on the way."""
    return run.accuracy if run.epsilon == _EARLY else curve_value(run, _EARLY)


def _copied(size: int) -> Callable[[Run], bool]:
    return lambda run: copies(run) == size


def _groups(scores: Scores, augmented: bool) -> list[list[Run]]:
    """Runs from the shallowest network to the deepest that have as many copies: none, or more than one."""
    sizes = {copies(run) for run in scores.of_role("depths")}
    wanted = [size for size in sizes if (size > 1 if augmented else size == 0)]
    groups = [group for size in wanted for group in scores.in_order("depths", _copied(size))]
    return [group for group in groups if len(group) > 1]


def _best(runs: Sequence[Run], early: bool) -> Value | None:
    values = [value for run in runs if (value := _early(run) if early else run.accuracy)]
    return max(values, key=lambda value: value.number, default=None)


def _name(run: Run) -> str:
    return f"{run.dataset} {number(run.epsilon)}, {run.entry}"


def _shallow_first(scores: Scores) -> Part:
    """Without augmentation, at epsilon 8, the shallowest network against each deeper one."""
    groups = _groups(scores, augmented=False)
    triples = [(_name(run), _early(group[0]), _early(run)) for group in groups for run in group[1:]]
    return Part.of("No augmentation, at ε = 8: the shallowest network over the deeper ones", triples)


def depth_and_budget(evidence: Evidence) -> Finding:
    """Judge the claim: shallow networks are best early and deep ones late; with many copies deep ones early too."""
    plain, augmented = (_groups(evidence.ours, augmented) for augmented in (False, True))
    late = [
        (_name(group[0]), _best(group[1:], early=False), group[0].accuracy)
        for group in plain
        if group[0].epsilon > _EARLY
    ]
    copied = [(_name(group[0]), _best(group[1:], early=True), _early(group[0])) for group in augmented]
    parts = [
        _shallow_first(evidence.ours),
        Part.of("No augmentation, at the end: the best deeper network over the shallowest", late),
        Part.of("Several copies, at ε = 8: the best deeper network over the shallowest", copied),
    ]
    return on_cells(parts, _MISSING.format("trained far beyond ε = 8 with and without augmentation"))


def deeper_is_worse(evidence: Evidence) -> Finding:
    """Judge the claim: at epsilon 8 without augmentation, deeper networks are worse."""
    return on_cells([_shallow_first(evidence.ours)], _MISSING.format("trained to ε = 8 without augmentation"))
