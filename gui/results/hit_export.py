"""Hits of a finished sequence search into a file: which format is asked for, and the job that writes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.jobs import Progress
from engine.project import Project
from engine.sequences.hits import FORMATS, HitFormat

__all__ = ["ExportDialog", "ExportRequest", "format_of"]

_NAMES: dict[HitFormat, tuple[str, tuple[str, ...]]] = {
    "tsv": ("Table, tab-separated", (".tsv",)),
    "blast6": ("Table as BLAST's format 6, without a header", (".blast6", ".b6", ".m8")),
    "sam": ("Alignments as SAM", (".sam",)),
    "fasta": ("Aligned sequences as FASTA", (".fasta", ".fa", ".faa")),
    "clustal": ("Alignments as Clustal", (".aln", ".clustal")),
    "html": ("Page to read and print, HTML", (".html", ".htm")),
}
"""What each format is called, and the endings of its files, the usual one first."""
_FILTERS = {f"{name} ({' '.join(f'*{ending}' for ending in endings)})": format for format, (name, endings) in _NAMES.items()}


@dataclass(frozen=True)
class ExportRequest:
    """Hits that are to be written: of which run, how, and where to."""

    project_folder: Path
    run_id: str
    format: HitFormat
    target: Path

    @property
    def title(self) -> str:
        """Of the job."""
        return f"Export hits of {self.run_id} to {self.target.name}"

    def run(self, progress: Progress) -> int:
        """Write them, in the background thread; how many there are."""
        progress.stage("Starting")
        from engine.sequence_search.exporting import export_hits

        return export_hits(Project.open(self.project_folder), self.run_id, self.format, self.target, progress)

    @staticmethod
    def outcome(n_hits: Any, locale: QLocale) -> str:
        """How many were written."""
        return f"{locale.toString(n_hits)} {'hit' if n_hits == 1 else 'hits'} written"


def format_of(path: Path, chosen: HitFormat) -> tuple[Path, HitFormat]:
    """The file and the format of a name that was typed: the name's ending says it, and where that is none of ours, what was chosen does."""
    ending = path.suffix.lower()
    named = chosen if ending in _NAMES[chosen][1] else next((one for one in FORMATS if ending in _NAMES[one][1]), None)
    if named is None and not ending:
        path = path.with_name(path.name + _NAMES[chosen][1][0])
    return path, named or chosen


class ExportDialog(QFileDialog):
    """Asks for the file and the format of an export."""

    def __init__(self, name: str, parent: QWidget) -> None:
        super().__init__(parent, "Export hits")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        self.setNameFilters(list(_FILTERS))
        self.filterSelected.connect(self._suit_ending)
        self._suit_ending(self.selectedNameFilter())
        self.selectFile(name + _NAMES[self.chosen_format][1][0])

    @property
    def chosen_format(self) -> HitFormat:
        """The format chosen among the kinds of files."""
        return _FILTERS[self.selectedNameFilter()]

    def _suit_ending(self, name_filter: str) -> None:
        # What is typed without an ending gets this one, before the dialog asks whether to overwrite such a file.
        self.setDefaultSuffix(_NAMES[_FILTERS[name_filter]][1][0])
