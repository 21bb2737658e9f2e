"""What a kernel must not do on a card does not pass on the processor either: write behind its memory, use what nobody wrote."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels.device import DeviceError
from tests.shim import shim_card
from tests.shim.shim_card import IS_SANITIZED, ShimCard, compiled, launch, missing_compiler

pytestmark = [
    pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there"),
    pytest.mark.skipif(IS_SANITIZED, reason="the address sanitizer ends the process at the writes that are made here"),
]

KERNELS = r"""
struct Places { unsigned char* hidden; };

extern "C" __global__ void fill(const int* values, unsigned char* filled, int n) { filled[blockIdx.x * n + threadIdx.x] = values[0]; }
extern "C" __global__ void __launch_bounds__(32) fill_hidden(const Places* places, int n) { places->hidden[n + threadIdx.x] = 1; }

template <int n>
__device__ void read_what_nobody_wrote(unsigned* out) {
    __shared__ unsigned room[n];
    out[blockIdx.x] = room[n - 1];
    __syncthreads();
    room[n - 1] = 7;
}
extern "C" __global__ void keep_shared(unsigned* out) { read_what_nobody_wrote<SIZE>(out); }
extern "C" __global__ void keep_static(unsigned* out) {
    __shared__ unsigned room;
    out[blockIdx.x] = room;
    __syncthreads();
    room = 7;
}

extern __shared__ __align__(16) unsigned char dynamic_shared[];
extern "C" __global__ void share(unsigned* out, int n) {
    dynamic_shared[n] = 1;
    out[0] = dynamic_shared[0];
}
"""


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> ShimCard:
    monkeypatch.setattr(shim_card, "source", lambda file: KERNELS.replace("SIZE", "8"))
    return ShimCard()


@pytest.mark.parametrize("n_bytes", [1, 3, 64, 1000])
def test_a_write_behind_a_buffer_names_the_kernel_and_the_argument(card: ShimCard, n_bytes: int) -> None:
    filled, values = card.buffer(n_bytes), card.buffer(4)
    card.upload(values, np.array([7], np.int32), None)
    card.launch("a.cu", "fill", n_bytes, 1, (values, filled, np.int32(1)), None)
    with pytest.raises(AssertionError, match=f"^fill wrote behind the {n_bytes} bytes of argument filled$"):
        card.launch("a.cu", "fill", n_bytes + 1, 1, (values, filled, np.int32(1)), None)


def test_a_write_behind_a_buffer_that_a_kernel_has_by_its_address_is_seen(card: ShimCard) -> None:
    hidden, places = card.buffer(40), card.buffer(8)
    card.upload(places, np.array([card.address(hidden)], np.uint64), None)
    card.launch("a.cu", "fill_hidden", 1, 32, (places, np.int32(8)), None)
    with pytest.raises(AssertionError, match="fill_hidden wrote behind the 40 bytes of a buffer"):
        card.launch("a.cu", "fill_hidden", 1, 32, (places, np.int32(9)), None)


def test_a_buffer_that_is_gone_is_not_looked_at(card: ShimCard) -> None:
    retained = card.buffer(4)
    for _ in range(50):
        card.buffer(100)
    card.launch("a.cu", "fill", 1, 1, (retained, retained, np.int32(0)), None)
    assert card.size(retained) == 4


@pytest.mark.parametrize("kernel", ["keep_shared", "keep_static"])
def test_no_block_finds_what_another_left_in_shared_memory(kernel: str) -> None:
    # Two libraries with an array of the same name and another size: each has its own.
    for size in (8, 4000, 16):
        out = np.zeros(3, np.uint32)
        launch(compiled(KERNELS.replace("SIZE", str(size))), kernel, 3, 1, (out,))
        assert out.tolist() == [0xA5A5A5A5] * 3


@pytest.mark.parametrize("shared_bytes", [1, 64, 99 << 10, 256 << 10])
def test_a_write_behind_dynamic_shared_memory_is_an_error(shared_bytes: int) -> None:
    library, out = compiled(KERNELS.replace("SIZE", "8")), np.zeros(1, np.uint32)
    launch(library, "share", 1, 1, (out, np.int32(shared_bytes - 1)), shared_bytes=shared_bytes)
    with pytest.raises(DeviceError, match=f"a write behind the {shared_bytes} bytes of dynamic shared memory"):
        launch(library, "share", 1, 1, (out, np.int32(shared_bytes)), shared_bytes=shared_bytes)
