"""The black-box audit of de2022 (appendix A.2): membership inference by the released model's loss on one record.

D and D' = D and one more record z are trained on many times, with the method's own `prepare` and `fit`, all from the
same start, each time with noise and batches of its own. The attacker sees the loss of the model on z alone. Phase I
tries settings, which all have the same guarantee, and keeps the one whose losses with and without z are farthest apart,
as Gaussians. Phase II trains many models at that setting: some fix the threshold, the others bound epsilon.

The models on D do not depend on z: they serve all of a setting's candidates for z. So candidates are compared on the
same models, and 1 + (how many z) trainings do what 2 (how many z) would.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType

import numpy as np

from dpstudy.auditing.black_box_canaries import Canary
from dpstudy.auditing.loss_journal import LossJournal
from dpstudy.auditing.membership import advantage, area_under_curve, largest_advantage
from dpstudy.auditing.total_variation import fitted_distance
from dpstudy.core.progress import progress
from dpstudy.methods.problem import Plan, Problem
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.audit import distinguished
from dpstudy.privacy.ledger import check_run
from dpstudy.privacy.noise import NoiseSource

_MOST_HELD_OUT = 10_000  # models a side, the paper's 2 %; where there are few of them a larger share is needed
_HELD_OUT = 0.2


@dataclass(frozen=True)
class Setting:
    """Hyper-parameters that phase I tries; None keeps the entry's value."""

    learning_rate: float | None = None
    clipping_norm: float | None = None
    steps: int | None = None

    def of(self, parameters):
        """The method's parameters with this setting's values in place of theirs."""
        changed = {key: value for key, value in vars(self).items() if value is not None}
        if "steps" in changed:  # in place of what else says how many there are
            changed |= {"epochs": None, "noise_multiplier": None}
        return replace(parameters, **changed)


@dataclass(frozen=True)
class Tried:
    """A canary at a setting, and the total variation distance between the losses with and without it."""

    canary: str
    setting: Setting
    distance: float


@dataclass(frozen=True)
class Arena:
    """The data set D, the method that is trained on it, and the candidate canaries z.

    Attributes:
        module: of the method.
        parameters: its `Parameters`.
        problem: n = |D| and the budget, whose delta is the audit's.
        images: (|D|, d) as `prepare` takes them.
        labels: (|D|,).
        canaries: name -> (image (d,), label).
        mode: of the noise.
        key: of the noise, beside what tells apart the runs of this audit.
        beside: further arguments of `prepare`.
        journal: of the models that are trained already, or None.
    """

    module: ModuleType
    parameters: object
    problem: Problem
    images: np.ndarray
    labels: np.ndarray
    canaries: Mapping[str, Canary]
    mode: str = "seeded"
    key: tuple[str, ...] = ()
    beside: Mapping[str, object] = field(default_factory=dict)
    journal: LossJournal | None = None
    _plans: dict[Setting, Plan] = field(default_factory=dict, compare=False)

    def losses(self, phase: str, setting: Setting, canary: str | None, models: int) -> np.ndarray:
        """(models, canaries) losses on every canary of models trained on D with `canary` added, or (None) on D alone.

        Raises:
            RuntimeError: a run released anything else than its plan declares.
            StudyError: as the method.
        """
        parameters = setting.of(self.parameters)
        plan = self.plan(setting)
        data = self.module.prepare([self._rows(canary)], parameters, self.problem, **self.beside)
        losses = np.empty((models, len(self.canaries)))
        key = (*self.key, phase, setting, canary)
        known = self.journal.known(key) if self.journal else []
        losses[: len(known)] = known or losses[:0]
        for number in progress(range(models), f"{phase}, {canary or 'without'}", models, before=len(known)):
            if number < len(known):
                continue
            source = _SameStart(self.mode, self.key, *key, number)
            model = self.module.fit(data, parameters, self.problem, plan, source).model
            check_run(plan.events, source)
            losses[number] = self._losses_of(model, parameters)
            if self.journal:
                self.journal.add(key, losses[number].tolist())
        return losses

    def plan(self, setting: Setting) -> Plan:
        """The planned releases of a training at a setting, cached, since calibrating its noise takes seconds."""
        if setting not in self._plans:
            self._plans[setting] = self.module.plan(setting.of(self.parameters), self.problem)
        return self._plans[setting]

    def _rows(self, canary: str | None) -> tuple[np.ndarray, np.ndarray]:
        if canary is None:
            return self.images, self.labels
        image, label = self.canaries[canary]
        return np.concatenate([self.images, image[None]]), np.append(self.labels, label)

    def _losses_of(self, model, parameters) -> np.ndarray:
        import torch

        from dpstudy.methods.record_gradients import record_losses

        images, labels = (np.stack(values) for values in zip(*self.canaries.values(), strict=True))
        scores = torch.from_numpy(model.scores(images)).double()
        return record_losses(scores, torch.from_numpy(labels), parameters.loss).numpy()


class _SameStart(NoiseSource):
    """Noise of a run of its own, which starts where every run of the audit does: a random start would only weaken the
    attack (de2022 A.2)."""

    def __init__(self, mode: str, start: tuple[str, ...], *key: object):
        super().__init__(mode, *key)
        self._start = NoiseSource("seeded", *start, "start")

    def sampling(self, name):
        """The generator of a run; of the initialisation, that of all runs."""
        return self._start.sampling(name) if name == "initialisation" else super().sampling(name)


def settings_of(space: Mapping[str, Sequence]) -> list[Setting]:
    """Every combination of the values in `space`: learning_rate, clipping_norm and steps.

    A key that is absent keeps the entry's value.
    """
    rates, norms, counts = (space.get(key, [None]) for key in ("learning_rate", "clipping_norm", "steps"))
    return [Setting(rate, norm, steps) for steps in counts for norm in norms for rate in rates]


def phase_one(arena: Arena, settings: Sequence[Setting], models: int) -> list[Tried]:
    """The distance between the losses with and without each canary, at each setting.

    Args:
        models: on D, and on D' for each z.
    """
    tried = []
    for setting in settings:
        absent = arena.losses("phase I", setting, None, models)
        for place, canary in enumerate(arena.canaries):
            present = arena.losses("phase I", setting, canary, models)
            tried.append(Tried(canary, setting, fitted_distance(present[:, place], absent[:, place])))
    return tried


def phase_two(arena: Arena, chosen: Tried, models: int) -> tuple[np.ndarray, np.ndarray]:
    """(models,) attack statistics (minus the loss on the canary) of new models trained with it and without it."""
    place = list(arena.canaries).index(chosen.canary)
    present, absent = (
        -arena.losses("phase II", chosen.setting, canary, models)[:, place] for canary in (chosen.canary, None)
    )
    return present, absent


def bounded(present: np.ndarray, absent: np.ndarray, epsilon: float, delta: float, confidence: float) -> dict:
    """The lower bound on epsilon that phase II proves, and the attacker's AUC and advantage.

    Args:
        present, absent: the statistic with z and without it; the first ones of each fix the threshold.
        epsilon, delta: the guarantee under attack.
        confidence: of the bound.

    Returns:
        The keys held_out and runs (a side), confidence, epsilon_lower, auc, advantage and advantage_upper of
        black-box.json.
    """
    cut = min(_MOST_HELD_OUT, max(1, math.ceil(_HELD_OUT * len(present))))
    held_out, runs = (present[:cut], absent[:cut]), (present[cut:], absent[cut:])
    return {
        "held_out": cut,
        "runs": len(runs[0]),
        "confidence": confidence,
        "epsilon_lower": distinguished(held_out, runs, delta, confidence),
        "auc": area_under_curve(*runs),
        "advantage": advantage(held_out, runs),
        "advantage_upper": largest_advantage(epsilon, delta),
    }


def black_box(arena: Arena, space: Mapping[str, Sequence], pilot: int, models: int, confidence: float) -> dict:
    """The content of black-box.json except its verdict, from both phases.

    Args:
        space: as of `settings_of`.
        pilot: models a side and setting in phase I.
        models: a side in phase II.
    """
    tried = phase_one(arena, settings_of(space), pilot)
    chosen = max(tried, key=lambda one: one.distance)
    budget = arena.problem.budget
    bounds = bounded(*phase_two(arena, chosen, models), budget.target, budget.delta, confidence)
    return {
        "epsilon": budget.target,
        "delta": budget.delta,
        "epsilon_certified": certify(arena.plan(chosen.setting).events, budget.delta).epsilon,
        "records": arena.problem.n,
        "pilot": pilot,
        "tried": [_listed(one, arena.parameters) for one in tried],
        "chosen": _listed(chosen, arena.parameters),
        **bounds,
    }


def _listed(tried: Tried, parameters) -> dict:
    """One setting as it stands in black-box.json."""
    settings = tried.setting.of(parameters)
    values = {key: getattr(settings, key) for key in ("learning_rate", "clipping_norm", "steps")}
    known = {key: value for key, value in values.items() if value is not None}
    return {"canary": tried.canary, **known, "distance": tried.distance}
