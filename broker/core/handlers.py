"""Which message goes where: what clients may say, and what neighbours may.

Each type of message has a handler: who hears it, what it waits for, the role that its sender needs, and whether it is
refused during shutdown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.broker.protocol.messages import (
    Acknowledge,
    Advertise,
    Attach,
    Bye,
    Credit,
    Dropped,
    DurableQuery,
    Error,
    Explain,
    IndexAdd,
    IndexLoad,
    IndexRemove,
    Link,
    ListReceivers,
    ListSubscriptions,
    Ping,
    Pong,
    Publish,
    Status,
    Store,
    Subscribe,
    SubscribeDurable,
    Unadvertise,
    Unsubscribe,
)
from contrada.broker.protocol.peer_messages import (
    Carried,
    Carry,
    Change,
    Decline,
    Digest,
    Forward,
    Known,
    LinkStates,
    Replace,
)
from contrada.broker.protocol.wire import Role
from contrada.broker.sessions.session import Handler, Order

if TYPE_CHECKING:
    from contrada.broker.core.core import Core


def client_handlers(core: Core) -> dict[type, Handler]:
    """What clients may say."""
    sessions, subscriptions, index = core.sessions, core.subscriptions, core.index
    return {
        Publish: Handler(core.submit, Order.OWN, Role.PUBLISH, True),
        Store: Handler(core.store, Order.OWN, Role.PUBLISH, True),
        Credit: Handler(core.grant, Order.NONE),
        Acknowledge: Handler(core.durable.acknowledge, Order.NONE),
        Ping: Handler(sessions.pong, Order.NONE),
        Pong: Handler(sessions.heard_pong, Order.NONE),
        Subscribe: Handler(subscriptions.subscribe, Order.MATCHED, Role.SUBSCRIBE, True),
        SubscribeDurable: Handler(core.durable.subscribe, Order.MATCHED, Role.SUBSCRIBE, True),
        Unsubscribe: Handler(core.unsubscribe),
        DurableQuery: Handler(core.durable.query, Order.MATCHED),
        Attach: Handler(index.attach, Order.MATCHED, Role.SUBSCRIBE, True),
        Advertise: Handler(core.advertisements.advertise, Order.OWN, Role.PUBLISH, True),
        Unadvertise: Handler(core.advertisements.unadvertise),
        IndexLoad: Handler(index.load_for, Order.OWN, Role.ADMIN),
        IndexAdd: Handler(index.add, Order.INDEX, Role.ADMIN),
        IndexRemove: Handler(index.remove, Order.INDEX, Role.ADMIN),
        Status: Handler(core.admin.status, Order.MATCHED, Role.ADMIN),
        Explain: Handler(core.admin.explain),
        ListSubscriptions: Handler(core.admin.list_subscriptions, Order.MATCHED, Role.ADMIN),
        ListReceivers: Handler(core.admin.list_receivers, Order.MATCHED, Role.ADMIN),
        Link: Handler(core.links.accept),
        Bye: Handler(core.bye),
    }


def neighbour_handlers(core: Core) -> dict[type, Handler]:
    """What neighbours may say."""
    sessions, overlay = core.sessions, core.overlay
    return {
        Forward: Handler(core.forwarding.forward, Order.OWN),
        Carry: Handler(core.durable.carry, Order.OWN),
        Carried: Handler(core.durable.carried, Order.NONE),
        Decline: Handler(core.durable.decline, Order.NONE),
        Known: Handler(core.durable.known, Order.NONE),
        Credit: Handler(core.delivery.grant, Order.NONE),
        Ping: Handler(sessions.pong, Order.NONE),
        Pong: Handler(sessions.heard_pong, Order.NONE),
        LinkStates: Handler(overlay.hear),
        Digest: Handler(overlay.hear),
        Replace: Handler(overlay.hear_filters),
        Change: Handler(overlay.hear_filters),
        Link: Handler(core.links.answered, Order.OWN),
        Dropped: Handler(core.forwarding.dropped, Order.NONE),
        Error: Handler(overlay.hear_error, Order.NONE),
        Bye: Handler(core.bye),
    }
