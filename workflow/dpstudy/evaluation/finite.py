"""A check that scores are finite, made where they are computed and where they are evaluated."""

import numpy as np

from dpstudy.core.errors import StudyError


def check_scores(scores: np.ndarray) -> None:
    """Refuse scores that are NaN or infinite.

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
