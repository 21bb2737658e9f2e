"""``proteoscope export`` and ``report``: the sub-commands that write the results of a project for other programs or as an HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proteoscope import engine
from proteoscope.engine import project as project_package
from proteoscope.engine import searches, views
from proteoscope.engine.command_line.terminal import STANDARD_OUTPUT, check_printed, command_progress, output_file, output_name, show_result
from proteoscope.engine.entry import Export, ExportRequest, Search
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.page_sizes import DPI, FIGURE_TYPES, MAXIMUM_DPI, MINIMUM_DPI, PAGE_SIZES, TWO_COLUMNS, FigureFormat, page_size
from proteoscope.engine.project.outputs import check_folder_name, folder_name

if TYPE_CHECKING:
    from proteoscope.engine.project import Project, RunRecord

__all__ = ["add_export", "add_figure_options", "add_report", "figure_format"]


def add_figure_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for file type, width and resolution of figures to the parser of a sub-command."""
    parser.add_argument("--figure-type", choices=FIGURE_TYPES, default=FIGURE_TYPES[0], help="format of figures (default: %(default)s)")
    parser.add_argument(
        "--figure-width",
        choices=[size.name for size in PAGE_SIZES],
        default=TWO_COLUMNS.name,
        help="width of figures: one column of a journal (85 mm), two columns (178 mm, default), or the figure's own",
    )
    parser.add_argument("--dpi", type=int, default=DPI, metavar="N", help="resolution of figures as PNG (default: %(default)s)")


def figure_format(options: argparse.Namespace) -> FigureFormat:
    """Return the file type, width and resolution of figures that the parsed arguments `options` contain.

    Raises
    ------
    ParameterError
        If the resolution is out of range.
    """
    if not MINIMUM_DPI <= options.dpi <= MAXIMUM_DPI:
        raise ParameterError(f"--dpi is {options.dpi!s:.24}; expected {MINIMUM_DPI} to {MAXIMUM_DPI:,}")
    return FigureFormat(options.figure_type, page_size(options.figure_width), options.dpi)


_LARGEST_FOLD_CHANGE = 100.0
_MAXIMUM_PROBLEMS = 3  # number of problems of a damaged project that are listed


def add_export(commands: Any) -> None:
    """Add the sub-command ``export`` to argparse's sub-parsers `commands`."""
    formats = list(dict.fromkeys(export.name for search in searches.SEARCHES for export in search.exports))
    parser = commands.add_parser(
        "export", help="write the results of a project for other programs", epilog=" ".join(map(_formats, searches.SEARCHES))
    )
    parser.add_argument("project", metavar="DIR", help="project folder")
    parser.add_argument("--format", required=True, choices=formats)
    parser.add_argument(
        "--out",
        required=True,
        type=output_name,
        metavar="PATH",
        help="folder for a format of several files, otherwise a file (gzipped if its name ends with .gz), or - for standard output",
    )
    parser.add_argument(
        "--spreadsheet-safe",
        action="store_true",
        help="in tsv, put an apostrophe before each text that begins with =, +, - or @, which a spreadsheet would read as a formula;"
        " without it, and in every other format, texts stay as they are",
    )
    parser.add_argument("--run", metavar="ID", help="run of the project (default: the newest that can be written in the format)")
    parser.add_argument("--query", default="", metavar="NAME", help="for searches with queries: only the hits of the query with this name")
    parser.add_argument(
        "--consensus",
        choices=("merged", "best"),
        default="merged",
        help="for spectral libraries: each entry is the mean of the spectra of a peptide and charge (default), or the best of them",
    )
    parser.add_argument(
        "--accepted-only",
        action="store_true",
        help="for --format tsv of an identification: write only targets accepted at the false discovery rate of the run",
    )
    parser.add_argument(
        "--structures",
        nargs="+",
        type=Path,
        default=[],
        metavar="PATH",
        help="when exporting evidence to structure files: structure files, or their folders, that may be read from outside the project",
    )
    add_figure_options(parser)
    parser.add_argument(
        "--q-value",
        type=float,
        metavar="Q",
        help="for figures: maximum q-value of a change (default: the false discovery rate of the run)",
    )
    parser.add_argument(
        "--fold-change", type=float, metavar="X", help="for figures: minimum absolute log2 fold change of a change (default: 0)"
    )
    parser.set_defaults(command=_export)


def _formats(search: Search) -> str:
    """Return a sentence listing the export formats of a search."""
    return f"Of {_with_article(search.name)}: {', '.join(export.name + ' (a folder)' * export.is_folder for export in search.exports)}."


def _export(options: argparse.Namespace) -> None:
    if options.spreadsheet_safe and options.format != "tsv":
        raise ParameterError("--spreadsheet-safe is for --format tsv")
    project = project_package.Project.open(options.project)
    run = _run(project, options)
    search = searches.search_of_kind(run.kind)
    export = search.exported_as(options.format)
    assert export is not None
    if export.is_folder and options.out == STANDARD_OUTPUT:
        raise ParameterError(f"the {options.format} of {_with_article(search.name)} consists of several files; give --out a folder")
    if export.is_folder:
        check_folder_name(options.out)
    if options.query and not export.has_queries:
        raise ParameterError(f"the {options.format} of {_with_article(search.name)} has no queries; leave --query out")
    if options.consensus != "merged" and not export.is_library:
        raise ParameterError(f"the {options.format} of {_with_article(search.name)} is not a spectral library; omit --consensus")
    if options.accepted_only and not export.has_acceptance:
        raise ParameterError(f"the {options.format} of {_with_article(search.name)} cannot be limited; leave --accepted-only out")
    if options.structures and export.structure_folders is None:
        raise ParameterError(f"the {options.format} of {_with_article(search.name)} reads no structures; leave --structures out")
    _check_figures(export, options)
    if options.out == STANDARD_OUTPUT:
        check_printed(options)
    with output_file(options.out) as path, command_progress(options, shows_stages=False) as progress:
        for problem in project.problems[:_MAXIMUM_PROBLEMS]:
            progress.message(problem, "warning")
        request = ExportRequest(
            run.id,
            options.format,
            path,
            options.spreadsheet_safe,
            options.query,
            options.consensus,
            options.accepted_only,
            tuple(options.structures),
            figure_format(options),
            options.q_value,
            options.fold_change or 0.0,
        )
        written = search.export(project, request, progress)
    files = [] if options.out == STANDARD_OUTPUT else list(map(str, written))
    show_result(options, {"run": run.id, "format": options.format, "files": files, "messages": progress.messages}, files)


def _check_figures(export: Export, options: argparse.Namespace) -> None:
    """Raise ParameterError if options of figures are out of range, or were given for a format without figures."""
    given = [name for name in ("q_value", "fold_change") if getattr(options, name) is not None]
    if given and not export.has_figures:
        raise ParameterError(f"the format {export.name} has no figures; leave --{given[0].replace('_', '-')} out")
    if options.q_value is not None and not 0 <= options.q_value <= 1:
        raise ParameterError(f"--q-value is {options.q_value:g}; expected 0 to 1")
    if options.fold_change is not None and not 0 <= options.fold_change <= _LARGEST_FOLD_CHANGE:
        raise ParameterError(f"--fold-change is {options.fold_change:g}; expected a log2 fold change from 0 to {_LARGEST_FOLD_CHANGE:g}")


def _run(project: Project, options: argparse.Namespace) -> RunRecord:
    """Return the requested run, or the last run whose search supports the requested format."""
    kinds = {search.kind: search for search in searches.SEARCHES}
    runs = [run for run in project.runs() if run.status == "done" and run.kind in kinds and options.run in (None, run.id)]
    fitting = [run for run in runs if kinds[run.kind].exported_as(options.format)]
    if fitting:
        return fitting[-1]
    if runs:
        search = kinds[runs[-1].kind]
        names = ", ".join(export.name for export in search.exports)
        raise ParameterError(
            f"run '{runs[-1].id}' is {_with_article(search.name)}, which has no format '{options.format}'; expected one of {names}"
        )
    kinds_named = " or ".join(search.name for search in searches.SEARCHES if search.exported_as(options.format))
    raise ParameterError(f"the project {options.project} has no finished {kinds_named}" + (f" '{options.run}'" if options.run else ""))


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


_DESCRIPTION = "Write an HTML page about a finished run, and a paragraph for a paper that describes the methods."
_EPILOG = """
The files in DIR are RUN.html, a self-contained page (counts with their intervals, figures, the first rows of each table, files with
digests, parameters, messages), and RUN-methods.txt, plain text derived from the record of the run. All kinds of runs can be reported.
"""


def add_report(commands: Any) -> None:
    """Add the sub-command ``report`` to argparse's sub-parsers `commands`."""
    parser = commands.add_parser("report", help="write a finished run as an HTML page", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("project", metavar="PROJECT", help="project folder")
    parser.add_argument("--run", metavar="ID", help="run of the project (default: the newest finished run)")
    parser.add_argument("--out", required=True, type=folder_name, metavar="DIR", help="folder for the page, created if missing")
    parser.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> None:
    project, kinds = project_package.Project.open(options.project), {search.kind: search for search in engine.searches.SEARCHES}
    done = [run for run in project.runs() if run.status == "done" and run.kind in kinds and options.run in (None, run.id)]
    if not done:
        missing = "holds no finished run" if options.run is None else f"holds no finished run '{options.run:.60}'"
        raise InputError(project.folder, missing, remedy="The folder 'results' shows the run names")
    run, folder = done[-1], Path(options.out)
    project_package.outputs.check_outputs([folder / f"{run.id}.html", folder / f"{run.id}-methods.txt"], [], project.folder)
    with command_progress(options, shows_stages=False) as progress:
        for problem in project.problems[:_MAXIMUM_PROBLEMS]:
            progress.message(problem, "warning")
        search = kinds[run.kind]
        report, pages = views.run_report.write_report_and_pages(project, run, search, folder, progress)
    lines = [*map(str, report), *([f"{pages[-1]}, with {len(pages) - 1:,} pages next to it"] if pages else [])]
    record = {"run": run.id, "files": list(map(str, [*report, *pages])), "messages": progress.messages}
    show_result(options, record, lines)
