"""A `proteoscope.kernels.cuda.modules.Gpu` that runs the CUDA sources on the CPU, through cuda_shim.hpp, cuda_shim.cpp and g++.

Each buffer ends with guard bytes; a kernel that writes there fails the test at its launch. With PROTEOSCOPE_SHIM_ADDRESS_SANITIZER set,
GCC's address sanitizer watches reads too, in a Python started with PYTHONMALLOC=malloc, LD_PRELOAD="$(gcc -print-file-name=libasan.so)"
and ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.cuda.compiled import header_options, source
from proteoscope.kernels.cuda.rates import USUAL_RATES
from proteoscope.kernels.device import DeviceError, DeviceMemoryError

__all__ = ["IS_SANITIZED", "ShimGpu", "compiled", "missing_compiler"]

_HEADER, _RUNNER = (Path(__file__).with_name(f"cuda_shim.{ending}") for ending in ("hpp", "cpp"))
IS_SANITIZED = bool(os.environ.get("PROTEOSCOPE_SHIM_ADDRESS_SANITIZER"))
_OPTIONS = (
    # Variables of templates belong to a library, as to a module on a GPU: two with the same name may have different sizes.
    "-std=c++17",
    "-Wall",
    "-Wextra",
    "-Wno-unknown-pragmas",
    "-ffp-contract=off",
    "-fPIC",
    "-fno-gnu-unique",
    *(("-g", "-fsanitize=address", "--param", "asan-stack=0") if IS_SANITIZED else ("-Werror",)),
)
_GUARD = b"" if IS_SANITIZED else bytes([0xC3]) * 1024
_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)')

_launch_lock = threading.Lock()  # the fibers of all kernels use variables of one library


def missing_compiler() -> str:
    """Return why the shim cannot run here, or ''."""
    return "" if shutil.which("g++") else "g++ is not installed"


def compiled(text: str, defines: tuple[str, ...] = ()) -> ctypes.CDLL:
    """Return a library of the kernels of a CUDA source, from a cache that identifies sources by their digest."""
    # A source with many forms runs each for a moment, so a short compilation is better than fast code. The C and C++ libraries are linked
    # only into the library that runs the grids: searching them would take as long as compiling.
    options = (*_OPTIONS, "-O0" if defines else "-O2", *header_options(), *(f"-D{define}" for define in defines), "-nostdlib")
    launchers = "".join(f"SHIM_KERNEL({kernel})\n" for kernel, _ in _KERNEL.findall(text))
    return ctypes.CDLL(str(_library(f'#include "{_HEADER}"\n{text}\n{launchers}', *options, after=(_runner_path(),))))


@cache
def _runner_path() -> Path:
    """Return the library that runs the grids of all others."""
    return _library(_RUNNER.read_text(encoding="utf-8"), *_OPTIONS, "-O2", f"-I{_RUNNER.parent}")


def _library(text: str, *options: str, after: tuple[Path, ...] = ()) -> Path:
    """Compile a library of a source and of libraries `after` it, in a folder that all processes share."""
    folder = Path(tempfile.gettempdir()) / f"proteoscope-shim-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    content = "\0".join((_HEADER.read_text(encoding="utf-8"), text, *options, *map(str, after)))
    library = folder / f"{hashlib.sha256(content.encode()).hexdigest()[:24]}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as name:
            program, built = Path(name) / "kernels.cpp", Path(name) / "kernels.so"
            program.write_text(text, encoding="utf-8")
            subprocess.run(["g++", *options, "-shared", str(program), *map(str, after), "-o", str(built)], check=True)
            built.replace(library)
    return library


class ShimGpu:
    """GPU whose kernels run on the CPU.

    Parameters
    ----------
    descending : bool
        Run the threads from the last to the first.
    failing_launch : int
        Number of the launch that fails as on a lost GPU; all later ones fail too.

    Attributes
    ----------
    largest_buffer : int
        Bytes; a larger allocation fails as on a full GPU.
    launched : list of str
        Names of the kernels, in order.
    defines : list
        Macros that the kernels were compiled with.
    capability : tuple
        Compute capability that the GPU reports.
    operations, bytes_in, bytes_out, transfers : int
        Counts so far, as in `proteoscope.kernels.counts.OperationCounts`.
    shared_bytes : int
        Maximum shared memory of a block.
    """

    name = "shim"
    kernels = "cuda"
    is_processor = False

    def __init__(self, *, descending: bool = False, failing_launch: int = -1) -> None:
        self._descending, self.failing_launch = descending, failing_launch
        self.largest_buffer = 1 << 40
        self.capability = 90
        self.rates = USUAL_RATES
        self._libraries: dict[tuple[str, tuple[str, ...]], ctypes.CDLL] = {}
        self.n_launches = 0
        self.launched: list[str] = []
        self.defines: list[tuple[str, ...]] = []
        self.operations = self.bytes_in = self.bytes_out = self.transfers = self.shared_bytes = 0
        self._lost = False
        self._buffers: dict[int, tuple[weakref.ref[NDArray[np.uint8]], int]] = {}  # with the number of bytes requested

    def free_bytes(self) -> int:
        return 1 << 32

    def maximum_shared_bytes(self) -> int:
        return 99 << 10

    def compute_capability(self) -> int:
        return self.capability

    def multiprocessors(self) -> int:
        return 1

    def buffer(self, n_bytes: int) -> NDArray[np.uint8]:
        if n_bytes > self.largest_buffer:
            raise DeviceMemoryError(f"not enough memory for {n_bytes} bytes")
        made = np.full(max(1, n_bytes + len(_GUARD)), 0xA5, np.uint8)
        made[n_bytes : n_bytes + len(_GUARD)] = np.frombuffer(_GUARD, np.uint8)
        self._buffers[id(made)] = weakref.ref(made), n_bytes
        weakref.finalize(made, self._buffers.pop, id(made), None)
        return made

    def size(self, buffer: NDArray[np.uint8]) -> int:
        """Return the bytes that a buffer was allocated for."""
        return self._buffers[id(buffer)][1]

    def address(self, buffer: NDArray[np.uint8]) -> int:
        return buffer.ctypes.data

    def pinned(self, n_bytes: int) -> NDArray[np.uint8]:
        return np.full(max(16, n_bytes), 0xA5, np.uint8)

    def stream(self, *, is_urgent: bool = False) -> Any:
        return None

    def record(self, stream: Any) -> Any:
        return None

    def wait_for(self, stream: Any, event: Any) -> None:
        pass

    def upload(self, buffer: NDArray[np.uint8], values: NDArray, stream: Any, *, offset: int = 0) -> None:
        assert values.flags.c_contiguous and offset + values.nbytes <= self.size(buffer)
        buffer[offset : offset + values.nbytes] = values.reshape(-1).view(np.uint8)
        self.bytes_in += values.nbytes
        self.transfers += values.nbytes > 0

    def download(self, values: NDArray, buffer: NDArray[np.uint8], stream: Any, *, offset: int = 0) -> None:
        assert values.flags.c_contiguous and offset + values.nbytes <= self.size(buffer)
        values.reshape(-1).view(np.uint8)[:] = buffer[offset : offset + values.nbytes]
        self.bytes_out += values.nbytes
        self.transfers += values.nbytes > 0

    def clear(self, buffer: NDArray[np.uint8], n_bytes: int, stream: Any) -> None:
        assert n_bytes <= self.size(buffer)
        buffer[:n_bytes] = 0

    def launch(
        self,
        file: str,
        kernel: str,
        blocks: int,
        threads: int,
        arguments: Sequence[Any],
        stream: Any,
        *,
        shared_bytes: int = 0,
        defines: tuple[str, ...] = (),
    ) -> None:
        if (file, defines) not in self._libraries:
            self._libraries[file, defines] = compiled(source(file), defines)
        assert all(isinstance(argument, np.generic | np.ndarray) for argument in arguments), "the driver does not know types of Python"
        self.launched.append(kernel)
        self.defines.append(defines)
        self._lost |= self.n_launches == self.failing_launch
        self.n_launches += 1
        if not self._lost:
            self.operations += launch(
                self._libraries[file, defines], kernel, blocks, threads, arguments, shared_bytes=shared_bytes, descending=self._descending
            )
            self.shared_bytes = max(self.shared_bytes, shared_bytes)
            self._check_guards(file, kernel, arguments)

    def _check_guards(self, file: str, kernel: str, arguments: Sequence[Any]) -> None:
        """Fail if a kernel wrote beyond a buffer. It raises no DeviceError, because a search would recover from that."""
        for reference, n_bytes in list(self._buffers.values()):
            buffer = reference()
            if buffer is None or buffer[n_bytes : n_bytes + len(_GUARD)].tobytes() == _GUARD:
                continue
            names = _parameters(source(file), kernel)
            which = [f"argument {name}" for name, argument in zip(names, arguments, strict=True) if argument is buffer]
            raise AssertionError(f"{kernel} wrote beyond the {n_bytes} bytes of {''.join(which) or 'a buffer that it has by its address'}")

    def wait(self, stream: Any) -> None:
        if self._lost:
            raise DeviceError("the GPU is lost")


def _parameters(text: str, kernel: str) -> Iterable[str]:
    """Return the names of the parameters of a kernel of a CUDA source."""
    return [declaration.split()[-1].strip("*&") for declaration in dict(_KERNEL.findall(text))[kernel].split(",")]


def launch(
    library: ctypes.CDLL,
    kernel: str,
    blocks: int,
    threads: int,
    arguments: Sequence[Any],
    *,
    shared_bytes: int = 0,
    descending: bool = False,
) -> int:
    """Run a kernel and count its operations.

    Arguments are arrays (passed by address) and NumPy scalars.

    Raises
    ------
    DeviceError
        The kernel cannot continue, for example at a barrier that some threads never reach.
    """
    function = getattr(library, f"launch_{kernel}")
    function.restype = ctypes.c_char_p
    counted = library.counted_operations
    counted.restype = ctypes.c_ulonglong
    cells = [
        np.array([argument.ctypes.data], np.uint64) if isinstance(argument, np.ndarray) and argument.ndim else np.asarray(argument)
        for argument in arguments
    ]
    addresses = (ctypes.c_void_p * len(cells))(*(cell.ctypes.data for cell in cells))
    shape = ctypes.c_uint * 3
    with _launch_lock:
        problem = function(shape(blocks, 1, 1), shape(threads, 1, 1), ctypes.c_ulong(shared_bytes), int(descending), addresses)
        n_operations = int(counted())
    if problem:
        raise DeviceError(problem.decode())
    return n_operations
