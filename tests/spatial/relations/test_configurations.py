"""Named configurations, as third-party suites of relations have them: touching, nested, shared rings, slivers.

Each is tried as it is and sheared, scaled and mirrored without rounding; both ways round; by `relate`, in rational
numbers, and in a table.
"""

from __future__ import annotations

import pytest

from contrada import ForwardingTable, Line, Region, Relation, attr, relate
from contrada.spatial.relations.relation import RELATIONS
from tests.naive import faces
from tests.naive import lines as naive_lines

RING = "(1 1, 13 1, 13 11, 1 11)"
FRAME = f"POLYGON({RING}, (4 3, 10 3, 10 9, 4 9))"
CORNERED = f"POLYGON({RING}, (1 6, 6 4, 6 8))"  # its hole touches the shell
TWO_HOLES = f"POLYGON({RING}, (3 3, 7 6, 3 9), (11 3, 11 9, 7 6))"  # holes that touch one another
ISLES = "MULTIPOLYGON(((1 1, 5 1, 5 5, 1 5)), ((5 5, 9 5, 9 9, 5 9)))"  # touching at a corner
IN_HOLE = f"MULTIPOLYGON(({RING}, (3 3, 11 3, 11 9, 3 9)), ((5 5, 9 5, 9 7, 5 7)))"
NESTED = f"MULTIPOLYGON(({RING}, (2 2, 12 2, 12 10, 2 10)), ((3 3, 11 3, 11 9, 3 9), (5 5, 9 5, 9 7, 5 7)))"
BOW = "MULTIPOLYGON(((7 6, 3 10, 3 2)), ((7 6, 11 2, 11 10)))"
CROSS_BOW = "MULTIPOLYGON(((7 6, 11 10, 3 10)), ((7 6, 3 2, 11 2)))"

REGIONS = {
    "in a hole": ("POLYGON((5 4, 9 4, 7 8))", FRAME, "disjoint"),
    "a hole filled": ("POLYGON((4 3, 10 3, 10 9, 4 9))", FRAME, "meets"),
    "in a hole, at a corner": ("POLYGON((4 3, 7 4, 5 7))", FRAME, "meets"),
    "in a hole, vertex on an edge": ("POLYGON((4 6, 9 5, 9 7))", FRAME, "meets"),
    "in a hole, along an edge": ("POLYGON((4 5, 4 7, 8 6))", FRAME, "meets"),
    "over a hole": ("POLYGON((3 2, 11 2, 11 10, 3 10))", FRAME, "overlaps"),
    "over a hole, with the same hole": (
        "POLYGON((2 2, 12 2, 12 10, 2 10), (4 3, 10 3, 10 9, 4 9))",
        FRAME,
        "covered-by",
    ),
    "with a larger hole": (f"POLYGON({RING}, (3 2, 11 2, 11 10, 3 10))", FRAME, "covered-by"),
    "with a larger hole and a smaller shell": (
        "POLYGON((2 2, 12 2, 12 10, 2 10), (3 2.5, 11 2.5, 11 9.5, 3 9.5))",
        FRAME,
        "inside",
    ),
    "with a smaller hole": (f"POLYGON({RING}, (5 4, 9 4, 9 8, 5 8))", FRAME, "covers"),
    "hole beside hole": (f"POLYGON({RING}, (10 3, 12 3, 12 9, 10 9))", FRAME, "overlaps"),
    "without the hole": (f"POLYGON({RING})", FRAME, "covers"),
    "between hole and shell": ("POLYGON((2 4, 3 4, 3 8, 2 8))", FRAME, "inside"),
    "between hole and shell, touching both": ("POLYGON((1 5, 4 6, 1 7))", FRAME, "covered-by"),
    "the other way around the hole": ("POLYGON((1 1, 1 11, 13 11, 13 1), (4 9, 10 9, 10 3, 4 3))", FRAME, "equals"),
    "around all of it": ("POLYGON((0 0, 14 0, 14 12, 0 12))", FRAME, "contains"),
    "around it, with a hole in its hole": (
        "POLYGON((0 0, 14 0, 14 12, 0 12), (6 5, 8 5, 8 7, 6 7))",
        FRAME,
        "contains",
    ),
    "its shell in the other's hole": (
        "POLYGON((0 0, 14 0, 14 12, 0 12), (0.5 0.5, 13.5 0.5, 13.5 11.5, 0.5 11.5))",
        FRAME,
        "disjoint",
    ),
    "its shell the other's hole": (f"POLYGON((0 0, 14 0, 14 12, 0 12), {RING})", FRAME, "meets"),
    "a wedge in a hole that touches the shell": ("POLYGON((1 6, 5 5.5, 5 6.5))", CORNERED, "meets"),
    "through where hole and shell touch": ("POLYGON((0 6, 2 5.8, 2 6.2))", CORNERED, "overlaps"),
    "outside, where hole and shell touch": ("POLYGON((1 6, 0 7, 0 5))", CORNERED, "meets"),
    "beside the touching hole": ("POLYGON((1 1, 6 4, 1 6))", CORNERED, "covered-by"),
    "between touching holes": ("POLYGON((7 6, 9 2, 5 2))", TWO_HOLES, "covered-by"),
    "through the touch of holes": ("POLYGON((7 2, 7.5 10, 6.5 10))", TWO_HOLES, "overlaps"),
    "above and below the touch of holes": (
        "MULTIPOLYGON(((7 6, 8 2, 6 2)), ((7 6, 6 10, 8 10)))",
        TWO_HOLES,
        "covered-by",
    ),
    "left and right of the touch of holes": (
        "MULTIPOLYGON(((7 6, 4 6.5, 4 5.5)), ((7 6, 10 5.5, 10 6.5)))",
        TWO_HOLES,
        "meets",
    ),
    "one part in, one apart": ("MULTIPOLYGON(((2 2, 3 2, 3 3)), ((20 20, 21 20, 21 21)))", ISLES, "overlaps"),
    "one part in each": ("MULTIPOLYGON(((2 2, 3 2, 3 3)), ((6 6, 7 6, 7 7)))", ISLES, "inside"),
    "one part in, one at the boundary": ("MULTIPOLYGON(((2 2, 3 2, 3 3)), ((5 6, 7 6, 7 7)))", ISLES, "covered-by"),
    "a part of it": ("POLYGON((1 1, 5 1, 5 5, 1 5))", ISLES, "covered-by"),
    "across the corner that parts share": (
        "POLYGON((4 6, 4 4, 6 4, 6 6))",
        ISLES,
        "overlaps",
    ),
    "in the notch of the corner": ("POLYGON((5 5, 5 3, 7 5))", ISLES, "meets"),
    "an isle in a hole": ("POLYGON((5 5, 9 5, 9 7, 5 7))", IN_HOLE, "covered-by"),
    "around an isle, in the hole": ("POLYGON((4 4, 10 4, 10 8, 4 8), (5 5, 9 5, 9 7, 5 7))", IN_HOLE, "meets"),
    "around an isle, over it": ("POLYGON((4 4, 10 4, 10 8, 4 8))", IN_HOLE, "overlaps"),
    "the hole, its isle left out": ("POLYGON((3 3, 11 3, 11 9, 3 9), (5 5, 9 5, 9 7, 5 7))", IN_HOLE, "meets"),
    "hole in isle in hole": ("POLYGON((6 5.5, 8 5.5, 8 6.5, 6 6.5))", NESTED, "disjoint"),
    "the innermost hole": ("POLYGON((5 5, 9 5, 9 7, 5 7))", NESTED, "meets"),
    "what the nested one leaves": (
        "MULTIPOLYGON(((2 2, 12 2, 12 10, 2 10), (3 3, 11 3, 11 9, 3 9)), ((5 5, 9 5, 9 7, 5 7)))",
        NESTED,
        "meets",
    ),
    "bows across one another": (CROSS_BOW, BOW, "meets"),
    "a bow and one of its wings": ("POLYGON((7 6, 3 10, 3 2))", BOW, "covered-by"),
    "a bow and a wider one": (BOW, "MULTIPOLYGON(((7 6, 2 11, 2 1)), ((7 6, 12 1, 12 11)))", "covered-by"),
    "a bow and the square around it": (BOW, f"POLYGON({RING})", "inside"),
    "a sliver along an edge": ("POLYGON((1 1, 13 1, 13 0.9999999999999999))", FRAME, "meets"),
    "a sliver inside an edge": ("POLYGON((1 1, 13 1, 13 1.0000000000000002))", FRAME, "covered-by"),
    "a sliver across": ("POLYGON((0 6, 14 6, 14 6.000000000000001))", FRAME, "overlaps"),
}

LINES = {
    "across a frame": ("LINESTRING(0 6, 14 6)", FRAME, "overlaps"),
    "in the hole of a frame": ("LINESTRING(5 4, 9 8)", FRAME, "disjoint"),
    "across the hole, from edge to edge": ("LINESTRING(4 6, 10 6)", FRAME, "meets"),
    "along the hole": ("LINESTRING(4 3, 10 3, 10 9)", FRAME, "meets"),
    "from the shell to the hole": ("LINESTRING(1 6, 4 6)", FRAME, "covered-by"),
    "around the hole": ("LINESTRING(2 2, 12 2, 12 10, 2 10, 2 2)", FRAME, "inside"),
    "around the hole, by its corners": ("LINESTRING(2 2, 4 3, 12 2)", FRAME, "covered-by"),
    "from hole to frame": ("LINESTRING(7 6, 11 6)", FRAME, "overlaps"),
    "through where hole and shell touch": ("LINESTRING(0 6, 7 6)", CORNERED, "overlaps"),
    "up to where hole and shell touch": ("LINESTRING(0 6, 1 6)", CORNERED, "meets"),
    "past where hole and shell touch, inside": ("LINESTRING(2 3, 1 6, 2 9)", CORNERED, "covered-by"),
    "through the touch of holes": ("LINESTRING(4 6, 10 6)", TWO_HOLES, "meets"),
    "across the touch of holes": ("LINESTRING(7 2, 7 10)", TWO_HOLES, "covered-by"),
    "through the corner of isles": ("LINESTRING(2 2, 8 8)", ISLES, "covered-by"),
    "across the corner of isles": ("LINESTRING(3 7, 7 3)", ISLES, "meets"),
    "through a bow": ("LINESTRING(4 6, 10 6)", BOW, "covered-by"),
    "across a bow": ("LINESTRING(7 4, 7 8)", BOW, "meets"),
    "both isles": ("MULTILINESTRING((2 2, 4 4), (6 6, 8 8))", ISLES, "inside"),
    "one isle and outside": ("MULTILINESTRING((2 2, 4 4), (20 6, 20 8))", ISLES, "overlaps"),
    "all of a ring": ("LINESTRING(1 1, 13 1, 13 11, 1 11, 1 1)", FRAME, "meets"),
    "there and back": ("LINESTRING(0 6, 2 6, 0 6)", FRAME, "overlaps"),
    "an isle in a hole": ("LINESTRING(2 2, 7 6)", IN_HOLE, "overlaps"),
}

MOVES = {
    "as it is": lambda x, y: (x, y),
    "sheared": lambda x, y: (x + 2 * y, y),
    "mirrored": lambda x, y: (-y, -x),
    "tiny": lambda x, y: (x * 2.0**-300, y * 2.0**-300),
    "huge": lambda x, y: (x * 2.0**300, y * 2.0**300),
}


def moved(shape, move):
    if isinstance(shape, Line):
        return Line.of_parts([[move(x, y) for x, y in part.tolist()] for part in shape.parts])
    parts = [[[move(x, y) for x, y in ring.tolist()] for ring in part] for part in shape.rings]
    return Region.of({"type": "MultiPolygon", "coordinates": parts})


def in_a_table(value, operand):
    """The relations, all of them posted, that a table finds; `intersects` last."""
    table = ForwardingTable()
    for each in RELATIONS:
        table.add(each.value, getattr(attr("x"), each.value.replace("-", "_"))(operand))
    table.add("intersects", attr("x").intersects(operand))
    return table.match({"x": value})


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("name", REGIONS)
def test_regions(name, move):
    first, second, word = REGIONS[name]
    a, b = (moved(Region.of(each), MOVES[move]) for each in (first, second))
    expected = Relation(word)
    assert relate(a, b) is expected
    assert relate(b, a) is expected.converse
    if move == "as it is":
        assert faces.relate(a, b) is expected
        found = {word} | ({"intersects"} if word != "disjoint" else set())
        assert in_a_table(a, b) == found


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("name", LINES)
def test_lines(name, move):
    first, second, word = LINES[name]
    line, region = moved(Line(first), MOVES[move]), moved(Region.of(second), MOVES[move])
    assert relate(line, region) is Relation(word)
    if move == "as it is":
        assert naive_lines.relate(line, region) is Relation(word)
        assert in_a_table(line, region) == {word} | ({"intersects"} if word != "disjoint" else set())
