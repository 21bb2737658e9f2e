"""Find peptides that carry a modification nobody listed: read -> index -> plan -> score -> report, from files to a project."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from proteoscope.engine import matches, modified_search
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.translation_parameters import translation_of
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.preset_advice import warn_of_misfits
from proteoscope.engine.matches.protein_knowledge import write_protein_knowledge
from proteoscope.engine.matches.run_tables import EXPORTED, RunTables
from proteoscope.engine.matches.search_passes import SearchPass, series_counts
from proteoscope.engine.matches.source_run import SourceRun, identified_run, identified_spectra, write_identified_proteins
from proteoscope.engine.modified_search.candidate_search import find_candidates
from proteoscope.engine.modified_search.compilation import MODIFIED
from proteoscope.engine.modified_search.judging import judge
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters, shift_range
from proteoscope.engine.modified_search.ranking import FORMS_JUDGED, ShiftedMatches, joined_matches, place_candidates, rank_candidates
from proteoscope.engine.modified_search.results import (
    MODIFICATIONS_FILE,
    judged_groups,
    modification_table,
    shifted_tables,
    write_modifications,
)
from proteoscope.engine.modified_search.settings import list_settings, scoring_of, shift_settings
from proteoscope.engine.modified_search.summary import ModifiedSearchSummary
from proteoscope.engine.peptides.indexes import Databases, Indexes, build_indexes, open_indexes
from proteoscope.engine.search_run import RunSpec, SearchRun, search_run
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex, build_spectrum_index, nothing_to_search
from proteoscope.engine.spectra.tables import read_spectra_table, write_spectra
from proteoscope.kernels.layouts import PeptideArrays

__all__ = ["ModifiedSearchSummary", "find_modified"]

_MB = 1_000_000
_BEST = 10


class _Read(NamedTuple):
    """All spectra, and the same with those alone that are searched."""

    spectra: Spectra
    searched: Spectra


def find_modified(request: SearchRequest, progress: Progress | None = None) -> ModifiedSearchSummary:
    """Find the peptides of spectra whatever they are heavier or lighter by, and what that is, and write them into a project.

    Parameters
    ----------
    request : inputs ``spectra``, files of any known format, and ``database``, of proteins; `ModifiedSearchParameters`. Its `project` is
        made where it does not exist; a run is added to a project that does. Its options: ``from_project``, in place of spectra, a project
        with an identification, of which the spectra are searched that it left unidentified; without databases, in the proteins that it
        found. ``run``: which identification, the newest where it is not given. ``strict``: refuse files with spectra that cannot be
        read.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    parameters = request.parameters_as(ModifiedSearchParameters)
    source = _source(request)
    inputs: dict[str, Sequence[str | Path]] = {
        "spectra": request.files("spectra"), "database": request.files("database"), "contaminants": parameters.contaminants,
    }  # fmt: skip
    required = {"spectra": "SPECTRA.mzML", "database": "--database PROTEINS.fasta"}
    if source is not None:
        proteins = [] if source.proteins is None else [source.proteins]
        own = {"project_spectra": [source.spectra], "project_psms": [source.psms], "project_proteins": proteins}
        inputs, required = {**inputs, **own}, {}
    spec = RunSpec("modified", request, required, inputs)

    def read(progress: Progress, threads: int) -> _Read:
        if source is None:
            warn_of_misfits("modified", request.files("spectra"), parameters, progress)
            found = read_spectra(
                request.files("spectra"), progress=progress, strict=request.flag("strict"), threads=threads, uses_all_precursors=True,
                spool=spec.spool,
            )  # fmt: skip
            return _Read(found, found)
        progress.stage("Reading the identification")
        found = read_spectra_table(source.spectra)
        identified = identified_spectra(source.psms, len(found), float(source.parameters.get("fdr", parameters.fdr)))
        return _Read(found, found.only(np.setdiff1d(np.arange(len(found)), identified)))

    with search_run(spec, read, MODIFIED, progress) as searching:
        assert searching.run is not None
        with tempfile.TemporaryDirectory(prefix="index-", dir=searching.run.folder, ignore_cleanup_errors=True) as spare:
            # Reading spectra and making the index need nothing of each other.
            indexing = searching.begin(lambda progress: _index(searching, source, Path(spare), parameters, progress))
            every, searched = searching.read()
            with searching.step("index"):  # what it takes longer than reading
                resources, indexes = indexing()
            searching.load(lambda: matches.run_tables, lambda: modified_search.judging, lambda: modified_search.results)
            with searching.step("plan"):
                index, peptides = build_spectrum_index(searched, parameters, resources), indexes.peptides.arrays(indexes.proteins)
                if not index.n_searched:
                    raise nothing_to_search(searched, parameters.minimum_peaks)
            with searching.step("score"):
                # Spectra of each ion series have ions and scores of their own.
                found = joined_matches([_searched(part, peptides, parameters, resources) for part in index.by_series()])
            searching.device = resources.used
            spectra_written = searching.begin(lambda progress: write_spectra(_run_of(searching), every, progress))

            with searching.step("report"):
                resources.progress.stage("Estimating false discovery rates")
                judged = judge(found, indexes, parameters, resources)
                resources.progress.message(judged.scored.message)
                resources.progress.stage("Writing results")
                tables = shifted_tables(judged, every, indexes.proteins, parameters)
                modifications = modification_table(tables.psms, parameters.fdr, has_decoys=parameters.decoys != "none")
                written = RunTables(tables, parameters)
                written.write(searching.run, resources.progress, searching.begin)
                write_modifications(searching.run, modifications, resources.progress)
                is_translated = _is_translated(source, parameters)
                write_protein_knowledge(searching.run, indexes.proteins, written.found_accessions, is_translated=is_translated)
                spectra_written()
                searching.progress.check()
            counts = {
                "spectra": len(every), "searched": index.n_searched, "proteins_in_database": indexes.proteins.n_targets,
                "peptides_in_index": len(indexes.peptides), **written.counts,
                **_by_kind(tables.psms, parameters),
            }  # fmt: skip
            more: dict[str, Any] = {} if source is None else {"source_run": source.run}
            done = _pass(searching, source, parameters, indexes, index, judged_groups(judged))
            searching.record(
                counts, written.message, exports=[*EXPORTED, MODIFICATIONS_FILE], certainty=written.certainty,
                decoy_ratio=indexes.peptides.decoy_ratio, recalibrated_ppm=round(judged.mass_error_ppm, 4), passes=[done.record()], **more,
            )  # fmt: skip
            best = modifications.slice(0, _BEST).to_pylist()
            return ModifiedSearchSummary(
                **searching.summary_fields, **{f"n_{name}": number for name, number in counts.items()}, certainty=written.certainty,
                top_modifications=tuple((row["name"], row["mass"], row["psms"], row["sites"]) for row in best),
                source_run=None if source is None else source.run, fdr=parameters.fdr, passes=(done,),
                has_decoys=parameters.decoys != "none",
            )  # fmt: skip


def _pass(
    searching: SearchRun[_Read], source: SourceRun | None, parameters: ModifiedSearchParameters, indexes: Indexes,
    index: SpectrumIndex, groups: tuple[tuple[str, ...], ...],
) -> SearchPass:  # fmt: skip
    """What the search was done with, on what an identification left too."""
    named, more = searching.files("database"), searching.files("contaminants")
    of_source = source is not None and not named
    return SearchPass.of(
        "first", parameters, parameters.specificity, mass_shift=shift_range(parameters.mass_shift), groups=groups,
        databases=(*source.files("database", "contaminants"), *more) if source is not None and of_source else (*named, *more),
        proteins="found" if of_source else "all", n_proteins=indexes.proteins.n_targets,
        spectra=searching.files("spectra") if source is None else source.files("spectra"), n_spectra=index.n_searched,
        source_run="" if source is None else source.run, ion_series=series_counts(index),
    )  # fmt: skip


def _searched(index: SpectrumIndex, peptides: PeptideArrays, parameters: ModifiedSearchParameters, resources: Resources) -> ShiftedMatches:
    """Return the best forms of spectra of one ion series."""
    by_count = parameters.score == "match-count"
    settings, shifts = scoring_of(parameters, index, peptides), shift_settings(parameters)
    kept, memory_bytes = parameters.hits_per_spectrum if by_count else parameters.candidates, parameters.index_memory * _MB
    candidates = find_candidates(index, peptides, settings, list_settings(parameters), kept, memory_bytes, resources)
    n_forms = parameters.hits_per_spectrum if by_count else max(parameters.hits_per_spectrum, FORMS_JUDGED)
    placed = place_candidates(index, peptides, candidates, settings, shifts, resources)
    return rank_candidates(index, peptides, candidates, placed, settings, shifts, n_forms, by_count=by_count, resources=resources)


def _run_of(searching: SearchRun[_Read]) -> Any:
    return searching.run


def _source(request: SearchRequest) -> SourceRun | None:
    """The identification whose unidentified spectra are searched, if that is what is asked for."""
    project, run = request.path("from_project"), str(request.options.get("run") or "")
    if project is None:
        if run:
            raise ParameterError(f"run = '{run:.60}' is of a project; give that with --from-project DIR")
        return None
    if request.files("spectra"):
        raise ParameterError("spectra are given twice, as files and by --from-project; give one of them")
    return identified_run(project, run)


def _index(
    searching: SearchRun[_Read], source: SourceRun | None, spare: Path, parameters: ModifiedSearchParameters, progress: Progress
) -> tuple[Resources, Indexes]:
    """Devices and indexes."""
    resources = searching.resources(progress, memory_bytes=parameters.device_memory * _MB)
    kinds = ("database", "contaminants")
    digests = {kind: searching.digests(kind) for kind in kinds}
    databases = Databases(searching.paths("database"), searching.paths("contaminants"), digests, translation_of(parameters))
    if source is None or databases.proteins:
        return resources.telling(searching.progress), open_indexes(databases, spare, parameters, resources)
    fasta, rate = spare / "identified.fasta", float(source.parameters.get("fdr", parameters.fdr))
    if source.proteins is None or not write_identified_proteins(source.proteins, rate, fasta):
        raise InputError(
            source.psms,
            f"run {source.run} found no protein whose sequence it knows",
            remedy="Name a database with --database, or identify something first",
        )
    of_found = databases._replace(proteins=[fasta], translation=None)
    return resources.telling(searching.progress), build_indexes(of_found, spare, parameters, resources)


def _is_translated(source: SourceRun | None, parameters: ModifiedSearchParameters) -> bool:
    """Whether the proteins are reading frames, those that an identification found among them."""
    of_source = "none" if source is None else source.parameters.get("translation", "none")
    return (parameters.translation, of_source) != ("none", "none")


def _by_kind(psms: Any, parameters: ModifiedSearchParameters) -> dict[str, int]:
    """Targets at the false discovery rate by what their shift is."""
    passes = pa.compute.fill_null(pa.compute.less_equal(psms["q_value"], parameters.fdr), False)
    accepted = psms.filter(pa.compute.and_(pa.compute.and_(pa.compute.equal(psms["rank"], 1), pa.compute.invert(psms["is_decoy"])), passes))
    kinds = accepted["shift_kind"].to_pylist()
    return {name: kinds.count(kind) for name, kind in (("plain", "none"), ("named", "named"), ("ends", "end"), ("unnamed", "unnamed"))}
