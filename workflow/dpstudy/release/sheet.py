"""PRIVACY.pdf: one page, to be signed before a release, on what a person risks, in words, numbers and a curve.

It says what the statement (PRIVACY.md) says, for those who answer for the images and need not know what epsilon is.
"""

import functools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path

from dpstudy.core.files import atomic
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.trade_off import most_found
from dpstudy.release.statement import OTHERS, not_covered
from dpstudy.tables.drawing import drawing
from dpstudy.tables.words import bounds_in_words

_A4 = (8.27, 11.69)  # inches
_LEFT, _RIGHT, _TOP, _FOOT = 0.09, 0.91, 0.945, 0.235  # of the page; below the last stand the signatures
_SIZES = (9.0, 8.5, 8.0, 7.5, 7.0)  # points, of which the largest is taken that fits
_UNIT = {"record": ("image", "images", "the image"), "subject": ("person", "persons", "the person")}
_CROWD = 1000


def write_sheet(path: str | os.PathLike, ledger: Mapping, name: str, model: str, errata: Sequence[str] = ()) -> None:
    """Write the page.

    Args:
        ledger: of a cell that is for release.
        name: of the cell.
        model: SHA-256 of the model's file.
        errata: what the ledger may state falsely.
    """
    parts = _parts(ledger, errata)
    with drawing():
        figure = Figure(figsize=_A4)
        beside = _head(figure, ledger, name, model)
        for size, left_out in _tries(len(parts[-1][1])):
            lines, end = _laid_out(_shortened(parts, left_out), size, beside)
            if end > _FOOT:
                break
        for y, text, letters in lines:
            weight = "bold" if letters > size else "normal"
            figure.text(_LEFT, y, text, fontsize=letters, fontweight=weight, va="top")
        _signatures(figure)
        with atomic(path) as temporary:
            figure.savefig(temporary, format="pdf", metadata={"CreationDate": None, "Title": name})


def _tries(sentences: int) -> Iterator[tuple[float, int]]:
    """Sizes of letters from the largest on; of the smallest, without more and more of the last sentences."""
    yield from ((size, 0) for size in _SIZES)
    yield from ((_SIZES[-1], left_out) for left_out in range(1, sentences + 1))


def _shortened(parts: Sequence[tuple[str, list[str]]], left_out: int) -> list[tuple[str, list[str]]]:
    *others, (heading, sentences) = parts
    notice = [f"And more, {left_out} in all: PRIVACY.md has them, and must be read."] if left_out else []
    return [*others, (heading, sentences[: len(sentences) - left_out] + notice)]


def _head(figure: Figure, ledger: Mapping, name: str, model: str) -> float:
    """Title and curve; where the text below may begin."""
    figure.text(_LEFT, _TOP, "Before this model is given away", fontsize=16, fontweight="bold", va="top")
    figure.text(_LEFT, _TOP - 0.032, f"{name}, model.safetensors with SHA-256", fontsize=8, va="top", color="0.3")
    figure.text(_LEFT, _TOP - 0.047, model, fontsize=7, va="top", color="0.3", family="monospace")
    axes = figure.add_axes((0.64, _TOP - 0.275, _RIGHT - 0.64, 0.19))
    rates = np.linspace(0, 1, 201)
    caught = [most_found(ledger, float(rate)) for rate in rates]
    axes.fill_between(rates, rates, caught, color="#cf4b3b", alpha=0.18, linewidth=0)
    axes.plot(rates, caught, color="#cf4b3b")
    axes.plot(rates, rates, color="0.5", linewidth=0.8, linestyle=":")
    axes.set(xlim=(0, 1), ylim=(0, 1), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    axes.set_xlabel("wrongly suspected", fontsize=7)
    axes.set_ylabel("found, at most", fontsize=7)
    axes.set_title("Who took part? With the model (red)\nand by guessing (dotted)", fontsize=7.5)
    axes.tick_params(labelsize=7)
    return _TOP - 0.315


def _parts(ledger: Mapping, errata: Sequence[str]) -> list[tuple[str, list[str]]]:
    """(heading, paragraphs)."""
    one, many, the_one = _UNIT[ledger["unit"]]
    images = " All images of a person are covered." if ledger["unit"] == "subject" else ""
    bounds = ledger.get("bounds", {})
    right = ledger["trade_off"]["right"] if "trade_off" in ledger else _by_epsilon(ledger)
    caught = [
        f"Of {_CROWD:,} {many} who took part, at most {_ceiled(_CROWD * most_found(ledger, wrong / _CROWD))} are found "
        f"by somebody who wrongly suspects {wrong} of {_CROWD:,} who did not. Without the model it would be {wrong}."
        for wrong in (10, 100)
    ]
    return [
        (
            "What is promised",
            [
                " ".join([f"The model was learned from {ledger['n']:,} {many}.{images}", *bounds_in_words(bounds)]),
                f"Somebody may have it, and all that there is to know of all other {many}: whether any one {one} was "
                "among them can then be told from it no better than this.",
                f"If a coin decided whether {the_one} is used, a guess from the model would be right at most "
                f"{_ceiled(1000 * right) / 10:g} % of the time. Without the model: 50 %.",
                *caught,
                f"In technical terms: ({upper_bound(ledger['epsilon'])}, {upper_bound(ledger['delta'])})-differential "
                f"privacy, {ledger['adjacency']} adjacency, by {ledger['accountant']}; verify.py computes it anew.",
            ],
        ),
        ("What is not", [*(f"Erratum: {sentence}." for sentence in errata), OTHERS, *not_covered(ledger)]),
    ]


def _laid_out(
    parts: Sequence[tuple[str, list[str]]], size: float, beside: float
) -> tuple[list[tuple[float, str, float]], float]:
    """(place, text, size) of each line, headings in larger letters, and where they end.

    Lines are shorter above `beside`, where the curve is.
    """
    y, line = _TOP - 0.085, 1.32 * size / 72 / _A4[1]
    lines: list[tuple[float, str, float]] = []
    for heading, paragraphs in parts:
        lines.append((y, heading, size + 2))
        y -= 1.5 * line
        for paragraph in paragraphs:
            rest = paragraph
            while rest:
                width = (0.585 if y > beside else _RIGHT) - _LEFT
                cut, rest = _cut(rest, width * _A4[0] * 72, size)
                lines.append((y, cut, size))
                y -= line
            y -= 0.45 * line
        y -= 0.5 * line
    return lines, y


def _cut(text: str, width: float, size: float) -> tuple[str, str]:
    """The words that fit into a width, in points, one at least; and the others."""
    words = text.split()
    count, taken = 1, _width(words[0], size)
    while count < len(words):
        taken += _width(" ", size) + _width(words[count], size)
        if taken > width:
            break
        count += 1
    return " ".join(words[:count]), " ".join(words[count:])


@functools.cache
def _width(text: str, size: float) -> float:
    return text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0]


def _signatures(figure: Figure) -> None:
    text = "I have read this page and PRIVACY.md. This folder, and nothing else that was made of the images, may leave."
    figure.text(_LEFT, _FOOT - 0.03, text, fontsize=8.5, va="top")
    for place, who in enumerate(("For those who own the images", "For data protection")):
        x, width = _LEFT + 0.43 * place, 0.38
        figure.text(x, _FOOT - 0.06, who, fontsize=8.5, fontweight="bold", va="top")
        for row, what in enumerate(("name and function", "place and date", "signature")):
            y = _FOOT - 0.105 - 0.04 * row
            figure.add_artist(Line2D((x, x + width), (y, y), color="0.2", linewidth=0.7))
            figure.text(x, y - 0.004, what, fontsize=6.5, va="top", color="0.3")


def _by_epsilon(ledger: Mapping) -> float:
    odds = math.exp(min(ledger["epsilon"], 700.0))
    return (odds + ledger["delta"]) / (1 + odds)


def _ceiled(value: float) -> int:
    return int(Decimal(value).quantize(Decimal(1), ROUND_CEILING))
