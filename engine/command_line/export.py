"""``proteoscope export``: the sub-command that writes the results of a project for other programs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from engine.command_line.align import HIT_FORMATS
from engine.command_line.output import STANDARD_OUTPUT, output_file, output_name
from engine.command_line.terminal import printable, say
from engine.errors import ParameterError
from engine.jobs.progress import Progress

if TYPE_CHECKING:
    from engine.project import Project, RunRecord

__all__ = ["add_export"]

_KINDS = {"identify": ("identification", ("tsv", "mzid", "pepxml", "pin")), "align": ("sequence search", HIT_FORMATS)}
_MOST_PROBLEMS = 3  # of a damaged project that are told
_TABLES = ("psms", "peptides", "proteins")
_EPILOG = """
Of an identification: tsv (a folder with three tables), mzid (mzIdentML), pepxml, pin (Percolator, mokapot). Of a sequence search, as
proteoscope align writes them: tsv (a file), blast6, sam, fasta, clustal, html.
"""


def add_export(commands: Any, interruptible: Callable[[Progress], AbstractContextManager[None]]) -> None:
    """Add ``export`` to the sub-commands.

    Parameters
    ----------
    commands : argparse's sub-parsers. interruptible : a context in which Ctrl-C cancels a progress.
    """
    parser = commands.add_parser("export", help="write the results of a project for other programs", epilog=_EPILOG)
    parser.add_argument("project", metavar="DIR", help="project folder")
    parser.add_argument("--format", required=True, choices=tuple(dict.fromkeys(name for _, formats in _KINDS.values() for name in formats)))
    parser.add_argument(
        "--out", required=True, type=output_name, metavar="PATH",
        help="a folder for the tsv of an identification, else a file, or - for standard output",
    )  # fmt: skip
    parser.add_argument(
        "--spreadsheet-safe", action="store_true",
        help="in tsv, put an apostrophe before each text that begins with =, +, - or @, which a spreadsheet would take for a formula;"
        " without it, and in every other format, texts stay as they are",
    )  # fmt: skip
    parser.add_argument("--run", metavar="ID", help="a run of the project; the newest that can have the format when not given")
    parser.set_defaults(command=lambda options: _export(options, interruptible))


def _export(options: argparse.Namespace, interruptible: Callable[[Progress], AbstractContextManager[None]]) -> None:
    from engine.project import Project

    if options.spreadsheet_safe and options.format != "tsv":
        raise ParameterError("--spreadsheet-safe is for --format tsv")
    project = Project.open(options.project)
    for problem in project.problems[:_MOST_PROBLEMS]:
        print(f"proteoscope: {printable(problem)}", file=sys.stderr)
    progress = Progress()
    run = _run(project, options)
    if run.kind == "align":
        from engine.sequence_search.exporting import export_hits

        with output_file(options.out) as path, interruptible(progress):
            export_hits(project, run.id, options.format, path, progress, spreadsheet_safe=options.spreadsheet_safe)
        written = [path]
    else:
        written = _export_identification(project, run, options, progress, interruptible)
    if options.out != STANDARD_OUTPUT:
        for path in written:
            say(str(path))


def _export_identification(
    project: Project,
    run: RunRecord,
    options: argparse.Namespace,
    progress: Progress,
    interruptible: Callable[[Progress], AbstractContextManager[None]],
) -> list:
    from engine.matches.exporting import export
    from engine.project.outputs import check_outputs
    from engine.version import VERSION

    if options.format == "tsv" and options.out == STANDARD_OUTPUT:
        raise ParameterError("the tables of an identification are three; give --out a folder")
    inputs = project.inputs(run.id)
    folder = project.table("psms", run.id).parent
    for name in _TABLES[1:]:
        project.table(name, run.id)
    with output_file(options.out) as path, interruptible(progress):
        outputs = [path / f"{name}.tsv" for name in _TABLES] if options.format == "tsv" else [path]
        check_outputs(outputs, [one.path for one in inputs], project.folder)
        return export(
            folder, options.format, path, run.parameters, progress,
            spectra=[str(one.path) for one in inputs if one.kind == "spectra"],
            databases=[str(one.path) for one in inputs if one.kind == "database"],
            version=VERSION, spreadsheet_safe=options.spreadsheet_safe,
        )  # fmt: skip


def _run(project: Project, options: argparse.Namespace) -> RunRecord:
    """The run to export: the one wished for, or the last that can have the format."""
    runs = [run for run in project.runs() if run.status == "done" and run.kind in _KINDS and options.run in (None, run.id)]
    fitting = [run for run in runs if options.format in _KINDS[run.kind][1]]
    if fitting:
        return fitting[-1]
    if runs:
        kind, formats = _KINDS[runs[-1].kind]
        raise ParameterError(
            f"run {runs[-1].id} is {_with_article(kind)}, which has no format {options.format}; expected one of {', '.join(formats)}"
        )
    kinds = " or ".join(kind for kind, formats in _KINDS.values() if options.format in formats)
    raise ParameterError(f"the project {options.project} has no finished {kinds}" + (f" '{options.run}'" if options.run else ""))


def _with_article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
