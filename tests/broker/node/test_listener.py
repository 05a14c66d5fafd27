"""The socket is there before everything else, and hosts that nobody knows are named."""

from __future__ import annotations

import logging
import threading

import pytest
import zmq

from contrada import Broker, ContradaError
from contrada.broker.core.admin import status
from contrada.broker.node import server
from contrada.broker.node.key_directory import KeyDirectory
from contrada.broker.node.listener import Listener
from contrada.broker.node.settings import Settings
from contrada.broker.protocol.frames import decode, encode
from contrada.broker.protocol.keys import generate
from contrada.broker.protocol.messages import Hello, Welcome
from contrada.forwarding.warm import Progress
from tests.broker.overlay.linked_cores import line
from tests.broker.processes import PATIENCE
from tests.client.reference import ReferenceTable


def test_who_connects_before_the_kernels_are_loaded_is_served_after(context, monkeypatch):
    order = []

    def load(*_settings):
        order.append("kernels")
        return ReferenceTable()

    client = context.socket(zmq.DEALER)
    client.linger = 0

    def bound(listener):
        order.append("bound")
        client.connect(listener.url)
        client.send_multipart(encode(Hello(1, 1, "early")))

    monkeypatch.setattr(server, "_new_table", load)
    with Broker(bound=bound, shutdown_timeout=0.5) as broker:
        assert client.poll(PATIENCE * 1000)
        welcome = decode(client.recv_multipart())
        assert isinstance(welcome, Welcome)
        assert welcome.broker == broker.id
    assert order == ["bound", "kernels"]
    client.close()


def test_a_broker_that_cannot_be_made_gives_its_address_back(tmp_path):
    listener = Listener(Settings(listen="tcp://127.0.0.1:*"))
    url = listener.url
    with pytest.raises(ContradaError, match="cannot listen on"):
        Listener(Settings(listen=url))
    listener.context.destroy(linger=0)
    with pytest.raises(ContradaError):
        Broker(listen=url, index=tmp_path / "nothing")
    again = Listener(Settings(listen=url))
    assert again.url == url
    again.context.destroy(linger=0)


def test_a_host_to_listen_on_that_nobody_knows_is_named():
    with pytest.raises(ContradaError, match=r"cannot listen on .*: there is no host 'nobody\.invalid'"):
        Listener(Settings(listen="tcp://nobody.invalid:7400", insecure=True))


def test_a_peer_that_nobody_knows_is_named():
    told = threading.Event()
    reasons = []

    class Handler(logging.Handler):
        def emit(self, record):
            if record.getMessage() == "cannot link":
                reasons.append(record.reason)
                told.set()

    handler = Handler()
    logging.getLogger("contrada.broker").addHandler(handler)
    try:
        options = {"heartbeat": 0.1, "timeout": 0.3, "shutdown_timeout": 0.1}
        with Broker(table=ReferenceTable(), peers=["tcp://nobody.invalid:7400"], **options):
            assert told.wait(PATIENCE)
    finally:
        logging.getLogger("contrada.broker").removeHandler(handler)
    assert reasons[0] == "there is no host 'nobody.invalid', as far as this machine knows"


def test_compiling_is_told_in_numbers(caplog):
    with caplog.at_level(logging.INFO, "contrada.broker"):
        server._tell_progress(Progress(done=110, most=660, seconds=20.0))
    (record,) = caplog.records
    assert (record.getMessage(), record.kernels, record.of, record.seconds_left) == ("compiling", 110, 660, 100)


def test_brokers_are_named_by_their_key_files(tmp_path):
    generate(tmp_path / "north", "broker", [])
    generate(tmp_path / "south", "broker", [])
    (tmp_path / "north" / "south.toml").write_bytes((tmp_path / "south" / "broker.toml").read_bytes())
    ids = {name: Listener(Settings(listen="tcp://127.0.0.1:*", keys=tmp_path / name)) for name in ("north", "south")}
    for each in ids.values():
        each.context.destroy(linger=0)
    names = KeyDirectory(tmp_path / "north").broker_names()
    assert names == {ids["north"].id: "broker", ids["south"].id: "south"}


def test_status_has_the_names_of_the_brokers_that_it_shows():
    overlay = line("a", "b")
    core = overlay.cores["a"]
    core.overlay.names = lambda: {"b": "south", "z": "elsewhere"}
    assert status(core, 1.0)["overlay"]["names"] == {"b": "south"}
