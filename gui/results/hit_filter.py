"""Filter bar for hits of a sequence search: text, E-value, identity and coverage."""

from __future__ import annotations

from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.hits import HitFilter
from proteoscope.gui.forms.numbers import IntegerBox, NumberBox, number_text, shortest
from proteoscope.gui.results.filter_bar import FilterBar


class _EValueBox(NumberBox):
    """Field for an E-value, which is never negative; arrows multiply or divide by ten."""

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        """Return the state Intermediate for negative numbers: they can be typed, and are marked as invalid."""
        state, text, position = super().validate(text, position)
        is_negative = state == QValidator.State.Acceptable and text.lstrip().startswith("-")
        return (QValidator.State.Intermediate if is_negative else state), text, position

    def stepBy(self, steps: int) -> None:  # noqa: N802 - Qt's name
        """Multiply or divide by ten."""
        self._step_to(shortest((self.value() or 1e-200) * 10.0**steps))


class HitFilterBar(FilterBar):
    """Filter bar for hits."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Subject or description",
            "Show only hits with this text in the subject's name, the query's name or the description",
            "Show all hits of the run",
            parent,
        )
        self._largest = 10.0
        self.e_value = _EValueBox(0.0, None)
        # Enough decimals for the smallest positive double.
        self.e_value.setDecimals(320)
        self.e_value.setFixedWidth(self.fontMetrics().horizontalAdvance("1e-100") + 30)
        self.identity, self.coverage = self._percent(), self._percent()
        example = number_text(0.001)
        for box, label, name, help_text in (
            (self.e_value, "E ≤", "Maximum E-value", f"Hide hits with a larger E-value; for example {example} or 1e-10"),
            (self.identity, "&Identity ≥", "Minimum identity", "Hide alignments with a smaller share of identical columns"),
            (self.coverage, "C&overage ≥", "Minimum coverage of the query", "Hide alignments that cover a smaller share of the query"),
        ):
            self._add_number(box, label, name, help_text)
        self.open(10.0)

    @property
    def chosen(self) -> HitFilter:
        """Conditions of the current filter."""
        e_value = self.e_value.value()
        any_e_value = e_value >= self._largest
        return HitFilter(self.text.text(), None if any_e_value else e_value, self.identity.value() / 100, self.coverage.value() / 100)

    def open(self, largest_e_value: float) -> None:
        """Reset the filter to the maximum E-value of a run, so that all hits of the run are shown, without emitting a signal."""
        self._largest = largest_e_value
        self._reset_quietly()

    def _percent(self) -> IntegerBox:
        box = IntegerBox(0, 100, "%")
        box.setRange(0, 100)
        box.setSingleStep(5)
        box.setFixedWidth(self.fontMetrics().horizontalAdvance("100 %") + 30)
        return box

    def _reset_own_fields(self) -> None:
        self.e_value.setValue(self._largest)
        self.identity.setValue(0)
        self.coverage.setValue(0)
