"""Search spectral libraries: read -> index -> plan -> score -> report, from spectra and libraries to a project."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import NamedTuple

from proteoscope.engine import library_search, matches
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import Proteins, read_proteins, read_spectra
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.library_search.compilation import LIBRARY
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.summary import LibrarySummary
from proteoscope.engine.library_search.tables import MATCHES, REFERENCES
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.separated import ROUNDED, write_separated
from proteoscope.engine.search_run import RunSpec, search_run
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.tables import write_spectra

__all__ = ["search_library"]

_NAME = "matches.tsv"


class _Read(NamedTuple):
    spectra: Spectra
    database: Proteins | None


def search_library(request: SearchRequest, progress: Progress | None = None) -> LibrarySummary:
    """Find the entry of spectral libraries that each spectrum resembles most, and write them into a project.

    Parameters
    ----------
    request : inputs ``spectra``; ``library``, files of formats whose sort is libraries; ``database``, proteins in which peptides are
        placed, if one likes; `LibrarySearchParameters`. With the option ``strict`` files with spectra that cannot be read are refused.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    parameters = request.parameters_as(LibrarySearchParameters)
    spec = RunSpec("library", request, {"spectra": "SPECTRA.mzML", "library": "--library LIBRARY.msp"})

    def read(progress: Progress, threads: int) -> _Read:
        is_strict = request.flag("strict")
        spectra = read_spectra(request.files("spectra"), progress=progress, strict=is_strict, threads=threads, takes_negative=True)
        files = request.files("database")
        return _Read(spectra, read_proteins(files, progress=progress) if files else None)

    with search_run(spec, read, LIBRARY, progress) as run:
        assert run.run is not None and run.project is not None
        run.load(partial(import_module, "duckdb"))

        owner, libraries = run.run, run.paths("library")
        spectra, database = run.read()
        resources = run.resources()
        with run.step("index"):
            references = library_search.references.open_references(
                libraries, run.digests("library"), parameters, owner.folder / "index", resources
            )
        with run.step("plan"):
            queries = library_search.queries.Queries.of(spectra, references, parameters, resources)
            if not len(queries):
                raise InputError(
                    spectra.files[0], "none of its spectra has a precursor, enough peaks, and a charge that the library has",
                    remedy="Give spectra and a library of the same polarity, or lower minimum_peaks",
                )  # fmt: skip
        with run.step("score"):
            same = queries.same(references, parameters, resources)
            run.progress.stage("Estimating false discovery rates")
            judged = library_search.judging.judge(
                same, lambda but: queries.but(but).shifted(references, parameters, resources), references, parameters
            )
        run.device = resources.used
        with run.step("report"):
            spectra_written = run.begin(lambda progress: write_spectra(owner, spectra, progress))
            made = library_search.results.report(judged, references, spectra, libraries, database, parameters, run.progress)
            run.progress.stage("Writing results")
            owner.write_table("matches", made.matches)
            write_spectra(owner, library_search.results.matched_spectra(references, made.entries, libraries), run.progress, REFERENCES.name)
            written = matches.run_tables.RunTables(made.identified, made.settings)
            written.write(owner, run.progress, run.begin)
            write_separated(owner.folder / EXPORTS / _NAME, made.matches, MATCHES.saved_columns, run.progress, ROUNDED)
            spectra_written()
            run.progress.check()
        n_decoys = int(references.is_decoy.sum())
        n_matches = len(made.matches) if judged.unknown else made.counted.targets
        counts = {"spectra": len(spectra), "entries": len(references) - n_decoys, "matches": n_matches, **written.counts}
        n_unrated = 0 if judged.unknown else made.matches["q_value"].null_count
        certainty = {} if judged.unknown else {"matches": made.counted.certainty(), **written.certainty}
        summary = LibrarySummary(
            **run.summary_fields, n_spectra=len(spectra), n_searched=queries.n_searched, n_entries=len(references) - n_decoys,
            n_decoys=n_decoys, n_matches=n_matches, n_shifted=made.n_shifted, n_compounds=made.n_names,
            n_psms=written.counts["psms"], n_peptides=written.counts["peptides"], n_proteins=written.counts["proteins"],
            decoys=references.decoys,
            similarity={"entropy": "spectral entropy", "cosine": "cosine"}[parameters.similarity], is_open=parameters.is_open,
            unknown=judged.unknown, n_unrated=n_unrated, certainty=certainty.get("matches", {}), fdr=parameters.fdr,
        )  # fmt: skip
        if judged.unknown:
            run.progress.message(f"No error rate is known: {judged.unknown}. Matches are listed by their similarity", "warning")
        run.record(
            counts, f"{counted(n_matches, 'spectrum', 'spectra')} matched", exports=[*matches.run_tables.EXPORTED, _NAME],
            certainty=certainty, has_decoys=not judged.unknown, score="similarity", decoys_made=references.decoys, shifted=made.n_shifted,
            left_out_entries=references.n_left_out, unrated=n_unrated,
        )  # fmt: skip
        return replace(summary, **run.summary_fields)
