"""Scripts that compile kernels for other CPUs, in processes forked from one that has loaded the compiler.

To load Numba and what it imports for its first function takes longer than most of these scripts. Nothing is compiled before a fork: each
process chooses its own instructions.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
_PRELOADED = (
    "hypothesis",
    "pytest",
    "numba.cpython.randomimpl",
    "numba.experimental.jitclass.base",
    "numba.misc.cffiimpl",
    "numba.np.linalg",
    "numba.np.polynomial.polynomial_functions",
    "numba.np.random.legacy",
    "numba.np.unsafe.ndarray",
    "numba.typed.dictimpl",
    "numba.typed.typedset",
)


class CpuTargets:
    """The process that forks others."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._n_scripts = folder, 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.kernels.cpu_targets"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, script: str, *, missing: Collection[str] = (), environment: Mapping[str, str] | None = None) -> str:
        """Return the output of a script on a CPU without some features, which has an empty cache of compiled functions."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._n_scripts += 1
        folder = self._folder / str(self._n_scripts)
        folder.mkdir()
        variables = {"NUMBA_CACHE_DIR": str(folder), **(environment or {})}
        request = {"script": script, "missing": list(missing), "environment": variables, "output": f"{folder}-output"}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        status = self._process.stdout.readline()
        output = Path(f"{folder}-output").read_text(encoding="utf-8")
        assert status == "0\n", output
        return output

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@contextmanager
def cpu_targets(folder: Path) -> Iterator[CpuTargets]:
    """Start and end the process that forks others."""
    targets = CpuTargets(folder)
    try:
        yield targets
    finally:
        targets.close()


def _run(script: str, missing: Collection[str], environment: Mapping[str, str], output: str) -> None:
    import llvmlite.binding as llvm
    from numba.core import config

    file = os.open(output, os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.environ.update(environment)
    config.reload_config()
    features = llvm.get_host_cpu_features
    llvm.get_host_cpu_features = lambda: features() | dict.fromkeys(missing, False)
    exec(script, {"__name__": "script"})


def serve() -> None:
    """Run each script of the standard input, and print its exit status."""
    for name in _PRELOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                _run(**json.loads(line))
                sys.stdout.flush()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
