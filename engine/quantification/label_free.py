"""Label-free quantities: areas of the ion traces of identified peptidoforms, in the file that identified them and, if wished, in others."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.surveys import Surveys, read_surveys
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.quantification.agreeing_times import at_another_time
from proteoscope.engine.quantification.amounts import Amounts, State
from proteoscope.engine.quantification.claims import traces_of_others
from proteoscope.engine.quantification.design import Design
from proteoscope.engine.quantification.identified import Identified
from proteoscope.engine.quantification.ion_traces import TraceQuery, is_low, measured_traces
from proteoscope.engine.quantification.ions import Ions, ions_of
from proteoscope.engine.quantification.measuring import Measured
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.tables import ION_TRACES
from proteoscope.engine.quantification.transfers import Transfers, transferred
from proteoscope.kernels.cpu.elution import AGREEMENT, APEX, AREA, BEGIN, END, N_VALUES, POINTS, TIME, WIDTH

if TYPE_CHECKING:
    pass

__all__ = ["measured_label_free"]

_REASONS = (
    "", "no retention time", "no signal at its m/z and time", "too few points", "isotopes do not agree with the formula",
    "the trace of another identified ion", "at another time than in other files", "summit near the lowest intensity of the run",
)  # fmt: skip
_NO_TIME, _NO_SIGNAL, _FEW, _DISAGREES, _OF_ANOTHER, _ELSEWHERE, _LOW = range(1, 8)
_STATE_OF_REASON = np.array([State.MEASURED, State.NOT_SEEN, State.NOT_SEEN, State.TOO_LOW, *[State.REFUSED] * 3, State.TOO_LOW], np.int8)


def measured_label_free(
    identified: Identified, design: Design, parameters: QuantificationParameters, resources: Resources, spool: Path | None
) -> Measured:
    """Areas of all ions in the files of the design.

    Raises
    ------
    InputError : a file has no survey spectra, or is damaged. Cancelled : the user asked to stop.
    """
    ions = ions_of(identified, parameters.isotopes)
    files = sorted({part.file for part in design.parts})
    n_profiles = 0
    values = np.zeros((len(files), len(ions), N_VALUES))
    reason = np.full((len(files), len(ions)), -1, np.int8)
    from_spectra = np.full((len(files), len(ions)), np.nan)

    def surveys_of(file: int) -> Surveys:
        return read_surveys(identified.files[file].path, progress=resources.progress, spool=spool)

    for place, file in enumerate(files):
        surveys = surveys_of(file)
        n_profiles += surveys.n_profiles
        rows, query, without = _query(identified, ions, file, surveys, parameters)
        values[place, rows] = measured_traces(surveys, query, parameters, resources)
        reason[place, rows] = _reasons(values[place, rows], is_low(values[place, rows], query.pattern, surveys), parameters)
        from_spectra[place, rows] = query.nearest_anchor(values[place, rows, TIME])
        chosen = np.flatnonzero(reason[place, rows] == 0)
        of_others = traces_of_others(
            ions.part(rows[chosen]), identified.forms.sequence[ions.form[rows[chosen]]], values[place, rows[chosen]],
            from_spectra[place, rows[chosen]], parameters,
        )  # fmt: skip
        reason[place, rows[chosen[of_others]]] = _OF_ANOTHER
        reason[place, without] = _NO_TIME
    if n_profiles:
        resources.progress.message(f"{n_profiles:,} survey spectra in profile mode were centroided")
    times = np.where(reason == 0, values[:, :, TIME], np.nan).T
    reason[at_another_time(times, values[:, :, WIDTH].T, from_spectra.T).T] = _ELSEWHERE
    values[reason != 0, AREA] = np.nan
    transfers = None
    if parameters.match_between_runs and len(files) > 1:
        transfers = transferred(ions, values, reason, files, surveys_of, parameters, resources)
        values[transfers.file, transfers.ion] = transfers.values
    table = _table(identified, ions, files, values, reason, transfers)
    return _measured(identified, design, ions, files, values, reason, transfers, table, resources)


def _query(
    identified: Identified, ions: Ions, file: int, surveys: Surveys, parameters: QuantificationParameters
) -> tuple[NDArray[np.int64], TraceQuery, NDArray[np.int64]]:
    """The ions that a file identified at a time, what is asked of them, and those without a time."""
    matches = identified.matches
    of_file = np.flatnonzero(matches.file == file)
    timed = of_file[np.isfinite(matches.retention_time[of_file])]
    order = timed[np.lexsort((matches.retention_time[timed], ions.of_match[timed]))]
    rows, count = np.unique(ions.of_match[order], return_counts=True)
    query = TraceQuery(
        ions.mz[rows], ions.charge[rows], ions.pattern[rows], offsets_of(count), matches.retention_time[order], np.zeros(len(rows)),
        parameters.retention_window,
    )  # fmt: skip
    return rows, query, np.setdiff1d(ions.of_match[of_file], rows)


def _reasons(values: NDArray[np.float64], low: NDArray[np.bool_], parameters: QuantificationParameters) -> NDArray[np.int8]:
    """Why ions have no quantity, 0 where they have one."""
    found = np.zeros(len(values), np.int8)
    found[low] = _LOW
    found[values[:, AGREEMENT] < parameters.minimum_agreement] = _DISAGREES
    found[values[:, POINTS] < parameters.minimum_points] = _FEW
    found[values[:, APEX] <= 0] = _NO_SIGNAL
    return found


def _measured(
    identified: Identified, design: Design, ions: Ions, files: list[int], values: NDArray[np.float64], reason: NDArray[np.int8],
    transfers: Transfers | None, table: pa.Table, resources: Resources,
) -> Measured:  # fmt: skip
    """Amounts of peptidoforms by sample: ions of all charges, and files of a sample, added up."""
    state = np.full(reason.shape, State.NOT_SEEN, np.int8)
    state[reason >= 0] = _STATE_OF_REASON[reason[reason >= 0]]
    area = np.where(reason == 0, values[:, :, AREA], np.nan)
    n_transferred = 0
    if transfers is not None:
        n_transferred = len(transfers.ion)
        state[transfers.file, transfers.ion] = State.TRANSFERRED
        area[transfers.file, transfers.ion] = transfers.values[:, AREA]
    by_file = Amounts(area.T, state.T).summed(ions.form, len(identified.forms))
    sample_of_file = {part.file: part.sample for part in design.parts}
    samples = np.array([sample_of_file[file] for file in files], np.int64)
    counts = {"ions": len(ions), "transferred": n_transferred, "refused": int((reason > 0).sum())}
    return Measured(by_file.of_samples(samples, len(design.samples)), {ION_TRACES.name: table}, counts, resources.used)


def _table(
    identified: Identified, ions: Ions, files: list[int], values: NDArray[np.float64], reason: NDArray[np.int8],
    transfers: Transfers | None,
) -> pa.Table:  # fmt: skip
    """A row for each ion in each file that identified it, or to which it was transferred."""
    is_transferred = np.zeros(reason.shape, np.bool_)
    q_value = np.full(reason.shape, np.nan)
    if transfers is not None:
        is_transferred[transfers.file, transfers.ion] = True
        q_value[transfers.file, transfers.ion] = transfers.q_value
    ion, place = np.nonzero(((reason >= 0) | is_transferred).T)
    value, why, moved = values[place, ion], reason[place, ion], is_transferred[place, ion]
    has, is_seen = (why == 0) | moved, value[:, APEX] > 0

    def column(number: int, there: NDArray[np.bool_]) -> pa.Array:
        return pa.array(value[:, number], mask=~there)

    names = pa.array([PurePath(identified.files[file].path).name for file in files], pa.string())
    return ION_TRACES.arrow(
        {
            "peptide": pa.array(identified.forms.peptide, pa.string()).take(pa.array(ions.form[ion])), "charge": ions.charge[ion],
            "mz": ions.mz[ion], "file": names.take(pa.array(place)),
            "source": pa.array(["identified", "transferred"]).take(pa.array(moved.astype(np.int8))),
            "area": column(AREA, has), "apex": column(APEX, is_seen), "retention_time": column(TIME, is_seen),
            "begin": column(BEGIN, is_seen), "end": column(END, is_seen), "width": column(WIDTH, is_seen),
            "n_points": value[:, POINTS].astype(np.int64), "agreement": column(AGREEMENT, is_seen),
            "q_value": pa.array(q_value[place, ion], mask=~moved),
            "refused": pa.array(_REASONS, pa.string()).take(pa.array(np.maximum(why, 0), mask=has)),
        }
    )  # fmt: skip
