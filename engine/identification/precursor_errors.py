"""Precursor errors of a run from a quick first search: systematic error and scatter.

The requested tolerance is a guess of both. If it is too small, correct answers lie outside, and the wrong ones replacing them look no
worse. A quick first search therefore samples the spectra of each file for peptides without variable modifications in a wide window. Among
its confident matches, the median error of a file is the systematic error; the median absolute deviation, robust against a few wrong matches
(Rousseeuw & Croux 1993, J Am Stat Assoc 88:1273), is the scatter. Precursors are corrected by their file's median, and the window around it
is set by the scatter: a badly calibrated run needs no wider window and no more candidates. Rare large errors are left to the second pass,
which searches few proteins and can afford a wide window. No window becomes narrower than requested: rescoring weighs errors and learns
their significance from the wrong matches of a wider window.

Confidence is a score threshold above which targets and decoys count equally: a tolerance from the errors of targets only might suit wrong
targets better than decoys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.passes import quick_matches, quick_parameters
from proteoscope.engine.peptides.indexes import Indexes
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex

__all__ = ["PrecursorErrors", "errors_of_matches", "measured_errors"]

_WIDEST = 20.0
"""Widest window of the first search and its result, ppm: the error of even badly calibrated instruments of some ppm."""
_LOOKED_AT, _LOOKED_AT_IN_A_FILE = 1000, 250
"""Spectra of the first search, of all files together and at least of each; a twentieth of them identified is enough."""
_CONFIDENT = 0.01
_ENOUGH = 30
"""Matches from which a median is known to a quarter, and a spread to a fifth, of the spread itself."""
_SPREADS, _SPREADS_OF_SECOND = 3.0, 5.0
"""Half-widths of windows in units of the scatter. Three include all but .3 % of normally distributed errors; those of runs have longer
tails.
"""
_NORMAL = 1.4826  # of a normal distribution, the standard deviation over the median absolute deviation


@dataclass(frozen=True)
class PrecursorErrors:
    """Errors of precursors, and the tolerances that follow.

    Attributes
    ----------
    tolerance, of_second : Tolerance
        Tolerances about the `medians`, of the first and of a second pass; the requested one where that is enough, or nothing was measured.
    medians : ndarray of float64, shape (f,)
        Errors of the precursors of each file, ppm; 0 where not measured.
    n_matches : int
        Confident matches whose errors were measured; 0 where too few were found.
    spread : float
        Robust standard deviation about the median of each file, ppm; 0 where not measured.
    message : str
        Text for the user; empty where no measurement was requested.
    """

    tolerance: Tolerance
    of_second: Tolerance
    medians: NDArray[np.float64]
    n_matches: int = 0
    spread: float = 0.0
    message: str = ""

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest median, ppm."""
        return float(self.medians.min()), float(self.medians.max())

    def record(self) -> dict[str, Any]:
        """Return the measurement for ``run.json``, empty unless requested. The tolerances are in the records of the passes."""
        if not self.message:
            return {}
        return {"precursor_errors": {"matches": self.n_matches, "medians_ppm": self.medians.tolist(), "spread_ppm": round(self.spread, 3)}}


def measured_errors(
    spectra: Spectra, index: SpectrumIndex, indexes: Indexes, parameters: IdentificationParameters, resources: Resources
) -> PrecursorErrors:
    """Measure the precursor errors of the run, and show them.

    Parameters
    ----------
    spectra, index
        Spectra, SpectrumIndex Spectra as read, and preprocessed.
    indexes : Indexes
        Proteins and peptides.
    parameters : IdentificationParameters
        Parameters of the search.
    resources : Resources
        What searches a sample of the spectra; its progress receives the message.

    Returns
    -------
    PrecursorErrors
        No errors and the requested tolerance where errors cannot be measured, or the parameters do not request it.
    """
    requested, unknown = parameters.precursor_tolerance, np.zeros(len(spectra.files))
    if not parameters.calibrate_tolerance:
        return PrecursorErrors(requested, requested, unknown)
    if requested.unit != "ppm" or requested.value >= _WIDEST or parameters.decoys == "none":
        reason = "errors are measured only with decoys" if parameters.decoys == "none" else f"only those below {_WIDEST:g} ppm are measured"
        result = PrecursorErrors(requested, requested, unknown, message=f"The precursor tolerance stays {requested}: {reason}")
    else:
        quick = quick_parameters(parameters, precursor_tolerance=Tolerance(_WIDEST, "ppm"))
        some = index.only(_some_of_each_file(spectra))
        psms = quick_matches(some, indexes, quick, resources, _CONFIDENT, plus_one=parameters.plus_one)
        result = errors_of_matches(psms.mass_error_ppm, spectra.file[psms.spectrum], len(spectra.files), requested)
    resources.progress.message(result.message)
    return result


def errors_of_matches(error: NDArray[np.float64], file: NDArray[np.integer], n_files: int, requested: Tolerance) -> PrecursorErrors:
    """Return the medians of the errors of confident matches in each of `n_files` files, and the tolerances that hold their scatter.

    Parameters
    ----------
    error : ndarray of float64, shape (n,)
        Errors, ppm.
    file : ndarray of int, shape (n,)
        Number of the file of each match; a file with too few matches has the median of all.
    n_files : int
        Number of files.
    requested : Tolerance
        Narrowest tolerance, ppm.

    Examples
    --------
    >>> error = np.linspace(1.0, 9.0, 101)
    >>> found = errors_of_matches(error, np.zeros(101, int), 1, Tolerance(5.0, "ppm"))
    >>> found.medians.tolist(), str(found.tolerance), str(found.of_second)
    ([5.0], '8.9 ppm', '14.8 ppm')
    """
    if len(error) < _ENOUGH:
        reason = f"errors are measured from {_ENOUGH} confident matches on, and {len(error)} were found"
        return PrecursorErrors(requested, requested, np.zeros(n_files), message=f"The precursor tolerance stays {requested}: {reason}")
    medians = np.full(n_files, np.median(error))
    is_measured = np.bincount(file, minlength=n_files) >= _ENOUGH
    for number in np.flatnonzero(is_measured).tolist():
        medians[number] = np.median(error[file == number])
    medians = np.round(medians, 2)
    spread = _NORMAL * float(np.median(np.abs(error - medians[file])))
    used, of_second = (
        Tolerance(max(requested.value, min(round(spreads * spread, 1), _WIDEST)), "ppm") for spreads in (_SPREADS, _SPREADS_OF_SECOND)
    )
    err = " to ".join(dict.fromkeys(f"{median:+.1f}" for median in (medians.min(), medians.max())))
    measured = f"{len(error)} confident matches err by {err} ppm, by which precursors are corrected, and scatter by {spread:.1f} ppm"
    message = f"The precursor tolerance {'stays' if used == requested else 'becomes'} {used}: {measured}"
    if not is_measured.all() and n_files > 1:
        few = f"{np.count_nonzero(~is_measured):,} of {n_files:,} files have fewer than {_ENOUGH} of these"
        message += f"; {few}, and are taken to be out of tune like all together"
    return PrecursorErrors(used, of_second, medians, len(error), spread, message)


def _some_of_each_file(spectra: Spectra) -> NDArray[np.int64]:
    """Return spectra with peaks at equal distances in each file; ascending."""
    most = max(_LOOKED_AT_IN_A_FILE, _LOOKED_AT // max(len(spectra.files), 1))
    rows_of_files = (np.flatnonzero((spectra.file == number) & (np.diff(spectra.offsets) > 0)) for number in range(len(spectra.files)))
    return np.sort(np.concatenate([rows[:: max(1, -(-len(rows) // most))] for rows in rows_of_files]))
