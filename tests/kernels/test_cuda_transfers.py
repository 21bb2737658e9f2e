"""Arrays arrive on a GPU as they were, also if several threads send them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from proteoscope.kernels.cuda.sending import Sending, sent
from proteoscope.kernels.device import DeviceMemoryError
from tests.shim.deferred_gpu import DeferredGpu
from tests.shim.shim_gpu import ShimGpu


@pytest.mark.parametrize("n", [0, 1, 49, 199, 200, 201, 399, 400, 12_345])
@pytest.mark.parametrize("cores", [1, 2, 5, 100])
def test_arrays_arrive_on_the_gpu_unchanged_at_any_size(n, cores, monkeypatch):
    monkeypatch.setattr("proteoscope.kernels.cuda.sending._STAGED_BYTES", 100)
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
    monkeypatch.setattr("proteoscope.kernels.cuda.sending._STAGED_BYTES", 100)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(4), raising=False)
    gpu, order = ShimGpu(), []
    monkeypatch.setattr(gpu, "wait", lambda stream: order.append("wait"))
    monkeypatch.setattr(gpu, "upload", lambda *arguments, **options: order.append("upload"))
    sent(gpu, {"values": np.zeros(1000, np.uint8)}, gpu.stream())
    assert order[0] == "wait" and order[-1] == "wait" and "upload" in order


@pytest.fixture
def four_senders(monkeypatch):
    monkeypatch.setattr("proteoscope.kernels.cuda.sending._STAGED_BYTES", 100)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(4), raising=False)


def test_beginnings_of_arrays_can_be_used_while_the_rest_is_sent(four_senders):
    random, gpu, rest = np.random.default_rng(5), DeferredGpu(), threading.Event()
    arrays = {"long": random.integers(0, 256, 9000).astype(np.uint8), "short": random.integers(0, 256, 1000).astype(np.uint8)}
    # Without an event, the uploads of threads that are held would not have run.
    gpu.hold = lambda buffer, offset: offset < 0.4 * gpu.size(buffer) or rest.wait(30) or pytest.fail("the rest was needed")
    stream = gpu.stream()
    sending = Sending(gpu, arrays, stream)

    def arrived(share):
        sending.arrive({name: int(share * len(values)) for name, values in arrays.items()})
        for name, values in arrays.items():
            result = np.empty_like(values)
            gpu.download(result, sending.buffers[name], stream)
            np.testing.assert_array_equal(result[: int(share * len(values))], values[: int(share * len(values))])

    arrived(0.25)
    arrived(0.4)
    rest.set()
    arrived(0.7)
    arrived(1.0)
    sending.wait()


def test_threads_stop_when_an_array_is_no_longer_needed(four_senders):
    gpu, rest = DeferredGpu(), threading.Event()
    gpu.hold = lambda buffer, offset: offset < 1000 or rest.wait(30)
    sending = Sending(gpu, {"values": np.zeros(100_000, np.uint8)}, gpu.stream())
    sending.arrive({"values": 1000})
    workers = sending._workers
    del sending
    rest.set()
    for worker in workers:
        worker.result(30)
    assert gpu.log.count("upload") <= 10 + 4


@pytest.mark.parametrize("fails", range(8))
def test_array_is_not_used_without_pinned_memory_for_all_of_it(fails, four_senders, monkeypatch):
    gpu, pinned, calls = DeferredGpu(), DeferredGpu.pinned, []

    def refused(self, n_bytes):
        calls.append(n_bytes)
        if len(calls) == fails + 1:
            raise DeviceMemoryError("no pinned memory")
        return pinned(self, n_bytes)

    monkeypatch.setattr(DeferredGpu, "pinned", refused)
    values = np.arange(9000) % 251
    try:
        buffers = sent(gpu, {"values": values}, gpu.stream())
    except DeviceMemoryError:
        assert len(calls) > fails
        buffers = sent(gpu, {"values": values}, gpu.stream())
    arrived = np.empty_like(values)
    gpu.download(arrived, buffers["values"], gpu.stream())
    np.testing.assert_array_equal(arrived, values)
