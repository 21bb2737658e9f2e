"""Arrays arrive on a GPU as they were, also if several threads send them."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels.cuda import modules
from proteoscope.kernels.cuda.modules import sent
from tests.shim.shim_gpu import ShimGpu


@pytest.mark.parametrize("n", [0, 1, 49, 199, 200, 201, 399, 400, 12_345])
@pytest.mark.parametrize("cores", [1, 2, 5, 100])
def test_arrays_arrive_on_the_gpu_unchanged_at_any_size(n, cores, monkeypatch):
    monkeypatch.setattr(modules, "_STAGED_BYTES", 100)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(cores), raising=False)
    values = np.random.default_rng(n).integers(0, 1 << 31, (n, 3)).astype(np.int32)
    gpu = ShimGpu()
    buffers = sent(gpu, {"rows": values, "columns": values.T}, gpu.stream())
    transfers = gpu.transfers
    for name, expected in (("rows", values), ("columns", np.ascontiguousarray(values.T))):
        arrived = np.empty_like(expected)
        gpu.download(arrived, buffers[name], gpu.stream())
        np.testing.assert_array_equal(arrived, expected)
    assert gpu.bytes_in == 2 * values.nbytes
    senders = min(cores, 8, values.nbytes // 200)
    assert transfers == (2 * -(-values.nbytes // 100) if senders > 1 else 2 * (n > 0))


def test_large_array_is_sent_after_earlier_stream_commands(monkeypatch):
    monkeypatch.setattr(modules, "_STAGED_BYTES", 100)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(4), raising=False)
    gpu, order = ShimGpu(), []
    monkeypatch.setattr(gpu, "wait", lambda stream: order.append("wait"))
    monkeypatch.setattr(gpu, "upload", lambda *arguments, **options: order.append("upload"))
    sent(gpu, {"values": np.zeros(1000, np.uint8)}, gpu.stream())
    assert order[0] == "wait" and order[-1] == "wait" and "upload" in order
