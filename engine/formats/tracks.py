"""Reader of sequence features in GFF3 and BED files, which are drawn along alignments."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.unfolding import FEATURES

__all__ = ["Track", "TrackFeature", "read_track"]

_CHUNK_BYTES = 1 << 20
_MAXIMUM_LINE, _MAXIMUM_PLACE = 1 << 16, (1 << 31) - 1
_MAXIMUM_NAME = 80
_MAXIMUM_SHOWN = 3
_HEADER = re.compile(r"(track|browser)(\s|$)")
_NAMES = ("Name", "gene", "locus_tag", "product", "ID")
"""Attributes of GFF3 that contain a readable name, in order of preference."""
_WHOLE = frozenset({"region", "chromosome", "databank_entry"})
"""Types of GFF3 features that represent the whole sequence."""


@dataclass(frozen=True)
class TrackFeature:
    """Feature of a sequence.

    Attributes
    ----------
    first, last : int
        First and last position, from 1, both included.
    strand : str
        ``+``, ``-`` or ``.``.
    name : str
        Name to show.
    kind : str
        Type of feature, such as ``gene``; '' in BED.
    """

    first: int
    last: int
    strand: str
    name: str
    kind: str


@dataclass(frozen=True)
class Track:
    """Features in a file.

    Attributes
    ----------
    name : str
        Name of the file.
    features : dict of str to list of TrackFeature
        Features by the name of their sequence, sorted by first position.
    """

    name: str
    features: dict[str, list[TrackFeature]]
    warning: str = ""
    """Sentence about skipped lines, or ''."""

    def __len__(self) -> int:
        return sum(map(len, self.features.values()))

    def within(self, sequence: str, first: int, last: int, limit: int) -> list[TrackFeature]:
        """Return up to `limit` features of a sequence that overlap a range.

        Parameters
        ----------
        sequence : str
            Name of the sequence; if it has no features, its first word is looked up.
        first, last : int
            First and last position of the range, from 1.
        limit : int
            Maximum number of features.

        Returns
        -------
        list of TrackFeature
            Features in order of their first positions.
        """
        overlapping: list[TrackFeature] = []
        for feature in self.features.get(sequence) or self.features.get(sequence.split(" ", 1)[0]) or []:
            if feature.first > last or len(overlapping) == limit:
                break
            if feature.last >= first:
                overlapping.append(feature)
        return overlapping


def read_track(path: str | Path, *, progress: Progress | None = None) -> Track:
    """Read a GFF3 file, up to its section ``##FASTA``, or a BED file with at least three columns, plain or gzipped.

    Features that represent a whole sequence, such as a chromosome, are skipped; invalid lines are skipped and counted.

    Parameters
    ----------
    path : str or Path
        File.
    progress : Progress, optional
        Progress, which is checked for cancellation.

    Raises
    ------
    InputError
        If the file is missing, or has too many features or no valid features.
    Cancelled
        If the user cancels.
    """
    path, progress = Path(path), progress or Progress()
    features: dict[str, list[TrackFeature]] = {}
    n, n_unread = 0, 0
    unread: list[tuple[int, str]] = []
    with ByteSource(path) as source:
        progress.stage("Reading the track", source.size)
        for number, line in _lines(source, progress):
            if line.startswith(("##FASTA", ">")):
                break
            if not line.strip() or line.startswith("#"):
                continue
            placed = _parse_bed(line) or _parse_gff(line)
            if placed is None:
                if not _HEADER.match(line):
                    n_unread += 1
                    unread += [(number, line)] if n_unread <= _MAXIMUM_SHOWN else []
                continue
            name, feature = placed
            if feature.kind in _WHOLE:
                continue
            n += 1
            source.unfolding.add(FEATURES, 1, place=f"line {number}")
            features.setdefault(name, []).append(feature)
    if not n and unread:
        number, line = unread[0]
        raise InputError(path, f"is not BED or GFF3: {shortened(line)}", place=f"line {number}", remedy="Give a GFF3 or BED file")
    if not n:
        raise InputError(path, "has no features", remedy="Give a GFF3 or BED file")
    for of_sequence in features.values():
        of_sequence.sort(key=lambda feature: (feature.first, -feature.last))
    return Track(path.name, features, _left_out(path, n_unread, unread))


def _left_out(path: Path, n: int, first: Sequence[tuple[int, str]]) -> str:
    """Return a sentence about `n` skipped lines, which quotes the lines `first`; '' if `n` is 0."""
    if not n:
        return ""
    shown = "; ".join(f"line {number}: {shortened(line, 60)!r}" for number, line in first)
    lines = f"{n:,} {'line is' if n == 1 else 'lines are'}"
    return f"{path}: {lines} left out: neither BED nor GFF3 ({shown}). Correct the positions in these lines"


def _lines(source: ByteSource, progress: Progress) -> Iterator[tuple[int, str]]:
    number, rest = 0, b""
    while chunk := source.read(_CHUNK_BYTES):
        progress.check()
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        if len(rest) > _MAXIMUM_LINE:
            raise InputError(source.path, "has a line that is too long", place=f"line {number + 1}", remedy="Give a GFF3 or BED file")
        for line in lines:
            number += 1
            yield number, line.decode("utf-8", "replace").rstrip("\r")
    if rest:
        yield number + 1, rest.decode("utf-8", "replace").rstrip("\r")


def _parse_gff(line: str) -> tuple[str, TrackFeature] | None:
    """Return the sequence and the feature of a line of GFF3; None if the line is invalid."""
    parts = line.split("\t")
    position = _place(parts[3], parts[4], 0) if len(parts) == 9 else None
    if position is None:
        return None
    attributes = dict(entry.split("=", 1) for entry in parts[8].split(";") if "=" in entry)
    name = next((unquote(attributes[key]) for key in _NAMES if attributes.get(key)), parts[2])
    return unquote(parts[0]), TrackFeature(*position, _strand(parts[6]), _shown(name), _shown(parts[2]))


def _parse_bed(line: str) -> tuple[str, TrackFeature] | None:
    """Return the sequence and the feature in a line of BED, separated by tabs or blanks; None if the line is invalid."""
    for parts in (line.split("\t"), line.split()):
        position = _place(parts[1], parts[2], 1) if len(parts) >= 3 else None
        if position is not None:
            name, strand = (parts[at] if len(parts) > at and parts[at] != "." else "" for at in (3, 5))
            return parts[0], TrackFeature(*position, _strand(strand), _shown(name), "")
    return None


def _place(first: str, last: str, counted_from: int) -> tuple[int, int] | None:
    """Return the first and the last position, from 1, of a range that a file gives as two texts; None if they are not a valid range.

    `counted_from` is added to the first number: 0 for GFF3, which counts from 1; 1 for BED, which counts from 0 and excludes the end.
    """
    if not (first.isascii() and first.isdigit() and last.isascii() and last.isdigit() and len(first) < 11 and len(last) < 11):
        return None
    begin, end = int(first) + counted_from, int(last)
    return (begin, max(begin, end)) if 1 <= begin <= end + counted_from <= _MAXIMUM_PLACE else None


def _strand(text: str) -> str:
    return text if text in ("+", "-") else "."


def _shown(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text[:_MAXIMUM_NAME]).strip()
