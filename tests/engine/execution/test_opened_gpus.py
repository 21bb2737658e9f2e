"""The GPUs that a user selected are opened, or left out with the reason."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proteoscope.engine.execution import device_lookup
from proteoscope.engine.execution.cost.calibration_store import reference_parameters, store_calibration
from proteoscope.engine.execution.device_lookup import open_gpus
from proteoscope.engine.execution.devices import Device
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.kernels.cuda.rates import USUAL_RATES
from proteoscope.kernels.device import DeviceError


def test_open_gpus_opens_no_gpu_for_the_cpu() -> None:
    assert open_gpus(Device("cpu", "a CPU", 1, True), Progress()) == []


def test_open_gpus_reports_and_omits_gpu_that_cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    class OpenedGpu:
        name, limit = "cuda:1", -1

        def limit_memory(self, n_bytes: int) -> None:
            self.limit = n_bytes

    def open_gpu(number: int) -> Any:
        if number == 0:
            raise DeviceError("cuda:0 failed: the driver\n  is too old")
        return OpenedGpu()

    monkeypatch.setattr(device_lookup, "open_gpu", open_gpu)
    progress = RecordingProgress(Progress())
    opened = open_gpus(Device("cuda:0+cuda:1", "two", 1, True, numbers=(0, 1)), progress, memory_bytes=2_000_000_000)
    assert [gpu.name for gpu in opened] == ["cuda:1"]
    assert opened[0].limit == 2_000_000_000  # type: ignore[attr-defined]
    assert progress.messages[-1] == "cuda:0 failed: the driver is too old; it is not used"


def test_opened_gpu_has_measured_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr("proteoscope.kernels.cuda.driver.identity", lambda number: f"GPU-{number}")
    device = Device("cuda:0", "a GPU", 1, True, numbers=(0,))
    monkeypatch.setattr(device_lookup, "gpus", lambda: (device,))
    monkeypatch.setattr(device_lookup, "open_gpu", lambda number: SimpleNamespace(name="cuda:0", limit_memory=lambda n_bytes: None))
    assert open_gpus(device, Progress())[0].rates == USUAL_RATES
    measured = reference_parameters(device, 0)
    rates = {**measured.rates, "integer": 7e12}
    store_calibration(device, 0, measured.model_copy(update={"rates": rates, "launch": 3e-5}))
    opened_rates = open_gpus(device, Progress())[0].rates
    assert (opened_rates.maxima, opened_rates.launch) == (7e12, 3e-5)
    assert opened_rates.lookups == pytest.approx(USUAL_RATES.lookups, rel=0.01), "the usual rates are those of the shipped calibration"
    assert opened_rates.memory_bytes == pytest.approx(USUAL_RATES.memory_bytes, rel=0.01)
    assert opened_rates.multiply_adds == pytest.approx(USUAL_RATES.multiply_adds, rel=0.01)
