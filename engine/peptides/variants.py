"""Known variants of proteins as further entries of a database: the residues around each, changed.

Of an entry those peptides count that the variant changes. It is as long as none of these reaches beyond it, and all others are left out of
the index: they are peptides of the protein itself, or begin or end where the entry was cut out. Decoys are made of entries as of proteins,
and their peptides left out alike, so that as many are added. An entry has the modifications that are known around its variant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts, offsets_of
from proteoscope.engine.formats.features import FeatureRow, Features, kind_code
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.peptides.known_modifications import MODIFICATION_KINDS

__all__ = ["VariantEntries", "with_variants"]

_CHANGE = re.compile(r"(?:([A-Z]+) -> ([A-Z]+)|(Missing))(?: \(|$)")
_MOST_INSERTED = 100
"""Residues that stand in the place of others; variants of more are other proteins."""


class VariantEntries(NamedTuple):
    """Proteins with their variants behind them.

    Attributes
    ----------
    proteins : n of them. n_variants, n_others : variants that became entries, and those that change no residues that are told, no mass, or
        others than the sequence has.
    kept, kept_of_reversed : (n, 2) int64, residues of the entry, from 0: peptides count that begin before the second and end behind the
        first, which of a protein are all. The same of an entry that is written backward.
    replaced : (n, 3) int64, the number of a protein and the residues of it, from 0, the last not included, that stand changed in the entry;
        of a protein all of its own.
    """

    proteins: Proteins
    n_variants: int
    n_others: int
    kept: NDArray[np.int64]
    kept_of_reversed: NDArray[np.int64]
    replaced: NDArray[np.int64]


class _Entry(NamedTuple):
    description: str
    sequence: bytes
    kept: tuple[int, int]
    kept_of_reversed: tuple[int, int]
    replaced: tuple[int, int, int]
    features: list[FeatureRow]


def with_variants(proteins: Proteins, *, maximum_length: int, cleaves: NDArray[np.bool_]) -> VariantEntries:
    """Proteins and their known variants, named ``accession:A214T``, or ``accession:A214del`` where residues are missing.

    Features of an entry are its variant, which is the new residues, or those on both sides of missing ones, at their place in the entry,
    and the modifications that the protein is known to carry before and behind it.

    Parameters
    ----------
    maximum_length : of peptides. cleaves : (26, 26) bool, the bonds that the enzyme cuts.
    """
    features = proteins.features or Features.none(len(proteins))
    rows = np.flatnonzero(features.kind == kind_code("VARIANT"))
    owners = np.searchsorted(features.offsets, rows, side="right") - 1
    accessions = Texts(proteins.accession_bytes, proteins.accession_offsets).take(owners).strings()
    descriptions = Texts(proteins.description_bytes, proteins.description_offsets).take(owners).strings()
    told = features.texts.take(rows).strings()
    places = zip(features.first[rows].tolist(), features.last[rows].tolist(), strict=True)
    bounds = zip(proteins.offsets[owners].tolist(), proteins.offsets[owners + 1].tolist(), strict=True)
    whole = np.asarray(proteins.residues).tobytes()
    margin = maximum_length + 2  # one for a peptide beside the variant, one for the residue beside that
    carried = _carried(features)
    found: dict[str, _Entry] = {}
    n_others = 0
    each = zip(owners.tolist(), accessions, descriptions, told, places, bounds, strict=True)
    for owner, accession, description, text, (first, last), (begin, end) in each:
        change = _CHANGE.match(text)
        old = whole[begin + first - 1 : begin + last].decode("ascii")
        new = (change[2] or "") if change is not None else old
        if change is None or change[1] not in (None, old) or len(new) > _MOST_INSERTED or new.replace("I", "L") == old.replace("I", "L"):
            n_others += 1
            continue
        left = whole[max(begin, begin + first - 1 - margin) : begin + first - 1].decode("ascii")
        right = whole[begin + last : min(end, begin + last + margin)].decode("ascii")
        forward = _kept(left, old, new, right, cleaves, is_start=first <= margin)
        backward = _kept(right[::-1], old[::-1], new[::-1], left[::-1], cleaves, is_start=last + margin >= end - begin)
        name = f"{accession}:{old}{first}{new or 'del'}"
        sequence = (left + new + right).encode("ascii")
        shown = (len(left) + 1, len(left) + len(new)) if new else (max(1, len(left)), min(len(sequence), len(left) + 1))
        variant = [FeatureRow(kind_code("VARIANT"), *shown, text)] if sequence else []
        replaced = (owner, first - 1 - len(left), last + len(right))
        variant += _around(carried.get(owner, ()), replaced, (first, last), longer=len(new) - len(old))
        found.setdefault(name, _Entry(description, sequence, forward, backward, replaced, variant))
    sequences = [entry.sequence for entry in found.values()]
    lengths = np.concatenate((np.diff(proteins.offsets), np.fromiter(map(len, sequences), np.int64, len(sequences))))
    names = Texts.of([*Texts(proteins.accession_bytes, proteins.accession_offsets).strings(), *found])
    texts = Texts.of(
        [
            *Texts(proteins.description_bytes, proteins.description_offsets).strings(),
            *(f"{entry.description} (variant)".strip() for entry in found.values()),
        ]
    )
    everything = np.stack((np.zeros(len(proteins), np.int64), np.diff(proteins.offsets)), axis=1)
    kept, reversed_kept = (
        np.concatenate((everything, np.array(bounds_of_entries, np.int64).reshape(-1, 2)))
        for bounds_of_entries in ([entry.kept for entry in found.values()], [entry.kept_of_reversed for entry in found.values()])
    )
    own = np.column_stack((np.arange(len(proteins)), everything))
    replaced_residues = np.concatenate((own, np.array([entry.replaced for entry in found.values()], np.int64).reshape(-1, 3)))
    residues = np.concatenate((proteins.residues, np.frombuffer(b"".join(sequences), np.uint8)))
    of_all = Features.joined([features, Features.of([entry.features for entry in found.values()])])
    entries = Proteins(residues, offsets_of(lengths), names.letters, names.offsets, texts.letters, texts.offsets, of_all)
    return VariantEntries(entries, len(found), n_others, kept, reversed_kept, replaced_residues)


def _carried(features: Features) -> dict[int, list[FeatureRow]]:
    """The modifications that proteins are known to carry, by their numbers."""
    rows = np.flatnonzero(np.isin(features.kind, MODIFICATION_KINDS))
    owners = np.searchsorted(features.offsets, rows, side="right") - 1
    kind, first, last = (column[rows].tolist() for column in (features.kind, features.first, features.last))
    found: dict[int, list[FeatureRow]] = {}
    for owner, *row in zip(owners.tolist(), kind, first, last, features.texts.take(rows).strings(), strict=True):
        found.setdefault(owner, []).append(FeatureRow(*row))
    return found


def _around(rows: Sequence[FeatureRow], replaced: tuple[int, int, int], variant: tuple[int, int], *, longer: int) -> list[FeatureRow]:
    """Features of a protein that lie within an entry, and not where it is changed, at their place there.

    `replaced` : see `VariantEntries`. `variant` : the residues that are changed, from 1, the last included. `longer` : how many more there
    are of the new ones.
    """
    _, begin, stop = replaced
    before = [row for row in rows if begin < row.first and row.last < variant[0]]
    behind = [row for row in rows if variant[1] < row.first and row.last <= stop]
    moved = [(row, -begin) for row in before] + [(row, longer - begin) for row in behind]
    return [row._replace(first=row.first + by, last=row.last + by) for row, by in moved]


def _kept(left: str, old: str, new: str, right: str, cleaves: NDArray[np.bool_], *, is_start: bool) -> tuple[int, int]:
    """Bounds of `VariantEntries.kept` for new residues between others.

    They are the place of the new ones, and a residue more on a side where the enzyme cuts now and did not: the peptide beyond is changed
    too. `is_start` : the protein begins with the first of them, whose methionine may be clipped, so that the next residue begins a peptide.
    """
    first, stop = len(left), len(left) + len(new)

    def is_new(now: str, before: str) -> bool:
        return _is_cut(now, cleaves) and not _is_cut(before, cleaves)

    if left and (new + right) and is_new(left[-1] + (new + right)[0], left[-1] + old[0]):
        first -= 1
    if right and (left + new) and is_new((left + new)[-1] + right[0], old[-1] + right[0]):
        stop += 1
    if not new and right and not left:  # the protein begins elsewhere
        stop += 1
    if not new and left and not right:  # or ends there
        first -= 1
    whole = left + new + right
    if is_start and first <= 1 and whole.startswith("M"):
        stop = min(max(stop, 2), len(whole))
    return first, stop


def _is_cut(bond: str, cleaves: NDArray[np.bool_]) -> bool:
    one, other = (ord(letter) - ord("A") for letter in bond)
    return bool(0 <= one < len(cleaves) and 0 <= other < len(cleaves) and cleaves[one, other])
