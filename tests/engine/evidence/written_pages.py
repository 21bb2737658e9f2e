"""Readers of written pages: the texts that a PDF draws, and the tables of an HTML page."""

from __future__ import annotations

import re
import zlib
from html.parser import HTMLParser
from pathlib import Path

__all__ = ["html_tables", "pdf_streams", "pdf_texts"]

_DRAWN = re.compile(rb"\(((?:[^()\\]|\\.)*)\) Tj", re.DOTALL)
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)


def pdf_streams(path: Path) -> list[bytes]:
    """Return the content streams of a PDF, uncompressed (ReportLab writes deflated streams after their length)."""
    content = path.read_bytes()
    streams = re.finditer(rb"/Filter \[ /FlateDecode \] /Length (\d+)\s*>>\s*stream\r?\n", content)
    return [zlib.decompress(content[stream.end() : stream.end() + int(stream[1])]) for stream in streams]


def pdf_texts(path: Path) -> list[str]:
    """Return the texts that a PDF draws, in order; ReportLab's font subsets keep the codes of ASCII characters."""

    def character(escape: re.Match[bytes]) -> bytes:
        return bytes([int(escape[1], 8)]) if len(escape[1]) == 3 else escape[1]

    return [_ESCAPED.sub(character, text).decode("latin-1") for stream in pdf_streams(path) for text in _DRAWN.findall(stream)]


class _Tables(HTMLParser):
    """Rows of cells under the headings of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self._heading, self._tag = "", ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("h1", "h2", "h3"):
            self._heading, self._tag = "", "heading"
        elif tag == "tr":
            self.tables.setdefault(self._heading, []).append([])
        elif tag in ("td", "th"):
            self.tables[self._heading][-1].append("")
            self._tag = "cell"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("h1", "h2", "h3", "td", "th"):
            self._tag = ""

    def handle_data(self, data: str) -> None:
        if self._tag == "heading":
            self._heading += data
        elif self._tag == "cell":
            self.tables[self._heading][-1][-1] += data


def html_tables(text: str) -> dict[str, list[dict[str, str]]]:
    """Return the rows of each table of a page, by its heading and column headers."""
    parser = _Tables()
    parser.feed(text)
    parser.close()
    return {heading: [dict(zip(rows[0], row, strict=True)) for row in rows[1:]] for heading, rows in parser.tables.items()}
