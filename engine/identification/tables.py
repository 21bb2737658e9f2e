"""Result tables of an identification."""

from __future__ import annotations

from proteoscope.engine.formats.feature_tables import FEATURES
from proteoscope.engine.matches.columns import PEPTIDES, PROTEINS, PSMS, READING_FRAMES
from proteoscope.engine.spectra.tables import SPECTRA

__all__ = ["STORED", "TABLES"]

TABLES = (PROTEINS, PEPTIDES, PSMS)
"""Shown tables, from protein groups to peptides and PSMs."""
STORED = (SPECTRA, FEATURES, READING_FRAMES)
"""Further stored tables."""
