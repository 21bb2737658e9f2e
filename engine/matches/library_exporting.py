"""Export the identified spectra of a finished run as a spectral library."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.threads import available_threads
from proteoscope.engine.formats.libraries.writing import write_library
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.consensus_library import Members, consensus_entries, read_members
from proteoscope.engine.matches.identified_spectra import read_identified
from proteoscope.engine.matches.source_run import SourceRun, identified_run
from proteoscope.engine.project import Project
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.ion_series import SpectrumSeries
from proteoscope.engine.spectra.tables import read_spectra_table

__all__ = ["export_library", "members_of_run", "write_members"]

_USUAL_FDR = 0.01


def export_library(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the spectra that a run identified, up to its false discovery rate, as a library; the path.

    Raises
    ------
    ParameterError : something that is needed would be written over.
    InputError : the run has no stored peaks, or identified nothing. StorageError : the disk refused, or a table is damaged.
    Cancelled : the user asked to stop.
    """
    source, spectra, members = members_of_run(project, request.run_id, progress)
    if not len(members.identified):
        raise InputError(
            source.psms,
            f"run {source.run} has no PSM up to a q-value of {_rate(source):g}",
            remedy="Export a run that identified something, or search again with another fdr",
        )
    return write_members(project, request, members, spectra, source, progress)


def members_of_run(project: Project, run: str, progress: Progress) -> tuple[SourceRun, Spectra, Members]:
    """A run, its spectra, and those of them that it identified up to its false discovery rate."""
    # It is this run that is meant, also where others do not go on from runs of its kind.
    source = identified_run(project.folder, run, {one.kind for one in project.runs() if one.id == run})
    progress.stage("Reading the spectra of the run")
    spectra = read_spectra_table(source.spectra)
    progress.check()
    identified = read_identified(source.psms, len(spectra), _rate(source))
    return source, spectra, read_members(source.psms, identified, len(spectra))


def _rate(source: SourceRun) -> float:
    return float(source.parameters.get("fdr", _USUAL_FDR))


def write_members(
    project: Project, request: ExportRequest, members: Members, spectra: Spectra, source: SourceRun, progress: Progress
) -> list[Path]:
    """Write identified spectra as a library; the path."""
    resources = Resources(available_threads(), progress=progress)
    series = SpectrumSeries.of(str(source.parameters.get("ion_series", BY_ACTIVATION)), spectra.activation)
    n, pieces = consensus_entries(members, spectra, series, source.fragment_tolerance, request.consensus, resources)
    write_library(request.target, pieces, request.format, progress, total=n, threads=resources.threads)
    return [request.target]
