"""Design of an experiment: the sample and condition of each file or label channel."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError, ParameterError, shortened
from proteoscope.engine.formats.separated_rows import separated_rows
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.digests import copy_text
from proteoscope.engine.quantification.labels import Label, label
from proteoscope.engine.quantification.parameters import QuantificationParameters

__all__ = ["BLOCKS", "Design", "DesignRow", "Sample", "design_of_files", "planned_design", "read_design"]

BLOCKS = ("plex", "batch", "subject")
"""Columns of a design that are blocking factors of the comparison."""
_COLUMNS = ("file", "sample", "condition", "replicate")
_MAXIMUM_REPLICATE, _MAXIMUM_CHARACTERS = 1_000_000, 1000
_REMEDY = "Write a tab-separated table with the columns file, sample, condition and replicate"
_LABEL_REMEDY = "Write a tab-separated table with the columns file, channel, sample, condition and replicate"
_SUFFIXES = (".gz", ".mzml", ".mzxml", ".mgf", ".ms2", ".d", ".raw", ".xml")


class Sample(NamedTuple):
    """Sample of a design.

    Attributes
    ----------
    name : str
        Name of the sample.
    condition : str
        Name of the condition; '' if none.
    replicate : int
        Number of the replicate within the condition; 0 without a condition.
    plex, batch, subject : str
        Level of each blocking factor; '' if none.
    """

    name: str
    condition: str
    replicate: int
    plex: str = ""
    batch: str = ""
    subject: str = ""


class DesignRow(NamedTuple):
    """File, or label channel of a file, that is assigned to a sample: indices of file, sample and channel (-1 without a label)."""

    file: int
    sample: int
    channel: int = -1


@dataclass(frozen=True)
class Design:
    """Samples with their files or label channels; several files of one sample are fractions, whose amounts are added.

    Attributes
    ----------
    samples : tuple of Sample
        Samples of the experiment.
    parts : tuple of DesignRow
        Files or channels with their samples.
    left_out : tuple of str
        Names of files of the identification that the design does not contain.
    unused : tuple of str
        Names of columns of the table that are not used.
    """

    samples: tuple[Sample, ...]
    parts: tuple[DesignRow, ...]
    left_out: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[str, ...]:
        """Conditions in the order of first occurrence."""
        return tuple(dict.fromkeys(sample.condition for sample in self.samples if sample.condition))

    @property
    def plexes(self) -> NDArray[np.int64]:
        """Plex index of each sample, (samples,) int64.

        Samples that share files are in one plex. Without labels, each sample is a separate plex.
        """
        result = np.arange(len(self.samples))
        for file in {part.file for part in self.parts}:
            samples = np.unique([part.sample for part in self.parts if part.file == file])
            result[np.isin(result, result[samples])] = result[samples].min()
        return np.unique(result, return_inverse=True)[1]

    @property
    def look_alikes(self) -> tuple[tuple[str, str], ...]:
        """Pairs of conditions, and pairs of samples, whose names differ only in case, blanks or the encoding of characters."""
        result = []
        for names in (self.conditions, tuple(sample.name for sample in self.samples)):
            first: dict[str, str] = {}
            for name in names:
                plain = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
                if first.setdefault(plain, name) != name:
                    result.append((first[plain], name))
        return tuple(result)

    def members(self, n_files: int) -> NDArray[np.int64]:
        """Return a matrix, (n_files, samples) int64, which is 1 if the file contains the sample and 0 otherwise."""
        result = np.zeros((n_files, len(self.samples)), np.int64)
        for part in self.parts:
            result[part.file, part.sample] = 1
        return result

    def groups(self, requested: Sequence[str], reference: str = "") -> tuple[str, ...]:
        """Return the conditions to compare; an empty tuple if there are fewer than two.

        Parameters
        ----------
        requested : sequence of str
            Names of conditions; if empty, all conditions with at least two samples except `reference`.
        reference : str
            Name of the condition by which plexes are scaled.

        Raises
        ------
        ParameterError
            If a requested condition is not in the design or has only one sample, or only one condition is requested.
        """
        count = {name: sum(sample.condition == name for sample in self.samples) for name in self.conditions}
        for name in requested:
            if name not in count:
                raise ParameterError(f"conditions = '{shortened(name)}': the design has the conditions {', '.join(count) or 'none'}")
            if count[name] < 2:
                raise ParameterError(f"conditions = '{shortened(name)}' has one replicate; a test needs at least two")
        if len(requested) == 1:
            raise ParameterError(f"conditions = '{shortened(requested[0])}': a comparison needs two conditions; name another")
        chosen = tuple(requested) or tuple(name for name in count if count[name] > 1 and name != reference)
        return chosen if len(chosen) > 1 else ()


def design_of_files(files: Sequence[str], label: Label | None = None) -> Design:
    """Return a design without conditions in which each file, or each label channel of each file, is a sample."""
    names = _make_distinct([_stem(file) for file in files])
    if label is None:
        return Design(tuple(Sample(name, "", 0) for name in names), tuple(DesignRow(number, number) for number in range(len(names))))
    samples = tuple(Sample(f"{name}_{channel}", "", 0) for name in names for channel in label.channels)
    k = len(label)
    return Design(samples, tuple(DesignRow(number // k, number, number % k) for number in range(len(samples))))


def read_design(path: Path, files: Sequence[str], label: Label | None = None, copies: Mapping[str, str] | None = None) -> Design:
    """Read the design of an experiment from a table.

    Parameters
    ----------
    path : Path
        Tab-separated table of samples.
    files : sequence of str
        Paths of the spectrum files of the identification; the design contains their paths or names, with or without suffix.
    label : Label or None
        Isobaric label with channels that a column of the design names; None without a label.
    copies : mapping of str to str, optional
        Paths of further files of the identification with the same content as one of `files`, mapped to the path of that file.

    Returns
    -------
    Design

    Raises
    ------
    InputError
        If the table is invalid; contains an unknown file; contains a file, a channel of a file or a replicate of a condition twice; assigns
        two conditions, or two channels of a file, to a sample; or assigns different samples to the files of a plex. The message contains
        the line.
    """
    rows = separated_rows(path, _REMEDY)
    header = [cell.strip().lower() for cell in rows[0]]
    at = _columns(path, header, label)
    numbers, same = _index_names(files), _copy_names(copies or {}, files)
    samples: dict[str, tuple[Sample, int]] = {}
    order: dict[str, int] = {}
    lines: dict[tuple[int, int], int] = {}
    result = []
    for line, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        place = f"line {line}"
        cells = _cells(path, row, at, place)
        number = _file_number(path, cells["file"], files, numbers, same, place)
        channel = -1 if label is None else _channel(path, cells["channel"], label, place)
        if (number, channel) in lines:
            of = "" if label is None else f"channel {label.channels[channel]} of "
            what = f"names {of}file {shortened(cells['file'])} a second time, after line {lines[number, channel]}"
            raise InputError(path, what, place=place, remedy="Assign it to one sample")
        lines[number, channel] = line
        replicate, blocks = _replicate(path, cells["replicate"], place), [cells.get(name, "") for name in BLOCKS]
        sample = Sample(cells["sample"], cells["condition"], replicate, *blocks)
        before, first = samples.setdefault(sample.name, (sample, line))
        if before != sample:
            raise InputError(
                path,
                f"sample '{shortened(sample.name)}' has other values than in line {first}",
                place=place,
                remedy="Use the same condition, replicate and blocks in all lines of a sample",
            )
        order.setdefault(sample.name, len(order))
        result.append(DesignRow(number, order[sample.name], channel))
    if not result:
        raise InputError(path, "names no file", remedy=_REMEDY)
    chosen = tuple(sample for sample, _ in samples.values())
    _check_replicates(path, chosen)
    if label is not None:
        _check_plexes(path, result, chosen, files)
    named = {row.file for row in result}
    left_out = tuple(PurePath(file).name for number, file in enumerate(files) if number not in named)
    unused = tuple(shortened(rows[0][column].strip()) for column, name in enumerate(header) if name and name not in at)
    design = Design(chosen, tuple(result), left_out, unused)
    return design if label is None else _with_plexes(path, design)


def planned_design(
    path: Path | None, files: Sequence[str], copies: Mapping[str, str], parameters: QuantificationParameters, progress: Progress
) -> Design:
    """Return the design in a file, or, without a file, a design of the identification's spectrum files; warn about unused information.

    Parameters
    ----------
    path : Path or None
        Table of samples, or None.
    files, copies
        See `read_design`.
    parameters : QuantificationParameters
        Parameters of the quantification.
    progress : Progress
        Progress, which receives the warnings.

    Returns
    -------
    Design

    Raises
    ------
    InputError
        If the file is not a valid design (see `read_design`).
    ParameterError
        If a plex lacks the reference condition.
    """
    kit = label(parameters.label) if parameters.method == "tmt" else None
    design = design_of_files(files, kit) if path is None else read_design(path, files, kit, copies)
    if kit is not None and parameters.reference:
        _check_reference(design, parameters.reference)
    for copy, original in copies.items():
        progress.message(f"{copy_text(copy, original)}: it is counted once", "warning")
    for name in design.left_out:
        progress.message(f"{name} is left out: the design does not contain it", "warning")
    if design.unused:
        progress.message(
            f"Columns of the design that are not used: {', '.join(design.unused)}; blocks of the comparison are {', '.join(BLOCKS)}",
            "warning",
        )
    for first, second in design.look_alikes:
        progress.message(
            f"The design has {shortened(first)} and {shortened(second)}, which differ only in case or in the encoding of characters:"
            " they count as different names",
            "warning",
        )
    return design


def _check_reference(design: Design, reference: str) -> None:
    """Raise `ParameterError` if a plex lacks the reference condition."""
    if reference not in design.conditions:
        raise ParameterError(
            f"reference = '{shortened(reference)}': the design has the conditions {', '.join(design.conditions) or 'none'}"
        )
    has = {int(plex) for plex, sample in zip(design.plexes, design.samples, strict=True) if sample.condition == reference}
    for each, plex in zip(design.samples, design.plexes.tolist(), strict=True):
        if plex not in has:
            raise ParameterError(
                f"reference = '{shortened(reference)}': the plex of sample '{shortened(each.name)}' has no channel of this condition"
            )


def _with_plexes(path: Path, design: Design) -> Design:
    """Return the design with the plex of each sample: from a column if there is one, otherwise derived from the files.

    Raises
    ------
    InputError
        If the column contradicts the files: samples in channels of the same files are one plex, and must be one plex in the column.
    """
    plexes = design.plexes
    if plexes.max(initial=0) == 0 and not any(sample.plex for sample in design.samples):
        return design
    if any(sample.plex for sample in design.samples):
        pairs = {(sample.plex, int(number)) for sample, number in zip(design.samples, plexes, strict=True)}
        if len(pairs) != len({name for name, _ in pairs}) or len(pairs) != len({number for _, number in pairs}):
            raise InputError(
                path,
                "has a column plex that contradicts the files: samples in channels of the same files form one plex",
                remedy="Correct this column, or leave it out: plexes follow from the files",
            )
        return design
    return replace(
        design, samples=tuple(sample._replace(plex=str(n + 1)) for sample, n in zip(design.samples, plexes.tolist(), strict=True))
    )


def _copy_names(copies: Mapping[str, str], files: Sequence[str]) -> dict[str, str]:
    """Return the name of the original file for each name of a copy (path, file name or stem), without names that `files` have too."""
    numbers = _index_names(files)
    result: dict[str, str] = {}
    for path, original in copies.items():
        for name in (path, PurePath(path).name, _stem(path)):
            if name not in numbers:
                result[name] = PurePath(original).name
    return result


def _columns(path: Path, header: Sequence[str], label: Label | None) -> dict[str, int]:
    """Return the indices of the table's columns by name."""
    names = _COLUMNS if label is None else (*_COLUMNS, "channel")
    for name in names:
        if header.count(name) != 1:
            reason = f"has no column '{name}'" if name not in header else f"has the column '{name}' twice"
            raise InputError(path, reason, place="line 1", remedy=_REMEDY if label is None else _LABEL_REMEDY)
    if label is None and "channel" in header:
        raise InputError(
            path,
            "has channels of isobaric labels, which this method does not use",
            place="line 1",
            remedy="Quantify with --method tmt, or leave out this column",
        )
    twice = next((name for name in BLOCKS if header.count(name) > 1), None)
    if twice is not None:
        raise InputError(path, f"has the column '{twice}' twice", place="line 1", remedy="Leave one of them out")
    return {name: header.index(name) for name in (*names, *(name for name in BLOCKS if name in header))}


def _cells(path: Path, row: Sequence[str], at: Mapping[str, int], place: str) -> dict[str, str]:
    """Return the cells of a row by column name."""
    cells = {name: row[column].strip() if column < len(row) else "" for name, column in at.items()}
    strange = next((name for name, cell in cells.items() if len(cell) > _MAXIMUM_CHARACTERS or not cell.isprintable()), None)
    if strange is not None:
        raise InputError(
            path,
            f"has a {strange} of more than {_MAXIMUM_CHARACTERS} characters, or with unprintable characters",
            place=place,
            remedy=_REMEDY,
        )
    empty = next((name for name, cell in cells.items() if not cell and name not in BLOCKS), None)
    if empty is not None:
        raise InputError(path, f"has no {empty}", place=place, remedy=_REMEDY)
    return cells


def _file_number(path: Path, name: str, files: Sequence[str], numbers: Mapping[str, int], copies: Mapping[str, str], place: str) -> int:
    number = numbers.get(name, numbers.get(_stem(name), -1))
    if number == -1 and (original := copies.get(name, copies.get(_stem(name)))):
        raise InputError(
            path,
            f"'{shortened(name)}' has the same content as {shortened(original)}, and is counted once",
            place=place,
            remedy="Leave out this line, or identify the intended file",
        )
    if number < 0:
        listed = ", ".join(shortened(PurePath(file).name) for file in files[:5])
        why = "is the name of several files" if number == -2 else "is not a file of the identification"
        raise InputError(path, f"'{shortened(name)}' {why}", place=place, remedy=f"Use a file of the identification: {listed}")
    return number


def _channel(path: Path, name: str, label: Label, place: str) -> int:
    number = label.number(name)
    if number < 0:
        channels = ", ".join(label.channels)
        raise InputError(path, f"'{shortened(name)}' is not a channel of {label.name}", place=place, remedy=f"Use one of {channels}")
    return number


def _check_plexes(path: Path, parts: Sequence[DesignRow], samples: Sequence[Sample], files: Sequence[str]) -> None:
    """Raise an error unless files that have a sample in common have the same samples in the same channels (fractions of one plex)."""
    channels_of_file: dict[int, dict[int, int]] = {}
    first: dict[int, int] = {}
    for part in parts:
        mine = channels_of_file.setdefault(part.file, {})
        if part.sample in mine.values():
            name = shortened(samples[part.sample].name)
            raise InputError(path, f"gives sample '{name}' two channels of one file", remedy="Assign each channel to a separate sample")
        mine[part.channel] = part.sample
        first.setdefault(part.sample, part.file)
    for file, mine in channels_of_file.items():
        for sample in mine.values():
            if channels_of_file[first[sample]] != mine:
                names = " and ".join(shortened(PurePath(files[number]).name) for number in (first[sample], file))
                raise InputError(
                    path,
                    f"assigns sample '{shortened(samples[sample].name)}' to {names}, which differ in some channels",
                    remedy="Fractions of a plex have the same samples in the same channels; rename the samples of other plexes",
                )


def _replicate(path: Path, text: str, place: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    if not 1 <= number <= _MAXIMUM_REPLICATE:
        raise InputError(
            path, f"'{shortened(text)}' is not a replicate number", place=place, remedy="Number the samples of a condition from 1"
        )
    return number


def _check_replicates(path: Path, samples: Sequence[Sample]) -> None:
    first_rows: dict[tuple[str, int], str] = {}
    for sample in samples:
        other = first_rows.setdefault((sample.condition, sample.replicate), sample.name)
        if other != sample.name:
            names = f"{shortened(other)} and {shortened(sample.name)}"
            raise InputError(
                path,
                f"has two samples, {names}, as replicate {sample.replicate} of {shortened(sample.condition)}",
                remedy="Number the samples of a condition from 1; use one sample name for all fractions of a sample",
            )


def _index_names(files: Sequence[str]) -> dict[str, int]:
    """Return the index of each file by its names (path, file name and stem); -2 for a name of several files."""
    result: dict[str, int] = {}
    for number, file in enumerate(files):
        for name in dict.fromkeys((file, PurePath(file).name, _stem(file))):
            result[name] = -2 if result.get(name, number) != number else number
    return result


def _stem(file: str) -> str:
    """Return a file name without suffixes of spectrum formats."""
    name = PurePath(file).name
    while name.lower().endswith(_SUFFIXES) and "." in name[1:]:
        name = name[: name.rindex(".")]
    return name


def _make_distinct(names: Sequence[str]) -> list[str]:
    """Return the names with a number added to repeated names, so that all are distinct."""
    taken_names: set[str] = set()
    result = []
    for name in names:
        number, unique = 2, name
        while unique in taken_names:
            unique, number = f"{name}_{number}", number + 1
        taken_names.add(unique)
        result.append(unique)
    return result
