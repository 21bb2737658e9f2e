"""What is measured of a device: curves, fits, what is kept of it, and what is not believed."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from proteoscope.engine.execution.cost.kept import device_key, keep_parameters, kept_parameters
from proteoscope.engine.execution.cost.pace import times_slower
from proteoscope.engine.execution.cost.parameters import DeviceParameters, KindCosts, TransferCosts, WorkSize, fitted
from proteoscope.engine.execution.cost.prediction import bound_of, predicted_work
from proteoscope.engine.execution.cost.reference import reference_parameters
from proteoscope.engine.execution.cost.remembered import StepMemory
from proteoscope.engine.execution.devices import Device, processor


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path))
    return tmp_path


def card(**changes) -> DeviceParameters:
    return DeviceParameters(
        **(
            {
                "key": "uuid at 1980000 kHz, a card, driver 1",
                "description": "a card",
                "threads": 0,
                "multiprocessors": 100,
                "cores": 128,
                "shared_bytes": 1 << 17,
                "memory_bytes": 1 << 36,
                "capability": 90,
                "pinned": TransferCosts(),
                "sigma": 1e-5,
                "launch": 5e-6,
                "pageable": TransferCosts(sizes=(1e3, 1e6, 1e8), seconds_in=(1e-5, 1e-4, 1e-2), seconds_out=(1e-5, 2e-4, 4e-2)),
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


def test_between_samples_and_beyond_them():
    costs = card().kinds["sequences"]
    assert costs.kernel_seconds(1e3) == pytest.approx(1e-3)
    assert costs.kernel_seconds(1e4) == pytest.approx(2**0.5 * 1e-3), "half way in logarithms"
    assert costs.kernel_seconds(1e1) <= 1e-3
    assert costs.kernel_seconds(1e7) == pytest.approx(1.1e-2 + 9e6 * (9e-3 / 9e5)), "at the rate of the last two"
    assert costs.kernel_seconds(0) == 0.0
    assert card().pageable.seconds(1e8, False) == pytest.approx(4e-2)
    assert card().pageable.seconds(4, True) == card().pageable.alpha(True) == 1e-5, "a transfer of a word still has to begin"


def test_the_host_takes_what_it_took_of_samples_and_beyond_them_as_of_the_last():
    costs = card().kinds["sequences"].model_copy(update={"host_over_line": (1.0, 0.5)})
    assert costs.host_seconds(1000, 1e3) == pytest.approx(2e-3 + 1e-7)
    assert costs.host_seconds(1000, 1e6) == pytest.approx(0.5 * (2e-3 + 1e-4))
    assert costs.host_seconds(1000, 10**4.5) == pytest.approx(0.75 * (2e-3 + 10**-5.5)), "half way in logarithms"
    assert costs.host_seconds(5000, 1e8) == pytest.approx(0.5 * (6e-3 + 1e-2))
    with pytest.raises(ValidationError, match="each sample"):
        KindCosts(operations=(1.0,), kernel=(1.0,), moved=(1.0, 2.0), transfer=(1.0, 1.0), host_over_line=(1.0,))


def test_a_work_takes_the_sum_of_its_parts():
    found = predicted_work(card(), "sequences", WorkSize(1e6, 1000, 5e5, 5e5, 2))
    assert found.kernel == pytest.approx(1.1e-2)
    assert found.transfer == pytest.approx(1e-3)
    assert found.synchronisation + found.host == pytest.approx(1e-3 + 1e-3 + 1e-4)
    assert found.seconds == pytest.approx(1.41e-2)
    assert sum(found.shares().values()) == pytest.approx(1.0)
    assert found.bound == "compute"
    assert bound_of(found._replace(transfer=1.0)) == "transfer"
    assert bound_of(found._replace(host=1.0)) == "host"
    assert bound_of(found._replace(memory=1e-2)) == "memory"


def test_a_slow_host_takes_longer_for_all_but_the_kernels():
    measured, size = card().model_copy(update={"pace": 1e-4}), WorkSize(1e6, 1000, 5e5, 5e5, 2)
    found, slow = predicted_work(measured, "sequences", size, 1e-4), predicted_work(measured, "sequences", size, 1.5e-4)
    times = times_slower(1.5e-4, 1e-4)
    assert found == predicted_work(measured, "sequences", size)
    assert slow.kernel == found.kernel
    assert [slow.transfer, slow.host] == pytest.approx([times * found.transfer, times * found.host])
    assert predicted_work(card(), "sequences", size, 1.0) == found, "nobody knows its pace"


def test_coefficients_come_back_and_none_is_negative():
    rows = [(1.0, n, m) for n, m in ((10.0, 5.0), (100.0, 7.0), (1000.0, 900.0), (5.0, 4000.0))]
    assert fitted(rows, [2.0 + 0.3 * n + 0.01 * m for _, n, m in rows], rounds=20_000) == pytest.approx([2.0, 0.3, 0.01], rel=1e-3)
    assert min(fitted([(1.0, 1.0), (1.0, 2.0)], [2.0, 1.0])) >= 0.0


def test_what_is_kept_comes_back_for_the_same_device_alone():
    keep_parameters(card())
    assert kept_parameters(card().key) == card()
    for other in (
        "another uuid at 1980000 kHz, a card, driver 1",
        "uuid at 1500000 kHz, a card, driver 1",
        "uuid at 1980000 kHz, a card, driver 2",
    ):
        assert kept_parameters(other) is None
    assert device_key(processor(), 2) != device_key(processor(), 3)


def damaged(**changes) -> bytes:
    return json.dumps({**json.loads(card().model_dump_json()), **changes}).encode()


@pytest.mark.parametrize(
    "spoilt",
    [
        b"",
        b"{",
        b"null",
        b"[1]",
        b'{"key": 1}',
        b"\xff" * 100,
        b"[" * 100_000,
        damaged(launch=-1),
        damaged(memory_bandwidth=float("nan")),
        damaged(key="another"),
        damaged(more=1),
        damaged(kinds={"sequences": {"operations": [1, 2], "kernel": [1]}}),
        b" " * (1 << 20) + card().model_dump_json().encode(),
    ],
)
def test_a_damaged_or_foreign_file_is_as_good_as_none(own_cache, spoilt):
    keep_parameters(card())
    (path,) = (own_cache / "devices").iterdir()
    path.write_bytes(damaged())
    assert kept_parameters(card().key) == card()
    path.write_bytes(spoilt)
    assert kept_parameters(card().key) is None


def test_a_curve_that_falls_back_is_refused():
    with pytest.raises(ValidationError):
        KindCosts(operations=(2.0, 1.0), kernel=(1.0, 1.0))
    with pytest.raises(ValidationError):
        TransferCosts(sizes=(1.0, 2.0), seconds_in=(1.0,), seconds_out=(1.0, 1.0))


def test_devices_that_were_not_measured_are_those_that_ship():
    shipped = reference_parameters(Device("cuda:0", "any", 1, True, numbers=(0,)), 4)
    assert not shipped.is_processor
    one, eight = reference_parameters(processor(), 1), reference_parameters(processor(), 8)
    assert set(shipped.kinds) == set(one.kinds)
    assert one.kinds["structures"].kernel_seconds(1e9) == pytest.approx(8 * eight.kinds["structures"].kernel_seconds(1e9), rel=0.01)


def test_runs_correct_what_is_predicted():
    memory = StepMemory("align", "cpu", 2)
    assert memory.corrected("read", 1.0, 1.0) is None
    memory.remember({"read": 1.0}, {"read": 3.0})
    assert StepMemory("align", "cpu", 2).corrected("read", 2.0, 2.0) == pytest.approx(4.0), "of one size nothing tells how it grows"
    memory.remember({"read": 11.0}, {"read": 23.0})
    known = StepMemory("align", "cpu", 2)
    assert known.corrected("read", 5.0, 5.0) == pytest.approx(1.0 + 2 * 5.0, rel=1e-3)
    assert known.n == 2
    assert StepMemory("align", "cpu", 4).corrected("read", 5.0, 5.0) is None


@pytest.mark.parametrize(
    "text", ["", "[]", '{"align: cpu, 2 threads": [1, {"predicted": {"read": "x"}}]}', '{"align: cpu, 2 threads": 7}', "[" * 9999]
)
def test_spoilt_memories_are_forgotten(own_cache, text):
    (own_cache / "steps.json").write_text(text)
    memory = StepMemory("align", "cpu", 2)
    assert memory.corrected("read", 1.0, 1.0) is None
    memory.remember({"read": 1.0}, {"read": 2.0})
    assert len(json.loads((own_cache / "steps.json").read_text())["align: cpu, 2 threads"]) == 1
