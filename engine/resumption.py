"""Runs that were stopped and go on: what was asked of a run, as it is recorded with what the run keeps, and as it is asked again.

A run goes on with the same files, parameters and version of the program alone: then what it kept is what it would compute again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proteoscope.engine.entry import Search, SearchRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.project import Project, RunInput
from proteoscope.engine.version import VERSION

__all__ = ["SEALED_ELSEWHERE", "StoppedRun", "check_same", "record_of", "stopped_run"]

SEALED_ELSEWHERE = "what it kept was not sealed by this user on this machine"
"""Why a run of `Project.resumable_elsewhere` cannot go on here."""


def record_of(request: SearchRequest, kind: str, inputs: Sequence[RunInput]) -> dict[str, Any]:
    """What was asked of a run, of which `inputs` are the files with their digests, in JSON's terms."""
    record = {
        "version": VERSION,
        "kind": kind,
        "parameters": request.parameters.model_dump(mode="json"),
        "files": [[one.kind, str(Path(one.path).absolute()), one.sha256] for one in inputs],
        "folder": str(Path.cwd()),
        "inputs": {name: list(map(str, paths)) for name, paths in request.inputs.items()},
        "out": None if request.out is None else str(Path(request.out).absolute()),
        "format": request.format,
        "options": dict(request.options),
        "device": request.device,
        "threads": request.threads,
    }
    # A script may give paths as such.
    described: dict[str, Any] = json.loads(json.dumps(record, default=str))
    return described


def check_same(project: Project, run_id: str, request: SearchRequest, kind: str, inputs: Sequence[RunInput]) -> None:
    """Refuse to go on with a run where something is not as it was.

    Raises
    ------
    InputError : it cannot be resumed, or a file has changed. ParameterError : another version began it, or with other parameters.
    """
    record = _recorded(project, run_id)
    if record["kind"] != kind or record["parameters"] != json.loads(json.dumps(request.parameters.model_dump(mode="json"))):
        raise ParameterError(f"{run_id} was begun with other parameters; do the search anew")
    before = [(of, digest) for of, _, digest in record["files"]]
    now = [(one.kind, one.sha256) for one in inputs]
    for one, then in zip(inputs, before, strict=False):
        if (one.kind, one.sha256) != then:
            raise InputError(one.path, f"has changed since {run_id} began", remedy="Restore it, or do the search anew")
    if before != now:
        raise ParameterError(f"{run_id} was begun with other files; do the search anew")


def _recorded(project: Project, run_id: str) -> Mapping[str, Any]:
    record = project.kept_request(run_id)
    if record is None:
        known = {run.id: run.status for run in project.runs()}
        if run_id not in known:
            raise InputError(project.folder, f"holds no run {run_id[:60]!r}", remedy="proteoscope runs lists them")
        if known[run_id] == "done":
            raise InputError(project.folder, f"run {run_id} is finished", remedy="Name one that was stopped")
        if run_id in project.resumable_elsewhere():
            raise InputError(
                project.folder,
                f"run {run_id} cannot be resumed here: {SEALED_ELSEWHERE}",
                remedy="Resume it as it was begun, or search anew",
            )
        raise InputError(project.folder, f"run {run_id} cannot be resumed: it kept nothing to go on with", remedy="Do the search anew")
    if record.get("version") != VERSION:
        raise ParameterError(
            f"{run_id} was begun by version {record.get('version')!s:.40} of the program, and this is {VERSION}; do the search anew"
        )
    return record


@dataclass(frozen=True)
class StoppedRun:
    """A run that was stopped and can go on.

    Attributes
    ----------
    id, kind : of the run. folder : the working directory in which it was asked for, from which paths in its parameters are meant.
    """

    id: str
    kind: str
    folder: Path
    _project: Path
    _record: Mapping[str, Any]

    @property
    def lost_output(self) -> Path | None:
        """The file for its results, where the folder for that is gone: nothing is written there when it goes on."""
        out = self._record["out"]
        return None if out is None or Path(out).parent.is_dir() else Path(out)

    def _path(self, path: str) -> str:
        """A file as it was named, since tables name it so; from another working directory, its whole path."""
        return path if Path.cwd() == self.folder else str(self.folder / path)

    def request(self, search: Search, device: str = "", threads: int | None = None) -> SearchRequest:
        """The request with which the run goes on, under its id.

        Parameters
        ----------
        search : of the run's kind. device, threads : others than it was begun with; the results are the same on all.

        Raises
        ------
        ParameterError : the parameters are none of this search.
        """
        record = self._record
        # A project may have been moved since.
        own = {one.name: [str(self._project)] for one in search.inputs if one.sort == "project"}
        inputs = {name: [self._path(path) for path in paths] for name, paths in record["inputs"].items()}
        return SearchRequest(
            {**inputs, **own},
            search.model.checked(record["parameters"]),
            self._project,
            None if self.lost_output is not None or record["out"] is None else Path(record["out"]),
            record["format"],
            record["options"],
            device or record["device"],
            threads or record["threads"],
            resume=self.id,
        )


def stopped_run(project: Project, run_id: str = "") -> StoppedRun:
    """A run of a project that can go on: the one of this id, else the last.

    Raises
    ------
    InputError : there is none, or it cannot. ParameterError : another version of the program began it.
    """
    if not run_id:
        found = project.resumable()
        run_id = next((run.id for run in reversed(project.runs()) if run.id in found), "")
        if not run_id:
            raise InputError(project.folder, "holds no run that can be resumed", remedy="proteoscope runs lists what there is")
    record = _recorded(project, run_id)
    return StoppedRun(run_id, record["kind"], Path(record["folder"]), project.folder, record)
