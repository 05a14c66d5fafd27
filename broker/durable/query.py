"""What operators and owners ask about durable subscriptions: which there are, an end to one, its dead letters.

And what operators say of a neighbour that is gone for good: nothing more is kept for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contrada.broker.core.ports import Refusal
from contrada.broker.durable.publishing import owner_of
from contrada.broker.protocol.wire import Code, DurableAction, Role
from contrada.forwarding.codec.json import notification_to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contrada.broker.core.ports import Codec
    from contrada.broker.protocol.messages import DurableQuery
    from contrada.broker.sessions.session import Session
    from contrada.broker.stored.link_cursor import LinkCursor
    from contrada.broker.stored.subscription import DurableSubscription

_LISTED: Final = 1000  # subscriptions in one answer
_LETTERS: Final = 100  # dead letters in one answer, and about
_LETTER_BYTES: Final = 1 << 20


def answer_query(
    by_name: Mapping[str, DurableSubscription],
    session: Session,
    message: DurableQuery,
    codec: Codec,
    now: float,
    end: Callable[[DurableSubscription, str], None],
) -> dict[str, Any]:
    """The document that answers; a refusal for what is not there, or not the session's."""
    if message.action is DurableAction.LIST:
        names = sorted(name for name, each in by_name.items() if _may(session, each) and name > message.name)
        return {
            "subscriptions": [by_name[name].document(now) for name in names[:_LISTED]],
            "more": len(names) > _LISTED,
        }
    found = by_name.get(message.name)
    if found is None or not _may(session, found):
        raise Refusal(Code.UNKNOWN, f"there is no durable subscription {message.name!r}")
    if message.action is DurableAction.REMOVE:
        if message.behind and found.receiver is not None:
            raise Refusal(Code.DUPLICATE, f"the durable subscription {message.name!r} is in use")
        document = found.document(now)
        end(found, "was removed")
        return document
    letters: list[dict[str, Any]] = []
    size = 0
    for position, letter in found.dead.items():
        if position > message.behind and len(letters) < _LETTERS and size < _LETTER_BYTES:
            text = notification_to_json(codec.notification(letter.body))
            size += len(text)
            facts = {"position": position, "reason": letter.reason, "publisher": letter.publisher, "time": letter.time}
            letters.append({"id": str(letter.id), **facts, "notification": text})
    return {"name": found.name, "letters": letters, "dead": len(found.dead)}


def end_link(
    links: Mapping[str, LinkCursor],
    message: DurableQuery,
    now: float,
    end: Callable[[LinkCursor, str], None],
) -> dict[str, Any]:
    """Keep nothing more for a neighbour, and say what was lost by that; a refusal while its link is up."""
    cursor = links.get(message.name)
    if cursor is None:
        raise Refusal(Code.UNKNOWN, f"nothing is kept for a neighbour {message.name!r}")
    if cursor.receiver is not None:
        reason = f"the link to {message.name!r} is up: take it out of the settings of both brokers first"
        raise Refusal(Code.DUPLICATE, reason)
    document = cursor.document(now)
    end(cursor, "an operator has ended it")
    return document


def _may(session: Session, subscription: DurableSubscription) -> bool:
    return subscription.owner == owner_of(session) or Role.ADMIN in session.roles
