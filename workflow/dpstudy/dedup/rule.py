"""The decision rule for copies: thresholds and their defaults."""

from dataclasses import dataclass

from dpstudy.core.errors import StudyError

SQUARES_THRESHOLD = 0.99  # of small grey squares; see match.py for what it was measured on


@dataclass(frozen=True)
class Rule:
    """The thresholds from which two aligned images are copies.

    Attributes:
        threshold: correlation from which they always are.
        possible: correlation from which they are if they stand out.
        margin: how small a part of the reference's distance theirs must then be.

    Raises:
        StudyError: they are not 0 < possible <= threshold <= 1 and 0 <= margin < 1.
    """

    threshold: float = 0.997
    possible: float = 0.93
    margin: float = 0.12

    def __post_init__(self):
        if not 0 < self.possible <= self.threshold <= 1:
            raise StudyError(
                f"dedup: possible is {self.possible} and threshold {self.threshold}; it must be 0 < possible <="
                " threshold <= 1"
            )
        if not 0 <= self.margin < 1:
            raise StudyError(f"dedup: margin is {self.margin}; it must be at least 0 and below 1")
