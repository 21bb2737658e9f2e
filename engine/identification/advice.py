"""Advice on a run with few identifications: warnings on likely causes, computed after the results are written.

Causes that only need counts are always examined. Probe searches are searches of a sample of the spectra with other settings. With the level
``brief``, they may take a tenth of the time of the five search steps; with ``full``, their time is unlimited.
"""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.execution.clock import StageClock
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import Resources, available_threads
from proteoscope.engine.files import nearest_folder, scratch_folder, storage_errors
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.identification.low_yield import LowYieldRun, describe_yield, probe_tolerances
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.passes import open_search_indexes, quick_matches, quick_parameters
from proteoscope.engine.jobs.progress import Cancelled, LimitedProgress, Progress, RecordingProgress, TimeOverError
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.indexes import Indexes
from proteoscope.engine.peptides.peptide_index import build_peptide_index
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex, build_spectrum_index

__all__ = [
    "AdviceLevel",
    "advice_level",
    "advise",
    "explain_low_yield",
    "find_better_enzyme",
    "find_better_series",
    "find_unusual_precursors",
]

_SERIES = ("by", "cz", "bycz")
_ENZYMES = ("Trypsin", "Lys-C", "Arg-C", "Asp-N", "glutamyl endopeptidase", "Chymotrypsin")
_MOSTLY = 0.5
_MAXIMUM_PROBED = 300
_CONFIDENT, _ENOUGH, _TIMES = 0.05, 15, 3
"""q-value of confident matches; for advice, their minimum number, and their minimum ratio to the number with requested settings."""
_MAXIMUM_RESIDUES = 12_000_000
"""Maximum number of residues, including decoys, in a database that is digested with other enzymes."""
_RESIDUES_PER_SECOND = 12e6
"""Approximate number of residues that are digested and searched per second for one enzyme."""
_MB = 1_000_000


def find_unusual_precursors(run: LowYieldRun) -> str:
    """Return a sentence about the precursors if most have charges or masses that were not searched; otherwise ''."""
    spectra, parameters = run.spectra, run.parameters
    charge, mass = spectra.queries.charge, spectra.queries.mass
    if not len(charge):
        return ""
    # Spectra without a charge have queries with several charges; a spectrum is outside only if all its queries are.
    n = spectra.n_searched
    beyond = (mass < parameters.minimum_mass) | (mass > parameters.maximum_mass)
    n_within = len(np.unique(spectra.queries.spectrum[~beyond]))
    if n - n_within > _MOSTLY * n:
        return (
            f"{n - n_within:,} of {n:,} precursors weigh less than {parameters.minimum_mass:g} Da or more than "
            f"{parameters.maximum_mass:g} Da, so that they were not searched: check the charges in the file, minimum_mass and maximum_mass"
        )
    n_single = len(np.unique(spectra.queries.spectrum[charge == 1]))
    if n_single > _MOSTLY * n and parameters.minimum_charge > 1:
        return f"{n_single:,} of {n:,} precursors are singly charged, as with MALDI or small molecules: check the charges in the file"
    return ""


def _probe(spectra: SpectrumIndex, parameters: IdentificationParameters) -> tuple[IdentificationParameters, SpectrumIndex]:
    """Return the parameters of a probe search, and a sample of the spectra."""
    numbers = np.unique(spectra.queries.spectrum)
    return quick_parameters(parameters), spectra.only(numbers[:: max(1, -(-len(numbers) // _MAXIMUM_PROBED))])


def find_better_series(run: LowYieldRun, resources: Resources, limit: LimitedProgress) -> str:
    """Return a sentence that names ion series which explain far more spectra than the searched series; '' if there are none.

    Raises
    ------
    TimeOverError
        If the time ended before all ion series were tried.
    Cancelled
        If the user cancelled.
    """
    used = run.spectra.ion_series.symbols
    others = [series for series in _SERIES if [set(series)] != list(map(set, used))]
    if not others:
        return ""
    quick, some = _probe(run.spectra, run.parameters)
    limit.stage("Trying other ion series")
    usual = _count_confident(some, run.indexes, quick, resources)
    result = {series: _count_confident(some.with_series(series), run.indexes, quick, resources) for series in others}
    best = max(others, key=lambda series: result[series])
    if result[best] < max(_ENOUGH, _TIMES * usual):
        return ""
    return (
        f"Of {some.n_searched:,} spectra {result[best]:,} match well with the ions {', '.join(best)}, and {usual:,} with "
        f"{' or '.join(map(', '.join, used))}: set ion_series to {best}"
    )


def find_better_enzyme(run: LowYieldRun, resources: Resources, limit: LimitedProgress) -> str:
    """Return a sentence with the name of an enzyme whose peptides explain far more spectra than those of the requested enzyme, or ''.

    Databases that are too large are not searched.

    Raises
    ------
    TimeOverError
        If the time ended before such an enzyme was found.
    Cancelled
        If the user cancelled.
    """
    indexes, parameters, spectra = run.indexes, run.parameters, run.spectra
    proteins = indexes.proteins
    if parameters.specificity == "non-specific" or len(proteins.proteins.residues) > _MAXIMUM_RESIDUES:
        return ""
    quick, some = _probe(spectra, parameters)
    limit.stage("Trying other enzymes")
    if limit.seconds_left < len(proteins.proteins.residues) / _RESIDUES_PER_SECOND:
        raise TimeOverError
    usual = _count_confident(some, indexes, quick, resources)
    windows = _windows(some, quick)
    maximum_mass = max(quick.minimum_mass, min(quick.maximum_mass, float(windows.max())))
    result, others = dict[str, int](), [name for name in _ENZYMES if name != parameters.enzyme]
    with suppress(TimeOverError):
        for name in others:
            digestion = replace(Digestion.from_settings(quick.changed(enzyme=name), "specific"), maximum_mass=maximum_mass)
            with storage_errors(run.folder, only_disk=True), tempfile.TemporaryDirectory(prefix="enzyme-", dir=run.folder) as folder:
                memory_bytes = parameters.index_memory * _MB
                peptides = build_peptide_index(Path(folder), proteins, digestion, resources, memory_bytes=memory_bytes, windows=windows)
                result[name] = _count_confident(some, Indexes(proteins, peptides), quick, resources)
    best = max(result, key=lambda name: result[name], default="")
    if not best or result[best] < max(_ENOUGH, _TIMES * usual):
        if len(result) < len(others):
            raise TimeOverError
        return ""
    return (
        f"Of {some.n_searched:,} spectra {result[best]:,} match well with peptides of {best}, and {usual:,} with peptides of "
        f"{parameters.enzyme}: set enzyme to {best}"
    )


def _windows(spectra: SpectrumIndex, parameters: IdentificationParameters) -> NDArray[np.float64]:
    """Return the ranges of precursor mass in which the search scores peptides, (k, 2) float64, Da."""
    masses = [spectra.queries.mass - error * ISOTOPE_SPACING for error in parameters.isotope_errors]
    return np.column_stack(parameters.precursor_tolerance.bounds(np.concatenate(masses)))


def _count_confident(spectra: SpectrumIndex, indexes: Indexes, parameters: IdentificationParameters, resources: Resources) -> int:
    """Count the spectra with a target match at 5 % FDR."""
    return int(np.count_nonzero(~quick_matches(spectra, indexes, parameters, resources, _CONFIDENT).is_decoy))


AdviceLevel = Literal["brief", "full", "none"]
"""Extent of the advice: probe searches within a tenth of the run's time, all probe searches, or no advice."""

_SHARE = 0.09
"""Fraction of the time of the five search steps that probe searches may take.

Together with the time to stop a probe search, the total is a tenth.
"""
_INCOMPLETE = "More causes were not checked to save time; --advice full checks them"
_STOPPED = "The advice was stopped; the results are complete"
_NO_CONTAMINANTS = "No contaminants were searched: the spectra may be of trypsin, keratins or albumin"


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
    """Examine all causes of few identifications in a finished run, and add warnings to its log and record.

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
    """Read the spectra and indexes of a finished run again, with the settings of the run."""
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
