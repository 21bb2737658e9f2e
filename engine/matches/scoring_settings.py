"""Settings of the kernels that score spectra: ions, their tolerances, and the variable modifications of peptides."""

from __future__ import annotations

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
_HEAVIEST_END = 100.0  # dalton that an ion series adds to the residues, and more
_LONGEST = 64  # residues of a peptide, and one
_MOST_MODIFICATIONS = 255  # values of a byte, except the one that means none


class IonSettings(Protocol):
    """Settings that decide which ions match in addition to their series, by the names that every search's parameters have for it."""

    precursor_tolerance: Tolerance
    isotope_errors: tuple[int, ...]
    fragment_tolerance: Tolerance
    maximum_fragment_charge: int
    correlation_bin: float
    ksdp_window: int
    ksdp_power: float
    minimum_matched_ions: int


class FormSettings(Protocol):
    """Settings that decide which forms peptides have, by the names that every search's parameters have for it."""

    maximum_modifications: int
    maximum_forms: int


class MatchSettings(IonSettings, FormSettings, Protocol):
    """Further settings that decide the scoring."""

    score: ScoreName
    hits_per_spectrum: int
    index_memory: int


def scoring_settings(parameters: MatchSettings, series: str, maximum_mz: float) -> ScoringSettings:
    """Return the settings of the scoring kernels.

    Parameters
    ----------
    series
        Symbols of the ion series.
    maximum_mz
        Thomson, the largest peak's, or the largest ion's if that is smaller.
    """
    return ion_settings(parameters, series, maximum_mz, parameters.score)


def ion_settings(parameters: IonSettings, symbols: str, maximum_mz: float, score: str) -> ScoringSettings:
    """Return the settings of the scoring kernels for parameters without a choice of score."""
    precursor = absolute_and_relative(parameters.precursor_tolerance)
    fragment = parameters.fragment_tolerance
    # A bin about as wide as the tolerance: a peak sets few bits and few bits are set by none that matches.
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
    """Return the mass (dalton) from which an isotope peak is tall enough to be mistaken for the monoisotopic one.

    With m / 1800 heavy isotopes expected in a peptide of mass m (averagine, Senko 1995), the peak of k of them has (m / 1800)^k / k! of the
    monoisotopic height (Poisson).
    """
    if error <= 0:
        return 0.0
    return _MASS_OF_AN_ISOTOPE * (_MINIMUM_ISOTOPE_HEIGHT * factorial(error)) ** (1 / error)


def heaviest_ion(peptides: PeptideArrays, modifications: ModificationArrays) -> float:
    """Return a mass (dalton) that no fragment of these peptides exceeds, nor its m/z.

    A fragment may be heavier than the peptide where what is lost with the rest has a negative mass.
    """
    n_variable = len(modifications.residue_mask)
    added = modifications.combination_count @ np.maximum(modifications.mass[:n_variable], 0.0)
    lightest = np.nanmin([*peptides.residue_mass, peptides.n_term_mass, peptides.c_term_mass, *modifications.mass[n_variable:], 0.0])
    return float(peptides.mass.max(initial=0.0) + added.max(initial=0.0) - _LONGEST * lightest) + _HEAVIEST_END


def modification_arrays(
    modifications: Sequence[SearchModification], parameters: FormSettings, sites: KnownSites | None = None
) -> ModificationArrays:
    """Return variable modifications with the combinations that a peptide may carry, and those that it carries at known residues.

    Raises
    ------
    ParameterError
        They are too many together.
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
    places = [modification.place for modification in modifications]
    # An end can carry one modification: combinations with two on the same end are impossible and only cost time.
    ends = np.array([[place in (1, 3), place in (2, 4)] for place in places], np.int64).reshape(-1, 2)
    counts = counts[((counts @ ends) <= 1).all(axis=1)]
    of_known = np.zeros(0) if sites is None else sites.mass
    if len(mass) + len(of_known) > _MOST_MODIFICATIONS:
        raise ParameterError(
            f"variable_modifications: {len(mass):,}, and {len(of_known):,} that the database knows, are more than {_MOST_MODIFICATIONS}"
        )
    places_of_known = np.zeros(0, np.int64) if sites is None else sites.place
    return ModificationArrays(
        np.concatenate((mass, of_known)),
        np.array(masks, np.uint32),
        np.concatenate((np.array(places, np.int64), places_of_known)),
        counts @ mass,
        np.ascontiguousarray(counts),
        parameters.maximum_forms,
    )
