"""The documents that operators ask for: what it does, who subscribed, who got what, and why or why not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from contrada.broker.core.ports import Refusal
from contrada.broker.core.subscriptions import Subscription
from contrada.broker.overlay import report
from contrada.broker.protocol.messages import Reply
from contrada.broker.protocol.wire import LIST_LENGTH, Code, Role

if TYPE_CHECKING:
    from collections.abc import Generator

    from contrada.broker.core.core import Core
    from contrada.broker.protocol.messages import (
        Explain,
        ListReceivers,
        ListSubscriptions,
        NotificationId,
        Status,
    )
    from contrada.broker.sessions.session import Session
    from contrada.broker.turn.work import Steps


_TEXT = 2000  # characters of one text in a document
_PAGE = 200  # subscriptions in one list,
_PAGE_BYTES = 1 << 15  # and of their filters about as many bytes: writing them takes tens of milliseconds at most
_FILTER_BYTES = 1 << 15  # of one subscription's filters
_TOLD = 20_000  # interfaces in one answer


def status(core: Core, now: float) -> dict[str, Any]:
    """Sessions (the busiest when there are very many), totals, rates over the last seconds, and the table's size."""
    sessions = sorted(core.sessions.by_number.values(), key=lambda s: (-s.published - s.delivered, s.number))
    subscriptions = core.subscriptions.by_interface
    return {
        "broker": core.id,
        "uptime": now - core.started,
        "stopping": core.stopping,
        "sessions": len(sessions),
        "subscriptions": len(subscriptions),
        "queued": sum(len(subscription.queue) for subscription in subscriptions.values()),
        "rates": dict(core.rates),
        "turns": core.turns.document(now),
        "totals": {**core.counters, "dropped": sum(core.delivery.drops.values())},
        "clients": [_client(session, now) for session in sessions[:LIST_LENGTH]],
        "table": plain(core.table.stats()),
        "index": core.index.document(),
        "overlay": report.document(core.overlay, core.links.dials, now),
    }


def _client(session: Session, now: float) -> dict[str, Any]:
    receivers = session.receivers.values()
    return {
        "session": session.number,
        "name": session.name,
        "publisher": session.publisher,
        "roles": sorted(session.roles),
        "subscriptions": len(session.receivers),
        "published": session.published,
        "delivered": session.delivered,
        "queued": sum(len(r.queue) for r in receivers),
        "dropped": sum(r.dropped for r in receivers),
        "unacknowledged": session.unacknowledged,
        "congested": session.congested,
        "idle": now - session.heard,
    }


def explain(core: Core, session: Session, message: Explain) -> Generator[Any, Any, dict[str, Any]]:
    """Why a remembered notification reached a subscription, or did not; by steps, one for each filter."""
    subscription = _find(core, session, message)
    id = message.notification
    found = core.delivery.recent.find(id)
    if found is None:
        most = len(core.delivery.recent)
        raise Refusal(Code.UNKNOWN, f"notification {id} is not among the last {most} that this broker remembers")
    matched = subscription.interface in found.matched
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
    notification = yield partial(core.codec.notification, found.body)
    filters = []
    for each in subscription.owner.explain(subscription, notification):
        filters.append(plain(each))
        yield
    return document | {"fate": "no-match", "why": "no filter of the subscription matches it", "filters": filters}


def subscriptions(core: Core, after: int) -> dict[str, Any]:
    """A page of all subscriptions with their filters, by the numbers of their interfaces; `next` is 0 at the end."""
    rows: list[dict[str, Any]] = []
    size = last = 0
    for interface, subscription in sorted(core.subscriptions.by_interface.items()):
        if interface <= after:
            continue
        if len(rows) == _PAGE or size > _PAGE_BYTES:
            return {"subscriptions": rows, "next": last}
        size += subscription.filter_bytes
        last = interface
        rows.append(_subscription(core, subscription))
    return {"subscriptions": rows, "next": 0}


def _subscription(core: Core, subscription: Subscription) -> dict[str, Any]:
    """What is told of one subscription; large filters are left out, since writing them takes long."""
    filters, size = [], 0
    for body in subscription.encoded:
        size += len(body)
        if size > _FILTER_BYTES:
            break
        filters.append(str(core.codec.filter(body)))
    standing = core.index.attachments.get(subscription.interface)
    return {
        "interface": subscription.interface,
        "session": subscription.session.number,
        "client": subscription.session.name or subscription.session.publisher,
        "subscription": subscription.id,
        "filters": filters,
        "all_filters": len(filters) == len(subscription.encoded),
        "attached": "" if standing is None else standing.name,
        "policy": str(subscription.policy),
        "delivered": subscription.delivered,
        "queued": len(subscription.queue),
        "dropped": subscription.dropped,
    }


def receivers(core: Core, ids: tuple[NotificationId, ...]) -> dict[str, Any]:
    """The interfaces of the subscriptions that notifications of late went to; those that are forgotten are absent."""
    known = core.subscriptions.by_interface
    document, room = {}, _TOLD
    for id, found in core.delivery.recent.find_all(ids).items():
        matched = sorted(interface for interface in found.matched if interface in known)
        document[str(id)] = {"interfaces": matched[:room], "count": len(matched)}
        room = max(0, room - len(matched))
    return {"receivers": document}


def _find(core: Core, session: Session, message: Explain) -> Subscription:
    """The subscription that is asked about; a refusal says why there is none."""
    number = message.session or session.number
    owner = core.sessions.by_number.get(number)
    subscription = owner.receivers.get(message.subscription) if owner is not None else None
    if isinstance(subscription, Subscription):
        return subscription
    whose = f"session {message.session}" if message.session else "this session"
    if (number, message.subscription) in core.subscriptions.ended:
        raise Refusal(Code.UNKNOWN, f"subscription {message.subscription} of {whose} has ended")
    if owner is None and number < core.sessions.next_number:
        raise Refusal(Code.UNKNOWN, f"{whose} has ended, and its subscriptions with it")
    raise Refusal(Code.UNKNOWN, f"{whose} has no subscription {message.subscription}")


def _fate(subscription: Subscription, id: NotificationId) -> dict[str, Any]:
    if id in subscription.lost:
        why = f"the queue was full and its policy is {subscription.policy}; {subscription.dropped} lost so far"
        return {"fate": "dropped", "why": why}
    for position, batch in enumerate(subscription.queue):
        if batch.id == id:
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


class Admin:
    """The answers to what operators ask."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def status(self, session: Session, message: Status) -> None:
        """STATUS: what the broker is doing."""
        self._core.sessions.answer(session, Reply(message.request, status(self._core, self._core.clock.now)))

    def explain(self, session: Session, message: Explain) -> Steps:
        """EXPLAIN: why a notification did or did not reach a subscription; one's own, or with a role anybody's."""
        if message.session not in (0, session.number):
            self._core.sessions.require(session, Role.ADMIN)
        document = yield from explain(self._core, session, message)
        self._core.sessions.answer(session, Reply(message.request, document))

    def list_subscriptions(self, session: Session, message: ListSubscriptions) -> None:
        """LIST_SUBSCRIPTIONS: who wants what."""
        self._core.sessions.answer(session, Reply(message.request, subscriptions(self._core, message.after)))

    def list_receivers(self, session: Session, message: ListReceivers) -> None:
        """LIST_RECEIVERS: who got what."""
        self._core.sessions.answer(session, Reply(message.request, receivers(self._core, message.notifications)))
