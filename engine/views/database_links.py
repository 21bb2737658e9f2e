"""Web addresses of proteins and structures in public databases.

An accession from a file becomes part of an address only if it has the form that the database publishes, so that a malicious name cannot
lead elsewhere. This module opens no address; the window opens it when the user clicks the link.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["DatabaseLink", "database_links", "links_of_names"]

_UNIPROT_FORM = "(?:[OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9](?:[A-Z][A-Z0-9]{2}[0-9]){1,2})"
"""Regular expression of a UniProt accession (https://www.uniprot.org/help/accession_numbers)."""
_PDB_FORM = "[1-9][A-Za-z0-9]{3}"
"""Regular expression of a PDB identifier (https://www.wwpdb.org/documentation/new-format-for-pdb-ids)."""
_UNIPROT = re.compile(rf"(?:(?:sp|tr)\|)?({_UNIPROT_FORM})(?:-[0-9]{{1,4}})?(?:\|[A-Z0-9]{{1,16}}_[A-Z0-9]{{1,5}})?", re.ASCII)
"""Regular expression of ``P02769``, an isoform such as ``P02769-2``, or ``sp|P02769|ALBU_BOVIN``."""
_ALPHAFOLD = re.compile(rf"AF-({_UNIPROT_FORM})-F[0-9]{{1,4}}(?:-model_v[0-9]{{1,2}})?(?::[A-Za-z0-9_]{{1,4}})?", re.ASCII)
"""Regular expression of file names of AlphaFold DB, such as ``AF-P02769-F1-model_v4``."""
_PDB_HEADER = re.compile(rf"pdb\|({_PDB_FORM})\|[A-Za-z0-9]{{1,4}}|({_PDB_FORM})_[A-Za-z0-9]{{1,4}}(?:\|Chains?)?", re.ASCII)
"""Regular expression of the sequence headers ``pdb|4F5S|A`` (NCBI), ``4F5S_1|Chains`` and ``4F5S_A`` (PDB)."""
_PDB_FILE = re.compile(rf"(?:pdb)?({_PDB_FORM})(?:-assembly[0-9]{{1,3}})?(?::[A-Za-z0-9_]{{1,4}})?", re.ASCII)
"""Regular expression of structure names, optionally with a chain: ``4f5s``, ``pdb4f5s``, ``4f5s:A``."""
_MAXIMUM_NAME = 100
_MAXIMUM_LINKS = 8


class DatabaseLink(NamedTuple):
    """A link to an entry of a database.

    Attributes
    ----------
    title
        Name of the database and accession, such as ``UniProt P02769``.
    url
        Web address of the entry.
    """

    title: str
    url: str


def database_links(name: str, *, is_structure: bool = False) -> tuple[DatabaseLink, ...]:
    """Return the links for a name, or () if the name is not a known form of accession.

    Parameters
    ----------
    name : str
        Name of a protein or structure, as in a sequence or structure file.
    is_structure : bool
        True if `name` is the name of a structure; then four characters may be a PDB identifier.

    Examples
    --------
    >>> [link.url for link in database_links("sp|P02769|ALBU_BOVIN")]
    ['https://www.uniprot.org/uniprotkb/P02769/entry', 'https://alphafold.ebi.ac.uk/entry/P02769']
    >>> database_links("4f5s:A", is_structure=True)[0].url
    'https://www.rcsb.org/structure/4F5S'
    """
    if len(name) > _MAXIMUM_NAME:
        return ()
    if match := _UNIPROT.fullmatch(name) or _ALPHAFOLD.fullmatch(name):
        return (
            DatabaseLink(f"UniProt {match[1]}", f"https://www.uniprot.org/uniprotkb/{match[1]}/entry"),
            DatabaseLink(f"AlphaFold DB {match[1]}", f"https://alphafold.ebi.ac.uk/entry/{match[1]}"),
        )
    if match := (_PDB_FILE if is_structure else _PDB_HEADER).fullmatch(name):
        entry = next(part for part in match.groups() if part).upper()
        return (DatabaseLink(f"PDB {entry}", f"https://www.rcsb.org/structure/{entry}"),)
    return ()


def links_of_names(names: Iterable[str], *, is_structure: bool = False) -> tuple[DatabaseLink, ...]:
    """Return the links for the given names, without duplicates, at most eight."""
    links = dict.fromkeys(link for name in names for link in database_links(name, is_structure=is_structure))
    return tuple(links)[:_MAXIMUM_LINKS]
