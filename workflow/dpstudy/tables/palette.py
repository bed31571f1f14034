"""Colours and markers of a study: each entry has its colour, and each feature set its marker, in every figure.

Two exceptions: a figure that draws a single entry several times tells its lines apart by colour, and one that draws two
entries of the same colour (a study may have more entries than there are colours) numbers its own.
"""

from collections.abc import Mapping, Sequence

# Okabe and Ito's colours, told apart by readers who see colours differently; black and yellow left out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7A5195", "#6B6B6B")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")


def colours(entries: Sequence[str], axes: Mapping[str, Sequence[str]]) -> list[str]:
    """The colours of a figure's lines, given the entry of each.

    Args:
        entries: one a line; an entry may have several lines, which then share its colour.
        axes: the study's names, in config order.
    """
    distinct = list(dict.fromkeys(entries))
    colour_of = {entry: COLOURS[axes["entries"].index(entry) % len(COLOURS)] for entry in distinct}
    if len(distinct) == 1 < len(entries):
        return [COLOURS[number % len(COLOURS)] for number in range(len(entries))]
    if len(set(colour_of.values())) < len(distinct):
        colour_of = {entry: COLOURS[number % len(COLOURS)] for number, entry in enumerate(distinct)}
    return [colour_of[entry] for entry in entries]


def marker(features: str, kinds: Sequence[str], lap: int = 0) -> dict:
    """Matplotlib's marker and line style of a line, by its features.

    Args:
        lap: how many lines of these features have its colour already; these differ in marker.
    """
    kind = kinds.index(features)
    return {"marker": MARKERS[(kind + lap * len(kinds)) % len(MARKERS)], "linestyle": LINES[kind % len(LINES)]}


def dashes(line_colours: Sequence[str]) -> list[str]:
    """A dash pattern for each line, such that lines of one colour differ, as far as there are patterns."""
    before = [line_colours[:number].count(colour) for number, colour in enumerate(line_colours)]
    return [LINES[count % len(LINES)] for count in before]
