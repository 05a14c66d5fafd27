"""The way of a notification from its publisher to its receivers.

Publications of a turn are read and matched together by `match_bodies`, unless a subscription changes between them: the
table always sees the messages in order of arrival. What cannot be read is refused then, and gets no number. Successive
notifications of one client that matched the same are handed out as one parcel.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from contrada.broker.core.batch import Parcel
from contrada.broker.core.ports import Mishap
from contrada.broker.core.recent import ENTRY_BYTES
from contrada.broker.core.sessions import ENDED, Sessions
from contrada.broker.core.subscription import Publication
from contrada.broker.protocol.messages import Error
from contrada.broker.protocol.wire import Code, Policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from contrada.broker.core.journal import Journal
    from contrada.broker.core.session import Session
    from contrada.broker.core.subscription import Subscription
    from contrada.errors import ContradaError


class Switchboard(Sessions):
    """Matching and delivering. Knows nothing of what clients may ask for: `Core` does."""

    def turn(self, now: float) -> None:
        """Match what was published and move what credit allows."""
        self._now = now
        self._match()
        for session in list(self._backlog):
            self._attempt("draining", session, self._drain, session)
        if self.leftovers:
            self.turns.enter()
            self.leftovers.work()
            self.turns.leave("leftovers")

    def _match(self) -> None:
        """Match and queue everything that is pending, then acknowledge what no queue holds back."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        self._pending_count = 0
        heaviest = pending[0] if len(pending) == 1 else max(pending, key=lambda each: each.size)
        self.turns.enter()
        try:
            self._match_together(pending)
        except Exception as error:
            self._mishap("matching", None, error)
            self._lose(pending, error)
        finally:
            self.turns.leave("matching", heaviest.session.number)

    def _match_together(self, pending: Sequence[Publication]) -> None:
        bodies = pending[0].bodies if len(pending) == 1 else [body for each in pending for body in each.bodies]
        matches, refused = self._find_safely(bodies)
        if leaving := self._leaving:
            matches = [handles if leaving.isdisjoint(handles) else handles - leaving for handles in matches]
        self._ended.clear()
        self._gone.clear()
        start = 0
        for publications in _by_client(pending):
            end = start + sum([len(each.bodies) for each in publications])
            try:
                if len(publications) > 1 and not refused and self._have_room(matches[start:end]):
                    self._hand_out_together(publications, tuple(bodies[start:end]), matches[start:end])
                else:
                    self._hand_out_each(publications, start, matches, refused)
            except Exception as error:
                self._mishap("handing out", publications[0].session, error)
                self._lose(publications, error)
            start = end

    def _hand_out_each(
        self,
        publications: Sequence[Publication],
        start: int,
        matches: Sequence[AbstractSet[int]],
        refused: Mapping[int, ContradaError],
    ) -> None:
        """Hand out publications whose notifications begin at `start` among those matched, one after another."""
        for publication in publications:
            end = start + len(publication.bodies)
            matched = matches[start:end]
            wrong = {at - start: refused[at] for at in range(start, end) if at in refused} if refused else None
            if wrong:
                matched = self._refuse(publication, wrong, matched)
            start = end
            if publication.bodies:
                self._hand_out(publication, matched)
                if not publication.waiting:
                    self._acknowledge(publication)

    def _find_safely(self, bodies: Sequence[bytes]) -> tuple[Sequence[AbstractSet[int]], Mapping[int, ContradaError]]:
        """As `_find`; what makes it raise is found by halves and refused alone."""
        try:
            return self._find(bodies)
        except Exception as error:
            if len(bodies) == 1:
                self._mishap("matching", None, error)
                return [frozenset()], {0: Mishap(error)}
        half = len(bodies) // 2
        found, refused = self._find_safely(bodies[:half])
        more, wrong = self._find_safely(bodies[half:])
        return [*found, *more], {**refused, **{half + place: error for place, error in wrong.items()}}

    def _lose(self, publications: Sequence[Publication], error: Exception) -> None:
        """Refuse those that were neither acknowledged nor refused yet. Queues that hold one back will let go of it."""
        for publication in publications:
            if not publication.settled and not publication.waiting and publication.bodies:
                all_of_it = dict.fromkeys(range(len(publication.bodies)), Mishap(error))
                self._refuse(publication, all_of_it, [frozenset()] * len(publication.bodies))
                publication.settled = True

    def _have_room(self, matched: Sequence[AbstractSet[int]]) -> bool:
        """Whether everybody can be given these notifications at once, so that none will hold back its publisher."""
        count = len(matched)
        for handle in set().union(*matched):
            subscription = self._subscriptions.get(handle)
            if subscription is None or subscription.credit < count or subscription.queue:
                return False
            if subscription.session.congested:
                return False
        return True

    def _find(self, bodies: Sequence[bytes]) -> tuple[Sequence[AbstractSet[int]], Mapping[int, ContradaError]]:
        """Find the handles that each notification goes to, and what is wrong with those that cannot be read."""
        return self.table.match_bodies(bodies)

    def _refuse(
        self, publication: Publication, wrong: Mapping[int, ContradaError], matched: Sequence[AbstractSet[int]]
    ) -> Sequence[AbstractSet[int]]:
        """Take what cannot be read out of a publication, or all of it; what matched of the rest."""
        session, count = publication.session, len(publication.bodies)
        publication.settled = True
        session.held -= count
        session.held_bytes -= publication.size
        self.counters["refused"] += 1
        if session.open:
            place = min(wrong)
            which = f"notification {place} of {count}: " if count > 1 else ""
            if isinstance(wrong[place], Mishap):
                reason = f"{which}{wrong[place]}"
                self._strike(session.connection, session, Code.INTERNAL, reason, publication.request)
            else:
                self._answer(session, Error(publication.request, Code.BAD_NOTIFICATION, f"{which}{wrong[place]}"))
        publication.bodies = ()
        return ()

    def _hand_out(self, publication: Publication, matched: Sequence[AbstractSet[int]]) -> None:
        """Give the notifications of a publication to whom they matched, except to the neighbour they came from."""
        session, bodies = publication.session, publication.bodies
        link = session.link
        came_from = link.outlet.handle if link is not None else None
        sequences: Sequence[int]
        if publication.run is not None:
            origin, publisher, hops, sequences, _ = publication.run
        else:
            origin, publisher, hops, sequences = self.id, session.publisher, 0, self._accept(publication)
        size = publication.size + ENTRY_BYTES * sum(map(len, matched))
        self.recent.remember((origin, sequences, publisher, bodies, matched, size))
        if self.journal is not None:
            self._tell_journal(self.journal, origin, sequences, publisher, bodies, matched)
        start = 0
        for handles, alike in groupby(matched) if len(bodies) > 1 else ((matched[0], matched),):
            end = start + len(list(alike))
            onward = handles - {came_from} if came_from in handles else handles
            if onward:
                parcel = Parcel(origin, sequences[start:end], publisher, bodies[start:end], hops)
                for part in parcel.parts():
                    self._offer(part, onward, publication)
            start = end

    def _hand_out_together(
        self, publications: Sequence[Publication], bodies: tuple[bytes, ...], matched: Sequence[AbstractSet[int]]
    ) -> None:
        """Hand out several publications of a client, which no queue will hold back, as if they were one."""
        whole = Publication(publications[0].session, 0, bodies, sum([each.size for each in publications]))
        self._hand_out(whole, matched)
        sequence = whole.sequence
        for publication in publications:
            publication.sequence = sequence
            sequence += len(publication.bodies)
            self._acknowledge(publication)

    def _accept(self, publication: Publication) -> range:
        """Number a client's notifications."""
        count = len(publication.bodies)
        publication.sequence = self._sequence
        self._sequence += count
        publication.session.published += count
        self.counters["published"] += count
        return range(publication.sequence, self._sequence)

    def _tell_journal(
        self,
        journal: Journal,
        broker: str,
        sequences: Sequence[int],
        publisher: str,
        bodies: Sequence[bytes],
        matched: Sequence[AbstractSet[int]],
    ) -> None:
        """Before they are handed out: notifications were accepted, and go to those of whom the journal speaks."""
        if self._ended:
            self._gone |= self._ended
            self._ended.clear()
        if self._unrecorded or self._gone:
            others = self._unrecorded | self._gone
            matched = [handles - others for handles in matched]
        if [*sequences] == [*range(sequences[0], sequences[0] + len(sequences))]:
            journal.accepted(broker, sequences[0], publisher, bodies, matched)
            return
        for sequence, body, handles in zip(sequences, bodies, matched, strict=True):  # some went another way
            journal.accepted(broker, sequence, publisher, (body,), (handles,))

    def _offer(self, parcel: Parcel, handles: AbstractSet[int], publication: Publication) -> None:
        """Give notifications to every subscription that they matched."""
        subscriptions = self._subscriptions
        count = len(parcel.bodies)
        for handle in handles:
            subscription = subscriptions.get(handle)
            if subscription is not None:
                session = subscription.session
                if subscription.credit >= count and not subscription.queue and not session.congested:
                    subscription.credit -= count
                    subscription.delivered += count
                    if session.dropping:
                        session.report_drops(subscription)
                    session.deliver(parcel, subscription)
                    if not session.dirty:
                        self._soil(session)
                    continue
            for one in parcel.one_by_one():
                if handle in subscriptions:
                    self._queue(one, subscriptions[handle], publication)
                elif self.journal is not None and handle in self._ended:  # by an earlier notification of this batch
                    self.journal.dropped(handle, ENDED, [one.id])

    def _queue(self, parcel: Parcel, subscription: Subscription, publication: Publication) -> None:
        """Deliver a single notification if there is credit, and queue it if there is none."""
        session = subscription.session
        if subscription.credit and not subscription.queue and not session.congested:
            subscription.credit -= 1
            subscription.delivered += 1
            session.report_drops(subscription)
            session.deliver(parcel, subscription)
            self._soil(session)
            return
        dropped = subscription.dropped
        full = subscription.enqueue(parcel)
        session.waiting[subscription] = None
        if full and subscription.policy is Policy.BLOCK:
            subscription.hold(publication, self._now)
        elif full:
            self._slow(subscription, "is full")
        elif subscription.dropped != dropped:
            session.dropping[subscription] = None
            self.drops[Policy.DROP_OLDEST] += subscription.dropped - dropped
            if self.journal is not None:
                self.journal.dropped(subscription.handle, Policy.DROP_OLDEST, subscription.shed)
            if not subscription.queue:
                del session.waiting[subscription]

    def _drain(self, session: Session) -> None:
        for subscription in session.drain():
            self._release(subscription)
        if session.entries or session.unsent:
            self._soil(session)
        if not session.backlogged:
            self._backlog.pop(session, None)


def _by_client(publications: Sequence[Publication]) -> Iterator[list[Publication]]:
    """Successive publications of one client together; each run of a link by itself."""
    for _, some in groupby(publications, lambda each: each.session if each.run is None else each):
        yield list(some)
