"""The privacy budget of one seed of a cell: a target epsilon, spelled as in the config, and delta."""

import math
import re
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal

from dpstudy.core.errors import StudyError
from dpstudy.privacy.printed import upper_bound

_PLACES = Decimal("1e-12")
EPSILON_PATTERN = r"^(inf|0\.[0-9]*[1-9]|[1-9][0-9]*(\.[0-9]*[1-9])?)$"


def parse_epsilon(text: str) -> float:
    """The number in an epsilon string, which must be in its shortest form since it names a folder.

    >>> parse_epsilon("0.5"), parse_epsilon("inf")
    (0.5, inf)

    Raises:
        StudyError: not a positive number in its shortest form, nor "inf".
    """
    if not re.fullmatch(EPSILON_PATTERN[1:-1], str(text)):  # not match: "$" would let a final newline pass
        raise StudyError(
            f"epsilon {text!r}: must be 'inf' or a positive decimal number in its shortest form, "
            "such as '0.5', '1' or '2.93'"
        )
    return math.inf if text == "inf" else float(text)


def spelled(epsilon: float) -> str:
    """An epsilon in the spelling of budgets, rounded down.

    >>> spelled(0.30000000000000004), spelled(2.0)
    ('0.3', '2')

    Raises:
        StudyError: nothing is left of it.
    """
    text = f"{Decimal(epsilon).quantize(_PLACES, ROUND_DOWN).normalize():f}"
    if Decimal(text) <= 0:
        raise StudyError(f"epsilon {upper_bound(epsilon)}: too little is left for a run")
    return text


@dataclass(frozen=True)
class Budget:
    """The privacy budget of one seed of one cell.

    Attributes:
        epsilon: the target's spelling in the config, "inf" for no privacy.
        delta: in (0, 1).
        accounting: "certified", or the name of a paper whose own conversion calibrates the noise (for
            comparison; the ledger certifies what that noise is worth).
    """

    epsilon: str
    delta: float
    accounting: str = "certified"

    def __post_init__(self):
        parse_epsilon(self.epsilon)
        if not 0 < self.delta < 1:
            raise StudyError(f"delta {self.delta!r}: must lie between 0 and 1")

    @property
    def target(self) -> float:
        """The target epsilon as a number."""
        return float(self.epsilon)  # parsed already: learners ask in every step

    @property
    def private(self) -> bool:
        """Whether the target epsilon is finite."""
        return not math.isinf(self.target)
