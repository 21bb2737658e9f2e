"""Listed matches completed from spectra, modifications, masses and proteins; and the omitted ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import run_offsets, take_runs
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
    """p peptidoforms, each noted in one way by a file.

    Attributes
    ----------
    sequences, texts
        p texts; `texts` in ProForma.
    offsets, sites, modification
        CSR, int64: positions (0 the N-terminus, L + 1 the C-terminus) and indices into `modifications`.
    residue_offsets, letters, residue_masses
        CSR, residues as ASCII capitals, and their modified masses in dalton, including termini.
    mass : (p,) float64
        Neutral, dalton; NaN with a massless residue or unknown modification.
    missed_cleavages : (p,) int64
        Number of missed cleavages.
    """

    sequences: tuple[str, ...]
    texts: tuple[str, ...]
    offsets: Integers
    sites: Integers
    modification: Integers
    modifications: tuple[NamedModification, ...]
    residue_offsets: Integers
    letters: NDArray[np.uint8]
    residue_masses: Floats
    mass: Floats
    missed_cleavages: Integers


class NamedPeptides(NamedTuple):
    """Peptides with named modifications; (p,) bool, True if all are known, and counts of unknown ones."""

    peptides: ListedPeptides
    is_known: NDArray[np.bool_]
    unknown: dict[str, int]


@dataclass(frozen=True)
class ListedMatches:
    """n tabulated matches, and reasons for omitting others.

    Attributes
    ----------
    row : (n,) int64
        Row of the identifications.
    spectrum, charge, peptide : (n,) int64
        Rows of the spectra and of `peptides`.
    observed_mass : (n,) float64
        Dalton, as measured.
    isotope_error : (n,) int64
        Isotope error.
    protein_offsets, protein, start
        CSR, int64: proteins of `places`, and the first residue in each, from 0, or -1.
    left_out : (m,) int64
        Rows of the identifications.
    reason
        m texts.
    found_by
        Number of matches by the way in which their spectrum was found.
    unknown
        Unknown modifications.
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
    places: PlacedPeptides
    left_out: Integers
    reason: tuple[str, ...]
    found_by: dict[str, int]
    unknown: dict[str, int]

    def __len__(self) -> int:
        return len(self.row)

    @property
    def calculated_mass(self) -> Floats:
        """(n,) float64, of the peptide, neutral, dalton."""
        return self.peptides.mass[self.peptide]

    @property
    def mass_error_ppm(self) -> Floats:
        """(n,) float64, error of the observed mass after correction for the isotope error, parts per million."""
        return (self.observed_mass - self.isotope_error * ISOTOPE_SPACING - self.calculated_mass) / self.calculated_mass * 1e6


def collect_matches(
    found: Identifications,
    in_spectra: FoundSpectra,
    spectra: Spectra,
    database: Proteins | None,
    enzyme: Enzyme,
    fixed_modifications: Sequence[str],
    progress: Progress,
) -> ListedMatches:
    """Complete each match, and omit those with too little information.

    `fixed_modifications` are on every such residue although the list omits them.
    """
    fixed = tuple(parse_modification(name) for name in fixed_modifications)
    peptides, is_known, unknown = listed_peptides(found.peptides, fixed, enzyme)
    progress.check()
    places, row_offsets, row_pairs = _places(found, peptides.sequences, database, progress)
    has_protein = np.diff(row_offsets) > 0
    has_mass = np.isfinite(peptides.mass)
    of = np.maximum(in_spectra.spectrum, 0)
    charge = _charges(found, peptides.mass[found.peptide], in_spectra.spectrum, spectra)
    reasons = [
        (in_spectra.spectrum == AMBIGUOUS, "several of the files have its spectrum"),
        (in_spectra.spectrum < 0, "its spectrum is in none of the files"),
        (~is_known[found.peptide], "a modification of it is not known and has no mass"),
        (~has_mass[found.peptide], "its sequence has no mass (B, X, Z or more than 1,000 residues)"),
        (charge <= 0, "its charge is not known"),
        (~has_protein, "its protein is not known"),
    ]
    code = np.full(len(found), -1, np.int64)
    for number, (applies, _) in enumerate(reasons):
        code[(code < 0) & applies] = number
    row = np.flatnonzero(code < 0)
    left_out = np.flatnonzero(code >= 0)
    pairs, offsets = take_runs(row_pairs, row_offsets, row)
    spectrum, charge, mass = of[row], charge[row], peptides.mass[found.peptide[row]]
    observed = (spectra.precursor_mz[spectrum] - PROTON_MASS) * charge
    nearest = np.clip(np.round((observed - mass) / ISOTOPE_SPACING), *_ISOTOPES).astype(np.int64)
    isotope = np.where(np.abs(observed - mass - nearest * ISOTOPE_SPACING) <= _NEAR_ISOTOPE, nearest, 0)
    ways = np.bincount(in_spectra.way[row], minlength=len(WAYS)) if len(row) else np.zeros(len(WAYS), np.int64)
    return ListedMatches(
        row,
        spectrum,
        charge,
        found.peptide[row],
        peptides,
        observed,
        isotope,
        offsets,
        places.protein[pairs],
        places.start[pairs],
        places,
        left_out,
        tuple(reasons[number][1] for number in code[left_out].tolist()),
        {way: int(n) for way, n in zip(WAYS, ways.tolist(), strict=True) if n},
        unknown,
    )


def listed_peptides(noted: Sequence[NotedPeptide], fixed: Sequence[SearchModification], enzyme: Enzyme) -> NamedPeptides:
    """Name the modifications of peptides, and weigh them. `fixed` : what residues carry though it is not noted."""
    namer = Namer(fixed)
    placed = [namer.place_modifications(peptide) for peptide in noted]
    is_known = np.array([one is not None for one in placed], np.bool_)
    sequences = tuple(peptide.sequence for peptide in noted)
    offsets = run_offsets(np.array([len(one or ()) for one in placed], np.int64))
    flat = np.array([pair for one in placed for pair in one or ()], np.int64).reshape(-1, 2)
    sites, modification = flat[:, 0].copy(), flat[:, 1].copy()
    names = [modification.name for modification in namer.modifications]
    masses = np.array([modification.mass for modification in namer.modifications] or [0.0])
    texts = write_many(sequences, offsets, sites, modification, names, masses[: len(names)])
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    residue_offsets = run_offsets(lengths)
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
    found: Identifications, sequences: Sequence[str], database: Proteins | None, progress: Progress
) -> tuple[PlacedPeptides, Integers, Integers]:
    """Return positions of sequences in proteins, and CSR over the matches of their pairs.

    Proteins are those that the file names for the match, else those that contain the sequence.
    """
    codes: dict[str, int] = {}
    sequence_of = np.array([codes.setdefault(sequence, len(codes)) for sequence in sequences] or [0], np.int64)
    n_proteins = max(1, len(found.accessions))
    counts = np.diff(found.protein_offsets)
    sequence = sequence_of[found.peptide] if len(found) else np.zeros(0, np.int64)
    keys = np.repeat(sequence, counts) * n_proteins + found.protein
    distinct = np.unique(keys)
    offsets = run_offsets(np.bincount(distinct // n_proteins, minlength=len(codes)))
    places = place_peptides(tuple(codes), offsets, distinct % n_proteins, found.accessions, database, progress)
    # Sequences that are found in the database have pairs of their own, after and between the others.
    n_accessions = max(1, len(places.accessions))
    placed = np.repeat(np.arange(len(codes)), np.diff(places.offsets)) * n_accessions + places.protein
    order = np.argsort(placed)
    named = order[np.searchsorted(placed[order], np.repeat(sequence, counts) * n_accessions + found.protein)] if len(keys) else keys
    nameless = np.flatnonzero(counts == 0)
    own = np.diff(places.offsets)[sequence[nameless]]
    per_row = counts.copy()
    per_row[nameless] = own
    row_offsets = run_offsets(per_row)
    pairs = np.empty(row_offsets[-1], np.int64)
    is_named = np.repeat(counts > 0, per_row)
    pairs[is_named] = named
    first = places.offsets[:-1][sequence[nameless]]
    pairs[~is_named] = np.arange(own.sum()) + np.repeat(first - (np.cumsum(own) - own), own)
    return places, row_offsets, pairs


def _charges(found: Identifications, mass: Floats, spectrum: Integers, spectra: Spectra) -> Integers:
    """Return charges: of the file, else of the spectrum, else the best fit of peptide and precursor; 0 for none."""
    charge = found.charge.copy()
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
