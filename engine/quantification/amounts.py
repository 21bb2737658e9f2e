"""Amounts (quantities) of peptidoforms, peptides and proteins by sample, computed from ions, with reasons for missing amounts.

Amounts are computed from pairwise medians of ion ratios: MaxLFQ (Cox et al. 2014, Mol. Cell. Proteomics 13:2513).

For each pair of samples, the median log ratio of the ions in both samples is computed. The amounts of a group (such as a protein) are those
whose log ratios are closest to these medians by least squares, scaled to the sum of the ions' amounts. Samples that are not connected by
shared ions have no ratio to each other, so only the largest connected set of samples has amounts. Missing ions are not imputed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.spectra.spooling import full_matrix, release_pages, row_blocks
from proteoscope.kernels.cpu.pair_medians import amounts_by_ratios

__all__ = [
    "Grouping",
    "Levels",
    "MeasuredIons",
    "ProteinQuantity",
    "RawQuantities",
    "State",
    "group_medians",
    "level_amounts",
    "logarithms",
    "medians",
    "normalisation_factors",
    "pairwise_amounts",
    "protein_amounts",
    "ratio_amounts",
]

ProteinQuantity = Literal["maxlfq", "top-3", "sum", "median"]

_TOP = 3
_VALUES_OF_BATCH = 1 << 21


class State(IntEnum):
    """State of an amount; the state of a combined amount is the smallest state of its parts."""

    MEASURED = 0
    TRANSFERRED = 1
    TOO_LOW = 2
    REFUSED = 3
    NO_SHARED_ION = 4
    NOT_SEEN = 5

    @property
    def text(self) -> str:
        """State as text in tables."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class RawQuantities:
    """Amounts of n items (such as ions, peptides or proteins) in s samples.

    Attributes
    ----------
    value : ndarray of float64, shape (n, s)
        NaN if missing.
    state : ndarray of int8, shape (n, s)
        `State` of each amount.
    """

    value: NDArray[np.float64]
    state: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.value)

    @classmethod
    def from_values(cls, value: NDArray[np.float64]) -> RawQuantities:
        """Create amounts from values (n, s); NaN has the state "not seen", other values are measured."""
        return cls(value, np.where(np.isnan(value), State.NOT_SEEN, State.MEASURED).astype(np.int8))

    def summed(self, group: NDArray[np.int64], n_groups: int) -> RawQuantities:
        """Return the sums of the available amounts of each group, (n_groups, s); `group` (n,) is -1 for items without a group."""
        rows = np.flatnonzero(group >= 0)
        order = rows[np.argsort(group[rows], kind="stable")]
        result = np.full((n_groups, self.value.shape[1]), np.nan)
        state = np.full(result.shape, State.NOT_SEEN, np.int8)
        some, first = np.unique(group[order], return_index=True)
        if len(some):
            values = self.value[order]
            total = np.add.reduceat(np.nan_to_num(values), first, axis=0)
            has_any = np.add.reduceat(~np.isnan(values), first, axis=0) > 0
            result[some] = np.where(has_any, total, np.nan)
            state[some] = np.minimum.reduceat(self.state[order], first, axis=0)
        return RawQuantities(result, state)

    def sum_by_sample(self, sample: NDArray[np.int64], n_samples: int) -> RawQuantities:
        """Return the amounts by sample instead of by file; fractions of a sample are added.

        `sample` (s,) is the index of the sample of each column, or -1.
        """
        turned = RawQuantities(self.value.T, self.state.T).summed(sample, n_samples)
        return RawQuantities(np.ascontiguousarray(turned.value.T), np.ascontiguousarray(turned.state.T))

    def select_samples(self, columns: NDArray[np.bool_]) -> RawQuantities:
        """Return the amounts in the samples that the mask `columns` (s,) selects."""
        return RawQuantities(self.value[:, columns], self.state[:, columns])

    @property
    def log2(self) -> NDArray[np.float64]:
        """log2 of the amounts, (n, s); NaN if missing."""
        result = np.full(self.value.shape, np.nan)
        np.log2(self.value, out=result, where=self.value > 0)
        return result

    def scaled(self, factor: NDArray[np.float64]) -> RawQuantities:
        """Return the amounts multiplied by `factor` (s,), one factor per sample."""
        return replace(self, value=self.value * factor)

    def scale(self, factor: NDArray[np.float64]) -> None:
        """Multiply the amounts by `factor` (s,) in place."""
        for rows in row_blocks(self.value):
            self.value[rows] *= factor


@dataclass(frozen=True)
class MeasuredIons:
    """Amounts of n ions in s samples before normalisation.

    Attributes
    ----------
    ions : RawQuantities
        Amounts of the ions, n rows; for spectral counts, one row per peptidoform.
    form : ndarray of int64, shape (n,)
        Index of the peptidoform of each row.
    tables : mapping of str to (pyarrow.Table or iterable of pyarrow.Table)
        Tables of the underlying measurements, or their chunks, by name.
    counts : mapping of str to int
        Counts for the record of the run, by name.
    devices : str
        Names of the devices that computed the amounts.
    """

    ions: RawQuantities
    form: NDArray[np.int64]
    tables: Mapping[str, pa.Table | Iterable[pa.Table]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    devices: str = "cpu"


def logarithms(value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return natural logarithms; NaN for values that are not positive."""
    logs = np.full(value.shape, np.nan)
    np.log(value, out=logs, where=value > 0)
    return logs


def normalisation_factors(value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return one factor per sample that makes the median ratio between samples equal to 1.

    The factor of a sample is based on the median, over rows with values in all samples, of the ratios to the geometric mean over samples.
    If fewer than three rows have values in all samples, the rows with values in at least two samples are used.

    Parameters
    ----------
    value : ndarray of float64, shape (n, s)
        Amounts, NaN if missing.

    Returns
    -------
    ndarray of float64, shape (s,)
        Factors with a geometric mean of 1; 1 for samples without values.

    Examples
    --------
    >>> normalisation_factors(np.array([[1.0, 2.0], [3.0, 6.0], [5.0, 10.0]])).round(4).tolist()
    [1.4142, 0.7071]
    """
    count, used = np.zeros(len(value), np.int64), np.zeros(value.shape[1], np.bool_)
    for rows in row_blocks(value):
        has = value[rows] > 0
        count[rows] = has.sum(axis=1)
        used |= has.any(axis=0)
    is_chosen = count == used.sum()
    if not used.any():
        return np.ones(value.shape[1])
    if is_chosen.sum() < _TOP:
        is_chosen = count > 1
    mean = np.full(len(value), np.nan)
    for rows in row_blocks(value):
        some = np.flatnonzero(is_chosen[rows]) + rows.start
        mean[some] = np.nanmean(logarithms(value[some]), axis=1)
    # Some samples at once, so that no other table of all ions is in memory.
    chosen, shift, n = np.flatnonzero(is_chosen), np.zeros(value.shape[1]), max(1, _VALUES_OF_BATCH // max(1, len(value)))
    there = np.zeros(len(shift), np.bool_)
    for first in range(0, len(shift) if len(chosen) else 0, n):
        apart = logarithms(value[chosen, first : first + n]) - mean[chosen, None]
        there[first : first + n] = some = ~np.isnan(apart).all(axis=0)
        shift[first : first + n][some] = np.nanmedian(apart[:, some], axis=0)
        release_pages(value)
    shift[there] -= shift[there].mean() if there.any() else 0.0
    return np.exp(-shift)


class Grouping(NamedTuple):
    """Peptidoform of each ion, sequence of each peptidoform, and protein of each sequence.

    Attributes
    ----------
    form : ndarray of int64, shape (ions,)
        Index of the peptidoform of each ion.
    sequence : ndarray of int64, shape (forms,)
        Index of the sequence (peptide) of each peptidoform.
    protein : ndarray of int64, shape (sequences,)
        Index of the protein of each sequence, -1 for none.
    n_proteins : int
        Number of proteins.
    """

    form: NDArray[np.int64]
    sequence: NDArray[np.int64]
    protein: NDArray[np.int64]
    n_proteins: int


class Levels(NamedTuple):
    """Amounts of peptidoforms, of peptides (sequences) and of proteins."""

    forms: RawQuantities
    sequences: RawQuantities
    proteins: RawQuantities


def level_amounts(
    ions: RawQuantities,
    grouping: Grouping,
    by: ProteinQuantity,
    plexes: NDArray[np.int64] | None = None,
    *,
    factor: NDArray[np.float64] | None = None,
    spool: Path | None = None,
) -> Levels:
    """Return the amounts of peptidoforms, peptides and proteins, computed from the amounts of ions.

    Parameters
    ----------
    ions : RawQuantities
        One row per peptidoform and charge.
    grouping : Grouping
        Assignment of ions to peptidoforms, peptides and proteins.
    by : str
        Method of computing protein amounts (see `QuantificationParameters`).
    plexes : ndarray of int64, shape (s,), or None
        Index of each sample's plex. Ratios are computed only within a plex; plexes are compared by a reference, or not at all. With None,
        ratios are computed between all samples.
    factor : ndarray of float64, shape (s,), or None
        Factor by which the amounts of the ions of each sample are multiplied.
    spool : Path or None
        Folder of temporary files for large tables; None to stay in memory.

    Returns
    -------
    Levels
    """
    if plexes is not None and len(np.unique(plexes)) > 1:
        ions = ions if factor is None else ions.scaled(factor)
        return _join_plexes(plexes, [level_amounts(ions.select_samples(plexes == k), grouping, by) for k in np.unique(plexes).tolist()])
    sequence = grouping.sequence[grouping.form]
    forms = ratio_amounts(ions, grouping.form, len(grouping.sequence), factor=factor, spool=spool)
    sequences = ratio_amounts(ions, sequence, len(grouping.protein), factor=factor, spool=spool)
    return Levels(forms, sequences, protein_amounts(ions, sequences, grouping, by, factor=factor))


def _join_plexes(plexes: NDArray[np.int64], parts: list[Levels]) -> Levels:
    """Return the levels of several plexes, with columns in the order of the samples."""
    position = np.argsort(np.argsort(plexes, kind="stable"), kind="stable")
    return Levels(
        *(
            RawQuantities(*(np.concatenate([getattr(part, name) for part in level], axis=1)[:, position] for name in ("value", "state")))
            for level in zip(*parts, strict=True)
        )
    )


def ratio_amounts(
    ions: RawQuantities,
    group: NDArray[np.int64],
    n_groups: int,
    *,
    factor: NDArray[np.float64] | None = None,
    spool: Path | None = None,
) -> RawQuantities:
    """Return the amounts of groups of ions, computed from the pairwise ratios of ions.

    Parameters
    ----------
    ions : RawQuantities
        Amounts of n ions in s samples.
    group : ndarray of int64, shape (n,)
        Index of each ion's group, -1 for none.
    n_groups : int
        Number of groups.
    factor, spool
        Factor of the amounts in each sample, and folder of temporary files (see `level_amounts`).

    Returns
    -------
    RawQuantities, shape (n_groups, s)
        Amounts; a sample without a ratio to the largest connected set of samples has no amount, and the state `State.NO_SHARED_ION`.
    """
    n_samples = ions.value.shape[1]
    shape, scale = (n_groups, n_samples), 1.0 if factor is None else factor
    result = RawQuantities(full_matrix(shape, np.nan, np.float64, spool), full_matrix(shape, State.NOT_SEEN, np.int8, spool))
    order = np.flatnonzero(group >= 0)
    order = order[np.argsort(group[order], kind="stable")]
    offsets = segment_offsets(np.bincount(group[order], minlength=n_groups))
    first = 0
    while first < n_groups:  # In batches of groups, to avoid another table of all ions in memory.
        enough = offsets[first] + max(1, _VALUES_OF_BATCH // n_samples)
        last = max(first + 1, int(np.searchsorted(offsets, enough, side="right")) - 1)
        rows = order[offsets[first] : offsets[last]]
        some = _ratio_amounts(RawQuantities(ions.value[rows] * scale, ions.state[rows]), group[rows] - first, last - first)
        result.value[first:last], result.state[first:last] = some.value, some.state
        for values in (ions.value, ions.state, result.value, result.state):
            release_pages(values)
        first = last
    return result


def _ratio_amounts(ions: RawQuantities, group: NDArray[np.int64], n_groups: int) -> RawQuantities:
    """Return the amounts of groups of ions, which are sorted by group."""
    summed = ions.summed(group, n_groups)
    count = np.bincount(group, minlength=n_groups)
    several = np.flatnonzero(count > 1)
    value, state = summed.value.copy(), summed.state.copy()
    value[several] = pairwise_amounts(ions.value[count[group] > 1], segment_offsets(count[several]))
    state[np.isnan(value) & ~np.isnan(summed.value)] = State.NO_SHARED_ION
    return RawQuantities(value, state)


def protein_amounts(
    ions: RawQuantities, sequences: RawQuantities, grouping: Grouping, by: ProteinQuantity, *, factor: NDArray[np.float64] | None = None
) -> RawQuantities:
    """Return the amounts of proteins, computed from the ratios of their ions or from the amounts of their peptides.

    Parameters
    ----------
    ions : RawQuantities
        Amounts of ions.
    sequences : RawQuantities
        Amounts of peptides.
    grouping : Grouping
        Assignment of ions to peptidoforms, peptides and proteins.
    by : str
        Method (see `QuantificationParameters`); the three most abundant peptides are selected over all samples and used in each sample.
    factor : ndarray of float64, shape (s,), or None
        Factor of the amounts of ions in each sample.

    Returns
    -------
    RawQuantities, shape (grouping.n_proteins, s)
    """
    protein, n_proteins = grouping.protein, grouping.n_proteins
    if by == "maxlfq":
        return ratio_amounts(ions, protein[grouping.sequence[grouping.form]], n_proteins, factor=factor)
    summed = sequences.summed(protein, n_proteins)
    if by == "sum":
        return summed
    order = np.flatnonzero(protein >= 0)
    if by == "median":
        return replace(summed, value=medians(sequences.value[order], protein[order], n_proteins))
    abundance = np.nansum(sequences.value, axis=1)
    order = order[np.lexsort((-abundance[order], protein[order]))]
    offsets = segment_offsets(np.bincount(protein[order], minlength=n_proteins))
    top = order[np.arange(len(order)) - offsets[protein[order]] < _TOP]
    chosen = np.full(len(protein), -1, np.int64)
    chosen[top] = protein[top]
    return replace(sequences.summed(chosen, n_proteins), state=summed.state)


def medians(value: NDArray[np.float64], group: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
    """Return the median of each column in each group, (n_groups, s) float64; NaN without values.

    `value` has shape (n, s), and `group` (n,) is the index of each row's group.
    """
    result = np.full((n_groups, value.shape[1]), np.nan)
    for column in range(value.shape[1]):
        result[:, column] = group_medians(value[:, column], group, n_groups)
    return result


def group_medians(value: NDArray[np.float64], group: NDArray[np.integer], n_groups: int) -> NDArray[np.float64]:
    """Return the median of the values of each group, (n_groups,) float64; NaN without values.

    Parameters
    ----------
    value : ndarray of float64, shape (n,)
        Values; NaN is ignored.
    group : ndarray of int, shape (n,)
        Index of each value's group.
    n_groups : int
        Number of groups.

    Examples
    --------
    >>> group_medians(np.array([1.0, 9.0, 2.0, np.nan]), np.array([0, 0, 0, 1]), 2).tolist()
    [2.0, nan]
    """
    rows = np.flatnonzero(~np.isnan(value))
    rows = rows[np.lexsort((value[rows], group[rows]))]
    count = np.bincount(group[rows], minlength=n_groups)
    first = segment_offsets(count)[:-1]
    result = np.full(n_groups, np.nan)
    some = np.flatnonzero(count)
    low, high = first[some] + (count[some] - 1) // 2, first[some] + count[some] // 2
    result[some] = (value[rows[low]] + value[rows[high]]) / 2
    return result


def pairwise_amounts(value: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the amounts of groups of ions (such as proteins, peptides or peptidoforms) from pairwise ratios.

    Parameters
    ----------
    value : ndarray of float64, shape (n, s)
        Amounts of ions in samples, NaN if missing, sorted by group.
    offsets : ndarray of int64, shape (p + 1,)
        The ions of group i are the rows `offsets[i]:offsets[i + 1]`.

    Returns
    -------
    ndarray of float64, shape (p, s)
        Amounts; NaN for groups without ions, and for samples without a ratio to the largest set of samples that are connected by shared
        ions (among equally large sets, the most abundant one).
    """
    result = np.full((len(offsets) - 1, value.shape[1]), np.nan)
    amounts_by_ratios(value, offsets, result)
    return result
