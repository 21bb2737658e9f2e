"""Menu of options for the annotation of spectra: matched ions and labelled peaks; each change is applied at once."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QFormLayout, QHBoxLayout, QLineEdit, QMenu, QWidget, QWidgetAction

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.views.annotation import OF_MODIFICATIONS, SHOWN_SERIES, WIDEST_TOLERANCE, AnnotationChoice, IonSettings
from proteoscope.gui.buttons import push_button
from proteoscope.gui.forms.numbers import NumberBox
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.labels import described, toned_label
from proteoscope.gui.layouts import STRETCH, in_column, in_row

_LOSSES = {
    "H2O": ("&Water", "water"),
    "NH3": ("A&mmonia", "ammonia"),
    OF_MODIFICATIONS: ("O&f modifications", "the neutral losses of their modifications"),
}
_UNUSUAL = IonSettings(Tolerance(20, "ppm"))


class AnnotationMenu(QMenu):
    """Menu that edits an `AnnotationChoice`: the changes of the user to the ion settings of a run."""

    choiceChanged = Signal()  # noqa: N815 - Qt's way of naming signals

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.choice = AnnotationChoice()
        self._run_settings = _UNUSUAL
        self._is_filled_in = False
        units = (("ppm", "ppm"), ("Da", "Da"))
        self.unit = described(ChoiceBox(units), "Unit of m/z errors", "Unit of the errors below the spectrum")
        self.series = {series: self._box(series, f"Match {series} ions") for series in SHOWN_SERIES}
        self.losses = {loss: self._box(title, f"Match ions after loss of {lost}") for loss, (title, lost) in _LOSSES.items()}
        self.precursor = self._box("&Precursor", "Match the remaining precursor")
        self.immonium = self._box("&Immonium ions", "Match immonium ions of modified and unmodified residues")
        self.tolerance = described(
            QLineEdit(),
            "Tolerance of fragments",
            "Maximum distance of a peak from an ion, for example 20 ppm or 0.5 Da; empty for the tolerance of the search",
        )
        self.tolerance.editingFinished.connect(self._take)
        self.least_labelled = described(
            NumberBox(0, 100, "%"),
            "Minimum height of a labelled peak",
            "Peaks below this share of the highest peak have no label; high peaks are labelled first",
        )
        self.least_labelled.setRange(0, 100)
        self.least_labelled.valueChanged.connect(lambda _: self._take())
        self.problem = toned_label(tone="wrong", is_hidden=True)
        self.reset_button = push_button(
            "Same as &search", lambda: self._change(AnnotationChoice()), tip="Match the same ions as the search, with all losses"
        )
        body = QWidget()
        rows = QFormLayout()
        rows.addRow("Series", self._row(*self.series.values()))
        rows.addRow("Losses", self._row(*self.losses.values()))
        rows.addRow("Other ions", self._row(self.precursor, self.immonium))
        rows.addRow("&Tolerance", self.tolerance)
        rows.addRow("&Label peaks above", self.least_labelled)
        rows.addRow("Err&ors in", self.unit)
        in_column(rows, self.problem, (self.reset_button, 0, Qt.AlignmentFlag.AlignLeft), on=body, margins=None)
        action = QWidgetAction(self)
        action.setDefaultWidget(body)
        self.addAction(action)
        self.show_choice(self.choice, self._run_settings)

    def show_choice(self, choice: AnnotationChoice, run_settings: IonSettings | None = None) -> None:
        """Show a choice in the fields, combined with the ion settings of a run (None: the settings of the previous run)."""
        self.choice = choice
        self._run_settings = run_settings or self._run_settings
        settings = choice.settings(self._run_settings)
        self._is_filled_in = False
        for series, box in self.series.items():
            box.setChecked(series in settings.series)
        for loss, box in self.losses.items():
            box.setChecked(loss in settings.losses)
        self.precursor.setChecked(settings.shows_precursor)
        self.immonium.setChecked(settings.shows_immonium)
        self.tolerance.setText(str(settings.tolerance))
        self.least_labelled.setValue(settings.least_labelled)
        self.problem.hide()
        self._is_filled_in = True

    def _box(self, text: str, tip: str) -> QCheckBox:
        box = described(QCheckBox(text), tip, tip)
        box.toggled.connect(lambda _: self._take())
        return box

    @staticmethod
    def _row(*widgets: QWidget) -> QHBoxLayout:
        return in_row(*widgets, STRETCH)

    def _take(self) -> None:
        """Apply the values of the fields."""
        if not self._is_filled_in:
            return
        series = "".join(name for name, box in self.series.items() if box.isChecked())
        self._try(
            lambda: AnnotationChoice(
                series="" if series == self._run_settings.series else series,
                losses=tuple(loss for loss, box in self.losses.items() if box.isChecked()),
                shows_precursor=self.precursor.isChecked(),
                shows_immonium=self.immonium.isChecked(),
                tolerance=self._tolerance(),
                least_labelled=self.least_labelled.value(),
            )
        )

    def _tolerance(self) -> Tolerance | None:
        text = self.tolerance.text().strip()
        result = Tolerance.parse(text) if text else None
        return None if result == self._run_settings.tolerance else result

    def _try(self, make: Callable[[], AnnotationChoice]) -> None:
        try:
            choice = make()
        except (ParameterError, ValueError):
            widest = " or ".join(f"{value:g} {unit}" for unit, value in WIDEST_TOLERANCE.items())
            self.problem.setText(f"Enter a tolerance such as 20 ppm or 0.5 Da, at most {widest}.")
            self.problem.show()
            return
        self.problem.hide()
        if choice != self.choice:
            self._change(choice)

    def _change(self, choice: AnnotationChoice) -> None:
        self.show_choice(choice)
        self.choiceChanged.emit()
