"""PDF pages with the same content as the pages of `html_pages`: texts, result tables and vector figures.

ReportLab's platypus module lays out the content. The same content always gives the same bytes.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from io import BytesIO
from itertools import groupby
from typing import Any

import numpy as np
from reportlab.lib.colors import HexColor
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Flowable, Frame, LongTable, PageTemplate, Paragraph, XPreformatted

from proteoscope.engine.results.columns import Column
from proteoscope.engine.views.drawings import Drawing
from proteoscope.engine.views.html_pages import MAXIMUM_CHARACTERS, cell_text, printable, shown_rows_note
from proteoscope.engine.views.paper import BOLD, FIXED, FIXED_BOLD, FONT, draw_on, new_canvas, with_known_characters

__all__ = ["PdfPages"]

_WIDTH, _HEIGHT, _MARGIN, _FOOT = 841.9, 595.3, 36.0, 14.0
"""Width, height, margin and height of the foot of an A4 landscape page, points."""
_TEXT_WIDTH, _TEXT_HEIGHT = _WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN - _FOOT
_TEXT, _SMALL, _PADDING = 8.5, 6.0, 3.0
_WIDEST, _NARROWEST, _LONGEST_CELL = 130.0, 26.0, 90
_LEAST_SCALE = 0.6
"""Minimum scale to which a figure is reduced to fit the rest of a page; otherwise it starts a new page."""

_PLAIN = ParagraphStyle("plain", fontName=FONT, fontSize=_TEXT, leading=1.35 * _TEXT, splitLongWords=True)
_CELL = ParagraphStyle("cell", fontName=FONT, fontSize=_SMALL, leading=1.3 * _SMALL, splitLongWords=True)
_HEADER = ParagraphStyle("header", _CELL, fontName=BOLD)
_RESIDUES = ParagraphStyle("residues", fontName=FIXED, fontSize=8.0, leading=11.2)


class PdfPages:
    """Builder of PDF pages: content is added from top to bottom, on as many pages as it needs.

    Parameters
    ----------
    title
        Title of the document.
    address
        Text at the foot of each page.
    """

    def __init__(self, title: str, address: str = "") -> None:
        self._title, self._address = printable(title, MAXIMUM_CHARACTERS), printable(address, MAXIMUM_CHARACTERS)
        self._file, self._parts = BytesIO(), list[Flowable]()
        # The first canvas registers the fonts, which are needed to measure texts before the canvas of these pages exists.
        new_canvas(BytesIO(), (1, 1), "")

    def finished(self) -> bytes:
        """Return the bytes of the PDF file."""
        document = BaseDocTemplate(self._file, pagesize=(_WIDTH, _HEIGHT), title=self._title, creator="Proteoscope")
        frame = Frame(_MARGIN, _MARGIN + _FOOT, _TEXT_WIDTH, _TEXT_HEIGHT, 0, 0, 0, 0)
        document.addPageTemplates(PageTemplate(frames=[frame], onPageEnd=self._write_foot))
        document.build(self._parts, canvasmaker=lambda file, **_: new_canvas(file, (_WIDTH, _HEIGHT), self._title))
        return self._file.getvalue()

    def heading(self, text: str, size: float = 11.0) -> None:
        """Add a heading with an entry in the PDF's outline; there is no page break between the heading and the next content."""
        style = ParagraphStyle("heading", fontName=BOLD, fontSize=size, leading=1.3 * size, spaceBefore=0.5 * size, keepWithNext=True)
        self._parts.append(_Heading(_markup(printable(text, MAXIMUM_CHARACTERS), BOLD), style, f"h{len(self._parts)}", printable(text, 80)))

    def paragraph(self, text: str, most: int = 20_000) -> None:
        """Add a text, truncated to `most` characters, with its line breaks."""
        self._parts += [Paragraph(_markup(line) or "&nbsp;", _PLAIN) for line in printable(text, most).split("\n")]

    def figure(self, drawing: Drawing) -> None:
        """Add a drawing, scaled down to fit the page."""
        self._parts.append(_Figure(drawing))

    def residues(self, rows: Sequence[tuple[str, str, Sequence[int], str]], inks: Sequence[tuple[str, bool]]) -> None:
        """Add a sequence in rows.

        Parameters
        ----------
        rows
            For each row, the text before it, its residues, the kind of each residue, and the text after it.
        inks
            Colour of each kind of residue, with True for bold.
        """
        for before, text, kinds, after in rows:
            parts = [escape(before)]
            for kind, some in groupby(zip(kinds, text, strict=True), key=lambda pair: pair[0]):
                colour, is_bold = inks[kind]
                part = escape("".join(residue for _, residue in some))
                parts.append(f'<font name="{FIXED_BOLD if is_bold else FIXED}" color="{colour}">{part}</font>')
            self._parts.append(XPreformatted(f"{parts[0]} {''.join(parts[1:])} {escape(after)}", _RESIDUES))

    def rows(self, columns: Sequence[Column], values: Sequence[Mapping[str, Any]], n_rows: int) -> None:
        """Add the first rows of a result table, as in `html_pages.result_rows`; headers repeat on each page."""
        self.paragraph(shown_rows_note(len(values), n_rows))
        texts = [[printable(cell_text(row[column.name], column)[0], _LONGEST_CELL) for column in columns] for row in values]
        widths = _widths([column.header for column in columns], texts)
        header = [Paragraph(_markup(column.header, BOLD), _HEADER) for column in columns]
        cells = [[_cell(text, width) for text, width in zip(row, widths, strict=True)] for row in texts]
        style: list[tuple[Any, ...]] = [
            ("FONT", (0, 0), (-1, -1), FONT, _SMALL, 1.3 * _SMALL),
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("BACKGROUND", (0, 0), (-1, 0), HexColor("#eeeeee")),
            ("LINEBELOW", (0, 0), (-1, -1), 0.3, HexColor("#d5d5d5")),
            *((side, (0, 0), (-1, -1), _PADDING) for side in ("LEFTPADDING", "RIGHTPADDING")),
            *((side, (0, 0), (-1, -1), 1.0) for side in ("TOPPADDING", "BOTTOMPADDING")),
            *(("ALIGN", (at, 1), (at, -1), "RIGHT") for at, column in enumerate(columns) if column.is_number),
        ]
        self._parts.append(LongTable([header, *cells], widths, repeatRows=1, style=style, hAlign="LEFT", spaceBefore=3))

    def _write_foot(self, canvas: Canvas, document: BaseDocTemplate) -> None:
        canvas.setFont(FONT, _SMALL)
        canvas.drawString(_MARGIN, _MARGIN - 10, with_known_characters(self._address))
        canvas.drawRightString(_WIDTH - _MARGIN, _MARGIN - 10, str(document.page))


class _Heading(Paragraph):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Heading with an entry in the outline of the document."""

    def __init__(self, markup: str, style: ParagraphStyle, name: str, entry: str) -> None:
        super().__init__(markup, style)
        self._name, self._entry = name, entry

    def draw(self) -> None:
        """Draw the heading and add it to the outline."""
        self.canv.bookmarkHorizontal(self._name, 0, self.height)
        self.canv.addOutlineEntry(self._entry, self._name, 0)
        super().draw()


class _Figure(Flowable):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Drawing that is scaled down to fit the page."""

    def __init__(self, drawing: Drawing) -> None:
        super().__init__()
        self._drawing = drawing
        self._scale = min(1.0, _TEXT_WIDTH / drawing.width, (_TEXT_HEIGHT - 8) / drawing.height)
        self.spaceBefore = self.spaceAfter = 4

    def wrap(self, available_width: float, available_height: float) -> tuple[float, float]:
        """Return the size of the figure; a figure that fits into the rest of the page at a scale of at least `_LEAST_SCALE` is reduced."""
        part = (available_height - 8) / (self._drawing.height * self._scale)
        self._drawn = self._scale * (part if _LEAST_SCALE <= part < 1 else 1.0)
        return self._drawing.width * self._drawn, self._drawing.height * self._drawn

    def draw(self) -> None:
        """Draw the figure at its scaled size."""
        self.canv.scale(self._drawn, self._drawn)
        draw_on(self.canv, self._drawing)


def _markup(text: str, font: str = FONT) -> str:
    """Return a text escaped for ReportLab's markup, without characters that the font lacks."""
    return escape(with_known_characters(text, font))


@lru_cache(maxsize=1 << 14)
def _measured(text: str, font: str) -> float:
    """Return the width of a text in points; cached, since accessions and numbers occur on many pages."""
    return float(stringWidth(text, font, _SMALL))


def _cell(text: str, width: float) -> str | Paragraph:
    """Return the content of a cell: a text, or a paragraph (which is slower) if several lines are needed."""
    shown = with_known_characters(text)
    return shown if _measured(shown, FONT) <= width - 2 * _PADDING else Paragraph(escape(shown), _CELL)


def _widths(headers: Sequence[str], texts: Sequence[Sequence[str]]) -> list[float]:
    """Return the column widths; if the table would be wider than the page, the widest columns are narrowed."""
    needed = np.array([max((_measured(word, BOLD) for word in header.split()), default=0.0) for header in headers])
    for row in texts:
        needed = np.maximum(needed, [_measured(text, FONT) for text in row])
    widths = np.clip(needed, _NARROWEST - 2 * _PADDING, _WIDEST) + 2 * _PADDING + 0.1
    low, high = 0.0, float(widths.max(initial=0.0))
    if widths.sum() > _TEXT_WIDTH:
        for _ in range(30):
            limit = (low + high) / 2
            low, high = (limit, high) if np.minimum(widths, limit).sum() <= _TEXT_WIDTH else (low, limit)
        widths = np.minimum(widths, low)
    return [float(width) for width in widths]
