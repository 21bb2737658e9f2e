"""Libraries load faster and behave the same; linear algebra is located once, before threads start, and can be limited to one thread."""

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


DATACLASSES = """
import sys
if sys.argv[1:]:
    from proteoscope.engine.execution.libraries import lighten_libraries
    lighten_libraries()
import copy, inspect, pickle
from typing import Generic, TypeVar
from dataclasses import dataclass, field, replace

T = TypeVar("T")

@dataclass(frozen=True, order=True)
class Peak:
    mz: float
    intensity: float = field(default=1.0, compare=False)

@dataclass(frozen=True)
class Ion(Peak):
    name: str = "b"
    def __repr__(self):
        return f"ion {super().__repr__()}"

@dataclass(slots=True)
class Spectrum:
    peaks: list = field(default_factory=list)

@dataclass
class Undocumented(Generic[T]):
    value: T
    more: "list[int]" = field(default_factory=list)

class Plain(Undocumented):
    def __init__(self, value):
        super().__init__(value, more=[1])

def attempt(action, *arguments):
    try:
        return action(*arguments)
    except Exception as error:
        return type(error).__name__, str(error)

method = vars(Undocumented)["__eq__"]
print(method(Undocumented(1), Undocumented(1)), method.__get__(Undocumented(1))(Undocumented(2)))
print(inspect.signature(Peak.__repr__), Ion.__repr__.__doc__, Peak.__repr__.__doc__, Spectrum.__repr__.__wrapped__.__name__)
for _ in range(2):  # the second time, the methods are compiled
    a, b, ion, spectrum = Peak(1.0), Peak(1.0, 2.0), Ion(1.0), Spectrum([Peak(3.0)])
    print(a == b, a != Peak(2.0), a == ion, hash(a) == hash(b), hash(ion) == hash(Ion(1.0)), len({a, b, ion}), a < Peak(2.0), a <= b, a > b)
    print(a, ion, spectrum, Spectrum() == Spectrum(), pickle.loads(pickle.dumps(a)) == a, copy.copy(ion), replace(ion, mz=2.0))
    print(attempt(setattr, a, "mz", 2.0), attempt(delattr, ion, "name"), attempt(setattr, ion, "other", 2), attempt(hash, spectrum))
    print(Undocumented.__doc__, Plain(2), Plain(2) == Plain(2), Undocumented(2) == Plain(2), Undocumented.__init__.__annotations__)
    print(attempt(Peak), attempt(Spectrum, 1, 2), Peak.__init__.__qualname__, Plain.__eq__.__qualname__, Spectrum.__init__.__qualname__)
    print(attempt(lambda: a < 1), a.__eq__(1), inspect.signature(Ion), Peak.__repr__.__qualname__, Ion.__hash__.__qualname__)
"""


def test_dataclasses_with_uncompiled_methods_behave_the_same():
    outputs = [
        subprocess.run([sys.executable, "-c", DATACLASSES, *lighter], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
        for lighter in ([], ["lighter"])
    ]
    assert outputs[0].count("FrozenInstanceError") == 6 and outputs[0] == outputs[1]
