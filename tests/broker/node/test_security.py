"""Keys, roles and refusals: nobody gets in who should not, and everybody is told."""

from __future__ import annotations

import stat

import pytest
import zmq
from zmq.utils.monitor import recv_monitor_message

from contrada.broker.node.key_directory import KeyDirectory
from contrada.broker.node.settings import Settings
from contrada.broker.protocol.keys import CLIENT_ROLES, KeyPair, generate, load_public, load_secret
from contrada.broker.protocol.messages import Ack, Error, Hello, Reply, Status
from contrada.broker.protocol.wire import Code, Policy, Role
from contrada.broker.sessions.sessions import Identity
from contrada.errors import ContradaError, InvalidValue
from tests.broker.processes import PATIENCE, Dealer, broker


@pytest.fixture
def keys(tmp_path):
    directory = tmp_path / "keys"
    generate(directory, "broker", [])
    generate(directory, "alice", ["publish", "subscribe"])
    generate(directory, "reader", [Role.SUBSCRIBE])
    generate(directory, "root", ["admin"])
    return directory


@pytest.fixture
def secure(tmp_path, keys):
    with broker(tmp_path, keys=str(keys), shutdown_timeout=0.5) as process:
        yield process


def as_client(context, node, keys, name, **options):
    pair = load_secret(keys / f"{name}.secret.toml")
    return Dealer(context, node.url, keys=pair, server_key=load_public(keys / "broker.toml"), **options)


def test_keys_open_sessions_with_their_name_and_roles(secure, keys, context):
    alice = as_client(context, secure, keys, "alice")
    assert alice.welcome.publisher == "alice"
    assert alice.welcome.roles == CLIENT_ROLES
    assert isinstance(alice.subscribe(1, "x"), Ack)
    alice.publish("x")
    assert len(alice.until_delivered(1)) == 1


def test_a_role_that_the_key_lacks_is_refused_and_logged(secure, keys, context):
    reader, root = as_client(context, secure, keys, "reader"), as_client(context, secure, keys, "root")
    assert isinstance(reader.subscribe(1, "x", Policy.DROP_OLDEST), Ack)
    for refused in (reader.publish("x"), reader.ask(Status(50)), root.publish("x"), root.subscribe(1, "x")):
        assert isinstance(refused, Error)
        assert (refused.code, refused.fatal) == (Code.UNAUTHORISED, False)
    assert isinstance(root.ask(Status(51)), Reply)
    assert [e["role"] for e in secure.events() if e["event"] == "refused"] == [
        "publish",
        "admin",
        "publish",
        "subscribe",
    ]


def test_an_unknown_key_is_told_so_and_logged(secure, keys, context):
    stranger = KeyPair(*(key.decode() for key in zmq.curve_keypair()))
    client = Dealer(context, secure.url, keys=stranger, server_key=load_public(keys / "broker.toml"), hello=False)
    assert status_of_refusal(client) == 400
    event = next(e for e in secure.events() if e["event"] == "refused")
    assert (event["code"], event["key"], event["address"]) == ("unauthorised", stranger.public, "127.0.0.1")
    assert "key directory" in event["reason"]
    assert not [e for e in secure.events() if e["event"] == "session opened"]
    as_client(context, secure, keys, "alice")


def status_of_refusal(dealer):
    """The ZAP status that the broker sent instead of completing the handshake."""
    while dealer.monitor.poll(PATIENCE * 1000):
        event = recv_monitor_message(dealer.monitor)
        assert event["event"] is not zmq.Event.HANDSHAKE_SUCCEEDED
        if event["event"] == zmq.Event.HANDSHAKE_FAILED_AUTH:
            return event["value"]
    raise TimeoutError("the broker said nothing")


def test_a_client_cannot_choose_the_name_of_its_connection(secure, keys, context):
    """Or it could take that of somebody who has just left, and with it what is delivered there."""
    alice = as_client(context, secure, keys, "alice", hello=False, identity=b"bob")
    alice.say(Hello(1, 1, "alice"))
    error = alice.hear()
    assert isinstance(error, Error)
    assert error.code == Code.BAD_FRAME
    assert "routing id" in error.reason


def handshake_fails(dealer):
    """Whether the socket's monitor shows a handshake that never succeeds, rather than nothing."""
    wanted = (
        zmq.Event.HANDSHAKE_FAILED_NO_DETAIL | zmq.Event.HANDSHAKE_FAILED_PROTOCOL | zmq.Event.HANDSHAKE_FAILED_AUTH
    )
    while dealer.monitor.poll(PATIENCE * 1000):
        event = zmq.Event(recv_monitor_message(dealer.monitor)["event"])
        assert event is not zmq.Event.HANDSHAKE_SUCCEEDED
        if event in wanted | zmq.Event.DISCONNECTED:
            return True
    return False


@pytest.mark.parametrize("case", ["wrong server key", "no security"])
def test_a_failed_handshake_shows_on_both_sides_and_hurts_nobody(secure, keys, context, case):
    alice = as_client(context, secure, keys, "alice")
    if case == "no security":
        client = Dealer(context, secure.url, hello=False)
    else:
        other = zmq.curve_keypair()[0].decode()
        pair = load_secret(keys / "alice.secret.toml")
        client = Dealer(context, secure.url, keys=pair, server_key=other, hello=False)
    assert handshake_fails(client)
    while not [e for e in secure.events() if e["event"] == "handshake failed"]:
        alice.publish("x")


def test_a_curve_client_at_a_plain_broker_fails_its_handshake(tmp_path, keys, context):
    with broker(tmp_path) as node:
        client = as_client(context, node, keys, "alice", hello=False)
        assert handshake_fails(client)
        Dealer(context, node.url)


def test_keys_are_added_and_revoked_without_a_restart(secure, keys, context):
    generate(keys, "late", ["publish"])
    assert as_client(context, secure, keys, "late").welcome.publisher == "late"
    (keys / "late.toml").unlink()
    assert status_of_refusal(as_client(context, secure, keys, "late", hello=False)) == 400


def test_generated_files_are_private_and_read_back(tmp_path):
    public, secret = generate(tmp_path / "k", "alice", ["publish", "peer"])
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert load_public(public) == load_public(secret) == load_secret(secret).public
    assert zmq.curve_public(load_secret(secret).secret.encode()).decode() == load_public(public)
    generate(tmp_path / "k", "broker", [])
    directory = KeyDirectory(tmp_path / "k")
    assert directory.identify(load_public(public)) == Identity("alice", frozenset({Role.PUBLISH, Role.PEER}))
    assert directory.identify("nobody") is None
    assert directory.identify(None) is None
    with pytest.raises(InvalidValue, match="exists already"):
        generate(tmp_path / "k", "alice")


def test_mistakes_with_keys_are_named(tmp_path):
    for name in ("", "../x", "a b", "x.secret", "a/b"):
        with pytest.raises(InvalidValue, match="cannot name a key"):
            generate(tmp_path, name)
    with pytest.raises(InvalidValue, match="is not a role; the roles are publish"):
        generate(tmp_path, "x", ["root"])
    with pytest.raises(InvalidValue, match="not a directory of keys"):
        KeyDirectory(tmp_path / "none")
    with pytest.raises(InvalidValue, match="contrada keygen broker"):
        KeyDirectory(tmp_path)
    (tmp_path / "bad.toml").write_text("public-key = 3")
    with pytest.raises(InvalidValue, match="40 characters"):
        load_public(tmp_path / "bad.toml")
    (tmp_path / "worse.toml").write_text("= no")
    with pytest.raises(InvalidValue, match="cannot be read"):
        load_public(tmp_path / "worse.toml")


def test_one_bad_key_file_locks_nobody_else_out(tmp_path, caplog):
    generate(tmp_path, "broker", [])
    generate(tmp_path, "alice")
    (tmp_path / "bad.toml").write_text('public-key = "short"')
    directory = KeyDirectory(tmp_path)
    assert directory.identify(load_public(tmp_path / "alice.toml")) is not None
    assert "bad key file" in caplog.text


@pytest.mark.parametrize(
    "listen", ["tcp://0.0.0.0:*", "tcp://*:7400", "tcp://10.1.2.3:1", "tcp://[::]:1", "tcp://eth0:1"]
)
def test_plain_tcp_beyond_loopback_needs_keys_or_insecure(listen, tmp_path):
    with pytest.raises(InvalidValue, match="insecure"):
        Settings(listen=listen)
    assert Settings(listen=listen, insecure=True)
    assert Settings(listen=listen, keys=tmp_path)


@pytest.mark.parametrize(
    "listen", ["tcp://127.0.0.1:*", "tcp://localhost:7400", "tcp://[::1]:1", "ipc:///tmp/x", "inproc://x"]
)
def test_loopback_needs_nothing(listen):
    assert Settings(listen=listen)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"heartbeet": 1}, "unknown setting 'heartbeet'"),
        ({"heartbeat": 0}, "positive number of seconds"),
        ({"heartbeat": True}, "positive number of seconds"),
        ({"heartbeat": 5, "timeout": 5}, "must be longer"),
        ({"limits": {"windows": 1}}, "unknown limit"),
        ({"limits": {"batch": 4096}}, "at most 1024"),
        ({"limits": {"message_bytes": 1000}}, "room for"),
        ({"queue": 0}, "at least 1"),
        ({"id": "a b"}, "no spaces"),
        ({"id": 7}, "id must be a string"),
        ({"listen": 7400}, "listen must be an endpoint"),
        ({"listen": "nonsense"}, "'nonsense' is not an address"),
        ({"listen": "tcp://127.0.0.1:99999"}, "is not an address"),
        ({"listen": "tcp://127.0.0.1"}, "is not an address"),
        ({"listen": "tcp://[::1:7400"}, "is not an address"),
        ({"keys": ["keys"]}, "keys must be a directory"),
        ({"insecure": "no"}, "insecure must be true or false"),
        ({"metrics": 9464}, "metrics must be HOST:PORT"),
        ({"peers": "tcp://127.0.0.1:1"}, "peers must be a list"),
        ({"limits": 5}, "limits must be a table"),
        ({"limits": {"window": 2**64}}, "limits.window must be at most"),
    ],
)
def test_bad_settings_are_named(options, reason):
    with pytest.raises(ContradaError, match=reason):
        Settings.of(options)


def test_an_endpoint_in_use_is_an_error_in_words(tmp_path, context):
    from contrada.broker.core.ports import Codec
    from contrada.broker.node.http import serve
    from contrada.broker.node.metrics import Metrics
    from contrada.broker.node.node import Node
    from tests.naive.delivery import NaiveTable, read_filter, read_notification

    with broker(tmp_path) as process, pytest.raises(ContradaError, match="cannot listen on tcp://127"):
        Node(Settings(listen=process.url), NaiveTable(), Codec(read_notification, read_filter), Metrics())
    with pytest.raises(InvalidValue, match="HOST:PORT"):
        serve(Metrics(), "nonsense")


def test_a_brokers_own_key_has_no_clients_roles(tmp_path):
    from typer.testing import CliRunner

    from contrada.client.cli.main import app

    runner = CliRunner()
    for name in ("broker", "alice"):
        assert runner.invoke(app, ["keygen", name, "--directory", str(tmp_path)]).exit_code == 0
    assert "roles = []" in (tmp_path / "broker.toml").read_text()
    assert 'roles = ["publish", "subscribe"]' in (tmp_path / "alice.toml").read_text()
