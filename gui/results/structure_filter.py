"""Filter bar of a structure search: text, and thresholds with the number of hits that pass each."""
# ruff: noqa: N802, D102 - Qt gives these names

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.structure_hits import StructureFilter, ThresholdColumns
from proteoscope.gui.forms.numbers import NumberBox, shortest
from proteoscope.gui.labels import toned_label
from proteoscope.gui.results.filter_bar import FilterBar


@dataclass(frozen=True)
class Threshold:
    """Threshold for the values in a column of the table of hits.

    Attributes
    ----------
    column : str
        Name of the column.
    label, name, help : str
        Label, accessible name and tooltip of the number box.
    step : float
        Step of the box's arrows.
    first : float
        Value that the first step sets in an empty box.
    scale : float
        Factor from the unit of the box to the unit of the column.
    """

    column: str
    label: str
    name: str
    help: str
    step: float
    first: float
    scale: float = 1.0


THRESHOLDS = (
    Threshold(
        "same_fold_probability",
        "Same fo&ld % ≥",
        "Minimum probability of the same fold in percent",
        "Hide hits with a lower probability of the query's fold, estimated from TM-score and length",
        5.0,
        50.0,
        scale=0.01,
    ),
    Threshold(
        "z_score",
        "&z-score ≥",
        "Minimum z-score",
        "Hide hits with a lower z-score: the distance from the mean score of the database's chains of this length, in standard "
        "deviations. It is not a probability: above 6, half of the pairs have the same fold",
        1.0,
        6.0,
    ),
    Threshold(
        "tm_score_query",
        "T&M-score ≥",
        "Minimum TM-score normalised by the query's length",
        "Hide hits with a lower TM-score; above 0.5 the fold is mostly the same",
        0.05,
        0.5,
    ),
    Threshold(
        "query_coverage",
        "C&overage % ≥",
        "Minimum coverage of the query in percent",
        "Hide hits that align with a smaller share of the query's residues",
        5.0,
        50.0,
        scale=0.01,
    ),
    Threshold(
        "rmsd",
        "RM&SD Å ≤",
        "Maximum RMSD in ångström",
        "Hide hits with a larger RMSD of aligned Cα; RMSD decreases with fewer pairs, so check the coverage too",
        0.5,
        3.0,
    ),
)
"""Thresholds in the order of the filter bar."""


class OptionalNumberBox(NumberBox):
    """Number field that sets no limit while it is empty; an arrow then sets the value `first`."""

    def __init__(self, step: float, first: float) -> None:
        super().__init__(None, None)
        self._first = first
        self.setStepType(NumberBox.StepType.DefaultStepType)
        self.setSingleStep(step)
        self.lineEdit().setPlaceholderText("any")
        self.clear_value()

    @property
    def number(self) -> float | None:
        """Number in the field, also while it is being typed, or None."""
        text = self._bare(self.lineEdit().text())
        return self._read(text) if text else None

    @property
    def entered(self) -> float | None:
        """Last number that was confirmed with Enter or by leaving the field, or None; filters use it."""
        value = self.value()
        return None if value <= self.minimum() else value

    def clear_value(self) -> None:
        """Remove the limit."""
        self.setValue(self.minimum())

    def textFromValue(self, value: float) -> str:
        return "" if value <= self.minimum() else super().textFromValue(value)

    def stepBy(self, steps: int) -> None:
        if self.number is None:
            self._step_to(self._first)
        else:
            self._step_to(shortest(self.value() + steps * self.singleStep()))

    def stepEnabled(self) -> NumberBox.StepEnabledFlag:
        return NumberBox.StepEnabledFlag.StepUpEnabled | NumberBox.StepEnabledFlag.StepDownEnabled

    def _read(self, text: str) -> float | None:
        return super()._read(text) if self._bare(text) else self.minimum()


class StructureFilterBar(FilterBar):
    """Filter bar for hits; below each threshold is the number of hits that meet this threshold, updated while the user types."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Target or description",
            "Show only hits with this text in the target's name, the query's name or the description",
            "Show all hits of the run",
            parent,
        )
        self._columns: ThresholdColumns | None = None
        self.boxes: dict[str, OptionalNumberBox] = {}
        """Number boxes of the thresholds, by column."""
        self.counts = {threshold.column: toned_label(wrap=False) for threshold in THRESHOLDS}
        """Labels with the number of hits that pass each threshold, by column."""
        for threshold in THRESHOLDS:
            box = OptionalNumberBox(threshold.step, threshold.first)
            box.setFixedWidth(self.fontMetrics().horizontalAdvance("0000.00") + 30)
            self.boxes[threshold.column] = box
            self._add_number(box, threshold.label, threshold.name, threshold.help, below=self.counts[threshold.column])
            # The first signal comes while typing, the second when arrows or the Reset button change the number.
            for signal in (box.lineEdit().textChanged, box.valueChanged):
                signal.connect(partial(self._count, threshold))
        self.show_columns(None)

    @property
    def chosen(self) -> StructureFilter:
        """Conditions of the current filter."""
        bounds = {
            threshold.column: number * threshold.scale
            for threshold in THRESHOLDS
            if (number := self.boxes[threshold.column].entered) is not None
        }
        return StructureFilter(self.text.text(), bounds)

    def open(self) -> None:
        """Reset the filter for a new run, without emitting a signal."""
        self._reset_quietly()

    def show_columns(self, columns: ThresholdColumns | None) -> None:
        """Set the columns whose values are counted; None clears the counts."""
        self._columns = columns
        for threshold in THRESHOLDS:
            self._count(threshold)

    def _count(self, threshold: Threshold, *_: object) -> None:
        label, box = self.counts[threshold.column], self.boxes[threshold.column]
        if self._columns is None:
            label.setText(" ")
            return
        locale = QLocale()
        total = self._columns.total
        if box.problem():
            text = "not a number"
        else:
            bound = None if box.number is None else box.number * threshold.scale
            text = f"{locale.toString(self._columns.count(threshold.column, bound))} of {locale.toString(total)}"
        label.setText(text)
        noun = "hit" if total == 1 else "hits"
        label.setToolTip(f"{threshold.name}: {text} {noun} pass this threshold" if not box.problem() else "")
        box.setAccessibleDescription(f"{text} {noun} pass")

    def _reset_own_fields(self) -> None:
        for box in self.boxes.values():
            box.clear_value()
