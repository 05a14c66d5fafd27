"""Compiled kernels on disk, found again by what they were compiled from.

Numba's own cache lies beside the source and is keyed by the file's modification time: every clone and every virtual
environment compiles all over again, and a change in a kernel that another module's kernel has inlined goes unnoticed.
Here one file holds one compiled signature, and its name is a digest of everything that the machine code depends on:

    the kernel         its bytecode, constants (the docstring left out) and compiler options; the values of the
                       globals it names; and the same of every kernel that it calls, directly or not
    the signature      argument types, with the field names of named tuples
    the compiler       versions of Python, numba, llvmlite and numpy; the processor and its features; numba's settings
                       (NUMBA_OPT, NUMBA_BOUNDSCHECK, …) where they are not the usual ones; what `compiler.py` does
    the package        the module and name of the kernel: pickled types refer to modules by name

A change of any of these is another name, so nothing stale is ever found, nothing needs clearing by hand, and clones,
environments and branches share one folder. A file is its magic, the digest of its key, the digest of its payload, and
the payload, a pickle. It is read only if both digests agree, and only from folders that nobody else can write to.

Folders, in order of search:

    contrada/_kernels  inside the installed package, if a wheel carries compiled kernels; never written to
    the user's cache   $CONTRADA_KERNELS, or `contrada/kernels` below the platform's cache folder; compiled kernels
                       are written here, through a temporary file and a rename; what root keeps, others may read

Where that cannot be written, kernels are compiled and not kept, and a warning says so, once in a process.
"""

from __future__ import annotations

import enum
import hashlib
import logging
import os
import pickle
import stat
import sys
from functools import cache
from pathlib import Path
from secrets import token_hex
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

import llvmlite
import numba
import numpy as np
from numba.core import config as _config
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult as _CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.core.serialize import dumps as _dumps
from numba.core.types import BaseTuple, NamedTuple, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VARIABLE: Final = "CONTRADA_KERNELS"  # names another folder than the user's cache
_MAGIC: Final = b"contrada kernel 3\n"
_DIGEST: Final = hashlib.sha256().digest_size
_OPTIONS: Final = ("nogil", "forceinline", "_nrt", "boundscheck", "fastmath")
_VERSIONS: Final = (_MAGIC, sys.version_info[:3], sys.implementation.cache_tag, numba.__version__, llvmlite.__version__)
_PACKAGE: Final = "contrada."

_COMPILER: Final = Path(__file__).with_name("compiler.py")

_USUAL: Final = {  # numba's settings that change machine code, as they are if nobody has set them
    "OPT": 3,
    "BOUNDSCHECK": None,
    "LOOP_VECTORIZE": 1,
    "SLP_VECTORIZE": 0,
    "DEBUGINFO_DEFAULT": 0,
    "LLVM_REFPRUNE_PASS": 1,
    "USING_SVML": False,
}

log = logging.getLogger(__name__)
CompileResult: Any = _CompileResult  # numba has no types for these
dumps: Any = _dumps

used: Final[set[Path]] = set()  # the files that this process has read kernels from or written them to
compiled: Final[list[Callable[[str], None]]] = []  # told the name of each kernel that was compiled, not found


def tell_compiled(function: FunctionType) -> None:
    """Tell those who listen that a kernel was compiled."""
    for listener in compiled:
        listener(_name(function))


def _name(function: FunctionType) -> str:
    return f"{function.__module__.removeprefix(_PACKAGE)}.{function.__qualname__}"


class KernelCache(_Cache):
    """The compiled signatures of one kernel, as numba's dispatcher asks for them."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._name = _name(function)

    @property
    def cache_path(self) -> str:
        """The folder that compiled signatures are written to."""
        return str(user_folder())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled code for a signature, None if it has to be compiled."""
        target_context.refresh()
        key = self._key(sig, target_context.codegen())
        for folder in _folders():
            path = folder / self._file_name(key)
            if (payload := _read(path, key)) is not None:
                used.add(path)
                return CompileResult._rebuild(target_context, *pickle.loads(payload))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for a signature."""
        tell_compiled(self._function)
        if data.library.has_dynamic_globals or data.lifted:  # it holds addresses of this process
            return
        key = self._key(sig, data.codegen)
        path = user_folder() / self._file_name(key)
        used.add(path)
        _write(path, key, dumps(data._reduce()))

    def _key(self, signature: Any, codegen: Any) -> bytes:
        parts = (kernel_digest(self._function), _describe_signature(signature), codegen.magic_tuple(), _VERSIONS)
        compiler = (module_digest(_COMPILER), np.__version__, *_unusual_settings())
        return hashlib.sha256(repr((*parts, *compiler)).encode()).digest()

    def _file_name(self, key: bytes) -> str:
        return f"{self._name.replace('<', '').replace('>', '')}-{key.hex()[:32]}.kernel"

    def enable(self) -> None:
        """Nothing to do: it always is."""

    def disable(self) -> None:
        """Nothing to do: what is found is never stale."""

    def flush(self) -> None:
        """Nothing to do: what is found is never stale."""


# -- what a kernel is made of ----------------------------------------------------------------------------------


@cache
def kernel_digest(function: FunctionType) -> bytes:
    """A digest of a kernel and of all that it calls, the same in every process and clone."""
    hasher = hashlib.sha256()
    reached = {function: None}  # in order of first mention
    waiting = [function]
    while waiting:
        text, callees = _describe_function(waiting.pop())
        hasher.update(text)
        for callee in callees:
            if callee not in reached:
                reached[callee] = None
                waiting.append(callee)
    return hasher.digest()


@cache
def module_digest(path: Path) -> bytes:
    """A digest of what a module does: of its source without comments and docstrings, wherever its lines stand."""
    code = compile(path.read_text(encoding="utf-8"), path.name, "exec", dont_inherit=True, optimize=2)
    return hashlib.sha256(repr([*_describe_code(code, skip_docstring=False)]).encode()).digest()


@cache
def _describe_function(function: FunctionType) -> tuple[bytes, tuple[FunctionType, ...]]:
    """One function by itself, and the functions that it refers to."""
    callees: list[FunctionType] = []
    text = [function.__module__, function.__qualname__, _describe(function.__defaults__, callees)]
    text += _describe_code(function.__code__, skip_docstring=function.__doc__ is not None)
    for name, value in _globals_of(function):
        text.append(f"{name}={_describe(value, callees)}")
    for cell in function.__closure__ or ():
        text.append(_describe(cell.cell_contents, callees))
    return repr(text).encode(), tuple(callees)


def _describe_code(code: CodeType, *, skip_docstring: bool) -> Iterator[str]:
    yield repr((code.co_code.hex(), code.co_names, code.co_varnames, code.co_argcount, code.co_flags))
    for place, constant in enumerate(code.co_consts):
        if isinstance(constant, CodeType):
            yield from _describe_code(constant, skip_docstring=False)
        elif place or not skip_docstring:
            shown = sorted(map(repr, constant)) if isinstance(constant, frozenset) else repr(constant)
            yield f"{type(constant).__name__} {shown}"


def _globals_of(function: FunctionType) -> Iterator[tuple[str, object]]:
    """The globals that a function names, and what it may take from modules of this package."""
    names = sorted(_names(function.__code__))
    for name in names:
        if name in function.__globals__:
            value = function.__globals__[name]
            yield name, value
            if isinstance(value, ModuleType) and value.__name__.startswith(_PACKAGE):
                for inner in names:
                    if hasattr(value, inner):
                        yield f"{name}.{inner}", getattr(value, inner)


def _names(code: CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _describe(value: object, callees: list[FunctionType]) -> str:
    """A text that two values share only if kernels compiled with either are the same; functions are also collected."""
    if isinstance(value, Dispatcher):
        callees.append(value.py_func)
        options = {name: value.targetoptions.get(name) for name in _OPTIONS}
        return f"kernel {value.py_func.__module__}.{value.py_func.__qualname__} {options}"
    if isinstance(value, _Intrinsic):
        return f"intrinsic {_describe(value._defn, callees)}"
    if isinstance(value, FunctionType):
        if value.__module__.startswith(_PACKAGE):
            callees.append(value)
        return f"function {value.__module__}.{value.__qualname__}"
    if isinstance(value, tuple | list):
        return f"{type(value).__qualname__}({', '.join(_describe(each, callees) for each in value)})"
    if isinstance(value, np.ndarray):
        return f"array {value.dtype.str} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, enum.Enum):
        return f"{type(value).__module__}.{type(value).__qualname__} {value.value!r}"
    if isinstance(value, type):
        return f"type {value.__module__}.{value.__qualname__} {getattr(value, '_fields', '')}"
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if value is None or isinstance(value, bool | int | float | str | bytes | np.generic | np.dtype | Type | frozenset):
        return f"{type(value).__qualname__} {sorted(value) if isinstance(value, frozenset) else value!r}"
    if callable(value) and hasattr(value, "__qualname__"):  # a builtin, or one of numpy's
        return f"callable {getattr(value, '__module__', '')}.{value.__qualname__}"
    if isinstance(value, np.ufunc):
        return f"ufunc {value.__name__}"
    raise TypeError(f"a kernel refers to {value!r}, of which the kernel cache cannot tell what it is made of")


def _unusual_settings() -> Iterator[str]:
    for name, usual in _USUAL.items():
        if (value := getattr(_config, name, usual)) != usual:
            yield f"{name}={value!r}"


def _describe_signature(signature: Any) -> str:
    arguments = signature if isinstance(signature, tuple) else signature.args
    return f"{signature} {[_describe_type(each) for each in arguments]}"


def _describe_type(type_: Any) -> object:
    if not isinstance(type_, BaseTuple):
        return str(type_)
    inner = [_describe_type(each) for each in getattr(type_, "types", ())]
    if not isinstance(type_, NamedTuple):
        return inner
    named = type_.instance_class
    return f"{named.__module__}.{named.__qualname__}", named._fields, inner


# -- folders and files -----------------------------------------------------------------------------------------


def user_folder() -> Path:
    """Where kernels compiled on this machine are kept."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else cache_folder() / "kernels"


def cache_folder() -> Path:
    """Where this platform has a user's caches: ours among them."""
    if sys.platform == "darwin":
        base = _home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or _home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache")
    return base / "contrada"


def _home() -> Path:
    """The user's home; of one who has none, a place below which nothing can be kept."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.devnull)


def packaged_folder() -> Path:
    """Where a wheel carries the kernels that were compiled when it was built."""
    return Path(sys.modules["contrada"].__path__[0]) / "_kernels"


def _folders() -> Iterator[Path]:
    yield packaged_folder()
    folder = user_folder()
    if is_ours(folder):
        yield folder


def is_ours(folder: Path) -> bool:
    """Whether nobody else can have put a file there: what is in it is unpickled and run."""
    try:
        status = folder.stat()
    except OSError:
        return False
    if sys.platform == "win32":
        return stat.S_ISDIR(status.st_mode)
    trusted = status.st_uid in (os.getuid(), 0)
    return stat.S_ISDIR(status.st_mode) and trusted and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _read(path: Path, key: bytes) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    start = len(_MAGIC) + 2 * _DIGEST
    head = _MAGIC + key + hashlib.sha256(memoryview(content)[start:]).digest()
    return content[start:] if content[:start] == head else None


def _write(path: Path, key: bytes, payload: bytes) -> None:
    folder = path.parent
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        if not is_ours(folder):
            _warn_of(folder, "others may write to it")
            return
        _replace(path, _MAGIC + key + hashlib.sha256(payload).digest() + payload)
    except OSError as error:  # a folder that cannot be written to, a full disk: it is compiled again next time
        _warn_of(folder, error.strerror or str(error))


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f"{token_hex(8)}.partial")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
            file.write(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@cache
def _warn_of(folder: Path, why: str) -> None:
    log.warning("compiled kernels cannot be kept in %s: %s; %s names another folder", folder, why, VARIABLE)
