"""Quantities by isobaric labels: reporter ions of identified spectra, and amounts of ions by sample.

The module finds the peak of each channel in each spectrum, detects a wrong kit by shifted reporter ions, finds the MS3 spectrum with the
reporter ions of an MS2 spectrum, and measures the interference by other ions in the isolation window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, ranges
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.ms1_spectra import Ms1Spectra, read_ms1_spectra
from proteoscope.engine.formats.reporter_regions import ReporterRegions, read_reporter_regions
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.quantification.amounts import MeasuredIons, RawQuantities, State, medians
from proteoscope.engine.quantification.design import Design
from proteoscope.engine.quantification.identified import Identified
from proteoscope.engine.quantification.impurities import corrected
from proteoscope.engine.quantification.ions import ion_keys
from proteoscope.engine.quantification.labels import Label, LabelName, label
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.tables import REPORTER_IONS
from proteoscope.engine.results.arrow import or_null, taken

__all__ = [
    "SEARCHED",
    "ReporterPeaks",
    "interference",
    "measure_isobaric",
    "ms3_spectra",
    "reporter_peaks",
    "reporter_shifts",
    "shift_message",
]

_USUAL_WIDTH = 2.0
"""Assumed width of isolation windows if the file does not state it, Th."""
SEARCHED = 0.012
"""Distance from the m/z of a channel within which its reporter ion is searched, Th; 13C and 15N differ by 0.0063."""
_LEAST_SHIFTED = 0.5
_SAME_ION = 0.01
"""Maximum m/z difference between the precursor of an MS2 spectrum and the same precursor in its MS3 spectrum, Th."""
_MOST_IONS = 100
"""Maximum number of precursors of an MS3 spectrum that are compared; instruments select about 20."""
_MAXIMUM_SCANS_BACK = 500
"""Number of preceding MS2 spectra that are compared; an acquisition cycle has fewer."""
_REFUSED = ("", "no reporter ion", "too much interference", "too near the noise", "no spectrum of MS3")
_NOTHING, _MIXED, _NOISY, _NO_THIRD = 1, 2, 3, 4


class ReporterPeaks(NamedTuple):
    """Peaks in n spectra and k channels: intensity, m/z and signal-to-noise ratio, each (n, k) float64.

    Values are NaN without a peak; the ratio is also NaN if the file has no noise values.
    """

    intensity: NDArray[np.float64]
    mz: NDArray[np.float64]
    signal_to_noise: NDArray[np.float64]


def reporter_peaks(
    regions: ReporterRegions,
    rows: NDArray[np.int64],
    channels: NDArray[np.float64],
    tolerance: Tolerance,
    by: Literal["most-intense", "nearest"],
) -> ReporterPeaks:
    """Return the most intense or the nearest peak of each channel within the tolerance; the first of equal peaks is used.

    Parameters
    ----------
    regions : ReporterRegions
        Peaks of all spectra in the m/z range of the reporter ions.
    rows : ndarray of int64, shape (n,)
        Indices of the spectra.
    channels : ndarray of float64, shape (k,)
        m/z of the channels, Th.
    tolerance : Tolerance
        Tolerance of m/z.
    by : {"most-intense", "nearest"}
        Selection among several peaks within the tolerance.

    Returns
    -------
    ReporterPeaks
    """
    n, k = len(rows), len(channels)
    offsets, peak = ranges(regions.offsets[rows], regions.offsets[rows + 1])
    owner = np.repeat(np.arange(n), np.diff(offsets))
    mz, intensity, ratio = regions.mz[peak], regions.intensity[peak].astype(np.float64), regions.signal_to_noise[peak]
    result = ReporterPeaks(np.full((n, k), np.nan), np.full((n, k), np.nan), np.full((n, k), np.nan))
    for channel, expected in enumerate(channels.tolist()):
        within = np.flatnonzero(np.abs(mz - expected) <= tolerance.width(expected))
        best = -intensity[within] if by == "most-intense" else np.abs(mz[within] - expected)
        within = within[np.lexsort((best, owner[within]))]
        chosen = within[is_group_start(owner[within])]
        for column, values in zip(result, (intensity, mz, ratio), strict=True):
            column[owner[chosen], channel] = values[chosen]
    return result


def reporter_shifts(regions: ReporterRegions, rows: NDArray[np.int64], kit: Label, tolerance: Tolerance) -> NDArray[np.float64]:
    """Return the difference of the most intense peak near each channel from the channel's m/z, (n, k) float64, Th; NaN without a peak.

    Peaks within the tolerance of another channel are excluded.

    Parameters
    ----------
    regions : ReporterRegions
        Peaks of all spectra in the m/z range of the reporter ions.
    rows : ndarray of int64, shape (n,)
        Indices of the spectra.
    kit : Label
        Labelling kit with the channels.
    tolerance : Tolerance
        Tolerance of m/z.
    """
    result = np.full((len(rows), len(kit)), np.nan)
    near = Tolerance(SEARCHED, "Da")
    for channel, expected in enumerate(kit.mz.tolist()):
        others = np.delete(kit.mz, channel)
        peak = reporter_peaks(regions, rows, np.array([expected]), near, "most-intense").mz[:, 0]
        is_near_other = (np.abs(peak[:, None] - others) <= tolerance.width(others)).any(axis=1)
        result[:, channel] = np.where(is_near_other, np.nan, peak - expected)
    return result


def shift_message(shifts: NDArray[np.float64], kit: Label, tolerance: Tolerance) -> str:
    """Return a sentence that names channels whose peaks are outside the tolerance in most spectra, and suggests a kit; '' without any."""
    outside = np.abs(shifts) > tolerance.width(kit.mz)
    n_peaks = (~np.isnan(shifts)).sum(axis=0)
    fraction = outside.sum(axis=0) / max(1, len(shifts))
    off = np.flatnonzero(fraction >= _LEAST_SHIFTED)
    if not len(off):
        return ""
    middle = np.array([float(np.nanmedian(shifts[:, i])) if n_peaks[i] else 0.0 for i in range(len(kit))])
    fitting = [
        name
        for name in get_args(LabelName)
        if name != kit.name
        and len(label(name)) == len(kit)
        and (np.abs(label(name).mz - kit.mz - middle)[n_peaks > 0] <= tolerance.width(kit.mz)[n_peaks > 0]).all()
    ]
    names = ", ".join(f"{kit.channels[i]} ({1000 * middle[i]:+.1f} mDa, {100 * fraction[i]:.0f} % of the spectra)" for i in off.tolist())
    remedy = (
        f"these are the m/z of the kit {fitting[0]}: quantify with --label {fitting[0]}"
        if fitting
        else ("check the label, or widen reporter_tolerance")
    )
    return f"{kit.name}: the peaks of channels {names} are outside the reporter tolerance of {tolerance}; {remedy}"


def ms3_spectra(second: ReporterRegions, third: ReporterRegions) -> NDArray[np.int64]:
    """Return the index of the first MS3 spectrum of each MS2 spectrum, or -1, (n,) int64.

    MS3 spectra are acquired by synchronous precursor selection (McAlister et al. 2014, Anal. Chem. 86:7150). The MS2 spectrum of an MS3
    spectrum is the one that the file names. If the file names none, it is the nearest earlier MS2 spectrum with a precursor that is among
    the precursors of the MS3 spectrum.
    """
    row_of = {name: row for row, name in enumerate(second.identifier)}
    position = np.searchsorted(second.index, third.index)
    result = np.full(len(second), -1, np.int64)
    for row, origin in enumerate(third.origins):
        source_row = next((row_of[name] for name in origin.names if name in row_of), -1)
        if source_row < 0 and origin.precursors:
            first, last = max(0, int(position[row]) - _MAXIMUM_SCANS_BACK), int(position[row])
            apart = np.abs(second.precursor_mz[first:last, None] - np.array(origin.precursors[:_MOST_IONS]))
            same = np.flatnonzero((apart <= _SAME_ION).any(axis=1))
            source_row = first + int(same[-1]) if len(same) else -1
        if source_row >= 0 and result[source_row] < 0:
            result[source_row] = row
    return result


def interference(
    ms1_spectra: Ms1Spectra,
    time: NDArray[np.float64],
    mz: NDArray[np.float64],
    charge: NDArray[np.int64],
    width: NDArray[np.float64],
    tolerance: Tolerance,
) -> NDArray[np.float64]:
    """Return the fraction of the ion current in each spectrum's isolation window that does not belong to its precursor.

    Peaks at the precursor m/z and at whole isotope distances from it belong to the precursor. The fraction is the mean over the MS1 spectra
    before and after, weighted by inverse time distance. If one of these is missing or has no peak in the window, the other is used. With
    FAIMS, the MS1 spectrum after must have the same voltage as the MS1 spectrum before.

    Parameters
    ----------
    ms1_spectra : Ms1Spectra
        MS1 spectra of the file.
    time : ndarray of float64, shape (n,)
        Retention time, s.
    mz : ndarray of float64, shape (n,)
        Precursor m/z, Th.
    charge : ndarray of int64, shape (n,)
        Precursor charge.
    width : ndarray of float64, shape (n,)
        Width of the isolation window, Th; NaN if the file does not state it.
    tolerance : Tolerance
        Tolerance of the m/z of the precursor's isotope peaks.

    Returns
    -------
    ndarray of float64, shape (n,)
        Fractions from 0 to 1; NaN if unknown.
    """
    next_row = np.searchsorted(ms1_spectra.retention_time, time, side="right")
    before = np.where(np.isfinite(time) & (next_row > 0), next_row - 1, -1)
    after = np.where(before >= 0, _next_of_voltage(ms1_spectra)[before], next_row)
    after = np.where(np.isfinite(time) & (after < len(ms1_spectra)), after, -1)
    half = np.where(width > 0, width, _USUAL_WIDTH) / 2
    parts = np.stack([_foreign_fractions(ms1_spectra, spectrum_row, mz, charge, half, tolerance) for spectrum_row in (before, after)])
    times = np.stack([ms1_spectra.retention_time[np.maximum(spectrum_row, 0)] for spectrum_row in (before, after)])
    apart = np.maximum(np.abs(times - time), 1e-6)
    weight = np.where(np.isnan(parts), 0.0, 1 / apart)
    total = weight.sum(axis=0)
    mean = (weight * np.nan_to_num(parts)).sum(axis=0) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, mean, np.nan)


def _next_of_voltage(ms1_spectra: Ms1Spectra) -> NDArray[np.int64]:
    """Return, for each MS1 spectrum, the index of the next with the same FAIMS voltage; without one, the number of spectra."""
    result = np.full(len(ms1_spectra), len(ms1_spectra), np.int64)
    for voltage in ms1_spectra.voltages:
        rows = np.flatnonzero(ms1_spectra.at_voltage(voltage))
        result[rows[:-1]] = rows[1:]
    return result


def _foreign_fractions(
    ms1_spectra: Ms1Spectra,
    spectrum_row: NDArray[np.int64],
    mz: NDArray[np.float64],
    charge: NDArray[np.int64],
    half: NDArray[np.float64],
    tolerance: Tolerance,
) -> NDArray[np.float64]:
    """Return the fraction of other ions in each isolation window in the MS1 spectrum `spectrum_row` (-1 for none).

    The fraction is NaN for an empty window.
    """
    n = len(mz)
    first, last = np.zeros(n, np.int64), np.zeros(n, np.int64)
    order = np.argsort(spectrum_row, kind="stable")
    numbers, starts = np.unique(spectrum_row[order], return_index=True)
    for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        if number < 0:
            continue
        begin, end = ms1_spectra.offsets[number], ms1_spectra.offsets[number + 1]
        peaks = ms1_spectra.mz[begin:end]
        first[rows] = begin + np.searchsorted(peaks, mz[rows] - half[rows])
        last[rows] = begin + np.searchsorted(peaks, mz[rows] + half[rows], side="right")
    offsets, peak = ranges(first, last)
    owner = np.repeat(np.arange(n), np.diff(offsets))
    position, intensity = np.asarray(ms1_spectra.mz[peak]), np.asarray(ms1_spectra.intensity[peak]).astype(np.float64)
    spacing = ISOTOPE_SPACING / charge[owner]
    off = position - mz[owner]
    is_own = np.abs(off - np.rint(off / spacing) * spacing) <= tolerance.width(position)
    total = np.bincount(owner, intensity, minlength=n)
    intensity_of_ion = np.bincount(owner[is_own], intensity[is_own], minlength=n)
    return np.where(total > 0, 1 - intensity_of_ion / np.where(total > 0, total, 1.0), np.nan)


@dataclass(frozen=True)
class _Reporters:
    """Reporter ions of the n identified spectra in k channels.

    Attributes
    ----------
    measured : ndarray of float64, shape (n, k)
        Measured intensities, NaN without a peak.
    mz : ndarray of float64, shape (n, k)
        Measured m/z of the reporter ions; NaN without a peak.
    signal_to_noise : ndarray of float64, shape (n, k)
        Signal-to-noise ratio of the reporter ions; NaN without a peak or if the noise is unknown.
    corrected : ndarray of float64, shape (n, k)
        Intensities after correction of impurities.
    foreign : ndarray of float64, shape (n,)
        Fraction of other ions in the isolation window; NaN if unknown.
    refused : ndarray of int8, shape (n,)
        Reason for refusing the spectrum, as an index into `_REFUSED`.
    level : ndarray of int8, shape (n,)
        MS level of the reporter ions, 2 or 3.
    shift : str
        Message about channels whose peaks are outside the tolerance, or ''.
    """

    measured: NDArray[np.float64]
    mz: NDArray[np.float64]
    signal_to_noise: NDArray[np.float64]
    corrected: NDArray[np.float64]
    foreign: NDArray[np.float64]
    refused: NDArray[np.int8]
    level: NDArray[np.int8]
    shift: str


def measure_isobaric(
    identified: Identified,
    design: Design,
    label: Label,
    impurities: NDArray[np.float64] | None,
    parameters: QuantificationParameters,
    resources: Resources,
    spool: Path | None,
) -> MeasuredIons:
    """Measure the reporter ions of all identified spectra of the design's files, corrected for impurities if they are given.

    Raises
    ------
    InputError
        If a file is damaged, or no identified spectrum has a reporter ion.
    Cancelled
        If the user cancelled.
    """
    result = _reporters(identified, design, label, parameters, resources, spool)
    if np.isnan(result.measured).all():
        raise InputError(
            identified.files[design.parts[0].file].path,
            f"no identified spectrum has a reporter ion of {label.name}",
            remedy=result.shift or "Give the label and the tolerance of the run, or use method label-free",
        )
    if result.shift:
        resources.progress.message(result.shift, "warning")
    if impurities is not None:
        result = replace(result, corrected=corrected(result.measured, impurities))
    form, ions = _amounts_by_ion(identified, design, result, parameters)
    is_measured = result.refused == 0
    counts = {
        "reporter_spectra": int(is_measured.sum()),
        "ms3_spectra": int((is_measured & (result.level == 3)).sum()),
        "refused": int((~is_measured).sum()),
    }
    return MeasuredIons(ions, form, {REPORTER_IONS.name: _table(identified, design, label, result)}, counts)


def _reporters(
    identified: Identified, design: Design, label: Label, parameters: QuantificationParameters, resources: Resources, spool: Path | None
) -> _Reporters:
    matches, n, k = identified.matches, len(identified.matches), len(label)
    peaks, foreign = ReporterPeaks(*(np.full((n, k), np.nan) for _ in ReporterPeaks._fields)), np.full(n, np.nan)
    lacks_third, margin = np.zeros(n, np.bool_), max(SEARCHED, float(parameters.reporter_tolerance.width(label.mz).max()))
    level, shifts = np.full(n, 2, np.int8), np.full((n, k), np.nan)
    n_profiles, without = 0, 0
    for file in sorted({part.file for part in design.parts}):
        path = identified.files[file].path
        rows = matches.rows_of_file(file)
        regions = read_reporter_regions(path, label.mz.min() - margin, label.mz.max() + margin, resources.progress)
        n_profiles += regions.n_profiles
        position = np.minimum(np.searchsorted(regions.index, matches.index[rows]), len(regions) - 1)
        if (regions.index[position] != matches.index[rows]).any():
            raise InputError(path, "lacks spectra that were identified", remedy="Identify it again")
        shown, at, level[rows] = _find_reporter_spectra(path, regions, position, label, margin, parameters, resources)
        n_profiles += shown.n_profiles if shown is not regions else 0
        has = np.flatnonzero(at >= 0)
        of_file = reporter_peaks(shown, at[has], label.mz, parameters.reporter_tolerance, parameters.reporter_peak)
        lacks_third[rows[at < 0]] = True
        shifts[rows[has]] = reporter_shifts(shown, at[has], label, parameters.reporter_tolerance)
        for column, values in zip(peaks, of_file, strict=True):
            column[rows[has]] = values
        try:
            ms1_spectra = read_ms1_spectra(path, progress=resources.progress, spool=spool)
        except InputError:
            without += 1
            continue
        foreign[rows] = interference(
            ms1_spectra,
            regions.retention_time[position],
            regions.precursor_mz[position],
            matches.charge[rows],
            regions.isolation_width[position],
            parameters.precursor_tolerance,
        )
    shift = shift_message(shifts[~lacks_third], label, parameters.reporter_tolerance)
    if n_profiles:
        resources.progress.message(f"{n_profiles:,} fragment spectra in profile mode were centroided")
    if without:
        resources.progress.message(f"{without:,} files have no MS1 spectra: the interference of their spectra is unknown")
    refused = np.zeros(n, np.int8)
    refused[_mean_signal_to_noise(peaks) < parameters.minimum_signal_to_noise] = _NOISY
    refused[foreign > parameters.maximum_interference] = _MIXED
    refused[np.isnan(peaks.intensity).all(axis=1)] = _NOTHING
    refused[lacks_third] = _NO_THIRD
    if parameters.minimum_signal_to_noise and np.isnan(peaks.signal_to_noise).all():
        resources.progress.message(
            "The files contain no noise values, so that no spectrum was refused by its signal-to-noise ratio: convert the runs with noise,"
            " or set the ratio to 0",
            "warning",
        )
    return _Reporters(peaks.intensity, peaks.mz, peaks.signal_to_noise, peaks.intensity, foreign, refused, level, shift)


def _find_reporter_spectra(
    path: str,
    regions: ReporterRegions,
    position: NDArray[np.int64],
    label: Label,
    margin: float,
    parameters: QuantificationParameters,
    resources: Resources,
) -> tuple[ReporterRegions, NDArray[np.int64], int]:
    """Return the spectra with reporter ions, the index among them for each MS2 spectrum (-1 for none), and their MS level."""
    wanted, name = parameters.reporter_level, PurePath(path).name
    if wanted == "ms2" or (wanted == "automatic" and not regions.n_deeper):
        return regions, position, 2
    third = read_reporter_regions(path, label.mz.min() - margin, label.mz.max() + margin, resources.progress, level=3)
    at = ms3_spectra(regions, third)[position]
    n_found = int((at >= 0).sum())
    if not n_found and wanted == "automatic":
        resources.progress.message(f"{name}: no MS3 spectrum belongs to an identified spectrum, so that reporter ions are read from MS2")
        return regions, position, 2
    if not n_found:
        raise InputError(path, "contains no MS3 spectrum of an identified spectrum", remedy="Use the reporter ions of ms2")
    resources.progress.message(f"{name}: reporter ions are read from MS3, which {n_found:,} of {len(at):,} identified spectra have")
    return third, at, 3


def _mean_signal_to_noise(peaks: ReporterPeaks) -> NDArray[np.float64]:
    """Return the mean signal-to-noise ratio over the channels, (n,), counting missing peaks as 0; NaN if the noise is unknown."""
    has_noise = ~np.isnan(peaks.signal_to_noise).all(axis=1)
    return np.where(has_noise, np.nansum(peaks.signal_to_noise, axis=1) / peaks.signal_to_noise.shape[1], np.nan)


def _amounts_by_ion(
    identified: Identified, design: Design, reporters: _Reporters, parameters: QuantificationParameters
) -> tuple[NDArray[np.int64], RawQuantities]:
    """Return the peptidoform of each ion, and the amounts of ions by sample.

    An amount is the sum or median over the ion's spectra in the files of the sample, in the channel of the sample.
    """
    matches, n_samples = identified.matches, len(design.samples)
    keys, of_match = ion_keys(matches)
    value = np.full((len(keys), n_samples), np.nan)
    state = np.full((len(keys), n_samples), State.NOT_SEEN, np.int8)
    files: list[list[int]] = [[] for _ in design.samples]
    channel = np.zeros(n_samples, np.int64)
    for part in design.parts:
        files[part.sample].append(part.file)
        channel[part.sample] = part.channel
    for sample in range(n_samples):
        rows = np.unique(np.concatenate([matches.rows_of_file(file) for file in files[sample]]))
        intensities = reporters.corrected[rows, channel[sample]]
        of_spectrum = np.where(np.isnan(intensities), State.TOO_LOW, State.MEASURED)
        of_spectrum[reporters.refused[rows] > _NOTHING] = State.REFUSED
        amounts = RawQuantities(np.where(reporters.refused[rows] == 0, intensities, np.nan)[:, None], of_spectrum.astype(np.int8)[:, None])
        summed = amounts.summed(of_match[rows], len(keys))
        by_median = parameters.peptide_quantity == "median"
        value[:, sample] = (medians(amounts.value, of_match[rows], len(keys)) if by_median else summed.value)[:, 0]
        state[:, sample] = summed.state[:, 0]
    return keys[:, 0], RawQuantities(value, state)


def _table(identified: Identified, design: Design, label: Label, reporters: _Reporters) -> pa.Table:
    """Return the table of reporter ions: one row per identified spectrum and channel with a sample."""
    matches, k = identified.matches, len(label)
    sample = np.full((len(identified.files), k), -1, np.int64)
    for part in design.parts:
        sample[part.file, part.channel] = part.sample
    spectrum, channel = np.nonzero(sample[matches.file] >= 0)
    refused = reporters.refused[spectrum].astype(np.int64)
    return REPORTER_IONS.arrow(
        {
            "peptide": taken(identified.forms.peptide, matches.form[spectrum]),
            "charge": matches.charge[spectrum],
            "file": taken([PurePath(file.path).name for file in identified.files], matches.file[spectrum]),
            "spectrum_id": taken(matches.spectrum_id, spectrum),
            "level": reporters.level[spectrum].astype(np.int64),
            "channel": taken(label.channels, channel),
            "sample": taken([sample.name for sample in design.samples], sample[matches.file[spectrum], channel]),
            "measured": or_null(reporters.measured[spectrum, channel]),
            "intensity": or_null(reporters.corrected[spectrum, channel]),
            "signal_to_noise": or_null(reporters.signal_to_noise[spectrum, channel]),
            "mz_error": or_null(reporters.mz[spectrum, channel] - label.mz[channel]),
            "interference": or_null(reporters.foreign[spectrum]),
            "refused": taken(_REFUSED, np.where(refused == 0, -1, refused)),
        }
    )
