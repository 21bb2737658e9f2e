"""All occurrences of peptides in sequences, found in one pass over the residues for each peptide length."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.jobs.progress import Progress

__all__ = ["Occurrences", "find_occurrences"]

_BASE = np.uint64(0x100000001B3)
_INVERSE = np.uint64(pow(0x100000001B3, -1, 1 << 64))


class Occurrences(NamedTuple):
    """Occurrences of peptides, m of them, sorted by peptide, sequence and start.

    Attributes
    ----------
    peptide, sequence : ndarray of int64, shape (m,)
        Indices of the peptide and of the sequence.
    start : ndarray of int64, shape (m,)
        Index of the first residue in the sequence, from 0.
    """

    peptide: NDArray[np.int64]
    sequence: NDArray[np.int64]
    start: NDArray[np.int64]


def find_occurrences(peptides: Sequence[bytes], residues: bytes, offsets: NDArray[np.int64], progress: Progress) -> Occurrences:
    """Find every occurrence of every peptide, including overlapping occurrences.

    Rolling hashes (Karp & Rabin 1987, IBM J Res Dev 31:249) are compared in one pass over the residues for each peptide length, and matches
    are verified.

    Parameters
    ----------
    peptides : sequence of bytes
        Distinct peptides.
    residues : bytes
        Concatenated residues of all sequences.
    offsets : ndarray of int64, shape (sequences + 1,)
        Sequence i is ``residues[offsets[i]:offsets[i + 1]]``.
    progress : Progress
        Progress, which is checked for cancellation.

    Returns
    -------
    Occurrences
        Positions of the peptides.

    Raises
    ------
    Cancelled
        If the user cancels.

    Examples
    --------
    >>> find_occurrences([b"AA", b"C"], b"AAAC", np.array([0, 3, 4]), Progress())
    Occurrences(peptide=array([0, 0, 1]), sequence=array([0, 0, 1]), start=array([0, 1, 0]))
    """
    codes = np.frombuffer(residues, np.uint8).astype(np.uint64)
    lengths = np.array([len(peptide) for peptide in peptides], np.int64)
    parts = []
    distinct_lengths = np.unique(lengths[lengths > 0]).tolist()
    progress.stage("Finding peptides in proteins", len(distinct_lengths))
    with np.errstate(over="ignore"):
        # Odd numbers have an inverse modulo 2^64. The hash of a window is the difference of two prefix sums of codes times its powers.
        powers = np.cumprod(np.concatenate(([np.uint64(1)], np.full(len(codes), _BASE))), dtype=np.uint64)
        inverse = np.cumprod(np.concatenate(([np.uint64(1)], np.full(len(codes), _INVERSE))), dtype=np.uint64)
        sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(codes * inverse[:-1], dtype=np.uint64)))
        for length in distinct_lengths:
            progress.advance(1)
            if length > len(codes):
                continue
            chosen = np.flatnonzero(lengths == length)
            texts = np.frombuffer(b"".join(peptides[i] for i in chosen.tolist()), np.uint8).reshape(-1, length).astype(np.uint64)
            hashes = (texts * inverse[:length]).sum(axis=1, dtype=np.uint64)
            order = np.argsort(hashes)
            window = (sums[length:] - sums[:-length]) * powers[: len(sums) - length]
            at = np.minimum(np.searchsorted(hashes[order], window), len(order) - 1)
            hit = np.flatnonzero(hashes[order][at] == window)
            sequence = np.searchsorted(offsets, hit, side="right") - 1
            inside = hit + length <= offsets[sequence + 1]
            parts.append((chosen[order[at[hit]]][inside], sequence[inside], (hit - offsets[sequence])[inside]))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else [np.zeros(0, np.int64)] * 3
    positions = zip(*(column.tolist() for column in columns), strict=True)
    is_true = np.array([residues.startswith(peptides[p], int(offsets[r]) + s) for p, r, s in positions], np.bool_)
    peptide, sequence, start = (column[is_true] for column in columns)
    order = np.lexsort((start, sequence, peptide))
    return Occurrences(peptide[order], sequence[order], start[order])
