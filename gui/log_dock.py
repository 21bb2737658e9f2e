"""Log of messages and warnings."""

import logging
from html import escape

from PySide6.QtCore import QObject, QTime, Signal
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from proteoscope.gui.buttons import push_button
from proteoscope.gui.layouts import STRETCH, in_column, in_row
from proteoscope.gui.theme import colours

_MAXIMUM_LINES = 5000
_PROGRAM = __name__.partition(".")[0]  # logger name shared by all modules of the program
_TONES = {"info": "text", "warning": "attention", "error": "wrong"}


class LogDock(QWidget):
    """Dock with messages from jobs and warnings from the program; only the last 5,000 lines are retained."""

    MANUAL = "troubleshooting"
    """Name of the manual page about this dock."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[tuple[str, str, str]] = []
        self.text = QPlainTextEdit(readOnly=True)
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setMaximumBlockCount(_MAXIMUM_LINES)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.text.setAccessibleName("Log")
        self.copy_button = push_button("Copy all", lambda: QGuiApplication.clipboard().setText(self.plain_text()), "copy")
        self.clear_button = push_button("Clear", self.clear)
        in_row((self.text, 1), in_column(self.copy_button, self.clear_button, STRETCH), on=self, margins=(8, 0, 8, 6))
        self._handler = _Handler()
        self._handler.relay.noted.connect(self.add)
        logging.getLogger(_PROGRAM).addHandler(self._handler)

    def add(self, text: str, level: str = "info") -> None:
        """Add a line of the given level: ``info``, ``warning`` or ``error``."""
        line = (QTime.currentTime().toString("HH:mm:ss"), text, level)
        self._lines.append(line)
        del self._lines[:-_MAXIMUM_LINES]
        self._write(line)

    def plain_text(self) -> str:
        """Return all lines as plain text."""
        return "\n".join(f"{moment}  {text}" for moment, text, _ in self._lines)

    def clear(self) -> None:
        """Delete all lines."""
        self._lines.clear()
        self.text.clear()

    def redraw(self) -> None:
        """Redraw the lines in the colours of the theme."""
        self.text.clear()
        for line in self._lines:
            self._write(line)

    def detach(self) -> None:
        """Stop receiving log records, since the window is closing."""
        logging.getLogger(_PROGRAM).removeHandler(self._handler)

    def _write(self, line: tuple[str, str, str]) -> None:
        moment, text, level = line
        chosen = colours()
        colour = getattr(chosen, _TONES.get(level, "text"))
        content = escape(text).replace("\n", "<br>")
        self.text.appendHtml(
            f'<span style="color:{chosen.faint_text}">{moment}</span>&nbsp;&nbsp;<span style="color:{colour}">{content}</span>'
        )


class _Relay(QObject):
    noted = Signal(str, str)


class _Handler(logging.Handler):
    """Logging handler that passes records from any thread to the window's thread."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.relay = _Relay()

    def emit(self, record: logging.LogRecord) -> None:
        self.relay.noted.emit(self.format(record), "error" if record.levelno >= logging.ERROR else "warning")
