"""Cache of compiled kernels: damage by a crash or a full disk is detected and costs only a compilation."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

KERNEL = """
import proteoscope.kernels.cpu
from numba import njit

@njit(cache=True)
def doubled(number):
    return 2 * number
"""

USE = """
import importlib.util, sys

def use(path=sys.argv[1]):
    specification = importlib.util.spec_from_file_location("kernel", path)
    module = importlib.util.module_from_spec(specification)
    sys.modules["kernel"] = module
    specification.loader.exec_module(module)
    assert module.doubled(21) == 42
    return sum(module.doubled.stats.cache_hits.values())
"""

EVERY_DAMAGE = """
import pathlib, random, shutil
flipped = lambda content, at: content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
damages = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "one byte less": lambda content: content[:-1],
    "a bit flipped": lambda content: flipped(content, len(content) // 2),
    "zeros": lambda content: bytes(len(content)),
    "garbage": lambda content: random.Random(3).randbytes(len(content)),
}
cache, copy = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
print(use(), use())
shutil.copytree(cache, copy)
damages["nothing"] = lambda content: content
for with_sums in (True, False):
    for suffix in (".nbi", ".nbc", ".sums"):
        for name, damage in damages.items():
            if (with_sums and name == "nothing") or (not with_sums and suffix == ".sums"):
                continue
            shutil.rmtree(cache)
            shutil.copytree(copy, cache)
            if not with_sums:
                for path in cache.rglob("*.sums"):
                    path.unlink()
            (file,) = cache.rglob("*doubled*" + suffix)
            file.write_bytes(damage(file.read_bytes()))
            print(use(), use(), with_sums, suffix, name)
"""


def output_of(script, tmp_path, *arguments, **environment):
    """Return the output of a process that uses a small kernel."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    process = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "kernel.py", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
    )
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return process.stdout.splitlines()


ADDING = """
from numba import njit

@njit(cache=True)
def added(number):
    return number + {amount}
"""

CALLING = """
from numba import njit
from proteoscope.kernels.cpu.one import added

@njit(cache=True)
def result(number):
    return added(number)
"""

RESULT = """
from proteoscope.kernels.cpu.other import result
print(result(10), sum(result.stats.cache_hits.values()))
"""


def test_kernel_cache_replaces_files_without_a_valid_checksum(tmp_path):
    cache = tmp_path / "cache"
    lines = output_of(USE + EVERY_DAMAGE, tmp_path, cache, tmp_path / "copy", NUMBA_CACHE_DIR=str(cache))
    assert len(lines) == 1 + 18 + 14
    # Recompiled, and cached for the next process.
    assert [line for line in lines if not line.startswith("0 1")] == []


REFUSE = """
import os, pathlib, sys, tempfile
real = tempfile.TemporaryFile
def refuse(*args, dir=None, **kwargs):
    if any(str(dir).startswith(str(allowed)) for allowed in sys.argv[1].split(os.pathsep) if allowed):
        return real(*args, dir=dir, **kwargs)
    raise PermissionError(13, "read-only")
tempfile.TemporaryFile = refuse
import proteoscope.kernels.cpu
from proteoscope.kernels.cpu.caching import uncached_reason
print(os.environ.get("NUMBA_CACHE_DIR", ""), uncached_reason(), sep="|")
"""


def cache_folder_of_process(allowed, **environment):
    """Return the cache folder of a process that may create temporary files only in some folders."""
    retained = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "PROTEOSCOPE_CACHE")}
    process = subprocess.run(
        [sys.executable, "-c", REFUSE, os.pathsep.join(map(str, allowed))],
        cwd=REPOSITORY,
        env={**retained, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    folder, _, reason = process.stdout.strip().partition("|")
    return folder, reason


def test_kernel_cache_uses_the_configured_folder_if_writable(tmp_path):
    assert cache_folder_of_process([tmp_path / "cache"], PROTEOSCOPE_CACHE=str(tmp_path / "cache")) == (
        str(tmp_path / "cache" / "kernels"),
        "",
    )


@pytest.mark.skipif(os.name != "posix", reason="users have no numeric ids there")
def test_kernel_cache_falls_back_to_one_private_temporary_folder(tmp_path):
    folder = tmp_path / f"proteoscope-kernels-{os.getuid()}"
    for _ in range(2):
        actual, reason = cache_folder_of_process([tmp_path], TMPDIR=str(tmp_path), PROTEOSCOPE_CACHE="/proc/none")
        assert actual == str(folder)
        assert str(folder) in reason
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix", reason="file modes differ there")
def test_kernel_cache_rejects_a_folder_writable_by_others(tmp_path):
    folder = tmp_path / f"proteoscope-kernels-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    actual, _ = cache_folder_of_process([tmp_path], TMPDIR=str(tmp_path), PROTEOSCOPE_CACHE="/proc/none")
    assert Path(actual).parent == tmp_path and Path(actual) != folder
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_full_disk_prevents_kernel_caching_and_is_reported(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    if (
        os.name != "posix"
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k,mode=0700", "none", folder], capture_output=True).returncode
    ):
        pytest.skip("a small disk can only be mounted by root")
    try:
        script = USE + "from proteoscope.kernels.cpu.caching import uncached_reason; print(use(), uncached_reason())"
        (line,) = output_of(script, tmp_path, NUMBA_CACHE_DIR=str(folder))
        assert line.startswith("0 ") and str(folder) in line
        assert [path for path in folder.rglob("*") if path.is_file()] == []
    finally:
        subprocess.run(["umount", folder], check=True)


def test_compiled_array_assignment_rejects_a_wrong_size():
    program = "\n".join(
        (
            "import proteoscope.kernels.cpu, numpy as np",
            "from numba import njit",
            "@njit",
            "def assign(target, source, n):",
            "    target[:n] = source",
            "target = np.zeros(4)",
            "assign(target, np.ones(3), 3)",
            "print(*target)",
            "try:",
            "    assign(target, np.ones(3), 4)",
            "except ValueError as error:",
            "    print(error)",
        )
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}
    )
    assert done.stdout.splitlines() == ["1.0 1.0 1.0 0.0", "an array does not fit the slice that it is assigned to"], done.stderr


CONSTANTS = """
import numba, proteoscope.kernels.cpu

def following(number):
    return number + 1

def callers_of_kernels(number):
    return number + 1

callers_of_kernels.__module__ = "proteoscope.kernels.cpu.sample"
for callee in numba.njit(following), numba.njit(callers_of_kernels):
    @numba.njit
    def add(number):
        return callee(0) + callee(1) + callee(number)
    assert add(5) == 9
    print(len(callee.signatures))
"""


def test_kernels_compile_once_for_different_constant_arguments(tmp_path):
    """By default, Numba compiles a function for 0, for 1 and for their common type; the settings of the kernels prevent this."""
    assert output_of(CONSTANTS, tmp_path) == ["3", "1"]


@pytest.fixture
def package(tmp_path):
    """Return the folder of CPU kernels in a copy of the package, to which a test adds kernels."""
    folder = tmp_path / "proteoscope"
    shutil.copytree(REPOSITORY / "kernels", folder / "kernels", ignore=shutil.ignore_patterns("__pycache__", "cuda"))
    (folder / "__init__.py").touch()
    return folder / "kernels" / "cpu"


def output_of_copy(script: str, tmp_path: Path, **more: str) -> str:
    """Return the output of a process that uses the copy of the package, with its own cache of kernels."""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache"), **more}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kernel_is_recompiled_when_an_imported_module_changes(package, tmp_path):
    # Numba compares only the file of the function itself, and code of the other module is compiled into it.
    (package / "one.py").write_text(ADDING.format(amount=1), encoding="utf-8")
    (package / "other.py").write_text(CALLING, encoding="utf-8")
    assert output_of_copy(RESULT, tmp_path) == "11 0\n"
    assert output_of_copy(RESULT, tmp_path) == "11 1\n", "from the cache"
    (package / "one.py").write_text(ADDING.format(amount=2), encoding="utf-8")
    assert output_of_copy(RESULT, tmp_path) == "12 0\n"


SQUARES = """
import numpy as np
from numba import njit

@njit(cache=True)
def squares(n):
    if n < 0:
        raise ValueError("a negative number")
    values = np.empty(n)
    for i in range(n):
        values[i] = i * i
    return values
"""

LARGEST = """
import numpy as np
from numba import njit
from proteoscope.kernels.cpu.squares import squares

@njit(cache=True)
def largest(n):
    return np.sort(np.concatenate((squares(n), squares(3)))).max()
"""

USE_KERNELS = """
import sys
from numba.core.runtime import rtsys
import numpy as np
from proteoscope.kernels.cpu.squares import squares
from proteoscope.kernels.cpu.{module} import {module}

for number in (-1, 5, 2, -1):
    try:
        result = {module}(number)
        print(*np.atleast_1d(result))
    except ValueError as error:
        print(error)
result = None
statistics = rtsys.get_allocation_stats()
assert statistics.mi_alloc and (statistics.alloc, statistics.mi_alloc) == (statistics.free, statistics.mi_free)
print([sum(kernel.stats.cache_hits.values()) for kernel in ({module}, squares)], "numba.np.arrayobj" in sys.modules)
"""


def test_loaded_kernel_needs_no_compiler_and_can_be_linked(package, tmp_path):
    """A cached kernel raises its errors, frees its arrays, and becomes part of a kernel that another process compiles."""
    (package / "squares.py").write_text(SQUARES, encoding="utf-8")
    (package / "largest.py").write_text(LARGEST, encoding="utf-8")
    error, squares, largest = "a negative number", "0.0 1.0 4.0 9.0 16.0\n0.0 1.0", "16.0\n4.0"
    for module, results, hits, is_compiling in (
        ("squares", squares, [0, 0], True),
        ("squares", squares, [1, 1], False),
        ("largest", largest, [0, 1], True),  # links the cached `squares`
        ("largest", largest, [1, 0], False),
    ):
        output = output_of_copy(USE_KERNELS.format(module=module), tmp_path, NUMBA_NRT_STATS="1")
        assert output == f"{error}\n{results}\n{error}\n{hits} {is_compiling}\n"


SORTING = """
import numpy as np
import proteoscope.kernels.cpu
from numba import njit

@njit(cache=True)
def ascending(values):
    return np.sort(values)

@njit(cache=True)
def order(values):
    return np.argsort(values)

@njit
def increased(value):
    return value + 1

some = np.random.default_rng(1).random(100)
"""


def test_cached_kernels_of_two_processes_do_not_call_each_other(tmp_path):
    # The inner loops of both kernels have the same number in their processes, and the same name in Numba.
    (tmp_path / "sorting.py").write_text(SORTING, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run(code: str) -> str:
        code = f"import sorting as s, numpy as np; {code}"
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout

    run("s.ascending(s.some)")
    run("s.increased(1); s.increased(1.0); s.increased(True); s.order(s.some)")
    results = "(s.ascending(s.some) == np.sort(s.some)).all(), (s.order(s.some) == np.argsort(s.some)).all()"
    assert run(f"print({results}, s.ascending.stats.cache_hits.total(), s.order.stats.cache_hits.total())") == "True True 1 1\n"
