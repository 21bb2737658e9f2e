"""Peptide quantities from a quantification that is based on a run, used to colour coverage maps and structures."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError, StorageError, shortened
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.tables import ION_TRACES
from proteoscope.engine.structures.colouring import QuantityScale
from proteoscope.engine.views.coverage import Coverage, PlacedPeptide
from proteoscope.engine.views.dependent_runs import runs_based_on
from proteoscope.engine.views.quantities import Samples, peptides_and_comparisons

__all__ = ["LinkedQuantities", "PeptideQuantities"]


@dataclass(frozen=True, eq=False)
class PeptideQuantities:
    """Quantities of a quantification, one value per peptide sequence.

    Attributes
    ----------
    run
        Identifier of the quantification.
    title
        Short description of the values.
    is_change
        True for log2 differences between two conditions, False for log2 means over all samples.
    values
        Values by sequence; I is replaced by L, since their masses are equal.
    """

    run: str
    title: str
    is_change: bool
    values: Mapping[str, float]

    def value(self, coverage: Coverage, peptide: PlacedPeptide) -> float | None:
        """Return the value of a peptide in the coverage of a protein, or None."""
        return self.values.get(_alike(coverage.sequence[peptide.start : peptide.end]))

    def mean_by_residue(self, coverage: Coverage) -> NDArray[np.float64]:
        """Return, for each residue of a protein, the mean value of the peptides that cover the residue, (r,); NaN if none has a value."""
        total, count = np.zeros(len(coverage.sequence)), np.zeros(len(coverage.sequence))
        for start, end in {(peptide.start, peptide.end) for peptide in coverage.peptides}:
            value = self.values.get(_alike(coverage.sequence[start:end]))
            if value is not None:
                total[start:end] += value
                count[start:end] += 1
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    @cached_property
    def scale(self) -> QuantityScale:
        """Colour scale from the 5th to the 95th percentile of all values, but at least 1 wide; for changes, it is symmetric about 0."""
        values = np.array(list(self.values.values()))
        low, high = (float(limit) for limit in np.percentile(values, (5, 95))) if len(values) else (0.0, 0.0)
        if self.is_change:
            high = max(abs(low), abs(high), 1.0)
            low = -high
        return QuantityScale(self.title, low, max(high, low + 1.0), self.is_change)


class LinkedQuantities:
    """Peptide quantities of the newest quantification that is based on a run; reloaded if it is corrected or a newer one is finished.

    The values are the changes of the first comparison, or the means over all samples if there is no comparison.
    """

    def __init__(self, project: Project, run: str) -> None:
        self._project, self._run = project, run
        self._known: tuple[object, PeptideQuantities | None] = None, None

    def newest(self) -> PeptideQuantities | None:
        """Return the newest quantities; None if there are none or they cannot be read."""
        newest = next(iter(runs_based_on(self._project, self._run, "quantify")), None)
        if newest is None:
            return None
        state = newest, self._project.row_corrections(newest, ION_TRACES.name)
        if state != self._known[0]:
            result = None
            with suppress(InputError, StorageError):
                result = _quantities(newest, *peptides_and_comparisons(self._project, newest))
            self._known = state, result
        return self._known[1]


def _quantities(run: str, peptides: Samples, comparisons: tuple[str, ...]) -> PeptideQuantities:
    sequences, group = np.unique([_alike(key) for key in peptides.keys], return_inverse=True)

    def means(samples: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the mean log2 quantity of each sequence over the selected samples, shape (sequences,)."""
        total = np.bincount(group, np.nansum(peptides.log2[:, samples], axis=1), len(sequences))
        count = np.bincount(group, peptides.has[:, samples].sum(axis=1), len(sequences))
        average: NDArray[np.float64] = np.divide(total, count, out=np.full(len(sequences), np.nan), where=count > 0)
        return average

    conditions = np.array(peptides.conditions, object)
    pairs = permutations(dict.fromkeys(peptides.conditions), 2)
    pair = next((pair for pair in pairs if f"{pair[0]} / {pair[1]}" in comparisons[:1]), None)
    if pair is None:
        title, values = "log2 quantity", means(np.ones(len(conditions), np.bool_))
    else:
        title, values = f"log2 {' / '.join(map(shortened, pair))}", means(conditions == pair[0]) - means(conditions == pair[1])
    finite = np.flatnonzero(~np.isnan(values))
    numbers = dict(zip(sequences[finite].tolist(), values[finite].tolist(), strict=True))
    return PeptideQuantities(run, title, pair is not None, numbers)


def _alike(sequence: str) -> str:
    return sequence.replace("I", "L")
