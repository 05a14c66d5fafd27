"""The way of a notification from its publisher to its receivers: a turn's publications, one match, batches, queues.

Publications of a turn are read and matched together by `match_bodies`, unless a subscription changes between them. Of
what would take longer than a turn should, some is matched in each turn, of each source in turn: then the table sees the
messages of each session in order of arrival, not those of all. What cannot be read is refused when it is matched, and
gets no number. Successive notifications of one client that matched the same are handed out as one batch.

    submit ─▶ match: table, then `matchers` ─▶ hand out: journal, batches ─▶ receiver with credit: its session
                                                                          └▶ without: its queue ─▶ drain

Owns the receivers (by the number of their interface), the publications that wait to be matched and the sequence
numbers. Puts batches into sessions, and tells the source of a publication that it is done with it. The `journal`, if
there is one, is told of every accepted notification with its receivers, and of every drop, in the order in which the
table sees them.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Final

from contrada.broker.core.batch import Batch
from contrada.broker.core.publication import Publication
from contrada.broker.core.recent import ENTRY_BYTES, Recent
from contrada.broker.protocol.wire import MAX_INTEGER, Code, Policy
from contrada.broker.turn.mishaps import Mishap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from contrada.broker.core.ports import Journal, Table
    from contrada.broker.core.receiver import Receiver
    from contrada.broker.core.session import Session
    from contrada.broker.core.sessions import Sessions
    from contrada.broker.protocol.messages import Credit
    from contrada.broker.turn.clock import Clock
    from contrada.broker.turn.mishaps import Mishaps
    from contrada.broker.turn.turns import Turns
    from contrada.errors import ContradaError

    Matched = Sequence[AbstractSet[int]]
    Refused = Mapping[int, ContradaError]

SLICE: Final = 2048  # notifications, and
SLICE_BYTES: Final = 1 << 17  # bytes, that are matched at once: less if that turns out to take long
_SMALLEST: Final = 1 / SLICE
ENDED: Final = "ended"  # why a queue was lost: its subscription ended first


class Delivery:
    """Matching and delivering.

    `silent` are interfaces with filters in the table that match nothing: not complete yet, or on their way out.
    `unrecorded` are those that the journal is not told of: neighbours', and of those attached to an index.
    """

    def __init__(
        self,
        table: Table,
        sessions: Sessions,
        clock: Clock,
        mishaps: Mishaps,
        turns: Turns,
        *,
        id: str,
        first_sequence: int = 1,
        block_timeout: float = 30.0,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.id = id
        self.sequence = first_sequence
        self.receivers: dict[int, Receiver] = {}
        self.silent: set[int] = set()
        self.unrecorded: set[int] = set()
        self.matchers: list[Callable[[Sequence[bytes], Matched, Refused], Matched]] = []
        self.journal: Journal | None = None
        self.recent = Recent()
        self.counters = sessions.counters
        self.drops: Counter[str] = Counter()  # by policy
        self.pending = 0  # notifications received and not yet matched
        self.turns = turns
        self.slice_bytes = SLICE_BYTES
        self.seconds = math.inf  # that matching should take of a turn
        self._now = now
        self._pending: list[Publication] = []
        self._pending_bytes = 0
        self._parts: dict[Publication, tuple[list[AbstractSet[int]], dict[int, ContradaError]]] = {}  # matched so far
        self._ended_meanwhile: set[int] = set()  # interfaces of receivers that ended since
        self._scale = 1.0  # of what is matched at once
        self._next_interface = 1
        # Interfaces of receivers that ended while a batch was handed out, for the journal:
        self._ended: set[int] = set()  # since it was last told of notifications,
        self._gone: set[int] = set()  # and before
        self._table = table
        self._sessions = sessions
        self._clock = clock
        self._mishaps = mishaps
        self._block_timeout = block_timeout

    def new_interface(self) -> int:
        """A number that no interface had before."""
        self._next_interface += 1
        return self._next_interface - 1

    def next_numbers(self, count: int) -> range:
        """Sequence numbers for notifications that are accepted here."""
        first = self.sequence
        self.sequence += count
        self.counters["published"] += count
        return range(first, self.sequence)

    # -- publications ------------------------------------------------------------------------------------

    def submit(self, publication: Publication) -> None:
        """Take in a publication: it is matched at the end of the turn, or before a subscription changes."""
        count = len(publication.bodies)
        self._pending.append(publication)
        self.pending += count
        self._pending_bytes += publication.size
        session = publication.source.session
        session.held += count
        session.held_bytes += publication.size

    def match(self) -> None:
        """Match and hand out everything that is pending, then acknowledge what no queue holds back."""
        if self._pending:
            pending, self._pending = self._pending, []
            self._match(pending)

    def match_some(self) -> None:
        """As `match`, for as long as a turn should last: of what would take longer, some of each source in turn."""
        until = self._now() + self.seconds
        while self._pending:
            if self.heavy:
                self._match_slice()
            else:
                self.match()
            if self._now() >= until:
                return

    def match_before(self, session: Session | None) -> bool:
        """Match everything that is pending, if that is soon done; else say whether nothing of this session's is.

        So the table sees the messages of every session in order, and those of all if nobody has published much.
        """
        if not self._pending:
            return True
        if not self.heavy:
            self.match()
            return True
        return all(each.source.session is not session for each in self._pending)

    @property
    def heavy(self) -> bool:
        """Whether matching what is pending may take longer than a turn should."""
        return self._pending_bytes > self.slice_bytes * self._scale or self.pending > SLICE * self._scale

    def _match_slice(self) -> None:
        """Match some of what one source has published: then it is another's turn."""
        source = self._pending[0].source
        mine = [each for each in self._pending if each.source is source]
        others = [each for each in self._pending if each.source is not source]
        most_bytes, most = self.slice_bytes * self._scale, SLICE * self._scale
        taken = size = count = 0
        for each in mine:
            size += each.size
            count += len(each.bodies)
            if taken and (size > most_bytes or count > most):
                break
            taken += 1
        first = mine[0]
        if taken == 1 and len(first.bodies) > 1 and (first.size > most_bytes or len(first.bodies) > most):
            self._pending = others + mine
            if self._match_part(first, most_bytes, most):
                self._pending.remove(first)
        else:
            self._pending = others + mine[taken:]
            self._match(mine[:taken])

    def _match(self, publications: Sequence[Publication]) -> None:
        """Match and hand out publications, which are pending no more."""
        count = sum([len(each.bodies) for each in publications])
        heaviest = publications[0] if len(publications) == 1 else max(publications, key=lambda each: each.size)
        self.pending -= count
        self._pending_bytes -= sum([each.size for each in publications])
        self.turns.enter()
        began = self._now()
        try:
            one = len(publications) == 1
            bodies = publications[0].bodies if one else [body for each in publications for body in each.bodies]
            self._hand_out_all(publications, bodies, *self._find(bodies))
        except Exception as error:
            self._mishaps.note("matching", error)
            self._lose(publications, error)
        finally:
            self._took(self._now() - began)
            self.turns.leave("matching", heaviest.source.session.number)

    def _match_part(self, publication: Publication, most_bytes: float, most: float) -> bool:
        """Match some notifications of a large publication; whether it is matched whole, and handed out."""
        bodies = publication.bodies
        matches, refused = self._parts.setdefault(publication, ([], {}))
        start = end = len(matches)
        size = 0
        while end < len(bodies) and (end == start or (size + len(bodies[end]) <= most_bytes and end - start < most)):
            size += len(bodies[end])
            end += 1
        self.turns.enter()
        began = self._now()
        try:
            found, wrong = self._find(bodies[start:end])
            matches += found
            refused.update({start + place: error for place, error in wrong.items()})
            if end < len(bodies):
                return False
            del self._parts[publication]
            self.pending -= len(bodies)
            self._pending_bytes -= publication.size
            if self._ended_meanwhile:
                matches = [matched - self._ended_meanwhile for matched in matches]
            if not self._parts:
                self._ended_meanwhile.clear()
            self._hand_out_all([publication], bodies, matches, refused)
            return True
        finally:
            self._took(self._now() - began)
            self.turns.leave("matching", publication.source.session.number)

    def _took(self, seconds: float) -> None:
        """Learn from how long a match took how much may be matched at once."""
        if seconds > self.seconds:
            self._scale = max(self._scale / 4, _SMALLEST)
        elif self._scale < 1.0 and seconds < self.seconds / 4:
            self._scale = min(1.0, self._scale * 2)

    def _find(self, bodies: Sequence[bytes]) -> tuple[Matched, Refused]:
        """Find the interfaces of each notification, and what is wrong with those that cannot be read.

        What makes that raise is found by halves, and refused alone.
        """
        try:
            found, refused = self._table.match_bodies(bodies)
            for matcher in self.matchers:
                found = matcher(bodies, found, refused)
            if silent := self.silent:
                found = [matched if silent.isdisjoint(matched) else matched - silent for matched in found]
            return found, refused
        except Exception as error:
            if len(bodies) == 1:
                self._mishaps.note("matching", error)
                return [frozenset()], {0: Mishap(error)}
        half = len(bodies) // 2
        found, refused = self._find(bodies[:half])
        more, wrong = self._find(bodies[half:])
        return [*found, *more], {**refused, **{half + place: error for place, error in wrong.items()}}

    def _lose(self, publications: Sequence[Publication], error: Exception) -> None:
        """Refuse those that were neither acknowledged nor refused yet. Queues that hold one back will let go of it."""
        for publication in publications:
            if not publication.settled and not publication.waiting and publication.bodies:
                all_of_it = dict.fromkeys(range(len(publication.bodies)), Mishap(error))
                publication.source.refuse(publication, all_of_it, [frozenset()] * len(publication.bodies))
                publication.settled = True

    # -- handing out -------------------------------------------------------------------------------------

    def _hand_out_all(
        self, publications: Sequence[Publication], bodies: Sequence[bytes], matches: Matched, refused: Refused
    ) -> None:
        """Hand out publications, in order, and acknowledge or refuse each."""
        self._ended.clear()
        self._gone.clear()
        start = 0
        for alike in _by_source(publications):
            end = start + sum([len(each.bodies) for each in alike])
            try:
                if len(alike) > 1 and not refused and self._have_room(matches[start:end]):
                    self._hand_out_together(alike, tuple(bodies[start:end]), matches[start:end])
                else:
                    self._hand_out_each(alike, start, matches, refused)
            except Exception as error:
                self._mishaps.note("handing out", error, alike[0].source.session.number)
                self._lose(alike, error)
            start = end

    def _hand_out_each(
        self, publications: Sequence[Publication], start: int, matches: Matched, refused: Refused
    ) -> None:
        """Hand out publications whose notifications begin at `start` among those matched, one after another."""
        for publication in publications:
            end = start + len(publication.bodies)
            matched = matches[start:end]
            wrong = {at - start: refused[at] for at in range(start, end) if at in refused} if refused else None
            if wrong:
                matched = publication.source.refuse(publication, wrong, matched)
            start = end
            if publication.bodies:
                self._hand_out(publication, matched)
                if not publication.waiting:
                    publication.source.acknowledge(publication)

    def _have_room(self, matches: Matched) -> bool:
        """Whether everybody can be given these notifications at once, so that none will hold back its publisher."""
        count = len(matches)
        for interface in set().union(*matches):
            receiver = self.receivers.get(interface)
            if receiver is None or receiver.credit < count or receiver.queue or receiver.session.congested:
                return False
        return True

    def _hand_out_together(
        self, publications: Sequence[Publication], bodies: tuple[bytes, ...], matches: Matched
    ) -> None:
        """Hand out several publications of a source, which no queue will hold back, as if they were one."""
        source = publications[0].source
        whole = Publication(source, 0, bodies, sum([each.size for each in publications]))
        self._hand_out(whole, matches)
        sequence = whole.sequence
        for publication in publications:
            publication.sequence = sequence
            sequence += len(publication.bodies)
            source.acknowledge(publication)

    def _hand_out(self, publication: Publication, matches: Matched) -> None:
        """Give the notifications of a publication to whom they matched, except to the neighbour they came from."""
        bodies, came_from = publication.bodies, publication.source.interface
        origin, publisher, hops, sequences = publication.source.number(publication)
        size = publication.size + ENTRY_BYTES * sum(map(len, matches))
        self.recent.remember((origin, sequences, publisher, bodies, matches, size))
        if self.journal is not None:
            self._tell_journal(self.journal, origin, sequences, publisher, bodies, matches)
        start = 0
        for matched, alike in groupby(matches) if len(bodies) > 1 else ((matches[0], matches),):
            end = start + len(list(alike))
            onward = matched - {came_from} if came_from in matched else matched
            if onward:
                whole = Batch(origin, sequences[start:end], publisher, bodies[start:end], hops)
                for batch in whole.cut():
                    self._offer(batch, onward, publication)
            start = end

    def _tell_journal(
        self,
        journal: Journal,
        broker: str,
        sequences: Sequence[int],
        publisher: str,
        bodies: Sequence[bytes],
        matches: Matched,
    ) -> None:
        """Before they are handed out: notifications were accepted, and go to those of whom the journal speaks."""
        if self._ended:
            self._gone |= self._ended
            self._ended.clear()
        if self.unrecorded or self._gone:
            others = self.unrecorded | self._gone
            matches = [matched - others for matched in matches]
        if [*sequences] == [*range(sequences[0], sequences[0] + len(sequences))]:
            journal.accepted(broker, sequences[0], publisher, bodies, matches)
            return
        for sequence, body, matched in zip(sequences, bodies, matches, strict=True):  # some went another way
            journal.accepted(broker, sequence, publisher, (body,), (matched,))

    def _offer(self, batch: Batch, interfaces: AbstractSet[int], publication: Publication) -> None:
        """Give notifications to every receiver that they matched."""
        receivers = self.receivers
        count = len(batch.bodies)
        for interface in interfaces:
            receiver = receivers.get(interface)
            if receiver is not None:
                session = receiver.session
                if receiver.credit >= count and not receiver.queue and not session.congested:
                    receiver.credit -= count
                    receiver.delivered += count
                    if session.dropping:
                        session.report_drops(receiver)
                    session.deliver(batch, receiver)
                    if not session.dirty:
                        self._sessions.mark(session)
                    continue
            for one in batch.one_by_one():
                if interface in receivers:
                    self._queue(one, receivers[interface], publication)
                elif self.journal is not None and interface in self._ended:  # by an earlier notification of this batch
                    self.journal.dropped(interface, ENDED, [one.id])

    def _queue(self, batch: Batch, receiver: Receiver, publication: Publication) -> None:
        """Deliver a single notification if there is credit, and queue it if there is none."""
        session = receiver.session
        if receiver.credit and not receiver.queue and not session.congested:
            receiver.credit -= 1
            receiver.delivered += 1
            session.report_drops(receiver)
            session.deliver(batch, receiver)
            self._sessions.mark(session)
            return
        dropped = receiver.dropped
        full = receiver.enqueue(batch)
        session.waiting[receiver] = None
        if full and receiver.policy is Policy.BLOCK:
            receiver.hold(publication, self._clock.now)
        elif full:
            self._end_slow(receiver, "is full")
        elif receiver.dropped != dropped:
            session.dropping[receiver] = None
            self.drops[Policy.DROP_OLDEST] += receiver.dropped - dropped
            if self.journal is not None:
                self.journal.dropped(receiver.interface, Policy.DROP_OLDEST, receiver.shed)
            if not receiver.queue:
                del session.waiting[receiver]

    # -- queues ------------------------------------------------------------------------------------------

    def grant(self, session: Session, message: Credit) -> None:
        """CREDIT: receivers may get more."""
        for id, credit in message.grants:
            receiver = session.receivers.get(id)
            if receiver is not None:  # a grant may cross an UNSUBSCRIBE on its way
                receiver.credit = min(receiver.credit + credit, MAX_INTEGER)
        if session.waiting and not session.congested:
            self._sessions.backlog[session] = None

    def drain(self) -> None:
        """Move what credit allows from the queues into sessions."""
        for session in list(self._sessions.backlog):
            self._sessions.attempt("draining", session, self._drain, session)

    def _drain(self, session: Session) -> None:
        for receiver in session.drain():
            self.release(receiver)
        if session.entries or session.unsent:
            self._sessions.mark(session)
        if not session.backlogged:
            self._sessions.backlog.pop(session, None)

    def tick(self, session: Session) -> None:
        """Report drops, and end a session that has held back publishers for too long."""
        if session.dropping and not session.congested:
            session.report_drops()
            self._sessions.mark(session)
        now, longest = self._clock.now, self._block_timeout
        stuck = next((r for r in session.waiting if r.full_since is not None and now - r.full_since >= longest), None)
        if stuck is not None:
            self._end_slow(stuck, f"took nothing for {longest} s while publishers waited for it")

    def _end_slow(self, receiver: Receiver, what: str) -> None:
        waiting = f"{len(receiver.queue)} notifications ({receiver.waiting_bytes} bytes) waiting"
        self.drops[receiver.policy] += len(receiver.queue)
        reason = f"the queue of subscription {receiver.id} {what}: {waiting}"
        self._sessions.end(receiver.session, Code.SLOW_CONSUMER, reason)

    def release(self, receiver: Receiver, *, ended: bool = False) -> None:
        """Acknowledge the publications that a queue held back, if it is within its limits or has ended."""
        for publication in receiver.release(self._clock.now, ended=ended):
            publication.source.acknowledge(publication)

    def end(self, receiver: Receiver) -> None:
        """Let go of the publishers that waited for a receiver that has ended, and tell the journal."""
        self.release(receiver, ended=True)
        if self.journal is not None:
            if receiver.queue:
                self.journal.dropped(receiver.interface, ENDED, [batch.id for batch in receiver.queue])
            self.journal.unsubscribed(receiver.interface)
            self._ended.add(receiver.interface)
            if self._parts:
                self._ended_meanwhile.add(receiver.interface)

    def _check(self) -> None:
        for interface, receiver in self.receivers.items():
            assert receiver.interface == interface
            assert receiver.session.receivers[receiver.id] is receiver
        assert self.pending == sum(len(each.bodies) for each in self._pending)
        assert self._pending_bytes == sum(each.size for each in self._pending)
        assert self._parts.keys() <= set(self._pending)
        self.recent._check()


def _by_source(publications: Sequence[Publication]) -> Iterator[list[Publication]]:
    """Successive publications of one source together, where they may be; else each by itself."""
    for _, some in groupby(publications, lambda each: each.source if each.source.joins else each):
        yield list(some)
