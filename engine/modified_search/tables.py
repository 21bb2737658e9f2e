"""Result tables of an open modification search."""

from __future__ import annotations

from proteoscope.engine.formats.feature_tables import FEATURES
from proteoscope.engine.matches.columns import PEPTIDES, PROTEINS_OF_SHIFTED, READING_FRAMES, SHIFTED_PSMS
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.spectra.tables import SPECTRA

__all__ = ["MODIFICATIONS", "STORED", "TABLES"]

_SITES = "(?:(?:[A-Z]|N-term|C-term|) [0-9]{1,12}(?:; |$))*"

MODIFICATIONS = Table.of(
    "modifications",
    "Modifications",
    (
        Column("name", "Modification", "Name in Unimod, another explanation of the mass, or the mass itself", width=30),
        Column("mass", "Mass", "Mass difference to the unmodified peptide", "number", 10, 4, unit="Da", saved=".6f", low=-1e6, high=1e6),
        Column("psms", "PSMs", "Number of spectra accepted at the false discovery rate", "integer", 6),
        Column("peptides", "Peptides", "Number of distinct sequences", "integer", 8),
        Column("sites", "Sites", "Residues and termini, with the number of spectra", width=30, pattern=_SITES),
        Column(
            "share_unmodified",
            "Unmodified",
            "Fraction of the peptides that were also found without a shift",
            "percent",
            10,
            unit="%",
            saved=".4f",
            is_nullable=True,
        ),
        Column("decoys", "Decoys", "Number of decoys accepted with them", "integer", 6),
        Column(
            "kind",
            "Kind",
            "Group for error rates: named (a usual shift), end (another end of the peptide) or unnamed (any other)",
            width=8,
            is_shown=False,
            pattern="none|named|end|unnamed",
        ),
    ),
    shown="name mass psms peptides sites share_unmodified decoys kind",
    links="name",
    saved="name mass psms peptides sites share_unmodified decoys kind",
)

TABLES = (MODIFICATIONS, SHIFTED_PSMS, PROTEINS_OF_SHIFTED)
"""Shown tables, from modifications to PSMs and proteins."""
STORED = (PEPTIDES, SPECTRA, FEATURES, READING_FRAMES)
"""Further stored tables."""
