"""Tokens: made once, known by their hash, with the roles of the key directory."""

from __future__ import annotations

import pytest

from contrada.broker.protocol.keys import generate
from contrada.broker.protocol.wire import Role
from contrada.client.gateway.problems import Problem
from contrada.client.gateway.settings import GatewaySettings
from contrada.client.gateway.tokens import STRANGER, TokenDirectory, make_token
from contrada.errors import InvalidValue


def test_a_token_has_the_roles_of_its_key_or_its_own(tmp_path):
    generate(tmp_path, "alice", ["publish"])
    alice, path = make_token(tmp_path, "alice")
    desk, _ = make_token(tmp_path, "desk", ["subscribe", "admin"])
    assert alice not in path.read_text()
    directory = TokenDirectory(tmp_path)
    assert directory.visitor(alice).roles == {Role.PUBLISH}
    assert directory.visitor(desk).roles == {Role.SUBSCRIBE, Role.ADMIN}
    directory.visitor(alice).require(Role.PUBLISH)
    with pytest.raises(Problem, match="lacks the role admin"):
        directory.visitor(alice).require(Role.ADMIN)
    path.unlink()
    with pytest.raises(Problem, match="not known"):
        directory.visitor(alice)


def test_a_bad_file_locks_nobody_else_out(tmp_path):
    desk, _ = make_token(tmp_path, "desk")
    (tmp_path / "bad.token").write_text("token-sha256 = 3")
    directory = TokenDirectory(tmp_path)
    assert directory.visitor(desk).name == "desk"
    assert "bad.token" in directory.faults[0]


@pytest.mark.parametrize(("name", "roles"), [("../x", None), ("a", ["peer"]), ("a", ["king"])])
def test_mistakes_are_refused(tmp_path, name, roles):
    with pytest.raises(InvalidValue):
        make_token(tmp_path, name, roles)


def test_a_token_is_never_overwritten(tmp_path):
    make_token(tmp_path, "desk")
    with pytest.raises(InvalidValue, match="exists already"):
        make_token(tmp_path, "desk")


def test_a_stranger_is_told_to_bring_a_token():
    with pytest.raises(Problem, match="contrada token"):
        STRANGER.require(Role.PUBLISH)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({}, "without a door"),
        ({"http": "7480"}, "HOST:PORT"),
        ({"http": "0.0.0.0:0"}, "without tokens anyone"),
        ({"http": "127.0.0.1:0", "window": 0}, "gateway.window"),
        ({"http": "127.0.0.1:0", "certificate": "a.pem"}, "two files"),
        ({"http": "127.0.0.1:0", "colour": 1}, "unknown setting gateway.colour"),
        ({"http": "127.0.0.1:0", "origins": "x"}, "list of origins"),
        ({"http": "127.0.0.1:0", "timeout": "x"}, "gateway.timeout"),
    ],
)
def test_settings_are_checked(settings, complaint):
    with pytest.raises(InvalidValue, match=complaint):
        GatewaySettings.of(settings)
