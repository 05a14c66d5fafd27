"""A neighbour that says anything at all: the broker keeps its invariants, and goes on serving its clients."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.broker.protocol import peer_messages as peer
from contrada.broker.protocol.frames import encode
from contrada.broker.protocol.messages import Credit, Grant, Hello, Link
from contrada.broker.protocol.peer_frames import encode_peer
from contrada.forwarding.codec.msgpack import encode_filter, encode_notification
from contrada.forwarding.language.filter import as_filters
from contrada.forwarding.language.text.parse import parse
from tests.broker.overlay.linked_cores import Overlay
from tests.broker.protocol.test_peer_frames import peer_messages

NAMES = ("a", "b", "evil", "x", "")
FILTERS = [encode_filter(as_filters(parse(text))[0]) for text in ("x > 0", "x > 5", "y exists", "x > 1 and x < 0")]
names = st.sampled_from(NAMES)
small = st.integers(0, 9)
flows = st.sampled_from(peer.Flow)
filters = st.lists(st.sampled_from(FILTERS), max_size=4).map(tuple)
plausible = st.one_of(
    st.builds(
        peer.LinkState,
        names,
        st.integers(0, 2**62),
        st.frozensets(names),
        st.integers(0, 200),
        st.integers(0, 9),
        st.integers(0, 9),
    ).map(lambda state: peer.LinkStates((state,))),
    st.builds(peer.Change, flows, filters, filters.map(lambda chosen: tuple(map(peer.filter_key, chosen)))),
    st.builds(
        lambda origin, hops, sequence, x: peer.Forward(
            (peer.Run(origin, "p", hops, (sequence, sequence), (encode_notification({"x": x}), b"junk")),)
        ),
        names,
        st.integers(1, 255),
        st.integers(1, 9),
        st.integers(-9, 9),
    ),
    flows.map(lambda flow: peer.Replace(flow, tuple(range(64)), tuple(dict.fromkeys(FILTERS)))),
)
said = st.one_of(
    plausible.map(encode_peer),
    peer_messages.map(encode_peer),
    st.lists(st.binary(max_size=40), max_size=3),
    st.builds(lambda name, number: encode(Link(name, False, number)), names, st.integers(0, 9)),
    st.integers(1, 2**63 - 1).map(lambda credit: encode(Credit((Grant(0, credit),)))),
    st.just(encode(Hello(1, 1, "evil"))),
)


@settings(max_examples=25)
@given(st.lists(said, max_size=25), st.booleans())
def test_whatever_a_neighbour_says_the_others_are_served(script, advertisements):
    overlay = Overlay()
    overlay.add("a", bad_frames=1000, stale_after=5.0, advertisements=advertisements)
    overlay.add("b", "a", bad_frames=1000, stale_after=5.0, advertisements=advertisements)
    for name in "ab":
        overlay.client(name)
        overlay.advertise(name, "x exists")
        overlay.subscribe(name, "x > 3")
    overlay.run()
    evil = b"client-evil"
    overlay.say("a", evil, Hello(1, 1, "evil"), Link("evil", advertisements, 5))
    for frames in script:
        overlay.cores["a"].receive(evil, None, frames, overlay.now)
        overlay.settle()  # which checks every invariant of the cores and their routers
    overlay.run(0.5)
    for name in "ab":
        overlay.delivered(name)
    overlay.publish("a", {"x": 20})
    assert 20 in overlay.delivered("a")
    overlay.publish("b", {"x": 21})
    assert 21 in overlay.delivered("b")
    overlay.say("a", evil, Hello(1, 1, "evil"))  # the link is gone, and with it what it said of the others
    overlay.run(20.0)
    for name in "ab":
        overlay.delivered(name)
    overlay.publish("a", {"x": 22})
    assert (overlay.delivered("a"), overlay.delivered("b")) == ([22], [22])
