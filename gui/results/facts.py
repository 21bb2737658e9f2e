"""What every header tells of a run besides what it found: its files, how long it took, and on what."""

from __future__ import annotations

from PySide6.QtCore import QLocale

from engine.views.finished_run import FinishedRun

__all__ = ["files_facts", "passes_facts", "time_facts"]


def files_facts(run: FinishedRun) -> tuple[str, ...]:
    """Which files were searched, by what they were to the run."""
    files: dict[str, list[str]] = {}
    for kind, path in run.inputs:
        files.setdefault(kind, []).append(path.name)
    return tuple(f"{kind}: {', '.join(names)}" for kind, names in files.items())


def passes_facts(run: FinishedRun) -> tuple[str, ...]:
    """How it searched, a sentence for each pass."""
    return tuple(one.sentence() for one in run.passes)


def time_facts(run: FinishedRun) -> tuple[str, ...]:
    """How long it took and on what; nothing where it is not known."""
    if run.run.finished is None:
        return ()
    seconds = (run.run.finished - run.run.started).total_seconds()
    return (f"{QLocale().toString(seconds, 'f', 1)} s on {run.run.device or 'cpu'}",)
