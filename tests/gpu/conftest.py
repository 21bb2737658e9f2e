"""The GPU for the tests of this folder, which are skipped with a reason if there is none."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from proteoscope.engine.execution.devices import gpus
from proteoscope.kernels.cuda.modules import CudaGpu, open_gpu


@pytest.fixture(scope="session")
def number() -> int:
    """Return the number of the first usable GPU."""
    every = gpus()
    usable = [gpu for gpu in every if gpu.usable]
    if not usable:
        pytest.skip(f"no usable GPU: {every[0].reason}")
    return usable[0].numbers[0]


@pytest.fixture(scope="module", autouse=True)
def use_gpu_exclusively(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let only one of several test processes (pytest-xdist) use the GPU, because tests measure its free memory."""
    if "PYTEST_XDIST_WORKER" not in os.environ or sys.platform == "win32":
        yield
        return
    import fcntl

    with (tmp_path_factory.getbasetemp().parent / "gpu.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def device(number: int) -> CudaGpu:
    """Open the GPU."""
    return open_gpu(number)
