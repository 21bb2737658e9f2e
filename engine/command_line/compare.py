"""``proteoscope compare``: the sub-command that compares finished runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proteoscope.engine import project as project_package
from proteoscope.engine import views
from proteoscope.engine.command_line.export import add_figure_options, figure_format
from proteoscope.engine.command_line.terminal import command_progress, show_result
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.project.outputs import folder_name

if TYPE_CHECKING:
    from proteoscope.engine.views.finished_run import FinishedRun
    from proteoscope.engine.views.run_comparison import RunComparison

__all__ = ["add_compare"]

_DESCRIPTION = "Compare finished runs: which spectra, peptides and proteins each run identifies, and where the runs disagree."
_EPILOG = """
All runs with PSMs, peptides and protein groups can be compared: identifications and searches for modified peptides. The files in DIR are
runs.tsv (which run is A, B, C...), parameters.tsv (parameters and databases in which the runs differ), overlaps.tsv (for each combination
of runs, the number of items that only these runs accept), counts.tsv (number of items that each run accepts at q-values up to 5 %), a table
of the spectra, PSMs, peptidoforms, peptides, protein groups and proteins that at least one run accepts, disagreements.tsv (spectra for
which two runs give different answers), and figures as SVG, PDF or PNG: UpSet plots, counts, scores of two runs, and spectra with two
answers. Isoleucine and leucine count as the same.
"""


def add_compare(commands: Any) -> None:
    """Add the sub-command ``compare`` to argparse's sub-parsers `commands`."""
    parser = commands.add_parser("compare", help="compare finished runs", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "projects", nargs="+", metavar="PROJECT", help="project folder; runs of several projects are compared with each other"
    )
    parser.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="ID",
        help="compare the run of this name in each project; may be given several times (default: all runs that can be compared)",
    )
    parser.add_argument(
        "--threshold", type=float, default=0.01, metavar="Q", help="maximum q-value of accepted items (default: %(default)s)"
    )
    parser.add_argument("--out", required=True, type=folder_name, metavar="DIR", help="folder for tables and figures, created if missing")
    parser.add_argument(
        "--mirrors", type=int, default=10, metavar="N", help="maximum number of figures of spectra with two answers (default: %(default)s)"
    )
    parser.add_argument(
        "--spreadsheet-safe",
        action="store_true",
        help="put an apostrophe before each text that begins with =, +, - or @, which a spreadsheet would read as a formula",
    )
    add_figure_options(parser)
    parser.set_defaults(command=_compare)


def _compare(options: argparse.Namespace) -> None:
    if not 0 <= options.threshold <= 1:
        raise ParameterError(f"--threshold is {options.threshold:g}; expected a q-value from 0 to 1")
    most = views.comparison_tables.MAXIMUM_MIRRORS
    if not 0 <= options.mirrors <= most:
        raise ParameterError(f"--mirrors is {options.mirrors!s:.24}; expected 0 to {most:,}")

    figures, folder = figure_format(options), Path(options.out)
    project_package.outputs.check_folder_of_outputs(folder)
    with (
        command_progress(options, shows_stages=False) as progress,
        views.run_comparison.compare_runs(_runs(options), progress) as comparison,
    ):
        project_package.outputs.check_outputs([folder / name for name in views.comparison_tables.comparison_files()], [], None)
        written = views.comparison_tables.write_comparison(
            comparison,
            folder,
            options.threshold,
            progress,
            n_mirrors=options.mirrors,
            spreadsheet_safe=options.spreadsheet_safe,
            figures=figures,
        )
        for note in comparison.notes:
            progress.message(note, "warning")
        show_result(options, _as_json(comparison, options.threshold, written), _lines(comparison, options.threshold, folder, len(written)))


def _runs(options: argparse.Namespace) -> list[FinishedRun]:
    """Open the runs that the arguments `options` select, and return them."""
    chosen = []
    for position in options.projects:
        project = project_package.Project.open(position)
        if options.run:
            done = {run.id for run in project.runs() if run.status == "done"}
            chosen += [(project, run) for run in options.run if run in done]
        else:
            chosen += [(project, run.id) for run in views.run_comparison.comparable_runs(project)]
    missing = [run for run in options.run if all(run != run_id for _, run_id in chosen)]
    if missing:
        raise InputError(
            options.projects[0], f"there is no finished run '{missing[0]:.60}'", remedy="The folder 'results' shows the run names"
        )
    views.run_comparison.check_number(len(chosen))
    opened: list[FinishedRun] = []
    try:
        for project, run in chosen:
            opened.append(views.finished_run.open_run(project, run))
    except BaseException:
        for opened_run in opened:
            opened_run.close()
        raise
    return opened


def _as_json(comparison: RunComparison, threshold: float, written: list[Path]) -> dict[str, Any]:
    runs = {
        symbol: {"run": run.run.id, "project": str(run.project.folder)}
        for symbol, run in zip(comparison.symbols, comparison.runs, strict=True)
    }
    parameters = {row.name: dict(zip(comparison.symbols, row.values, strict=True)) for row in comparison.parameters}
    overlaps = {
        level.name: [
            {"runs": [comparison.symbols[run] for run in intersection.runs], "count": intersection.count}
            for intersection in comparison.intersections(level.name, threshold)
        ]
        for level in views.run_comparison.LEVELS
    }
    return {
        "threshold": threshold,
        "runs": runs,
        "parameters": parameters,
        "overlaps": overlaps,
        "notes": comparison.notes,
        "files": [str(path) for path in written],
    }


def _lines(comparison: RunComparison, threshold: float, folder: Path, n_files: int) -> Iterator[str]:
    for symbol, label, run in zip(comparison.symbols, comparison.labels, comparison.runs, strict=True):
        yield (f"{symbol}  {label}: {run.run.message or run.run.kind}")
    yield ("Parameters that differ:" if comparison.parameters else "No parameters differ")
    for row in comparison.parameters:
        yield (f"  {row.title}: {', '.join(f'{symbol} {value}' for symbol, value in zip(comparison.symbols, row.values, strict=True))}")
    yield (f"{f'at {threshold * 100:g} % FDR':<24}" + "".join(f"{symbol:>9}" for symbol in comparison.symbols) + f"{'all':>9}{'any':>9}")
    for level in views.run_comparison.LEVELS:
        accepted = comparison.accepted_from(level.name) <= threshold
        counts = [*accepted.sum(0).tolist(), int(accepted.all(1).sum()), int(accepted.any(1).sum())]
        yield (f"{level.plural:<24}" + "".join(f"{count:>9,}" for count in counts))
    yield (f"{n_files} files: {folder}")
