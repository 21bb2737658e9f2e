"""Compilation of frequently used variants of kernels before the first search on a GPU.

Source files are compiled with macros that depend on the task (symbols, columns of a warp, number type), so that not all variants are known
in advance. `usual_forms.json` lists the variants that were compiled in searches of every kind, as recorded by `benchmarks/gpu_forms.py`. A
missing variant is compiled when a search first needs it. Compiled variants are cached (`proteoscope.kernels.cuda.compiled`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from importlib.resources import files

from proteoscope.kernels.cuda.modules import CudaGpu
from proteoscope.kernels.device import DeviceError

__all__ = ["compile_usual_forms", "usual_forms"]

_CHECK_SECONDS = 0.1


def usual_forms() -> list[tuple[str, tuple[str, ...]]]:
    """Return the frequently used variants: pairs of source file and macros."""
    retained: dict[str, list[list[str]]] = json.loads((files(__package__) / "usual_forms.json").read_text(encoding="utf-8"))
    return [(file, tuple(macros)) for file, forms in retained.items() for macros in forms]


def compile_usual_forms(gpu: CudaGpu, threads: int, advance: Callable[[int], None]) -> list[str]:
    """Compile all frequently used variants for a GPU, in parallel threads.

    Parameters
    ----------
    advance
        Function that is called with the number of newly finished variants several times a second; an exception in it stops the compilation.

    Returns
    -------
    list of str
        One sentence per variant that failed to compile.
    """
    failures: list[str] = []
    with ThreadPoolExecutor(threads, thread_name_prefix="proteoscope-GPU-compiler") as pool:
        waiting = {pool.submit(gpu.compile, file, macros): file for file, macros in usual_forms()}
        try:
            while waiting:
                done, _ = wait(waiting, _CHECK_SECONDS, FIRST_COMPLETED)
                for future in done:
                    file, error = waiting.pop(future), future.exception()
                    if isinstance(error, DeviceError):
                        failures.append(f"{file} could not be compiled in advance for {gpu.name}: {str(error).splitlines()[0]}")
                    elif error is not None:
                        raise error
                advance(len(done))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return failures
