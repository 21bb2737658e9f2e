"""Resumption of stopped runs: recording the request of a run in its checkpoint, and restoring it.

A run is resumed only with the same files, parameters and program version, so that stored results are those that would be computed again.
Stored results are read from the checkpoint in the user's own cache, not from the project, which may be untrusted.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proteoscope.engine.entry import Search, SearchRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.project import Project, RunInput, RunRecord
from proteoscope.engine.project.checkpoint_store import Checkpoint
from proteoscope.engine.project.project import INTERRUPTED
from proteoscope.engine.version import VERSION

__all__ = ["NO_CHECKPOINT", "StoppedRun", "check_same", "missing_checkpoint", "record_request", "stopped_run"]

NO_CHECKPOINT = "this user's cache has no checkpoint of it"
"""Reason why this user cannot resume a stopped run, as the end of a sentence."""


def record_request(request: SearchRequest, kind: str, inputs: Sequence[RunInput]) -> dict[str, Any]:
    """Return the request of a run as values for JSON; `inputs` are its input files with digests."""
    record = {
        "version": VERSION,
        "kind": kind,
        "parameters": request.parameters.model_dump(mode="json"),
        "files": [[file.kind, str(Path(file.path).absolute()), file.sha256] for file in inputs],
        "folder": str(Path.cwd()),
        "inputs": {name: list(map(str, paths)) for name, paths in request.inputs.items()},
        "out": None if request.out is None else str(Path(request.out).absolute()),
        "format": request.format,
        "options": dict(request.options),
        "device": request.device,
        "threads": request.threads,
        "run_name": request.run_name,
        "overwrite": request.overwrite,
    }
    # Scripts may pass Path objects.
    described: dict[str, Any] = json.loads(json.dumps(record, default=str))
    return described


def check_same(project: Project, run_id: str, request: SearchRequest, kind: str, inputs: Sequence[RunInput]) -> None:
    """Raise an error if a run cannot be resumed because its files, parameters or program version have changed.

    Raises
    ------
    InputError
        If the run cannot be resumed, or a file has changed.
    ParameterError
        If another program version started the run, or the parameters differ.
    """
    record = _checkpoint(project, run_id).header.request
    if record["kind"] != kind or record["parameters"] != json.loads(json.dumps(request.parameters.model_dump(mode="json"))):
        raise ParameterError(f"{run_id} was started with other parameters; run the search again")
    before = [(of, digest) for of, _, digest in record["files"]]
    now = [(file.kind, file.sha256) for file in inputs]
    for file, then in zip(inputs, before, strict=False):
        if (file.kind, file.sha256) != then:
            raise InputError(file.path, f"has changed since {run_id} was started", remedy="Restore the file, or run the search again")
    if before != now:
        raise ParameterError(f"{run_id} was started with other files; run the search again")


def missing_checkpoint(run: RunRecord, resumable: frozenset[str]) -> str:
    """Return the reason why `run` cannot be resumed, as the end of a sentence; '' if it can be resumed, or was not stopped or killed.

    Parameters
    ----------
    run : RunRecord
        Run of the project.
    resumable : frozenset of str
        Ids of the runs of the project that can be resumed.
    """
    was_stopped = run.status == "cancelled" or (run.status == "failed" and run.message == INTERRUPTED)
    return f"it cannot be resumed, since {NO_CHECKPOINT}: run it again" if was_stopped and run.id not in resumable else ""


def _refuse_running(project: Project, running: Iterable[str]) -> None:
    """Raise InputError if one of the given runs is being computed by another process."""
    for run_id in running:
        raise InputError(project.folder, f"run '{run_id}' is running in another process", remedy="Wait until it has ended")


def _checkpoint(project: Project, run_id: str) -> Checkpoint:
    """Return the checkpoint from which a run is resumed.

    Raises
    ------
    InputError
        If the run cannot be resumed.
    ParameterError
        If another version of the program started the run.
    """
    status = {run.id: run.status for run in project.runs()}
    if run_id not in status:
        raise InputError(project.folder, f"has no run {run_id[:60]!r}", remedy="proteoscope runs lists them")
    if status[run_id] == "done":
        raise InputError(project.folder, f"run '{run_id}' is finished", remedy="Choose a stopped run")
    _refuse_running(project, [run_id] if status[run_id] == "running" else [])
    if project.read_only:
        raise InputError(project.folder, "is read-only", remedy="Copy it to a folder that you may write to, and run the search again there")
    checkpoint = project.checkpoint(run_id)
    if checkpoint is None:
        raise InputError(project.folder, f"run '{run_id}' cannot be resumed: {NO_CHECKPOINT}", remedy="Run it again")
    if checkpoint.origin == "copied":
        raise InputError(
            project.folder,
            f"run '{run_id}' cannot be resumed: its checkpoint belongs to the project {checkpoint.header.folder}",
            remedy="Resume it there, or run it again here",
        )
    version = checkpoint.header.request.get("version")
    if version != VERSION:
        raise ParameterError(
            f"{run_id} was started with version {version!s:.40} of the program, but this is {VERSION}; run the search again"
        )
    return checkpoint


@dataclass(frozen=True)
class StoppedRun:
    """A stopped run that can be resumed.

    Attributes
    ----------
    id, kind
        Id and kind of the run.
    folder
        Working directory of the original request, to which paths in its parameters are relative.
    is_moved
        True if the project has been moved since the run was started.
    """

    id: str
    kind: str
    folder: Path
    is_moved: bool
    _project: Path
    _record: Mapping[str, Any]

    def lost_outputs(self, search: Search) -> str:
        """Return a sentence that names the requested output files that the resumed run will not write; '' if it will write all.

        Parameters
        ----------
        search : Search
            Search of the run's kind.
        """
        options = (self._record["options"].get(option.name) for option in search.options if option.is_output)
        requested = [path for path in (self._record["out"], *options) if path]
        if self.is_moved:
            # An untrusted project may claim this id, and must not make the program overwrite a file outside the project.
            lost, reason = requested, "the project has been moved"
        else:
            out = self._record["out"]
            lost, reason = [] if out is None or self._writes_out else [out], "its folder no longer exists"
        if not lost:
            return ""
        return f"{', '.join(lost)} {'is' if len(lost) == 1 else 'are'} not written, since {reason}; proteoscope export writes the results"

    @property
    def _writes_out(self) -> bool:
        """True if the resumed run writes the requested results file."""
        out = self._record["out"]
        return out is not None and not self.is_moved and Path(out).parent.is_dir()

    def _path(self, path: str) -> str:
        """Return a path of the request: unchanged (as in the tables) in the same working directory, otherwise as an absolute path."""
        return path if Path.cwd() == self.folder else str(self.folder / path)

    def request(self, search: Search, device: str = "", threads: int | None = None) -> SearchRequest:
        """Return the request that resumes the run under its id.

        Parameters
        ----------
        search
            Search of the run's kind.
        device, threads
            Device and threads that replace the original ones; the results do not depend on them.

        Raises
        ------
        ParameterError
            If the recorded parameters do not belong to this search.
        """
        record = self._record
        outputs = {option.name for option in search.options if option.is_output and self.is_moved}
        # The project may have been moved since then.
        project_inputs = {search_input.name: [str(self._project)] for search_input in search.inputs if search_input.content == "project"}
        inputs = {name: [self._path(path) for path in paths] for name, paths in record["inputs"].items()}
        return SearchRequest(
            {**inputs, **project_inputs},
            search.model.checked(record["parameters"]),
            self._project,
            Path(record["out"]) if self._writes_out else None,
            record["format"],
            {name: value for name, value in record["options"].items() if name not in outputs},
            device or record["device"],
            threads or record["threads"],
            resume=self.id,
            run_name=record.get("run_name", ""),
            overwrite=record.get("overwrite", False),
        )


def stopped_run(project: Project, run_id: str = "") -> StoppedRun:
    """Return the stopped run with this id; without an id, the last run that can be resumed.

    Raises
    ------
    InputError
        If there is no such run, or it cannot be resumed.
    ParameterError
        If another version of the program started the run.
    """
    if not run_id:
        result = project.resumable()
        run_id = next((run.id for run in reversed(project.runs()) if run.id in result), "")
        if not run_id:
            _refuse_running(project, (run.id for run in reversed(project.runs()) if run.status == "running"))
            raise InputError(project.folder, "has no run that can be resumed", remedy="proteoscope runs lists the runs")
    checkpoint = _checkpoint(project, run_id)
    record = checkpoint.header.request
    return StoppedRun(run_id, record["kind"], Path(record["folder"]), checkpoint.origin == "moved", project.folder, record)
