"""Where peptides occur in sequences, all of them in one pass over the residues for each length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.jobs.progress import Progress

__all__ = ["Occurrences", "occurrences_of"]

_BASE = np.uint64(0x100000001B3)
_INVERSE = np.uint64(pow(0x100000001B3, -1, 1 << 64))


class Occurrences(NamedTuple):
    """m places, each (m,) int64, ascending by peptide, sequence and start: numbers of a peptide and of the sequence that it lies in, and
    its first residue there, from 0."""

    peptide: NDArray[np.int64]
    sequence: NDArray[np.int64]
    start: NDArray[np.int64]


def occurrences_of(peptides: Sequence[bytes], residues: bytes, offsets: NDArray[np.int64], progress: Progress) -> Occurrences:
    """Every place of every peptide, those that overlap too.

    By sums of powers (Karp & Rabin 1987, IBM J Res Dev 31:249), one pass over the residues for each length, and a comparison of what
    agrees.

    Parameters
    ----------
    peptides : letters, each peptide once. residues : those of all sequences, one behind the other. offsets : (sequences + 1,) where each
        begins and ends.

    Raises
    ------
    Cancelled : the user asked to stop.

    Examples
    --------
    >>> occurrences_of([b"AA", b"C"], b"AAAC", np.array([0, 3, 4]), Progress())
    Occurrences(peptide=array([0, 0, 1]), sequence=array([0, 0, 1]), start=array([0, 1, 0]))
    """
    letters = np.frombuffer(residues, np.uint8).astype(np.uint64)
    lengths = np.array([len(one) for one in peptides], np.int64)
    parts = []
    wanted = np.unique(lengths[lengths > 0]).tolist()
    progress.stage("Looking for peptides in proteins", len(wanted))
    with np.errstate(over="ignore"):
        # Modulo 2^64, where an odd number has an inverse: sums of letters times its powers give those of any window by a subtraction.
        powers = np.cumprod(np.concatenate(([np.uint64(1)], np.full(len(letters), _BASE))), dtype=np.uint64)
        inverse = np.cumprod(np.concatenate(([np.uint64(1)], np.full(len(letters), _INVERSE))), dtype=np.uint64)
        sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(letters * inverse[:-1], dtype=np.uint64)))
        for length in wanted:
            progress.advance(1)
            if length > len(letters):
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
    found = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else [np.zeros(0, np.int64)] * 3
    places = zip(*(column.tolist() for column in found), strict=True)
    is_true = np.array([residues.startswith(peptides[p], int(offsets[r]) + s) for p, r, s in places], np.bool_)
    peptide, sequence, start = (column[is_true] for column in found)
    order = np.lexsort((start, sequence, peptide))
    return Occurrences(peptide[order], sequence[order], start[order])
