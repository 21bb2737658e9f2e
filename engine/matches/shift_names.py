"""Names of mass shifts: another peptide terminus, a Unimod modification, an amino-acid substitution, or two modifications.

A name matches a shift if its mass is within the tolerance and the peptide has a suitable residue at a position that the spectrum allows.
All matching names are listed. They are ordered by tier: modifications that Unimod shows by default at the residue; other Unimod
modifications; other peptide termini, if the protein has the residues; substitutions; pairs of common modifications. Chemically plausible
names thus precede names that only agree in mass. Within a tier, the nearest mass is first, then the oldest Unimod entry; a neutral loss of
the precursor distinguishes phosphate and sulfate. A modification may replace the fixed modification of a residue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement, groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, ranges
from proteoscope.engine.chemistry.enzymes import Enzyme
from proteoscope.engine.chemistry.masses import RESIDUE_MASS
from proteoscope.engine.chemistry.modifications import Position, SearchModification, unimod
from proteoscope.engine.matches.neutral_losses import LOSS_OF_PHOSPHATE, LOSS_OF_SULFATE

__all__ = ["END_TIER", "TIERS", "USUAL_TIER", "NamedShifts", "ShiftPositions", "name_shifts", "tiers_of_shifts", "usual_shifts"]

_STANDARD = "ACDEFGHIKLMNPQRSTVWY"
_SHORT = dict(
    zip(
        _STANDARD,
        [
            "Ala",
            "Cys",
            "Asp",
            "Glu",
            "Phe",
            "Gly",
            "His",
            "Ile",
            "Lys",
            "Leu",
            "Met",
            "Asn",
            "Pro",
            "Gln",
            "Arg",
            "Ser",
            "Thr",
            "Val",
            "Trp",
            "Tyr",
        ],
        strict=True,
    )
)
_EXCHANGE = "AA substitution"
USUAL_TIER, END_TIER, _TIER_OF_OTHER, _TIER_OF_EXCHANGE, _TIER_OF_PAIR = range(5)
TIERS = 6
"""Number of tiers: common modifications, other termini, other modifications, substitutions, pairs, and no name."""
_NO_TIER = TIERS - 1
_PREFERENCE = np.array([0, 2, 1, 3, 4, 5])
"""Preference of each tier among the names of a shift (0 is best): any Unimod modification precedes other termini."""
_PREFERENCE_OF_PAIR = 2 * int(
    _PREFERENCE[_TIER_OF_PAIR]
)  # preferences are even numbers, so that a name supported by a loss fits between them
_NEWEST = 1 << 20
_ANY = 26  # code of any residue
_NEAR = 1.5  # maximum hyperscore deficit, relative to the best residue, of residues at which a name may place the shift
_ROWS_AT_ONCE = 8192
_MAXIMUM_ADDED = 8  # residues
_PHOSPHATE, _SULFATE = "Phospho", "Sulfo"
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class ShiftPositions(NamedTuple):
    """Mass shifts of n peptides, and the score of each possible position of the shift.

    Attributes
    ----------
    shift, tolerance : ndarray of float64, shape (n,)
        Mass shift, and tolerance of the shift, Da.
    score : ndarray of float32, shape (n, 64)
        Score of the match with the shift at each residue; -inf after the last residue.
    position, length : ndarray of int64, shape (n,)
        Position of the peptide's first residue in `residues`, and number of residues.
    begin, end : ndarray of int64, shape (n,)
        Range of the peptide's protein in `residues`; `end` is exclusive.
    residues : ndarray of uint8
        Residues of all proteins as ASCII capitals.
    shortest : int
        Minimum number of residues that a peptide must keep if removed terminal residues are to explain its shift.
    """

    shift: NDArray[np.float64]
    tolerance: NDArray[np.float64]
    score: NDArray[np.float32]
    position: NDArray[np.int64]
    length: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    residues: NDArray[np.uint8]
    shortest: int

    def part(self, rows: slice | NDArray[np.int64]) -> ShiftPositions:
        """Return the peptides with the given indices."""
        return ShiftPositions(
            self.shift[rows],
            self.tolerance[rows],
            self.score[rows],
            self.position[rows],
            self.length[rows],
            self.begin[rows],
            self.end[rows],
            self.residues,
            self.shortest,
        )

    @property
    def is_protein_start(self) -> NDArray[np.bool_]:
        """True if the peptide starts at the first residue of the protein, or at the second after an initial methionine, (n,)."""
        lost = (self.position == self.begin + 1) & (self.residues[self.begin] == ord("M"))
        is_start: NDArray[np.bool_] = (self.position == self.begin) | lost
        return is_start

    @property
    def is_protein_end(self) -> NDArray[np.bool_]:
        """True if the peptide ends at the last residue of the protein, (n,)."""
        is_end: NDArray[np.bool_] = self.position + self.length == self.end
        return is_end


@dataclass(frozen=True)
class NamedShifts:
    """Names and positions of n shifts.

    Attributes
    ----------
    modification : ndarray of int64, shape (n,)
        Index of the name in `modifications`, or -1.
    site : ndarray of int64, shape (n,)
        Best position for the name, or, without a name, best position of the shift: residue number from 1, 0 for the N-terminus, length + 1
        for the C-terminus.
    is_pair : ndarray of bool, shape (n,)
        True if the name is a pair of modifications.
    modifications : tuple of SearchModification
        Names in use, with masses; other termini and pairs have no Unimod identifier.
    possible : list of str, length n
        All matching names with masses, in order of preference: ``Phospho (+79.9663) or Sulfo (+79.9568); …``. "or" joins the names that
        are as plausible as the first name; the tolerance does not distinguish them.
    """

    modification: NDArray[np.int64]
    site: NDArray[np.int64]
    is_pair: NDArray[np.bool_]
    modifications: tuple[SearchModification, ...]
    possible: list[str]


class _Entry(NamedTuple):
    """Name of a mass shift at a type of site; `residue` is 0 to 25 (A to Z), or 26 for any residue."""

    mass: float
    tier: int
    name: str
    unimod_id: int | None
    residue: int
    position: Position


@cache
def _catalogue() -> tuple[_Entry, ...]:
    """Return the names of all Unimod modifications, one per site, and of all amino-acid substitutions; fixed modifications are ignored."""
    entries, exchanges, ids = list[_Entry](), set[str](), dict[str, int]()
    for entry in unimod():
        ids[entry.title] = entry.id
        for site in entry.sites:
            if site.classification == _EXCHANGE or not entry.mass:
                continue
            symbol = ord(site.residue) - 65 if site.residue else _ANY
            tier = _TIER_OF_OTHER if site.is_hidden else USUAL_TIER
            entries.append(_Entry(entry.mass, tier, entry.title, entry.id, symbol, site.position))
    for before in _STANDARD:
        for after in _STANDARD:
            mass = float(RESIDUE_MASS[ord(after) - 65] - RESIDUE_MASS[ord(before) - 65])
            name = f"{_SHORT[before]}->{_SHORT[after]}"
            if abs(mass) > 1e-6 and name not in exchanges:
                exchanges.add(name)
                entries.append(_Entry(mass, _TIER_OF_EXCHANGE, name, ids.get(name), ord(before) - 65, "anywhere"))
    return tuple(entries)


def _entries(fixed: tuple[SearchModification, ...]) -> list[_Entry]:
    """Return all names sorted by mass. Names at residues with fixed modifications have the mass difference from the fixed modification."""
    held = {
        ord(symbol) - 65: modification for modification in fixed if modification.position == "anywhere" for symbol in modification.residues
    }
    ends = {modification.position for modification in fixed if modification.position != "anywhere"}
    entries = []
    for entry in _catalogue():
        holder = held.get(entry.residue)
        if entry.position in ends and entry.residue == _ANY:
            continue
        if holder is None:
            entries.append(entry)
        elif entry.tier == _TIER_OF_EXCHANGE:
            entries.append(entry._replace(mass=entry.mass - holder.mass))
        elif entry.unimod_id != holder.unimod_id:
            entries.append(entry._replace(mass=entry.mass - holder.mass, name=f"{entry.name} instead of {holder.name}", unimod_id=None))
    entries += [
        _Entry(-modification.mass, USUAL_TIER, f"without {modification.name}", None, ord(symbol) - 65, "anywhere")
        for modification in fixed
        if modification.position == "anywhere"
        for symbol in modification.residues
    ]
    return sorted(entries)


def usual_shifts(fixed: tuple[SearchModification, ...]) -> NDArray[np.float64]:
    """Return the distinct masses of the modifications that Unimod shows by default, ascending, Da, (m,) float64."""
    return np.unique([entry.mass for entry in _entries(fixed) if entry.tier == USUAL_TIER])


def tiers_of_shifts(shifts: ShiftPositions, fixed: tuple[SearchModification, ...]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the best tier of names that match each mass shift, and the difference between the shift and the nearest name in this tier.

    Returns
    -------
    tier : ndarray of int64, shape (n,)
        First tier with a matching name, not considering pairs; `TIERS` - 1 if no name matches.
    distance : ndarray of float64, shape (n,)
        Difference of masses, Da; infinite without a matching name.
    """
    tier, distance = np.full(len(shifts.shift), _NO_TIER), np.full(len(shifts.shift), np.inf)
    entries = _entries(fixed)
    mass, of_entry = np.array([entry.mass for entry in entries]), np.array([entry.tier for entry in entries])
    for part in (slice(first, first + _ROWS_AT_ONCE) for first in range(0, len(shifts.shift), _ROWS_AT_ONCE)):
        some = shifts.part(part)
        allowed = _bits(some.score >= some.score.max(axis=1, initial=-np.inf)[:, None] - _NEAR)
        rows, which, _ = _fitting(some, entries, allowed, _residue_bits(some))
        ends = [(end.rows, end.mass) for end in _ends(some, allowed)]
        rows = np.concatenate([rows, *(end_rows for end_rows, _ in ends)])
        error = np.abs(some.shift[rows] - np.concatenate([mass[which], *(mass_errors for _, mass_errors in ends)]))
        likely = np.concatenate([of_entry[which], np.full(len(rows) - len(which), END_TIER)])
        order = np.lexsort((error, likely, rows))
        leads = order[is_group_start(rows[order])]
        tier[part][rows[leads]], distance[part][rows[leads]] = likely[leads], error[leads]
    return tier, distance


class _Fit(NamedTuple):
    """Name that matches the mass shift of a row.

    Names of a row are ordered by `preference`, then by `error` (Da), then by `age`; the first name is preferred.
    """

    row: int
    preference: int
    error: float
    age: int
    site: int
    modification: SearchModification

    @property
    def order(self) -> tuple[int, int, float, int]:
        """Key that sorts the names of a row by preference."""
        return self.row, self.preference, round(self.error, 6), self.age


def name_shifts(
    shifts: ShiftPositions, fixed: tuple[SearchModification, ...], enzyme: Enzyme, loss: NDArray[np.int64] | None = None
) -> NamedShifts:
    """Name each mass shift, and choose the position of the modification.

    Parameters
    ----------
    shifts : ShiftPositions
        The n shifts.
    fixed : tuple of SearchModification
        Fixed modifications.
    enzyme : Enzyme
        Cleavage agent.
    loss : ndarray of int64, shape (n,), or None
        Neutral losses of the precursors (`proteoscope.engine.matches.neutral_losses`); None if unknown.

    Returns
    -------
    NamedShifts
    """
    n = len(shifts.shift)
    best = shifts.score.max(axis=1, initial=-np.inf)
    allowed = _bits(shifts.score >= best[:, None] - _NEAR)
    first = shifts.score.argmax(axis=1).astype(np.int64) + 1
    loss = np.zeros(n, np.int64) if loss is None else loss
    entries, symbols = _entries(fixed), _residue_bits(shifts)
    fits = list(_fits_of_entries(shifts, entries, allowed, symbols, loss))
    for row, name, mass, position in _other_ends(shifts, allowed, enzyme):
        end: Position = "peptide N-term" if position == 0 else "peptide C-term"
        error = abs(float(shifts.shift[row]) - mass)
        fits.append(_Fit(row, 2 * int(_PREFERENCE[END_TIER]), error, _NEWEST, position, SearchModification(name, None, mass, "", end)))
    for row, name, mass in _pairs(shifts, entries, symbols):
        error = abs(float(shifts.shift[row]) - mass)
        fits.append(_Fit(row, _PREFERENCE_OF_PAIR, error, _NEWEST, int(first[row]), SearchModification(name, None, mass, "", "anywhere")))
    return _choose_names(sorted(fits, key=lambda fit: fit.order), first)


def _fits_of_entries(
    shifts: ShiftPositions, entries: list[_Entry], allowed: NDArray[np.uint64], residue_bits: NDArray[np.uint64], loss: NDArray[np.int64]
) -> Iterator[_Fit]:
    """Yield the modifications and substitutions that match the shifts; names that the precursor's neutral loss supports are preferred."""
    rows, which, positions = _fitting(shifts, entries, allowed, residue_bits)
    error = np.abs(shifts.shift[rows] - np.array([entry.mass for entry in entries])[which])
    lost_by = np.array([{_PHOSPHATE: LOSS_OF_PHOSPHATE, _SULFATE: LOSS_OF_SULFATE}.get(entry.name, -1) for entry in entries])[which]
    preference = 2 * _PREFERENCE[np.array([entry.tier for entry in entries])[which]] - (lost_by == loss[rows])
    modifications = [
        SearchModification(
            entry.name, entry.unimod_id, entry.mass, "" if entry.residue == _ANY else chr(entry.residue + 65), entry.position
        )
        for entry in entries
    ]
    for row, number, rank, far, position in zip(*(column.tolist() for column in (rows, which, preference, error, positions)), strict=True):
        entry = entries[number]
        age = entry.unimod_id or _NEWEST  # of several names for a mass, the oldest is the most common
        yield _Fit(row, rank, far, age, _site(entry, position, shifts, row), modifications[number])


def _choose_names(fits: list[_Fit], first: NDArray[np.int64]) -> NamedShifts:
    """Return the preferred name of each row with its site, and the text of all names; a row without a name has the site `first`."""
    n = len(first)
    site, chosen, is_pair, possible = first.copy(), np.full(n, -1, np.int64), np.zeros(n, np.bool_), [""] * n
    numbers: dict[tuple[str, float], int] = {}
    modifications: list[SearchModification] = []
    for row, of_row in groupby(fits, key=lambda fit: fit.row):
        every = list(of_row)
        lead = every[0]
        key = lead.modification.name, round(lead.modification.mass, 6)
        if key not in numbers:
            numbers[key] = len(modifications)
            modifications.append(lead.modification)
        chosen[row], site[row], is_pair[row] = numbers[key], lead.site, lead.preference == _PREFERENCE_OF_PAIR
        is_as_likely: dict[str, bool] = {}
        for fit in every:
            is_as_likely.setdefault(f"{fit.modification.name} ({fit.modification.mass:+.4f})", fit.preference == lead.preference)
        alike, others = ([text for text, holds in is_as_likely.items() if holds == wanted] for wanted in (True, False))
        possible[row] = "; ".join((" or ".join(alike), *others))
    return NamedShifts(chosen, site, is_pair, tuple(modifications), possible)


def _bits(truths: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return bit masks of n rows of booleans, (n,) uint64; bit p is column p."""
    masks: NDArray[np.uint64] = (truths.astype(np.uint64) << np.arange(truths.shape[1], dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    return masks


def _residue_bits(shifts: ShiftPositions) -> NDArray[np.uint64]:
    """Return bit masks of positions in each peptide, (n, 27) uint64: positions of each residue type, A to Z, and of all residues."""
    offsets, index = ranges(shifts.position, shifts.position + shifts.length)
    row = np.repeat(np.arange(len(shifts.shift)), shifts.length)
    bit = np.uint64(1) << (np.arange(offsets[-1]) - offsets[row]).astype(np.uint64)
    symbols = np.zeros((len(shifts.shift), _ANY + 1), np.uint64)
    np.bitwise_or.at(symbols, (row, shifts.residues[index].astype(np.int64) - 65), bit)
    symbols[:, _ANY] = np.bitwise_or.reduce(symbols[:, :_ANY], axis=1)
    return symbols


def _fitting(
    shifts: ShiftPositions, entries: list[_Entry], allowed: NDArray[np.uint64], residue_bits: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of a row and a matching name (index in `entries`), and the suitable residue with the best score of each pair, from 0."""
    mass = np.array([entry.mass for entry in entries])
    low = np.searchsorted(mass, shifts.shift - shifts.tolerance)
    high = np.searchsorted(mass, shifts.shift + shifts.tolerance, side="right")
    offsets, which = ranges(low, high)
    rows = np.repeat(np.arange(len(shifts.shift)), np.diff(offsets))
    symbol = np.array([entry.residue for entry in entries], np.int64)[which]
    kinds: list[Position] = ["anywhere", "peptide N-term", "peptide C-term", "protein N-term", "protein C-term"]
    position = np.array([kinds.index(entry.position) for entry in entries])[which]
    at_start, at_end = np.uint64(1), np.uint64(1) << (shifts.length[rows] - 1).astype(np.uint64)
    mask = np.where(np.isin(position, (1, 3)), at_start, np.where(np.isin(position, (2, 4)), at_end, _ALL))
    mask = np.where((position == 3) & ~shifts.is_protein_start[rows] | (position == 4) & ~shifts.is_protein_end[rows], np.uint64(0), mask)
    positions = allowed[rows] & residue_bits[rows, symbol] & mask
    fits = np.flatnonzero(positions)
    rows, which, positions = rows[fits], which[fits], positions[fits]
    is_place = (positions[:, None] >> np.arange(64, dtype=np.uint64)[None]) & np.uint64(1) > 0
    return rows, which, np.where(is_place, shifts.score[rows], -np.inf).argmax(axis=1)


def _site(entry: _Entry, position: int, shifts: ShiftPositions, row: int) -> int:
    """Return the site of the name `entry` at residue `position` (from 0): residue number from 1, or 0 or length + 1 for a terminus."""
    if entry.residue == _ANY and entry.position.endswith("N-term"):
        return 0
    return int(shifts.length[row]) + 1 if entry.residue == _ANY and entry.position.endswith("C-term") else position + 1


class _End(NamedTuple):
    """Rows whose shift equals the mass of `k` residues that are added (`sign` 1) or removed (`sign` -1) at a terminus.

    `mass` is the mass of these residues times `sign`, Da; `is_start` is True for the N-terminus.
    """

    rows: NDArray[np.int64]
    mass: NDArray[np.float64]
    k: int
    sign: int
    is_start: bool


def _ends(shifts: ShiftPositions, allowed: NDArray[np.uint64]) -> Iterator[_End]:
    """Yield the rows whose shift equals the mass of residues added or removed at a terminus."""
    residues, mass = shifts.residues, np.append(RESIDUE_MASS, np.nan)
    stop = shifts.position + shifts.length
    longest = int(shifts.length.max(initial=0))
    for is_start in (True, False):
        for sign, most in ((1, _MAXIMUM_ADDED), (-1, longest - shifts.shortest)):
            total = np.zeros(len(shifts.shift))
            for k in range(1, most + 1):
                if is_start:
                    at = shifts.position - k if sign > 0 else shifts.position + k - 1
                    is_there = at >= shifts.begin if sign > 0 else k <= shifts.length - shifts.shortest
                    touched = (np.uint64(1) << np.uint64(k + 1 if sign < 0 else 1)) - np.uint64(1)
                    fits = allowed & touched > 0
                else:
                    at = stop + k - 1 if sign > 0 else stop - k
                    is_there = at < shifts.end if sign > 0 else k <= shifts.length - shifts.shortest
                    least = np.maximum(shifts.length - (k + 1 if sign < 0 else 1), 0)
                    fits = allowed >> least.astype(np.uint64) > 0
                symbol = residues[np.clip(at, 0, len(residues) - 1)].astype(np.int64) - 65
                total = total + np.where(is_there, mass[symbol], np.nan)
                with np.errstate(invalid="ignore"):
                    rows = np.flatnonzero(is_there & fits & (np.abs(shifts.shift - sign * total) <= shifts.tolerance))
                yield _End(rows, sign * total[rows], k, sign, is_start)


def _other_ends(shifts: ShiftPositions, allowed: NDArray[np.uint64], enzyme: Enzyme) -> list[tuple[int, str, float, int]]:
    """Return the rows whose shift another terminus explains, each with its name, mass (Da) and site (0 or length + 1)."""
    cuts = enzyme.cleavage_table()
    return [
        _described(shifts, cuts, row, end.k, end.sign, mass, is_start=end.is_start)
        for end in _ends(shifts, allowed)
        for row, mass in zip(end.rows.tolist(), end.mass.tolist(), strict=True)
    ]


def _described(
    shifts: ShiftPositions, cuts: NDArray[np.bool_], row: int, k: int, sign: int, mass: float, *, is_start: bool
) -> tuple[int, str, float, int]:
    """Return row, name, mass (Da) and site of a terminus changed by `k` residues, with names like ``missed cleavage +AGK (C-terminus)``."""
    position, stop = int(shifts.position[row]), int(shifts.position[row] + shifts.length[row])
    first = (position - k if sign > 0 else position) if is_start else (stop if sign > 0 else stop - k)
    text = shifts.residues[first : first + k].tobytes().decode("ascii")
    edge = (first if sign > 0 else first + k) if is_start else (first + k if sign > 0 else first)
    is_cut = edge in (int(shifts.begin[row]), int(shifts.end[row])) or bool(
        cuts[int(shifts.residues[edge - 1]) - 65, int(shifts.residues[edge]) - 65]
    )
    what = ("missed cleavage" if sign > 0 else "further cleavage") if is_cut else "semi-specific end"
    end = "N-terminus" if is_start else "C-terminus"
    return row, f"{what} {'+' if sign > 0 else '-'}{text} ({end})", mass, 0 if is_start else int(shifts.length[row]) + 1


def _pairs(shifts: ShiftPositions, entries: list[_Entry], residue_bits: NDArray[np.uint64]) -> list[tuple[int, str, float]]:
    """Return the rows whose shift equals the sum of two common modifications, with the name and mass (Da) of the pair.

    The peptide must contain suitable residues for both modifications.
    """
    usual: dict[tuple[str, float], list[_Entry]] = {}
    for entry in entries:
        if entry.tier == USUAL_TIER:
            usual.setdefault((entry.name, entry.mass), []).append(entry)
    keys = list(usual)
    pairs = sorted(
        (a[1] + b[1], i, j) for (i, a), (j, b) in combinations_with_replacement(list(enumerate(keys)), 2) if abs(a[1] + b[1]) > 1.0
    )
    mass = np.array([pair[0] for pair in pairs])
    sites = (
        np.stack([_find_sites(usual[key], shifts, residue_bits) for key in keys]) if keys else np.zeros((0, len(shifts.shift)), np.uint64)
    )
    low = np.searchsorted(mass, shifts.shift - shifts.tolerance)
    offsets, which = ranges(low, np.searchsorted(mass, shifts.shift + shifts.tolerance, side="right"))
    row = np.repeat(np.arange(len(shifts.shift)), np.diff(offsets))
    of_pair = np.array([pair[1:] for pair in pairs], np.int64).reshape(-1, 2)[which]
    a, b = sites[of_pair[:, 0], row], sites[of_pair[:, 1], row]
    fits = np.flatnonzero((a > 0) & (b > 0) & (np.bitwise_count(a | b) > 1))
    return [(int(row[i]), f"{keys[of_pair[i, 0]][0]} + {keys[of_pair[i, 1]][0]}", float(mass[which[i]])) for i in fits.tolist()]


def _find_sites(entries: list[_Entry], shifts: ShiftPositions, residue_bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return bit masks of the residues of each peptide that may carry the modification in `entries`, (n,) uint64; scores are ignored."""
    at_end = np.uint64(1) << (shifts.length - 1).astype(np.uint64)
    bits = np.zeros(len(shifts.shift), np.uint64)
    for entry in entries:
        sites = residue_bits[:, entry.residue]
        if entry.position.endswith("N-term"):
            sites = sites & np.uint64(1)
        elif entry.position.endswith("C-term"):
            sites = sites & at_end
        if entry.position == "protein N-term":
            sites = np.where(shifts.is_protein_start, sites, np.uint64(0))
        elif entry.position == "protein C-term":
            sites = np.where(shifts.is_protein_end, sites, np.uint64(0))
        bits |= sites
    return bits
