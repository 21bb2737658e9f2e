"""Measurements of a device: curves, fits, their storage, and rejection of implausible ones."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pydantic import ValidationError

from proteoscope.engine.execution.cost.calibration_store import reference_parameters, store_calibration, stored_calibration
from proteoscope.engine.execution.cost.kind_samples import fitted
from proteoscope.engine.execution.cost.parameters import DeviceParameters, KindCosts, TransferCosts, WorkSize
from proteoscope.engine.execution.cost.prediction import find_bound, predict_workload
from proteoscope.engine.execution.devices import Device, processor


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path))
    return tmp_path


def open_gpu(**changes) -> DeviceParameters:
    return DeviceParameters(
        **(
            {
                "description": "a GPU",
                "threads": 0,
                "multiprocessors": 100,
                "cores": 128,
                "shared_bytes": 1 << 17,
                "memory_bytes": 1 << 36,
                "capability": 90,
                "sigma": 1e-5,
                "launch": 5e-6,
                "transfers": TransferCosts(sizes=(1e3, 1e6, 1e8), seconds_in=(1e-5, 1e-4, 1e-2), seconds_out=(1e-5, 2e-4, 4e-2)),
                "memory_bandwidth": 1e12,
                "rates": {"integer": 1e13, "lookup": 5e12},
                "kinds": {
                    "sequences": KindCosts(
                        operations=(1e3, 1e5, 1e6),
                        kernel=(1e-3, 2e-3, 1.1e-2),
                        moved=(1e3, 1e6),
                        transfer=(1e-4, 1e-3),
                        host_fixed=1e-3,
                        host_item=1e-6,
                        host_byte=1e-10,
                    )
                },
            }
            | changes
        )
    )


def test_predicted_kernel_seconds_follow_the_measured_curve():
    costs = open_gpu().kinds["sequences"]
    assert costs.kernel_seconds(1e3) == pytest.approx(1e-3)
    assert costs.kernel_seconds(1e4) == pytest.approx(2**0.5 * 1e-3), "interpolated in logarithms"
    assert costs.kernel_seconds(1e1) <= 1e-3
    assert costs.kernel_seconds(1e7) == pytest.approx(1.1e-2 + 9e6 * (9e-3 / 9e5)), "at the rate of the last two samples"
    assert costs.kernel_seconds(0) == 0.0
    assert open_gpu().transfers.seconds(1e8, False) == pytest.approx(4e-2)
    assert open_gpu().transfers.seconds(4, True) == open_gpu().transfers.alpha(True) == 1e-5, "a transfer of a word costs its start"


def test_predicted_host_seconds_follow_the_measured_samples():
    costs = open_gpu().kinds["sequences"].model_copy(update={"host_over_line": (1.0, 0.5)})
    assert costs.host_seconds(1000, 1e3) == pytest.approx(2e-3 + 1e-7)
    assert costs.host_seconds(1000, 1e6) == pytest.approx(0.5 * (2e-3 + 1e-4))
    assert costs.host_seconds(1000, 10**4.5) == pytest.approx(0.75 * (2e-3 + 10**-5.5)), "interpolated in logarithms"
    assert costs.host_seconds(5000, 1e8) == pytest.approx(0.5 * (6e-3 + 1e-2))
    with pytest.raises(ValidationError, match="each sample"):
        KindCosts(operations=(1.0,), kernel=(1.0,), moved=(1.0, 2.0), transfer=(1.0, 1.0), host_over_line=(1.0,))


def test_predicted_seconds_sum_kernel_transfer_and_host_time():
    prediction = predict_workload(open_gpu(), "sequences", WorkSize(1e6, 1000, 5e5, 5e5, 2))
    assert prediction.kernel == pytest.approx(1.1e-2)
    assert prediction.transfer == pytest.approx(1e-3)
    assert prediction.synchronisation + prediction.host == pytest.approx(1e-3 + 1e-3 + 1e-4)
    assert prediction.seconds == pytest.approx(1.41e-2)
    assert find_bound(prediction) == "compute"
    assert find_bound(prediction._replace(transfer=1.0)) == "transfer"
    assert find_bound(prediction._replace(host=1.0)) == "host"
    assert find_bound(prediction._replace(memory=1e-2)) == "memory"


def test_fit_recovers_nonnegative_cost_coefficients():
    rows = [(1.0, n, m) for n, m in ((10.0, 5.0), (100.0, 7.0), (1000.0, 900.0), (5.0, 4000.0))]
    assert fitted(rows, [2.0 + 0.3 * n + 0.01 * m for _, n, m in rows]) == pytest.approx([2.0, 0.3, 0.01], rel=1e-6)
    assert min(fitted([(1.0, 1.0), (1.0, 2.0)], [2.0, 1.0])) >= 0.0


def damaged(**changes) -> bytes:
    return json.dumps({**json.loads(open_gpu().model_dump_json()), **changes}).encode()


@pytest.mark.parametrize(
    "damaged_entry",
    [
        b"null",
        b"[1]",
        b'{"key": 1}',
        damaged(launch=-1),
        damaged(memory_bandwidth=float("nan")),
        damaged(more=1),
        damaged(kinds={"sequences": {"operations": [1, 2], "kernel": [1]}}),
    ],
)
def test_stored_calibration_ignores_damaged_file(own_cache, damaged_entry):
    store_calibration(processor(), 2, open_gpu())
    assert stored_calibration(processor(), 2) == open_gpu()
    assert stored_calibration(processor(), 3) is None
    path = own_cache / "devices.json"
    content = json.loads(path.read_text())
    (entry,) = content["calibrations"].values()
    entry[1] = json.loads(damaged_entry)
    path.write_text(json.dumps(content))
    assert stored_calibration(processor(), 2) is None


@pytest.mark.parametrize("change", ["identity", "description"])
def test_stored_calibration_is_used_only_for_the_same_gpu(monkeypatch, change):
    device = Device("cuda:0", "a GPU, driver 1", 1, True, numbers=(0,))
    monkeypatch.setattr("proteoscope.kernels.cuda.driver.identity", lambda number: "uuid at 1980000 kHz")
    store_calibration(device, 2, open_gpu())
    assert stored_calibration(device, 8) == open_gpu(), "threads make no difference"
    if change == "identity":
        monkeypatch.setattr("proteoscope.kernels.cuda.driver.identity", lambda number: "uuid at 1500000 kHz")
    else:
        device = replace(device, description="a GPU, driver 2")
    assert stored_calibration(device, 2) is None


def test_calibration_rejects_decreasing_or_unequal_curves():
    with pytest.raises(ValidationError):
        KindCosts(operations=(2.0, 1.0), kernel=(1.0, 1.0))
    with pytest.raises(ValidationError):
        TransferCosts(sizes=(1.0, 2.0), seconds_in=(1.0,), seconds_out=(1.0, 1.0))


def test_unmeasured_devices_use_the_shipped_calibration():
    shipped = reference_parameters(Device("cuda:0", "any", 1, True, numbers=(0,)), 4)
    assert not shipped.is_processor
    single, eight = reference_parameters(processor(), 1), reference_parameters(processor(), 8)
    assert set(shipped.kinds) == set(single.kinds)
    assert single.kinds["structures"].kernel_seconds(1e9) == pytest.approx(8 * eight.kinds["structures"].kernel_seconds(1e9), rel=0.01)
