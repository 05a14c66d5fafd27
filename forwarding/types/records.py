"""The constraints of one plugged-in type, each once, by handle. Those of a loaded table stay in its file.

    flags   (n,)   per handle: name << 8 | marks; 0 for a handle that is free
    saved          of a loaded table: `text[ends[h - 1] : ends[h]]` is what the codec wrote for handle h; `hashes.py`
                   finds the handles of such bytes

A constraint is the key (name, operator, operand). Keys made since loading are in a dictionary; a saved one is decoded
when it is first asked for, and looked up by the hash of its bytes, so that loading takes no time per constraint. A
saved handle that was let go of is `gone`: its bytes stay in the file and mean nothing any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

import numpy as np

from contrada.errors import ContradaError, CorruptFile
from contrada.forwarding.codec.limits import NO_LIMITS
from contrada.forwarding.codec.msgpack import decode_filter, encode_filter
from contrada.forwarding.language.constraint import Constraint
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.state.growable import GrowableArray
from contrada.forwarding.state.hashes import Hashes, hash_of
from contrada.spatial.storage.row_numbers import check_offsets, check_shapes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.forwarding.language.constraint import Operand, Operator

    Key: TypeAlias = tuple[int, Operator, Operand]

ALIVE: Final = 1
POSTED: Final = 2
FIRST_MARK: Final = 4  # the lowest that a type may use for itself
SHAPES: Final = {"flags": (np.int64, ()), "text": (np.uint8, ()), "ends": (np.int64, ())}
NAME_BITS: Final = 8  # bits below a name
_MARKS: Final = (1 << NAME_BITS) - 1


class Saved(NamedTuple):
    """Different constraints by handle, as a file has them: codec bytes up to `ends`, their hashes, and their names."""

    text: NDArray[np.uint8]
    ends: Ints
    hashes: NDArray[np.uint64]
    names: Ints


class Records:
    """Handles, dense and reused, and the constraints they stand for."""

    def __init__(self) -> None:
        self._flags = GrowableArray(0, 256)
        self._keys: list[Key | None] = []
        self._handles: dict[Key, int] = {}  # of keys that are not saved
        self._free: list[int] = []
        self._text: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._ends: Ints = np.zeros(0, np.int64)
        self._hashes = Hashes.of(())
        self._gone: NDArray[np.bool_] = np.zeros(0, np.bool_)

    @property
    def marks(self) -> GrowableArray:
        """What `flags` is the array of."""
        return self._flags

    @property
    def flags(self) -> Ints:
        """The marks of each handle, under its name."""
        return self._flags.array

    def find(self, key: Key) -> int:
        """The handle of a key, or -1."""
        handle = self._handles.get(key)
        if handle is not None:
            return handle
        return self._find_saved(key) if len(self._ends) else -1

    def _find_saved(self, key: Key) -> int:
        wanted = _encoded(key)
        for handle in self._hashes.owners(hash_of(wanted, key[0])):
            if not self._gone[handle] and self.name(handle) == key[0] and self._bytes(handle) == wanted:
                return handle
        return -1

    def next(self) -> int:
        """The handle that `add` will give."""
        return self._free[-1] if self._free else len(self._keys)

    def add(self, key: Key) -> int:
        """A handle for a new key."""
        handle = self.next()
        if self._free:
            self._free.pop()
            self._keys[handle] = key
        else:
            self._keys.append(key)
            self._flags.reserve(handle + 1)
        self._handles[key] = handle
        self.flags[handle] = key[0] << NAME_BITS | ALIVE
        return handle

    def remove(self, handle: int) -> None:
        """Let a handle go."""
        if self._is_saved(handle):
            self._gone[handle] = True
        else:
            del self._handles[self.get(handle)]
        self._keys[handle] = None
        self.flags[handle] = 0
        self._free.append(handle)

    def get(self, handle: int) -> Key:
        """The key of a handle."""
        key = self._keys[handle]
        if key is None:
            assert self._is_saved(handle)
            try:
                (constraint,) = decode_filter(self._bytes(handle), NO_LIMITS).filters[0].constraints
            except (ContradaError, ValueError, IndexError) as error:
                raise CorruptFile(f"a constraint that the codec did not write: {error}") from error
            key = self._keys[handle] = (self.name(handle), constraint.op, constraint.value)
        return key

    def name(self, handle: int) -> int:
        """The name of a handle in use."""
        return int(self.flags[handle]) >> NAME_BITS

    def mark(self, handle: int, mark: int) -> None:
        """Set a mark."""
        self.flags[handle] |= mark

    def unmark(self, handle: int, mark: int) -> None:
        """Take a mark back."""
        self.flags[handle] &= ~mark

    def marked(self, mark: int) -> Ints:
        """The handles that have a mark, ascending."""
        return np.flatnonzero(self.flags[: len(self._keys)] & mark)

    @property
    def top(self) -> int:
        """One more than the largest handle there has been."""
        return len(self._keys)

    def __len__(self) -> int:
        return len(self._keys) - len(self._free)

    def _is_saved(self, handle: int) -> bool:
        return handle < len(self._ends) and not self._gone[handle]

    def _bytes(self, handle: int) -> bytes:
        start = int(self._ends[handle - 1]) if handle else 0
        return self._text[start : int(self._ends[handle])].tobytes()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What to save."""
        count = len(self._keys)
        kept = 0 if self._gone.any() else len(self._ends)  # bytes that are as they were saved
        texts = [b""] * (count - kept)
        for handle in (kept + np.flatnonzero(self.flags[kept:count] & ALIVE)).tolist():
            saved = self._is_saved(handle)
            texts[handle - kept] = self._bytes(handle) if saved else _encoded(self.get(handle))
        later = [(hash_of(text, self.name(handle)), handle) for handle, text in enumerate(texts, kept) if text]
        before = int(self._ends[kept - 1]) if kept else 0
        ends = before + np.cumsum([len(text) for text in texts], dtype=np.int64)
        return {
            "flags": self.flags[:count],
            "text": np.concatenate((self._text[:before], np.frombuffer(b"".join(texts), np.uint8))),
            "ends": np.concatenate((self._ends[:kept], ends)),
            **(self._hashes if kept else Hashes.of(())).joined(later).arrays(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Invert `arrays`; they may be mapped from a file, and are read as they are needed."""
        records = cls()
        check_shapes("constraints", arrays, SHAPES)
        flags = arrays["flags"]
        records._text, records._ends = arrays["text"], arrays["ends"]
        records._hashes = Hashes.from_arrays(arrays, len(flags))
        if len(records._ends) != len(flags) or (flags < 0).any():
            raise CorruptFile("constraints and their handles do not fit together")
        check_offsets("constraints", np.concatenate(([0], records._ends)), len(records._text))
        records._flags = GrowableArray.over(flags)
        records._keys = [None] * len(flags)
        records._free = np.flatnonzero(flags == 0).tolist()
        records._gone = np.zeros(len(flags), np.bool_)
        records._gone[records._free] = True
        return records

    @classmethod
    def of(cls, saved: Saved) -> Self:
        """Records of many constraints at once."""
        hashes = Hashes.sorted(saved.hashes, np.arange(len(saved.ends)))
        flags = saved.names << NAME_BITS | ALIVE
        return cls.from_arrays({"flags": flags, "text": saved.text, "ends": saved.ends, **hashes.arrays()})

    def _check(self) -> None:
        count = len(self._keys)
        assert sorted(self._free) == np.flatnonzero(self.flags[:count] == 0).tolist()
        assert not self.flags[count:].any()
        for key, handle in self._handles.items():
            assert self._keys[handle] == key
            assert not self._is_saved(handle)
        for handle in self.marked(ALIVE).tolist():
            key = self.get(handle)
            assert key[0] == self.name(handle)
            assert self.find(key) == handle


def _encoded(key: Key) -> bytes:
    """A constraint as the codec writes it; its name, which is a number here, is left out."""
    return encode_filter(Filter((Constraint("x", key[1], key[2]),)))
