"""Missing values of proteins by condition, with Fisher's exact test of each condition against the others.

A protein that is missing in all samples of one condition but not of all others is listed as such; nothing is imputed here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.quantification.changes import adjusted
from proteoscope.engine.quantification.identified import Proteins
from proteoscope.engine.quantification.tables import MISSING
from proteoscope.engine.results.arrow import or_null, taken

__all__ = ["exact_test", "missing_table"]

_OUTCOMES = ("measured", "partly missing", "missing in the condition", "missing in all")
_EQUAL = 1 + 1e-7
"""Factor up to which probabilities count as equal, as in R's fisher.test."""


def missing_table(value: NDArray[np.float64], conditions: Sequence[str], proteins: Proteins) -> pa.Table:
    """Return the table of missing values, with one row per protein and condition; empty without conditions.

    Parameters
    ----------
    value : ndarray of float64, shape (p, s)
        Quantities of proteins in samples, NaN if missing.
    conditions : sequence of str
        Condition of each sample, '' for none; samples without one are not counted.
    proteins : Proteins
        The p proteins.

    Returns
    -------
    pyarrow.Table
    """
    names = list(dict.fromkeys(name for name in conditions if name))
    if not names or not len(value):
        return MISSING.schema().empty_table()
    is_member = np.array([[name == condition for condition in conditions] for name in names])
    n_samples = is_member.sum(axis=1)
    missing = np.stack([np.isnan(value[:, members]).sum(axis=1) for members in is_member], axis=1)
    total, n_all = missing.sum(axis=1), int(n_samples.sum())
    p_value = np.full(missing.shape, np.nan)
    for k in range(len(names) if len(names) > 1 else 0):
        p_value[:, k] = exact_test(missing[:, k], total, int(n_samples[k]), n_all)
    # Proteins that are in all samples, or in none, cannot depend on the condition.
    p_value[(total == 0) | (total == n_all)] = np.nan
    outcome = np.select([(total == n_all)[:, None], missing == n_samples, missing > 0], [3, 2, 1], 0)
    row = np.repeat(np.arange(len(value)), len(names))
    return MISSING.arrow(
        {
            "accession": taken(proteins.accession, row),
            "description": taken(proteins.description, row),
            "condition": names * len(value),
            "n_samples": np.tile(n_samples, len(value)),
            "n_missing": missing.ravel(),
            "missing_fraction": (missing / n_samples).ravel(),
            "p_value": or_null(p_value),
            "q_value": or_null(adjusted(p_value)),
            "outcome": taken(_OUTCOMES, outcome.ravel()),
            **{name: column.take(pa.array(row)) for name, column in proteins.names.items()},
        }
    )


def exact_test(missing: NDArray[np.int64], total: NDArray[np.int64], n_samples: int, n_all: int) -> NDArray[np.float64]:
    """Return two-sided p-values of Fisher's exact test, (p,) float64.

    Parameters
    ----------
    missing, total : ndarray of int64, shape (p,)
        Number of missing values in the condition and in all samples.
    n_samples, n_all : int
        Number of samples of the condition, and of all.
    """
    from scipy.stats import hypergeom  # slow to import: loaded after the files are read

    result = np.ones(len(total))
    counts = np.arange(n_samples + 1)
    for number in np.unique(total).tolist():
        rows = np.flatnonzero(total == number)
        probability = hypergeom.pmf(counts, n_all, number, n_samples)
        order = np.argsort(probability, kind="stable")
        tail = np.append(0.0, np.cumsum(probability[order]))
        p_value = tail[np.searchsorted(probability[order], probability * _EQUAL, side="right")]
        result[rows] = np.minimum(p_value[missing[rows]], 1.0)
    return result
