"""Header of a result view: counts, run, facts and messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from PySide6.QtCore import QLocale, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QLabel, QSizePolicy, QToolBar, QToolTip, QWidget

from proteoscope.gui.buttons import text_button
from proteoscope.gui.elided_label import ElidedLabel
from proteoscope.gui.icons import set_icon
from proteoscope.gui.labels import tip_text, toned_label
from proteoscope.gui.layouts import in_column, in_row
from proteoscope.gui.surfaces import Card

_SEPARATOR = "   ·   "
_ICON = 16  # pixels, of a follow-up button


@dataclass(frozen=True)
class SummaryNumber:
    """Count with its singular and plural noun, and a note such as the interval of errors."""

    number: int
    singular: str
    plural: str
    note: str = ""

    @property
    def noun(self) -> str:
        """Noun in the singular or plural, according to the count."""
        return self.singular if self.number == 1 else self.plural


class SummaryHeader(QWidget):
    """Header with two counts in large type, their error rate, warnings and follow-up searches; *About this run* shows all counts.

    Signals
    -------
    details_requested
        The user requests the page of run details.
    toggled
        The section *About this run* was opened or closed.
    """

    details_requested = Signal()
    toggled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counts = QLabel(
            textFormat=Qt.TextFormat.RichText, textInteractionFlags=Qt.TextInteractionFlag.TextSelectableByMouse, wordWrap=True
        )
        self._counts.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self.chip = Chip()
        self._run, self._sentence, self._facts, self._notes = (_wrapped_label() for _ in range(4))
        self._message = ElidedLabel(role=QPalette.ColorRole.WindowText)
        self.about_button = text_button(
            "About this run", "Show or hide files, settings, all counts and times of this run", is_flat=True, is_checkable=True
        )
        self.about_button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.about_button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.about_button.toggled.connect(self._show_about)
        self.details_button = text_button(
            "Details…", "Open the page of this run: files, parameters, messages, methods and notes", self.details_requested.emit
        )
        self._about = Card()
        in_column(
            in_row((self._run, 1), (self.details_button, 0, Qt.AlignmentFlag.AlignTop)),
            self._sentence,
            self._facts,
            self._notes,
            on=self._about,
            margins=(10, 6, 10, 6),
            spacing=2,
        )
        self._steps = QToolBar(toolButtonStyle=Qt.ToolButtonStyle.ToolButtonTextBesideIcon, iconSize=QSize(_ICON, _ICON))
        self._steps.hide()
        in_column(
            in_row((self._counts, 1), self.chip, self.about_button, spacing=10),
            self._about,
            self._message,
            self._steps,
            on=self,
            margins=(8, 2, 8, 2),
            spacing=2,
        )
        self._show_about(False)
        self.show_nothing()

    @property
    def text(self) -> str:
        """The sentence with all counts, as plain text."""
        return self._counts.accessibleName()

    @property
    def help(self) -> str:
        """Explanation of the notes of the counts."""
        return self._counts.accessibleDescription()

    @property
    def facts(self) -> str:
        """Facts about the search, as plain text."""
        return self._facts.text()

    @property
    def message(self) -> str:
        """Messages of the run, as plain text."""
        return self._notes.text()

    @property
    def warnings(self) -> str:
        """Messages that are shown even if *About this run* is closed."""
        return self._message.full_text

    def offer(self, action: QAction) -> None:
        """Add a button for a follow-up search; buttons that do not fit are moved to a menu."""
        self._steps.addAction(action)
        self._steps.show()

    def show_nothing(self) -> None:
        """Clear the header."""
        self._counts.clear()
        self._counts.setAccessibleName("")
        self._warnings: dict[str, tuple[str, ...]] = {}
        self.chip.show_text("")
        for label in (self._run, self._sentence, self._facts, self._notes):
            label.clear()
        self._show_warnings("run", ())

    def show_run(self, title: str, messages: tuple[str, ...], n_warnings: int) -> None:
        """Show the name of the run and its messages; the first `n_warnings` of them are warnings."""
        self._run.setText(title)
        self._notes.setText(_SEPARATOR.join(messages))
        self._notes.setVisible(bool(messages))
        self._show_warnings("run", messages[:n_warnings])

    def show_facts(self, facts: tuple[str, ...]) -> None:
        """Show facts about the search in the section *About this run*."""
        self._facts.setText(_SEPARATOR.join(facts))

    def show_warnings(self, warnings: tuple[str, ...]) -> None:
        """Show warnings about the results, before the warnings of the run."""
        self._show_warnings("results", warnings)

    def show_counts(
        self,
        counts: Sequence[SummaryNumber],
        ending: str,
        help_text: str = "",
        *,
        large: Sequence[SummaryNumber] | None = None,
        chip: str = "",
    ) -> None:
        """Show counts and their error rate.

        Parameters
        ----------
        counts : sequence of SummaryNumber
            All counts, shown below *About this run*.
        ending : str
            End of the sentence that lists the counts.
        help_text : str
            Explanation of the notes of the counts, as plain text.
        large : sequence of SummaryNumber, optional
            The counts in large type, by default the first two.
        chip : str
            Error rate of the counts; empty hides the chip.
        """
        locale = QLocale()
        shown = [
            # Non-breaking spaces keep a number and its noun in one line.
            f"<span style='font-size:x-large; font-weight:600'>{locale.toString(count.number)}</span>{_unbroken(f' {count.noun}')}"
            for count in (counts[:2] if large is None else large)
        ]
        plain = [f"{locale.toString(count.number)} {count.noun}" + (f" ({count.note})" if count.note else "") for count in counts]
        text = " ".join(part for part in (", ".join(plain), ending) if part)
        self._counts.setText("&nbsp;&nbsp;&nbsp; ".join(shown))
        self._counts.setToolTip(tip_text("\n".join(part for part in (text, help_text) if part)))
        self._counts.setAccessibleName(text)
        self._counts.setAccessibleDescription(help_text)
        self._sentence.setText(text)
        self.chip.show_text(chip, "\n".join([*(f"{count.plural}: {count.note}" for count in counts if count.note), help_text]).strip())

    def _show_warnings(self, source: str, warnings: tuple[str, ...]) -> None:
        self._warnings[source] = warnings
        every = [message for name in ("results", "run") for message in self._warnings.get(name, ())]
        self._message.set_text(_SEPARATOR.join(every))
        self._message.setToolTip(tip_text("\n".join(every)))
        self._message.setVisible(bool(every))

    def _show_about(self, is_shown: bool) -> None:
        set_icon(self.about_button, "unfolded" if is_shown else "folded")
        self._about.setVisible(is_shown)
        self.toggled.emit()


class Chip(QLabel):
    """Short text on a rounded background, with details in its tooltip; hidden if empty."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setContentsMargins(9, 2, 9, 2)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        # The tooltip is also reachable by keyboard, as the accessible description.
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.hide()

    def show_text(self, text: str, details: str = "") -> None:
        """Show a text, with details in the tooltip; an empty text hides the chip."""
        self.setText(text)
        self.setToolTip(tip_text(details))
        self.setAccessibleName(text)
        self.setAccessibleDescription(details)
        self.setVisible(bool(text))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the background and the text."""
        palette = self.palette()
        role = QPalette.ColorRole.Highlight if self.hasFocus() else QPalette.ColorRole.Mid
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(palette.color(role))
            painter.setBrush(palette.color(QPalette.ColorRole.Button))
            box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
            painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        super().paintEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Show the tooltip when Space or Enter is pressed."""
        if event.key() in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            QToolTip.showText(self.mapToGlobal(self.rect().bottomLeft()), self.toolTip(), self)
        else:
            super().keyPressEvent(event)


def _wrapped_label() -> QLabel:
    label = toned_label()
    label.setMinimumWidth(1)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def _unbroken(text: str) -> str:
    return escape(text).replace(" ", "&nbsp;")
