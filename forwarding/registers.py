"""Numbers for names and for interfaces: small, dense, given again when released."""

from __future__ import annotations

from typing import Generic, Self, TypeVar, cast

_T = TypeVar("_T")


class Register(Generic[_T]):
    """Objects and their numbers, from 1. `numbers` and `objects` are read directly where that is hot."""

    def __init__(self) -> None:
        self.numbers: dict[_T, int] = {}
        self.objects: list[_T | None] = [None]
        self._free: list[int] = []

    @classmethod
    def of(cls, objects: list[_T | None]) -> Self:
        """A register with these objects, from number 0, which is nobody's, on; None for numbers that are free."""
        register = cls()
        register.objects = objects
        register.numbers = dict(zip(objects, range(len(objects)), strict=True))  # type: ignore[arg-type]
        register.numbers.pop(None, 0)  # type: ignore[arg-type]  # the loops are in C: there may be millions
        if len(register.numbers) + 1 < len(objects):
            register._free = [i for i, thing in enumerate(objects) if i and thing is None]
        return register

    def number(self, thing: _T) -> int:
        """Its number, given when it is new."""
        number = self.numbers.get(thing)
        if number is None:
            if self._free:
                number = self._free.pop()
                self.objects[number] = thing
            else:
                number = len(self.objects)
                self.objects.append(thing)
            self.numbers[thing] = number
        return number

    def find(self, thing: _T) -> int:
        """Its number, or 0."""
        return self.numbers.get(thing, 0)

    def release(self, number: int) -> None:
        """Forget the object of a number."""
        del self.numbers[cast("_T", self.objects[number])]
        self.objects[number] = None
        self._free.append(number)

    def __contains__(self, thing: _T) -> bool:
        return thing in self.numbers

    def __len__(self) -> int:
        return len(self.numbers)
