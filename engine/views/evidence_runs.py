"""Runs that show the peptides of another run on structures."""

from __future__ import annotations

from engine.views.finished_run import FinishedRun

__all__ = ["evidence_runs"]


def evidence_runs(run: FinishedRun) -> list[str]:
    """Finished runs of the project that show the peptides of this one on structures, the newest first."""
    found = []
    for one in reversed(run.project.runs()):
        if one.kind == "evidence" and one.status == "done":
            record = run.project.record(one.id)
            if run.run.id in (record.get("source_run"), one.parameters.get("run")):
                found.append(one.id)
    return found
