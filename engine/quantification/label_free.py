"""Label-free quantities: areas of the ion traces of identified peptidoforms, in the identifying file and optionally in others.

With FAIMS, an ion is only in the MS1 spectra of a few voltages, in different proportions. It is traced in the spectra of one voltage. An
ion that several files identified at different voltages is treated as a separate ion at each voltage, so that ratios are within one voltage.

Match between runs: ions identified in one file are measured in other files at their aligned times, with an estimated rate of false
transfers. The transferred ions belong to peptides accepted over the whole experiment, with an accepted protein: a wrong identification
would be found in other files as often as a correct one, and no decoy would show this. Each transfer has a decoy: the same ion at the same
time, at an m/z that is typical of peptides of this charge, but where no isotope or modification of the ion is expected. Signals of decoys
are due to chance, and their number estimates how many signals of transfers are. Transfers are ranked by time difference, agreement of the
isotope pattern with the formula, and difference of the area from that in other files.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.ms1_spectra import Ms1Spectra, read_ms1_spectra
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.quantification.amounts import MeasuredIons, RawQuantities, State
from proteoscope.engine.quantification.design import Design
from proteoscope.engine.quantification.identified import Identified
from proteoscope.engine.quantification.ion_traces import TraceQuery, is_low, measured_traces
from proteoscope.engine.quantification.ions import Ions, list_ions, traces_of_others
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.retention_times import Alignment, aligned, at_another_time
from proteoscope.engine.quantification.tables import ION_TRACES
from proteoscope.engine.results.arrow import or_null, taken
from proteoscope.engine.statistics.target_decoy import q_values
from proteoscope.kernels.cpu.elution import AGREEMENT, APEX, AREA, BEGIN, END, N_VALUES, POINTS, TIME, WIDTH

__all__ = ["STATE_OF_REASON", "measure_label_free"]

_REASONS = (
    "",
    "no retention time",
    "no signal at its m/z and time",
    "too few points",
    "isotopes do not agree with the formula",
    "the trace of another identified ion",
    "at another time than in other files",
    "summit near the lowest intensity of the run",
)
_NO_TIME, _NO_SIGNAL, _FEW, _DISAGREES, _OF_ANOTHER, _ELSEWHERE, _LOW = range(1, 8)
_STATES = (State.MEASURED, State.NOT_SEEN, State.NOT_SEEN, State.TOO_LOW, *[State.REFUSED] * 3, State.TOO_LOW)
STATE_OF_REASON = dict(zip(_REASONS, _STATES, strict=True))
"""State of an amount by the reason for refusing the ion's trace."""
_REACH = 5.0  # search range, in standard deviations of the alignments
_DECOY_STEP, _FEWEST_STEPS, _MOST_STEPS = 1.000476, 5, 14
"""Mass difference of a decoy step, Da, and minimum and maximum number of steps.

Masses of peptides are near multiples of the step (Wolski et al. 2006, BMC Bioinformatics 7:203).
"""
_AREA_SPREAD = 1.0  # standard deviation of ln(area) between files
_DISAGREEMENT = 0.01  # scale of 1 - cosine


def measure_label_free(
    identified: Identified, design: Design, parameters: QuantificationParameters, resources: Resources, spool: Path | None
) -> MeasuredIons:
    """Measure the areas of all ions in the files of the design.

    Raises
    ------
    InputError
        If a file has no MS1 spectra or is damaged.
    Cancelled
        If the user cancelled.
    """
    ions = list_ions(identified, parameters.isotopes, parameters.donor_fdr)
    files = sorted({part.file for part in design.parts})
    traces, n_profiles = list[_Traces](), 0

    def read_file(file: int) -> Ms1Spectra:
        return read_ms1_spectra(identified.files[file].path, progress=resources.progress, spool=spool)

    for position, file in enumerate(files):
        ms1_spectra = read_file(file)
        n_profiles += ms1_spectra.n_profiles
        for voltage in ms1_spectra.voltages:
            traces.append(_traces_at(voltage, identified, ions, (position, file), ms1_spectra, parameters, resources))
    if n_profiles:
        resources.progress.message(f"{n_profiles:,} MS1 spectra in profile mode were centroided")
    ions, values, reason, from_spectra = _join_files(traces, ions, len(files))
    voltages = [f"{voltage:g}" for voltage in np.unique(ions.voltage[np.isfinite(ions.voltage)]).tolist()]
    if voltages:
        resources.progress.message(f"FAIMS: ions are followed in the MS1 spectra of one voltage each ({', '.join(voltages)} V)")
    times = np.where(reason == 0, values[:, :, TIME], np.nan).T
    reason[at_another_time(times, values[:, :, WIDTH].T, from_spectra.T).T] = _ELSEWHERE
    values[reason != 0, AREA] = np.nan
    transfers = None
    if parameters.match_between_runs and len(files) > 1:
        transfers = transferred(ions, values, reason, files, read_file, parameters, resources)
        values[transfers.file, transfers.ion] = transfers.values
    table = _table(identified, ions, files, values, reason, transfers)
    counts = {"faims_voltages": len(voltages)} if voltages else {}
    return _amounts_by_sample(design, ions, files, values, reason, transfers, table, counts, resources)


class _Traces(NamedTuple):
    """Traces of k ions in the MS1 spectra of one file at one voltage.

    Attributes
    ----------
    file : int
        Index of the file in the design.
    voltage : float
        FAIMS voltage, NaN without FAIMS.
    rows : ndarray of int64, shape (k,)
        Indices of the ions.
    values : ndarray of float64, shape (k, N_VALUES)
        Measured values of the traces.
    reason : ndarray of int8, shape (k,)
        Reason for refusing the trace, 0 if it has a quantity.
    from_spectra : ndarray of float64, shape (k,)
        Distance of the apex from the nearest spectrum that identified the ion, s.
    without : ndarray of int64
        Ions of the file that have no retention time.
    identified : ndarray of int64
        Ions identified by spectra at the voltage.
    """

    file: int
    voltage: float
    rows: NDArray[np.int64]
    values: NDArray[np.float64]
    reason: NDArray[np.int8]
    from_spectra: NDArray[np.float64]
    without: NDArray[np.int64]
    identified: NDArray[np.int64]


def _traces_at(
    voltage: float,
    identified: Identified,
    all_ions: Ions,
    at: tuple[int, int],
    ms1_spectra: Ms1Spectra,
    parameters: QuantificationParameters,
    resources: Resources,
) -> _Traces:
    """Measure the ions that a file identified, in its MS1 spectra of one voltage; `at` is the index in the design and the file index."""
    (position, file), ions = at, all_ions.at_voltage(voltage)
    rows, query, without, is_at = _query(identified, ions, file, ms1_spectra, parameters)
    values = measured_traces(ms1_spectra, query, parameters, resources)
    reason = _reasons(values, is_low(values, query.pattern, ms1_spectra), parameters)
    from_spectra = query.nearest_anchor(values[:, TIME])
    chosen = np.flatnonzero(reason == 0)
    of_others = traces_of_others(
        ions.part(rows[chosen]),
        identified.forms.sequence[ions.form[rows[chosen]]],
        values[chosen],
        from_spectra[chosen],
        parameters,
    )
    reason[chosen[of_others]] = _OF_ANOTHER
    return _Traces(position, voltage, rows, values, reason, from_spectra, without, is_at)


def _join_files(
    traces: Sequence[_Traces], ions: Ions, n_files: int
) -> tuple[Ions, NDArray[np.float64], NDArray[np.int8], NDArray[np.float64]]:
    """Return the ions of all files, one per ion and voltage at which any file identified it, with their measurements.

    The n ions are sorted by ion and voltage. The measurements are values (files, n, N_VALUES), reasons (files, n), -1 if the file did not
    identify the ion, and distances of the apex from the nearest identifying spectrum (files, n), s.
    """
    voltages = np.unique([trace.voltage for trace in traces])  # NaN is last
    column = [int(np.searchsorted(voltages, trace.voltage)) for trace in traces]
    is_identified = np.zeros((len(ions), len(voltages)), np.bool_)
    for traced, k in zip(traces, column, strict=True):
        is_identified[np.concatenate([traced.without, traced.identified]), k] = True
    ion, part = np.nonzero(is_identified)
    number = np.full(is_identified.shape, -1, np.int64)
    number[ion, part] = np.arange(len(ion))
    shape = n_files, len(ion)
    values, reason, from_spectra = np.zeros((*shape, N_VALUES)), np.full(shape, -1, np.int8), np.full(shape, np.nan)
    for traced, k in zip(traces, column, strict=True):
        at = number[traced.rows, k]
        some, at = at >= 0, at[at >= 0]
        values[traced.file, at], reason[traced.file, at], from_spectra[traced.file, at] = (
            traced.values[some],
            traced.reason[some],
            traced.from_spectra[some],
        )
        reason[traced.file, number[traced.without, k]] = _NO_TIME
    return replace(ions.part(ion), voltage=voltages[part]), values, reason, from_spectra


def _query(
    identified: Identified, ions: Ions, file: int, ms1_spectra: Ms1Spectra, parameters: QuantificationParameters
) -> tuple[NDArray[np.int64], TraceQuery, NDArray[np.int64], NDArray[np.int64]]:
    """Return the ions that a file identified, the query of their traces, its ions without a time, and its ions at the voltage."""
    matches = identified.matches
    of_file = np.flatnonzero(matches.file == file)
    timed = of_file[np.isfinite(matches.retention_time[of_file])]
    order = timed[np.lexsort((matches.retention_time[timed], ions.of_match[timed]))]
    rows, count = np.unique(ions.of_match[order], return_counts=True)
    query = TraceQuery(
        ions.mz[rows],
        ions.charge[rows],
        ions.pattern[rows],
        segment_offsets(count),
        matches.retention_time[order],
        np.zeros(len(rows)),
        parameters.retention_window,
        float(ions.voltage[0]),
    )
    voltage = ms1_spectra.voltage_of(matches.retention_time[order])
    is_at = (voltage == query.voltage) | (np.isnan(voltage) & np.isnan(query.voltage))
    return rows, query, np.setdiff1d(ions.of_match[of_file], rows), np.unique(ions.of_match[order[is_at]])


def _reasons(values: NDArray[np.float64], low: NDArray[np.bool_], parameters: QuantificationParameters) -> NDArray[np.int8]:
    """Return the reason for refusing each trace; 0 for a trace with a quantity."""
    result = np.zeros(len(values), np.int8)
    result[low] = _LOW
    result[values[:, AGREEMENT] < parameters.minimum_agreement] = _DISAGREES
    result[values[:, POINTS] < parameters.minimum_points] = _FEW
    result[values[:, APEX] <= 0] = _NO_SIGNAL
    return result


def _amounts_by_sample(
    design: Design,
    ions: Ions,
    files: list[int],
    values: NDArray[np.float64],
    reason: NDArray[np.int8],
    transfers: Transfers | None,
    table: pa.Table,
    counts: dict[str, int],
    resources: Resources,
) -> MeasuredIons:
    """Return the amounts of ions by sample; the files of a sample are added."""
    state = np.full(reason.shape, State.NOT_SEEN, np.int8)
    state[reason >= 0] = np.array(_STATES, np.int8)[reason[reason >= 0]]
    area = np.where(reason == 0, values[:, :, AREA], np.nan)
    if transfers is not None:
        state[transfers.file, transfers.ion] = State.TRANSFERRED
        area[transfers.file, transfers.ion] = transfers.values[:, AREA]
    sample_of_file = {part.file: part.sample for part in design.parts}
    samples = np.array([sample_of_file[file] for file in files], np.int64)
    n_transferred = 0 if transfers is None else len(transfers.ion)
    counts = {"ions": len(ions), "transferred": n_transferred, "refused": int((reason > 0).sum()), **counts}
    return MeasuredIons(
        RawQuantities(area.T, state.T).sum_by_sample(samples, len(design.samples)),
        ions.form,
        {ION_TRACES.name: table},
        counts,
        resources.used,
    )


def _table(
    identified: Identified,
    ions: Ions,
    files: list[int],
    values: NDArray[np.float64],
    reason: NDArray[np.int8],
    transfers: Transfers | None,
) -> pa.Table:
    """Return the table of ion traces: one row per ion and file that identified it or received it by transfer."""
    is_transferred = np.zeros(reason.shape, np.bool_)
    q_value = np.full(reason.shape, np.nan)
    if transfers is not None:
        is_transferred[transfers.file, transfers.ion] = True
        q_value[transfers.file, transfers.ion] = transfers.q_value
    ion, position = np.nonzero(((reason >= 0) | is_transferred).T)
    value, why, is_moved = values[position, ion], reason[position, ion], is_transferred[position, ion]
    has_area, is_seen = (why == 0) | is_moved, value[:, APEX] > 0
    columns = (AREA, APEX, TIME, BEGIN, END, WIDTH, AGREEMENT)
    names = ("area", "apex", "retention_time", "begin", "end", "width", "agreement")
    numbers = {name: pa.array(value[:, column], mask=~is_seen) for name, column in zip(names, columns, strict=True)}
    return ION_TRACES.arrow(
        {
            **numbers,
            "area": pa.array(value[:, AREA], mask=~has_area),
            "n_points": value[:, POINTS].astype(np.int64),
            "peptide": taken(identified.forms.peptide, ions.form[ion]),
            "charge": ions.charge[ion],
            "mz": ions.mz[ion],
            "voltage": or_null(ions.voltage[ion]),
            "file": taken([PurePath(identified.files[file].path).name for file in files], position),
            "source": taken(("identified", "transferred"), is_moved.astype(np.int64)),
            "q_value": or_null(q_value[position, ion]),
            "refused": taken(_REASONS, np.where(has_area, -1, np.maximum(why, 0)).astype(np.int64)),
        }
    )


@dataclass(frozen=True)
class Transfers:
    """Accepted transfers (t) of ions to files that did not identify them.

    Attributes
    ----------
    file : ndarray of int64, shape (t,)
        Index of the file in the design.
    ion : ndarray of int64, shape (t,)
        Index of each transferred ion.
    values : ndarray of float64, shape (t, N_VALUES)
        Measured values of the traces.
    q_value : ndarray of float64, shape (t,)
        q-value of each transfer.
    """

    file: NDArray[np.int64]
    ion: NDArray[np.int64]
    values: NDArray[np.float64]
    q_value: NDArray[np.float64]


@dataclass(frozen=True)
class _TriedTransfers:
    """Measurements of k expected ions and of their decoys in a file."""

    file: int
    ion: NDArray[np.int64]
    values: NDArray[np.float64]
    score: NDArray[np.float64]
    decoy_score: NDArray[np.float64]


def transferred(
    ions: Ions,
    values: NDArray[np.float64],
    reason: NDArray[np.int8],
    files: list[int],
    read_file: Callable[[int], Ms1Spectra],
    parameters: QuantificationParameters,
    resources: Resources,
) -> Transfers:
    """Measure ions in files that did not identify them, up to an estimated rate of false transfers.

    Parameters
    ----------
    ions : Ions
        Ions of the identifications.
    values : ndarray of float64, shape (files, ions, N_VALUES)
        Measured values of the traces.
    reason : ndarray of int8, shape (files, ions)
        0 for traces with an area, -1 if the file did not identify the ion, otherwise the reason for refusal.
    files : list of int
        Indices of the files.
    read_file : callable
        Function that returns the MS1 spectra of a file.
    parameters : QuantificationParameters
        Parameters of the quantification.
    resources : Resources
        Devices, threads and progress of the run.

    Returns
    -------
    Transfers
    """
    times = np.where(reason == 0, values[:, :, TIME], np.nan).T
    alignments = aligned(times)
    n_measured = int((reason == 0).any(axis=0).sum())
    n_donors = int((ions.is_donor & (reason == 0).any(axis=0)).sum())
    resources.progress.message(
        f"{n_donors:,} of {n_measured:,} measured ions are looked for in other files: those of accepted proteins whose peptides have a"
        f" q-value of at most {parameters.donor_fdr:.3g} over all files together"
    )
    tried = []
    for position, file in enumerate(files):
        alignment = alignments[position]
        if alignment is None:
            resources.progress.message(
                f"Nothing is transferred to file {position + 1} of {len(files)}: it shares too few ions with the others", "warning"
            )
            continue
        others = {i: alignment for i, alignment in enumerate(alignments) if alignment is not None and i != position}
        tried.append(_try_transfers(ions, values, times, reason, (alignment, others), position, read_file(file), parameters, resources))
    return _accepted(tried, parameters, resources)


def _try_transfers(
    ions: Ions,
    values: NDArray[np.float64],
    times: NDArray[np.float64],
    reason: NDArray[np.int8],
    alignments: tuple[Alignment, Mapping[int, Alignment]],
    position: int,
    ms1_spectra: Ms1Spectra,
    parameters: QuantificationParameters,
    resources: Resources,
) -> _TriedTransfers:
    """Measure all ions that other files measured and this file did not identify, with decoys.

    `alignments` are the alignment of this file, and those of the other files by index.
    """
    of_file, others = alignments
    expected = np.full((len(ions), len(others)), np.nan)
    for column, (i, alignment) in enumerate(others.items()):
        there = ~np.isnan(times[:, i])
        expected[there, column] = alignment.to_reference(times[there, i])
    rows = np.flatnonzero((reason[position] < 0) & ions.is_donor & ~np.isnan(expected).all(axis=1))
    if not len(rows):
        return _TriedTransfers(position, rows, np.zeros((0, N_VALUES)), np.zeros(0), np.zeros(0))
    time = of_file.from_reference(np.nanmedian(expected[rows], axis=1))
    spread = max([of_file.spread, *(other.spread for other in others.values())])
    area = _expected_areas(values[:, :, AREA], reason, position, rows)
    result = [
        _traced(ms1_spectra, ions, rows, shift, time, _REACH * spread, parameters, resources)
        for shift in (np.zeros(len(rows)), _decoy_shift(ions, rows))
    ]
    scores = [_scores(values, is_low(values, ions.pattern[rows], ms1_spectra), time, spread, area, parameters) for values in result]
    return _TriedTransfers(position, rows, result[0], *scores)


def _decoy_shift(ions: Ions, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the m/z shift of each ion's decoy, Th: a random number of mass steps, up or down, that avoids related ions."""
    rng = np.random.default_rng(0)
    steps = rng.integers(_FEWEST_STEPS, _MOST_STEPS + 1, len(rows)) * rng.choice([-1, 1], len(rows))
    shifts: NDArray[np.float64] = steps * _DECOY_STEP / ions.charge[rows]
    return shifts


def _traced(
    ms1_spectra: Ms1Spectra,
    ions: Ions,
    rows: NDArray[np.int64],
    shift: NDArray[np.float64],
    time: NDArray[np.float64],
    reach: float,
    parameters: QuantificationParameters,
    resources: Resources,
) -> NDArray[np.float64]:
    result = np.zeros((len(rows), N_VALUES))
    for voltage in ms1_spectra.voltages:
        is_at = (ions.voltage[rows] == voltage) | (np.isnan(ions.voltage[rows]) & np.isnan(voltage))
        if not is_at.any():
            continue
        some = rows[is_at]
        query = TraceQuery(
            ions.mz[some] + shift[is_at],
            ions.charge[some],
            ions.pattern[some],
            np.arange(len(some) + 1),
            time[is_at],
            np.full(len(some), reach),
            reach + parameters.retention_window / 2,
            voltage,
        )
        result[is_at] = measured_traces(ms1_spectra, query, parameters, resources)
    return result


def _expected_areas(area: NDArray[np.float64], reason: NDArray[np.int8], position: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return ln of the expected area of each ion, from its areas in other files, scaled by the ions that both files measured."""
    logs = np.log(np.where(reason == 0, area, np.nan))
    scaled = []
    for i in range(len(logs)):
        both = ~np.isnan(logs[i]) & ~np.isnan(logs[position])
        scaled.append(logs[i, rows] + (float(np.median((logs[position] - logs[i])[both])) if both.any() else 0.0))
    del scaled[position]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        means: NDArray[np.float64] = np.nan_to_num(np.nanmean(np.array(scaled), axis=0))
        return means


def _scores(
    values: NDArray[np.float64],
    low: NDArray[np.bool_],
    time: NDArray[np.float64],
    spread: float,
    area: NDArray[np.float64],
    parameters: QuantificationParameters,
) -> NDArray[np.float64]:
    """Return how well traces agree with the expected time and area, higher is better; -inf without a trace."""
    is_there = (values[:, POINTS] >= parameters.minimum_points) & (values[:, AGREEMENT] >= parameters.minimum_agreement) & ~low
    result = np.full(len(values), -np.inf)
    some = values[is_there]
    result[is_there] = (
        -0.5 * ((some[:, TIME] - time[is_there]) / spread) ** 2
        - 0.5 * ((np.log(some[:, AREA]) - area[is_there]) / _AREA_SPREAD) ** 2
        - (1 - some[:, AGREEMENT]) / _DISAGREEMENT
        + np.log(some[:, POINTS])
    )
    return result


def _accepted(tried: list[_TriedTransfers], parameters: QuantificationParameters, resources: Resources) -> Transfers:
    """Return the transfers accepted at the requested rate of false transfers, estimated over all files."""
    score = np.concatenate([np.zeros(0), *(part.score for part in tried)])
    decoy = np.concatenate([np.zeros(0), *(part.decoy_score for part in tried)])
    is_there, decoys = np.isfinite(score), decoy[np.isfinite(decoy)]
    every = np.concatenate([score[is_there], decoys])
    q = q_values(every, np.arange(len(every)) >= int(is_there.sum()), plus_one=True)[: int(is_there.sum())]
    q_value = np.ones(len(score))
    q_value[is_there] = q
    retained = np.flatnonzero(is_there & (q_value <= parameters.transfer_fdr))
    n_decoys = int((decoys >= score[retained].min()).sum()) if len(retained) else 0
    resources.progress.message(
        f"{len(retained):,} of {len(score):,} ions were found in files that did not identify them, and {n_decoys:,} of as many decoys. "
        "The rate"
        f" of {parameters.transfer_fdr:.3g} is that of ions that are not there; wrong identities are limited among the donors, to"
        f" {parameters.donor_fdr:.3g} of those of one file and of those of several"
    )
    file = np.concatenate([np.zeros(0, np.int64), *(np.full(len(part.ion), part.file, np.int64) for part in tried)])
    ion = np.concatenate([np.zeros(0, np.int64), *(part.ion for part in tried)])
    values = np.concatenate([np.zeros((0, N_VALUES)), *(part.values for part in tried)])
    return Transfers(file[retained], ion[retained], values[retained], q_value[retained])
