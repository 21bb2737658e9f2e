"""Alignments as SAM (Sequence Alignment/Map Format Specification 1.6), from columns: header, records, and names as it allows them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain, count, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import Texts, read_only
from proteoscope.engine.version import VERSION
from proteoscope.kernels.text_layouts import SamSequences, TextArrays

__all__ = [
    "LONGEST_READ_NAME",
    "NO_PLACE",
    "NO_QUALITY",
    "SECONDARY",
    "UNPLACED",
    "SamNames",
    "SamRecords",
    "sam_header",
    "sam_lines",
    "text_arrays",
]

UNPLACED, SECONDARY = 4, 256
"""Flags: a record without a place, and one that is not the best of its sequence."""
NO_QUALITY = 255
"""Where the mapping quality is not known."""
NO_PLACE = (-1, 0, 0, -1, 0, 0)
"""A row of `SamRecords.places` without any."""

LONGEST_READ_NAME = 254
"""Of what is aligned; those of what it is aligned with may be of any length."""
_NOT_IN_NAMES = re.compile(r"[^0-9A-Za-z!#$%&+./:;?@^_|~*=-]")


class SamNames:
    """Names as SAM allows them, one for each sequence: where several would have one name, all but the first are told by their place."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()

    def names(self, indexes: NDArray[np.integer], accessions: Texts) -> list[str]:
        """The names of the sequences at places in the files."""
        _, first = np.unique(indexes, return_index=True)
        first = np.sort(first)
        found = dict(zip(indexes[first].tolist(), accessions.take(first).strings(), strict=True))
        for known in found.keys() & self._names.keys():
            del found[known]
        new = set(found.values())
        if len(new) == len(found) and new.isdisjoint(self._taken) and self._are_allowed(new):
            self._names |= found
            self._taken |= new
        else:
            for index, accession in found.items():
                self._add(index, accession)
        return list(map(self._names.__getitem__, indexes.tolist()))

    def _are_allowed(self, names: set[str]) -> bool:
        """Whether SAM allows all of them as they are."""
        starred = any(map(str.startswith, names, repeat(("*", "="))))
        return not (starred or "" in names or _NOT_IN_NAMES.search("".join(names))) and max(map(len, names), default=0) <= self._longest

    def _add(self, index: int, accession: str) -> None:
        plain = _NOT_IN_NAMES.sub("_", accession).lstrip("*=") or "_"
        for ending in chain(("", f"_{index + 1}"), (f"_{index + 1}_{n}" for n in count(2))):
            name = plain[: self._longest - len(ending)] + ending
            if name not in self._taken:
                break
        self._taken.add(name)
        self._names[index] = name


class SamRecords(NamedTuple):
    """n records.

    Attributes
    ----------
    names : of what is aligned. flags : (n,) int64.
    places : (n, 6) int64: number of the reference, -1 for none; position, from 1; mapping quality; number of the mate's reference, -1 for
        none; its position; length of the fragment.
    cigars : without what is left out at the ends. clips : (n, 2) int64, so many letters, in the reference's direction.
    tags : each with a tab before it. rows : (n,) int64, numbers of the sequences.
    """

    names: Texts
    flags: NDArray[np.int64]
    places: NDArray[np.int64]
    cigars: Texts
    clips: NDArray[np.int64]
    tags: Texts
    rows: NDArray[np.int64]


def sam_header(names: Iterable[str], lengths: Iterable[int], *, is_sorted: bool = False) -> bytes:
    """The lines before the records; `names` and `lengths` of the references."""
    order = "SO:coordinate" if is_sorted else "SO:unsorted\tGO:query"
    references = "".join(map("@SQ\tSN:{}\tLN:{}\n".format, names, lengths))
    return f"@HD\tVN:1.6\t{order}\n{references}@PG\tID:proteoscope\tPN:proteoscope\tVN:{VERSION}\n".encode()


def text_arrays(texts: Texts) -> TextArrays:
    """Texts as the kernels take them: not to be written to, whatever they were made from."""
    return TextArrays(read_only(texts.letters), texts.offsets)


def sam_lines(records: SamRecords, references: Texts, sequences: SamSequences) -> tuple[bytes, NDArray[np.int64]]:
    """The lines of records, and where each ends. `references` : names, by the numbers of the records."""
    names, flags, places, cigars, clips, tags, rows = records
    n, longest = len(flags), int(np.diff(references.offsets).max(initial=0))
    own = np.diff(sequences.offsets)[rows]
    room = (
        sum(len(one.own) for one in (names, cigars, tags))
        + 2 * int(own.sum())
        + n * (kernels.cpu.alignment_lines.MAXIMUM_NUMBERS + 2 * longest)
    )
    lines, ends = np.empty(room, np.uint8), np.zeros(n, np.int64)
    name_arrays, reference_arrays, cigar_arrays, tag_arrays = map(text_arrays, (names, references, cigars, tags))
    kernels.cpu.alignment_lines.write_sam_lines(
        name_arrays, flags, reference_arrays, places, cigar_arrays, clips, tag_arrays, rows, sequences, lines, ends
    )
    return lines[: ends[-1] if n else 0].tobytes(), ends
