"""XML tags of a block as columns."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from xml.sax.saxutils import unescape

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.numbers import POINT

__all__ = ["MAXIMUM_TAGS", "Names", "TagKind", "TagTable", "check_tags", "xml_encoding"]

MAXIMUM_TAGS = 1 << 18
"""Maximum of a block: usually some ten thousand; a longer block is one spectrum with many peaks and few tags."""
_ROWS_AT_FIRST = 1 << 14
_ENCODINGS = re.compile(r"utf-8|ascii|iso8859-\d+|cp125\d|koi8-[ru]|shift_jis|euc_jp|gb2312|gbk|gb18030|big5")
"""Python's names of the supported encodings; all encode ASCII as ASCII."""

_ENCODING = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})[\"']")
_ENTITIES = {"&quot;": '"', "&apos;": "'", "&#xA;": "\n", "&#10;": "\n", "&#9;": "\t", "&#39;": "'", "&#34;": '"'}


def xml_encoding(head: bytes) -> str:
    """Return the encoding in an XML declaration; UTF-8 without one, or if it is not supported."""
    match = _ENCODING.match(head.removeprefix(b"\xef\xbb\xbf"))
    try:
        name = codecs.lookup(match.group(1).decode("ascii")).name if match else "utf-8"
    except LookupError:
        return "utf-8"
    return name if _ENCODINGS.fullmatch(name) else "utf-8"


class TagKind(IntEnum):
    """Kinds of tags, as `proteoscope.kernels.cpu.text.scan_tags` returns them."""

    START = 0
    END = 1
    EMPTY = 2
    BROKEN = 3


class Names:
    """Element and attribute names to find; their positions are the codes in a `TagTable`."""

    def __init__(self, elements: tuple[str, ...], attributes: tuple[str, ...]) -> None:
        self.elements = {name: code for code, name in enumerate(elements)}
        self.attributes = {name: code for code, name in enumerate(attributes)}
        self.columns = (*_packed(elements), *_packed(attributes))


def _packed(names: tuple[str, ...]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    return np.frombuffer("".join(names).encode(), dtype=np.uint8), np.cumsum([0] + [len(name) for name in names])


@dataclass(frozen=True)
class TagTable:
    """Tags of a text with names in a `Names`; `rows` as `proteoscope.kernels.cpu.text.scan_tags` returns them."""

    data: bytes
    text: NDArray[np.uint8]
    names: Names
    rows: NDArray[np.int64]

    @classmethod
    def scan(cls, data: bytes, names: Names, path: Path) -> TagTable:
        """Find the tags of a text with names in `names`; the text is a part of the file `path`.

        Raises
        ------
        InputError
            There are more than `MAXIMUM_TAGS`.
        """
        text = np.frombuffer(data, dtype=np.uint8)
        state = np.zeros(kernels.cpu.text.N_STATES, dtype=np.int64)
        parts: list[NDArray[np.int64]] = []
        n_rows = _ROWS_AT_FIRST
        while not parts or state[0] < len(text):
            rows = np.empty((n_rows, kernels.cpu.text.TAG_COLUMNS + 2 * len(names.attributes)), dtype=np.int64)
            parts.append(rows[: kernels.cpu.text.scan_tags(text, *names.columns, state, rows)])
            n_rows *= 2
            check_tags(sum(map(len, parts)), path)
        rows = np.concatenate(parts) if len(parts) != 1 else parts[0]
        return cls(data, text, names, rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def kind(self) -> NDArray[np.int64]:
        """`TagKind` of each tag."""
        return self.rows[:, 1]

    @property
    def begin(self) -> NDArray[np.int64]:
        """First byte of each tag."""
        return self.rows[:, 2]

    @property
    def after(self) -> NDArray[np.int64]:
        """Byte after each tag."""
        return self.rows[:, 3]

    def named(self, element: str) -> NDArray[np.bool_]:
        """Return which tags belong to an element, of any kind."""
        return self.rows[:, 0] == self.names.elements[element]

    def opening(self, element: str) -> NDArray[np.bool_]:
        """Return which tags begin an element, including empty ones."""
        return self.named(element) & ((self.kind == TagKind.START) | (self.kind == TagKind.EMPTY))

    def depth(self, element: str) -> NDArray[np.int64]:
        """Return the number of open elements of a name after each tag."""
        here = self.named(element)
        return np.cumsum((here & (self.kind == TagKind.START)).astype(np.int64) - (here & (self.kind == TagKind.END)))

    def span(self, attribute: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return begin (-1: absent) and end of the value of an attribute in each tag."""
        column = 4 + 2 * self.names.attributes[attribute]
        return self.rows[:, column], self.rows[:, column + 1]

    def values(self, attribute: str, at: NDArray[np.int64]) -> list[bytes]:
        """Return the raw values of an attribute in some tags, empty where absent."""
        start, stop = self.span(attribute)
        return [self.data[a:b] if a >= 0 else b"" for a, b in zip(start[at].tolist(), stop[at].tolist(), strict=True)]

    def lengths(self, attribute: str, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sizes in bytes of the values of an attribute in some tags."""
        start, stop = self.span(attribute)
        return stop[at] - start[at]

    def names_at(self, attribute: str, at: NDArray[np.int64], encoding: str, maximum_bytes: int) -> list[str]:
        """Return the decoded values of an attribute in some tags, each cut to `maximum_bytes`."""
        texts = [value[:maximum_bytes].decode(encoding, "replace") for value in self.values(attribute, at)]
        return [unescape(text, _ENTITIES) if "&" in text else text for text in texts]

    def numbers(self, attribute: str, at: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the values of an attribute in some tags as numbers (NaN where absent), and which values are not numbers."""
        start, stop = (column[at] for column in self.span(attribute))
        ends = np.empty(len(at), dtype=np.int64)
        values = kernels.cpu.text.parse_numbers(self.text, start, stop, ends, POINT)
        broken = (start >= 0) & (ends != stop)
        values[(start < 0) | broken] = np.nan
        return values, broken

    def whole_numbers(self, attribute: str, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the values of an attribute in some tags as whole numbers from 0, or -1."""
        values, _ = self.numbers(attribute, at)
        usable = (values >= 0) & (values < 1e15) & (values == np.floor(values))
        return np.where(usable, values, -1).astype(np.int64)

    def terms(self, attribute: str, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return accessions of seven digits in some tags as numbers (``MS:1000511`` -> 1000511), -1 for others."""
        start, stop = (column[at] for column in self.span(attribute))
        usable = np.flatnonzero((start >= 0) & (stop - start == 10))
        digits = self.text[start[usable, None] + np.arange(3, 10)].astype(np.int64) - 48
        usable, digits = (part[((digits >= 0) & (digits <= 9)).all(axis=1)] for part in (usable, digits))
        terms = np.full(len(at), -1, dtype=np.int64)
        terms[usable] = digits @ 10 ** np.arange(6, -1, -1)
        return terms


def check_tags(n: int, path: Path) -> None:
    """Raise an `InputError` for more than `MAXIMUM_TAGS` tags in a block."""
    if n > MAXIMUM_TAGS:
        raise InputError(
            path,
            f"more than {MAXIMUM_TAGS:,} XML tags belong to one spectrum",
            remedy="Convert it again",
        )
