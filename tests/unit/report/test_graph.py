import itertools
import re

from dpstudy.report.graph import draw, ordered, reduced

DIRECT = [("b", "c"), ("a", "c"), ("c", "d"), ("a", "d"), ("b", "b"), ("b", "a"), ("x", "d"), ("b", "e")]
EDGES = [("a", "b", 9), *((*edge, 1) for edge in DIRECT)]


def test_each_rule_comes_after_what_it_reads_from_also_where_two_read_from_each_other():
    reads = ordered(EDGES)
    places = {rule: place for place, rule in enumerate(reads)}
    assert set(reads) == set("abcdex")
    assert all(places[source] < places[rule] for rule, sources in reads.items() for source in sources)
    assert reads["b"] == {"a"} and reads["a"] == set()
    assert reads["e"] == {"b"}, "what waits for a circle is no part of it"
    assert ordered(reversed(EDGES)) == reads and ordered([]) == {}


def test_what_a_longer_way_implies_is_left_out():
    assert reduced(ordered(EDGES)) == {"a": set(), "b": {"a"}, "c": {"b"}, "e": {"b"}, "x": set(), "d": {"c", "x"}}


def test_boxes_stand_below_what_they_read_from_and_apart():
    drawing = draw(ordered(EDGES), {"a": "3 jobs"})
    boxes = {box.name: box for box in drawing.boxes}
    assert boxes["a"].line == "3 jobs" and len(drawing.arrows) == 5
    assert boxes["a"].y < boxes["b"].y < boxes["c"].y < boxes["d"].y
    for one, other in itertools.combinations(drawing.boxes, 2):
        assert one.y != other.y or abs(one.x - other.x) >= one.width
    assert all(0 <= box.x and box.x + box.width <= drawing.width for box in drawing.boxes)
    assert max(box.y + box.height for box in drawing.boxes) < drawing.height


def test_an_arrow_passes_layers_beside_the_boxes():
    drawing = draw(ordered([(*edge, 1) for edge in ("ab", "bc", "cd", "ae", "ed", "xd")]), {})
    boxes = {box.name: box for box in drawing.boxes}
    passes = [tuple(map(float, pair)) for arrow in drawing.arrows for pair in re.findall(r"L([\d.]+) ([\d.]+)", arrow)]
    assert len(passes) == 3, "one of a to e's level, two of x"
    for x, y in passes:
        beside = [box for box in boxes.values() if box.y + box.height == y]
        assert beside and all(not box.x <= x <= box.x + box.width for box in beside)


def test_nothing_to_draw():
    assert draw({}, {}).boxes == ()
