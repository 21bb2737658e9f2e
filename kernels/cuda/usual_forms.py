"""Compile the forms of the kernels that searches usually take, ahead of the first search on a card.

Sources are compiled with macros that fit a task (letters, columns of a warp, numbers), so there is no list of all forms. `usual_forms.json`
holds those that were compiled by searches of every kind, as `benchmarks/card_forms.py` noted them: a form that is missing is compiled
when a search first needs it, and one that nobody needs costs its compilation. CuPy keeps what is compiled, for this card and compiler.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from importlib.resources import files

from proteoscope.kernels.cuda.modules import CudaCard
from proteoscope.kernels.device import DeviceError

__all__ = ["compile_usual_forms", "usual_forms"]

_LOOK_SECONDS = 0.1


def usual_forms() -> list[tuple[str, tuple[str, ...]]]:
    """Source files with the macros that they are compiled with."""
    kept: dict[str, list[list[str]]] = json.loads((files(__package__) / "usual_forms.json").read_text(encoding="utf-8"))
    return [(file, tuple(macros)) for file, forms in kept.items() for macros in forms]


def compile_usual_forms(card: CudaCard, threads: int, advance: Callable[[int], None]) -> list[str]:
    """Compile all usual forms for a card, so many at a time.

    Parameters
    ----------
    advance : told how many were done since it was told last, several times a second; what it raises ends the work.

    Returns
    -------
    Why some could not be compiled, a sentence each.
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
