"""Advice on a run with few identifications: warnings on likely causes, computed after the results are written.

Causes that only need counts are always examined. Probe searches (of a sample, with other settings) may take a tenth of the time of the five
search steps, or any time.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.execution.clock import StageClock
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.threads import available_threads
from proteoscope.engine.files import nearest_folder, scratch_folder
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.identification.indexes import open_search_indexes
from proteoscope.engine.identification.low_yield import LowYieldRun, describe_yield, probe_tolerances
from proteoscope.engine.identification.low_yield_causes import find_better_enzyme, find_better_series, find_unusual_precursors
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Cancelled, LimitedProgress, Progress, RecordingProgress
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.spectra.spectrum_index import build_spectrum_index

__all__ = ["AdviceLevel", "advice_level", "advise", "explain_low_yield"]

AdviceLevel = Literal["brief", "full", "none"]
"""Extent of the advice: probe searches within a tenth of the run's time, all probe searches, or no advice."""

_SHARE = 0.09
"""Fraction of the time of the five search steps that probe searches may take.

With the time to stop a probe search, the total is a tenth.
"""
_INCOMPLETE = "More causes were not checked to save time; --advice full checks them"
_STOPPED = "The advice was stopped; the results are complete"
_NO_CONTAMINANTS = "No contaminants were searched: trypsin, keratins and albumin may be what the spectra are of"


def advice_level(request: SearchRequest) -> AdviceLevel:
    """Return the value of the option ``advice``; ``brief`` if it is not given.

    Raises
    ------
    ParameterError
        If the value is not an advice level.
    """
    value = request.options.get("advice") or "brief"
    levels: tuple[AdviceLevel, ...] = get_args(AdviceLevel)
    for level in levels:
        if value == level:
            return level
    raise ParameterError(f"advice is {value!r}; expected {', '.join(levels)}")


def explain_low_yield(run: LowYieldRun, level: AdviceLevel, seconds_of_run: float, resources: Resources) -> None:
    """Warn about likely causes of few identifications; cancellation ends only the advice, not the run.

    Parameters
    ----------
    run : LowYieldRun
        Run with few identifications.
    level : {"brief", "full", "none"}
        ``brief`` limits the probe searches to a tenth of `seconds_of_run`.
    seconds_of_run : float
        Time of the five search steps, s.
    resources : Resources
        Devices and threads; the progress receives the warnings.
    """
    if level == "none":
        return
    progress = resources.progress
    limit = LimitedProgress(progress, None if level == "full" else _SHARE * seconds_of_run)
    # Probe searches write no checkpoints, and their time counts as advice.
    quiet = replace(resources, progress=limit, checkpoint=None, clock=StageClock())
    is_complete = True

    def found_by(probe: Callable[[LowYieldRun, Resources, LimitedProgress], str]) -> str:
        nonlocal is_complete
        try:
            return probe(run, quiet, limit)
        except Cancelled:
            is_complete = False
            return ""

    texts = [". ".join(filter(None, (describe_yield(run), found_by(probe_tolerances)))), find_unusual_precursors(run)]
    texts += [found_by(find_better_series), found_by(find_better_enzyme)]
    if not run.parameters.contaminants:
        texts.append(_NO_CONTAMINANTS)
    if progress.is_cancelled:
        texts.append(_STOPPED)
    elif not is_complete:
        texts.append(_INCOMPLETE)
    for text in filter(None, texts):
        progress.message(text, "warning")


def advise(request: SearchRequest, run_id: str, progress: Progress | None = None) -> tuple[str, ...]:
    """Examine all causes of few identifications in a finished run, and add warnings to the log and the record of the run.

    Parameters
    ----------
    request : SearchRequest
        Request of the run, including the project.
    run_id : str
        Run identifier.
    progress : Progress, optional
        Progress of the advice; cancellation leaves the run unchanged.

    Returns
    -------
    tuple of str
        The warnings; empty if the run identified enough.

    Raises
    ------
    InputError
        If a file has changed since the run.
    StorageError
        If writing fails.
    Cancelled
        If the user cancelled.
    """
    assert request.project is not None
    parameters = request.parameters_as(IdentificationParameters)
    project = Project.open(request.project)
    record, progress = project.record(run_id), progress or Progress()
    counted = record.get("low_yield")
    if not isinstance(counted, dict):
        return ()
    recording, clock = RecordingProgress(progress), StageClock()
    with clock.stage("advice"), scratch_folder() as folder:
        run, resources = _read_again(request, project, run_id, record, parameters, folder, recording)
        explain_low_yield(run, "full", 0.0, resources)
        progress.check()
    if recording.messages:
        project.append_messages(run_id, recording.messages, clock.stages, progress)
    return recording.messages


def _read_again(
    request: SearchRequest,
    project: Project,
    run_id: str,
    record: dict[str, Any],
    parameters: IdentificationParameters,
    folder: Path,
    progress: Progress,
) -> tuple[LowYieldRun, Resources]:
    """Read the spectra and indexes of a finished run with the settings of the run."""
    compile_kernels(["identify"], progress)
    quiet = LimitedProgress(progress)
    quiet.stage("Reading the files of the run")
    digests: dict[str, list[str]] = {"spectra": [], "database": [], "contaminants": []}
    for source in project.inputs(run_id):
        if file_digest(source.path, quiet) != source.sha256:
            raise InputError(source.path, f"has changed since {run_id}", remedy="Restore it, or search again")
        digests.setdefault(source.kind, []).append(source.sha256)
    threads = request.threads or available_threads()
    resources = Resources(threads, progress=quiet)
    files = {kind: request.files(kind) for kind in ("spectra", "database")}
    contaminants = [Path(contaminant) for contaminant in parameters.contaminants]
    indexes = open_search_indexes(files["database"], contaminants, digests, folder, parameters, resources)
    spectra = read_spectra(
        files["spectra"],
        progress=quiet,
        strict=request.flag("strict"),
        threads=threads,
        uses_all_precursors=True,
        spool=nearest_folder(project.folder),
    )
    errors = record.get("precursor_errors", {}).get("medians_ppm", [0.0] * len(spectra.files))
    index = build_spectrum_index(spectra, parameters, resources).corrected(np.asarray(errors, np.float64)[spectra.file])
    used = parameters.changed(precursor_tolerance=Tolerance.parse(record["passes"][0]["precursor_tolerance"]))
    accepted, matched = (int(record["low_yield"][name]) for name in ("accepted", "matched"))
    return LowYieldRun(accepted, matched, index, indexes, used, folder), replace(resources, progress=progress)
