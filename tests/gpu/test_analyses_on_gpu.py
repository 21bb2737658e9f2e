"""Problems of the ATGPU model on a GPU: CPU answers, consistent times and possible rates."""

from __future__ import annotations

import numpy as np
import pytest

import proteoscope.engine.searches  # noqa: F401  makes the kinds of work known
from proteoscope.engine.execution.cost.calibration import calibrate_gpu
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.analyses_layouts import OPERATIONS, PROBLEMS
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import backend_module
from tests.kernels.test_analyses import expected, given

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("size", [1, 513, 3_000_000])
def test_atgpu_problems_on_gpu_equal_numpy(problem, size, device):
    arrays = given(problem, min(size, 300) if problem == "matrix multiplication" else size)
    for backend in (device, Processor(2)):
        actual, spent = getattr(backend_module(backend, "analyses").Analyses(backend), PROBLEMS[problem][0])(*arrays)
        np.testing.assert_array_equal(actual, expected(problem, arrays))
        assert spent.seconds == pytest.approx(sum(spent))


def test_calibrate_gpu_measures_a_rate_of_every_operation(number):
    calibrated = calibrate_gpu(number, "a GPU", ["structures"], Progress())
    assert set(calibrated.rates) == set(OPERATIONS)
    assert all(0 < rate < np.inf for rate in (*calibrated.rates.values(), calibrated.memory_bandwidth))
    assert list(calibrated.transfers.seconds_in) == sorted(calibrated.transfers.seconds_in)
    costs = calibrated.kinds["structures"]
    assert len(costs.operations) >= 3
    assert costs.transfer
