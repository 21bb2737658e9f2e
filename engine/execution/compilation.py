"""The first use of the processor's kernels on a machine compiles them: a step of its own, announced, that a user may leave at once.

All kinds may also be compiled ahead, several at a time in processes of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import IO, Any

from proteoscope import kernels as kernels_package
from proteoscope.engine.execution.addresses import object_at
from proteoscope.engine.execution.devices import gpus
from proteoscope.engine.execution.threads import available_threads
from proteoscope.engine.jobs.progress import PASSING, Progress
from proteoscope.kernels.device import DeviceError

__all__ = ["Kernels", "compile_ahead", "compile_and_tell", "compile_for_cards", "is_compiling"]

_THREAD = "proteoscope-compiler"
_READER = "proteoscope-compilers"
_BETWEEN_LOOKS = 0.05


@dataclass(frozen=True)
class Kernels:
    """Kernels that a search uses together, and that are compiled together: only what is compiled together is inlined.

    Attributes
    ----------
    what : they are, for the user. last : loads the one of them that is compiled last.
    use : calls all of them, with the types of a real search. takes : how long, in words.
    family : kernels of one share functions, and are compiled by one process, one after the other: what another has compiled would not be
        inlined, and each would compile what Numba brings again.
    """

    what: str
    last: Callable[[], Any]
    use: Callable[[], None]
    takes: str = "10 to 20 seconds"
    family: str = "spectra"

    @property
    def address(self) -> str:
        """Where another process finds them, as ``module:NAME``: in the module of `last`, at its top."""
        names = vars(sys.modules[self.last.__module__]).items()
        return f"{self.last.__module__}:{next(name for name, value in names if value is self)}"

    @property
    def are_compiled(self) -> bool:
        """Whether `compile` has nothing to do."""
        return kernels_package.cpu.compilation.is_compiled(self.last())

    def use_and_mark(self) -> None:
        """Call all of them, which compiles them, and mark them as compiled."""
        self.use()
        with suppress(OSError):  # a cache that others keep is not ours to mark
            kernels_package.cpu.compilation.mark_compiled(self.last())

    def compile(self, progress: Progress) -> None:
        """Compile them, unless this machine did it before: some seconds, kept on disk.

        Raises
        ------
        Cancelled : the user asked to stop; the compiler ends with the program, for it cannot be interrupted.
        """
        if self.are_compiled:
            return
        progress.stage("Compiling for this processor")
        progress.message(f"Compiling the {self.what} for this processor; this happens once and takes {self.takes}", PASSING)
        failures: list[Exception] = []

        def work() -> None:
            try:
                self.use_and_mark()
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=work, name=_THREAD, daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(0.05)
            progress.check()
        if failures:
            raise failures[0]
        if reason := kernels_package.cpu.caching.why_not_kept():
            progress.message(f"What was compiled may have to be compiled again: {reason}", "warning")


def compile_ahead(kernels: Sequence[Kernels], progress: Progress, processes: int | None = None) -> list[str]:
    """Compile kernels that are not compiled yet: those of a family one after the other in a process of their own, several such at a time.

    Parameters
    ----------
    kernels : in the order in which those of a family are compiled. processes : at a time; as many as there are cores when None.

    Returns
    -------
    Why some could not be compiled, a sentence each: they are compiled when they are first used, so that nothing is lost but time.

    Raises
    ------
    Cancelled : the user asked to stop.
    """
    families, at = dict[str, list[str]](), {one.address: one for one in kernels}
    for place, one in at.items():
        if not one.are_compiled:
            families.setdefault(one.family, []).append(place)
    waiting, failures, done = list(families.values()), list[str](), 0
    n, running = sum(map(len, waiting)), list[_Compiler]()
    most = processes or available_threads()
    if n:
        progress.stage("Compiling for this processor", n)
    with ExitStack() as stack:
        while waiting or running:
            progress.check()
            if waiting and len(running) < most:
                running.append(stack.enter_context(_Compiler(waiting.pop(0))))
                continue
            time.sleep(_BETWEEN_LOOKS)
            for process in running.copy():
                has_ended = process.has_ended  # asked before its lines are read, so that none comes after them
                for place, reason in process.told():
                    done += 1
                    progress.advance(1)
                    if reason:
                        failures.append(f"The {at[place].what} could not be compiled ahead: {reason}")
                    else:
                        progress.message(f"Compiled ({done} of {n}): {at[place].what}")
                if has_ended:
                    running.remove(process)
                    if process.left:  # what it was at has ended it, as where memory is short; the others may do
                        failures.append(f"The {at[process.left[0]].what} could not be compiled ahead: {process.complaint()}")
                        done += 1
                        progress.advance(1)
                        waiting += [process.left[1:]] if process.left[1:] else []
    return failures


def compile_and_tell(places: Sequence[str]) -> None:
    """Compile the kernels at these places, and write a line of JSON after each: the place, and why it failed or nothing.

    It is what a process of `compile_ahead` does.
    """
    for place in places:
        try:
            kernels: Kernels = object_at(place)
            kernels.use_and_mark()
            reason = ""
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
        sys.stdout.write(json.dumps([place, reason]) + "\n")
        sys.stdout.flush()


def compile_for_cards(progress: Progress, threads: int | None = None) -> list[str]:
    """Compile what searches usually compute with on the GPUs of this machine, of each sort of GPU once; nothing where none is usable.

    Parameters
    ----------
    threads : sources that are compiled at a time; as many as there are cores when None.

    Returns
    -------
    Why some could not be compiled, a sentence each.

    Raises
    ------
    Cancelled : the user asked to stop.
    """
    sorts = {gpu.compute_capability: gpu for gpu in gpus(progress) if gpu.usable}
    if not sorts:
        return []

    failures = []

    def advance(n: int) -> None:
        progress.check()
        progress.advance(n)

    for gpu in sorts.values():
        progress.stage(f"Compiling for {gpu.name}", len(kernels_package.cuda.usual_forms.usual_forms()))
        try:
            failures += kernels_package.cuda.usual_forms.compile_usual_forms(
                kernels_package.cuda.modules.card(gpu.numbers[0]), threads or available_threads(), advance
            )
        except DeviceError as error:
            failures.append(f"Nothing could be compiled for {gpu.name}: {error}")
    return failures


@dataclass
class _Compiler:
    """A process that compiles the kernels at some places; it does not outlive the block that it is entered for.

    Attributes
    ----------
    left : the places of which it has told nothing yet.
    """

    left: list[str]
    _lines: SimpleQueue[bytes] = field(default_factory=SimpleQueue)
    _complaint: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    def __enter__(self) -> _Compiler:
        # The path of this process, so that the same program is compiled, whatever the working directory holds.
        program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import compile_and_tell; compile_and_tell({self.left!r})"
        command = [sys.executable, "-P", "-c", program]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._complaint)
        self._reader = threading.Thread(target=self._listen, name=_READER, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._complaint.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as said:
            for line in said:
                self._lines.put(line)

    @property
    def has_ended(self) -> bool:
        """Whether it is done, or has failed, and all that it said was heard."""
        return self._process.poll() is not None and not self._reader.is_alive()

    def told(self) -> list[tuple[str, str]]:
        """What it is done with since the last look: places, and why they could not be compiled, empty where they are."""
        pairs = [(str(place), str(reason)) for place, reason in (json.loads(self._lines.get()) for _ in range(self._lines.qsize()))]
        self.left = self.left[len(pairs) :]
        return pairs

    def complaint(self) -> str:
        """What it said last, after it has ended."""
        self._complaint.seek(0)
        lines = self._complaint.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "the process was ended"


def is_compiling() -> bool:
    """Whether a compiler is still at work, whoever waited for it."""
    return any(thread.name == _THREAD for thread in threading.enumerate())
