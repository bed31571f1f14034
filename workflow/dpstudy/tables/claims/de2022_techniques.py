"""Claims of de2022 on single techniques: the ablation, augmentation, parameter averaging, clipping (3.1, B.1), and on
depth without extra data (B.2, Figure 9): judges, and what comparisons in workflow/published/claims/de2022.yaml
compare."""

from collections.abc import Sequence

import numpy as np

from dpstudy.tables.claims.finding import CELLS, COMPUTED, Finding, decided
from dpstudy.tables.claims.grid import Triples, Value, highest
from dpstudy.tables.claims.scores import Evidence, Run, Scores, accuracy, curve_value, matched, on_training, up
from dpstudy.tables.grouping import grouped

_TECHNIQUES = 5  # that Table 2 adds one after another
_COPIES, _WEIGHTS = 16, 1000  # of the example at which the norm of a contribution is computed
_EARLY = 8.0  # the epsilon at which Figure 9 compares early in training


def setting(run: Run, name: str):
    """The value of one hyper-parameter of a cell; None where it has none."""
    return run.metrics.get("hyperparameters", {}).get(name)


def copies(run: Run) -> int:
    """The augmentation multiplicity K of a cell; 0 without augmentation."""
    return (setting(run, "augmentation") or {}).get("multiplicity", 0)


def by_number(scores: Scores, role: str, name: str, deep: bool | None = None) -> list[list[Run]]:
    """Lists of a role's runs by data set and epsilon, each ordered by a setting; runs without it are left out.

    Args:
        deep: only runs with WRN-40-4, of Figures 10 and 11, or only others.
    """

    def wanted(run: Run) -> bool:
        is_deep = str(setting(run, "network") or "").startswith("wrn-40")
        return setting(run, name) is not None and deep in (None, is_deep)

    return [sorted(group, key=lambda run: setting(run, name)) for group in scores.in_order(role, wanted)]


def measured(groups: Sequence[Sequence[Run]]) -> bool:
    """Whether the accuracy on training records is known for all of these runs."""
    return bool(groups) and all(on_training(run) for group in groups for run in group)


def _steps(scores: Scores) -> list[list[Run]]:
    """The cells of complete ablations."""
    return [group for group in scores.in_order("ablation") if len(group) == 1 + _TECHNIQUES]


def with_one_more(scores: Scores, number: int) -> Triples:
    """(cell, with the technique of this number in Table 2, with those before it alone)."""
    return up(group[number - 1 : number + 1] for group in _steps(scores))


def with_averaging(scores: Scores) -> Triples:
    """(cell, with averaging of the parameters, without it)."""
    return [*scores.pairs("wrn-16-4", "unaveraged"), *up(group[-2:] for group in _steps(scores))]


def no_copies(scores: Scores, training: bool = False) -> Triples | None:
    """(cell, without augmentation, with one copy per record); on training records None where they are not measured."""
    groups = [[run for run in reversed(group) if copies(run) < 2] for group in _by_copies(scores)]
    if training:
        return up(groups, on_training) if measured(groups) else None
    return up(groups)


def more_copies_each(scores: Scores) -> Triples:
    """(cell, with more copies per record, with the next fewer), from one copy on."""
    return up([run for run in group if copies(run) >= 1] for group in _by_copies(scores))


def _by_copies(scores: Scores) -> list[list[Run]]:
    return [sorted(group, key=copies) for group in scores.in_order("multiplicity")]


def same_sensitivity(evidence: Evidence) -> Finding:
    """Judge the claim: the mean of K gradients, clipped, has norm at most C; the noise does not depend on K."""
    gradients = np.random.default_rng(0).normal(size=(_COPIES, _WEIGHTS))
    mean = float(np.linalg.norm(_clipped(gradients.mean(axis=0))))
    single = float(np.linalg.norm(sum(_clipped(gradient) for gradient in gradients)))
    text = f"C = 1, {_COPIES} random gradients: norm {mean:.3f} averaged and clipped, {single:.1f} clipped and summed"
    alike = grouped(
        evidence.ours.of_role("multiplicity"),
        lambda run: (run.dataset, run.epsilon, run.n, setting(run, "batch_size"), setting(run, "steps")),
    )
    groups = [group for group in alike if len({copies(run) for run in group}) > 1]
    same = sum(len({_noise(run) for run in group}) == 1 for group in groups)
    here = f"{same} of {len(groups)} groups of cells that differ in K alone have the same noise"
    if same < len(groups):
        return decided(False, CELLS, text, here)
    return decided(mean <= 1 + 1e-9, COMPUTED, text, here if groups else "")


def _noise(run: Run) -> tuple:
    """The noise multiplier of a cell and the sensitivities that its ledger counts."""
    return setting(run, "noise_multiplier"), *(event["sensitivity"] for event in run.ledger.get("events", []))


def _clipped(gradient: np.ndarray) -> np.ndarray:
    """A gradient clipped to norm 1, as in Equation (4)."""
    return gradient * min(1.0, 1.0 / float(np.linalg.norm(gradient)))


def plain_on_training(scores: Scores) -> Triples | None:
    """(cell, without weight decay, with it) on training records, where they are measured."""
    pairs = matched(scores.of_role("wrn-16-4"), scores.of_role("regularised"), "dataset", "epsilon")
    both = [[decayed, run] for run, decayed in pairs]
    return up(both, on_training) if measured(both) else None


def clipping_norms(scores: Scores) -> Triples:
    """(cell with normalised updates and C below 1, its accuracy, that with the largest C up to 1) at one rate."""
    for runs in by_number(scores, "clipping", "clipping_norm"):
        small = [run for run in runs if setting(run, "clipping_norm") <= 1 and setting(run, "normalised")]
        for *others, last in grouped(small, lambda run: setting(run, "learning_rate")):
            rate = setting(last, "learning_rate")
            for run in others:
                name = f"{run.dataset} C = {setting(run, 'clipping_norm'):g}, η = {rate:g}"
                yield name, run.accuracy, last.accuracy


def _at_8(run: Run) -> Value | None:
    """The accuracy at epsilon 8, at the end of training or on the way."""
    return run.accuracy if run.epsilon == _EARLY else curve_value(run, _EARLY)


def _depths(scores: Scores, augmented: bool) -> list[list[Run]]:
    """Runs from the shallowest network to the deepest that have as many copies: none, or more than one."""
    wanted = [run for run in scores.of_role("depths") if (copies(run) > 1 if augmented else copies(run) == 0)]
    groups = grouped(sorted(wanted, key=copies), lambda run: (copies(run), run.dataset, run.epsilon, run.n))
    return [group for group in groups if len(group) > 1]


def _network(run: Run) -> str:
    return f"{run.at}, {run.entry}"


def shallow_over_deeper(scores: Scores) -> Triples:
    """(deeper network, accuracy of the shallowest, its own) at epsilon 8 without augmentation."""
    for shallowest, *deeper in _depths(scores, augmented=False):
        for run in deeper:
            yield _network(run), _at_8(shallowest), _at_8(run)


def deeper_over_shallow(scores: Scores, augmented: bool) -> Triples:
    """(network, best of the deeper networks, the shallowest): at epsilon 8 with several copies, else at the end of
    training beyond."""
    value = _at_8 if augmented else accuracy
    for shallowest, *deeper in _depths(scores, augmented):
        if augmented or shallowest.epsilon > _EARLY:
            yield _network(shallowest), highest(map(value, deeper)), value(shallowest)
