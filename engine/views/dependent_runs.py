"""Runs that are based on another run of the project, such as quantifications of an identification."""

from proteoscope.engine.project import Project

__all__ = ["runs_based_on"]


def runs_based_on(project: Project, run: str, kind: str) -> list[str]:
    """Return the ids of the finished runs of kind `kind` that are based on the run with the id `run`, newest first."""
    result = []
    for candidate in reversed(project.runs()):
        if candidate.kind == kind and candidate.status == "done":
            record = project.record(candidate.id)
            sources = record.get("source_runs")
            if run in (record.get("source_run"), candidate.parameters.get("run"), *(sources if isinstance(sources, list) else ())):
                result.append(candidate.id)
    return result
