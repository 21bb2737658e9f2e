"""Tie identified peptides to structures: read -> index -> plan -> score -> report, from a project to a run of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.entry import SearchRequest
from engine.errors import InputError
from engine.evidence.chain_files import open_structures, structure_source
from engine.evidence.identified_peptides import IdentifiedPeptides, ProteinEntry, identified_peptides, protein_entries, source_tables
from engine.evidence.mapped_residues import mapped_chains
from engine.evidence.nearest_chains import nearest_chains
from engine.evidence.parameters import EvidenceParameters
from engine.evidence.places import places_of, residue_evidence, sites_of
from engine.evidence.questions import missed_stretches, near_pairs, placed_sites, shared_peptides
from engine.evidence.results import Evidence, evidence_tables, place_of
from engine.evidence.summary import EvidenceSummary
from engine.evidence.tables import PROTEINS, TABLES, file_of
from engine.jobs.progress import Progress
from engine.project.paths import EXPORTS
from engine.results.separated import ROUNDED, write_separated
from engine.search_run import RunSpec, search_run
from engine.sequence_search.compilation import ALIGNMENT

__all__ = ["find_evidence"]


class _Read(NamedTuple):
    peptides: IdentifiedPeptides
    proteins: list[ProteinEntry]


def find_evidence(request: SearchRequest, progress: Progress | None = None) -> EvidenceSummary:
    """Place the peptides of a run on their proteins, and these on the nearest structures; a run is added to the project.

    Parameters
    ----------
    request : inputs ``project``, the folder of a project with an identification, and ``structures``, a structure database, or files,
        folders and lists of files; `EvidenceParameters`. Its option ``report`` is a folder for pages and scripts.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    parameters, project = request.parameters_as(EvidenceParameters), request.files("project")[0]
    tables = source_tables(project, parameters.run)
    source = structure_source(request.inputs.get("structures", ()))
    inputs = {
        "project_psms": [tables.psms], "project_proteins": [tables.proteins],
        "project_explained": [tables.explained] if tables.explained else [],
        "structures": source.paths,
    }  # fmt: skip
    spec = RunSpec(
        "evidence", replace(request, project=project), {"structures": "--structures DATABASE"}, inputs, request.outputs("report"), False
    )

    def read(progress: Progress, threads: int) -> _Read:
        progress.stage("Reading the identification")
        return _Read(identified_peptides(tables, parameters.psm_fdr), protein_entries(tables.proteins, parameters))

    with search_run(spec, read, ALIGNMENT, progress) as run:
        assert run.run is not None
        opening = run.begin(run.resources)
        peptides, proteins = run.read()
        if not len(peptides) or not proteins:
            what = "no peptide" if not len(peptides) else "no protein with a sequence"
            raise InputError(
                project,
                f"run {tables.run} has {what} up to the false discovery rate",
                remedy="Take another run, or raise psm_fdr or protein_fdr",
            )
        with run.step("index"):
            structures = open_structures(source, run.progress, run.threads)
        with run.step("plan"):
            places = places_of(peptides, proteins)
            residues, sites = residue_evidence(peptides, proteins, places), sites_of(peptides, proteins, places, tables.fixed)
            resources = opening().telling(run.progress)
            run.load_writers()
        near, devices = nearest_chains(proteins, structures.chains, parameters, resources)
        run.device = "+".join(devices)
        with run.step("report"):
            mapped = mapped_chains(near, proteins, structures, resources)
            found = Evidence(
                proteins, peptides, places, residues, sites, mapped, placed_sites(sites, mapped),
                missed_stretches(proteins, residues, mapped),
                near_pairs(proteins, sites, mapped, parameters.contact_distance), shared_peptides(peptides, proteins, places),
            )  # fmt: skip
            made = evidence_tables(found, parameters.surface_exposure)
            for name, table in made.items():
                run.run.write_table(name, table)
                run.progress.check()
            for one in TABLES:
                write_separated(run.run.folder / EXPORTS / file_of(one), made[one.name], one.saved_columns, run.progress, ROUNDED)
            if request.out is not None:
                write_separated(Path(request.out), made[PROTEINS.name], PROTEINS.saved_columns, run.progress, ROUNDED)
            run.progress.check()
        where = [place_of(one.exposure, parameters.surface_exposure) for one in found.placed]
        on_structures = len({one.near.protein for one in mapped})
        counts = {
            "proteins": len(proteins), "on_structures": on_structures, "chains": len(structures.chains),
            "peptides": len(np.unique(places.peptide)), "sites": len(sites), "placed_sites": sum(one.row >= 0 for one in found.placed),
        }  # fmt: skip
        message = f"{on_structures:,} of {len(proteins):,} proteins on structures"
        run.record(counts, message, exports=[file_of(one) for one in TABLES], source_run=tables.run)
        return EvidenceSummary(
            **run.summary_fields, source_run=parameters.run or tables.run, n_proteins=len(proteins), n_on_structures=on_structures,
            n_chains=len(structures.chains), n_peptides=counts["peptides"], n_sites=len(sites), n_placed_sites=counts["placed_sites"],
            n_on_surface=where.count("surface"), n_buried=where.count("buried"),
        )  # fmt: skip
