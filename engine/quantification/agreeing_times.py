"""Ions whose trace one file shows at another time than the others: there it is the trace of something else.

Where something with the m/z and pattern of an ion, and more of it, comes off the column shortly before or behind it, there is one summit:
the way uphill from the spectra of the ion leads to the wrong one. One file does not show that. Others do, in which the ion is the larger.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.quantification.retention_times import aligned

__all__ = ["at_another_time"]

_SPREADS = 4.0
"""Standard deviations of the alignments, from which on two times are not the same."""
_FEWEST_SHARED = 50
"""Ions that a file shares with the one that has most: a curve through fewer may itself be wrong, above all at its ends."""
_PART_OF_WIDTH = 0.25
"""Of the narrower of two summits, within which their times are the same: wide ones are known less well."""


def at_another_time(times: NDArray[np.float64], widths: NDArray[np.float64], from_spectra: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which measured ions are at another time than most files have them; (ions, files) bool.

    Of the times of an ion, after alignment, that one counts which the most files share, and of several that which is nearest to the spectra
    that identified the ion. Others are further from it than two times of one ion are, and than a quarter of the narrower summit's width.
    Files that share few ions tell nothing of each other.

    Parameters
    ----------
    times : (ions, files) float64, s, of the summits, NaN where there is none. widths : (ions, files), s, at half of their heights.
    from_spectra : (ions, files), s, how far the nearest spectrum of the ion is from its summit.
    """
    there = ~np.isnan(times)
    found = np.zeros(times.shape, np.bool_)
    rows = np.flatnonzero(there.sum(axis=1) > 1)
    if not len(rows):
        return found
    alignments = aligned(times)
    known = [file for file, one in enumerate(alignments) if one is not None and one.n_shared >= _FEWEST_SHARED]
    if len(known) < 2:
        return found
    spread = max(one.spread for one in alignments if one is not None and one.n_shared >= _FEWEST_SHARED)
    common = np.full((len(rows), len(known)), np.nan)
    for column, file in enumerate(known):
        alignment, has = alignments[file], there[rows, file]
        assert alignment is not None
        common[has, column] = alignment.to_reference(times[rows[has], file])
    near = widths[rows][:, known] * _PART_OF_WIDTH
    best, best_score = np.zeros(len(rows), np.int64), np.full(len(rows), -np.inf)

    def is_apart(file: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which times are another than that of a file, one for each ion."""
        own, its = common[np.arange(len(rows)), file], near[np.arange(len(rows)), file]
        return np.abs(common - own[:, None]) > np.maximum(_SPREADS * spread, np.minimum(near, its[:, None]))

    for column in range(len(known)):
        # However near the spectra are, that is less than a file.
        score = (~is_apart(np.full(len(rows), column))).sum(axis=1) + 1 / (2 + from_spectra[rows, known[column]])
        is_better = ~np.isnan(common[:, column]) & (score > best_score)
        best[is_better], best_score[is_better] = column, score[is_better]
    found[rows[:, None], known] = is_apart(best)
    return found
