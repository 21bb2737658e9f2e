"""Runs of a project that went on from another one: those that show its peptides on structures, or quantify them."""

from __future__ import annotations

from proteoscope.engine.project import Project

__all__ = ["following_runs"]


def following_runs(project: Project, run: str, kind: str) -> list[str]:
    """Finished runs of a kind of search that went on from a run, the newest first."""
    result = []
    for one in reversed(project.runs()):
        if one.kind == kind and one.status == "done":
            record = project.record(one.id)
            sources = record.get("source_runs")
            if run in (record.get("source_run"), one.parameters.get("run"), *(sources if isinstance(sources, list) else ())):
                result.append(one.id)
    return result
