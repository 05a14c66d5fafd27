"""Subscriptions as of each moment: whatever a broker did, the history says who was subscribed when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.errors import InvalidValue
from contrada.forwarding.codec.msgpack import encode_filter, encode_notification
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.recording.reader import Accepted, Gap, Indexed, Started, Subscribed
from contrada.forwarding.recording.writer import RecordingWriter
from contrada.forwarding.segments.manifest import read_manifest
from contrada.spark_jobs.replaying.history import FOREVER, history_of, read_history, write_history

if TYPE_CHECKING:
    from pathlib import Path

FILTER = encode_filter(parse("price > 1"))
LIFE = 1 << 32


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000 * 10**9

    def __call__(self) -> int:
        self.now += 10**6
        return self.now


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.just("subscribe") | st.just("unsubscribe") | st.just("publish"), st.integers(0, 4))
        | st.just(("restart", 0))
        | st.just(("roll", 0)),
        max_size=25,
    )
)
def test_who_is_subscribed_is_who_was(tmp_path_factory: Any, steps: list[tuple[str, int]]) -> None:
    directory = tmp_path_factory.mktemp("recording")
    clock = Clock()
    writer = RecordingWriter(directory, "b", clock=clock)
    alive: dict[int, int] = {}  # slot → interface
    life, next_interface, number = 1, 1, 1
    expected: dict[str, set[int]] = {}
    for step, slot in steps:
        if step == "subscribe" and slot not in alive:
            alive[slot] = next_interface
            writer.subscribed(next_interface, f"client {slot}", 1, slot, [FILTER])
            next_interface += 1
        elif step == "unsubscribe" and slot in alive:
            writer.unsubscribed(alive.pop(slot))
        elif step == "publish":
            writer.accepted("b", number, "p", [encode_notification({"price": 2})], [set(alive.values())])
            expected[f"b:{number}"] = {life * LIFE + each for each in alive.values()}
            number += 1
        elif step == "roll":
            writer.commit()
            writer.reopen()
        elif step == "restart":
            writer.close()
            writer = RecordingWriter(directory, "b", clock=clock)
            life = int(writer.path.stem)
            alive, next_interface = {}, 1
        writer.commit()
    writer.close()
    from contrada.forwarding.recording.reader import Recording

    history = read_history(directory)
    assert not history.problems
    seen = {}
    for record in Recording(directory):
        if type(record) is Accepted:
            seen[record.id] = {each.interface for each in history.lived if each.added <= record.sequence < each.removed}
            assert set(record.interfaces) == expected[record.id]
    assert seen == expected
    assert len({each.id for each in history.lived}) == len(history.lived)


def subscribed(sequence: int, interface: int, *, restated: bool = False) -> Subscribed:
    return Subscribed(sequence, 0, interface, "c", 1, 1, (FILTER,), restated)


def test_what_is_not_restated_behind_a_gap_has_ended() -> None:
    records = [
        Started(1, 0, "b"),
        subscribed(2, LIFE + 1),
        subscribed(3, LIFE + 2),
        Gap(10, 0, 6, reset=True),
        subscribed(10, LIFE + 2, restated=True),
        subscribed(10, LIFE + 3, restated=True),
        Accepted(10, 0, "b", 1, "p", b"", ()),
    ]
    lives = {each.id: (each.added, each.removed) for each in history_of(records).lived}
    assert lives == {"1.1": (2, 10), "1.2": (3, FOREVER), "1.3": (10, FOREVER)}


def test_a_gap_in_the_middle_of_a_file_ends_nothing() -> None:
    records = [
        Started(1, 0, "b"),
        subscribed(2, LIFE + 1),
        Gap(10, 0, 6, reset=False),
        Accepted(10, 0, "b", 1, "p", b"", ()),
    ]
    assert [(each.added, each.removed) for each in history_of(records).lived] == [(2, FOREVER)]


def test_an_index_stands_until_the_next_one_and_may_change() -> None:
    from contrada.forwarding.recording.reader import Added, Removed, Standing

    records = [
        Started(1, 0, "b"),
        Indexed(2, 0, "index", "", "d1", 5, 5, False),
        Standing(3, 0, LIFE + 7, "north", False),
        Removed(4, 0, "s1", False),
        Added(5, 0, "s9", "north", FILTER, False),
        Added(6, 0, "s9", "south", FILTER, False),
        Removed(7, 0, "s9", False),
        Added(8, 0, "s2", "north", FILTER, False),
        Indexed(9, 0, "index", "0/2", "d2", 5, 5, False),
        Started(20, 0, "b"),
    ]
    history = history_of(records)
    assert [(p.digest, p.shard, p.added, p.removed, p.gone) for p in history.periods] == [
        ("d1", "", 2, 9, {"s1": 4, "s9": 5, "s2": 8}),
        ("d2", "0/2", 9, 20, {}),
    ]
    assert history.standing == {LIFE + 7: "north"}
    assert [(each.id, each.owner, each.added, each.removed, each.interface) for each in history.lived] == [
        ("+5:s9", "north", 5, 6, None),
        ("+6:s9", "south", 6, 7, None),
        ("+8:s2", "north", 8, 9, None),
    ]


def test_client_names_that_no_interface_may_have(tmp_path: Path) -> None:
    from contrada.forwarding.segments.segmented_table import SegmentedTable

    with RecordingWriter(tmp_path / "recording", "b") as writer:
        writer.subscribed(1, "", 1, 1, [FILTER])
        writer.subscribed(2, "東" * 1000, 1, 1, [FILTER])
    write_history(tmp_path / "index", read_history(tmp_path / "recording"))
    assert len(SegmentedTable.open(tmp_path / "index")) == 2


def test_a_recording_says_what_coordinates_are(tmp_path: Path) -> None:
    filter = encode_filter(parse("bus within 3 km of POINT(12.5 41.9)"))
    with RecordingWriter(tmp_path / "log", "b", crs="lonlat") as writer:
        writer.subscribed(1, "client", 1, 1, [filter])
    write_history(tmp_path / "index", read_history(tmp_path / "log"))
    manifest = read_manifest(tmp_path / "index")
    assert (manifest.options.crs, manifest.subscriptions) == ("lonlat", 1)
    RecordingWriter(tmp_path / "log", "b").close()
    with pytest.raises(InvalidValue, match="crs became plane"):
        read_history(tmp_path / "log")
