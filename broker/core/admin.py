"""The two documents that operators ask for: what the broker is doing, and why a notification did or didn't arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contrada.broker.overlay.report import overlay
from contrada.broker.protocol.wire import LIST_LENGTH
from contrada.errors import Refused

if TYPE_CHECKING:
    from contrada.broker.core.core import Core
    from contrada.broker.core.session import Session
    from contrada.broker.core.subscription import Subscription
    from contrada.broker.protocol.messages import NotificationId


_TEXT = 2000  # characters of one text in a document


def status(core: Core, now: float) -> dict[str, Any]:
    """Sessions (the busiest when there are very many), totals, rates over the last seconds, and the table's size."""
    sessions = sorted(core.sessions.values(), key=lambda s: (-s.published - s.delivered, s.number))
    queued = sum(len(subscription.queue) for subscription in core.subscriptions.values())
    return {
        "broker": core.id,
        "uptime": now - core.started,
        "stopping": core.stopping,
        "sessions": len(sessions),
        "subscriptions": len(core.subscriptions),
        "queued": queued,
        "rates": dict(core.rates),
        "turns": core.turns.document(now),
        "totals": {**core.counters, "dropped": sum(core.drops.values())},
        "clients": [_client(session, now) for session in sessions[:LIST_LENGTH]],
        "table": plain(core.table.stats()),
        "index": core.index_document(),
        "overlay": overlay(core, now),
    }


def _client(session: Session, now: float) -> dict[str, Any]:
    subscriptions = session.subscriptions.values()
    return {
        "session": session.number,
        "name": session.name,
        "publisher": session.publisher,
        "roles": sorted(session.roles),
        "subscriptions": len(session.subscriptions),
        "published": session.published,
        "delivered": session.delivered,
        "queued": sum(len(s.queue) for s in subscriptions),
        "dropped": sum(s.dropped for s in subscriptions),
        "unacknowledged": session.held,
        "congested": session.congested,
        "idle": now - session.heard,
    }


def explain(core: Core, subscription: Subscription, id: NotificationId) -> dict[str, Any]:
    """Why a remembered notification reached a subscription, or did not; `Refused` when it is not remembered."""
    found = core.recent.find(id)
    if found is None:
        raise Refused(f"notification {id} is not among the last {len(core.recent)} that this broker remembers")
    matched = subscription.handle in found.matched
    document = {
        "notification": str(id),
        "publisher": found.publisher,
        "session": subscription.session.number,
        "subscription": subscription.id,
        "matched": matched,
    }
    if matched:
        return document | _fate(subscription, id)
    if id.broker == core.id and id.sequence < subscription.since:
        return document | {"fate": "too-early", "why": "it was published before the subscription began"}
    notification = core.codec.notification(found.body)
    filters = [plain(each) for each in core.explained(subscription, notification)]
    return document | {"fate": "no-match", "why": "no filter of the subscription matches it", "filters": filters}


def _fate(subscription: Subscription, id: NotificationId) -> dict[str, Any]:
    if id in subscription.lost:
        why = f"the queue was full and its policy is {subscription.policy}; {subscription.dropped} lost so far"
        return {"fate": "dropped", "why": why}
    for position, parcel in enumerate(subscription.queue):
        if parcel.id == id:
            reason = "the client has given no more credit" if not subscription.credit else "the connection is congested"
            return {"fate": "queued", "why": f"{position} are before it in the queue, and {reason}"}
    return {"fate": "delivered", "why": "it matched, and was handed to the client's connection"}


def plain(value: Any) -> Any:
    """Turn anything into plain values: mappings and sequences as they are, tuples and dataclasses by field name."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return _short(value)
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return _short(str(value))


def _short(text: str) -> str:
    """Cut the middle out of a long text, such as a large region's."""
    return text if len(text) <= _TEXT else f"{text[: _TEXT // 2]} … {text[-_TEXT // 2 :]}"
