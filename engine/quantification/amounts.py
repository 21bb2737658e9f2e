"""Amounts by sample: what was measured, and why what was not; from ions to peptidoforms, peptides and proteins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.quantification.pairwise_ratios import group_medians, pairwise_amounts

__all__ = [
    "Amounts",
    "Grouping",
    "Levels",
    "Measured",
    "ProteinQuantity",
    "State",
    "level_amounts",
    "medians",
    "normalisation_factors",
    "protein_amounts",
    "ratio_amounts",
]

ProteinQuantity = Literal["maxlfq", "top-3", "sum", "median"]

_TOP = 3


class State(IntEnum):
    """What is known of an amount; of several the least counts."""

    MEASURED = 0
    TRANSFERRED = 1
    TOO_LOW = 2
    REFUSED = 3
    NO_SHARED_ION = 4
    NOT_SEEN = 5

    @property
    def text(self) -> str:
        """As tables have it."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Amounts:
    """Amounts of n things in s samples.

    Attributes
    ----------
    value : (n, s) float64, NaN where there is none. state : (n, s) int8, `State`.
    """

    value: NDArray[np.float64]
    state: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.value)

    @classmethod
    def of(cls, value: NDArray[np.float64]) -> Amounts:
        """Return amounts that are measured, or where they are NaN, not seen."""
        return cls(value, np.where(np.isnan(value), State.NOT_SEEN, State.MEASURED).astype(np.int8))

    def summed(self, group: NDArray[np.int64], n_groups: int) -> Amounts:
        """Return amounts of groups: the sum of what is there. `group` (n,), -1 for none; (n_groups, s)."""
        rows = np.flatnonzero(group >= 0)
        order = rows[np.argsort(group[rows], kind="stable")]
        found = np.full((n_groups, self.value.shape[1]), np.nan)
        state = np.full(found.shape, State.NOT_SEEN, np.int8)
        some, first = np.unique(group[order], return_index=True)
        if len(some):
            values = self.value[order]
            total = np.add.reduceat(np.nan_to_num(values), first, axis=0)
            has_any = np.add.reduceat(~np.isnan(values), first, axis=0) > 0
            found[some] = np.where(has_any, total, np.nan)
            state[some] = np.minimum.reduceat(self.state[order], first, axis=0)
        return Amounts(found, state)

    def of_samples(self, sample: NDArray[np.int64], n_samples: int) -> Amounts:
        """Return the same by sample, where columns are files: `sample` (s,), -1 for none; fractions of a sample are added up."""
        turned = Amounts(self.value.T, self.state.T).summed(sample, n_samples)
        return Amounts(np.ascontiguousarray(turned.value.T), np.ascontiguousarray(turned.state.T))

    def of_columns(self, columns: NDArray[np.bool_]) -> Amounts:
        """Return those of some samples, (s,) bool."""
        return Amounts(self.value[:, columns], self.state[:, columns])

    @property
    def log2(self) -> NDArray[np.float64]:
        """Logarithms to base 2, NaN where there is no amount."""
        found = np.full(self.value.shape, np.nan)
        np.log2(self.value, out=found, where=self.value > 0)
        return found

    def scaled(self, factor: NDArray[np.float64]) -> Amounts:
        """Return amounts times the factor of each sample, (s,)."""
        return replace(self, value=self.value * factor)


@dataclass(frozen=True)
class Measured:
    """Amounts of n ions in s samples, not normalised.

    Attributes
    ----------
    ions : n rows; of numbers of spectra a row for each peptidoform. form : (n,) int64, the peptidoform of each.
    tables : what they are made of, by the names of the tables. counts : of the run's record, by name. devices : what computed.
    """

    ions: Amounts
    form: NDArray[np.int64]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    devices: str = "cpu"


def normalisation_factors(value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return factors that make the median thing the same in all samples.

    Each sample's is the median ratio, to the geometric mean over samples, of what all samples have; where less than a few things are in
    all, of what each has.

    Parameters
    ----------
    value : (n, s) float64, NaN where missing.

    Returns
    -------
    (s,) float64, with a geometric mean of 1; 1 for samples that have nothing.

    Examples
    --------
    >>> normalisation_factors(np.array([[1.0, 2.0], [3.0, 6.0], [5.0, 10.0]])).round(4).tolist()
    [1.4142, 0.7071]
    """
    logs = np.full(value.shape, np.nan)
    np.log(value, out=logs, where=value > 0)
    has = ~np.isnan(logs)
    used = has.any(axis=0)
    if not used.any():
        return np.ones(value.shape[1])
    complete = has[:, used].all(axis=1)
    rows = complete if complete.sum() >= _TOP else has.sum(axis=1) > 1
    shift = np.zeros(value.shape[1])
    if rows.any():
        chosen = logs[rows]
        apart = chosen - np.nanmean(chosen, axis=1)[:, None]
        there = ~np.isnan(apart).all(axis=0)
        shift[there] = np.nanmedian(apart[:, there], axis=0)
        shift[there] -= shift[there].mean()
    return np.exp(-shift)


class Grouping(NamedTuple):
    """The peptidoform of each ion, the sequence of each peptidoform, and the protein of each sequence.

    Attributes
    ----------
    form : (ions,) int64. sequence : (forms,) int64. protein : (sequences,) int64, -1 for none. n_proteins : int.
    """

    form: NDArray[np.int64]
    sequence: NDArray[np.int64]
    protein: NDArray[np.int64]
    n_proteins: int


class Levels(NamedTuple):
    """Amounts of peptidoforms, of peptides (sequences) and of proteins."""

    forms: Amounts
    sequences: Amounts
    proteins: Amounts


def level_amounts(ions: Amounts, grouping: Grouping, by: ProteinQuantity, plexes: NDArray[np.int64] | None = None) -> Levels:
    """Return the amounts of all levels from those of ions; ratios between samples are those of the ions that they share.

    Parameters
    ----------
    ions : a row for each peptidoform and charge. by : see `QuantificationParameters`.
    plexes : (s,) int64, the plex of each sample, whose ratios are then taken apart from those of other plexes; None where ratios between
        all samples are meant. Different plexes are compared by a reference, or not at all.
    """
    if plexes is not None and len(np.unique(plexes)) > 1:
        return _joined(plexes, [level_amounts(ions.of_columns(plexes == k), grouping, by) for k in np.unique(plexes).tolist()])
    sequence = grouping.sequence[grouping.form]
    forms = ratio_amounts(ions, grouping.form, len(grouping.sequence))
    sequences = ratio_amounts(ions, sequence, len(grouping.protein))
    return Levels(forms, sequences, protein_amounts(ions, sequences, grouping, by))


def _joined(plexes: NDArray[np.int64], parts: list[Levels]) -> Levels:
    """Return levels whose columns are those of the plexes."""
    place = np.argsort(np.argsort(plexes, kind="stable"), kind="stable")
    return Levels(
        *(
            Amounts(*(np.concatenate([getattr(one, name) for one in level], axis=1)[:, place] for name in ("value", "state")))
            for level in zip(*parts, strict=True)
        )
    )


def ratio_amounts(ions: Amounts, group: NDArray[np.int64], n_groups: int) -> Amounts:
    """Return the amounts of groups of ions by their pairwise ratios.

    Parameters
    ----------
    ions : n of them in s samples. group : (n,) int64, -1 for none.

    Returns
    -------
    (n_groups, s). A sample without a ratio to the largest connected set of samples has no amount, and the state `State.NO_SHARED_ION`.
    """
    summed = ions.summed(group, n_groups)
    count = np.bincount(group[group >= 0], minlength=n_groups)
    rows = np.flatnonzero((group >= 0) & (count[group] > 1))
    rows = rows[np.argsort(group[rows], kind="stable")]
    several = np.flatnonzero(count > 1)
    value, state = summed.value.copy(), summed.state.copy()
    value[several] = pairwise_amounts(ions.value[rows], offsets_of(count[several]))
    state[np.isnan(value) & ~np.isnan(summed.value)] = State.NO_SHARED_ION
    return Amounts(value, state)


def protein_amounts(ions: Amounts, sequences: Amounts, grouping: Grouping, by: ProteinQuantity) -> Amounts:
    """Return the amounts of proteins by the ratios of their ions, or from the amounts of their peptides.

    Parameters
    ----------
    sequences : amounts of peptides. by : see `QuantificationParameters`; the three most abundant are those over all samples, the same in
        each.

    Returns
    -------
    (grouping.n_proteins, s).
    """
    protein, n_proteins = grouping.protein, grouping.n_proteins
    if by == "maxlfq":
        return ratio_amounts(ions, protein[grouping.sequence[grouping.form]], n_proteins)
    summed = sequences.summed(protein, n_proteins)
    if by == "sum":
        return summed
    order = np.flatnonzero(protein >= 0)
    if by == "median":
        return replace(summed, value=medians(sequences.value[order], protein[order], n_proteins))
    abundance = np.nansum(sequences.value, axis=1)
    order = order[np.lexsort((-abundance[order], protein[order]))]
    offsets = offsets_of(np.bincount(protein[order], minlength=n_proteins))
    top = order[np.arange(len(order)) - offsets[protein[order]] < _TOP]
    chosen = np.full(len(protein), -1, np.int64)
    chosen[top] = protein[top]
    return replace(sequences.summed(chosen, n_proteins), state=summed.state)


def medians(value: NDArray[np.float64], group: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
    """Return medians of each column's values, (n, s), in each group, (n,): (n_groups, s) float64, NaN where there are none."""
    found = np.full((n_groups, value.shape[1]), np.nan)
    for column in range(value.shape[1]):
        found[:, column] = group_medians(value[:, column], group, n_groups)
    return found
