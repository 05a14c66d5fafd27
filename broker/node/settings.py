"""Everything that an operator may set on a broker, with its default and its check."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, cast

from contrada.broker.overlay.dial import Peer
from contrada.broker.protocol.addresses import is_address, is_local
from contrada.broker.protocol.messages import Limits
from contrada.broker.protocol.wire import LIST_LENGTH, NAME_BYTES, PLANE, SYSTEMS, Sync
from contrada.broker.stored.limits import DurableLimits
from contrada.errors import InvalidValue
from contrada.forwarding.state.matching import DEFAULT_MATCHING, matching_number
from contrada.spatial.relations.discretization import Discretization, describe_discretization, make_discretization
from contrada.spatial.textual.registry import DEFAULT, NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


_SHARD = re.compile(r"(\d{1,6})/(\d{1,6})", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A broker's settings. Times are seconds."""

    listen: str = "tcp://127.0.0.1:7400"
    id: str = ""  # stable name of this broker; empty: a random one
    keys: str | Path | None = None  # the key directory; None: no authentication
    insecure: bool = False  # allow plain TCP beyond loopback
    heartbeat: float = 2.0
    timeout: float = 10.0  # silence after which a client is dead
    block_timeout: float = 30.0  # how long a full blocking subscription may take nothing
    shutdown_timeout: float = 5.0
    queue: int = 10_000  # default length of a subscription's queue
    sessions: int = 10_000
    filter_bytes: int = 64 << 20  # of all filters of one session, encoded
    bad_frames: int = 16  # of one connection before it is banned
    ban: float = 30.0
    metrics: str | None = None  # HOST:PORT to serve Prometheus metrics on; port 0 picks one
    peers: Sequence[str] = ()  # brokers to link with: URL, or KEY@URL, the key's name in the key directory
    priority: int = 100  # the broker of the smallest (priority, id) is the root of the overlay's tree
    advertisements: bool = False  # subscriptions travel only towards advertisers; alike in the whole overlay
    hop_limit: int = 64  # links that a notification may cross
    stale_after: float = 60.0  # what a lost neighbour wanted is kept so long
    index: str | Path | None = None  # an index directory, whose interfaces are standing subscriptions
    shard: str = ""  # "k/n": of the index, the k-th of n parts, counted from 0; empty: all of it
    roads: str | Path | None = None  # the road network that `similar` asks, saved or .npz; None: it is refused
    d_max: float | None = None  # of an .npz: the distance beyond which nothing is similar
    discretization: str | Discretization = "exact"  # how regions are related: exact, uniform, or an object; alike in
    density: float | None = None  # the whole overlay. Of uniform: points per unit length, and
    halo: bool = False  # whether what is nearly on a boundary meets it
    simplify: bool = True  # keep filters aside that another of the same subscriber covers
    geotext_index: str = DEFAULT  # the index behind `matches`
    matching: str = DEFAULT_MATCHING  # how the table matches: auto, counting or selective; answers are the same
    crs: str = PLANE  # what coordinates are: "plane", or "lonlat" for degrees; alike in the whole overlay
    record: str | Path | None = None  # the directory to record into; None: nothing is recorded
    record_sync: str = Sync.INTERVAL
    record_file_bytes: int = 256 << 20  # of one file, before the next
    record_file_seconds: float = 3600.0
    record_total_bytes: int = 0  # of all files, before the oldest is deleted; 0: for ever
    data: str | Path | None = None  # the directory of what is durable; None: durable requests are refused
    data_bytes: int = 1 << 30  # of the journal there, before what nobody needs is deleted,
    data_seconds: int = 604_800  # or when it is so old
    limits: Limits = field(default_factory=Limits)
    durable: DurableLimits = field(default_factory=DurableLimits)

    def __post_init__(self) -> None:
        self._check_types()
        for name in (
            "heartbeat",
            "timeout",
            "block_timeout",
            "shutdown_timeout",
            "ban",
            "stale_after",
            "record_file_seconds",
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e6:
                raise InvalidValue(f"{name} must be a positive number of seconds, not {value!r}")
            object.__setattr__(self, name, float(value))
        if self.timeout <= self.heartbeat:
            raise InvalidValue(f"timeout ({self.timeout} s) must be longer than heartbeat ({self.heartbeat} s)")
        for name in (
            "queue",
            "sessions",
            "filter_bytes",
            "bad_frames",
            "priority",
            "hop_limit",
            "record_file_bytes",
            "data_bytes",
            "data_seconds",
        ):
            _positive(name, getattr(self, name))
        if self.record_total_bytes != 0:
            _positive("record_total_bytes", self.record_total_bytes)
        if self.record_sync not in tuple(Sync):
            raise InvalidValue(f"record_sync is one of {', '.join(Sync)}, not {self.record_sync!r}")
        if self.d_max is not None and self.roads is None:
            raise InvalidValue(f"d_max {self.d_max} of no road network: name the network too (roads)")
        self.durable.check()
        matching_number(self.matching)
        relations = make_discretization(self.discretization, self.density, self.halo)
        for name, value in (("discretization", relations), ("density", None), ("halo", False)):
            object.__setattr__(self, name, value)  # all in one: settings are made of others' fields
        if self.geotext_index not in NAMES:
            raise InvalidValue(f"geotext_index is one of {', '.join(NAMES)}, not {self.geotext_index!r}")
        parse_shard(self.shard)
        if self.crs not in SYSTEMS:
            raise InvalidValue(f"crs is one of {', '.join(SYSTEMS)}, not {self.crs!r}")
        if self.shard and self.index is None:
            raise InvalidValue(f"shard {self.shard} of no index: name the index too")
        self._check_peers()
        for name, value in self.limits._asdict().items():
            _positive(f"limits.{name}", value)
            if value > _MOST:
                raise InvalidValue(f"limits.{name} must be at most {_MOST}, not {value}")
        if self.limits.batch > LIST_LENGTH:
            raise InvalidValue(f"limits.batch must be at most {LIST_LENGTH}, not {self.limits.batch}")
        if self.limits.notification_bytes + 1024 > min(self.limits.message_bytes, self.limits.queue_bytes):
            raise InvalidValue("limits.message_bytes and limits.queue_bytes need room for limits.notification_bytes")
        if not re.fullmatch(r"[^\s:]*", self.id) or len(self.id.encode()) > NAME_BYTES:
            raise InvalidValue(f"an id has no spaces, no colons and at most {NAME_BYTES} bytes, not {self.id!r}")
        if not is_address(self.listen):
            raise InvalidValue(f"{self.listen!r} is not an address: expected one like tcp://127.0.0.1:7400")
        if self.keys is None and not self.insecure and not is_local(self.listen):
            raise InvalidValue(
                f"{self.listen} can be reached from other machines, and without keys anyone may publish and subscribe "
                "there. Give a key directory (see contrada keygen), listen on 127.0.0.1, or allow it with insecure"
            )

    def _check_types(self) -> None:
        """What a configuration file may have got wrong, before anything relies on it."""
        for name, kinds, wanted in _TYPES:
            value = getattr(self, name)
            if not isinstance(value, kinds):
                raise InvalidValue(f"{name} must be {wanted}, not {value!r}")

    def _check_peers(self) -> None:
        if isinstance(self.peers, str) or not all(isinstance(address, str) for address in self.peers):
            raise InvalidValue(f"peers must be a list of addresses, not {self.peers!r}")
        object.__setattr__(self, "peers", tuple(self.peers))
        for address in self.peers:
            peer = Peer.parse(address)
            if (peer.key is None) != (self.keys is None):
                hint = (
                    "name its key, KEY@URL" if self.keys is not None else "give a key directory, or leave the key out"
                )
                raise InvalidValue(f"the peer {address} and keys do not go together: {hint}")

    @property
    def relations(self) -> str:
        """How regions are related, in a text that neighbours compare."""
        return describe_discretization(cast("Discretization", self.discretization))

    @property
    def link_timeout(self) -> float:
        """Silence after which a neighbour is lost: three heartbeats, because routes wait for it."""
        return min(self.timeout, 3 * self.heartbeat)

    @classmethod
    def of(cls, options: dict[str, Any]) -> Settings:
        """Make settings from a mapping, as read from TOML; `limits` may be one too. Unknown names are an error."""
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(options) - known):
            raise InvalidValue(f"unknown setting {unknown[0]!r}; the settings are {', '.join(sorted(known))}")
        limits = options.get("limits")
        if isinstance(limits, dict):
            if unknown := sorted(set(limits) - set(Limits._fields)):
                raise InvalidValue(f"unknown limit {unknown[0]!r}; the limits are {', '.join(Limits._fields)}")
            options = {**options, "limits": Limits(**limits)}
        durable = options.get("durable")
        if isinstance(durable, dict):
            if unknown := sorted(set(durable) - set(DurableLimits._fields)):
                raise InvalidValue(f"unknown limit {unknown[0]!r}; durable has {', '.join(DurableLimits._fields)}")
            options = {**options, "durable": DurableLimits(**durable)}
        return cls(**options)


_MOST = 2**53  # of a limit: exact in every language that clients are written in
_TYPES: tuple[tuple[str, type | tuple[type, ...], str], ...] = (
    ("listen", str, "an endpoint, as in tcp://127.0.0.1:7400"),
    ("id", str, "a string"),
    ("keys", (str, os.PathLike, type(None)), "a directory"),
    ("crs", str, "a string"),
    ("insecure", bool, "true or false"),
    ("metrics", (str, type(None)), "HOST:PORT"),
    ("record", (str, os.PathLike, type(None)), "a directory"),
    ("roads", (str, os.PathLike, type(None)), "a file"),
    ("d_max", (int, float, type(None)), "a distance along roads"),
    ("peers", (list, tuple), "a list of addresses"),
    ("advertisements", bool, "true or false"),
    ("halo", bool, "true or false"),
    ("simplify", bool, "true or false"),
    ("geotext_index", str, "a name"),
    ("data", (str, os.PathLike, type(None)), "a directory"),
    ("limits", Limits, "a table"),
    ("durable", DurableLimits, "a table"),
)


def _positive(name: str, value: object) -> None:
    if type(value) is not int or value < 1:
        raise InvalidValue(f"{name} must be a whole number of at least 1, not {value!r}")


def parse_shard(text: str) -> tuple[int, int] | None:
    """Read "k/n", the k-th of n parts, counted from 0; None for an empty text, all of it."""
    if not text:
        return None
    found = _SHARD.fullmatch(text)
    if found is None or int(found[1]) >= int(found[2]):
        raise InvalidValue(f"{text!r} is no shard: expected k/n with k from 0 to n - 1, as in 0/3")
    return int(found[1]), int(found[2])
