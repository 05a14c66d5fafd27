"""Clients' advertisements: what each of them may publish, told to the overlay.

An advertisement belongs to a session and ends with it, as a subscription does. A broker whose overlay does not use
advertisements takes them all the same and tells nobody, so that a publisher need not know how its broker is set up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from contrada.broker.core.ports import Refusal
from contrada.broker.core.subscriptions import encoded_filters, read_filters
from contrada.broker.protocol.messages import Ack, Acked, Advertise, Unadvertise
from contrada.broker.protocol.wire import Code
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contrada.broker.core.ports import Codec, EncodedFilter
    from contrada.broker.overlay.overlay import Overlay
    from contrada.broker.sessions.session import Session
    from contrada.broker.sessions.sessions import Sessions
    from contrada.broker.turn.leftovers import Leftovers
    from contrada.broker.turn.work import Steps


class _Advertisement(NamedTuple):
    filters: list[EncodedFilter]
    size: int


class Advertisements:
    """The advertisements of one broker's clients."""

    def __init__(
        self,
        codec: Codec,
        sessions: Sessions,
        overlay: Overlay,
        leftovers: Leftovers,
        *,
        most: int,
    ) -> None:
        self.codec = codec
        self._most = most  # of one session
        self._sessions = sessions
        self._overlay = overlay
        self._leftovers = leftovers
        self._of: dict[Session, dict[int, _Advertisement]] = {}
        sessions.ended.append(self.session_ended)
        overlay.woken.append(self._tell_all)

    def advertise(self, session: Session, message: Advertise) -> Steps:
        """ADVERTISE."""
        mine = self._of.get(session, {})
        if message.advertisement in mine:
            raise Refusal(Code.DUPLICATE, f"advertisement {message.advertisement} exists already in this session")
        if len(mine) >= self._most:
            raise Refusal(Code.LIMIT, f"a session may have at most {self._most} advertisements")
        size = self._sessions.afford(session, message.filters)
        try:
            read = yield from read_filters(self.codec, message.filters)
        except ContradaError as error:
            raise Refusal(Code.BAD_FILTER, str(error)) from error
        bodies = message.filters
        filters = [f for each, body in zip(read, bodies, strict=True) for f in encoded_filters(each, body)]
        yield from self._tell(filters)
        self._of.setdefault(session, {})[message.advertisement] = _Advertisement(filters, size)
        session.filter_bytes += size
        self._sessions.answer(session, Ack((Acked(message.request),)))

    def unadvertise(self, session: Session, message: Unadvertise) -> None:
        """UNADVERTISE."""
        mine = self._of.get(session, {})
        if message.advertisement not in mine:
            raise Refusal(Code.UNKNOWN, f"this session has no advertisement {message.advertisement}")
        filters, size = mine.pop(message.advertisement)
        session.filter_bytes -= size
        self._withdraw(filters)
        self._sessions.answer(session, Ack((Acked(message.request),)))

    def has_any(self, session: Session) -> bool:
        """Whether a session advertises something."""
        return bool(self._of.get(session))

    def session_ended(self, session: Session) -> None:
        """Withdraw all advertisements of a session that is gone."""
        for filters, _ in self._of.pop(session, {}).values():
            self._withdraw(filters)

    def _tell_all(self) -> Iterable[None]:
        advertised = [each.filters for mine in self._of.values() for each in mine.values()]
        return (step for filters in advertised for step in self._tell(filters))

    def _tell(self, filters: Sequence[EncodedFilter]) -> Steps:
        if not self._overlay.wants_advertisements:
            return
        told: list[EncodedFilter] = []
        try:
            for each in filters:
                told.append(each)
                self._overlay.advertise(each)
                yield
        except BaseException:
            self._withdraw(told)
            raise

    def _withdraw(self, filters: Sequence[EncodedFilter]) -> None:
        """When there is time for it: nobody misses anything while neighbours still hold an advertisement."""
        if self._overlay.wants_advertisements:
            self._leftovers.put(lambda each: self._overlay.unadvertise(each.key), filters)
