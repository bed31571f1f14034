"""The dependency graph of a run's rules, simplified and laid out for drawing."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_WIDTH, _HEIGHT = 158, 46  # of a rule's box
_LANE = 6  # width of the room for an arrow that passes
_ACROSS, _DOWN = 18, 34  # between boxes, and between layers
_MARGIN = 8


@dataclass(frozen=True)
class Box:
    """A drawn rule: its upper left corner, size, name, and a line of text below the name."""

    x: float
    y: float
    width: int
    height: int
    name: str
    line: str


@dataclass(frozen=True)
class Drawing:
    """Boxes in layers, each below all that it depends on, and arrows as SVG paths."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[str, ...]


def ordered(edges: Iterable[Sequence]) -> dict[str, set[str]]:
    """Rule -> the rules that it reads from, in topological order.

    Where rules read from each other (a manifest of one split serves a shard of another), the fewest such readings are
    left out.

    Args:
        edges: (from, to, how many jobs read so).
    """
    reads: dict[str, dict[str, int]] = {}
    for source, rule, count in edges:
        reads.setdefault(source, {})
        reads.setdefault(rule, {})
        if source != rule:
            reads[rule][source] = count
    placed: dict[str, set[str]] = {}
    while len(placed) < len(reads):
        waiting = {
            rule: {source: count for source, count in sources.items() if source not in placed}
            for rule, sources in reads.items()
            if rule not in placed
        }
        above = {rule: _above(rule, waiting) for rule in waiting}
        free = [rule for rule in waiting if not above[rule]]
        if not free:  # a circle that waits for itself alone
            least = min(len(waited_for) for waited_for in above.values())
            free = [rule for rule, waited_for in above.items() if rule in waited_for and len(waited_for) == least]
        rule = min(free, key=lambda rule: (sum(waiting[rule].values()), rule))
        placed[rule] = set(reads[rule]) & placed.keys()
    return placed


def _above(rule: str, waiting: Mapping[str, Mapping[str, int]]) -> set[str]:
    """All that a rule waits for, and these wait for."""
    reached: set[str] = set()
    left = list(waiting[rule])
    while left:
        source = left.pop()
        if source not in reached:
            reached.add(source)
            left += waiting[source]
    return reached


def reduced(reads: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The graph without edges that longer paths imply (transitive reduction)."""
    above: dict[str, set[str]] = {}
    direct = {}
    for rule, sources in reads.items():
        implied = set().union(*(above[source] for source in sources))
        above[rule] = implied | sources
        direct[rule] = sources - implied
    return direct


def draw(reads: Mapping[str, set[str]], lines: Mapping[str, str]) -> Drawing:
    """The layout of the rules; arrows that cross a layer pass between its boxes.

    Args:
        reads: as of `ordered`.
        lines: rule -> what stands below its name.
    """
    kept = reduced(reads)
    depth: dict[str, int] = {}
    for rule, sources in kept.items():
        depth[rule] = 1 + max((depth[source] for source in sources), default=-1)
    chains = [_chain(source, rule, depth) for rule in kept for source in sorted(kept[rule])]
    layers = _layers(depth, chains)
    above: dict[str, list[str]] = {}
    for chain in chains:
        for source, node in itertools.pairwise(chain):
            above.setdefault(node, []).append(source)
    whole = max((_span(layer, depth) for layer in layers), default=0) + 2 * _MARGIN
    boxes: dict[str, Box] = {}
    for level, layer in enumerate(layers):
        middles = {node: _middle([boxes[source] for source in above.get(node, ())], whole) for node in layer}
        x = (whole - _span(layer, depth)) / 2
        for node in sorted(layer, key=lambda node: (middles[node], node)):
            width = _width(node, depth)
            boxes[node] = Box(x, _MARGIN + level * (_HEIGHT + _DOWN), width, _HEIGHT, node, lines.get(node, ""))
            x += width + _ACROSS
    arrows = tuple(_arrow([boxes[node] for node in chain]) for chain in chains)
    height = 2 * _MARGIN + len(layers) * (_HEIGHT + _DOWN) - _DOWN
    return Drawing(whole, height, tuple(boxes[rule] for rule in kept), arrows)


def _chain(source: str, rule: str, depth: Mapping[str, int]) -> list[str]:
    """An arrow's way: its ends, and a place in each layer that it passes."""
    return [source, *(f"{source} {rule} {level}" for level in range(depth[source] + 1, depth[rule])), rule]


def _layers(depth: Mapping[str, int], chains: Iterable[Sequence[str]]) -> list[list[str]]:
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for rule, level in depth.items():
        layers[level].append(rule)
    for source, *between, _ in chains:
        for level, node in enumerate(between, depth[source] + 1):
            layers[level].append(node)
    return layers


def _width(node: str, depth: Mapping[str, int]) -> int:
    return _WIDTH if node in depth else _LANE


def _span(layer: Sequence[str], depth: Mapping[str, int]) -> int:
    return sum(_width(node, depth) + _ACROSS for node in layer) - _ACROSS


def _middle(sources: Sequence[Box], whole: float) -> float:
    """Where a node would stand below what it reads from."""
    return sum(box.x + box.width / 2 for box in sources) / len(sources) if sources else whole / 2


def _arrow(boxes: Sequence[Box]) -> str:
    """From the lower edge of the first box to the upper edge of the last, straight through the places between."""
    x, y = boxes[0].x + boxes[0].width / 2, boxes[0].y + boxes[0].height
    path = f"M{x:g} {y:g}"
    for box in boxes[1:]:
        to, top = box.x + box.width / 2, box.y - (5 if box is boxes[-1] else 0)
        path += f"C{x:g} {(y + top) / 2:g} {to:g} {(y + top) / 2:g} {to:g} {top:g}"
        x, y = to, top
        if box is not boxes[-1]:
            y += box.height
            path += f"L{x:g} {y:g}"
    return path
