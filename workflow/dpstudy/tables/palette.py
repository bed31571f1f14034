"""Colours and markers of a study: an entry keeps its colour and a kind of features its marker in every figure."""

# Okabe and Ito's colours, told apart by readers who see colours differently; black and yellow left out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7A5195", "#6B6B6B")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")


def style(features: str, entry: str, axes: dict[str, list[str]]) -> dict:
    """Matplotlib keywords of a line: colour by entry, marker and dashes by features."""
    kind = axes["features"].index(features)
    return {
        "color": COLOURS[axes["entries"].index(entry) % len(COLOURS)],
        "marker": MARKERS[kind % len(MARKERS)],
        "linestyle": LINES[kind % len(LINES)],
    }
