"""XML tags of a block, found and stored as columns."""

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
"""Maximum number of tags in a block; blocks usually have tens of thousands."""
_ROWS_AT_FIRST = 1 << 14
_ENCODINGS = re.compile(r"utf-8|ascii|iso8859-\d+|cp125\d|koi8-[ru]|shift_jis|euc_jp|gb2312|gbk|gb18030|big5")
"""Python's names of the supported encodings, which all include ASCII."""

_ENCODING = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})[\"']")
_ENTITIES = {"&quot;": '"', "&apos;": "'", "&#xA;": "\n", "&#10;": "\n", "&#9;": "\t", "&#39;": "'", "&#34;": '"'}


def xml_encoding(head: bytes) -> str:
    """Return the encoding in an XML declaration; UTF-8 if there is none, or if the encoding is not supported."""
    match = _ENCODING.match(head.removeprefix(b"\xef\xbb\xbf"))
    try:
        name = codecs.lookup(match.group(1).decode("ascii")).name if match else "utf-8"
    except LookupError:
        return "utf-8"
    return name if _ENCODINGS.fullmatch(name) else "utf-8"


class TagKind(IntEnum):
    """Types of tags, numbered as in `proteoscope.kernels.cpu.text.scan_tags`."""

    START = 0
    END = 1
    EMPTY = 2
    BROKEN = 3


class Names:
    """Names of the elements and attributes to find; a `TagTable` refers to them by index."""

    def __init__(self, elements: tuple[str, ...], attributes: tuple[str, ...]) -> None:
        self.elements = {name: code for code, name in enumerate(elements)}
        self.attributes = {name: code for code, name in enumerate(attributes)}
        self.columns = (*_packed(elements), *_packed(attributes))


def _packed(names: tuple[str, ...]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    return np.frombuffer("".join(names).encode(), dtype=np.uint8), np.cumsum([0] + [len(name) for name in names])


@dataclass(frozen=True)
class TagTable:
    """Tags in a text whose element names are in a `Names` object.

    Attributes
    ----------
    data : bytes
        Text.
    text : ndarray of uint8, shape (bytes,)
        Text as an array.
    names : Names
        Names of elements and attributes.
    rows : ndarray of int64, shape (n, columns)
        Tags, as described in `proteoscope.kernels.cpu.text.scan_tags`.
    """

    data: bytes
    text: NDArray[np.uint8]
    names: Names
    rows: NDArray[np.int64]

    @classmethod
    def scan(cls, data: bytes, names: Names, path: Path) -> TagTable:
        """Find the tags of a text whose names are in `names`.

        Parameters
        ----------
        data : bytes
            Text.
        names : Names
            Names of elements and attributes to find.
        path : Path
            File of the text, for messages.

        Raises
        ------
        InputError
            If there are more than `MAXIMUM_TAGS` tags.
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
        """`TagKind` of each tag, shape (n,)."""
        return self.rows[:, 1]

    @property
    def begin(self) -> NDArray[np.int64]:
        """Position of the first byte of each tag, shape (n,)."""
        return self.rows[:, 2]

    @property
    def after(self) -> NDArray[np.int64]:
        """Position after the last byte of each tag, shape (n,)."""
        return self.rows[:, 3]

    def named(self, element: str) -> NDArray[np.bool_]:
        """Return True for each tag of an element, whatever its `TagKind`, (n,)."""
        is_named: NDArray[np.bool_] = self.rows[:, 0] == self.names.elements[element]
        return is_named

    def opening(self, element: str) -> NDArray[np.bool_]:
        """Return True for each tag that starts an element, including tags of empty elements, (n,)."""
        is_opening: NDArray[np.bool_] = self.named(element) & ((self.kind == TagKind.START) | (self.kind == TagKind.EMPTY))
        return is_opening

    def depth(self, element: str) -> NDArray[np.int64]:
        """Return the number of open elements with the name `element` after each tag, (n,)."""
        here = self.named(element)
        return np.cumsum((here & (self.kind == TagKind.START)).astype(np.int64) - (here & (self.kind == TagKind.END)))

    def span(self, attribute: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the start and the end of an attribute's value for each tag, (n,) each; the start is -1 if the tag lacks the attribute."""
        column = 4 + 2 * self.names.attributes[attribute]
        return self.rows[:, column], self.rows[:, column + 1]

    def values(self, attribute: str, at: NDArray[np.int64]) -> list[bytes]:
        """Return the undecoded values of an attribute in the given tags; b'' if absent.

        Parameters
        ----------
        attribute : str
            Name of the attribute, which must be in `names`.
        at : ndarray of int64
            Indices of the tags.
        """
        start, stop = self.span(attribute)
        return [self.data[a:b] if a >= 0 else b"" for a, b in zip(start[at].tolist(), stop[at].tolist(), strict=True)]

    def lengths(self, attribute: str, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sizes in bytes of the values of an attribute in the tags with the indices `at`; 0 if absent."""
        start, stop = self.span(attribute)
        return stop[at] - start[at]

    def names_at(self, attribute: str, at: NDArray[np.int64], encoding: str, maximum_bytes: int) -> list[str]:
        """Return the decoded values of an attribute in the given tags, with XML entities resolved.

        Parameters
        ----------
        attribute : str
            Name of the attribute, which must be in `names`.
        at : ndarray of int64
            Indices of the tags.
        encoding : str
            Encoding of the text, such as ``utf-8``.
        maximum_bytes : int
            Number of bytes to which each value is truncated before it is decoded.
        """
        texts = [value[:maximum_bytes].decode(encoding, "replace") for value in self.values(attribute, at)]
        return [unescape(text, _ENTITIES) if "&" in text else text for text in texts]

    def numbers(self, attribute: str, at: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the values of an attribute in the given tags as numbers.

        Parameters
        ----------
        attribute : str
            Name of the attribute, which must be in `names`.
        at : ndarray of int64, shape (k,)
            Indices of the tags.

        Returns
        -------
        values : ndarray of float64, shape (k,)
            Values; NaN if absent or not a number.
        broken : ndarray of bool, shape (k,)
            True for each value that is present but not a number.
        """
        start, stop = (column[at] for column in self.span(attribute))
        ends = np.empty(len(at), dtype=np.int64)
        values = kernels.cpu.text.parse_numbers(self.text, start, stop, ends, POINT)
        broken = (start >= 0) & (ends != stop)
        values[(start < 0) | broken] = np.nan
        return values, broken

    def whole_numbers(self, attribute: str, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the values of an attribute in the tags `at` as integers from 0; -1 for missing and other values."""
        values, _ = self.numbers(attribute, at)
        usable = (values >= 0) & (values < 1e15) & (values == np.floor(values))
        return np.where(usable, values, -1).astype(np.int64)

    def terms(self, attribute: str, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the seven-digit accessions in the values of an attribute, as integers.

        Parameters
        ----------
        attribute : str
            Name of the attribute, which must be in `names`.
        at : ndarray of int64, shape (k,)
            Indices of the tags.

        Returns
        -------
        ndarray of int64, shape (k,)
            Numbers, such as 1000511 for ``MS:1000511``; -1 for missing and other values.
        """
        start, stop = (column[at] for column in self.span(attribute))
        usable = np.flatnonzero((start >= 0) & (stop - start == 10))
        digits = self.text[start[usable, None] + np.arange(3, 10)].astype(np.int64) - 48
        usable, digits = (part[((digits >= 0) & (digits <= 9)).all(axis=1)] for part in (usable, digits))
        terms = np.full(len(at), -1, dtype=np.int64)
        terms[usable] = digits @ 10 ** np.arange(6, -1, -1)
        return terms


def check_tags(n: int, path: Path) -> None:
    """Raise an `InputError` if the number of tags `n` of a block of the file `path` is larger than `MAXIMUM_TAGS`."""
    if n > MAXIMUM_TAGS:
        raise InputError(
            path,
            f"more than {MAXIMUM_TAGS:,} XML tags in one spectrum",
            remedy="Convert it again",
        )
