"""Settings of the kernels that score spectra: ion series, tolerances and variable modifications."""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from math import factorial
from typing import Protocol

import numpy as np

from proteoscope.engine.chemistry.fragments import SERIES_MASS
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING, PROTON_MASS
from proteoscope.engine.chemistry.modifications import SearchModification
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.matches.parameters import ScoreName
from proteoscope.engine.spectra.spectrum_index import absolute_and_relative
from proteoscope.kernels.digestion_layouts import KnownSites
from proteoscope.kernels.layouts import ModificationArrays, PeptideArrays, ScoringSettings
from proteoscope.kernels.score_kinds import score_kind

__all__ = ["IonSettings", "MatchSettings", "heaviest_ion", "ion_settings", "modification_arrays", "scoring_settings"]

_MASS_OF_AN_ISOTOPE = 1800.0
_MINIMUM_ISOTOPE_HEIGHT = 0.02
_HEAVIEST_END = 100.0  # Da, more than any ion series adds to the residues
_LONGEST = 64  # maximum residues of a peptide plus one
_MOST_MODIFICATIONS = 255  # values of a byte, except the value for no modification


class IonSettings(Protocol):
    """Settings, other than the ion series, that determine which ions match; attributes are named like the parameters of searches."""

    precursor_tolerance: Tolerance
    isotope_errors: tuple[int, ...]
    fragment_tolerance: Tolerance
    maximum_fragment_charge: int
    correlation_bin: float
    ksdp_window: int
    ksdp_power: float
    minimum_matched_ions: int


class FormSettings(Protocol):
    """Settings that limit the number of peptidoforms of a peptide; attributes are named like the parameters of searches."""

    maximum_modifications: int
    maximum_forms: int


class MatchSettings(IonSettings, FormSettings, Protocol):
    """All settings for scoring spectra against peptides."""

    score: ScoreName
    hits_per_spectrum: int
    index_memory: int


def scoring_settings(parameters: MatchSettings, series: str, maximum_mz: float) -> ScoringSettings:
    """Return the settings of the scoring kernels.

    Parameters
    ----------
    parameters : MatchSettings
        Parameters of the search.
    series : str
        Symbols of the ion series.
    maximum_mz : float
        Maximum m/z of peaks, or maximum m/z of ions if this is smaller, Th.

    Returns
    -------
    ScoringSettings
    """
    return ion_settings(parameters, series, maximum_mz, parameters.score)


def ion_settings(parameters: IonSettings, symbols: str, maximum_mz: float, score: str) -> ScoringSettings:
    """Return the settings of the scoring kernels for the given score; see `scoring_settings` for the other parameters."""
    precursor = absolute_and_relative(parameters.precursor_tolerance)
    fragment = parameters.fragment_tolerance
    # Bins are about as wide as the tolerance, so that a peak sets few bits, and peaks outside the tolerance also set few bits.
    bin_width = float(np.clip(fragment.width(1000.0), 0.01, 0.5))
    isotope_errors = sorted(parameters.isotope_errors, reverse=True)
    series = [(symbol, SERIES_MASS[symbol] + PROTON_MASS) for symbol in dict.fromkeys(symbols)]
    low_resolution = parameters.correlation_bin > 0.5
    return ScoringSettings(
        *precursor,
        np.array(isotope_errors, np.int64),
        np.array([_isotope_minimum_mass(error) for error in isotope_errors]),
        ISOTOPE_SPACING,
        *absolute_and_relative(fragment),
        np.array([offset for symbol, offset in series if symbol in "abc"], np.float64),
        np.array([offset for symbol, offset in series if symbol in "xyz"], np.float64),
        parameters.maximum_fragment_charge,
        bin_width,
        float(maximum_mz) + 2.0,
        parameters.correlation_bin,
        0.4 if low_resolution else 0.0,
        parameters.ksdp_window,
        parameters.ksdp_power,
        score_kind(score)[0],
        parameters.minimum_matched_ions,
    )


def _isotope_minimum_mass(error: int) -> float:
    """Return the minimum peptide mass (Da) at which isotope peak number `error` may be mistaken for the monoisotopic peak.

    A peptide of mass m contains m / 1800 heavy isotopes on average (averagine, Senko 1995). Relative to the monoisotopic peak, the peak
    with k heavy isotopes has an intensity of (m / 1800)^k / k! (Poisson).
    """
    if error <= 0:
        return 0.0
    mass: float = _MASS_OF_AN_ISOTOPE * (_MINIMUM_ISOTOPE_HEIGHT * factorial(error)) ** (1 / error)
    return mass


def heaviest_ion(peptides: PeptideArrays, modifications: ModificationArrays) -> float:
    """Return an upper limit of the masses (Da) of all fragments of these peptides, which also limits their m/z.

    A fragment is heavier than its peptide if modifications make the mass of the other residues negative.
    """
    n_variable = len(modifications.residue_mask)
    added = modifications.combination_count @ np.maximum(modifications.mass[:n_variable], 0.0)
    lightest = np.nanmin([*peptides.residue_mass, peptides.n_term_mass, peptides.c_term_mass, *modifications.mass[n_variable:], 0.0])
    return float(peptides.mass.max(initial=0.0) + added.max(initial=0.0) - _LONGEST * lightest) + _HEAVIEST_END


def modification_arrays(
    modifications: Sequence[SearchModification], parameters: FormSettings, sites: KnownSites | None = None
) -> ModificationArrays:
    """Return the variable modifications, the combinations of them that a peptide may carry, and the known modifications of residues.

    Parameters
    ----------
    modifications : sequence of SearchModification
        Variable modifications.
    parameters : FormSettings
        Parameters that determine the peptidoforms.
    sites : KnownSites or None
        Modifications listed in the database, with their residues; None if not searched.

    Returns
    -------
    ModificationArrays

    Raises
    ------
    ParameterError
        If there are too many modifications in total.
    """
    most = parameters.maximum_modifications if modifications else 0
    combinations = [
        combination for size in range(most + 1) for combination in combinations_with_replacement(range(len(modifications)), size)
    ]
    counts = np.zeros((len(combinations), len(modifications)), np.int64)
    for row, combination in enumerate(combinations):
        for modification in combination:
            counts[row, modification] += 1
    mass = np.array([modification.added_mass for modification in modifications], np.float64)
    masks = [modification.residue_mask for modification in modifications]
    positions = [modification.place for modification in modifications]
    # A terminus can carry one modification: omit combinations with two on the same terminus.
    ends = np.array([[position in (1, 3), position in (2, 4)] for position in positions], np.int64).reshape(-1, 2)
    counts = counts[((counts @ ends) <= 1).all(axis=1)]
    of_known = np.zeros(0) if sites is None else sites.mass
    if len(mass) + len(of_known) > _MOST_MODIFICATIONS:
        raise ParameterError(
            f"variable_modifications: {len(mass):,}, and {len(of_known):,} in the database, are more than {_MOST_MODIFICATIONS}"
        )
    places_of_known = np.zeros(0, np.int64) if sites is None else sites.place
    return ModificationArrays(
        np.concatenate((mass, of_known)),
        np.array(masks, np.uint32),
        np.concatenate((np.array(positions, np.int64), places_of_known)),
        counts @ mass,
        np.ascontiguousarray(counts),
        parameters.maximum_forms,
    )
