"""The page “New sequence search”."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QLocale, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.files import atomic_file
from engine.jobs import Progress
from engine.parameters import SearchParameters
from engine.sequence_search.parameters import SequenceSearchParameters
from engine.sequences.statistics import default_gap_costs
from gui.devices import DeviceSurvey
from gui.forms.file_list import FileList, count_text, nucleotide_text
from gui.forms.file_survey import DATABASE_SUFFIXES, FileSurvey, Survey
from gui.forms.search_form import Input, SearchForm, SearchRequest, file_patterns
from gui.forms.sequence_box import SequenceBox
from gui.labels import toned_label

__all__ = ["QueryInput", "SequenceSearchForm", "SequenceSearchRequest"]

_QUERIES = "queries"
_NAME_DIGITS = 12


@dataclass(frozen=True)
class SequenceSearchRequest(SearchRequest):
    """Everything that a sequence search needs to run. `pasted`: further queries, as FASTA."""

    queries: tuple[Path, ...]
    pasted: str
    databases: tuple[Path, ...]
    parameters: SequenceSearchParameters

    def run(self, progress: Progress) -> Any:
        """Search. What computes is imported here, in the background thread."""
        progress.stage("Starting")
        from engine.sequence_search.search import align

        queries = [*self.queries, *([self._written()] if self.pasted else [])]
        return align(
            queries,
            self.databases,
            None,
            self.parameters,
            project_folder=self.project_folder,
            device=self.device,
            progress=progress,
        )

    @staticmethod
    def outcome(summary: Any, locale: QLocale) -> str:
        """Numbers of hits and queries, in the words of the run's own message."""
        if not summary.n_hits:
            return "no hits"
        n_hits, n_found, n_queries = (locale.toString(n) for n in (summary.n_hits, summary.n_queries_with_hits, summary.n_queries))
        hits = f"{n_hits} hit{'' if summary.n_hits == 1 else 's'}"
        return hits if summary.n_queries == 1 else f"{hits}; {n_found} of {n_queries} queries with hits"

    def _written(self) -> Path:
        """The pasted queries in a file of the project, whose runs name the files that they read."""
        content = self.pasted.encode()
        path = self.project_folder / _QUERIES / f"pasted-{hashlib.sha256(content).hexdigest()[:_NAME_DIGITS]}.fasta"
        with atomic_file(path) as file:
            file.write(content)
        return path


class QueryInput(QWidget):
    """Files of queries, and a box to paste more.

    Signals
    -------
    changed : files or pasted sequences, or what is known of them, changed.
    """

    changed = Signal()

    def __init__(self, survey: FileSurvey) -> None:
        super().__init__()
        filters = [f"FASTA files ({file_patterns(DATABASE_SUFFIXES)})"]
        hint = "Drop FASTA files with the proteins to look for here, or add them below"
        self.files = FileList("database", survey, filters, hint, is_each_judged=True)
        self.box = SequenceBox()
        self.note = toned_label()
        self.warning = toned_label(tone="attention")
        page = QVBoxLayout(self)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(6)
        for widget in (self.files, self.box, self.note, self.warning):
            page.addWidget(widget)
        self.files.changed.connect(self.changed)
        self.box.changed.connect(self._show)
        # What is being typed is not examined yet.
        self.box.text.textChanged.connect(self.changed)
        self._show()

    @property
    def is_empty(self) -> bool:
        """Whether there is no query at all."""
        return self.files.is_empty and not self.box.pasted.fasta

    @property
    def is_examined(self) -> bool:
        """Whether it is known of all files what they are, and what was pasted has been read."""
        return self.files.is_examined and self.box.is_read

    def problem(self) -> str:
        """Why the search cannot take these queries."""
        return self.files.problem() or self.box.pasted.problem

    def redraw(self) -> None:
        """Draw what depends on the look again."""
        self.files.redraw()

    def _show(self) -> None:
        count = self.box.pasted.count
        self.note.setText("" if count is None else f"Pasted: {count_text([count])}")
        self.note.setVisible(count is not None)
        warning = "" if count is None else nucleotide_text("What was pasted", count)
        self.warning.setText(warning)
        self.warning.setVisible(bool(warning))
        self.changed.emit()


class SequenceSearchForm(SearchForm):
    """The page: queries, a database, and the parameters of a sequence search."""

    def __init__(self, survey: FileSurvey, devices: DeviceSurvey) -> None:
        self.queries = QueryInput(survey)
        self.databases = FileList(
            "database",
            survey,
            [f"FASTA files ({file_patterns(DATABASE_SUFFIXES)})"],
            "Drop the FASTA files to search in here, or add them below",
        )
        self._matrix = ""
        super().__init__(
            "New sequence search",
            "align",
            SequenceSearchParameters,
            "standard",
            (
                Input("Queries", self.queries, "Add queries, or paste a sequence", "A query cannot be used"),
                Input("Protein databases", self.databases, "Add a protein database", "A database cannot be used"),
            ),
            {"queries": self.queries.files, "databases": self.databases},
            devices,
        )
        self._matrix = str(self.parameters.values()["matrix"])
        self.parameters.changed.connect(self._suit_gap_costs)

    def take(self, found: Survey, target: QWidget | None) -> None:
        """Add FASTA files where they were dropped; elsewhere they are queries as long as there are none."""
        on_queries, on_databases = (target is not None and part.isAncestorOf(target) for part in (self.queries, self.databases))
        are_queries = on_queries or (self.queries.is_empty and not on_databases)
        (self.queries.files if are_queries else self.databases).take(found)

    def _suit_gap_costs(self) -> None:
        """A matrix brings the gap costs that suit it, where the costs were those that suited the one before."""
        values = self.parameters.values()
        before, self._matrix = self._matrix, str(values["matrix"])
        # A preset, and what one goes back to, have costs of their own.
        if self._is_filling or before == self._matrix or (values["gap_open"], values["gap_extend"]) != default_gap_costs(before):
            return
        gap_open, gap_extend = default_gap_costs(self._matrix)
        self.parameters.set_values({"gap_open": gap_open, "gap_extend": gap_extend})

    def _request(self, parameters: SearchParameters) -> SequenceSearchRequest:
        assert isinstance(parameters, SequenceSearchParameters)
        queries, pasted = tuple(self.queries.files.paths), self.queries.box.pasted.fasta
        n_more = len(queries) - 1 + bool(pasted)
        names = queries[0].name if queries else "pasted sequences"
        title = f"Search {names}" + (f" and {n_more} more" if queries and n_more else "") + f" in {self.databases.paths[0].name}"
        return SequenceSearchRequest(
            title, self.project_folder(), self.device.value(), queries, pasted, tuple(self.databases.paths), parameters
        )

    def _first_file(self) -> Path | None:
        return next(iter([*self.queries.files.paths, *self.databases.paths]), None)
