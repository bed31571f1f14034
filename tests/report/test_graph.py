import itertools
import re

from dpstudy.report.graph import draw, ordered, reduced

EDGES = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("a", "d"), ("b", "b"), ("b", "a"), ("x", "d")]


def test_each_rule_comes_after_what_it_reads_from_also_where_two_read_from_each_other():
    reads = ordered(EDGES)
    places = {rule: place for place, rule in enumerate(reads)}
    assert set(reads) == set("abcdx")
    assert all(places[source] < places[rule] for rule, sources in reads.items() for source in sources)
    assert reads["b"] == {"a"} and reads["a"] == set()
    assert ordered(reversed(EDGES)) == reads and ordered([]) == {}


def test_what_a_longer_way_implies_is_left_out():
    assert reduced(ordered(EDGES)) == {"a": set(), "b": {"a"}, "c": {"b"}, "x": set(), "d": {"c", "x"}}


def test_boxes_stand_below_what_they_read_from_and_apart():
    drawing = draw(ordered(EDGES), {"a": "3 jobs"})
    boxes = {box.name: box for box in drawing.boxes}
    assert boxes["a"].line == "3 jobs" and len(drawing.arrows) == 4
    assert boxes["a"].y < boxes["b"].y < boxes["c"].y < boxes["d"].y
    for one, other in itertools.combinations(drawing.boxes, 2):
        assert one.y != other.y or abs(one.x - other.x) >= one.width
    assert all(0 <= box.x and box.x + box.width <= drawing.width for box in drawing.boxes)
    assert max(box.y + box.height for box in drawing.boxes) < drawing.height


def test_an_arrow_passes_layers_beside_the_boxes():
    drawing = draw(ordered([("a", "b"), ("b", "c"), ("c", "d"), ("a", "e"), ("e", "d"), ("x", "d")]), {})
    boxes = {box.name: box for box in drawing.boxes}
    passes = [tuple(map(float, pair)) for arrow in drawing.arrows for pair in re.findall(r"L([\d.]+) ([\d.]+)", arrow)]
    assert len(passes) == 3, "one of a to e's level, two of x"
    for x, y in passes:
        beside = [box for box in boxes.values() if box.y + box.height == y]
        assert beside and all(not box.x <= x <= box.x + box.width for box in beside)


def test_nothing_to_draw():
    assert draw({}, {}).boxes == ()
