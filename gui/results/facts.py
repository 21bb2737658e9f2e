"""What every header tells of a run besides what it found: its files, how long it took, and on what."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QLocale

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.project import Project
from proteoscope.engine.project.records import InputRecord
from proteoscope.engine.views.finished_run import FinishedRun

__all__ = ["files_facts", "inputs_of_source", "passes_facts", "records_of_spectra", "time_facts"]

_OF_PROJECT = "project_"
"""How the kinds of inputs begin that are tables of another run."""


def files_facts(run: FinishedRun, of_source: str = "what {} left unidentified") -> tuple[str, ...]:
    """Which files were searched, by what they were to the run. `of_source`: what was taken from another run, with its name for braces."""
    files: dict[str, list[str]] = {}
    for kind, path in run.inputs:
        if not kind.startswith(_OF_PROJECT):
            files.setdefault(kind, []).append(path.name)
    source = _source_folder(run)
    taken = () if source is None else (of_source.replace("{}", source.name),)
    return (*taken, *(f"{kind}: {', '.join(names)}" for kind, names in files.items()))


def inputs_of_source(run: FinishedRun) -> tuple[tuple[str, Path], ...]:
    """Kind and path of each file that the run read from which this one goes on; none where there is no such run, or it is gone."""
    return tuple((one.kind, one.path) for one in _records_of_source(run))


def _records_of_source(run: FinishedRun) -> list[InputRecord]:
    folder = _source_folder(run)
    if folder is None:
        return []
    try:
        return Project.open(folder.parents[1]).inputs(folder.name)
    except ProteoscopeError:
        return []


def records_of_spectra(run: FinishedRun) -> list[InputRecord]:
    """The files that the spectra of a run were read from, which may have been the run's from which this one goes on."""
    try:
        if run.spectra_run != run.run.id:
            # The inputs of an explanation are tables of the identification, at the place where the project was then.
            records = run.project.inputs(run.spectra_run)
        else:
            records = [*run.project.inputs(run.run.id), *_records_of_source(run)]
    except ProteoscopeError:
        records = []
    return list({one.path: one for one in records if one.kind == "spectra"}.values())


def _source_folder(run: FinishedRun) -> Path | None:
    """The folder of the run whose tables were read in place of files."""
    return next((path.parent for kind, path in run.inputs if kind.startswith(_OF_PROJECT)), None)


def passes_facts(run: FinishedRun) -> tuple[str, ...]:
    """How it searched, a sentence for each pass."""
    return tuple(one.sentence() for one in run.passes)


def time_facts(run: FinishedRun) -> tuple[str, ...]:
    """How long it took and on what; nothing where it is not known."""
    if run.run.finished is None:
        return ()
    seconds = (run.run.finished - run.run.started).total_seconds()
    return (f"{QLocale().toString(seconds, 'f', 1)} s on {run.run.device or 'cpu'}",)
