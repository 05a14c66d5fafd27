"""A forwarding table in segments: many packed, memory-mapped tables and one that takes what is added, answering as one.

    SegmentedTable
      ├── ForwardingTable        additions since the index was opened
      └── Segment, Segment, …    a ForwardingTable mapped from a file, its subscriptions' ids, and its gate

A notification is matched by the tables whose gates admit it (gate.py) and the answers are united. Segments are mapped
copy-on-write: removing a filter changes the pages it is on in memory, and the files never. Additions go to the one
table that is not mapped. So opening costs no more than mapping, and everything may change afterwards.

Ids of filters are integers as in a ForwardingTable, those of segments negative (`filter_id`), the segment's
number counted from 0 in order of loading. A subscription, the row that an index was built from, has a string for an
id and one or more filters; filters added without one belong to no subscription.

It is a Table (table/contract.py), as a ForwardingTable is. Beyond that, `match_many_subscriptions` says who is
notified: (interface, subscription) pairs. `loaded_segments` has the segments, and knows which to ask about what.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

import numpy as np

from contrada.errors import CorruptFile, InvalidValue, NotFound, shown
from contrada.forwarding.batches.bodies import read_plain
from contrada.forwarding.batches.columns import encode_given
from contrada.forwarding.batches.encode import as_ints
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.lonlat import LONLAT, notification_in_degrees
from contrada.forwarding.language.values import with_own_shapes
from contrada.forwarding.segments.added_subscriptions import AddedSubscriptions
from contrada.forwarding.segments.loaded_segments import LoadedSegments
from contrada.forwarding.segments.manifest import read_manifest
from contrada.forwarding.segments.segment import Segment, filter_id, open_segments, row_of, segment_of
from contrada.forwarding.segments.stored_index import roads_of
from contrada.forwarding.segments.subscription_ids import check_id
from contrada.forwarding.state.state import TableStats
from contrada.forwarding.table.arguments import given_in_degrees, listed
from contrada.forwarding.table.interfaces import InterfaceT
from contrada.forwarding.table.matcher import MATCH_AT_ONCE, match_by_pieces, match_in_degrees
from contrada.forwarding.table.options import DEFAULT_OPTIONS, TableOptions
from contrada.forwarding.table.table import ForwardingTable
from contrada.forwarding.table.threads import cut, in_threads, joined_pairs, thread_count

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set

    from contrada.errors import CodecError
    from contrada.forwarding.batches.columns import Columns
    from contrada.forwarding.batches.encode import Encoded
    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.forwarding.language.explain import Explanation
    from contrada.forwarding.language.filter import Expression
    from contrada.forwarding.state.numbering import NameNumbering
    from contrada.forwarding.table.contract import Table
    from contrada.spatial.road.network import RoadNetwork

_T = TypeVar("_T")
_FEW: Final = 16  # bodies below which it costs more to offer a batch to each segment than to decode them


class SegmentedTable(Generic[InterfaceT]):
    """Segments of an index and what changed since, as one forwarding table. See the module for ids and layout.

    The interfaces of an index are strings. What is added to one that was opened has strings for interfaces, too.
    """

    def __init__(self, options: TableOptions = DEFAULT_OPTIONS, *, road_network: RoadNetwork | None = None) -> None:
        self._added: ForwardingTable[InterfaceT] = ForwardingTable.of(options, road_network)
        self.discretization = options.discretization
        self._roads = road_network
        self._segments = LoadedSegments(self._added)
        self._subscriptions = AddedSubscriptions()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        shard: tuple[int, int] | None = None,
        *,
        road_network: RoadNetwork | None = None,
        verify: bool = False,
    ) -> SegmentedTable[str]:
        """Open an index, by path or URL, or with `shard` = (k, n) the k-th of n parts of it, counted from 0.

        With `verify` every byte is checked first, at about a gigabyte per second; without, headers, sizes and whatever
        kernels follow are, and `verify()` may check the rest later, in a thread beside the matching. The road network
        is the one that the index was built with, unless another is given.
        """
        manifest = read_manifest(path)
        road_network = road_network or roads_of(path, manifest)
        table: SegmentedTable[str] = SegmentedTable(manifest.options, road_network=road_network)
        table.load(path, shard, verify=verify)
        return table

    def load(
        self, path: str | os.PathLike[str], shard: tuple[int, int] | None = None, *, verify: bool = False
    ) -> list[Segment]:
        """Add the segments of an index directory to those that are here, all at once; what was added."""
        opened = open_segments(path, shard, road_network=self._roads, verify=verify)
        for segment in opened:
            if segment.table.crs != self.crs:
                its = segment.table.crs
                raise InvalidValue(f"{shown(path)}: the crs of the index is {its}, and this table's is {self.crs}")
        self._segments.load(opened)
        return opened

    @property
    def crs(self) -> str:
        """What coordinates are: "plane" or "lonlat"."""
        return self._added.crs

    def _given(self, notification: Mapping[str, object]) -> Mapping[str, object]:
        """A notification whose places gates may look at, before any table does."""
        return notification_in_degrees(notification) if self.crs == LONLAT else with_own_shapes(notification)

    def verify(self) -> list[CorruptFile]:
        """Check every byte of the segments that were not verified when they were opened; what is wrong.

        From any thread. A segment that fails is taken out at once: whatever would have needed it raises its
        `CorruptFile`, or passes it over if the table is not `strict`.
        """
        return [damage for segment in self._segments.all if (damage := segment.verify()) is not None]

    @property
    def damaged(self) -> list[CorruptFile]:
        """What `verify` has found so far."""
        return [segment.damage for segment in self._segments.all if segment.damage is not None]

    @property
    def strict(self) -> bool:
        """Whether a damaged segment is an error where it is needed, or is passed over and counted."""
        return self._segments.strict

    @strict.setter
    def strict(self, strict: bool) -> None:
        self._segments.strict = strict

    @property
    def passed_over(self) -> int:
        """How many notifications a damaged segment was not asked about, when not strict."""
        return self._segments.passed_over

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, in order of loading."""
        return self._segments.all

    @property
    def added(self) -> ForwardingTable[InterfaceT]:
        """The table of what was added."""
        return self._added

    def __len__(self) -> int:
        """How many filters there are."""
        return len(self._added) + sum(len(segment.table) for segment in self._segments.all)

    def _tables(self) -> Iterator[ForwardingTable[Any]]:
        yield self._added
        for segment in self._segments.all:
            if self._segments.usable(segment):
                yield segment.table

    # -- changing ----------------------------------------------------------------------------------------

    def add(self, interface: InterfaceT, filter: Expression | str, subscription: str | None = None) -> list[int]:
        """Add a filter, each filter of a predicate, or those that a text describes; their ids, in order.

        `subscription`, if given, is an id that no subscription here has.
        """
        if subscription is not None and self.filters_of(check_id(subscription)):
            raise InvalidValue(f"there is a subscription {subscription!r} already; remove it first")
        ids = self._added.add(interface, filter)
        if subscription is not None:
            self._subscriptions.add(subscription, ids)
        return ids

    def add_many(self, pairs: Iterable[tuple[InterfaceT, Expression | str]]) -> list[list[int]]:
        """As `add` of each (interface, filter) pair, at a fraction of the cost."""
        return self._added.add_many(pairs)

    def adding(self, interface: InterfaceT, filter: Expression | str, start: int = 0) -> Iterator[list[int]]:
        """As `add`, a piece at each step: the ids of the piece. For callers who have others to serve in between."""
        return self._added.adding(interface, filter, start)

    def remove(self, id: int) -> None:
        """Take a filter out. `NotFound` when there is none of that id."""
        self._ask(id, ForwardingTable.remove)
        self._subscriptions.forget(id)

    def remove_subscription(self, subscription: str) -> None:
        """Take the filters of a subscription out. `NotFound` when there is none of that id."""
        ids = self.filters_of(subscription)
        if not ids:
            raise NotFound(f"there is no subscription {subscription!r}, or no longer")
        for id in ids:
            self.remove(id)

    def remove_interface(self, interface: Hashable) -> None:
        """Take all filters of an interface out. `NotFound` when it has none."""
        found = False
        for table in self._tables():
            try:
                table.remove_interface(interface)
                found = True
            except NotFound:
                continue
        if not found:
            raise NotFound(f"no filter is of interface {interface!r}")
        self._subscriptions.keep(self._added)

    # -- matching ----------------------------------------------------------------------------------------

    def match(self, notification: Mapping[str, object]) -> set[InterfaceT]:
        """Every interface with at least one filter that matches."""
        notification = self._given(notification)
        found = self._added.match(notification)
        for segment in self._segments.all:
            if segment.info.gate.admits(notification) and self._segments.usable(segment, 1):
                found |= segment.table.match(notification)
        return found

    def match_many(
        self, notifications: Iterable[Mapping[str, object]], *, threads: int | None = 1
    ) -> list[set[InterfaceT]]:
        """As `match` of each, much cheaper per notification; a large batch in several threads, None for all cores."""
        given = [self._given(each) for each in listed(notifications)]
        answers = self._added.match_many(given, threads=threads)
        for _, segment, which, batch in self._segments.admitted(given):
            for n, found in zip(which, segment.table.match_many(batch, threads=threads), strict=True):
                if found:
                    answers[n] |= found
        return answers

    def match_bodies(self, bodies: Sequence[bytes]) -> tuple[list[Set[InterfaceT]], dict[int, CodecError]]:
        """As `match_many` of notifications as `encode_notification` writes them, most of which are never made objects.

        What the codec refuses matches nothing; its place, and the reason, are in the second answer. Equal answers may
        be one object.
        """
        if self.crs == LONLAT:
            return match_in_degrees(bodies, self.match_many)
        return match_by_pieces(bodies, self._match_plain, self.match_many, _FEW)

    def _match_plain(self, bodies: Sequence[bytes]) -> tuple[list[Set[InterfaceT]], list[int]]:
        """The interfaces of the bodies that compiled code reads, and the places of the others."""
        left: list[int] = []

        def read(names: NameNumbering) -> Encoded:
            batch, values, widest, others = read_plain(bodies, names.names)
            left.extend(others)
            return batch, values, widest

        answers: list[Set[InterfaceT]] = [frozenset()] * len(bodies)
        for _, which, matched in self._segments.offer(read, ForwardingTable.match_batch):
            for n, found in zip(which, matched, strict=True):
                if found:
                    answers[n] = {*answers[n], *found} if answers[n] else found
        del answers[len(bodies) - len(left) :]
        return answers, left

    def match_pairs(
        self, notifications: Columns | Sequence[Mapping[str, object]], *, threads: int | None = 1
    ) -> tuple[Ints, Ints]:
        """As `match_many_filters`, in arrays: places of notifications, ascending, and ids of filters they match.

        Notifications may be given by columns, as analytical files hold them. The filters of one notification come in no
        order. In one thread the whole batch is matched in one piece.
        """
        count = thread_count(threads)
        if count > 1:
            pieces = cut(notifications, MATCH_AT_ONCE)
            return joined_pairs(pieces, in_threads(lambda piece: self.match_pairs(piece[1]), pieces, count))
        given = given_in_degrees(notifications) if self.crs == LONLAT else notifications
        all_places, all_ids = [], []

        def read(names: NameNumbering) -> Encoded:
            return encode_given(given, names.numbers)

        for segment, which, (places, ids) in self._segments.offer(read, ForwardingTable.match_batch_pairs):
            all_places.append(as_ints(which)[places])
            all_ids.append(ids if segment is None else filter_id(segment, ids))
        places = np.concatenate(all_places)
        order = np.argsort(places, kind="stable")
        return places[order], np.concatenate(all_ids)[order]

    def match_filters(self, notification: Mapping[str, object]) -> list[int]:
        """The ids of the filters that match, in ascending order."""
        return self.match_many_filters([notification])[0]

    def match_many_filters(self, notifications: Iterable[Mapping[str, object]]) -> list[list[int]]:
        """As `match_filters` of each, much cheaper per notification."""
        given = [self._given(each) for each in listed(notifications)]
        answers = self._added.match_many_filters(given)
        for number, segment, which, batch in self._segments.admitted(given):
            for n, found in zip(which, segment.table.match_many_filters(batch), strict=True):
                answers[n] += [filter_id(number, row) for row in found]
        for answer in answers:
            answer.sort()
        return answers

    def match_subscriptions(self, notification: Mapping[str, object]) -> list[tuple[InterfaceT, str]]:
        """The (interface, subscription) pairs with a filter that matches, each once, sorted by subscription.

        Filters that were added without a subscription have none to be named by, and are left out.
        """
        return self.match_many_subscriptions([notification])[0]

    def match_many_subscriptions(
        self, notifications: Iterable[Mapping[str, object]]
    ) -> list[list[tuple[InterfaceT, str]]]:
        """As `match_subscriptions` of each, much cheaper per notification."""
        given = [self._given(each) for each in listed(notifications)]
        answers: list[dict[str, InterfaceT]] = [{} for _ in given]
        for answer, found in zip(answers, self._added.match_many_filters(given), strict=True):  # it checks them, too
            for id in found:
                if (subscription := self._subscriptions.of(id)) is not None:
                    answer[subscription] = self._added.interface(id)
        for _, segment, which, batch in self._segments.admitted(given):
            for n, found in zip(which, segment.table.match_many_filters(batch), strict=True):
                for id, subscription in zip(found, segment.ids.ids_of(found), strict=True):
                    answers[n][subscription] = segment.table.interface(id)
        return [sorted(((i, s) for s, i in answer.items()), key=lambda pair: pair[1]) for answer in answers]

    # -- asking about filters ----------------------------------------------------------------------------

    def filter(self, id: int) -> Filter:
        """The filter of that id, equal to what was added. `NotFound` when there is none."""
        return self._ask(id, ForwardingTable.filter)

    def interface(self, id: int) -> InterfaceT:
        """The interface of the filter of that id. `NotFound` when there is none."""
        return cast("InterfaceT", self._ask(id, ForwardingTable.interface))

    def explain(self, notification: Mapping[str, object], id: int) -> Explanation:
        """Constraint by constraint, whether the filter of that id holds and why; `str()` of it is readable."""
        return self._ask(id, lambda table, local: table.explain(notification, local))

    def subscription(self, id: int) -> str | None:
        """The subscription that a filter is of, or None. `NotFound` when there is no such filter."""
        table, local = self._find(id)
        if local not in table:
            raise _no_filter(id)
        if id >= 0:
            return self._subscriptions.of(id)
        return self._segments.all[segment_of(id)].ids.ids_of([local])[0]

    def filters_of(self, subscription: str) -> list[int]:
        """The ids of a subscription's filters; none when it is not here."""
        if not isinstance(subscription, str):
            raise InvalidValue(f"a subscription's id is a string, not {subscription!r}")
        found = self._subscriptions.filters_of(subscription)
        for number, segment in self._segments.asked():
            rows = segment.ids.rows_of(subscription)
            found += [filter_id(number, row) for row in rows if row in segment.table]
        return found

    def interface_filters(self, interface: Hashable, most: int | None = None) -> list[int]:
        """The ids of an interface's filters, or of `most` of them; none when it has none."""
        found = self._added.interface_filters(interface, most)
        for number, segment in self._segments.asked():
            left = None if most is None else most - len(found)
            found += [filter_id(number, row) for row in segment.table.interface_filters(interface, left)]
        return found

    def interest(self, interface: Hashable, most: int) -> list[Filter]:
        """Filters of which every notification that the interface wants matches one.

        They are its own if it has at most `most`. If it has more, what was added is still told as it is, but of a
        segment only which attributes its gate asks for: few filters, found without reading the many.
        """
        ids = self.interface_filters(interface, most + 1)
        if len(ids) <= most:
            return [self.filter(id) for id in ids]
        found = dict.fromkeys(self._added.filter(id) for id in self._added.interface_filters(interface))
        for _, segment in self._segments.asked():
            if not segment.table.interface_filters(interface, 1):
                continue
            if segment.info.gate.attributes is None:
                found.update(dict.fromkeys(map(segment.table.filter, segment.table.interface_filters(interface))))
            else:
                names = segment.info.gate.attributes
                found.update(dict.fromkeys(Filter((Constraint(name, Operator.EXISTS),)) for name in names))
        return list(found)

    def __contains__(self, id: object) -> bool:
        """Whether there is a filter of that id."""
        try:
            table, local = self._find(id)  # type: ignore[arg-type]  # it judges whatever it is given
        except NotFound:
            return False
        return local in table

    def stats(self) -> TableStats:
        """How much the table holds. A name or interface counts once for every segment it is in."""
        all_stats = [table.stats() for table in self._tables()]
        ways = ", ".join(dict.fromkeys(each.matching for each in all_stats))
        sums = {
            f.name: sum(getattr(each, f.name) for each in all_stats) for f in fields(TableStats) if f.name != "matching"
        }
        return TableStats(**sums, matching=ways)

    def _find(self, id: int) -> tuple[ForwardingTable[Any], int]:
        """The table that a filter is in, and its id there."""
        if type(id) is int and id < 0:
            number = segment_of(id)
            if number >= len(self._segments.all):
                raise _no_filter(id)
            if (damage := self._segments.all[number].damage) is not None:
                raise damage
            return self._segments.all[number].table, row_of(id)
        return self._added, id

    def _ask(self, id: int, question: Callable[[ForwardingTable[Any], int], _T]) -> _T:
        table, local = self._find(id)
        try:
            return question(table, local)
        except NotFound:
            raise _no_filter(id) from None  # not of the id that it has in its table

    def _check(self) -> None:
        """Assert every invariant."""
        for table in self._tables():
            table._check()
        self._subscriptions._check(self._added)
        for segment in self._segments.all:
            assert 0 <= len(segment.table) <= segment.info.filters
            for row in range(1, segment.info.filters + 1):
                if row in segment.table:
                    gate = segment.info.gate
                    each = segment.table.filter(row)
                    assert gate.attributes is None or each.names & gate.attributes.keys()
                    assert row in segment.ids.rows_of(segment.ids.ids_of([row])[0])


def _no_filter(id: object) -> NotFound:
    return NotFound(f"there is no filter of id {shown(id)}, or no longer")


if TYPE_CHECKING:

    def _both_are_tables(one: ForwardingTable[str], other: SegmentedTable[str]) -> tuple[Table[str], Table[str]]:
        """Type checkers prove it here."""
        return one, other
