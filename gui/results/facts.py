"""Facts that every header of results shows: input files, duration and device."""

from pathlib import Path

from PySide6.QtCore import QLocale

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.project import Project
from proteoscope.engine.project.records import InputRecord
from proteoscope.engine.views.finished_run import FinishedRun

_OF_PROJECT = "project_"
"""Prefix of the kinds of inputs that are tables of another run."""


def files_facts(run: FinishedRun, of_source: str = "unidentified spectra of {}") -> tuple[str, ...]:
    """Return texts about the input files: the source run, if results of another run were used, and the file names of each kind.

    `of_source` is the text about the source run; {} is replaced by the name of that run.
    """
    files: dict[str, list[str]] = {}
    for kind, path in run.inputs:
        if not kind.startswith(_OF_PROJECT):
            files.setdefault(kind, []).append(path.name)
    source = _source_folder(run)
    taken = () if source is None else (of_source.replace("{}", source.name),)
    return (*taken, *(f"{kind}: {', '.join(names)}" for kind, names in files.items()))


def inputs_of_source(run: FinishedRun) -> tuple[tuple[str, Path], ...]:
    """Return (kind, path) of the inputs of the run whose results this run used, or () if it used no other run."""
    return tuple((record.kind, record.path) for record in _records_of_source(run))


def _records_of_source(run: FinishedRun) -> list[InputRecord]:
    folder = _source_folder(run)
    if folder is None:
        return []
    try:
        return Project.open(folder.parents[1]).inputs(folder.name)
    except ProteoscopeError:
        return []


def records_of_spectra(run: FinishedRun) -> list[InputRecord]:
    """Return the input records of the spectrum files of a run and, if the run used results of another run, of that run."""
    try:
        if run.spectra_run != run.run.id:
            # An explanation records tables of the identification run as its inputs; the spectrum files are inputs of that run.
            records = run.project.inputs(run.spectra_run)
        else:
            records = [*run.project.inputs(run.run.id), *_records_of_source(run)]
    except ProteoscopeError:
        records = []
    return list({record.path: record for record in records if record.kind == "spectra"}.values())


def _source_folder(run: FinishedRun) -> Path | None:
    """Return the folder of the run whose tables were used, or None."""
    return next((path.parent for kind, path in run.inputs if kind.startswith(_OF_PROJECT)), None)


def passes_facts(run: FinishedRun) -> tuple[str, ...]:
    """Return a sentence for each search pass."""
    return tuple(setting.sentence() for setting in run.passes)


def time_facts(run: FinishedRun) -> tuple[str, ...]:
    """Return a text with the duration and the device, or () if the run has not finished."""
    if run.run.finished is None:
        return ()
    seconds = (run.run.finished - run.run.started).total_seconds()
    return (f"{QLocale().toString(seconds, 'f', 1)} s on {run.run.device or 'cpu'}",)
