"""Geotext in the forwarding table: a spatio-textual index per name for `matches`, one over the roads for `similar`.

Which index is the table's `geotext_index` (spatial/textual/registry.py). It is given each posted constraint's keywords
and the box around its region, and what it finds is checked against the region itself where that is not a box.
`similar` is in similar.py; what is pending of it is decided by one expansion per value.

`not matches` is found by what it refuses: the constraints that it negates are in a second index, and all posted under
the name but those are found. Indexes are known by the number of the name, or, of what is refused, by ~number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast
from zlib import crc32

import numpy as np

from contrada.errors import InvalidValue
from contrada.forwarding.batches.packed_columns import distinct, match_texts
from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.language.lonlat import LONLAT, holds_in_degrees, other_text
from contrada.forwarding.language.operands import Negated, TextMatch
from contrada.forwarding.state.growable import GrowableArray
from contrada.forwarding.types.plain import OBJECTS_COST, PlainType, nested, numbered, within
from contrada.forwarding.types.records import FIRST_MARK, NAME_BITS, POSTED, Records
from contrada.forwarding.types.similar import SimilarIndexes
from contrada.spatial import allowance
from contrada.spatial.geometry.region import Box
from contrada.spatial.storage.row_numbers import check_lengths, check_rows, check_shapes
from contrada.spatial.textual.protocol import Subscription
from contrada.spatial.textual.registry import textual_index

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from contrada.forwarding.batches.packed_columns import Matches
    from contrada.forwarding.batches.texts import Texts
    from contrada.forwarding.covering.budget import CoveringBudget
    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.language.operands import Similar
    from contrada.forwarding.types.plugged import Settings
    from contrada.forwarding.types.shares import Traffic
    from contrada.spatial.textual.base import StoredIndex

# Marks of constraints (records.py).
_SIMILAR: Final = FIRST_MARK
_SHAPED: Final = FIRST_MARK << 1  # within a region that is no box: what the index finds must be checked
_REFUSED: Final = FIRST_MARK << 2  # `not matches`, `not similar`
_WORD_COST: Final = 50  # nanoseconds, about, of a keyword, a constraint found or a vertex of a region
_EVERYWHERE: Final = (-1e100, -1e100, 1e100, 1e100)  # as far as coordinates go
_NO_HANDLES: Final = np.zeros(0, np.int64)


class GeotextType(PlainType):
    """Geotext constraints."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._index = textual_index(settings.geotext_index)
        self._degrees = settings.crs == LONLAT
        self._indexes: dict[int, StoredIndex] = {}  # by name, of posted `matches`; by ~name of `not matches`
        self._refused: dict[int, set[int]] = {}  # by name, posted handles of what is refused
        self._signs = GrowableArray(0, 256)  # by handle: a bit for each keyword
        self._similar = SimilarIndexes(settings.road_network)  # of posted `similar`
        self._filled: Matches | None = None  # what `fill` took in, by handle, until it is posted

    def fill(self, matches: Matches) -> Ints:
        """Take in many constraints, their names by number, when new: the handle of each. `post_many` comes next."""
        text, ends = match_texts(matches)
        saved, kept, handles = distinct(text, ends, matches.names)
        self._records = Records.of(saved)
        if len(kept) < len(ends):
            counts = np.diff(matches.ends, prepend=0)
            chosen = np.zeros(len(ends), np.bool_)
            chosen[kept] = True
            words = matches.words[np.repeat(chosen, counts)]
            matches = matches._replace(words=words, ends=np.cumsum(counts[kept]), boxes=matches.boxes[kept])
        self._filled = matches._replace(names=saved.names)
        bits = np.array([1 << (crc32(word.encode()) % 63) for word in matches.vocabulary], np.int64)
        starts = np.concatenate(([0], self._filled.ends[:-1]))
        self._signs = GrowableArray.over(np.bitwise_or.reduceat(bits[matches.words], starts))
        return handles

    def handle(self, name: int, constraint: Constraint) -> int:
        """The handle of a constraint; `similar` is refused without a road network."""
        similar = constraint.op in (Operator.SIMILAR, Operator.NOT_SIMILAR)
        if similar and self.settings.road_network is None:
            raise InvalidValue(
                f"{constraint}: the table has no road network; make it with ForwardingTable(road_network=…)"
            )
        handle = super().handle(name, constraint)
        if similar:
            self._records.mark(handle, _SIMILAR)
        if isinstance(constraint.value, Negated):
            self._records.mark(handle, _REFUSED)
        return handle

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The constraints and the indexes."""
        arrays = super().arrays()
        arrays["signs"] = self._signs.array[: len(arrays["records.flags"])]
        for name, index in self._indexes.items():
            arrays |= nested(f"index.{name}", index.arrays())
        return arrays | nested("roads", self._similar.arrays())

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take them back, mapped or not."""
        super().restore(arrays)
        check_shapes("geotext", arrays, {"signs": (np.int64, ())})
        check_lengths("geotext", self._records.top, arrays["signs"])
        self._signs = GrowableArray.over(arrays["signs"])
        for name in numbered("index", arrays):
            self._indexes[name] = index = self._index.from_arrays(within(f"index.{name}", arrays))
            check_rows("geotext: handles", index.store.rows.ids, self._records.top, -1)
        marks = POSTED | _REFUSED
        for handle in self._records.marked(_REFUSED).tolist():
            if self._records.flags[handle] & marks == marks:
                self._refused.setdefault(self._records.name(handle), set()).add(handle)
        marks |= _SIMILAR
        similar = self._records.marked(_SIMILAR).tolist()
        posted = [h for h in similar if self._records.flags[h] & marks == _SIMILAR | POSTED]
        self._similar.restore(within("roads", arrays), posted, self._asked)

    def _made(self, handle: int, constraint: Constraint) -> None:
        sign = 0
        for word in _wanted(constraint.value).keywords:
            sign |= 1 << (crc32(word.encode()) % 63)
        self._signs.reserve(handle + 1)
        self._signs.array[handle] = sign

    def promise(self, handle: int, others: Ints, *, above: bool) -> NDArray[np.float64]:
        """Whether all keywords of the coverer might be among the other's; of what is refused, the other way round."""
        mine, theirs = self._signs.array[handle], self._signs.array[others]
        refused, likewise = self._records.flags[handle] & _REFUSED, self._records.flags[others] & _REFUSED
        missing = theirs & ~mine if above != bool(refused) else mine & ~theirs
        promises = np.where((missing == 0) & (likewise == refused), 1.0, 0.0)
        if not refused:
            asked = self._records.get(handle)[2]
            for place in np.flatnonzero(promises).tolist():
                other = self._records.get(int(others[place]))[2]
                if isinstance(asked, TextMatch) and isinstance(other, TextMatch):
                    promises[place] = _promise(other, asked) if above else _promise(asked, other)
        return promises

    def covers(self, first: int, second: int, budget: CoveringBudget) -> bool:
        """Whether the second handle's constraint implies the first's: what their boxes tell, or what they say."""
        (promise,) = self.promise(second, np.array([first]), above=True).tolist()
        if promise in (0.0, np.inf):
            budget.spend(1)
            return bool(promise)
        return super().covers(first, second, budget)

    def post(self, handle: int) -> None:
        """Put a constraint into the index of its name."""
        super().post(handle)
        name, _, value = self._records.get(handle)
        if isinstance(value, Negated):
            self._refused.setdefault(name, set()).add(handle)
            if not isinstance(value.operand, TextMatch):
                return
            name, value = ~name, value.operand
        if not isinstance(value, TextMatch):
            self._similar.post(name, [(handle, cast("Similar", value))])
            return
        if value.within is not None and type(value.within) is not Box:
            self._records.mark(handle, _SHAPED)
        if name not in self._indexes:
            self._indexes[name] = self._index.build(())
        box = _EVERYWHERE if value.within is None else value.within.bounds
        self._indexes[name].insert(Subscription(handle, value.keywords, box))

    def post_many(self, handles: Sequence[int]) -> None:
        """As `post` of each; an index that is not there yet is built at once."""
        new: dict[int, list[tuple[int, TextMatch]]] = {}
        similar: dict[int, list[tuple[int, Similar]]] = {}
        if self._filled is not None:
            known = len(self._filled.ends)
            self._post_filled(np.sort(np.array([handle for handle in handles if handle < known], np.int64)))
            handles = [handle for handle in handles if handle >= known]
        for handle in handles:
            name, _, value = self._records.get(handle)
            if isinstance(value, Negated):
                self.post(handle)
            elif not isinstance(value, TextMatch):
                super().post(handle)
                similar.setdefault(name, []).append((handle, cast("Similar", value)))
            elif name not in self._indexes:
                new.setdefault(name, []).append((handle, value))
            else:
                self.post(handle)
        for name, wanted in similar.items():
            self._similar.post(name, wanted)
        for name, matches in new.items():
            words: dict[str, int] = {}
            keywords: list[int] = []
            ends, boxes = [0], []
            for handle, value in matches:
                super().post(handle)
                if value.within is not None and type(value.within) is not Box:
                    self._records.mark(handle, _SHAPED)
                keywords += [words.setdefault(word, len(words)) for word in value.keywords]
                ends.append(len(keywords))
                boxes.append(_EVERYWHERE if value.within is None else value.within.bounds)
            ids = [handle for handle, _ in matches]
            self._indexes[name] = self._index.build_arrays(ids, ends, np.array(keywords, np.int32), list(words), boxes)

    def _post_filled(self, handles: Ints) -> None:
        """Build the indexes of what `fill` took in."""
        filled, self._filled = self._filled, None
        assert filled is not None
        self._records.flags[handles] |= POSTED
        starts = np.concatenate(([0], filled.ends))
        for name in np.unique(filled.names[handles]).tolist():
            mine = handles[filled.names[handles] == name]
            counts = starts[mine + 1] - starts[mine]
            ends = np.cumsum(counts)
            words = filled.words[np.repeat(starts[mine] - (ends - counts), counts) + np.arange(int(counts.sum()))]
            used, numbers = np.unique(words, return_inverse=True)
            vocabulary = [filled.vocabulary[word] for word in used.tolist()]
            offsets = np.concatenate(([0], ends))
            self._indexes[name] = self._index.build_arrays(mine, offsets, numbers, vocabulary, filled.boxes[mine])

    def unpost(self, handle: int) -> None:
        """Take a constraint out of its index."""
        super().unpost(handle)
        name = self._records.name(handle)
        refused = self._records.flags[handle] & _REFUSED
        if refused:
            self._refused[name].remove(handle)
            if not self._refused[name]:
                del self._refused[name]
        if self._records.flags[handle] & _SIMILAR:
            if refused:
                return
            self._similar.unpost(name, handle)
            return
        self._records.unmark(handle, _SHAPED)
        key = ~name if refused else name
        self._indexes[key].remove(handle)
        if not len(self._indexes[key]):
            del self._indexes[key]
            self._traffic.pop(name, None)  # the number may become another name's

    def search(self, names: Sequence[int], values: Sequence[Any]) -> list[Ints | None]:
        """Search the index of each value's name."""
        answers = [self._found(name, value) for name, value in zip(names, values, strict=True)]
        self._learn_search(names, values, answers)
        return answers

    def search_texts(self, name: int, texts: Texts) -> tuple[Ints, Ints]:
        """As `search` of a column under one name, in one go where an index tells all: handles, and where each's end."""
        on_meridian = self._degrees and bool((texts.boxes[:, 0] == 180.0).any())
        if name in self._refused or self._similar.has(name) or on_meridian:
            found = self.search([name] * len(texts), [texts[place] for place in range(len(texts))])
            ends = np.cumsum([0 if each is None else len(each) for each in found])
            return np.concatenate([each for each in found if each is not None] or [_NO_HANDLES]), ends
        index = self._indexes.get(name)
        if index is None:
            return _NO_HANDLES, np.zeros(len(texts), np.int64)
        hits, ends = index.search_many(texts.offsets, texts.words, texts.vocabulary, texts.boxes)
        shaped = np.flatnonzero(self._records.flags[hits] & _SHAPED)
        if len(shaped):
            held = np.ones(len(hits), np.bool_)
            for hit, place in zip(shaped.tolist(), np.searchsorted(ends, shaped, side="right").tolist(), strict=True):
                held[hit] = self._holds(int(hits[hit]), texts[place])
            hits, ends = hits[held], np.concatenate(([0], np.cumsum(held)))[ends]
        for place in self._searched.chosen(len(texts)):
            mine = hits[ends[place - 1] if place else 0 : ends[place]]
            self._learn_value(self._traffic_of(name), texts[place], mine.tolist())
        return hits, ends

    def _learn_value(self, traffic: Traffic, value: Any, found: list[int]) -> None:
        traffic.meet(value.box, found)
        traffic.read(value.keywords)

    def boxes(self, handles: Ints) -> Floats:
        """The boxes of what is asked for; infinite where that is anywhere."""
        boxes = np.full((len(handles), 4), np.inf)
        for place, handle in enumerate(handles.tolist()):
            value = self._records.get(handle)[2]
            if isinstance(value, TextMatch) and value.within is not None:
                boxes[place] = value.within.bounds
        return boxes

    def _guesses(self, handles: Ints) -> Floats:
        """How common the keywords are, and how much of the universe the place is."""
        boxes, names = self.boxes(handles), self._records.flags[handles] >> NAME_BITS
        shares = np.ones(len(handles))
        for name in np.unique(names).tolist():
            traffic = self._traffic_of(name)
            bounded = (names == name) & (boxes[:, 0] < np.inf)
            traffic.widen(boxes[bounded])
            shares[bounded] = traffic.touching(boxes[bounded])
        for place, handle in enumerate(handles.tolist()):
            name, _, value = self._records.get(handle)
            if isinstance(value, Negated):
                continue
            # About roads nothing is guessed.
            shares[place] *= self._traffic_of(name).having(value.keywords) if isinstance(value, TextMatch) else 0.0
        return shares

    def _found(self, name: int, value: Any) -> Ints | None:
        parts = [self._matching(name, value), self._similar.search(name, value), self._not_refused(name, value)]
        some = [part for part in parts if part is not None]
        if len(some) < 2:
            return some[0] if some else None
        return np.concatenate(some)

    def _matching(self, key: int, value: Any) -> Ints | None:
        """Of an index, the handles of the `matches` that hold, or of those that are negated."""
        index = self._indexes.get(key)
        if index is None:
            return None
        found = index.search(value.keywords, value.box)
        if self._degrees and (other := other_text(value)) is not None:
            found = np.union1d(found, index.search(other.keywords, other.box))
        allowance.spend(_WORD_COST * (len(value.keywords) + len(found)))
        shaped = self._records.flags[found] & _SHAPED != 0
        if shaped.any():
            refused = key < 0
            checks = zip(found.tolist(), shaped, strict=True)
            found = found[[not check or self._holds(h, value) != refused for h, check in checks]]
        return found

    def _not_refused(self, name: int, value: Any) -> Ints | None:
        """The posted `not matches` and `not similar` that hold: all but those whose opposite does."""
        posted = self._refused.get(name)
        if posted is None:
            return None
        allowance.spend(_WORD_COST * len(posted))
        handles = np.array(sorted(posted), np.int64)
        found = self._matching(~name, value)
        if found is not None:
            handles = np.setdiff1d(handles, found, assume_unique=True)
        similar = self._records.flags[handles] & _SIMILAR != 0
        if not similar.any():
            return handles
        held = np.ones(len(handles), np.bool_)
        held[similar] = [not self._is_similar(handle, value) for handle in handles[similar].tolist()]
        return handles[held]

    def _holds(self, handle: int, value: Any) -> bool:
        if not self._degrees:
            return super()._holds(handle, value)
        allowance.spend(self._cost(handle, value))
        return holds_in_degrees(self.constraint(handle, "x"), value, roads=self.settings.road_network)

    def _is_similar(self, handle: int, value: Any) -> bool:
        wanted, network = self._asked(handle)[1], self.settings.road_network
        assert network is not None
        return network.similar(wanted.keywords, wanted.at, wanted.alpha, wanted.tau, value)

    def _cost(self, handle: int, _value: Any) -> int:
        wanted = _wanted(self._records.get(handle)[2])
        within = wanted.within if isinstance(wanted, TextMatch) else None
        return OBJECTS_COST + _WORD_COST * (len(wanted.keywords) + (0 if within is None else len(within)))

    def holds(self, numbers: Ints, handles: Ints, values: Sequence[Any]) -> NDArray[np.bool_]:
        """Evaluate pairs; those of `similar` together for each value."""
        similar = self._records.flags[handles] & _SIMILAR != 0
        network = self.settings.road_network
        if network is None or not similar.any():
            held = super().holds(numbers, handles, values)
            self._learn_pairs(handles, held)
            return held
        held = np.empty(len(numbers), np.bool_)
        held[~similar] = super().holds(numbers[~similar], handles[~similar], values)
        for number in np.unique(numbers[similar]).tolist():
            mine = np.flatnonzero(similar & (numbers == number))
            wanted = [self._asked(handle)[1] for handle in handles[mine].tolist()]
            alike = network.similar_many(((w.keywords, w.at, w.alpha, w.tau) for w in wanted), values[number])
            held[mine] = np.asarray(alike) != (self._records.flags[handles[mine]] & _REFUSED != 0)
        return held

    def _asked(self, handle: int) -> tuple[int, Similar]:
        """The name and the operand of a `similar` constraint."""
        name, _, value = self._records.get(handle)
        return name, cast("Similar", _wanted(value))

    def _check(self) -> None:
        super()._check()
        assert len(self._signs.array) >= len(self._records)
        similar, refused = (set(self._records.marked(mark).tolist()) for mark in (_SIMILAR, _REFUSED))
        posted = self._posted()
        assert self._refused == {name: handles & refused for name, handles in posted.items() if handles & refused}
        wanted = {name: handles - refused for name, handles in posted.items()}
        self._similar._check({name: handles & similar for name, handles in wanted.items() if handles & similar})
        indexed = wanted | {~name: handles for name, handles in self._refused.items()}
        assert {key: len(handles - similar) for key, handles in indexed.items() if handles - similar} == {
            key: len(index) for key, index in self._indexes.items()
        }
        for index in self._indexes.values():
            index._check()


def _promise(coverer: TextMatch, covered: TextMatch) -> float:
    """How likely one `matches` covers another, by keywords and boxes: 0 and infinity are certain."""
    if not coverer.keywords <= covered.keywords:
        return 0.0
    if coverer.within is None:
        return np.inf
    if covered.within is None:
        return 0.0
    (ax1, ay1, ax2, ay2), (bx1, by1, bx2, by2) = coverer.within.bounds, covered.within.bounds
    if not (ax1 <= bx1 and ay1 <= by1 and ax2 >= bx2 and ay2 >= by2):
        return 0.0
    return np.inf if type(coverer.within) is Box else 1.0


def _wanted(operand: object) -> TextMatch | Similar:
    """What a constraint asks for, or refuses."""
    return cast("TextMatch | Similar", operand.operand if isinstance(operand, Negated) else operand)
