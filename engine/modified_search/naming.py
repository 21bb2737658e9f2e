"""What a difference of mass is: another end of the peptide, a modification of Unimod, another amino acid, or two modifications at once.

A name needs a mass within the tolerance and a site that fits, at a place that the spectrum allows. Of several the first of these wins:
other ends of the peptide, whose residues the protein has; what Unimod shows as usual at that site; amino-acid exchanges; the rest of
Unimod; two usual modifications. Of equal ones it is the nearest mass, then the oldest entry. A residue that carries a fixed modification
carries another one instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.arrays import ranges
from engine.chemistry.enzymes import Enzyme
from engine.chemistry.masses import RESIDUE_MASS
from engine.chemistry.modifications import Position, SearchModification, unimod

__all__ = ["LIKELY_TIER", "TIERS", "Named", "ShiftPlaces", "name_shifts", "tiers_of_shifts", "usual_shifts"]

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
_TIER_OF_END, _TIER_OF_USUAL, _TIER_OF_EXCHANGE, _TIER_OF_OTHER, _TIER_OF_PAIR = range(5)
TIERS = 6
"""Other ends, usual modifications, exchanges, other modifications, pairs, and none of these, from the most to the least likely."""
_NO_TIER = TIERS - 1
LIKELY_TIER = _TIER_OF_USUAL
"""Of the tiers up to this one a shift is likely to be."""
_NEWEST = 1 << 20
_ANY = 26  # a letter that stands for all
_NEAR = 1.5  # of hyperscore: a name may draw a shift to a place that scores so little less than the best
_ROWS_AT_ONCE = 8192
_MOST_ADDED = 8  # residues
_LEAST_LEFT = 4  # residues
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class ShiftPlaces(NamedTuple):
    """n peptides with a shift.

    Attributes
    ----------
    shift, tolerance : (n,) float64, dalton. score : (n, 64) float32, of each residue, -inf behind the last.
    position, length : (n,) int64, of the peptide in `residues`, uint8; begin, end : (n,) int64, of its protein there.
    is_protein_start, is_protein_end : (n,) bool.
    """

    shift: NDArray[np.float64]
    tolerance: NDArray[np.float64]
    score: NDArray[np.float32]
    position: NDArray[np.int64]
    length: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    residues: NDArray[np.uint8]

    def part(self, rows: slice | NDArray[np.int64]) -> ShiftPlaces:
        """Some of the peptides."""
        return ShiftPlaces(
            self.shift[rows], self.tolerance[rows], self.score[rows], self.position[rows], self.length[rows], self.begin[rows],
            self.end[rows], self.residues,
        )  # fmt: skip

    @property
    def is_protein_start(self) -> NDArray[np.bool_]:
        """Whether it begins the protein, with the methionine there or without."""
        lost = (self.position == self.begin + 1) & (self.residues[self.begin] == ord("M"))
        return (self.position == self.begin) | lost

    @property
    def is_protein_end(self) -> NDArray[np.bool_]:
        """Whether it ends the protein."""
        return self.position + self.length == self.end


@dataclass(frozen=True)
class Named:
    """What n shifts are.

    Attributes
    ----------
    modification : (n,) int64, into `modifications`, -1 where nothing fits. site : (n,) int64: 0 the N-terminus, 1 to L, L + 1 the
        C-terminus: the place that fits the name best, or the best place. is_pair : (n,) bool, the name is of two modifications.
    modifications : a name and a mass each; other ends and pairs have no number of Unimod.
    """

    modification: NDArray[np.int64]
    site: NDArray[np.int64]
    is_pair: NDArray[np.bool_]
    modifications: tuple[SearchModification, ...]


class _Entry(NamedTuple):
    """A name at one kind of place: `letter` 0 to 25, 26 for any."""

    mass: float
    tier: int
    name: str
    unimod_id: int | None
    letter: int
    place: Position


@cache
def _catalogue() -> tuple[_Entry, ...]:
    """Unimod by site, and the amino-acid exchanges, for residues without a fixed modification."""
    entries, exchanges, ids = list[_Entry](), set[str](), dict[str, int]()
    for one in unimod():
        ids[one.title] = one.id
        for site in one.sites:
            if site.classification == _EXCHANGE or not one.mass:
                continue
            letter = ord(site.residue) - 65 if site.residue else _ANY
            tier = _TIER_OF_OTHER if site.is_hidden else _TIER_OF_USUAL
            entries.append(_Entry(one.mass, tier, one.title, one.id, letter, site.position))
    for before in _STANDARD:
        for after in _STANDARD:
            mass = float(RESIDUE_MASS[ord(after) - 65] - RESIDUE_MASS[ord(before) - 65])
            name = f"{_SHORT[before]}->{_SHORT[after]}"
            if abs(mass) > 1e-6 and name not in exchanges:
                exchanges.add(name)
                entries.append(_Entry(mass, _TIER_OF_EXCHANGE, name, ids.get(name), ord(before) - 65, "anywhere"))
    return tuple(entries)


def _entries(fixed: tuple[SearchModification, ...]) -> list[_Entry]:
    """All names in order of mass, with those of residues and ends that a fixed modification holds already."""
    held = {ord(letter) - 65: one for one in fixed if one.position == "anywhere" for letter in one.residues}
    ends = {one.position for one in fixed if one.position != "anywhere"}
    entries = []
    for one in _catalogue():
        holder = held.get(one.letter)
        if one.place in ends and one.letter == _ANY:
            continue
        if holder is None:
            entries.append(one)
        elif one.tier == _TIER_OF_EXCHANGE:
            entries.append(one._replace(mass=one.mass - holder.mass))
        elif one.unimod_id != holder.unimod_id:
            entries.append(one._replace(mass=one.mass - holder.mass, name=f"{one.name} instead of {holder.name}", unimod_id=None))
    entries += [
        _Entry(-one.mass, _TIER_OF_USUAL, f"without {one.name}", None, ord(letter) - 65, "anywhere")
        for one in fixed if one.position == "anywhere" for letter in one.residues
    ]  # fmt: skip
    return sorted(entries)


def usual_shifts(fixed: tuple[SearchModification, ...]) -> NDArray[np.float64]:
    """Masses of the usual modifications, ascending, dalton."""
    return np.unique([entry.mass for entry in _entries(fixed) if entry.tier == _TIER_OF_USUAL])


def tiers_of_shifts(shifts: ShiftPlaces, fixed: tuple[SearchModification, ...]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """How likely each shift is beforehand, and how far it is from the mass of the nearest name as likely.

    Returns
    -------
    (n,) int64, the first tier that has a name which fits, pairs left out (`TIERS` - 1 is none); (n,) float64, dalton, infinite for none.
    """
    tier, distance = np.full(len(shifts.shift), _NO_TIER), np.full(len(shifts.shift), np.inf)
    entries = _entries(fixed)
    mass, of_entry = np.array([one.mass for one in entries]), np.array([one.tier for one in entries])
    for part in (slice(first, first + _ROWS_AT_ONCE) for first in range(0, len(shifts.shift), _ROWS_AT_ONCE)):
        some = shifts.part(part)
        allowed = _bits(some.score >= some.score.max(axis=1, initial=-np.inf)[:, None] - _NEAR)
        rows, which, _ = _fitting(some, entries, allowed, _letter_bits(some))
        ends = [(end.rows, end.mass) for end in _ends(some, allowed)]
        rows = np.concatenate([rows, *(one for one, _ in ends)])
        error = np.abs(some.shift[rows] - np.concatenate([mass[which], *(one for _, one in ends)]))
        likely = np.concatenate([of_entry[which], np.full(len(rows) - len(which), _TIER_OF_END)])
        order = np.lexsort((error, likely, rows))
        leads = order[np.append(True, rows[order][1:] != rows[order][:-1])] if len(rows) else order
        tier[part][rows[leads]], distance[part][rows[leads]] = likely[leads], error[leads]
    return tier, distance


def name_shifts(shifts: ShiftPlaces, fixed: tuple[SearchModification, ...], enzyme: Enzyme) -> Named:
    """What each shift is, and where."""
    n = len(shifts.shift)
    best = shifts.score.max(axis=1, initial=-np.inf)
    allowed = _bits(shifts.score >= best[:, None] - _NEAR)
    first = shifts.score.argmax(axis=1)
    site, chosen = first.astype(np.int64) + 1, np.full(n, -1, np.int64)
    names: dict[tuple[str, float], int] = {}
    modifications: list[SearchModification] = []

    def number(name: str, mass: float, unimod_id: int | None, residues: str, position: Position) -> int:
        key = name, round(mass, 6)
        if key not in names:
            names[key] = len(modifications)
            modifications.append(SearchModification(name, unimod_id, mass, residues, position))
        return names[key]

    tier, distance = np.full(n, 99), np.full(n, np.inf)
    for row, name, mass, place in _other_ends(shifts, allowed, enzyme):
        error = abs(shifts.shift[row] - mass)
        if error < distance[row]:
            tier[row], distance[row], site[row] = _TIER_OF_END, error, place
            chosen[row] = number(name, mass, None, "", "peptide N-term" if place == 0 else "peptide C-term")
    entries = _entries(fixed)
    letters = _letter_bits(shifts)
    rows, which, places = _fitting(shifts, entries, allowed, letters)
    of_tier = np.array([entry.tier for entry in entries])[which]
    error = np.abs(shifts.shift[rows] - np.array([entry.mass for entry in entries])[which])
    age = np.array([entry.unimod_id or _NEWEST for entry in entries])[which]  # of names for one mass the oldest is the usual
    order = np.lexsort((which, age, error.round(6), of_tier, rows))
    rows, which, of_tier, error, places = (column[order] for column in (rows, which, of_tier, error, places))
    leads = np.flatnonzero(np.append(True, rows[1:] != rows[:-1])) if len(rows) else np.empty(0, np.int64)
    for i in leads.tolist():
        row, entry = int(rows[i]), entries[which[i]]
        if of_tier[i] < tier[row]:
            tier[row], distance[row], site[row] = of_tier[i], error[i], _site(entry, int(places[i]), shifts, row)
            residues = "" if entry.letter == _ANY else chr(entry.letter + 65)
            chosen[row] = number(entry.name, entry.mass, entry.unimod_id, residues, entry.place)
    is_pair = np.zeros(n, np.bool_)
    for row, name, mass in _pairs(shifts, entries, np.flatnonzero(chosen < 0), letters):
        chosen[row], is_pair[row] = number(name, mass, None, "", "anywhere"), True
    return Named(chosen, site, is_pair, tuple(modifications))


def _bits(truths: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """(n,) uint64: bit p of column p."""
    return (truths.astype(np.uint64) << np.arange(truths.shape[1], dtype=np.uint64)).sum(axis=1, dtype=np.uint64)


def _letter_bits(shifts: ShiftPlaces) -> NDArray[np.uint64]:
    """(n, 27) uint64: places of each letter, and of any."""
    offsets, index = ranges(shifts.position, shifts.position + shifts.length)
    row = np.repeat(np.arange(len(shifts.shift)), shifts.length)
    bit = np.uint64(1) << (np.arange(offsets[-1]) - offsets[row]).astype(np.uint64)
    letters = np.zeros((len(shifts.shift), _ANY + 1), np.uint64)
    np.bitwise_or.at(letters, (row, shifts.residues[index].astype(np.int64) - 65), bit)
    letters[:, _ANY] = np.bitwise_or.reduce(letters[:, :_ANY], axis=1)
    return letters


def _fitting(
    shifts: ShiftPlaces, entries: list[_Entry], allowed: NDArray[np.uint64], letters: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows, entries that fit them, and the residue (from 0) where they fit best."""
    mass = np.array([entry.mass for entry in entries])
    low = np.searchsorted(mass, shifts.shift - shifts.tolerance)
    high = np.searchsorted(mass, shifts.shift + shifts.tolerance, side="right")
    offsets, which = ranges(low, high)
    rows = np.repeat(np.arange(len(shifts.shift)), np.diff(offsets))
    letter = np.array([entry.letter for entry in entries], np.int64)[which]
    kinds: list[Position] = ["anywhere", "peptide N-term", "peptide C-term", "protein N-term", "protein C-term"]
    place = np.array([kinds.index(entry.place) for entry in entries])[which]
    at_start, at_end = np.uint64(1), np.uint64(1) << (shifts.length[rows] - 1).astype(np.uint64)
    mask = np.where(np.isin(place, (1, 3)), at_start, np.where(np.isin(place, (2, 4)), at_end, _ALL))
    mask = np.where((place == 3) & ~shifts.is_protein_start[rows] | (place == 4) & ~shifts.is_protein_end[rows], np.uint64(0), mask)
    places = allowed[rows] & letters[rows, letter] & mask
    fits = np.flatnonzero(places)
    rows, which, places = rows[fits], which[fits], places[fits]
    is_place = (places[:, None] >> np.arange(64, dtype=np.uint64)[None]) & np.uint64(1) > 0
    return rows, which, np.where(is_place, shifts.score[rows], -np.inf).argmax(axis=1)


def _site(entry: _Entry, place: int, shifts: ShiftPlaces, row: int) -> int:
    """The site of a name that fits residue `place`, from 0: the terminus itself, where it is one of the terminus."""
    if entry.letter == _ANY and entry.place.endswith("N-term"):
        return 0
    return int(shifts.length[row]) + 1 if entry.letter == _ANY and entry.place.endswith("C-term") else place + 1


class _End(NamedTuple):
    """Rows whose shift is that of `k` residues more (`sign` 1) or less (-1) at an end; `mass` of these, dalton."""

    rows: NDArray[np.int64]
    mass: NDArray[np.float64]
    k: int
    sign: int
    is_start: bool


def _ends(shifts: ShiftPlaces, allowed: NDArray[np.uint64]) -> Iterator[_End]:
    """The rows whose shift is that of residues more or less at an end."""
    residues, mass = shifts.residues, np.append(RESIDUE_MASS, np.nan)
    stop = shifts.position + shifts.length
    longest = int(shifts.length.max(initial=0))
    for is_start in (True, False):
        for sign, most in ((1, _MOST_ADDED), (-1, longest - _LEAST_LEFT)):
            total = np.zeros(len(shifts.shift))
            for k in range(1, most + 1):
                if is_start:
                    at = shifts.position - k if sign > 0 else shifts.position + k - 1
                    is_there = at >= shifts.begin if sign > 0 else k <= shifts.length - _LEAST_LEFT
                    touched = (np.uint64(1) << np.uint64(k + 1 if sign < 0 else 1)) - np.uint64(1)
                    fits = allowed & touched > 0
                else:
                    at = stop + k - 1 if sign > 0 else stop - k
                    is_there = at < shifts.end if sign > 0 else k <= shifts.length - _LEAST_LEFT
                    least = np.maximum(shifts.length - (k + 1 if sign < 0 else 1), 0)
                    fits = allowed >> least.astype(np.uint64) > 0
                letter = residues[np.clip(at, 0, len(residues) - 1)].astype(np.int64) - 65
                total = total + np.where(is_there, mass[letter], np.nan)
                with np.errstate(invalid="ignore"):
                    rows = np.flatnonzero(is_there & fits & (np.abs(shifts.shift - sign * total) <= shifts.tolerance))
                yield _End(rows, sign * total[rows], k, sign, is_start)


def _other_ends(shifts: ShiftPlaces, allowed: NDArray[np.uint64], enzyme: Enzyme) -> list[tuple[int, str, float, int]]:
    """Rows whose shift is that of residues more or less at an end; name, mass and site (0 or L + 1)."""
    cuts = enzyme.cleavage_table()
    return [
        _described(shifts, cuts, row, end.k, end.sign, mass, is_start=end.is_start)
        for end in _ends(shifts, allowed)
        for row, mass in zip(end.rows.tolist(), end.mass.tolist(), strict=True)
    ]


def _described(
    shifts: ShiftPlaces, cuts: NDArray[np.bool_], row: int, k: int, sign: int, mass: float, *, is_start: bool
) -> tuple[int, str, float, int]:
    """An end that is longer or shorter by k residues: what it is called, as ``missed cleavage +AGK (C-terminus)``."""
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


def _pairs(
    shifts: ShiftPlaces, entries: list[_Entry], rows: NDArray[np.int64], letters: NDArray[np.uint64]
) -> list[tuple[int, str, float]]:
    """Of the rows those that two usual modifications explain, which the peptide has sites for; the nearest pair of each."""
    usual: dict[tuple[str, float], list[_Entry]] = {}
    for entry in entries:
        if entry.tier == _TIER_OF_USUAL:
            usual.setdefault((entry.name, entry.mass), []).append(entry)
    keys = list(usual)
    pairs = sorted(
        (a[1] + b[1], i, j) for (i, a), (j, b) in combinations_with_replacement(list(enumerate(keys)), 2) if abs(a[1] + b[1]) > 1.0
    )
    mass = np.array([pair[0] for pair in pairs])
    sites = np.stack([_sites_of(usual[key], shifts, letters) for key in keys]) if keys else np.zeros((0, len(shifts.shift)), np.uint64)
    found = []
    for row in rows.tolist():
        low, high = np.searchsorted(mass, shifts.shift[row] + shifts.tolerance[row] * np.array([-1.0, 1.0])).tolist()
        near = sorted(range(low, high), key=lambda i: (round(abs(mass[i] - shifts.shift[row]), 6), i))
        for i in near:
            a, b = sites[pairs[i][1], row], sites[pairs[i][2], row]
            if a and b and int(a | b).bit_count() > 1:
                found.append((row, f"{keys[pairs[i][1]][0]} + {keys[pairs[i][2]][0]}", float(mass[i])))
                break
    return found


def _sites_of(entries: list[_Entry], shifts: ShiftPlaces, letters: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """(n,) uint64: places where a modification may sit, wherever the spectrum has the shift."""
    at_end = np.uint64(1) << (shifts.length - 1).astype(np.uint64)
    bits = np.zeros(len(shifts.shift), np.uint64)
    for entry in entries:
        own = letters[:, entry.letter]
        if entry.place.endswith("N-term"):
            own = own & np.uint64(1)
        elif entry.place.endswith("C-term"):
            own = own & at_end
        if entry.place == "protein N-term":
            own = np.where(shifts.is_protein_start, own, np.uint64(0))
        elif entry.place == "protein C-term":
            own = np.where(shifts.is_protein_end, own, np.uint64(0))
        bits |= own
    return bits
