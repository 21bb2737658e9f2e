"""Peptide-spectrum matches as columns that can be used without the peptide index, and features for rescoring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges, segment_offsets, splitmix64
from proteoscope.engine.chemistry.enzymes import Enzyme
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.chemistry.modifications import SearchModification
from proteoscope.engine.matches.fragment_intensities import MatchedBonds
from proteoscope.engine.matches.scoring import Matches
from proteoscope.engine.peptides.peptide_index import PeptideIndex
from proteoscope.engine.peptides.protein_index import ProteinIndex
from proteoscope.engine.statistics.target_decoy import ScoreScale
from proteoscope.kernels.cpu.peptides import MISSED_CLEAVAGE_SHIFT
from proteoscope.kernels.score_kinds import parted_scores

__all__ = [
    "SEARCH_SCORE_SCALE",
    "Psms",
    "SystematicErrors",
    "collect_psms",
    "joined_psms",
    "occupied_sites",
    "peptide_families",
    "rescoring_features",
    "search_score",
]

_NO_MODIFICATION = 255
_FEWEST_CONFIDENT = 10  # minimum number of matches for a median


@dataclass(frozen=True)
class Psms:
    """Peptide-spectrum matches (n) with the positions of their peptides in the protein index, and their modifications (m).

    Attributes
    ----------
    spectrum : ndarray of int64, shape (n,)
        Index of the spectrum.
    charge, rank, isotope_error : ndarray of int64, shape (n,)
        Precursor charge, rank among the matches of the spectrum, and isotope error.
    position : ndarray of int64, shape (n,)
        Position of the peptide's first residue in the residues of the protein index, at its first occurrence.
    length, missed_cleavages : ndarray of int64, shape (n,)
        Number of residues and of missed cleavages.
    occurrence_offsets : ndarray of int64, shape (n + 1,)
        Start of each match in `occurrences`, followed by the length of `occurrences`.
    occurrences : ndarray of int64
        Positions of the first residue at all occurrences of the peptide; for a target match, only occurrences in targets.
    modification_offsets : ndarray of int64, shape (n + 1,)
        Start of each match's modifications, followed by m.
    modification_site : ndarray of int64, shape (m,)
        Position of each modification: residue number from 1, 0 for the N-terminus, length + 1 for the C-terminus; ascending within a match.
    modification : ndarray of int64, shape (m,)
        Index into `modifications`, which contains variable, known and fixed modifications.
    n_variable : ndarray of int64, shape (n,)
        Number of variable modifications.
    observed_mass, calculated_mass : ndarray of float64, shape (n,)
        Neutral masses of precursor and peptide, Da; the observed mass is not corrected for the isotope error.
    score, delta_score, expectation, n_candidates, features : ndarray or dict
        See `proteoscope.engine.matches.scoring.Matches`.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    peptide_family : ndarray of int64, shape (n,)
        Number shared by all peptidoforms of a peptide (I = L) and its decoy partner; rescoring assigns all of these matches to one fold.
    modifications : tuple of SearchModification
        Modifications of all matches.
    bonds : MatchedBonds or None
        Matched peaks of each bond; None if the search did not request them.
    decoy_ratio : float
        Number of decoy candidates per target candidate (see `proteoscope.engine.peptides.peptide_index.PeptideIndex`).
    """

    spectrum: NDArray[np.int64]
    charge: NDArray[np.int64]
    rank: NDArray[np.int64]
    isotope_error: NDArray[np.int64]
    position: NDArray[np.int64]
    length: NDArray[np.int64]
    missed_cleavages: NDArray[np.int64]
    occurrence_offsets: NDArray[np.int64]
    occurrences: NDArray[np.int64]
    modification_offsets: NDArray[np.int64]
    modification_site: NDArray[np.int64]
    modification: NDArray[np.int64]
    n_variable: NDArray[np.int64]
    observed_mass: NDArray[np.float64]
    calculated_mass: NDArray[np.float64]
    score: NDArray[np.float64]
    delta_score: NDArray[np.float64]
    expectation: NDArray[np.float64]
    n_candidates: NDArray[np.int64]
    features: dict[str, NDArray[np.float64]]
    is_decoy: NDArray[np.bool_]
    peptide_family: NDArray[np.int64]
    modifications: tuple[SearchModification, ...]
    bonds: MatchedBonds | None = None
    decoy_ratio: float = 1.0

    def __len__(self) -> int:
        return len(self.spectrum)

    @property
    def mass_error_ppm(self) -> NDArray[np.float64]:
        """Error of the observed mass after correction for the isotope error, ppm, (n,) float64."""
        return (self.observed_mass - self.isotope_error * ISOTOPE_SPACING - self.calculated_mass) / self.calculated_mass * 1e6

    def take(self, rows: NDArray[np.int64]) -> Psms:
        """Return the rows with the given indices, in this order."""
        chosen: dict[str, object] = {"modifications": self.modifications, "decoy_ratio": self.decoy_ratio}
        chosen["features"] = {name: column[rows] for name, column in self.features.items()}
        chosen["occurrence_offsets"], (chosen["occurrences"],) = _take_lists(self.occurrence_offsets, rows, self.occurrences)
        chosen["modification_offsets"], (chosen["modification_site"], chosen["modification"]) = _take_lists(
            self.modification_offsets, rows, self.modification_site, self.modification
        )
        chosen["bonds"] = self.bonds and self.bonds.take(rows)
        for field in fields(self):
            if field.name not in chosen:
                chosen[field.name] = getattr(self, field.name)[rows]
        return Psms(**chosen)  # type: ignore[arg-type]


def collect_psms(matches: Matches, peptides: PeptideIndex, proteins: ProteinIndex, variable: Sequence[SearchModification]) -> Psms:
    """Return matches with the data of their peptides and proteins from the indexes; `variable` are the variable modifications."""
    n, peptide = len(matches), matches.peptide
    position = peptides.position[peptide].astype(np.int64)
    length = peptides.length[peptide].astype(np.int64)
    is_decoy = position >= proteins.first_decoy_residue
    starts, stops = peptides.pointer[peptide], peptides.pointer[peptide + 1]
    occurrence_offsets, index = ranges(starts, stops)
    occurrences = peptides.occurrence[index].astype(np.int64)
    # A target peptide may also occur in decoys; these occurrences are uninformative and omitted.
    row = np.repeat(np.arange(n), np.diff(occurrence_offsets))
    retained = is_decoy[row] | (occurrences < proteins.first_decoy_residue)
    occurrences, row = occurrences[retained], row[retained]
    occurrence_offsets = segment_offsets(np.bincount(row, minlength=n))

    modifications_of_database = () if proteins.known_modifications is None else proteins.known_modifications.modifications
    fixed, n_variable = peptides.digestion.fixed, len(variable)
    has = matches.modification != _NO_MODIFICATION
    rows = [np.nonzero(has)[0]]
    sites = [matches.site[has].astype(np.int64)]
    which = [matches.modification[has].astype(np.int64)]
    offsets, index = ranges(position, position + length)
    residues = np.asarray(proteins.proteins.residues)[index]
    residue_row = np.repeat(np.arange(n), length)
    taken = occupied_sites(rows[0], sites[0], which[0], (*variable, *modifications_of_database), n_variable, length)
    for number, modification in enumerate(fixed, start=n_variable + len(modifications_of_database)):
        if modification.position == "anywhere":
            carries = np.isin(residues, np.frombuffer(modification.residues.encode(), np.uint8))
            row_of_fixed, site = residue_row[carries], np.flatnonzero(carries) - offsets[residue_row[carries]] + 1
        else:
            row_of_fixed, site = np.arange(n), np.zeros(n, np.int64) if modification.position == "peptide N-term" else length + 1
        is_retained = ~np.isin(row_of_fixed << 8 | site, taken) | modification.is_isotopic
        rows.append(row_of_fixed[is_retained])
        sites.append(site[is_retained])
        which.append(np.full(len(rows[-1]), number, np.int64))
    all_rows, all_sites, all_which = np.concatenate(rows), np.concatenate(sites), np.concatenate(which)
    order = np.lexsort((all_which, all_sites, all_rows))
    modifications = (*variable, *modifications_of_database, *fixed)
    mass = np.array([modification.added_mass for modification in variable] or [0.0])
    adds = has & (matches.modification < n_variable)  # the peptide index contains the masses of peptidoforms with known modifications
    variable_mass = np.where(adds, mass[np.where(adds, matches.modification, 0)], 0.0).sum(axis=1)
    return Psms(
        spectrum=matches.spectrum,
        charge=matches.charge,
        rank=matches.rank,
        isotope_error=matches.isotope_error,
        position=position,
        length=length,
        missed_cleavages=(peptides.flags[peptide] >> MISSED_CLEAVAGE_SHIFT).astype(np.int64),
        occurrence_offsets=occurrence_offsets,
        occurrences=occurrences,
        modification_offsets=segment_offsets(np.bincount(all_rows, minlength=n)),
        modification_site=all_sites[order],
        modification=all_which[order],
        n_variable=has.sum(axis=1),
        observed_mass=matches.query_mass,
        calculated_mass=peptides.mass[peptide] + variable_mass,
        score=matches.score,
        delta_score=matches.delta_score,
        expectation=matches.expectation,
        n_candidates=matches.n_candidates,
        features=matches.features,
        is_decoy=is_decoy,
        peptide_family=peptide_families(residues, offsets, peptides.digestion.enzyme),
        modifications=modifications,
        decoy_ratio=peptides.decoy_ratio,
        bonds=_bonds(matches, offsets, residues),
    )


def _bonds(matches: Matches, offsets: NDArray[np.int64], residues: NDArray[np.uint8]) -> MatchedBonds | None:
    """Return the matched peaks of the bonds of all matches; None if the search did not request them."""
    if matches.bond_weights is None or matches.has_bonds is None:
        return None
    return MatchedBonds(offsets, residues, matches.bond_weights, matches.has_bonds)


def occupied_sites(
    row: NDArray[np.int64],
    site: NDArray[np.int64],
    number: NDArray[np.int64],
    modifications: Sequence[SearchModification],
    n_variable: int,
    length: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the sites of fixed modifications that variable or known modifications replace, encoded as row * 256 + site.

    A modification of a residue replaces the fixed modification of the residue. A variable modification of a terminus replaces only the
    fixed modification of the terminus. A known modification of a terminus replaces both.

    Parameters
    ----------
    row : ndarray of int64, shape (m,)
        Row of the peptide of each modification.
    site : ndarray of int64, shape (m,)
        Site of each modification in the peptide: residue number from 1, 0 for the N-terminus, length + 1 for the C-terminus.
    number : ndarray of int64, shape (m,)
        Index of each modification in `modifications`.
    modifications : sequence of SearchModification
        The `n_variable` variable modifications, followed by the known modifications.
    n_variable : int
        Number of variable modifications.
    length : ndarray of int64
        Number of residues of each peptide.

    Returns
    -------
    ndarray of int64
    """
    replaces = np.array([not modification.retains_fixed for modification in modifications], np.bool_)
    replaces_fixed_of_residue = np.array(
        [k >= n_variable or modification.replaces_fixed_of_residue for k, modification in enumerate(modifications)], np.bool_
    )
    position = np.array([modification.place for modification in modifications], np.int64)
    if not len(number):
        return number
    taking = replaces[number]
    row, site, number = row[taking], site[taking], number[taking]
    of_residue, at_end = replaces_fixed_of_residue[number], position[number] > 0
    end = np.where(position[number] % 2 == 1, 0, length[row] + 1)
    return np.concatenate((row[of_residue] << 8 | site[of_residue], row[at_end] << 8 | end[at_end]))


def peptide_families(residues: NDArray[np.uint8], offsets: NDArray[np.int64], enzyme: Enzyme) -> NDArray[np.int64]:
    """Return a number for each peptide that is the same for the peptide and its decoy partner.

    A reversed or shuffled decoy has the residues of its target in another order. Residues at which the enzyme cuts are an exception, since
    reversal moves them to the neighbouring peptide. The number is therefore a hash of all other residues that ignores their order.
    Different peptides with the same composition have the same number, which only makes the folds slightly less even.

    Parameters
    ----------
    residues : ndarray of uint8, shape (r,)
        Residues of all peptides, concatenated, as ASCII capitals.
    offsets : ndarray of int64, shape (n + 1,)
        Start of each peptide, followed by r.
    enzyme : Enzyme
        Cleavage agent.

    Returns
    -------
    ndarray of int64, shape (n,)

    Examples
    --------
    >>> from proteoscope.engine.chemistry.enzymes import enzyme
    >>> residues = np.frombuffer(b"PEPTLDEKEDITPEPRPEPSLDEK", np.uint8)
    >>> first, decoy, other = peptide_families(residues, np.array([0, 8, 16, 24]), enzyme("Trypsin")).tolist()
    >>> first == decoy, first == other
    (True, False)
    """
    cutting = np.frombuffer((enzyme.after + enzyme.before).encode(), np.uint8) - ord("A")
    # A random number for each residue (SplitMix64, Steele 2014, OOPSLA), so that the sums of different compositions differ.
    number = splitmix64(np.arange(1, 27, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    number[ord("I") - 65] = number[ord("L") - 65]
    if not enzyme.is_unspecific:
        number[cutting] = 0
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(number[residues - 65])))  # sums modulo 2^64: their differences are exact
    signatures: NDArray[np.int64] = (sums[offsets[1:]] - sums[offsets[:-1]]).view(np.int64)
    return signatures


def joined_psms(first: Psms, second: Psms) -> Psms:
    """Concatenate two tables of matches."""
    joined: dict[str, object] = {"modifications": (*first.modifications, *second.modifications), "decoy_ratio": first.decoy_ratio}
    joined["features"] = {name: np.concatenate((first.features[name], second.features[name])) for name in first.features}
    joined["modification"] = np.concatenate((first.modification, second.modification + len(first.modifications)))
    joined["bonds"] = None if first.bonds is None or second.bonds is None else first.bonds.joined(second.bonds)
    for field in fields(Psms):
        if field.name in joined:
            continue
        a, b = getattr(first, field.name), getattr(second, field.name)
        joined[field.name] = np.concatenate((a, b[1:] + a[-1])) if field.name.endswith("_offsets") else np.concatenate((a, b))
    return Psms(**joined)  # type: ignore[arg-type]


SEARCH_SCORE_SCALE = ScoreScale(base=1.0, spread=1.0, weight=3.0)
"""Prior parameters of the decoy tail of `search_score`, used if there are few decoys.

If both terms of the score were logarithms of chance counts, the number of false matches would decrease by a factor of e for each 0.43 by
which the score increases. Since the second term spreads twice as far, this is 0.6. In six data sets, this number was 0.4 to 1.2 for decoys
above the median score, which was -0.2 to 1.6.
"""


def search_score(psms: Psms) -> NDArray[np.float64]:
    """Return the ranking score of matches before training, (n,) float64, on the scale of -log10 of a probability.

    The score is comparable between spectra. It is a weighted mean of two logarithms with different weaknesses. The first is the logarithm
    of the number of candidates expected to reach this score by chance (`Psms.expectation`). It is fitted to the candidates of the spectrum,
    and uncertain if these are few. The second is the logarithm of the binomial probability of matching at least this number of ions by
    chance, times the number of candidates. It ignores intensities and assumes independent ions. For spectra without a correct candidate, it
    varies about twice as much as the first logarithm, and therefore has half the weight.
    """
    by_counts = psms.features["chance"] + np.log10(psms.n_candidates + 1.0)
    scores: NDArray[np.float64] = -(2.0 * psms.expectation + by_counts) / 3.0
    return scores


class SystematicErrors(NamedTuple):
    """Systematic mass errors of the instrument, ppm: the median precursor error and the median fragment error of the matches."""

    precursor: float
    fragment: float

    @classmethod
    def from_matches(cls, psms: Psms, is_confident: NDArray[np.bool_]) -> SystematicErrors:
        """Return the systematic errors of the confident matches, or of all matches if fewer than 10 are confident.

        Parameters
        ----------
        psms : Psms
            Matches, n rows.
        is_confident : ndarray of bool, shape (n,)
            True for confident matches.
        """
        chosen = is_confident if is_confident.sum() >= _FEWEST_CONFIDENT else np.ones(len(psms), bool)
        errors = psms.mass_error_ppm[chosen], psms.features["mean_fragment_error"][chosen]
        return cls(*(float(np.median(error)) if len(error) else 0.0 for error in errors))


def rescoring_features(psms: Psms, systematic: SystematicErrors) -> dict[str, NDArray[np.float64]]:
    """Return features that separate correct from incorrect matches: columns by name, each (n,) float64.

    Mass errors are differences from the `systematic` errors.
    """
    measured, length = psms.features, psms.length.astype(np.float64)
    bonds = np.maximum(length - 1, 1)
    # Long-tailed scores are replaced by their square roots.
    termed, others = (
        {kind.column: np.sqrt(measured[kind.column]) if kind.tail_root else measured[kind.column] for kind in kinds}
        for kinds in parted_scores("features")
    )
    return {
        "expectation": -psms.expectation,
        "chance": -measured["chance"],
        "chance_expectation": -measured["chance"] - np.log10(psms.n_candidates + 1.0),
        **termed,
        "delta_score": psms.delta_score,
        "log_candidates": np.log1p(psms.n_candidates),
        **others,
        "matched_share": measured["matched_ions"] / np.maximum(measured["total_ions"], 1),
        "matched_ions": measured["matched_ions"],
        "n_term_share": measured["matched_n_term_ions"] / bonds,
        "c_term_share": measured["matched_c_term_ions"] / bonds,
        "c_term_dot_product": measured["c_term_dot_product"],
        "longest_run_share": measured["longest_run"] / bonds,
        "complementary_share": measured["complementary_pairs"] / bonds,
        "explained_weight": measured["explained_weight"],
        "top_peaks_matched": measured["top_peaks_matched"],
        "fragment_error": measured["mean_absolute_fragment_error"],
        "fragment_error_bias": np.abs(measured["mean_fragment_error"] - systematic.fragment),
        "precursor_error": np.abs(psms.mass_error_ppm - systematic.precursor),
        "isotope_error_1": (psms.isotope_error == 1).astype(np.float64),
        "isotope_error_other": ((psms.isotope_error != 0) & (psms.isotope_error != 1)).astype(np.float64),
        "charge_2": (psms.charge == 2).astype(np.float64),
        "charge_3": (psms.charge == 3).astype(np.float64),
        "charge_4_or_more": (psms.charge >= 4).astype(np.float64),
        "length": length,
        "missed_cleavages": psms.missed_cleavages.astype(np.float64),
        "variable_modifications": psms.n_variable.astype(np.float64),
        "mass": psms.observed_mass,
    }


def _take_lists(
    offsets: NDArray[np.int64], rows: NDArray[np.int64], *values: NDArray[Any]
) -> tuple[NDArray[np.int64], tuple[NDArray[Any], ...]]:
    new, index = ranges(offsets[:-1][rows], offsets[1:][rows])
    return new, tuple(column[index] for column in values)
