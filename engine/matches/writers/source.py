"""Matches that are to be written for other programs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.writers.description import SearchDescription
from proteoscope.engine.matches.writers.tables import IdentificationTables, database

if TYPE_CHECKING:
    import duckdb

__all__ = ["MatchesSource", "MatchesWriter"]


@dataclass(frozen=True)
class MatchesSource:
    """Matches that are to be written, and how.

    Attributes
    ----------
    tables : PSMs, peptides and protein groups. search : that found them.
    spreadsheet_safe : of ``tsv``: put an apostrophe before texts that a spreadsheet would take for formulas.
    accepted_only : of ``tsv``: leave out decoys and targets above the false discovery rate of the search.
    """

    tables: IdentificationTables
    search: SearchDescription = field(default_factory=SearchDescription)
    spreadsheet_safe: bool = False
    accepted_only: bool = False

    def connection(self, progress: Progress) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """Return a connection to the tables, see `proteoscope.engine.matches.writers.tables.database`."""
        return database(self.tables, progress, is_whole=True)


MatchesWriter: TypeAlias = Callable[[MatchesSource, Path, Progress], list[Path]]
"""Writes matches to a file or into a folder, and returns the paths of the files."""
