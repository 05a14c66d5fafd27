"""Kernels compiled the short way: what kernels call is typed once, and only what Python calls becomes machine code.

Numba compiles every function by itself: it types it, lowers it, links in everything that it calls, optimises all that
and emits machine code, with an entry for Python. A kernel that only other kernels call needs neither its own machine
code nor the entry, and with ten levels of calls its instructions are optimised ten times. Here a kernel has two sides:

    the callee      what kernels call: typed and lowered once for all of them, and no more
    the entry       what Python calls: the callee, with all that it reaches and a wrapper that takes Python's objects,
                    linked and optimised as one, emitted, kept on disk

Both are numba's own dispatchers and code libraries; what differs is when a library is linked and optimised. A callee's
library is left as it was lowered, and an entry's library links what it reaches through any number of callees. So are
the libraries of numba's own functions that are compiled on the way (`np.empty`, slices, …).

Half of what is left is typing, and most of that is asking again what an int64 plus an int64 is: while a kernel is
compiled, what numba answers for given types is remembered (`_remembered_answers`), and Python's collector waits.

Kernels may call themselves, with the types that they were called with.

Source: numba's documented `pipeline_class` chooses the library; `Dispatcher.get_call_template` and `get_overload` are
how numba asks a kernel for its callee side.
"""

from __future__ import annotations

from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import llvmlite.binding
import llvmlite.ir
from numba.core import codegen as numba_codegen
from numba.core import types
from numba.core.compiler import Compiler as _Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext as _CPUContext
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]  # numba's stubs leave it out
from numba.core.environment import Environment as _Environment
from numba.core.registry import CPUDispatcher as _CPUDispatcher
from numba.core.sigutils import normalize_signature as _normalize_signature
from numba.core.targetconfig import ConfigStack as _ConfigStack
from numba.core.types.functions import BaseFunction as _BaseFunction

from contrada.spatial.storage import kernel_cache
from contrada.spatial.storage.garbage import no_collection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Numba has no types for these.
Compiler: Any = _Compiler
CPUContext: Any = _CPUContext
CPUDispatcher: Any = _CPUDispatcher
FunctionCompiler: Any = _FunctionCompiler
Environment: Any = _Environment
RuntimeLinker: Any = numba_codegen.RuntimeLinker
JITCodeLibrary: Any = numba_codegen.JITCodeLibrary
ConfigStack: Any = _ConfigStack
BaseFunction: Any = _BaseFunction
normalize_signature: Any = _normalize_signature
unliteral: Any = types.unliteral


# Types that say all that an answer depends on; a tuple does if its fields do.
_PLAIN: Final = (types.Number, types.Boolean, types.Literal, types.Array, types.SliceType, types.NoneType)
_answers: Final[dict[tuple[int, Any, str], tuple[Any, Any]]] = {}


class CalleeLibrary(JITCodeLibrary):  # type: ignore[misc]  # numba has no types
    """Code that waits to be linked into the entries that reach it: lowered, not optimised, without addresses."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.environments: dict[str, Any] = {}  # objects that the code refers to, by the name of the variable
        self._whole: EntryLibrary | None = None

    @property
    def codegen(self) -> CalleeLibrary:
        """Itself: numba asks it only to set environments, whose variables have addresses in entries alone."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Remember what to set in each entry."""
        self.environments[name] = environment

    def _optimize_functions(self, ll_module: Any) -> None:
        _optimize_functions(self._codegen, ll_module)

    def finalize(self) -> None:
        """Take no more code in."""
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Zero: it is not machine code."""
        self._ensure_finalized()
        return 0

    def lowered(self) -> Any:
        """The code by itself, for entries to link."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """The code with all that it reaches, for functions that numba compiles its own way and that use it too."""
        if self._whole is None:
            self._whole = EntryLibrary(self._codegen, self.name)
            self._whole._final_module.link_in(self._final_module, preserve=True)
            for library in self._linking_libraries:
                self._whole.add_linking_library(library)
            self._whole.finalize()
            for name, environment in self.environments.items():
                self._codegen.set_env(name, environment)
        return self._whole._get_module_for_linking()


class EntryLibrary(JITCodeLibrary):  # type: ignore[misc]  # numba has no types
    """Machine code for Python to call, all callees inside."""

    _linking_libraries: list[Any]

    def serialize_using_object_code(self) -> Any:
        """The machine code and the names that it defines; the instructions are left out, for nothing links an entry."""
        self._ensure_finalized()
        names = llvmlite.ir.Module()
        nothing = llvmlite.ir.FunctionType(llvmlite.ir.VoidType(), ())
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvmlite.binding.Linkage.external:
                named = llvmlite.ir.Function(names, nothing, function.name)
                llvmlite.ir.IRBuilder(named.append_basic_block()).ret_void()
        bitcode = llvmlite.binding.parse_assembly(str(names)).as_bitcode()
        return self.name, "object", (self._get_compiled_object(), bitcode)

    def _optimize_functions(self, ll_module: Any) -> None:
        _optimize_functions(self._codegen, ll_module)

    def finalize(self) -> None:
        """Link what is reached through callees as well, then optimise and emit."""
        reached = _reach(self._linking_libraries)
        for library in reached:
            self._reload_init.update(library._reload_init)
            code = library.lowered() if isinstance(library, CalleeLibrary) else library._get_module_for_linking()
            self._final_module.link_in(code, preserve=True)
        self._linking_libraries = []
        super().finalize()
        self._linking_libraries = reached  # environments live as long as what they are set in
        variables = {variable.name for variable in self._final_module.global_variables}
        for name in variables:
            if name.startswith(RuntimeLinker.PREFIX):
                raise TypeError(f"a kernel calls itself with other types than it was called with: {name}")
        for library in reached:
            if isinstance(library, CalleeLibrary):
                for name in variables & library.environments.keys():
                    self._codegen.set_env(name, library.environments[name])


def _optimize_functions(codegen: Any, module: Any) -> None:
    """Simplify each function by itself, as numba does, which also sets up its passes for every function declared."""
    module.data_layout = codegen._data_layout
    passes, builder = codegen._function_pass_manager()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def _reach(libraries: list[Any]) -> list[Any]:
    """These libraries and those behind callees, each after all that call it: LLVM drops what is not asked for."""
    order: list[Any] = []
    seen = set()

    def visit(library: Any) -> None:
        if library not in seen:
            seen.add(library)
            if isinstance(library, CalleeLibrary):
                for called in library._linking_libraries:
                    visit(called)
            order.append(library)

    for library in libraries:
        visit(library)
    return order[::-1]


@contextmanager
def _remembered_answers() -> Iterator[None]:
    """While kernels are compiled, ask numba only once what a built-in function makes of arguments of given types.

    What it answers for numbers and arrays depends on their types and on the compiler's flags alone. No other code is
    compiled meanwhile: the compiler has one lock.
    """
    with global_compiler_lock:
        ask = BaseFunction.get_call_type
        latest: tuple[Any, str] = (None, "")

        def recall(function: Any, context: Any, args: Any, kws: Any) -> Any:
            if kws or not _are_plain(args):
                return ask(function, context, args, kws)
            nonlocal latest
            flags = ConfigStack.top_or_none()
            if flags is not latest[0]:
                latest = flags, flags.get_mangle_string()
            question = id(function), args, latest[1]
            if question not in _answers:  # with the function, which must not give its id to another
                _answers[question] = function, ask(function, context, args, kws)
            return _answers[question][1]

        BaseFunction.get_call_type = recall
        try:
            yield
        finally:
            BaseFunction.get_call_type = ask


@contextmanager
def _numbas_own_as_callees(codegen: Any) -> Iterator[None]:
    """While a kernel is lowered, what numba compiles for it besides is a callee too, without wrappers for C."""
    wrap = CPUContext.create_cfunc_wrapper
    codegen.create_library = partial(CalleeLibrary, codegen)
    CPUContext.create_cfunc_wrapper = lambda *_arguments: None
    try:
        yield
    finally:
        CPUContext.create_cfunc_wrapper = wrap
        del codegen.create_library


def _are_plain(args: Any) -> bool:
    return all(isinstance(each, _PLAIN) or (isinstance(each, types.BaseTuple) and _are_plain(each)) for each in args)


class _CalleeCompiler(Compiler):  # type: ignore[misc]  # numba has no types
    def define_pipelines(self) -> Any:
        state = self.state
        state.library = CalleeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class _CalleeDispatcher(CPUDispatcher):  # type: ignore[misc]  # numba has no types
    def compile(self, sig: Any) -> None:
        """As a kernel asks for it, with arguments of these types; numba's own way also looks for it on disk."""
        args, _ = normalize_signature(sig)
        if args not in self.overloads:
            self.lower(args)
            kernel_cache.tell_compiled(self.py_func)

    def lower(self, args: Any) -> Any:
        """The callee for arguments of these types, typed and lowered once."""
        with self._compiling_counter:
            if args not in self.overloads:
                self.add_overload(self._compiler.compile(args, None))
            return self.overloads[args]


class _EntryCompiler(FunctionCompiler):  # type: ignore[misc]  # numba has no types
    """Makes entries of a kernel's callees."""

    def __init__(self, callee: _CalleeDispatcher, **options: Any) -> None:
        super().__init__(callee.py_func, callee.targetdescr, options, {}, _CalleeCompiler)
        self._callee = callee

    def compile(self, args: Any, return_type: Any) -> Any:
        """The entry for arguments of these types; `return_type` is what numba infers."""
        with _numbas_own_as_callees(self.targetdescr.target_context.codegen()):
            callee = self._callee.lower(args)
        context = callee.target_context
        function = copy(callee.fndesc)  # with objects of its own, which are kept with it: those of Python's results
        function.env_name += ".entry"
        environment = Environment.from_fndesc(function)
        library = EntryLibrary(context.codegen(), function.qualname)
        library.enable_object_caching()
        library.add_linking_library(callee.library)
        nogil = bool(self.targetoptions.get("nogil"))
        with context.push_code_library(library):
            context.create_cpython_wrapper(library, function, environment, callee.call_helper, release_gil=nogil)
        called = context.get_executable(library, function, environment)
        made = {"library": library, "fndesc": function, "environment": environment, "entry_point": called}
        return callee._replace(**made, reload_init=list(library._reload_init))


_NO_WRAPPERS: Final = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class KernelDispatcher(CPUDispatcher):  # type: ignore[misc]  # numba has no types
    """A kernel: called by Python it is an entry; to kernels it shows its callee side."""

    def __init__(self, function: Callable[..., object], options: dict[str, Any]) -> None:
        options = {"nopython": True, "boundscheck": None, **_NO_WRAPPERS, **options}
        super().__init__(function, targetoptions=options, pipeline_class=_CalleeCompiler)
        self._cache = kernel_cache.KernelCache(self.py_func)
        self._callee = _CalleeDispatcher(function, targetoptions=options, pipeline_class=_CalleeCompiler)
        self._compiler = _EntryCompiler(self._callee, **options)

    def compile(self, sig: Any) -> Any:
        """The entry for arguments of these types, compiled if it is not on disk."""
        with _remembered_answers(), no_collection():
            return super().compile(sig)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """How kernels call it with arguments of these types; that one is a constant makes it no other kernel."""
        plain = tuple(unliteral(each) for each in args)
        return self._callee.get_call_template(plain, {name: unliteral(each) for name, each in kws.items()})

    def get_overload(self, sig: Any) -> Any:
        """What kernels call for a signature."""
        return self._callee.get_overload(sig)

    @property
    def is_compiling(self) -> bool:
        """Whether one of its sides is being compiled: a call to it is then recursive."""
        return bool(self._compiling_counter or self._callee.is_compiling)
