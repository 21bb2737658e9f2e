"""Classes of the matches of an identification, which have separate error rates (`proteoscope.engine.matches.class_rates`).

A match belongs to one class: the last class in `CLASSES` that applies. In the order of the list, classes have more candidates for each
spectrum, or are less likely a priori. The rules are the same for targets and decoys.
"""

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.enzymes import Enzyme
from proteoscope.engine.matches.class_counts import CLASSES, TRANSLATED
from proteoscope.engine.matches.psms import Psms
from proteoscope.engine.peptides.protein_index import ProteinIndex, with_stops

__all__ = ["ISOTOPE_ERROR", "SECOND_PASS", "class_names", "classify_matches", "classify_second_pass"]

SECOND_PASS = CLASSES.index("second pass")
"""Number of the class of matches of the second pass."""
ISOTOPE_ERROR = CLASSES.index("isotope error")
"""Number of the last class of specific peptides; later classes are less likely a priori."""

_SPECIFIC, _, _SEMI, _NON, _KNOWN, _VARIANT, _CONTAMINANT = range(SECOND_PASS)


def class_names(*, is_translated: bool) -> tuple[str, ...]:
    """Return the names of the classes of a search; `is_translated` is True if its database is translated from nucleotides."""
    return (TRANSLATED, *CLASSES[1:]) if is_translated else CLASSES


def classify_matches(
    psms: Psms, proteins: ProteinIndex, enzyme: Enzyme, n_variable: int, *, clip_methionine: bool = True
) -> NDArray[np.int64]:
    """Return the class of each match of a first pass, as an index into `CLASSES`.

    A peptide that occurs several times belongs to the earliest class of its occurrences: it is a variant or contaminant only if it occurs
    in no other protein, and semi-specific only if no occurrence is specific.

    Parameters
    ----------
    psms : Psms
        Matches, n rows.
    proteins : ProteinIndex
        Searched proteins.
    enzyme : Enzyme
        Cleavage agent.
    n_variable : int
        Number of variable modifications, which precede known modifications in `Psms.modifications`.
    clip_methionine : bool
        True if proteins were also digested without their initial methionine.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    row = np.repeat(np.arange(len(psms)), np.diff(psms.occurrence_offsets))
    protein = proteins.protein_of(psms.occurrences)
    result = np.where(psms.isotope_error != 0, ISOTOPE_ERROR, _SPECIFIC)
    ends = np.zeros(len(psms), np.int64)
    np.maximum.at(ends, row, _specific_ends(psms.occurrences, psms.length[row], protein, proteins, enzyme, clip_methionine))
    result = np.where(ends < 2, np.where(ends == 1, _SEMI, _NON), result)
    n_known = 0 if proteins.known_modifications is None else len(proteins.known_modifications.modifications)
    is_known = (psms.modification >= n_variable) & (psms.modification < n_variable + n_known)
    carrying = np.repeat(np.arange(len(psms)), np.diff(psms.modification_offsets))[is_known]
    result[carrying] = _KNOWN
    for kind, of_kind in ((_VARIANT, _variants(proteins)), (_CONTAMINANT, _contaminants(proteins))):
        if of_kind is not None:
            others = np.bincount(row[~of_kind[protein]], minlength=len(psms))
            result[others == 0] = kind
    return result


def classify_second_pass(first: NDArray[np.int64], n_second: int) -> NDArray[np.int64]:
    """Return the classes of all matches: `first`, followed by the class of the second pass for each of its `n_second` matches."""
    return np.concatenate((first, np.full(n_second, SECOND_PASS, np.int64)))


def _specific_ends(
    start: NDArray[np.int64],
    length: NDArray[np.int64],
    protein: NDArray[np.int64],
    proteins: ProteinIndex,
    enzyme: Enzyme,
    clip_methionine: bool,
) -> NDArray[np.int64]:
    """Return the number of specific ends of each peptide occurrence, 0 to 2.

    Specific ends are sites of the enzyme, protein termini, stop codons, and, with `clip_methionine`, the second residue after an initial
    methionine.
    """
    residues, offsets = np.asarray(proteins.proteins.residues), np.asarray(proteins.proteins.offsets)
    boundaries, stop, cuts = with_stops(offsets, proteins.stops), start + length, enzyme.cleavage_table()

    def is_boundary(position: NDArray[np.int64]) -> NDArray[np.bool_]:
        place = np.minimum(np.searchsorted(boundaries, position), len(boundaries) - 1)
        at_boundary: NDArray[np.bool_] = boundaries[place] == position
        return at_boundary

    def is_cut(position: NDArray[np.int64]) -> NDArray[np.bool_]:
        inside = np.clip(position, 1, len(residues) - 1)  # both ends of the array of residues are boundaries
        cut: NDArray[np.bool_] = cuts[residues[inside - 1].astype(np.int64) - 65, residues[inside].astype(np.int64) - 65]
        return cut

    begins = is_boundary(start) | is_cut(start)
    if clip_methionine:
        begins |= is_boundary(start - 1) & (residues[np.maximum(start - 1, 0)] == ord("M"))
    return begins.astype(np.int64) + (is_boundary(stop) | is_cut(stop))


def _variants(proteins: ProteinIndex) -> NDArray[np.bool_] | None:
    """Return a mask of the proteins that are variants, (proteins,); None if there are no variants."""
    return None if proteins.replaced is None else proteins.are_variants()


def _contaminants(proteins: ProteinIndex) -> NDArray[np.bool_] | None:
    """Return a mask of contaminants and their decoys, (proteins,); None if there are no contaminants."""
    if not proteins.n_contaminants:
        return None
    result = np.zeros(len(proteins), np.bool_)
    result[proteins.n_targets - proteins.n_contaminants : proteins.n_targets] = True
    partner = proteins.partners()
    decoys = np.arange(proteins.n_targets, len(proteins))
    paired = decoys[partner[decoys] >= 0]
    result[paired] = result[partner[paired]]
    return result
