"""What the window shows before anything is open."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QHBoxLayout, QLabel, QListWidget, QListWidgetItem, QPushButton, QVBoxLayout, QWidget

from gui.icons import icon, pixmap, set_icon
from gui.labels import heading, toned_label
from gui.theme import colours

__all__ = ["StartPage"]


class StartPage(QWidget):
    """Says what can be done: a new identification, a project, one of the recent projects, a drop.

    Signals
    -------
    new_asked, open_asked : a button was pressed. project_chosen : the folder of a recent project.
    """

    new_asked = Signal()
    open_asked = Signal()
    project_chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._mark = QLabel()
        self._mark.setAlignment(Qt.AlignmentFlag.AlignCenter)
        title = heading("Proteoscope", 2)
        title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        purpose = toned_label("Identify peptides and proteins from tandem mass spectra")
        purpose.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.new_button = QPushButton("New identification")
        self.open_button = QPushButton("Open project…")
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        for button, name, signal in ((self.new_button, "new", self.new_asked), (self.open_button, "open", self.open_asked)):
            set_icon(button, name)
            button.setMinimumSize(170, 36)
            button.clicked.connect(signal)
            buttons.addWidget(button)
        buttons.addStretch(1)
        hint = toned_label("or drop spectra, FASTA files or a project anywhere on this window")
        hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.recent_title = QLabel("Recent projects")
        self.recent = QListWidget()
        self.recent.setFixedWidth(520)
        self.recent.setMaximumHeight(190)
        self.recent.setIconSize(QSize(18, 18))
        self.recent.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.recent.itemActivated.connect(self._choose)
        self.recent.itemClicked.connect(self._choose)
        page = QVBoxLayout(self)
        page.setSpacing(12)
        page.addStretch(2)
        for widget in (self._mark, title, purpose):
            page.addWidget(widget)
        page.addSpacing(12)
        page.addLayout(buttons)
        page.addWidget(hint)
        page.addSpacing(18)
        page.addWidget(self.recent_title, 0, Qt.AlignmentFlag.AlignHCenter)
        page.addWidget(self.recent, 0, Qt.AlignmentFlag.AlignHCenter)
        page.addStretch(3)
        self._folders: tuple[str, ...] = ()
        self.redraw()

    def show_recent(self, folders: tuple[str, ...]) -> None:
        """List recent projects, the last one first."""
        self._folders = folders
        self.recent.clear()
        for folder in folders:
            item = QListWidgetItem(icon("folder", QColor(colours().link)), f"{Path(folder).name}    {Path(folder).parent}")
            item.setData(Qt.ItemDataRole.UserRole, folder)
            item.setToolTip(folder)
            self.recent.addItem(item)
        self.recent_title.setVisible(bool(folders))
        self.recent.setVisible(bool(folders))

    def redraw(self) -> None:
        """Draw what depends on the look again."""
        self._mark.setPixmap(pixmap("proteoscope", 72, QColor(colours().accent), self.devicePixelRatioF()))
        self.show_recent(self._folders)

    def event(self, event: QEvent) -> bool:  # noqa: D102 - Qt's name
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self.redraw()
        return super().event(event)

    def _choose(self, item: QListWidgetItem) -> None:
        self.project_chosen.emit(item.data(Qt.ItemDataRole.UserRole))
