"""Conversion of drawings to PDF and PNG, without a screen.

ReportLab writes PDF with the fonts shipped with the program; PDFium renders it to PNG. The same drawing always gives the same bytes.
"""

from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Picture
from reportlab import rl_config
from reportlab.lib.colors import HexColor
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from proteoscope import resources
from proteoscope.engine.page_sizes import DPI
from proteoscope.engine.views.drawings import (
    Area,
    Bar,
    Cells,
    Clip,
    Curve,
    Drawing,
    Image,
    Label,
    Points,
    Shape,
    Spans,
    Sticks,
    Stroke,
    Symbol,
    format_colour,
)

__all__ = [
    "BOLD",
    "FIXED",
    "FIXED_BOLD",
    "FONT",
    "draw_on",
    "new_canvas",
    "pdf",
    "png",
    "with_known_characters",
]

FONT, BOLD, FIXED, FIXED_BOLD = "DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSansMono-Bold"
"""Names of the fonts of pages."""
_MISSING = "\u25a1"
"""Replacement for characters that are missing from the fonts."""
_CAPITAL = 0.729
"""Height of capitals of DejaVu Sans Bold relative to the font size."""
_SYMBOL_SIZE = 10.0
_POINTS_PER_INCH = 72


def pdf(drawing: Drawing) -> bytes:
    """Return a drawing as a PDF page of the size of the drawing, with selectable text."""
    file = BytesIO()
    canvas = new_canvas(file, (drawing.width, drawing.height), drawing.title)
    draw_on(canvas, drawing)
    canvas.save()
    return file.getvalue()


def png(drawing: Drawing, dpi: int = DPI) -> bytes:
    """Return a drawing as a PNG image; `dpi` is the resolution in dots per inch."""
    import pypdfium2  # takes 40 ms, and few figures are written as PNG

    document = pypdfium2.PdfDocument(pdf(drawing))
    try:
        picture = document[0].render(scale=dpi / _POINTS_PER_INCH).to_pil().convert("RGB")
    finally:
        document.close()
    file = BytesIO()
    picture.save(file, "PNG", dpi=(dpi, dpi))
    return file.getvalue()


def new_canvas(file: BytesIO, size: tuple[float, float], title: str) -> Canvas:
    """Return a ReportLab canvas with the fonts of the program; the bytes of its PDF depend only on the drawing, not on the time."""
    for name in (FONT, BOLD, FIXED, FIXED_BOLD):
        if name not in pdfmetrics.getRegisteredFontNames():
            pdfmetrics.registerFont(TTFont(name, str(resources.path("fonts", f"{name}.ttf"))))
    # Without this, ReportLab encodes the compressed bytes as ASCII, which takes a tenth more time and a quarter more space.
    rl_config.useA85 = 0
    canvas = Canvas(file, pagesize=size, invariant=1, pageCompression=1)
    canvas.setTitle(title)
    canvas.setCreator("Proteoscope")
    return canvas


def with_known_characters(text: str, font: str = FONT) -> str:
    """Return a text in which characters that a font lacks are replaced by boxes."""
    if text.isascii():
        return text
    glyphs = pdfmetrics.getFont(font).face.charToGlyph
    return "".join(character if ord(character) in glyphs or character == "\n" else _MISSING for character in text)


def draw_on(canvas: Canvas, drawing: Drawing) -> None:
    """Draw all shapes on a canvas, with the lower left corner of the drawing at the origin."""
    for shape in drawing.shapes:
        _draw(canvas, shape, drawing.height, drawing.font_size)


def _draw(canvas: Canvas, shape: Shape, height: float, font_size: float) -> None:
    """Draw a shape on a canvas; `height` is the height of the drawing, needed because ReportLab measures y from the bottom."""
    if not isinstance(shape, Image | Cells | Clip):
        colour = _colour(format_colour(shape.ink))
        canvas.setFillColor(colour)
        canvas.setStrokeColor(colour)
    match shape:
        case Stroke(x1, y1, x2, y2, _, width, is_dashed):
            _set_line(canvas, width, is_dashed=is_dashed)
            canvas.line(x1, height - y1, x2, height - y2)
        case Bar():
            _draw_bar(canvas, shape, height)
        case Curve(x, y, _, width, is_dashed):
            _set_line(canvas, width, is_dashed=is_dashed)
            canvas.drawPath(_path(canvas, x, height - y))
        case Area(x, y, _, opacity):
            canvas.setFillAlpha(opacity)
            canvas.drawPath(_path(canvas, x, height - y), stroke=0, fill=1)
            canvas.setFillAlpha(1)
        case Sticks(x, y1, y2, _, width):
            _set_line(canvas, width)
            canvas.lines(np.column_stack((x, height - y1, x, height - y2)).tolist())
        case Spans(x1, x2, y, tall, _, opacity):
            bars = canvas.beginPath()
            for left, right, down in zip(x1.tolist(), x2.tolist(), y.tolist(), strict=True):
                bars.rect(left, height - down - tall, right - left, tall)
            canvas.setFillAlpha(opacity)
            canvas.drawPath(bars, stroke=0, fill=1)
            canvas.setFillAlpha(1)
        case Points():
            for at, down in shape.centres.tolist():
                canvas.circle(at, height - down, shape.size / 2, stroke=0, fill=1)
        case Label():
            _draw_label(canvas, shape, height, font_size)
        case Symbol(x, y, width, tall, text):
            canvas.saveState()
            canvas.translate(x, height - y - tall)
            canvas.scale(width / pdfmetrics.stringWidth(text, BOLD, _SYMBOL_SIZE), tall / (_CAPITAL * _SYMBOL_SIZE))
            canvas.setFont(BOLD, _SYMBOL_SIZE)
            canvas.drawString(0, 0, text)
            canvas.restoreState()
        case Image(x, y, width, tall, pixels):
            canvas.drawImage(ImageReader(Picture.fromarray(pixels, "RGBA")), x, height - y - tall, width, tall, mask="auto")
        case Cells():
            _draw(canvas, shape.image(), height, font_size)
        case Clip(x, y, width, tall, shapes):
            canvas.saveState()
            box = canvas.beginPath()
            box.rect(x, height - y - tall, width, tall)
            canvas.clipPath(box, stroke=0, fill=0)
            for part in shapes:
                _draw(canvas, part, height, font_size)
            canvas.restoreState()


def _draw_bar(canvas: Canvas, bar: Bar, height: float) -> None:
    canvas.setFillAlpha(bar.opacity)
    if bar.outline is not None:
        canvas.setStrokeColor(_colour(format_colour(bar.outline)))
        _set_line(canvas, 1.0)
    has_outline = bar.outline is not None
    if bar.is_round:
        canvas.circle(bar.x + bar.width / 2, height - bar.y - bar.height / 2, bar.width / 2, stroke=has_outline, fill=1)
    else:
        canvas.rect(bar.x, height - bar.y - bar.height, bar.width, bar.height, stroke=has_outline, fill=1)
    canvas.setFillAlpha(1)


def _draw_label(canvas: Canvas, label: Label, height: float, font_size: float) -> None:
    font = (FIXED_BOLD if label.is_bold else FIXED) if label.is_fixed else BOLD if label.is_bold else FONT
    text = with_known_characters("".join(character if character.isprintable() else " " for character in label.text), font)
    canvas.setFont(font, label.size * font_size)
    write = {"start": canvas.drawString, "middle": canvas.drawCentredString, "end": canvas.drawRightString}[label.anchor]
    if not label.is_upright:
        write(label.x, height - label.y, text)
        return
    canvas.saveState()
    canvas.translate(label.x, height - label.y)
    canvas.rotate(90)
    write(0, 0, text)
    canvas.restoreState()


def _set_line(canvas: Canvas, width: float, *, is_dashed: bool = False) -> None:
    canvas.setLineWidth(width)
    canvas.setLineJoin(1)
    canvas.setDash([4, 3] if is_dashed else [])


def _path(canvas: Canvas, x: NDArray[np.float64], up: NDArray[np.float64]) -> Any:
    """Return a path through points whose y is measured upwards from the lower left corner of the canvas."""
    path = canvas.beginPath()
    positions = list(zip(x.tolist(), up.tolist(), strict=True))
    path.moveTo(*positions[0])
    for at in positions[1:]:
        path.lineTo(*at)
    return path


@lru_cache(maxsize=256)
def _colour(name: str) -> Any:
    """Return the ReportLab colour of a colour name; cached, since the conversion is slow."""
    return HexColor(name)
