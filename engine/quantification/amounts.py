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
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.kernels.cpu.pair_medians import pair_medians

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
_VALUES_OF_BATCH = 1 << 22


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
    logs = logarithms(value)
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


def level_amounts(ions: RawQuantities, grouping: Grouping, by: ProteinQuantity, plexes: NDArray[np.int64] | None = None) -> Levels:
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

    Returns
    -------
    Levels
    """
    if plexes is not None and len(np.unique(plexes)) > 1:
        return _join_plexes(plexes, [level_amounts(ions.select_samples(plexes == k), grouping, by) for k in np.unique(plexes).tolist()])
    sequence = grouping.sequence[grouping.form]
    forms = ratio_amounts(ions, grouping.form, len(grouping.sequence))
    sequences = ratio_amounts(ions, sequence, len(grouping.protein))
    return Levels(forms, sequences, protein_amounts(ions, sequences, grouping, by))


def _join_plexes(plexes: NDArray[np.int64], parts: list[Levels]) -> Levels:
    """Return the levels of several plexes, with columns in the order of the samples."""
    position = np.argsort(np.argsort(plexes, kind="stable"), kind="stable")
    return Levels(
        *(
            RawQuantities(*(np.concatenate([getattr(part, name) for part in level], axis=1)[:, position] for name in ("value", "state")))
            for level in zip(*parts, strict=True)
        )
    )


def ratio_amounts(ions: RawQuantities, group: NDArray[np.int64], n_groups: int) -> RawQuantities:
    """Return the amounts of groups of ions, computed from the pairwise ratios of ions.

    Parameters
    ----------
    ions : RawQuantities
        Amounts of n ions in s samples.
    group : ndarray of int64, shape (n,)
        Index of each ion's group, -1 for none.
    n_groups : int
        Number of groups.

    Returns
    -------
    RawQuantities, shape (n_groups, s)
        Amounts; a sample without a ratio to the largest connected set of samples has no amount, and the state `State.NO_SHARED_ION`.
    """
    n_samples = ions.value.shape[1]
    result = RawQuantities(np.full((n_groups, n_samples), np.nan), np.full((n_groups, n_samples), State.NOT_SEEN, np.int8))
    order = np.flatnonzero(group >= 0)
    order = order[np.argsort(group[order], kind="stable")]
    offsets = segment_offsets(np.bincount(group[order], minlength=n_groups))
    first = 0
    while first < n_groups:  # In batches of groups, to avoid another table of all ions in memory.
        enough = offsets[first] + max(1, _VALUES_OF_BATCH // n_samples)
        last = max(first + 1, int(np.searchsorted(offsets, enough, side="right")) - 1)
        rows = order[offsets[first] : offsets[last]]
        some = _ratio_amounts(RawQuantities(ions.value[rows], ions.state[rows]), group[rows] - first, last - first)
        result.value[first:last], result.state[first:last] = some.value, some.state
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


def protein_amounts(ions: RawQuantities, sequences: RawQuantities, grouping: Grouping, by: ProteinQuantity) -> RawQuantities:
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

    Returns
    -------
    RawQuantities, shape (grouping.n_proteins, s)
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
    n_proteins, n_samples = len(offsets) - 1, value.shape[1]
    result = np.full((n_proteins, n_samples), np.nan)
    some = max(1, _VALUES_OF_BATCH // max(1, n_samples * n_samples))
    for first in range(0, n_proteins, some):
        last = min(first + some, n_proteins)
        rows = slice(offsets[first], offsets[last])
        result[first:last] = _ratios_of_batch(value[rows], offsets[first : last + 1] - offsets[first])
    return result


def _ratios_of_batch(value: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    n_proteins, n_samples = len(offsets) - 1, value.shape[1]
    group = np.repeat(np.arange(n_proteins), np.diff(offsets))
    laplacian = np.zeros((n_proteins, n_samples, n_samples))
    right, part = np.zeros((n_proteins, n_samples)), np.empty((n_proteins, n_samples), np.int64)
    pair_medians(logarithms(value), offsets, laplacian, right, part)
    # An additional equation for each connected component, by which its mean logarithm is 0, makes the normal equations solvable.
    same = part[:, :, None] == part[:, None, :]
    laplacian += same  # in place: the matrices are the largest arrays of a quantification
    solved = np.linalg.solve(laplacian, right[..., None])[..., 0]
    total = np.zeros((n_proteins, n_samples))
    np.add.at(total, group, np.nan_to_num(np.where(value > 0, value, 0.0)))
    is_used = _are_in_largest_component(same, total)
    relative = np.where(is_used, np.exp(solved), 0.0)
    of_part = np.where(is_used, total, 0.0).sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        amount = relative * of_part / relative.sum(axis=1, keepdims=True)
    return np.where(is_used, amount, np.nan)


def _are_in_largest_component(same: NDArray[np.bool_], total: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return True for samples in the largest connected component, (p, s).

    Among equally large components, the most abundant is used; among equally abundant ones, the first.
    """
    has_any = total > 0
    size = np.where(has_any, (same & has_any[:, None, :]).sum(axis=2), 0)
    is_largest = has_any & (size == size.max(axis=1, keepdims=True))
    abundance = np.where(is_largest, (same * total[:, None, :]).sum(axis=2), -1.0)
    chosen = abundance.argmax(axis=1)
    is_chosen: NDArray[np.bool_] = has_any & (same[np.arange(len(same)), chosen])
    return is_chosen
