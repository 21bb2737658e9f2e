"""Label-free quantities: areas of the ion traces of identified peptidoforms, in the file that identified them and, if wanted, in others.

With FAIMS an ion is in the survey spectra of some voltages only, and in different parts there. It is followed in those of one voltage, and
counts as an ion of its own at each voltage at which any file identified it, so that ratios are those of one voltage.

Match between runs: ions that one file identified, measured in others at their aligned times, with the rate of false transfers.

Donors are ions of peptides that are accepted over the whole experiment, and of accepted proteins: a wrong identification would be found in
other files as well as a right one, and no decoy counts it. Each transfer has a decoy: the same ion at the same time, with an m/z that is as
far off as no isotope or modification of it, and as usual for a peptide of its charge. What is found there is what chance gives, and shows
how much of what is found at the ions' own m/z is chance. Transfers are ranked by how near the time is, how well the isotopes agree with the
formula, and how near the area is to that of the other files.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import run_offsets
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.ms1_spectra import Ms1Spectra, read_ms1_spectra
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.quantification.amounts import Measured, RawQuantities, State
from proteoscope.engine.quantification.design import Design
from proteoscope.engine.quantification.identified import Identified
from proteoscope.engine.quantification.ion_traces import TraceQuery, is_low, measured_traces
from proteoscope.engine.quantification.ions import Ions, ions_of, traces_of_others
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.retention_times import Alignment, aligned, at_another_time
from proteoscope.engine.quantification.tables import ION_TRACES
from proteoscope.engine.results.arrow import or_null, taken
from proteoscope.engine.statistics.target_decoy import q_values
from proteoscope.kernels.cpu.elution import AGREEMENT, APEX, AREA, BEGIN, END, N_VALUES, POINTS, TIME, WIDTH

__all__ = ["STATE_OF_REASON", "measured_label_free"]

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
"""State of an ion by the reason for which its trace is refused."""
_REACH = 5.0  # of the spreads of both alignments together
_DECOY_STEP, _FEWEST_STEPS, _MOST_STEPS = 1.000476, 5, 14
"""Da: masses of peptides lie near multiples of it (Wolski et al. 2006, BMC Bioinformatics 7:203); and how many of them
decoys are shifted by."""
_AREA_SPREAD = 1.0  # of the natural logarithm of areas between files
_DISAGREEMENT = 0.01  # of the cosine from 1


def measured_label_free(
    identified: Identified, design: Design, parameters: QuantificationParameters, resources: Resources, spool: Path | None
) -> Measured:
    """Return areas of all ions in the files of the design.

    Raises
    ------
    InputError
        A file has no survey spectra, or is damaged.
    Cancelled
        The user cancelled.
    """
    ions = ions_of(identified, parameters.isotopes, parameters.donor_fdr)
    files = sorted({part.file for part in design.parts})
    traces, n_profiles = list[_Traces](), 0

    def surveys_of(file: int) -> Ms1Spectra:
        return read_ms1_spectra(identified.files[file].path, progress=resources.progress, spool=spool)

    for place, file in enumerate(files):
        surveys = surveys_of(file)
        n_profiles += surveys.n_profiles
        for voltage in surveys.voltages:
            traces.append(_traces_at(voltage, identified, ions, (place, file), surveys, parameters, resources))
    if n_profiles:
        resources.progress.message(f"{n_profiles:,} survey spectra in profile mode were centroided")
    ions, values, reason, from_spectra = _joined(traces, ions, len(files))
    voltages = [f"{one:g}" for one in np.unique(ions.voltage[np.isfinite(ions.voltage)]).tolist()]
    if voltages:
        resources.progress.message(f"FAIMS: ions are followed in the survey spectra of one voltage each ({', '.join(voltages)} V)")
    times = np.where(reason == 0, values[:, :, TIME], np.nan).T
    reason[at_another_time(times, values[:, :, WIDTH].T, from_spectra.T).T] = _ELSEWHERE
    values[reason != 0, AREA] = np.nan
    transfers = None
    if parameters.match_between_runs and len(files) > 1:
        transfers = transferred(ions, values, reason, files, surveys_of, parameters, resources)
        values[transfers.file, transfers.ion] = transfers.values
    table = _table(identified, ions, files, values, reason, transfers)
    counts = {"faims_voltages": len(voltages)} if voltages else {}
    return _measured(design, ions, files, values, reason, transfers, table, counts, resources)


class _Traces(NamedTuple):
    """Traces of k ions of a file, in its survey spectra of one voltage.

    Attributes
    ----------
    place
        Of the file among those of the design.
    voltage
        NaN for survey spectra without one.
    rows : (k,) int64
        Ions.
    values : ndarray of float64, shape (k, N_VALUES)
    reason : (k,) int8
        Why there is no quantity, 0 where there is one.
    from_spectra : (k,) float64
        S, from the nearest spectrum to the apex.
    without
        Ions of the file without a time.
    identified
        Ions that spectra at the voltage identify.
    """

    place: int
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
    surveys: Ms1Spectra,
    parameters: QuantificationParameters,
    resources: Resources,
) -> _Traces:
    """Measure the ions that a file identified in its survey spectra of one voltage; `at`: place of the file in the design, and number."""
    (place, file), ions = at, all_ions.at_voltage(voltage)
    rows, query, without, is_at = _query(identified, ions, file, surveys, parameters)
    values = measured_traces(surveys, query, parameters, resources)
    reason = _reasons(values, is_low(values, query.pattern, surveys), parameters)
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
    return _Traces(place, voltage, rows, values, reason, from_spectra, without, is_at)


def _joined(traces: Sequence[_Traces], ions: Ions, n_files: int) -> tuple[Ions, NDArray[np.float64], NDArray[np.int8], NDArray[np.float64]]:
    """Return n ions, each at the voltages at which any file identified it, in the order of ions and voltages, with their values.

    Values (files, n, N_VALUES), reasons, -1 if the file did not identify it, and seconds from the spectra, (files, n).
    """
    voltages = np.unique([trace.voltage for trace in traces])  # NaN last
    column = [int(np.searchsorted(voltages, trace.voltage)) for trace in traces]
    is_identified = np.zeros((len(ions), len(voltages)), np.bool_)
    for one, k in zip(traces, column, strict=True):
        is_identified[np.concatenate([one.without, one.identified]), k] = True
    ion, part = np.nonzero(is_identified)
    number = np.full(is_identified.shape, -1, np.int64)
    number[ion, part] = np.arange(len(ion))
    shape = n_files, len(ion)
    values, reason, from_spectra = np.zeros((*shape, N_VALUES)), np.full(shape, -1, np.int8), np.full(shape, np.nan)
    for one, k in zip(traces, column, strict=True):
        at = number[one.rows, k]
        some, at = at >= 0, at[at >= 0]
        values[one.place, at], reason[one.place, at], from_spectra[one.place, at] = (
            one.values[some],
            one.reason[some],
            one.from_spectra[some],
        )
        reason[one.place, number[one.without, k]] = _NO_TIME
    return replace(ions.part(ion), voltage=voltages[part]), values, reason, from_spectra


def _query(
    identified: Identified, ions: Ions, file: int, surveys: Ms1Spectra, parameters: QuantificationParameters
) -> tuple[NDArray[np.int64], TraceQuery, NDArray[np.int64], NDArray[np.int64]]:
    """Return the ions that a file identified, their query, those without a time, and those identified at the ions' voltage."""
    matches = identified.matches
    of_file = np.flatnonzero(matches.file == file)
    timed = of_file[np.isfinite(matches.retention_time[of_file])]
    order = timed[np.lexsort((matches.retention_time[timed], ions.of_match[timed]))]
    rows, count = np.unique(ions.of_match[order], return_counts=True)
    query = TraceQuery(
        ions.mz[rows],
        ions.charge[rows],
        ions.pattern[rows],
        run_offsets(count),
        matches.retention_time[order],
        np.zeros(len(rows)),
        parameters.retention_window,
        float(ions.voltage[0]),
    )
    voltage = surveys.voltage_of(matches.retention_time[order])
    is_at = (voltage == query.voltage) | (np.isnan(voltage) & np.isnan(query.voltage))
    return rows, query, np.setdiff1d(ions.of_match[of_file], rows), np.unique(ions.of_match[order[is_at]])


def _reasons(values: NDArray[np.float64], low: NDArray[np.bool_], parameters: QuantificationParameters) -> NDArray[np.int8]:
    """Why ions have no quantity, 0 where they have one."""
    result = np.zeros(len(values), np.int8)
    result[low] = _LOW
    result[values[:, AGREEMENT] < parameters.minimum_agreement] = _DISAGREES
    result[values[:, POINTS] < parameters.minimum_points] = _FEW
    result[values[:, APEX] <= 0] = _NO_SIGNAL
    return result


def _measured(
    design: Design,
    ions: Ions,
    files: list[int],
    values: NDArray[np.float64],
    reason: NDArray[np.int8],
    transfers: Transfers | None,
    table: pa.Table,
    counts: dict[str, int],
    resources: Resources,
) -> Measured:
    """Return amounts of ions by sample: files of a sample added up."""
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
    return Measured(
        RawQuantities(area.T, state.T).of_samples(samples, len(design.samples)), ions.form, {ION_TRACES.name: table}, counts, resources.used
    )


def _table(
    identified: Identified,
    ions: Ions,
    files: list[int],
    values: NDArray[np.float64],
    reason: NDArray[np.int8],
    transfers: Transfers | None,
) -> pa.Table:
    """Return a row for each ion in each file that identified it, or to which it was transferred."""
    is_transferred = np.zeros(reason.shape, np.bool_)
    q_value = np.full(reason.shape, np.nan)
    if transfers is not None:
        is_transferred[transfers.file, transfers.ion] = True
        q_value[transfers.file, transfers.ion] = transfers.q_value
    ion, place = np.nonzero(((reason >= 0) | is_transferred).T)
    value, why, is_moved = values[place, ion], reason[place, ion], is_transferred[place, ion]
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
            "file": taken([PurePath(identified.files[file].path).name for file in files], place),
            "source": taken(("identified", "transferred"), is_moved.astype(np.int64)),
            "q_value": or_null(q_value[place, ion]),
            "refused": taken(_REASONS, np.where(has_area, -1, np.maximum(why, 0)).astype(np.int64)),
        }
    )


@dataclass(frozen=True)
class Transfers:
    """Accepted transfers, t of them.

    Attributes
    ----------
    file : (t,) int64
        Place among the files.
    ion : ndarray of int64, shape (t,)
    values
        (t, N_VALUES).
    q_value : ndarray of float64, shape (t,)
    """

    file: NDArray[np.int64]
    ion: NDArray[np.int64]
    values: NDArray[np.float64]
    q_value: NDArray[np.float64]


@dataclass(frozen=True)
class _Tried:
    """Results of expected ions and their decoys in a file: k rows each."""

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
    surveys_of: Callable[[int], Ms1Spectra],
    parameters: QuantificationParameters,
    resources: Resources,
) -> Transfers:
    """Ions in files that did not identify them, up to a rate of false transfers.

    Parameters
    ----------
    values : (files, ions, N_VALUES)
        Reason : (files, ions), as `proteoscope.engine.quantification.label_free` measured them: 0 where there is an area, -1 where the file
        did not identify it.
    surveys_of
        Reads the survey spectra of a file.
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
    for place, file in enumerate(files):
        alignment = alignments[place]
        if alignment is None:
            resources.progress.message(
                f"Nothing is transferred to file {place + 1} of {len(files)}: it shares too few ions with the others", "warning"
            )
            continue
        others = {i: one for i, one in enumerate(alignments) if one is not None and i != place}
        tried.append(_tried(ions, values, times, reason, (alignment, others), place, surveys_of(file), parameters, resources))
    return _accepted(tried, parameters, resources)


def _tried(
    ions: Ions,
    values: NDArray[np.float64],
    times: NDArray[np.float64],
    reason: NDArray[np.int8],
    alignments: tuple[Alignment, Mapping[int, Alignment]],
    place: int,
    surveys: Ms1Spectra,
    parameters: QuantificationParameters,
    resources: Resources,
) -> _Tried:
    """Try all ions that other files measured and this one did not identify; `alignments` : of this file, and of others by their places."""
    own, others = alignments
    expected = np.full((len(ions), len(others)), np.nan)
    for column, (i, alignment) in enumerate(others.items()):
        there = ~np.isnan(times[:, i])
        expected[there, column] = alignment.to_reference(times[there, i])
    rows = np.flatnonzero((reason[place] < 0) & ions.is_donor & ~np.isnan(expected).all(axis=1))
    if not len(rows):
        return _Tried(place, rows, np.zeros((0, N_VALUES)), np.zeros(0), np.zeros(0))
    time = own.from_reference(np.nanmedian(expected[rows], axis=1))
    spread = max([own.spread, *(one.spread for one in others.values())])
    area = _expected_areas(values[:, :, AREA], reason, place, rows)
    result = [
        _traced(surveys, ions, rows, shift, time, _REACH * spread, parameters, resources)
        for shift in (np.zeros(len(rows)), _decoy_shift(ions, rows))
    ]
    scores = [_scores(one, is_low(one, ions.pattern[rows], surveys), time, spread, area, parameters) for one in result]
    return _Tried(place, rows, result[0], *scores)


def _decoy_shift(ions: Ions, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Shift of the m/z of each ion's decoy: so many steps of mass that no other ion of the table has it, up or down, drawn by the ion."""
    rng = np.random.default_rng(0)
    steps = rng.integers(_FEWEST_STEPS, _MOST_STEPS + 1, len(rows)) * rng.choice([-1, 1], len(rows))
    return steps * _DECOY_STEP / ions.charge[rows]


def _traced(
    surveys: Ms1Spectra,
    ions: Ions,
    rows: NDArray[np.int64],
    shift: NDArray[np.float64],
    time: NDArray[np.float64],
    reach: float,
    parameters: QuantificationParameters,
    resources: Resources,
) -> NDArray[np.float64]:
    result = np.zeros((len(rows), N_VALUES))
    for voltage in surveys.voltages:
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
        result[is_at] = measured_traces(surveys, query, parameters, resources)
    return result


def _expected_areas(area: NDArray[np.float64], reason: NDArray[np.int8], place: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return logarithm of the area that each ion should have in a file, by those of the others, scaled as the ions that both have."""
    logs = np.log(np.where(reason == 0, area, np.nan))
    scaled = []
    for i in range(len(logs)):
        both = ~np.isnan(logs[i]) & ~np.isnan(logs[place])
        scaled.append(logs[i, rows] + (float(np.median((logs[place] - logs[i])[both])) if both.any() else 0.0))
    del scaled[place]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nan_to_num(np.nanmean(np.array(scaled), axis=0))


def _scores(
    values: NDArray[np.float64],
    low: NDArray[np.bool_],
    time: NDArray[np.float64],
    spread: float,
    area: NDArray[np.float64],
    parameters: QuantificationParameters,
) -> NDArray[np.float64]:
    """Return how well traces fit expectations; minus infinity without a trace."""
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


def _accepted(tried: list[_Tried], parameters: QuantificationParameters, resources: Resources) -> Transfers:
    """Return the transfers up to the rate, of all files together."""
    score = np.concatenate([np.zeros(0), *(one.score for one in tried)])
    decoy = np.concatenate([np.zeros(0), *(one.decoy_score for one in tried)])
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
    file = np.concatenate([np.zeros(0, np.int64), *(np.full(len(one.ion), one.file, np.int64) for one in tried)])
    ion = np.concatenate([np.zeros(0, np.int64), *(one.ion for one in tried)])
    values = np.concatenate([np.zeros((0, N_VALUES)), *(one.values for one in tried)])
    return Transfers(file[retained], ion[retained], values[retained], q_value[retained])
