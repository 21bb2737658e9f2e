"""``proteoscope resume`` and ``runs``: the sub-commands that resume a stopped run and list the runs of a project."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proteoscope import engine
from proteoscope.engine import command_line
from proteoscope.engine import project as project_package
from proteoscope.engine.command_line.terminal import command_progress, show_result
from proteoscope.engine.errors import InputError

if TYPE_CHECKING:
    from proteoscope.engine.project import RunRecord

__all__ = ["add_resume", "add_runs"]

_EPILOG = """
A run that is stopped or killed after its first seconds can be resumed from its checkpoint, which is stored in your cache until the run
ends. The files, the parameters and the version of the program must be the same; another device or number of threads gives the same results.
"""


def add_resume(commands: Any) -> None:
    """Add the sub-command ``resume`` to argparse's sub-parsers `commands`."""
    parser = commands.add_parser("resume", help="resume a stopped run", epilog=_EPILOG)
    parser.add_argument("project", metavar="DIR", help="project folder")
    parser.add_argument("--run", default="", metavar="ID", help="run to resume (default: the newest that can be resumed)")
    parser.add_argument("--device", default="", metavar="auto|cpu|cuda|cuda:N|all", help="device (default: as when the run started)")
    parser.add_argument(
        "--threads", type=command_line.search.thread_count, metavar="N", help="CPU threads (default: as when the run started)"
    )
    parser.set_defaults(command=_resume)


def add_runs(commands: Any) -> None:
    """Add the sub-command ``runs`` to argparse's sub-parsers `commands`."""
    parser = commands.add_parser("runs", help="list the runs of a project, and which can be resumed")
    parser.add_argument("project", metavar="DIR", help="project folder")
    parser.add_argument(
        "--delete",
        default="",
        metavar="ID",
        help="permanently remove a run that has ended, with its results and checkpoint",
    )
    parser.set_defaults(command=_runs)


def _resume(options: argparse.Namespace) -> None:
    project = project_package.Project.open(options.project)
    stopped = engine.resumption.stopped_run(project, options.run)
    search = engine.searches.search_of_kind(stopped.kind)
    if stopped.folder.is_dir():
        os.chdir(stopped.folder)  # paths in the request are relative to this folder
    request = replace(stopped.request(search, options.device, options.threads), command=("proteoscope", *options.command_line))
    if request.device != "cpu":
        command_line.search.begin_gpus(request.device)
    with command_progress(options) as progress:
        if lost := stopped.lost_outputs(search):
            progress.message(lost)
        summary = search.run(request, progress)
    out = None if request.out is None else str(request.out)
    show_result(options, summary.record(), command_line.search.summary_lines(search, summary, out))


def _runs(options: argparse.Namespace) -> None:
    if not (Path(options.project)).is_dir():
        raise InputError(options.project, "is not a folder", remedy="Give the folder of a project")
    project = project_package.Project.open(options.project)
    if options.delete:
        project.delete_run(options.delete)
        project.remove_deleted([options.delete])
        show_result(options, {"deleted": options.delete}, [f"{options.delete} is deleted"])
        return
    runs, resumable = project.runs(), project.resumable()
    titles = {run.id: project.note(run.id).title for run in runs}
    rows = [
        {
            "id": run.id,
            "kind": run.kind,
            "title": titles[run.id],
            "status": run.status,
            "can_be_resumed": run.id in resumable,
            "started": run.started.isoformat(),
            "finished": None if run.finished is None else run.finished.isoformat(),
            "device": run.device,
            "version": run.version,
            "message": run.message,
        }
        for run in runs
    ]
    show_result(options, rows, _run_lines(runs, titles, resumable))
    with command_progress(options, shows_stages=False) as progress:
        for problem in project.problems:
            progress.message(problem, "warning")


def _run_lines(runs: list[RunRecord], titles: Mapping[str, str], resumable: frozenset[str]) -> Iterator[str]:
    width = max((len(run.id) for run in runs), default=0)
    for run in runs:
        state = "can be resumed" if run.id in resumable else run.status
        reason = engine.resumption.missing_checkpoint(run, resumable)
        texts = "; ".join(filter(None, (titles[run.id], run.message, reason)))
        yield f"{run.id:<{width}}  {run.started.astimezone():%Y-%m-%d %H:%M}  {state:<14}  {texts}"
