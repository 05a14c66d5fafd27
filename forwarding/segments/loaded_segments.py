"""The segments that a `SegmentedTable` has loaded: which of them may be asked, and what each is asked about.

A segment is asked about the notifications that its gate admits. Encoded notifications and columns are read once for all
segments (`shared_batch`), by numbers of names that all share. A segment that turned out to be damaged is an error where
it is needed, or is passed over.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from contrada.forwarding.segments.shared_batch import SharedBatch, SharedNames, TableNames, extend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contrada.forwarding.batches.encode import Encoded
    from contrada.forwarding.segments.segment import Segment
    from contrada.forwarding.state.numbering import NameNumbering
    from contrada.forwarding.table.table import ForwardingTable

_T = TypeVar("_T")


class LoadedSegments:
    """Segments in order of loading, beside the table of what was added."""

    def __init__(self, added: ForwardingTable[Any]) -> None:
        self.all: tuple[Segment, ...] = ()
        self.strict = True
        self.passed_over = 0
        self._added = added
        self._names: dict[str, int] = {}  # shared numbers of the names in segments: none ever goes
        self._shared = SharedNames(self.all, self._names, added.names)

    def load(self, opened: Sequence[Segment]) -> None:
        """Add segments to those that are here, all at once."""
        for segment in opened:
            extend(self._names, (*segment.table.names.numbers, *(segment.info.gate.attributes or ())))
            segment.names = TableNames.of(self._names, segment.table.names.numbers, segment.info.gate)
        self.all += tuple(opened)

    def usable(self, segment: Segment, notifications: int = 0) -> bool:
        """Whether a segment may be asked; raises if it may not and the table is strict."""
        if segment.damage is None:
            return True
        if self.strict:
            raise segment.damage
        self.passed_over += notifications
        return False

    def asked(self) -> Iterator[tuple[int, Segment]]:
        """The segments that may be asked, with their numbers."""
        return ((number, segment) for number, segment in enumerate(self.all) if self.usable(segment))

    def admitted(
        self, given: list[Mapping[str, object]]
    ) -> Iterator[tuple[int, Segment, Sequence[int], list[Mapping[str, object]]]]:
        """Each segment by its number, with the numbers of the notifications that its gate admits, and these."""
        for number, segment in enumerate(self.all):
            which = segment.info.gate.which(given)
            if which and self.usable(segment, len(which)):
                all_of_them = len(which) == len(given)
                yield number, segment, which, given if all_of_them else [given[n] for n in which]

    def offer(
        self,
        read: Callable[[NameNumbering], Encoded],
        ask: Callable[[ForwardingTable[Any], Callable[[], Encoded]], _T],
    ) -> Iterator[tuple[int | None, Sequence[int], _T]]:
        """Read notifications once, and ask every table about those that it admits.

        The number of each segment, None for the additions; the places of the notifications in question; the answer.
        """
        names, batch = self._shared, None

        def first() -> Encoded:  # while additions stay as they are
            nonlocal names, batch
            if names.segments is not self.all or names.changes != self._added.names.changes:
                names = self._shared = SharedNames(self.all, self._names, self._added.names)
            batch = SharedBatch(*read(names.numbering))
            return batch.select(names.added, batch.admitted(names.added))

        answer = ask(self._added, first)
        assert batch is not None
        yield None, range(len(batch)), answer
        for number, segment in enumerate(names.segments):
            assert segment.names is not None
            admitted = batch.admitted(segment.names)
            which = np.flatnonzero(admitted).tolist()
            if which and self.usable(segment, len(which)):
                yield number, which, ask(segment.table, partial(batch.select, segment.names, admitted))
