"""Number boxes that use the user's locale and do not correct an invalid number, so that the form can mark it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QLocale, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QValidator
from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox, QSpinBox, QWidget

from proteoscope.gui.forms.wheel_guard import WheelAfterFocus

if TYPE_CHECKING:

    class _Box(QAbstractSpinBox):
        def setValue(self, value: Any) -> None: ...  # noqa: N802

else:
    # At run time, a class may have only one Qt class among its bases.
    _Box = object

_LARGEST_INTEGER = 2_000_000_000
_LARGEST = 1e15
_LARGEST_PLAIN = 1e7
"""Whole numbers below this value are shown without an exponent."""
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+")
_WHOLE = re.compile(r"[-+]?\d+")
_PARTS_OF_NUMBERS = re.compile(r"[-+\d.,eE\s]*")


def form_locale() -> QLocale:
    """Return the user's locale without thousands separators, since users could mistake them for decimal points."""
    locale = QLocale()
    locale.setNumberOptions(QLocale.NumberOption.OmitGroupSeparator | QLocale.NumberOption.RejectGroupSeparator)
    return locale


def number_text(value: float) -> str:
    """Return a number in the user's locale, with as few decimals as possible."""
    if isinstance(value, int):
        return form_locale().toString(value)
    number = float(value)
    if number.is_integer() and abs(number) < _LARGEST_PLAIN:
        return form_locale().toString(number, "f", 0)
    return form_locale().toString(number, "g", QLocale.FloatingPointPrecisionOption.FloatingPointShortest.value)


def shortest(value: float) -> float:
    """Return a number rounded to 12 significant digits, which removes rounding errors of earlier arithmetic."""
    return float(f"{value:.12g}")


class _InvalidTextBox(WheelAfterFocus, _Box):
    """Base class of the number boxes: an invalid text remains in the box until the user corrects it.

    Qt's boxes would remove thousands separators, so that ``1,5`` becomes 15, or would restore the previous number.
    """

    def fixup(self, text: str) -> str:
        return text

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        is_entered = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        invalid_text = self._wrong_text() if is_entered else None
        super().keyPressEvent(event)
        self._put_back(invalid_text)

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802 - Qt's name
        invalid_text = self._wrong_text()
        super().focusOutEvent(event)
        self._put_back(invalid_text)

    def problem(self) -> str:
        """Return the reason why the text is not a valid number for this box, or ''."""
        return "" if self.hasAcceptableInput() else self._expected()

    def _expected(self) -> str:
        raise NotImplementedError

    def _step_to(self, value: Any) -> None:
        self.setValue(value)
        # `setValue` changes the text without the signal of the line edit, with which receivers check the number.
        self.lineEdit().textChanged.emit(self.lineEdit().text())

    def _wrong_text(self) -> str | None:
        return None if self.hasAcceptableInput() else self.lineEdit().text()

    def _put_back(self, text: str | None) -> None:
        if text is not None and self.lineEdit().text() != text:
            self.lineEdit().setText(text)


class IntegerBox(_InvalidTextBox, QSpinBox):
    """Box for an integer.

    `minimum_wanted` and `maximum_wanted` limit the arrow buttons only: the user can type other numbers, which the form marks as invalid.
    If `zero` is not '', it is shown instead of 0, and 0 is the smallest number.
    """

    def __init__(
        self,
        minimum_wanted: float | None = None,
        maximum_wanted: float | None = None,
        unit: str = "",
        parent: QWidget | None = None,
        zero: str = "",
    ) -> None:
        super().__init__(parent)
        self._low, self._high = minimum_wanted, maximum_wanted
        self.setLocale(form_locale())
        self.setRange(0 if zero else -_LARGEST_INTEGER, _LARGEST_INTEGER)
        self.setSpecialValueText(zero)
        self.setSuffix(f" {unit}" if unit else "")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def stepBy(self, steps: int) -> None:  # noqa: N802, D102 - Qt's name
        self._step_to(int(_clamped(self.value() + steps * self.singleStep(), self._low, self._high)))

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:  # noqa: D102
        bare = text.removesuffix(self.suffix()).strip()
        if _WHOLE.fullmatch(bare) or text == self.specialValueText():
            state, _, _ = super().validate(text, position)
        else:
            # Qt would remove the decimal point of ``1.5`` or refuse to accept the key; the result would be 15.
            state = QValidator.State.Intermediate if _PARTS_OF_NUMBERS.fullmatch(bare) else QValidator.State.Invalid
        return state, text, position

    def _expected(self) -> str:
        return "Expected a whole number"


class NumberBox(_InvalidTextBox, QDoubleSpinBox):
    """Box for a real number, shown with all its decimals; its limits have the same effect as those of `IntegerBox`.

    Numbers in the user's locale are accepted. Since users copy numbers from papers, numbers with a decimal point are also accepted, in
    every locale; but in a locale in which a point separates thousands, ``1.500`` is ambiguous and rejected.
    """

    def __init__(
        self, minimum_wanted: float | None = None, maximum_wanted: float | None = None, unit: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._low, self._high = minimum_wanted, maximum_wanted
        self.setLocale(form_locale())
        self.setDecimals(12)
        self.setRange(-_LARGEST, _LARGEST)
        self.setSuffix(f" {unit}" if unit else "")
        self.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def textFromValue(self, value: float) -> str:  # noqa: N802, D102 - Qt's name
        return number_text(value)

    def valueFromText(self, text: str) -> float:  # noqa: N802, D102 - Qt's name
        value = self._read(text)
        return self.value() if value is None else value

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:  # noqa: D102
        if self._read(text) is not None:
            state = QValidator.State.Acceptable
        elif _PARTS_OF_NUMBERS.fullmatch(self._bare(text)):
            state = QValidator.State.Intermediate
        else:
            state = QValidator.State.Invalid
        return state, text, position

    def stepBy(self, steps: int) -> None:  # noqa: N802, D102 - Qt's name
        super().stepBy(steps)
        self._step_to(shortest(_clamped(self.value(), self._low, self._high)))

    def sizeHint(self):  # type: ignore[no-untyped-def]  # noqa: N802, D102 - Qt's name
        # Qt's hint would be as wide as the largest allowed number.
        hint = super().sizeHint()
        hint.setWidth(self.fontMetrics().horizontalAdvance("0000.0000" + self.suffix()) + 36)
        return hint

    def minimumSizeHint(self):  # type: ignore[no-untyped-def]  # noqa: N802, D102 - Qt's name
        return self.sizeHint()

    def _expected(self) -> str:
        return f"Expected a number such as 0{self.locale().decimalPoint()}5"

    def _bare(self, text: str) -> str:
        return text.removesuffix(self.suffix()).strip()

    def _read(self, text: str) -> float | None:
        bare = self._bare(text)
        value, is_number = self.locale().toDouble(bare)
        if is_number:
            return float(value)
        if self.locale().decimalPoint() != "." and _GROUPED.fullmatch(bare):
            return None
        value, is_number = QLocale.c().toDouble(bare) if "," not in bare else (0.0, False)
        return float(value) if is_number else None


def _clamped(value: float, low: float | None, high: float | None) -> float:
    if low is not None:
        value = max(value, low)
    return value if high is None else min(value, high)
