"""NumPy's linear algebra is located once, before threads start, and can be limited to one thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.conftest import REPOSITORY

SCRIPT = """
import json, sys
from proteoscope.engine.execution.device_lookup import DeviceLookup
from proteoscope.engine.execution.libraries import find_linear_algebra, one_algebra_thread
import threadpoolctl
n_found = 0
class Counting(threadpoolctl.ThreadpoolController):
    def __init__(self):
        global n_found
        n_found += 1
        super().__init__()
threadpoolctl.ThreadpoolController = Counting
DeviceLookup("cpu")
after_lookup = n_found
def threads():
    return [library.num_threads for library in find_linear_algebra().lib_controllers if library.user_api == "blas"]
before = threads()
with one_algebra_thread():
    within = threads()
print(json.dumps([after_lookup, n_found, before, within, threads()]))
"""


def test_blas_library_is_detected_once_and_limited_to_one_thread():
    environment = {name: value for name, value in os.environ.items() if "_NUM_THREADS" not in name} | {"OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    after_lookup, n_found, before, within, after = json.loads(done.stdout)
    assert (after_lookup, n_found) == (1, 1)
    assert before and set(within) == {1} and after == before
