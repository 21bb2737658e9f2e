"""Results of another search engine as a run: read -> index -> plan -> score -> report, from files to a project."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from proteoscope.engine import imported
from proteoscope.engine import matches as matches_package
from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import Proteins, read_proteins, read_spectra
from proteoscope.engine.imported.compilation import READING
from proteoscope.engine.imported.parameters import ImportParameters
from proteoscope.engine.imported.reading import describe_unread, read_identifications
from proteoscope.engine.imported.summary import ImportSummary
from proteoscope.engine.imported.tables import LEFT_OUT
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches import listed
from proteoscope.engine.matches.listed.identifications import Identifications
from proteoscope.engine.matches.listed.matches import collect_matches
from proteoscope.engine.matches.listed.places import cut_off_proteins
from proteoscope.engine.matches.listed.references import find_spectra
from proteoscope.engine.matches.preset_advice import warn_of_misfits
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.separated import ROUNDED, write_separated
from proteoscope.engine.search_run import RunSpec, SearchRun, search_run
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.tables import write_spectra

if TYPE_CHECKING:
    from proteoscope.engine.matches.listed.matches import ListedMatches

__all__ = ["ImportSummary", "import_results"]

_LEFT_OUT_FILE = "left_out.tsv"
_FAR = 5.0  # dalton: no isotope and no rounding makes a precursor differ so from its peptide
_MAXIMUM_TOLD = 5


class _Read(NamedTuple):
    found: Identifications
    spectra: Spectra
    database: Proteins | None


def import_results(request: SearchRequest, progress: Progress | None = None) -> ImportSummary:
    """Make a run of the results of another search engine, and write it into a project.

    Parameters
    ----------
    request : inputs ``results``, files of one of the formats of `proteoscope.engine.formats.registry` whose sort is identifications;
        ``spectra``, those that were searched; ``database``, FASTA files, if one likes; `ImportParameters`. Its `project` is made where it
        does not exist; a run is added to a project that does. With the option ``strict`` files with
        spectra that cannot be read are refused.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    parameters = request.parameters_as(ImportParameters)
    spec = RunSpec("import", request, {"results": "RESULTS.pep.xml", "spectra": "--spectra SPECTRA.mzML"})

    def read(progress: Progress, threads: int) -> _Read:
        warn_of_misfits("import", request.files("spectra"), parameters, progress)
        found = read_identifications(request.files("results"), progress)
        spectra = read_spectra(
            request.files("spectra"), progress=progress, strict=request.flag("strict"), threads=threads, takes_negative=True
        )
        files = request.files("database")
        return _Read(found, spectra, read_proteins(files, progress=progress) if files else None)

    with search_run(spec, read, READING, progress) as run:
        assert run.run is not None
        found, spectra, database = run.read()
        run.load(partial(import_module, "duckdb"))

        owner = run.run
        with run.step("index"):
            run.progress.stage("Finding the spectra")
            in_spectra = find_spectra(found, spectra)
        with run.step("plan"):
            matches = collect_matches(
                found, in_spectra, spectra, database, enzyme(parameters.enzyme), parameters.fixed_modifications, run.progress
            )
            if not len(matches):
                raise InputError(
                    found.files[0], f"none of its {len(found):,} matches can be taken; of the first, {matches.reason[0]}",
                    remedy="Give the spectra that were searched" + ("" if database else ", and the database"),
                )  # fmt: skip
        with run.step("score"):
            judged = imported.results.judge(found, matches, spectra, parameters, run.progress)
        run.device = "cpu"
        with run.step("report"):
            spectra_written = run.begin(lambda progress: write_spectra(owner, spectra, progress))
            run.progress.stage("Writing results")
            made = listed.tables.listed_tables(found, matches, judged, spectra, database)
            written = matches_package.run_tables.RunTables(made.tables, judged.settings)
            written.write(owner, run.progress, run.begin)
            left_out = imported.results.left_out_table(found, matches)
            owner.write_table("left_out", left_out)
            write_separated(owner.folder / EXPORTS / _LEFT_OUT_FILE, left_out, LEFT_OUT.saved_columns, run.progress, ROUNDED)
            spectra_written()
            run.progress.check()
        reasons = dict(Counter([*found.unread["reason"].to_pylist(), *matches.reason]))
        n_matches = len(found) + len(found.unread)
        counts = {"spectra": len(spectra), "matches": n_matches, "imported": len(matches), **written.counts}
        numbers: dict[str, Any] = {f"n_{name}": number for name, number in counts.items()}
        summary = ImportSummary(
            **run.summary_fields, **numbers, format=found.format, program=found.program,
            left_out=reasons, found_by=matches.found_by, source_of=made.source_of, score=judged.title, certainty=made.certainty,
            top_proteins=written.best_proteins, fdr=parameters.fdr,
        )  # fmt: skip
        _tell(run, summary, found, matches, ignores_files=in_spectra.ignores_files)
        if database is not None:
            for warning in cut_off_proteins(found, database):
                run.progress.message(warning, "warning")
        is_judged = made.source_of["psms"] != "none"
        message = written.message if is_judged else f"{len(matches):,} matches imported, without q-values"
        run.record(
            counts, message, exports=[*matches_package.run_tables.EXPORTED, _LEFT_OUT_FILE], certainty=made.certainty,
            has_decoys=bool(judged.is_decoy.any()),
            format=found.format, program=found.program, score=judged.title, left_out=reasons, found_by=matches.found_by,
            q_values_of=made.source_of, posterior_errors_of=judged.rates.posterior_error_of,
            computed_here=["matched_ions", "total_ions", "mass_error_ppm", "isotope_error", "missed_cleavages", "rank", "protein groups"],
        )  # fmt: skip
        return replace(summary, **run.summary_fields)


def _tell(run: SearchRun[_Read], summary: ImportSummary, found: Identifications, matches: ListedMatches, *, ignores_files: bool) -> None:
    """Say whose the q-values are, and what the user may have to mend."""
    tell = run.progress.message
    tell(f"{summary.rate_sources()}. Matched ions, mass errors, ranks and protein groups are computed here.")
    if found.format == "Percolator or mokapot" and summary.source_of["psms"] == "decoys":
        tell(
            f"Features for Percolator or mokapot (.pin) carry no q-values. Those here rest on one of them, {summary.score}, and accept "
            "fewer than rescoring does: for its q-values import the table of PSMs, mzIdentML or pepXML", "warning",
        )  # fmt: skip
    places = describe_unread(found)
    for reason, n in summary.left_out.items():
        where = f" ({places[reason]})" if reason in places else ""
        tell(f"{counted(n, 'match', 'matches')} left out, listed in {EXPORTS}/{_LEFT_OUT_FILE}: {reason}{where}", "warning")
    if ignores_files:
        tell(f"The results name another file of spectra than {Path(run.files('spectra')[0]).name}; that is taken for it", "warning")
    if matches.unknown:
        names = ", ".join(list(matches.unknown)[:_MAXIMUM_TOLD])
        tell(f"Modifications that are not known: {names:.300}", "warning")
    used = np.unique(matches.protein)
    unplaced = int(np.count_nonzero(matches.places.row[used] < 0))
    if run.paths("database") and unplaced:
        tell(f"{unplaced:,} of {len(used):,} proteins of the results are not in the database, and have no coverage", "warning")
    if matches.places.from_database:
        tell(f"The results name no protein of {matches.places.from_database:,} peptides, which are found in the database")
    calculated = found.calculated_mass[matches.row]
    differs = np.abs(calculated - matches.calculated_mass)
    # Some files give the mass of the ion with one proton.
    differs = np.minimum(differs, np.abs(calculated - 1.007276 - matches.calculated_mass))
    is_other = np.isfinite(differs) & (differs > 0.02)
    if is_other.any():
        usual = float(np.median((calculated - matches.calculated_mass)[is_other]))
        tell(
            f"{int(is_other.sum()):,} peptides weigh another mass in the results than their residues and modifications do (most "
            f"{usual:+.4f} Da): a modification that the file leaves unsaid goes into fixed_modifications", "warning",
        )  # fmt: skip
    is_far = np.abs(matches.observed_mass - matches.calculated_mass) > _FAR
    if is_far.mean() > 0.5:
        tell(
            f"{int(is_far.sum()):,} precursors are more than {_FAR:g} Da from their peptides: are these the spectra that were searched?",
            "warning",
        )
