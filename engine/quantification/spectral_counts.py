"""Spectral counts, and normalised spectral abundance factors: NSAF (Zybailov et al. 2006, J. Proteome Res. 5:2339)."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges, segment_offsets
from proteoscope.engine.quantification.amounts import MeasuredIons, RawQuantities, State
from proteoscope.engine.quantification.design import Design
from proteoscope.engine.quantification.identified import Identified
from proteoscope.engine.spectra.spooling import full_matrix, row_blocks

__all__ = ["abundance_factors", "measure_counts", "spectra_by_sample"]


def spectra_by_sample(
    identified: Identified, design: Design, item: NDArray[np.int64], n_items: int, spool: Path | None = None
) -> NDArray[np.int32]:
    """Return the number of identified spectra of each protein (or peptide) in each sample, (n_items, samples) int32.

    `item` is the index of the protein (or peptide) of each spectrum, (n,), or -1; `spool` is the folder of large temporary files.
    """
    members = design.members(len(identified.files))
    starts, sample = segment_offsets(members.sum(axis=1)), np.nonzero(members)[1]
    result = full_matrix((n_items, members.shape[1]), 0, np.int32, spool)
    order = np.argsort(item, kind="stable")
    ends = np.searchsorted(item[order], np.arange(n_items + 1))
    for rows in row_blocks(result):
        some = order[ends[rows.start] : ends[rows.stop]]
        file = identified.matches.file[some]
        offsets, index = ranges(starts[file], starts[file + 1])
        at = np.repeat(item[some] - rows.start, np.diff(offsets)) * members.shape[1] + sample[index]
        result[rows] = np.bincount(at, minlength=result[rows].size).reshape(-1, members.shape[1])
    return result


def measure_counts(identified: Identified, design: Design, spool: Path | None = None) -> MeasuredIons:
    """Return the spectral counts as amounts; a count of 0 is a missing amount. `spool` is the folder of large temporary files."""
    counts = spectra_by_sample(identified, design, identified.matches.form, len(identified.forms), spool)
    result = RawQuantities.missing((len(counts), counts.shape[1]), spool)
    for rows in row_blocks(counts, result.value, result.state):
        has = counts[rows] > 0
        result.value[rows][has], result.state[rows][has] = counts[rows][has], State.MEASURED
    return MeasuredIons(result, np.arange(len(counts)))


def abundance_factors(counts: NDArray[np.integer], length: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the NSAF: spectra per residue of each protein, relative to the sum over all proteins of the sample.

    Parameters
    ----------
    counts : ndarray of int, shape (p, s)
        Spectral counts.
    length : ndarray of int64, shape (p,)
        Number of residues; proteins of unknown length (0) are excluded.

    Returns
    -------
    ndarray of float64, shape (p, s)
        Abundance factors; NaN for proteins of unknown length, and for samples without spectra.

    Examples
    --------
    >>> abundance_factors(np.array([[2], [2]]), np.array([100, 300])).ravel().tolist()
    [0.75, 0.25]
    """
    by_length = np.full(counts.shape, np.nan)
    has_length = length > 0
    by_length[has_length] = counts[has_length] / length[has_length, None]
    total = np.nansum(by_length, axis=0)
    return by_length / np.where(total > 0, total, np.nan)
