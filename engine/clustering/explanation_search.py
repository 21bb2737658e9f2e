"""Explain the spectra that an identification left unidentified: read -> index -> plan -> score -> report, from a project to a run of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION
from proteoscope.engine.clustering.compilation import EXPLANATION
from proteoscope.engine.clustering.explained_spectra import Explained, Queries, explained, library_of
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
from proteoscope.engine.matches.tables import Counted
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.separated import ROUNDED, write_separated
from proteoscope.engine.search_run import RunSpec, search_run
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.tables import read_spectra_table

if TYPE_CHECKING:
    pass

__all__ = ["explain"]

_NAME = "explained.tsv"
_UNEXPLAINED, _IDENTIFIED, _EXPLAINED = 0, 1, 2
_USUAL_MZ, _MAXIMUM_BINS_OF_TOLERANCE = 500.0, 2


class _Read(NamedTuple):
    spectra: Spectra
    identified: Identified


def explain(request: SearchRequest, progress: Progress | None = None) -> ExplanationSummary:
    """Explain unidentified spectra of a project by the identified ones that they resemble; a run is added to the project.

    Parameters
    ----------
    request : input ``project``, the folder of a project with an identification; `ExplanationParameters`. `out` is a file for the table of
        explained spectra too; None for none. The processor does all of this search, whatever the device.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    parameters, project = request.parameters_as(ExplanationParameters), request.files("project")[0]
    out = None if request.out is None else Path(request.out)
    source = identified_run(project, parameters.run)
    inputs = {"project_spectra": [source.spectra], "project_psms": [source.psms]}
    spec = RunSpec("explain", replace(request, project=project), {}, inputs, request.outputs())

    def read(progress: Progress, threads: int) -> _Read:
        progress.stage("Reading the identification")
        spectra = read_spectra_table(source.spectra)
        return _Read(spectra, read_identified(source.psms, len(spectra), parameters.peptide_fdr))

    with search_run(spec, read, EXPLANATION, progress) as run:
        assert run.run is not None
        spectra, identified = run.read()
        if not len(identified):
            raise InputError(
                source.psms, f"run {source.run} has no PSM up to a q-value of {parameters.peptide_fdr:g}",
                remedy="Explain a run that identified something, or raise peptide_fdr",
            )  # fmt: skip
        tolerance = source.fragment_tolerance.width(_USUAL_MZ)
        if tolerance > _MAXIMUM_BINS_OF_TOLERANCE * parameters.bin_width:
            run.progress.message(
                f"The run was searched with a fragment tolerance of {source.fragment_tolerance}, and bins are {parameters.bin_width:g} Th"
                " wide: the preset low-resolution suits it better", "warning",
            )  # fmt: skip
        # Few enough candidates have the same mass for the processor to be done before a card is ready.
        resources = Resources(run.threads, progress=run.progress, clock=run.clock)
        with run.step("index"):
            ion_series = str(source.parameters.get("ion_series", BY_ACTIVATION))
            library = library_of(spectra, identified, ion_series, source.fragment_tolerance, parameters, resources)
            rows = np.setdiff1d(np.arange(len(spectra)), identified.spectrum)
        with run.step("plan"):
            queries = Queries.of(spectra, rows, library, parameters, resources)
        with run.step("score"):
            every = explained(queries, parameters, resources)
        run.device = "cpu"
        with run.step("report"):
            reported = every.take(~every.is_decoy & (every.similarity >= parameters.minimum_similarity))
            order = np.lexsort((reported.spectrum, -reported.similarity, reported.q_value))
            table = _explained_table(reported.take(order), spectra, identified)
            accepted = reported.take(reported.q_value <= parameters.fdr)
            run.run.write_table("explained", table)
            run.run.write_table("map", _map(spectra, identified, accepted))
            for path in (run.run.folder / EXPORTS / _NAME, *([] if out is None else [out])):
                write_separated(path, table, EXPLAINED.saved_columns, run.progress, ROUNDED)
            run.progress.check()
        decoys = int(
            np.count_nonzero(every.is_decoy & (every.q_value <= parameters.fdr) & (every.similarity >= parameters.minimum_similarity))
        )
        certainty = Counted(len(accepted), decoys, targets_at_5_percent=int(np.count_nonzero(reported.q_value <= 0.05))).certainty()
        counts = {
            "spectra": len(spectra), "identified": len(identified), "unidentified": len(rows), "explained": len(accepted),
            "modified": int(accepted.is_modified.sum()),
        }  # fmt: skip
        run.record(
            counts, f"{counted(len(accepted), 'spectrum', 'spectra')} explained", exports=[_NAME], source_run=source.run,
            certainty={"explained": certainty},
        )  # fmt: skip
        return ExplanationSummary(
            **run.summary_fields, source_run=source.run, n_spectra=len(spectra), n_identified=len(identified), n_unidentified=len(rows),
            n_explained=len(accepted), n_same=int((~accepted.is_modified).sum()), n_modified=int(accepted.is_modified.sum()),
            n_peptides=len(np.unique(identified.peptide)), fdr=parameters.fdr, decoys=decoys,
            false_share_low=certainty["false_share_low"], false_share_high=certainty["false_share_high"],
            targets_at_5_percent=int(certainty["targets_at_5_percent"]),
        )  # fmt: skip


def _explained_table(reported: Explained, spectra: Spectra, identified: Identified) -> pa.Table:
    def names_of(rows: NDArray[np.int64]) -> pa.Array:
        return pa.array([spectra.identifier[row] for row in rows.tolist()], pa.string())

    def known(values: NDArray) -> pa.Array:
        return pa.array(values, mask=np.isnan(values))

    nearest, scan = identified.spectrum[reported.identified], spectra.scan[reported.spectrum]
    of_form = identified.peptide[reported.identified]
    return EXPLAINED.arrow(
        {
            "spectrum": pa.array(reported.spectrum),
            "spectrum_file": pa.array(spectra.file_names, pa.string()).take(pa.array(spectra.file[reported.spectrum])),
            "spectrum_id": names_of(reported.spectrum),
            "scan": pa.array(scan, mask=scan < 0),
            "peptide": pa.array(identified.peptides, pa.string()).take(pa.array(of_form)),
            "charge": pa.array(reported.charge.astype(np.int32)),
            "similarity": pa.array(reported.similarity),
            "mass_difference": pa.array(reported.mass_difference),
            "q_value": pa.array(reported.q_value),
            "nearest_spectrum": names_of(nearest),
            "nearest": pa.array(nearest),
            "precursor_mz": known(spectra.precursor_mz[reported.spectrum]),
            "retention_time": known(spectra.retention_time[reported.spectrum]),
            "kind": pa.array(np.where(reported.is_modified, "modified", "same"), pa.string()),
        }
    )


def _map(spectra: Spectra, identified: Identified, accepted: Explained) -> pa.Table:
    """A row for each spectrum: where it is in the run, and whether it is identified or explained."""
    status = np.full(len(spectra), _UNEXPLAINED, np.uint8)
    status[identified.spectrum], status[accepted.spectrum] = _IDENTIFIED, _EXPLAINED
    form = np.full(len(spectra), -1, np.int64)
    form[identified.spectrum] = identified.peptide
    form[accepted.spectrum] = identified.peptide[accepted.identified]
    return MAP.arrow(
        {
            "spectrum": pa.array(np.arange(len(spectra))),
            "retention_time": pa.array(spectra.retention_time, mask=np.isnan(spectra.retention_time)),
            "precursor_mz": pa.array(spectra.precursor_mz, mask=np.isnan(spectra.precursor_mz)),
            "status": pa.array(status),
            "peptide": pa.array(identified.peptides, pa.string()).take(pa.array(form, mask=form < 0)),
            "scan": pa.array(spectra.scan, mask=spectra.scan < 0),
            "spectrum_file": pa.array(spectra.file_names, pa.string()).take(pa.array(spectra.file)),
        }
    )
