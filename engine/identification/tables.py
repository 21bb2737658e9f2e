"""The result tables of an identification."""

from __future__ import annotations

from engine.matches.columns import PEPTIDES, PROTEINS, PSMS
from engine.spectra.tables import SPECTRA

__all__ = ["STORED", "TABLES"]

TABLES = (PROTEINS, PEPTIDES, PSMS)
"""From the group to its peptides and their PSMs."""
STORED = (SPECTRA,)
"""Further tables that a run keeps."""
