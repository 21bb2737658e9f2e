"""Localisation of the modifications of listed matches, such as imported matches, with the method used in identifications.

A list does not state which residues may carry a modification. The possible residues are therefore the defaults in Unimod, and all residues
that carry the modification in the list. Modifications on every residue of a type are fixed, and stay in place. Only peptides in the
database are localised, since the residues around a site come from the database.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import row_mask, segment_offsets, take_segments
from proteoscope.engine.chemistry.masses import RESIDUE_MASS
from proteoscope.engine.chemistry.modifications import SearchModification
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.matches import parameters as shared
from proteoscope.engine.matches.fixed_modifications import on_all_residues
from proteoscope.engine.matches.localisation import (
    LONGEST_PEPTIDE,
    LocalisedPass,
    LocalisedSpectra,
    is_localised,
    localise_matches,
    usual_sites,
)
from proteoscope.engine.matches.match_lists.error_rates import ListParameters
from proteoscope.engine.matches.match_lists.matches import ListedMatches, ListedPeptides
from proteoscope.engine.matches.match_lists.tables import RankedMatches, row_order
from proteoscope.engine.matches.parameters import SpectrumSearchParameters
from proteoscope.engine.matches.psms import Psms
from proteoscope.engine.matches.scoring_settings import ion_settings
from proteoscope.engine.matches.site_tables import SiteTables, site_tables
from proteoscope.engine.matches.tables import ScoredMatches
from proteoscope.engine.peptides.protein_index import ProteinIndex
from proteoscope.engine.results.counts import counted
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectrum_index import build_spectrum_index
from proteoscope.kernels.cpu.localisation import LARGEST_STATE
from proteoscope.kernels.layouts import PeptideArrays

__all__ = ["localise_list"]


class _Settings(SpectrumSearchParameters):
    """Settings of peaks, ions and localisation. Settings that a list of matches does not have keep their usual values."""

    precursor_tolerance: Tolerance = shared.PRECURSOR_TOLERANCE
    isotope_errors: tuple[int, ...] = shared.ISOTOPE_ERRORS
    minimum_charge: int = shared.MINIMUM_CHARGE
    maximum_charge: int = shared.MAXIMUM_CHARGE
    fragment_tolerance: Tolerance = shared.FRAGMENT_TOLERANCE
    ion_series: str = shared.ION_SERIES
    maximum_fragment_charge: int = shared.MAXIMUM_FRAGMENT_CHARGE
    peaks_per_window: int = shared.PEAKS_PER_WINDOW
    window_width: float = shared.WINDOW_WIDTH
    minimum_fragment_mz: float = shared.MINIMUM_FRAGMENT_MZ
    minimum_peaks: int = shared.MINIMUM_PEAKS
    precursor_removal: float = shared.PRECURSOR_REMOVAL
    deisotope: bool = shared.DEISOTOPE
    intensity_transform: Literal["none", "square-root", "logarithm", "rank"] = shared.INTENSITY_TRANSFORM
    minimum_matched_ions: int = shared.MINIMUM_MATCHED_IONS
    correlation_bin: float = shared.CORRELATION_BIN
    ksdp_window: int = shared.KSDP_WINDOW
    ksdp_power: float = shared.KSDP_POWER
    fdr: float = shared.FDR
    localise: Literal["automatic", "all", "none"] = "all"
    decoys: Literal["reverse", "pseudo-reverse", "shuffle", "existing", "none"] = "existing"
    predicted_intensities: bool = True


class _Modifications(NamedTuple):
    """Modifications to localise (`variable`), and modifications that stay in place (`others`).

    `variable` contains each modification several times, once for all its residues and once for each terminus. `number` is the index of each
    listed modification in the concatenation of `variable` and `others`.
    """

    variable: tuple[SearchModification, ...]
    others: tuple[SearchModification, ...]
    number: NDArray[np.int64]


def localise_list(
    matches: ListedMatches,
    ranked: RankedMatches,
    spectra: Spectra,
    database: Proteins | None,
    parameters: ListParameters,
    resources: Resources,
) -> SiteTables | None:
    """Return the tables of sites of the accepted matches; None without a modification to localise, or without a database.

    The tables refer to rows of the PSM table of `proteoscope.engine.matches.match_lists.tables.listed_tables`.

    Parameters
    ----------
    matches : ListedMatches
        Matches with their spectra and positions in the database.
    ranked : RankedMatches
        Ranks and error rates of the matches; without error rates, all matches of rank 1 are accepted.
    spectra : Spectra
        Spectra of the run.
    database : Proteins or None
        Proteins of the database.
    parameters : ListParameters
        Parameters of the search.
    resources : Resources
        Threads and progress of the run.
    """
    modifications = _modifications(matches.peptides)
    if not modifications.variable:
        return None
    if database is None:
        resources.progress.message("Sites of modifications are not localised without the database")
        return None
    settings = _Settings(
        fragment_tolerance=parameters.fragment_tolerance,
        ion_series=parameters.ion_series,
        maximum_fragment_charge=parameters.maximum_fragment_charge,
        fdr=parameters.fdr,
        decoys="none" if ranked.rates.q_value_of == "none" else "existing",
    )
    scored = _scored(matches, ranked, modifications, database, resources)
    compile_kernels(["localisation"], resources.progress)
    with resources.clock.stage("localise"):
        resources.progress.stage("Localising modifications")
        small, large = np.empty(0, np.uint8), np.empty(0, np.uint32)
        peptides = PeptideArrays(np.empty(0), large, small, small, large, np.asarray(database.residues), RESIDUE_MASS, 0.0, 0.0)
        mass = np.array([modification.mass for modification in (*modifications.variable, *modifications.others)])
        highest = float(spectra.mz.max(initial=0.0))
        parts = [
            LocalisedSpectra(part, peptides, mass, ion_settings(settings, part.series, highest, "hyperscore"))
            for part in build_spectrum_index(spectra, settings, resources).by_series()
        ]
        if not parts:
            return None
        proteins = ProteinIndex(database, len(database), "", 0)
        sites = localise_matches(scored, [LocalisedPass(modifications.variable, (), parts)], proteins, settings, resources)
        return site_tables(sites, scored, proteins, plus_one=parameters.plus_one)


def _modifications(peptides: ListedPeptides) -> _Modifications:
    """Divide the modifications of the peptides into modifications to localise and modifications that stay in place."""
    listed = peptides.modifications
    owner = np.repeat(np.arange(len(peptides.sequences)), np.diff(peptides.offsets))
    inside = (peptides.sites > 0) & (peptides.sites <= np.diff(peptides.residue_offsets)[owner])
    symbol = peptides.residues[peptides.residue_offsets[owner[inside]] + peptides.sites[inside] - 1]
    pairs = np.unique(np.stack((peptides.modification[inside], symbol.astype(np.int64))), axis=1).T.tolist()
    observed = [{chr(residue) for number, residue in pairs if number == i} for i in range(len(listed))]
    names = [listed[i].name for i in peptides.modification.tolist()]
    fixed = on_all_residues(peptides.sequences, np.diff(peptides.offsets), peptides.sites, names)
    chosen, variable = list[int](), list[list[SearchModification]]()
    for i, (name, mass, number) in enumerate(listed):
        free = {residue for residue in observed[i] if (name, residue) not in fixed}
        sites = usual_sites(SearchModification(name, number, mass, "", "anywhere"), free) if free and number is not None else []
        if sites and is_localised(SearchModification(name, number, mass, "".join(sorted(free)), "anywhere"), "automatic"):
            chosen.append(i)
            variable.append(sites)
    stay = [i for i in range(len(listed)) if i not in chosen]
    every = (*(sites[0] for sites in variable), *(site for sites in variable for site in sites[1:]))
    numbers = np.empty(len(listed), np.int64)
    numbers[chosen] = np.arange(len(chosen))
    numbers[stay] = len(every) + np.arange(len(stay))
    others = tuple(SearchModification(listed[i].name, listed[i].unimod_id, listed[i].mass, "", "anywhere") for i in stay)
    return _Modifications(every, others, numbers)


def _scored(
    matches: ListedMatches, ranked: RankedMatches, modifications: _Modifications, database: Proteins, resources: Resources
) -> ScoredMatches:
    """Return the matches in the order of the table of PSMs. Matches that cannot be localised get rank 2, so that they are not localised."""
    order = row_order(ranked)
    at = matches.peptide[order]
    sites, offsets = take_segments(matches.peptides.sites, matches.peptides.offsets, at)
    listed, _ = take_segments(matches.peptides.modification, matches.peptides.offsets, at)
    number = modifications.number[listed]
    row = matches.protein_positions.row[matches.protein]
    is_placed = (row >= 0) & (matches.start >= 0)
    n_placed = np.add.reduceat(np.append(is_placed, False), matches.protein_offsets[:-1]) * (np.diff(matches.protein_offsets) > 0)
    occurrence = np.asarray(database.offsets, np.int64)[row[is_placed]] + matches.start[is_placed]
    occurrences, occurrence_offsets = take_segments(occurrence, segment_offsets(n_placed), order)
    has_place = np.diff(occurrence_offsets) > 0
    position = np.zeros(len(order), np.int64)
    position[has_place] = occurrences[occurrence_offsets[:-1][has_place]]
    length = np.diff(matches.peptides.residue_offsets)[at]
    owner = np.repeat(np.arange(len(order)), np.diff(offsets))
    carried = np.zeros((len(order), len(modifications.variable)), np.int64)
    moves = number < len(modifications.variable)
    np.add.at(carried, (owner[moves], number[moves]), 1)
    states = np.prod(carried + 1.0, axis=1)
    _, first, count = np.unique(np.stack((owner[moves], sites[moves])), axis=1, return_index=True, return_counts=True)
    is_doubled = row_mask(len(order), owner[moves][first[count > 1]])  # a site has one modification that may move
    is_possible = has_place & (length <= LONGEST_PEPTIDE) & (states <= LARGEST_STATE) & ~is_doubled
    rank, zeros = ranked.rank[order], np.zeros(len(order))
    if n_left := int(np.count_nonzero(~is_possible & (states > 1) & (rank == 1) & ~ranked.is_decoy[order])):
        resources.progress.message(
            f"{counted(n_left, 'match', 'matches')} with modifications not localised: the database lacks the peptide, or the peptide has"
            f" more than {LONGEST_PEPTIDE} residues or too many modifications"
        )
    psms = Psms(
        spectrum=matches.spectrum[order],
        charge=matches.charge[order],
        rank=np.where(is_possible, rank, 2),
        isotope_error=matches.isotope_error[order],
        position=position,
        length=length,
        missed_cleavages=matches.peptides.missed_cleavages[at].astype(np.int64),
        occurrence_offsets=occurrence_offsets,
        occurrences=occurrences,
        modification_offsets=offsets,
        modification_site=sites,
        modification=number,
        n_variable=carried.sum(axis=1),
        observed_mass=matches.observed_mass[order],
        calculated_mass=matches.calculated_mass[order],
        score=ranked.score[order],
        delta_score=zeros,
        expectation=zeros,
        n_candidates=zeros.astype(np.int64),
        features={},
        is_decoy=ranked.is_decoy[order],
        peptide_family=at,
        modifications=(*modifications.variable, *modifications.others),
    )
    score = np.nan_to_num(ranked.score[order], nan=-np.finfo(np.float64).max)
    return ScoredMatches(psms, score, ranked.rates.q_value[order], ranked.rates.posterior_error[order], {}, "")
