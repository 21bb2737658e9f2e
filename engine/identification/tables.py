"""Result tables of an identification."""

from proteoscope.engine.formats.features import FEATURES
from proteoscope.engine.matches.columns import PEPTIDES, PROTEINS, PSMS, READING_FRAMES
from proteoscope.engine.matches.site_columns import SITE_TABLES
from proteoscope.engine.results.columns import Table
from proteoscope.engine.spectra.tables import SPECTRA

__all__ = ["STORED", "TABLES"]

TABLES: tuple[Table, ...] = (PROTEINS, PEPTIDES, PSMS)
"""Tables shown in the window, from protein groups to PSMs."""
STORED: tuple[Table, ...] = (SPECTRA, FEATURES, READING_FRAMES, *SITE_TABLES)
"""Tables that are stored but not shown."""
