"""Geotext in the forwarding table: a spatio-textual index per name for `matches`; `similar` one by one.

Which index is the table's `geotext_index` (spatial/textual/registry.py). It is given each posted constraint's keywords
and the box around its region, and what it finds is checked against the region itself where that is not a box.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contrada.errors import InvalidValue
from contrada.forwarding.constraint import Operator
from contrada.forwarding.operands import TextMatch
from contrada.forwarding.plain_type import PlainType
from contrada.spatial.region import Box
from contrada.spatial.textual.protocol import Subscription
from contrada.spatial.textual.registry import textual_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contrada.forwarding.constraint import Constraint
    from contrada.forwarding.index.layout import Ints
    from contrada.forwarding.plugged import Settings
    from contrada.spatial.textual.protocol import TextualIndex

_EVERYWHERE: Final = (-1e100, -1e100, 1e100, 1e100)  # as far as coordinates go


class GeotextType(PlainType):
    """Geotext constraints."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._index = textual_index(settings.geotext_index)
        self._indexes: dict[int, TextualIndex] = {}  # by name, of posted `matches`
        self._similar: dict[int, set[int]] = {}  # by name, posted `similar`

    def handle(self, name: int, constraint: Constraint) -> int:
        """The handle of a constraint; `similar` is refused without a road network."""
        if constraint.op is Operator.SIMILAR and self.settings.road_network is None:
            raise InvalidValue(
                f"{constraint}: the table has no road network; make it with ForwardingTable(road_network=…)"
            )
        return super().handle(name, constraint)

    def post(self, handle: int) -> None:
        """Put a constraint into the index of its name."""
        super().post(handle)
        name, _, value = self._key(handle)
        if not isinstance(value, TextMatch):
            self._similar.setdefault(name, set()).add(handle)
            return
        if name not in self._indexes:
            self._indexes[name] = self._index.build(())
        box = _EVERYWHERE if value.within is None else value.within.bounds
        self._indexes[name].insert(Subscription(handle, value.keywords, box))

    def unpost(self, handle: int) -> None:
        """Take a constraint out of its index."""
        super().unpost(handle)
        name, _, value = self._key(handle)
        if not isinstance(value, TextMatch):
            self._similar[name].remove(handle)
            if not self._similar[name]:
                del self._similar[name]
            return
        self._indexes[name].remove(handle)
        if not len(self._indexes[name]):
            del self._indexes[name]

    def search(self, names: Sequence[int], values: Sequence[Any]) -> list[Ints | None]:
        """Search the index of each value's name."""
        return [self._found(name, value) for name, value in zip(names, values, strict=True)]

    def _found(self, name: int, value: Any) -> Ints | None:
        found: list[int] = [handle for handle in self._similar.get(name, ()) if self._holds(handle, value)]
        index = self._indexes.get(name)
        if index is not None:
            for handle in index.search(value.keywords, value.box).tolist():
                wanted = self._key(handle)[2]
                assert isinstance(wanted, TextMatch)
                if wanted.within is None or type(wanted.within) is Box or wanted.holds(value):
                    found.append(handle)
        return np.array(found, np.int64) if found else None

    def _check(self) -> None:
        super()._check()
        posted = {name: handles - self._similar.get(name, set()) for name, handles in self._posted.items()}
        assert {name: len(handles) for name, handles in posted.items() if handles} == {
            name: len(index) for name, index in self._indexes.items()
        }
        for index in self._indexes.values():
            index._check()
