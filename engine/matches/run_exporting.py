"""Export of the matches of a finished run of a project."""

from dataclasses import replace
from pathlib import Path

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.pass_records import engine_of_run, passes_of_run
from proteoscope.engine.matches.site_columns import SITE_TABLES
from proteoscope.engine.matches.writers.description import SearchDescription
from proteoscope.engine.matches.writers.tables import OPTIONAL_TABLES, IdentificationTables, MatchesSource, MatchesWriter
from proteoscope.engine.matches.writers.tsv import write_tables
from proteoscope.engine.project import Project
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.results.separated import DIGITS, write_separated
from proteoscope.engine.version import VERSION

__all__ = ["export_matches", "export_sites", "export_tables"]

_TABLES = ("psms", "peptides", "proteins")


def export_matches(write: MatchesWriter, project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the matches of a run in a format of `proteoscope.engine.matches.exports`.

    See `proteoscope.engine.entry.Search.export` for the parameters.
    """
    run_id, inputs = request.run_id, project.inputs(request.run_id)
    paths = [project.table(name, run_id) for name in _TABLES]
    for result in project.results(run_id):
        if result.name in OPTIONAL_TABLES:
            project.table(result.name, run_id)  # raises if the file is not the one that the run wrote
    tables = replace(IdentificationTables.from_folder(paths[0].parent), marks=project.row_marks(run_id, "psms"))
    run = next(run for run in project.runs() if run.id == run_id)
    spectra, databases = (tuple(str(source.path) for source in inputs if source.kind == kind) for kind in ("spectra", "database"))
    search = SearchDescription(run.parameters, spectra, databases, VERSION, passes_of_run(project, run_id), engine_of_run(project, run_id))
    return write(MatchesSource(tables, search, request.spreadsheet_safe, request.accepted_only), request.target, progress)


def export_tables(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the tables of PSMs, peptides, protein groups and, if the run localised modifications, sites.

    See `proteoscope.engine.entry.Search.export`. With `accepted_only`, decoy residues are left out.
    """
    return [*export_matches(write_tables, project, request, progress), *export_sites(project, request, progress)]


def export_sites(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the tables of sites that the run has to a folder; with `accepted_only`, decoy residues are left out."""
    written, stored = [], {result.name for result in project.results(request.run_id)}
    for table in SITE_TABLES:
        if table.name not in stored:
            continue
        rows, out = read_stored(project, request.run_id, table, table.saved), request.target / f"{table.name}.tsv"
        if request.accepted_only and "is_decoy" in table.saved:
            rows = rows.filter(pa.compute.invert(rows["is_decoy"]))
        write_separated(out, rows, table.saved_columns, progress, DIGITS, spreadsheet_safe=request.spreadsheet_safe)
        written.append(out)
    return written
