"""Exports of quantities as tables, including tables with one column per sample; see `msstats` and `mztab` for other formats."""

from pathlib import Path

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.corrections import quantity_parts
from proteoscope.engine.quantification.results import write_wide
from proteoscope.engine.quantification.tables import SITE_TABLES, TABLES, table_file_name
from proteoscope.engine.results.separated import DIGITS, write_separated

__all__ = ["export_matrix", "export_tables"]


def export_tables(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Export the tables of a run (see `proteoscope.engine.entry.Search.export`)."""
    tables = quantity_parts(project, request.run_id)
    present = [table for table in (*TABLES, *SITE_TABLES) if table.name in tables]
    for table in present:
        path = request.target / table_file_name(table)
        progress.stage(f"Exporting {table.title.lower()}")
        write_separated(path, tables[table.name], table.saved_columns, progress, DIGITS, spreadsheet_safe=request.spreadsheet_safe)
    return [request.target / table_file_name(table) for table in present]


def export_matrix(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Export tables with one column per sample (see `proteoscope.engine.entry.Search.export`)."""
    progress.stage("Exporting quantities by sample")
    return write_wide(request.target, quantity_parts(project, request.run_id), progress, spreadsheet_safe=request.spreadsheet_safe)
