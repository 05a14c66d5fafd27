"""Which files an address of a store stands for: an object, all in a folder, or those that a pattern matches.

In patterns, `*` and `[ab]` stand for parts of one name, `**` for any folders, `{a,b}` for alternatives. There is no
`?`: behind it are a URL's options. Names that begin with _ or . are passed over, as Spark does.
"""

from __future__ import annotations

import fnmatch
import re
from typing import Final
from urllib.parse import urlsplit

from contrada.errors import InvalidValue
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import folder_of, name_inside, shown
from contrada.spark_jobs.stores.shared_files import SizedFile

_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")
_PATTERN: Final = re.compile(r"[*\[{]")


def stored_files(address: str, what: str) -> list[SizedFile]:
    """The files of an address, by name; `InvalidValue` when there are none or the store is out of reach."""
    try:
        size = object_store.size_of(address)
        if size is not None:
            return [SizedFile(address, size)]
        root = address
        while _PATTERN.search(urlsplit(root).path):
            root = folder_of(root)
        found = [SizedFile(each.address, each.size) for each in object_store.entries(root)]
    except OSError as error:
        raise InvalidValue(f"{what} {shown(address)}: out of reach: {error.strerror}") from error
    wanted = [name_inside(root, each).split("/") for each in unbraced(address)] if root != address else [["**"]]
    names = ((each, name_inside(root, each.address).split("/")) for each in found)
    kept = [each for each, parts in names if any(_matches(tuple(parts), tuple(one)) for one in wanted)]
    if not kept:
        raise InvalidValue(f"{what} {shown(address)}: nothing is there under this name")
    return kept


def unbraced(pattern: str) -> list[str]:
    """The patterns that one with {alternatives} stands for."""
    braces = _BRACES.search(pattern)
    if braces is None:
        return [pattern]
    ways = (pattern[: braces.start()] + each + pattern[braces.end() :] for each in braces[1].split(","))
    return [pattern for way in ways for pattern in unbraced(way)]


def hidden(part: str) -> bool:
    """Whether a name is one that readers of tables pass over."""
    return part.startswith(("_", ".")) and "=" not in part


def _matches(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether the parts of a name match those of a pattern; what lies in a folder that does matches, too."""
    if not pattern:
        return not any(map(hidden, parts))
    if not parts:
        return pattern == ("**",)
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or (not hidden(parts[0]) and _matches(parts[1:], pattern))
    return fnmatch.fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])
