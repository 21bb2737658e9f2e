"""Mapping of identified peptides onto structures: a further run of a project, in the steps read, index, plan, score and report."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.evidence.homologues import write_homologues
from proteoscope.engine.evidence.identified_peptides import (
    IdentifiedPeptides,
    ProteinEntry,
    SourceTables,
    identified_peptides,
    protein_entries,
    source_tables,
)
from proteoscope.engine.evidence.parameters import EvidenceParameters
from proteoscope.engine.evidence.peptide_positions import proven_proteins
from proteoscope.engine.evidence.remote_chains import near_chains
from proteoscope.engine.evidence.results import Evidence, burial_names, collect_residue_evidence, evidence_tables, write_evidence
from proteoscope.engine.evidence.summary import EvidenceSummary
from proteoscope.engine.evidence.tables import TABLES, text_file_name
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.search_run import RunSpec, SearchRun, project_run
from proteoscope.engine.sequence_search.inputs import packed_database
from proteoscope.engine.structure_search.structures import (
    ChainFiles,
    ChainInput,
    DescribedChains,
    chain_input,
    described,
    open_chains,
    open_files,
)

__all__ = ["find_evidence"]


def find_evidence(request: SearchRequest, progress: Progress | None = None) -> EvidenceSummary:
    """Map the peptides of a run onto their proteins, and the proteins onto the most similar structures; add a run to the project.

    Parameters
    ----------
    request : SearchRequest
        Inputs ``project`` (folder of a project with an identification), ``structures`` (a structure database, or files, folders and lists
        of files), and optionally ``homologues`` (sequence files), with `EvidenceParameters`. The option ``report`` is a folder for pages.
    progress : Progress, optional
        Progress, which receives stages and messages.

    Returns
    -------
    EvidenceSummary

    Raises
    ------
    InputError, ParameterError, StorageError
        If there is an error that the user can correct.
    Cancelled
        If the user cancelled the search.
    """
    parameters, project = request.parameters_as(EvidenceParameters), request.files("project")[0]
    tables = source_tables(project, parameters.run)
    source = chain_input(request.inputs.get("structures", ()))

    def read(progress: Progress, threads: int) -> tuple[IdentifiedPeptides, list[ProteinEntry]]:
        progress.stage("Reading the identification")
        peptides, proteins = identified_peptides(tables, parameters.psm_fdr), protein_entries(tables.proteins, parameters)
        return peptides, proteins if parameters.proteins else proven_proteins(peptides, proteins, progress)

    with project_run(_spec(request, tables, source), read, progress) as (run, stored):
        opening = run.begin(run.resources)
        peptides, proteins = run.read()
        _check_identification(peptides, proteins, tables, project)
        with run.step("index"):
            structures, remote = _open_chains(source, parameters, run)
            homologues = packed_database(run, "homologues") if run.paths("homologues") else None
        with run.step("plan"):
            resources = opening().reporting_to(run.progress)
            run.load_writers()
        # Both record the time of scoring and reporting themselves, per batch.
        near, run.device = near_chains(proteins, structures.chains, remote, parameters, resources)
        conservation = write_homologues(proteins, homologues, parameters, stored, resources)
        with run.step("report"):
            result = collect_residue_evidence(peptides, proteins, tables, conservation, near, structures, parameters, resources)
            write_evidence(stored, evidence_tables(result, parameters.surface_exposure), request.out, run.progress)
        return _summary(result, tables, parameters, run)


def _spec(request: SearchRequest, tables: SourceTables, source: ChainInput) -> RunSpec:
    """Return the specification of the run, with the files that the run reads and writes."""
    inputs: dict[str, list[str | Path]] = {
        "project_psms": [tables.psms],
        "project_proteins": [tables.proteins],
        "project_explained": [tables.explained] if tables.explained else [],
        "project_sites": [tables.sites] if tables.sites else [],
        "structures": list(source.paths),
        "homologues": list(request.files("homologues")),
    }
    in_project = replace(request, project=request.files("project")[0])
    return RunSpec(
        "evidence",
        in_project,
        {"structures": "--structures DATABASE"},
        inputs,
        request.outputs("report"),
        are_distinct=False,
        kernels="evidence",
    )


def _check_identification(peptides: IdentifiedPeptides, proteins: list[ProteinEntry], tables: SourceTables, project: Path) -> None:
    if not len(peptides) or not proteins:
        raise InputError(
            project,
            f"run '{tables.run}' has no {'protein with a sequence' if len(peptides) else 'peptide'} up to the false discovery rate",
            remedy="Choose another run, or raise psm_fdr or protein_fdr",
        )


def _open_chains(source: ChainInput, parameters: EvidenceParameters, run: SearchRun[Any]) -> tuple[ChainFiles, DescribedChains | None]:
    """Return the chains and, if remote chains are searched, the chains with descriptors of their structure."""
    structures, folder = open_files(source, run.progress, run.threads), source.folder
    for text in structures.messages:
        run.progress.message(text, "warning")
    if not parameters.remote_chains:
        return structures, None
    # Both are ordered by length, so chains have the same indices.
    if folder is None:
        return structures, described(structures.chains, threads=run.threads)
    return structures, open_chains(folder, run.progress, run.threads)


def _summary(evidence: Evidence, tables: SourceTables, parameters: EvidenceParameters, run: SearchRun[Any]) -> EvidenceSummary:
    """Write the record of the run, and return its summary."""
    # A residue with several alternative modifications counts once.
    residues, first = np.unique(evidence.sites.residues_in(evidence.residues.offsets), return_index=True)
    placed = evidence.placed.row[~evidence.sites.is_alternative][first]
    where = burial_names(evidence.rows.exposure[placed[placed >= 0]], parameters.surface_exposure).tolist()
    proteins = {chain.near.protein for chain in evidence.mapped}
    counts = {
        "proteins": len(evidence.proteins),
        "on_structures": len(proteins),
        "chains": len(evidence.chain_names),
        "peptides": len(np.unique(evidence.peptide_positions.peptide)),
        "sites": len(residues),
        "placed_sites": int((placed >= 0).sum()),
        "homologues": int(evidence.conservation.n_of_protein.sum()),
        "remote_chains": sum(chain.near.through >= 0 for chain in evidence.mapped),
    }
    message = f"{len(proteins):,} of {len(evidence.proteins):,} proteins on structures"
    run.record(counts, message, exports=[text_file_name(table) for table in TABLES], source_run=tables.run)
    return EvidenceSummary(
        **run.summary_fields(counts),
        source_run=parameters.run or tables.run,
        n_on_surface=where.count("surface"),
        n_buried=where.count("buried"),
    )
