"""The design of an experiment: which file is which sample of which condition."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import NamedTuple

from engine.errors import InputError, ParameterError, shortened
from engine.formats.sources import ByteSource

__all__ = ["Design", "Part", "Sample", "design_of_files", "read_design"]

_COLUMNS = ("file", "sample", "condition", "replicate")
_MAXIMUM_BYTES, _MAXIMUM_ROWS, _MAXIMUM_REPLICATE, _MAXIMUM_LETTERS = 1 << 22, 20_000, 1_000_000, 1000
_REMEDY = "Write a tab-separated table with the columns file, sample, condition and replicate"
_SUFFIXES = (".gz", ".mzml", ".mzxml", ".mgf", ".ms2", ".d", ".raw", ".xml")


class Sample(NamedTuple):
    """A sample: its name, its condition (empty where none is told), and its number among those of the condition, 0 where none is told."""

    name: str
    condition: str
    replicate: int


class Part(NamedTuple):
    """What belongs to a sample: a file and the sample, by their numbers."""

    file: int
    sample: int


@dataclass(frozen=True)
class Design:
    """Samples, and the files that are of each; several of one sample are its fractions, and are added up.

    Attributes
    ----------
    left_out : names of files of the identification that the design does not name.
    """

    samples: tuple[Sample, ...]
    parts: tuple[Part, ...]
    left_out: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions, in the order in which they are first named."""
        return tuple(dict.fromkeys(one.condition for one in self.samples if one.condition))

    def groups(self, asked: Sequence[str]) -> tuple[str, ...]:
        """The conditions to compare: those that are asked for, or all that have two samples and more; none where there are fewer than two.

        Raises
        ------
        ParameterError : one that is asked for is not in the design, or has one sample alone, or it is the only one.
        """
        count = {name: sum(one.condition == name for one in self.samples) for name in self.conditions}
        for name in asked:
            if name not in count:
                raise ParameterError(f"groups = '{shortened(name)}': the design has the conditions {', '.join(count) or 'none'}")
            if count[name] < 2:
                raise ParameterError(f"groups = '{shortened(name)}' has one replicate, and no test can be made of it; give two and more")
        if len(asked) == 1:
            raise ParameterError(f"groups = '{shortened(asked[0])}' is one condition alone; name another that it is compared with")
        chosen = tuple(asked) or tuple(name for name in count if count[name] > 1)
        return chosen if len(chosen) > 1 else ()


def design_of_files(files: Sequence[str]) -> Design:
    """Each file a sample of its own, without conditions."""
    names = _different([_stem(file) for file in files])
    parts = tuple(Part(number, number) for number in range(len(names)))
    return Design(tuple(Sample(name, "", 0) for name in names), parts)


def read_design(path: Path, files: Sequence[str]) -> Design:
    """Read a design.

    Parameters
    ----------
    files : paths of the files of the identification, by which, or by whose names, with or without suffix, the design calls them.

    Raises
    ------
    InputError : the file is no such table, and in which line; it names a file that is not there, a file or a replicate of a condition
        twice, or one sample with two conditions.
    """
    rows = _rows(path)
    header = [cell.strip().lower() for cell in rows[0]]
    for name in _COLUMNS:
        if header.count(name) != 1:
            why = "has no column" if name not in header else "has twice the column"
            raise InputError(path, f"{why} {name}", place="line 1", remedy=_REMEDY)
    if "channel" in header:
        raise InputError(path, "has channels of isobaric labels, which are not read", place="line 1", remedy="Leave that column out")
    at = {name: header.index(name) for name in _COLUMNS}
    numbers = _numbers(files)
    samples: dict[str, tuple[Sample, int]] = {}
    order: dict[str, int] = {}
    lines: dict[int, int] = {}
    found = []
    for line, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        cells = {name: row[place].strip() if place < len(row) else "" for name, place in at.items()}
        place = f"line {line}"
        strange = next((name for name, cell in cells.items() if len(cell) > _MAXIMUM_LETTERS or not cell.isprintable()), None)
        if strange is not None:
            raise InputError(
                path, f"has a {strange} of more than {_MAXIMUM_LETTERS} letters, or that cannot be printed", place=place, remedy=_REMEDY
            )
        empty = next((name for name, cell in cells.items() if not cell), None)
        if empty is not None:
            raise InputError(path, f"has no {empty}", place=place, remedy=_REMEDY)
        number = numbers.get(cells["file"], numbers.get(_stem(cells["file"]), -1))
        if number < 0:
            known = ", ".join(shortened(PurePath(one).name) for one in files[:5])
            why = "is the name of several files" if number == -2 else "is no file of the identification"
            raise InputError(path, f"'{shortened(cells['file'])}' {why}", place=place, remedy=f"Its files are {known}")
        if number in lines:
            what = f"names file {shortened(cells['file'])} twice, as in line {lines[number]}"
            raise InputError(path, what, place=place, remedy="Give it one sample")
        lines[number] = line
        one = Sample(cells["sample"], cells["condition"], _replicate(path, cells["replicate"], place))
        before, first = samples.setdefault(one.name, (one, line))
        if before != one:
            raise InputError(
                path, f"tells otherwise of sample {shortened(one.name)} than line {first}", place=place, remedy="Tell one of both"
            )
        order.setdefault(one.name, len(order))
        found.append(Part(number, order[one.name]))
    if not found:
        raise InputError(path, "names no file", remedy=_REMEDY)
    chosen = tuple(one for one, _ in samples.values())
    _check_replicates(path, chosen)
    named = {one.file for one in found}
    left_out = tuple(PurePath(one).name for number, one in enumerate(files) if number not in named)
    return Design(chosen, tuple(found), left_out)


def _rows(path: Path) -> list[list[str]]:
    with ByteSource(path) as source:
        data = source.read(_MAXIMUM_BYTES + 1)
    if len(data) > _MAXIMUM_BYTES:
        raise InputError(path, f"is larger than the {_MAXIMUM_BYTES >> 20} MB of a design", remedy=_REMEDY)
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(path, "is no text in UTF-8", remedy=_REMEDY) from None
    if not lines or len(lines) > _MAXIMUM_ROWS or "\0" in lines[0]:
        raise InputError(path, "is empty" if not lines else f"is no table of at most {_MAXIMUM_ROWS:,} rows", remedy=_REMEDY)
    try:
        return list(csv.reader(lines, delimiter="\t"))
    except csv.Error as error:
        raise InputError(path, f"is no table: {error}", remedy=_REMEDY) from None


def _replicate(path: Path, text: str, place: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    if not 1 <= number <= _MAXIMUM_REPLICATE:
        raise InputError(path, f"'{shortened(text)}' is no replicate", place=place, remedy="Number the samples of a condition from 1")
    return number


def _check_replicates(path: Path, samples: Sequence[Sample]) -> None:
    known: dict[tuple[str, int], str] = {}
    for one in samples:
        other = known.setdefault((one.condition, one.replicate), one.name)
        if other != one.name:
            names = f"{shortened(other)} and {shortened(one.name)}"
            raise InputError(
                path, f"has two samples, {names}, as replicate {one.replicate} of {shortened(one.condition)}",
                remedy="Number the samples of a condition from 1; fractions of one sample have its name",
            )  # fmt: skip


def _numbers(files: Sequence[str]) -> dict[str, int]:
    """Numbers of files by whatever names them; -2 where that is the name of several."""
    found: dict[str, int] = {}
    for number, file in enumerate(files):
        for name in dict.fromkeys((file, PurePath(file).name, _stem(file))):
            found[name] = -2 if found.get(name, number) != number else number
    return found


def _stem(file: str) -> str:
    """The name of a file without the suffixes that formats of spectra have."""
    name = PurePath(file).name
    while name.lower().endswith(_SUFFIXES) and "." in name[1:]:
        name = name[: name.rindex(".")]
    return name


def _different(names: Sequence[str]) -> list[str]:
    """The names, those that came before with a number behind."""
    known: set[str] = set()
    found = []
    for name in names:
        number, one = 2, name
        while one in known:
            one, number = f"{name}_{number}", number + 1
        known.add(one)
        found.append(one)
    return found
