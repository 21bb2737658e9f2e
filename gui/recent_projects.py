"""List of recent projects with their content and date; missing projects are grey."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QDateTime, QLocale, Qt

from proteoscope.engine.entry import Search
from proteoscope.engine.project import RunRecord
from proteoscope.gui.forms.file_inspection import FileInspector
from proteoscope.gui.settings import RecentProject, SettingsFile


class _List(Protocol):
    def show_recent(self, folders: tuple[str, ...], notes: Mapping[str, str]) -> None:
        """List recent projects. `notes` maps each folder to a text with its content and date."""

    def show_missing(self, folders: frozenset[str]) -> None:
        """Grey out recent projects that no longer exist."""


class RecentProjects:
    """Maintenance of the list of recent projects in the settings and in the widgets that show it.

    Parameters
    ----------
    settings : SettingsFile
        Settings that store the recent projects.
    inspector : FileInspector
        Inspector that checks in a thread which projects exist.
    searches : iterable of Search
        Searches, whose names are used in the notes on projects.
    lists : iterable
        Widgets that list recent projects.
    """

    def __init__(self, settings: SettingsFile, inspector: FileInspector, searches: Iterable[Search], lists: Iterable[_List]) -> None:
        self._values, self._inspector = settings.values, inspector
        self._names = {search.kind: search.name for search in searches}
        self._lists = tuple(lists)

    def remember(self, folder: Path, runs: Iterable[RunRecord]) -> None:
        """Move a project to the top of the lists, and store a summary of its `runs`, which are given newest first."""
        done = [run for run in runs if run.status == "done"]
        kinds = tuple(dict.fromkeys(run.kind for run in done))
        self._values.remember_project(folder, RecentProject(kinds=kinds, last_run=done[0].started.isoformat() if done else ""))
        self.show()

    def forget(self, folder: Path) -> None:
        """Remove a project from the lists."""
        self._values.forget_project(str(folder))
        self.show()

    def knows(self, folder: Path) -> bool:
        """Return True if a project is among the recent projects."""
        return str(folder) in self._values.recent_projects

    def show(self) -> None:
        """List the recent projects and check which ones are missing."""
        values = self._values
        notes = {folder: self._note_of(values.recent_runs[folder]) for folder in values.recent_projects if folder in values.recent_runs}
        for project_list in self._lists:
            project_list.show_recent(values.recent_projects, notes)
        self._inspector.missing_projects(values.recent_projects, self._show_missing)

    def _show_missing(self, folders: frozenset[str]) -> None:
        for project_list in self._lists:
            project_list.show_missing(folders)

    def _note_of(self, runs: RecentProject) -> str:
        """Return a note such as ``identification, 23/11/26``."""
        kinds = [self._names[kind] for kind in runs.kinds if kind in self._names]
        more = f" and {len(kinds) - 1} more" if len(kinds) > 1 else ""
        when = QDateTime.fromString(runs.last_run, Qt.DateFormat.ISODateWithMs)
        date = [QLocale().toString(when.toLocalTime().date(), QLocale.FormatType.ShortFormat)] if when.isValid() else []
        return ", ".join([*([kinds[0] + more] if kinds else []), *date])
