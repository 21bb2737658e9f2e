"""Output in SAM (Sequence Alignment/Map Format Specification 1.6) from columns: header, records and permitted names."""

import sys
from collections.abc import Iterable
from itertools import chain, count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import Texts, read_only
from proteoscope.engine.escaped_names import ESCAPES, NameCharacters
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.results.counts import counted
from proteoscope.engine.version import VERSION
from proteoscope.kernels.text_layouts import SamSequences, TextArrays

__all__ = [
    "LONGEST_READ_NAME",
    "NO_PLACE",
    "NO_QUALITY",
    "READ_NAME_CHARACTERS",
    "SECONDARY",
    "UNPLACED",
    "SamNames",
    "SamRecords",
    "sam_header",
    "sam_lines",
    "text_arrays",
]

UNPLACED, SECONDARY = 4, 256
"""SAM flags of unmapped reads and of secondary alignments."""
NO_QUALITY = 255
"""Mapping quality in SAM if the quality is unknown."""
NO_PLACE = (-1, 0, 0, -1, 0, 0)
"""Row of `SamRecords.positions` for an unmapped read."""

LONGEST_READ_NAME = 254
"""Maximum length of a read name in SAM; names of references have no limit."""
READ_NAME_CHARACTERS = NameCharacters(bytes(range(ord("!"), ord("~") + 1)).replace(b"@", b""), not_first=b"*")
"""Permitted characters of QNAME; a name must not be a single asterisk, which means that there is no name."""
_REFERENCE_NAME_CHARACTERS = NameCharacters(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&+./:;?@^_|~*=-", not_first=b"*="
)
"""Permitted characters of RNAME."""


class SamNames:
    """Unique names of sequences in the form that SAM permits.

    If several sequences have the same name, the number of the sequence in its file is appended to all of these names except the first.

    Attributes
    ----------
    n_replaced
        Number of sequences whose name in SAM differs from their accession.
    """

    def __init__(self, *, are_read_names: bool = False) -> None:
        self._longest = LONGEST_READ_NAME if are_read_names else sys.maxsize
        self._characters = READ_NAME_CHARACTERS if are_read_names else _REFERENCE_NAME_CHARACTERS
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()
        self.n_replaced = 0

    def names(self, indexes: NDArray[np.integer], accessions: Texts) -> list[str]:
        """Return the SAM names of n sequences, given their accessions and their indices in the file, (n,)."""
        _, first = np.unique(indexes, return_index=True)
        first = np.sort(first)
        allowed, is_changed = self._characters.escape_texts(accessions.take(first))
        changed = set(indexes[first][is_changed].tolist())
        result = dict(zip(indexes[first].tolist(), allowed.strings(), strict=True))
        for name in result.keys() & self._names.keys():
            del result[name]
        new = set(result.values())
        if len(new) == len(result) and new.isdisjoint(self._taken) and self._have_allowed_lengths(new):
            self._names |= result
            self._taken |= new
            self.n_replaced += len(changed & result.keys())
        else:
            for index, name in result.items():
                self._add(index, name, is_changed=index in changed)
        return list(map(self._names.__getitem__, indexes.tolist()))

    def warn(self, progress: Progress, singular: str, plural: str = "") -> None:
        """Log a warning if names were replaced; `singular` and `plural` are nouns for the sequences."""
        if self.n_replaced:
            verb = "has another name" if self.n_replaced == 1 else "have other names"
            progress.message(
                f"{counted(self.n_replaced, singular, plural)} {verb} in SAM: characters that SAM does not allow are {ESCAPES}, "
                "and names that are too long or occur twice end with the number of the sequence",
                "warning",
            )

    def _have_allowed_lengths(self, names: set[str]) -> bool:
        return "" not in names and max(map(len, names), default=0) <= self._longest

    def _add(self, index: int, allowed: str, *, is_changed: bool) -> None:
        plain = allowed or "_"
        for ending in chain(("", f"_{index + 1}"), (f"_{index + 1}_{n}" for n in count(2))):
            name = plain[: self._longest - len(ending)] + ending
            if name not in self._taken:
                break
        self._taken.add(name)
        self._names[index] = name
        self.n_replaced += is_changed or name != allowed


class SamRecords(NamedTuple):
    """Data of n SAM records.

    Attributes
    ----------
    names
        Read names.
    flags : (n,) int64
        SAM flags.
    positions : (n, 6) int64
        Columns: index of the reference (-1 for none), position from 1, mapping quality, index of the mate's reference (-1 for none),
        position of the mate, template length.
    cigars
        CIGARs without clipping operations.
    clips : (n, 2) int64
        Numbers of clipped bases at the start and the end, in the direction of the reference.
    tags
        SAM tags of each record, each preceded by a tab.
    rows : (n,) int64
        Index of the sequence of each record.
    """

    names: Texts
    flags: NDArray[np.int64]
    positions: NDArray[np.int64]
    cigars: Texts
    clips: NDArray[np.int64]
    tags: Texts
    rows: NDArray[np.int64]


def sam_header(names: Iterable[str], lengths: Iterable[int], *, is_sorted: bool = False) -> bytes:
    """Return the header lines for references with `names` and `lengths`."""
    order = "SO:coordinate" if is_sorted else "SO:unsorted\tGO:query"
    references = "".join(map("@SQ\tSN:{}\tLN:{}\n".format, names, lengths))
    return f"@HD\tVN:1.6\t{order}\n{references}@PG\tID:proteoscope\tPN:proteoscope\tVN:{VERSION}\n".encode()


def text_arrays(texts: Texts) -> TextArrays:
    """Return read-only texts as arrays for the kernels."""
    return TextArrays(read_only(texts.characters), texts.offsets)


def sam_lines(records: SamRecords, references: Texts, sequences: SamSequences) -> tuple[bytes, NDArray[np.int64]]:
    """Return the lines of n records, and the end of each line in bytes, (n,); `references` are the names of references by index."""
    names, flags, positions, cigars, clips, tags, rows = records
    n, longest = len(flags), int(np.diff(references.offsets).max(initial=0))
    lengths = np.diff(sequences.offsets)[rows]
    workspace = (
        sum(len(texts.used) for texts in (names, cigars, tags))
        + 2 * int(lengths.sum())
        + n * (kernels.cpu.alignment_lines.MAXIMUM_NUMBERS + 2 * longest)
    )
    lines, ends = np.empty(workspace, np.uint8), np.zeros(n, np.int64)
    name_arrays, reference_arrays, cigar_arrays, tag_arrays = map(text_arrays, (names, references, cigars, tags))
    kernels.cpu.alignment_lines.write_sam_lines(
        name_arrays, flags, reference_arrays, positions, cigar_arrays, clips, tag_arrays, rows, sequences, lines, ends
    )
    return lines[: ends[-1] if n else 0].tobytes(), ends
