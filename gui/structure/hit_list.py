"""List of the query and the superposed hits with their colours, in which hits can be shown and hidden."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from proteoscope.gui.labels import set_bold, tip_text
from proteoscope.gui.structure.scene import Scene, ShownHit, hit_colour

_SIDE = 14


class HitList(QListWidget):
    """List of the query and the hits of a scene; the checkbox or the space bar shows and hides a hit.

    Signals
    -------
    switched
        The user showed or hid a hit; emitted with its `ShownHit`.
    """

    switched = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._hits: list[ShownHit | None] = []
        self._is_filled = False
        self.setAccessibleName("Superposed structures")
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.itemChanged.connect(self._switch)

    def show_scene(self, scene: Scene) -> None:
        """List the query and the hits of a scene."""
        row = self.currentRow()
        self._is_filled = False
        self.clear()
        self._hits = []
        if scene.query is not None:
            self._add(scene.query.name, "Query", 0, None)
        for hit in scene.hits:
            about = [f"TM-score {hit.trace.hit['tm_score_query']:.3f}"] if "tm_score_query" in hit.trace.hit else []
            about += ["selected in the table"] if hit is scene.chosen else ["pinned"] if hit.is_pinned else []
            self._add(hit.trace.name, ", ".join(about), hit.number, hit, is_chosen=hit is scene.chosen)
        self.setCurrentRow(min(row, self.count() - 1))
        self._is_filled = True

    def _add(self, name: str, about: str, number: int, hit: ShownHit | None, *, is_chosen: bool = False) -> None:
        item = QListWidgetItem(_patch(hit_colour(number), self.devicePixelRatioF()), name)
        item.setToolTip(tip_text(f"{name}\n{about}" if about else name))
        if hit is None:
            item.setText(f"{name} (query)")
            item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
        else:
            item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if hit.is_shown else Qt.CheckState.Unchecked)
        if is_chosen:
            set_bold(item)
        self._hits.append(hit)
        self.addItem(item)

    def _switch(self, item: QListWidgetItem) -> None:
        hit = self._hits[self.row(item)] if self._is_filled else None
        if hit is not None and hit.is_shown != (item.checkState() is Qt.CheckState.Checked):
            hit.is_shown = not hit.is_shown
            self.switched.emit(hit)


def _patch(colour: tuple[int, int, int], ratio: float) -> QIcon:
    """Return a square icon of a colour."""
    pixmap = QPixmap(round(_SIDE * ratio), round(_SIDE * ratio))
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setPen(QPen(QColor(128, 128, 128), 1))
    painter.setBrush(QColor(*colour))
    painter.drawRect(1, 1, _SIDE - 3, _SIDE - 3)
    painter.end()
    return QIcon(pixmap)
