"""Numba's cache of compiled kernels with recovery from damaged files and disk errors, which loads kernels faster.

Numba trusts its files: a truncated file ends the program, and a flipped bit is executed as machine code. Therefore the files of each
function have checksums; files that do not match or cannot be loaded are removed, and the function is compiled again. Failed writes are
ignored. Import this module after `proteoscope.kernels.cpu.caching.settle_cache`, since Numba reads its environment when it is imported.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import sys
import zlib
from collections.abc import Iterator
from functools import cache, lru_cache, wraps
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import Any

import llvmlite.binding
from numba.core import dispatcher, entrypoints, environment, utils
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen, JitEngine
from numba.core.cpu import CPUContext
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import nrtdynmod, rtsys
from numba.core.types.misc import unliteral

from proteoscope.kernels.cpu.caching import note_uncached
from proteoscope.kernels.cpu.casting_rules import apply_casting_rules
from proteoscope.kernels.trusted_folders import write_cached

__all__ = ["guard_cache"]

_SUMS, _LOCK = ".sums", ".lock"
_OWN = f"{__package__.rpartition('.')[0]}."
_IMPORT = re.compile(rf"^from ({re.escape(_OWN)}[\w.]+) import \(?(\w*)", re.MULTILINE)  # the first name may be a module


@cache
def _source(module: str) -> tuple[str, tuple[str, ...]]:
    """Return a digest of a kernel module's source, and the names of the kernel modules that it imports; both empty for a package."""
    path = Path(__file__).parents[1].joinpath(*module.removeprefix(_OWN).split(".")).with_suffix(".py")
    if not path.is_file():
        return "", ()
    source = path.read_text(encoding="utf-8")
    imports = [(package, f"{package}.{name}") for package, name in _IMPORT.findall(source)]
    return sha256(source.encode()).hexdigest(), tuple(chain.from_iterable(imports))


@cache
def _sources_digest(module: str) -> str:
    """Return a digest of the sources of a module and of the kernels that it imports, since imported kernels are compiled into its own."""
    waiting, digests = [module], dict[str, str]()
    while waiting:
        name = waiting.pop()
        if name not in digests:
            digests[name], imports = _source(name)
            waiting += imports
    return sha256(json.dumps(sorted(digests.items())).encode()).hexdigest()


class _GuardedCache(FunctionCache):
    """Cache files of one function: ``NAME.nbi``, ``NAME.1.nbc`` and so on, and ``NAME.sums`` with sizes and checksums."""

    def __init__(self, py_func: Any) -> None:
        self._py_func = py_func

    def __getattr__(self, name: str) -> Any:
        """Find the cache of the function when it is first needed, since a command calls few of the kernels that it imports.

        A kernel is compiled again also if a module that it imports has changed, unlike in Numba.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        if "_impl" not in self.__dict__:
            files, module = FunctionCache(self._py_func), self._py_func.__module__
            if module.startswith(_OWN):
                # The text excludes kernels that were cached without unique names or symbols.
                stamp = (files._cache_file._source_stamp, _sources_digest(module), "unique names, symbols")
                files._cache_file._source_stamp = stamp
            self.__dict__.update(files.__dict__)
        return super().__getattribute__(name)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a compiled function as Numba does; if its files are damaged, remove the files and return None."""
        with contextlib.suppress(OSError):
            if _is_damaged(self.cache_path, self._impl.filename_base):
                _remove(self.cache_path, self._impl.filename_base)
        try:
            if not self._py_func.__module__.startswith(_OWN):
                return super().load_overload(sig, target_context)
            # By default, Numba first loads everything that a compiler needs, including SciPy's linear algebra. This takes half a
            # second and is not needed if all kernels are cached. If a kernel must be compiled, this is loaded then. The kernels use
            # none of the functions that it provides (dictionaries, hashes, linear algebra).
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception:  # A new pickle or object file replaces a damaged one.
            _remove(self.cache_path, self._impl.filename_base)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled function as Numba does; if the files cannot be written, the function is used without a cache."""
        try:
            with _alone(self.cache_path, self._impl.filename_base):
                super().save_overload(sig, data)
                _write_sums(self.cache_path, self._impl.filename_base)
        except OSError as error:
            _remove(self.cache_path, self._impl.filename_base)
            note_uncached(f"{self.cache_path}: {error.strerror or error}")


def guard_cache() -> None:
    """Let functions that Numba compiles from now on use a cache that tolerates damaged files and full disks."""
    vars(dispatcher)["FunctionCache"] = _GuardedCache
    _parse_code_when_linked()
    _load_compiler_when_needed()
    _name_functions_uniquely()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_name_functions_uniquely)
    _compile_once_for_all_constants()
    _convert_arguments_if_compilation_is_disabled()
    # Numba determines the signature of each function twice in succession, and a command decorates over a hundred functions.
    vars(utils)["pysignature"] = lru_cache(1)(utils.pysignature)
    # The kernels use no extensions of Numba, and finding them would read the metadata of all installed packages.
    vars(entrypoints)["_already_initialized"] = True


class _Library(JITCodeLibrary):
    """Compiled code of a function and of those that it calls."""

    _bitcode: bytes | None = None
    """Intermediate code of a cached function that has not been parsed."""

    def serialize_using_object_code(self) -> Any:
        """Return the data to cache: the name and type of the library, its machine code, intermediate code and symbols."""
        name, kind, data = super().serialize_using_object_code()
        symbols = JitEngine(None)
        symbols._load_defined_symbols(self._get_module_for_linking())
        return name, kind, (*data, symbols._defined_symbols)

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        name, _, (object_code, bitcode, symbols) = state
        self = codegen.create_library(name)
        self.enable_object_caching()
        self._set_compiled_object(object_code)
        self._bitcode = bitcode
        self._finalize_final_module()
        codegen._engine._defined_symbols |= symbols
        return self

    def _get_module_for_linking(self) -> Any:
        if self._bitcode is not None:
            self._shared_module, self._bitcode = llvmlite.binding.parse_bitcode(self._bitcode), None
        return super()._get_module_for_linking()


def _parse_code_when_linked() -> None:
    """Parse the intermediate code of a cached function, and compile Numba's runtime, only when they are linked into another function.

    By default, Numba parses the intermediate code of each function that it loads, to find the names of its symbols, which takes longer than
    loading the machine code. Here these names are cached too. Numba also compiles the functions of its runtime, which count references, in
    each process; but each cached function contains the ones that it calls.
    """
    JITCPUCodegen._library_class = _Library

    def compile_runtime(context: Any) -> Any:
        library = context.codegen().create_library("nrt")

        def finalize() -> None:
            del library.finalize
            library.add_ir_module(nrtdynmod.create_nrt_module(context)[0])
            library.finalize()

        library.finalize = finalize  # Numba calls it before the library is linked
        return library

    vars(nrtdynmod)["compile_nrt_functions"] = compile_runtime


def _load_compiler_when_needed() -> None:
    """Load Numba's array functions, and change them, only when something is compiled.

    By default, Numba imports the modules of all functions that a cached function calls, since it stores the module with their constants.
    """
    load, rebuild = CPUContext.load_additional_registries, environment._rebuild_env

    def load_changed(context: CPUContext) -> None:
        from numba.np import linalg  # slow to import: only for compilation

        CPUContext.load_additional_registries = load
        _refuse_shapes_in_few_words()
        # Importing SciPy's linear algebra for Numba's array functions would take a third of a second.
        vars(linalg)["ensure_blas"] = lambda: None
        load(context)

    @wraps(rebuild)  # files contain the name of Numba's function
    def rebuild_without_import(module: str, constants: list[Any], name: str) -> Any:
        if not module.startswith("numba.") or module in sys.modules or environment.lookup_environment(name) is not None:
            return rebuild(module, constants, name)
        result = environment.Environment({"__name__": module})  # compiled code uses the constants, not the module
        result.consts[:], result.env_name = constants, name
        environment.Environment._memo[name] = result
        return result

    CPUContext.load_additional_registries = load_changed
    vars(environment)["_rebuild_env"] = rebuild_without_import


def _name_functions_uniquely() -> None:
    """Give functions that Numba compiles from now on numbers that no other process uses.

    Numba numbers functions from 1 in each process and uses the numbers in the names of compiled functions. Two cached kernels from
    different processes can thus contain functions of the same name, such as the inner loops of `np.sort` and `np.argsort`. If both are
    loaded, one of them calls the function of the other: the results are wrong, or the program crashes.
    """
    FunctionIdentity._unique_ids = count(secrets.randbits(60))


def _refuse_shapes_in_few_words() -> None:
    """Shorten error messages of array assignments by omitting the shapes.

    Numba compiles code for messages with shapes, which takes two seconds in each process that compiles such an assignment.
    """
    from numba.extending import overload  # slow to import: only for compilation
    from numba.np import arrayobj  # slow to import: only for compilation

    def raise_of_shapes(source, target):
        raise ValueError("an array does not fit the slice that it is assigned to")

    overload(raise_of_shapes)(lambda source, target: raise_of_shapes)
    vars(arrayobj)["raise_with_shape_context"] = raise_of_shapes


def _compile_once_for_all_constants() -> None:
    """Compile a kernel once for all constants of a type; Numba would compile it again for each constant with which it is called."""
    find = Dispatcher.get_call_template

    def find_of_types(self: Any, arguments: Any, keywords: Any) -> Any:
        if self.py_func.__module__.startswith(_OWN):
            arguments = tuple(map(unliteral, arguments))
            keywords = {name: unliteral(argument) for name, argument in keywords.items()}
        return find(self, arguments, keywords)

    Dispatcher.get_call_template = find_of_types  # type: ignore[method-assign, assignment]


def _convert_arguments_if_compilation_is_disabled() -> None:
    """Apply Numba's postponed conversions before it disables the compilation of a function, whose calls then convert their arguments."""
    base: Any = dispatcher._DispatcherBase
    can_compile = base._can_compile

    def change(self: Any, value: bool) -> None:
        if not value:
            apply_casting_rules()
        can_compile.__set__(self, value)

    base._can_compile = property(can_compile.__get__, change)


@contextlib.contextmanager
def _alone(folder: str, name: str) -> Iterator[None]:
    """Lock the cache files of a function, since two processes that add specialisations would use the same file name."""
    try:
        import fcntl  # not on Windows
    except ImportError:  # not on Windows
        yield
        return
    with Path(folder, name + _LOCK).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _files(folder: str, name: str) -> Iterator[Path]:
    for path in Path(folder).iterdir():
        number = path.name.removeprefix(f"{name}.").removesuffix(".nbc")
        if path.name == f"{name}.nbi" or (path.name == f"{name}.{number}.nbc" and number.isdecimal()):
            yield path


def _sum(path: Path) -> list[int]:
    content = path.read_bytes()
    return [len(content), zlib.crc32(content)]


def _write_sums(folder: str, name: str) -> None:
    sums = {path.name: _sum(path) for path in _files(folder, name)}
    write_cached(Path(folder, name + _SUMS), json.dumps(sums).encode())


def _is_damaged(folder: str, name: str) -> bool:
    """Return True if the files of a function do not match their checksums, or have none because a program was killed."""
    try:
        sums = json.loads(Path(folder, name + _SUMS).read_bytes())
        # Test the names directly: listing the folder, with thousands of files, for each function would be slow.
        return any(path.exists() and _sum(path) != sums[path.name] for path in [Path(folder, file) for file in sums])
    except FileNotFoundError:
        return Path(folder, f"{name}.nbi").exists()
    except (ValueError, TypeError):
        return True


def _remove(folder: str, name: str) -> None:
    with contextlib.suppress(OSError):
        for path in [*_files(folder, name), Path(folder, name + _SUMS), Path(folder, name + _LOCK)]:
            path.unlink(missing_ok=True)
