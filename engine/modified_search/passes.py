"""Search of the spectra of each set of ion series against all peptides within the range of mass shifts, and sites of named shifts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.matches.localisation import LocalisedPass, LocalisedSpectra, localise_matches, usual_sites
from proteoscope.engine.matches.scoring_settings import ion_settings
from proteoscope.engine.matches.shift_names import usual_shifts
from proteoscope.engine.matches.site_tables import SiteTables, site_tables
from proteoscope.engine.modified_search.candidate_search import ListSettings, find_candidates
from proteoscope.engine.modified_search.error_rates import RankedMatches
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters, shift_range
from proteoscope.engine.modified_search.ranking import FORMS_RATED, ShiftedMatches, joined_shifts, place_candidates, rank_candidates
from proteoscope.engine.peptides.indexes import Indexes
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex, absolute_and_relative
from proteoscope.kernels.cpu.shift_placement import ShiftSettings
from proteoscope.kernels.layouts import PeptideArrays, ScoringSettings

__all__ = ["SeriesPlan", "ShiftSites", "list_settings", "localise_shifts", "plan_search", "score_search"]

_MB = 1_000_000
_USUAL_MASS = 2000.0  # Da, typical peptide mass at which a ppm tolerance widens the window
_ROUNDED = 0.75  # mass units: covers nearly all rounding errors of two masses and two precursors
_SHARE_OF_TOLERANCE = 0.5  # most precursor errors are smaller than the tolerance, and they shift only some of the masses
_HEAVIEST_END = 100.0  # Da, more than any ion series adds to the residues


class SeriesPlan(NamedTuple):
    """Search of the spectra with one set of ion series: spectra, peptides, and settings of mass lists, scores and shift positions."""

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
    """Return the best forms of each spectrum (candidates with or without a mass shift).

    Unless the match count is the score, there may be more forms than are reported, since error rates change the order later.
    """
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

    The mass window of candidates includes the shift range, no shift, and isotope errors. If the score is the match count, each peak covers
    only the mass unit of its mass, as in Carroll's thesis.
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


@dataclass
class _Settings:
    """Settings of the localisation (see `proteoscope.engine.matches.localisation.LocalisationSettings`)."""

    fdr: float
    decoys: Literal["reverse", "pseudo-reverse", "shuffle", "existing", "none"]
    localise: Literal["automatic", "all", "none"] = "all"
    predicted_intensities: bool = True


class ShiftSites(NamedTuple):
    """Tables of sites of named shifts (None if there is no named shift), and the number of accepted matches with other shifts."""

    tables: SiteTables | None
    n_others: int


def localise_shifts(
    rated: RankedMatches, plans: Sequence[SeriesPlan], indexes: Indexes, parameters: ModifiedSearchParameters, resources: Resources
) -> ShiftSites:
    """Localise the named shifts of accepted matches.

    Parameters
    ----------
    rated : RankedMatches
        Matches with error rates and shifts.
    plans : sequence of SeriesPlan
        Spectra of each set of ion series, with their settings.
    indexes : Indexes
        Indexes of the search.
    parameters : ModifiedSearchParameters
        Parameters of the search.
    resources : Resources
        Threads and progress of the run.
    """
    scored = rated.scored.sorted()
    psms = scored.psms
    fixed, shifts = psms.modifications[: rated.first_shift], psms.modifications[rated.first_shift :]
    sites = [usual_sites(shift) for shift in shifts]
    is_named = np.array([bool(of_shift) for of_shift in sites], bool)
    # The first site of each named shift has the number of the shift. They are followed by its other sites, by shifts that stay in place,
    # and by fixed modifications.
    variable = (*(of_shift[0] for of_shift in sites if of_shift), *(site for of_shift in sites for site in of_shift[1:]))
    others = tuple(shift for shift, is_variable in zip(shifts, is_named.tolist(), strict=True) if not is_variable)
    number = np.where(is_named, np.cumsum(is_named) - 1, len(variable) + np.cumsum(~is_named) - 1)
    numbers = np.concatenate((len(variable) + len(others) + np.arange(len(fixed)), number))
    is_other = (numbers >= len(variable)) & (numbers < len(variable) + len(others))
    row = np.repeat(np.arange(len(psms)), np.diff(psms.modification_offsets))[is_other[psms.modification]]
    psms = replace(psms, modification=numbers[psms.modification], modifications=(*variable, *others, *fixed))
    scored = replace(scored, psms=psms)
    accepted = (psms.rank == 1) & ~psms.is_decoy
    if parameters.decoys != "none":
        accepted &= scored.q_value <= parameters.fdr
    n_others = int(np.count_nonzero(accepted[row]))
    if not is_named.any():
        return ShiftSites(None, n_others)
    compile_kernels(["localisation"], resources.progress)
    with resources.clock.stage("localise"):
        resources.progress.stage("Localising modifications")
        mass = np.array([modification.mass for modification in (*variable, *others)])
        spectra = [LocalisedSpectra(plan.spectra, plan.peptides, mass, plan.scoring) for plan in plans]
        search_pass = LocalisedPass(variable, indexes.peptides.digestion.fixed, spectra)
        settings = _Settings(parameters.fdr, parameters.decoys)
        localised = localise_matches(scored, [search_pass], indexes.proteins, settings, resources)
    return ShiftSites(site_tables(localised, scored, indexes.proteins, plus_one=parameters.plus_one), n_others)
