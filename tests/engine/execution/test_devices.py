"""Devices: what there is, and what a wish for one gives."""

from __future__ import annotations

import os

import pytest

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution.devices import devices, resolve_device
from proteoscope.engine.execution.threads import available_threads


def test_the_processor_comes_first_and_is_usable() -> None:
    processor = devices()[0]
    assert processor.name == "cpu"
    assert processor.usable
    assert processor.reason == ""
    assert str(available_threads()) in processor.description


@pytest.mark.skipif(not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names, reason="the system does not tell its memory")
def test_memory_is_that_of_the_system() -> None:
    told = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert devices()[0].memory_bytes == pytest.approx(told, rel=0.02)


def test_names_are_distinct_and_what_is_not_usable_says_why() -> None:
    every = devices()
    assert len({device.name for device in every}) == len(every)
    assert all(device.usable or device.reason for device in every)


def test_auto_and_cpu_give_a_device_that_is_usable() -> None:
    assert resolve_device("cpu").name == "cpu"
    assert resolve_device("auto").usable


@pytest.mark.parametrize("wish", ["gpu", "", "cuda:", "cuda:x", "cuda:-1", "CPU0", "cuda:" + "9" * 5000, "cuda:\u0663"])
def test_an_unknown_wish_is_answered_by_what_is_possible(wish: str) -> None:
    with pytest.raises(ParameterError, match="auto, cpu, cuda"):
        resolve_device(wish)


def test_a_device_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ParameterError, match="cuda:977"):
        resolve_device("cuda:977")
