"""Starting the CUDA driver on a GPU."""

from __future__ import annotations

import ctypes

import pytest

from proteoscope.kernels.cuda import driver

pytestmark = pytest.mark.gpu


def test_begin_context_activates_the_primary_context(number: int) -> None:
    assert driver.begin_context(number)
    flags, is_active = ctypes.c_uint(), ctypes.c_int()
    ctypes.CDLL(driver._LIBRARY).cuDevicePrimaryCtxGetState(number, ctypes.byref(flags), ctypes.byref(is_active))
    assert is_active.value == 1
