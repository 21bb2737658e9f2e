"""Table of the fragment ions of a peptide: one row per residue, one column per ion series and charge."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.fragments import PRECURSOR, SERIES
from proteoscope.engine.views.annotation import AnnotatedSpectrum

__all__ = ["NUMBER", "RESIDUE", "IonTable", "ion_table"]

NUMBER, RESIDUE = "#", "Residue"
"""Headers of the columns without ions: number of the residue from one terminus, and residue."""


@dataclass(frozen=True)
class IonTable:
    """Fragment ions of a peptide, without neutral losses, as a table of n residues and m columns.

    Attributes
    ----------
    spectrum
        Annotated spectrum of the peptide.
    headers
        Headers of the m columns, such as ``b⁺``, ``y2⁺``, `NUMBER` and `RESIDUE`.
    ion
        Index into `spectrum.ions` for each cell, or -1 for an empty cell, (n, m), int64.
    modifications
        Names of the modifications of each residue; terminal modifications are at the first and last residue.
    """

    spectrum: AnnotatedSpectrum
    headers: tuple[str, ...]
    ion: NDArray[np.int64]
    modifications: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.ion)

    @cached_property
    def mz(self) -> NDArray[np.float64]:
        """m/z of the ions in thomson, NaN for cells without an ion, shape (n, m)."""
        return np.append(self.spectrum.ions.mz, np.nan)[self.ion]

    @cached_property
    def is_matched(self) -> NDArray[np.bool_]:
        """True for matched ions, shape (n, m)."""
        return np.append(self.spectrum.is_matched, False)[self.ion]

    def residue(self, row: int) -> str:
        """Return the symbol of the residue in a row, with a star if the residue is modified."""
        return self.spectrum.peptidoform.sequence[row] + ("*" if self.modifications[row] else "")

    def number(self, row: int, column: int) -> int:
        """Return the residue number to show in a cell: counted from the N-terminus in the first column, from the C-terminus in the last."""
        return row + 1 if column == 0 else len(self) - row


def ion_table(spectrum: AnnotatedSpectrum) -> IonTable:
    """Return the ion table of a spectrum, with N-terminal ions on the left and C-terminal ions on the right."""
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
        # A fragment is in the row of its residue next to the broken bond.
        table[ions.position[which] - (1 if symbol in "abc" else 0), at] = which
    modifications: list[list[str]] = [[] for _ in sequence]
    for position, name, _ in spectrum.peptidoform.modifications:
        modifications[min(max(position, 1), len(sequence)) - 1].append(name)
    return IonTable(spectrum, tuple(headers), table, tuple(map(tuple, modifications)))
