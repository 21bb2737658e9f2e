"""Names of gene and organism in the headers of protein databases.

UniProt: ``Serum albumin OS=Bos taurus OX=9913 GN=ALB PE=1 SV=4`` (https://www.uniprot.org/help/fasta-headers). NCBI: ``albumin precursor
[Bos taurus]``, and in files of coding sequences ``[gene=ALB] [organism=Bos taurus]``. Headers may be malicious: the time to match each
pattern is proportional to the length of the header, and control characters never become part of a name.
"""

import re
from typing import NamedTuple

__all__ = ["MAXIMUM_HEADER", "MAXIMUM_NAME", "ORGANISM_START", "ORGANISM_WORDS", "HeaderNames", "header_names"]

MAXIMUM_HEADER = 1 << 16
"""Maximum number of characters of a header that are searched."""
MAXIMUM_NAME = 200
"""Maximum number of characters of a name; longer texts are not considered names."""
_UNIPROT = re.compile(r"(?:^|(?<=\s))(OS|OX|GN|PE|SV)=")
_NCBI = re.compile(r"\[(gene|organism)=([^\[\]]*)\]")
ORGANISM_START = r"(?:[A-Z\['\"]|synthetic |uncultured |unidentified |unclassified )"
ORGANISM_WORDS = "[^:;=]+ [^:;=]+"
_ORGANISM = re.compile(f"(?={ORGANISM_START}){ORGANISM_WORDS}")
"""Regular expression of an organism in NCBI's headers: two or more words in brackets.

A single word in brackets is a cofactor or a remark, such as ``[NADP(+)]`` or ``[imported]``.
"""
_NUMBER = re.compile("[1-9][0-9]{0,8}")


class HeaderNames(NamedTuple):
    """Names in a header; missing names are None.

    Attributes
    ----------
    gene, organism : str or None
        Names of the gene and the organism.
    taxonomy : int or None
        Number of the organism in NCBI's taxonomy.
    """

    gene: str | None = None
    organism: str | None = None
    taxonomy: int | None = None


def header_names(description: str) -> HeaderNames:
    """Return the names in a header, given without its accession; if a key is repeated, its first value is used.

    >>> header_names("Serum albumin OS=Bos taurus OX=9913 GN=ALB PE=1 SV=4")
    HeaderNames(gene='ALB', organism='Bos taurus', taxonomy=9913)
    >>> header_names("albumin precursor [Bos taurus]")
    HeaderNames(gene=None, organism='Bos taurus', taxonomy=None)
    """
    text = "".join(character if character.isprintable() else " " for character in description[:MAXIMUM_HEADER])
    uniprot, ncbi = dict[str, str](), dict[str, str]()
    keys = list(_UNIPROT.finditer(text))
    for number, key in enumerate(keys):
        value = text[key.end() : keys[number + 1].start() if number + 1 < len(keys) else len(text)]
        if value.strip():
            uniprot.setdefault(key[1], value)
    for key in _NCBI.finditer(text):
        if key[2].strip():
            ncbi.setdefault(key[1], key[2])
    gene = _name(uniprot.get("GN")) or _name(ncbi.get("gene"))
    organism = _name(uniprot.get("OS")) or _name(ncbi.get("organism")) or _name(_last_in_brackets(text.rstrip()))
    taxonomy = _name(uniprot.get("OX")) or ""
    return HeaderNames(gene, organism, int(taxonomy) if _NUMBER.fullmatch(taxonomy) else None)


def _name(value: str | None) -> str | None:
    """Return a name without repeated spaces; None if it is missing, empty or too long."""
    name = " ".join(value.split()) if value is not None and len(value) <= 2 * MAXIMUM_NAME else ""
    return name if 0 < len(name) <= MAXIMUM_NAME else None


def _last_in_brackets(text: str) -> str:
    """Return the organism in brackets at the end of a text, or ''; the name of the organism may itself contain brackets."""
    depth = 0
    for position in range(len(text) - 1, max(-1, len(text) - 2 * MAXIMUM_NAME), -1):
        depth += {"]": 1, "[": -1}.get(text[position], 0)
        if depth == 0:
            inside = text[position + 1 : -1]
            return inside if text[position] == "[" and _ORGANISM.fullmatch(inside) else ""
    return ""
