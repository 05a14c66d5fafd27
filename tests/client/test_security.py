"""Keys: the right one is let in, and every wrong one gets a clear answer in time, from both clients."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import contrada
from contrada.broker.protocol.keys import generate, load_public
from tests.client.reference import make_broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from contrada.broker.node.server import Broker


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("keys")
    generate(directory, "broker", ())
    generate(directory, "alice")
    generate(directory, "reader", ["subscribe"])
    stranger = tmp_path_factory.mktemp("elsewhere")
    for path in generate(stranger, "stranger"):
        if ".secret." in path.name:
            path.rename(directory / path.name)
    return directory


@pytest.fixture
def secure(keys: Path) -> Iterator[Broker]:
    with make_broker(keys=keys) as broker:
        yield broker


def options(keys: Path, who: str) -> dict[str, Any]:
    return {"key": keys / f"{who}.secret.toml", "server_key": keys / "broker.toml", "connect_timeout": 30.0}


def attempt(kind: str, url: str, **options: Any) -> None:
    """Connect and leave."""
    if kind == "blocking":
        contrada.Client(url, **options).close()
        return

    async def main() -> None:
        async with contrada.connect(url, **options):
            pass

    asyncio.run(main())


both = pytest.mark.parametrize("kind", ["async", "blocking"])


@both
def test_a_known_key_is_let_in_under_its_name(kind: str, secure: Broker, keys: Path) -> None:
    attempt(kind, secure.url, **options(keys, "alice"))
    with contrada.Client(secure.url, **options(keys, "alice"), name="mallory") as c:
        sub = c.subscribe("n exists")
        c.publish({"n": 1})
        assert sub.get(timeout=30).publisher == "alice", "the key names the publisher, whatever the client says"


def test_the_server_s_key_may_be_given_as_text(secure: Broker, keys: Path) -> None:
    text = load_public(keys / "broker.toml")
    attempt("blocking", secure.url, **{**options(keys, "alice"), "server_key": text})


@both
def test_an_unknown_key_is_refused_with_the_reason(kind: str, secure: Broker, keys: Path) -> None:
    with pytest.raises(contrada.Refused) as caught:
        attempt(kind, secure.url, **options(keys, "stranger"))
    assert caught.value.code == "unauthorised"
    assert load_public(keys / "stranger.secret.toml") in str(caught.value)
    assert "key directory" in str(caught.value)


@both
def test_another_server_key_fails_the_handshake(kind: str, secure: Broker, keys: Path) -> None:
    with pytest.raises(contrada.Refused, match="handshake"):
        attempt(kind, secure.url, **{**options(keys, "alice"), "server_key": keys / "reader.toml"})


@both
def test_no_key_at_a_broker_with_keys_fails_the_handshake(kind: str, secure: Broker) -> None:
    with pytest.raises(contrada.Refused, match="handshake"):
        attempt(kind, secure.url, connect_timeout=30.0)


@both
def test_a_key_at_a_broker_without_fails_the_handshake(kind: str, url: str, keys: Path) -> None:
    with pytest.raises(contrada.Refused, match="handshake"):
        attempt(kind, url, **options(keys, "alice"))


def test_a_role_that_is_missing_refuses_the_request_and_not_the_session(secure: Broker, keys: Path) -> None:
    with contrada.Client(secure.url, **options(keys, "reader")) as c:
        with pytest.raises(contrada.Refused) as caught:
            c.publish({"n": 1})
        assert caught.value.code == "unauthorised"
        with pytest.raises(contrada.Refused):
            c.status()
        c.subscribe("n exists").close()


@pytest.mark.parametrize("wrong", ["missing.toml", "broker.toml", "empty.toml"])
def test_a_file_that_is_no_secret_key_is_named(wrong: str, keys: Path) -> None:
    (keys / "empty.toml").touch()
    with pytest.raises(contrada.InvalidValue, match=wrong):
        contrada.connect("tcp://127.0.0.1:1", key=keys / wrong, server_key=keys / "broker.toml")
