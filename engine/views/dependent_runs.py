"""Runs of a project that went on from another one: those that show its peptides on structures, or quantify them."""

from __future__ import annotations

from proteoscope.engine.project import Project

__all__ = ["following_runs"]


def following_runs(project: Project, run: str, kind: str) -> list[str]:
    """Finished runs of a kind of search that went on from a run, the newest first."""
    result = []
    for candidate in reversed(project.runs()):
        if candidate.kind == kind and candidate.status == "done":
            record = project.record(candidate.id)
            sources = record.get("source_runs")
            if run in (record.get("source_run"), candidate.parameters.get("run"), *(sources if isinstance(sources, list) else ())):
                result.append(candidate.id)
    return result
