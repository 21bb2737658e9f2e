"""Columns of gene and organism, which many tables of proteins have, filled from the descriptions of their rows."""

from __future__ import annotations

from collections.abc import Iterable

from proteoscope.engine.formats.header_names import header_names
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.columns import Column

__all__ = ["GENE", "NAMES", "ORGANISM", "name_columns"]

GENE = Column(
    "gene",
    "Gene",
    "Gene, from the description in the database: GN= of UniProt, [gene=] of NCBI",
    width=10,
    is_nullable=True,
    is_optional=True,
    is_of_some=True,
)
ORGANISM = Column(
    "organism",
    "Organism",
    "Organism, from the description in the database: OS= of UniProt, [organism] of NCBI",
    width=20,
    is_nullable=True,
    is_optional=True,
    is_of_some=True,
)
NAMES = (GENE, ORGANISM)


def name_columns(descriptions: Iterable[str | None]) -> dict[str, pa.Array]:
    """Return the columns of `NAMES` for rows with these descriptions.

    Parameters
    ----------
    descriptions : iterable of str or None
        Headers without their accessions.

    Returns
    -------
    dict of str to StringArray
        null where a description has no such name.
    """
    distinct: dict[str | None, tuple[str | None, str | None]] = {}
    rows = list(descriptions)
    for text in rows:
        if text not in distinct:
            names = header_names(text or "")
            distinct[text] = names.gene, names.organism
    genes, organisms = ([distinct[text][place] for text in rows] for place in range(2))
    return {GENE.name: pa.array(genes, pa.string()), ORGANISM.name: pa.array(organisms, pa.string())}
