"""A PSM: its annotated spectrum, or that mirrored with a prediction or another spectrum, with the star and the comment that it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QStackedWidget, QToolButton, QWidget

from proteoscope.engine.project import RowMark
from proteoscope.engine.views.annotation import IonSettings
from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.engine.views.peaks import Peaks
from proteoscope.gui.room import fill_page
from proteoscope.gui.spectrum.mark_bar import MarkBar
from proteoscope.gui.spectrum.mirror_view import MirrorView
from proteoscope.gui.spectrum.spectrum_view import SpectrumView

__all__ = ["Below", "MatchPane", "ShownMatch"]

Below = Literal["nothing", "prediction", "other", "kept"]
"""What the spectrum of a PSM is mirrored with."""
_TITLES: dict[Below, tuple[str, str]] = {
    "nothing": ("&Nothing", "Show the spectrum with its ions and their errors"),
    "prediction": ("The &predicted intensities", "Show below it the b and y ions as the shipped model predicts them"),
    "other": ("The best &other PSM of the peptide", "Show below it the best other spectrum of the same peptide"),
    "kept": ("The &kept spectrum", "Show below it the spectrum that was kept for comparison"),
}


@dataclass(frozen=True)
class ShownMatch:
    """A row of the PSMs as it is shown: its place and values, peaks, its run's ions, a title, and what it is mirrored with, if anything."""

    row: int
    details: Mapping[str, Any]
    peaks: Peaks
    ions: IonSettings
    title: str
    mirrored: MirroredSpectra | None = None


class MatchPane(QWidget):
    """Shows a PSM, or a spectrum that is none, or says why there is none.

    Parameters
    ----------
    spectrum, mirror : the two views of spectra, where they have been made before.
    """

    message = Signal(str)
    asked = Signal()
    """The user wants the PSM with something else below it, or with other ions."""

    def __init__(self, parent: QWidget | None = None, *, spectrum: SpectrumView | None = None, mirror: MirrorView | None = None) -> None:
        super().__init__(parent)
        self.spectrum = spectrum or SpectrumView()
        self.mirror = mirror or MirrorView()
        self.kept: ShownMatch | None = None
        """The PSM that others are compared with."""
        self._shown: ShownMatch | None = None
        self.marks = MarkBar()
        self._below = QActionGroup(self)
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        self.below_actions: dict[Below, QAction] = {below: self._add_choice(menu, below) for below in get_args(Below)}
        self.below_actions["nothing"].setChecked(True)
        self.below_actions["kept"].setEnabled(False)
        menu.addSeparator()
        self.keep_action = menu.addAction("&Keep this spectrum for comparison")
        self.keep_action.setToolTip("Others can be shown mirrored with it from now on")
        self.keep_action.triggered.connect(lambda: self.keep())
        self._below_buttons: list[QToolButton] = []
        for view in (self.spectrum, self.mirror):
            button = QToolButton()
            self._below_buttons.append(button)
            button.setText("Mirror")
            button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
            button.setMenu(menu)
            button.setToolTip("What is shown below the spectrum: a prediction, or another spectrum")
            button.setAccessibleName("What the spectrum is mirrored with")
            view.add_to_bar(button)
            view.message.connect(self.message)
        self._views = QStackedWidget()
        self._views.addWidget(self.spectrum)
        self._views.addWidget(self.mirror)
        fill_page(self, self._views, self.marks, filling=self._views)
        self.spectrum.choiceChanged.connect(lambda: self.asked.emit() if self.below != "nothing" else None)
        self.show_text("")

    @property
    def below(self) -> Below:
        """What the spectrum is mirrored with."""
        return next(below for below, action in self.below_actions.items() if action.isChecked())

    @property
    def row(self) -> int | None:
        """Place in the file of the PSM that is shown; None where there is none."""
        return None if self._shown is None else self._shown.row

    def keep(self) -> None:
        """Keep the PSM that is shown, and mirror those that follow with it."""
        if self._shown is None:
            return
        self.kept = self._shown
        self.below_actions["kept"].setEnabled(True)
        self.below_actions["kept"].setText(f"The &kept spectrum ({self._shown.title.split(',')[0].replace('&', '&&')[:60]})")
        self.message.emit("Kept. Choose another PSM, and what it is mirrored with is this spectrum.")
        self._ask("kept")

    def forget(self) -> None:
        """Show nothing, and keep no spectrum."""
        self.kept = None
        self.below_actions["kept"].setEnabled(False)
        self.below_actions["kept"].setText(_TITLES["kept"][0])
        if self.below == "kept":
            self.below_actions["nothing"].setChecked(True)
        self.show_text("")

    def show_text(self, text: str) -> None:
        """Say why there is no spectrum."""
        self._take(None)
        self.mirror.show_text("")
        self.spectrum.show_text(text)
        self._views.setCurrentWidget(self.spectrum)

    def show_match(self, match: ShownMatch, mark: RowMark) -> None:
        """Show a PSM; `mark`: what somebody put on it."""
        self._take(match, mark)
        self.spectrum.show_match(match.details, match.peaks, match.ions, match.title)
        if match.mirrored is None or self.spectrum.spectrum is None:
            self.mirror.show_text("")
            self._views.setCurrentWidget(self.spectrum)
        else:
            self.mirror.show_spectra(match.mirrored)
            self._views.setCurrentWidget(self.mirror)

    def show_plain(self, spectrum: MirroredSpectra) -> None:
        """Show a spectrum of which no peptide is known."""
        self._take(None)
        self.spectrum.show_text("")
        self.mirror.show_spectra(spectrum)
        self._views.setCurrentWidget(self.mirror)

    def _add_choice(self, menu: QMenu, below: Below) -> QAction:
        text, tip = _TITLES[below]
        action = menu.addAction(text)
        action.setCheckable(True)
        action.setToolTip(tip)
        action.triggered.connect(lambda: self._ask(below))
        self._below.addAction(action)
        return action

    def _ask(self, below: Below) -> None:
        self.below_actions[below].setChecked(True)
        if self._shown is not None:
            self.asked.emit()

    def _take(self, match: ShownMatch | None, mark: RowMark | None = None) -> None:
        self._shown = match
        for button in self._below_buttons:
            button.setEnabled(match is not None)
        self.marks.show_mark(None if match is None else match.row, mark)
