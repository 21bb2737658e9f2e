"""Export of the matches of a finished run of a project."""

from dataclasses import replace
from pathlib import Path

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.columns import READING_FRAMES
from proteoscope.engine.matches.pass_records import engine_of_run, passes_of_run
from proteoscope.engine.matches.writers.description import SearchDescription
from proteoscope.engine.matches.writers.tables import IdentificationTables, MatchesSource, MatchesWriter
from proteoscope.engine.project import Project
from proteoscope.engine.version import VERSION

__all__ = ["export_matches"]

_TABLES = ("psms", "peptides", "proteins")


def export_matches(write: MatchesWriter, project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the matches of a run in a format of `proteoscope.engine.matches.exports`.

    See `proteoscope.engine.entry.Search.export` for the parameters.
    """
    run_id, inputs = request.run_id, project.inputs(request.run_id)
    paths = [project.table(name, run_id) for name in _TABLES]
    if any(result.name == READING_FRAMES.name for result in project.results(run_id)):
        project.table(READING_FRAMES.name, run_id)  # raises if the file is not the one that the run wrote
    tables = replace(IdentificationTables.from_folder(paths[0].parent), marks=project.row_marks(run_id, "psms"))
    run = next(run for run in project.runs() if run.id == run_id)
    spectra, databases = (tuple(str(source.path) for source in inputs if source.kind == kind) for kind in ("spectra", "database"))
    search = SearchDescription(run.parameters, spectra, databases, VERSION, passes_of_run(project, run_id), engine_of_run(project, run_id))
    return write(MatchesSource(tables, search, request.spreadsheet_safe, request.accepted_only), request.target, progress)
