"""Sequence logo of a stack of alignments: the information content of each column, divided among its residues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.sequences.conservation import RESIDUES, information_content, residue_codes, residue_counts

__all__ = ["MAXIMUM_BITS", "MINIMUM_SEQUENCES", "StackLogo"]

MAXIMUM_BITS = float(np.log2(len(RESIDUES)))
"""Maximum information content of a column, bits."""
MINIMUM_SEQUENCES = 5
"""Minimum number of rows for a logo; with four, the small-sample correction would leave at most 0.9 of 4.3 bits."""


@dataclass(frozen=True)
class StackLogo:
    """Symbols of a sequence logo (Schneider & Stephens 1990).

    Attributes
    ----------
    bits
        Height of each residue in `RESIDUES` in each column, bits: fraction of the residue times information content of the column, shape
        (20, n), float64.
    counts
        Number of rows with each residue, shape (20, n), float64.
    colours
        Colours of the residues in the stack, shape (20, n, 4), uint8.
    """

    bits: NDArray[np.float64]
    counts: NDArray[np.float64]
    colours: NDArray[np.uint8]

    @classmethod
    def of(cls, symbols: NDArray[np.uint8], colours: NDArray[np.uint8]) -> StackLogo | None:
        """Return the logo of symbols (rows, n) with colours (rows, n, 4); None for fewer than `MINIMUM_SEQUENCES` rows."""
        if len(symbols) < MINIMUM_SEQUENCES:
            return None
        counts = residue_counts(symbols)
        columns = np.arange(symbols.shape[1])
        of_residue = np.zeros((len(RESIDUES) + 1, len(columns), 4), np.uint8)
        # Schemes colour by residue and column: equal residues of a column have the same colour.
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
