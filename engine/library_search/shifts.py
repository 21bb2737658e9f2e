"""Names of mass differences between spectra and library entries in Unimod, and the residues at which they fit best."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges
from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.chemistry.modifications import write_mass
from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.match_lists.error_rates import ListParameters
from proteoscope.engine.matches.match_lists.ions import count_ions
from proteoscope.engine.matches.match_lists.matches import ListedPeptides
from proteoscope.engine.matches.shift_names import ShiftPositions, name_shifts
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["NamedShifts", "carrying", "name_differences"]

_PLACES = 64  # maximum number of residues for naming
_PER_ION = 2.0  # score per ion: naming accepts residues up to 1.5 below the best, so none with fewer ions


@dataclass(frozen=True)
class NamedShifts:
    """Names and positions of n mass shifts.

    Attributes
    ----------
    name : list of str, length n
        Name of each mass shift, or its mass as text.
    possible : list of str, length n
        All matching names, as one text.
    mass : ndarray of float64, shape (n,)
        Mass of the named modification in dalton.
    site : ndarray of int64, shape (n,)
        Residue number from 1, 0 for the N-terminus, length + 1 for the C-terminus, -1 without a peptide.
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
    """Return names of mass shifts, each at the residue with which most fragment ions match (the first of equal ones).

    Parameters
    ----------
    peptides : ListedPeptides
        Peptides of the library.
    peptide : ndarray of int64, shape (n,)
        Index of the peptide in `peptides`; -1 without a peptide, so that the mass is the name.
    shift : ndarray of float64, shape (n,)
        Mass difference in dalton.
    mass : ndarray of float64, shape (n,)
        Measured mass in dalton.
    spectrum, charge : ndarray of int64, shape (n,)
        Spectrum and charge of each match.
    spectra : Spectra
        Spectra of the run.
    tolerance : Tolerance
        Mass tolerance of names.
    parameters : ListParameters
        Parameters of the list of matches.
    progress : Progress
        Progress of the run.

    Returns
    -------
    NamedShifts
    """
    n = len(peptide)
    lengths = np.diff(peptides.residue_offsets)
    name, possible = [write_mass(round(mass, 4)) for mass in shift.tolist()], [""] * n
    named_mass, site = shift.copy(), np.full(n, -1)
    rows = np.flatnonzero((peptide >= 0) & (lengths[np.maximum(peptide, 0)] < _PLACES) if len(lengths) else np.zeros(n, np.bool_))
    if not len(rows):
        return NamedShifts(name, possible, named_mass, site)
    peptide_of_row = peptide[rows]
    score = _residue_scores(peptides, peptide_of_row, shift[rows], spectrum[rows], charge[rows], spectra, parameters, progress)
    begin = peptides.residue_offsets[peptide_of_row]
    # Flanking residues are unknown: use the peptide as its own protein.
    positions = ShiftPositions(
        shift[rows],
        tolerance.width(mass[rows]),
        score,
        begin,
        lengths[peptide_of_row],
        begin,
        begin + lengths[peptide_of_row],
        peptides.residues,
        1,
    )
    named = name_shifts(positions, (), enzyme("Trypsin"))
    for k, row in enumerate(rows.tolist()):
        which = int(named.modification[k])
        site[row], possible[row] = named.site[k], named.possible[k]
        if which >= 0:
            name[row], named_mass[row] = named.modifications[which].name, named.modifications[which].mass
    return NamedShifts(name, possible, named_mass, site)


def _residue_scores(
    peptides: ListedPeptides,
    peptide: NDArray[np.int64],
    shift: NDArray[np.float64],
    spectrum: NDArray[np.int64],
    charge: NDArray[np.int64],
    spectra: Spectra,
    parameters: ListParameters,
    progress: Progress,
) -> NDArray[np.float32]:
    """Return scores of the shift at each residue, (n, 64); -inf beyond the last residue.

    A score is the number of matched ions times `_PER_ION`, so that naming accepts no residue with fewer ions.
    """
    lengths = np.diff(peptides.residue_offsets)[peptide]
    row = np.repeat(np.arange(len(peptide)), lengths)  # one candidate per residue with the shift
    _, position = ranges(np.zeros_like(lengths), lengths)
    offsets, at = ranges(peptides.residue_offsets[peptide[row]], peptides.residue_offsets[peptide[row] + 1])
    masses = peptides.residue_masses[at]
    masses[offsets[:-1] + position] += shift[row]
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
    score = np.full((len(peptide), _PLACES), -np.inf, np.float32)
    score[row, position] = matched * _PER_ION
    return score


def carrying(peptide: NotedPeptide, site: int, name: str, mass: float) -> NotedPeptide:
    """Return a peptide with an additional modification at `site` (0 to length + 1), with this name and mass (Da)."""
    more = NotedModification(site, "" if name[:1] in "+-" else name, mass)
    return NotedPeptide(peptide.sequence, tuple(sorted((*peptide.modifications, more), key=lambda modification: modification.position)))
