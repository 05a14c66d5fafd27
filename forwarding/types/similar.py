"""Posted `similar` constraints: for each name an index over the table's road network (spatial/road/index/eia.py).

Without a network nothing can be posted. A table that was saved with such constraints can be loaded without one, to look
at or to change; a value of their name is then an error, since nobody can tell what it satisfies. With the network that
it was saved with, indexes are mapped from the file; with another, which gives the same filters another meaning, they
are built anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.errors import InvalidValue
from contrada.forwarding.types.plain import nested, numbered, within
from contrada.spatial.geometry.point import Point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.forwarding.language.operands import Similar
    from contrada.spatial.road.index.eia import EnhancedIndex
    from contrada.spatial.road.network import RoadNetwork
    from contrada.spatial.textual.geotext import GeoText


class SimilarIndexes:
    """Handles of posted constraints, by name."""

    def __init__(self, network: RoadNetwork | None) -> None:
        self._network = network
        self._indexes: dict[int, EnhancedIndex] = {}
        self._unread: dict[int, set[int]] = {}  # without a network

    def post(self, name: int, wanted: Sequence[tuple[int, Similar]]) -> None:
        """Make `search` find handles; an index that is not there yet is built at once."""
        if self._network is None:
            self._unread.setdefault(name, set()).update(handle for handle, _ in wanted)
            return
        from contrada.spatial.road.index.base import RoadSubscription
        from contrada.spatial.road.index.eia import EnhancedIndex

        asked = [RoadSubscription(handle, w.keywords, (w.at.x, w.at.y), w.alpha, w.tau) for handle, w in wanted]
        index = self._indexes.get(name)
        if index is None:
            self._indexes[name] = EnhancedIndex.build(self._network, asked)
        else:
            for each in asked:
                index.insert(each)

    def unpost(self, name: int, handle: int) -> None:
        """Undo `post` of one."""
        if self._network is None:
            self._unread[name].remove(handle)
            if not self._unread[name]:
                del self._unread[name]
            return
        self._indexes[name].remove(handle)
        if not len(self._indexes[name]):
            del self._indexes[name]

    def has(self, name: int) -> bool:
        """Whether anything is posted under a name."""
        return name in self._indexes or name in self._unread

    def search(self, name: int, text: GeoText) -> Ints | None:
        """The handles whose constraints a value satisfies; None for none."""
        if name in self._unread:
            raise InvalidValue("the table has `similar` filters and no road network: load it with road_network=…")
        index = self._indexes.get(name)
        if index is None or not isinstance(text.place, Point):
            return None
        return index.search(text.keywords, text.place)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what to save."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, index in self._indexes.items():
            arrays |= nested(f"index.{name}", index.arrays())
        return arrays

    def restore(
        self,
        arrays: Mapping[str, NDArray[Any]],
        posted: Iterable[int],
        asked: Callable[[int], tuple[int, Similar]],
    ) -> None:
        """Take back what was posted: from the arrays if they are of this network, else from the constraints."""
        if self._network is not None and arrays:
            from contrada.spatial.road.index.eia import EnhancedIndex

            saved = {name: within(f"index.{name}", arrays) for name in numbered("index", arrays)}
            if all(EnhancedIndex.fits(self._network, each) for each in saved.values()):
                self._indexes = {name: EnhancedIndex.from_arrays(self._network, each) for name, each in saved.items()}
                return
        by_name: dict[int, list[tuple[int, Similar]]] = {}
        for handle in posted:
            name, wanted = asked(handle)
            by_name.setdefault(name, []).append((handle, wanted))
        for name, each in by_name.items():
            self.post(name, each)

    def _check(self, posted: Mapping[int, set[int]]) -> None:
        if self._network is None:
            assert self._unread == posted
            return
        assert self._indexes.keys() == posted.keys()
        for name, index in self._indexes.items():
            index._check()
            assert set(index.store.rows.ids[index.store.slots].tolist()) == posted[name]
        assert np.all([index.network is self._network for index in self._indexes.values()])
