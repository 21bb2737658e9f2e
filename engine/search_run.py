"""Steps common to all searches: input checks, project and run, device detection, log, clock, and the record of the run."""

import json
import math
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from proteoscope import kernels
from proteoscope.engine.creation_time import creation_time
from proteoscope.engine.entry import ESTIMATED_SEARCHES, SearchRequest
from proteoscope.engine.errors import InputError, ParameterError, RunExistsError, StorageError
from proteoscope.engine.estimates import STEPS, faster_device_rule, remember_run, run_prediction
from proteoscope.engine.execution import cluster
from proteoscope.engine.execution.checkpoints import RunCheckpoint
from proteoscope.engine.execution.clock import COMPILATION, StageClock
from proteoscope.engine.execution.device_lookup import DeviceLookup, open_gpus
from proteoscope.engine.execution.devices import Device, gpus, processor
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import Resources, available_threads
from proteoscope.engine.execution.workload import RemoteWorkers
from proteoscope.engine.files import is_there, nearest_folder
from proteoscope.engine.formats.vendor import vendor_format
from proteoscope.engine.jobs.background import Background
from proteoscope.engine.jobs.progress import Cancelled, Progress, RecordingProgress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project, RunInput
from proteoscope.engine.project.checkpoint_file import CheckpointFile, CheckpointHeader
from proteoscope.engine.project.digests import canonical_json, copied_files, copy_text, file_digest
from proteoscope.engine.project.outputs import check_distinct, check_outputs
from proteoscope.engine.project.paths import EXPORTS, RESULTS, check_folder_name, check_run_name
from proteoscope.engine.project.project import is_project
from proteoscope.engine.project.run import Run
from proteoscope.engine.provenance import computing_packages, file_digests, machine, program_commit
from proteoscope.engine.results.counts import nothing_accepted_warning
from proteoscope.engine.resumption import check_same, record_request
from proteoscope.engine.shared_names import distinct_names, without_folders
from proteoscope.engine.version import VERSION
from proteoscope.kernels.trusted_folders import unused_folder_reason

__all__ = ["RunSpec", "SearchRun", "project_run", "search_run"]

Read = TypeVar("Read")


@dataclass(frozen=True)
class RunSpec:
    """Specification of a run: the request of a search, and the files that the search reads and writes for it.

    Attributes
    ----------
    kind
        Kind of the run, which is the kind of its search.
    required
        Required kinds of files, each with an example of how it is given on the command line.
    inputs
        All files that the search reads, by kind, in the order in which they are recorded; by default the files of the request.
    are_distinct
        True if a file may be given only once, even for different kinds.
    outputs
        Files that the search writes in addition to the project.
    kernels
        Group of kernels of `proteoscope.kernels.cpu.signatures` to compile before the search begins; '' for none.
    """

    kind: str
    request: SearchRequest
    required: Mapping[str, str]
    inputs: Mapping[str, Sequence[str | Path]] | None = None
    outputs: Sequence[Path] = ()
    are_distinct: bool = True
    kernels: str = ""

    @property
    def project(self) -> Path | None:
        """Folder of the project; None if the run is not recorded."""
        return None if self.request.project is None else Path(self.request.project)

    @property
    def spool(self) -> Path | None:
        """Folder for temporary files with input that exceeds the memory; None without a project and output files.

        It is the project folder or, without a project, the folder of the first output file. If this folder does not exist yet, it is the
        nearest existing parent of the folder.
        """
        if self.project is not None:
            return nearest_folder(self.project)
        return nearest_folder(Path(self.outputs[0]).parent) if self.outputs else None

    def checked_inputs(self) -> list[tuple[Path, str]]:
        """Return the input files and their kinds after checking them.

        Raises
        ------
        ParameterError
            If a required kind is missing, or an input would be overwritten.
        InputError
            If a file is missing, cannot be read twice, or is given twice.
        """
        inputs = self.request.inputs if self.inputs is None else self.inputs
        for kind, example in self.required.items():
            if not inputs.get(kind):
                raise ParameterError(f"no file of {kind} was given; expected {example}")
        result = [(Path(path), kind) for kind, paths in inputs.items() for path in paths]
        for path, _ in result:
            _check_file(path)
        if self.are_distinct:
            check_distinct([path for path, _ in result])
        if self.project is not None:
            check_folder_name(self.project)
        check_outputs(self.outputs, [path for path, _ in result], self.project)
        return result


def _refuse_existing(spec: RunSpec, inputs: Sequence[RunInput]) -> None:
    """Check the requested name of the run.

    Raises
    ------
    ParameterError
        If the name is invalid, the request has no project, or the inputs are results of the run with this name.
    RunExistsError
        If the project has a finished run with this name, and the request does not replace it.
    """
    request = spec.request
    if not request.run_name or request.resume:
        return
    check_run_name(request.run_name)
    if spec.project is None:
        raise ParameterError(f"the name {request.run_name} is for a run in a project: give the folder of a project, too")
    own_results = (spec.project / RESULTS / request.run_name).absolute()
    if any(Path(file.path).absolute().is_relative_to(own_results) for file in inputs):
        raise ParameterError(f"'{request.run_name}' is the name of the run whose results are read; choose another name for the new run")
    if request.overwrite or not is_project(spec.project):
        return
    project = Project.open(spec.project)
    record = project.find_run(request.run_name)
    if record is None or record.status != "done":
        return
    differences = [] if record.kind == spec.kind else ["the kind of search"]
    values: dict[str, Any] = json.loads(canonical_json(request.parameters.model_dump(mode="json")))
    names = sorted({*values, *record.parameters}) if record.kind == spec.kind else []
    differences += [name for name in names if values.get(name) != record.parameters.get(name)]
    if [(file.kind, file.sha256) for file in inputs] != [(file.kind, file.sha256) for file in project.inputs(record.id)]:
        differences.append("the content of its input files")
    raise RunExistsError(project.folder, record.id, tuple(differences))


def _check_file(path: Path) -> None:
    try:
        # Tables and XML contain Unicode; the bytes of a file name need not be valid UTF-8.
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
    """Running search, created by `search_run`, with the input, the devices and the record of its run.

    Attributes
    ----------
    spec
        Specification of the run.
    inputs
        Input files with digests.
    read
        Function that waits for the content of the input files and returns it.
    begin
        Function that starts a background task during the next steps, see `proteoscope.engine.jobs.background.Background.begin`.
    lookup
        Detection of the requested device.
    threads
        Number of CPU threads.
    progress, clock
        Progress and clock of the whole search.
    began
        Start of the search in seconds of `time.perf_counter`.
    compiled
        Groups of kernels that were already compiled when the search began; None if the search needs no kernels.
    seconds
        Seconds of the whole run without the compilation of kernels; 0 until `record` is called.
    device
        Name of the device that computed; '' until it is known.
    project, run
        Project and run in which the search is recorded, or None.
    checkpoint
        Checkpoint from which the run can be resumed.
    workers
        Function that waits for the remote workers and returns them; it returns None if the search uses no workers.
    commit
        Function that waits for the Git commit of the program's source and returns it; it returns '' if the commit is unknown.
    """

    spec: RunSpec
    inputs: tuple[RunInput, ...]
    read: Callable[[], Read]
    begin: Callable[[Callable[[Progress], Any]], Callable[[], Any]]
    lookup: DeviceLookup
    progress: RecordingProgress
    threads: int
    clock: StageClock
    began: float
    compiled: set[str] | None = None
    project: Project | None = None
    run: Run | None = None
    checkpoint: RunCheckpoint | None = None
    workers: Callable[[], RemoteWorkers | None] = lambda: None
    commit: Callable[[], str] = lambda: ""
    seconds: float = 0.0
    device: str = ""

    @property
    def was_compiled(self) -> bool:
        """True if no group of kernels has been compiled since the search began."""
        return self.compiled is None or self.compiled == kernels.cpu.signatures.compiled_groups()

    def load(self, *modules: Callable[[], object]) -> None:
        """Import modules of a later step in the background, while kernels compute without the GIL; do nothing with one thread.

        Parameters
        ----------
        modules
            Functions that import a module, such as ``lambda: matches.run_tables``.
        """
        self.begin(lambda _: [load() for load in modules])

    def load_kernels(self, *modules: str) -> None:
        """Load the CPU kernels that the search uses from `modules`, in the background (see `load`), so that their first calls are fast."""
        self.load(*(partial(kernels.cpu.signatures.load_kernels, self.spec.kernels, module) for module in modules))

    def load_writers(self) -> None:
        """Import the modules that write tables and the record of the run in the background; see `load`."""
        estimators = [search.workload_estimator for kind, search in ESTIMATED_SEARCHES.items() if kind == self.spec.kind]
        self.load(lambda: pa.compute, *([lambda: pa.parquet] if self.run else []), *filter(None, estimators))

    def step(self, name: str) -> AbstractContextManager[None]:
        """Measure the time of the `with` block as a step: ``read``, ``index``, ``plan``, ``score``, ``report`` or ``advice``."""
        return self.clock.stage(name)

    def paths(self, kind: str) -> list[Path]:
        """Return the input files of a kind."""
        return [Path(file.path) for file in self.inputs if file.kind == kind]

    def files(self, *kinds: str) -> tuple[str, ...]:
        """Return the names of the input files of the given kinds as stored in records; names of different files differ."""
        names = distinct_names([file.path for file in self.inputs])
        return tuple(name for kind in kinds for file, name in zip(self.inputs, names, strict=True) if file.kind == kind)

    def digests(self, kind: str) -> list[str]:
        """Return the SHA-256 of the input files of a kind, in hexadecimal."""
        return [file.sha256 or "" for file in self.inputs if file.kind == kind]

    def resources(self, progress: Progress | None = None, *, memory_bytes: int = 0) -> Resources:
        """Open the GPUs of the device, report which device is used, and return the resources for the steps of the search.

        `memory_bytes` limits the memory used on each GPU; 0 allows all free memory.
        """
        progress = progress or self.progress
        remote_workers = self.workers()
        if remote_workers is not None:
            progress.message(f"Scoring on {remote_workers.name}")
            return Resources(self.threads, [], False, progress, self.clock, self.checkpoint, remote_workers)
        device = self.lookup.device(progress)
        used = open_gpus(device, progress, memory_bytes=memory_bytes)
        _log_device(device if used else processor(), self.lookup.requested, progress, is_passed_over=not device.numbers)
        return Resources(self.threads, used, device.with_processor, progress, self.clock, self.checkpoint)

    def summary_fields(self, counts: Mapping[str, int]) -> dict[str, Any]:
        """Return the fields common to all subclasses of `proteoscope.engine.summary.Summary`, and the counts under names ``n_…``."""
        return {
            "run_id": None if self.run is None else self.run.id,
            "folder": None if self.project is None else self.project.folder,
            "seconds": self.seconds,
            "device": self.device,
            "stages": self.clock.stages,
            "messages": self.progress.messages,
            **{f"n_{name}": number for name, number in counts.items()},
        }

    def record(self, counts: Mapping[str, int], message: str, *, exports: Iterable[str] = (), **more: Any) -> None:
        """Write the record of the run with its times as ``run.json``, as the last step of a search.

        Parameters
        ----------
        counts
            Numbers of searched items and of results, by name.
        message
            Sentence with these counts.
        exports
            Names of the export files that the project publishes.
        more
            Further entries of the record. A warning is reported if the entry `certainty` shows that no match is accepted at the false
            discovery rate, but matches would be accepted at 5 %.
        """
        certainty = more.get("certainty") or {}
        certainty_of_matches = next((certainty[name] for name in ("matches", "psms", "explained") if name in certainty), None)
        fdr = getattr(self.spec.request.parameters, "fdr", None)
        if certainty_of_matches is not None and fdr is not None and (warning := nothing_accepted_warning(certainty_of_matches, fdr)):
            self.progress.message(warning, "warning")
        compiling = self.clock.stages.get(COMPILATION, {"seconds": 0.0})["seconds"]
        self.seconds = round(time.perf_counter() - self.began - compiling, 3)
        prediction = self._prediction()
        if self.run is None:
            return
        self.run.message, self.run.device = message, self.device
        content = {
            "kind": self.spec.kind,
            "version": VERSION,
            "python": platform.python_version(),
            "commit": self.commit(),
            "command": list(self.spec.request.command),
            "date": creation_time().isoformat(timespec="seconds"),
            "packages": computing_packages(),
            "machine": machine(with_gpus=self.device not in ("", processor().name)),
            "run": self.run.id,
            "device": self.device,
            "threads": self.threads,
            "inputs": [
                {"path": name, "kind": file.kind, "sha256": file.sha256}
                for file, name in zip(self.inputs, distinct_names([input_file.path for input_file in self.inputs]), strict=True)
            ],
            "parameters": self.spec.request.parameters.model_dump(mode="json"),
            "counts": dict(counts),
            **more,
            "seconds": self.seconds,
            "steps": self.clock.stages,
            "workload_seconds": self.clock.workload_seconds,
            **({} if prediction is None else {"prediction": prediction}),
            "messages": list(self.progress.messages),
            "exports": list(exports),
            "digests": self._digests(exports),
        }
        self.run.write_json("run", _without_folders(content))

    def _digests(self, exports: Iterable[str]) -> dict[str, str]:
        """Return the SHA-256 of the results: tables, exports, and files outside the project, by name."""
        assert self.run is not None
        tables = {written.path.name: written.sha256 for written in self.run.written}
        published = file_digests(self.run.folder, (f"{EXPORTS}/{name}" for name in exports))
        outside = {name: digest for out in self.spec.outputs for name, digest in file_digests(out.parent, [out.name]).items()}
        return {**tables, **published, **outside}

    def _prediction(self) -> dict[str, Any] | None:
        """Return the predicted times of this run, for its record; None if there is no prediction for the devices that computed.

        If the kernels were compiled and the run was not resumed, the measured times are stored to improve later predictions.
        """
        device = self.lookup.device(self.progress)
        if self.spec.request.workers or (self.device and self.device != device.name):
            return None  # the devices that computed are not those of the prediction
        result = run_prediction(self.spec.kind, self.spec.request, device, self.threads)
        if result is None:
            return None
        measured = {name: stage["seconds"] for name, stage in self.clock.stages.items() if name in STEPS}
        if self.was_compiled and not self.spec.request.resume:
            advice = self.clock.stages.get("advice", {"seconds": 0.0})["seconds"]  # not part of the prediction
            remember_run(result, device, self.threads, measured, self.seconds - advice, self.clock.cpu_share())
        parts = ("seconds", "transfer", "kernel", "synchronisation", "host")
        return {
            **{name: round(getattr(result, name), 4) for name in parts},
            "bound": result.bound,
            "device": result.device,
            "steps": {name: round(seconds, 4) for name, seconds in result.steps.items()},
            "workload_seconds": {name: round(seconds, 4) for name, seconds in result.workload_seconds.items()},
            "memory_bytes": round(result.memory_bytes),
            "card_bytes": round(result.gpu_bytes),
            "runs": result.n_runs,
            "was_compiled": self.was_compiled,
        }


def _log_device(device: Device, requested: str, progress: Progress, *, is_passed_over: bool) -> None:
    """Report the device that computes, and, unless a device was requested by name, the reason why each other GPU is not used.

    `is_passed_over` is True if the CPU was selected although GPUs are usable.
    """
    progress.message(f"Scoring on {device.name}: {device.description}")
    if reason := unused_folder_reason():
        progress.message(reason, "warning")
    if requested in ("auto", "all"):
        for gpu in gpus():
            if gpu.numbers and not gpu.usable:
                progress.message(f"{gpu.name} is not used: {gpu.reason}", "warning")
            elif gpu.numbers and is_passed_over:
                progress.message(f"{gpu.name} is not used: the CPU should finish before it is ready (--device cuda uses it)")


@contextmanager
def _workers(request: SearchRequest, spool: Path | None, progress: Progress) -> Iterator[Callable[[], RemoteWorkers]]:
    """Yield a function that returns the requested workers; its first call starts them, and the end of the `with` block ends them.

    `spool` is the folder for large data sent to the workers, None for the temporary folder of the system.
    """
    result = list[RemoteWorkers]()
    with ExitStack() as stack:

        def workers() -> RemoteWorkers:
            if not result:
                certificates = None if request.certificates is None else Path(request.certificates)
                opening = cluster.launchers.open_cluster(
                    request.workers, progress, device=request.device, threads=request.threads, certificates=certificates, spool=spool
                )
                result.append(stack.enter_context(opening))
            return result[0]

        yield workers


@contextmanager
def search_run(
    spec: RunSpec,
    read: Callable[[Progress, int], Read],
    progress: Progress | None = None,
) -> Iterator[SearchRun[Read]]:
    """Check the inputs and yield a running search; its results are stored if the `with` block succeeds.

    The function `read` reads the input, given a progress and a number of threads. It is called in the background, while the digests of
    files are computed and the device is detected.

    Raises
    ------
    InputError, ParameterError, StorageError
        If an input or parameter is invalid, or writing fails.
    Cancelled
        If the user cancels.
    """
    recording = RecordingProgress(progress or Progress())
    request = spec.request
    began, clock, threads = time.perf_counter(), StageClock(), request.threads or available_threads()
    files = spec.checked_inputs()
    if request.workers:
        cluster.requests.parse_workers(request.workers)
    lookup = DeviceLookup("cpu" if request.workers else request.device, faster_device_rule(spec.kind, request, threads))

    def read_measured(progress: Progress) -> Read:
        with clock.stage("read"):
            return read(progress, threads)

    compiled = kernels.cpu.signatures.compiled_groups() if spec.kernels else None
    was_compiled = compiled is None or spec.kernels in compiled
    # Reading calls kernels, so if they are not compiled yet, read after compiling.
    with ExitStack() as stack:
        background = stack.enter_context(Background(recording, threads if was_compiled else 1))
        reading = background.begin(read_measured)
        inputs = tuple(RunInput(path, kind, file_digest(path, recording)) for path, kind in files)
        _refuse_existing(spec, inputs)
        lookup.raise_known_error()
        searching = SearchRun(spec, inputs, reading, background.begin, lookup, recording, threads, clock, began, compiled)
        if request.workers:
            searching.workers = stack.enter_context(_workers(request, spec.spool, recording))
        if spec.project is not None:
            searching.commit = background.begin(lambda _: program_commit())
            chosen = request.workers or lookup.device(recording).name
            project = Project.create_or_open(spec.project)
            values = request.parameters.model_dump(mode="json")
            if request.resume:
                check_same(project, request.resume, request, spec.kind, inputs)
            recorded = project.run(
                spec.kind,
                values,
                inputs,
                version=VERSION,
                device=chosen,
                wait=math.inf if request.waits else 0.0,
                progress=recording,
                resume=request.resume,
                name=request.run_name,
                overwrite=request.overwrite,
            )
            try:
                run = stack.enter_context(recorded)
            except RunExistsError:
                _refuse_existing(spec, inputs)  # another process has finished the run in the meantime: find the differences
                raise
            recording.log_to(run.log)
            searching.project, searching.run = project, run
            searching.checkpoint = stack.enter_context(_create_checkpoint(spec, project, run, inputs, recording))
        else:
            stack.enter_context(_warn_if_nothing_is_stored())
        for copy, original in copied_files((str(file.path), file.sha256 or "") for file in inputs if file.kind == "spectra").items():
            recording.message(f"{copy_text(copy, original)}: its spectra would be counted twice. Give the file once", "warning")
        if not was_compiled:
            with clock.stage(COMPILATION):
                compile_kernels([spec.kernels], recording, threads)
        yield searching


def _without_folders(value: Any) -> Any:
    """Return a copy of a record in which all file paths, also in texts such as messages, are replaced by file names."""
    if isinstance(value, str):
        return without_folders(value)
    if isinstance(value, Mapping):
        return {name: _without_folders(item) for name, item in value.items()}
    return [_without_folders(item) for item in value] if isinstance(value, list | tuple) else value


@contextmanager
def project_run(
    spec: RunSpec, read: Callable[[Progress, int], Read], progress: Progress | None = None
) -> Iterator[tuple[SearchRun[Read], Run]]:
    """Yield a running search that requires a project, and its run in the project; see `search_run`.

    Raises
    ------
    ParameterError
        If the request names no project.
    """
    with search_run(spec, read, progress) as searching:
        if searching.run is None:
            raise ParameterError(f"{spec.kind} writes its results into a project: name its folder")
        yield searching, searching.run


def _create_checkpoint(spec: RunSpec, project: Project, run: Run, inputs: Sequence[RunInput], progress: Progress) -> RunCheckpoint:
    """Return the checkpoint that stores the results of a run; if the run is resumed, the checkpoint also provides the earlier results."""
    key, resumed = project.checkpoint_key(run.number), None
    if spec.request.resume and (checkpoint := key.find()) is not None and checkpoint.origin != "copied":
        resumed = CheckpointFile.open(checkpoint.path)
        n = 0 if resumed is None else len(resumed.partitions)
        progress.message(f"{run.number} is resumed: its checkpoint contains {n:,} finished {'partition' if n == 1 else 'partitions'}")

    def warn(text: str) -> None:
        with suppress(StorageError):  # without a checkpoint, for example because the disk is full, the run continues
            progress.message(text, "warning")

    def create() -> CheckpointFile:
        header = CheckpointHeader(key.real_folder, run.number, record_request(spec.request, spec.kind, inputs))
        return CheckpointFile.create(key.prepare(), header)

    return RunCheckpoint(create, warn, resumed)


@contextmanager
def _warn_if_nothing_is_stored() -> Iterator[None]:
    try:
        yield
    except (Cancelled, KeyboardInterrupt) as error:
        error.add_note("a run without a project cannot be resumed")
        raise
