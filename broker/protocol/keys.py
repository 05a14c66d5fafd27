"""Keys on disk: making and reading them. `contrada.broker.node.key_directory` is how a broker uses a directory of them.

A key directory holds two kinds of TOML files:

    alice.toml            public: public-key = "…" and roles = ["publish", "subscribe"]. One per client that is let in
    broker.secret.toml    secret: public-key and secret-key of the broker itself. Readable by its owner only

`alice.secret.toml` stays with alice. Keys are CURVE25519, in ZeroMQ's Z85 text (40 characters).
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from contrada.broker.protocol.wire import Role
from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    granted = sorted(role_named(role, "roles") for role in roles)
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
    document = read_key_file(Path(path))
    return KeyPair(key_in(document, "public-key", path), key_in(document, "secret-key", path))


def load_public(path: str | Path) -> str:
    """Read the public key from either kind of file."""
    return key_in(read_key_file(Path(path)), "public-key", path)


def read_key_file(path: Path) -> dict[str, Any]:
    """Read a key file of either kind."""
    try:
        return tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InvalidValue(f"{path} cannot be read as a key file: {error}") from error


def key_in(document: dict[str, Any], field: str, path: str | Path) -> str:
    """Take a key out of what `read_key_file` read."""
    key = document.get(field)
    if not isinstance(key, str) or not _Z85.fullmatch(key):
        raise InvalidValue(f"{path}: {field} must be a CURVE key of 40 characters in Z85")
    return key


def role_named(role: object, where: object) -> Role:
    """Check the name of a role; `where` says whose mistake it is."""
    try:
        return Role(role)  # type: ignore[arg-type]  # whatever it is, Role judges it
    except ValueError:
        raise InvalidValue(f"{where}: {role!r} is not a role; the roles are {', '.join(Role)}") from None
