"""Compilation of kernels before they are called: once per machine, in separate processes, with progress and immediate cancellation."""

import json
import math
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from graphlib import TopologicalSorter
from threading import Lock

from proteoscope import kernels as kernels_package
from proteoscope.engine import execution
from proteoscope.engine.execution.devices import own_program, printed_lines
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.jobs.progress import PASSING, Progress
from proteoscope.kernels.device import DeviceError

__all__ = ["compile_for_gpus", "compile_kernels"]

_MAXIMUM_PROCESSES = 8
"""Maximum number of processes; more would not be faster, since a kernel waits for the compilation of kernels that it calls."""
_CHECK_SECONDS = 0.05
_KERNEL_SECONDS = 0.5
"""Typical seconds of a process for a kernel, for the first estimate; afterwards the progress bar shows the remaining time."""
_MINUTES_FROM = 120


def compile_kernels(groups: Iterable[str], progress: Progress, processes: int | None = None) -> list[str]:
    """Compile the kernels of the given groups that are not compiled yet, each kernel after the kernels that it calls.

    Parameters
    ----------
    groups : iterable of str
        Names of groups in `proteoscope.kernels.cpu.signatures.kernel_groups`.
    progress : Progress
        Progress, which shows the number of kernels, and warnings about kernels that could not be compiled.
    processes : int, optional
        Number of processes; values above eight are treated as eight. By default, the number of cores.

    Returns
    -------
    list of str
        One sentence per kernel that could not be compiled. Such a kernel is compiled when it is called, which only costs time.

    Raises
    ------
    Cancelled
        If the user cancels; the processes have then ended.
    """
    signatures = kernels_package.cpu.signatures
    missing = [group for group in groups if not signatures.is_compiled(group)]
    if not missing:
        return []
    numbers = signatures.needed_kernels(missing)
    n_processes = min(processes or available_threads(), _MAXIMUM_PROCESSES)
    progress.stage("Compiling for this CPU", len(numbers))
    progress.message(_announcement(len(numbers), n_processes), PASSING)
    failures = _compile(numbers, progress, n_processes)
    for failure in failures:
        progress.message(failure, "warning")
    if not failures:
        with suppress(OSError):  # full disk: the next process checks the kernels again
            signatures.mark_compiled(missing)
    if reason := kernels_package.cpu.caching.uncached_reason():
        progress.message(f"Compiled kernels cannot be stored and may have to be compiled again: {reason}", "warning")
    return failures


def _announcement(n_kernels: int, n_processes: int) -> str:
    """Return a message about what is compiled, and about how long this takes.

    >>> _announcement(65, 2)
    'Compiling 65 kernels for this CPU, once: about 20 s'
    >>> _announcement(357, 2)
    'Compiling 357 kernels for this CPU, once: about 90 s'
    """
    seconds = n_kernels * _KERNEL_SECONDS / n_processes
    time = f"{math.ceil(seconds / 10) * 10} s" if seconds < _MINUTES_FROM else f"{math.ceil(seconds / 60)} min"
    return f"Compiling {n_kernels} kernel{'s' if n_kernels > 1 else ''} for this CPU, once: about {time}"


def _order(numbers: Iterable[int]) -> dict[int, int]:
    """Return the position of each kernel (by number) in the order of compilation.

    Kernels with the longest chain of callers come first, since these callers must wait for them.
    """
    listed = kernels_package.cpu.signatures.listed_kernels()
    callers = dict.fromkeys(numbers, 0)
    for number in sorted(callers, reverse=True):  # callers come after their callees
        for callee in listed[number].calls:
            callers[callee] = max(callers[callee], callers[number] + 1)
    return {number: position for position, number in enumerate(sorted(callers, key=lambda number: (-callers[number], number)))}


def _compile(numbers: set[int], progress: Progress, processes: int) -> list[str]:
    listed, order, failures = kernels_package.cpu.signatures.listed_kernels(), _order(numbers), list[str]()
    plan = TopologicalSorter({number: listed[number].calls for number in numbers})
    plan.prepare()
    idle, busy = list[Callable[[int], str]](), dict[Future[str], tuple[int, Callable[[int], str]]]()
    ready = list[int]()
    with ThreadPoolExecutor(processes, thread_name_prefix="proteoscope-compilers") as pool, ExitStack() as stack:
        while plan.is_active():
            progress.check()
            ready = sorted([*ready, *plan.get_ready()], key=order.__getitem__)
            while ready and len(busy) < processes:
                number, compiler = ready.pop(0), idle.pop() if idle else stack.enter_context(_compiler())
                busy[pool.submit(compiler, number)] = number, compiler
            for answer in wait(busy, _CHECK_SECONDS, FIRST_COMPLETED).done:
                number, compiler = busy.pop(answer)
                try:
                    reason = answer.result()
                    idle.append(compiler)
                except EOFError as error:  # another process replaces it
                    reason = str(error)
                if reason:
                    failures.append(f"{listed[number].name} could not be compiled ahead: {reason}")
                plan.done(number)
                progress.advance(1)
    return failures


@contextmanager
def _compiler() -> Iterator[Callable[[int], str]]:
    """Start a process that compiles kernels; the process ends with the ``with`` block.

    Yields
    ------
    callable
        Function that takes the number of a kernel, compiles the kernel, and returns the reason if this failed, otherwise ''. It raises
        EOFError with the reason if the process has ended.
    """
    program = own_program(f"from {kernels_package.cpu.signatures.__name__} import run_compiler; run_compiler()")
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(program, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        numbers, answers, compiling = process.stdin, process.stdout, Lock()
        assert numbers is not None and answers is not None

        def compile_kernel(number: int) -> str:
            with compiling:
                with suppress(OSError):  # the missing answer shows that the process has ended
                    numbers.write(b"%d\n" % number)
                line = answers.readline()
                if not line:
                    raise EOFError("".join(printed_lines(errors)[-1:]) or "the process was ended")
                problem: str = json.loads(line)
                return problem

        try:
            yield compile_kernel
        finally:
            process.kill()
            with compiling:  # it ends with the process
                process.communicate()


def compile_for_gpus(progress: Progress, threads: int | None = None) -> list[str]:
    """Compile the frequently used CUDA kernels for each GPU model of this machine; do nothing without usable GPUs.

    Parameters
    ----------
    progress : Progress
        Progress, which shows the number of compiled source files.
    threads : int, optional
        Number of source files to compile concurrently; by default the number of cores.

    Returns
    -------
    list of str
        One sentence per source file that could not be compiled.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    models = {gpu.compute_capability: gpu for gpu in execution.devices.gpus(progress) if gpu.usable}
    failures = list[str]()

    def advance(n: int) -> None:
        progress.check()
        progress.advance(n)

    for gpu in models.values():
        forms = kernels_package.cuda.precompile
        progress.stage(f"Compiling for {gpu.name}", len(forms.usual_forms()))
        try:
            failures += forms.compile_usual_forms(
                kernels_package.cuda.modules.open_gpu(gpu.numbers[0]), threads or available_threads(), advance
            )
        except DeviceError as error:
            failures.append(f"Nothing could be compiled for {gpu.name}: {error}")
    return failures
