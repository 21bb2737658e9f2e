"""``proteoscope report``: the sub-command that writes a report of a finished run as an HTML page."""

import argparse
from pathlib import Path
from typing import Any

from proteoscope import engine
from proteoscope.engine import project as project_package
from proteoscope.engine import views
from proteoscope.engine.command_line.terminal import command_progress, show_result
from proteoscope.engine.errors import InputError
from proteoscope.engine.project.outputs import folder_name

__all__ = ["add_report"]

_DESCRIPTION = "Write a finished run as an HTML page, and how it was done as a paragraph for a paper."
_EPILOG = """
Into DIR go RUN.html, one file that needs nothing else (counts with their intervals, figures, the first rows of each table, files with
digests, parameters, messages), and RUN-methods.txt, plain text derived from the record of the run. Any kind of run has them.
"""
_MAXIMUM_PROBLEMS = 3  # number of problems of a damaged project that are listed


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
        raise InputError(project.folder, missing, remedy="See the folder results for their names")
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
