"""Export of matches, as from a run of a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.exports import PLACES_ON_GENOMES, WRITERS
from proteoscope.engine.matches.writers.description import SearchDescription
from proteoscope.engine.matches.writers.tables import IdentificationTables, MatchesSource

FORMATS = tuple(WRITERS)
OF_GENOMES = tuple(export.name for export in PLACES_ON_GENOMES)


def export(
    tables: Path | IdentificationTables,
    format: str,
    out: Path,
    parameters: Any = None,
    progress: Progress | None = None,
    *,
    spreadsheet_safe: bool = False,
    accepted_only: bool = False,
    **search: Any,
) -> list[Path]:
    """Write tables, or the tables of a folder, in a format and return the paths."""
    tables = tables if isinstance(tables, IdentificationTables) else IdentificationTables.from_folder(tables)
    if "passes" in search:
        search["done"] = search.pop("passes")
    search = {name: tuple(map(str, value)) if name in ("spectra", "databases") else value for name, value in search.items()}
    source = MatchesSource(tables, SearchDescription(parameters or {}, **search), spreadsheet_safe, accepted_only)
    return WRITERS[format]()(source, Path(out), progress or Progress())
