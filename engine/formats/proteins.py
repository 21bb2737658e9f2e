"""Protein sequences as columns, created by the readers of databases and used by all indexes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ProteinRow, take_segments
from proteoscope.engine.formats.features import Features

__all__ = ["Proteins"]


@dataclass(frozen=True)
class Proteins:
    """Protein sequences (n), with residues and header texts in flat byte arrays.

    Attributes
    ----------
    residues : ndarray of uint8, shape (total,)
        ASCII capitals A-Z and ``*``; readers remove or reject other characters.
    offsets : ndarray of int64, shape (n + 1,)
        Sequence i is ``residues[offsets[i]:offsets[i + 1]]``.
    accession_bytes, accession_offsets : ndarray of uint8, shape (a,), and of int64, shape (n + 1,)
        First word of each header, UTF-8.
    description_bytes, description_offsets : ndarray of uint8, shape (d,), and of int64, shape (n + 1,)
        Rest of each header, UTF-8.
    features : Features, optional
        Features of the n proteins; None if no file has features.
    """

    residues: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    accession_bytes: NDArray[np.uint8]
    accession_offsets: NDArray[np.int64]
    description_bytes: NDArray[np.uint8]
    description_offsets: NDArray[np.int64]
    features: Features | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, order: NDArray[np.int64]) -> Proteins:
        """Return the proteins with the indices `order`, shape (m,), in this order."""
        return Proteins(
            *take_segments(self.residues, self.offsets, order),
            *take_segments(self.accession_bytes, self.accession_offsets, order),
            *take_segments(self.description_bytes, self.description_offsets, order),
            None if self.features is None else self.features.take(order),
        )

    def followed_by(self, other: Proteins) -> Proteins:
        """Return these proteins followed by the proteins of another object, without features."""

        def joined(values: str, offsets: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
            (first, first_offsets), (second, second_offsets) = (
                (getattr(proteins, values), getattr(proteins, offsets)) for proteins in (self, other)
            )
            return np.concatenate((first, second)), np.concatenate((first_offsets, second_offsets[1:] + first_offsets[-1]))

        return Proteins(
            *joined("residues", "offsets"),
            *joined("accession_bytes", "accession_offsets"),
            *joined("description_bytes", "description_offsets"),
        )

    def accession(self, i: ProteinRow) -> str:
        """Return the accession of protein `i`."""
        return bytes(self.accession_bytes[self.accession_offsets[i] : self.accession_offsets[i + 1]]).decode()

    def description(self, i: ProteinRow) -> str:
        """Return the description of protein `i`, or ''."""
        return bytes(self.description_bytes[self.description_offsets[i] : self.description_offsets[i + 1]]).decode()

    def sequence(self, i: ProteinRow) -> str:
        """Return the sequence of protein `i`."""
        return bytes(self.residues[self.offsets[i] : self.offsets[i + 1]]).decode("ascii")
