"""Protein sequences as columns: what the readers of databases make and every index takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import take_runs
from proteoscope.engine.formats.features import Features
from proteoscope.engine.row_numbers import ProteinRow

__all__ = ["Proteins"]


@dataclass(frozen=True)
class Proteins:
    """n protein sequences, residues and header texts in flat byte arrays (CSR).

    Attributes
    ----------
    residues : (total,) uint8, ASCII capitals A-Z and ``*``; other characters of the file are dropped or refused by the reader.
    offsets : (n + 1,) int64; sequence i is `residues[offsets[i]:offsets[i + 1]]`.
    accession_bytes, accession_offsets : (a,) uint8 and (n + 1,) int64, UTF-8: the first word of each header.
    description_bytes, description_offsets : (d,) uint8 and (n + 1,) int64, UTF-8: the rest of each header.
    features : what the database knows of them; None where no file of it says such things, as FASTA does not.
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
        """Return some of the proteins, in the order of their numbers given."""
        return Proteins(
            *take_runs(self.residues, self.offsets, order),
            *take_runs(self.accession_bytes, self.accession_offsets, order),
            *take_runs(self.description_bytes, self.description_offsets, order),
            None if self.features is None else self.features.take(order),
        )

    def followed_by(self, other: Proteins) -> Proteins:
        """Return these proteins and others behind them, without features."""

        def joined(values: str, offsets: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
            (one, one_offsets), (two, two_offsets) = ((getattr(some, values), getattr(some, offsets)) for some in (self, other))
            return np.concatenate((one, two)), np.concatenate((one_offsets, two_offsets[1:] + one_offsets[-1]))

        return Proteins(
            *joined("residues", "offsets"),
            *joined("accession_bytes", "accession_offsets"),
            *joined("description_bytes", "description_offsets"),
        )

    def accession(self, i: ProteinRow) -> str:
        """Accession of protein `i`."""
        return bytes(self.accession_bytes[self.accession_offsets[i] : self.accession_offsets[i + 1]]).decode()

    def description(self, i: ProteinRow) -> str:
        """Description of protein `i`, empty where the header has none."""
        return bytes(self.description_bytes[self.description_offsets[i] : self.description_offsets[i + 1]]).decode()

    def sequence(self, i: ProteinRow) -> str:
        """Sequence of protein `i`."""
        return bytes(self.residues[self.offsets[i] : self.offsets[i + 1]]).decode("ascii")
