"""Devices of this machine and the resolution of requested names."""

from __future__ import annotations

import os

import pytest

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution.devices import devices, resolve_device
from proteoscope.engine.execution.resources import available_threads


def test_devices_lists_the_cpu_first_and_usable() -> None:
    cpu = devices()[0]
    assert cpu.name == "cpu"
    assert cpu.usable
    assert cpu.reason == ""
    assert str(available_threads()) in cpu.description


@pytest.mark.skipif(not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names, reason="the system does not report its memory")
def test_cpu_device_has_the_memory_of_the_system() -> None:
    expected = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert devices()[0].memory_bytes == pytest.approx(expected, rel=0.02)


def test_devices_have_distinct_names_and_reasons_if_unusable() -> None:
    every = devices()
    assert len({device.name for device in every}) == len(every)
    assert all(device.usable or device.reason for device in every)


def test_resolve_device_returns_usable_device_for_auto_and_cpu() -> None:
    assert resolve_device("cpu").name == "cpu"
    assert resolve_device("auto").usable


@pytest.mark.parametrize("name", ["gpu", "", "cuda:", "cuda:x", "cuda:-1", "CPU0", "cuda:" + "9" * 5000, "cuda:\u0663"])
def test_resolve_device_rejects_unknown_names(name: str) -> None:
    with pytest.raises(ParameterError, match="auto, cpu, cuda"):
        resolve_device(name)


def test_resolve_device_rejects_absent_gpu() -> None:
    with pytest.raises(ParameterError, match="cuda:977"):
        resolve_device("cuda:977")
