"""Lines of accuracy against epsilon and their styles, the same in figures and in the report."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from dpstudy.evaluation.summary import cell_name, values_by_cell
from dpstudy.tables.chance import chance_level
from dpstudy.tables.grouping import by_key
from dpstudy.tables.intervals import joined
from dpstudy.tables.palette import COLOURS, MARKERS, colours, marker
from dpstudy.tables.results import Results


@dataclass(frozen=True)
class Series:
    """One line of one panel; its points are (epsilon, mean, std, number of seeds).

    `kind` tells the features apart (a group's label, else the features' name). `published`: the values are a paper's,
    std is None where unknown, and the number of seeds 0. `cited`: they are a paper's and stand beside no line of ours.
    """

    label: str
    kind: str
    dataset: str
    features: str
    entry: str
    points: tuple[tuple[str, float, float | None, int], ...]
    published: bool = False
    cited: bool = False


def line_styles(series: Sequence[Series], axes: Mapping[str, list[str]]) -> dict[tuple[str, str], dict]:
    """(kind, entry) -> Matplotlib keywords; if there is a single entry, kinds of features differ in colour too.

    What is cited has no entry: grey, told apart by its markers.
    """
    pairs = list(dict.fromkeys((line.kind, line.entry) for line in series if line.entry))
    kinds = list(dict.fromkeys(kind for kind, _ in pairs))
    if set(kinds) <= set(axes["features"]):  # else labels of groups: told apart by their order
        kinds = axes["features"]
    entry_colours = colours([entry for _, entry in pairs], axes)
    looks = [(kind, colour) for (kind, _), colour in zip(pairs, entry_colours, strict=True)]
    laps = [looks[:number].count(look) for number, look in enumerate(looks)]
    cited = dict.fromkeys(line.kind for line in series if line.cited)
    styles = {}
    for pair, (kind, colour), lap in zip(pairs, looks, laps, strict=True):
        styles[pair] = {"color": colour} | marker(kind, kinds, lap)
    for number, kind in enumerate(cited):
        styles[kind, ""] = {"color": COLOURS[-1], "marker": MARKERS[number % len(MARKERS)]}
    return styles


def beside(line: Series, styles: Mapping[tuple[str, str], Mapping]) -> Mapping:
    """The style of published numbers: that of our line of the same kind, or their own where cited."""
    if line.cited:
        return styles[line.kind, ""]
    return next((keywords for (kind, entry), keywords in styles.items() if kind == line.kind and entry), {})


def marked_epsilons(series: Sequence[Series]) -> set[str]:
    """The epsilons to mark on an axis: those of our cells, and infinity; cited papers' others are too many."""
    return {point[0] for line in series for point in line.points if not line.cited or point[0] == "inf"}


def chances_of(series: Sequence[Series], results: Results, metric: str) -> dict[str, float | None]:
    """Data set -> its chance level (`chance_level`).

    Raises:
        StudyError: a cell has no metrics.json.
    """
    cells = by_key(_cells(series), itemgetter(0))
    return {name: chance_level(metric, [cell for _, cell in of], results) for name, of in cells.items()}


def intervals_of(series: Sequence[Series], results: Results, metric: str) -> dict[str, tuple[float, float]]:
    """Cell -> the 95 % interval of its mean (`intervals.joined`), for our lines' cells that have one.

    Raises:
        StudyError: a cell has no metrics.json.
    """
    values = values_by_cell(results.summary, metric)
    found = {name: joined(values[name], results.interval(name, metric), metric) for _, name in _cells(series)}
    return {name: ends for name, ends in found.items() if ends is not None}


def _cells(series: Sequence[Series]) -> Iterator[tuple[str, str]]:
    """(data set, cell) of each point of our lines."""
    for line in (line for line in series if not line.published):
        for epsilon, *_ in line.points:
            yield line.dataset, cell_name(line.dataset, line.features, line.entry, epsilon)
