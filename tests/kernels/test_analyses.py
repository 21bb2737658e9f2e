"""The problems of the ATGPU model: both backends give NumPy's results, and the kernels do the predicted work."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels.analyses_layouts import BLOCK, OPERATIONS, PROBLEMS, TOGETHER
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import backend_module
from tests.shim.shim_gpu import ShimGpu, missing_compiler

pytestmark = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")


def given(problem, n, seed=1):
    rng = np.random.default_rng(seed)
    shape = (n, n) if problem == "matrix multiplication" else (n,)
    count = 2 if problem in ("vector addition", "matrix multiplication") else 1
    return [rng.integers(0, 1 << 32, shape, np.uint32) for _ in range(count)]


def expected(problem, arrays):
    if problem == "vector addition":
        return arrays[0] + arrays[1]
    if problem == "matrix multiplication":
        return arrays[0] @ arrays[1]
    sums = np.cumsum(arrays[0], dtype=np.uint32)
    return sums[-1:] if problem == "reduction" else np.concatenate(([np.uint32(0)], sums[:-1]))


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("size", [1, 255, 513, 140_000])
def test_atgpu_problems_equal_numpy_on_both_backends(problem, size):
    n = min(size, 70) if problem == "matrix multiplication" else size
    arrays = given(problem, n)
    for device in (Processor(2), ShimGpu()):
        actual, spent = getattr(backend_module(device, "analyses").Analyses(device), PROBLEMS[problem][0])(*arrays)
        np.testing.assert_array_equal(actual, expected(problem, arrays))
        assert spent.kernel > 0
        assert spent.seconds == pytest.approx(sum(spent))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_atgpu_analysis_predicts_the_work_of_the_gpu(problem):
    n = 64 if problem == "matrix multiplication" else 512 * 600
    name, analyse_rounds = PROBLEMS[problem]
    gpu, rounds = ShimGpu(), analyse_rounds(n)
    getattr(backend_module(gpu, "analyses").Analyses(gpu), name)(*given(problem, n))
    assert (gpu.bytes_in // 4, gpu.bytes_out // 4) == (sum(step.words_in for step in rounds), sum(step.words_out for step in rounds))
    assert gpu.transfers == sum(step.transfers_in + step.transfers_out for step in rounds)
    assert len(gpu.launched) == len(rounds)
    # The kernels do not count the steps of the trees, because only some threads take them.
    of_tree = {"reduction": 9, "prefix scan": 18}.get(problem, 0)
    plain = [step.operations - (of_tree if step.operations > of_tree else 0) for step in rounds]
    assert gpu.operations == sum(step.blocks * BLOCK * each for step, each in zip(rounds, plain, strict=True))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_rate_measurement_counts_the_requested_operations(operation):
    gpu = ShimGpu()
    operations, seconds = backend_module(gpu, "analyses").Analyses(gpu).rate(operation, 3)
    assert operations == gpu.operations == 8 * BLOCK * TOGETHER * 3
    assert seconds > 0
    count, seconds = backend_module(Processor(2), "analyses").Analyses(Processor(2)).rate(operation, 1000)
    assert (count, seconds > 0) == (2 * TOGETHER * 1000, True)
