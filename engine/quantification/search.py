"""Quantification of identifications, which adds a run to the project: read, index, plan, score, report."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.quantification.amounts import MeasuredIons
from proteoscope.engine.quantification.changes import Changes, protein_changes
from proteoscope.engine.quantification.design import Design, planned_design
from proteoscope.engine.quantification.identified import Identified, Sources, identified, sources, warn_of_identified
from proteoscope.engine.quantification.impurities import read_impurities
from proteoscope.engine.quantification.isobaric import measure_isobaric
from proteoscope.engine.quantification.label_free import measure_label_free
from proteoscope.engine.quantification.labels import label
from proteoscope.engine.quantification.models import ComparisonModel, planned_model
from proteoscope.engine.quantification.normalised import Quantities, normalised_quantities, warn_of_quantities
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.results import quantity_tables, site_tables, write_quantities
from proteoscope.engine.quantification.sites import localised_peptidoforms
from proteoscope.engine.quantification.spectral_counts import measure_counts
from proteoscope.engine.quantification.summary import QuantificationSummary
from proteoscope.engine.results.counts import counted
from proteoscope.engine.search_run import RunSpec, SearchRun, project_run

__all__ = ["quantify"]

_REMEDIES = {
    "tmt": "psm_fdr, reporter_tolerance, maximum_interference and minimum_signal_to_noise",
    "label-free": "psm_fdr, precursor_tolerance and minimum_agreement",
    "counts": "psm_fdr",
}
"""Parameters that decide whether a quantity is missing, by method."""


def quantify(request: SearchRequest, progress: Progress | None = None) -> QuantificationSummary:
    """Quantify the peptides and proteins of identifications in the samples of a design, and add a run to the project.

    Parameters
    ----------
    request : SearchRequest
        Input ``project`` (folder of a project with identifications), with `QuantificationParameters`. Options: ``design``, a table of
        samples; ``impurities``, a table of the impurities of an isobaric label; ``report``, a folder for tables and pages.
    progress : Progress, optional
        Progress of the quantification.

    Returns
    -------
    QuantificationSummary

    Raises
    ------
    InputError, ParameterError, StorageError
        If there is an error that the user can correct.
    Cancelled
        If the user cancelled the search.
    """
    parameters = request.parameters_as(QuantificationParameters)
    result = sources(request.files("project")[0], parameters.run)
    if parameters.method != "counts":
        result.check_sizes()
    spec = _spec(request, result, parameters)

    def read(progress: Progress, threads: int) -> Identified:
        progress.stage("Reading the identification")
        uses_razor = parameters.shared_peptides == "razor"
        has_ids = parameters.method == "tmt"
        return identified(result, parameters.psm_fdr, parameters.protein_fdr, uses_razor=uses_razor, has_ids=has_ids)

    with project_run(spec, read, progress) as (run, stored):
        result.check_digests(run.digests("spectra"))
        # A design needs only file names, so its errors are reported before the identification is read.
        design = planned_design(request.path("design"), [file.path for file in result.files], result.copies, parameters, run.progress)
        model = planned_model(design, parameters, run.progress)
        matches = run.read()
        warn_of_identified(matches, parameters.method, run.progress)
        with run.step("score"):
            measured = _measured(matches, design, request, parameters, run.resources(), spec.spool)
        run.device = measured.devices
        with run.step("report"):
            quantities = normalised_quantities(matches, design, measured, model, parameters, spec.spool)
            _check_quantities(quantities, request, parameters)
            changes = protein_changes(quantities.proteins, model, parameters)
            warn_of_quantities(quantities, model, parameters, run.progress)
            tables = quantity_tables(quantities, changes, measured.tables)
            if (localised := localised_peptidoforms(result, matches)) is not None:
                of_sites, n_with_quantity = site_tables(quantities, measured, localised[0], parameters, spec.spool)
                tables |= of_sites
                n_sites = _report_sites(n_with_quantity, localised[1], parameters, run.progress)
                measured = replace(measured, counts={**measured.counts, "sites": n_sites})
            exports = write_quantities(stored, tables, request.out, run.progress)
        return _write_record(run, result, quantities, measured, model, changes, exports)


def _report_sites(n_sites: tuple[int, int], n_unplaced: int, parameters: QuantificationParameters, progress: Progress) -> int:
    """Report how many sites have a quantity, and how many localised modifications are in no quantified protein; return the former.

    `n_sites` are the numbers of sites with a quantity, and with a quantity relative to the protein.
    """
    has, has_ratio = n_sites
    progress.message(
        f"{counted(has, 'site')} with a probability of at least {parameters.minimum_site_probability:g} quantified,"
        f" {has_ratio:,} also relative to unmodified peptides of the protein"
    )
    if n_unplaced:
        progress.message(f"{counted(n_unplaced, 'localised modification')} of peptidoforms without a quantified protein are not used")
    return has


def _spec(request: SearchRequest, sources: Sources, parameters: QuantificationParameters) -> RunSpec:
    """Return the specification of the run, with the files to read and to write."""
    options = {name: request.path(name) for name in ("design", "impurities")}
    inputs = sources.inputs(with_spectra=parameters.method != "counts") | {
        name: [] if path is None else [path] for name, path in options.items()
    }
    in_project = replace(request, project=request.files("project")[0])
    kernels = "quantify" if parameters.method == "label-free" else ""
    return RunSpec("quantify", in_project, {}, inputs, request.outputs("report"), are_distinct=False, kernels=kernels)


def _measured(
    matches: Identified,
    design: Design,
    request: SearchRequest,
    parameters: QuantificationParameters,
    resources: Resources,
    spool: Path | None,
) -> MeasuredIons:
    """Return the amounts of ions, measured by the method in the parameters."""
    if parameters.method == "label-free":
        return measure_label_free(matches, design, parameters, resources, spool)
    if parameters.method == "counts":
        return measure_counts(matches, design, spool)
    path, kit = request.path("impurities"), label(parameters.label)
    impurities = None if path is None else read_impurities(path, kit)
    return measure_isobaric(matches, design, kit, impurities, parameters, resources, spool)


def _check_quantities(quantities: Quantities, request: SearchRequest, parameters: QuantificationParameters) -> None:
    if np.isnan(quantities.proteins.value).all():
        raise InputError(
            request.files("project")[0],
            "no identified peptide has a quantity in any sample",
            remedy=f"Look at {_REMEDIES[parameters.method]}",
        )


def _write_record(
    run: SearchRun[Identified],
    sources: Sources,
    quantities: Quantities,
    measured: MeasuredIons,
    model: ComparisonModel | None,
    changes: Sequence[Changes],
    exports: Sequence[str],
) -> QuantificationSummary:
    """Write the record of the run, and return its summary."""
    n_forms, n_sequences, n_proteins = (int(level.has_any().sum()) for level in quantities.normalised.levels)
    counts = {
        "samples": len(quantities.design.samples),
        "peptidoforms": n_forms,
        "peptides": n_sequences,
        "proteins": n_proteins,
        "identified_proteins": len(quantities.proteins),
        "transferred": 0,
        "random_time_transfers": 0,
        "decoy_transfers": 0,
        "decoy_random_time_transfers": 0,
        "refused": 0,
        **measured.counts,
        "tested": sum(change.n_tested for change in changes),
        "changed": sum(change.n_changed for change in changes),
        "imputed": sum(int(change.n_imputed.sum()) for change in changes),
    }
    runs, centres = tuple(run.run for run in sources.runs), quantities.normalised.centres
    shifts = {change.name: round(centre.shift, 4) for change, centre in zip(changes, centres, strict=bool(centres))}
    message = f"{n_proteins:,} proteins in {counts['samples']:,} samples"
    blocks = [] if model is None else list(model.blocks)
    run.record(counts, message, exports=exports, source_runs=list(runs), blocks=blocks, centre_shifts=shifts)
    shown = {field.name[2:]: counts[field.name[2:]] for field in fields(QuantificationSummary) if field.name.startswith("n_")}
    method = run.spec.request.parameters_as(QuantificationParameters).method
    return QuantificationSummary(**run.summary_fields(shown), source_runs=runs, method=method)
