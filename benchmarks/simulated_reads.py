"""Reads of known origin, cut from a genome."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Origins", "genome_of", "write_reads"]

_BASES = np.frombuffer(b"ACGT", np.uint8)
_COMPLEMENT = np.arange(256, dtype=np.uint8)
_COMPLEMENT[_BASES] = _BASES[::-1]
_READS_OF_BLOCK = 1 << 15
_LONGEST_GAP = 6
_MARGIN = 10  # bases at both ends without a gap


class Origins(NamedTuple):
    """Origins of reads: the first base on the sequence, from 0; whether of the reverse strand; number of gaps."""

    start: NDArray[np.int64]
    is_reverse: NDArray[np.bool_]
    gaps: NDArray[np.int64]


def genome_of(path: Path) -> list[NDArray[np.uint8]]:
    """Return the bases of each sequence of a FASTA file."""
    records = path.read_text().split(">")[1:]
    return [np.frombuffer("".join(record.splitlines()[1:]).upper().encode(), np.uint8) for record in records]


def write_reads(
    out: Path, genome: list[NDArray[np.uint8]], n: int, *, length: int = 150, errors: float = 0.02, maximum_gaps: int = 2, seed: int = 7
) -> Origins:
    """Write reads as FASTQ, named by their number: of both strands, with errors, and with none to `maximum_gaps` gaps of 1 to 6 bases."""
    random = np.random.default_rng(seed)
    parts = []
    bases_of_all = np.concatenate(genome)
    begins = np.cumsum([0, *map(len, genome)])[:-1]
    needed = length + maximum_gaps * _LONGEST_GAP
    starts = np.concatenate(
        [np.arange(begin, begin + max(0, len(sequence) - needed)) for begin, sequence in zip(begins, genome, strict=True)]
    )
    with out.open("wb") as file:
        for first in range(0, n, _READS_OF_BLOCK):
            count = min(_READS_OF_BLOCK, n - first)
            bases, origins = _block(bases_of_all, random.choice(starts, count), length, errors, maximum_gaps, random)
            at = np.searchsorted(begins, origins.start, side="right") - 1
            origins = origins._replace(start=origins.start - begins[at])
            parts.append(origins)
            rows = bases.tobytes()
            quality = b"I" * length
            file.write(b"".join(b"@%d\n%b\n+\n%b\n" % (first + k, rows[k * length : (k + 1) * length], quality) for k in range(count)))
    return Origins(*map(np.concatenate, zip(*parts, strict=True)))


def _block(
    genome: NDArray[np.uint8], start: NDArray[np.int64], length: int, errors: float, maximum_gaps: int, random: np.random.Generator
) -> tuple[NDArray[np.uint8], Origins]:
    n = len(start)
    gaps = random.integers(0, maximum_gaps + 1, n)
    column = np.arange(length)
    source, is_random = start[:, None] + column, random.random((n, length)) < errors
    for gap in range(maximum_gaps):
        has_it = gaps > gap
        place, size = random.integers(_MARGIN, length - _MARGIN, n)[:, None], random.integers(1, _LONGEST_GAP + 1, n)[:, None]
        is_insertion = (random.random(n) < 0.5)[:, None]
        is_after = (column >= place + np.where(is_insertion, size, 0)) & has_it[:, None]
        source += np.where(is_after, np.where(is_insertion, -size, size), 0)
        is_random |= is_insertion & has_it[:, None] & (column >= place) & (column < place + size)
    bases = genome[np.clip(source, 0, len(genome) - 1)]
    bases[is_random] = _BASES[random.integers(0, 4, int(is_random.sum()))]
    is_reverse = random.random(n) < 0.5
    bases[is_reverse] = _COMPLEMENT[bases[is_reverse, ::-1]]
    return bases, Origins(start, is_reverse, gaps)
