"""Ion traces on GPUs equal those on the CPU byte for byte, in chunks of any size and in complete quantifications."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.quantification.ion_traces import measured_traces
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.kernels.cpu import traces as cpu
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda import traces as cuda
from proteoscope.kernels.cuda.modules import open_gpu
from tests.shim.trace_inputs import random_traces, synthetic_ms1_spectra

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("n_peaks", "n_windows"), [(1, 1), (33, 100), (3000, 150), (1_000_000, 60_000)])
@pytest.mark.parametrize("seed", range(3))
def test_gpu_ion_traces_equal_cpu(device, seed, n_peaks, n_windows, monkeypatch):
    peaks, windows, n = random_traces(seed, n_peaks, n_windows, n_spectra=700)
    actual = [np.zeros(n, np.float32) for _ in range(3)]
    list(cpu.extract_traces(Processor(8), peaks, windows, actual[0]))
    list(cuda.extract_traces(device, peaks, windows, actual[1]))
    monkeypatch.setattr(cuda, "_WINDOWS_OF_ROUND", 41 if n_windows < 1000 else 9001)
    list(cuda.extract_traces(device, peaks, windows, actual[2]))
    assert actual[0].tobytes() == actual[1].tobytes() == actual[2].tobytes()


def test_measured_traces_are_the_same_on_every_device(number):
    spectra, query = synthetic_ms1_spectra(200_000, 3000, seed=4)
    actual = [
        measured_traces(spectra, query, QuantificationParameters(), Resources(threads, gpus))
        for threads, gpus in ((1, []), (8, []), (4, [open_gpu(number)]))
    ]
    assert actual[0].any()
    assert actual[0].tobytes() == actual[1].tobytes() == actual[2].tobytes()
