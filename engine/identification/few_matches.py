"""A run of which few spectra were identified: what was looked for and seen, and whether its errors lie outside the tolerances.

A file that is far out of tune loses all its right answers, and what stands in their place says nothing of that. So a probe searches some of
the spectra in a wide window, and again with fragments as wide as those of an ion trap. Right answers have errors that lie near each other;
wrong ones lie anywhere in the window. The probe only says what it saw: results stay those of the search that was asked for.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.passes import Pass, near_isotopes
from proteoscope.engine.matches.psms import search_score
from proteoscope.engine.peptides.indexes import Indexes
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.engine.statistics.target_decoy import q_values

__all__ = ["ErrorCluster", "cluster_of_errors", "is_few", "tell_few_matches"]

_FEW = 0.05
"""Share of the searched spectra: below, a run of a pure sample on the right database is rather lost than poor."""
_LOOKED_AT = 2000
_WIDE_PRECURSOR = Tolerance(200.0, "ppm")
"""Four times what the worst time-of-flight instruments drift by between calibrations."""
_WIDE_FRAGMENTS = Tolerance(100.0, "ppm"), Tolerance(0.5, "Da")
"""The second is what ion traps need."""
_CONFIDENT, _ENOUGH = 0.05, 10
_NARROW = 0.1
"""Of the half-width of the probe's window, the largest spread of errors that lie near each other: that of wrong answers is .74."""
_FILLS = 0.35
"""Of the half-width of a window, the mean size of errors that fill it: half of it, where they lie anywhere."""
_NORMAL, _SPREADS = 1.4826, 3.0
_USUAL_MASS, _USUAL_MZ = 1500.0, 600.0  # dalton, of a peptide; thomson, of a fragment


class ErrorCluster(NamedTuple):
    """Errors that lie near each other, ppm: their median and robust standard deviation, and of how many matches."""

    median: float
    spread: float
    n: int

    @property
    def reach(self) -> float:
        """The half-width, ppm, of the narrowest usual tolerance that holds nearly all of them."""
        return 5.0 * math.ceil((abs(self.median) + _SPREADS * self.spread) / 5.0)


def cluster_of_errors(error: NDArray[np.float64], half_width: float) -> ErrorCluster | None:
    """The place where errors of matches gather in a window; None where they are too few, or lie anywhere in it.

    Parameters
    ----------
    error : (n,), ppm. half_width : of the window that they were found in, ppm.

    Examples
    --------
    >>> cluster_of_errors(np.linspace(33.0, 37.0, 21), 200.0).reach
    40.0
    >>> cluster_of_errors(np.linspace(-190.0, 190.0, 21), 200.0) is None
    True
    """
    if len(error) < _ENOUGH:
        return None
    median = float(np.median(error))
    spread = _NORMAL * float(np.median(np.abs(error - median)))
    return ErrorCluster(median, spread, len(error)) if spread <= _NARROW * half_width else None


def is_few(n_accepted: int, index: SpectrumIndex, parameters: IdentificationParameters) -> bool:
    """Whether so few spectra were identified that reasons are looked for; without decoys nobody knows how many were."""
    return n_accepted < _FEW * index.n_searched and parameters.decoys != "none"


def tell_few_matches(
    n_accepted: int, n_matched: int, index: SpectrumIndex, indexes: Indexes, parameters: IdentificationParameters, resources: Resources
) -> None:
    """Warn of a search that identified few spectra: what it looked for and saw, and what to try. Nothing where it identified enough.

    Parameters
    ----------
    n_accepted, n_matched : spectra with an accepted match, and with any. index : of the spectra, as they were searched.
    """
    n = index.n_searched
    if not is_few(n_accepted, index, parameters):
        return
    seen = (
        f"Few spectra were identified: {n_accepted:,} of {n:,} at {parameters.fdr * 100:.3g} % FDR; {n_matched:,} had a peptide within "
        f"{parameters.precursor_tolerance} that matches with fragments within {parameters.fragment_tolerance}"
    )
    resources.progress.stage("Looking for errors outside the tolerances")
    resources.progress.message(f"{seen}. {_probed(index, indexes, parameters, resources)}", "warning")


def _probed(index: SpectrumIndex, indexes: Indexes, parameters: IdentificationParameters, resources: Resources) -> str:
    """What searches of some of the spectra in wide windows say of the tolerances."""
    precursors, fragments = parameters.precursor_tolerance, parameters.fragment_tolerance
    wide = _wider(precursors, _WIDE_PRECURSOR, _USUAL_MASS)
    best = None
    for wide_fragments in dict.fromkeys(_wider(fragments, one, _USUAL_MZ) for one in _WIDE_FRAGMENTS):
        found = _probe(index, indexes, parameters, wide, wide_fragments, resources)
        if found is not None:
            best = *found, wide_fragments
            if found[1] < _FILLS * _ppm(wide_fragments, _USUAL_MZ):
                break
    if best is not None:
        cluster, fragment_error, within = best
        n = min(index.n_searched, _LOOKED_AT)
        probed = f"Of {n:,} spectra {cluster.n:,} match well with precursors within {wide} and fragments within {within}"
        return f"{probed}: {_advice(cluster, fragment_error, precursors, fragments, within)}"
    return (
        f"Even with precursors within {wide} and fragments within {wide_fragments} no common error shows: check that the database "
        "is that of the sample, and enzyme and modifications"
    )


def _advice(cluster: ErrorCluster, fragment_error: float, precursors: Tolerance, fragments: Tolerance, wide_fragments: Tolerance) -> str:
    """What errors of precursors and of fragments, ppm, say of the tolerances that were asked for."""
    advice = []
    if abs(cluster.median) + cluster.spread > _ppm(precursors, _USUAL_MASS):
        place = f"errors of precursors lie near {cluster.median:+.0f} ppm and scatter by {cluster.spread:.0f} ppm"
        advice.append(f"{place}; set the precursor tolerance to {cluster.reach:g} ppm, or calibrate the file")
    if fragment_error > _ppm(fragments, _USUAL_MZ):
        needed = str(wide_fragments) if wide_fragments.unit == "Da" else f"{5 * math.ceil(2 * fragment_error / 5):g} ppm"
        advice.append(f"errors of fragments are {fragment_error:.0f} ppm on average; set the fragment tolerance to {needed}")
    return "; ".join(advice) or "their errors lie within the tolerances, so that these are not what is wrong"


def _probe(
    index: SpectrumIndex,
    indexes: Indexes,
    parameters: IdentificationParameters,
    precursors: Tolerance,
    fragments: Tolerance,
    resources: Resources,
) -> tuple[ErrorCluster, float] | None:
    """Where the precursor errors of good matches of some spectra lie in wide windows, and how large those of their fragments are, ppm."""
    spectra = np.unique(index.queries.spectrum)
    some = spectra[:: max(1, -(-len(spectra) // _LOOKED_AT))]
    quick = parameters.changed(
        precursor_tolerance=precursors, fragment_tolerance=fragments, variable_modifications=(), hits_per_spectrum=1,
        predicted_intensities=False, isotope_errors=near_isotopes(parameters),
    )  # fmt: skip
    search = Pass(index.only(some), indexes, (), quick, resources)
    search.plan()
    psms = search.score()
    rates = q_values(search_score(psms), psms.is_decoy, decoy_ratio=psms.decoy_ratio)
    confident = (rates <= _CONFIDENT) & ~psms.is_decoy
    cluster = cluster_of_errors(psms.mass_error_ppm[confident], _ppm(precursors, _USUAL_MASS))
    return None if cluster is None else (cluster, float(np.median(psms.features["mean_absolute_fragment_error"][confident])))


def _wider(asked: Tolerance, probed: Tolerance, usual: float) -> Tolerance:
    return max(asked, probed, key=lambda one: _ppm(one, usual))


def _ppm(tolerance: Tolerance, usual: float) -> float:
    """A tolerance at a usual mass or m/z, ppm of that."""
    return tolerance.width(usual) / usual * 1e6
