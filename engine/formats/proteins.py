"""Protein sequences as columns: what the readers of databases make and every index takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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

    def accession(self, i: ProteinRow) -> str:
        """Accession of protein `i`."""
        return bytes(self.accession_bytes[self.accession_offsets[i] : self.accession_offsets[i + 1]]).decode()

    def description(self, i: ProteinRow) -> str:
        """Description of protein `i`, empty where the header has none."""
        return bytes(self.description_bytes[self.description_offsets[i] : self.description_offsets[i + 1]]).decode()

    def sequence(self, i: ProteinRow) -> str:
        """Sequence of protein `i`."""
        return bytes(self.residues[self.offsets[i] : self.offsets[i + 1]]).decode("ascii")
