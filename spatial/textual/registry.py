"""The indexes by name. Each is imported on first use: nobody compiles an index that they do not select."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from contrada.spatial.textual.base import StoredIndex

_HOME: Final = {
    "rk-tree": ("partition_tree.rk_tree", "RankedKeyTree"),
    "ap-tree": ("partition_tree.ap_tree", "APTree"),
    "mbr-trie": ("lfilter.mbr_trie", "MBRTrie"),
    "pt-quadtree": ("lfilter.pt_quadtree", "PTQuadtree"),
    "lfilter": ("lfilter.lfilter", "LFilter"),
    "rt": ("rt.rt_tree", "RtTree"),
    "rt+": ("rt.rt_tree", "RtPlusTree"),
    "rt++": ("rt.rt_plus_plus", "RtPlusPlusTree"),
    "ir-tree": ("baselines.ir_tree", "IRTree"),
    "iq-tree": ("baselines.iq_tree", "IQTree"),
    "rq-tree": ("baselines.iq_tree", "RQTree"),
    "keyword-first": ("baselines.keyword_first", "KeywordFirst"),
    "spatial-first": ("baselines.spatial_first", "SpatialFirst"),
    "scan": ("baselines.scan", "Scan"),
}

NAMES: Final = tuple(_HOME)
DEFAULT: Final = "rk-tree"  # the fastest on the papers' worlds; not where regions are tiny (docs/geotext.md)


def textual_index(name: str) -> type[StoredIndex]:
    """Return the index class of a name: `textual_index("rt++").build(subscriptions)`."""
    if name not in _HOME:
        raise InvalidValue(f"no geotext index is called {name!r}; choose one of: {', '.join(NAMES)}")
    module, attribute = _HOME[name]
    index: type[StoredIndex] = getattr(import_module(f"contrada.spatial.textual.{module}"), attribute)
    return index
