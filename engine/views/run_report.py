"""Self-contained HTML report of a finished run: counts with intervals, figures, tables, parameters and methods.

All values are escaped, since names may be untrusted. The page has no scripts or external addresses, and its length is bounded.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from proteoscope.engine.entry import Search
from proteoscope.engine.files import atomic_file, storage_errors
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project, RunRecord
from proteoscope.engine.results.columns import Table
from proteoscope.engine.results.counts import Count
from proteoscope.engine.views.conditions import Condition, accepted_at, compares, is_finite
from proteoscope.engine.views.drawings import svg
from proteoscope.engine.views.figure_layout import lay_out
from proteoscope.engine.views.finished_run import FinishedRun, open_finished_run
from proteoscope.engine.views.histograms import Histogram, bin_counts, bin_edges, histogram_figure
from proteoscope.engine.views.html_pages import html_page, listed, result_rows, rows_table, scrolled_table, section, shown
from proteoscope.engine.views.identification import mass_error_histogram, score_histogram
from proteoscope.engine.views.run_account import RunAccount, run_account
from proteoscope.engine.views.tables import TableSource

__all__ = ["report_html", "write_report", "write_report_and_pages"]

MAXIMUM_ROWS = 100
"""Maximum number of rows per table."""
_HISTOGRAM = (400.0, 210.0)
"""Width and height of a histogram, points."""
_MAXIMUM_FILES, _MAXIMUM_LOG = 200, 200
_FIGURED = ("score", "bit_score", "tm_score", "similarity", "distance", "identity")
"""Columns for the histogram of a table without PSMs: the first of these that is present, otherwise the first numeric column."""


def write_report(project: Project, run: RunRecord, search: Search, folder: Path, progress: Progress) -> list[Path]:
    """Write the report ``RUN.html`` and the methods paragraph ``RUN-methods.txt`` of a finished run, and return the paths.

    Raises
    ------
    InputError, StorageError
        If the run's tables are missing or damaged, or writing failed.
    """
    progress.stage("Opening the results")
    account = run_account(project, run, search)
    with open_finished_run(project, search, run.id) as finished:
        progress.stage("Drawing")
        page = report_html(account, finished, search, progress)
    progress.stage("Writing")
    contents = {f"{run.id}.html": page, f"{run.id}-methods.txt": account.methods + "\n"}
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        with atomic_file(folder / name) as file:
            file.write(text.encode(errors="replace"))
    return [folder / name for name in contents]


def write_report_and_pages(
    project: Project, run: RunRecord, search: Search, folder: Path, progress: Progress
) -> tuple[list[Path], list[Path]]:
    """Write the report of a run and, into ``RUN-pages``, the pages of the search; return the paths of each, the index page last.

    Raises the same errors as `write_report`.
    """
    return write_report(project, run, search, folder, progress), search.write_pages(project, run.id, folder / f"{run.id}-pages", progress)


def report_html(account: RunAccount, finished: FinishedRun, search: Search, progress: Progress) -> str:
    """Return the report as HTML."""
    parts = [
        f"<h1>{shown(account.title)}</h1><p>{shown(search.name.capitalize())} · {shown(account.run.message)}</p>",
        f'<div class="note">{shown(account.note.note, 20_000)}</div>' if account.note.note.strip() else "",
        section("Results", _counts_table(account.counts)),
        section("Messages", _messages(account)) if any(message.level != "info" for message in account.messages) else "",
        section("Figures", "".join(_figures(finished, search, progress))),
    ]
    for described in search.result_tables:
        progress.check()
        parts.append(section(described.title, _result_table(finished.tables.source(described.name), described, finished)))
    parts += [
        section("Methods", f"<pre>{shown(account.methods, 20_000)}</pre>"),
        section("Settings", listed(account.passes)) if account.passes else "",
        section("Files", _files(account)),
        section("Parameters", _parameters(account)),
        section("Run", rows_table(("", ""), account.facts) + _steps(account)),
        section("Log", _log(account)),
    ]
    return html_page(account.title, parts)


def _counts_table(counts: Sequence[Count]) -> str:
    rows = []
    for count in counts:
        sure = "" if count.certainty is None else count.certainty.text
        rows.append(f"<tr><td>{count.number:,}</td><td>{shown(count.noun)}</td><td>{shown(sure)}</td></tr>")
    return f'<table class="counts">{"".join(rows)}</table>' if rows else ""


def _messages(account: RunAccount) -> str:
    lines = [f'<li class="{message.level}">{shown(message.text, 1000)}</li>' for message in account.messages if message.level != "info"]
    return f"<ul>{''.join(lines)}</ul>"


def _figures(run: FinishedRun, search: Search, progress: Progress) -> Iterator[str]:
    for histogram in _histograms(run, search):
        progress.check()
        if not histogram.is_empty:
            yield f"<figure>{svg(lay_out(histogram_figure(histogram), _HISTOGRAM)).decode()}</figure>"


def _histograms(run: FinishedRun, search: Search) -> Iterator[Histogram]:
    psms = run.tables.source("psms") if "psms" in run.tables.paths else None
    if psms is not None and {"score", "q_value", "mass_error_ppm", "rank", "is_decoy"} <= psms.types.keys():
        yield score_histogram(psms, run.fdr)
        yield mass_error_histogram(psms, run.fdr)
        return
    for described in search.result_tables:
        source = run.tables.source(described.name)
        numbers = [
            column for column in described.columns if column.kind in ("number", "percent", "integer") and column.name in source.types
        ]
        column = min(numbers, key=lambda number: _FIGURED.index(number.name) if number.name in _FIGURED else len(_FIGURED), default=None)
        if column is not None and source.total:
            finite: list[Condition] = [is_finite(column.name)] if source.types[column.name] in ("DOUBLE", "FLOAT") else []
            edges = bin_edges(source, column.name, finite)
            counts = bin_counts(source, column.name, finite, edges)
            plural = described.title
            yield Histogram(f"{column.title} ({plural})", column.header, plural, column.in_unit(edges), ((plural, counts),), None, "")


def _result_table(source: TableSource, described: Table, run: FinishedRun) -> str:
    """Return the first rows of a table as HTML: only targets and, if there are q-values, only accepted rows."""
    conditions: list[Condition] = []
    if "is_decoy" in source.types:
        conditions.append(compares("is_decoy", "=", False))
    if "q_value" in source.types and "fdr" in run.parameters:
        conditions.append(accepted_at(run.fdr, described.name))
    columns = [column for column in described.columns if column.is_shown and column.name in source.types]
    n_rows = source.count(conditions)
    values = source.values(source.rows(conditions, limit=MAXIMUM_ROWS), [column.name for column in columns]).to_pylist()
    return result_rows(columns, values, n_rows)


def _files(account: RunAccount) -> str:
    rows = [(file.kind, file.path.name, f"{file.size:,}", file.sha256) for file in account.files[:_MAXIMUM_FILES]]
    more = f"<p>{account.n_files - len(rows):,} more files are not listed.</p>" if account.n_files > len(rows) else ""
    return rows_table(("What", "File", "Bytes", "SHA-256"), rows) + more


def _parameters(account: RunAccount) -> str:
    rows = [
        f"<tr{' class=changed' if parameter.is_changed else ''}><td>{shown(parameter.group)}</td>"
        f'<td title="{shown(parameter.help)}">{shown(parameter.title)}</td>'
        f"<td>{shown(parameter.value, 500)} {shown(parameter.unit)}</td>"
        f"<td>{shown(parameter.usual, 500) if parameter.is_changed else ''}</td></tr>"
        for parameter in account.parameters
    ]
    head = f"<tr><th>Group</th><th>Parameter</th><th>Value</th><th>In {shown(account.preset.name or 'the defaults')}</th></tr>"
    return f"<p>{shown(account.preset.text)}</p>{scrolled_table(head + ''.join(rows))}"


def _steps(account: RunAccount) -> str:
    if not account.steps:
        return ""
    rows = [(name, f"{seconds:.2f}", f"{peak:,.0f}") for name, seconds, peak in account.steps]
    return rows_table(("Step", "Seconds", "Peak memory (MB)"), rows)


def _log(account: RunAccount) -> str:
    lines = [f'<li class="{entry.level}">{entry.time:%H:%M:%S} {shown(entry.text, 1000)}</li>' for entry in account.log[-_MAXIMUM_LOG:]]
    return f"<ul>{''.join(lines)}</ul>" if lines else ""
