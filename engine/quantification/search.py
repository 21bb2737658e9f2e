"""Quantify what was identified: read -> index -> plan -> score -> report, from a project to a run of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError, ParameterError, shortened
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.digests import copy_text
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.quantification.amounts import Amounts, Grouping, State
from proteoscope.engine.quantification.centre import Centre
from proteoscope.engine.quantification.changes import Changes, changes_table, protein_changes
from proteoscope.engine.quantification.compilation import TRACES
from proteoscope.engine.quantification.counting import abundance_factors
from proteoscope.engine.quantification.design import BLOCKS, Design, design_of_files, read_design
from proteoscope.engine.quantification.identified import Identified, Sources, identified, sources
from proteoscope.engine.quantification.impurities import read_impurities
from proteoscope.engine.quantification.isobaric import check_reference, measured_isobaric, scaled_to_reference
from proteoscope.engine.quantification.label_free import measured_label_free
from proteoscope.engine.quantification.labels import label, labels_of_peptides
from proteoscope.engine.quantification.measuring import Measured, measured_counts, spectra_by_sample
from proteoscope.engine.quantification.models import ComparisonModel, comparison_model
from proteoscope.engine.quantification.normalised import centre_messages, normalised_levels
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.results import Quantities, quantity_tables, write_wide
from proteoscope.engine.quantification.summary import QuantificationSummary
from proteoscope.engine.quantification.tables import CHANGES, TABLES, file_of
from proteoscope.engine.results.separated import DIGITS, write_separated
from proteoscope.engine.search_run import RunSpec, SearchRun, search_run

__all__ = ["quantify"]

_DECIDING = {
    "tmt": "psm_fdr, reporter_tolerance, maximum_interference and minimum_signal_to_noise",
    "label-free": "psm_fdr, precursor_tolerance and minimum_agreement",
    "counts": "psm_fdr",
}
"""Parameters by which something has a quantity or none."""


def quantify(request: SearchRequest, progress: Progress | None = None) -> QuantificationSummary:
    """Quantify the peptides and proteins of identifications in the samples of a design; a run is added to the project.

    Parameters
    ----------
    request : input ``project``, the folder of a project with identifications; `QuantificationParameters`. Its options: ``design``, a table
        of samples, ``impurities``, a table of those of an isobaric label, and ``report``, a folder for tables and pages.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    parameters, folder = request.parameters_as(QuantificationParameters), request.files("project")[0]
    found = sources(folder, parameters.run)
    spec = RunSpec("quantify", replace(request, project=folder), {}, _inputs(request, found, parameters), request.outputs("report"), False)

    def read(progress: Progress, threads: int) -> Identified:
        progress.stage("Reading the identification")
        uses_razor = parameters.shared_peptides == "razor"
        return identified(found, parameters.psm_fdr, parameters.protein_fdr, uses_razor=uses_razor)

    with search_run(spec, read, TRACES if parameters.method == "label-free" else None, progress) as run:
        assert run.run is not None
        _check_files(run, found)
        design = _design(request, found, parameters)
        _warn_of_design(run.progress, design, found)
        model = _model(run.progress, design, parameters)
        known = run.read()
        _propose_reporters(run.progress, known, parameters)
        if known.unrated:
            run.progress.message(
                f"{', '.join(known.unrated)}: no error rate of proteins is known; all proteins of accepted matches are quantified",
                "warning",
            )
        with run.step("score"):
            measured = _measured(known, design, request, parameters, run.resources(), spec.spool)
        run.device = measured.devices
        with run.step("report"):
            quantities, centres = _quantities(known, design, measured, model, parameters)
            if not (~np.isnan(quantities.proteins.value)).any():
                raise InputError(
                    folder, "nothing that was identified has a quantity in any sample", remedy=f"Look at {_DECIDING[parameters.method]}"
                )
            changes = protein_changes(quantities.proteins, model, parameters)
            _warn_of_samples(run.progress, quantities)
            _warn_of_plexes(run.progress, design, parameters)
            for text, is_warning in centre_messages(centres, model.groups if model else ()):
                run.progress.message(text, "warning" if is_warning else "info")
            made = {**measured.tables, **quantity_tables(quantities), CHANGES.name: changes_table(changes, known.proteins)}
            made |= {one.name: one.schema().empty_table() for one in TABLES if one.name not in made}
            for one in TABLES:
                run.run.write_table(one.name, made[one.name])
                run.progress.check()
                write_separated(run.run.folder / EXPORTS / file_of(one), made[one.name], one.saved_columns, run.progress, DIGITS)
            wide = write_wide(run.run.folder / EXPORTS, made, run.progress)
            if request.out is not None:
                write_separated(Path(request.out), made[TABLES[0].name], TABLES[0].saved_columns, run.progress, DIGITS)
        shifts = {one.name: round(centre.shift, 4) for one, centre in zip(changes, centres, strict=bool(centres))}
        facts = {"blocks": list(model.blocks) if model else [], "centre_shifts": shifts}
        exports = [*map(file_of, TABLES), *(path.name for path in wide)]
        return _recorded(run, found, quantities, measured, changes, parameters, exports, facts)


def _inputs(request: SearchRequest, found: Sources, parameters: QuantificationParameters) -> dict[str, list[str | Path]]:
    """The files that are read: tables of the identifications, spectra where they are needed, and what options name."""
    options = {name: request.path(name) for name in ("design", "impurities")}
    spectra = [one.path for one in found.files] if parameters.method != "counts" else []
    return {
        "project_psms": [run.psms for run in found.runs],
        "project_proteins": [run.proteins for run in found.runs if run.proteins is not None],
        "spectra": list(spectra), **{name: [] if path is None else [path] for name, path in options.items()},
    }  # fmt: skip


def _check_files(run: SearchRun[Identified], found: Sources) -> None:
    """Refuse files that are other than those that were identified."""
    for one, digest in zip(found.files, run.digests("spectra"), strict=False):
        if one.sha256 and digest != one.sha256:
            raise InputError(one.path, "has changed since it was identified", remedy="Put it back as it was, or identify it again")


def _design(request: SearchRequest, found: Sources, parameters: QuantificationParameters) -> Design:
    path, names = request.path("design"), [one.path for one in found.files]
    kit = label(parameters.label) if parameters.method == "tmt" else None
    copies = dict(found.copies)
    design = design_of_files(names, kit) if path is None else read_design(path, names, kit, copies)
    if kit is not None and parameters.reference:
        check_reference(design, parameters.reference)
    return design


def _warn_of_design(progress: Progress, design: Design, found: Sources) -> None:
    """Show what the design does not name, what of it nothing reads, and which files are copies."""
    for copy, original in found.copies.items():
        progress.message(f"{copy_text(copy, original)}: it is counted once", "warning")
    for name in design.left_out:
        progress.message(f"{name} is left out: the design does not name it", "warning")
    if design.unused:
        progress.message(
            f"Columns of the design that are not used: {', '.join(design.unused)}; blocks of the comparison are {', '.join(BLOCKS)}",
            "warning",
        )
    for first, second in design.look_alikes:
        progress.message(
            f"The design has {shortened(first)} and {shortened(second)}, which differ in case or in the code of letters alone: they are"
            " taken for two", "warning",
        )  # fmt: skip


def _model(progress: Progress, design: Design, parameters: QuantificationParameters) -> ComparisonModel | None:
    """Return the model that compares the conditions of the design, and show what is not compared; None where nothing is.

    Raises
    ------
    ParameterError : conditions that the parameters name cannot be compared.
    """
    groups = design.groups(parameters.groups, parameters.reference)
    if not groups:
        _warn_of_no_comparison(progress, design, parameters)
        return None
    try:
        model = comparison_model(design, groups, parameters.reference)
    except ParameterError as error:
        if parameters.groups:
            raise
        progress.message(f"Conditions are not compared: {error}", "warning")
        return None
    alone = [name for name in design.conditions if name not in groups]
    if alone:
        progress.message(f"Not compared, with one sample or left out: {', '.join(alone)}")
    for message in model.messages:
        progress.message(message, "warning")
    if model.blocks:
        progress.message(f"Blocks of the comparison: {', '.join(model.blocks)}")
    return model


def _warn_of_no_comparison(progress: Progress, design: Design, parameters: QuantificationParameters) -> None:
    conditions = [name for name in design.conditions if name != parameters.reference]
    if len(conditions) == 1:
        progress.message(f"Nothing is compared: all samples have one condition, {shortened(conditions[0])}", "warning")
    elif conditions:
        progress.message("Conditions are not compared: fewer than two of them have two samples and more", "warning")


def _propose_reporters(progress: Progress, known: Identified, parameters: QuantificationParameters) -> None:
    """Propose reporter ions where peptides carry an isobaric label, and another method is chosen."""
    if parameters.method == "tmt":
        return
    labelled = labels_of_peptides(known.forms.peptide)
    if labelled:
        name, kits, n_forms = labelled
        progress.message(
            f"{n_forms:,} of {len(known.forms):,} peptidoforms carry {name}: the samples of each file are in its reporter ions, which"
            f" --method {parameters.method} does not read; quantify with --method tmt and --label {' or '.join(kits)}", "warning",
        )  # fmt: skip


def _measured(
    known: Identified, design: Design, request: SearchRequest, parameters: QuantificationParameters, resources: Resources,
    spool: Path | None,
) -> Measured:  # fmt: skip
    """Amounts of peptidoforms, by the method asked for."""
    if parameters.method == "label-free":
        return measured_label_free(known, design, parameters, resources, spool)
    if parameters.method == "tmt":
        path, kit = request.path("impurities"), label(parameters.label)
        impurities = None if path is None else read_impurities(path, kit)
        return measured_isobaric(known, design, kit, impurities, parameters, resources, spool)
    return measured_counts(known, design)


def _quantities(
    known: Identified, design: Design, measured: Measured, model: ComparisonModel | None, parameters: QuantificationParameters
) -> tuple[Quantities, tuple[Centre, ...]]:
    """Return peptidoforms, peptides and proteins, normalised, and the centres of the comparisons."""
    n_samples, protein = len(design.samples), known.protein
    of_sequence = known.forms.sequence[known.matches.form]
    psms = [
        spectra_by_sample(known, design, thing, n)
        for thing, n in (
            (known.matches.form, len(known.forms)), (of_sequence, len(known.sequences)), (protein[of_sequence], len(known.proteins))
        )
    ]  # fmt: skip
    nsaf = abundance_factors(psms[2], known.proteins.length)
    if parameters.method == "counts":
        proteins = Amounts.of(np.where(nsaf > 0, nsaf, np.nan))
        sequences = measured.ions.summed(known.forms.sequence, len(known.sequences))
        return Quantities(design, known, measured.ions, sequences, proteins, np.ones(n_samples), nsaf, *psms), ()
    grouping = Grouping(measured.form, known.forms.sequence, protein, len(known.proteins))

    def scaled(amounts: Amounts) -> Amounts:
        has_reference = parameters.method == "tmt" and parameters.reference
        return scaled_to_reference(amounts, design, parameters.reference) if has_reference else amounts

    plexes = design.plexes if parameters.method == "tmt" else None
    found = normalised_levels(measured.ions, grouping, model, parameters, plexes, scaled)
    return Quantities(design, known, *found.levels, found.factor, nsaf, *psms), found.centres


def _warn_of_samples(progress: Progress, quantities: Quantities) -> None:
    """Show which samples are empty, and how many amounts have no ratio to those of other samples."""
    for number in np.flatnonzero(np.isnan(quantities.proteins.value).all(axis=0)).tolist():
        progress.message(f"Sample {quantities.design.samples[number].name} has no quantity of any protein", "warning")
    apart = quantities.proteins.state == State.NO_SHARED_ION
    if apart.any():
        progress.message(
            f"{int(apart.any(axis=1).sum()):,} proteins have no quantity in {int(apart.sum()):,} places: no ion is shared with the other"
            " samples, so that there is no ratio to them (state no shared ion)"
        )


def _warn_of_plexes(progress: Progress, design: Design, parameters: QuantificationParameters) -> None:
    n_plexes = len(np.unique(design.plexes))
    if parameters.method == "tmt" and n_plexes > 1 and not parameters.reference:
        progress.message(
            f"{n_plexes} plexes and no reference: quantities of samples in different plexes are not comparable, though comparisons of"
            " conditions have the plex as a block; name the condition of the channels that hold the same in each (reference)", "warning",
        )  # fmt: skip


def _recorded(
    run: SearchRun[Identified], found: Sources, quantities: Quantities, measured: Measured, changes: list[Changes],
    parameters: QuantificationParameters, exports: list[str], facts: Mapping[str, Any],
) -> QuantificationSummary:  # fmt: skip
    has = [int((~np.isnan(one.value)).any(axis=1).sum()) for one in (quantities.forms, quantities.sequences, quantities.proteins)]
    counts = {
        "samples": len(quantities.design.samples), "peptidoforms": has[0], "peptides": has[1], "proteins": has[2],
        "identified_proteins": len(quantities.proteins), "transferred": 0, "refused": 0, **measured.counts,
        "tested": sum(one.n_tested for one in changes), "changed": sum(one.n_changed for one in changes),
        "imputed": sum(int(one.n_imputed.sum()) for one in changes),
    }  # fmt: skip
    names = tuple(one.run for one in found.runs)
    run.record(counts, f"{has[2]:,} proteins in {counts['samples']:,} samples", exports=exports, source_runs=list(names), **facts)
    return QuantificationSummary(
        **run.summary_fields, source_runs=names, method=parameters.method, n_samples=counts["samples"], n_peptidoforms=has[0],
        n_peptides=has[1], n_proteins=has[2], n_identified_proteins=counts["identified_proteins"], n_transferred=counts["transferred"],
        n_refused=counts["refused"], n_tested=counts["tested"], n_changed=counts["changed"], n_imputed=counts["imputed"],
    )  # fmt: skip
