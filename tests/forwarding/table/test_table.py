"""The forwarding table against its twin, whatever is added, removed and matched in whatever order."""

from __future__ import annotations

import random
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.errors import CorruptFile, InvalidValue
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.relations.relate import Uniform
from contrada.spatial.textual.geotext import GeoText
from tests.forwarding.strategies import filters, notifications
from tests.naive.table import NaiveTable

if TYPE_CHECKING:
    from pathlib import Path

interfaces = st.sampled_from(("I1", "I2", "I3", "é", ""))


pytestmark = pytest.mark.usefixtures("every_matching")


@given(
    st.lists(st.tuples(st.integers(0, 2), filters()), max_size=30), st.lists(notifications(), min_size=1, max_size=10)
)
def test_simplified_or_not_the_answers_are_the_same(pairs: list[Any], batch: list[Any]) -> None:
    simplified = ForwardingTable(simplify=True, geotext_index="scan")
    plain = ForwardingTable(simplify=False, geotext_index="scan")
    assert simplified.add_many(pairs) == plain.add_many(pairs)
    assert simplified.match_many(batch) == plain.match_many(batch)
    assert simplified.match_many_filters(batch) == plain.match_many_filters(batch)
    assert plain.stats().covered == 0


def test_the_contract() -> None:
    table = ForwardingTable()
    ids = table.add("I1", 'stock = "MTK" and price < 100 or stock = "DYS"')
    assert len(ids) == 2
    assert table.match({"stock": "MTK", "price": 50}) == {"I1"}
    assert table.match({"stock": "MTK", "price": 100}) == set()
    assert table.match_many([{"stock": "DYS"}, {}, {"stock": 3}]) == [{"I1"}, set(), set()]
    assert table.match_filters({"stock": "DYS"}) == [ids[1]]
    table.remove(ids[0])
    assert table.match({"stock": "MTK", "price": 50}) == set()
    table.remove_interface("I1")
    assert table.match({"stock": "DYS"}) == set()
    assert table.stats().filters == len(table) == 0


def test_an_id_is_not_used_again() -> None:
    table = ForwardingTable()
    seen = set()
    for _ in range(5):
        (id,) = table.add("a", attr("x") == 1)
        assert id not in seen
        seen.add(id)
        table.remove(id)
        for gone in (*seen, 0, -1, 10**12, "x"):
            with pytest.raises(KeyError):
                table.remove(gone)


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("x = 9007199254740993", [2**53 + 1], [2.0**53, 2**53, 2**53 + 2, True, "9007199254740993"]),
        ("x > 9007199254740992", [2**53 + 1, 2.0**53 + 2], [2.0**53, 2**53]),
        ("x < 9223372036854775807", [2**63 - 2, 2.0**62], [2**63 - 1, 2.0**63]),
        ("x >= -9223372036854775808", [-(2**63), -(2.0**63), 0], [-(2.0**64)]),
        ("x = 0", [0, 0.0, -0.0], [False, "", 5e-324]),
        ("x = 1", [1, 1.0], [True, "1"]),
        ("x != 1", [0, 1.5], [1, 1.0, True, "1", False]),
        ('x != ""', ["a", "\0"], ["", 0]),
        ('x prefix ""', ["", "a"], [0, True]),
        ('x >= ""', ["", "a"], [0]),
        ('x < "\ue000"', ["\ud7ff", "a"], ["\ue000", "\U0010ffff"]),
        ('x <= "ab"', ["ab", "a", "aa", "ab"[:1]], ["ab\0", "abc", "b"]),
        ('x contains "aba"', ["ababa", "xaba", "aba"], ["ab", "abba", ""]),
        (f'x prefix "{"p" * 100}"', ["p" * 100, "p" * 101], ["p" * 99, "q" + "p" * 100]),
        (f'x suffix "{"s" * 100}"', ["s" * 100, "t" + "s" * 100], ["s" * 99, "s" * 100 + "t"]),
        (f'x contains "{"é" * 40}"', ["é" * 40, "e" + "é" * 41], ["é" * 39, "e" * 80]),
        ("x > 10 and x < 20", [11, 19.5, 10.000001], [10, 20, -15, True]),
        ("x > -1e300 and x <= -5", [-5, -6, -1e299], [-4, 5, -1e300]),
        ('x in [1, true, "a"]', [1, 1.0, True, "a"], [False, 2, "", "b"]),
        ("x exists", [0, False, "", 1e300], []),
    ],
)
def test_where_operators_change_their_mind(text: str, yes: list[Any], no: list[Any]) -> None:
    table = ForwardingTable()
    table.add("I", parse(text))
    # Company of the same name, so that every index has something to pass over.
    table.add_many([("other", parse(f"x = {i} and y = {i}")) for i in range(5)])
    table.add_many([("other", parse(f'x > {i} and y prefix "{i}"')) for i in range(5)])
    assert [table.match({"x": value}) for value in yes] == [{"I"}] * len(yes)
    assert [table.match({"x": value}) for value in no] == [set()] * len(no)
    assert table.match({"y": 1}) == set()
    table._check()


def _random_filter(rng: random.Random) -> Filter:
    def constraint() -> Constraint:
        name = f"n{rng.randrange(6)}"
        number, text = rng.randrange(200), "".join(rng.choices("abc", k=rng.randrange(1, 12)))
        return rng.choice(
            [
                lambda: Constraint(name, Operator.EQ, number),
                lambda: Constraint(name, Operator.EQ, text),
                lambda: Constraint(name, rng.choice(["<", "<=", ">", ">="]), number / 7),
                lambda: Constraint(name, rng.choice(["<", "<=", ">", ">="]), text),
                lambda: Constraint(name, rng.choice(["prefix", "suffix", "contains"]), text),
                lambda: Constraint(name, Operator.IN, [number, number + 1, text]),
                lambda: Constraint(name, Operator.NE, number),
            ]
        )()

    return Filter([constraint() for _ in range(rng.randrange(1, 4))])


def test_thousands_of_filters_in_large_blocks_and_deep_directories() -> None:
    """More than Hypothesis would draw: blocks split and merge, buckets split, answers outgrow their buffers."""
    rng = random.Random(3)
    table, naive = ForwardingTable(), NaiveTable()
    for round_ in range(4):
        pairs = [(rng.randrange(40), _random_filter(rng)) for _ in range(1500)]
        for (interface, each), ids in zip(pairs, table.add_many(pairs), strict=True):
            naive.add(interface, each, ids)
        for id in rng.sample(sorted(naive.filters), 900 + 300 * round_):
            table.remove(id)
            naive.remove(id)
        table._check()
        batch = [
            {
                f"n{i}": rng.choice([rng.randrange(200), rng.random() * 30, "".join(rng.choices("abc", k=14))])
                for i in rng.sample(range(6), 4)
            }
            for _ in range(25)
        ]
        assert table.match_many_filters(batch) == [naive.match_filters(each) for each in batch]
        assert table.match_many(batch) == [naive.match(each) for each in batch]
    for id in list(naive.filters):
        table.remove(id)
    table._check()
    assert table.stats().operands == table.stats().postings == table.stats().names == 0


def test_answers_may_be_larger_than_any_buffer() -> None:
    table = ForwardingTable(simplify=False)
    table.add_many([(i, attr("x") > i % 7) for i in range(10_000)])
    assert table.match({"x": 9}) == set(range(10_000))
    assert len(table.match_filters({"x": 9})) == 10_000
    assert [len(each) for each in table.match_many([{"x": 9}, {"x": 0}, {"x": 9}])] == [10_000, 0, 10_000]


def test_churn_leaves_memory_flat() -> None:
    """What is freed is used again: the arrays' tops stop moving."""
    rng = random.Random(5)
    table = ForwardingTable()
    live = [table.add(i % 20, _random_filter(rng))[0] for i in range(500)]
    sizes = []
    for round_ in range(12):
        for _ in range(500):
            at = rng.randrange(len(live))
            table.remove(live[at])
            live[at] = table.add(rng.randrange(20), _random_filter(rng))[0]
        sizes.append(table.stats().bytes)
        assert round_ < 8 or sizes[-1] <= 1.05 * sizes[7]
    table._check()


def test_names_and_interfaces_are_forgotten() -> None:
    table = ForwardingTable()
    for i in range(300):
        (id,) = table.add(f"interface {i}", attr(f"name {i}") > i)
        assert table.match({f"name {i}": i + 1}) == {f"interface {i}"}
        table.remove(id)
    stats = table.stats()
    assert (stats.names, stats.interfaces) == (0, 0)
    assert len(table._names.objects) == len(table._interfaces.objects) == 2
    assert table.match({"name 7": 8}) == set()


@pytest.mark.parametrize(
    "notification",
    [{"x": float("nan")}, {"x": float("inf")}, {"x": 2**63}, {"x": [None]}, {"x": [[1]]}, {"x": "\ud800"}, [("x", 1)]],
)
def test_what_no_notification_may_hold_is_refused(notification: Any) -> None:
    table = ForwardingTable()
    table.add("I", attr("x") > 1)
    with pytest.raises(InvalidValue):
        table.match(notification)
    assert table.match({"x": 2}) == {"I"}


def test_threads_match_while_one_changes() -> None:
    table = ForwardingTable()
    table.add_many([("kept", attr("x") == i) for i in range(100)])
    wrong: list[object] = []
    done = threading.Event()

    def match() -> None:
        while not done.is_set():
            answers = table.match_many([{"x": i} for i in range(100)])
            wrong.extend(answer for answer in answers if not {"kept"} <= answer <= {"kept", "passing"})

    threads = [threading.Thread(target=match) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(300):
        ids = table.add("passing", (attr("x") >= i % 50) | (attr(f"y{i}") == "z" * i))
        assert table.match({"x": 70}) == {"kept", "passing"}
        for id in ids:
            table.remove(id)
        assert table.match({"x": 70}) == {"kept"}
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    table._check()


def test_short_cuts_spare_the_work() -> None:
    """Filters whose names the notification lacks, or whose interface has matched, are not looked into."""
    table = ForwardingTable(simplify=False)
    table.add_many([("a", (attr("x") > 0) & (attr("y") > i)) for i in range(500)])
    table.match({"x": 1, "z": 1})
    from contrada.forwarding.kernels.match.verifying import C_VERIFIED

    assert table._memory.counted[C_VERIFIED] == 0
    table.match({"x": 1, "y": 1000})
    assert table._memory.counted[C_VERIFIED] == 1


def test_rules_1_and_2() -> None:
    table = ForwardingTable()
    (void,) = table.add("I", parse("x > 5 and x < 3"))
    (plain,) = table.add("I", parse("y != 0 and y > 10"))
    stats = table.stats()
    assert (stats.unsatisfiable, stats.active, stats.constraints) == (1, 1, 3)
    assert str(table.filter(plain)) == str(parse("y != 0 and y > 10"))
    assert table.match_filters({"x": 4, "y": 11}) == [plain]
    assert not table.explain({"x": 4}, void).matches
    table.remove(void)
    table.remove(plain)
    table._check()


def test_rule_3_and_its_undoing() -> None:
    table = ForwardingTable()
    narrow = [table.add("I", parse(f"x > {i} and y = {i}"))[0] for i in range(10, 20)]
    (elsewhere,) = table.add("J", parse("x > 30"))
    assert table.stats().covered == 0
    (wide,) = table.add("I", parse("x > 5"))
    assert table.stats().covered == 10
    (wider,) = table.add("I", parse("x >= 5"))
    (equal,) = table.add("I", parse("x >= 5.0"))
    assert (table.stats().covered, table.stats().active) == (12, 2)
    assert table.match_filters({"x": 100, "y": 12}) == sorted([narrow[2], elsewhere, wide, wider, equal])
    table._check()
    table.remove(wider)  # a ghost until what it covered has moved
    assert table.match_filters({"x": 100, "y": 12}) == sorted([narrow[2], elsewhere, wide, equal])
    table._check()
    table.remove(equal)
    table.remove(wide)
    for _ in range(6):
        assert table.match_filters({"x": 100, "y": 12}) == sorted([narrow[2], elsewhere])
        assert table.match({"x": 100, "y": 12}) == {"I", "J"}
        assert table.match({"x": 20, "y": 13}) == {"I"}
        assert table.match({"x": 6, "y": 0}) == set()
        table._check()
        table.remove(table.add("K", parse("z = 1"))[0])
    assert (table.stats().covered, table.stats().active) == (0, 11)
    table.remove_interface("I")
    assert table.stats().filters == 1
    table._check()


@pytest.mark.parametrize(
    ("coverer", "covered"),
    [
        ("x exists", "x = true"),
        ("x != 3", "x > 3"),
        ("x != 3", "x <= 2.5"),
        ("x > 1", "x >= 1.5"),
        ("x in [1, 2, 3]", "x in [1, 3]"),
        ("x < 10", "x in [1, 3]"),
        ('x prefix "a"', 'x prefix "ab"'),
        ('x contains "b"', 'x suffix "abc"'),
        ('x >= "a"', 'x prefix "ab"'),
        ('x < "b"', 'x prefix "ab"'),
        ('x != "zz"', 'x contains "a"'),
        ('x prefix ""', 'x < "a"'),
        ("x > 1", "x > 1 and y exists"),
        ("x intersects BOX(0 0, 10 10)", "x inside BOX(1 1, 2 2)"),
        ("x intersects BOX(0 0, 10 10) and y = 1", "x inside BOX(1 1, 2 2) and y = 1 and z < 4"),
    ],
)
def test_what_is_seen_to_cover(coverer: str, covered: str) -> None:
    assert parse(coverer).covers(parse(covered))
    for first, second in ((coverer, covered), (covered, coverer)):
        table = ForwardingTable()
        table.add("I", parse(first))
        table.add("I", parse(second))
        table.add("J", parse(covered))
        assert (table.stats().covered, table.stats().active) == (1, 2)
        table._check()


@given(filters(most=2), filters(most=2))
def test_never_covered_without_reason(f: Filter, g: Filter) -> None:
    table = ForwardingTable(geotext_index="scan")
    table.add("I", f)
    table.add("I", g)
    if table.stats().covered:
        assert f.covers(g) or g.covers(f)


def test_a_loaded_table_goes_on_changing(tmp_path: Path) -> None:
    rng = random.Random(8)
    table = ForwardingTable()
    table.add_many([(f"I{i % 9}", _random_filter(rng)) for i in range(2000)])
    table.save(tmp_path / "table")
    loaded = ForwardingTable.load(tmp_path / "table")
    batch = [{f"n{i}": rng.randrange(200) for i in range(6)} for _ in range(20)]
    assert loaded.match_many_filters(batch) == table.match_many_filters(batch)
    more = [(f"I{i % 9}", _random_filter(rng)) for i in range(500)]
    assert loaded.add_many(more) == table.add_many(more)
    loaded.remove_interface("I3")
    table.remove_interface("I3")
    assert loaded.match_many_filters(batch) == table.match_many_filters(batch)
    loaded._check()
    assert ForwardingTable.load(tmp_path / "table").stats().filters == 2000


def test_what_cannot_be_saved_or_loaded(tmp_path: Path) -> None:
    table = ForwardingTable()
    table.add(7, attr("x") > 1)
    with pytest.raises(InvalidValue, match="not a string"):
        table.save(tmp_path / "table")
    table.add(None, attr("x") > 1)
    table.remove_interface(7)
    with pytest.raises(InvalidValue, match="not a string"):
        table.save(tmp_path / "table")
    table.remove_interface(None)
    table.add("seven", attr("x") > 1)
    table.save(tmp_path / "table")
    whole = (tmp_path / "table").read_bytes()
    for damaged in (whole[:-1], whole[:100], b"", whole.replace(b"forwarding-table", b"forwarding-tulip")):
        (tmp_path / "damaged").write_bytes(damaged)
        with pytest.raises(CorruptFile):
            ForwardingTable.load(tmp_path / "damaged")


@given(st.lists(st.tuples(interfaces, filters()), max_size=12), st.lists(notifications(), max_size=6))
@settings(max_examples=40)
def test_sampled_relations(pairs: list[Any], batch: list[Any]) -> None:
    uniform = Uniform(density=1.5, halo=True)
    table, naive = ForwardingTable(uniform, geotext_index="scan"), NaiveTable(uniform)
    for (interface, each), ids in zip(pairs, table.add_many(pairs), strict=True):
        naive.add(interface, each, ids)
    assert table.match_many_filters(batch) == [naive.match_filters(each) for each in batch]


def test_geotext_by_the_default_index() -> None:
    table = ForwardingTable()
    table.add("sale", parse('post matches {"ipad", "sale"} within BOX(0 0, 5 5)'))
    table.add("corner", parse('post matches {"ipad"} within POLYGON((0 0, 4 0, 0 4)) and price < 10'))
    table.add("any", parse('post matches {"ipad"}'))
    assert table.match({"post": GeoText("iPad on SALE", at=(1, 1)), "price": 5}) == {"sale", "corner", "any"}
    assert table.match({"post": GeoText("iPad on SALE", at=(4, 4)), "price": 5}) == {"sale", "any"}
    assert table.match({"post": GeoText("sale", at=(1, 1))}) == set()
    table.remove_interface("any")
    assert table.match({"post": GeoText("ipad", at=(9, 9))}) == set()
    with pytest.raises(InvalidValue, match="road network"):
        table.add("near", parse('a inside BOX(0 0, 1 1) and post similar {"ipad"} at POINT(1 2) alpha 0.4 tau 0.7'))
    assert len(table) == 2
    table._check()


@pytest.mark.parametrize("index", ["ap-tree", "rt++"])
def test_plugged_types_come_back_from_a_file_and_go_on_changing(tmp_path: Path, index: str) -> None:
    rng = random.Random(5)

    def some(number: int) -> list[tuple[str, Filter]]:
        corners = [(rng.uniform(0, 90), rng.uniform(0, 90)) for _ in range(number)]
        words = [rng.sample("abcdefgh", rng.randrange(1, 4)) for _ in range(number)]
        shapes = [Box(x, y, x + 9, y + 9) if x < y else Region([(x, y), (x + 9, y), (x, y + 9)]) for x, y in corners]
        texts = [attr("post").matches(words[i], within=shapes[i]) for i in range(0, number, 2)]
        areas = [attr("area").intersects(shapes[i]) & (attr("x") > i) for i in range(1, number, 2)]
        return [(f"I{i % 5}", Filter(each)) for i, each in enumerate([*texts, *areas])]

    table = ForwardingTable(geotext_index=index)
    ids = [id for given_ids in table.add_many(some(120)) for id in given_ids]
    batch: list[dict[str, Any]] = [
        {"post": GeoText("abcdefgh"[: i % 9] or "a", at=(i, i)), "area": Point(i, i), "x": 60} for i in range(40)
    ]
    batch += [{"post": GeoText([*"abcdefgh"], at=(i, i)), "area": Box(i, i, i + 5, i + 5), "x": 200} for i in range(40)]
    for _ in range(3):
        table.save(tmp_path / "table")
        loaded = ForwardingTable.load(tmp_path / "table")
        assert loaded.match_many_filters(batch) == table.match_many_filters(batch)
        assert any(table.match_many_filters(batch))
        more = some(30)
        ids += [id for given_ids in table.add_many(more) for id in given_ids]
        loaded.add_many(more)
        for id in ids[::3]:
            assert loaded.filter(id) == table.filter(id)
            loaded.remove(id)
            table.remove(id)
        del ids[::3]
        assert loaded.match_many_filters(batch) == table.match_many_filters(batch)
        loaded._check()
        table = loaded


def test_a_loaded_table_grows_where_it_is(tmp_path: Path) -> None:
    table = ForwardingTable()
    table.add_many([("I", attr(f"n{i % 50}") == f"value {i}") for i in range(5000)])
    table.save(tmp_path / "table")
    loaded = ForwardingTable.load(tmp_path / "table")
    before = {name: growable.array.ctypes.data for name, growable in loaded._memory.arrays.items()}
    for each in (table, loaded):
        each.add_many([("J", attr(f"n{i % 60}") == f"other {i}") for i in range(5000)])
    if sys.platform == "linux":
        after = {name: growable.array.ctypes.data for name, growable in loaded._memory.arrays.items()}
        large = ("operands", "filters", "postings", "words")
        assert {name: after[name] for name in large} == {name: before[name] for name in large}
    batch = [{f"n{i % 50}": f"value {i}", "n7": f"other {i}"} for i in range(0, 5000, 13)]
    assert loaded.match_many_filters(batch) == table.match_many_filters(batch)
    loaded._check()
