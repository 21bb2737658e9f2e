"""Tests of the themes: contrast, completeness, and change in one step."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QEvent, Qt
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPalette
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit, QListWidget, QPlainTextEdit, QPushButton, QSpinBox, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.views import palette as palettes
from proteoscope.engine.views.palette import ION_KINDS, SERIES_COLOURS, Ink, Ion
from proteoscope.gui.buttons import PrimaryButton
from proteoscope.gui.colours import palette_of, qt_colour
from proteoscope.gui.icons import icon, pixmap, set_icon
from proteoscope.gui.labels import toned_label
from proteoscope.gui.structure.canvas import StructureCanvas
from proteoscope.gui.structure.overlay import text_colours
from proteoscope.gui.structure.scene import Scene
from proteoscope.gui.theme import DARK, HIGH_CONTRAST, LIGHT, Colours, Theme, colours, scale_font
from proteoscope.gui.window import MainWindow
from tests.gui.x_events import Hand

_ICONS = Path(__file__).parents[2] / "resources" / "icons"
LOOKS = pytest.mark.parametrize("look", [LIGHT, DARK, HIGH_CONTRAST], ids=["light", "dark", "contrast"])


def contrast(first: str, other: str) -> float:
    """Return the contrast of two colours (``#rrggbb``)."""
    return palettes.contrast(QColor(first).getRgb()[:3], QColor(other).getRgb()[:3])  # type: ignore[arg-type]


def test_contrast_follows_wcag() -> None:
    # The extremes by definition, and the lightest grey allowed on white.
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#ffffff", "#ffffff") == 1
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@LOOKS
def test_theme_texts_have_sufficient_contrast_on_every_surface(look: Colours) -> None:
    for text in ("text", "faint_text", "link", "good", "attention", "wrong"):
        for surface in ("surface", "field", "raised", "striped"):
            assert contrast(getattr(look, text), getattr(look, surface)) >= 4.5, (text, surface)
    assert contrast(look.accent_text, look.accent) >= 4.5
    assert contrast(look.tooltip_text, look.tooltip) >= 4.5


def test_high_contrast_theme_has_contrast_ratio_7() -> None:
    look, surfaces = HIGH_CONTRAST, ("surface", "field", "raised", "striped")
    for text in ("text", "faint_text", "disabled_text", "link", "good", "attention", "wrong", "outline", "frame", "accent"):
        for surface in surfaces:
            assert contrast(getattr(look, text), getattr(look, surface)) >= 7, (text, surface)
    assert contrast(look.accent_text, look.accent) >= 7 and contrast(look.tooltip_text, look.tooltip) >= 7
    paired = {*surfaces, "text", "faint_text", "disabled_text", "link", "good", "attention", "wrong", "outline", "frame"}
    assert paired | {"accent", "accent_text", "tooltip", "tooltip_text"} == asdict(look).keys(), "a colour without a test"


def test_high_contrast_palette_has_contrast_ratio_7(theme: Theme, qtbot: QtBot) -> None:
    theme.choose("contrast")
    assert colours() is HIGH_CONTRAST and theme.is_dark
    role, group = QPalette.ColorRole, QPalette.ColorGroup
    pairs = [(text, surface) for text in (role.WindowText, role.Link) for surface in (role.Window, role.Base, role.Button)]
    pairs += [(role.Text, role.Base), (role.Text, role.AlternateBase), (role.PlaceholderText, role.Base), (role.ButtonText, role.Button)]
    pairs += [(role.BrightText, role.Window), (role.HighlightedText, role.Highlight), (role.ToolTipText, role.ToolTipBase)]
    for kind in ("", "QLineEdit", "QPushButton", "QScrollBar", "QMenu"):
        palette = QApplication.palette(kind) if kind else QGuiApplication.palette()  # type: ignore[arg-type]
        for state in (group.Active, group.Inactive, group.Disabled):
            for text, surface in pairs:
                if kind and role.Window in (text, surface):
                    continue  # Fusion draws frames in this colour.
                if kind == "QScrollBar" and surface == role.Button:
                    continue  # This role has no text.
                names = palette.color(state, text).name(), palette.color(state, surface).name()
                if state == group.Disabled and surface == role.Highlight:
                    continue  # A disabled selection is text on the colour of outlines, which is tested below.
                assert contrast(*names) >= 7, (kind, state, text, surface, names)
    theme.choose("light")
    assert QApplication.palette("QScrollBar").color(role.Button).name() == LIGHT.raised  # type: ignore[arg-type]
    assert QApplication.palette("QPushButton").color(role.Window).name() == LIGHT.surface  # type: ignore[arg-type]


def test_high_contrast_plots_have_contrast_ratio_7(theme: Theme) -> None:
    theme.choose("contrast")
    palette = palette_of(QGuiApplication.palette())
    assert palette.is_high_contrast
    inks: list[Ink] = ["text", "faint", "target", "decoy", "mark", *map(Ion, ION_KINDS), *range(len(SERIES_COLOURS))]
    for ink in inks:
        assert contrast(qt_colour(ink, palette).name(), palette.background) >= 7, ink
    assert contrast(palette.highlighted, palette.highlight) >= 7 and contrast(palette.highlight, palette.background) >= 7
    assert contrast(palette.grid, palette.background) >= 3
    for choice in ("light", "dark"):
        theme.choose(choice)  # type: ignore[arg-type]
        other = palette_of(QGuiApplication.palette())
        assert not other.is_high_contrast and any(qt_colour(ink, other) != qt_colour(ink, palette) for ink in inks)


def test_high_contrast_icons_and_3d_texts_have_contrast_ratio_7(theme: Theme, qtbot: QtBot) -> None:
    theme.choose("contrast")
    for path in _ICONS.glob("*.svg"):
        for mode in (QIcon.Mode.Normal, QIcon.Mode.Disabled):
            image = icon(path.stem).pixmap(48, mode).toImage()
            drawn = {image.pixelColor(x, y).name() for x in range(48) for y in range(48) if image.pixelColor(x, y).alpha() == 255}
            assert drawn and all(contrast(name, HIGH_CONTRAST.raised) >= 7 for name in drawn), path.stem
    canvas = StructureCanvas(Scene())
    qtbot.addWidget(canvas)
    background = canvas.background_colour.name()
    text, _ = text_colours(QColor(background))
    assert background == HIGH_CONTRAST.field and contrast(text.name(), background) >= 7


def test_high_contrast_theme_frames_the_focused_widget(theme: Theme, window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    theme.choose("contrast")
    window.show_form()
    window.form.file_lists["spectra"].add_button.setFocus()
    seen = set()
    for _ in range(8):
        before = QApplication.focusWidget()
        hand.press("tab")
        qtbot.waitUntil(lambda before=before: QApplication.focusWidget() is not before)  # type: ignore[misc]
        focused = QApplication.focusWidget()
        assert focused is not None
        frames = [frame for frame in window.findChildren(QWidget, "focusFrame") if frame.isVisible()]
        assert [frame.parentWidget() for frame in frames] == [focused] and frames[0].geometry() == focused.rect()
        image = focused.grab().toImage()
        ratio = image.devicePixelRatio()
        edge = {image.pixelColor(round(x * ratio), 0).name() for x in range(4, focused.width() - 4, 3)}
        assert edge == {HIGH_CONTRAST.accent}
        seen.add(type(focused))
    assert len(seen) > 2
    theme.choose("light")
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert window.findChildren(QWidget, "focusFrame") == []


def test_high_contrast_theme_is_selected_in_menu_and_remembered(window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    hand.press("alt", "v")
    menu = hand.menu()
    hand.press("t")
    hand.choose(hand.menu(before=menu), window.menus.themes["contrast"])
    qtbot.waitUntil(lambda: not window.theme.is_changing and colours() is HIGH_CONTRAST)
    assert window.settings.values.theme == "contrast" and hand.n_actions == 3


@LOOKS
def test_theme_marks_have_contrast_ratio_3_to_their_background(look: Colours) -> None:
    for surface in ("surface", "field", "raised"):
        assert contrast(look.wrong, getattr(look, surface)) >= 3
        assert contrast(look.disabled_text, getattr(look, surface)) >= 2
    assert contrast(look.accent, look.field) >= 3


def test_selected_theme_changes_the_palette_and_emits_a_signal(theme: Theme, qtbot: QtBot) -> None:
    with qtbot.waitSignal(theme.changed):
        theme.choose("dark")
    assert theme.is_dark and colours() is DARK
    assert QGuiApplication.palette().color(QPalette.ColorRole.Window).name() == DARK.surface
    assert QGuiApplication.palette().color(QPalette.ColorRole.Text).name() == DARK.text
    theme.choose("light")
    assert colours() is LIGHT
    assert QGuiApplication.palette().color(QPalette.ColorRole.Base).name() == LIGHT.field


def test_system_theme_has_the_colour_scheme_of_the_system(theme: Theme) -> None:
    theme.choose("dark")
    theme.choose("system")
    assert theme.is_dark is (QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark)


def test_current_theme_is_not_applied_again(theme: Theme) -> None:
    """Check that a window that follows the system starts with its palette, which otherwise is sent to thousands of widgets."""
    taken: list[str] = []

    def note() -> None:
        taken.append(QGuiApplication.palette().color(QPalette.ColorRole.Window).name())

    theme.changed.connect(note)
    theme.choose("dark")
    theme.choose("system")
    is_dark = theme.is_dark
    theme.choose("dark" if is_dark else "light")
    theme.choose("system")
    theme.choose("light" if is_dark else "dark")
    theme.changed.disconnect(note)
    assert theme.is_dark is not is_dark
    of_system, other = (look.surface for look in ((DARK, LIGHT) if is_dark else (LIGHT, DARK)))
    assert taken == ([DARK.surface] if is_dark else [DARK.surface, of_system]) + [other]


def test_unexposed_window_is_drawn_in_the_new_theme(theme: Theme, qtbot: QtBot) -> None:
    """Check an unexposed window: Qt drops its paint request and treats later requests of the window or its parts as already pending."""

    class Counting(QWidget):
        n_pictures = 0

        def event(self, event: QEvent) -> bool:
            self.n_pictures += event.type() == QEvent.Type.Paint
            return super().event(event)

    window, part = Counting(), Counting()
    qtbot.addWidget(window)
    part.setParent(window)
    window.resize(200, 100)
    with qtbot.waitExposed(window):
        window.show()
    qtbot.waitUntil(lambda: window.n_pictures > 0)
    window.update()
    part.update()
    theme.change("dark")
    window.n_pictures = part.n_pictures = 0
    while theme.is_changing:
        assert window.n_pictures == part.n_pictures == 0
        QApplication.processEvents()
    qtbot.waitUntil(lambda: window.n_pictures > 0 and part.n_pictures > 0)
    assert window.palette().color(QPalette.ColorRole.Window).name() == DARK.surface


def test_icons_change_with_the_theme(theme: Theme, qtbot: QtBot) -> None:
    def brightest(button: QPushButton) -> int:
        image = button.icon().pixmap(24).toImage()
        pixels = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
        return max((pixel.lightness() for pixel in pixels if pixel.alpha() > 250), default=-1)

    button = QPushButton()
    qtbot.addWidget(button)
    set_icon(button, "add")
    assert 0 <= brightest(button) < 80
    theme.choose("dark")
    assert brightest(button) > 180


@pytest.mark.parametrize("path", sorted(_ICONS.glob("*.svg")), ids=lambda path: path.stem)
def test_icons_have_one_style_and_stay_within_their_square(path: Path, theme: Theme) -> None:
    drawing = path.read_text(encoding="utf-8")
    assert 'viewBox="0 0 24 24"' in drawing and 'fill="none"' in drawing and 'stroke-linecap="round"' in drawing
    assert QSvgRenderer(QByteArray(drawing.encode())).isValid()
    image = pixmap(path.stem, 48, QColor("#ff0000")).toImage()
    edge = [(i, j) for i in range(48) for j in (0, 47)] + [(j, i) for i in range(48) for j in (0, 47)]
    assert all(image.pixelColor(x, y).alpha() < 100 for x, y in edge)
    assert sum(image.pixelColor(x, y).alpha() > 128 for x in range(48) for y in range(48)) > 40


def test_icons_have_more_pixels_on_a_high_resolution_screen(theme: Theme) -> None:
    drawn = pixmap("run", 20, QColor("black"), 2.0)
    assert (drawn.width(), drawn.devicePixelRatio()) == (40, 2.0)


@LOOKS
def test_theme_colours_have_six_hexadecimal_digits(look: Colours) -> None:
    assert all(re.fullmatch("#[0-9a-f]{6}", value) for value in asdict(look).values())


@pytest.mark.parametrize("choice", ["light", "dark", "contrast"])
def test_frames_of_input_fields_are_visible_in_every_theme(theme: Theme, qtbot: QtBot, choice: str) -> None:
    theme.choose(choice)  # type: ignore[arg-type]
    page = QWidget()
    qtbot.addWidget(page)
    column = QVBoxLayout(page)
    fields = [QLineEdit(), QSpinBox(), QComboBox(), QPlainTextEdit(), QListWidget()]
    for field in fields:
        column.addWidget(field)
    page.show()
    image = page.grab().toImage()
    ratio = image.devicePixelRatio()
    look = colours()
    for field in fields:
        place = field.geometry()
        edge = [image.pixelColor(round((place.left() + x) * ratio), round(place.center().y() * ratio)).name() for x in range(3)]
        best = max(edge, key=lambda colour: contrast(colour, look.surface))
        assert contrast(best, look.surface) >= 3, type(field).__name__
    for surface in (look.surface, look.raised, look.field):
        assert contrast(look.frame, surface) >= 3


def test_toned_labels_and_primary_button_change_with_the_theme(theme: Theme, qtbot: QtBot) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    column = QVBoxLayout(page)
    labels = {tone: toned_label(tone, tone) for tone in ("faint", "wrong", "attention", "good")}
    button = PrimaryButton("Run")
    for widget in (*labels.values(), button):
        column.addWidget(widget)
    page.show()
    for choice, look in (("dark", DARK), ("light", LIGHT), ("dark", DARK)):
        theme.choose(choice)  # type: ignore[arg-type]
        # Widgets are notified by an event.
        QApplication.processEvents()
        named = {"faint": look.faint_text, "wrong": look.wrong, "attention": look.attention, "good": look.good}
        assert {tone: label.palette().color(label.foregroundRole()).name() for tone, label in labels.items()} == named
        image = page.grab().toImage()
        ratio = image.devicePixelRatio()
        at = button.geometry().center().y() * ratio, (button.geometry().left() + 8) * ratio
        assert image.pixelColor(round(at[1]), round(at[0])).name() == look.accent
        assert button.palette().color(QPalette.ColorRole.ButtonText).name() == look.accent_text
    page.hide()
    theme.choose("light")
    QApplication.processEvents()
    page.show()
    assert labels["good"].palette().color(labels["good"].foregroundRole()).name() == LIGHT.good


def test_font_size_applies_from_the_next_start(make_window: Callable[[], MainWindow], qapp: QApplication, qtbot: QtBot) -> None:
    window = make_window()
    window.menus.font_scales[130].trigger()
    assert "130 %" in window.message_bar.label.text() and window.settings.values.font_scale == 130
    window.close()
    again = make_window()
    assert again.settings.values.font_scale == 130 and again.menus.font_scales[130].isChecked()
    usual = qapp.font()
    try:
        scale_font(qapp, 130)
        assert qapp.font().pointSizeF() == pytest.approx(1.3 * usual.pointSizeF())
        assert toned_label("a").font().pointSizeF() == pytest.approx(1.3 * usual.pointSizeF())
    finally:
        qapp.setFont(usual)
