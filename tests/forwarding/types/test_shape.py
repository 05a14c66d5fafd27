"""Distance constraints in a table: many of them, as a scan finds them; changed, saved, loaded and forged."""

from __future__ import annotations

import numpy as np
import pytest

from contrada import Box, ForwardingTable, Point, Region, attr
from contrada.errors import CorruptFile
from contrada.forwarding.batches.columns import Column, Columns
from contrada.forwarding.codec.msgpack import encode_notification
from contrada.forwarding.language.values import Kind
from contrada.forwarding.state.file import KIND, VERSION
from contrada.spatial.storage.arrays_file import load_arrays, save_arrays


def shapes(rng, count):
    """Points, boxes and triangles on a small grid, so that distances tie."""
    for _ in range(count):
        x, y, kind = (int(each) for each in rng.integers(0, (40, 40, 3)))
        yield (Point(x, y), Box(x, y, x + 2, y + 1), Region([(x, y), (x + 4, y), (x, y + 3)]))[kind]


def filters(rng, count):
    for number, shape in enumerate(shapes(rng, count)):
        length = int(rng.integers(0, 6))
        pos = attr("pos")
        made = pos.beyond(length, of=shape) if number % 7 == 0 else pos.within(length, of=shape)
        yield str(number), made & (attr("x") > 3) if number % 5 == 0 else made


def expected(pairs, value):
    return {number for number, each in pairs if each.matches(value)}


@pytest.mark.parametrize("how", ["packed", "one by one"])
def test_answers_are_those_of_a_scan(how, tmp_path):
    rng = np.random.default_rng(7)
    pairs = list(filters(rng, 300))
    if how == "packed":
        table = ForwardingTable.packed(pairs)
    else:
        table = ForwardingTable()
        for number, each in pairs:
            table.add(number, each)
    values = [{"pos": shape, "x": 4} for shape in shapes(rng, 60)]
    wanted = [expected(pairs, value) for value in values]
    assert any(wanted)
    assert table.match_many(values) == wanted
    assert [table.match(value) for value in values] == wanted
    assert table.match_bodies([encode_notification(value) for value in values])[0] == wanted
    table._check()
    table.save(tmp_path / "table")
    loaded = ForwardingTable.load(tmp_path / "table")
    loaded._check()
    assert loaded.match_many(values) == wanted
    for interface, each in pairs[::2]:
        loaded.remove_interface(interface)
        loaded.add("new " + interface, each)
    loaded._check()
    renamed = {interface: "new " + interface for interface, _ in pairs[::2]}
    assert loaded.match_many(values) == [{renamed.get(each, each) for each in some} for some in wanted]


def fences(rng, count):
    """Circles and regions that points are asked about, under two names."""
    for number, shape in enumerate(shapes(rng, count)):
        pos = attr("pos" if number % 3 else "goal")
        if isinstance(shape, Point):
            yield number, pos.within(int(rng.integers(1, 6)), of=shape)
        else:
            yield number, pos.intersects(shape) if number % 2 else pos.beyond(30, of=shape)


@pytest.mark.parametrize("kept", ["circles", "circles and regions"])
@pytest.mark.parametrize("named", [("pos",), ("pos", "goal"), ("goal", "nobody's")])
def test_points_are_found_by_their_coordinates(kept, named):
    rng = np.random.default_rng(18)
    pairs = [(n, f) for n, f in fences(rng, 400) if kept != "circles" or "POINT" in str(f)]
    table = ForwardingTable.packed(pairs)
    xy = rng.integers(0, 40, (len(named), 200, 2)).astype(np.float64)
    values = [
        {name: Point(*each) for name, each in zip(named, row, strict=True)} for row in xy.transpose(1, 0, 2).tolist()
    ]
    wanted = [expected(pairs, value) for value in values]
    columns = Columns(200, [Column(name, Kind.POINT, each) for name, each in zip(named, xy, strict=True)])
    for _ in range(3):  # a grid is made when many have been searched for
        assert table.match_many(values) == wanted
        assert table.match_bodies([encode_notification(value) for value in values])[0] == wanted
        for given in (columns, values):
            places, ids = table.match_pairs(given)
            numbers, names = table.interface_numbers(ids)
            assert {*zip(places.tolist(), (names[n] for n in numbers.tolist()), strict=True)} == {
                (place, interface) for place, some in enumerate(wanted) for interface in some
            }
    assert [table.match(value) for value in values] == wanted


def test_a_crowd_on_one_interface_simplifies():
    table = ForwardingTable()
    for length in range(1, 30):
        table.add("I", attr("pos").within(length, of=Point(0, 0)))
    assert table.stats().covered == 28
    assert table.match({"pos": Point(20, 21)}) == {"I"}
    assert table.match({"pos": Point(21, 21)}) == set()


@pytest.mark.parametrize(
    ("array", "row", "column", "value"),
    [
        ("paths.rows", 0, 0, 1 << 40),
        ("paths.rows", 0, 1, 1 << 40),
        ("paths.rows", 0, 2, 99),
        ("paths.rows", 0, 3, -1),
        ("reach.1.constraint", 0, 0, 1 << 40),
    ],
    ids=str,
)
def test_forged_files_are_refused(tmp_path, array, row, column, value):
    table = ForwardingTable()
    table.add("I", "pos within 5 of POINT(1 2)")
    table.save(tmp_path / "table")
    arrays, meta = load_arrays(tmp_path / "table", kind=KIND, version=VERSION)
    (name,) = [each for each in arrays if each.endswith(array)]
    changed = {key: np.array(each) for key, each in arrays.items()}
    changed[name][row, column] = value
    save_arrays(tmp_path / "forged", kind=KIND, version=VERSION, arrays=changed, meta=meta)
    with pytest.raises(CorruptFile):
        ForwardingTable.load(tmp_path / "forged")
