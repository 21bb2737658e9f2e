"""Results of another search engine as a run: read -> index -> plan -> score -> report, from files to a project."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from proteoscope.engine import imported
from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import Proteins, read_proteins, read_spectra
from proteoscope.engine.imported.input_warnings import warn_of_import
from proteoscope.engine.imported.parameters import ImportParameters
from proteoscope.engine.imported.reading import read_identifications
from proteoscope.engine.imported.summary import ImportSummary
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.listed.identifications import Identifications
from proteoscope.engine.matches.listed.matches import ListedMatches, collect_matches
from proteoscope.engine.matches.listed.references import FoundSpectra, find_spectra
from proteoscope.engine.matches.preset_advice import warn_of_misfits
from proteoscope.engine.search_run import RunSpec, SearchRun, project_run
from proteoscope.engine.spectra.columns import Spectra

if TYPE_CHECKING:
    from proteoscope.engine.imported.results import WrittenImport
    from proteoscope.engine.matches.listed.tables import JudgedMatches

__all__ = ["ImportSummary", "import_results"]


class _Read(NamedTuple):
    found: Identifications
    spectra: Spectra
    database: Proteins | None


def import_results(request: SearchRequest, progress: Progress | None = None) -> ImportSummary:
    """Make a run of the results of another search engine, and write it into a project.

    Parameters
    ----------
    request : inputs ``results``, files of one of the formats of `proteoscope.engine.formats.registry` whose sort is identifications;
        ``spectra``, those that were searched; ``database``, FASTA files, optional; `ImportParameters`. Its `project` is made where it
        does not exist; a run is added to a project that does. With the option ``strict`` files with
        spectra that cannot be read are refused.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can correct. Cancelled : the user cancelled the import.
    """
    parameters = request.parameters_as(ImportParameters)
    spec = RunSpec("import", request, {"results": "RESULTS.pep.xml", "spectra": "--spectra SPECTRA.mzML"}, kernels="import")

    def read(progress: Progress, threads: int) -> _Read:
        warn_of_misfits("import", request.files("spectra"), parameters, progress)
        found = read_identifications(request.files("results"), progress)
        spectra = read_spectra(
            request.files("spectra"), progress=progress, strict=request.flag("strict"), threads=threads, takes_negative=True
        )
        files = request.files("database")
        return _Read(found, spectra, read_proteins(files, progress=progress) if files else None)

    with project_run(spec, read, progress) as (run, stored):
        found, spectra, database = run.read()
        run.load(partial(import_module, "duckdb"))
        with run.step("index"):
            run.progress.stage("Finding the spectra")
            in_spectra = find_spectra(found, spectra)
        with run.step("plan"):
            matches = _matches(found, in_spectra, spectra, database, parameters, run.progress)
        with run.step("score"):
            rated = imported.results.rated_matches(found, matches, spectra, parameters, run.progress)
        run.device = "cpu"
        with run.step("report"):
            written = imported.results.write_import(stored, found, matches, rated, spectra, database, run.begin, run.progress)
        warn_of_import(found, matches, in_spectra, database, written, rated.title, request.files("spectra"), run.progress)
        return _recorded(run, found, spectra, matches, rated, written, parameters)


def _matches(
    found: Identifications,
    in_spectra: FoundSpectra,
    spectra: Spectra,
    database: Proteins | None,
    parameters: ImportParameters,
    progress: Progress,
) -> ListedMatches:
    """Return the matches whose spectra are found.

    Raises
    ------
    InputError : there are none.
    """
    matches = collect_matches(found, in_spectra, spectra, database, enzyme(parameters.enzyme), parameters.fixed_modifications, progress)
    if not len(matches):
        raise InputError(
            found.files[0],
            f"none of its {len(found):,} matches can be taken; of the first, {matches.reason[0]}",
            remedy="Give the spectra that were searched" + ("" if database else ", and the database"),
        )
    return matches


def _recorded(
    run: SearchRun[_Read],
    found: Identifications,
    spectra: Spectra,
    matches: ListedMatches,
    rated: JudgedMatches,
    written: WrittenImport,
    parameters: ImportParameters,
) -> ImportSummary:
    """Record the run and return its summary."""
    n_matches = len(found) + len(found.unread)
    counts = {"spectra": len(spectra), "matches": n_matches, "imported": len(matches), **written.counts}
    is_rated = written.source_of["psms"] != "none"
    run.record(
        counts,
        written.message if is_rated else f"{len(matches):,} matches imported, without q-values",
        exports=written.exports,
        certainty=written.certainty,
        has_decoys=bool(rated.is_decoy.any()),
        format=found.format,
        program=found.program,
        score=rated.title,
        left_out=written.left_out,
        found_by=matches.found_by,
        q_values_of=written.source_of,
        posterior_errors_of=rated.rates.posterior_error_of,
        computed_here=["matched_ions", "total_ions", "mass_error_ppm", "isotope_error", "missed_cleavages", "rank", "protein groups"],
    )
    numbers: dict[str, Any] = {f"n_{name}": number for name, number in counts.items()}
    return ImportSummary(
        **run.summary_fields,
        **numbers,
        format=found.format,
        program=found.program,
        left_out=written.left_out,
        found_by=matches.found_by,
        source_of=written.source_of,
        score=rated.title,
        certainty=written.certainty,
        top_proteins=written.best_proteins,
        fdr=parameters.fdr,
    )
