"""Layout of figures on a page: positions of marks, labels without overlaps, and the same shapes in SVG and PDF."""

import numpy as np
import pytest
from lxml import etree

from proteoscope.engine.views.drawings import Axis, Bar, Clip, Curve, Image, Label, Points, Sticks, Stroke, svg
from proteoscope.engine.views.figure_layout import lay_out
from proteoscope.engine.views.figures import (
    Band,
    Bars,
    Figure,
    LegendEntry,
    Line,
    Names,
    Panel,
    Pixels,
    Rule,
    Scatter,
    Spikes,
    Surface,
    Text,
)
from proteoscope.engine.views.palette import PAPER, Ion, Palette, rgb_of
from proteoscope.engine.views.pdf_pages import PdfPages

X, Y = Axis(0.0, 10.0, "m/z"), Axis(0.0, 100.0, "Intensity (%)")


def test_figure_layout_puts_marks_at_data_coordinates() -> None:
    marks = (Spikes(np.array([0.0, 5.0, 10.0, 11.0]), np.array([100.0, 50.0, 25.0, 99.0])), Scatter(np.array([5.0]), np.array([50.0])))
    drawing = lay_out(Figure("one", "One panel", (Panel(X, Y, marks),)))
    (clip,) = (shape for shape in drawing.shapes if isinstance(shape, Clip))
    sticks, dots = clip.shapes
    assert isinstance(sticks, Sticks) and isinstance(dots, Points)
    left, right, top, bottom = clip.x, clip.x + clip.width, clip.y + 1, clip.y + clip.height - 1
    # Values beyond the axis are omitted.
    np.testing.assert_allclose(sticks.x, [left, (left + right) / 2, right])
    np.testing.assert_allclose(sticks.y2, [top, (top + bottom) / 2, bottom - (bottom - top) / 4])
    np.testing.assert_allclose(sticks.y1, bottom)
    assert (dots.x[0], dots.y[0]) == pytest.approx(((left + right) / 2, (top + bottom) / 2))


@pytest.mark.parametrize(("scale", "low", "middle"), [("linear", 0.0, 50.0), ("square-root", 0.0, 25.0), ("logarithmic", 1.0, 10.0)])
def test_figure_axis_positions_follow_the_scale(scale, low, middle) -> None:
    axis = Axis(low, 100.0, scale=scale)
    np.testing.assert_allclose(axis.shares(np.array([low, middle, 100.0])), [0.0, 0.5, 1.0])
    assert all(low <= tick <= 100 for tick in axis.ticks(5)) and len(axis.ticks(5)) >= 2


def test_figure_layout_shows_the_requested_range() -> None:
    panel = Panel(X, Y, (Spikes(np.arange(11.0), np.full(11, 80.0)),))
    drawing = lay_out(Figure("one", "One panel", (panel,)), x_range=(2.0, 4.0))
    (clip,) = (shape for shape in drawing.shapes if isinstance(shape, Clip))
    assert isinstance(clip.shapes[0], Sticks) and len(clip.shapes[0].x) == 3


@pytest.mark.parametrize("is_below", [False, True])
def test_figure_labels_overlap_neither_labels_nor_peaks(is_below) -> None:
    random = np.random.default_rng(5)
    x, y = np.sort(random.uniform(0, 10, 60)), random.uniform(5, 90, 60)
    side = -1 if is_below else 1
    axis = Axis(-100.0, 0.0) if is_below else Axis(0.0, 100.0)
    marks = (Spikes(x, side * y), Names(x, side * y, [f"y{i}" for i in range(60)], y, "text", x, side * y, is_below))
    drawing = lay_out(Figure("one", "One panel", (Panel(X, axis, marks),)))
    (clip,) = (shape for shape in drawing.shapes if isinstance(shape, Clip))
    labels = [shape for shape in clip.shapes if isinstance(shape, Label)]
    assert 10 <= len(labels) < 60
    boxes = np.array([(label.x - 2.8 * len(label.text), label.y - 8.8, label.x + 2.8 * len(label.text), label.y) for label in labels])
    overlap = (boxes[:, None, 0] < boxes[None, :, 2]) & (boxes[:, None, 2] > boxes[None, :, 0])
    overlap &= (boxes[:, None, 1] < boxes[None, :, 3]) & (boxes[:, None, 3] > boxes[None, :, 1])
    assert overlap.sum() == len(labels)


def every_mark() -> Figure:
    line = np.linspace(0.0, 10.0, 20)

    def render(x, y, width, height, scale, palette):
        return np.full((height, width, 4), 200, np.uint8)

    marks = (
        Pixels(render),
        Band(1.0, 2.0),
        Surface(line, 0 * line, 5 * line),
        Bars(np.array([3.0]), np.array([4.0]), np.array([60.0]), 0, 0.5, has_outline=True),
        Spikes(line, 3 * line, Ion("y")),
        Line(line, 8 * line, 1, is_dashed=True),
        Scatter(line, 2 * line, "target"),
        Rule(5.0, text="a < b"),
        Rule(20.0, is_upright=False, text="limit"),
        Text(6.0, 90.0, "α & β"),
        Names(line, 3 * line, ["n"] * 20, line),
    )
    panel = Panel(X, Y, marks)
    return Figure("all", "All marks: <title>", (panel, panel), ("first", "second"), (LegendEntry("b", Ion("b")), LegendEntry("y", 1, True)))


def test_svg_of_every_mark_is_well_formed_with_unique_clip_paths() -> None:
    root = etree.fromstring(svg(lay_out(every_mark())), etree.XMLParser(resolve_entities=False))
    names = [element.get("id") for element in root.iter("{*}clipPath")]
    assert len(names) == len(set(names)) == 2
    drawn = {shape.get("clip-path") for shape in root.iter("{*}g")}
    assert drawn == {f"url(#{name})" for name in names}
    texts = {text.text for text in root.iter("{*}text")}
    assert {"a < b", "limit", "α & β", "first", "second", "m/z"} <= texts


def test_layout_of_all_marks_has_every_kind_of_shape() -> None:
    shapes = [inner for shape in lay_out(every_mark()).shapes for inner in (shape.shapes if isinstance(shape, Clip) else (shape,))]
    assert {type(shape).__name__ for shape in shapes} == {"Area", "Bar", "Curve", "Image", "Label", "Points", "Sticks", "Stroke"}
    assert all(isinstance(shape.x, np.ndarray) for shape in shapes if isinstance(shape, Curve | Points | Sticks))
    assert any(isinstance(shape, Image) for shape in shapes) and any(isinstance(shape, Stroke | Bar) for shape in shapes)


def test_pdf_of_every_mark_is_identical_when_written_again() -> None:
    files = []
    for _ in range(2):
        pages = PdfPages("figure")
        pages.figure(lay_out(every_mark()))
        files.append(pages.finished())
    assert files[0] == files[1] and files[0].startswith(b"%PDF")


def test_figure_colours_contrast_with_paper_and_dark_surfaces() -> None:
    dark = Palette("#1e1e1e", "#ffffff", "#aaaaaa", "#444444")

    def luminance(rgb):
        linear = [part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for palette in (PAPER, dark):
        back = luminance(rgb_of("background", palette))
        for ink in ("target", "decoy", "mark", Ion("a"), Ion("c"), Ion("x"), Ion("p"), Ion("i")):
            light, deep = sorted((luminance(rgb_of(ink, palette)), back), reverse=True)
            assert (light + 0.05) / (deep + 0.05) >= 3, (ink, palette)
