"""Read places on sequences from GFF3 and BED files, to be drawn beside what is aligned there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.unfolding import FEATURES

__all__ = ["Track", "TrackFeature", "read_track"]

_PIECE = 1 << 20
_MAXIMUM_LINE, _MAXIMUM_PLACE = 1 << 16, (1 << 31) - 1
_MAXIMUM_NAME = 80
_NAMES = ("Name", "gene", "locus_tag", "product", "ID")
"""Attributes of GFF3 that name a feature for people, the best first."""
_WHOLE = frozenset({"region", "chromosome", "databank_entry"})
"""Types of GFF3 that are the sequence itself."""


@dataclass(frozen=True)
class TrackFeature:
    """A place on a sequence. `first`, `last`: counted from 1, both belong to it. `strand`: ``+``, ``-`` or ``.``. `kind`: as ``gene``."""

    first: int
    last: int
    strand: str
    name: str
    kind: str


@dataclass(frozen=True)
class Track:
    """Features of a file by the names of their sequences, those of each by their first letter."""

    name: str
    features: dict[str, list[TrackFeature]]

    def __len__(self) -> int:
        return sum(map(len, self.features.values()))

    def within(self, sequence: str, first: int, last: int, most: int) -> list[TrackFeature]:
        """The first `most` features of a sequence that cover some of these letters. A sequence is known by its name up to a blank too."""
        found = self.features.get(sequence) or self.features.get(sequence.split(" ", 1)[0]) or []
        kept: list[TrackFeature] = []
        for feature in found:
            if feature.first > last or len(kept) == most:
                break
            if feature.last >= first:
                kept.append(feature)
        return kept


def read_track(path: str | Path, *, progress: Progress | None = None) -> Track:
    """Read a GFF3 file, up to its sequences, or a BED file of three columns or more, gzipped or not. Features that are the whole sequence
    are left out.

    Raises
    ------
    InputError : the file is missing, is neither, or has too many features; named with its line.
    Cancelled : the user asked to stop.
    """
    path, progress = Path(path), progress or Progress()
    features: dict[str, list[TrackFeature]] = {}
    n, is_gff = 0, None
    with ByteSource(path) as source:
        progress.stage("Reading the track", source.size)
        for number, line in _lines(source, progress):
            if line.startswith(("##FASTA", ">")):
                break
            if not line.strip() or line.startswith(("#", "track", "browser")):
                continue
            parts = line.split("\t")
            if is_gff is None:
                is_gff = len(parts) == 9 and parts[3].isdigit() and parts[4].isdigit()
            found = _of_gff(parts) if is_gff else _of_bed(parts)
            if found is None:
                kind = "GFF3" if is_gff else "BED or GFF3"
                raise InputError(path, f"is no line of {kind}: {shortened(line)}", place=f"line {number}", remedy="Give a GFF3 or BED file")
            if found.kind in _WHOLE:
                continue
            n += 1
            source.unfolding.add(FEATURES, 1, place=f"line {number}")
            features.setdefault(parts[0], []).append(found)
    if not n:
        raise InputError(path, "has no features", remedy="Give a GFF3 or BED file")
    for some in features.values():
        some.sort(key=lambda one: (one.first, -one.last))
    return Track(path.name, features)


def _lines(source: ByteSource, progress: Progress) -> Iterator[tuple[int, str]]:
    number, rest = 0, b""
    while piece := source.read(_PIECE):
        progress.check()
        lines = (rest + piece).split(b"\n")
        rest = lines.pop()
        if len(rest) > _MAXIMUM_LINE:
            raise InputError(source.path, "has a line that is too long", place=f"line {number + 1}", remedy="Give a GFF3 or BED file")
        for line in lines:
            number += 1
            yield number, line.decode("utf-8", "replace").rstrip("\r")
    if rest:
        yield number + 1, rest.decode("utf-8", "replace").rstrip("\r")


def _of_gff(parts: list[str]) -> TrackFeature | None:
    if len(parts) != 9:
        return None
    place = _place(parts[3], parts[4], 0)
    if place is None:
        return None
    attributes = dict(one.split("=", 1) for one in parts[8].split(";") if "=" in one)
    name = next((unquote(attributes[key]) for key in _NAMES if attributes.get(key)), parts[2])
    return TrackFeature(*place, _strand(parts[6]), _shown(name), _shown(parts[2]))


def _of_bed(parts: list[str]) -> TrackFeature | None:
    place = _place(parts[1], parts[2], 1) if len(parts) >= 3 else None
    if place is None:
        return None
    return TrackFeature(*place, _strand(parts[5] if len(parts) > 5 else "."), _shown(parts[3] if len(parts) > 3 else ""), "")


def _place(first: str, last: str, counted_from: int) -> tuple[int, int] | None:
    """First and last letter from 1 on; `counted_from`: what is added to the first."""
    if not (first.isascii() and first.isdigit() and last.isascii() and last.isdigit() and len(first) < 11 and len(last) < 11):
        return None
    begin, end = int(first) + counted_from, int(last)
    return (begin, max(begin, end)) if 1 <= begin <= end + counted_from <= _MAXIMUM_PLACE else None


def _strand(text: str) -> str:
    return text if text in ("+", "-") else "."


def _shown(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text[:_MAXIMUM_NAME]).strip()
