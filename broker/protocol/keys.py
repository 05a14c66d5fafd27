"""Keys on disk: who may talk to a broker, and as what.

A key directory holds two kinds of TOML files:

    alice.toml            public: public-key = "…" and roles = ["publish", "subscribe"]. One per client that is let in
    broker.secret.toml    secret: public-key and secret-key of the broker itself. Readable by its owner only

`alice.secret.toml` stays with alice. Keys are CURVE25519, in ZeroMQ's Z85 text (40 characters). The directory is read
again whenever it changes, so that adding or deleting a file takes effect at the next HELLO, without a restart.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from contrada.broker.core.core import Identity
from contrada.broker.protocol.wire import Role
from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable

log = logging.getLogger("contrada.broker")

BROKER = "broker"
CLIENT_ROLES = frozenset((Role.PUBLISH, Role.SUBSCRIBE))
_Z85 = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")
_NAME = re.compile(r"[\w\-]{1,64}(\.[\w\-]{1,32})?")


class KeyPair(NamedTuple):
    """A CURVE key pair in Z85."""

    public: str
    secret: str


def generate(directory: str | Path, name: str, roles: Iterable[Role | str] = CLIENT_ROLES) -> tuple[Path, Path]:
    """Make a key pair and write its public and secret files; the two paths. Never overwrites."""
    import zmq

    if not _NAME.fullmatch(name) or name.endswith(".secret"):
        raise InvalidValue(f"{name!r} cannot name a key: letters, digits, - and _, at most 64 of them")
    granted = sorted(_role(role, "roles") for role in roles)
    directory = Path(directory)
    public_path, secret_path = directory / f"{name}.toml", directory / f"{name}.secret.toml"
    for path in (public_path, secret_path):
        if path.exists():
            raise InvalidValue(f"{path} exists already: delete it first if the key is to be replaced")
    public, secret = (key.decode() for key in zmq.curve_keypair())
    quoted = ", ".join(f'"{role}"' for role in granted)
    meaning = f"# Lets {name} in, at every broker whose key directory holds this file."
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(secret_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f'# Secret. Belongs to {name} alone.\npublic-key = "{public}"\nsecret-key = "{secret}"\n')
        public_path.write_text(f'{meaning}\npublic-key = "{public}"\nroles = [{quoted}]\n')
    except OSError as error:
        raise InvalidValue(f"cannot write the key of {name} in {directory}: {error}") from error
    return public_path, secret_path


def load_secret(path: str | Path) -> KeyPair:
    """Read a secret key file, as `generate` wrote it."""
    document = _read(Path(path))
    return KeyPair(_key(document, "public-key", path), _key(document, "secret-key", path))


def load_public(path: str | Path) -> str:
    """Read the public key from either kind of file."""
    return _key(_read(Path(path)), "public-key", path)


class KeyDirectory:
    """The keys that a broker lets in."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise InvalidValue(f"{self.path} is not a directory of keys: make one with contrada keygen")
        own = self.path / f"{BROKER}.secret.toml"
        if not own.exists():
            raise InvalidValue(f"{own} is missing: make the broker's own key with contrada keygen {BROKER}")
        self.own = load_secret(own)
        self._stamp: object = None
        self._identities: dict[str, Identity] = {}

    def identify(self, key: str | None) -> Identity | None:
        """Whose key this is; None for a stranger's."""
        self._refresh()
        return self._identities.get(key or "")

    def _refresh(self) -> None:
        files = sorted(p for p in self.path.glob("*.toml") if not p.name.endswith(".secret.toml"))
        stamp = [(p.name, stat.st_mtime_ns, stat.st_size) for p in files if (stat := _stat(p)) is not None]
        if stamp == self._stamp:
            return
        identities: dict[str, Identity] = {}
        for path in files:
            try:
                document = _read(path)
                key = _key(document, "public-key", path)
                roles = document.get("roles", [])
                if not isinstance(roles, list):
                    raise InvalidValue(f"{path}: roles must be a list")
                identities[key] = Identity(path.stem, frozenset(_role(role, path) for role in roles))
            except InvalidValue as error:  # one bad file must not lock everybody else out
                log.error("bad key file", extra={"reason": str(error)})
        self._identities = identities
        self._stamp = stamp


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None  # deleted between the listing and now


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InvalidValue(f"{path} cannot be read as a key file: {error}") from error


def _key(document: dict[str, Any], field: str, path: str | Path) -> str:
    key = document.get(field)
    if not isinstance(key, str) or not _Z85.fullmatch(key):
        raise InvalidValue(f"{path}: {field} must be a CURVE key of 40 characters in Z85")
    return key


def _role(role: object, where: object) -> Role:
    try:
        return Role(role)  # type: ignore[arg-type]  # whatever it is, Role judges it
    except ValueError:
        raise InvalidValue(f"{where}: {role!r} is not a role; the roles are {', '.join(Role)}") from None
