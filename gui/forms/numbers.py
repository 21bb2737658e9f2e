"""Number boxes that show and read numbers as the user's country writes them, and let a wrong number stand so that it can be marked."""

from __future__ import annotations

import re

from PySide6.QtCore import QLocale, Qt
from PySide6.QtGui import QValidator, QWheelEvent
from PySide6.QtWidgets import QDoubleSpinBox, QSpinBox, QWidget

__all__ = ["IntegerBox", "NumberBox", "form_locale", "number_text"]

_LARGEST_INTEGER = 2_000_000_000
_LARGEST = 1e15
_LOOKS_GROUPED = re.compile(r"[-+]?\d{1,3}(\.\d{3})+")
_PARTS_OF_NUMBERS = re.compile(r"[-+\d.,eE\s]*")


def form_locale() -> QLocale:
    """The user's locale without thousands separators, which a reader could take for a decimal point."""
    locale = QLocale()
    locale.setNumberOptions(QLocale.NumberOption.OmitGroupSeparator | QLocale.NumberOption.RejectGroupSeparator)
    return locale


def number_text(value: float) -> str:
    """A number as the user's country writes it, as short as it can be told from its neighbours."""
    if isinstance(value, int):
        return form_locale().toString(value)
    return form_locale().toString(float(value), "g", QLocale.FloatingPointPrecisionOption.FloatingPointShortest.value)


class IntegerBox(QSpinBox):
    """A whole number. `minimum_wanted` and `maximum_wanted` bound the arrows; what is typed may lie outside, and is then marked."""

    def __init__(
        self, minimum_wanted: float | None = None, maximum_wanted: float | None = None, unit: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._low, self._high = minimum_wanted, maximum_wanted
        self.setLocale(form_locale())
        self.setRange(-_LARGEST_INTEGER, _LARGEST_INTEGER)
        self.setSuffix(f" {unit}" if unit else "")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def stepBy(self, steps: int) -> None:  # noqa: N802, D102 - Qt's name
        self.setValue(int(_clamped(self.value() + steps * self.singleStep(), self._low, self._high)))

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802, D102 - Qt's name
        # A form that scrolls must not change the numbers that pass under the pointer.
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class NumberBox(QDoubleSpinBox):
    """A real number, shown with as many decimals as it has; otherwise as `IntegerBox`.

    It reads the user's locale, and the decimal point everywhere, since numbers are copied from papers and methods. ``1.500`` where a point
    separates thousands could mean either and is refused.
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
        # Adding a step leaves the last bits of a binary fraction, which would be shown.
        self.setValue(float(f"{_clamped(self.value(), self._low, self._high):.12g}"))

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802, D102 - Qt's name
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def sizeHint(self):  # type: ignore[no-untyped-def]  # noqa: N802, D102 - Qt's name
        # Qt would make room for the widest number that it allows.
        hint = super().sizeHint()
        hint.setWidth(self.fontMetrics().horizontalAdvance("0000.0000" + self.suffix()) + 36)
        return hint

    def minimumSizeHint(self):  # type: ignore[no-untyped-def]  # noqa: N802, D102 - Qt's name
        return self.sizeHint()

    def _bare(self, text: str) -> str:
        return text.removesuffix(self.suffix()).strip()

    def _read(self, text: str) -> float | None:
        bare = self._bare(text)
        value, is_number = self.locale().toDouble(bare)
        if is_number:
            return float(value)
        if self.locale().decimalPoint() != "." and _LOOKS_GROUPED.fullmatch(bare):
            return None
        value, is_number = QLocale.c().toDouble(bare) if "," not in bare else (0.0, False)
        return float(value) if is_number else None


def _clamped(value: float, low: float | None, high: float | None) -> float:
    if low is not None:
        value = max(value, low)
    return value if high is None else min(value, high)
