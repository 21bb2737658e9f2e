"""Chromatograms of an ion in all files of a quantification, with integration limits."""

import math
import tempfile
import textwrap
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.isotopes import AVERAGINE, ELEMENTS, element_counts, isotope_patterns, sequence_elements
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.chemistry.modifications import unimod
from proteoscope.engine.chemistry.peptidoforms import parse
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import InputError, ProteoscopeError
from proteoscope.engine.formats.ms1_spectra import Ms1Spectra, read_ms1_spectra
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.views.chromatograms import power_below
from proteoscope.engine.views.conditions import compares
from proteoscope.engine.views.drawings import Axis
from proteoscope.engine.views.figures import Figure, Line, Mark, Panel, Picked, Rule, Surface, Text
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.tables import TableSource

__all__ = [
    "Border",
    "IonTrace",
    "IonTraces",
    "Ms1Reader",
    "ion_traces",
    "measured_between",
    "trace_columns",
    "trace_panel",
    "trace_through",
    "traces_figure",
]

_AVERAGINE_MASS = 111.1254
_LEAST_SECONDS, _LATEST = 120.0, 1e9
_MINIMUM_WIDTH, _PAPER_WIDTH, _PAPER_HEIGHT = 190, 510.0, 130.0
"""Minimum width of a trace (pixels), width of all traces on a page, and height of a row of traces (points)."""
_SMALLEST = 0.001
"""Minimum visible range, minutes."""
_CHARACTERS = 34
"""Line length of the text that replaces a missing trace, in characters."""
_TIMES = ("retention_time", "begin", "end")
_COLUMNS = (
    *("peptide", "charge", "mz", "file", "source", "area", "apex", "retention_time", "begin", "end", "n_points", "agreement", "q_value"),
    *("refused", "voltage"),
)


@dataclass(frozen=True, eq=False)
class IonTrace:
    """Chromatogram of an ion in a file with k MS1 spectra.

    Attributes
    ----------
    file
        Name of the file.
    row
        Row in the table of ion traces; -1 if the table has none for this ion and file.
    seconds
        Retention times in seconds, shape (k,), float64.
    intensity
        Intensity of each isotope in each MS1 spectrum, shape (k, isotopes), float64.
    main
        Index of the isotope with the highest predicted abundance.
    apex, begin, end
        Retention times of the apex and of the integration limits in seconds, or None.
    values
        Values of the row by column name, or empty.
    error
        Reason why the trace is missing, or ''.
    pattern
        Predicted abundances of isotopes, which correct for isotopes below the detection limit, shape (isotopes,), float64; empty if
        unknown.
    """

    file: str
    row: int
    seconds: NDArray[np.float64]
    intensity: NDArray[np.float64]
    main: int
    apex: float | None
    begin: float | None
    end: float | None
    values: dict[str, Any]
    error: str = ""
    pattern: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def total(self) -> NDArray[np.float64]:
        """Summed intensity of the isotopes in each spectrum, (k,); 0 if the main isotope has no peak.

        The sum is corrected for other isotopes without a peak by `pattern`, as in `proteoscope.kernels.cpu.elution`.
        """
        result = np.where(self.intensity[:, self.main] > 0, self.intensity.sum(axis=1), 0.0)
        if not len(self.pattern):
            return result
        seen = (self.intensity > 0) @ self.pattern
        whole: NDArray[np.float64] = result * self.pattern.sum() / np.where(seen > 0, seen, 1.0)
        return whole

    @property
    def is_manual(self) -> bool:
        """True if the integration limits were set manually."""
        return self.values.get("source") == "manual"

    @property
    def summary(self) -> str:
        """Line of text with the area and its source, or the reason why there is no area."""
        if not self.values:
            return "not identified here"
        if self.values["refused"]:
            return str(self.values["refused"])
        source = {"manual": ", set by hand", "transferred": ", transferred"}.get(str(self.values["source"]), "")
        return f"area {float(self.values['area'] or 0.0):.4g}{source}"


@dataclass(frozen=True, eq=False)
class IonTraces:
    """Chromatograms of an ion in all files of a run, in order; `pattern` are predicted isotope abundances, (isotopes,), float64."""

    peptide: str
    charge: int
    mz: float
    pattern: NDArray[np.float64]
    traces: tuple[IonTrace, ...]

    @property
    def title(self) -> str:
        """Display name of the ion."""
        return f"{self.peptide}, {self.charge}+, m/z {self.mz:.4f}"

    @property
    def everything(self) -> tuple[float, float]:
        """Range of the retention times that were read, minutes."""
        ends = [float(trace.seconds[end]) / 60 for trace in self.traces if len(trace.seconds) for end in (0, -1)]
        low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
        return (low, high) if high > low else (low - 0.5, low + 0.5)

    @property
    def whole(self) -> tuple[float, float]:
        """Range of all integration limits, with a margin, minutes."""
        ends = [end / 60 for trace in self.traces if trace.begin is not None and trace.end is not None for end in (trace.begin, trace.end)]
        least, most = self.everything
        if not ends:
            return least, most
        margin = max((max(ends) - min(ends)) * 0.6, 0.1)
        low, high = max(min(ends) - margin, least), min(max(ends) + margin, most)
        return (low, high) if high > low else (least, most)


class Border(NamedTuple):
    """Integration limit: index of the file, and True for the end of the peak, False for the beginning."""

    file: int
    is_end: bool


def trace_columns(n_traces: int, width: float) -> int:
    """Return the number of columns of traces for a width in pixels."""
    columns = min(n_traces, max(1, int(width // _MINIMUM_WIDTH)), max(1, math.ceil(math.sqrt(2 * n_traces))))
    rows = -(-n_traces // columns)
    return -(-n_traces // rows)


def traces_figure(ion: IonTraces, n_columns: int | None = None, chosen: Border | None = None) -> Figure:
    """Return the figure of an ion in all files: isotopes, sum, integration limits and apex.

    Parameters
    ----------
    n_columns
        Number of columns of traces; None for the number on a page.
    chosen
        Integration limit drawn as selected.
    """
    columns = trace_columns(len(ion.traces), _PAPER_WIDTH) if n_columns is None else n_columns
    panels = tuple(trace_panel(ion, position, chosen) for position in range(len(ion.traces)))
    size = (_PAPER_WIDTH, _PAPER_HEIGHT * -(-len(panels) // columns))
    return Figure(ion.title, ion.title, panels, size=size, n_columns=columns, x_range=ion.whole)


def trace_panel(ion: IonTraces, position: int, chosen: Border | None = None, moved: tuple[float, float] | None = None) -> Panel:
    """Return the panel of an ion in one file.

    `moved` are integration limits in seconds, shown instead of the limits of the trace while the user drags a limit.
    """
    trace, x = ion.traces[position], Axis(*ion.everything)
    begin, end = (trace.begin, trace.end) if moved is None else moved

    def of_view(low: float, high: float, n_columns: int) -> Panel:
        start = max(0, int(np.searchsorted(trace.seconds, low * 60)) - 1)
        seen = slice(start, int(np.searchsorted(trace.seconds, high * 60, side="right")) + 1)
        seconds, isotopes, total = trace.seconds[seen], trace.intensity[seen], trace.total[seen]
        if not len(seconds):
            lines = textwrap.wrap(trace.error or "Nothing was measured here.", _CHARACTERS)
            texts = [Text((low + high) / 2, 0.8 - 0.15 * at, line, ink="faint") for at, line in enumerate(lines)]
            return Panel(x, Axis(0.0, 1.0), tuple(texts))
        highest = float(max(total.max(initial=0.0), isotopes.max(initial=0.0))) or 1.0
        power, written = power_below(highest)
        top, minutes = highest / power, seconds / 60
        marks: list[Mark] = []
        if begin is not None and end is not None:
            within = (seconds >= begin - 1e-6) & (seconds <= end + 1e-6)
            area = total[within] / power
            marks.append(Surface(minutes[within], 0 * area, area, "mark" if trace.is_manual else "target", 0.24))
        marks += [Line(minutes, isotopes[:, isotope] / power, isotope, 1.0) for isotope in range(isotopes.shape[1])]
        marks.append(Line(minutes, total / power, "text", 1.4))
        for is_end, at in ((False, begin), (True, end)):
            if at is not None:
                is_chosen = chosen == Border(position, is_end)
                marks.append(Rule(at / 60, ink="mark" if is_chosen else "text", width=2.4 if is_chosen else 1.2))
        if trace.apex is not None and moved is None:
            marks.append(Text(trace.apex / 60, 0.97 * top, "▼", ink="mark"))
        if written:
            marks.append(Text(high, 0.94 * top, f"× {written}, min", "end", "faint"))
        return Panel(x, Axis(0.0, 1.1 * top), tuple(marks))

    def pick(*_: float) -> Picked:
        return Picked(None, f"{trace.file}\n{trace.summary}")

    title = f"{trace.file}: {trace.summary}"
    return Panel(x, Axis(0.0, 1.0), (), smallest=(_SMALLEST, None), of_view=of_view, pick=pick, title=title)


class Ms1Reader:
    """MS1 spectra of the files of a run; each file is read once, and only one thread may use the object."""

    def __init__(self, run: FinishedRun) -> None:
        self.paths = tuple(path for kind, path in run.inputs if kind == "spectra")
        self._check = run.check_input
        self._progress = Progress()
        self._spectra: dict[Path, Ms1Spectra] = {}

    def read(self, path: Path) -> Ms1Spectra:
        """Return the MS1 spectra of a file.

        Raises
        ------
        InputError
            If the file no longer exists, has changed, or has no MS1 spectra.
        Cancelled
            If `close` was called meanwhile.
        """
        if path not in self._spectra:
            self._check(path)
            self._spectra[path] = read_ms1_spectra(path, progress=self._progress, spool=Path(tempfile.gettempdir()))
        return self._spectra[path]

    def close(self) -> None:
        """Stop the current reading of a file; may be called from any thread."""
        self._progress.cancel()


def ion_traces(source: TableSource, row: int, run: FinishedRun, ms1_reader: Ms1Reader) -> IonTraces:
    """Return the chromatograms of the ion in a row of the ion traces, in all files of the run.

    Raises
    ------
    InputError
        If the run has no such row.
    """
    of_row = source.row(row, _COLUMNS)
    rows = source.rows([compares("peptide", "=", of_row["peptide"]), compares("charge", "=", of_row["charge"])])
    every = dict(zip(rows.tolist(), map(_with_valid_times, source.values(rows, _COLUMNS).to_pylist()), strict=True))
    values = {number: row_values for number, row_values in every.items() if row_values["voltage"] == of_row["voltage"]}
    of_file = {value["file"]: number for number, value in values.items()}
    pattern = _pattern(of_row["peptide"], int(run.parameters["isotopes"]))
    timed = [value for value in values.values() if value["retention_time"] is not None]
    expected = float(np.median([ion["retention_time"] for ion in timed])) if timed else None
    widest = max((ion["end"] - ion["begin"] for ion in timed), default=0.0)
    reach = max(float(run.parameters["retention_window"]), _LEAST_SECONDS, 2 * widest)
    result = []
    for path in ms1_reader.paths:
        number = of_file.get(path.name, -1)
        at = values.get(number, {})
        middle = at.get("retention_time")
        middle = expected if middle is None else middle
        result.append(_trace(path, number, at, of_row, pattern, middle, reach, run, ms1_reader))
    return IonTraces(of_row["peptide"], of_row["charge"], of_row["mz"], pattern, tuple(result))


def _trace(
    path: Path,
    row: int,
    values: dict[str, Any],
    ion: dict[str, Any],
    pattern: NDArray[np.float64],
    middle: float | None,
    reach: float,
    run: FinishedRun,
    ms1_reader: Ms1Reader,
) -> IonTrace:
    main, name = int(np.argmax(pattern)), PurePath(path).name
    apex, begin, end = (values.get(column) for column in ("retention_time", "begin", "end"))
    if middle is None:
        return IonTrace(
            name, row, np.zeros(0), np.zeros((0, len(pattern))), main, apex, begin, end, values, "Its retention time is unknown."
        )
    try:
        tolerance = Tolerance.parse(str(run.parameters["precursor_tolerance"]))
        seconds, intensity = trace_through(
            ms1_reader.read(path), ion["mz"], ion["charge"], len(pattern), tolerance, (middle - reach, middle + reach), ion["voltage"]
        )
    except ProteoscopeError as error:
        return IonTrace(name, row, np.zeros(0), np.zeros((0, len(pattern))), main, apex, begin, end, values, str(error))
    return IonTrace(name, row, seconds, intensity, main, apex, begin, end, values, pattern=pattern)


def _with_valid_times(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a row; all times are None unless all are valid and the beginning is not after the end."""
    times = [values[name] for name in _TIMES]
    are_sound = all(time is not None and 0 <= time < _LATEST for time in times) and values["begin"] <= values["end"]
    return values if are_sound else {**values, **dict.fromkeys(_TIMES)}


def trace_through(
    ms1_spectra: Ms1Spectra,
    mz: float,
    charge: int,
    n_isotopes: int,
    tolerance: Tolerance,
    span: tuple[float, float],
    voltage: float | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return, for each MS1 spectrum of a time range and each isotope of an ion, the intensity of the highest peak within the tolerance.

    `mz` is the m/z of the first isotope, and `span` the time range in seconds. Only spectra with the FAIMS voltage `voltage` are used; None
    selects spectra without FAIMS.

    Returns
    -------
    seconds
        Retention times of the k spectra, shape (k,), float64.
    intensity
        Intensity of each isotope, 0 without a peak, shape (k, isotopes), float64.
    """
    first, last = np.searchsorted(ms1_spectra.retention_time, span)
    last = max(last, first)
    low, high = int(ms1_spectra.offsets[first]), int(ms1_spectra.offsets[last])
    peaks, heights = np.asarray(ms1_spectra.mz[low:high]), np.asarray(ms1_spectra.intensity[low:high])
    owner = np.repeat(np.arange(last - first), np.diff(ms1_spectra.offsets[first : last + 1]))
    result = np.zeros((last - first, n_isotopes))
    for isotope in range(n_isotopes):
        centre = mz + isotope * ISOTOPE_SPACING / charge
        width = float(tolerance.width(centre))
        within = np.flatnonzero((peaks >= centre - width) & (peaks <= centre + width))
        np.maximum.at(result[:, isotope], owner[within], heights[within])
    is_at = ms1_spectra.at_voltage(float("nan") if voltage is None else voltage)[first:last]
    return np.asarray(ms1_spectra.retention_time[first:last][is_at]), result[is_at]


def measured_between(trace: IonTrace, pattern: NDArray[np.float64], begin: float, end: float) -> dict[str, float]:
    """Return the measured values of an ion between two times (seconds), computed as in the search.

    Raises
    ------
    InputError
        If no MS1 spectrum between the limits contains the ion.
    """
    begin, end = min(begin, end), max(begin, end)
    positions = np.flatnonzero((trace.seconds >= begin) & (trace.seconds <= end) & (trace.total > 0))
    if not len(positions):
        raise InputError(trace.file, "has no signal of the ion between these limits", remedy="Set the limits around a signal")
    seconds, cells, total = trace.seconds[positions], trace.intensity[positions], trace.total[positions]
    areas = ((cells[1:] + cells[:-1]) / 2 * np.diff(seconds)[:, None]).sum(axis=0)
    length = float(np.sqrt((areas**2).sum() * (pattern**2).sum()))
    shape = _smoothed(trace, positions)
    high = shape >= shape.max() / 2
    return {
        "area": float(np.trapezoid(total, seconds)),
        "apex": float(total.max()),
        "retention_time": float((seconds[high] * total[high]).sum() / total[high].sum()),
        "begin": begin,
        "end": end,
        "n_points": float(len(positions)),
        "agreement": float(areas @ pattern) / length if length > 0 else 0.0,
    }


def _smoothed(trace: IonTrace, positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the smoothed total intensities of the spectra `positions`, as in the search: gaps are interpolated, weights are 1-2-1."""
    first, last = int(positions[0]), int(positions[-1])
    filled = np.interp(np.arange(first - 1, last + 2), positions, trace.total[positions])
    for end, position in ((0, first - 1), (-1, last + 1)):
        filled[end] = trace.total[position] if 0 <= position < len(trace.total) else 0.0
    shape = (filled[:-2] + 2 * filled[1:-1] + filled[2:]) / 4
    return np.asarray(shape[positions - first])


def _pattern(peptide: str, n_isotopes: int) -> NDArray[np.float64]:
    """Return the predicted isotope abundances of a ProForma peptide.

    The elements of a modification are those in Unimod; for unknown modifications, the average composition of residues is scaled to the
    mass.
    """
    form = parse(peptide)
    elements = sequence_elements([form.sequence])[0]
    average = np.array([AVERAGINE.get(element, 0.0) for element in ELEMENTS]) / _AVERAGINE_MASS
    named = [(modification.name, modification.mass) for modification in form.modifications]
    named += [(modification.name, modification.mass) for modification in (*form.unlocalised, *form.labile)]
    for name, mass in named:
        elements = elements + (element_counts(unimod().by_name(name).composition) if name in unimod() else mass * average)
    pattern: NDArray[np.float64] = isotope_patterns(elements[None, :], n_isotopes)[0]
    return pattern
