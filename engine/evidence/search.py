"""Tie identified peptides to structures: read -> index -> plan -> score -> report, from a project to a run of it."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.evidence.homologues import Conservation, find_homologues, no_homologues
from proteoscope.engine.evidence.identified_peptides import (
    IdentifiedPeptides,
    ProteinEntry,
    SourceTables,
    identified_peptides,
    protein_entries,
    source_tables,
)
from proteoscope.engine.evidence.mapped_residues import MappedRows, mapped_chains
from proteoscope.engine.evidence.nearest_chains import NearChain, nearest_chains
from proteoscope.engine.evidence.parameters import EvidenceParameters
from proteoscope.engine.evidence.places import places_of, residue_evidence, sites_of
from proteoscope.engine.evidence.questions import missed_stretches, near_pairs, placed_sites, shared_peptides
from proteoscope.engine.evidence.remote_chains import with_remote_chains
from proteoscope.engine.evidence.results import Evidence, evidence_tables, places_told
from proteoscope.engine.evidence.summary import EvidenceSummary
from proteoscope.engine.evidence.tables import HOMOLOGUES, PROTEINS, TABLES, file_of
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.fixed_modifications import NONE_FIXED, FixedModifications
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.results.separated import DIGITS, write_separated
from proteoscope.engine.search_run import RunSpec, SearchRun, search_run
from proteoscope.engine.sequence_search.compilation import ALIGNMENT
from proteoscope.engine.sequence_search.packed import packed_database
from proteoscope.engine.sequences.database import SequenceDatabase
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


class _Read(NamedTuple):
    peptides: IdentifiedPeptides
    proteins: list[ProteinEntry]


class _Indexes(NamedTuple):
    """Chains; with their descriptors where remote ones are looked for; sequences of homologues where there are any."""

    structures: ChainFiles
    described: DescribedChains | None
    homologues: SequenceDatabase | None


def find_evidence(request: SearchRequest, progress: Progress | None = None) -> EvidenceSummary:
    """Place the peptides of a run on their proteins, and these on the nearest structures; a run is added to the project.

    Parameters
    ----------
    request : inputs ``project``, the folder of a project with an identification, ``structures``, a structure database, or files, folders
        and lists of files, and ``homologues``, files of sequences or none; `EvidenceParameters`. Its option ``report`` is a folder for
        pages.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    parameters, project = request.parameters_as(EvidenceParameters), request.files("project")[0]
    tables = source_tables(project, parameters.run)
    source = chain_input(request.inputs.get("structures", ()))
    inputs = {
        "project_psms": [tables.psms], "project_proteins": [tables.proteins],
        "project_explained": [tables.explained] if tables.explained else [],
        "structures": source.paths, "homologues": request.files("homologues"),
    }  # fmt: skip
    spec = RunSpec(
        "evidence", replace(request, project=project), {"structures": "--structures DATABASE"}, inputs, request.outputs("report"), False
    )

    def read(progress: Progress, threads: int) -> _Read:
        progress.stage("Reading the identification")
        peptides, proteins = identified_peptides(tables, parameters.psm_fdr), protein_entries(tables.proteins, parameters)
        return _Read(peptides, proteins if parameters.proteins else _proven(peptides, proteins, progress))

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
            indexes = _opened(source, parameters, run)
        with run.step("plan"):
            resources = opening().telling(run.progress)
            run.load_writers()
        near = _near(proteins, indexes, parameters, run, resources)
        conservation = _conservation(proteins, indexes.homologues, parameters, run, resources)
        with run.step("report"):
            found = _evidence(_Read(peptides, proteins), tables, conservation, near, indexes.structures, parameters, resources)
            _write(found, parameters, request, run)
        return _summary(found, tables, parameters, run)


def _proven(peptides: IdentifiedPeptides, proteins: list[ProteinEntry], progress: Progress) -> list[ProteinEntry]:
    """Proteins up to a q-value, and of those that have none what holds an identified peptide."""
    unjudged = [one for one in proteins if isnan(one.q_value)]
    if not unjudged:
        return proteins
    holding = {id(unjudged[number]) for number in np.unique(places_of(peptides, unjudged, progress).protein).tolist()}
    return [one for one in proteins if not isnan(one.q_value) or id(one) in holding]


def _opened(source: ChainInput, parameters: EvidenceParameters, run: SearchRun[_Read]) -> _Indexes:
    structures, chains = open_files(source, run.progress, run.threads), None
    for text in structures.messages:
        run.progress.message(text, "warning")
    if parameters.remote_chains:
        # Both have the shortest chain first, and so the same numbers.
        folder = source.folder
        chains = described(structures.chains, threads=run.threads) if folder is None else open_chains(folder, run.progress, run.threads)
    return _Indexes(structures, chains, packed_database(run, "homologues") if run.paths("homologues") else None)


def _near(
    proteins: list[ProteinEntry], indexes: _Indexes, parameters: EvidenceParameters, run: SearchRun[_Read], resources: Resources
) -> list[NearChain]:
    """The near chains of each protein, by sequence and, behind these, by the fold of the nearest."""
    chains = indexes.structures.chains
    near, devices = nearest_chains(proteins, chains, parameters.chains_per_protein, parameters.maximum_e_value, resources)
    run.device = "+".join(devices)
    if indexes.described is None:
        return near
    return with_remote_chains(near, proteins, indexes.described, parameters.remote_chains, parameters.minimum_tm_score, resources)


def _conservation(
    proteins: list[ProteinEntry], homologues: SequenceDatabase | None, parameters: EvidenceParameters, run: SearchRun[_Read],
    resources: Resources,
) -> Conservation:  # fmt: skip
    """Homologues, whose table is written as they come; empty where none were given."""
    assert run.run is not None
    with run.run.table_writer(HOMOLOGUES.name, HOMOLOGUES.schema()) as writer:
        if homologues is None:
            return no_homologues(proteins)
        n, e_value = parameters.homologues_per_protein, parameters.maximum_e_value
        found = find_homologues(proteins, homologues, n, e_value, resources, writer.write)
        if not found.n_of_protein.any():
            run.progress.message("No protein has a homologue among the sequences given: nothing is told of conservation", "warning")
        return found


def _evidence(
    read: _Read, tables: SourceTables, conservation: Conservation, near: list[NearChain], structures: ChainFiles,
    parameters: EvidenceParameters, resources: Resources,
) -> Evidence:  # fmt: skip
    peptides, proteins = read
    progress = resources.progress
    places = places_of(peptides, proteins, progress)
    residues = residue_evidence(peptides, proteins, places)
    sites = sites_of(peptides, residues, places, _fixed(peptides, tables, parameters, progress))
    mapped = mapped_chains(near, proteins, structures, resources)
    rows = MappedRows.of(mapped, residues)
    return Evidence(
        proteins, peptides, places, residues, conservation, sites, mapped, rows, placed_sites(sites, residues, mapped, rows, progress),
        missed_stretches(proteins, residues, mapped, rows, progress),
        near_pairs(residues, sites, mapped, rows, parameters.contact_distance, parameters.minimum_separation, progress),
        shared_peptides(peptides, places, len(proteins)), structures.chains.names,
    )  # fmt: skip


def _fixed(peptides: IdentifiedPeptides, tables: SourceTables, parameters: EvidenceParameters, progress: Progress) -> FixedModifications:
    """What makes no site; where the run names none, as an imported one, what all residues of a kind carry."""
    if parameters.fixed_sites:
        return NONE_FIXED
    found = tables.fixed or peptides.carried_by_all()
    if found and not tables.fixed:
        names = ", ".join(f"{name} ({where})" for name, where in sorted(found))
        progress.message(f"All residues of their kind carry {names}, which therefore makes no site; fixed_sites shows it")
    return found


def _write(found: Evidence, parameters: EvidenceParameters, request: SearchRequest, run: SearchRun[_Read]) -> None:
    """All tables, and as text those that are shown."""
    assert run.run is not None
    made = evidence_tables(found, parameters.surface_exposure)
    for name, table in made.items():
        run.run.write_table(name, table)
        run.progress.check()
    for one in TABLES:
        table = made.get(one.name)
        if table is None:
            with TableFile(run.run.folder / f"{one.name}.parquet", one, one.saved) as file:
                table = file.read(one.saved)
        write_separated(run.run.folder / EXPORTS / file_of(one), table, one.saved_columns, run.progress, DIGITS)
    if request.out is not None:
        write_separated(Path(request.out), made[PROTEINS.name], PROTEINS.saved_columns, run.progress, DIGITS)
    run.progress.check()


def _summary(found: Evidence, tables: SourceTables, parameters: EvidenceParameters, run: SearchRun[_Read]) -> EvidenceSummary:
    """Record what was counted, and tell it."""
    # A residue that carries one thing or another is one residue.
    residues, first = np.unique(np.stack([found.sites.protein, found.sites.position]), axis=1, return_index=True)
    placed = found.placed.row[first]
    where = places_told(found.rows.exposure[placed[placed >= 0]], parameters.surface_exposure).tolist()
    proteins = {one.near.protein for one in found.mapped}
    counts = {
        "proteins": len(found.proteins), "on_structures": len(proteins), "chains": len(found.chain_names),
        "peptides": len(np.unique(found.places.peptide)), "sites": residues.shape[1], "placed_sites": int((placed >= 0).sum()),
        "homologues": int(found.conservation.n_of_protein.sum()), "remote_chains": sum(one.near.through >= 0 for one in found.mapped),
    }  # fmt: skip
    message = f"{len(proteins):,} of {len(found.proteins):,} proteins on structures"
    run.record(counts, message, exports=[file_of(one) for one in TABLES], source_run=tables.run)
    numbers: dict[str, Any] = {f"n_{name}": number for name, number in counts.items()}
    return EvidenceSummary(
        **run.summary_fields, **numbers, source_run=parameters.run or tables.run,
        n_on_surface=where.count("surface"), n_buried=where.count("buried"),
    )  # fmt: skip
