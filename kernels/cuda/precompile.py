"""Compilation of commonly used kernel forms before the first search on a GPU.

Sources are compiled with macros that fit a task (symbols, columns of a warp, numbers), so that there is no list of all forms.
`usual_forms.json` has those compiled by searches of every kind, recorded by `benchmarks/card_forms.py`: a missing form is compiled when a
search first needs it, a superfluous one costs its compilation. CuPy caches compiled forms for this GPU and compiler.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from importlib.resources import files

from proteoscope.kernels.cuda.modules import CudaGpu
from proteoscope.kernels.device import DeviceError

__all__ = ["compile_usual_forms", "usual_forms"]

_LOOK_SECONDS = 0.1


def usual_forms() -> list[tuple[str, tuple[str, ...]]]:
    """Return source files with their macros."""
    retained: dict[str, list[list[str]]] = json.loads((files(__package__) / "usual_forms.json").read_text(encoding="utf-8"))
    return [(file, tuple(macros)) for file, forms in retained.items() for macros in forms]


def compile_usual_forms(card: CudaGpu, threads: int, advance: Callable[[int], None]) -> list[str]:
    """Compile all common forms for a GPU in parallel threads.

    Parameters
    ----------
    advance
        Receives the number of newly finished forms several times a second; its exceptions end the work.

    Returns
    -------
    list of str
        One sentence per form that failed to compile.
    """
    failures: list[str] = []
    with ThreadPoolExecutor(threads, thread_name_prefix="proteoscope-card-compiler") as pool:
        waiting = {pool.submit(card.compile, file, macros): file for file, macros in usual_forms()}
        try:
            while waiting:
                done, _ = wait(waiting, _LOOK_SECONDS, FIRST_COMPLETED)
                for future in done:
                    file, error = waiting.pop(future), future.exception()
                    if isinstance(error, DeviceError):
                        failures.append(f"{file} could not be compiled ahead for {card.name}: {str(error).splitlines()[0]}")
                    elif error is not None:
                        raise error
                advance(len(done))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return failures
