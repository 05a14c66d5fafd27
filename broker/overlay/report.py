"""What operators see of the overlay: the topology as this broker knows it, and each of its links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contrada.broker.protocol.wire import LIST_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contrada.broker.overlay.dial import Dial
    from contrada.broker.overlay.overlay import Overlay

COUNTERS: Final = {
    "forwarded": "Notifications sent to the neighbour",
    "received": "Notifications that the neighbour sent",
    "duplicates": "Of those received, the ones that had come before",
    "expired": "Of those received, the ones that had crossed too many links",
    "invalid": "Of those received, the ones that could not be read",
    "lost": "Notifications that waited for the neighbour when its link was lost",
    "unconfirmed": "Notifications sent when the link was lost for which the neighbour had given no new credit",
    "ups": "Times that the link came up",
}
GAUGES: Final = {
    "up": "1 while the link is up",
    "in_tree": "1 while the tree uses the link",
    "asked": "Filters that the neighbour wants",
    "wanted": "Filters that this side of the link wants",
    "shown": "Of those wanted, the ones that the neighbour is told",
    "saved": "Of those wanted, the ones that covering kept from the link",
    "queued": "Notifications waiting for the link",
    "custody": "Durable notifications on disk here until the neighbour has them on its own",
}


def document(overlay: Overlay, dials: Sequence[Dial], now: float) -> dict[str, Any]:
    """Topology and links, as plain values."""
    topology = overlay.router.topology
    tree = topology.tree()
    states = topology.states
    names = overlay.names()
    return {
        "known": len(states),
        "stands_down": overlay.stands_down,
        "names": {state.broker: names[state.broker] for state in states[:LIST_LENGTH] if state.broker in names},
        "brokers": [
            {
                "broker": state.broker,
                "neighbours": sorted(topology.neighbours(state.broker)),
                "tree": sorted(tree.get(state.broker, ())),
                "reachable": state.broker in tree,
            }
            for state in states[:LIST_LENGTH]  # no REPLY has longer lists
        ],
        "links": links(overlay, now)[:LIST_LENGTH],
        "dialling": [dial.peer.url for dial in dials if dial.neighbour not in overlay.neighbours],
    }


def links(overlay: Overlay, now: float) -> list[dict[str, Any]]:
    """One row per known neighbour."""
    rows = []
    for broker, up in sorted(overlay.router.links.items()):
        link = overlay.neighbours.get(broker)
        totals = dict(overlay.interfaces[broker].totals) if broker in overlay.interfaces else {}
        state = overlay.router.flow_state(broker)
        wanted, shown = len(state.wanted), len(state.sent)
        rows.append(
            {
                "neighbour": broker,
                "up": up,
                "in_tree": broker in overlay.router.tree_links,
                "dialled": link is not None and link.dial is not None,
                "idle": now - link.session.heard if link is not None else None,
                "asked": len(state.asked),
                "wanted": wanted,
                "shown": shown,
                "saved": wanted - shown,
                "queued": len(link.receiver.queue) if link is not None else 0,
                "custody": overlay.custody.waiting(broker) if overlay.custody is not None else 0,
                **{name: totals.get(name, 0) for name in COUNTERS},
                "forwarded": totals.get("forwarded", 0) + (link.receiver.delivered if link is not None else 0),
            }
        )
    return rows
