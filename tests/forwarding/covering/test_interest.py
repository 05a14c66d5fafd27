"""What a broker tells its neighbours of an interface of an index: everything it wants matches some of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.segments.index_directory import write_index
from contrada.forwarding.segments.segmented_table import SegmentedTable

if TYPE_CHECKING:
    import pytest

    from contrada.forwarding.language.filter import Filter

TEXTS = [
    "n > 2",
    "n < 1 and s exists",
    's prefix "a" or n = 3',
    "place inside BOX(0 0, 5 5)",
    'post matches {"storm"} within BOX(0 0, 9 9)',
    "m != 1 and n != 2",
]
rows = st.lists(st.tuples(st.sampled_from(["città", "porto"]), st.sampled_from(TEXTS)), max_size=12)
notifications = st.fixed_dictionaries(
    {}, optional={"n": st.integers(0, 4), "m": st.integers(0, 2), "s": st.sampled_from(["a", "b"])}
)


@settings(max_examples=25)
@given(built=rows, added=rows, most=st.integers(0, 8), notification=notifications)
def test_interest_covers_the_interface(
    tmp_path_factory: pytest.TempPathFactory, built: Any, added: Any, most: int, notification: dict[str, object]
) -> None:
    path = tmp_path_factory.mktemp("index")
    write_index(path, [(f"s{n}", name, text) for n, (name, text) in enumerate(built)], segment_filters=3)
    table = SegmentedTable.open(path)
    for n, (name, text) in enumerate(added):
        table.add(name, text, f"t{n}")
    for name in ("città", "porto", "nessuno"):
        own = [f for each, text in (*built, *added) if each == name for f in filters(text)]
        ids = table.interface_filters(name)
        assert sorted(str(table.filter(id)) for id in ids) == sorted(map(str, own))
        assert all(table.interface(id) == name for id in ids)
        assert len(table.interface_filters(name, most)) == min(most, len(own))
        interest = table.interest(name, most)
        if any(each.matches(notification) for each in own):
            assert any(each.matches(notification) for each in interest)
        if len(own) <= most:
            assert sorted(map(str, interest)) == sorted(map(str, own))
        if not own:
            assert interest == []


def filters(text: str) -> list[Filter]:
    parsed = parse(text)
    return list(getattr(parsed, "filters", None) or [parsed])
