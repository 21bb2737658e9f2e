"""Listed matches, completed with spectra, modification names, masses and protein positions; incomplete matches are omitted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges, segment_offsets, take_segments
from proteoscope.engine.chemistry.enzymes import Enzyme
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING, PROTON_MASS, RESIDUE_MASS, WATER_MASS
from proteoscope.engine.chemistry.modification_naming import NamedModification, Namer
from proteoscope.engine.chemistry.modifications import SearchModification, parse_modification
from proteoscope.engine.chemistry.noted_peptides import NotedPeptide
from proteoscope.engine.chemistry.peptidoforms import write_many
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.match_lists.identifications import Identifications
from proteoscope.engine.matches.match_lists.protein_positions import PlacedPeptides, place_peptides
from proteoscope.engine.matches.match_lists.references import AMBIGUOUS, WAYS, FoundSpectra
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["ListedMatches", "ListedPeptides", "NamedPeptides", "collect_matches", "listed_peptides"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_ISOTOPES = (-1, 4)
_NEAR_ISOTOPE = 0.1  # dalton
_MAXIMUM_CHARGE = 100
_MAXIMUM_GUESSED_CHARGE = 8
_MAXIMUM_LENGTH = 1000


@dataclass(frozen=True)
class ListedPeptides:
    """Distinct peptides (p) as written in result files; two of them may be the same peptidoform in different notations.

    Attributes
    ----------
    sequences : tuple of str, length p
        Sequences without modifications.
    texts : tuple of str, length p
        Sequences with modifications, in ProForma.
    offsets : ndarray of int64, shape (p + 1,)
        Start of each peptide's modifications, followed by the number of modifications.
    sites : ndarray of int64
        Position of each modification: residue number from 1, 0 for the N-terminus, length + 1 for the C-terminus.
    modification : ndarray of int64
        Index into `modifications`.
    modifications : tuple of NamedModification
        Modifications of all peptides.
    residue_offsets : ndarray of int64, shape (p + 1,)
        Start of each peptide in `residues`, followed by the length of `residues`.
    residues : ndarray of uint8
        Residues as ASCII capitals.
    residue_masses : ndarray of float64
        Residue masses including modifications, also of the termini, Da.
    mass : ndarray of float64, shape (p,)
        Neutral mass, Da; NaN if the mass of a residue or a modification is unknown.
    missed_cleavages : ndarray of int64, shape (p,)
        Number of missed cleavages of each peptide.
    """

    sequences: tuple[str, ...]
    texts: tuple[str, ...]
    offsets: Integers
    sites: Integers
    modification: Integers
    modifications: tuple[NamedModification, ...]
    residue_offsets: Integers
    residues: NDArray[np.uint8]
    residue_masses: Floats
    mass: Floats
    missed_cleavages: Integers


class NamedPeptides(NamedTuple):
    """Listed peptides (p), and their unknown modifications.

    The array (p,) is True for peptides without unknown modifications. The mapping contains the number of occurrences of each unknown
    modification by name.
    """

    peptides: ListedPeptides
    is_known: NDArray[np.bool_]
    unknown: dict[str, int]


@dataclass(frozen=True)
class ListedMatches:
    """Complete matches (n rows), which are used for the tables, and omitted matches (m rows) with reasons.

    Attributes
    ----------
    row : ndarray of int64, shape (n,)
        Index of each match in the identifications.
    spectrum : ndarray of int64, shape (n,)
        Index of each match's spectrum.
    charge : ndarray of int64, shape (n,)
        Charge of each precursor.
    peptide : ndarray of int64, shape (n,)
        Index of each match's peptide in `peptides`.
    peptides : ListedPeptides
        Peptides of the matches.
    observed_mass : ndarray of float64, shape (n,)
        Measured neutral mass of the precursor, Da.
    isotope_error : ndarray of int64, shape (n,)
        Isotope error of each precursor.
    protein_offsets : ndarray of int64, shape (n + 1,)
        Start of each match's proteins in `protein`, followed by the length of `protein`.
    protein : ndarray of int64
        Index of the protein in `protein_positions`.
    start : ndarray of int64
        First residue of the peptide in the protein, from 0, or -1.
    protein_positions : PlacedPeptides
        Positions of peptides in proteins.
    left_out : ndarray of int64, shape (m,)
        Indices of the omitted matches in the identifications.
    reason : tuple of str, length m
        Reason why each match was omitted.
    found_by : dict of str to int
        Number of matches whose spectrum was found by each method, such as ``native id``.
    unknown : dict of str to int
        Number of occurrences of each unknown modification.
    """

    row: Integers
    spectrum: Integers
    charge: Integers
    peptide: Integers
    peptides: ListedPeptides
    observed_mass: Floats
    isotope_error: Integers
    protein_offsets: Integers
    protein: Integers
    start: Integers
    protein_positions: PlacedPeptides
    left_out: Integers
    reason: tuple[str, ...]
    found_by: dict[str, int]
    unknown: dict[str, int]

    def __len__(self) -> int:
        return len(self.row)

    @property
    def calculated_mass(self) -> Floats:
        """Neutral peptide mass of each match, Da, (n,) float64."""
        return self.peptides.mass[self.peptide]

    @property
    def mass_error_ppm(self) -> Floats:
        """Error of the observed mass after correction for the isotope error, ppm, (n,) float64."""
        return (self.observed_mass - self.isotope_error * ISOTOPE_SPACING - self.calculated_mass) / self.calculated_mass * 1e6


def collect_matches(
    identifications: Identifications,
    in_spectra: FoundSpectra,
    spectra: Spectra,
    database: Proteins | None,
    enzyme: Enzyme,
    fixed_modifications: Sequence[str],
    progress: Progress,
) -> ListedMatches:
    """Return the matches with spectra, masses, charges and protein positions; omit matches without a spectrum, peptide mass or charge.

    Parameters
    ----------
    identifications : Identifications
        Matches in the files.
    in_spectra : FoundSpectra
        Spectrum of each match.
    spectra : Spectra
        Spectra of the run.
    database : Proteins or None
        Proteins of the database; None without a database.
    enzyme : Enzyme
        Cleavage agent, used to count missed cleavages.
    fixed_modifications : sequence of str
        Modifications that are on all residues of a type, but are not mentioned in the files.
    progress : Progress
        Progress of the run.

    Returns
    -------
    ListedMatches
    """
    fixed = tuple(parse_modification(name) for name in fixed_modifications)
    peptides, is_known, unknown = listed_peptides(identifications.peptides, fixed, enzyme)
    progress.check()
    positions, row_offsets, row_pairs = _places(identifications, peptides.sequences, database, progress)
    has_protein = np.diff(row_offsets) > 0
    has_mass = np.isfinite(peptides.mass)
    spectrum_row = np.maximum(in_spectra.spectrum, 0)
    charge = _charges(identifications, peptides.mass[identifications.peptide], in_spectra.spectrum, spectra)
    reasons = [
        (in_spectra.spectrum == AMBIGUOUS, "its spectrum is in several of the files"),
        (in_spectra.spectrum < 0, "its spectrum is in none of the files"),
        (~is_known[identifications.peptide], "one of its modifications is not known and has no mass"),
        (~has_mass[identifications.peptide], "its sequence has no mass (B, X, Z or more than 1,000 residues)"),
        (charge <= 0, "its charge is not known"),
        (~has_protein, "its protein is not known"),
    ]
    code = np.full(len(identifications), -1, np.int64)
    for number, (applies, _) in enumerate(reasons):
        code[(code < 0) & applies] = number
    row = np.flatnonzero(code < 0)
    left_out = np.flatnonzero(code >= 0)
    pairs, offsets = take_segments(row_pairs, row_offsets, row)
    spectrum, charge, mass = spectrum_row[row], charge[row], peptides.mass[identifications.peptide[row]]
    observed = (spectra.precursor_mz[spectrum] - PROTON_MASS) * charge
    nearest = np.clip(np.round((observed - mass) / ISOTOPE_SPACING), *_ISOTOPES).astype(np.int64)
    isotope = np.where(np.abs(observed - mass - nearest * ISOTOPE_SPACING) <= _NEAR_ISOTOPE, nearest, 0)
    ways = np.bincount(in_spectra.way[row], minlength=len(WAYS)) if len(row) else np.zeros(len(WAYS), np.int64)
    return ListedMatches(
        row,
        spectrum,
        charge,
        identifications.peptide[row],
        peptides,
        observed,
        isotope,
        offsets,
        positions.protein[pairs],
        positions.start[pairs],
        positions,
        left_out,
        tuple(reasons[number][1] for number in code[left_out].tolist()),
        {way: int(n) for way, n in zip(WAYS, ways.tolist(), strict=True) if n},
        unknown,
    )


def listed_peptides(noted: Sequence[NotedPeptide], fixed: Sequence[SearchModification], enzyme: Enzyme) -> NamedPeptides:
    """Return the peptides `noted` with the names and masses of their modifications.

    `fixed` are modifications that are on all residues of a type, but are not mentioned in the files.
    """
    namer = Namer(fixed)
    placed = [namer.place_modifications(peptide) for peptide in noted]
    is_known = np.array([pairs is not None for pairs in placed], np.bool_)
    sequences = tuple(peptide.sequence for peptide in noted)
    offsets = segment_offsets(np.array([len(pairs or ()) for pairs in placed], np.int64))
    flat = np.array([pair for pairs in placed for pair in pairs or ()], np.int64).reshape(-1, 2)
    sites, modification = flat[:, 0].copy(), flat[:, 1].copy()
    names = [modification.name for modification in namer.modifications]
    masses = np.array([modification.mass for modification in namer.modifications] or [0.0])
    texts = write_many(sequences, offsets, sites, modification, names, masses[: len(names)])
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    residue_offsets = segment_offsets(lengths)
    symbols = np.frombuffer("".join(sequences).encode("ascii"), np.uint8)
    residue_masses = RESIDUE_MASS[symbols - ord("A")].copy()
    owner = np.repeat(np.arange(len(sequences)), np.diff(offsets))
    at = residue_offsets[owner] + np.clip(sites - 1, 0, lengths[owner] - 1)
    np.add.at(residue_masses, at, masses[modification])
    mass = np.add.reduceat(residue_masses, residue_offsets[:-1]) + WATER_MASS if len(sequences) else np.zeros(0)
    mass[~is_known | (lengths > _MAXIMUM_LENGTH) | ~(mass > 0)] = np.nan
    cut = np.zeros(len(symbols), np.bool_)
    cut[:-1] = enzyme.cleavage_table()[symbols[:-1] - ord("A"), symbols[1:] - ord("A")]
    cut[residue_offsets[1:] - 1] = False
    missed = np.add.reduceat(cut.astype(np.int64), residue_offsets[:-1]) if len(sequences) else np.zeros(0, np.int64)
    peptides = ListedPeptides(
        sequences,
        tuple(texts),
        offsets,
        sites,
        modification,
        tuple(namer.modifications),
        residue_offsets,
        symbols,
        residue_masses,
        mass,
        np.minimum(missed, 127),
    )
    return NamedPeptides(peptides, is_known, namer.unknown)


def _places(
    identifications: Identifications, sequences: Sequence[str], database: Proteins | None, progress: Progress
) -> tuple[PlacedPeptides, Integers, Integers]:
    """Return the positions of sequences in proteins, and the pairs of a sequence and a protein of each match: offsets (CSR) and indices.

    The proteins of a match are the proteins that the file names. If the file names none, all proteins in the database that contain the
    sequence are used.
    """
    codes: dict[str, int] = {}
    sequence_of = np.array([codes.setdefault(sequence, len(codes)) for sequence in sequences] or [0], np.int64)
    n_proteins = max(1, len(identifications.accessions))
    counts = np.diff(identifications.protein_offsets)
    sequence = sequence_of[identifications.peptide] if len(identifications) else np.zeros(0, np.int64)
    keys = np.repeat(sequence, counts) * n_proteins + identifications.protein
    distinct = np.unique(keys)
    offsets = segment_offsets(np.bincount(distinct // n_proteins, minlength=len(codes)))
    positions = place_peptides(tuple(codes), offsets, distinct % n_proteins, identifications.accessions, database, progress)
    # Pairs of sequences that were found in the database lie between and after the other pairs.
    n_accessions = max(1, len(positions.accessions))
    placed = np.repeat(np.arange(len(codes)), np.diff(positions.offsets)) * n_accessions + positions.protein
    order = np.argsort(placed)
    named = (
        order[np.searchsorted(placed[order], np.repeat(sequence, counts) * n_accessions + identifications.protein)] if len(keys) else keys
    )
    nameless = np.flatnonzero(counts == 0)
    n_named = np.diff(positions.offsets)[sequence[nameless]]
    per_row = counts.copy()
    per_row[nameless] = n_named
    row_offsets = segment_offsets(per_row)
    pairs = np.empty(row_offsets[-1], np.int64)
    is_named = np.repeat(counts > 0, per_row)
    pairs[is_named] = named
    _, pairs[~is_named] = ranges(positions.offsets[sequence[nameless]], positions.offsets[sequence[nameless] + 1])
    return positions, row_offsets, pairs


def _charges(identifications: Identifications, mass: Floats, spectrum: Integers, spectra: Spectra) -> Integers:
    """Return the charge of each match from the file, or, if the file does not contain it, from the spectrum.

    If the spectrum does not have exactly one charge, return the charge at which precursor m/z and peptide mass agree best, or 0 if they
    differ by the mass of 5 isotopes or more at every charge.
    """
    charge = identifications.charge.copy()
    requested = np.flatnonzero((charge <= 0) & (spectrum >= 0) & np.isfinite(mass))
    mask = spectra.charge_mask[spectrum[requested]].astype(np.int64) & ~1
    is_one = (mask > 0) & (mask & (mask - 1) == 0)
    charge[requested[is_one]] = np.round(np.log2(mask[is_one])).astype(np.int64)
    requested = requested[~is_one]
    tried = np.arange(1, _MAXIMUM_GUESSED_CHARGE + 1)
    observed = (spectra.precursor_mz[spectrum[requested], None] - PROTON_MASS) * tried
    distance = np.abs(observed - mass[requested, None])
    best = distance.argmin(axis=1) if len(requested) else np.zeros(0, np.int64)
    near = distance[np.arange(len(requested)), best] < 5 * ISOTOPE_SPACING
    charge[requested] = np.where(near, tried[best], 0)
    charge[(charge > _MAXIMUM_CHARGE) | (charge < 0)] = 0
    return charge
