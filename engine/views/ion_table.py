"""The ions of a peptide as a table: residues down, series and charges across."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.fragments import PRECURSOR, SERIES
from proteoscope.engine.views.annotation import AnnotatedSpectrum

__all__ = ["NUMBER", "RESIDUE", "IonTable", "ion_table"]

NUMBER, RESIDUE = "#", "Residue"
"""Headers of the columns that hold no ions: the residue's number from its end of the peptide, and the residue."""


@dataclass(frozen=True)
class IonTable:
    """Ions without neutral losses of a peptide of n residues, in m columns.

    Attributes
    ----------
    spectrum
        Annotated spectrum, with `name`, `ions` and `carries_shift`.
    headers
        Headers of the m columns, such as ``b⁺``, ``y2⁺``, `NUMBER` and `RESIDUE`.
    ion
        (n, m) int64, index into `spectrum.ions`, or -1.
    modifications
        Modification names of each residue, including terminal ones.
    """

    spectrum: AnnotatedSpectrum
    headers: tuple[str, ...]
    ion: NDArray[np.int64]
    modifications: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.ion)

    @cached_property
    def mz(self) -> NDArray[np.float64]:
        """(n, m) thomson, NaN without an ion."""
        return np.append(self.spectrum.ions.mz, np.nan)[self.ion]

    @cached_property
    def is_matched(self) -> NDArray[np.bool_]:
        """Mask of matched ions, shape (n, m)."""
        return np.append(self.spectrum.is_matched, False)[self.ion]

    def residue(self, row: int) -> str:
        """Return a residue symbol, with a star if modified."""
        return self.spectrum.peptidoform.sequence[row] + ("*" if self.modifications[row] else "")

    def number(self, row: int, column: int) -> int:
        """Text of a column of numbers: the first counts from the N-terminus, the last from the C-terminus."""
        return row + 1 if column == 0 else len(self) - row


def ion_table(spectrum: AnnotatedSpectrum) -> IonTable:
    """Return the table of a spectrum's ions: N-terminal ions at the left, C-terminal ones at the right."""
    ions, sequence = spectrum.ions, spectrum.peptidoform.sequence
    charges = sorted({int(charge) for charge in ions.charge[ions.series < PRECURSOR]})
    symbols = [symbol for symbol in spectrum.settings.series if symbol in SERIES]
    front = [(symbol, charge) for symbol in "abc" if symbol in symbols for charge in charges]
    back = [(symbol, charge) for symbol in "xyz" if symbol in symbols for charge in reversed(charges)]
    headers: list[str] = []
    columns: list[tuple[str, int] | str] = [NUMBER, *front, RESIDUE, *back, NUMBER]
    table = np.full((len(sequence), len(columns)), -1, np.int64)
    for at, column in enumerate(columns):
        if isinstance(column, str):
            headers.append(column)
            continue
        symbol, charge = column
        headers.append(f"{symbol}{'⁺' if charge == 1 else f'{charge}⁺'}")
        which = np.flatnonzero((ions.series == SERIES.index(symbol)) & (ions.charge == charge) & (ions.loss == 0))
        # A fragment is in the row of its last residue towards the middle.
        table[ions.position[which] - (1 if symbol in "abc" else 0), at] = which
    modifications: list[list[str]] = [[] for _ in sequence]
    for position, name, _ in spectrum.peptidoform.modifications:
        modifications[min(max(position, 1), len(sequence)) - 1].append(name)
    return IonTable(spectrum, tuple(headers), table, tuple(map(tuple, modifications)))
