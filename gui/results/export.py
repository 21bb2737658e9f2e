"""Dialog for the export of results of a finished run: format and file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from proteoscope.engine.entry import Export
from proteoscope.engine.page_sizes import FIGURE_TYPES, FigureFormat
from proteoscope.gui.plots.page_choice import last_choice


def fitted(path: Path, chosen: Export, exports: Sequence[Export]) -> tuple[Path, Export]:
    """Return the file and format for a typed name.

    A known extension selects the format. Otherwise the selected format is used, and its extension is appended to a name without extension.

    Parameters
    ----------
    path : Path
        File as typed by the user.
    chosen : Export
        Format selected in the dialog.
    exports : sequence of Export
        All formats of the dialog.
    """
    name = path.name.lower()
    # The chosen format comes first, since formats may share an extension; then the longest: .pep.xml before .xml.
    endings = sorted(
        ((ending, export) for export in exports for ending in export.endings), key=lambda pair: (pair[1] is not chosen, -len(pair[0]))
    )
    named = next((export for ending, export in endings if name.endswith(ending)), None)
    if named is None and not path.suffix and not chosen.is_folder:
        path = path.with_name(path.name + chosen.endings[0])
    return path, named or chosen


class _Choice(NamedTuple):
    """Format with its options: one entry of the dialog's list of file types."""

    export: Export
    consensus: Literal["merged", "best"] = "merged"
    accepted_only: bool = False
    figure_type: str = FIGURE_TYPES[0]


class ExportDialog(QFileDialog):
    """Dialog for the format and the file of an export, or for a new folder if the format has several files.

    Parameters
    ----------
    name : str
        Suggested file name without extension.
    exports : sequence of Export
        Formats, the default first.
    parent : QWidget
        Owner of the dialog.
    folder : Path or None
        Start folder.
    """

    def __init__(self, name: str, exports: Sequence[Export], parent: QWidget, folder: Path | None = None) -> None:
        super().__init__(parent, "Export results", str(folder or ""))
        self._exports = tuple(exports)
        self._formats: dict[str, _Choice] = {}
        for export in exports:
            if export.has_figures:
                for figure_type in FIGURE_TYPES:
                    typed = replace(export, title=f"{export.title}, as {figure_type.upper()}")
                    self._formats[_name_filter(typed)] = _Choice(export, figure_type=figure_type)
                continue
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
        """Selected format."""
        return self._formats[self.selectedNameFilter()].export

    @property
    def consensus(self) -> Literal["merged", "best"]:
        """Type of exported library entries: the merged spectra of an entry, or its best spectrum."""
        return self._formats[self.selectedNameFilter()].consensus

    @property
    def accepted_only(self) -> bool:
        """True if only accepted rows are exported."""
        return self._formats[self.selectedNameFilter()].accepted_only

    @property
    def figures(self) -> FigureFormat:
        """Format of exported figures, with the last selected width and resolution."""
        return FigureFormat(self._formats[self.selectedNameFilter()].figure_type, last_choice.size, last_choice.dpi)

    def _suit_name(self) -> None:
        """Replace the extension of the typed name by the extension of the selected format."""
        names = self.selectedFiles()
        self._suggest(_without_ending(Path(names[0]).name, self._exports) if names else "")

    def _suggest(self, stem: str) -> None:
        ending = next(iter(self.chosen.endings), "")
        # A name typed without an extension gets this one, before the dialog checks for an existing file.
        self.setDefaultSuffix(ending)
        if stem:
            self.selectFile(stem + ending)


def _name_filter(export: Export) -> str:
    return (
        f"{export.title}, in a new folder (*)"
        if export.is_folder
        else f"{export.title} ({' '.join(f'*{ending}' for ending in export.endings)})"
    )


def _without_ending(name: str, exports: Sequence[Export]) -> str:
    """Return a name without the extension of an export format, or without an incomplete extension.

    Qt replaces only the text after the last dot, which can leave a part of an extension such as .pep.xml.
    """
    endings = sorted({ending for export in exports for ending in export.endings}, key=len, reverse=True)
    halves = [half for ending in endings if ending.count(".") > 1 for half in (f".{ending.rpartition('.')[2]}", ending.rpartition(".")[0])]
    whole = next((ending for ending in endings if name.lower().endswith(ending)), "")
    name = name[: len(name) - len(whole)]
    for half in halves:
        name = name.removesuffix(half)
    return name
