"""Results of other search engines as runs. Its entry comes first, which makes the kind known."""

from proteoscope.engine.imported.entry import IMPORT as IMPORT
