"""Modifications by the names that UniProt annotates residues with (its list ptmlist.txt), as modifications of Unimod.

Names of one chemistry alone are known, from `resources/modifications/uniprot.tsv`: those of several (glycans of unknown composition,
"N6-methylated lysine") have no mass, and none is guessed.
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
    """Modifications by UniProt's name and the residue (one letter). Those of a residue name it; those of an end name no residue unless
    they change it."""
    lines = resources.path("modifications", "uniprot.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return {(name, residue): parse_modification(written) for name, residue, written in rows}


def annotated_modification(note: str, residue: str) -> SearchModification | None:
    """The modification that an annotation of a residue names; None where its mass is not known, or the residue is another.

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
    """SHA-256 of all names with what they mean, for keys of what is made by them."""
    digest = hashlib.sha256()
    for (name, residue), one in sorted(annotated_names().items()):
        digest.update(f"{name}\t{residue}\t{one.mass!r}\t{one.position}\t{one.residues}\n".encode())
    return digest.hexdigest()
