"""Labels from (medical) findings: several are multi-label, a single one makes two classes.

With one label alone, scores that are centred over labels (kernel means, say) would be constant.
"""

import numpy as np


def classes_of(findings: list[str]) -> list[str]:
    """The class names of these findings.

    >>> classes_of(["Edema", "Effusion"]), classes_of(["Edema"])
    (['Edema', 'Effusion'], ['no Edema', 'Edema'])
    """
    return [f"no {findings[0]}", findings[0]] if len(findings) == 1 else findings


def labels_of(found: np.ndarray) -> np.ndarray:
    """(n, m) zeros and ones, unchanged; for a single finding, (n,) int32 class indices."""
    return found[:, 0].astype(np.int32) if found.shape[1] == 1 else found
