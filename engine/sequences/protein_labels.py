"""Short names of proteins for figures: the gene if the database contains it, otherwise the accession."""

import re

__all__ = ["gene_name", "protein_label"]

_GENES = (
    re.compile(r"(?:^|\s)GN=(.+?)(?=\s+[A-Z]{2}=|\s*$)"),  # UniProt
    re.compile(r"(?:^|\s)gene_symbol:(\S+)"),  # Ensembl
    re.compile(r"\[gene=([^\]]+)\]"),  # NCBI
)
_UNIPROT = re.compile(r"(?:sp|tr)\|([^|]+)\|.*")


def gene_name(description: str) -> str:
    """Return the gene in a protein description, or ''.

    >>> gene_name("Serum albumin OS=Bos taurus OX=9913 GN=ALB PE=1 SV=4")
    'ALB'
    >>> gene_name("pep chromosome:GRCh38:4 gene_symbol:ALB description:albumin"), gene_name("Serum albumin")
    ('ALB', '')
    """
    names = (expression.search(description) for expression in _GENES)
    return next((name[1].strip() for name in names if name), "")


def protein_label(accession: str, description: str) -> str:
    """Return the gene of a protein if known, otherwise its accession; of a UniProt identifier, only the accession between the bars.

    >>> protein_label("sp|P02769|ALBU_BOVIN", "Serum albumin"), protein_label("P02769", "Serum albumin GN=ALB")
    ('P02769', 'ALB')
    """
    identifier = _UNIPROT.fullmatch(accession)
    return gene_name(description) or (identifier[1] if identifier else accession)
