"""Numba's conversions are the same whether they are computed when Numba is imported or when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

NUMBA = """
import sys
if sys.argv[1:]:
    import proteoscope.kernels.cpu
from numba import njit, types
from numba.core.typeconv import _typeconv, rules
manager = rules.default_type_manager
def is_computed():
    return _typeconv.check_compatible(manager._ptr, types.int32._code, types.float64._code) is not None
print(is_computed())
"""
CONVERSIONS = """
numbers = sorted(types.number_domain | {types.boolean, types.voidptr}, key=str)
print([[manager.check_compatible(one, other) for other in numbers] for one in numbers], is_computed())
print(sorted(vars(manager)), sorted(map(str, manager._types)))
"""
OVERLOADS = """
print(manager.select_overload([types.int32], [[types.int64], [types.float64]], True, False), is_computed())
"""
FIXED_TYPES = """
half = njit("float64(float64)")(lambda x: x / 2)
print(half(3), half(True), is_computed())
"""
SEVERAL_THREADS = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    print(set(pool.map(lambda _: manager.check_compatible(types.uint8, types.complex128), range(64))), is_computed())
"""
INTERRUPTED = """
set_compatible, n_calls = _typeconv.set_compatible, 0
def interrupt(*arguments):
    global n_calls
    n_calls += 1
    if n_calls == 20:
        raise KeyboardInterrupt
    set_compatible(*arguments)
_typeconv.set_compatible = interrupt
try:
    manager.check_compatible(types.int32, types.float64)
except KeyboardInterrupt:
    pass
"""


def run(script: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-c", NUMBA + script, *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize(
    "script",
    [CONVERSIONS, OVERLOADS, FIXED_TYPES, SEVERAL_THREADS, INTERRUPTED + CONVERSIONS],
    ids=["pairs", "overloads", "calls", "threads", "interrupted"],
)
def test_postponed_conversions_are_those_of_numba(script):
    of_numba, of_kernels = run(script), run(script, "postponed")
    assert (of_numba[0], of_kernels[0]) == ("True", "False")
    assert of_numba[1:] == of_kernels[1:] and "True" in of_kernels[1]


def test_calls_of_cached_kernels_compute_no_conversions():
    script = "from proteoscope.kernels.cpu.elementary import logarithm\nprint(logarithm(1.0), is_computed())"
    run(script, "postponed")  # compiles the kernel, if it is not cached
    assert run(script, "postponed") == ["False", "0.0 False"]
