"""Icons of the program, drawn from SVG in the colours of the palette, at the resolution of each screen."""

import weakref
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Protocol

from PySide6.QtCore import QByteArray, QRectF, Qt, qAddPostRoutine
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPalette, QPixmap, QPixmapCache
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton

from proteoscope import resources

_ICONS_AT_ONCE = 12
"""Number of icons drawn per step when the palette changes; each takes a millisecond."""
_SIZES = (16, 20, 24, 32, 40, 48, 64)

ICON_COLOUR = QPalette.ColorRole.ButtonText
"""Palette role that provides the default icon colour."""


class _HasIcon(Protocol):
    def setIcon(self, icon: QIcon) -> None: ...  # noqa: N802 - Qt's name


_drawn: dict[tuple[str, int, int], QIcon] = {}
"""Icons drawn so far, by name and colours. A window shows hundreds of icons, but only about thirty different ones."""
qAddPostRoutine(_drawn.clear)

_users: weakref.WeakKeyDictionary[_HasIcon, tuple[str, QColor | None]] = weakref.WeakKeyDictionary()


def set_icon(user: _HasIcon, name: str, colour: QColor | None = None) -> None:
    """Set the icon of an action or button, in `colour` or else in the colour of the palette; redraw the icon after palette changes."""
    _users[user] = (name, colour)
    user.setIcon(icon(name, colour))


def without_icons(buttons: Iterable[QAbstractButton]) -> None:
    """Remove the icons that the Qt style adds to the buttons of a dialog, because they do not match the program's icons."""
    for button in buttons:
        button.setIcon(QIcon())


def refresh_icons() -> Iterator[None]:
    """Redraw all icons set by `set_icon` after a palette change; yield every few milliseconds so that the caller can handle events."""
    _drawn.clear()
    users = sorted(_users.items(), key=lambda user: user[1][0])
    n_drawn = 0
    for user, (name, colour) in users:
        if n_drawn != len(_drawn) and len(_drawn) % _ICONS_AT_ONCE == 0:
            yield
        n_drawn = len(_drawn)
        try:
            user.setIcon(icon(name, colour))
        except RuntimeError:
            # Qt has deleted the button while its Python object still exists.
            _users.pop(user, None)


def icon(name: str, colour: QColor | None = None) -> QIcon:
    """Return the icon `name` of resources/icons in the colours of the current palette, including its disabled state."""
    palette = QGuiApplication.palette()
    enabled = palette.color(QPalette.ColorGroup.Active, ICON_COLOUR) if colour is None else colour
    disabled = palette.color(QPalette.ColorGroup.Disabled, ICON_COLOUR)
    key = (name, enabled.rgba(), disabled.rgba())
    if key not in _drawn:
        _drawn[key] = QIcon()
        for mode, tint in ((QIcon.Mode.Normal, enabled), (QIcon.Mode.Disabled, disabled)):
            for size in _SIZES:
                _drawn[key].addPixmap(pixmap(name, size, tint), mode)
    return _drawn[key]


def pixmap(name: str, size: int, colour: QColor, ratio: float = 1.0) -> QPixmap:
    """Return an icon as a pixmap of `size` x `size` device-independent pixels; `ratio` is the device pixel ratio."""
    # Qt clears its own cache before the application ends; pixmaps in a Python cache would be deleted too late.
    key, drawn = f"proteoscope {name} {size} {colour.rgba()} {ratio}", QPixmap()
    if QPixmapCache.find(key, drawn):
        return drawn
    drawn = QPixmap(round(size * ratio), round(size * ratio))
    drawn.fill(Qt.GlobalColor.transparent)
    painter = QPainter(drawn)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    _renderer(name, colour.name()).render(painter, QRectF(0, 0, drawn.width(), drawn.height()))
    painter.end()
    drawn.setDevicePixelRatio(ratio)
    QPixmapCache.insert(key, drawn)
    return drawn


@lru_cache(maxsize=2)
def _renderer(name: str, colour: str) -> QSvgRenderer:
    """Return an SVG renderer for an icon in a colour; cached, since an icon is drawn in many sizes and parsing is slower than drawing."""
    return QSvgRenderer(QByteArray(_drawing(name).replace(b"currentColor", colour.encode())))


qAddPostRoutine(_renderer.cache_clear)


@cache
def _drawing(name: str) -> bytes:
    return resources.path("icons", f"{name}.svg").read_bytes()
