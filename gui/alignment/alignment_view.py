"""View of the alignment of the selected hit, with its actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import QLocale, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QToolButton, QWidget

from proteoscope.engine.views.aligned_pair import AlignedPair
from proteoscope.gui.actions import make_action
from proteoscope.gui.alignment.alignment_plot import AlignmentPlot
from proteoscope.gui.buttons import action_button, text_button, tool_button
from proteoscope.gui.database_links import LinksButton
from proteoscope.gui.elided_label import ElidedLabel
from proteoscope.gui.layouts import in_column
from proteoscope.gui.scrolling_layout import FoldingBar, PaneBar


class AlignmentView(QWidget):
    """Widget that shows an alignment, with buttons for zooming, copying and exporting.

    Parameters
    ----------
    parent : QWidget or None
        Owner of the view.
    copy_tip : str
        Tooltip of the copy button.
    chosen : str
        Name of the selected item for the accessible name, such as ``hit``.
    entries : str
        Type of the public database entries that the subject's name links to: ``proteins``, ``structures``, or empty for no links.
    """

    message = Signal(str)

    def __init__(
        self,
        parent: QWidget | None = None,
        *,
        copy_tip: str = "Copy the alignment as text, in BLAST's layout",
        chosen: str = "hit",
        entries: Literal["", "proteins", "structures"] = "proteins",
    ) -> None:
        super().__init__(parent)
        self._entries = entries
        self.links = LinksButton(self.message.emit, is_structure=entries == "structures")
        self.plot = AlignmentPlot()
        self.plot.setAccessibleName(f"Alignment of the selected {chosen}")
        self.plot.message.connect(self.message)
        self.plot.zoomed.connect(self._show_zoom)
        self._title = ElidedLabel()
        self.zoom_out_button = tool_button("remove", "Reduce text (Ctrl+-)", self.plot.zoom_out)
        self.zoom_button = QToolButton(autoRaise=True)
        self.zoom_button.setMinimumWidth(self.fontMetrics().horizontalAdvance("0000 %"))
        self.zoom_button.setToolTip("Same size as the window's font (Ctrl+0)")
        self.zoom_button.clicked.connect(lambda: self.plot.set_zoom(1.0))
        self.zoom_in_button = tool_button("add", "Enlarge text (Ctrl++)", self.plot.zoom_in)
        fasta_tip, export_tip = "Copy the two aligned sequences with their gaps, as FASTA", "Save the whole alignment as SVG, PDF or PNG"
        self.copy_button = text_button("Copy", copy_tip, self.copy, copy_tip)
        self.fasta_button = text_button("FASTA", fasta_tip, self.copy_fasta, fasta_tip)
        self.export_button = text_button("Export…", export_tip, self.plot.export_action.prompt, export_tip)
        self.copy_action = self._action("&Copy as text", QKeySequence.StandardKey.Copy, self.copy)
        self.fasta_action = self._action("Copy as &FASTA", "Ctrl+Shift+F", self.copy_fasta)
        self.bar = FoldingBar((8, 3, 6, 3), 4)
        self.bar.first.addWidget(self._title, 1)
        for widget in (self.zoom_out_button, self.zoom_button, self.zoom_in_button):
            self.bar.first.addWidget(widget)
        self.bar.second.addStretch(1)
        self.bar.second.addWidget(self.links)
        for widget in (self.copy_button, self.fasta_button, self.export_button):
            self.bar.second.addWidget(widget)
        in_column(self.bar, (self.plot, 1), on=self, spacing=0)
        self.pane_bar = PaneBar(self.bar.first, self.bar.second, self._title)
        self._show_zoom(1.0)
        self.show_pair(None)

    def add_action(self, action: QAction) -> None:
        """Add an action as a button and to the context menu of the alignment."""
        self.bar.second.addWidget(action_button(action, Qt.ToolButtonStyle.ToolButtonTextOnly))
        self.plot.insertAction(self.plot.export_action, action)

    def show_pair(self, pair: AlignedPair | None, text: str = "") -> None:
        """Show an alignment or a text."""
        self._title.set_text("" if pair is None else f"{pair.query_name}  ×  {pair.subject_name}")
        self.links.show_names(() if pair is None or not self._entries else (pair.subject_name,))
        self.plot.show_pair(pair, text)
        for button in (self.copy_button, self.fasta_button, self.export_button):
            button.setEnabled(pair is not None)
        for action in self.plot.actions():
            action.setEnabled(pair is not None)

    def copy(self) -> None:
        """Copy the alignment to the clipboard as text."""
        self._copy(AlignedPair.text, "Copied the alignment as text.")

    def copy_fasta(self) -> None:
        """Copy the aligned sequences to the clipboard as FASTA."""
        self._copy(AlignedPair.fasta, "Copied the two aligned sequences as FASTA.")

    def _copy(self, text_of: Callable[[AlignedPair], str], done: str) -> None:
        if self.plot.pair is not None:
            QGuiApplication.clipboard().setText(text_of(self.plot.pair))
            self.message.emit(done)

    def _show_zoom(self, zoom: float) -> None:
        self.zoom_button.setText(f"{QLocale().toString(round(zoom * 100))} %")

    def _action(self, text: str, shortcut: QKeySequence.StandardKey | str, use: Callable[[], None]) -> QAction:
        action = make_action(self.plot, text, use, shortcut)
        self.plot.insertAction(self.plot.export_action, action)
        return action
