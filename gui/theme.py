"""Light, dark and high-contrast palettes for Qt's Fusion style, and switching between them.

Text has a contrast of at least 4.5 : 1 on every background on which it is shown; marks and outlines have at least 3 : 1 (WCAG 2.1, level
AA, success criteria 1.4.3 and 1.4.11). In the high-contrast theme, text has at least 7 : 1 (level AAA, 1.4.6).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QToolTip, QWidget
from shiboken6 import isValid

from proteoscope.gui.deferred_tasks import DeferredTasks
from proteoscope.gui.focus_frame import FocusFrame
from proteoscope.gui.icons import refresh_icons

_FRAMED = ("QLineEdit", "QAbstractSpinBox", "QComboBox", "QPlainTextEdit", "QListWidget", "QCheckBox", "QRadioButton")
_FRAMED_IN_CONTRAST = ("QPushButton", "QToolButton", "QTabBar", "QProgressBar", "QMenu")
"""Widget classes that have visible frames only in high contrast, in addition to those in `_FRAMED`."""
_FRAME_DARKER = 1.4

ThemeChoice = Literal["system", "light", "dark", "contrast"]


@dataclass(frozen=True)
class Colours:
    """Colours of a theme, as ``#rrggbb``.

    `surface` is the background of windows, `field` of input fields, and `raised` of buttons and cards. `outline` separates widgets
    and `frame` surrounds fields. `good`, `attention` and `wrong` are readable as text on all three surfaces.
    """

    surface: str
    field: str
    raised: str
    striped: str
    outline: str
    frame: str
    text: str
    faint_text: str
    disabled_text: str
    accent: str
    accent_text: str
    link: str
    good: str
    attention: str
    wrong: str
    tooltip: str
    tooltip_text: str


LIGHT = Colours(
    surface="#f3f4f6",
    field="#ffffff",
    raised="#fafbfc",
    striped="#f5f7fa",
    outline="#c3c8d0",
    frame="#757c88",
    text="#1b2027",
    faint_text="#545c69",
    disabled_text="#8b929d",
    accent="#1f63a8",
    accent_text="#ffffff",
    link="#17558f",
    good="#1c6b3a",
    attention="#8a5300",
    wrong="#b3261e",
    tooltip="#fffdf2",
    tooltip_text="#1b2027",
)

DARK = Colours(
    surface="#1e2126",
    field="#16181c",
    raised="#2a2e35",
    striped="#1b1e22",
    outline="#454b55",
    frame="#757c87",
    text="#e6e8eb",
    faint_text="#a7aeb9",
    disabled_text="#757c87",
    accent="#2f6fb3",
    accent_text="#ffffff",
    link="#7db8f0",
    good="#6cc58c",
    attention="#e5ad54",
    wrong="#ff8a80",
    tooltip="#343941",
    tooltip_text="#e6e8eb",
)


HIGH_CONTRAST = Colours(
    surface="#000000",
    field="#000000",
    raised="#1c1c1c",
    striped="#141414",
    outline="#a6a6a6",
    frame="#ffffff",
    text="#ffffff",
    faint_text="#e0e0e0",
    disabled_text="#b0b0b0",
    accent="#ffe14d",
    accent_text="#000000",
    link="#7fd4ff",
    good="#7dff9b",
    attention="#ffd24d",
    wrong="#ffa3a3",
    tooltip="#000000",
    tooltip_text="#ffffff",
)


def colours() -> Colours:
    """Return the colours of the current theme."""
    if QGuiApplication.palette().color(QPalette.ColorRole.Window).name() == HIGH_CONTRAST.surface:
        return HIGH_CONTRAST
    return DARK if QGuiApplication.palette().color(QPalette.ColorRole.Window).lightness() < 128 else LIGHT


def scale_font(application: QApplication, percent: int) -> None:
    """Set the font size in percent of the system's size. Call this before widgets are created, since they compute sizes from the font."""
    font = application.font()
    font.setPointSizeF(font.pointSizeF() * percent / 100)
    application.setFont(font)


class Theme(QObject):
    """Theme of the application: the system's theme unless the user has selected another.

    Signals
    -------
    changed
        The palette has changed and icons have been redrawn.
    """

    changed = Signal()

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        self._choice: ThemeChoice = "system"
        self._deferred = DeferredTasks(self)
        self._focus_frame = FocusFrame(application)
        self._has_more_frames = False
        """True while the widgets in `_FRAMED_IN_CONTRAST` and scroll bars have their high-contrast palettes."""
        self._whole: Colours | None = None
        """Colours of the current theme, or None while a change is incomplete."""
        self._held: list[QWidget] = []
        """Windows whose painting is suspended, so that they show the previous theme until the change is complete."""
        application.setStyle("Fusion")
        application.styleHints().colorSchemeChanged.connect(self._follow)
        self._apply()

    @property
    def choice(self) -> ThemeChoice:
        """Theme selected by the user."""
        return self._choice

    @property
    def is_dark(self) -> bool:
        """True if the current theme has a dark background. This includes the high-contrast theme."""
        if self._choice != "system":
            return self._choice != "light"
        return QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark

    @property
    def _chosen(self) -> Colours:
        if self._choice == "contrast":
            return HIGH_CONTRAST
        return DARK if self.is_dark else LIGHT

    @property
    def is_changing(self) -> bool:
        """True while another theme is being applied."""
        return self._deferred.is_busy

    def choose(self, choice: ThemeChoice) -> None:
        """Apply a theme at once, for use before many widgets exist; do nothing if the theme is already applied."""
        if choice != self._choice:
            self._take(choice)
            if self._whole is not self._chosen or self.is_changing:
                self._apply()

    def change(self, choice: ThemeChoice) -> None:
        """Start to apply a theme in steps, since thousands of widgets change; windows show the new theme when all steps are done."""
        if choice != self._choice:
            self._pause_updates()
            self._take(choice)
            self._apply_deferred()

    def finish(self) -> None:
        """Complete a pending change of theme immediately."""
        self._deferred.finish()

    def _take(self, choice: ThemeChoice) -> None:
        self._choice = choice
        schemes = {"system": Qt.ColorScheme.Unknown, "light": Qt.ColorScheme.Light}
        scheme = schemes.get(choice, Qt.ColorScheme.Dark)
        # The platform uses this for title bars and native dialogs.
        QGuiApplication.styleHints().setColorScheme(scheme)

    def _follow(self) -> None:
        if self._choice == "system":
            self._pause_updates()
            self._apply_deferred()

    def _pause_updates(self) -> None:
        for window in QApplication.topLevelWidgets():
            if window.isVisible() and window.updatesEnabled():
                window.setUpdatesEnabled(False)
                self._held.append(window)

    def _resume_updates(self) -> None:
        for window in self._held:
            if isValid(window):
                window.setUpdatesEnabled(True)
                # Qt discards update requests while updates are disabled, so post another one.
                QApplication.postEvent(window, QEvent(QEvent.Type.UpdateRequest), Qt.EventPriority.LowEventPriority.value)
        self._held.clear()

    def _apply(self) -> None:
        self._deferred.drop()
        for _ in self._steps():
            pass
        self._resume_updates()

    def _apply_deferred(self) -> None:
        self._deferred.drop()
        steps = self._steps()

        def apply_next_step() -> None:
            is_over = True
            try:
                is_over = next(steps, self) is self
            finally:
                # Resume painting even if a step fails: otherwise the windows would stay frozen.
                if is_over:
                    self._resume_updates()
            if not is_over:
                self._deferred.add(apply_next_step)

        self._deferred.add(apply_next_step)

    def _steps(self) -> Iterator[None]:
        """Apply the selected theme, yielding after each step."""
        chosen, self._whole = self._chosen, None
        QApplication.setPalette(_palette(chosen))
        yield
        fields = _palette_of_fields(chosen)
        for kind in _FRAMED:
            QApplication.setPalette(fields, kind)  # type: ignore[arg-type]
            yield
        is_high = chosen is HIGH_CONTRAST
        if is_high or self._has_more_frames:
            self._has_more_frames = is_high
            for kind in _FRAMED_IN_CONTRAST:
                QApplication.setPalette(fields if is_high else _palette(chosen), kind)  # type: ignore[arg-type]
                yield
            QApplication.setPalette(_palette_of_scroll_bars(chosen), "QScrollBar")  # type: ignore[arg-type]
            yield
        self._focus_frame.show(chosen.accent if is_high else None)
        QToolTip.setPalette(_palette(chosen))
        yield from refresh_icons()
        yield
        self._whole = chosen
        self.changed.emit()
        yield


def _palette(chosen: Colours) -> QPalette:
    palette = QPalette()
    role, group = QPalette.ColorRole, QPalette.ColorGroup
    for where, colour in (
        (role.Window, chosen.surface),
        (role.WindowText, chosen.text),
        (role.Base, chosen.field),
        (role.AlternateBase, chosen.striped),
        (role.Text, chosen.text),
        (role.Button, chosen.raised),
        (role.ButtonText, chosen.text),
        (role.BrightText, chosen.wrong),
        (role.Highlight, chosen.accent),
        (role.HighlightedText, chosen.accent_text),
        (role.Accent, chosen.accent),
        (role.Link, chosen.link),
        (role.LinkVisited, chosen.link),
        (role.PlaceholderText, chosen.faint_text),
        (role.ToolTipBase, chosen.tooltip),
        (role.ToolTipText, chosen.tooltip_text),
        (role.Mid, chosen.outline),
        (role.Light, QColor(chosen.raised).lighter(108).name()),
        (role.Midlight, QColor(chosen.raised).lighter(103).name()),
        (role.Dark, QColor(chosen.outline).darker(115).name()),
        (role.Shadow, "#000000"),
    ):
        palette.setColor(where, QColor(colour))
    for where in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(group.Disabled, where, QColor(chosen.disabled_text))
    palette.setColor(group.Disabled, role.Highlight, QColor(chosen.outline))
    palette.setColor(group.Disabled, role.HighlightedText, QColor(chosen.text))
    return palette


def _palette_of_scroll_bars(chosen: Colours) -> QPalette:
    """Return a palette with a visible handle of scroll bars; the high-contrast palette would draw the handle as dark as the groove."""
    palette = _palette(chosen)
    if chosen is HIGH_CONTRAST:
        palette.setColor(QPalette.ColorRole.Button, QColor(chosen.outline))
    return palette


def _palette_of_fields(chosen: Colours) -> QPalette:
    """Return a palette for input fields with brighter frames. Qt's Fusion style darkens frames, which hides them on dark backgrounds."""
    palette = _palette(chosen)
    frame = QColor(chosen.frame)
    value = min(255, round(frame.value() * _FRAME_DARKER))
    palette.setColor(QPalette.ColorRole.Window, QColor.fromHsv(max(frame.hue(), 0), frame.saturation(), value))
    return palette
