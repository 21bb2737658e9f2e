"""Find peptides that carry a modification nobody listed: read -> index -> plan -> score -> report, from files to a project."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engine.errors import InputError, ParameterError
from engine.execution.resources import Resources
from engine.formats import Spectra, read_spectra
from engine.jobs.progress import Progress
from engine.matches.source_run import SourceRun, identified_run, identified_spectra, write_identified_proteins
from engine.modified_search.candidate_search import find_candidates
from engine.modified_search.compilation import MODIFIED
from engine.modified_search.parameters import ModifiedSearchParameters
from engine.modified_search.ranking import FORMS_JUDGED, place_candidates, rank_candidates
from engine.modified_search.settings import list_settings, scoring_of, shift_settings
from engine.modified_search.summary import ModifiedSearchSummary
from engine.peptides.indexes import Databases, Indexes, build_indexes, open_indexes
from engine.search_run import Asked, SearchRun, search_run
from engine.spectra.spectrum_index import build_spectrum_index, nothing_to_search
from engine.spectra.tables import read_spectra_table, write_spectra

__all__ = ["ModifiedSearchSummary", "find_modified"]

_MB = 1_000_000
_BEST = 10


class _Read(NamedTuple):
    """All spectra, and the same with those alone that are searched."""

    spectra: Spectra
    searched: Spectra


def find_modified(
    spectra: Sequence[str | Path],
    databases: Sequence[str | Path],
    project_folder: str | Path,
    parameters: ModifiedSearchParameters,
    *,
    from_project: str | Path | None = None,
    run: str | None = None,
    device: str = "auto",
    threads: int | None = None,
    skip_broken: bool = False,
    progress: Progress | None = None,
) -> ModifiedSearchSummary:
    """Find the peptides of spectra whatever they are heavier or lighter by, and what that is, and write them into a project.

    Parameters
    ----------
    spectra, databases : spectrum files of any known format; FASTA files.
    project_folder : made where it does not exist; a run is added to a project that does.
    from_project : in place of spectra: a project with an identification, of which the spectra are searched that it left unidentified;
        without databases, in the proteins that it found. run : which identification, the newest when None.
    device, threads : as of every search. skip_broken : leave out spectra that cannot be read, and count them, instead of stopping.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    source = _source(spectra, from_project, run)
    files: dict[str, Sequence[str | Path]] = {"spectra": spectra, "database": databases, "contaminants": parameters.contaminants}
    required = {"spectra": "SPECTRA.mzML", "database": "--database PROTEINS.fasta"}
    if source is not None:
        proteins = [] if source.proteins is None else [source.proteins]
        own = {"project_spectra": [source.spectra], "project_psms": [source.psms], "project_proteins": proteins}
        files, required = {**files, **own}, {}
    asked = Asked("modified", files, required, parameters, project=project_folder, device=device, threads=threads)

    def read(progress: Progress, threads: int) -> _Read:
        if source is None:
            found = read_spectra([Path(path) for path in spectra], progress=progress, skip_broken=skip_broken, threads=threads)
            return _Read(found, found)
        progress.stage("Reading the identification")
        found = read_spectra_table(source.spectra)
        identified = identified_spectra(source.psms, len(found), float(source.parameters.get("fdr", parameters.fdr)))
        return _Read(found, found.only(np.setdiff1d(np.arange(len(found)), identified)))

    with search_run(asked, read, MODIFIED, progress) as searching:
        assert searching.run is not None
        with tempfile.TemporaryDirectory(prefix="index-", dir=searching.run.folder, ignore_cleanup_errors=True) as spare:
            # Reading spectra and making the index need nothing of each other.
            indexing = searching.begin(lambda progress: _index(searching, source, Path(spare), parameters, progress))
            every, searched = searching.read()
            with searching.step("index"):  # what it takes longer than reading
                resources, indexes = indexing()
            with searching.step("plan"):
                index, peptides = build_spectrum_index(searched, parameters, resources), indexes.peptides.arrays(indexes.proteins)
                if not index.n_searched:
                    raise nothing_to_search(searched, parameters.minimum_peaks)
                settings, shifts = scoring_of(parameters, index, peptides), shift_settings(parameters)
            by_count = parameters.score == "match-count"
            with searching.step("score"):
                kept, memory_bytes = parameters.top if by_count else parameters.candidates, parameters.index_memory * _MB
                candidates = find_candidates(index, peptides, settings, list_settings(parameters), kept, memory_bytes, resources)
                n_forms = parameters.top if by_count else max(parameters.top, FORMS_JUDGED)
                placed = place_candidates(index, peptides, candidates, settings, shifts, resources)
                found = rank_candidates(
                    index, peptides, candidates, placed, settings, shifts, n_forms, by_count=by_count, resources=resources
                )  # fmt: skip
            searching.device = resources.used
            spectra_written = searching.begin(lambda progress: write_spectra(_run_of(searching), every, progress))
            searching.begin(lambda _: importlib.import_module("duckdb"))  # which the tables need
            from engine.matches.run_tables import EXPORTED, RunTables
            from engine.modified_search.judging import judge
            from engine.modified_search.results import MODIFICATIONS_FILE, modification_table, shifted_tables, write_modifications

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
                spectra_written()
                searching.progress.check()
            counts = {
                "spectra": len(every), "searched": index.n_searched, "proteins_in_database": indexes.proteins.n_targets,
                "peptides_in_index": len(indexes.peptides), **written.counts,
                **_by_kind(tables.psms, parameters),
            }  # fmt: skip
            more: dict[str, Any] = {} if source is None else {"source_run": source.run}
            searching.record(
                counts, written.message, exports=[*EXPORTED, MODIFICATIONS_FILE], certainty=written.certainty,
                recalibrated_ppm=round(judged.mass_error_ppm, 4), **more,
            )  # fmt: skip
            best = modifications.slice(0, _BEST).to_pylist()
            return ModifiedSearchSummary(
                **searching.told, **{f"n_{name}": number for name, number in counts.items()}, certainty=written.certainty,
                top_modifications=tuple((row["name"], row["mass"], row["psms"], row["sites"]) for row in best),
                source_run=None if source is None else source.run, fdr=parameters.fdr,
            )  # fmt: skip


def _run_of(searching: SearchRun[_Read]) -> Any:
    return searching.run


def _source(spectra: Sequence[str | Path], from_project: str | Path | None, run: str | None) -> SourceRun | None:
    """The identification whose unidentified spectra are searched, if that is what is asked for."""
    if from_project is None:
        if run:
            raise ParameterError(f"run = '{run:.60}' is of a project; give that with --from-project DIR")
        return None
    if spectra:
        raise ParameterError("spectra are given twice, as files and by --from-project; give one of them")
    return identified_run(Path(from_project), run or "")


def _index(
    searching: SearchRun[_Read], source: SourceRun | None, spare: Path, parameters: ModifiedSearchParameters, progress: Progress
) -> tuple[Resources, Indexes]:
    """What computes, and the indexes."""
    resources = searching.resources(progress, memory_bytes=parameters.device_memory * _MB)
    kinds = ("database", "contaminants")
    databases = Databases(searching.paths("database"), searching.paths("contaminants"), {kind: searching.digests(kind) for kind in kinds})
    if source is None or databases.proteins:
        return resources.telling(searching.progress), open_indexes(databases, spare, parameters, resources)
    fasta, rate = spare / "identified.fasta", float(source.parameters.get("fdr", parameters.fdr))
    if source.proteins is None or not write_identified_proteins(source.proteins, rate, fasta):
        raise InputError(
            source.psms, f"run {source.run} found no protein", remedy="Name a database with --database, or identify something first"
        )
    return resources.telling(searching.progress), build_indexes(databases._replace(proteins=[fasta]), spare, parameters, resources)


def _by_kind(psms: Any, parameters: ModifiedSearchParameters) -> dict[str, int]:
    """Targets at the false discovery rate by what their shift is."""
    import pyarrow.compute as pc

    passes = pc.fill_null(pc.less_equal(psms["q_value"], parameters.fdr), False)
    accepted = psms.filter(pc.and_(pc.and_(pc.equal(psms["rank"], 1), pc.invert(psms["is_decoy"])), passes))
    kinds = accepted["shift_kind"].to_pylist()
    return {name: kinds.count(kind) for name, kind in (("plain", "none"), ("named", "named"), ("unnamed", "unnamed"))}
