"""How much a decoder takes from strangers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from contrada.forwarding.language.values import MAX_NAME


@dataclass(frozen=True, eq=False)  # what is derived of one is kept with it, and must be found at once
class Limits:
    """What a decoder accepts at most.

    `size`, `string_length` and `pattern_length` count bytes (of UTF-8); `name_length`, characters.
    """

    size: int = 4 << 20
    attributes: int = 256
    name_length: int = MAX_NAME
    string_length: int = 1 << 20
    pattern_length: int = 256  # of `contains`: each doubling costs a search one more probe at every place of a text
    vertices: int = 10_000
    keywords: int = 4096
    wanted: int = 256  # keywords that one constraint asks for
    text: int = 1 << 18  # bytes of all geotext of a notification: reading and looking up words takes 0.2 µs each
    filters: int = 1024
    constraints: int = 256
    set_size: int = 4096


DEFAULT_LIMITS: Final = Limits()
_MOST: Final = 1 << 31
NO_LIMITS: Final = Limits(
    size=_MOST,
    string_length=_MOST,
    pattern_length=_MOST,
    vertices=_MOST,
    keywords=_MOST,
    wanted=_MOST,
    text=_MOST,
    filters=_MOST,
    constraints=_MOST,
    set_size=_MOST,
)
"""For what this library has written itself: what was taken once is taken back. Limits are for strangers."""
