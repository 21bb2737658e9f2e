"""A GPU calls the driver as its manual requires, and its errors become errors of this program. A library replaces the driver."""

from __future__ import annotations

import ctypes
import gc
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from proteoscope.kernels.cuda import driver, modules
from proteoscope.kernels.cuda.modules import CudaGpu, struct
from proteoscope.kernels.cuda.timing import TimedGpu
from proteoscope.kernels.device import DeviceError, DeviceMemoryError
from tests.kernels.compiled_library import compiled_library

SUBSTITUTE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef uint64_t Address;
int has_pools = 1, failing = 0, live = 0, streams = 0, events = 0, pinned = 0, limit = 48 << 10, launches[4], trimmed = -1;
char failed_call[64];
uint64_t threshold;
static _Thread_local void *current;
#define CHECK(name) do { if (!current) return 201; if (failing && !strcmp(failed_call, name)) return failing; } while (0)
int cuInit(unsigned flags) { return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal > 3 ? 101 : 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)(intptr_t)(100 + device); return 0; }
int cuCtxGetCurrent(void **context) { *context = current; return 0; }
int cuCtxSetCurrent(void *context) { current = context; return 0; }
int cuCtxSynchronize() { return 0; }
int cuGetErrorName(int status, const char **text)
{
    *text = status == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_ILLEGAL_ADDRESS";
    return 0;
}
int cuGetErrorString(int status, const char **text) { *text = status == 2 ? "out of memory" : "an illegal access"; return 0; }
int cuDeviceGetAttribute(int *value, int number, int device)
{
    *value = number == 115 ? has_pools : number == 75 ? 9 : number == 76 ? 0 : number == 97 ? 232448 : number == 13 ? 1980000 : 132;
    return 0;
}
int cuMemGetInfo_v2(size_t *free, size_t *total) { CHECK("info"); *free = 1000; *total = 5000; return 0; }
int cuMemAlloc_v2(Address *address, size_t size) { CHECK("allocate"); *address = (Address)malloc(size); ++live; return 0; }
int cuMemFree_v2(Address address) { CHECK("free"); free((void *)address); --live; return 0; }
int cuMemAllocAsync(Address *address, size_t size, void *stream) { return has_pools ? cuMemAlloc_v2(address, size) : 801; }
int cuMemFreeAsync(Address address, void *stream) { return cuMemFree_v2(address); }
int cuDeviceGetDefaultMemPool(void **pool, int device) { *pool = (void *)7; return 0; }
int cuMemPoolSetAttribute(void *pool, int number, uint64_t *value) { if (number != 4) return 1; threshold = *value; return 0; }
int cuMemPoolGetAttribute(void *pool, int number, uint64_t *value) { *value = number == 5 ? 700 : 200; return 0; }
int cuMemPoolTrimTo(void *pool, size_t size) { trimmed = (int)size; return 0; }
int cuMemHostAlloc(void **address, size_t size, unsigned flags) { CHECK("pin"); *address = malloc(size); ++pinned; return 0; }
int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t size, void *stream)
{
    CHECK("send");
    memcpy((void *)to, from, size);
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, Address from, size_t size, void *stream) { CHECK("fetch"); memcpy(to, (void *)from, size); return 0; }
int cuMemsetD8Async(Address to, unsigned char value, size_t size, void *stream) { CHECK("set"); memset((void *)to, value, size); return 0; }
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    CHECK("stream");
    *stream = malloc(1);
    ++streams;
    return flags != 1;
}
int cuStreamDestroy_v2(void *stream) { CHECK(""); free(stream); --streams; return 0; }
int cuStreamSynchronize(void *stream) { CHECK("wait"); return 0; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { CHECK("wait for"); return 0; }
int cuEventCreate(void **event, unsigned flags) { CHECK("event"); *event = malloc(1); *(char *)*event = (char)flags; ++events; return 0; }
int cuEventDestroy_v2(void *event) { CHECK(""); free(event); --events; return 0; }
int cuEventRecord(void *event, void *stream) { CHECK("record"); return 0; }
int cuEventElapsedTime(float *value, void *start, void *stop) { *value = 250.0f; return *(char *)start || *(char *)stop ? 400 : 0; }
int cuModuleLoadData(void **module, const char *code) { CHECK("load"); *module = (void *)11; return strcmp(code, "code") ? 500 : 0; }
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    CHECK("find");
    *function = (void *)(intptr_t)(strcmp(name, "fill") ? 14 : 13);
    return 0;
}
int cuFuncGetAttribute(int *value, int number, void *function) { if (number != 8) return 1; *value = limit; return 0; }
int cuFuncSetAttribute(void *function, int number, int value) { if (number != 8) return 1; limit = value; return 0; }
struct Extra { float weight; int64_t step; };
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz, unsigned shared,
                   void *stream, void **arguments, void **extra)
{
    CHECK("launch");
    if ((int)shared > limit || y != 1 || z != 1 || ty != 1 || tz != 1 || extra) return 1;
    ++launches[0]; launches[1] = (int)x; launches[2] = (int)threads; launches[3] = (int)shared;
    if (function == (void *)14) return 0;
    double *values = *(double **)arguments[0];
    struct Extra *more = arguments[2];
    for (int i = 0; i < 4; ++i) values[i] = *(int8_t *)arguments[1] + more->weight * i + (double)more->step;
    return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the library that replaces the driver."""
    return compiled_library(SUBSTITUTE, tmp_path_factory.mktemp("driver"))


class Substitute:
    """Variables of a copy of the library."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))

    def __getattr__(self, name: str) -> int:
        return ctypes.c_int.in_dll(self._library, name).value

    def launches(self) -> list[int]:
        """Return the number of launches, and blocks, threads and shared bytes of the last one."""
        return list((ctypes.c_int * 4).in_dll(self._library, "launches"))

    def set(self, name: str, value: int) -> None:
        """Set a variable."""
        ctypes.c_int.in_dll(self._library, name).value = value

    def fail(self, call: str, status: int) -> None:
        """Let a call fail from now on."""
        self.set("failing", status)
        ctypes.memmove((ctypes.c_char * 64).in_dll(self._library, "failed_call"), call.encode() + b"\0", len(call) + 1)


@pytest.fixture
def cuda(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Substitute:
    """Replace the driver by a library without state of earlier tests."""
    copy = Path(shutil.copy(library, tmp_path / "driver.so"))
    monkeypatch.setattr(driver, "_LIBRARY", str(copy))
    return Substitute(copy)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[str, ...], int]]:
    """Replace the compiler by one that takes a moment, and return what it compiles."""
    compiled = []

    def compile_slowly(*request):
        time.sleep(0.05)
        compiled.append(request)
        return b"code"

    monkeypatch.setattr(modules, "machine_code", compile_slowly)
    return compiled


def start(gpu, arguments=(), stream=None, **options):
    gpu.launch("digestion.cu", "fill" if arguments else "idle", 3, 256, arguments, stream or gpu.stream(), **options)


def test_threads_that_share_a_gpu_compile_a_cuda_module_once(cuda, compilations):
    gpu = CudaGpu(0)
    threads = [threading.Thread(target=start, args=(gpu,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    start(gpu, defines=("LANES=8",))
    start(gpu, defines=("LANES=8",))
    start(CudaGpu(1))
    assert compilations == [("digestion.cu", (), 90), ("digestion.cu", ("LANES=8",), 90), ("digestion.cu", (), 90)]
    assert cuda.launches() == [9, 3, 256, 0]


def test_freed_buffer_leaves_the_context_of_the_current_call(cuda):
    first, context = CudaGpu(0), driver.Context(1)
    buffers, current = [first.buffer(40)], ctypes.c_void_p()

    def freeing() -> int:
        buffers.clear()
        return context.fast.cuCtxGetCurrent(ctypes.byref(current))

    context.call(freeing)
    assert (cuda.live, current.value) == (0, 101)


def test_kernel_receives_buffers_scalars_and_structs(cuda, compilations):
    gpu = CudaGpu(0)
    stream, buffer, values = gpu.stream(), gpu.buffer(40), np.zeros(5)
    layout = np.dtype([("weight", np.float32), ("step", np.int64)], align=True)
    gpu.clear(buffer, 40, stream)
    start(gpu, (buffer, np.int8(-3), struct(gpu, layout, {"weight": 0.5, "step": 1 << 40})), stream)
    gpu.download(values, buffer, stream)
    gpu.wait(stream)
    assert values.tolist() == [*(-3 + 0.5 * i + 2.0**40 for i in range(4)), 0.0]
    gpu.upload(buffer, np.arange(2.0), stream, offset=24)
    gpu.download(values[:2], buffer, stream, offset=16)
    assert values[:2].tolist() == [-2.0 + 2.0**40, 0.0]
    gpu.download(values[:2], buffer, stream, offset=24)
    assert values[:2].tolist() == [0.0, 1.0]


def test_uint64_argument_is_a_pointer(cuda, compilations):
    gpu = CudaGpu(0)
    buffer, values = gpu.buffer(32), np.zeros(4)
    layout = np.dtype([("weight", np.float32), ("step", np.int64)], align=True)
    start(gpu, (np.uint64(gpu.address(buffer)), np.int8(1), np.zeros((), layout)))
    gpu.download(values, buffer, gpu.stream())
    assert values.tolist() == [1.0] * 4


def test_kernel_launch_requests_shared_memory_beyond_the_default(cuda, compilations):
    gpu = CudaGpu(0)
    for wanted, allowed in ((1 << 10, 48 << 10), (96 << 10, 96 << 10), (64 << 10, 96 << 10)):
        start(gpu, shared_bytes=wanted)
        assert (cuda.limit, cuda.launches()[3]) == (allowed, wanted)


def test_kernel_launch_of_zero_blocks_compiles_nothing(cuda, compilations):
    gpu = CudaGpu(0)
    gpu.launch("digestion.cu", "fill", 0, 256, (), gpu.stream())
    assert not compilations
    assert cuda.launches()[0] == 0


@pytest.mark.parametrize("has_pools", [True, False])
def test_buffers_streams_and_events_are_released(has_pools, cuda):
    cuda.set("has_pools", has_pools)
    gpu = CudaGpu(0)
    streams = cuda.streams
    assert streams == has_pools
    stream, buffers = gpu.stream(is_urgent=True), [gpu.buffer(n) for n in (0, 1000, 5000)]
    event = gpu.record(stream)
    gpu.wait_for(stream, event)
    assert (cuda.live, cuda.streams, cuda.events, gpu.used_bytes()) == (3, streams + 1, 1, 6016)
    del buffers[1]
    assert (cuda.live, gpu.used_bytes()) == (2, 5016)
    buffers.clear()
    del event, stream
    gc.collect()
    assert (cuda.live, cuda.streams, cuda.events, gpu.used_bytes()) == (0, streams, 0, 0)


def test_buffers_respect_the_memory_limit(cuda):
    gpu = CudaGpu(0)
    assert gpu.free_bytes() == 1000 + 700 - 200
    first = gpu.buffer(600)
    gpu.limit_memory(1000)
    assert cuda.trimmed == 1000
    assert gpu.free_bytes() == 400
    with pytest.raises(DeviceMemoryError, match="cuda:0 may use 1000 bytes"):
        gpu.buffer(401)
    second = gpu.buffer(400)
    assert gpu.free_bytes() == 0
    del first
    assert gpu.free_bytes() == 600
    gpu.limit_memory(0)
    assert gpu.free_bytes() == 1500
    del second


def test_buffer_that_does_not_fit_releases_unused_memory(cuda):
    gpu = CudaGpu(0)
    cuda.fail("allocate", 2)
    with pytest.raises(DeviceMemoryError):
        gpu.buffer(10)
    assert cuda.trimmed == 0
    assert gpu.used_bytes() == 0


def test_pinned_memory_is_used_again_after_its_last_view(cuda):
    gpu = CudaGpu(0)
    first = gpu.pinned(1000)
    first[:] = 7
    address, view = first.ctypes.data, first[100:].view(np.int32)
    assert len(first) == 1000
    del first
    second = gpu.pinned(900)
    assert second.ctypes.data != address
    assert view.tolist() == [0x07070707] * 225
    del view
    third = gpu.pinned(1024)
    assert third.ctypes.data == address
    assert cuda.pinned == 2


def test_every_thread_uses_the_context_of_its_gpu(cuda):
    gpus, seen = [CudaGpu(number) for number in range(3)], []

    def use():
        seen.extend(gpu.buffer(10) for gpu in gpus)  # the substitute refuses calls of threads without a context

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert len(seen) == 3


def test_timed_gpu_measures_kernels_and_transfers(cuda, compilations):
    gpu = TimedGpu(0)
    start(gpu)
    gpu.upload(gpu.buffer(80), np.zeros(10), gpu.stream())
    assert [name for name, *_ in gpu.events] == ["idle", "transfer"]
    assert gpu.kernel_seconds() == {"idle": 0.25}
    assert cuda.events == 0


@pytest.mark.parametrize(
    ("call", "use", "status", "kind"),
    [
        ("allocate", lambda gpu: gpu.buffer(1), 2, DeviceMemoryError),
        ("pin", lambda gpu: gpu.pinned(1), 2, DeviceMemoryError),
        ("launch", start, 2, DeviceMemoryError),
        ("allocate", lambda gpu: gpu.buffer(1), 700, DeviceError),
        ("wait", lambda gpu: gpu.wait(gpu.stream()), 700, DeviceError),
        ("launch", start, 700, DeviceError),
        ("load", start, 700, DeviceError),
        ("record", lambda gpu: gpu.record(gpu.stream()), 700, DeviceError),
    ],
)
def test_driver_errors_become_device_errors_that_name_the_gpu(call, use, status, kind, cuda, compilations):
    gpu = CudaGpu(2)
    cuda.fail(call, status)
    with pytest.raises(DeviceError) as caught:
        use(gpu)
    assert type(caught.value) is kind
    assert str(caught.value).startswith("cuda:2")
    assert ("OUT_OF_MEMORY: out of memory" if status == 2 else "ILLEGAL_ADDRESS: an illegal access") in str(caught.value)


def test_failed_compilation_names_the_gpu(cuda, monkeypatch):
    def fail(*_):
        raise DeviceError("digestion.cu does not compile:\nline 3: nonsense")

    monkeypatch.setattr(modules, "machine_code", fail)
    with pytest.raises(DeviceError, match=r"^cuda:1: digestion.cu does not compile:\nline 3"):
        start(CudaGpu(1))


def test_missing_device_and_missing_driver_are_device_errors(cuda, monkeypatch, tmp_path):
    with pytest.raises(DeviceError, match=r"^cuda:4 failed"):
        CudaGpu(4)
    monkeypatch.setattr(driver, "_LIBRARY", str(tmp_path / "missing.so"))
    with pytest.raises(DeviceError, match=r"^cuda:0: the NVIDIA driver cannot be loaded"):
        CudaGpu(0)
