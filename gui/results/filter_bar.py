"""What to show, for all tables at once: the text, the button that resets, and the fields that a kind of search adds."""
# ruff: noqa: N815 - Qt's way of naming signals

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFontMetrics, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QBoxLayout, QCheckBox, QGridLayout, QHBoxLayout, QLabel, QLineEdit, QPushButton, QWidget

from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.forms.numbers import IntegerBox, NumberBox
from proteoscope.gui.forms.wheel import ChoiceBox

__all__ = ["FilterBar", "MassFilterBar", "RatedFilterBar", "q_value_box"]

_TYPING_MS = 150


class FilterBar(QWidget):
    """A line of fields, two where one has no room; where that has none, labels stand above their fields. A kind of search derives from it,
    adds its own with `_add`, and sets them in `_usual`.

    Parameters
    ----------
    looked_in : what the text is looked for in, as ``Peptide, accession or description``.
    reset_tip : what the button Reset leads back to.
    """

    filterChanged = Signal()

    def __init__(self, looked_in: str, text_tip: str, reset_tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._later = QTimer(self, singleShot=True, interval=_TYPING_MS)
        self._later.timeout.connect(self.filterChanged)
        self._resized = QTimer(self, singleShot=True, interval=0)
        self._resized.timeout.connect(lambda: self.updateGeometry())
        self.text = QLineEdit()
        self.text.setPlaceholderText(looked_in)
        self.text.setClearButtonEnabled(True)
        self.text.setAccessibleName("Filter by text")
        self.text.setToolTip(f"{text_tip} (Ctrl+F)")
        self.text.setMinimumWidth(80)
        self.text.textChanged.connect(self._later.start)
        self.text.returnPressed.connect(self._now)
        self.reset_button = QPushButton("Rese&t")
        self.reset_button.setToolTip(reset_tip)
        self.reset_button.clicked.connect(self.reset)
        self._row = QHBoxLayout()
        self._row.setSpacing(6)
        self._row.addStretch(1)
        self._row.addWidget(self.reset_button)
        self._lines = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._lines.setContentsMargins(6, 4, 6, 4)
        self._lines.setSpacing(6)
        self._lines.addWidget(self.text, 1)
        self._lines.addLayout(self._row)
        self._last_field: QWidget = self.text
        self._marks: list[Callable[[], None]] = []
        self._cells: list[_Cell] = []
        find = QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self)
        find.setContext(Qt.ShortcutContext.WindowShortcut)
        find.activated.connect(self._take_focus)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Put the fields beside the text, or below it."""
        super().resizeEvent(event)
        needed = self._width_of_fields(is_high=False)
        is_wide = event.size().width() >= needed + self.text.minimumWidth() + self._lines.spacing()
        direction = QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom
        is_other = direction != self._lines.direction()
        for cell in self._cells:
            is_other |= cell.stand(is_high=event.size().width() < needed)
        self._lines.setDirection(direction)
        if self._cells and is_other:
            # Who lays this out is at it now, and looks at another height only when it is told later.
            self._resized.start()

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Room for the fields; the text may stand above them."""
        return QSize(self._width_of_fields(is_high=True), self._lines.totalMinimumSize().height())

    def _width_of_fields(self, *, is_high: bool) -> int:
        """Room that the fields need beside each other; `is_high`: with their labels above them, where that can be."""
        margins = self._lines.contentsMargins()
        width = self._row.minimumSize().width()
        if self._cells:
            # The layout knows how they stand now, or stood a moment ago.
            items = [self._row.itemAt(i) for i in range(self._row.count())]
            widths = [
                one.width_as(is_high=is_high) if isinstance(one, _Cell) else max(one.minimumSizeHint().width(), one.minimumWidth())
                for item in items
                if item is not None and (one := item.widget()) is not None
            ]
            width = sum(widths) + (len(widths) - 1) * self._row.spacing()
        return width + margins.left() + margins.right()

    def reset(self) -> None:
        """Show what is shown at first."""
        self._reset_fields()
        self._now()

    def _add(self, field: QWidget, label: str = "", frame: QWidget | None = None) -> None:
        """Put a field, or the frame that holds it, before the button Reset, with a label whose letter after & leads to the field."""
        if label:
            frame = self._cell(field, label, frame or field, None)
        self._row.insertWidget(self._row.count() - 2, frame or field)
        # The button was there before the fields.
        self.setTabOrder(self._last_field, field)
        self._last_field = field

    def _add_number(
        self,
        box: IntegerBox | NumberBox,
        label: str,
        name: str,
        help_text: str,
        below: QWidget | None = None,
    ) -> None:
        """Put a number before the button Reset. It filters when it is entered; while what stands there is no number, it is marked.

        `below`: what stands under it.
        """
        box.setAccessibleName(name)
        box.setKeyboardTracking(False)
        frame = Outlined(box, margin=2)

        def mark() -> None:
            problem = box.problem()
            frame.mark(bool(problem))
            box.setToolTip(f"{problem}; so long the filter stays as it was" if problem else help_text)
            box.setAccessibleDescription(problem)

        box.valueChanged.connect(self._later.start)
        box.lineEdit().textChanged.connect(mark)
        self._marks.append(mark)
        if below is None:
            self._add(box, label, frame)
            return
        self._add(box, frame=self._cell(box, label, frame, below))
        for beside in (self.reset_button, *self._cells):
            self._row.setAlignment(beside, Qt.AlignmentFlag.AlignTop)
        self._lines.setAlignment(self.text, Qt.AlignmentFlag.AlignTop)

    def _cell(self, field: QWidget, label: str, frame: QWidget, below: QWidget | None) -> _Cell:
        self._cells.append(_Cell(field, label, frame, below))
        if below is None:
            self._row.setAlignment(self.reset_button, Qt.AlignmentFlag.AlignBottom)
        return self._cells[-1]

    def _choices(self, name: str, help_text: str) -> ChoiceBox:
        """A field with choices that filters at once."""
        box = ChoiceBox()
        box.setAccessibleName(name)
        box.setToolTip(help_text)
        box.activated.connect(self._now)
        return box

    def _marked_box(self) -> QCheckBox:
        """A field that shows PSMs which somebody has marked, and filters at once."""
        box = QCheckBox("&★")
        box.setAccessibleName("Marked")
        box.setToolTip("Shows PSMs with a star or a comment only")
        box.toggled.connect(self._now)
        return box

    def _usual(self) -> None:
        """Set the fields of its own as they are at first."""
        raise NotImplementedError

    def _reset_fields(self) -> None:
        self.text.clear()
        self._usual()
        for mark in self._marks:
            mark()
        self._later.stop()

    def _reset_quietly(self) -> None:
        """Show what is shown at first, and tell nobody."""
        self.blockSignals(True)
        self._reset_fields()
        self.blockSignals(False)

    def _now(self) -> None:
        self._later.stop()
        self.filterChanged.emit()

    def _take_focus(self) -> None:
        self.text.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.text.selectAll()


class RatedFilterBar(FilterBar):
    """One with a field for the largest q-value, `q_value`, which whoever derives from it puts in its place and sets in `_usual`."""

    def __init__(self, looked_in: str, text_tip: str, parent: QWidget | None = None) -> None:
        super().__init__(looked_in, text_tip, "Shows again what is accepted at the false discovery rate of the run", parent)
        self._fdr = 0.01
        self.q_value = q_value_box(self.fontMetrics())

    @property
    def largest_q_value(self) -> float | None:
        """The largest q-value that is shown; None: everything is."""
        q_value = self.q_value.value()
        return None if q_value >= 1 else q_value

    def open(self, fdr: float) -> None:
        """Show what is accepted at `fdr`; 1: everything. Tells nobody."""
        self._fdr = fdr
        self._reset_quietly()

    def _usual(self) -> None:
        self.q_value.setValue(self._fdr)


def q_value_box(metrics: QFontMetrics) -> NumberBox:
    """A field for the largest q-value, as wide as one needs in a font."""
    box = NumberBox(0.0, 1.0)
    box.setDecimals(4)
    box.setRange(0.0, 1.0)
    box.setStepType(NumberBox.StepType.DefaultStepType)
    box.setSingleStep(0.005)
    box.setFixedWidth(metrics.horizontalAdvance("0.0000") + 30)
    return box


class _Cell(QWidget):
    """A field with a label before it, or above it where there is little room, and below it, if there is, something else."""

    def __init__(self, field: QWidget, label: str, frame: QWidget, below: QWidget | None) -> None:
        super().__init__()
        self._label, self._parts = QLabel(label), [frame] if below is None else [frame, below]
        self._label.setBuddy(field)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(6)
        self._grid.setVerticalSpacing(0)
        self.is_high = True
        self.stand(is_high=False)

    def width_as(self, *, is_high: bool) -> int:
        """The room that it needs with its label above the field, or before it."""
        label, *others = (max(one.minimumSizeHint().width(), one.minimumWidth()) for one in (self._label, *self._parts))
        return max(label, *others) if is_high else label + self._grid.horizontalSpacing() + max(others)

    def stand(self, *, is_high: bool) -> bool:
        """Have the label above the field, or before it; whether that is another place than before."""
        if is_high == self.is_high:
            return False
        self.is_high = is_high
        places = ((0, 0), (1, 0), (2, 0)) if is_high else ((0, 0), (0, 1), (1, 1))
        for widget, place in zip((self._label, *self._parts), places, strict=False):
            self._grid.removeWidget(widget)
            self._grid.addWidget(widget, *place, Qt.AlignmentFlag.AlignCenter)
        self.updateGeometry()
        return True


class MassFilterBar(RatedFilterBar):
    """Text, q-value, and whether the mass is the same.

    Parameters
    ----------
    looked_in, text_tip : see `FilterBar`. kind_tip : of the field for the mass. other : what a match of
    another mass is called, in the field and in the filter. hidden : what the largest q-value hides.
    """

    def __init__(self, looked_in: str, text_tip: str, kind_tip: str, other: str, hidden: str, parent: QWidget | None = None) -> None:
        super().__init__(looked_in, text_tip, parent)
        self.kind = self._choices("Mass", kind_tip)
        for text, kind in (("any mass", None), ("same mass", "same"), (other, other)):
            self.kind.addItem(text, kind)
        self._add_number(self.q_value, "&q-value ≤", "Largest q-value", f"Hides {hidden}; 1 shows everything")
        self._add(self.kind, "&Mass")
        self.open(0.01)

    def _usual(self) -> None:
        super()._usual()
        self.kind.setCurrentIndex(0)
