"""Pages as PDF, of the same parts as those of `html_pages`: texts, tables of results, figures as vectors.

ReportLab writes them (no Qt, no browser), with the font that it brings, Bitstream Vera, and Greek letters from the one that every viewer
has. The same content gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import reportlab
from numpy.typing import NDArray
from PIL import Image as Picture
from reportlab import rl_config
from reportlab.lib.colors import HexColor
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from proteoscope.engine.results.columns import Column
from proteoscope.engine.views.drawings import Area, Bar, Clip, Curve, Drawing, Image, Label, Points, Shape, Sticks, Stroke, colour_of
from proteoscope.engine.views.html_pages import MAXIMUM_LETTERS, cell_text, printable, rows_told

__all__ = ["PdfPages"]

_WIDTH, _HEIGHT, _MARGIN = 841.9, 595.3, 36.0
"""A4, lying; points."""
_ROOM = _WIDTH - 2 * _MARGIN
_FONT, _BOLD, _GREEK, _LETTERS = "Vera", "VeraBd", "Symbol", "Courier"
_FILES = {_FONT: "Vera.ttf", _BOLD: "VeraBd.ttf"}
_TEXT, _SMALL, _PAD = 8.5, 6.0, 3.0
_WIDEST, _NARROWEST, _MAXIMUM_LINES = 130.0, 26.0, 3
_MISSING = "\u25a1"
_LEAST_SCALE = 0.6
"""Of a figure, beyond which it begins a page rather than fill the rest of one."""


@lru_cache(maxsize=1 << 14)
def _measured(text: str, font: str, size: float) -> float:
    """Width in points; accessions, numbers and enzymes come again and again, on the pages of all proteins."""
    return float(stringWidth(text, font, size))


class PdfPages:
    """Pages that grow downwards, as many as what is written needs.

    Parameters
    ----------
    title : of the document. address : what stands at the foot of each page.
    """

    def __init__(self, title: str, address: str = "") -> None:
        fonts = Path(reportlab.__file__).parent / "fonts"
        for name, file in _FILES.items():
            if name not in pdfmetrics.getRegisteredFontNames():
                pdfmetrics.registerFont(TTFont(name, str(fonts / file)))
        # Compressed bytes need not be letters besides, which would take a tenth of the time and a quarter of the size.
        rl_config.useA85 = 0
        self._known = pdfmetrics.getFont(_FONT).face.charToGlyph
        self._measure = _measured
        self._file = BytesIO()
        self._colours: dict[str, Any] = {}
        self._canvas = Canvas(self._file, pagesize=(_WIDTH, _HEIGHT), invariant=1, pageCompression=1)
        self._canvas.setTitle(printable(title, MAXIMUM_LETTERS))
        self._canvas.setCreator("Proteoscope")
        self._address, self._number = printable(address, MAXIMUM_LETTERS), 1
        self._top = _HEIGHT - _MARGIN

    def finished(self) -> bytes:
        """The file."""
        self._foot()
        self._canvas.save()
        return self._file.getvalue()

    def heading(self, text: str, size: float = 11.0) -> None:
        """A heading, with room for what follows, that a viewer lists."""
        self._need(size * 4)
        self._top -= size * 1.6
        name = f"h{self._number}-{self._top:.0f}"
        self._canvas.bookmarkHorizontal(name, 0, self._top + size)
        self._canvas.addOutlineEntry(printable(text, 80), name, 0)
        self._write(_MARGIN, self._top, printable(text, MAXIMUM_LETTERS), size, _BOLD)
        self._top -= size * 0.5

    def paragraph(self, text: str, most: int = 20_000) -> None:
        """A text, whose lines stay lines."""
        for line in printable(text, most).split("\n"):
            for part in self._wrapped(line, _ROOM, _TEXT, 10_000) or [""]:
                self._need(_TEXT * 1.35)
                self._top -= _TEXT * 1.35
                self._write(_MARGIN, self._top, part, _TEXT)

    def figure(self, drawing: Drawing) -> None:
        """A drawing, smaller where it has no room."""
        scale = min(1.0, _ROOM / drawing.width, (_HEIGHT - 2 * _MARGIN - 24) / drawing.height)
        left = (self._top - _MARGIN - 24) / (drawing.height * scale)
        if _LEAST_SCALE <= left < 1.0:
            scale *= left
        self._need(drawing.height * scale + 8)
        self._top -= drawing.height * scale + 4
        self._canvas.saveState()
        self._canvas.translate(_MARGIN, self._top)
        self._canvas.scale(scale, scale)
        for shape in drawing.shapes:
            self._draw(shape, drawing.height, drawing.font_size)
        self._canvas.restoreState()
        self._top -= 4

    def letters(self, rows: Sequence[tuple[str, str, Sequence[int], str]], inks: Sequence[tuple[str, bool]]) -> None:
        """Rows of a sequence.

        Parameters
        ----------
        rows : of each what stands before it, its letters, the kind of each letter, and what stands behind it. inks : by kind the colour,
            and whether it is bold.
        """
        size = 8.0
        step = self._measure("A", _LETTERS, size)
        for before, text, kinds, after in rows:
            self._need(size * 1.4)
            self._top -= size * 1.4
            self._write(_MARGIN, self._top, before, size, _LETTERS)
            x = _MARGIN + step * (len(before) + 1)
            for kind, some in groupby(zip(kinds, text, strict=True), key=lambda one: one[0]):
                part = "".join(letter for _, letter in some)
                colour, is_bold = inks[kind]
                self._canvas.setFillColor(self._colour(colour))
                self._canvas.setFont(f"{_LETTERS}-Bold" if is_bold else _LETTERS, size)
                self._canvas.drawString(x, self._top, part)
                x += step * len(part)
            self._write(x + step, self._top, after, size, _LETTERS)

    def rows(self, columns: Sequence[Column], values: Sequence[Mapping[str, Any]], n_rows: int) -> None:
        """The first rows of a table of results, as `html_pages.result_rows` tells them; headers again on each page."""
        self.paragraph(rows_told(len(values), n_rows))
        texts = [[cell_text(row[one.name], one) for one in columns] for row in values]
        heads = [one.header for one in columns]
        widths = self._widths(heads, [[text for text, _ in row] for row in texts])
        are_numbers = [one.is_number for one in columns]
        self._top -= 3
        self._head(heads, widths, are_numbers)
        for row in texts:
            lines = [self._wrapped(text, width, _SMALL, _MAXIMUM_LINES) for (text, _), width in zip(row, widths, strict=True)]
            height = _SMALL * 1.3 * max(1, *map(len, lines)) + 2
            if self._top - height < _MARGIN + 14:
                self._turn()
                self._head(heads, widths, are_numbers)
            self._row(lines, widths, [is_number for _, is_number in row], height)

    # --------------------------------------------------------------------------------------------------------- what it is made of

    def _head(self, heads: Sequence[str], widths: Sequence[float], are_numbers: Sequence[bool]) -> None:
        lines = [self._wrapped(text, width, _SMALL, _MAXIMUM_LINES, _BOLD) for text, width in zip(heads, widths, strict=True)]
        height = _SMALL * 1.3 * max(1, *map(len, lines)) + 2
        self._need(height * 3)
        self._canvas.setFillColor(self._colour("#eeeeee"))
        self._canvas.rect(_MARGIN, self._top - height, sum(widths), height, stroke=0, fill=1)
        self._row(lines, widths, are_numbers, height, _BOLD)

    def _row(
        self, lines: Sequence[Sequence[str]], widths: Sequence[float], are_numbers: Sequence[bool], height: float, font: str = _FONT
    ) -> None:
        x, parts = _MARGIN, list[tuple[float, float, str, str]]()
        for some, width, is_number in zip(lines, widths, are_numbers, strict=True):
            for k, text in enumerate(some):
                at = x + width - _PAD - self._width(text, _SMALL, font) if is_number else x + _PAD
                for of, part in self._runs(text, font):
                    parts.append((at, self._top - _SMALL * (1.3 * k + 1.1), of, part))
                    at += self._measure(part, of, _SMALL)
            x += width
        # One object for a row: each has its beginning and end in the file.
        self._canvas.setFillColor(self._colour("#000000"))
        written = self._canvas.beginText()
        for at, down, of, part in sorted(parts, key=lambda one: one[2]):
            written.setFont(of, _SMALL)
            written.setTextOrigin(at, down)
            written.textOut(part)
        self._canvas.drawText(written)
        self._top -= height
        self._canvas.setStrokeColor(self._colour("#d5d5d5"))
        self._canvas.setLineWidth(0.3)
        self._canvas.line(_MARGIN, self._top, x, self._top)

    def _widths(self, heads: Sequence[str], texts: Sequence[Sequence[str]]) -> list[float]:
        """What each column needs; less for the widest where all together have no room."""
        needed = [max((self._width(word, _SMALL, _BOLD) for word in head.split()), default=0.0) for head in heads]
        for row in texts:
            needed = [max(most, self._width(text, _SMALL, _FONT)) for most, text in zip(needed, row, strict=True)]
        widths = [min(max(one, _NARROWEST - 2 * _PAD), _WIDEST) + 2 * _PAD for one in needed]
        if sum(widths) > _ROOM:
            low, high = 0.0, max(widths)
            for _ in range(30):
                limit = (low + high) / 2
                low, high = (limit, high) if sum(min(one, limit) for one in widths) <= _ROOM else (low, limit)
            widths = [min(one, low) for one in widths]
        return widths

    def _wrapped(self, text: str, width: float, size: float, most: int, font: str = _FONT) -> list[str]:
        """Lines of a text that are no wider than that, cut within words where nothing else helps; behind `most` the rest is cut off."""
        room, lines = width - (2 * _PAD if size == _SMALL else 0), list[str]()
        while text and len(lines) < most:
            n = self._fitting(text, room, size, font)
            if n < len(text):
                space = text.rfind(" ", 0, n + 1)
                n = space + 1 if space > 0 else max(1, n)
            lines.append(text[:n].rstrip())
            text = text[n:]
        if text and lines:
            n = self._fitting(f"{lines[-1]}…", room, size, font)
            lines[-1] = f"{lines[-1][: max(0, n - 1)]}…"
        return lines

    def _fitting(self, text: str, room: float, size: float, font: str) -> int:
        """How many letters have room."""
        if self._width(text[:400], size, font) <= room and len(text) <= 400:
            return len(text)
        low, high = 0, min(len(text), 400)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._width(text[:middle], size, font) <= room else (low, middle - 1)
        return low

    def _width(self, text: str, size: float, font: str) -> float:
        return sum(self._measure(part, of, size) for of, part in self._runs(text, font))

    def _runs(self, text: str, font: str) -> list[tuple[str, str]]:
        """A text in parts of a font each; what none has is a box."""
        if text.isascii() or font == _LETTERS:
            return [(font, text)] if text else []
        known = self._known

        def font_of(letter: str) -> str:
            return _GREEK if "\u0391" <= letter <= "\u03c9" else font

        shown = "".join(one if ord(one) in known or font_of(one) == _GREEK else _MISSING if ord(_MISSING) in known else "?" for one in text)
        return [(of, "".join(some)) for of, some in groupby(shown, key=font_of)]

    def _write(self, x: float, y: float, text: str, size: float, font: str = _FONT, colour: str = "#000000") -> None:
        self._canvas.setFillColor(self._colour(colour))
        for of, part in self._runs(text, font):
            self._canvas.setFont(of, size)
            self._canvas.drawString(x, y, part)
            x += self._measure(part, of, size)

    def _colour(self, name: str) -> Any:
        """ReportLab's colour, which it is slow to make of a name."""
        if name not in self._colours:
            self._colours[name] = HexColor(name)
        return self._colours[name]

    def _need(self, height: float) -> None:
        """A new page where the height has no room."""
        if self._top - height < _MARGIN + 14:
            self._turn()

    def _turn(self) -> None:
        self._foot()
        self._canvas.showPage()
        self._number += 1
        self._top = _HEIGHT - _MARGIN

    def _foot(self) -> None:
        self._write(_MARGIN, _MARGIN - 10, self._address, _SMALL)
        number = str(self._number)
        self._write(_WIDTH - _MARGIN - self._width(number, _SMALL, _FONT), _MARGIN - 10, number, _SMALL)

    def _draw(self, shape: Shape, height: float, font_size: float) -> None:
        """Draw a shape of a drawing of a height, whose lower left corner is the canvas's."""
        canvas = self._canvas
        if not isinstance(shape, Image | Clip):
            colour = self._colour(colour_of(shape.ink))
            canvas.setFillColor(colour)
            canvas.setStrokeColor(colour)
        match shape:
            case Stroke(x1, y1, x2, y2, _, width, is_dashed):
                canvas.setLineWidth(width)
                canvas.setDash([4, 3] if is_dashed else [])
                canvas.line(x1, height - y1, x2, height - y2)
                canvas.setDash([])
            case Bar(x, y, width, tall, _, is_round):
                canvas.setFillAlpha(shape.opacity)
                has_outline = shape.outline is not None
                if shape.outline is not None:
                    canvas.setStrokeColor(self._colour(colour_of(shape.outline)))
                    canvas.setLineWidth(1)
                if is_round:
                    canvas.circle(x + width / 2, height - y - tall / 2, width / 2, stroke=has_outline, fill=1)
                else:
                    canvas.rect(x, height - y - tall, width, tall, stroke=has_outline, fill=1)
                canvas.setFillAlpha(1)
            case Curve(x, y, _, width, is_dashed):
                canvas.setLineWidth(width)
                canvas.setLineJoin(1)
                canvas.setLineCap(1)
                canvas.setDash([4, 3] if is_dashed else [])
                canvas.drawPath(self._path(x, height - y))
                canvas.setDash([])
            case Area(x, y, _, opacity):
                canvas.setFillAlpha(opacity)
                canvas.drawPath(self._path(x, height - y), stroke=0, fill=1)
                canvas.setFillAlpha(1)
            case Sticks(x, y1, y2, _, width):
                canvas.setLineWidth(width)
                canvas.setLineCap(0)
                canvas.lines(np.column_stack((x, height - y1, x, height - y2)).tolist())
            case Points():
                for at, down in shape.places.tolist():
                    canvas.circle(at, height - down, shape.size / 2, stroke=0, fill=1)
            case Label(x, y, text, anchor):
                self._label(x, height - y, shape, anchor, text, shape.size * font_size, colour_of(shape.ink))
            case Image(x, y, width, tall, pixels):
                canvas.drawImage(ImageReader(Picture.fromarray(pixels, "RGBA")), x, height - y - tall, width, tall, mask="auto")
            case Clip(x, y, width, tall, shapes):
                canvas.saveState()
                box = canvas.beginPath()
                box.rect(x, height - y - tall, width, tall)
                canvas.clipPath(box, stroke=0, fill=0)
                for one in shapes:
                    self._draw(one, height, font_size)
                canvas.restoreState()

    def _path(self, x: NDArray[np.float64], up: NDArray[np.float64]) -> Any:
        """A path through places, upwards from the canvas's corner."""
        path = self._canvas.beginPath()
        places = list(zip(x.tolist(), up.tolist(), strict=True))
        path.moveTo(*places[0])
        for at in places[1:]:
            path.lineTo(*at)
        return path

    def _label(self, x: float, y: float, shape: Label, anchor: str, text: str, size: float, colour: str) -> None:
        font = _LETTERS if shape.is_fixed else _BOLD if shape.is_bold else _FONT
        text = printable(text, MAXIMUM_LETTERS)
        before = self._width(text, size, font) * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        self._canvas.saveState()
        self._canvas.translate(x, y)
        if shape.is_upright:
            self._canvas.rotate(90)
        self._write(-before, 0.0, text, size, font, colour)
        self._canvas.restoreState()
