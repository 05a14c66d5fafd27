"""Publications that wait to be matched, and how they are matched: together, or in slices if that would take long.

    submit ─▶ pending ─▶ match: table, then `matchers` ─▶ `Delivery` hands out

Publications of a turn are read and matched together by `match_bodies`. Of what would take longer than a turn should,
some is matched and handed out in each turn, of each source in turn: a source that has published much delays itself.

What a match takes is not known before. It is allowed so much work (`allowance`); where that is used up, fewer are tried
in the next turn, and a notification that needs more by itself, say a region against thousands of others, is matched by
another thread (`beside`). So is one of very many bytes, which takes long to read. That thread matches one at a time, of
each source in turn, and the table is lent to it meanwhile: filters that come are newcomers (`newcomers.py`), and move
into the table before the next one is matched so. There, too, work is bounded: what needs more is refused.

The table sees the messages of each session in order of arrival, and those of all unless somebody has published much.

Owns the publications that were received and not yet handed out. Knows nothing of who receives them.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from contrada.broker.protocol.wire import Code
from contrada.broker.turn.mishaps import Mishap
from contrada.errors import Refused
from contrada.spatial.allowance import MILLISECOND, Exhausted, allowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from contrada.broker.core.delivery import Delivery
    from contrada.broker.core.newcomers import OpenTable
    from contrada.broker.core.publication import Publication
    from contrada.broker.sessions.session import Session
    from contrada.broker.turn.mishaps import Mishaps
    from contrada.broker.turn.turns import Turns
    from contrada.errors import ContradaError

    Matched = Sequence[AbstractSet[int]]
    Faults = Mapping[int, ContradaError]

SLICE: Final = 2048  # notifications, and
SLICE_WORK: Final = 8 * MILLISECOND  # of them
BESIDE_WORK: Final = 10_000 * MILLISECOND  # of one that another thread matches
BESIDE_BYTES: Final = 1 << 14  # of a notification that another thread matches
SLICE_BYTES: Final = 1 << 17  # bytes, that are matched at once: less if that turns out to take long
MANY: Final = 20_000  # receivers of notifications, counted for each, beyond which these are handed out over turns
_TOO_MUCH: Final = "matching it would take too long: its shapes, or those of filters, have too many vertices"
_EXPLOSIVE: Final = 1 << 19  # receivers, if each notification went to everybody: then begin with fewer of them
_CAREFUL: Final = 1 / 64  # of a slice
_SMALLEST: Final = 1 / SLICE
_WARY: Final = 16


class _Progress:
    """How far a publication is that takes more than a turn."""

    __slots__ = ("count", "matches", "refused", "size", "steps")

    def __init__(self, publication: Publication) -> None:
        self.count = len(publication.bodies)
        self.size = publication.size
        self.matches: list[AbstractSet[int]] = []  # of the first notifications
        self.refused: dict[int, ContradaError] = {}
        self.steps: Iterator[None] | None = None  # of handing it out, once it is matched


class Matcher(Protocol):
    """Somebody who adds to what the table found."""

    def find(self, bodies: Sequence[bytes]) -> Any:
        """What is to be added, for `merge`. Other threads ask too."""

    def merge(self, found: Matched, more: Any) -> Matched:
        """The interfaces of each notification, with those to be added."""


class _Beside(NamedTuple):
    """A notification that another thread is to match, the next of its publication."""

    publication: Publication
    progress: _Progress
    body: bytes


class Matching:
    """Matching in turns.

    `muted` are interfaces with filters in the table that match nothing: not complete yet, or on their way out. Each of
    the `matchers` adds to what the table found, in order.
    """

    def __init__(
        self,
        table: OpenTable,
        delivery: Delivery,
        mishaps: Mishaps,
        turns: Turns,
        *,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.matchers: list[Matcher] = []
        self.asks_table_only = False  # no matcher has anything to add
        self.muted: set[int] = set()
        self.pending = 0  # notifications that wait
        self.slice_bytes = SLICE_BYTES
        self.seconds = math.inf  # that matching should take of a turn
        self.turns = turns
        self.beside: Callable[[Callable[[], None], Callable[[], None]], None] | None = None
        self._aside: set[Publication] = set()  # those of which another thread matches a notification, or will
        self._waiting_beside: deque[_Beside] = deque()  # of them, those that wait for another to be matched
        self._publications: list[Publication] = []
        self._bytes = 0  # of them
        self._under_way: dict[Publication, _Progress] = {}
        self._scale = 1.0  # of what is matched at once
        self._wary = 0  # matches before more are tried at once again
        self._table = table
        self._delivery = delivery
        self._mishaps = mishaps
        self._now = now

    def submit(self, publication: Publication) -> None:
        """Take in a publication: it is matched at the end of the turn, or before a subscription changes."""
        count = len(publication.bodies)
        self._publications.append(publication)
        self.pending += count
        self._bytes += publication.size
        if self.beside is not None and publication.size > BESIDE_BYTES and self._is_for_another_thread(publication):
            self._begin(publication)
        session = publication.source.session
        session.unacknowledged += count
        session.unacknowledged_bytes += publication.size

    def _is_for_another_thread(self, publication: Publication) -> bool:
        return max(map(len, publication.bodies)) > BESIDE_BYTES

    @property
    def ready(self) -> bool:
        """Whether there is something to match or hand out that waits for nothing but a turn."""
        return bool(self._publications) and (not self._aside or self._next() is not None)

    def _next(self) -> Publication | None:
        """The first publication of a source that does not wait for another thread."""
        waiting = {publication.source for publication in self._aside}
        return next((each for each in self._publications if each.source not in waiting), None)

    @property
    def will_last(self) -> bool:
        """Whether matching what is pending may take longer than a turn should."""
        scale = self._scale
        return self._bytes > self.slice_bytes * scale or self.pending > SLICE * scale or bool(self._under_way)

    def match_some(self) -> None:
        """Match and hand out what is pending, for as long as a turn should last."""
        if not self._publications:
            return
        if self._waiting_beside:
            self._ask_for_next()
        self._beware()
        until = self._now() + self.seconds
        while self.ready:
            if self.will_last:
                self._match_slice()
            else:
                publications, self._publications = self._publications, []
                self._match(publications)
            if self._now() >= until:
                return

    def match_before(self, session: Session | None) -> bool:
        """Match everything that is pending, if that is soon done; else say whether nothing of this session's is."""
        if self._publications:
            self._beware()
            if not self.will_last:
                publications, self._publications = self._publications, []
                self._match(publications)
        return not self._publications or all(each.source.session is not session for each in self._publications)

    def _match_slice(self) -> None:
        """Match some of what one source has published: then it is another's turn."""
        first = self._next()
        assert first is not None
        source = first.source
        mine = [each for each in self._publications if each.source is source]
        others = [each for each in self._publications if each.source is not source]
        most_bytes, most = self.slice_bytes * self._scale, SLICE * self._scale
        taken = size = count = 0
        for each in mine:
            size += each.size
            count += len(each.bodies)
            if taken and (size > most_bytes or count > most or each in self._under_way):
                break
            taken += 1
        large = first.size > most_bytes or len(first.bodies) > most
        if first in self._under_way or (large and len(first.bodies) > 1):
            self._publications = others + mine
            self._go_on(first, most_bytes, most)
        else:
            self._publications = others + mine[taken:]
            self._match(mine[:taken])

    def _match(self, publications: Sequence[Publication]) -> None:
        """Match publications, which are pending no more, and hand them out; or begin to, if many receive them."""
        largest = publications[0] if len(publications) == 1 else max(publications, key=lambda each: each.size)
        self.pending -= sum([len(each.bodies) for each in publications])
        self._bytes -= sum([each.size for each in publications])
        self.turns.enter()
        began = self._now()
        try:
            one = len(publications) == 1
            bodies = publications[0].bodies if one else [body for each in publications for body in each.bodies]
            matches, refused = self._find(bodies)
            if len(bodies) * len(self._delivery.receivers) > MANY and sum(map(len, matches)) > MANY:
                self._hand_out_later(publications, matches, refused)
            else:
                self._delivery.hand_out(publications, bodies, matches, refused)
        except Exhausted:
            self._put_back(publications, len(bodies))
        except Exception as error:
            self._mishaps.note("matching", error)
            self._delivery.lose(publications, error)
        else:
            self._took(self._now() - began)
        finally:
            self.turns.leave("matching", largest.source.session.number)

    def _find(self, bodies: Sequence[bytes]) -> tuple[Matched, Faults]:
        """Find the interfaces of each notification, and what is wrong with those that cannot be read, or `Exhausted`.

        What makes that raise is found by halves, and refused alone.
        """
        if self.beside is None:  # nobody else could do it
            return self._find_all(bodies)
        with allowed(SLICE_WORK):
            return self._find_all(bodies)

    def _find_all(self, bodies: Sequence[bytes]) -> tuple[Matched, Faults]:
        try:
            found, refused = self._table.match_bodies(bodies)
            if self.asks_table_only and not self.muted:
                return found, refused
            return self._complete(found, [each.find(bodies) for each in self.matchers]), refused
        except Exhausted:
            raise
        except Exception as error:
            if len(bodies) == 1:
                self._mishaps.note("matching", error)
                return [frozenset()], {0: Mishap(error)}
        half = len(bodies) // 2
        found, refused = self._find_all(bodies[:half])
        more, wrong = self._find_all(bodies[half:])
        return [*found, *more], {**refused, **{half + place: error for place, error in wrong.items()}}

    def _complete(self, found: Matched, more: Sequence[Any]) -> Matched:
        """What the table found, with what the matchers have found and without the muted."""
        for matcher, added in zip(self.matchers, more, strict=True):
            found = matcher.merge(found, added)
        if muted := self.muted:
            found = [matched if muted.isdisjoint(matched) else matched - muted for matched in found]
        return found

    # -- publications that take more than a turn ---------------------------------------------------------

    def _put_back(self, publications: Sequence[Publication], count: int) -> None:
        """Match these, which took too much, in the next turn: fewer at once, or a single one beside the loop."""
        self.pending += count
        self._bytes += sum([each.size for each in publications])
        self._publications = [*publications, *self._publications]
        if count == 1:
            self._set_aside(publications[0], self._begin(publications[0]))
        else:
            self._took_too_much(count)

    def _hand_out_later(self, publications: Sequence[Publication], matches: Matched, refused: Faults) -> None:
        """Accept publications that are matched, and have them handed out before what came after them."""
        start = 0
        begun: list[Publication] = []
        for publication in publications:
            end = start + len(publication.bodies)
            wrong = {at - start: refused[at] for at in range(start, end) if at in refused}
            try:
                steps = self._delivery.hand_out_by_steps(publication, matches[start:end], wrong)
            except Exception as error:
                self._mishaps.note("handing out", error, publication.source.session.number)
                self._delivery.lose([publication], error)
            else:
                progress = self._begin(publication)
                progress.steps = steps
                self.pending += progress.count
                self._bytes += progress.size
                begun.append(publication)
            start = end
        self._publications = begun + self._publications

    def _begin(self, publication: Publication) -> _Progress:
        self._under_way[publication] = progress = _Progress(publication)
        self._delivery.under_way += 1
        return progress

    def _go_on(self, publication: Publication, most_bytes: float, most: float) -> None:
        """Match more of a large publication, or hand out more of it."""
        progress = self._under_way.get(publication) or self._begin(publication)
        self.turns.enter()
        began = self._now()
        try:
            if progress.steps is None:
                if self._match_more(publication, progress, most_bytes, most):
                    self._took(self._now() - began)
            else:
                while self._now() - began < self.seconds:
                    next(progress.steps)
        except StopIteration:
            self._done_with(publication, progress)
        except Exception as error:
            self._mishaps.note("handing out", error, publication.source.session.number)
            self._done_with(publication, progress)
            self._delivery.lose([publication], error)
        finally:
            self.turns.leave("matching", publication.source.session.number)

    def _match_more(self, publication: Publication, progress: _Progress, most_bytes: float, most: float) -> bool:
        """Match some more, or have another thread do it; whether some are matched."""
        bodies = publication.bodies
        start = end = len(progress.matches)
        largest = math.inf if self.beside is None else BESIDE_BYTES
        if len(bodies[start]) > largest:
            self._set_aside(publication, progress)
            return False
        size = len(bodies[start])
        while (end := end + 1) < progress.count and end - start < most and len(bodies[end]) <= largest:
            size += len(bodies[end])
            if size > most_bytes:
                break
        try:
            found = self._find(bodies[start:end])
        except Exhausted:
            if end - start == 1:
                self._set_aside(publication, progress)
            else:
                self._took_too_much(end - start)
            return False
        self._matched(publication, progress, *found)
        return True

    def _set_aside(self, publication: Publication, progress: _Progress) -> None:
        """Have another thread match the next notification of a publication."""
        self._aside.add(publication)
        self._waiting_beside.append(_Beside(publication, progress, publication.bodies[len(progress.matches)]))
        self._ask_for_next()

    def _ask_for_next(self) -> None:
        """Have another thread match the next notification that waits for it, unless the table must not be lent yet."""
        if not self._waiting_beside or not self._table.may_lend:
            return
        assert self.beside is not None
        publication, progress, body = self._waiting_beside.popleft()
        answer: list[tuple[Matched, Faults, list[Any]]] = []
        failure: list[ContradaError] = []

        def job() -> None:
            try:
                with allowed(BESIDE_WORK):
                    found, refused = self._table.match_lent(body)
                    answer.append((found, refused, [each.find((body,)) for each in self.matchers]))
            except Exhausted:
                failure.append(Refused(_TOO_MUCH, code=Code.LIMIT))
            except Exception as error:
                self._mishaps.note("matching", error)
                failure.append(Mishap(error))

        def done() -> None:
            self._aside.remove(publication)
            self._table.take_back()
            try:
                if failure:
                    self._matched(publication, progress, [frozenset()], {0: failure[0]})
                else:
                    ((found, refused, more),) = answer
                    self._matched(publication, progress, self._complete(found, more), refused)
            except Exception as error:
                self._mishaps.note("handing out", error, publication.source.session.number)
                self._done_with(publication, progress)
                self._delivery.lose([publication], error)

        self._table.lend()
        self.beside(job, done)

    def _matched(self, publication: Publication, progress: _Progress, found: Matched, wrong: Faults) -> None:
        """More of a publication is matched; when all of it is, it is accepted."""
        start = len(progress.matches)
        progress.matches += found
        progress.refused.update({start + place: error for place, error in wrong.items()})
        if len(progress.matches) == progress.count:
            progress.steps = self._delivery.hand_out_by_steps(publication, progress.matches, progress.refused)

    def _done_with(self, publication: Publication, progress: _Progress) -> None:
        del self._under_way[publication]
        self._publications.remove(publication)
        self._delivery.under_way -= 1
        self.pending -= progress.count
        self._bytes -= progress.size

    def _beware(self) -> None:
        """Begin with little where everybody might receive everything: that is known only once it is matched."""
        if self._scale > _CAREFUL and self.pending * len(self._delivery.receivers) > _EXPLOSIVE:
            self._scale = _CAREFUL

    def _took_too_much(self, count: int) -> None:
        """Learn that so many are too many to be matched at once."""
        self._scale = max(min(self._scale, count / SLICE) / 4, _SMALLEST)
        self._wary = _WARY

    def _took(self, seconds: float) -> None:
        """Learn from how long a match took how much may be matched at once."""
        if seconds > self.seconds:
            self._scale = max(self._scale / 4, _SMALLEST)
        elif self._wary:
            self._wary -= 1
        elif self._scale < 1.0 and seconds < self.seconds / 4:
            self._scale = min(1.0, self._scale * 2)

    def _check(self) -> None:
        under_way = self._under_way
        assert under_way.keys() <= set(self._publications)
        assert self.pending == sum(
            under_way[each].count if each in under_way else len(each.bodies) for each in self._publications
        )
        assert self._bytes == sum(
            under_way[each].size if each in under_way else each.size for each in self._publications
        )
        assert self._delivery.under_way == len(under_way)
        assert len(self._aside) == len(self._waiting_beside) + self._table.lent
        assert self._aside <= under_way.keys()
