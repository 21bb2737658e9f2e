"""Detection of unsuitable tolerances in a run with few identifications, from mass errors that exceed the tolerances.

In a badly calibrated file, correct matches are outside the tolerance, and the wrong matches that remain do not reveal this. A probe search
therefore searches a sample of the spectra with a wide precursor window, and again with a fragment tolerance for ion traps. Correct matches
have similar errors; errors of wrong matches spread over the window. The probe search only leads to a warning: results remain those of the
requested search.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.passes import PassPlan, plan_pass, quick_matches, quick_parameters
from proteoscope.engine.jobs.progress import LimitedProgress, TimeOverError
from proteoscope.engine.matches.tables import ScoredMatches
from proteoscope.engine.peptides.indexes import Indexes
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex

__all__ = ["ErrorCluster", "LowYieldRun", "affordable_spectra", "describe_yield", "find_error_cluster", "low_yield_run", "probe_tolerances"]

_LOW_YIELD = 0.05
"""Fraction of identified spectra below which unsuitable settings are more likely than poor spectra."""
_MAXIMUM_PROBED, _MINIMUM_PROBED = 2000, 200
"""Maximum and minimum number of spectra in a probe search; with fewer than the minimum, ten confident matches are unlikely."""
_PLANNED = 0.7
"""Fraction of the available time for which a probe search is planned, since the time estimate may be too low."""
_WIDE_PRECURSOR = Tolerance(200.0, "ppm")
"""Precursor tolerance of probe searches: four times the drift of the worst time-of-flight instruments between calibrations."""
_WIDE_FRAGMENTS = Tolerance(100.0, "ppm"), Tolerance(0.5, "Da")
"""Fragment tolerances of probe searches; the second is for ion traps."""
_CONFIDENT, _ENOUGH = 0.05, 10
_NARROW = 0.1
"""Maximum robust standard deviation of similar errors, relative to the half-width of the window; for wrong matches it is 0.74."""
_FILLS = 0.35
"""Mean absolute error, relative to the half-width of the window, above which errors fill the window; 0.5 for a uniform distribution."""
_NORMAL, _SPREADS = 1.4826, 3.0
_USUAL_MASS, _USUAL_MZ = 1500.0, 600.0  # Da, typical peptide mass; Th, typical fragment m/z


@dataclass(frozen=True)
class LowYieldRun:
    """Run with few identifications, whose causes are examined.

    Attributes
    ----------
    n_accepted, n_matched : int
        Numbers of spectra with an accepted match, and with any match.
    spectra : SpectrumIndex
        Preprocessed spectra as searched in the first pass.
    indexes : Indexes
        Protein and peptide indexes.
    parameters : IdentificationParameters
        Parameters of the first pass.
    folder : Path
        Folder for temporary indexes.
    seconds_per_candidate : float
        Scoring time per candidate in the run, s; 0 if unknown.
    """

    n_accepted: int
    n_matched: int
    spectra: SpectrumIndex
    indexes: Indexes
    parameters: IdentificationParameters
    folder: Path
    seconds_per_candidate: float = 0.0

    def record(self) -> dict[str, int]:
        """Return the counts for ``run.json``."""
        return {"accepted": self.n_accepted, "matched": self.n_matched}


class ErrorCluster(NamedTuple):
    """Cluster of similar mass errors: median and robust standard deviation, ppm, and number of matches."""

    median: float
    spread: float
    n: int

    @property
    def reach(self) -> float:
        """Tolerance (ppm) that includes nearly all errors of the cluster, rounded up to a multiple of 5 ppm."""
        return 5.0 * math.ceil((abs(self.median) + _SPREADS * self.spread) / 5.0)


def find_error_cluster(error: NDArray[np.float64], half_width: float) -> ErrorCluster | None:
    """Return the median and scatter of mass errors as a cluster; None if there are too few matches, or the errors are too scattered.

    Parameters
    ----------
    error : ndarray of float64, shape (n,)
        Mass errors of matches, ppm.
    half_width : float
        Half-width of the window in which the matches were found, ppm.

    Returns
    -------
    ErrorCluster or None

    Examples
    --------
    >>> find_error_cluster(np.linspace(33.0, 37.0, 21), 200.0).reach
    40.0
    >>> print(find_error_cluster(np.linspace(-190.0, 190.0, 21), 200.0))
    None
    """
    if len(error) < _ENOUGH:
        return None
    median = float(np.median(error))
    spread = _NORMAL * float(np.median(np.abs(error - median)))
    return ErrorCluster(median, spread, len(error)) if spread <= _NARROW * half_width else None


def low_yield_run(scored: ScoredMatches, plan: PassPlan, seconds_per_candidate: float, folder: Path) -> LowYieldRun | None:
    """Return a run with few identifications as data for finding the causes; None if the run identified enough spectra.

    Parameters
    ----------
    scored : ScoredMatches
        Matches of all passes with error rates; without decoys the number of identifications is unknown, and None is returned.
    plan : PassPlan
        Plan of the first pass.
    seconds_per_candidate : float
        Scoring time per candidate in the run, s.
    folder : Path
        Folder for temporary indexes.

    Returns
    -------
    LowYieldRun or None
    """
    n_accepted = int(np.count_nonzero((scored.q_value <= plan.parameters.fdr) & ~scored.psms.is_decoy))
    if n_accepted >= _LOW_YIELD * plan.spectra.n_searched or plan.parameters.decoys == "none":
        return None
    n_matched = len(np.unique(scored.psms.spectrum))
    return LowYieldRun(n_accepted, n_matched, plan.spectra, plan.indexes, plan.parameters, folder, seconds_per_candidate)


def describe_yield(run: LowYieldRun) -> str:
    """Return a sentence with the numbers of spectra with an accepted match and with any match."""
    parameters = run.parameters
    return (
        f"Few spectra were identified: {run.n_accepted:,} of {run.spectra.n_searched:,} at {parameters.fdr * 100:.3g} % FDR; "
        f"{run.n_matched:,} had a peptide within {parameters.precursor_tolerance} with matching fragments within "
        f"{parameters.fragment_tolerance}"
    )


def probe_tolerances(run: LowYieldRun, resources: Resources, limit: LimitedProgress) -> str:
    """Search a sample of the spectra in wide windows; return a sentence with the mass errors and suggested tolerances.

    The size of the sample depends on the remaining time.

    Raises
    ------
    TimeOverError
        If the remaining time is too short for a useful sample.
    Cancelled
        If the user cancelled.
    """
    limit.stage("Checking the tolerances")
    parameters = run.parameters
    precursors, fragments = parameters.precursor_tolerance, parameters.fragment_tolerance
    wide = _choose_wider(precursors, _WIDE_PRECURSOR, _USUAL_MASS)
    best, n_probed = None, 0
    windows = list(dict.fromkeys(_choose_wider(fragments, wide_fragment, _USUAL_MZ) for wide_fragment in _WIDE_FRAGMENTS))
    for number, wide_fragments in enumerate(windows):
        quick = quick_parameters(parameters, precursor_tolerance=wide, fragment_tolerance=wide_fragments)
        try:
            sample = _sample(run, quick, resources, _PLANNED * limit.seconds_left / (len(windows) - number))
            result = _probe(sample, run.indexes, quick, resources)
        except TimeOverError:
            if best is None:
                raise
            break
        n_probed = max(n_probed, sample.n_searched)
        if result is not None:
            best = *result, wide_fragments, sample.n_searched
            if result[1] < _FILLS * _ppm(wide_fragments, _USUAL_MZ):
                break
    if best is not None:
        cluster, fragment_error, within, n = best
        probed = f"Of {n:,} spectra {cluster.n:,} match well with precursors within {wide} and fragments within {within}"
        return f"{probed}: {_advice(cluster, fragment_error, precursors, fragments, within)}"
    return (
        f"Even with precursors within {wide} and fragments within {windows[-1]}, {n_probed:,} spectra show no common error: check the "
        "database, the enzyme and the modifications"
    )


def affordable_spectra(n_candidates: NDArray[np.int64], n_spectra: int, seconds_per_candidate: float, seconds: float) -> int:
    """Return the number of spectra, at most `n_spectra`, that can be searched in the given time.

    Parameters
    ----------
    n_candidates : ndarray of int64, shape (q,)
        Number of candidates of each query (a spectrum with one of its possible charges).
    n_spectra : int
        Number of spectra.
    seconds_per_candidate : float
        Scoring time per candidate, s.
    seconds : float
        Available time, s.

    Examples
    --------
    >>> affordable_spectra(np.full(1000, 50), 1000, 1e-4, 2.5), affordable_spectra(np.full(1000, 50), 1000, 1e-4, np.inf)
    (500, 1000)
    """
    needed = float(n_candidates.sum()) * seconds_per_candidate
    return n_spectra if needed <= seconds else int(n_spectra * max(0.0, seconds) / needed)


def _sample(run: LowYieldRun, quick: IdentificationParameters, resources: Resources, seconds: float) -> SpectrumIndex:
    """Return a sample of evenly spaced spectra: at most `_MAXIMUM_PROBED`, and not more than can be searched in the given time.

    Raises
    ------
    TimeOverError
        If the sample that the time allows would be too small to be useful.
    """
    spectra = np.unique(run.spectra.queries.spectrum)
    chosen = spectra[:: max(1, -(-len(spectra) // _MAXIMUM_PROBED))]
    if math.isinf(seconds):
        return run.spectra.only(chosen)
    n_candidates = plan_pass(run.spectra.only(chosen), run.indexes, quick, resources).scoring.n_candidates
    n = affordable_spectra(n_candidates, len(chosen), run.seconds_per_candidate, seconds)
    if n < min(len(chosen), _MINIMUM_PROBED):
        raise TimeOverError
    return run.spectra.only(chosen[:: -(-len(chosen) // n)])


def _advice(cluster: ErrorCluster, fragment_error: float, precursors: Tolerance, fragments: Tolerance, wide_fragments: Tolerance) -> str:
    """Return a sentence about the mass errors of precursors (`cluster`) and fragments (ppm).

    If the errors exceed the tolerances, it recommends wider ones; otherwise, it states that the tolerances are not the cause.
    """
    advice = []
    if abs(cluster.median) + cluster.spread > _ppm(precursors, _USUAL_MASS):
        place = f"errors of precursors lie near {cluster.median:+.0f} ppm and scatter by {cluster.spread:.0f} ppm"
        advice.append(f"{place}; set the precursor tolerance to {cluster.reach:g} ppm, or calibrate the file")
    if fragment_error > _ppm(fragments, _USUAL_MZ):
        needed = str(wide_fragments) if wide_fragments.unit == "Da" else f"{5 * math.ceil(2 * fragment_error / 5):g} ppm"
        advice.append(f"errors of fragments are {fragment_error:.0f} ppm on average; set the fragment tolerance to {needed}")
    return "; ".join(advice) or "their errors are within the tolerances, so that the tolerances are not the cause"


def _probe(
    sample: SpectrumIndex, indexes: Indexes, quick: IdentificationParameters, resources: Resources
) -> tuple[ErrorCluster, float] | None:
    """Return the cluster of precursor errors of confident matches, and their median fragment error (ppm); None without a cluster."""
    psms = quick_matches(sample, indexes, quick, resources, _CONFIDENT)
    cluster = find_error_cluster(psms.mass_error_ppm[~psms.is_decoy], _ppm(quick.precursor_tolerance, _USUAL_MASS))
    return None if cluster is None else (cluster, float(np.median(psms.features["mean_absolute_fragment_error"][~psms.is_decoy])))


def _choose_wider(requested: Tolerance, probed: Tolerance, usual: float) -> Tolerance:
    return max(requested, probed, key=lambda tolerance: _ppm(tolerance, usual))


def _ppm(tolerance: Tolerance, usual: float) -> float:
    """Return a tolerance in ppm, at a typical mass or m/z `usual`."""
    return tolerance.width(usual) / usual * 1e6
