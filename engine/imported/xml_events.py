"""Safe reading of XML result files element by element: no declared entities, no other files, elements of limited size."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.formats.numbers import COMMA, COMMA_WARNING, POINT, is_missing, number_or_nan, read_number
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.match_lists.identifications import Identifications
from proteoscope.engine.unfolding import TAGS

__all__ = ["CHECKED_EVERY", "NumberReader", "SourceBytes", "UnreadableValueError", "broken_xml", "elements", "read_with_decimal_sign"]

_CHUNK = 1 << 16
_LARGEST_WHOLE = 2**53
CHECKED_EVERY = 2000
"""Number of elements between checks for cancellation."""


class SourceBytes:
    """File object from which lxml and Pyteomics read the bytes of a source; reading advances the progress.

    The file has no document type declaration: `proteoscope.engine.formats.recognition` checked this when it detected the format.

    Pyteomics reads only pepXML (`proteoscope.engine.imported.pepxml`). Its X!Tandem reader fails on real files (``KeyError: 'Xdata'``). Its
    mzIdentML reader had not resolved the references of 2,000 matches in 100 s. Its idXML reader finds proteins only in uncompressed files,
    and resolves neither the run of a match nor merged files.
    """

    def __init__(self, source: ByteSource, progress: Progress) -> None:
        self._source, self._progress, self._reported = source, progress, 0

    def read(self, n: int = _CHUNK) -> bytes:
        """Return up to `n` further bytes; an empty result at the end.

        Raises
        ------
        InputError
            If the file contains more tags than its size allows.
        """
        chunk = self._source.read(min(n, _CHUNK) if n > 0 else _CHUNK)
        self._source.unfolding.add(TAGS, chunk.count(b"<"))
        self._progress.advance(self._source.consumed - self._reported)
        self._reported = self._source.consumed
        return chunk

    def tell(self) -> int:
        """Return 0, since a source is read once, from its beginning."""
        return 0

    def seek(self, position: int) -> None:
        """Ignore the seek to the beginning that Pyteomics performs before reading."""


def elements(source: ByteSource, progress: Progress, names: Sequence[str], *, whole_names: Sequence[str] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the elements with the given names (without namespace), at any depth, each when its end is reached.

    Elements are freed after they end. Only elements named in `whole_names` retain their content until they are yielded.

    Parameters
    ----------
    source : ByteSource
        XML file.
    progress : Progress
        Progress of the run.
    names : sequence of str
        Names of the elements to yield.
    whole_names : sequence of str
        Names of elements whose content is needed.

    Yields
    ------
    str
        Name of the element.
    lxml element
        The element.

    Raises
    ------
    InputError
        If the XML is malformed or truncated.
    Cancelled
        If the user cancelled.
    """
    from lxml import etree  # slow to import: only XML needs it

    wanted, whole = set(names), set(whole_names)
    depth, n = 0, 0
    events = etree.iterparse(
        SourceBytes(source, progress),
        events=("start", "end"),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
        huge_tree=False,
    )
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
    """Convert lxml's `XMLSyntaxError` to an `InputError`."""
    said = shortened(str(error.msg or "").split(", line")[0], 120)
    return InputError(
        source.path, f"the XML is broken or cut off ({said})", place=f"line {error.lineno or 0}", remedy="Copy it again, or write it again"
    )


class UnreadableValueError(ValueError):
    """A value of a single record is unreadable.

    Attributes
    ----------
    reason : str
        Reason why the value is unreadable, the same for all records with this error.
    value : str
        Text of the value in the file, shortened.
    """

    def __init__(self, reason: str, value: str) -> None:
        super().__init__(f"{reason}: {value!r}")
        self.reason, self.value = reason, shortened(value, 60)


class NumberReader:
    """Reader of the numbers in a file in which all numbers have the same decimal sign.

    Parameters
    ----------
    decimal : int
        Decimal sign, `POINT` or `COMMA`.
    """

    def __init__(self, decimal: int = POINT) -> None:
        self.decimal = decimal
        self._has_points = self._has_commas = False

    @property
    def are_commas_decimal(self) -> bool:
        """True if the numbers so far include a decimal comma and no point."""
        return self._has_commas and not self._has_points

    def value(self, text: str, name: str) -> float:
        """Convert a text to a number; NaN if the text means a missing value."""
        if not text.strip() or is_missing(text.encode()):
            return math.nan
        try:
            number = read_number(text, self.decimal)
        except ValueError:
            self._has_commas |= "," in text and not math.isnan(number_or_nan(text, COMMA))
            raise UnreadableValueError(f"{shortened(name, 60)} is not a number", text) from None
        self._has_points |= self.decimal == POINT and "." in text
        return number

    def number(self, element: Any, name: str, default: float = math.nan) -> float:
        """Return an attribute of an element, or an item of a mapping, as a number; `default` if it is missing or NaN.

        Raises
        ------
        UnreadableValueError
            If the value is not a number.
        """
        value = element.get(name)
        number = math.nan if value is None else value if isinstance(value, int | float) else self.value(value, name)
        return default if math.isnan(number) else number

    def whole(self, element: Any, name: str, default: int) -> int:
        """Return an attribute as an integer; `default` if it is missing.

        Raises
        ------
        UnreadableValueError
            If the value is not an integer, or too large.
        """
        number = self.number(element, name)
        if math.isnan(number):
            return default
        if abs(number) >= _LARGEST_WHOLE or number != math.floor(number):
            raise UnreadableValueError(f"{name} is not a whole number", str(element.get(name)))
        return int(number)


Read = Callable[[ByteSource, NumberReader, Progress], Identifications]


def read_with_decimal_sign(source: ByteSource, progress: Progress, read: Read) -> Identifications:
    """Read a file with decimal points; if its numbers contain decimal commas but no points, warn and read the file again with commas.

    Parameters
    ----------
    source : ByteSource
        The file.
    progress : Progress
        Progress of reading.
    read : callable
        Function that reads a file with a given `NumberReader`.

    Returns
    -------
    Identifications
    """
    numbers = NumberReader()
    result = read(source, numbers, progress)
    if not numbers.are_commas_decimal:
        return result
    progress.message(COMMA_WARNING.format(source.path), "warning")
    progress.stage(f"Reading {source.path.name}", source.size)
    with ByteSource(source.path) as again:
        return read(again, NumberReader(COMMA), progress)
