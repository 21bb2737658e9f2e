"""A GPU compiles each kernel once, and errors of CuPy become errors of this program. A substitute replaces CuPy."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from proteoscope.kernels.cuda import modules
from proteoscope.kernels.cuda.modules import CudaGpu
from proteoscope.kernels.device import DeviceError, DeviceMemoryError


class OutOfMemoryError(Exception):
    """As in CuPy."""


class CompileError(Exception):
    """As in CuPy."""


class CUDARuntimeError(RuntimeError):
    """As in CuPy."""


class CUDADriverError(RuntimeError):
    """As in CuPy."""


class Kernel:
    """Records how it is launched."""

    def __init__(self) -> None:
        self.max_dynamic_shared_size_bytes = 48 << 10
        self.started: list[tuple] = []

    def __call__(self, blocks, threads, arguments, *, shared_mem):
        self.started.append((blocks, threads, arguments, shared_mem))


class Module:
    """A module whose compilation takes a moment."""

    made: ClassVar[list[tuple[str, ...]]] = []

    def __init__(self, *, code, options, backend):
        assert "__global__" in code and backend == "nvrtc"
        self.made.append(options)
        time.sleep(0.05)
        self._kernels: dict[str, Kernel] = {}

    def get_function(self, name):
        return self._kernels.setdefault(name, Kernel())


@pytest.fixture
def cupy(monkeypatch):
    fake, cuda = ModuleType("cupy"), ModuleType("cupy.cuda")
    cuda.compiler = SimpleNamespace(CompileException=CompileError)
    cuda.memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    cuda.runtime = SimpleNamespace(CUDARuntimeError=CUDARuntimeError)
    cuda.driver = SimpleNamespace(CUDADriverError=CUDADriverError)
    cuda.Device = lambda _: nullcontext()
    fake.cuda, fake.RawModule = cuda, Module
    monkeypatch.setattr(Module, "made", [])
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)
    return fake


def start(gpu, **options):
    gpu.launch("digestion.cu", "count_peptides", 3, 256, (np.int64(1),), nullcontext(), **options)


def test_threads_that_share_a_gpu_compile_a_cuda_module_once(cupy):
    gpu = CudaGpu(0)
    threads = [threading.Thread(target=start, args=(gpu,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Module.made) == 1
    start(gpu, defines=("LANES=8",))
    start(gpu, defines=("LANES=8",))
    start(CudaGpu(1))
    assert [("-DLANES=8" in options) for options in Module.made] == [False, True, False]


def test_changed_cuda_header_changes_the_compiler_options(cupy, monkeypatch, tmp_path):
    start(CudaGpu(0))
    assert set(modules.header_options()) < set(Module.made[-1])
    monkeypatch.setattr(modules, "files", lambda _: tmp_path)
    seen = []
    for text in ("one", "other"):
        (tmp_path / "shared.cuh").write_text(text)
        modules.header_options.cache_clear()
        seen.append(modules.header_options())
    modules.header_options.cache_clear()
    assert seen[0][0] == seen[1][0] == f"-I{tmp_path}"
    assert seen[0][1] != seen[1][1]


def test_kernel_launch_requests_shared_memory_beyond_the_default(cupy):
    gpu = CudaGpu(0)
    for wanted, allowed in ((1 << 10, 48 << 10), (96 << 10, 96 << 10), (64 << 10, 96 << 10)):
        start(gpu, shared_bytes=wanted)
        kernel = gpu._modules["digestion.cu", ()].get_function("count_peptides")
        assert kernel.max_dynamic_shared_size_bytes == allowed
        assert kernel.started[-1] == ((3,), (256,), (np.int64(1),), wanted)


def test_kernel_launch_of_zero_blocks_compiles_nothing(cupy):
    CudaGpu(0).launch("digestion.cu", "count_peptides", 0, 256, (), nullcontext())
    assert Module.made == []


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (OutOfMemoryError("8 GB requested"), DeviceMemoryError, "cuda:2 does not have enough free memory: 8 GB"),
        (CUDARuntimeError("cudaErrorMemoryAllocation: out of memory"), DeviceMemoryError, "cuda:2 failed"),
        (CUDADriverError("CUDA_ERROR_OUT_OF_MEMORY"), DeviceMemoryError, "cuda:2 failed"),
        (CUDARuntimeError("cudaErrorIllegalAddress"), DeviceError, "cuda:2 failed: cudaErrorIllegalAddress"),
        (CompileError("kernels.cu(3): error: nonsense"), DeviceError, "does not compile for cuda:2:\nkernels.cu"),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", type(value).__name__),
)
def test_cupy_errors_become_device_errors_that_name_the_gpu(cupy, monkeypatch, error, kind, message):
    def failing(*_, **__):
        raise error

    gpu = CudaGpu(2)
    monkeypatch.setattr(Module, "get_function", failing)
    with pytest.raises(DeviceError) as caught:
        start(gpu)
    assert type(caught.value) is kind
    assert message in str(caught.value)
