"""Pane of a PSM: its annotated spectrum, alone or mirrored with another spectrum, and its star and comment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMenu, QStackedWidget, QToolButton, QWidget

from proteoscope.engine.project import RowMark
from proteoscope.engine.views.annotation import IonSettings
from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.engine.views.peaks import Peaks
from proteoscope.gui.actions import add_choices
from proteoscope.gui.buttons import menu_button
from proteoscope.gui.layouts import in_column
from proteoscope.gui.spectrum.mark_bar import MarkBar
from proteoscope.gui.spectrum.mirror_view import MirrorView
from proteoscope.gui.spectrum.spectrum_view import SpectrumView

Below = Literal["nothing", "prediction", "other", "reference", "site"]
"""Type of the lower spectrum in a mirrored figure."""
_TITLES: dict[Below, tuple[str, str]] = {
    "nothing": ("&Nothing", "Show the spectrum with its ions and their errors"),
    "prediction": ("The &predicted intensities", "Mirror with the b and y ions predicted by the shipped model"),
    "other": ("The best &other PSM of the peptide", "Mirror with the best other spectrum of the same peptide"),
    "reference": ("The re&ference spectrum", "Mirror with the spectrum chosen as reference"),
    "site": ("The &second-best site", "Mirror with the ions of the best other arrangement of the selected modification site"),
}


@dataclass(frozen=True)
class ShownMatch:
    """PSM with all data needed to show it.

    Attributes
    ----------
    row : int
        Row of the table of PSMs.
    details : mapping of str to object
        Values of the row by column.
    peaks : Peaks
        Peaks of the spectrum.
    ions : IonSettings
        Ions that the run matched.
    title : str
        Title of the spectrum.
    mirrored : MirroredSpectra or None
        Spectrum with the selected lower spectrum, or None to show it alone.
    """

    row: int
    details: Mapping[str, Any]
    peaks: Peaks
    ions: IonSettings
    title: str
    mirrored: MirroredSpectra | None = None


class MatchPane(QWidget):
    """Pane that shows a PSM, an unidentified spectrum, or a text.

    Parameters
    ----------
    parent : QWidget or None
        Owner of the pane.
    spectrum, mirror : SpectrumView, MirrorView, optional
        Existing spectrum views to reuse.
    """

    message = Signal(str)
    match_requested = Signal()
    """The shown PSM must be passed to `show_match` again, since the lower spectrum (`below`) or the matched ions have changed."""

    def __init__(self, parent: QWidget | None = None, *, spectrum: SpectrumView | None = None, mirror: MirrorView | None = None) -> None:
        super().__init__(parent)
        self.spectrum = spectrum or SpectrumView()
        self.mirror = mirror or MirrorView()
        self.reference: ShownMatch | None = None
        """The PSM that the user set as the reference spectrum, or None."""
        self._shown: ShownMatch | None = None
        self.marks = MarkBar()
        menu = QMenu(self, toolTipsVisible=True)
        self.below_actions = add_choices(menu, {below: text for below, (text, _) in _TITLES.items()}, "nothing", self._set_below)
        for below, (_, tip) in _TITLES.items():
            self.below_actions[below].setToolTip(tip)
        self.below_actions["reference"].setEnabled(False)
        self.below_actions["site"].setEnabled(False)
        menu.addSeparator()
        self.reference_action = menu.addAction("&Use this spectrum as reference")
        self.reference_action.setToolTip("Mirror other spectra with this one")
        self.reference_action.triggered.connect(lambda: self.set_reference())
        self._below_buttons: list[QToolButton] = []
        for view in (self.spectrum, self.mirror):
            button = menu_button("Mirror", "Mirror the spectrum with a prediction or another spectrum", menu, "Mirrored spectrum")
            self._below_buttons.append(button)
            view.add_to_bar(button)
            view.message.connect(self.message)
        self._views = QStackedWidget()
        self._views.addWidget(self.spectrum)
        self._views.addWidget(self.mirror)
        in_column((self._views, 1), self.marks, on=self, spacing=0)
        self.spectrum.choiceChanged.connect(lambda: self.match_requested.emit() if self.below != "nothing" else None)
        self.show_text("")

    @property
    def below(self) -> Below:
        """Type of the lower, mirrored spectrum."""
        return next(below for below, action in self.below_actions.items() if action.isChecked())

    @property
    def row(self) -> int | None:
        """Row of the shown PSM in the table of PSMs, or None."""
        return None if self._shown is None else self._shown.row

    def choose_below(self, below: Below) -> None:
        """Choose the type of the lower spectrum for the PSMs shown next."""
        self.below_actions[below].setChecked(True)

    def set_reference(self) -> None:
        """Make the shown PSM the reference, with which the PSMs selected next are mirrored."""
        if self._shown is None:
            return
        self.reference = self._shown
        self.below_actions["reference"].setEnabled(True)
        self.below_actions["reference"].setText(f"The re&ference spectrum ({self._shown.title.split(',')[0].replace('&', '&&')[:60]})")
        self.message.emit("Reference spectrum set. Select another PSM to mirror it with this spectrum.")
        self._set_below("reference")

    def forget(self) -> None:
        """Clear the pane and the reference spectrum."""
        self.reference = None
        self.below_actions["reference"].setEnabled(False)
        self.below_actions["reference"].setText(_TITLES["reference"][0])
        if self.below == "reference":
            self.below_actions["nothing"].setChecked(True)
        self.show_text("")

    def show_text(self, text: str) -> None:
        """Show a text in place of the spectrum."""
        self._take(None)
        self.mirror.show_text("")
        self.spectrum.show_text(text)
        self._views.setCurrentWidget(self.spectrum)

    def show_match(self, match: ShownMatch, mark: RowMark) -> None:
        """Show a PSM with its star and comment, mirrored if `match.mirrored` is given."""
        self._take(match, mark)
        self.spectrum.show_match(match.details, match.peaks, match.ions, match.title)
        if match.mirrored is None or self.spectrum.spectrum is None:
            self.mirror.show_text("")
            self._views.setCurrentWidget(self.spectrum)
        else:
            self.mirror.show_spectra(match.mirrored)
            self._views.setCurrentWidget(self.mirror)

    def show_plain(self, spectrum: MirroredSpectra) -> None:
        """Show a spectrum that is not identified."""
        self._take(None)
        self.spectrum.show_text("")
        self.mirror.show_spectra(spectrum)
        self._views.setCurrentWidget(self.mirror)

    def _set_below(self, below: Below) -> None:
        self.below_actions[below].setChecked(True)
        if self._shown is not None:
            self.match_requested.emit()

    def _take(self, match: ShownMatch | None, mark: RowMark | None = None) -> None:
        self._shown = match
        self.below_actions["site"].setEnabled(match is not None and "site" in match.details)
        for button in self._below_buttons:
            button.setEnabled(match is not None)
        self.marks.show_mark(None if match is None else match.row, mark)
