"""Numbers for names and for interfaces: small, dense, given again when released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

import numpy as np

from contrada.forwarding.batches.indexed import own_name, twins_of
from contrada.forwarding.kernels.memory.names import NameIndex, Names
from contrada.forwarding.state.hashes import Hashes, hash_of, hashes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contrada.forwarding.kernels.memory.layout import Ints

_T = TypeVar("_T")


class Numbering(Generic[_T]):
    """Objects and their numbers, from 1. `numbers` and `objects` are read directly where that is hot."""

    def __init__(self) -> None:
        self.numbers: dict[_T, int] = {}
        self.objects: list[_T | None] = [None]
        self._array: NDArray[np.object_] = np.empty(0, object)  # the same, once somebody has asked for that
        self._free: list[int] = []

    @classmethod
    def of(cls, objects: list[_T | None]) -> Self:
        """A numbering with these objects, from number 0, which is nobody's, on; None for numbers that are free."""
        numbering = cls()
        numbering.objects = objects
        numbering.numbers = {thing: i for i, thing in enumerate(objects) if thing is not None}
        numbering._free = [i for i, thing in enumerate(objects) if i and thing is None]
        return numbering

    def number(self, thing: _T) -> int:
        """Its number, given when it is new."""
        number = self.find(thing)
        if not number:
            if self._free:
                number = self._free.pop()
                self.objects[number] = thing
            else:
                number = len(self.objects)
                self.objects.append(thing)
            self.numbers[thing] = number
            if number < len(self._array):
                self._array[number] = thing
        return number

    def find(self, thing: _T) -> int:
        """Its number, or 0."""
        return self.numbers.get(thing, 0)

    def release(self, number: int) -> None:
        """Forget the object of a number."""
        self.numbers.pop(cast("_T", self.objects[number]), None)
        self.objects[number] = None
        if number < len(self._array):
            self._array[number] = None
        self._free.append(number)

    def at(self, numbers: Ints) -> list[_T]:
        """The objects of many numbers, without an integer object for each."""
        if len(self._array) < len(self.objects):
            room = np.empty(2 * len(self.objects), object)
            room[: len(self.objects)] = np.fromiter(self.objects, object, len(self.objects))
            self._array = room
        found: list[_T] = self._array[numbers].tolist()
        return found

    def __contains__(self, thing: _T) -> bool:
        return self.find(thing) != 0

    def __len__(self) -> int:
        return len(self.objects) - 1 - len(self._free)


class NameNumbers(dict[str, int]):
    """Numbers of names; and of attributes whose folded twins have one, the twins' names (batches/indexed.py)."""

    __slots__ = ("folded",)

    def __init__(self, numbers: Mapping[str, int]) -> None:
        super().__init__(numbers)
        self.folded = twins_of(numbers)


class NameNumbering(Numbering[str]):
    """A numbering of attributes' names, which compiled code can ask too once somebody has asked for that."""

    numbers: NameNumbers

    def __init__(self) -> None:
        super().__init__()
        self.numbers = NameNumbers({})
        self._index: NameIndex | None = None
        self.changes = 0  # how often a number was given or released

    @classmethod
    def of(cls, objects: list[str | None]) -> Self:
        """As any numbering."""
        numbering = super().of(objects)
        numbering.numbers = NameNumbers(numbering.numbers)
        return numbering

    @property
    def names(self) -> Names:
        """What compiled code asks; new arrays may replace them when a name comes."""
        if self._index is None:
            self._index = NameIndex(self.objects)
        return self._index.names

    def number(self, thing: str) -> int:
        """Its number, given when it is new."""
        before = len(self.numbers)
        number = super().number(thing)
        if len(self.numbers) > before:
            self.changes += 1
            if (own := own_name(thing)) is not None:
                self.numbers.folded[own] = thing
            if self._index is not None:
                self._index.add(number, thing)
                self._pair(thing if own is None else own)
        return number

    def _pair(self, own: str) -> None:
        """Tell compiled code of an attribute's folded twin."""
        if self._index is not None and own in self.numbers:
            self._index.pair(self.numbers[own], self.numbers.get(self.numbers.folded.get(own, ""), 0))

    def release(self, number: int) -> None:
        """Forget the name of a number."""
        if (own := own_name(cast("str", self.objects[number]))) is not None:
            del self.numbers.folded[own]
            self._pair(own)
        super().release(number)
        self.changes += 1
        if self._index is not None:
            self._index.discard(number)

    def _check(self) -> None:
        assert self.numbers.folded == twins_of(self.numbers)
        if self._index is not None:
            self._index._check()


class SavedNumbering(Numbering[Any]):
    """A numbering of strings from a file. Those are found by hash, as there may be millions, later ones as ever."""

    def __init__(self, texts: list[str | None], hashes: Hashes) -> None:
        super().__init__()
        self.objects = texts
        self._hashes = hashes
        self._free = [i for i, text in enumerate(texts) if i and text is None] if None in texts[1:] else []

    def find(self, thing: Any) -> int:
        """Its number, or 0."""
        number = self.numbers.get(thing, 0)
        if not number and isinstance(thing, str):
            for number in self._hashes.owners(hash_of(thing.encode("utf-8", "surrogatepass"))):
                if self.objects[number] == thing:
                    return number
            return 0
        return number


def saved_hashes(numbering: Numbering[Any]) -> Hashes:
    """What finds the strings of a numbering once it is saved."""
    owners = [i for i, text in enumerate(numbering.objects) if text is not None]
    encoded = [text.encode("utf-8", "surrogatepass") for text in numbering.objects if text is not None]
    ends = np.cumsum([len(each) for each in encoded], dtype=np.int64)
    text = np.frombuffer(b"".join(encoded), np.uint8)
    return Hashes.sorted(hashes_of(text, ends, np.zeros(len(owners), np.int64)), np.array(owners, np.int64))
