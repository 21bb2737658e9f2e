"""What the C library keeps of what threads have given back."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).parents[3]
_MANY_THREADS = """
import ctypes, json, sys, threading
from proteoscope.engine.execution.libraries import bound_kept_memory
from proteoscope.engine.execution.threads import available_threads
if sys.argv[1] == "bounded":
    bound_kept_memory()
barrier = threading.Barrier(4 * available_threads() + 8)
def work():
    barrier.wait()
    held = [bytes(100_000) for _ in range(40)]
    barrier.wait()
threads = [threading.Thread(target=work) for _ in range(barrier.parties)]
for one in threads:
    one.start()
for one in threads:
    one.join()
library = ctypes.CDLL(None)
library.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(library.fopen(sys.argv[2].encode(), b"w"))
library.malloc_info(0, file)
library.fclose(file)
print(json.dumps([open(sys.argv[2]).read().count("<heap nr="), available_threads()]))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="heaps of glibc are meant")
@pytest.mark.parametrize("how", ["bounded", "free", "set by the user"])
def test_threads_share_no_more_heaps_than_there_are_processors(how: str, tmp_path: Path) -> None:
    """`malloc_info` of glibc itself counts them."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")} | {"PYTHONPATH": str(_REPOSITORY)}
    if how == "set by the user":
        environment["MALLOC_ARENA_MAX"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", _MANY_THREADS, "free" if how == "free" else "bounded", str(tmp_path / "heaps.xml")],
        capture_output=True, text=True, env=environment, check=True, timeout=60,
    )  # fmt: skip
    n_heaps, n_processors = json.loads(done.stdout)
    if how == "free":
        assert n_heaps > max(2, n_processors), "without the bound there are more"
    else:
        assert n_heaps <= (1 if how == "set by the user" else max(2, n_processors))
