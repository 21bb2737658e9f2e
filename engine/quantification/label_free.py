"""Label-free quantities: areas of the ion traces of identified peptidoforms, in the file that identified them and, if wanted, in others.

With FAIMS an ion is in the survey spectra of some voltages only, and in different parts there. It is followed in those of one voltage, and
counts as an ion of its own at each voltage at which any file identified it, so that ratios are those of one voltage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.surveys import Surveys, read_surveys
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.quantification.amounts import Amounts, Measured, State
from proteoscope.engine.quantification.design import Design
from proteoscope.engine.quantification.identified import Identified
from proteoscope.engine.quantification.ion_traces import TraceQuery, is_low, measured_traces
from proteoscope.engine.quantification.ions import Ions, ions_of, traces_of_others
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.retention_times import at_another_time
from proteoscope.engine.quantification.tables import ION_TRACES
from proteoscope.engine.quantification.transfers import Transfers, transferred
from proteoscope.engine.results.arrow import or_null, taken
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


def measured_label_free(
    identified: Identified, design: Design, parameters: QuantificationParameters, resources: Resources, spool: Path | None
) -> Measured:
    """Return areas of all ions in the files of the design.

    Raises
    ------
    InputError : a file has no survey spectra, or is damaged. Cancelled : the user asked to stop.
    """
    ions = ions_of(identified, parameters.isotopes, parameters.donor_fdr)
    files = sorted({part.file for part in design.parts})
    traces, n_profiles = list[_Traces](), 0

    def surveys_of(file: int) -> Surveys:
        return read_surveys(identified.files[file].path, progress=resources.progress, spool=spool)

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
    place : of the file among those of the design. voltage : NaN for survey spectra without one. rows : (k,) int64, ions.
    values : (k, N_VALUES) float64. reason : (k,) int8, why there is no quantity, 0 where there is one. from_spectra : (k,) float64, s, from
    the nearest spectrum to the summit. without : ions of the file without a time. identified : ions that spectra at the voltage identify.
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
    surveys: Surveys,
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
    """Return n ions, each at the voltages at which any file identified it, in the order of ions and voltages, and of these by file values,
    (files, n, N_VALUES), reasons, -1 where the file did not identify it, and seconds from the spectra, (files, n).
    """
    voltages = np.unique([one.voltage for one in traces])  # NaN last
    column = [int(np.searchsorted(voltages, one.voltage)) for one in traces]
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
    identified: Identified, ions: Ions, file: int, surveys: Surveys, parameters: QuantificationParameters
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
        offsets_of(count),
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
    found = np.zeros(len(values), np.int8)
    found[low] = _LOW
    found[values[:, AGREEMENT] < parameters.minimum_agreement] = _DISAGREES
    found[values[:, POINTS] < parameters.minimum_points] = _FEW
    found[values[:, APEX] <= 0] = _NO_SIGNAL
    return found


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
        Amounts(area.T, state.T).of_samples(samples, len(design.samples)), ions.form, {ION_TRACES.name: table}, counts, resources.used
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
