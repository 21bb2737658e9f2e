"""Known variants of proteins as further entries of a database: the changed sequence around each variant.

Only peptides that the variant changes are searched. An entry contains the residues to which these peptides can extend. Other peptides of
the entry are left out of the index, since they belong to the protein itself, or begin or end at the ends of the entry. Decoys are generated
from entries as from proteins, and peptides of decoys are left out in the same way, so that the numbers of added targets and decoys are
equal. An entry has the known modifications around its variant.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts, segment_offsets
from proteoscope.engine.formats.features import FeatureRow, Features, kind_code
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.peptides.known_modifications import MODIFICATION_KINDS

__all__ = ["VariantEntries", "with_variants"]

_CHANGE = re.compile(r"(?:([A-Z]+) -> ([A-Z]+)|(Missing))(?: \(|$)")
_MAXIMUM_INSERTED = 100
"""Maximum number of inserted residues of a variant; longer variants are skipped."""


class VariantEntries(NamedTuple):
    """Proteins followed by their variants, n entries.

    Attributes
    ----------
    proteins : Proteins
        Proteins and variants.
    n_variants, n_others : int
        Number of variants with an entry, and number of variants without an entry. The latter have no known change of residues, too many new
        residues, only exchanges of I and L, or original residues that differ from the sequence.
    peptide_bounds, reversed_peptide_bounds : ndarray of int64, shape (n, 2)
        Range of residues in each entry (from 0, end exclusive). Only peptides that overlap the range are included. If the variant removes
        residues, the range is empty, and peptides must span the bond there. The range of a protein includes all its residues. The second
        array applies to reversed entries.
    replaced : ndarray of int64, shape (n, 3)
        Index of the protein, and range of its residues (from 0, end exclusive) that the entry replaces; for a protein, all its residues.
    """

    proteins: Proteins
    n_variants: int
    n_others: int
    peptide_bounds: NDArray[np.int64]
    reversed_peptide_bounds: NDArray[np.int64]
    replaced: NDArray[np.int64]


class _Entry(NamedTuple):
    description: str
    sequence: bytes
    peptide_bounds: tuple[int, int]
    reversed_peptide_bounds: tuple[int, int]
    replaced: tuple[int, int, int]
    features: list[FeatureRow]


def with_variants(proteins: Proteins, *, maximum_length: int, cleaves: NDArray[np.bool_]) -> VariantEntries:
    """Return proteins and their known variants, which are named ``accession:A214T``, or ``accession:A214del`` for removed residues.

    The features of a variant are the known modifications around it, and the variant itself: the new residues, or the residues next to
    the removed residues.

    Parameters
    ----------
    proteins : Proteins
        Proteins with features.
    maximum_length : int
        Maximum length of peptides in residues.
    cleaves : ndarray of bool, shape (26, 26)
        True for bonds that the enzyme cuts, by the residues before and after the bond.

    Returns
    -------
    VariantEntries
        Proteins and variants.
    """
    features = proteins.features or Features.none(len(proteins))
    rows = np.flatnonzero(features.kind == kind_code("VARIANT"))
    owners = np.searchsorted(features.offsets, rows, side="right") - 1
    accessions = Texts(proteins.accession_bytes, proteins.accession_offsets).take(owners).strings()
    descriptions = Texts(proteins.description_bytes, proteins.description_offsets).take(owners).strings()
    notes = features.texts.take(rows).strings()
    positions = zip(features.first[rows].tolist(), features.last[rows].tolist(), strict=True)
    bounds = zip(proteins.offsets[owners].tolist(), proteins.offsets[owners + 1].tolist(), strict=True)
    whole = np.asarray(proteins.residues).tobytes()
    margin = maximum_length + 2  # one more for a peptide next to the variant, and one for the residue next to this peptide
    carried = _known_modifications(features)
    entries_by_name: dict[str, _Entry] = {}
    n_others = 0
    each = zip(owners.tolist(), accessions, descriptions, notes, positions, bounds, strict=True)
    for owner, accession, description, text, (first, last), (begin, end) in each:
        change = _CHANGE.match(text)
        old = whole[begin + first - 1 : begin + last].decode("ascii")
        new = (change[2] or "") if change is not None else old
        if change is None or change[1] not in (None, old) or len(new) > _MAXIMUM_INSERTED or new.replace("I", "L") == old.replace("I", "L"):
            n_others += 1
            continue
        left = whole[max(begin, begin + first - 1 - margin) : begin + first - 1].decode("ascii")
        right = whole[begin + last : min(end, begin + last + margin)].decode("ascii")
        forward = _peptide_bounds(left, old, new, right, cleaves, is_start=first <= margin)
        backward = _peptide_bounds(right[::-1], old[::-1], new[::-1], left[::-1], cleaves, is_start=last + margin >= end - begin)
        name = f"{accession}:{old}{first}{new or 'del'}"
        sequence = (left + new + right).encode("ascii")
        shown = (len(left) + 1, len(left) + len(new)) if new else (max(1, len(left)), min(len(sequence), len(left) + 1))
        variant = [FeatureRow(kind_code("VARIANT"), *shown, text)] if sequence else []
        replaced = (owner, first - 1 - len(left), last + len(right))
        variant += _around(carried.get(owner, ()), replaced, (first, last), longer=len(new) - len(old))
        entries_by_name.setdefault(name, _Entry(description, sequence, forward, backward, replaced, variant))
    sequences = [entry.sequence for entry in entries_by_name.values()]
    lengths = np.concatenate((np.diff(proteins.offsets), np.fromiter(map(len, sequences), np.int64, len(sequences))))
    names = Texts.from_strings([*Texts(proteins.accession_bytes, proteins.accession_offsets).strings(), *entries_by_name])
    texts = Texts.from_strings(
        [
            *Texts(proteins.description_bytes, proteins.description_offsets).strings(),
            *(f"{entry.description} (variant)".strip() for entry in entries_by_name.values()),
        ]
    )
    everything = np.stack((np.zeros(len(proteins), np.int64), np.diff(proteins.offsets)), axis=1)
    peptide_bounds, reversed_bounds = (
        np.concatenate((everything, np.array(bounds_of_entries, np.int64).reshape(-1, 2)))
        for bounds_of_entries in (
            [entry.peptide_bounds for entry in entries_by_name.values()],
            [entry.reversed_peptide_bounds for entry in entries_by_name.values()],
        )
    )
    whole_proteins = np.column_stack((np.arange(len(proteins)), everything))
    replaced_residues = np.concatenate(
        (whole_proteins, np.array([entry.replaced for entry in entries_by_name.values()], np.int64).reshape(-1, 3))
    )
    residues = np.concatenate((proteins.residues, np.frombuffer(b"".join(sequences), np.uint8)))
    all_features = Features.joined([features, Features.from_rows([entry.features for entry in entries_by_name.values()])])
    entries = Proteins(residues, segment_offsets(lengths), names.characters, names.offsets, texts.characters, texts.offsets, all_features)
    return VariantEntries(entries, len(entries_by_name), n_others, peptide_bounds, reversed_bounds, replaced_residues)


def _known_modifications(features: Features) -> dict[int, list[FeatureRow]]:
    """Return the annotated modifications of proteins by index of the protein."""
    rows = np.flatnonzero(np.isin(features.kind, MODIFICATION_KINDS))
    owners = np.searchsorted(features.offsets, rows, side="right") - 1
    kind, first, last = (column[rows].tolist() for column in (features.kind, features.first, features.last))
    entries_by_name: dict[int, list[FeatureRow]] = {}
    for owner, *row in zip(owners.tolist(), kind, first, last, features.texts.take(rows).strings(), strict=True):
        entries_by_name.setdefault(owner, []).append(FeatureRow(*row))
    return entries_by_name


def _around(rows: Sequence[FeatureRow], replaced: tuple[int, int, int], variant: tuple[int, int], *, longer: int) -> list[FeatureRow]:
    """Return the features of a protein that lie in an entry but outside its variant, with positions in the entry.

    Parameters
    ----------
    rows : sequence of FeatureRow
        Features of the protein.
    replaced : (int, int, int)
        Protein and residues that the entry replaces, as in `VariantEntries`.
    variant : (int, int)
        First and last changed residue, from 1.
    longer : int
        Number of new residues minus number of old residues.
    """
    _, begin, stop = replaced
    before = [row for row in rows if begin < row.first and row.last < variant[0]]
    after = [row for row in rows if variant[1] < row.first and row.last <= stop]
    moved = [(row, -begin) for row in before] + [(row, longer - begin) for row in after]
    return [row._replace(first=row.first + by, last=row.last + by) for row, by in moved]


def _peptide_bounds(left: str, old: str, new: str, right: str, cleaves: NDArray[np.bool_], *, is_start: bool) -> tuple[int, int]:
    """Return the range of residues that a peptide must overlap to be included (see `VariantEntries.peptide_bounds`).

    The entry consists of `left`, the residues `new`, which replace `old`, and `right`. The range contains the new residues. It also
    contains the residue before (or after) them if the enzyme cuts there in the changed sequence but not in the original sequence, since
    this changes the adjacent peptide too. If the variant removes the first or last residues of the protein, it contains the new terminal
    residue. If `is_start`, the entry begins with the first residue of the protein. If this is a methionine in or next to the range, the
    range also contains the second residue, where peptides begin if the methionine is removed.
    """
    first, stop = len(left), len(left) + len(new)

    def is_new(now: str, before: str) -> bool:
        return _is_cut(now, cleaves) and not _is_cut(before, cleaves)

    if left and (new + right) and is_new(left[-1] + (new + right)[0], left[-1] + old[0]):
        first -= 1
    if right and (left + new) and is_new((left + new)[-1] + right[0], old[-1] + right[0]):
        stop += 1
    if not new and right and not left:  # the protein has a new first residue
        stop += 1
    if not new and left and not right:  # the protein has a new last residue
        first -= 1
    whole = left + new + right
    if is_start and first <= 1 and whole.startswith("M"):
        stop = min(max(stop, 2), len(whole))
    return first, stop


def _is_cut(bond: str, cleaves: NDArray[np.bool_]) -> bool:
    before, after = (ord(residue) - ord("A") for residue in bond)
    return bool(0 <= before < len(cleaves) and 0 <= after < len(cleaves) and cleaves[before, after])
