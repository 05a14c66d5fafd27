"""Clients' advertisements: what each of them may publish, told to the router.

An advertisement belongs to a session and ends with it, as a subscription does. A broker whose overlay does not use
advertisements takes them all the same and tells nobody, so that a publisher need not know how its broker is set up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.broker.core.ports import Refusal
from contrada.broker.overlay.forwarding import Relaying
from contrada.broker.protocol.messages import Ack, Acked, Advertise, Unadvertise
from contrada.broker.protocol.wire import Code
from contrada.errors import ContradaError
from contrada.forwarding.language.filter import as_filters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contrada.broker.core.session import Session
    from contrada.forwarding.language.filter import Filter


class Advertising(Relaying):
    """A switchboard with neighbours, and with publishers that say what they publish."""

    def _advertise(self, session: Session, message: Advertise) -> None:
        """ADVERTISE; the caller has checked the role."""
        if message.advertisement in session.advertisements:
            raise Refusal(Code.DUPLICATE, f"advertisement {message.advertisement} exists already in this session")
        most = self.settings.limits.subscriptions
        if len(session.advertisements) >= most:
            raise Refusal(Code.LIMIT, f"a session may have at most {most} advertisements")
        size = self._afford(session, message.filters)
        try:
            filters = [f for encoded in message.filters for f in as_filters(self.codec.filter(encoded))]
        except ContradaError as error:
            raise Refusal(Code.BAD_FILTER, str(error)) from error
        self._promise(filters)
        session.advertisements[message.advertisement] = filters, size
        session.filter_bytes += size
        self._answer(session, Ack((Acked(message.request),)))

    def _unadvertise(self, session: Session, message: Unadvertise) -> None:
        if message.advertisement not in session.advertisements:
            raise Refusal(Code.UNKNOWN, f"this session has no advertisement {message.advertisement}")
        filters, size = session.advertisements.pop(message.advertisement)
        session.filter_bytes -= size
        self._match()  # what was published before must still find those who want it
        self._withdraw(filters)
        if session.open:  # matching may have ended the session, for a full queue
            self._answer(session, Ack((Acked(message.request),)))

    def _afford(self, session: Session, filters: Sequence[bytes]) -> int:
        """Count the bytes of more filters, if a session may still have them."""
        size = sum(map(len, filters))
        most = self.settings.filter_bytes
        if session.filter_bytes + size > most:
            raise Refusal(Code.LIMIT, f"the filters of a session may have at most {most} bytes together")
        return size

    def _wake(self) -> None:
        sleeping = not self._awake
        super()._wake()
        if sleeping:
            for session in self._sessions.values():
                for filters, _ in session.advertisements.values():
                    self._promise(filters)

    def _remove(self, session: Session) -> None:
        super()._remove(session)
        while session.advertisements:
            self._withdraw(session.advertisements.popitem()[1][0])

    def _promise(self, filters: Sequence[Filter]) -> None:
        if self._awake and self.router.advertisements:
            promised = []
            try:
                for each in filters:
                    promised.append(each)
                    self._act(self.router.advertise(each))
            except Exception:
                self._withdraw(promised)
                raise

    def _withdraw(self, filters: Sequence[Filter]) -> None:
        """When there is time for it: nobody misses anything while neighbours still hold an advertisement."""
        if self._awake and self.router.advertisements:
            self.leftovers.put(lambda each: self._act(self.router.unadvertise(each)), filters)
