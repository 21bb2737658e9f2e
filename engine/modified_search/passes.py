"""Search of the spectra of each set of ion series against all peptides within the range of mass shifts."""

from collections.abc import Sequence
from typing import NamedTuple

from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.matches.scoring_settings import ion_settings
from proteoscope.engine.matches.shift_names import usual_shifts
from proteoscope.engine.modified_search.candidate_search import ListSettings, find_candidates
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters, shift_range
from proteoscope.engine.modified_search.ranking import FORMS_RATED, ShiftedMatches, joined_shifts, place_candidates, rank_candidates
from proteoscope.engine.peptides.indexes import Indexes
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex, absolute_and_relative
from proteoscope.kernels.cpu.shift_placement import ShiftSettings
from proteoscope.kernels.layouts import PeptideArrays, ScoringSettings

__all__ = ["SeriesPlan", "list_settings", "plan_search", "score_search"]

_MB = 1_000_000
_USUAL_MASS = 2000.0  # Da, typical peptide mass at which a ppm tolerance widens the window
_ROUNDED = 0.75  # mass units: covers nearly all rounding errors of two masses and two precursors
_SHARE_OF_TOLERANCE = 0.5  # most precursor errors are smaller than the tolerance, and they move only part of the masses
_HEAVIEST_END = 100.0  # Da, more than any ion series adds to the residues


class SeriesPlan(NamedTuple):
    """Spectra with one set of ion series, the peptides, and the settings of mass lists, scores and shift positions."""

    spectra: SpectrumIndex
    peptides: PeptideArrays
    lists: ListSettings
    scoring: ScoringSettings
    shifts: ShiftSettings


def plan_search(index: SpectrumIndex, indexes: Indexes, parameters: ModifiedSearchParameters) -> list[SeriesPlan]:
    """Return one plan for each set of ion series, with its spectra and scoring settings."""
    peptides, lists, shifts = indexes.peptides.arrays(indexes.proteins), list_settings(parameters), _shift_settings(parameters)
    return [SeriesPlan(part, peptides, lists, _scoring_settings(parameters, part, peptides), shifts) for part in index.by_series()]


def score_search(plans: Sequence[SeriesPlan], parameters: ModifiedSearchParameters, resources: Resources) -> ShiftedMatches:
    """Return the best forms of each spectrum; more than are reported if all scores decide the ranking."""
    return joined_shifts([_score_series(plan, parameters, resources) for plan in plans])


def _score_series(plan: SeriesPlan, parameters: ModifiedSearchParameters, resources: Resources) -> ShiftedMatches:
    by_count, n_hits = parameters.score == "match-count", parameters.hits_per_spectrum
    n_candidates, n_forms = (n_hits, n_hits) if by_count else (parameters.candidates, max(n_hits, FORMS_RATED))
    index, peptides, lists, settings, shifts = plan
    candidates = find_candidates(index, peptides, settings, lists, n_candidates, parameters.index_memory * _MB, resources)
    placed = place_candidates(index, peptides, candidates, settings, shifts, resources)
    return rank_candidates(index, peptides, candidates, placed, settings, shifts, n_forms, by_count=by_count, resources=resources)


def _scoring_settings(parameters: ModifiedSearchParameters, index: SpectrumIndex, peptides: PeptideArrays) -> ScoringSettings:
    """Return the settings of the scoring kernels."""
    # A single peak far above all ions would otherwise enlarge the peak table.
    heaviest = float(peptides.mass.max(initial=0.0)) + max(0.0, shift_range(parameters.mass_shift)[1]) + _HEAVIEST_END
    return ion_settings(parameters, index.series, min(float(index.arrays.mz.max(initial=0.0)), heaviest), "hyperscore")


def _shift_settings(parameters: ModifiedSearchParameters) -> ShiftSettings:
    """Return the settings by which mass shifts are assigned to residues."""
    fixed = tuple(parse_modification(name) for name in parameters.fixed_modifications)
    return ShiftSettings(*shift_range(parameters.mass_shift), parameters.isotope_lead, usual_shifts(fixed))


def list_settings(parameters: ModifiedSearchParameters) -> ListSettings:
    """Return the settings of the mass lists.

    The mass window of candidates includes the shift range, no shift, and isotope errors. With the match count, each peak covers only its
    own mass unit, as in the thesis.
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
