"""Organisms and genes of the molecules of a structure file, as texts in the format of UniProt's headers for descriptions of chains.

Sources: records COMPND and SOURCE of PDB files (https://www.wwpdb.org/documentation/file-format, version 3.3), and the categories of
mmCIF for natural, expressed and synthetic molecules and for the targets of models (https://mmcif.wwpdb.org).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import gemmi

__all__ = ["MOLECULE_CATEGORIES", "described", "mmcif_molecules", "pdb_molecules"]

MOLECULE_CATEGORIES = {
    "_entity_src_nat": ("entity_id", "pdbx_organism_scientific", "pdbx_ncbi_taxonomy_id"),
    "_entity_src_gen": ("entity_id", "pdbx_gene_src_scientific_name", "pdbx_gene_src_ncbi_taxonomy_id", "pdbx_gene_src_gene"),
    "_pdbx_entity_src_syn": ("entity_id", "organism_scientific", "ncbi_taxonomy_id"),
    "_ma_target_ref_db_details": ("target_entity_id", "organism_scientific", "ncbi_taxonomy_id", "gene_name"),
}
"""Categories and columns of mmCIF with the entity, its organism, the organism's number in NCBI's taxonomy, and the gene."""
_RECORD = re.compile(rb"(?m)^(COMPND|SOURCE)[^\n]{4}([^\n]{0,70})")


def described(text: str, source: str) -> str:
    """Return the description of a molecule, followed by its source (organism and gene), if known.

    >>> described("Serum albumin", "OS=Homo sapiens GN=ALB"), described("Serum albumin", "")
    ('Serum albumin OS=Homo sapiens GN=ALB', 'Serum albumin')
    """
    return f"{text} {source}".strip()


def pdb_molecules(head: bytes) -> dict[str, str]:
    """Return the source, such as ``OS=Homo sapiens OX=9606 GN=ALB``, by name of each chain in the header of a PDB file.

    Parameters
    ----------
    head : bytes
        Records before the atoms.
    """
    chains: dict[str, list[str]] = {}
    sources: dict[str, dict[str, str]] = {}
    for record in (b"COMPND", b"SOURCE"):
        molecule = ""
        for key, value in _specifications(head, record):
            if key == "MOL_ID":
                molecule = value
            elif key == "CHAIN":
                chains.setdefault(molecule, []).extend(name.strip() for name in value.split(","))
            elif record == b"SOURCE":
                sources.setdefault(molecule, {})[key] = value
    result = {}
    for molecule, values in sources.items():
        organism = values.get("ORGANISM_SCIENTIFIC", "")
        source = _source(_cased(organism), values.get("ORGANISM_TAXID", ""), values.get("GENE", ""))
        result.update(dict.fromkeys(chains.get(molecule, ()) if source else (), source))
    return result


def mmcif_molecules(block: gemmi.cif.Block) -> dict[str, str]:
    """Return the source, such as ``OS=Homo sapiens OX=9606 GN=ALB``, by id of each entity in a block of mmCIF."""
    import gemmi  # slow to import: only structures need it

    result: dict[str, str] = {}
    for category, (entity, *columns) in MOLECULE_CATEGORIES.items():
        for row in block.find(f"{category}.", [entity, *(f"?{column}" for column in columns)]):
            values = ["" if not row.has(k) or row[k] in (".", "?") else gemmi.cif.as_string(row[k]) for k in range(1, len(columns) + 1)]
            source = _source(*values, *[""] * (3 - len(values)))
            if source:
                result.setdefault(gemmi.cif.as_string(row[0]), source)
    return result


def _specifications(head: bytes, record: bytes) -> Iterator[tuple[str, str]]:
    """Yield the keys and values in the lines of a record type, such as ``SOURCE``; a value may span lines and ends with a semicolon."""
    lines = [line.decode("latin-1").strip() for name, line in _RECORD.findall(head) if name == record]
    for specification in " ".join(lines).split(";"):
        key, separator, value = specification.partition(":")
        if separator:
            yield key.strip().upper(), " ".join(value.split())


def _cased(organism: str) -> str:
    """Convert the name of an organism from capitals, as in PDB files, to its usual spelling.

    >>> _cased("ESCHERICHIA COLI K-12"), _cased("Bos taurus")
    ('Escherichia coli K-12', 'Bos taurus')
    """
    if not organism.isupper():
        return organism
    genus, _, rest = organism.partition(" ")
    species, space, strain = rest.partition(" ")
    return f"{genus.capitalize()} {species.lower()}{space}{strain}".strip()


def _source(organism: str, taxonomy: str, genes: str) -> str:
    """Return the source of a molecule as in UniProt's headers, such as ``OS=Homo sapiens OX=9606 GN=ALB``; only the first gene is used."""
    parts = (("OS", organism), ("OX", taxonomy.strip()), ("GN", genes.split(",")[0].strip()))
    return " ".join(f"{key}={' '.join(value.split())}" for key, value in parts if value)
