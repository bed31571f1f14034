"""Markdown tables."""

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]], nothing: str = "") -> str:
    """The text of a Markdown table; of one without rows `nothing`, where there is such a text.

    >>> print(table(("a", "b"), [("1", "x|y")]), end="")
    | a | b |
    |---|---|
    | 1 | x\\|y |
    """
    body = "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)
    if nothing and not body:
        return nothing
    return f"| {' | '.join(header)} |\n|{'---|' * len(header)}\n{body}"
