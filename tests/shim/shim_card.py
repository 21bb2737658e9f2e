"""A `kernels.cuda.modules.Card` that runs the CUDA sources on the processor, through cuda_shim.hpp and g++."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.cuda.modules import DeviceError, DeviceMemoryError, source

__all__ = ["ShimCard", "compiled", "missing_compiler"]

_HEADER = Path(__file__).with_name("cuda_shim.hpp")
_OPTIONS = ("-std=c++17", "-O2", "-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Werror", "-ffp-contract=off", "-fPIC", "-shared")
_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(')

_one_at_a_time = threading.Lock()  # the fibers of a kernel live in variables of the library


def missing_compiler() -> str:
    """Why the shim cannot run here; empty when it can."""
    return "" if shutil.which("g++") else "g++ is not installed"


def compiled(text: str, defines: tuple[str, ...] = ()) -> ctypes.CDLL:
    """A library of the kernels of a CUDA source, from a cache that knows sources by their digest."""
    options = (*_OPTIONS, *(f"-D{define}" for define in defines))
    digest = hashlib.sha256("\0".join((text, _HEADER.read_text(encoding="utf-8"), *options)).encode()).hexdigest()[:24]
    folder = Path(tempfile.gettempdir()) / f"proteoscope-shim-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    library = folder / f"{digest}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as name:
            program, built = Path(name) / "kernels.cpp", Path(name) / "kernels.so"
            launchers = "".join(f"SHIM_KERNEL({kernel})\n" for kernel in _KERNEL.findall(text))
            program.write_text(f'#include "{_HEADER}"\n{text}\n{launchers}', encoding="utf-8")
            subprocess.run(["g++", *options, str(program), "-o", str(built)], check=True)
            built.replace(library)
    return ctypes.CDLL(str(library))


class ShimCard:
    """Runs kernels on the processor.

    Parameters
    ----------
    descending : threads take turns from the last to the first.
    failing_launch : the launch of this number fails as on a card that is lost, and all after it.

    Attributes
    ----------
    largest_buffer : bytes; a larger allocation fails as on a card that is full. launched : names of the kernels, in order.
    defines : the macros that they were compiled with. capability : of the instruction set that the card says it has.
    """

    name = "shim"

    def __init__(self, *, descending: bool = False, failing_launch: int = -1) -> None:
        self._descending, self.failing_launch = descending, failing_launch
        self.largest_buffer = 1 << 40
        self.capability = 90
        self._libraries: dict[tuple[str, tuple[str, ...]], ctypes.CDLL] = {}
        self.n_launches = 0
        self.launched: list[str] = []
        self.defines: list[tuple[str, ...]] = []
        self._lost = False

    def free_bytes(self) -> int:
        return 1 << 32

    def most_shared_bytes(self) -> int:
        return 99 << 10

    def compute_capability(self) -> int:
        return self.capability

    def multiprocessors(self) -> int:
        return 1

    def buffer(self, n_bytes: int) -> NDArray[np.uint8]:
        if n_bytes > self.largest_buffer:
            raise DeviceMemoryError(f"no room for {n_bytes} bytes")
        return np.full(max(16, n_bytes), 0xA5, np.uint8)

    def address(self, buffer: NDArray[np.uint8]) -> int:
        return buffer.ctypes.data

    def pinned(self, n_bytes: int) -> NDArray[np.uint8]:
        return np.full(max(16, n_bytes), 0xA5, np.uint8)

    def stream(self) -> None:
        return None

    def upload(self, buffer: NDArray[np.uint8], values: NDArray, stream: None) -> None:
        assert values.flags.c_contiguous and values.nbytes <= len(buffer)
        buffer[: values.nbytes] = values.reshape(-1).view(np.uint8)

    def download(self, values: NDArray, buffer: NDArray[np.uint8], stream: None, *, offset: int = 0) -> None:
        assert values.flags.c_contiguous and offset + values.nbytes <= len(buffer)
        values.reshape(-1).view(np.uint8)[:] = buffer[offset : offset + values.nbytes]

    def clear(self, buffer: NDArray[np.uint8], n_bytes: int, stream: None) -> None:
        buffer[:n_bytes] = 0

    def launch(
        self,
        file: str,
        kernel: str,
        blocks: int,
        threads: int,
        arguments: Sequence[Any],
        stream: None,
        *,
        shared_bytes: int = 0,
        defines: tuple[str, ...] = (),
    ) -> None:
        if (file, defines) not in self._libraries:
            self._libraries[file, defines] = compiled(source(file), defines)
        self.launched.append(kernel)
        self.defines.append(defines)
        self._lost |= self.n_launches == self.failing_launch
        self.n_launches += 1
        if not self._lost:
            launch(
                self._libraries[file, defines], kernel, blocks, threads, arguments, shared_bytes=shared_bytes, descending=self._descending
            )

    def wait(self, stream: None) -> None:
        if self._lost:
            raise DeviceError("the card is lost")


def launch(
    library: ctypes.CDLL,
    kernel: str,
    blocks: int,
    threads: int,
    arguments: Sequence[Any],
    *,
    shared_bytes: int = 0,
    descending: bool = False,
) -> None:
    """Run a kernel. Arguments are arrays (passed by address) and NumPy scalars.

    Raises
    ------
    DeviceError : the kernel cannot go on (a barrier that some threads never reach, and the like).
    """
    function = getattr(library, f"launch_{kernel}")
    function.restype = ctypes.c_char_p
    cells = [np.array([one.ctypes.data], np.uint64) if isinstance(one, np.ndarray) and one.ndim else np.array([one]) for one in arguments]
    addresses = (ctypes.c_void_p * len(cells))(*(cell.ctypes.data for cell in cells))
    shape = ctypes.c_uint * 3
    with _one_at_a_time:
        fault = function(shape(blocks, 1, 1), shape(threads, 1, 1), ctypes.c_ulong(shared_bytes), int(descending), addresses)
    if fault:
        raise DeviceError(fault.decode())
