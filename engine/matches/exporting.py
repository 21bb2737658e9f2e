"""Export an identification to the files that other programs read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.search_passes import SearchPass
from proteoscope.engine.matches.writers.description import SearchDescription
from proteoscope.engine.matches.writers.genome import write_bed, write_gff3
from proteoscope.engine.matches.writers.mzidentml import write_mzidentml
from proteoscope.engine.matches.writers.pepxml import write_pepxml
from proteoscope.engine.matches.writers.pin import write_pin
from proteoscope.engine.matches.writers.tables import IdentificationTables, database
from proteoscope.engine.matches.writers.tsv import TABLES, write_table

__all__ = ["FORMATS", "OF_GENOMES", "ExportFormat", "export"]

ExportFormat = Literal["tsv", "mzid", "pepxml", "pin", "gff3", "bed"]
OF_GENOMES = ("gff3", "bed")
"""Formats of places on nucleotides, which only runs that translated them have."""
_USUAL_FDR = 0.01
FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)


def export(
    tables: str | Path | IdentificationTables,
    format: str,
    out: str | Path,
    parameters: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    *,
    spectra: Sequence[str | Path] = (),
    databases: Sequence[str | Path] = (),
    version: str = "",
    passes: Sequence[SearchPass] = (),
    spreadsheet_safe: bool = False,
    accepted_only: bool = False,
    engine: str = "",
) -> list[Path]:
    """Write an identification in one format; the paths of what was written.

    Each file appears whole or not at all, and memory does not grow with the number of PSMs. It takes twelve arguments, so that a script
    can say in one call what it has; most formats need three.

    Parameters
    ----------
    tables : a run's folder with ``psms.parquet``, ``peptides.parquet`` and ``proteins.parquet``, or the tables themselves.
    format : ``tsv`` (three tables), ``mzid`` (mzIdentML 1.2), ``pepxml``, ``pin`` (Percolator, mokapot), ``gff3`` or ``bed`` (places of
        peptides on nucleotides that were translated; of a folder with ``reading_frames.parquet``).
    out : a folder for ``tsv``; the file for the others. Folders are made where they are missing.
    parameters : of the search, by name; see `SearchDescription`. ``mzid`` and ``pepxml`` tell them.
    progress : told of the stages, and asked whether the user wants to stop.
    spectra, databases : the files that were searched; `version` : the program's. passes : as they were done, where that is known.
    spreadsheet_safe : of ``tsv``: an apostrophe stands before texts that a spreadsheet would take for formulas.
    accepted_only : of ``tsv``: only targets that are accepted at the false discovery rate of `parameters`.
    engine : of matches that were imported, the search engine that found them; ``mzid`` and ``pepxml`` name it, and the program as what
        converted them.

    Raises
    ------
    ParameterError : there is no such format, or a parameter cannot be understood.
    InputError : the tables are missing or are not an identification's.
    StorageError : the disk refused.
    """
    if format not in FORMATS:
        raise ParameterError(f"There is no export format {format!r}; expected one of {', '.join(FORMATS)}")
    out = Path(out)
    if not isinstance(tables, IdentificationTables):
        tables = IdentificationTables.of_folder(tables)
    search = SearchDescription(parameters or {}, tuple(map(str, spectra)), tuple(map(str, databases)), version, passes, engine)
    if format == "tsv":
        fdr = float(search.parameters.get("fdr", _USUAL_FDR))
        for table in TABLES:
            write_table(
                tables, table, out / f"{table}.tsv", progress, fdr=fdr, accepted_only=accepted_only, spreadsheet_safe=spreadsheet_safe
            )
        return [out / f"{table}.tsv" for table in TABLES]
    if format in OF_GENOMES and tables.reading_frames is None:
        remedy = "Search a database of nucleotides with translation=six-frame"
        raise ParameterError(f"{format}: the run translated no nucleotides on which peptides could have places. {remedy}.")
    with database(tables, progress, is_whole=True) as connection:
        if format == "mzid":
            write_mzidentml(connection, out, search, progress)
        elif format == "pepxml":
            write_pepxml(connection, out, search, progress)
        elif format in OF_GENOMES:
            write = write_gff3 if format == "gff3" else write_bed
            write(connection, out, float(search.parameters.get("fdr", _USUAL_FDR)), progress)
        else:
            write_pin(connection, out, progress)
    return [out]
