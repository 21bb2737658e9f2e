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
    """Whole ions (nothing lost) of a peptide of n residues, in m columns.

    Attributes
    ----------
    spectrum : where they are looked for, whose `name`, `ions` and `carries_shift` tell more of an ion.
    headers : of the m columns, as ``b⁺``, ``y2⁺``, `NUMBER` and `RESIDUE`.
    ion : (n, m) int64, which of `spectrum.ions` stands there; -1 where none does.
    modifications : names of those that each residue carries, with those of the termini beside them.
    """

    spectrum: AnnotatedSpectrum
    headers: tuple[str, ...]
    ion: NDArray[np.int64]
    modifications: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.ion)

    @cached_property
    def mz(self) -> NDArray[np.float64]:
        """(n, m) thomson, not a number where there is no ion."""
        return np.append(self.spectrum.ions.mz, np.nan)[self.ion]

    @cached_property
    def found(self) -> NDArray[np.bool_]:
        """(n, m) whether the ion is found."""
        return np.append(self.spectrum.found, False)[self.ion]

    def residue(self, row: int) -> str:
        """The letter of a residue, with a star where it is modified."""
        return self.spectrum.peptidoform.sequence[row] + ("*" if self.modifications[row] else "")

    def number(self, row: int, column: int) -> int:
        """Text of a column of numbers: the first counts from the N-terminus, the last from the C-terminus."""
        return row + 1 if column == 0 else len(self) - row


def ion_table(spectrum: AnnotatedSpectrum) -> IonTable:
    """The table of a spectrum's ions: those of the N-terminus at the left, those of the C-terminus at the right."""
    ions, sequence = spectrum.ions, spectrum.peptidoform.sequence
    charges = sorted({int(charge) for charge in ions.charge[ions.series < PRECURSOR]})
    letters = [letter for letter in spectrum.settings.series if letter in SERIES]
    front = [(letter, charge) for letter in "abc" if letter in letters for charge in charges]
    back = [(letter, charge) for letter in "xyz" if letter in letters for charge in reversed(charges)]
    headers: list[str] = []
    columns: list[tuple[str, int] | str] = [NUMBER, *front, RESIDUE, *back, NUMBER]
    table = np.full((len(sequence), len(columns)), -1, np.int64)
    for at, column in enumerate(columns):
        if isinstance(column, str):
            headers.append(column)
            continue
        letter, charge = column
        headers.append(f"{letter}{'⁺' if charge == 1 else f'{charge}⁺'}")
        which = np.flatnonzero((ions.series == SERIES.index(letter)) & (ions.charge == charge) & (ions.loss == 0))
        # A fragment stands beside the residue that is its last one towards the middle.
        table[ions.position[which] - (1 if letter in "abc" else 0), at] = which
    modifications: list[list[str]] = [[] for _ in sequence]
    for position, name, _ in spectrum.peptidoform.modifications:
        modifications[min(max(position, 1), len(sequence)) - 1].append(name)
    return IonTable(spectrum, tuple(headers), table, tuple(map(tuple, modifications)))
