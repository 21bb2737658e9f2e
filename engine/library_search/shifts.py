"""Interpretation of mass differences to library entries: Unimod names, and the best-fitting residue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import run_offsets
from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.chemistry.modifications import write_mass
from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.match_lists.error_rates import ListParameters
from proteoscope.engine.matches.match_lists.ions import count_ions
from proteoscope.engine.matches.match_lists.matches import ListedPeptides
from proteoscope.engine.matches.shift_names import ShiftPlaces, name_shifts
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["NamedShifts", "carrying", "name_differences"]

_PLACES = 64  # residues that naming looks at
_PER_ION = 2.0  # naming may draw a shift to a place that has no ion less; scores of naming differ by 1.5 at the most


@dataclass(frozen=True)
class NamedShifts:
    """Names of n shifts.

    Attributes
    ----------
    name
        Name, or the mass as text.
    possible
        All matching names.
    mass
        Mass of the name, dalton.
    site
        0 the N-terminus, 1 to L, L + 1 the C-terminus, -1 without a peptide.
    """

    name: list[str]
    possible: list[str]
    mass: NDArray[np.float64]
    site: NDArray[np.int64]


def name_differences(
    peptides: ListedPeptides,
    peptide: NDArray[np.int64],
    shift: NDArray[np.float64],
    mass: NDArray[np.float64],
    spectrum: NDArray[np.int64],
    charge: NDArray[np.int64],
    spectra: Spectra,
    tolerance: Tolerance,
    parameters: ListParameters,
    progress: Progress,
) -> NamedShifts:
    """Name shifts and localise them where most fragment ions are explained, at the first of equal residues.

    Parameters
    ----------
    peptide : (n,)
        Into `peptides`, -1 where there is none: then the mass is the name.
    shift, mass : (n,)
        Dalton, the difference and the measured mass.
    spectrum, charge : (n,)
        Of the match.
    tolerance
        Of masses.
    """
    n = len(peptide)
    lengths = np.diff(peptides.residue_offsets)
    name, possible = [write_mass(round(mass, 4)) for mass in shift.tolist()], [""] * n
    named_mass, site = shift.copy(), np.full(n, -1)
    rows = np.flatnonzero((peptide >= 0) & (lengths[np.maximum(peptide, 0)] < _PLACES) if len(lengths) else np.zeros(n, np.bool_))
    if not len(rows):
        return NamedShifts(name, possible, named_mass, site)
    of = peptide[rows]
    score = _ions_by_place(peptides, of, shift[rows], spectrum[rows], charge[rows], spectra, parameters, progress)
    begin = peptides.residue_offsets[of]
    # The entry has no flanking residues, so that the peptide itself is used as its protein.
    places = ShiftPlaces(
        shift[rows], tolerance.width(mass[rows]), score, begin, lengths[of], begin, begin + lengths[of], peptides.residues, 1
    )
    named = name_shifts(places, (), enzyme("Trypsin"))
    for k, row in enumerate(rows.tolist()):
        which = int(named.modification[k])
        site[row], possible[row] = named.site[k], named.possible[k]
        if which >= 0:
            name[row], named_mass[row] = named.modifications[which].name, named.modifications[which].mass
    return NamedShifts(name, possible, named_mass, site)


def _ions_by_place(
    peptides: ListedPeptides,
    of: NDArray[np.int64],
    shift: NDArray[np.float64],
    spectrum: NDArray[np.int64],
    charge: NDArray[np.int64],
    spectra: Spectra,
    parameters: ListParameters,
    progress: Progress,
) -> NDArray[np.float32]:
    """Return (n, 64) ion counts with the shift at each residue, weighted so that implausible sites get no name; -inf after the last."""
    lengths = np.diff(peptides.residue_offsets)[of]
    row = np.repeat(np.arange(len(of)), lengths)  # of each candidate: a peptide with the shift at one of its residues
    place = np.arange(len(row)) - np.repeat(run_offsets(lengths)[:-1], lengths)
    offsets = run_offsets(lengths[row])
    at = np.arange(offsets[-1]) + np.repeat(peptides.residue_offsets[of[row]] - offsets[:-1], lengths[row])
    masses = peptides.residue_masses[at]
    masses[offsets[:-1] + place] += shift[row]
    matched, _ = count_ions(
        offsets,
        masses,
        peptides.residues[at],
        spectrum[row],
        charge[row],
        spectra,
        parameters.fragment_tolerance,
        parameters.ion_series,
        parameters.maximum_fragment_charge,
        progress,
    )
    score = np.full((len(of), _PLACES), -np.inf, np.float32)
    score[row, place] = matched * _PER_ION
    return score


def carrying(peptide: NotedPeptide, site: int, name: str, mass: float) -> NotedPeptide:
    """Return a peptide with an additional modification."""
    more = NotedModification(site, "" if name[:1] in "+-" else name, mass)
    return NotedPeptide(peptide.sequence, tuple(sorted((*peptide.modifications, more), key=lambda modification: modification.position)))
