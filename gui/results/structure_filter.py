"""The filter of a structure search: text, and thresholds that say at once how many hits they keep."""
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

__all__ = ["THRESHOLDS", "OptionalNumberBox", "StructureFilterBar", "Threshold"]


@dataclass(frozen=True)
class Threshold:
    """A box for the bound of a column of the hits. `scale`: what one unit of the box is in the table."""

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
        "Least probability of the same fold in percent",
        "Hides hits that have the query's fold less probably, by TM-score and length",
        5.0,
        50.0,
        scale=0.01,
    ),
    Threshold(
        "z_score",
        "&z-score ≥",
        "Least z-score",
        "Hides hits whose score is fewer standard deviations above that of the database's other chains of this length; it is no "
        "probability: from 6 on half of the pairs have the same fold",
        1.0,
        6.0,
    ),
    Threshold(
        "tm_score_query",
        "T&M-score ≥",
        "Minimum TM-score by the query's length",
        "Hides hits whose superposition covers the query worse; above 0.5 the fold is mostly the same",
        0.05,
        0.5,
    ),
    Threshold(
        "query_coverage",
        "C&overage % ≥",
        "Minimum coverage of the query in percent",
        "Hides hits that align with a smaller part of the query's residues",
        5.0,
        50.0,
        scale=0.01,
    ),
    Threshold(
        "rmsd",
        "RM&SD Å ≤",
        "Greatest RMSD in ångström",
        "Hides hits whose aligned Cα lie farther apart; it is smaller the fewer pairs there are, so look at the coverage too",
        0.5,
        3.0,
    ),
)
"""In the order in which they stand in the filter."""


class OptionalNumberBox(NumberBox):
    """A number, or nothing: an empty box bounds nothing. Its arrows begin at `first`."""

    def __init__(self, step: float, first: float) -> None:
        super().__init__(None, None)
        self._first = first
        self.setStepType(NumberBox.StepType.DefaultStepType)
        self.setSingleStep(step)
        self.lineEdit().setPlaceholderText("any")
        self.clear_value()

    @property
    def number(self) -> float | None:
        """What stands there; None where nothing does, or no number."""
        text = self._bare(self.lineEdit().text())
        return self._read(text) if text else None

    @property
    def entered(self) -> float | None:
        """The value that was entered last, None for none: what is being typed does not filter yet."""
        value = self.value()
        return None if value <= self.minimum() else value

    def clear_value(self) -> None:
        """Bound nothing."""
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
    """What to show of the hits. Below each threshold stands how many hits it alone keeps, as soon as it is typed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Target or description",
            "Shows hits with this text in the target's or the query's name or in the description",
            "Shows all hits of the run again",
            parent,
        )
        self._columns: ThresholdColumns | None = None
        self.boxes: dict[str, OptionalNumberBox] = {}
        """The thresholds, by their columns."""
        self.counts = {one.column: toned_label(wrap=False) for one in THRESHOLDS}
        """What each keeps."""
        for one in THRESHOLDS:
            box = OptionalNumberBox(one.step, one.first)
            box.setFixedWidth(self.fontMetrics().horizontalAdvance("0000.00") + 30)
            self.boxes[one.column] = box
            self._add_number(box, one.label, one.name, one.help, below=self.counts[one.column])
            # While it is typed, and when arrows or the button Reset change it.
            for signal in (box.lineEdit().textChanged, box.valueChanged):
                signal.connect(partial(self._count, one))
        self.show_columns(None)

    @property
    def chosen(self) -> StructureFilter:
        """What is asked for."""
        bounds = {one.column: number * one.scale for one in THRESHOLDS if (number := self.boxes[one.column].entered) is not None}
        return StructureFilter(self.text.text(), bounds)

    def open(self) -> None:
        """Show all hits of a run; tells nobody."""
        self._reset_quietly()

    def show_columns(self, columns: ThresholdColumns | None) -> None:
        """Count in these hits from now on; None where there are none yet."""
        self._columns = columns
        for one in THRESHOLDS:
            self._count(one)

    def _count(self, threshold: Threshold, *_: object) -> None:
        label, box = self.counts[threshold.column], self.boxes[threshold.column]
        if self._columns is None:
            label.setText(" ")
            return
        locale = QLocale()
        total = self._columns.total
        if box.problem():
            text = "no number"
        else:
            bound = None if box.number is None else box.number * threshold.scale
            text = f"{locale.toString(self._columns.count(threshold.column, bound))} of {locale.toString(total)}"
        label.setText(text)
        noun = "hit" if total == 1 else "hits"
        label.setToolTip(f"{threshold.name}: alone keeps {text} {noun}" if not box.problem() else "")
        box.setAccessibleDescription(f"keeps {text} {noun}")

    def _usual(self) -> None:
        for box in self.boxes.values():
            box.clear_value()
