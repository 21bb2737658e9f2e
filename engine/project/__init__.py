"""The project on disk: a folder with a small database of runs and a folder of immutable result tables."""

from engine.project.database import gone_error
from engine.project.project import Project, is_project
from engine.project.records import InputRecord, LogEntry, ResultRecord, RunInput, RunRecord
from engine.project.row_marks import RowMark
from engine.project.run import Run
from engine.project.run_notes import RunNote

__all__ = [
    "InputRecord", "LogEntry", "Project", "ResultRecord", "RowMark", "Run", "RunInput", "RunNote", "RunRecord", "gone_error", "is_project",
]  # fmt: skip
