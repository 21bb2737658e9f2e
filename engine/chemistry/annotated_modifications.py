"""Modifications of Unimod by the names that UniProt uses in annotations of residues (ptmlist.txt).

`resources/modifications/uniprot.tsv` contains only names that define a composition. Modifications with other names (glycans of unknown
composition, "N6-methylated lysine") have no known mass.
"""

from __future__ import annotations

import hashlib
from functools import cache

from proteoscope import resources
from proteoscope.engine.chemistry.modifications import SearchModification, parse_modification

__all__ = ["annotated_modification", "annotated_names", "names_digest"]

_OLD_REMARKS = (" (By similarity)", " (Probable)", " (Potential)")


@cache
def annotated_names() -> dict[tuple[str, str], SearchModification]:
    """Return modifications by UniProt's name and the one-character code of the residue.

    A modification of a residue applies to this residue only; a modification of a terminus applies to any residue, unless it changes the
    residue.
    """
    lines = resources.path("modifications", "uniprot.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return {(name, residue): parse_modification(written) for name, residue, written in rows}


def annotated_modification(note: str, residue: str) -> SearchModification | None:
    """Return the modification that the annotation of a residue names; None if its mass is unknown or the residue does not fit.

    Parameters
    ----------
    note : str
        Text of the annotation.
    residue : str
        One-character code of the residue.

    Examples
    --------
    >>> str(annotated_modification("Phosphoserine; by PKA", "S"))
    'Phospho (S)'
    >>> str(annotated_modification("N-acetylalanine; partial", "A"))
    'Acetyl (N-term)'
    >>> annotated_modification("N-linked (GlcNAc...) asparagine", "N")
    """
    name = note.partition(";")[0].strip()
    for remark in _OLD_REMARKS:
        name = name.removesuffix(remark)
    return annotated_names().get((name, residue))


@cache
def names_digest() -> str:
    """Return the SHA-256 of all names with their modifications, for cache keys."""
    digest = hashlib.sha256()
    for (name, residue), modification in sorted(annotated_names().items()):
        digest.update(f"{name}\t{residue}\t{modification.mass!r}\t{modification.position}\t{modification.residues}\n".encode())
    return digest.hexdigest()
