"""The precursor tolerance from the run: what the errors of a quick first search say of the instrument.

What a user asks for is a guess at how far an instrument is out of tune and how far it scatters. Where the guess is too small, right answers
lie outside, and the wrong ones that take their place look no worse. So a quick first search looks at some of the spectra of each file, for
peptides without variable modifications, in a wide window. Of its confident matches the median error of a file tells how far it is out of
tune; the median absolute deviation from that, which a few wrong matches do not move (Rousseeuw & Croux 1993, J Am Stat Assoc 88:1273), how
far it scatters. The tolerance becomes what holds both. It never becomes narrower than what was asked for: a window may well be wider than
the errors, since rescoring weighs them, and learns from the wrong matches of a wider window what an error is worth.

Which matches are confident is a score, above which targets and decoys count alike: a tolerance from the errors of targets alone might suit
wrong targets better than decoys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.chemistry.tolerance import Tolerance
from engine.execution.resources import Resources
from engine.identification.parameters import IdentificationParameters
from engine.identification.passes import Pass
from engine.matches.psms import search_score
from engine.peptides.indexes import Indexes
from engine.spectra.columns import Spectra
from engine.statistics.target_decoy import q_values

__all__ = ["PrecursorTolerance", "measured_tolerance", "tolerance_of_errors"]

_WIDEST = 20.0
"""Of the first search, and of what comes of it, in ppm: what instruments err by that are asked for some ppm, even badly tuned."""
_LOOKED_AT, _LOOKED_AT_IN_A_FILE = 1000, 250
"""Spectra of the first search, of all files together and at least of each; a twentieth of them identified is enough."""
_CONFIDENT = 0.01
_ENOUGH = 30
"""Matches from which a median is known to a quarter, and a spread to a fifth, of the spread itself."""
_SPREADS = 6.0
_NORMAL = 1.4826  # of a normal distribution, the standard deviation over the median absolute deviation


@dataclass(frozen=True)
class PrecursorTolerance:
    """The tolerance, and why.

    Attributes
    ----------
    asked, used : tolerances. n_matches : confident matches whose errors were measured, 0 where too few were found or none looked for.
    median, spread : ppm, of the file that is most out of tune, and of all about the median of their file; 0 where not measured.
    message : for the user; empty where nobody asked for a measurement.
    """

    asked: Tolerance
    used: Tolerance
    n_matches: int = 0
    median: float = 0.0
    spread: float = 0.0
    message: str = ""

    def record(self) -> dict[str, Any]:
        """What `run.json` tells of the measurement; nothing where nobody asked. What is searched with, the passes tell."""
        if not self.message:
            return {}
        return {"precursor_errors": {"matches": self.n_matches, "median_ppm": self.median, "spread_ppm": self.spread}}


def measured_tolerance(
    spectra: Spectra, indexes: Indexes, parameters: IdentificationParameters, resources: Resources
) -> PrecursorTolerance:
    """The tolerance that the run needs, or the one asked for where it cannot be measured, or the parameters do not want that.

    The user is told what was found.
    """
    asked = parameters.precursor_tolerance
    if not parameters.tolerance_from_run:
        return PrecursorTolerance(asked, asked)
    if asked.unit != "ppm" or asked.value >= _WIDEST or parameters.decoys == "none":
        reason = "errors are measured only with decoys" if parameters.decoys == "none" else f"only those below {_WIDEST:g} ppm are measured"
        found = PrecursorTolerance(asked, asked, message=f"The precursor tolerance stays {asked}: {reason}")
    else:
        widest = Tolerance(_WIDEST, "ppm")
        quick = parameters.changed(
            precursor_tolerance=widest, variable_modifications=(), hits_per_spectrum=1, predicted_intensities=False
        )  # fmt: skip
        first = Pass(spectra.only(_some_of_each_file(spectra)), indexes, (), quick, resources)
        first.plan()
        psms = first.score()
        rates = q_values(search_score(psms), psms.is_decoy, plus_one=parameters.plus_one, decoy_ratio=psms.decoy_ratio)
        confident = rates <= _CONFIDENT
        found = tolerance_of_errors(psms.mass_error_ppm[confident], spectra.file[psms.spectrum[confident]], asked)
    resources.progress.message(found.message)
    return found


def tolerance_of_errors(error: NDArray[np.float64], file: NDArray[np.integer], asked: Tolerance) -> PrecursorTolerance:
    """The tolerance for the errors of confident matches.

    Parameters
    ----------
    error : (n,), ppm. file : (n,), the number of the file of each; one with too few of them counts with the others like it.
    asked : ppm; the least.

    Examples
    --------
    >>> error = np.linspace(1.0, 5.0, 101)
    >>> str(tolerance_of_errors(error, np.zeros(101, int), Tolerance(10.0, "ppm")).used)
    '11.9 ppm'
    """
    if len(error) < _ENOUGH:
        reason = f"errors are measured from {_ENOUGH} confident matches on, and {len(error)} were found"
        return PrecursorTolerance(asked, asked, message=f"The precursor tolerance stays {asked}: {reason}")
    has_enough = np.bincount(file) >= _ENOUGH
    group = np.where(has_enough[file], file, -1)
    medians = {number: float(np.median(error[group == number])) for number in np.unique(group).tolist()}
    spread = _NORMAL * float(np.median(np.abs(error - np.array([medians[number] for number in group.tolist()]))))
    median = max(medians.values(), key=abs)
    used = Tolerance(max(asked.value, min(round(abs(median) + _SPREADS * spread, 1), _WIDEST)), "ppm")
    measured = f"{len(error)} confident matches err by {median:+.1f} ppm and scatter by {spread:.1f} ppm"
    message = f"The precursor tolerance {'stays' if used == asked else 'becomes'} {used}: {measured}"
    return PrecursorTolerance(asked, used, len(error), round(median, 3), round(spread, 3), message)


def _some_of_each_file(spectra: Spectra) -> NDArray[np.int64]:
    """Spectra with peaks, at equal distances in each file; ascending."""
    most = max(_LOOKED_AT_IN_A_FILE, _LOOKED_AT // max(len(spectra.files), 1))
    chosen = []
    for number in range(len(spectra.files)):
        rows = np.flatnonzero((spectra.file == number) & (np.diff(spectra.offsets) > 0))
        chosen.append(rows[:: max(1, -(-len(rows) // most))])
    return np.sort(np.concatenate(chosen))
