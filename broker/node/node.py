"""The broker on the network: a thin loop around the core.

One thread owns the sockets and the core. A turn takes in what has arrived (bounded in messages, notifications and
bytes, so that a flood delays nobody for long), matches it as one batch, and sends what each connection takes:

    poll ─▶ receive* ─▶ turn ─▶ (commit) ─▶ flush ─▶ (tick) ─▶ poll

The core answers for its own mishaps; what fails here costs a turn, is logged and counted, and the loop goes on.

The ROUTER is mandatory and never blocks: a full connection and a vanished one are reported to the core instead of
swallowed by ZeroMQ. With keys, the ZAP handler runs in the same loop: a key that is not in the directory never gets
through the handshake (PROTOCOL.md, Security). ZeroMQ lets clients choose the name of their connection, and so take
that of somebody who has just left; only names that the ROUTER made itself are served.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from contextlib import suppress
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import zmq
from zmq.utils import z85

from contrada.broker.core.core import Core
from contrada.broker.node.dealers import Dealers
from contrada.broker.node.files.durable_disk import DurableDisk
from contrada.broker.node.files.index_loader import IndexLoader
from contrada.broker.node.files.recorder import Recorder
from contrada.broker.node.listener import HANDSHAKE_FAILURES, Listener, transport_options
from contrada.broker.node.worker import Worker
from contrada.broker.protocol.monitor import event_number
from contrada.broker.protocol.wire import Code, Role
from contrada.broker.sessions.session import Sent
from contrada.broker.sessions.sessions import Identity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contrada.broker.core.ports import Codec, Table
    from contrada.broker.core.standing_index import Loaded
    from contrada.broker.node.metrics import Metrics
    from contrada.broker.node.settings import Settings
    from contrada.spatial.road.network import RoadNetwork

log = logging.getLogger("contrada.broker")

_TURN_MESSAGES = 512
_TURN_HANDSHAKES = 64  # keys that are vouched for in a turn, and handshakes that have failed
_TURN_STRANGERS = 24  # messages of connections without a session that are heard in a turn, and
_TURN_HEARTBEATS = 64  # sessions that are looked after: those that have gone unseen cost the most
_TURN_NOTIFICATIONS = 2048
_TURN_BYTES = 8 << 20
_TURN_SECONDS = 0.01  # some messages take milliseconds
_MATCH_SECONDS = 0.02  # of a turn for matching,
_WORK_SECONDS = 0.01  # for what takes clients more than a turn,
_TELL_SECONDS = 0.01  # for telling what is on disk,
_LEFTOVER_SECONDS = 0.002  # and for what nobody waits for
_READERS = 2  # threads that read large filters
_COPY_BYTES = 64 << 10  # longer frames are shared with ZeroMQ instead of copied
_PATIENCE = 0.8  # of the shutdown timeout for delivering; the rest is for ZeroMQ to empty its buffers
_PAUSE = 0.002  # after a turn that failed, and longer if the next one fails too,
_LONGEST_PAUSE = 0.25  # so that a lasting failure does not fill the log
_OWN_NAME = 5  # bytes of a connection's name that ZeroMQ made: a zero, and a number
_EVERYONE = Identity("", frozenset(Role))


class Node:
    """Sockets of one broker. Everything but `stop` belongs to the thread that calls `run`."""

    def __init__(
        self,
        settings: Settings,
        table: Table,
        codec: Codec,
        metrics: Metrics,
        index: Loaded | None = None,
        roads: RoadNetwork | None = None,
        listener: Listener | None = None,
    ) -> None:
        listener = listener or Listener(settings)
        keys = listener.keys
        self.url = listener.url
        self.settings = settings
        self.core = Core(
            settings,
            table,
            codec,
            keys.identify if keys else lambda _user: _EVERYONE,
            id=listener.id,
            # Ids stay unique across restarts under one broker id: no broker accepts a notification per microsecond.
            first_sequence=time.time_ns() // 1000,
            now=time.monotonic(),
        )
        self.core.leftovers.seconds = _LEFTOVER_SECONDS
        self.core.strangers.at_once = _TURN_STRANGERS
        self.core.strangers.begin_turn()
        self.core.heartbeats.most = _TURN_HEARTBEATS
        metrics.watch(self.core)
        self._recorder: Recorder | None = None
        self._disk: DurableDisk | None = None
        self._files = Worker("contrada-index", self._wake)
        self._loader = IndexLoader(self._files, roads, settings.crs, settings.relations)
        self._readers = Worker("contrada-filters", self._wake, _READERS)
        self._matcher = Worker("contrada-matching", self._wake)
        self.core.matching.beside = self._matcher.ask
        self.core.index.open_index = self._loader.open
        self.core.work.beside = self.core.durable.beside = self._readers.ask
        self.core.work.seconds = _WORK_SECONDS
        self.core.matching.seconds = _MATCH_SECONDS
        self._keys = keys
        if keys is not None:
            self.core.overlay.names = keys.broker_names
        self._secure = keys is not None
        self._linger = settings.shutdown_timeout
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        self._stopping = threading.Event()
        self._next_tick = 0.0
        self.turned: float | None = None  # when the loop last came round, by the monotonic clock; None before the first
        self._context, self._router, self._zap, self._monitor = (
            listener.context,
            listener.router,
            listener.zap,
            listener.monitor,
        )
        self._poller = zmq.Poller()
        self._peers = self.core.links.transport = Dealers(
            self._context, self._poller, keys, transport_options(settings)
        )
        try:
            if settings.record is not None:  # last: it leaves a mark on the disk
                self._recorder = Recorder(settings, self.core.id, self.core.counters)
                self.core.delivery.recording = self._recorder.writer
            if index is not None:
                self.core.index.load(index)
                self._loader.verify(index, partial(self.core.index.verified, index))  # opened without, to start quickly
            if settings.data is not None:
                self._disk = DurableDisk(Path(settings.data), self.core, self._wake)
                assert self.core.durable.store is not None
                self.core.durable.store.observe = metrics.commit_seconds.observe
                self.core.durable.store.seconds = _TELL_SECONDS
        except BaseException:  # also what the listener holds
            if self._recorder is not None:
                self._recorder.close()
            self._context.destroy(linger=0)
            self._wake_read.close()
            self._wake_write.close()
            raise

    def checks(self) -> dict[str, Callable[[], str]]:
        """What an orchestrator may ask, from any thread: each says what is wrong, or nothing."""
        return {"/healthz": self._unhealthy, "/readyz": self._unready}

    def _unhealthy(self) -> str:
        turned = self.turned
        if turned is None:
            return ""  # it has not begun, which takes as long as it takes
        idle = time.monotonic() - turned
        longest = max(self.settings.timeout, 1.0)
        return f"the loop has not come round for {idle:.1f} s" if idle > longest else ""

    def _unready(self) -> str:
        if self.turned is None:
            return "the broker does not serve yet"
        if self._stopping.is_set():
            return "the broker is shutting down"
        if self.settings.index is not None and self.core.index.loaded is None:
            return f"the index {self.settings.index} is not loaded"
        return self._unhealthy()

    def stop(self) -> None:
        """Ask the loop to shut down; from any thread, or a signal handler."""
        self._stopping.set()
        self._wake()

    def _wake(self) -> None:
        with suppress(OSError):  # it is awake already, or gone
            self._wake_write.send(b"x")

    def run(self) -> None:
        """Serve until `stop`, then flush and say goodbye within the shutdown timeout."""
        try:
            self._serve()
            self._shut_down()
        finally:
            self.close()

    @property
    def closed(self) -> bool:
        """Whether its sockets are closed."""
        return bool(self._context.closed)

    def close(self) -> None:
        """Close the sockets; messages already handed over get the shutdown timeout to leave."""
        if not self._context.closed:
            self._router.disable_monitor()
            self._peers.close_all()
            self._context.destroy(linger=ceil(self._linger * 1000))
            for worker in (self._files, self._readers, self._matcher):
                worker.close()
            if self._recorder is not None:
                self._recorder.close()
            if self._disk is not None:
                self._disk.close()
            self._wake_read.close()
            self._wake_write.close()

    def _serve(self) -> None:
        core = self.core
        poller = self._poller
        for readable in (self._router, self._monitor, self._wake_read, *([self._zap] if self._secure else [])):
            poller.register(readable, zmq.POLLIN)
        log.info("serving", extra={"url": self.url, "broker": core.id})
        self._next_tick = time.monotonic()
        failures = 0
        while not self._stopping.is_set():
            try:
                self._turn()
                failures = 0
            except Exception as error:
                if self._context.closed:
                    raise
                core.mishaps.note("turn", error)
                failures += 1
                self._stopping.wait(min(_PAUSE * failures, _LONGEST_PAUSE))

    def _turn(self) -> None:
        """Wait for something to do, and do it."""
        core = self.core
        next_look = min(self._next_tick, core.retry_at) if core.congested else self._next_tick
        wait = 0.0 if core.busy else max(0.0, next_look - time.monotonic())
        ready = dict(self._poller.poll(ceil(wait * 1000)))
        core.turns.begin()
        if self._wake_read.fileno() in ready:
            self._woken()
        if self._zap in ready:
            self._vouch()
        if self._monitor in ready:
            self._note_failures()
        if self._router in ready:
            self._receive()
        if self._peers:
            self._peers.receive(ready, core)
        if core.will_last:
            self._flush()  # answers need not wait for what takes long
        now = time.monotonic()
        core.turn(now)
        self._flush()
        if now >= self._next_tick:
            self._next_tick = now + min(self.settings.heartbeat / 4, 0.25)
            core.tick(now)
            self._flush()
            if self._recorder is not None:
                self._recorder.tick(now)
        self.turned = time.monotonic()
        core.turns.end(self.turned)

    def _woken(self) -> None:
        """Another thread has something for this one."""
        with suppress(BlockingIOError):
            self._wake_read.recv(4096)
        turns = self.core.turns
        turns.enter()
        for worker in (self._files, self._readers, self._matcher):
            worker.collect()
        turns.leave("other threads")
        if self._disk is not None:
            turns.enter()
            self._disk.collect()
            turns.leave("disk")

    def _flush(self) -> None:
        """Send what is ready, once what led to it is recorded."""
        if self._recorder is not None:
            self._recorder.commit()
        self.core.flush(self._send)

    def _shut_down(self) -> None:
        """Deliver what credit allows, listening only for credit; then BYE."""
        core = self.core
        began = time.monotonic()
        self._files.close()
        self._files.collect()
        deadline = began + self.settings.shutdown_timeout * _PATIENCE
        self._receive()
        core.stop(time.monotonic())
        self._flush()
        while (core.busy or core.pending or core.congested or self._unserved()) and time.monotonic() < deadline:
            self._router.poll(2)
            self._receive()
            self._readers.collect()
            self._matcher.collect()
            if self._disk is not None:
                self._disk.collect()
            core.turn(time.monotonic())
            core.durable.write()
            self._flush()
        core.goodbye()
        self._flush()
        while core.congested and time.monotonic() < deadline:
            time.sleep(0.002)
            core.turn(time.monotonic())
            self._flush()
        self._linger = max(0.0, began + self.settings.shutdown_timeout - time.monotonic())
        log.info("stopped", extra={"broker": core.id})

    def _unserved(self) -> bool:
        """Whether some client still has notifications queued, and may yet give credit, or waits for the disk."""
        return not self.core.durable.idle or any(session.waiting for session in self.core.sessions.by_number.values())

    def _receive(self) -> None:
        """Take in what has arrived, up to a turn's worth."""
        core, receive, more = self.core, self._router.recv, self._router.getsockopt
        now = time.monotonic()
        room, matching = _TURN_BYTES, core.matching
        most = matching.pending + _TURN_NOTIFICATIONS  # what others left for later is no reason to wait
        for _ in range(_TURN_MESSAGES):
            try:
                connection = receive(zmq.NOBLOCK)
            except zmq.Again:
                return
            first = receive(copy=False) if self._secure else None
            frames = [receive() if first is None else first.bytes]
            while more(zmq.RCVMORE):
                frames.append(receive())
            user = None if first is None else str(first.get("User-Id"))
            if connection[:1] != b"\0" or len(connection) != _OWN_NAME:
                core.refuse(connection, now)
                continue
            core.receive(connection, user, frames, now)
            room -= sum(map(len, frames))
            if room <= 0 or matching.pending >= most or time.monotonic() - now > _TURN_SECONDS:
                return

    def _send(self, connection: bytes, frames: Sequence[bytes]) -> Sent:
        peer = self._peers.lines.get(connection)
        send = self._router.send if peer is None else peer.dealer.send
        try:
            if peer is None:
                send(connection, zmq.NOBLOCK | zmq.SNDMORE)
            for frame in frames[:-1]:
                send(frame, zmq.NOBLOCK | zmq.SNDMORE, copy=len(frame) < _COPY_BYTES)
            send(frames[-1], zmq.NOBLOCK, copy=len(frames[-1]) < _COPY_BYTES)
        except zmq.Again:
            return Sent.FULL
        except zmq.ZMQError as error:
            if error.errno in (zmq.EHOSTUNREACH, zmq.EINVAL):
                return Sent.GONE
            raise
        return Sent.OK

    def _vouch(self) -> None:
        """Answer ZAP requests (ZeroMQ RFC 27): the handshake has proven the key; one that is known is the user's id."""
        assert self._keys is not None
        for _ in range(_TURN_HANDSHAKES):
            try:
                request = self._zap.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            version, number = request[0], request[1] if len(request) > 1 else b""
            if len(request) == 7 and version == b"1.0" and request[5] == b"CURVE" and len(request[6]) == 32:
                key = z85.encode(request[6])
                if self._keys.identify(key.decode()) is not None:
                    self._zap.send_multipart([b"1.0", number, b"200", b"OK", key, b""])
                    continue
                reason = "the key is not in this broker's key directory"
                facts = {"key": key.decode(), "address": request[3].decode(errors="replace")}
            else:
                reason, facts = "CURVE only", {}
            self.core.counters["refused"] += 1
            log.warning("refused", extra={"code": Code.UNAUTHORISED, "reason": reason, **facts})
            self._zap.send_multipart([b"1.0", number, b"400", reason.encode(), b"", b""])

    def _note_failures(self) -> None:
        """Count handshakes that came to nothing; of many, some wait for the next turn."""
        for _ in range(_TURN_HANDSHAKES):
            try:
                event = event_number(self._monitor.recv_multipart(zmq.NOBLOCK))
            except zmq.Again:
                return
            if (reason := HANDSHAKE_FAILURES.get(event)) is not None:
                self.core.counters["handshake_failures"] += 1
                log.warning("handshake failed", extra={"reason": reason})
