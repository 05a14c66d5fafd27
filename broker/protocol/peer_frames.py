"""What brokers say to one another, to frames and back: as strict and bounded as `contrada.broker.protocol.frames`.

The numbers 33 to 41 are read only on a session that has become a link; `decode_peer` reads everything else as `decode`
does. A FORWARD is made of runs, `[37, [origin, publisher, hops, [sequence, …], [body or nil, …]], …]`: what successive
notifications have in common is written and checked once, and the rest is two lists of plain values. A CARRY is the
same behind a round and the positions, `[38, round, [position, …], run, …]`.

Filters come in any number, messages do not: `split` cuts a message into several that have the same effect and are
never, in between, without a filter that both before and after have.
"""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgpack  # type: ignore[import-untyped]  # it ships no types

from contrada.broker.protocol import wire
from contrada.broker.protocol.fields import (
    arity,
    array,
    bad,
    detach,
    integer,
    integer_rows,
    member,
    read_bodies,
    text,
    unpack,
)
from contrada.broker.protocol.frames import cut, decode
from contrada.broker.protocol.messages import Limits, Message
from contrada.broker.protocol.peer_messages import (
    BUCKETS,
    KEY_BYTES,
    LAST_SEQUENCE,
    Carried,
    Carry,
    Change,
    Decline,
    Digest,
    Flow,
    Forward,
    Known,
    LinkState,
    LinkStates,
    PeerMessage,
    Replace,
    Run,
    bucket_of,
    filter_key,
)
from contrada.broker.protocol.wire import LIST_LENGTH, MAX_INTEGER, PEER_LIST_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

T = TypeVar("T")

_pack: Callable[[Any], bytes] = msgpack.Packer(autoreset=True).pack
_SPLIT_BYTES: Final = 1 << 20
_STATES: Final = 256
_HOPS: Final = 255
_TYPES: Final = frozenset(range(wire.LINK_STATES, wire.KNOWN + 1))
_ATTACHING: Final = frozenset((wire.FORWARD, wire.CARRY))


class Batch(Protocol):
    """What a FORWARD needs of the notifications of one publisher (`contrada.broker.sessions.batch` has them)."""

    broker: str
    publisher: str
    hops: int
    sequences: Sequence[int]
    bodies: Sequence[bytes]


def encode_peer(message: PeerMessage) -> list[bytes]:
    """Write a message as frames."""
    return _ENCODERS[type(message)](message)


def forward_frames(entries: Sequence[tuple[Batch, Sequence[int]]]) -> list[bytes]:
    """Join a FORWARD from batches; each has crossed one link more when it arrives."""
    runs: list[tuple[str, str, int, list[int], list[bytes]]] = []
    origin = publisher = None
    hops = -1
    sequences: list[int] = []
    bodies: list[bytes] = []
    for batch, _ in entries:
        if batch.publisher != publisher or batch.broker != origin or batch.hops != hops:
            origin, publisher, hops = batch.broker, batch.publisher, batch.hops
            sequences, bodies = [], []
            runs.append((origin, publisher, hops + 1, sequences, bodies))
        sequences += batch.sequences
        bodies += batch.bodies
    return _runs((wire.FORWARD,), runs)


def _runs(first: Iterable[Any], runs: Iterable[tuple[str, str, int, Sequence[int], Sequence[bytes]]]) -> list[bytes]:
    head: list[Any] = [*first]
    attachments: list[bytes] = []
    for origin, publisher, hops, sequences, bodies in runs:
        inline, attached = detach(bodies)
        attachments += attached
        head.append((origin, publisher, hops, sequences, inline))
    return [_pack(head), *attachments]


_ENCODERS: Final[dict[type, Callable[[Any], list[bytes]]]] = {
    LinkStates: lambda m: [
        _pack(
            (
                wire.LINK_STATES,
                [(s.broker, s.sequence, sorted(s.neighbours), s.priority, s.incarnation, s.rival) for s in m.states],
            )
        )
    ],
    Digest: lambda m: [_pack((wire.DIGEST, m.flow, [bucket.to_bytes(KEY_BYTES) for bucket in m.buckets]))],
    Replace: lambda m: [_pack((wire.REPLACE, m.flow, m.buckets, m.filters))],
    Change: lambda m: [_pack((wire.CHANGE, m.flow, m.add, m.remove))],
    Forward: lambda m: _runs((wire.FORWARD,), m.runs),
    Carry: lambda m: _runs((wire.CARRY, m.round, m.positions), m.runs),
    Carried: lambda m: [_pack((wire.CARRIED, m.spans))],
    Decline: lambda m: [_pack((wire.DECLINE, m.round, cut(m.reason)))],
    Known: lambda m: [_pack((wire.KNOWN, m.count))],
}


def split(message: PeerMessage, size: int = _SPLIT_BYTES) -> Iterator[PeerMessage]:
    """Cut a message that may be long: additions before removals, and a bucket is replaced as a whole.

    Only a bucket that is too long by itself is replaced by as much of it as fits, and the rest added at once behind.
    """
    if isinstance(message, LinkStates):
        yield from (LinkStates(portion) for portion in _portions(message.states, lambda _: size // _STATES, size))
    elif isinstance(message, Change):
        count = len(message.add) + len(message.remove)
        if count <= LIST_LENGTH and 16 * count + sum(map(len, message.add)) <= size:
            yield message
            return
        yield from (Change(message.flow, portion, ()) for portion in _portions(message.add, len, size))
        yield from (Change(message.flow, (), keys) for keys in _portions(message.remove, len, size))
    elif isinstance(message, Replace) and message.filters:
        contents: dict[int, list[bytes]] = {bucket: [] for bucket in message.buckets}
        for encoded in message.filters:
            contents[bucket_of(filter_key(encoded))].append(encoded)
        for portion in _portions(tuple(contents.items()), lambda item: sum(16 + len(f) for f in item[1]), size):
            filters = tuple(encoded for _, filters in portion for encoded in filters)
            first, *rest = _portions(filters, len, size) if len(portion) == 1 and filters else [filters]
            yield Replace(message.flow, tuple(bucket for bucket, _ in portion), first)
            yield from (Change(message.flow, more, ()) for more in rest)
    else:
        yield message


def _portions(items: tuple[T, ...], weight: Callable[[T], int], size: int) -> list[tuple[T, ...]]:
    """Runs of items, in order, each of about `size` in all."""
    total = 0
    portion = 0

    def number(item: T) -> int:
        nonlocal total, portion
        total += 16 + weight(item)
        if total > size:
            total = 16 + weight(item)
            portion += 1
        return portion

    return [tuple(group) for _, group in groupby(items, key=number)]


def decode_peer(frames: Sequence[bytes], limits: Limits = Limits()) -> PeerMessage | Message:  # noqa: B008  # an immutable tuple
    """Read a message that came over a link."""
    if not frames or len(frames[0]) > limits.message_bytes or (kind := _kind(frames[0])) not in _TYPES:
        return decode(frames, limits)
    if len(frames) > 1 and kind not in _ATTACHING:
        bad("only FORWARD and CARRY have attachments")
    if len(frames) > 1 + LIST_LENGTH:
        bad(f"{len(frames)} frames; a message has at most {1 + LIST_LENGTH}")
    if (size := sum(map(len, frames))) > limits.message_bytes:
        bad(f"a message of {size} bytes; the limit is {limits.message_bytes}")
    fields = unpack(frames[0], PEER_LIST_LENGTH)[1:]
    if kind == wire.FORWARD:
        return Forward(_read_runs(fields, frames[1:], limits))
    if kind == wire.CARRY:
        return _read_carry(fields, frames[1:], limits)
    return _DECODERS[kind](fields)


def _kind(head: bytes) -> int:
    """The type number of a head that is an array, or -1."""
    for prefix, (low, high) in ((1, (0x90, 0x9F)), (3, (0xDC, 0xDC)), (5, (0xDD, 0xDD))):
        if len(head) > prefix and low <= head[0] <= high:
            return head[prefix]
    return -1


def _link_states(fields: tuple[Any, ...]) -> LinkStates:
    (states,) = arity("LINK_STATES", fields, 1)
    return LinkStates(tuple(_link_state(*arity("state", row, 6)) for row in _tuples("states", states)))


def _link_state(broker: Any, sequence: Any, neighbours: Any, priority: Any, incarnation: Any, rival: Any) -> LinkState:
    names = [text("neighbour", name) for name in array("neighbours", neighbours, LIST_LENGTH, 0)]
    if names != sorted(set(names)):
        bad("neighbours must be in order, each once")
    return LinkState(
        text("broker", broker),
        integer("sequence", sequence, 0, LAST_SEQUENCE),
        frozenset(names),
        integer("priority", priority),
        integer("incarnation", incarnation),
        integer("rival", rival),
    )


def _tuples(name: str, value: Any) -> tuple[tuple[Any, ...], ...]:
    for row in array(name, value, LIST_LENGTH):
        array(name, row, 16)
    rows: tuple[tuple[Any, ...], ...] = value
    return rows


def _digest(fields: tuple[Any, ...]) -> Digest:
    flow, buckets = arity("DIGEST", fields, 2)
    numbers = _binaries("buckets", array("buckets", buckets, BUCKETS, BUCKETS), KEY_BYTES)
    return Digest(member("flow", Flow, flow), tuple(int.from_bytes(number) for number in numbers))


def _replace(fields: tuple[Any, ...]) -> Replace:
    flow, buckets, filters = arity("REPLACE", fields, 3)
    named = [integer("bucket", bucket, 0, BUCKETS - 1) for bucket in array("buckets", buckets, BUCKETS, 0)]
    if named != sorted(set(named)):
        bad("buckets must be in order, each once")
    filters = _binaries("filters", filters)
    if not all(bucket_of(filter_key(encoded)) in named for encoded in filters):
        bad("a filter that belongs to none of the buckets")
    return Replace(member("flow", Flow, flow), tuple(named), filters)


def _change(fields: tuple[Any, ...]) -> Change:
    flow, add, remove = arity("CHANGE", fields, 3)
    return Change(member("flow", Flow, flow), _binaries("filters", add), _binaries("keys", remove, KEY_BYTES))


def _binaries(name: str, values: Any, size: int | None = None) -> tuple[bytes, ...]:
    for value in array(name, values, PEER_LIST_LENGTH, 0):
        if type(value) is not bytes or (size is not None and len(value) != size):
            bad(f"{name} must be binary" + ("" if size is None else f" of {size} bytes"))
    checked: tuple[bytes, ...] = values
    return checked


def _read_carry(fields: tuple[Any, ...], attachments: Sequence[bytes], limits: Limits) -> Carry:
    if len(fields) < 3:
        bad("CARRY has a round, positions and runs")
    round, positions, *runs = fields
    for position in array("positions", positions, LIST_LENGTH):
        integer("position", position, 1)
    if any(before >= after for before, after in pairwise(positions)):
        bad("positions must ascend")
    read = _read_runs(tuple(runs), attachments, limits)
    if sum(len(run.bodies) for run in read) != len(positions):
        bad("a CARRY has as many positions as notifications")
    return Carry(integer("round", round, 1), positions, read)


def _carried(fields: tuple[Any, ...]) -> Carried:
    (spans,) = arity("CARRIED", fields, 1)
    bounds = ("first", 1, MAX_INTEGER), ("last", 1, MAX_INTEGER)
    return Carried(tuple((first, last) for first, last in integer_rows("spans", spans, *bounds)))


def _decline(fields: tuple[Any, ...]) -> Decline:
    round, reason = arity("DECLINE", fields, 2)
    return Decline(integer("round", round, 1), text("reason", reason, wire.REASON_BYTES))


def _known(fields: tuple[Any, ...]) -> Known:
    return Known(integer("count", *arity("KNOWN", fields, 1)))


def _read_runs(fields: tuple[Any, ...], attachments: Sequence[bytes], limits: Limits) -> tuple[Run, ...]:
    runs = [arity("run", array("run", run, 5), 5) for run in array("runs", fields, LIST_LENGTH)]
    found = read_bodies([body for run in runs for body in array("bodies", run[4], LIST_LENGTH)], attachments, limits)
    if len(found) > LIST_LENGTH:
        bad(f"{len(found)} notifications in one message; there may be {LIST_LENGTH}")
    checked = []
    start = 0
    for origin, publisher, hops, sequences, bodies in runs:
        count = len(bodies)
        if len(array("sequences", sequences, LIST_LENGTH)) != count:
            bad("a run has as many sequence numbers as bodies")
        if {*map(type, sequences)} != {int} or min(sequences) < 1 or max(sequences) > MAX_INTEGER:
            bad(f"sequence must be an integer from 1 to {MAX_INTEGER}")
        checked.append(
            Run(
                text("origin", origin),
                text("publisher", publisher),
                integer("hops", hops, 1, _HOPS),
                sequences,
                found[start : start + count],
            )
        )
        start += count
    return tuple(checked)


_DECODERS: Final[dict[int, Callable[[tuple[Any, ...]], PeerMessage]]] = {
    wire.LINK_STATES: _link_states,
    wire.DIGEST: _digest,
    wire.REPLACE: _replace,
    wire.CHANGE: _change,
    wire.CARRIED: _carried,
    wire.DECLINE: _decline,
    wire.KNOWN: _known,
}
