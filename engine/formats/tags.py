"""Tags of an XML block as columns."""

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
"""Of one block: an ordinary one has some ten thousand, and one that is longer is a spectrum of many peaks and few tags."""
_ROWS_AT_FIRST = 1 << 14
_ENCODINGS = re.compile(r"utf-8|ascii|iso8859-\d+|cp125\d|koi8-[ru]|shift_jis|euc_jp|gb2312|gbk|gb18030|big5")
"""Python's names of the encodings that are read: those in which ASCII is ASCII, of letters."""

_ENCODING = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})[\"']")
_ENTITIES = {"&quot;": '"', "&apos;": "'", "&#xA;": "\n", "&#10;": "\n", "&#9;": "\t", "&#39;": "'", "&#34;": '"'}


def xml_encoding(head: bytes) -> str:
    """The encoding that an XML declaration names; UTF-8 where there is none or it is unknown."""
    found = _ENCODING.match(head.removeprefix(b"\xef\xbb\xbf"))
    try:
        name = codecs.lookup(found.group(1).decode("ascii")).name if found else "utf-8"
    except LookupError:
        return "utf-8"
    return name if _ENCODINGS.fullmatch(name) else "utf-8"


class TagKind(IntEnum):
    """Kinds of tags, as `proteoscope.kernels.cpu.text.scan_tags` tells them."""

    START = 0
    END = 1
    EMPTY = 2
    BROKEN = 3


class Names:
    """Element and attribute names to look for; their places are the codes in a `TagTable`."""

    def __init__(self, elements: tuple[str, ...], attributes: tuple[str, ...]) -> None:
        self.elements = {name: code for code, name in enumerate(elements)}
        self.attributes = {name: code for code, name in enumerate(attributes)}
        self.columns = (*_packed(elements), *_packed(attributes))


def _packed(names: tuple[str, ...]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    return np.frombuffer("".join(names).encode(), dtype=np.uint8), np.cumsum([0] + [len(name) for name in names])


@dataclass(frozen=True)
class TagTable:
    """The known tags of a text; `rows` as `proteoscope.kernels.cpu.text.scan_tags` makes them."""

    data: bytes
    text: NDArray[np.uint8]
    names: Names
    rows: NDArray[np.int64]

    @classmethod
    def scan(cls, data: bytes, names: Names, path: Path) -> TagTable:
        """Find the known tags of a text, a part of the file `path`.

        Raises
        ------
        InputError : there are more than `MAXIMUM_TAGS`.
        """
        text = np.frombuffer(data, dtype=np.uint8)
        state = np.zeros(kernels.cpu.text.N_STATES, dtype=np.int64)
        parts: list[NDArray[np.int64]] = []
        room = _ROWS_AT_FIRST
        while not parts or state[0] < len(text):
            rows = np.empty((room, kernels.cpu.text.TAG_COLUMNS + 2 * len(names.attributes)), dtype=np.int64)
            parts.append(rows[: kernels.cpu.text.scan_tags(text, *names.columns, state, rows)])
            room *= 2
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
        """The byte where each tag begins."""
        return self.rows[:, 2]

    @property
    def after(self) -> NDArray[np.int64]:
        """The byte after each tag."""
        return self.rows[:, 3]

    def of(self, element: str) -> NDArray[np.bool_]:
        """Which tags are of an element, whatever their kind."""
        return self.rows[:, 0] == self.names.elements[element]

    def opening(self, element: str) -> NDArray[np.bool_]:
        """Which tags begin an element (empty ones too)."""
        return self.of(element) & ((self.kind == TagKind.START) | (self.kind == TagKind.EMPTY))

    def depth(self, element: str) -> NDArray[np.int64]:
        """How many elements of a name are open after each tag."""
        here = self.of(element)
        return np.cumsum((here & (self.kind == TagKind.START)).astype(np.int64) - (here & (self.kind == TagKind.END)))

    def span(self, attribute: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the value of an attribute begins (-1: absent) and stops, for each tag."""
        column = 4 + 2 * self.names.attributes[attribute]
        return self.rows[:, column], self.rows[:, column + 1]

    def values(self, attribute: str, at: NDArray[np.int64]) -> list[bytes]:
        """Values of an attribute at some tags, as they stand in the file; empty where absent."""
        start, stop = self.span(attribute)
        return [self.data[a:b] if a >= 0 else b"" for a, b in zip(start[at].tolist(), stop[at].tolist(), strict=True)]

    def lengths(self, attribute: str, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many bytes the values of an attribute have at some tags."""
        start, stop = self.span(attribute)
        return stop[at] - start[at]

    def names_at(self, attribute: str, at: NDArray[np.int64], encoding: str, maximum_bytes: int) -> list[str]:
        """Values of an attribute at some tags, decoded; of each the first `maximum_bytes`."""
        texts = [value[:maximum_bytes].decode(encoding, "replace") for value in self.values(attribute, at)]
        return [unescape(text, _ENTITIES) if "&" in text else text for text in texts]

    def numbers(self, attribute: str, at: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Values of an attribute at some tags as numbers (NaN where absent), and which are there but are no number."""
        start, stop = (column[at] for column in self.span(attribute))
        ends = np.empty(len(at), dtype=np.int64)
        values = kernels.cpu.text.parse_numbers(self.text, start, stop, ends, POINT)
        broken = (start >= 0) & (ends != stop)
        values[(start < 0) | broken] = np.nan
        return values, broken

    def whole_numbers(self, attribute: str, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Values of an attribute at some tags as whole numbers from 0, -1 where absent or none."""
        values, _ = self.numbers(attribute, at)
        usable = (values >= 0) & (values < 1e15) & (values == np.floor(values))
        return np.where(usable, values, -1).astype(np.int64)

    def terms(self, attribute: str, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Accessions of seven digits at some tags as numbers (``MS:1000511`` -> 1000511), -1 for any other."""
        start, stop = (column[at] for column in self.span(attribute))
        usable = np.flatnonzero((start >= 0) & (stop - start == 10))
        digits = self.text[start[usable, None] + np.arange(3, 10)].astype(np.int64) - 48
        usable, digits = (part[((digits >= 0) & (digits <= 9)).all(axis=1)] for part in (usable, digits))
        terms = np.full(len(at), -1, dtype=np.int64)
        terms[usable] = digits @ 10 ** np.arange(6, -1, -1)
        return terms


def check_tags(n: int, path: Path) -> None:
    """Refuse to work on more than `MAXIMUM_TAGS` tags at once."""
    if n > MAXIMUM_TAGS:
        raise InputError(
            path,
            f"more than {MAXIMUM_TAGS:,} XML tags belong to one part of the file",
            remedy="No spectra look like that; convert it again",
        )
