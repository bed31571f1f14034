"""Findings on claims: a verdict, and the numbers behind it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpstudy.tables.claims.grid import ROUNDING, Triples, Value, average, compare

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be decided here"
CELLS, PRINTED, COMPUTED, MEASUREMENT = "these cells", "the printed numbers", "computation", "a measurement"
TOLERATED = 0.1  # the share of comparisons that two standard errors let go wrong by chance, and some more
UNDECIDED = "undecided within the noise"  # of a comparison that was made
_NAMED = 3  # exceptions that are named
MISSING = "No cells with the methods, pre-training and epsilons that the claim names"


@dataclass(frozen=True)
class Finding:
    """The finding on a claim: its verdict, what decided it, and what the printed numbers and our cells say.

    The verdict is HOLDS, FAILS or OPEN; `decided_by` is CELLS, PRINTED or COMPUTED, empty where open. `here` may say
    why the cells say nothing.
    """

    verdict: str
    decided_by: str
    printed: str = ""
    here: str = ""


@dataclass
class Part:
    """One comparison within a claim, counted over cells: "left exceeds right".

    `printed` is the least difference that the paper prints, of a comparison of our cells; 0: it prints none.
    """

    text: str
    wins: int = 0
    ties: int = 0
    losses: list[str] = field(default_factory=list)
    differences: list[Value] = field(default_factory=list)
    printed: float = 0.0

    @classmethod
    def of(cls, text: str, triples: Triples, margin: float | None = None) -> "Part":
        """Counts of comparisons (cell name, left, right); missing ones and those left open by a bound are skipped.

        Args:
            margin: if given, right wins where left is significantly further below it than so many points. Else left
                wins where that is ruled out, or it is not further below and two standard errors are no more than the
                margin, so that it would be seen (or there is none to see: 0). Else, as of a single seed, it is a tie.
        """
        part = cls(text)
        for name, left, right in triples:
            if left is None or right is None:
                continue
            sign = compare(left, right) if margin is None else _not_below(left, right, margin)
            if sign is None:
                continue
            part.wins += sign > 0
            part.ties += sign == 0
            if sign < 0:
                part.losses.append(str(name))
            if (difference := left - right) is not None:
                part.differences.append(difference)
        return part

    @property
    def counted(self) -> int:
        """The number of comparisons."""
        return self.wins + self.ties + len(self.losses)

    @property
    def verdict(self) -> str:
        """FAILS if over one comparison in ten contradicts, else HOLDS if over one in ten supports; else FAILS if a
        difference of the printed size is ruled out, else OPEN."""
        return FAILS if self._counts == OPEN and self._ruled_out else self._counts

    @property
    def _counts(self) -> str:
        """The verdict by counts alone."""
        if len(self.losses) > TOLERATED * self.counted:
            return FAILS
        return HOLDS if self.wins > TOLERATED * self.counted else OPEN

    @property
    def _ruled_out(self) -> bool:
        """Whether our mean difference, and three standard errors, are less than half of the least that is printed.

        That there is nothing asks for more than that there is something, where a difference counts from two on: with
        three seeds three standard errors are about the 95 % interval. (Tests of equivalence: Schuirmann, 1987.)
        """
        mean = average(self.differences)
        if mean is None or mean.error is None or self.printed <= 0:
            return False
        return mean.number + 3 * mean.error < self.printed / 2

    def __str__(self) -> str:
        if not self.counted:
            return f"{self.text}: no cells to compare"
        text = f"{self.text}: {self.wins} of {self.counted} for, {self.ties} ties, {len(self.losses)} against"
        if self.losses:
            more = len(self.losses) - _NAMED
            text += f" ({', '.join(self.losses[:_NAMED])}{f' and {more} more' if more > 0 else ''})"
        mean = average(self.differences)
        if mean is not None:
            text += f"; mean difference {mean.mean:+.2f}".replace("-", "−")
            text += f" ± {2 * mean.error:.2f}" if mean.error else ""
        if self._counts != OPEN:
            return text
        return (
            f"{text}, less than half of the least printed, {self.printed:+.2f}"
            if self._ruled_out
            else f"{text}; {UNDECIDED}"
        )


Parts = Callable[[Any], Sequence[Part]]  # of the printed numbers, or of our cells


def _not_below(left: Value, right: Value, margin: float) -> int | None:
    difference = left - right
    if difference is None:
        return None
    sign = compare(replace(left, mean=left.number + margin), right)
    if sign or difference.error is None or margin == 0:
        return sign or int(difference.error is not None)
    return int(difference.number >= -margin - ROUNDING and 2 * difference.error <= margin + ROUNDING)


def judged(parts: Sequence[Part], missing: str = MISSING) -> tuple[str, str]:
    """The verdict on a claim made of these comparisons, and the numbers; `missing` where there are none."""
    if not any(part.counted for part in parts):
        return OPEN, missing
    return worst(part.verdict for part in parts), ". ".join(map(str, parts))


def worst(verdicts: Iterable[str]) -> str:
    """The verdict on a claim of several parts: that of the first kind there is of FAILS, OPEN and HOLDS."""
    return min(verdicts, key=(FAILS, OPEN, HOLDS).index)


def lacking(roles: str) -> str:
    """What is said where a study has no cells in the roles that a claim compares."""
    return f"The study has no cells to compare in the roles {roles}"


def on_both(evidence: Any, parts_of: Parts, about_the_tables: bool = False, missing: str | None = None) -> Finding:
    """The finding by our cells (`evidence.ours`) where they decide, else by the printed numbers.

    Both are compared in the same way, and what noise leaves undecided in ours is held against what is printed.

    Printed numbers can contradict a claim, but only confirm it where it is one about the tables themselves.
    """
    missing, of_printed, of_ours = missing or MISSING, parts_of(evidence.printed), parts_of(evidence.ours)
    for part in of_ours:
        claimed = [value.number for one in of_printed if one.text == part.text for value in one.differences]
        part.printed = min(claimed, default=0.0)
    (printed, printed_text), (here, here_text) = judged(of_printed, missing), judged(of_ours, missing)
    if printed != OPEN:
        printed_text = f"As printed it {printed}: {printed_text}"
    elif printed_text == missing:
        printed_text = ""
    if here != OPEN:
        return Finding(here, CELLS, printed_text, here_text)
    if printed == FAILS or (printed == HOLDS and about_the_tables):
        return Finding(printed, PRINTED, printed_text, here_text)
    return Finding(OPEN, "", printed_text, here_text)


def on_cells(parts: Sequence[Part], missing: str, printed: str = "") -> Finding:
    """The finding by our cells alone; `missing` says what the study lacks where there are none."""
    verdict, here = judged(parts, missing)
    return Finding(verdict, "" if verdict == OPEN else CELLS, printed, here)


def noted(found: Finding, printed: str = "", here: str = "") -> Finding:
    """The finding with more text on the printed numbers, or on the cells."""
    both = ((found.printed, printed), (found.here, here))
    printed, here = (". ".join(text for text in texts if text) for texts in both)
    return replace(found, printed=printed, here=here)


def undecided(why: str, printed: str = "") -> Finding:
    """The finding on a claim that neither the printed numbers nor the cells decide."""
    return Finding(OPEN, "", printed, why)


def decided(true: bool, by: str, text: str, here: str = "") -> Finding:
    """The finding on a claim that printed numbers or a computation decide."""
    return Finding(HOLDS if true else FAILS, by, text, here)
