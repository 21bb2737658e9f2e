"""Filter bar for all tables of a view: text field, Reset button, and fields for the type of search."""
# ruff: noqa: N815 - Qt's way of naming signals

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QBoxLayout, QCheckBox, QComboBox, QGridLayout, QLabel, QLineEdit, QWidget

from proteoscope.gui.actions import delayed
from proteoscope.gui.buttons import push_button
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.forms.numbers import IntegerBox, NumberBox
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.labels import described
from proteoscope.gui.layouts import STRETCH, in_row
from proteoscope.gui.undo import Change, forget_changes, record

_TYPING_MS = 150


class FilterBar(QWidget):
    """Bar of filter fields: in one line, in two lines, or with labels above the fields, depending on the width.

    Derived classes add their fields with `_add` and reset them in `_reset_own_fields`.

    Parameters
    ----------
    searched_texts : str
        Placeholder that names the searched texts, such as ``Peptide, accession or description``.
    text_tip : str
        Tooltip of the text field.
    reset_tip : str
        Tooltip of the Reset button.
    has_shortcut : bool
        True if Ctrl+F focuses the text field; only one visible bar may have the shortcut.
    """

    filterChanged = Signal()

    def __init__(
        self, searched_texts: str, text_tip: str, reset_tip: str, parent: QWidget | None = None, *, has_shortcut: bool = True
    ) -> None:
        super().__init__(parent)
        self._later = delayed(self, self.filterChanged, _TYPING_MS)
        self._resized = delayed(self, lambda: self.updateGeometry())
        self.text = described(
            QLineEdit(placeholderText=searched_texts, clearButtonEnabled=True),
            "Filter by text",
            f"{text_tip}{' (Ctrl+F)' if has_shortcut else ''}",
        )
        self.text.setMinimumWidth(80)
        self.text.textChanged.connect(self._later.start)
        self.text.returnPressed.connect(self._now)
        self.reset_button = push_button("Rese&t", self.reset, tip=reset_tip)
        self._row = in_row(STRETCH, self.reset_button, spacing=6)
        self._lines = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._lines.setContentsMargins(6, 4, 6, 4)
        self._lines.setSpacing(6)
        self._lines.addWidget(self.text, 1)
        self._lines.addLayout(self._row)
        self._fields: list[QWidget] = [self.text]
        self._recorded: tuple[Any, ...] = ()
        """Values of the fields after the last recorded change."""
        self._marks: list[Callable[[], None]] = []
        self._cells: list[_Cell] = []
        if has_shortcut:
            find = QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self)
            find.setWhatsThis("Find in the tables")
            find.setContext(Qt.ShortcutContext.WindowShortcut)
            find.activated.connect(self._take_focus)
        self.filterChanged.connect(self._record)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Place the other fields next to the text field, or below it."""
        super().resizeEvent(event)
        needed = self._width_of_fields(is_high=False)
        is_wide = event.size().width() >= needed + self.text.minimumWidth() + self._lines.spacing()
        direction = QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom
        has_changed = direction != self._lines.direction()
        for cell in self._cells:
            has_changed |= cell.place_label(is_high=event.size().width() < needed)
        self._lines.setDirection(direction)
        if self._cells and has_changed:
            # The parent layout is being activated and ignores a changed height until it is done.
            self._resized.start()

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the minimum size with the text field and the labels above the other fields."""
        return QSize(self._width_of_fields(is_high=True), self._lines.totalMinimumSize().height())

    def _width_of_fields(self, *, is_high: bool) -> int:
        """Return the width of the fields in one line, with labels above the fields if `is_high`."""
        margins = self._lines.contentsMargins()
        width = self._row.minimumSize().width()
        if self._cells:
            # The layout reports only the width of its current arrangement, not that of the other one.
            items = [self._row.itemAt(i) for i in range(self._row.count())]
            widths = [
                widget.width_as(is_high=is_high)
                if isinstance(widget, _Cell)
                else max(widget.minimumSizeHint().width(), widget.minimumWidth())
                for item in items
                if item is not None and (widget := item.widget()) is not None
            ]
            width = sum(widths) + (len(widths) - 1) * self._row.spacing()
        return width + margins.left() + margins.right()

    def reset(self) -> None:
        """Reset all fields."""
        self._reset_fields()
        self._now()

    def begin_history(self) -> None:
        """Start a new undo history with the current values; earlier changes can no longer be undone."""
        self._recorded = self._values()
        forget_changes(self)

    def _values(self) -> tuple[Any, ...]:
        return tuple(_value_of(field) for field in self._fields)

    def _record(self) -> None:
        """Add a changed filter to the undo history."""
        before, self._recorded = self._recorded, self._values()
        changed = [field for field, was, now in zip(self._fields, before, self._recorded, strict=False) if was != now]
        if changed:
            field = changed[0] if len(changed) == 1 else None
            record(Change("change the filter", self, before, self._recorded, self._restore, field=field))

    def _restore(self, values: tuple[Any, ...]) -> None:
        self.blockSignals(True)
        for field, value in zip(self._fields, values, strict=True):
            _set_value(field, value)
        for mark in self._marks:
            mark()
        self.blockSignals(False)
        self._recorded = self._values()
        self._now()

    def _add(self, field: QWidget, label: str = "", frame: QWidget | None = None) -> None:
        """Insert a field (within `frame`, if given) before the Reset button, with a label whose mnemonic focuses the field."""
        if label:
            frame = self._cell(field, label, frame or field, None)
        self._row.insertWidget(self._row.count() - 2, frame or field)
        # The default tab order is the order of creation, in which the button precedes the fields.
        self.setTabOrder(self._fields[-1], field)
        self._fields.append(field)

    def _add_number(
        self,
        box: IntegerBox | NumberBox,
        label: str,
        name: str,
        help_text: str,
        below: QWidget | None = None,
    ) -> None:
        """Insert the number field `box`, with the widget `below` under it, before the Reset button; invalid text is marked and not used."""
        box.setAccessibleName(name)
        box.setKeyboardTracking(False)
        frame = Outlined(box, margin=2)

        def mark() -> None:
            problem = box.problem()
            frame.mark(bool(problem))
            box.setToolTip(f"{problem}; the filter is unchanged" if problem else help_text)
            box.setAccessibleDescription(problem)

        box.valueChanged.connect(self._later.start)
        box.lineEdit().textChanged.connect(mark)
        self._marks.append(mark)
        if below is None:
            self._add(box, label, frame)
            return
        self._add(box, frame=self._cell(box, label, frame, below))
        for widget in (self.reset_button, *self._cells):
            self._row.setAlignment(widget, Qt.AlignmentFlag.AlignTop)
        self._lines.setAlignment(self.text, Qt.AlignmentFlag.AlignTop)

    def _cell(self, field: QWidget, label: str, frame: QWidget, below: QWidget | None) -> _Cell:
        self._cells.append(_Cell(field, label, frame, below))
        if below is None:
            self._row.setAlignment(self.reset_button, Qt.AlignmentFlag.AlignBottom)
        return self._cells[-1]

    def _choices(self, name: str, help_text: str, choices: Iterable[tuple[str, Any]] = ()) -> ChoiceBox:
        """Return a drop-down field that filters as soon as an item is selected. `choices` are (text, value) of the items."""
        box = described(ChoiceBox(choices), name, help_text)
        box.activated.connect(self._now)
        return box

    def _marked_box(self) -> QCheckBox:
        """Return a checkbox that restricts the tables to marked PSMs."""
        box = described(QCheckBox("&★"), "Marked", "Show only PSMs with a star or a comment")
        box.toggled.connect(self._now)
        return box

    def _reset_own_fields(self) -> None:
        """Reset the fields of the derived class."""
        raise NotImplementedError

    def _reset_fields(self) -> None:
        self.text.clear()
        self._reset_own_fields()
        for mark in self._marks:
            mark()
        self._later.stop()

    def _reset_quietly(self) -> None:
        """Reset all fields without emitting a signal."""
        self.blockSignals(True)
        self._reset_fields()
        self.blockSignals(False)

    def _now(self) -> None:
        self._later.stop()
        self.filterChanged.emit()

    def _take_focus(self) -> None:
        self.text.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.text.selectAll()


def _value_of(field: QWidget) -> Any:
    if isinstance(field, QLineEdit):
        return field.text()
    if isinstance(field, QComboBox):
        return field.currentData()
    return field.isChecked() if isinstance(field, QCheckBox) else field.value()  # type: ignore[attr-defined]


def _set_value(field: QWidget, value: Any) -> None:
    if isinstance(field, QLineEdit):
        field.setText(value)
    elif isinstance(field, QComboBox):
        field.setCurrentIndex(field.findData(value))
    elif isinstance(field, QCheckBox):
        field.setChecked(value)
    else:
        field.setValue(value)  # type: ignore[attr-defined]


class RatedFilterBar(FilterBar):
    """Filter bar that creates the field `q_value` (maximum q-value); derived classes insert it."""

    def __init__(self, searched_texts: str, text_tip: str, parent: QWidget | None = None) -> None:
        super().__init__(searched_texts, text_tip, "Show the rows accepted at the FDR of the run", parent)
        self._fdr = 0.01
        self.q_value = q_value_box(self.fontMetrics())

    @property
    def largest_q_value(self) -> float | None:
        """Maximum q-value, or None to show all rows."""
        q_value = self.q_value.value()
        return None if q_value >= 1 else q_value

    def open(self, fdr: float) -> None:
        """Set the maximum q-value to `fdr` (1 shows all rows) and reset the other fields, without emitting a signal."""
        self._fdr = fdr
        self._reset_quietly()

    def _reset_own_fields(self) -> None:
        self.q_value.setValue(self._fdr)


def q_value_box(metrics: QFontMetrics) -> NumberBox:
    """Return a number field for the maximum q-value, 0 to 1, with the width of four decimals in a font."""
    box = NumberBox(0.0, 1.0)
    box.setDecimals(4)
    box.setRange(0.0, 1.0)
    box.setStepType(NumberBox.StepType.DefaultStepType)
    box.setSingleStep(0.005)
    box.setFixedWidth(metrics.horizontalAdvance("0.0000") + 30)
    return box


class _Cell(QWidget):
    """A field with its label before or above it, and an optional widget below."""

    def __init__(self, field: QWidget, label: str, frame: QWidget, below: QWidget | None) -> None:
        super().__init__()
        self._label, self._parts = QLabel(label), [frame] if below is None else [frame, below]
        self._label.setBuddy(field)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(6)
        self._grid.setVerticalSpacing(0)
        self.is_high = True
        self.place_label(is_high=False)

    def width_as(self, *, is_high: bool) -> int:
        """Return the minimum width with the label above the field (`is_high`) or before it."""
        label, *others = (max(part.minimumSizeHint().width(), part.minimumWidth()) for part in (self._label, *self._parts))
        return max(label, *others) if is_high else label + self._grid.horizontalSpacing() + max(others)

    def place_label(self, *, is_high: bool) -> bool:
        """Place the label above the field (`is_high`) or before it, and return True if it moved."""
        if is_high == self.is_high:
            return False
        self.is_high = is_high
        positions = ((0, 0), (1, 0), (2, 0)) if is_high else ((0, 0), (0, 1), (1, 1))
        for widget, position in zip((self._label, *self._parts), positions, strict=False):
            self._grid.removeWidget(widget)
            self._grid.addWidget(widget, *position, Qt.AlignmentFlag.AlignCenter)
        self.updateGeometry()
        return True


class MassFilterBar(RatedFilterBar):
    """Filter bar with text, maximum q-value, and mass relation (any mass, same mass, different mass).

    Parameters
    ----------
    searched_texts, text_tip : str
        See `FilterBar`.
    kind_tip : str
        Tooltip of the field for the mass relation.
    other : str
        Text and value of the choice that shows only matches of a different mass, such as "modified".
    hidden : str
        Plural noun for the rows that the maximum q-value hides, such as ``matches with a larger q-value``; it is part of a tooltip.
    """

    def __init__(self, searched_texts: str, text_tip: str, kind_tip: str, other: str, hidden: str, parent: QWidget | None = None) -> None:
        super().__init__(searched_texts, text_tip, parent)
        self.kind = self._choices("Mass", kind_tip, (("any mass", None), ("same mass", "same"), (other, other)))
        self._add_number(self.q_value, "&q-value ≤", "Maximum q-value", f"Hide {hidden}; 1 shows all rows")
        self._add(self.kind, "&Mass")
        self.open(0.01)

    def _reset_own_fields(self) -> None:
        super()._reset_own_fields()
        self.kind.setCurrentIndex(0)
