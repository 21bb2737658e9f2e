"""Results of a finished run into files: asks which format, and where to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from proteoscope.engine.entry import Export

__all__ = ["ExportDialog", "fitted"]


def fitted(path: Path, chosen: Export, exports: Sequence[Export]) -> tuple[Path, Export]:
    """The file and the format of a name that was typed: the name's ending says it, and where that is none of ours, what was chosen does."""
    name = path.name.lower()
    # What was chosen comes first, since two formats may share an ending; then the longest: .pep.xml is more than .xml.
    endings = sorted(
        ((ending, export) for export in exports for ending in export.endings), key=lambda pair: (pair[1] is not chosen, -len(pair[0]))
    )
    named = next((one for ending, one in endings if name.endswith(ending)), None)
    if named is None and not path.suffix and not chosen.is_folder:
        path = path.with_name(path.name + chosen.endings[0])
    return path, named or chosen


class _Choice(NamedTuple):
    """A format with what can be chosen of it."""

    export: Export
    consensus: Literal["merged", "best"] = "merged"
    accepted_only: bool = False


class ExportDialog(QFileDialog):
    """Asks for the format of an export and its file, or the folder to make for a format of several.

    Parameters
    ----------
    name : of the file, without an ending. exports : the formats, the usual one first. folder : where it opens.
    """

    def __init__(self, name: str, exports: Sequence[Export], parent: QWidget, folder: Path | None = None) -> None:
        super().__init__(parent, "Export results", str(folder or ""))
        self._exports = tuple(exports)
        self._formats: dict[str, _Choice] = {}
        for export in exports:
            self._formats[_name_filter(export)] = _Choice(export)
            if export.has_acceptance:
                accepted = replace(export, title=f"{export.title}, accepted rows only")
                self._formats[_name_filter(accepted)] = _Choice(export, accepted_only=True)
            if export.is_library:
                best = replace(export, title=f"{export.title}, best spectrum of each")
                self._formats[_name_filter(best)] = _Choice(export, "best")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        self.setNameFilters(list(self._formats))
        self.filterSelected.connect(self._suit_name)
        self._suggest(name)

    @property
    def chosen(self) -> Export:
        """The format chosen among the kinds of files."""
        return self._formats[self.selectedNameFilter()].export

    @property
    def consensus(self) -> Literal["merged", "best"]:
        """Of a spectral library, whether an entry is the mean of its spectra, or the best of them."""
        return self._formats[self.selectedNameFilter()].consensus

    @property
    def accepted_only(self) -> bool:
        """True if only accepted rows are to be written."""
        return self._formats[self.selectedNameFilter()].accepted_only

    def _suit_name(self) -> None:
        """Give the name the ending of the format that is chosen now, in place of another's."""
        names = self.selectedFiles()
        self._suggest(_without_ending(Path(names[0]).name, self._exports) if names else "")

    def _suggest(self, stem: str) -> None:
        ending = next(iter(self.chosen.endings), "")
        # What is typed without an ending gets this one, before the dialog asks whether to overwrite such a file.
        self.setDefaultSuffix(ending)
        if stem:
            self.selectFile(stem + ending)


def _name_filter(one: Export) -> str:
    return f"{one.title}, in a new folder (*)" if one.is_folder else f"{one.title} ({' '.join(f'*{ending}' for ending in one.endings)})"


def _without_ending(name: str, exports: Sequence[Export]) -> str:
    """A name without the ending of a format. Qt replaces what stands behind the last point by itself, hence a half of one with two."""
    endings = sorted({ending for export in exports for ending in export.endings}, key=len, reverse=True)
    halves = [half for ending in endings if ending.count(".") > 1 for half in (f".{ending.rpartition('.')[2]}", ending.rpartition(".")[0])]
    whole = next((ending for ending in endings if name.lower().endswith(ending)), "")
    name = name[: len(name) - len(whole)]
    for half in halves:
        name = name.removesuffix(half)
    return name
