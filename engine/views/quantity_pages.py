"""HTML page on a quantification: samples, changed proteins, figures and methods."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.files import atomic_file, storage_errors
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.corrections import read_quantities
from proteoscope.engine.quantification.tables import CHANGES, PROTEINS, SAMPLES
from proteoscope.engine.results.columns import Table
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.html_pages import html_page, listed, result_rows, section, shown
from proteoscope.engine.views.run_account import run_account

__all__ = ["write_pages"]

_MAXIMUM_ROWS = 500
_PAGE = "quantification.html"
_SHOWN = (SAMPLES, CHANGES, PROTEINS)


def write_pages(project: Project, run_id: str, folder: Path, progress: Progress) -> list[Path]:
    """Write the page ``quantification.html`` on a finished run into a folder, and return its path.

    Raises
    ------
    InputError, StorageError
        If the run's tables are missing or damaged, or writing failed.
    Cancelled
        If the user cancelled.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    progress.stage("Writing pages", 1)
    tables = read_quantities(project, run_id)  # with manual corrections
    with open_run(project, run_id) as run:
        account = run_account(project, run.run, search_of_kind(run.run.kind))
        parts = [
            f"<h1>{shown(account.title)}</h1>",
            section("Messages", listed(run.messages) if run.messages else ""),
            *(section(table.title, _rows(tables[table.name], table)) for table in _SHOWN),
            section("Methods", f"<pre>{shown(account.methods, 20_000)}</pre>"),
        ]
        with atomic_file(folder / _PAGE) as file:
            file.write(html_page(account.title, parts).encode(errors="replace"))
    progress.advance(1)
    return [folder / _PAGE]


def _rows(rows: pa.Table, table: Table) -> str:
    """Return the first rows of a table as HTML, or '' without rows."""
    columns = [column for column in table.columns if column.is_shown and column.name in rows.column_names]
    if not len(rows):
        return ""
    return result_rows(columns, rows.select([column.name for column in columns]).slice(0, _MAXIMUM_ROWS).to_pylist(), len(rows))
