"""Parameters in the terms of the kernels."""

from __future__ import annotations

from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.matches.scoring import ion_settings
from proteoscope.engine.matches.shift_names import usual_shifts
from proteoscope.engine.modified_search.candidate_search import ListSettings
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters, shift_range
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex, absolute_and_relative
from proteoscope.kernels.cpu.shift_placement import ShiftSettings
from proteoscope.kernels.layouts import PeptideArrays, ScoringSettings

__all__ = ["list_settings", "scoring_of", "shift_settings"]

_USUAL_MASS = 2000.0  # dalton, of a peptide, whose precursor's error widens the window
_ROUNDED = 0.75  # units: what rounding two masses and two precursors moves them apart, but for few
_SHARE_OF_TOLERANCE = 0.5  # most precursors are nearer than the tolerance, and it is only some of the masses that their error moves
_HEAVIEST_END = 100.0  # dalton that an ion series adds to the residues, and more


def scoring_of(parameters: ModifiedSearchParameters, index: SpectrumIndex, peptides: PeptideArrays) -> ScoringSettings:
    """Settings of the scoring kernels."""
    # One stray peak far beyond all ions would else make the table of peaks as large as it likes.
    heaviest = float(peptides.mass.max(initial=0.0)) + max(0.0, shift_range(parameters.mass_shift)[1]) + _HEAVIEST_END
    return ion_settings(parameters, index.series, min(float(index.arrays.mz.max(initial=0.0)), heaviest), "hyperscore")


def shift_settings(parameters: ModifiedSearchParameters) -> ShiftSettings:
    """The shifts that are placed."""
    fixed = tuple(parse_modification(name) for name in parameters.fixed_modifications)
    return ShiftSettings(*shift_range(parameters.mass_shift), parameters.isotope_lead, usual_shifts(fixed))


def list_settings(parameters: ModifiedSearchParameters) -> ListSettings:
    """Units of the mass lists, and the differences of mass within which candidates lie: the shifts, none, and isotope errors.

    The count alone takes each peak for the one unit that it falls in, as in the thesis.
    """
    low, high = shift_range(parameters.mass_shift)
    width = parameters.precursor_tolerance.width(_USUAL_MASS)
    isotopes = [error * ISOTOPE_SPACING for error in parameters.isotope_errors]
    reach = min(0.0, low) + min(0.0, *isotopes) - width, max(0.0, high) + max(0.0, *isotopes) + width
    absolute, relative = absolute_and_relative(parameters.precursor_tolerance)
    slack = absolute * _SHARE_OF_TOLERANCE + _ROUNDED * parameters.mass_unit, relative * _SHARE_OF_TOLERANCE
    if parameters.score == "match-count":
        return ListSettings(1.0 / parameters.mass_unit, 0.0, 0.0, *reach, is_widened=False)
    return ListSettings(1.0 / parameters.mass_unit, *slack, *reach)
