"""Label-free quantities: areas of the ion traces of identified peptidoforms, in the files that identified them and optionally in others.

With FAIMS, an ion is only in the MS1 spectra of a few voltages, in different proportions. It is traced in the spectra of one voltage. An
ion that several files identified at different voltages is treated as a separate ion at each voltage, so that ratios are within one voltage.

Files are read one after the other, and their traces are added to a table of features. Work and memory grow with the number of features, and
of ions times samples.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from proteoscope.engine.quantification.features import Features, FeatureWriter
from proteoscope.engine.quantification.identified import Identified
from proteoscope.engine.quantification.ion_traces import TraceQuery, is_low, measured_traces
from proteoscope.engine.quantification.ions import Ions, list_ions, traces_of_others
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.retention_times import aligned, has_deviating_time
from proteoscope.engine.quantification.tables import ION_TRACES
from proteoscope.engine.quantification.transfers import Donors, Transfers, transferred
from proteoscope.engine.results.arrow import or_null, taken
from proteoscope.engine.spectra.spooling import release_pages
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
_NO_TIME, _NO_SIGNAL, _FEW, _LOW_AGREEMENT, _OF_ANOTHER_ION, _AT_ANOTHER_TIME, _LOW = range(1, 8)
_STATES = (State.MEASURED, State.NOT_SEEN, State.NOT_SEEN, State.TOO_LOW, *[State.REFUSED] * 3, State.TOO_LOW)
STATE_OF_REASON = dict(zip(_REASONS, _STATES, strict=True))
"""State of an amount by the reason for refusing the ion's trace."""


def measure_label_free(
    identified: Identified, design: Design, parameters: QuantificationParameters, resources: Resources, spool: Path | None
) -> MeasuredIons:
    """Measure the areas of all ions in the files of the design.

    Raises
    ------
    InputError
        If a file has no MS1 spectra or is damaged.
    StorageError
        If the features do not fit into the folder `spool`.
    Cancelled
        If the user cancelled.
    """
    files = sorted({part.file for part in design.parts})
    transfers_any = parameters.match_between_runs and len(files) > 1
    every = [identified, *([identified.decoys] if transfers_any and identified.decoys is not None else [])]
    tables = [_FeatureTable(part, parameters, spool) for part in every]
    n_profiles = 0

    def read_file(file: int) -> Ms1Spectra:
        return read_ms1_spectra(identified.files[file].path, progress=resources.progress, spool=spool)

    for position, file in enumerate(files):
        ms1_spectra = read_file(file)
        n_profiles += ms1_spectra.n_profiles
        for voltage in ms1_spectra.voltages:
            for table in tables:
                table.measure(voltage, (position, file), ms1_spectra, resources)
    if n_profiles:
        resources.progress.message(f"{n_profiles:,} MS1 spectra in profile mode were centroided")
    ions, features = tables[0].finish(len(files))
    voltages = [f"{voltage:g}" for voltage in np.unique(ions.voltage[np.isfinite(ions.voltage)]).tolist()]
    if voltages:
        resources.progress.message(f"FAIMS: each ion is traced in the MS1 spectra of one voltage ({', '.join(voltages)} V)")
    _refuse_other_times(features)
    transfers = None
    if transfers_any:
        donors = [Donors(ions, identified.forms.sequence[ions.form], features)]
        if len(tables) > 1 and identified.decoys is not None:
            decoy_ions, decoy_features = tables[1].finish(len(files))
            # Decoys get sequence numbers that no target has, so that no trace is shared between targets and decoys.
            sequence = len(identified.sequences) + identified.decoys.forms.sequence[decoy_ions.form]
            donors.append(Donors(decoy_ions, sequence, decoy_features))
        transfers = transferred(donors, files, read_file, parameters, resources, spool)
    counts = {"faims_voltages": len(voltages)} if voltages else {}
    traces = IonTraceTable(identified, ions, tuple(files), features, transfers)
    return _amounts_by_sample(design, files, traces, counts, resources, spool)


class _FeatureTable:
    """Traces of the ions of identified peptidoforms in all files."""

    def __init__(self, identified: Identified, parameters: QuantificationParameters, spool: Path | None) -> None:
        self._identified, self._parameters = identified, parameters
        self._ions = list_ions(identified, parameters.isotopes, parameters.donor_fdr)
        self._writer = FeatureWriter(spool)
        self._voltages: list[float] = []
        self._is_identified: list[NDArray[np.bool_]] = []

    def measure(self, voltage: float, at: tuple[int, int], ms1_spectra: Ms1Spectra, resources: Resources) -> None:
        """Measure the ions that a file identified, in its MS1 spectra of one voltage.

        `at` is the index of the file in the design, and its index among all files.
        """
        number = next((k for k, other in enumerate(self._voltages) if other == voltage or np.isnan([other, voltage]).all()), None)
        if number is None:
            number = len(self._voltages)
            self._voltages.append(voltage)
            self._is_identified.append(np.zeros(len(self._ions), np.bool_))
        traced = _traces_at(voltage, self._identified, self._ions, at[1], ms1_spectra, self._parameters, resources)
        self._is_identified[number][traced.without] = True
        self._is_identified[number][traced.identified] = True
        self._writer.append(at[0], number, traced.rows, traced.values, traced.reason, traced.from_spectra)
        n = len(traced.without)
        self._writer.append(at[0], number, traced.without, np.zeros((n, N_VALUES)), np.full(n, _NO_TIME, np.int8), np.full(n, np.nan))

    def finish(self, n_files: int) -> tuple[Ions, Features]:
        """Return the ions of all files, one per ion and voltage at which any file identified it, and their traces.

        The ions are sorted by ion and voltage.
        """
        order = np.argsort(self._voltages)  # NaN is last
        ion, part = np.nonzero(np.array(self._is_identified)[order].T)
        number = np.full((len(self._ions), len(order)), -1, np.int64)
        number[ion, order[part]] = np.arange(len(ion))
        features = self._writer.finish(number, len(ion), n_files)
        return replace(self._ions.part(ion), voltage=np.array(self._voltages)[order][part]), features


def _refuse_other_times(features: Features) -> None:
    """Refuse the traces whose time differs from that in most files."""
    has = np.flatnonzero((features.reason == 0) & (features.ion < features.n_ions))
    time, width = np.array(features.values[has, TIME]), np.array(features.values[has, WIDTH])
    alignments = aligned(features.ion[has], features.file[has], time, features.n_ions, features.n_files).of_file
    at = np.full(len(features.ion), -1, np.int64)
    at[has] = np.arange(len(has))
    for first, last in features.blocks():
        rows = features.rows(first, last)
        rows = rows[at[rows] >= 0]
        times, widths, distances = (
            features.dense(rows, column, first, last) for column in (time[at[rows]], width[at[rows]], features.distance[rows])
        )
        is_elsewhere = has_deviating_time(times, widths, distances, alignments)
        features.reason[rows[is_elsewhere[features.ion[rows] - first, features.file[rows]]]] = _AT_ANOTHER_TIME


class _Traces(NamedTuple):
    """Traces of k ions in the MS1 spectra of one file at one voltage.

    Attributes
    ----------
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
    file: int,
    ms1_spectra: Ms1Spectra,
    parameters: QuantificationParameters,
    resources: Resources,
) -> _Traces:
    """Measure the ions that a file identified, in its MS1 spectra of one voltage."""
    ions = all_ions.at_voltage(voltage)
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
    reason[chosen[of_others]] = _OF_ANOTHER_ION
    return _Traces(rows, values, reason, from_spectra, without, is_at)


def _query(
    identified: Identified, ions: Ions, file: int, ms1_spectra: Ms1Spectra, parameters: QuantificationParameters
) -> tuple[NDArray[np.int64], TraceQuery, NDArray[np.int64], NDArray[np.int64]]:
    """Return the ions identified in a file with a retention time, and the query of their traces.

    Also return the ions identified in the file without a retention time, and the ions identified at the voltage of the query.
    """
    matches = identified.matches
    of_file = matches.rows_of_file(file)
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
    result[values[:, AGREEMENT] < parameters.minimum_agreement] = _LOW_AGREEMENT
    result[values[:, POINTS] < parameters.minimum_points] = _FEW
    result[values[:, APEX] <= 0] = _NO_SIGNAL
    return result


def _amounts_by_sample(
    design: Design, files: list[int], traces: IonTraceTable, counts: dict[str, int], resources: Resources, spool: Path | None
) -> MeasuredIons:
    """Return the amounts of ions by sample; the files of a sample are added."""
    sample_of_file = {part.file: part.sample for part in design.parts}
    sample = np.array([sample_of_file[file] for file in files], np.int64)
    features, transfers = traces.features, traces.transfers
    shape = len(traces.ions), len(design.samples)
    result = RawQuantities.missing(shape, spool)
    for first, last in features.blocks():
        rows = traces.rows(first, last)
        area = np.where((rows.reason == 0), rows.values[:, AREA], np.nan)
        states = np.where(rows.is_transfer, State.TRANSFERRED, np.array(_STATES, np.int8)[rows.reason]).astype(np.int8)
        at, block = (rows.ion - first, sample[rows.file]), (last - first, shape[1])
        total, has_any, least = np.zeros(block), np.zeros(block, np.bool_), result.state[first:last]
        np.minimum.at(least, at, states)
        np.add.at(total, at, np.nan_to_num(area))
        np.logical_or.at(has_any, at, ~np.isnan(area))
        result.value[first:last][has_any] = total[has_any]
        release_pages(result.value)
        release_pages(result.state)
    n_refused = int(((features.reason > 0) & (features.ion < features.n_ions)).sum())
    counts = {"ions": shape[0], "transferred": 0, "refused": n_refused, **({} if transfers is None else transfers.counts), **counts}
    return MeasuredIons(result, traces.ions.form, {ION_TRACES.name: traces}, counts, resources.used)


class _TraceRows(NamedTuple):
    """Rows of the table of ion traces, sorted by ion and file.

    The columns are indices of ion and file, measured values, reason for refusing the trace, and q-value of transfers.
    """

    ion: NDArray[np.int32]
    file: NDArray[np.int32]
    values: NDArray[np.float64]
    reason: NDArray[np.int8]
    is_transfer: NDArray[np.bool_]
    q_value: NDArray[np.float64]


@dataclass(frozen=True)
class IonTraceTable:
    """Table of ion traces: one row per ion and file that identified it or received it by transfer, sorted by ion and file.

    Iteration yields chunks of it.
    """

    identified: Identified
    ions: Ions
    files: tuple[int, ...]
    features: Features
    transfers: Transfers | None

    def rows(self, first: int, last: int) -> _TraceRows:
        """Return the rows of the ions `first:last`."""
        at = self.features.rows(first, last)
        ion, file, why = self.features.ion[at], self.features.file[at], self.features.reason[at]
        value, q_value, is_moved = self.features.values[at], np.full(len(at), np.nan), np.zeros(len(at), np.bool_)
        if self.transfers is not None:
            features = self.transfers.features
            moved = features.rows(first, last)
            ion, file = np.append(ion, features.ion[moved]), np.append(file, features.file[moved])
            why, is_moved = np.append(why, np.zeros(len(moved), np.int8)), np.append(is_moved, np.ones(len(moved), np.bool_))
            value, q_value = np.append(value, features.values[moved], axis=0), np.append(q_value, self.transfers.q_value[moved])
            release_pages(features.values)
        order = np.lexsort((file, ion))
        return _TraceRows(ion[order], file[order], value[order], why[order], is_moved[order], q_value[order])

    def __iter__(self) -> Iterator[pa.Table]:
        for first, last in self.features.blocks():
            yield self._chunk(self.rows(first, last))

    def _chunk(self, rows: _TraceRows) -> pa.Table:
        ions, ion, value = self.ions, rows.ion, rows.values
        has_area, is_seen = rows.reason == 0, value[:, APEX] > 0
        columns = (AREA, APEX, TIME, BEGIN, END, WIDTH, AGREEMENT)
        names = ("area", "apex", "retention_time", "begin", "end", "width", "agreement")
        numbers = {name: pa.array(value[:, column], mask=~is_seen) for name, column in zip(names, columns, strict=True)}
        return ION_TRACES.arrow(
            {
                **numbers,
                "area": pa.array(value[:, AREA], mask=~has_area),
                "n_points": value[:, POINTS].astype(np.int64),
                "peptide": taken(self.identified.forms.peptide, ions.form[ion]),
                "charge": ions.charge[ion],
                "mz": ions.mz[ion],
                "voltage": or_null(ions.voltage[ion]),
                "file": taken([PurePath(self.identified.files[number].path).name for number in self.files], rows.file),
                "source": taken(("identified", "transferred"), rows.is_transfer.astype(np.int64)),
                "q_value": or_null(rows.q_value),
                "refused": taken(_REASONS, np.where(has_area, -1, rows.reason).astype(np.int64)),
            }
        )
