"""Exports of a finished run: clusters, consensus spectra, or explained spectra."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from proteoscope.engine.clustering.results import write_consensus_file
from proteoscope.engine.clustering.tables import CONSENSUS, EXPLAINED, MEMBERS
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.consensus_library import members_of_run, write_members
from proteoscope.engine.project import Project
from proteoscope.engine.results.columns import Table
from proteoscope.engine.results.reader import read_stored, stored_table
from proteoscope.engine.results.separated import ROUNDED, report_rated, write_separated

__all__ = ["export_clusters", "export_consensus", "export_explained", "export_explained_library"]


def export_clusters(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Export the clusters of a run (see `proteoscope.engine.entry.Search.export`)."""
    return _export_table(project, request, progress, MEMBERS)


def export_consensus(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Export the consensus spectra of a run as MGF (see `proteoscope.engine.entry.Search.export`)."""
    members = read_stored(project, request.run_id, MEMBERS, ("cluster", "title", "is_consensus"))
    columns = ("cluster", "precursor_mz", "charge", "mz", "intensity")
    with stored_table(project, request.run_id, CONSENSUS, columns) as source:
        consensus = source.read(columns)
        if not np.isin(consensus["cluster"].to_numpy(), members["cluster"].to_numpy()).all():
            raise source.damaged("contains clusters without a spectrum", "cluster")
    precursor_mz = consensus["precursor_mz"].fill_null(float("nan"))
    consensus = consensus.set_column(consensus.column_names.index("precursor_mz"), "precursor_mz", precursor_mz)
    write_consensus_file(request.target, consensus, members, progress)
    return [request.target]


def export_explained(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Export the explained spectra of a run (see `proteoscope.engine.entry.Search.export`)."""
    return _export_table(project, request, progress, EXPLAINED)


def export_explained_library(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write a spectral library of the identified spectra, and of the explained spectra that have the mass of their peptide.

    Only explanations accepted at the run's false discovery rate are included.
    """
    source_run = project.record(request.run_id).get("source_run")
    source, spectra, members = members_of_run(project, str(source_run), progress)
    run = next(run for run in project.runs() if run.id == request.run_id)
    result = read_stored(project, request.run_id, EXPLAINED, ("spectrum", "peptide", "charge", "q_value", "similarity", "kind"))
    same = result.filter(
        pc.fill_null(pc.and_(pc.equal(result["kind"], "same"), pc.less_equal(result["q_value"], float(run.parameters["fdr"]))), False)
    )
    identified = members.identified
    number = {text: i for i, text in enumerate(identified.peptides)}
    peptide = np.array([number.get(text, -1) for text in same["peptide"].to_pylist()], np.int64)
    spectrum = same["spectrum"].to_numpy().astype(np.int64)
    rows = np.flatnonzero((peptide >= 0) & (spectrum < len(spectra)) & ~np.isin(spectrum, identified.spectrum))
    charge = same["charge"].to_numpy().astype(np.int64)[rows]
    first = np.full(len(identified.peptides), -1, np.int64)
    first[identified.peptide[::-1]] = np.arange(len(identified))[::-1]
    identified_row = first[peptide[rows]]
    both = replace(
        identified,
        spectrum=np.concatenate((identified.spectrum, spectrum[rows])),
        charge=np.concatenate((identified.charge, charge)),
        mass=np.concatenate((identified.mass, identified.mass[identified_row])),
        peptide=np.concatenate((identified.peptide, peptide[rows])),
    )
    joined = replace(
        members,
        identified=both,
        q_value=np.concatenate((members.q_value, same["q_value"].to_numpy()[rows])),
        score=np.concatenate(
            (members.score, np.full(len(rows), -np.inf))
        ),  # identified spectra precede explained ones with an equal q-value
        proteins=pa.concat_arrays([members.proteins, members.proteins.take(pa.array(identified_row))]),
    )
    return write_members(request, joined, spectra, source, progress)


def _export_table(project: Project, request: ExportRequest, progress: Progress, table: Table) -> list[Path]:
    result = read_stored(project, request.run_id, table, table.saved)
    progress.stage("Exporting the table", len(result))
    write_separated(request.target, result, table.saved_columns, progress, ROUNDED, spreadsheet_safe=request.spreadsheet_safe)
    if "q_value" in result.column_names:
        run = next(run for run in project.runs() if run.id == request.run_id)
        report_rated(progress, request.target, result["q_value"], float(run.parameters["fdr"]))
    return [request.target]
