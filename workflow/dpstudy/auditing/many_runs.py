"""Lower bounds on epsilon from many runs of the canary game: entries of audit.json."""

from collections.abc import Sequence

import numpy as np

from dpstudy.auditing.canaries import Game, play
from dpstudy.privacy.audit import OF_MODEL, distinguished
from dpstudy.privacy.events import unamplified

_HELD_OUT = 0.2  # of the runs, on which the threshold is fixed
STATISTIC = "likelihood ratio of all releases for a canary with the largest contribution that clipping allows"


def attack(
    game: Game, runs: int, confidence: float, mode: str = "seeded", shared: bool = False, key: Sequence[object] = ()
) -> list[dict]:
    """The entries of audit.json from playing the game: lower bounds on epsilon.

    Args:
        runs: with the canary, and as many without it; a fifth of them fix the threshold.
        confidence: of each bound.
        shared: the noise is one vector for all (a control): the attacker looks where it cancels.
        key: as of `play`.
    """
    return bounds(game, *play(game, runs, mode, shared, key), confidence, shared)


def bounds(game: Game, present: np.ndarray, absent: np.ndarray, confidence: float, shared: bool = False) -> list[dict]:
    """The entries of audit.json from the attack statistics of runs with the canary and of as many without it.

    Args:
        present, absent: (runs,) as of `play`.
        confidence, shared: as of `attack`.
    """
    runs = len(present)
    cut = max(1, round(_HELD_OUT * runs))
    held_out, tested = (present[:cut], absent[:cut]), (present[cut:], absent[cut:])
    delta, events = game.problem.budget.delta, game.plan.events
    kinds = {"clopper-pearson": False}
    if unamplified(events) and not shared and game.adjacency == "add-remove-one":
        kinds["gaussian-dp"] = True
    return [
        {
            "bound": kind,
            "adjacency": game.adjacency,
            "statistic": OF_MODEL if game.last_iterate_only or game.sees_model else STATISTIC,
            "runs": runs - cut,
            "confidence": confidence,
            "epsilon_lower": distinguished(held_out, tested, delta, confidence, gaussian_dp),
        }
        for kind, gaussian_dp in kinds.items()
    ]
