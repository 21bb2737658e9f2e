"""Common work of all searches: checked inputs, project and run, device, log, clock, and the record of what was done."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from engine.entry import SearchRequest
from engine.errors import InputError, ParameterError
from engine.execution.cards import open_cards
from engine.execution.clock import StageClock
from engine.execution.compilation import Kernels
from engine.execution.device_lookup import DeviceLookup
from engine.execution.devices import Device, gpus, processor
from engine.execution.resources import Resources
from engine.execution.threads import available_threads
from engine.files import is_there, nearest_folder
from engine.formats.vendor import vendor_format
from engine.jobs.background import Background
from engine.jobs.progress import Progress, RecordingProgress
from engine.project import Project, RunInput
from engine.project.digests import file_digest
from engine.project.outputs import check_distinct, check_outputs
from engine.project.paths import check_folder_name
from engine.project.run import Run
from engine.version import VERSION

__all__ = ["RunSpec", "SearchRun", "search_run"]

Read = TypeVar("Read")


@dataclass(frozen=True)
class RunSpec:
    """Task of a run: what is asked for, and what the kind of search reads and writes for that.

    Attributes
    ----------
    kind : of the run. required : kinds of files without which it does nothing, and an example of each as the command line names it.
    inputs : all files that it reads, by kind, in the order of the record; those of the request when None.
    are_distinct : whether a file may be given only once, and not even as two kinds.
    outputs : files that it writes, besides the project.
    """

    kind: str
    request: SearchRequest
    required: Mapping[str, str]
    inputs: Mapping[str, Sequence[str | Path]] | None = None
    outputs: Sequence[Path] = ()
    are_distinct: bool = True

    @property
    def project(self) -> Path | None:
        """The folder of the project, None where nothing is recorded."""
        return None if self.request.project is None else Path(self.request.project)

    @property
    def spool(self) -> Path | None:
        """The folder for what is read that is too large for the memory: that of the project, or where it will be made."""
        return None if self.project is None else nearest_folder(self.project)

    def checked_inputs(self) -> list[tuple[Path, str]]:
        """The files and their kinds.

        Raises
        ------
        ParameterError : a required kind is missing, or a file would be written over that is needed.
        InputError : a file is not there, or is none that can be read twice, or is given twice.
        """
        inputs = self.request.inputs if self.inputs is None else self.inputs
        for kind, example in self.required.items():
            if not inputs.get(kind):
                raise ParameterError(f"no file of {kind} was given, as {example}")
        found = [(Path(path), kind) for kind, paths in inputs.items() for path in paths]
        for path, _ in found:
            _check_file(path)
        if self.are_distinct:
            check_distinct([path for path, _ in found])
        if self.project is not None:
            check_folder_name(self.project)
        check_outputs(self.outputs, [path for path, _ in found], self.project)
        return found


def _check_file(path: Path) -> None:
    try:
        # Tables and XML hold Unicode, which the bytes of a file's name need not be.
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(ascii(str(path)), "the file's name is not valid UTF-8", remedy="Rename it") from None
    if not is_there(path):
        raise InputError(path, "does not exist", remedy="Check the path")
    if path.is_dir() and vendor_format(path) is None:
        raise InputError(path, "is a folder", remedy="Give the files in it")
    if not (path.is_file() or path.is_dir()):
        raise InputError(path, "is a pipe or a device, which cannot be read twice", remedy="Give a file")


@dataclass
class SearchRun(Generic[Read]):
    """A search while it runs; made by `search_run`.

    Attributes
    ----------
    spec : what it is to do. inputs : the files that it reads, with digests. read : waits for what is read from them, and gives it.
    begin : begins what goes on behind the next steps (see `engine.jobs.background.Background`).
    look : for the device. threads : of the processor. progress, clock : told, and measuring, all the while.
    began : seconds of `time.perf_counter`. seconds : of the whole run, once it is recorded. device : what computed, which the search says
        when it knows.
    project, run : where it is recorded, None where it is not.
    """

    spec: RunSpec
    inputs: tuple[RunInput, ...]
    read: Callable[[], Read]
    begin: Callable[[Callable[[Progress], Any]], Callable[[], Any]]
    look: DeviceLookup
    progress: RecordingProgress
    threads: int
    clock: StageClock
    began: float
    project: Project | None = None
    run: Run | None = None
    seconds: float = 0.0
    device: str = ""

    def load(self, *modules: str) -> None:
        """Import what only a later step needs, while kernels compute, which do without the interpreter; with one thread only, it is left
        to that step."""
        self.begin(lambda _: [import_module(name) for name in modules])

    def load_writers(self) -> None:
        """Import what tables are written with; see `load`."""
        self.load("pyarrow.compute", *(["pyarrow.parquet"] if self.run else []))

    def step(self, name: str) -> AbstractContextManager[None]:
        """One of the five steps, measured: ``read``, ``index``, ``plan``, ``score`` or ``report``."""
        return self.clock.stage(name)

    def paths(self, kind: str) -> list[Path]:
        """The files of a kind."""
        return [Path(one.path) for one in self.inputs if one.kind == kind]

    def files(self, *kinds: str) -> tuple[str, ...]:
        """The files of these kinds, as texts."""
        return tuple(str(path) for kind in kinds for path in self.paths(kind))

    def digests(self, kind: str) -> list[str]:
        """Their SHA-256."""
        return [one.sha256 or "" for one in self.inputs if one.kind == kind]

    def resources(self, progress: Progress | None = None, *, memory_bytes: int = 0) -> Resources:
        """What the steps may use: the cards of the device, opened, and threads. The user is told.

        `memory_bytes` : of each card at most; 0: what is free.
        """
        progress = progress or self.progress
        device = self.look.device(progress)
        used = open_cards(device, progress, memory_bytes=memory_bytes)
        _tell_device(device if used else processor(), self.look.wish, progress)
        return Resources(self.threads, used, device.with_processor, progress, self.clock)

    @property
    def summary_fields(self) -> dict[str, Any]:
        """What every `engine.summary.Summary` tells, by its names."""
        return {
            "run_id": None if self.run is None else self.run.id,
            "folder": None if self.project is None else self.project.folder,
            "seconds": self.seconds,
            "device": self.device,
            "stages": self.clock.stages,
            "messages": self.progress.messages,
        }

    def record(self, counts: Mapping[str, int], message: str, *, exports: Iterable[str] = (), **more: Any) -> None:
        """Write down what was done and what it cost, as ``run.json`` of the run: the last that a search does.

        Parameters
        ----------
        counts : of what was searched and found. message : the same in a sentence. exports : names of the files that the project shows.
        """
        self.seconds = round(time.perf_counter() - self.began, 3)
        if self.run is None:
            return
        self.run.message, self.run.device = message, self.device
        content = {
            "kind": self.spec.kind,
            "version": VERSION,
            "python": platform.python_version(),
            "run": self.run.id,
            "device": self.device,
            "threads": self.threads,
            "inputs": [{"path": str(one.path), "kind": one.kind, "sha256": one.sha256} for one in self.inputs],
            "parameters": self.spec.request.parameters.model_dump(mode="json"),
            "counts": dict(counts),
            **more,
            "seconds": self.seconds,
            "steps": self.clock.stages,
            "messages": list(self.progress.messages),
            "exports": list(exports),
        }
        self.run.write_json("run", content)


def _tell_device(device: Device, wish: str, progress: Progress) -> None:
    """Say what computes, and which GPUs do not although they might be expected to."""
    progress.message(f"Scoring on {device.name}: {device.description}")
    if wish in ("auto", "all"):
        for gpu in gpus():
            if gpu.numbers and not gpu.usable:
                progress.message(f"{gpu.name} is not used: {gpu.reason}", "warning")


@contextmanager
def search_run(
    spec: RunSpec,
    read: Callable[[Progress, int], Read],
    kernels: Kernels | None = None,
    progress: Progress | None = None,
    look: DeviceLookup | None = None,
) -> Iterator[SearchRun[Read]]:
    """A search from its first to its last moment; results are kept when the block ends well.

    What `read` reads, with a progress and a number of threads, is read behind the digests and the look for the device.

    Parameters
    ----------
    kernels : of the processor, if it has any; compiled, and announced, before the block begins, on a machine that has not.
    look : for the device, where it has begun already.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    recording = RecordingProgress(progress or Progress())
    request = spec.request
    began, clock, threads = time.perf_counter(), StageClock(), request.threads or available_threads()
    files = spec.checked_inputs()
    look = look or DeviceLookup(request.device)

    def read_measured(progress: Progress) -> Read:
        with clock.stage("read"):
            return read(progress, threads)

    # Reading runs kernels: where these are not compiled yet, it comes after that.
    with ExitStack() as stack:
        behind = stack.enter_context(Background(recording, threads if kernels is None or kernels.are_compiled else 1))
        reading = behind.begin(read_measured)
        inputs = tuple(RunInput(path, kind, file_digest(path, recording)) for path, kind in files)
        look.complain()
        searching = SearchRun(spec, inputs, reading, behind.begin, look, recording, threads, clock, began)
        if spec.project is not None:
            chosen = look.device(recording).name
            project = Project.create_or_open(spec.project)
            values = request.parameters.model_dump(mode="json")
            run = stack.enter_context(project.run(spec.kind, values, inputs, version=VERSION, device=chosen, progress=recording))
            recording.log_to(run.log)
            searching.project, searching.run = project, run
        if kernels is not None:
            kernels.compile(recording)
        yield searching
