"""Audit in one training run with many canaries, each included by a coin flip (Steinke, Nasr and Jagielski 2023).

For networks, whose canaries cannot be kept apart by a feature of their own and of which a training takes long. The
canaries are random images. The learning rate is tiny, so that the model stays where it began and what canary i would
add to a step is one clipped gradient g_i, which the method's own training of that canary alone gives. The steps that
were released sum up to S = sum_i b_i g_i and noise; with G the gradients, (G G^T)^-1 G S is the unbiased estimate of
all coins b at once, each with a variance known up to one factor, and hence the likelihood ratio of each coin. The
attacker guesses those of which it is surest, and how many it guesses right bounds epsilon (privacy/audit.py). Any guess
gives a valid bound.
"""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from dpstudy.auditing.canaries import Game, heaviest, trained
from dpstudy.auditing.tapes import Attacked, EnoughError, Replay
from dpstudy.core.errors import StudyError
from dpstudy.methods.banded import BandedReleases
from dpstudy.privacy.audit import guessed, guesses_to_make
from dpstudy.privacy.gaussian import mu_of
from dpstudy.privacy.noise import NoiseSource

STATISTIC = "coins of random images, guessed from the sum of the released gradients"
_RIDGE = 1e-9  # relative to the mean squared length of a gradient
_SPREAD = 2.0  # of pixels
_HELD = 1 << 30  # numbers: 4 GB


class _Sums:
    """Sums of gradients over steps, tensor by tensor, from their releases or the queries behind these.

    Args:
        parameters: of the method; where noise is correlated over steps, rows of releases mix several of them.
    """

    def __init__(self, parameters: Any):
        bands = getattr(parameters, "bands", 1)
        self._mixed = bands > 1
        self._releases = BandedReleases(bands, parameters.carried if self._mixed else 0.0)
        self.totals: dict[str, np.ndarray] = {}

    def add(self, tensor: str, row: np.ndarray) -> None:
        """Add the next row of a tensor."""
        name = tensor.rpartition(" ")[0] if self._mixed else tensor
        self.totals[name] = self.totals.get(name, 0.0) + self._releases.estimate(row.astype(np.float64), name)


class _Steps(list):
    """A transcript that keeps the first of the releases called `name`, and of all of them the sums alone."""

    def __init__(self, name: str, sums: _Sums):
        super().__init__()
        self._name, self._at, self.sums = name, None, sums

    def append(self, entry) -> None:
        """Take note of (name, step, tensor, what was released)."""
        name, step, tensor, noisy = entry
        if name == self._name:
            self._at = step if self._at is None else self._at
            self.sums.add(tensor, noisy)
            if step != self._at:
                return
        super().append(entry)


class _First(Replay):
    """A tape that ends with the first of the releases called `name`."""

    def __init__(self, run: NoiseSource, name: str, sums: _Sums):
        super().__init__(run)
        self._name, self._at, self.sums = name, None, sums

    def released(self, name, query, std, step=0, tensor="", symmetric=False):
        """What was released in the run; keeps the queries of the first release."""
        if name == self._name:
            self._at = step if self._at is None else self._at
            if step != self._at:
                raise EnoughError
            self.sums.add(tensor, query)
        return super().released(name, query, std, step, tensor, symmetric)


def one_run(
    game: Game, canaries: int, confidence: float, mode: str = "seeded", key: Sequence[object] = ()
) -> list[dict]:
    """The entries of audit.json from one training: a lower bound on epsilon by guessing which canaries took part.

    Args:
        canaries: how many take part, each by a coin; a training of one step follows for each.
        confidence: of the bound.
        key: in mode "seeded" the same key plays the same game again; empty: one that nobody else has.
    """
    target, delta = game.problem.budget.target, game.problem.budget.delta
    present, evidence = play_once(game, canaries, mode, key)
    made = guesses_to_make(canaries, mu_of(target, delta), delta, confidence)
    surest = np.argsort(-np.abs(evidence), kind="stable")[:made]
    correct = int(np.sum((evidence[surest] > 0) == present[surest]))
    return [
        {
            "bound": "one-run",
            "adjacency": game.adjacency,
            "statistic": STATISTIC,
            "runs": canaries,
            "confidence": confidence,
            "epsilon_lower": guessed(correct, made, canaries, delta, confidence),
        }
    ]


def play_once(
    game: Game, canaries: int, mode: str = "seeded", key: Sequence[object] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """(canaries,) the coins, and a score of each canary that is larger the likelier it took part.

    Args:
        key: as of `one_run`.

    Raises:
        StudyError: the canaries' gradients do not fit into memory.
    """
    key = key or (secrets.token_hex(16),)
    rng = NoiseSource("seeded", "audit", *key).sampling("coins")
    game = replace(game, canaries=canaries)
    images = _SPREAD * rng.standard_normal((canaries, game.problem.dim)).astype(np.float32)
    classes = rng.choice(heaviest(game.problem), size=canaries)
    present = rng.random(canaries) < 0.5
    source = Attacked(mode, "audit", *key)
    event = max(game.plan.events, key=lambda event: event.count)  # the steps; what normalises comes once
    source.transcript = steps = _Steps(event.name, _Sums(game.parameters))
    trained(game, present, source, (images, classes))
    total = _flat(steps.sums.totals.values())
    if canaries * len(total) > _HELD:
        raise StudyError(
            f"audit.canaries: {canaries} gradients of {len(total)} numbers do not fit into memory; at most "
            f"{_HELD // len(total)}"
        )
    alone = (_alone(game, number, source, event.name, (images, classes)) for number in range(canaries))
    gradients = np.stack([_flat(parts) for parts in alone])
    return present, _evidence(gradients, total / (event.count * event.sampling_rate))


def _alone(game: Game, number: int, run: NoiseSource, name: str, records) -> list[np.ndarray]:
    """What one canary adds to the first step that it takes part in, tensor by tensor."""
    tape, who = _First(run, name, _Sums(game.parameters)), np.arange(game.canaries) == number
    with suppress(EnoughError):
        trained(game, who, tape, records)
    return list(tape.sums.totals.values())


def _evidence(gradients: np.ndarray, mean_step: np.ndarray) -> np.ndarray:
    """(canaries,) log-likelihood ratios of the coins, up to one positive factor."""
    gram = (gradients @ gradients.T).astype(np.float64)
    gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram) / len(gram)
    inverse = np.linalg.inv(gram)
    return (inverse @ (gradients @ mean_step) - 0.5) / inverse.diagonal()


def _flat(tensors) -> np.ndarray:
    return np.concatenate([tensor.ravel() for tensor in tensors]).astype(np.float32)
