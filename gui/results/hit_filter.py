"""The filter of a sequence search: text, E-value, identity and coverage."""

from __future__ import annotations

from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QDoubleSpinBox, QWidget

from gui.forms.numbers import NumberBox
from gui.results.filter_bar import FilterBar
from gui.results.hits import HitFilter

__all__ = ["HitFilterBar"]


class _EValueBox(NumberBox):
    """An E-value, which is never negative; the arrows go by factors of ten."""

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        """Refuse a minus in front."""
        return (QValidator.State.Invalid, text, position) if text.lstrip().startswith("-") else super().validate(text, position)

    def stepBy(self, steps: int) -> None:  # noqa: N802 - Qt's name
        """Multiply or divide by ten."""
        self.setValue((self.value() or 1e-200) * 10.0**steps)


class HitFilterBar(FilterBar):
    """What to show of the hits."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Subject or description",
            "Shows hits with this text in the subject's or the query's name or in the description",
            "Shows all hits of the run again",
            parent,
        )
        self._largest = 10.0
        self.e_value = _EValueBox(0.0, None)
        # E-values reach down to the smallest number that there is.
        self.e_value.setDecimals(320)
        self.e_value.setAccessibleName("Largest E-value")
        self.e_value.setToolTip("Hides hits that chance would give more often than this; as 0.001 or 1e-10")
        self.e_value.setKeyboardTracking(False)
        self.e_value.valueChanged.connect(self._later.start)
        self.identity = self._percent("Least identity", "Hides alignments with a smaller part of identical columns")
        self.coverage = self._percent("Least coverage of the query", "Hides alignments that cover a smaller part of the query")
        self.e_value.setFixedWidth(self.fontMetrics().horizontalAdvance("1e-100") + 30)
        self._add(self.e_value, "&E ≤")
        self._add(self.identity, "&Identity ≥")
        self._add(self.coverage, "Co&verage ≥")
        self.open(10.0)

    @property
    def chosen(self) -> HitFilter:
        """What is asked for."""
        e_value = self.e_value.value()
        any_e_value = e_value >= self._largest
        return HitFilter(self.text.text(), None if any_e_value else e_value, self.identity.value() / 100, self.coverage.value() / 100)

    def open(self, largest_e_value: float) -> None:
        """Show all hits of a run that reports up to this E-value; tells nobody."""
        self._largest = largest_e_value
        self.blockSignals(True)
        self._reset_fields()
        self.blockSignals(False)

    def _percent(self, name: str, help_text: str) -> QDoubleSpinBox:
        box = QDoubleSpinBox()
        box.setDecimals(0)
        box.setRange(0.0, 100.0)
        box.setSingleStep(5.0)
        box.setSuffix(" %")
        box.setFixedWidth(self.fontMetrics().horizontalAdvance("100 %") + 30)
        box.setAccessibleName(name)
        box.setToolTip(help_text)
        box.setKeyboardTracking(False)
        box.valueChanged.connect(self._later.start)
        return box

    def _usual(self) -> None:
        self.e_value.setValue(self._largest)
        self.identity.setValue(0.0)
        self.coverage.setValue(0.0)
