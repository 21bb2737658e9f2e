"""The project on disk: a folder with a small database of runs and a folder of immutable result tables."""

from proteoscope.engine.project.database import gone_error
from proteoscope.engine.project.project import Project, is_project
from proteoscope.engine.project.records import InputRecord, LogEntry, ResultRecord, RunInput, RunRecord
from proteoscope.engine.project.row_marks import RowMark
from proteoscope.engine.project.run import Run
from proteoscope.engine.project.run_notes import RunNote

__all__ = [
    "InputRecord", "LogEntry", "Project", "ResultRecord", "RowMark", "Run", "RunInput", "RunNote", "RunRecord", "gone_error", "is_project",
]  # fmt: skip
