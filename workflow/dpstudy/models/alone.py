"""Scores of private records that are each computed alone, so that none depends on which others there are.

What a processor adds up for several records at once it may add up in another order than for one; the last bits of a
record's scores then depend on how many stand beside it.
"""

import numpy as np


def scores_alone(model, features: np.ndarray) -> np.ndarray:
    """(n, m) scores of (n, d) features, computed for one record at a time."""
    if hasattr(model, "scores_alone"):
        return model.scores_alone(features)
    alone = np.empty((1, features.shape[1]), features.dtype)  # one place in memory for all of them
    scores = []
    for values in features:
        alone[0] = values
        scores.append(model.scores(alone)[0])
    return np.array(scores, np.float32) if scores else model.scores(features)
