"""What the window gives to the queue of jobs: searches, and exports of what they found."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QLocale

from engine.entry import ExportRequest, Search, SearchRequest
from engine.files import atomic_file
from engine.jobs import Progress
from engine.project import Project, gone_error, is_project
from engine.project.paths import inside
from gui.words import counts_text

__all__ = ["ExportTask", "SearchTask"]

_NAME_DIGITS = 12


@dataclass(frozen=True)
class SearchTask:
    """A search that is to run in a project, which the request names.

    `pasted`: what was pasted for inputs, as FASTA, by their names.
    """

    search: Search
    title: str
    request: SearchRequest
    pasted: Mapping[str, str] = field(default_factory=dict)

    @property
    def project_folder(self) -> Path:
        """The project's folder."""
        assert self.request.project is not None
        return self.request.project

    def in_project(self, folder: Path) -> SearchTask:
        """The same search in another project."""
        return replace(self, request=replace(self.request, project=folder))

    def run(self, progress: Progress) -> Any:
        """Do the search, in the background thread, where what computes is imported; the engine's summary of it."""
        progress.stage("Starting")
        inputs = {name: [*paths, *self._written(name)] for name, paths in self.request.inputs.items()}
        return self.search.run(replace(self.request, inputs=inputs), progress)

    def run_in_project(self, progress: Progress) -> Any:
        """Do the search in the project that was there when it was asked for. One that is gone since then is not made anew.

        Raises
        ------
        StorageError : the project is gone.
        """
        if not is_project(self.project_folder):
            raise gone_error(self.project_folder)
        return self.run(progress)

    @staticmethod
    def outcome(summary: Any, locale: QLocale) -> str:
        """What was found, in one line."""
        return counts_text(summary.counts(), locale)

    def _written(self, name: str) -> list[Path]:
        """What was pasted for an input, in a file of the project, whose runs name the files that they read."""
        if not self.pasted.get(name):
            return []
        content = self.pasted[name].encode()
        path = inside(self.project_folder, name, f"pasted-{hashlib.sha256(content).hexdigest()[:_NAME_DIGITS]}.fasta")
        with atomic_file(path) as file:
            file.write(content)
        return [path]


@dataclass(frozen=True)
class ExportTask:
    """Results of a finished run that are to be written to a file or a folder."""

    search: Search
    project_folder: Path
    request: ExportRequest

    @property
    def title(self) -> str:
        """Of the job."""
        return f"Export results of {self.request.run_id} to {self.request.target.name}"

    def run(self, progress: Progress) -> list[Path]:
        """Write them, in the background thread; the files that were written."""
        progress.stage("Starting")
        return self.search.export(Project.open(self.project_folder), self.request, progress)

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Which files were written."""
        return f"{', '.join(path.name for path in written)} written"
