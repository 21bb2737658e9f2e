"""The projects that were open before: remembered, listed with what they hold, and grey where they are not there any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QDateTime, QLocale, Qt

from proteoscope.engine.entry import Search
from proteoscope.engine.project import RunRecord
from proteoscope.gui.forms.file_survey import FileSurvey
from proteoscope.gui.settings import RecentProject, SettingsFile

__all__ = ["RecentProjects"]


class _List(Protocol):
    def show_recent(self, folders: tuple[str, ...], notes: Mapping[str, str]) -> None:
        """List recent projects; `notes`: what they hold and from when, by their folders."""

    def show_missing(self, folders: frozenset[str]) -> None:
        """Grey recent projects that are not there."""


class RecentProjects:
    """Keeps the recent projects of the settings, and the lists of them, up to date.

    Parameters
    ----------
    settings : where they are remembered. survey : looks in a thread which of them are there. searches : names of kinds. lists : show them.
    """

    def __init__(self, settings: SettingsFile, survey: FileSurvey, searches: Iterable[Search], lists: Iterable[_List]) -> None:
        self._values, self._survey = settings.values, survey
        self._names = {search.kind: search.name for search in searches}
        self._lists = tuple(lists)

    def remember(self, folder: Path, runs: Iterable[RunRecord]) -> None:
        """Put a project on top, with what is known of its runs, the last one first."""
        done = [run for run in runs if run.status == "done"]
        kinds = tuple(dict.fromkeys(run.kind for run in done))
        self._values.remember_project(folder, RecentProject(kinds=kinds, last_run=done[0].started.isoformat() if done else ""))
        self.show()

    def forget(self, folder: Path) -> None:
        """Take a project from the lists."""
        self._values.forget_project(str(folder))
        self.show()

    def knows(self, folder: Path) -> bool:
        """Whether a project was open before."""
        return str(folder) in self._values.recent_projects

    def show(self) -> None:
        """List them, and look which are missing."""
        values = self._values
        notes = {folder: self._note_of(values.recent_runs[folder]) for folder in values.recent_projects if folder in values.recent_runs}
        for one in self._lists:
            one.show_recent(values.recent_projects, notes)
        self._survey.missing_projects(values.recent_projects, self._show_missing)

    def _show_missing(self, folders: frozenset[str]) -> None:
        for one in self._lists:
            one.show_missing(folders)

    def _note_of(self, runs: RecentProject) -> str:
        """As ``identification, 23/11/26``."""
        kinds = [self._names[kind] for kind in runs.kinds if kind in self._names]
        more = f" and {len(kinds) - 1} more" if len(kinds) > 1 else ""
        when = QDateTime.fromString(runs.last_run, Qt.DateFormat.ISODateWithMs)
        date = [QLocale().toString(when.toLocalTime().date(), QLocale.FormatType.ShortFormat)] if when.isValid() else []
        return ", ".join([*([kinds[0] + more] if kinds else []), *date])
