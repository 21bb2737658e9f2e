"""Search that explains the unidentified spectra of an identification, in the steps read, index, plan, score and report.

Results are the table of explained spectra, and the points of the LC-MS map.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.clustering.explained_spectra import (
    Explained,
    cascade,
    identified_library,
    plan_other_masses,
    plan_same_mass,
    prepare_queries,
    score_other_masses,
    score_same_mass,
)
from proteoscope.engine.clustering.parameters import ExplanationParameters
from proteoscope.engine.clustering.summary import ExplanationSummary
from proteoscope.engine.clustering.tables import EXPLAINED, MAP
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.identified_spectra import Identified, read_identified
from proteoscope.engine.matches.source_run import identified_run
from proteoscope.engine.matches.tables import AcceptanceCounts
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.arrow import or_null, taken
from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.separated import ROUNDED, write_separated
from proteoscope.engine.search_run import RunSpec, SearchRun, project_run
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.tables import read_spectra_table, spectrum_columns

__all__ = ["EXPLAINED_FILE", "explain", "report"]

EXPLAINED_FILE = "explained.tsv"
"""Name of the file of explained spectra in the project folder."""
_UNEXPLAINED, _IDENTIFIED, _EXPLAINED = 0, 1, 2


def report(
    results: Run,
    matches: Explained,
    spectra: Spectra,
    identified: Identified,
    out: Path | None,
    parameters: ExplanationParameters,
    progress: Progress,
) -> tuple[Explained, AcceptanceCounts]:
    """Write the explained spectra to the project and to `out`; return the accepted explanations, and their numbers."""
    similar = matches.take(matches.similarity >= parameters.minimum_similarity)
    reported = similar.take(~similar.is_decoy)
    accepted = reported.take(reported.q_value <= parameters.fdr)
    order = np.lexsort((reported.spectrum, -reported.similarity, reported.q_value))
    table = _explained_table(reported.take(order), spectra, identified)
    results.write_table("explained", table)
    results.write_table("map", _map_table(spectra, identified, accepted))
    for path in (results.folder / EXPORTS / EXPLAINED_FILE, *([] if out is None else [out])):
        write_separated(path, table, EXPLAINED.saved_columns, progress, ROUNDED)
    progress.check()
    return accepted, AcceptanceCounts.from_q_values(similar.q_value, similar.is_decoy, parameters.fdr)


def _explained_table(reported: Explained, spectra: Spectra, identified: Identified) -> pa.Table:
    """Return the table of explained spectra."""
    rows, nearest = reported.spectrum, identified.spectrum[reported.identified]
    return EXPLAINED.arrow(
        {
            **spectrum_columns(spectra, rows, ("spectrum", "spectrum_file", "spectrum_id", "scan", "retention_time")),
            "peptide": taken(identified.peptides, identified.peptide[reported.identified]),
            "charge": pa.array(reported.charge.astype(np.int32)),
            "similarity": pa.array(reported.similarity),
            "mass_difference": pa.array(reported.mass_difference),
            "q_value": pa.array(reported.q_value),
            "nearest_spectrum": taken(spectra.identifier, nearest),
            "nearest": pa.array(nearest),
            "precursor_mz": or_null(spectra.precursor_mz[rows]),
            "kind": pa.array(np.where(reported.is_modified, "modified", "same"), pa.string()),
        }
    )


def _map_table(spectra: Spectra, identified: Identified, accepted: Explained) -> pa.Table:
    """Return the table of the map: retention time, precursor m/z, status and peptide of every spectrum."""
    status = np.full(len(spectra), _UNEXPLAINED, np.uint8)
    status[identified.spectrum], status[accepted.spectrum] = _IDENTIFIED, _EXPLAINED
    form = np.full(len(spectra), -1, np.int64)
    form[identified.spectrum] = identified.peptide
    form[accepted.spectrum] = identified.peptide[accepted.identified]
    return MAP.arrow(
        {
            **spectrum_columns(spectra, np.arange(len(spectra)), ("spectrum", "spectrum_file", "scan", "retention_time")),
            "precursor_mz": or_null(spectra.precursor_mz),
            "status": pa.array(status),
            "peptide": taken(identified.peptides, form),
        }
    )


_USUAL_MZ, _MAXIMUM_BINS_OF_TOLERANCE = 500.0, 2

Inputs = tuple[Spectra, Identified]


def explain(request: SearchRequest, progress: Progress | None = None) -> ExplanationSummary:
    """Explain the unidentified spectra of a project by similar identified spectra, and add a run to the project.

    Parameters
    ----------
    request : SearchRequest
        Input ``project`` (folder of a project with an identification), with `ExplanationParameters`. If `out` is not None, the table of
        explained spectra is also written to this file. The CPU does all the work, whatever the device.
    progress : Progress, optional
        Progress, which receives stages and messages.

    Returns
    -------
    ExplanationSummary

    Raises
    ------
    InputError, ParameterError, StorageError
        If there is an error that the user can correct.
    Cancelled
        If the user cancelled the search.
    """
    parameters, project = request.parameters_as(ExplanationParameters), request.files("project")[0]
    source = identified_run(project, parameters.run)
    inputs = {"project_spectra": [source.spectra], "project_psms": [source.psms]}
    spec = RunSpec("explain", replace(request, project=project), {}, inputs, request.outputs(), kernels="explain")

    def read(progress: Progress, threads: int) -> Inputs:
        progress.stage("Reading the identification")
        spectra = read_spectra_table(source.spectra)
        identified = read_identified(source.psms, len(spectra), parameters.peptide_fdr)
        if not len(identified):
            raise InputError(
                source.psms,
                f"run '{source.run}' has no PSM up to a q-value of {parameters.peptide_fdr:g}",
                remedy="Choose a run with identified peptides, or raise peptide_fdr",
            )
        return spectra, identified

    with project_run(spec, read, progress) as (run, results):
        spectra, identified = run.read()
        _warn_of_narrow_bins(source.fragment_tolerance, parameters, run.progress)
        # So few candidates have the same mass that the CPU finishes before a GPU would be ready.
        resources = Resources(run.threads, progress=run.progress, clock=run.clock)
        with run.step("index"):
            ion_series = str(source.parameters.get("ion_series", BY_ACTIVATION))
            library = identified_library(spectra, identified, ion_series, source.fragment_tolerance, parameters, resources)
        with run.step("plan"):
            unidentified = np.setdiff1d(np.arange(len(spectra)), identified.spectrum)
            queries = prepare_queries(spectra, unidentified, library, parameters, resources)
            plan = plan_same_mass(queries, library, parameters)
        with run.step("score"):
            matches = score_same_mass(plan, library, resources)
        if parameters.mass_difference:
            with run.step("plan"):
                plan_of_others = plan_other_masses(queries, library, matches.accepted(parameters.fdr), parameters)
            with run.step("score"):
                matches = cascade(matches, score_other_masses(plan_of_others, library, resources))
        run.device = "cpu"
        with run.step("report"):
            out = None if request.out is None else Path(request.out)
            accepted, totals = report(results, matches, spectra, identified, out, parameters, run.progress)
        return _summary(run, source.run, len(spectra), identified, accepted, totals, parameters)


def _warn_of_narrow_bins(tolerance: Tolerance, parameters: ExplanationParameters, progress: Progress) -> None:
    """Warn if bins are far narrower than the fragment tolerance of the identification."""
    if tolerance.width(_USUAL_MZ) > _MAXIMUM_BINS_OF_TOLERANCE * parameters.bin_width:
        progress.message(
            f"The run was searched with a fragment tolerance of {tolerance}, but bins are {parameters.bin_width:g} Th"
            " wide: the preset low-resolution suits it better",
            "warning",
        )


def _summary(
    run: SearchRun[Inputs],
    source_run: str,
    n_spectra: int,
    identified: Identified,
    accepted: Explained,
    totals: AcceptanceCounts,
    parameters: ExplanationParameters,
) -> ExplanationSummary:
    """Write the record of the run, and return its summary."""
    n_modified, certainty = int(accepted.is_modified.sum()), totals.certainty()
    counts = {
        "spectra": n_spectra,
        "identified": len(identified),
        "unidentified": n_spectra - len(np.unique(identified.spectrum)),
        "explained": len(accepted),
        "modified": n_modified,
    }
    run.record(
        counts,
        f"{counted(len(accepted), 'spectrum', 'spectra')} explained",
        exports=[EXPLAINED_FILE],
        source_run=source_run,
        certainty={"explained": certainty},
    )
    return ExplanationSummary(
        **run.summary_fields(counts),
        source_run=source_run,
        n_same=len(accepted) - n_modified,
        n_peptides=len(np.unique(identified.peptide)),
        fdr=parameters.fdr,
        decoys=totals.decoys,
        false_share_low=certainty["false_share_low"],
        false_share_high=certainty["false_share_high"],
        targets_at_5_percent=totals.targets_at_5_percent,
    )
