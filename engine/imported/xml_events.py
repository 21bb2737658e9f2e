"""XML of result files, element by element, with the guards of the house: no declared entities, no other files, bounded elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.unfolding import TAGS

__all__ = ["CHECKED_EVERY", "SourceBytes", "broken_xml", "elements", "number_of", "whole_number_of"]

_PIECE = 1 << 16
CHECKED_EVERY = 2000
"""So many elements are read between two looks at whether the user asked to stop."""


class SourceBytes:
    """The bytes of a source as lxml and Pyteomics read them, with the progress told. What was recognised declares no document type: its
    root stands in the part that `proteoscope.engine.formats.recognition` looked through for one.

    Pyteomics' own readers serve pepXML alone (`proteoscope.engine.imported.pepxml`). That of X!Tandem stops at real files (``KeyError:
    'Xdata'``). That of mzIdentML had not followed the references of 2,000 matches in 100 s. That of idXML finds proteins in an unpacked
    file alone, and leads back neither to the run of a match nor to the files that were merged in it, of which its spectrum is.
    """

    def __init__(self, source: ByteSource, progress: Progress) -> None:
        self._source, self._progress, self._told = source, progress, 0

    def read(self, n: int = _PIECE) -> bytes:
        """The next bytes, so many at most; none at the end.

        Raises
        ------
        InputError : the file has more tags than its size allows.
        """
        piece = self._source.read(min(n, _PIECE) if n > 0 else _PIECE)
        self._source.unfolding.add(TAGS, piece.count(b"<"))
        self._progress.advance(self._source.consumed - self._told)
        self._told = self._source.consumed
        return piece

    def tell(self) -> int:
        """0: a source is read once, from its beginning."""
        return 0

    def seek(self, position: int) -> None:
        """Nothing, before the first byte is read: Pyteomics goes to the beginning before it reads."""


def elements(source: ByteSource, progress: Progress, names: Sequence[str], *, kept: Sequence[str] = ()) -> Iterator[tuple[str, Any]]:
    """The elements of these names (without namespace) when they end, one after the other, whatever their depth.

    What has ended is forgotten, save within elements of the names `kept`, which are whole when they come and forgotten afterwards.

    Raises
    ------
    InputError : the XML is broken or cut off. Cancelled : the user asked to stop.
    """
    from lxml import etree  # slow to import: only XML needs it

    wanted, whole = set(names), set(kept)
    depth, n = 0, 0
    events = etree.iterparse(
        SourceBytes(source, progress), events=("start", "end"), resolve_entities=False, no_network=True, load_dtd=False,
        remove_comments=True, remove_pis=True, huge_tree=False,
    )  # fmt: skip
    try:
        for event, element in events:
            tag = element.tag
            if not isinstance(tag, str):
                continue
            name = tag.rpartition("}")[2]
            if event == "start":
                depth += name in whole
                continue
            depth -= name in whole
            if name in wanted:
                n += 1
                if n % CHECKED_EVERY == 0:
                    progress.check()
                yield name, element
            if depth == 0:
                element.clear()
                parent = element.getparent()
                if parent is not None:
                    while element.getprevious() is not None:
                        del parent[0]
    except etree.XMLSyntaxError as error:
        raise broken_xml(source, error) from None


def broken_xml(source: ByteSource, error: Any) -> InputError:
    """What is told of lxml's `XMLSyntaxError`."""
    said = shortened(str(error.msg or "").split(", line")[0], 120)
    return InputError(
        source.path, f"the XML is broken or cut off ({said})", place=f"line {error.lineno or 0}", remedy="Copy it again, or write it again"
    )


def number_of(source: ByteSource, element: Any, name: str, place: str, default: float = float("nan")) -> float:
    """An attribute of an element, or of the dictionary that Pyteomics made of it, as a number.

    Raises
    ------
    InputError : it is there, and no number.
    """
    value = element.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        return default
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        raise InputError(
            source.path, f"{name}={shortened(repr(value), 60)} is no number", place=place, remedy="Write the file again"
        ) from None


def whole_number_of(source: ByteSource, element: Any, name: str, place: str, default: int) -> int:
    """An attribute as a whole number; `default` where it is none.

    Raises
    ------
    InputError : it is there, and no number.
    """
    value = number_of(source, element, name, place)
    return int(value) if value == value and abs(value) < 2**53 else default
