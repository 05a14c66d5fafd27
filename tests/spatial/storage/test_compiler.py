"""Kernels that call kernels: one piece of machine code for each entry, and the answers of plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import pytest

from contrada.spatial.storage import kernel_cache
from contrada.spatial.storage.compiler import BaseFunction, CalleeLibrary, EntryLibrary
from contrada.spatial.storage.jit import bare_kernel, kernel

if TYPE_CHECKING:
    from pathlib import Path


@bare_kernel
def add_one(values: np.ndarray[Any, Any], place: int) -> int:
    return int(values[place]) + 1


@bare_kernel
def double(values: np.ndarray[Any, Any], place: int) -> int:
    return add_one(values, place) * 2


@kernel
def total(values: np.ndarray[Any, Any]) -> int:
    found = 0
    for place in range(len(values)):
        found += double(values, place)
    return found + double(values, 0)


@kernel
def fibonacci(number: int) -> int:
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


@kernel
def add_fibonacci(number: int) -> int:
    return fibonacci(number) + 1


@kernel
def refuse(number: int) -> int:
    if number < 0:
        raise ValueError("below zero")
    return number


@kernel
def ask(number: int) -> int:
    return refuse(number) + 1


@kernel
def middle(values: np.ndarray[Any, Any], at: int) -> float:
    return float(np.median(values[at:]) + np.argmin(values))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(kernel_cache.VARIABLE, str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def test_only_what_python_calls_becomes_machine_code(cache: Path) -> None:
    assert total(np.arange(5)) == 2 * 15 + 2
    assert [path.name.split("-")[0].rsplit(".", 1)[1] for path in cache.iterdir()] == ["total"]
    assert isinstance(next(iter(total.overloads.values())).library, EntryLibrary)
    callee: Any = double._callee
    (compiled,) = callee.overloads.values()  # a constant argument makes no second one
    assert isinstance(compiled.library, CalleeLibrary)
    assert double(np.arange(5), 2) == 6  # and Python may call it all the same


def test_what_python_and_kernels_call_is_typed_and_lowered_once() -> None:
    told: list[str] = []
    kernel_cache.compiled.append(told.append)
    try:
        assert refuse(np.uint8(1)) == 1
        assert ask(np.uint8(1)) == 2
    finally:
        kernel_cache.compiled.remove(told.append)
    assert [name.rsplit(".", 1)[1] for name in told] == ["refuse", "ask"]
    (callee,) = (each for types, each in _callees(refuse).items() if "uint8" in str(types))
    (entry,) = (each for types, each in refuse.overloads.items() if "uint8" in str(types))
    assert entry.fndesc.mangled_name == callee.fndesc.mangled_name


def _callees(called: Any) -> dict[Any, Any]:
    overloads: dict[Any, Any] = called._callee.overloads
    return overloads


def test_numbas_own_functions_are_callees_of_kernels_and_whole_for_others() -> None:
    values = np.arange(9.0)
    assert middle(values, 2) == 5.0
    (entry,) = middle.overloads.values()
    plain = {each.name for each in entry.library._linking_libraries if not isinstance(each, CalleeLibrary)}
    assert plain <= {"nrt"}  # numba's runtime is there before any kernel

    @numba.njit
    def of_another(values: np.ndarray[Any, Any]) -> float:
        return float(np.median(values) + np.argmin(values[1:]))

    assert of_another(values) == 4.0
    with pytest.raises(ValueError, match="argmin of an empty"):
        of_another(values[:1])


def test_recursion_from_python_and_from_a_kernel() -> None:
    assert add_fibonacci(10) == 56
    assert fibonacci(10) == 55


def test_recursion_that_changes_types_is_refused() -> None:
    with pytest.raises((TypeError, KeyError)):  # KeyError is numba's own, where the callee is known already
        add_fibonacci(np.int32(10))


def test_an_error_in_a_callee_reaches_python() -> None:
    assert ask(1) == 2
    with pytest.raises(ValueError, match="below zero"):
        ask(-1)


def test_numba_is_left_as_it_was() -> None:
    before = BaseFunction.get_call_type
    assert refuse(np.int32(3)) == 3
    assert BaseFunction.get_call_type is before
