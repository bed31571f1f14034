"""Scores that say nothing are refused, where they are made and where they are judged."""

import numpy as np

from dpstudy.core.errors import StudyError


def check_scores(scores: np.ndarray) -> None:
    """Refuse scores that say nothing.

    Args:
        scores: (n, m).

    Raises:
        StudyError: one is NaN or infinite.
    """
    broken = ~np.isfinite(scores).all(axis=1)
    if broken.any():
        raise StudyError(
            f"evaluation: row {np.argmax(broken)} has a score that is NaN or infinite ({broken.sum()} of {len(broken)} "
            "rows do); lower the learning rate or the clipping norm of this entry"
        )
