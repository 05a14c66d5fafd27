"""The key directory of a broker: who may talk to it, and as what. `contrada.broker.protocol.keys` describes the files.

The directory is read again whenever it changes, so that adding or deleting a file takes effect at the next HELLO,
without a restart.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from contrada.broker.protocol.keys import BROKER, key_in, load_secret, read_key_file, role_named
from contrada.broker.sessions.sessions import Identity
from contrada.errors import InvalidValue

if TYPE_CHECKING:
    import os

log = logging.getLogger("contrada.broker")


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

    def broker_names(self) -> dict[str, str]:
        """By the ids of brokers that have no other name than their key: the names of their key files."""
        self._refresh()
        return {id_of_key(key): identity.name for key, identity in self._identities.items()}

    def _refresh(self) -> None:
        files = sorted(p for p in self.path.glob("*.toml") if not p.name.endswith(".secret.toml"))
        stamp = [(p.name, stat.st_mtime_ns, stat.st_size) for p in files if (stat := _stat(p)) is not None]
        if stamp == self._stamp:
            return
        identities: dict[str, Identity] = {}
        for path in files:
            try:
                document = read_key_file(path)
                key = key_in(document, "public-key", path)
                roles = document.get("roles", [])
                if not isinstance(roles, list):
                    raise InvalidValue(f"{path}: roles must be a list")
                identities[key] = Identity(path.stem, frozenset(role_named(role, path) for role in roles))
            except InvalidValue as error:  # one bad file must not lock everybody else out
                log.error("bad key file", extra={"reason": str(error)})
        self._identities = identities
        self._stamp = stamp


def id_of_key(public: str) -> str:
    """The id of a broker that has a key and was given none."""
    return f"b-{hashlib.blake2b(public.encode(), digest_size=4).hexdigest()}"


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None  # deleted between the listing and now
