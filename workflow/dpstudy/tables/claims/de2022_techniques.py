"""Claims of de2022 on single techniques: the ablation, augmentation, parameter averaging, clipping (3.1, B.1)."""

from collections.abc import Callable, Sequence

import numpy as np

from dpstudy.tables.claims.finding import (
    CELLS,
    COMPUTED,
    FAILS,
    Finding,
    Part,
    by_roles,
    decided,
    on_cells,
)
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Run, Scores, up
from dpstudy.tables.claims.training_accuracy import on_training

TECHNIQUES = (
    "group normalisation",
    "a larger batch",
    "weight standardisation",
    "augmentation multiplicity",
    "averaging",
)
_ALIKE = 1.0  # points between clipping norms that still read as no dependence
_COPIES, _WEIGHTS = 16, 1000  # of the example at which the norm of a contribution is computed


def setting(run: Run, name: str):
    """The value of one hyper-parameter of a cell; None where it has none."""
    return run.metrics.get("hyperparameters", {}).get(name)


def copies(run: Run) -> int:
    """The augmentation multiplicity K of a cell; 0 without augmentation."""
    return (setting(run, "augmentation") or {}).get("multiplicity", 0)


def is_deep(run: Run) -> bool:
    """Whether a cell belongs to Figures 10 and 11, which repeat other figures with WRN-40-4."""
    return str(setting(run, "network") or "").startswith("wrn-40")


def by_number(scores: Scores, role: str, value: Callable[[Run], float | None], wanted=lambda run: True):
    """Lists of a role's runs by data set and epsilon, each ordered by a number; runs without it are left out."""
    groups = scores.in_order(role, lambda run: value(run) is not None and wanted(run))
    return [sorted(group, key=lambda run: value(run) or 0.0) for group in groups]


def measured(groups: Sequence[Sequence[Run]]) -> bool:
    """Whether the accuracy on training records is known for all of these runs."""
    return bool(groups) and all(on_training(run) for group in groups for run in group)


def ablation(evidence: Evidence) -> Finding:
    """Judge the claim: each of five techniques adds accuracy to the previous ones."""

    def parts(scores: Scores) -> list[Part]:
        groups = [group for group in scores.in_order("ablation") if len(group) == len(TECHNIQUES) + 1]
        steps = [up([group[i : i + 2] for group in groups]) for i in range(len(TECHNIQUES))]
        return [Part.of(f"With {name} over without", step) for name, step in zip(TECHNIQUES, steps, strict=True)]

    return by_roles(evidence, parts, "ablation (all six, in the order of Table 2)")


def more_copies(evidence: Evidence) -> Finding:
    """Judge the claim: one augmented copy per record hurts, but accuracy rises with the number of copies.

    One copy hurts on training records too.
    """
    groups = by_number(evidence.ours, "multiplicity", copies)
    bare = [[run for run in reversed(group) if copies(run) in (0, 1)] for group in groups]
    several = [[run for run in group if copies(run) >= 1] for group in groups]
    parts = [
        Part.of("No augmentation over K = 1", up(bare)),
        Part.of("Larger K over the next smaller, from K = 1 on", up(several)),
    ]
    if measured(bare):
        parts.append(Part.of("No augmentation over K = 1, on training records", up(bare, on_training)))
    return on_cells(parts, "The study has no cells of several numbers of copies in the role multiplicity")


def same_sensitivity(evidence: Evidence) -> Finding:
    """Judge the claim: the mean of K gradients, clipped, has norm at most C; the noise does not depend on K."""
    gradients = np.random.default_rng(0).normal(size=(_COPIES, _WEIGHTS))
    mean = float(np.linalg.norm(_clipped(gradients.mean(axis=0))))
    single = float(np.linalg.norm(sum(_clipped(gradient) for gradient in gradients)))
    text = f"C = 1, {_COPIES} random gradients: norm {mean:.3f} averaged and clipped, {single:.1f} clipped and summed"
    alike: dict[tuple, list[Run]] = {}
    for run in evidence.ours.of_role("multiplicity"):
        key = (run.dataset, run.epsilon, run.n, setting(run, "batch_size"), setting(run, "steps"))
        alike.setdefault(key, []).append(run)
    groups = [group for group in alike.values() if len({copies(run) for run in group}) > 1]
    differing = [group for group in groups if len({_noise(run) for run in group}) > 1]
    here = f"{len(groups) - len(differing)} of {len(groups)} groups of cells that differ in K alone have the same noise"
    if differing:
        return Finding(FAILS, CELLS, text, here)
    return decided(mean <= 1 + 1e-9, COMPUTED, text, here if groups else "")


def _noise(run: Run) -> tuple:
    """The noise multiplier of a cell and the sensitivities that its ledger counts."""
    return setting(run, "noise_multiplier"), *(event["sensitivity"] for event in run.ledger.get("events", []))


def _clipped(gradient: np.ndarray) -> np.ndarray:
    """A gradient clipped to norm 1, as in Equation (4)."""
    return gradient * min(1.0, 1.0 / float(np.linalg.norm(gradient)))


def averaging(evidence: Evidence) -> Finding:
    """Judge the claim: averaging the parameters always helps."""

    def parts(scores: Scores) -> list[Part]:
        last = [group[-2:] for group in scores.in_order("ablation") if len(group) == len(TECHNIQUES) + 1]
        return [Part.of("With averaging over without", [*scores.pairs("wrn-16-4", "unaveraged"), *up(last)])]

    return by_roles(evidence, parts, "wrn-16-4 and unaveraged, or ablation")


def plain_descent(evidence: Evidence) -> Finding:
    """Judge the claim: a constant rate is as good as a falling one, and weight decay costs accuracy.

    Dropout is not trained here.
    """
    ours = evidence.ours
    momentum = Part.not_below("Without momentum not below with it", ours.pairs("wrn-16-4", "momentum"))
    parts = [
        Part.not_below("Constant rate not below a falling one", ours.pairs("wrn-16-4", "decay")),
        Part.of("Without weight decay over with it (dropout is refused here)", ours.pairs("wrn-16-4", "regularised")),
    ]
    penalised = {(run.dataset, run.epsilon): run for run in ours.of_role("regularised")}
    both = [
        [penalised[key], run] for run in ours.of_role("wrn-16-4") if (key := (run.dataset, run.epsilon)) in penalised
    ]
    if measured(both):
        parts.append(Part.of("Without weight decay over with it, on training records", up(both, on_training)))
    parts += [momentum] if momentum.counted else []  # the paper does without, but does not say what it would give
    return on_cells(parts, "The study has no cells to compare in the roles wrn-16-4, decay and regularised")


def clipping_norm(evidence: Evidence) -> Finding:
    """Judge the claim: with normalised updates, accuracy at a learning rate does not depend on C, up to C = 1."""
    triples = []
    for group in by_number(evidence.ours, "clipping", lambda run: setting(run, "clipping_norm"), _small_norm):
        for rate in dict.fromkeys(setting(run, "learning_rate") for run in group):
            *others, last = [run for run in group if setting(run, "learning_rate") == rate]
            triples += [
                (f"{run.dataset} C = {setting(run, 'clipping_norm'):g}, η = {rate:g}", run.accuracy, last.accuracy)
                for run in others
            ]
    parts = [
        Part.not_below(f"C < 1 no more than {_ALIKE:g} point below the largest C ≤ 1", triples, _ALIKE),
        Part.not_below(f"No more than {_ALIKE:g} point above it", [(name, b, a) for name, a, b in triples], _ALIKE),
    ]
    return on_cells(parts, "The study has no normalised updates at several C ≤ 1 and one rate in the role clipping")


def _small_norm(run: Run) -> bool:
    return setting(run, "clipping_norm") <= 1 and bool(setting(run, "normalised"))
