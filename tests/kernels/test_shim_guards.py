"""The shim reports errors of kernels that a CPU would tolerate: writing beyond a buffer and reading uninitialized memory."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels.device import DeviceError
from tests.shim import shim_gpu
from tests.shim.shim_gpu import IS_SANITIZED, ShimGpu, compiled, launch, missing_compiler

pytestmark = [
    pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there"),
    pytest.mark.skipif(IS_SANITIZED, reason="the address sanitizer ends the process at the writes that are made here"),
]

KERNELS = r"""
struct Places { unsigned char* hidden; };

extern "C" __global__ void fill(const int* values, unsigned char* filled, int n) { filled[blockIdx.x * n + threadIdx.x] = values[0]; }
extern "C" __global__ void __launch_bounds__(32) fill_hidden(const Places* places, int n) { places->hidden[n + threadIdx.x] = 1; }

template <int n>
__device__ void read_uninitialized(unsigned* out) {
    __shared__ unsigned cells[n];
    out[blockIdx.x] = cells[n - 1];
    __syncthreads();
    cells[n - 1] = 7;
}
extern "C" __global__ void keep_shared(unsigned* out) { read_uninitialized<SIZE>(out); }
extern "C" __global__ void keep_static(unsigned* out) {
    __shared__ unsigned cells;
    out[blockIdx.x] = cells;
    __syncthreads();
    cells = 7;
}

extern __shared__ __align__(16) unsigned char dynamic_shared[];
extern "C" __global__ void share(unsigned* out, int n) {
    dynamic_shared[n] = 1;
    out[0] = dynamic_shared[0];
}
"""


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ShimGpu:
    monkeypatch.setattr(shim_gpu, "source", lambda file: KERNELS.replace("SIZE", "8"))
    return ShimGpu()


@pytest.mark.parametrize("n_bytes", [1, 3, 64, 1000])
def test_shim_names_the_argument_of_a_write_beyond_a_buffer(gpu: ShimGpu, n_bytes: int) -> None:
    filled, values = gpu.buffer(n_bytes), gpu.buffer(4)
    gpu.upload(values, np.array([7], np.int32), None)
    gpu.launch("a.cu", "fill", n_bytes, 1, (values, filled, np.int32(1)), None)
    with pytest.raises(AssertionError, match=f"^fill wrote beyond the {n_bytes} bytes of argument filled$"):
        gpu.launch("a.cu", "fill", n_bytes + 1, 1, (values, filled, np.int32(1)), None)


def test_shim_detects_a_write_beyond_a_buffer_given_by_address(gpu: ShimGpu) -> None:
    hidden, places = gpu.buffer(40), gpu.buffer(8)
    gpu.upload(places, np.array([gpu.address(hidden)], np.uint64), None)
    gpu.launch("a.cu", "fill_hidden", 1, 32, (places, np.int32(8)), None)
    with pytest.raises(AssertionError, match="fill_hidden wrote beyond the 40 bytes of a buffer"):
        gpu.launch("a.cu", "fill_hidden", 1, 32, (places, np.int32(9)), None)


def test_shim_does_not_check_freed_buffers(gpu: ShimGpu) -> None:
    retained = gpu.buffer(4)
    for _ in range(50):
        gpu.buffer(100)
    gpu.launch("a.cu", "fill", 1, 1, (retained, retained, np.int32(0)), None)
    assert gpu.size(retained) == 4


@pytest.mark.parametrize("kernel", ["keep_shared", "keep_static"])
def test_shim_hides_the_shared_memory_of_other_blocks(kernel: str) -> None:
    # Two libraries with an array of the same name and another size: each has its own.
    for size in (8, 4000, 16):
        out = np.zeros(3, np.uint32)
        launch(compiled(KERNELS.replace("SIZE", str(size))), kernel, 3, 1, (out,))
        assert out.tolist() == [0xA5A5A5A5] * 3


@pytest.mark.parametrize("shared_bytes", [1, 64, 99 << 10, 256 << 10])
def test_shim_reports_a_write_beyond_dynamic_shared_memory(shared_bytes: int) -> None:
    library, out = compiled(KERNELS.replace("SIZE", "8")), np.zeros(1, np.uint32)
    launch(library, "share", 1, 1, (out, np.int32(shared_bytes - 1)), shared_bytes=shared_bytes)
    with pytest.raises(DeviceError, match=f"a write beyond the {shared_bytes} bytes of dynamic shared memory"):
        launch(library, "share", 1, 1, (out, np.int32(shared_bytes)), shared_bytes=shared_bytes)
