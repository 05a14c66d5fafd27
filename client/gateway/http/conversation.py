"""What is said over one WebSocket: messages in, actions out. No I/O.

Messages are JSON objects with a `type`. `ref`, any string or number, comes back with the answer.

    {"type": "hello", "token": …}                                            → welcome
    {"type": "subscribe", "id": "s1", "filter": …, "policy", "window", "queue", "bounds", "rate"}  → subscribed
    {"type": "subscribe", "id": "s1", "filter": …, "durable": NAME, "since": "all", "window"}      → subscribed
    {"type": "ack", "id": "s1", "notifications": [ID, …] or "up-to": ID}     → acknowledged, how many were known
    {"type": "unsubscribe", "id": "s1"}                                      → unsubscribed
    {"type": "publish", "notification": {…} or [{…}, …], "durable": true}    → published
    {"type": "publish", "notification": {…}, "payload": JSON or {"base64"}}  → published
    {"type": "explain", "notification": ID, "id": "s1"}                      → explained
    {"type": "explain", "notification": ID, "subscription": N, "session": N} → explained (role admin)
    {"type": "status"}                                                       → status (role admin)
    {"type": "view", "id": "s1", "bounds": [x1, y1, x2, y2], "rate": N}      → viewing
    {"type": "receivers", "notifications": [ID, …]}                          → receivers (role admin)
    notifications, dropped, skipped, interrupted, ended                               ← of a subscription, by its id
    error                                                                    ← a problem, with the ref
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final

from contrada.broker.protocol.wire import ASKED_AT_ONCE, Role
from contrada.client.gateway.forms.attributes import notifications_of, with_payload
from contrada.client.gateway.problems import Problem, problem_of
from contrada.client.gateway.streaming.stream import Wish
from contrada.client.gateway.streaming.views import View
from contrada.errors import ContradaError
from contrada.forwarding.codec.json import load_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contrada.client.gateway.settings import GatewaySettings
    from contrada.client.gateway.tokens import Visitor

_ID_LENGTH: Final = 100


@dataclass(frozen=True)
class Say:
    """Send a message."""

    document: dict[str, Any]


@dataclass(frozen=True)
class Subscribe:
    """Open a stream under the page's id; then call `subscribed` or `refused`."""

    id: str
    wish: Wish
    ref: Any


@dataclass(frozen=True)
class Unsubscribe:
    """Close a stream, then answer."""

    id: str
    ref: Any


@dataclass(frozen=True)
class Publish:
    """Publish, then answer with the ids."""

    notifications: list[dict[str, Any]]
    ref: Any
    durable: bool = False


@dataclass(frozen=True)
class Acknowledge:
    """Acknowledge what was sent of a durable stream, these or all up to one; then answer how many were known."""

    id: str
    notifications: tuple[str, ...]
    up_to: str
    ref: Any


@dataclass(frozen=True)
class Explain:
    """Ask the broker, then answer. Either the page's own id is given, or a subscription and session."""

    notification: str
    id: str | None
    subscription: int
    session: int
    ref: Any


@dataclass(frozen=True)
class Status:
    """Ask the broker, then answer."""

    ref: Any


@dataclass(frozen=True)
class Look:
    """Change the view of a stream, then answer."""

    id: str
    view: View
    ref: Any


@dataclass(frozen=True)
class Receivers:
    """Ask the broker who got these, then answer."""

    notifications: list[str]
    ref: Any


Action = Say | Subscribe | Unsubscribe | Acknowledge | Publish | Explain | Status | Look | Receivers


class Conversation:
    """One WebSocket's side of it: who the visitor is, and which ids are taken."""

    def __init__(
        self, settings: GatewaySettings, visitor: Visitor, visitor_of: Callable[[str | None], Visitor]
    ) -> None:
        self._settings = settings
        self._visitor_of = visitor_of
        self.visitor = visitor
        self.ids: set[str] = set()

    def receive(self, text: str | bytes) -> Action:
        """Read one message; what to do about it. What is wrong with it is said, and the conversation goes on."""
        ref: Any = None
        try:
            message = load_json(text)
            if type(message) is not dict:
                raise Problem("bad-request", "a message is a JSON object with a type")
            ref = message.get("ref")
            if type(ref) not in (str, int, float, bool, type(None)) or ref in (inf, -inf):
                ref = None
                raise Problem("bad-request", "ref is a string or a finite number")
            kind = message.get("type")
            handler = self._HANDLERS.get(kind) if type(kind) is str else None
            if handler is None:
                raise Problem("bad-request", f"type is one of {', '.join(self._HANDLERS)}")
            return handler(self, message, ref)
        except ContradaError as error:
            return error_message(error, ref)

    def closed(self, id: str) -> None:
        """A subscription is over, or never was."""
        self.ids.discard(id)

    # ------------------------------------------------------------------ by type

    def _hello(self, message: dict[str, Any], ref: Any) -> Action:
        token = message.get("token")
        if token is not None and type(token) is not str:
            raise Problem("bad-request", "token is a string")
        self.visitor = self._visitor_of(token)
        return Say({"type": "welcome", "ref": ref, "name": self.visitor.name, "roles": sorted(self.visitor.roles)})

    def _subscribe(self, message: dict[str, Any], ref: Any) -> Action:
        self.visitor.require(Role.SUBSCRIBE)
        id = _id(message)
        if id in self.ids:
            raise Problem("bad-request", f"the id {id!r} is in use: unsubscribe it first, or choose another")
        if len(self.ids) >= self._settings.subscriptions:
            raise Problem("limit", f"a connection has at most {self._settings.subscriptions} subscriptions")
        wish = Wish.of(message, self._settings.window)
        if wish.durable and wish.view != View():
            raise Problem("bad-request", "a durable subscription has no view: nothing of it is left out")
        self.ids.add(id)
        return Subscribe(id, wish, ref)

    def _unsubscribe(self, message: dict[str, Any], ref: Any) -> Action:
        return Unsubscribe(self._own(message), ref)

    def _publish(self, message: dict[str, Any], ref: Any) -> Action:
        self.visitor.require(Role.PUBLISH)
        given = message.get("notification", message.get("notifications"))
        geometry, durable = message.get("geometry", "area"), message.get("durable", False)
        if given is None or type(geometry) is not str or type(durable) is not bool:
            raise Problem(
                "bad-request", "publish needs a notification, or several; geometry is a name, durable true or false"
            )
        notifications = list(notifications_of(given, geometry))
        if (payload := message.get("payload")) is not None:
            if type(given) is list or len(notifications) != 1:
                raise Problem("bad-request", "a payload goes with one notification")
            notifications = [with_payload(notifications[0], payload)]
        return Publish(notifications, ref, durable)

    def _ack(self, message: dict[str, Any], ref: Any) -> Action:
        id = self._own(message)
        ids, up_to = message.get("notifications", []), message.get("up-to", "")
        texts = type(ids) is list and all(type(each) is str for each in ids) and type(up_to) is str
        if not texts or bool(ids) == bool(up_to):
            raise Problem("bad-request", "ack needs notifications, a list of ids, or up-to, an id")
        return Acknowledge(id, tuple(ids), up_to, ref)

    def _explain(self, message: dict[str, Any], ref: Any) -> Action:
        notification = message.get("notification")
        if type(notification) is not str:
            raise Problem("bad-request", "explain needs the id of a notification")
        if "id" in message:
            self.visitor.require(Role.SUBSCRIBE)
            return Explain(notification, self._own(message), 0, 0, ref)
        self.visitor.require(Role.ADMIN)
        numbers = [message.get("subscription"), message.get("session", 0)]
        if not all(type(number) is int and 0 <= number < 2**53 for number in numbers):
            raise Problem("bad-request", "explain needs an id of yours, or the numbers of a subscription and a session")
        return Explain(notification, None, numbers[0], numbers[1], ref)

    def _status(self, message: dict[str, Any], ref: Any) -> Action:
        self.visitor.require(Role.ADMIN)
        return Status(ref)

    def _view(self, message: dict[str, Any], ref: Any) -> Action:
        return Look(self._own(message), View.of(message), ref)

    def _receivers(self, message: dict[str, Any], ref: Any) -> Action:
        self.visitor.require(Role.ADMIN)
        ids = message.get("notifications")
        if type(ids) is not list or not 1 <= len(ids) <= ASKED_AT_ONCE or not all(type(id) is str for id in ids):
            raise Problem("bad-request", f"receivers needs the ids of notifications, at most {ASKED_AT_ONCE}")
        return Receivers(ids, ref)

    def _own(self, message: dict[str, Any]) -> str:
        id = _id(message)
        if id not in self.ids:
            raise Problem("unknown", f"there is no subscription {id!r} on this connection")
        return id

    _HANDLERS: Final[Mapping[str, Callable[[Conversation, dict[str, Any], Any], Action]]] = {
        "hello": _hello,
        "subscribe": _subscribe,
        "unsubscribe": _unsubscribe,
        "ack": _ack,
        "publish": _publish,
        "explain": _explain,
        "status": _status,
        "view": _view,
        "receivers": _receivers,
    }


def error_message(error: Exception, ref: Any = None, **members: Any) -> Say:
    """The message that tells of an error."""
    return Say({"type": "error", "ref": ref, **members, "problem": problem_of(error).document()})


def _id(message: dict[str, Any]) -> str:
    id = message.get("id")
    if type(id) is not str or not 0 < len(id) <= _ID_LENGTH:
        raise Problem("bad-request", f"id is a string of 1 to {_ID_LENGTH} characters, of your choice")
    return id
