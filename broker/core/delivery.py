"""The way of a notification to its receivers: batches, queues, credit, acknowledgements.

    matched (matching.py) ─▶ hand out: recording, batches ─▶ receiver with credit: its session
                                                        └▶ without: its queue ─▶ drain

Successive notifications of one client that matched the same are handed out as one batch. Owns the receivers (by the
number of their interface) and the sequence numbers. Puts batches into sessions, and tells the source of a publication
that it is done with it. The `recording`, if there is one, is told of every accepted notification with its receivers,
and of every drop, in the order in which the table sees them.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Final

from contrada.broker.core.publication import Publication
from contrada.broker.core.recent import ENTRY_BYTES, Recent
from contrada.broker.protocol.wire import LIST_LENGTH, MAX_INTEGER, Code, Policy
from contrada.broker.sessions.batch import BATCH_BYTES, Batch
from contrada.broker.turn.mishaps import Mishap

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from contrada.broker.core.matching import Faults, Matched
    from contrada.broker.core.ports import Recording
    from contrada.broker.core.receiver import Receiver
    from contrada.broker.durable.publishing import Publishing
    from contrada.broker.protocol.messages import Credit
    from contrada.broker.sessions.session import Session
    from contrada.broker.sessions.sessions import Sessions
    from contrada.broker.turn.clock import Clock
    from contrada.broker.turn.mishaps import Mishaps

_STEP: Final = 64  # receivers that get a batch at one step of handing out by steps
ENDED: Final = "ended"  # why a queue was lost: its subscription ended first


class Delivery:
    """Handing out.

    `unrecorded` are interfaces that the recording is not told of: neighbours', and of those attached to an index.
    """

    def __init__(
        self,
        sessions: Sessions,
        clock: Clock,
        mishaps: Mishaps,
        *,
        id: str,
        first_sequence: int = 1,
        block_timeout: float = 30.0,
    ) -> None:
        self.id = id
        self.sequence = first_sequence  # of the next notification that is accepted here
        self.receivers: dict[int, Receiver] = {}
        self.unrecorded: set[int] = set()
        self.recording: Recording | None = None
        self.durable: Publishing | None = None  # who stores what is to be on disk
        self.recent = Recent()
        self.counters = sessions.counters
        self.drops: Counter[str] = Counter()  # by policy
        self.under_way = 0  # publications that take more than a turn
        self._ended_meanwhile: set[int] = set()  # interfaces of receivers that ended since one of them began
        self._next_interface = 1
        # Interfaces of receivers that ended while a batch was handed out, for the recording:
        self._ended: set[int] = set()  # since it was last told of notifications,
        self._gone: set[int] = set()  # and before
        self._sessions = sessions
        self._clock = clock
        self._mishaps = mishaps
        self._block_timeout = block_timeout

    def new_interface(self) -> int:
        """A number that no interface had before."""
        self._next_interface += 1
        return self._next_interface - 1

    # -- handing out -------------------------------------------------------------------------------------

    def hand_out(
        self, publications: Sequence[Publication], bodies: Sequence[bytes], matches: Matched, refused: Faults
    ) -> None:
        """Hand out publications, in order, and acknowledge or refuse each."""
        self._ended.clear()
        self._gone.clear()
        start = 0
        for alike in _by_source(publications) if len(publications) > 1 else (publications,):
            end = start + sum([len(each.bodies) for each in alike])
            try:
                if len(alike) > 1 and not refused and self._have_room(matches[start:end]):
                    self._hand_out_together(alike, tuple(bodies[start:end]), matches[start:end])
                else:
                    self._hand_out_each(alike, start, matches, refused)
            except Exception as error:
                self._mishaps.note("handing out", error, alike[0].source.session.number)
                self.lose(alike, error)
            start = end

    def _hand_out_each(
        self, publications: Sequence[Publication], start: int, matches: Matched, refused: Faults
    ) -> None:
        """Hand out publications whose notifications begin at `start` among those matched, one after another."""
        for publication in publications:
            end = start + len(publication.bodies)
            matched = matches[start:end]
            wrong: Faults = {at - start: refused[at] for at in range(start, end) if at in refused} if refused else {}
            if wrong or (publication.storing is not None and (wrong := self._over_limits(publication, matched))):
                matched = publication.source.refuse(publication, wrong, matched)
            start = end
            if publication.bodies:
                for batch, interfaces in self._accept(publication, matched):
                    self.offer(batch, interfaces, publication)
                if not publication.waiting:
                    publication.source.acknowledge(publication)

    def _over_limits(self, publication: Publication, matches: Matched) -> Faults:
        """Why notifications that are published durably cannot be kept for everybody, by their places."""
        assert self.durable is not None
        return self.durable.over_limits(publication, matches)

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
        for batch, interfaces in self._accept(whole, matches):
            self.offer(batch, interfaces, whole)
        sequence = whole.sequence
        for publication in publications:
            publication.sequence = sequence
            sequence += len(publication.bodies)
            source.acknowledge(publication)

    def hand_out_by_steps(self, publication: Publication, matches: Matched, refused: Faults) -> Iterator[None]:
        """Accept a publication that very many receive, or refuse it, now; hand it out to a few at each step."""
        if self._ended_meanwhile:
            matches = [matched - self._ended_meanwhile for matched in matches]
        if publication.storing is not None and not refused:
            refused = self._over_limits(publication, matches)
        if refused:
            matches = publication.source.refuse(publication, refused, matches)
        return self._steps(publication, self._accept(publication, matches)) if publication.bodies else iter(())

    def _steps(self, publication: Publication, batches: Iterator[tuple[Batch, AbstractSet[int]]]) -> Iterator[None]:
        publication.waiting += 1  # for all to have it
        try:
            for batch, interfaces in batches:
                all_of_them = tuple(interfaces)
                for start in range(0, len(all_of_them), _STEP):
                    self.offer(batch, all_of_them[start : start + _STEP], publication)
                    yield
        finally:
            publication.waiting -= 1
        if not publication.waiting and not publication.settled:
            publication.source.acknowledge(publication)

    def _accept(self, publication: Publication, matches: Matched) -> Iterator[tuple[Batch, AbstractSet[int]]]:
        """Number a publication, remember it and tell the recording; its batches, and the interfaces that get each."""
        bodies = publication.bodies
        origin, publisher, hops, sequences = publication.source.number(publication)
        size = publication.size + ENTRY_BYTES * sum(map(len, matches))
        self.recent.remember((origin, sequences, publisher, bodies, matches, size))
        if self.recording is not None:
            self._tell_recording(self.recording, origin, sequences, publisher, bodies, matches)
        if self.durable is not None:
            matches = self.durable.accepted(publication, origin, publisher, sequences, matches)
        whole = Batch(origin, sequences, publisher, bodies, hops)
        return _batches(whole, matches, publication.source.interface)

    def _tell_recording(
        self,
        recording: Recording,
        broker: str,
        sequences: Sequence[int],
        publisher: str,
        bodies: Sequence[bytes],
        matches: Matched,
    ) -> None:
        """Before they are handed out: notifications were accepted, and go to those of whom the recording speaks."""
        if self._ended:
            self._gone |= self._ended
            self._ended.clear()
        if self.unrecorded or self._gone:
            others = self.unrecorded | self._gone
            matches = [matched - others for matched in matches]
        if [*sequences] == [*range(sequences[0], sequences[0] + len(sequences))]:
            recording.accepted(broker, sequences[0], publisher, bodies, matches)
            return
        for sequence, body, matched in zip(sequences, bodies, matches, strict=True):  # some went another way
            recording.accepted(broker, sequence, publisher, (body,), (matched,))

    def offer(self, batch: Batch, interfaces: Collection[int], publication: Publication) -> None:
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
                elif self.recording is not None and (interface in self._ended or interface in self._ended_meanwhile):
                    self.recording.dropped(interface, ENDED, [one.id])  # since the recording was told

    def give(self, batch: Batch, receiver: Receiver) -> None:
        """Give one notification, which nobody waits for, to one receiver, if it is still there."""
        if self.receivers.get(receiver.interface) is receiver:
            assert receiver.session.source is not None
            nobody = Publication(receiver.session.source, 0, (), 0)
            nobody.settled = True
            self.offer(batch, (receiver.interface,), nobody)

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
            receiver.withhold(publication, self._clock.now)
        elif full:
            self._end_slow(receiver, "is full")
        elif receiver.dropped != dropped:
            session.dropping[receiver] = None
            self.drops[Policy.DROP_OLDEST] += receiver.dropped - dropped
            if self.recording is not None:
                self.recording.dropped(receiver.interface, Policy.DROP_OLDEST, receiver.shed)
            if not receiver.queue:
                del session.waiting[receiver]

    def lose(self, publications: Sequence[Publication], error: Exception) -> None:
        """Refuse those that were neither acknowledged nor refused yet. Queues that hold one back will let go of it."""
        for publication in publications:
            if not publication.settled and not publication.waiting and publication.bodies:
                all_of_it = dict.fromkeys(range(len(publication.bodies)), Mishap(error))
                publication.source.refuse(publication, all_of_it, [frozenset()] * len(publication.bodies))
                publication.settled = True

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
            if not publication.settled:  # refused meanwhile, by the disk
                publication.source.acknowledge(publication)

    def end(self, receiver: Receiver) -> None:
        """Let go of the publishers that waited for a receiver that has ended, and tell the recording."""
        self.release(receiver, ended=True)
        if self.recording is not None:
            if receiver.queue:
                self.recording.dropped(receiver.interface, ENDED, [batch.id for batch in receiver.queue])
            self.recording.unsubscribed(receiver.interface)
            self._ended.add(receiver.interface)
            if self.under_way:
                self._ended_meanwhile.add(receiver.interface)
            else:
                self._ended_meanwhile.clear()

    def _check(self) -> None:
        for interface, receiver in self.receivers.items():
            assert receiver.interface == interface
            assert receiver.session.receivers[receiver.id] is receiver
        self.recent._check()


def _by_source(publications: Sequence[Publication]) -> Iterator[Sequence[Publication]]:
    """Successive publications of one source together, where they may be; else each, and each that goes to disk."""
    for _, some in groupby(
        publications, lambda each: each.source if each.source.joins and each.storing is None else each
    ):
        yield list(some)


def _batches(whole: Batch, matches: Matched, came_from: int) -> Iterator[tuple[Batch, AbstractSet[int]]]:
    """Notifications by whom they matched, and the interfaces that they go to: not the one that they came from."""
    start = 0
    for matched, alike in groupby(matches) if len(matches) > 1 else ((matches[0], matches),):
        end = start + len(list(alike))
        onward = matched - {came_from} if came_from in matched else matched
        if onward:
            some = whole.between(start, end)
            for batch in some.cut() if some.size > BATCH_BYTES or len(some.bodies) > LIST_LENGTH else (some,):
                yield batch, onward
        start = end
