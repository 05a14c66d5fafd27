"""A new subscription first gets the last values that match it.

Whatever was accepted before the subscription was in the table is on disk, and so among the last values, before they are
looked at; a key that changes meanwhile is passed over, because the subscription gets the change. Who publishes may also
have the value of a key forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contrada.broker.durable.past import look_back
from contrada.broker.durable.publishing import code_of
from contrada.broker.protocol.messages import Error, Reply
from contrada.broker.sessions.batch import Batch
from contrada.broker.stored.rows import Row
from contrada.broker.turn.work import LATER

if TYPE_CHECKING:
    from collections.abc import Generator

    from contrada.broker.core.delivery import Delivery
    from contrada.broker.core.receiver import Receiver
    from contrada.broker.durable.past import Past
    from contrada.broker.protocol.messages import DurableQuery
    from contrada.broker.sessions.session import Session
    from contrada.broker.sessions.sessions import Sessions
    from contrada.broker.stored.retained import LastValue
    from contrada.broker.stored.state import State
    from contrada.broker.stored.store import Commit, Store
    from contrada.broker.turn.work import Steps

_AT_ONCE: Final = 256  # last values looked at in one step


class Greeting:
    """The last values for those who come later."""

    def __init__(self, store: Store, state: State, delivery: Delivery) -> None:
        self._store = store
        self._state = state
        self._delivery = delivery

    def greet(self, receiver: Receiver, past: Past) -> Steps:
        """Give a receiver, which is in the table, the last values that it matches."""
        retained = self._state.retained
        mark = self._store.mark
        while self._store.done_to < mark:
            yield LATER
        before = retained.items()
        for start in range(0, len(before), _AT_ONCE):
            some = before[start : start + _AT_ONCE]
            found = yield from look_back(past, [value.body for _, value in some])
            for (key, value), wanted in zip(some, found, strict=True):
                if wanted and retained.get(key) == value:
                    batch = Batch(value.id.broker, (value.id.sequence,), value.publisher, (value.body,))
                    self._delivery.give(batch, receiver)
            yield


def last_values(store: Store, state: State, past: Past) -> Generator[Any, Any, list[LastValue]]:
    """The last values that match, as they are when this returns: none is on its way to the disk."""
    retained = state.retained
    looked: dict[str, tuple[LastValue, bool]] = {}
    while True:
        while store.done_to < store.mark:
            yield LATER
        new = [(key, value) for key, value in retained.items() if key not in looked or looked[key][0] is not value]
        if not new:
            return [value for key, value in retained.items() if looked[key][1]]
        some = new[:_AT_ONCE]
        found = yield from look_back(past, [each.body for _, each in some])
        for (key, value), wanted in zip(some, found, strict=True):
            looked[key] = value, wanted
        if len(new) > _AT_ONCE:
            yield


def forget_last_value(store: Store, state: State, sessions: Sessions, session: Session, message: DurableQuery) -> None:
    """Let a key have no last value any more, as soon as the disk has that."""
    key = message.name

    def done(commit: Commit) -> None:
        known = state.retained.get(key) is not None
        state.retained.left(key, forgotten=commit.failure is None)
        if not session.open:
            return
        if commit.failure is None:
            sessions.answer(session, Reply(message.request, {"key": key, "forgotten": known}))
        else:
            reason = f"not stored: {commit.failure}"
            sessions.answer(session, Error(message.request, code_of(commit.failure), reason))

    state.retained.leave(key)
    store.put([(Row.FORGOTTEN, key)], done, marked=True)
