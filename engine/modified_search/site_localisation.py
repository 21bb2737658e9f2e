"""Sites of named mass shifts: probabilities of all residues that may carry the modification, and false localisation rates.

The localisation is that of an identification (`proteoscope.engine.matches.localisation`), with the modifications that Unimod lists at
residues by default as variable ones. Any other shift may be at any residue: none can serve as decoy, and there is no false localisation
rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.matches.localisation import LocalisedPass, LocalisedSpectra, localise_matches, usual_sites
from proteoscope.engine.matches.site_tables import SiteTables, site_tables
from proteoscope.engine.modified_search.error_rates import RankedMatches
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
from proteoscope.engine.modified_search.passes import SeriesPlan
from proteoscope.engine.peptides.indexes import Indexes

__all__ = ["ShiftSites", "localise_shifts"]


@dataclass
class _Settings:
    """Settings of the localisation (see `proteoscope.engine.matches.localisation.LocalisationSettings`)."""

    fdr: float
    decoys: Literal["reverse", "pseudo-reverse", "shuffle", "existing", "none"]
    localise: Literal["automatic", "all", "none"] = "all"
    predicted_intensities: bool = True


class ShiftSites(NamedTuple):
    """Tables of sites, None without a named shift to localise, and the number of accepted matches with another shift."""

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
    # The first site of each named shift takes its number; its other sites, other shifts, which stay in place, and fixed ones follow.
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
