"""The sequence logo of a stack: information content of each column, divided among its residues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.sequences.conservation import RESIDUES, information_content, residue_codes, residue_counts

__all__ = ["MAXIMUM_BITS", "MINIMUM_SEQUENCES", "StackLogo"]

MAXIMUM_BITS = float(np.log2(len(RESIDUES)))
"""Information content of a column with one residue in very many sequences."""
MINIMUM_SEQUENCES = 5
"""Minimum number of rows of a stack with a logo: with four, the correction for small samples leaves 0.9 of 4.3 bits at most."""


@dataclass(frozen=True)
class StackLogo:
    """Symbols of a sequence logo (Schneider & Stephens 1990).

    Attributes
    ----------
    bits
        (20, n) float64, height of each of `RESIDUES` in each column: its share of the residues there times their information content.
    counts
        (20, n) float64, number of rows with each residue.
    colours
        (20, n, 4) uint8, colours that the stack gives these residues.
    """

    bits: NDArray[np.float64]
    counts: NDArray[np.float64]
    colours: NDArray[np.uint8]

    @classmethod
    def of(cls, symbols: NDArray[np.uint8], colours: NDArray[np.uint8]) -> StackLogo | None:
        """Return the logo of (rows, n) characters with (rows, n, 4) colours, or None for fewer than `MINIMUM_SEQUENCES` rows."""
        if len(symbols) < MINIMUM_SEQUENCES:
            return None
        counts = residue_counts(symbols)
        columns = np.arange(symbols.shape[1])
        of_residue = np.zeros((len(RESIDUES) + 1, len(columns), 4), np.uint8)
        # Schemes colour by residue and column, so that all rows with a residue have the same colour.
        for row_symbols, row_colours in zip(symbols, colours, strict=True):
            of_residue[residue_codes(row_symbols), columns] = row_colours
        bits = information_content(counts) * counts / np.maximum(counts.sum(0), 1)
        return cls(bits, counts, of_residue[:-1])

    def text_at(self, column: int) -> str:
        """Return the tooltip of a column: its information content and its residues, most frequent first."""
        counts = self.counts[:, column]
        n = int(counts.sum())
        if not n:
            return "no residue"
        order = np.argsort(-counts, kind="stable")
        shares = ", ".join(f"{RESIDUES[residue]} {counts[residue] / n:.0%}" for residue in order.tolist() if counts[residue])
        return f"{self.bits[:, column].sum():.2f} of {MAXIMUM_BITS:.2f} bits, {n} residue{'' if n == 1 else 's'}: {shares}"
