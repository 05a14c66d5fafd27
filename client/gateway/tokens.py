"""Tokens: how those who come through the gateway say who they are, and what they may do.

A token is a random text. The key directory (`contrada.broker.protocol.keys`) keeps only a hash of it:

    alice.token     token-sha256 = "…", and roles = […] where alice has no key of her own
    alice.toml      her public key and roles, if she has one: the token's roles are these

Files are read again when the directory changes: a deleted file ends its token at the next request.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contrada.broker.protocol.keys import CLIENT_ROLES, read_key_file, role_named
from contrada.broker.protocol.wire import Role
from contrada.client.gateway.problems import Problem
from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIX: Final = ".token"
_NAME: Final = re.compile(r"[\w\-]{1,64}")
_HASH: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Visitor:
    """Somebody at the gateway's door."""

    name: str
    roles: frozenset[Role]

    def require(self, role: Role) -> None:
        """Raise a `Problem` unless the visitor has the role."""
        if role in self.roles:
            return
        if self is STRANGER:
            raise Problem("unauthenticated", "send a token, `Authorization: Bearer …` (make one with `contrada token`)")
        raise Problem("forbidden", f"the token of {self.name} lacks the role {role}")


STRANGER: Final = Visitor("", frozenset())
ANYBODY: Final = Visitor("", frozenset((Role.PUBLISH, Role.SUBSCRIBE, Role.ADMIN)))
"""Whoever comes, where there are no tokens: the gateway then listens on this machine only."""


def make_token(directory: str | Path, name: str, roles: Iterable[str] | None = None) -> tuple[str, Path]:
    """Make a token for a name and keep its hash; the token, and the file. Never overwrites."""
    if not _NAME.fullmatch(name):
        raise InvalidValue(f"{name!r} cannot name a token: letters, digits, - and _, at most 64 of them")
    directory = Path(directory)
    path = directory / f"{name}{SUFFIX}"
    has_key = (directory / f"{name}.toml").exists()
    if has_key and roles:
        raise InvalidValue(f"{name} has a key in {directory}: its roles are those of {name}.toml, leave --role out")
    granted = sorted(role_named(role, "roles") for role in (CLIENT_ROLES if roles is None else roles))
    if Role.PEER in granted:
        raise InvalidValue("a token cannot have the role peer: brokers come with keys")
    token = secrets.token_urlsafe(32)
    lines = [f"# Lets {name} in at gateways, by a token of which this is the hash.", f'token-sha256 = "{_hash(token)}"']
    if not has_key:
        lines.append(f"roles = [{', '.join(f'{chr(34)}{role}{chr(34)}' for role in granted)}]")
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write("\n".join(lines) + "\n")
    except FileExistsError:
        raise InvalidValue(f"{path} exists already: delete it first if the token is to be replaced") from None
    except OSError as error:
        raise InvalidValue(f"cannot write the token of {name} in {directory}: {error}") from error
    return token, path


class TokenDirectory:
    """The tokens that a gateway lets in."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise InvalidValue(f"{self.path} is not a directory of tokens: make one with contrada token")
        self._stamp: object = None
        self._visitors: dict[bytes, Visitor] = {}
        self.faults: list[str] = []
        self.refresh()

    def visitor(self, token: str) -> Visitor:
        """Whose token this is; a `Problem` for a stranger's."""
        self.refresh()
        wanted = _hash(token).encode()
        found = STRANGER
        for known, visitor in self._visitors.items():  # all of them, so that time tells nothing
            if hmac.compare_digest(known, wanted):
                found = visitor
        if found is STRANGER:
            raise Problem("unauthenticated", "the token is not known: it was mistyped, or its file was deleted")
        return found

    def refresh(self) -> None:
        """Read the directory again if it has changed. One bad file does not lock everybody else out: see `faults`."""
        files = sorted(p for p in self.path.iterdir() if p.suffix in (SUFFIX, ".toml"))
        stamp = []
        for path in files:
            try:
                stat = path.stat()
            except FileNotFoundError:  # deleted between the listing and now
                continue
            stamp.append((path.name, stat.st_mtime_ns, stat.st_size))
        if stamp == self._stamp:
            return
        visitors, self.faults = {}, []
        for path in files:
            if path.suffix != SUFFIX:
                continue
            try:
                hashed, visitor = _read(path)
                visitors[hashed] = visitor
            except InvalidValue as error:
                self.faults.append(str(error))
        self._visitors, self._stamp = visitors, stamp


def _read(path: Path) -> tuple[bytes, Visitor]:
    document = read_key_file(path)
    hashed = document.get("token-sha256")
    if not isinstance(hashed, str) or not _HASH.fullmatch(hashed):
        raise InvalidValue(f"{path}: token-sha256 must be 64 hexadecimal digits")
    key = path.with_suffix(".toml")
    roles = (read_key_file(key) if key.exists() else document).get("roles", [])
    if not isinstance(roles, list):
        raise InvalidValue(f"{path}: roles must be a list")
    granted = frozenset(role_named(role, path) for role in roles) - {Role.PEER}
    return hashed.encode(), Visitor(path.stem, granted)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
