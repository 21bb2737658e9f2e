"""Amounts (quantities) of peptidoforms, peptides and proteins by sample, computed from ions, with reasons for missing amounts.

Amounts are computed from pairwise medians of ion ratios: MaxLFQ (Cox et al. 2014, Mol. Cell. Proteomics 13:2513).

For each pair of samples, the median log ratio of the ions in both samples is computed. The amounts of a group (such as a protein) are
chosen so that their log ratios are closest to these medians by least squares, and scaled to the sum of the amounts of the ions. Samples
that are not connected by shared ions have no ratio to each other, so only the largest connected set of samples has amounts. Missing ions
are not imputed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
    """State of an amount. An amount combined from several amounts has the smallest of their states."""

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

    @classmethod
    def missing(cls, shape: tuple[int, int], spool: Path | None = None) -> RawQuantities:
        """Create missing amounts of a shape (n, s); large ones are in temporary files in the folder `spool`, if it is given."""
        return cls(full_matrix(shape, np.nan, np.float64, spool), full_matrix(shape, State.NOT_SEEN, np.int8, spool))

    def summed(
        self, group: NDArray[np.int64], n_groups: int, *, rows: NDArray[np.int64] | None = None, spool: Path | None = None
    ) -> RawQuantities:
        """Return the sums of the available amounts of each group, (n_groups, s).

        Parameters
        ----------
        group, n_groups, rows, spool
            Groups of the items, and folder of temporary files (see `ratio_amounts`).
        """
        result = RawQuantities.missing((n_groups, self.value.shape[1]), spool)
        for _, items in _batches(group, n_groups, self.value, self.state, result.value, result.state):
            some, first = np.unique(group[items], return_index=True)
            if not len(some):
                continue
            at = items if rows is None else rows[items]
            values = self.value[at]
            total = np.add.reduceat(np.nan_to_num(values), first, axis=0)
            has_any = np.add.reduceat(~np.isnan(values), first, axis=0) > 0
            result.value[some] = np.where(has_any, total, np.nan)
            result.state[some] = np.minimum.reduceat(self.state[at], first, axis=0)
        return result

    def select_samples(self, columns: NDArray[np.int64]) -> RawQuantities:
        """Return the amounts in the samples with the indices `columns`."""
        return RawQuantities(np.ascontiguousarray(self.value[:, columns]), np.ascontiguousarray(self.state[:, columns]))

    def has_any(self) -> NDArray[np.bool_]:
        """Return True for items with an amount in any sample, (n,)."""
        return np.concatenate([np.zeros(0, np.bool_), *((~np.isnan(self.value[rows])).any(axis=1) for rows in row_blocks(self.value))])

    @property
    def log2(self) -> NDArray[np.float64]:
        """log2 of the amounts, (n, s); NaN if missing."""
        return self.log2_of(slice(None))

    def log2_of(self, rows: slice) -> NDArray[np.float64]:
        """Return log2 of the amounts of a range of items; NaN if missing."""
        value = self.value[rows]
        result = np.full(value.shape, np.nan)
        np.log2(value, out=result, where=value > 0)
        return result

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
    sequence = grouping.sequence[grouping.form]
    forms = ratio_amounts(ions, grouping.form, len(grouping.sequence), plexes=plexes, factor=factor, spool=spool)
    sequences = ratio_amounts(ions, sequence, len(grouping.protein), plexes=plexes, factor=factor, spool=spool)
    return Levels(forms, sequences, protein_amounts(ions, sequences, grouping, by, plexes=plexes, factor=factor, spool=spool))


def _columns_of_plexes(plexes: NDArray[np.int64] | None, n_samples: int) -> list[NDArray[np.int64]]:
    """Return the columns of the samples of each plex; all columns if there are no plexes."""
    return [np.arange(n_samples)] if plexes is None else [np.flatnonzero(plexes == plex) for plex in np.unique(plexes)]


def _batches(group: NDArray[np.int64], n_groups: int, *matrices: NDArray[np.generic]) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Yield ranges of groups, and the indices of their items sorted by group, so that no other table of all items is in memory.

    `group` is the index of each item's group, or -1. The first matrix has the number of columns of the items. The memory of mapped matrices
    is freed after each range.
    """
    order = np.flatnonzero(group >= 0)
    order = order[np.argsort(group[order], kind="stable")]
    offsets, some = segment_offsets(np.bincount(group[order], minlength=n_groups)), max(1, _VALUES_OF_BATCH // max(1, matrices[0].shape[1]))
    first = 0
    while first < n_groups:
        last = max(first + 1, min(first + some, int(np.searchsorted(offsets, offsets[first] + some, side="right")) - 1))
        yield slice(first, last), order[offsets[first] : offsets[last]]
        for values in matrices:
            release_pages(values)
        first = last


def ratio_amounts(
    ions: RawQuantities,
    group: NDArray[np.int64],
    n_groups: int,
    *,
    rows: NDArray[np.int64] | None = None,
    plexes: NDArray[np.int64] | None = None,
    factor: NDArray[np.float64] | None = None,
    spool: Path | None = None,
) -> RawQuantities:
    """Return the amounts of groups of ions, computed from the pairwise ratios of ions.

    Parameters
    ----------
    ions : RawQuantities
        Amounts of ions in s samples.
    group : ndarray of int64, shape (n,)
        Index of the group of each of n ions, -1 for none.
    n_groups : int
        Number of groups.
    rows : ndarray of int64, shape (n,), or None
        Index of each of the n ions, if they are not all ions in their order; an ion may be in several groups.
    plexes, factor, spool
        Plexes, factor of the amounts in each sample, and folder of temporary files (see `level_amounts`).

    Returns
    -------
    RawQuantities, shape (n_groups, s)
        Amounts; a sample without a ratio to the largest connected set of samples has no amount, and the state `State.NO_SHARED_ION`.
    """
    n_samples, scale = ions.value.shape[1], 1.0 if factor is None else factor
    result, columns_of_plexes = RawQuantities.missing((n_groups, n_samples), spool), _columns_of_plexes(plexes, n_samples)
    for groups, items in _batches(group, n_groups, ions.value, ions.state, result.value, result.state):
        at = items if rows is None else rows[items]
        some, number = RawQuantities(ions.value[at] * scale, ions.state[at]), group[items] - groups.start
        for columns in columns_of_plexes:
            part = some if len(columns) == n_samples else some.select_samples(columns)
            amounts = _ratio_amounts(part, number, groups.stop - groups.start)
            result.value[groups, columns], result.state[groups, columns] = amounts.value, amounts.state
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
    ions: RawQuantities,
    sequences: RawQuantities | None,
    grouping: Grouping,
    by: ProteinQuantity,
    *,
    rows: NDArray[np.int64] | None = None,
    plexes: NDArray[np.int64] | None = None,
    factor: NDArray[np.float64] | None = None,
    spool: Path | None = None,
) -> RawQuantities:
    """Return the amounts of proteins, computed from the ratios of their ions or from the amounts of their peptides.

    Parameters
    ----------
    ions : RawQuantities
        Amounts of ions.
    sequences : RawQuantities or None
        Amounts of peptides; None to compute them if they are needed.
    grouping : Grouping
        Assignment of ions to peptidoforms, peptides and proteins.
    by : str
        Method (see `QuantificationParameters`); the three most abundant peptides are selected over all samples of a plex and used in each
        of them.
    rows, plexes, factor, spool
        Ions, plexes, factor of the amounts in each sample, and folder of temporary files (see `ratio_amounts`).

    Returns
    -------
    RawQuantities, shape (grouping.n_proteins, s)
    """
    protein, n_proteins, sequence = grouping.protein, grouping.n_proteins, grouping.sequence[grouping.form]
    if by == "maxlfq":
        return ratio_amounts(ions, protein[sequence], n_proteins, rows=rows, plexes=plexes, factor=factor, spool=spool)
    if sequences is None:
        sequences = ratio_amounts(ions, sequence, len(protein), rows=rows, plexes=plexes, factor=factor, spool=spool)
    result = sequences.summed(protein, n_proteins, spool=spool)
    if by == "sum":
        return result
    if by == "median":
        return replace(result, value=medians(sequences.value, protein, n_proteins))
    n_samples = result.value.shape[1]
    for columns in _columns_of_plexes(plexes, n_samples):
        part = sequences if len(columns) == n_samples else sequences.select_samples(columns)
        top = part.summed(_most_abundant(part, protein, n_proteins), n_proteins, spool=spool)
        for some in row_blocks(result.value, top.value):
            result.value[some, columns] = top.value[some]
    return result


def _most_abundant(sequences: RawQuantities, protein: NDArray[np.int64], n_proteins: int) -> NDArray[np.int64]:
    """Return the protein of each of the most abundant peptides of each protein, -1 for the other peptides."""
    abundance = np.concatenate([np.zeros(0), *(np.nansum(sequences.value[rows], axis=1) for rows in row_blocks(sequences.value))])
    order = np.flatnonzero(protein >= 0)
    order = order[np.lexsort((-abundance[order], protein[order]))]
    offsets = segment_offsets(np.bincount(protein[order], minlength=n_proteins))
    top = order[np.arange(len(order)) - offsets[protein[order]] < _TOP]
    result = np.full(len(protein), -1, np.int64)
    result[top] = protein[top]
    return result


def medians(value: NDArray[np.float64], group: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
    """Return the median of each column in each group, (n_groups, s) float64; NaN without values.

    `value` has shape (n, s), and `group` (n,) is the index of each row's group, -1 for none.
    """
    n_columns = value.shape[1]
    result = np.full((n_groups, n_columns), np.nan)
    for groups, items in _batches(group, n_groups, value):
        cell = (group[items] - groups.start)[:, None] * n_columns + np.arange(n_columns)
        some = group_medians(value[items].ravel(), cell.ravel(), (groups.stop - groups.start) * n_columns)
        result[groups] = some.reshape(-1, n_columns)
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
