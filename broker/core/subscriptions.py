"""Clients' subscriptions: how one begins and ends. The caller, `Core`, has checked the roles."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from contrada.broker.core.ports import Refusal
from contrada.broker.core.subscription import Subscription
from contrada.broker.overlay.advertisements import Advertising
from contrada.broker.protocol.messages import Ack, Acked, Attach, Subscribe, Unsubscribe
from contrada.broker.protocol.wire import Code
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.broker.core.session import Session


class Subscribing(Advertising):
    """A switchboard whose clients subscribe."""

    def _subscribe(self, session: Session, message: Subscribe) -> None:
        size = self._afford(session, message.filters)
        if not self._may_begin(session, message):
            return
        handle = self._next_handle
        ids: list[int] = []
        try:
            filters = [self.codec.filter(encoded) for encoded in message.filters]
            for expression in filters:
                ids += self.table.add(handle, expression)
        except Exception as error:
            self._withdraw_later(handle, ids, self.table.remove)
            self._next_handle += 1
            if isinstance(error, ContradaError):
                raise Refusal(Code.BAD_FILTER, str(error)) from error
            raise
        subscription = self._begin(session, message)
        subscription.filters = ids
        subscription.filter_bytes = size
        session.filter_bytes += size
        if self.journal is not None:
            self.journal.subscribed(handle, session.publisher, session.number, subscription.id, message.filters)
        with self._undone_if_it_fails(subscription):
            self._spread(ids)
        self._answer(session, Ack((Acked(message.request),)))

    @contextmanager
    def _undone_if_it_fails(self, subscription: Subscription) -> Iterator[None]:
        """End a subscription again if what makes it whole raises."""
        try:
            yield
        except Exception:
            self._drop_subscription(subscription)
            raise

    def _unsubscribe(self, session: Session, message: Unsubscribe) -> None:
        subscription = session.subscriptions.get(message.subscription)
        if subscription is None:
            raise Refusal(Code.UNKNOWN, f"this session has no subscription {message.subscription}")
        self._match()
        if subscription.session.open:  # matching may have ended the session, for a full queue
            session.report_drops(subscription)
            self._drop_subscription(subscription)
            self._answer(session, Ack((Acked(message.request),)))

    def _may_begin(self, session: Session, message: Subscribe | Attach) -> bool:
        """Check what every subscription has to obey, and match what was published before it."""
        limits = self.settings.limits
        if message.subscription in session.subscriptions:
            raise Refusal(Code.DUPLICATE, f"subscription {message.subscription} exists already in this session")
        if len(session.subscriptions) >= limits.subscriptions:
            raise Refusal(Code.LIMIT, f"a session may have at most {limits.subscriptions} subscriptions")
        if message.queue > limits.queue:
            raise Refusal(Code.LIMIT, f"a queue may be at most {limits.queue} long")
        self._match()
        return session.open  # not if that filled a queue of this very session, under the policy disconnect

    def _begin(self, session: Session, message: Subscribe | Attach) -> Subscription:
        """Register a subscription under the next handle."""
        limits = self.settings.limits
        handle = self._next_handle
        self._next_handle += 1
        subscription = Subscription(
            session,
            message.subscription,
            handle,
            message.policy,
            credit=message.credit,
            limit=message.queue or min(self.settings.queue, limits.queue),
            limit_bytes=limits.queue_bytes,
            since=self._sequence,
        )
        session.subscriptions[message.subscription] = self._subscriptions[handle] = subscription
        return subscription
