"""Result tables of an open modification search."""

from proteoscope.engine.formats.features import FEATURES
from proteoscope.engine.matches.columns import PEPTIDES, PROTEINS_OF_SHIFTED, READING_FRAMES, SHIFTED_PSMS
from proteoscope.engine.matches.site_columns import SITE_TABLES
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.spectra.tables import SPECTRA

__all__ = ["MODIFICATIONS", "STORED", "TABLES"]

_SITES = "(?:(?:[A-Z]|N-term|C-term|) [0-9]{1,12}(?:; |$))*"

MODIFICATIONS = Table.from_columns(
    "modifications",
    "Modifications",
    (
        Column(
            "name", "Modification", "Name of the modification in Unimod, another explanation of the mass shift, or the mass shift", width=30
        ),
        Column(
            "mass",
            "Mass",
            "Mass shift: difference from the mass of the unmodified peptide",
            "number",
            10,
            4,
            unit="Da",
            saved=".6f",
            low=-1e6,
            high=1e6,
        ),
        Column("psms", "PSMs", "Number of PSMs with the mass shift that are accepted at the FDR", "integer", 6),
        Column("peptides", "Peptides", "Number of distinct peptide sequences with the mass shift", "integer", 8),
        Column("sites", "Sites", "Residues and termini that carry the mass shift, with their numbers of spectra", width=30, pattern=_SITES),
        Column(
            "share_unmodified",
            "Unmodified",
            "Fraction of the peptides that were also identified without the mass shift",
            "percent",
            10,
            saved=".4f",
            is_nullable=True,
        ),
        Column("decoys", "Decoys", "Number of accepted decoys with the mass shift", "integer", 6),
        Column(
            "kind",
            "Kind",
            "Group of matches with its own error rates: named (a common mass shift), end (other peptide ends) or unnamed (any other shift)",
            width=8,
            is_shown=False,
            pattern="none|named|end|unnamed",
        ),
    ),
    shown="name mass psms peptides sites share_unmodified decoys kind",
    links="name",
    saved="name mass psms peptides sites share_unmodified decoys kind",
)

TABLES: tuple[Table, ...] = (MODIFICATIONS, SHIFTED_PSMS, PROTEINS_OF_SHIFTED)
"""Shown tables, from modifications to PSMs and proteins."""
STORED: tuple[Table, ...] = (PEPTIDES, SPECTRA, FEATURES, READING_FRAMES, *SITE_TABLES)
"""Further stored tables."""
