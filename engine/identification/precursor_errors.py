"""Precursor mass errors of a run, measured by a preliminary search: systematic error and scatter.

The requested tolerance can only be a guess of the errors. If it is too small, correct peptides are outside the window, and the wrong
matches that replace them look equally good. A preliminary search therefore samples the spectra of each file and searches peptides without
variable modifications in a wide window. The median error of the confident matches of a file is the systematic error. The median absolute
deviation, which is robust against a few wrong matches (Rousseeuw & Croux 1993, J Am Stat Assoc 88:1273), is the scatter. Precursors are
corrected by the median of their file, and the scatter determines the width of the window. A badly calibrated run thus needs no wider window
and no more candidates. Rare large errors are covered only by the second pass, which searches few proteins and can use a wide window. No
window becomes narrower than requested, because the mass error is a feature of rescoring, and its weight is learnt from wrong matches in a
wide window.

Confident matches include targets and decoys above the same score: a tolerance based on errors of targets only might fit wrong targets
better than decoys.
"""

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

__all__ = ["PrecursorErrors", "errors_of_matches", "measure_errors"]

_WIDEST = 20.0
"""Half-width of the window of the preliminary search, and maximum of the result, ppm.

Even badly calibrated instruments have smaller errors.
"""
_INSPECTED, _INSPECTED_PER_FILE = 1000, 250
"""Number of spectra in the preliminary search, in total and at least per file; this is enough if a twentieth of them are identified."""
_CONFIDENT = 0.01
_ENOUGH = 30
"""Minimum number of matches. The standard error is then a quarter of the scatter for the median, and a fifth for the scatter."""
_SPREADS, _SPREADS_OF_SECOND = 3.0, 5.0
"""Half-widths of the windows of the first and the second pass, in units of the scatter.

Three units include all but 0.3 % of normally distributed errors; the errors of runs have longer tails.
"""
_NORMAL = 1.4826  # standard deviation / median absolute deviation of a normal distribution


@dataclass(frozen=True)
class PrecursorErrors:
    """Measured precursor mass errors, and tolerances derived from them.

    Attributes
    ----------
    tolerance, of_second : Tolerance
        Tolerances around the `medians` for the first and the second pass: the requested tolerance, or a wider one if the errors need it.
    medians : ndarray of float64, shape (f,)
        Median mass error of each file, ppm; 0 if not measured.
    n_matches : int
        Number of confident matches; 0 if there were too few.
    spread : float
        Robust standard deviation of the errors around the medians, ppm; 0 if not measured.
    message : str
        Sentence for the user; '' if no measurement was requested.
    """

    tolerance: Tolerance
    of_second: Tolerance
    medians: NDArray[np.float64]
    n_matches: int = 0
    spread: float = 0.0
    message: str = ""

    @property
    def range(self) -> tuple[float, float]:
        """Minimum and maximum of the medians of the files, ppm."""
        return float(self.medians.min()), float(self.medians.max())

    def record(self) -> dict[str, Any]:
        """Return the measured errors for ``run.json``; empty if no measurement was requested.

        The tolerances that result are not included; they are in the records of the passes.
        """
        if not self.message:
            return {}
        return {"precursor_errors": {"matches": self.n_matches, "medians_ppm": self.medians.tolist(), "spread_ppm": round(self.spread, 3)}}


def measure_errors(
    spectra: Spectra, index: SpectrumIndex, indexes: Indexes, parameters: IdentificationParameters, resources: Resources
) -> PrecursorErrors:
    """Measure the precursor mass errors of the run, and report them to the user.

    Parameters
    ----------
    spectra : Spectra
        Spectra as read.
    index : SpectrumIndex
        The same spectra after preprocessing.
    indexes : Indexes
        Proteins and peptides.
    parameters : IdentificationParameters
        Parameters of the search.
    resources : Resources
        Devices of the search; the progress receives the message.

    Returns
    -------
    PrecursorErrors
        If errors cannot be measured, or the parameters do not request a measurement, the errors are 0, and both tolerances are the
        requested tolerance.
    """
    requested, unknown = parameters.precursor_tolerance, np.zeros(len(spectra.files))
    if not parameters.calibrate_tolerance:
        return PrecursorErrors(requested, requested, unknown)
    if requested.unit != "ppm" or requested.value >= _WIDEST or parameters.decoys == "none":
        reason = "errors are measured only with decoys" if parameters.decoys == "none" else f"only those below {_WIDEST:g} ppm are measured"
        result = PrecursorErrors(requested, requested, unknown, message=f"The precursor tolerance stays {requested}: {reason}")
    else:
        quick = quick_parameters(parameters, precursor_tolerance=Tolerance(_WIDEST, "ppm"))
        some = index.only(_sample_each_file(spectra))
        psms = quick_matches(some, indexes, quick, resources, _CONFIDENT, plus_one=parameters.plus_one)
        result = errors_of_matches(psms.mass_error_ppm, spectra.file[psms.spectrum], len(spectra.files), requested)
    resources.progress.message(result.message)
    return result


def errors_of_matches(error: NDArray[np.float64], file: NDArray[np.integer], n_files: int, requested: Tolerance) -> PrecursorErrors:
    """Return the median mass error of each file, and tolerances that allow for the scatter, from confident matches.

    Parameters
    ----------
    error : ndarray of float64, shape (n,)
        Mass errors of the matches, ppm.
    file : ndarray of int, shape (n,)
        File of each match; a file with too few matches gets the median of all matches.
    n_files : int
        Number of files.
    requested : Tolerance
        Minimum tolerance, ppm.

    Returns
    -------
    PrecursorErrors

    Examples
    --------
    >>> error = np.linspace(1.0, 9.0, 101)
    >>> found = errors_of_matches(error, np.zeros(101, int), 1, Tolerance(5.0, "ppm"))
    >>> found.medians.tolist(), str(found.tolerance), str(found.of_second)
    ([5.0], '8.9 ppm', '14.8 ppm')
    """
    if len(error) < _ENOUGH:
        reason = f"to measure errors, {_ENOUGH} confident matches are needed, and {len(error)} were found"
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
    measured = f"{len(error)} confident matches err by {err} ppm, which is corrected, and scatter by {spread:.1f} ppm"
    message = f"The precursor tolerance {'stays' if used == requested else 'becomes'} {used}: {measured}"
    if not is_measured.all():  # there are several files, since a single file would have all errors
        few = f"{np.count_nonzero(~is_measured):,} of {n_files:,} files have fewer than {_ENOUGH} of these"
        message += f"; {few}, and are corrected by the median of all files"
    return PrecursorErrors(used, of_second, medians, len(error), spread, message)


def _sample_each_file(spectra: Spectra) -> NDArray[np.int64]:
    """Return the indices of the sample, ascending: from each file, evenly spaced spectra that have peaks."""
    most = max(_INSPECTED_PER_FILE, _INSPECTED // max(len(spectra.files), 1))
    rows_of_files = (np.flatnonzero((spectra.file == number) & (np.diff(spectra.offsets) > 0)) for number in range(len(spectra.files)))
    return np.sort(np.concatenate([rows[:: max(1, -(-len(rows) // most))] for rows in rows_of_files]))
