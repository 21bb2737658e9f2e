"""Localisation of variable modifications: probability of each possible site, and false localisation rates.

The probabilities are defined in `proteoscope.kernels.cpu.localisation`. The fraction of falsely localised sites is estimated from decoy
residues (Ramsbottom 2022, J Proteome Res 21:1603), which cannot carry the modification: alanine and leucine. The estimates from alanine and
from leucine can be compared as a check. The number of decoy sites is multiplied by the ratio of target to decoy residues in the identified
peptides. Peptides without an alternative site are neither counted nor rated. Sites are collapsed to peptidoform sites before the estimate
(Camacho 2023, J Proteome Res 22:1828): a site that many spectra show counts once, with its best score.

A search that allows modifications of decoy residues would report some decoy sites instead of target sites, and lower the scores of targets.
Here each decoy site is compared with the target sites only, which are not affected.

The estimate is somewhat too high, by a factor of t^2 / (t^2 - 1) for a peptide with t target sites and one modification. Without evidence,
a wrong target site has the highest score among t target sites in 1 of t cases, and a decoy site has a higher score than all t target sites
in 1 of t + 1 cases. This makes the estimate too low by a factor of t / (t + 1). On the other hand, only t - 1 of the target sites are
wrong, but all t sites are counted in the ratio of target to decoy residues. This makes the estimate too high by a factor of t / (t - 1).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, positions_in_groups, ranges, row_mask, segment_offsets
from proteoscope.engine.chemistry.modifications import SearchModification, unimod
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.matches.fragment_intensities import (
    LONGEST_PREDICTED,
    has_predicted_series,
    predicted_bonds,
    unsupported_label_reason,
)
from proteoscope.engine.matches.psms import Psms
from proteoscope.engine.matches.tables import ScoredMatches
from proteoscope.engine.peptides.protein_index import ProteinIndex
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.engine.statistics.target_decoy import best_by_group, q_values
from proteoscope.kernels.cpu.fragment_intensities import IONS
from proteoscope.kernels.cpu.localisation import (
    DECOY_BIT,
    ERRORS,
    KINDS,
    OUTCOMES,
    PREDICTIONS,
    IonCounts,
    IonEvidence,
    MovableSites,
    count_ions,
    find_mixtures,
    localise_sites,
)
from proteoscope.kernels.device import Partition, StopFlag, equal_partitions, stop_flag
from proteoscope.kernels.layouts import PeptideArrays, ScoringSettings

__all__ = [
    "DECOY_RESIDUES",
    "LONGEST_PEPTIDE",
    "LocalisationSettings",
    "LocalisedPass",
    "LocalisedSpectra",
    "ModificationSites",
    "SiteRates",
    "ion_evidence",
    "is_localised",
    "localise_matches",
    "rate_sites",
    "usual_sites",
]

DECOY_RESIDUES = "AL"
"""Residues that compete as decoy sites."""
LONGEST_PEPTIDE = 64
"""Maximum number of residues of a peptide."""
_MAXIMUM_TYPES = 32
_MAXIMUM_COUNTED = 4000  # number of matches; additional matches do not change the frequencies of ions
_SAME_MASS = 1e-5  # Da
_ASCII_A = ord("A")
_SUBSTITUTION = "AA substitution"

# Usual frequencies of outcomes for a fragment that is present, and weights of priors as numbers of ions.
_USUAL = np.array([0.5, 0.09, 0.08, 0.11, 0.1, 0.07, 0.03, 0.02])
_PRIOR = 50.0


class LocalisationSettings(Protocol):
    """Settings of the localisation; attributes are named like the parameters of searches."""

    localise: Literal["automatic", "all", "none"]
    fdr: float
    decoys: Literal["reverse", "pseudo-reverse", "shuffle", "existing", "none"]
    predicted_intensities: bool


@dataclass(frozen=True)
class LocalisedSpectra:
    """Spectra with one set of ion series.

    Attributes
    ----------
    index : SpectrumIndex
        Spectra and queries.
    peptides : PeptideArrays
        Peptides of the search.
    mass : ndarray of float64, shape (m,)
        Masses of the variable modifications, followed by the masses of the known modifications, Da.
    settings : ScoringSettings
        Settings of the kernels.
    """

    index: SpectrumIndex
    peptides: PeptideArrays
    mass: NDArray[np.float64]
    settings: ScoringSettings


class LocalisedPass(NamedTuple):
    """Modifications and spectra of a search pass, with one `LocalisedSpectra` for each set of ion series."""

    variable: tuple[SearchModification, ...]
    fixed: tuple[SearchModification, ...]
    spectra: Sequence[LocalisedSpectra]


@dataclass(frozen=True)
class ModificationSites:
    """Possible sites (n) of the localised modifications of accepted matches, ordered by match, modification and site.

    Attributes
    ----------
    row : ndarray of int64, shape (n,)
        Row of the match.
    name : ndarray of int64, shape (n,)
        Index of the modification in `names`.
    site : ndarray of int64, shape (n,)
        Residue from 1; 0 for the N-terminus, length + 1 for the C-terminus.
    probability : ndarray of float64, shape (n,)
        Probability of the modification at the site, 0 for decoy sites. Over the sites of a match, the probabilities of a modification add
        up to the number of its occurrences.
    score : ndarray of float64, shape (n,)
        log10 of the odds of the site against all arrangements on other target sites.
    is_decoy : ndarray of bool, shape (n,)
        True for decoy sites.
    is_reported : ndarray of bool, shape (n,)
        True for the most likely target sites of each modification (as many as the match has occurrences of the modification), and for
        decoy sites that are more likely than the least likely of these.
    has_alternative : ndarray of bool, shape (n,)
        True if the match has more possible sites than modifications, not counting decoy sites.
    mixed_with : ndarray of int16, shape (n,)
        For the most likely sites: site of the modification in a second isomer in the same spectrum (`find_mixtures`); -1 if none was found.
    names : tuple of str
        Names of modifications.
    moved : tuple of int
        Localised modifications, as indices in `Psms.modifications`; other modifications of the same name, such as fixed modifications, stay
        in place.
    """

    row: NDArray[np.int64]
    name: NDArray[np.int64]
    site: NDArray[np.int64]
    probability: NDArray[np.float64]
    score: NDArray[np.float64]
    is_decoy: NDArray[np.bool_]
    is_reported: NDArray[np.bool_]
    has_alternative: NDArray[np.bool_]
    mixed_with: NDArray[np.int16]
    names: tuple[str, ...]
    moved: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.row)

    def take(self, rows: NDArray[np.integer]) -> ModificationSites:
        """Return the sites with the given indices, in this order."""
        return ModificationSites(**{field: getattr(self, field)[rows] for field in _COLUMNS}, names=self.names, moved=self.moved)


_COLUMNS = tuple(field.name for field in fields(ModificationSites) if field.name not in ("names", "moved"))


class SiteRates(NamedTuple):
    """Error rates of s collapsed sites. A collapsed site combines all rows of the same site, such as rows from several spectra.

    Attributes
    ----------
    best : ndarray of int64, shape (s,)
        Row of `ModificationSites` with the best score among the rows of each collapsed site.
    group : ndarray of int64, shape (n,)
        Collapsed site of each row.
    q_value : ndarray of float64, shape (s,)
        Minimum false localisation rate at which the site is accepted; NaN if the site has no alternative, or if no match reports it.
    by_residue : ndarray of float64, shape (s, 2)
        As `q_value`, but estimated from each of `DECOY_RESIDUES` alone.
    """

    best: NDArray[np.int64]
    group: NDArray[np.int64]
    q_value: NDArray[np.float64]
    by_residue: NDArray[np.float64]


class _Type(NamedTuple):
    """Group of variable modifications with the same name and mass; each of them may move to the sites of all.

    `members` are their indices, and `loss` is the largest neutral loss, Da.
    """

    members: list[int]
    name: str
    mass: float
    loss: float
    is_localised: bool


def is_localised(modification: SearchModification, choice: Literal["automatic", "all", "none"]) -> bool:
    """Return True if sites of a variable modification are reported.

    ``all`` includes all modifications of residues, but not terminal modifications, which have one site. ``automatic`` omits the oxidation
    of methionine: it arises during preparation, and its site is rarely in question.
    """
    if choice == "none" or modification.position != "anywhere" or not modification.residues:
        return False
    return choice == "all" or (modification.name, modification.residues) != ("Oxidation", "M")


def usual_sites(modification: SearchModification, observed: Collection[str] = ()) -> list[SearchModification]:
    """Return copies of a modification that together cover its usual sites.

    The first copy is for the residues that Unimod lists by default and the residues `observed`. One copy for each terminus that Unimod
    lists by default follows. The list is empty if there are no residues, or if the modification is not in Unimod.
    """
    sites = () if modification.unimod_id is None else unimod().by_id(modification.unimod_id).sites
    usual = [site for site in sites if not site.is_hidden and site.classification != _SUBSTITUTION]
    residues = "".join(sorted({*observed, *(site.residue for site in usual if site.position == "anywhere")}))
    if modification.unimod_id is None or not residues:
        return []
    ends = [replace(modification, residues=site.residue, position=site.position) for site in usual if site.position != "anywhere"]
    return [replace(modification, residues=residues, position="anywhere"), *ends]


def localise_matches(
    scored: ScoredMatches, passes: Sequence[LocalisedPass], proteins: ProteinIndex, settings: LocalisationSettings, resources: Resources
) -> ModificationSites:
    """Return the possible sites of the localised modifications of all accepted target matches.

    Parameters
    ----------
    scored : ScoredMatches
        Matches of all passes with error rates; without decoys, all matches of rank 1 are accepted.
    passes : sequence of LocalisedPass
        The first pass, which has a modification to localise, and the second pass if there was one.
    proteins : ProteinIndex
        Proteins of the matches.
    settings : LocalisationSettings
        Parameters of the search.
    resources : Resources
        Threads and progress of the run.
    """
    # The user is not looking for modifications that only the second pass searches.
    names = tuple(dict.fromkeys(variable.name for variable in passes[0].variable if is_localised(variable, settings.localise)))
    psms = scored.psms
    accepted = (psms.rank == 1) & ~psms.is_decoy
    if settings.decoys != "none":
        accepted &= scored.q_value <= settings.fdr
    first_number, parts, moved = 0, list[ModificationSites](), set[int]()
    for number, search_pass in enumerate(passes):
        of_pass = accepted if scored.is_second is None else accepted & (scored.is_second == (number == 1))
        for spectra in search_pass.spectra:
            is_searched = row_mask(len(spectra.index.arrays.offsets) - 1, spectra.index.queries.spectrum)
            rows = np.flatnonzero(of_pass & is_searched[psms.spectrum])
            # Matches are sorted by score, so that the best matches are counted; the order of rows within the kernels does not matter.
            counted = rows[np.argsort(-scored.score[rows], kind="stable")[:_MAXIMUM_COUNTED]]
            for first in range(0, len(names), _MAXIMUM_TYPES):
                chosen = names[first : first + _MAXIMUM_TYPES]
                work = _Localisation(psms, search_pass, spectra, proteins, settings, resources, first_number, names, chosen)
                parts.append(work.sites(rows, np.sort(counted)))
                moved.update(parts[-1].moved)
        first_number += len(search_pass.variable) + len(search_pass.fixed)
        first_number += 0 if proteins.known_modifications is None else len(proteins.known_modifications.modifications)
    columns: dict[str, Any] = {field: np.concatenate([getattr(part, field) for part in parts]) for field in _COLUMNS}
    sites = ModificationSites(**columns, names=names, moved=tuple(sorted(moved)))
    return sites.take(np.lexsort((sites.site, sites.name, sites.row)))


class _Localisation:
    """Localisation of modifications in the matches of one pass and one set of ion series.

    `chosen` are the names of the modifications to localise. Results contain modifications as indices in `names`.
    """

    def __init__(
        self,
        psms: Psms,
        search_pass: LocalisedPass,
        spectra: LocalisedSpectra,
        proteins: ProteinIndex,
        settings: LocalisationSettings,
        resources: Resources,
        first_number: int,
        names: Sequence[str],
        chosen: Sequence[str],
    ) -> None:
        self._psms, self._pass, self._spectra, self._proteins = psms, search_pass, spectra, proteins
        self._settings, self._resources, self._first_number, self._names = settings, resources, first_number, names
        self._types = _movable_types(search_pass.variable, settings.localise, chosen)
        series = spectra.index.series
        is_predicted = settings.predicted_intensities and not unsupported_label_reason((*search_pass.variable, *search_pass.fixed))
        self._is_predicted = is_predicted and has_predicted_series(series)
        symbols = list(dict.fromkeys(series))
        ends = ([symbol for symbol in symbols if symbol in "abc"], [symbol for symbol in symbols if symbol in "xyz"])
        self._series = ends[0].index("b") if "b" in ends[0] else -1, ends[1].index("y") if "y" in ends[1] else -1

    @property
    def _localised(self) -> tuple[int, ...]:
        """Localised modifications, as indices of `Psms.modifications`."""
        return tuple(self._first_number + number for t in self._types if t.is_localised for number in t.members)

    def sites(self, rows: NDArray[np.int64], counted: NDArray[np.int64]) -> ModificationSites:
        """Return the possible sites of the localised modifications of the matches `rows`.

        The frequencies of matched ions are estimated from the matches `counted`.
        """
        evidence = self._evidence(counted)
        of_row = np.repeat(np.arange(len(self._psms)), np.diff(self._psms.modification_offsets))
        carries = row_mask(len(self._psms), of_row[np.isin(self._psms.modification, self._localised)])
        rows = rows[carries[rows]]
        matches = self._movable(rows)
        shape = matches.allowed.shape[0], len(self._types)
        probability, score = (np.zeros(shape, np.float32) for _ in range(2))
        spectra, settings, stop = self._spectra.index.arrays, self._spectra.settings, stop_flag()

        def localise(part: Partition) -> None:
            localise_sites(spectra, matches, settings, evidence, part.first, part.last, probability, score, stop)

        self._on_threads(localise, matches, stop)
        placed, mixed_with = _most_likely(matches, probability), np.full(shape, -1, np.int16)
        is_localised = np.array([t.is_localised for t in self._types])

        def find(part: Partition) -> None:
            find_mixtures(spectra, matches, settings, evidence, placed, is_localised, part.first, part.last, mixed_with, stop)

        self._on_threads(find, matches, stop)
        return self._collect(rows, matches, probability, score, placed, mixed_with)

    def _on_threads(self, work: Callable[[Partition], None], matches: MovableSites, stop: StopFlag) -> None:
        threads = self._resources.threads
        parts = equal_partitions(np.diff(matches.offsets) + 1, threads)
        run_on_threads(work, parts, threads, self._resources.progress, steps=lambda _: 0, stop=stop)

    def _evidence(self, rows: NDArray[np.int64]) -> IonEvidence:
        """Count the matched and missing ions of the matches `rows`, and return the evidence of ions (see `ion_evidence`)."""
        matches = self._movable(rows)
        spectra, settings, stop = self._spectra.index.arrays, self._spectra.settings, stop_flag()
        counted = list[IonCounts]()

        def new_counts() -> IonCounts:
            shapes = (KINDS, PREDICTIONS, OUTCOMES), (KINDS, OUTCOMES), (ERRORS,)
            return IonCounts(*(np.zeros(shape, np.int64) for shape in shapes))

        def count(part: Partition) -> None:
            counts = new_counts()
            count_ions(spectra, matches, settings, part.first, part.last, counts, stop)
            counted.append(counts)

        self._on_threads(count, matches, stop)
        total = new_counts()
        for counts in counted:
            for column, added in zip(total, counts, strict=True):
                column += added
        return ion_evidence(total)

    def _movable(self, rows: NDArray[np.int64]) -> MovableSites:
        """Return the given matches with the sites of their modifications."""
        psms, peptides = self._psms, self._spectra.peptides
        length = psms.length[rows]
        offsets, index = ranges(psms.position[rows], psms.position[rows] + length)
        residues = np.asarray(peptides.residues)[index]
        mass = peptides.residue_mass[residues.astype(np.int64) - _ASCII_A]
        first = offsets[:-1] + 2 * np.arange(len(rows))  # first site of each match; the sites include both termini
        of_type = np.full(max(len(self._pass.variable), 1), -1)
        for number, t in enumerate(self._types):
            of_type[t.members] = number
        match, modification, site = self._modifications_of(rows)
        added = self._spectra.mass[modification]
        is_variable = modification < len(self._pass.variable)
        kind = np.where(is_variable, of_type[np.where(is_variable, modification, 0)], -1)
        movable, immovable = np.flatnonzero(kind >= 0), np.flatnonzero(kind < 0)
        counts = np.zeros((len(rows), len(self._types)), np.int64)
        np.add.at(counts, (match[movable], kind[movable]), 1)
        n_term, c_term = (np.full(len(rows), end) for end in (peptides.n_term_mass, peptides.c_term_mass))
        for place, term in ((site[immovable] == 0, n_term), (site[immovable] == length[match[immovable]] + 1, c_term)):
            np.add.at(term, match[immovable[place]], added[immovable[place]])
        inside = immovable[(site[immovable] > 0) & (site[immovable] <= length[match[immovable]])]
        np.add.at(mass, offsets[match[inside]] + site[inside] - 1, added[inside])
        allowed = self._allowed(rows, residues, offsets, first)
        allowed[first[match[immovable]] + site[immovable]] = 0
        for number in range(len(self._types)):
            present = movable[kind[movable] == number]
            allowed[first[match[present]] + site[present]] |= np.uint64(1 << number)
        return MovableSites(
            psms.spectrum[rows],
            psms.charge[rows],
            offsets,
            mass,
            n_term,
            c_term,
            counts,
            allowed,
            np.array([t.mass for t in self._types], np.float64),
            np.array([t.loss for t in self._types], np.float64),
            self._predicted(residues, offsets, psms.charge[rows]),
            self._series,
        )

    def _modifications_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the variable and known modifications of the matches `rows`, as three arrays.

        These are the index of the match in `rows`, the number of the modification in the pass, and its site.
        """
        psms = self._psms
        offsets, index = ranges(psms.modification_offsets[rows], psms.modification_offsets[rows + 1])
        number = psms.modification[index] - self._first_number
        is_searched = number < len(self._spectra.mass)  # the masses of the residues include fixed modifications
        return (
            np.repeat(np.arange(len(rows)), np.diff(offsets))[is_searched],
            number[is_searched],
            psms.modification_site[index][is_searched],
        )

    def _allowed(
        self, rows: NDArray[np.int64], residues: NDArray[np.uint8], offsets: NDArray[np.int64], first: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        """Return the modification types that each site may carry, as bits (see `MovableSites.allowed`)."""
        allowed = np.zeros(len(residues) + 2 * len(rows), np.uint64)
        inner = np.arange(len(residues)) + np.repeat(first - offsets[:-1] + 1, np.diff(offsets))
        symbol = residues.astype(np.int64) - _ASCII_A
        length = np.diff(offsets)
        is_last = np.zeros(len(residues), bool)
        is_last[(offsets[1:] - 1)[~self._is_at_end(rows, 4)]] = True
        for number, t in enumerate(self._types):
            every, is_excluded = 0, np.zeros(len(residues), bool)
            for modification in (self._pass.variable[member] for member in t.members):
                mask = modification.residue_mask
                has = (mask >> symbol & 1).astype(bool)
                if modification.place <= 0:
                    every |= mask
                    is_excluded = is_last & modification.is_not_last
                    allowed[inner[has & ~is_excluded]] |= np.uint64(1 << number)
                    continue
                at_n = modification.place % 2 == 1
                at = (offsets[:-1] if at_n else offsets[1:] - 1)[self._is_at_end(rows, modification.place)]
                at = at[has[at]]
                match = np.searchsorted(offsets, at, side="right") - 1
                if modification.residues:
                    allowed[inner[at]] |= np.uint64(1 << number)
                else:
                    allowed[first[match] + (0 if at_n else length[match] + 1)] |= np.uint64(1 << number)
            if t.is_localised:
                decoys = [residue for residue in DECOY_RESIDUES if not every >> ord(residue) - _ASCII_A & 1]
                is_decoy = np.isin(residues, np.frombuffer("".join(decoys).encode(), np.uint8))
                allowed[inner[is_decoy & ~is_excluded]] |= np.uint64(1 << DECOY_BIT + number)
        return allowed

    def _is_at_end(self, rows: NDArray[np.int64], place: int) -> NDArray[np.bool_]:
        """Return True for each match in `rows` whose peptide has the terminus `place`.

        Places 1 and 2 are the termini of the peptide (always True), 3 the N-terminus and 4 the C-terminus of the protein.
        """
        if place < 3:
            return np.ones(len(rows), bool)
        psms, proteins = self._psms, self._proteins.proteins
        first = psms.occurrences[psms.occurrence_offsets[rows]]
        protein = self._proteins.protein_of(first)
        start, offsets = first - np.asarray(proteins.offsets)[protein], np.asarray(proteins.offsets)
        if place == 4:
            is_last: NDArray[np.bool_] = first + psms.length[rows] == offsets[protein + 1]
            return is_last
        is_first: NDArray[np.bool_] = (start == 0) | ((start == 1) & (np.asarray(proteins.residues)[offsets[protein]] == ord("M")))
        return is_first

    def _predicted(self, residues: NDArray[np.uint8], offsets: NDArray[np.int64], charge: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return predicted log2 intensity fractions (`MovableSites.predicted`)."""
        result = np.full((len(residues), IONS), np.nan, np.float32)
        if not self._is_predicted or not len(charge) or np.diff(offsets).max() > LONGEST_PREDICTED:
            return result
        bonds, _ = predicted_bonds(np.ascontiguousarray(residues), offsets, charge, self._resources)
        is_bond = np.ones(len(residues), bool)
        is_bond[offsets[1:] - 1] = False
        result[is_bond] = bonds
        result[np.repeat(charge < 3, np.diff(offsets)), 1::2] = np.nan
        return result

    def _collect(
        self,
        rows: NDArray[np.int64],
        matches: MovableSites,
        probability: NDArray[np.float32],
        score: NDArray[np.float32],
        placed: NDArray[np.bool_],
        mixed_with: NDArray[np.int16],
    ) -> ModificationSites:
        """Return the possible sites of localised modifications as columns."""
        sites = np.diff(matches.offsets) + 2
        match = np.repeat(np.arange(len(rows)), sites)
        place = np.arange(len(match)) - np.repeat(segment_offsets(sites)[:-1], sites)
        parts = list[tuple[NDArray[Any], ...]]()
        for number, t in enumerate(self._types):
            if not t.is_localised:
                continue
            bits = matches.allowed >> np.uint64(number)
            is_target = (bits & np.uint64(1)).astype(bool)
            is_decoy = (bits >> np.uint64(DECOY_BIT) & np.uint64(1)).astype(bool) & ~is_target
            chosen = np.flatnonzero((is_target | is_decoy) & (matches.counts[match, number] > 0))
            n_targets = np.bincount(match, is_target, len(rows))
            columns = match[chosen], place[chosen], is_decoy[chosen]
            values = (of_site[chosen, number] for of_site in (probability, score, placed, mixed_with))
            of_type = (np.full(len(chosen), value) for value in (number, self._names.index(t.name)))
            parts.append((*columns, *values, n_targets[columns[0]] > matches.counts[columns[0], number], *of_type))
        match, place, is_decoy, chance, odds, is_reported, mixture, has_alternative, kind, name = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        chance, odds = chance.astype(np.float64), odds.astype(np.float64)
        _, group = np.unique(match * len(self._types) + kind, return_inverse=True)
        least = np.full(int(group.max(initial=-1)) + 1, np.inf)
        np.minimum.at(least, group[is_reported], chance[is_reported])
        with np.errstate(over="ignore"):
            is_counted = is_decoy & has_alternative & (10.0**odds > least[group])
        return ModificationSites(
            rows[match],
            name,
            place,
            chance,
            odds,
            is_decoy,
            is_reported | is_counted,
            has_alternative,
            mixture,
            tuple(self._names),
            self._localised,
        )


def _most_likely(matches: MovableSites, probability: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return True for the most likely target sites of each type (`MovableSites.allowed`); among equal probabilities, the first sites."""
    match = np.repeat(np.arange(len(matches.spectrum)), np.diff(matches.offsets) + 2)
    result = np.zeros(probability.shape, bool)
    for number in range(probability.shape[1]):
        is_target = (matches.allowed >> np.uint64(number) & np.uint64(1)).astype(bool)
        order = np.lexsort((-np.where(is_target, probability[:, number], -1.0), match))
        result[order, number] = positions_in_groups(is_group_start(match[order])) < matches.counts[match[order], number]
    return result


def _movable_types(
    variable: Sequence[SearchModification], choice: Literal["automatic", "all", "none"], names: Sequence[str]
) -> list[_Type]:
    """Return groups of modifications with the same name and mass, groups to localise first.

    A modification may move to the sites of all modifications of its group. The kernels support a maximum number of groups; further groups
    are omitted, and their modifications do not move.
    """
    groups = dict[tuple[str, int], list[int]]()
    for number, modification in enumerate(variable):
        groups.setdefault((modification.name, round(modification.added_mass / _SAME_MASS)), []).append(number)
    types = []
    for (name, _), members in groups.items():
        chosen = name in names and any(is_localised(variable[member], choice) for member in members)
        types.append(_Type(members, name, variable[members[0]].added_mass, _loss([variable[member] for member in members]), chosen))
    return sorted(types, key=lambda t: not t.is_localised)[:_MAXIMUM_TYPES]


def _loss(modifications: Sequence[SearchModification]) -> float:
    """Return the largest neutral loss of the given modifications, Da; 0 if Unimod lists no loss."""
    losses = [0.0]
    for modification in modifications:
        if modification.unimod_id is not None:
            for site in unimod().by_id(modification.unimod_id).sites:
                if site.residue and site.residue in modification.residues:
                    losses += site.neutral_losses
    return max(losses)


def ion_evidence(counts: IonCounts) -> IonEvidence:
    """Return the evidence of ions, calculated from the counts of matched and missing ions.

    Frequencies estimated from few ions are unreliable. Each frequency is therefore shrunk towards the next, more general one in this order:
    frequency by series, charge and predicted intensity; by series and charge; of all ions; usual value.
    """
    present = counts.present.astype(np.float64)
    overall = _shrunk(present.sum(axis=(0, 1)), _USUAL)
    by_kind = _shrunk(present.sum(axis=1), overall)
    by_prediction = _shrunk(present, by_kind[:, None, :])
    nothing = np.zeros(OUTCOMES)
    nothing[0] = 1.0
    absent = counts.absent.astype(np.float64)
    absent = _shrunk(absent, _shrunk(absent.sum(axis=0), nothing))
    errors = _shrunk(counts.errors.astype(np.float64), np.full(ERRORS, 1.0 / ERRORS))
    return IonEvidence(np.log(by_prediction), absent, np.log(errors * ERRORS))


def _shrunk(counts: NDArray[np.float64], prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return frequencies from counts along the last axis; the prior frequencies have the weight `_PRIOR`."""
    result: NDArray[np.float64] = (counts + _PRIOR * prior) / (counts.sum(axis=-1, keepdims=True) + _PRIOR)
    return result


def rate_sites(
    sites: ModificationSites, key: NDArray[np.int64], residue: NDArray[np.uint8], residues: NDArray[np.float64], *, plus_one: bool = False
) -> SiteRates:
    """Collapse rows of the same site, and estimate the false localisation rates of each modification from decoy residues.

    Parameters
    ----------
    sites : ModificationSites
        Sites, n rows.
    key : ndarray of int64, shape (n,)
        Number of the collapsed site of each row. Rows with the same number must have the same modification, and be either all targets or
        all decoys.
    residue : ndarray of uint8, shape (n,)
        Residue at each site, as ASCII.
    residues : ndarray of float64, shape (names, 1 + decoy residues)
        Number of target residues, and number of each decoy residue, in the identified peptides with an alternative site; a row for each
        modification.
    plus_one : bool
        True to count one decoy more than observed.
    """
    score = np.where(sites.is_reported, sites.score, -np.inf)
    _, group = np.unique(key, return_inverse=True)
    best = best_by_group(group, score)
    q_value, by_residue = np.full(len(best), np.nan), np.full((len(best), len(DECOY_RESIDUES)), np.nan)
    rated, is_decoy = sites.is_reported[best] & sites.has_alternative[best], sites.is_decoy[best]
    for name in range(len(sites.names)):
        rows = np.flatnonzero(rated & (sites.name[best] == name))
        targets, *decoys = residues[name]
        q_value[rows] = _rates(score[best[rows]], is_decoy[rows], sum(decoys), targets, plus_one=plus_one)
        for column, (symbol, count) in enumerate(zip(DECOY_RESIDUES, decoys, strict=True)):
            some = rows[~is_decoy[rows] | (residue[best[rows]] == ord(symbol))]
            by_residue[some, column] = _rates(score[best[some]], is_decoy[some], count, targets, plus_one=plus_one)
    return SiteRates(best, group, q_value, by_residue)


def _rates(
    score: NDArray[np.float64], is_decoy: NDArray[np.bool_], decoys: float, targets: float, *, plus_one: bool
) -> NDArray[np.float64]:
    """Return false localisation rates; NaN if the peptides have no decoy residue."""
    if decoys == 0 or targets == 0:
        return np.full(len(score), np.nan)
    finite = np.nan_to_num(score, posinf=np.finfo(np.float64).max, neginf=np.finfo(np.float64).min)
    return q_values(finite, is_decoy, plus_one=plus_one, decoy_ratio=decoys / targets)
