"""Quantities by isobaric labels: reporter ions of identified spectra, and amounts of ions by sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.reporter_regions import ReporterRegions, read_reporter_regions
from proteoscope.engine.formats.surveys import read_surveys
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.quantification.amounts import Amounts, Measured, State, medians
from proteoscope.engine.quantification.design import Design
from proteoscope.engine.quantification.identified import Identified
from proteoscope.engine.quantification.impurities import corrected
from proteoscope.engine.quantification.ions import ion_keys
from proteoscope.engine.quantification.labels import Label
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.reporter_ions import (
    SEARCHED,
    ReporterPeaks,
    interference,
    ms3_spectra,
    reporter_peaks,
    reporter_shifts,
    shift_message,
)
from proteoscope.engine.quantification.tables import REPORTER_IONS
from proteoscope.engine.results.arrow import or_null, taken

__all__ = ["measured_isobaric"]

_REFUSED = ("", "no reporter ion", "too much interference", "too near the noise", "no spectrum of MS3")
_NOTHING, _MIXED, _NOISY, _NO_THIRD = 1, 2, 3, 4


@dataclass(frozen=True)
class _Reporters:
    """Of the n identified spectra and k channels.

    Attributes
    ----------
    measured, mz, signal_to_noise, corrected : (n, k) float64, NaN where there is no peak; the ratio also where the noise is unknown.
    foreign : (n,) float64, NaN unknown. refused, level : (n,) int8, the latter 2 or 3, of the spectrum that they were read from.
    shift : names the channels whose peaks lie outside the tolerance, '' without any.
    """

    measured: NDArray[np.float64]
    mz: NDArray[np.float64]
    signal_to_noise: NDArray[np.float64]
    corrected: NDArray[np.float64]
    foreign: NDArray[np.float64]
    refused: NDArray[np.int8]
    level: NDArray[np.int8]
    shift: str


def measured_isobaric(
    identified: Identified,
    design: Design,
    label: Label,
    impurities: NDArray[np.float64] | None,
    parameters: QuantificationParameters,
    resources: Resources,
    spool: Path | None,
) -> Measured:
    """Reporter ions of all identified spectra of the files of the design, impurities taken out where a table of them is given.

    Raises
    ------
    InputError : a file is damaged, or holds no reporter ion in any identified spectrum. Cancelled : the user asked to stop.
    """
    found = _reporters(identified, design, label, parameters, resources, spool)
    if np.isnan(found.measured).all():
        raise InputError(
            identified.files[design.parts[0].file].path,
            f"no identified spectrum has a reporter ion of {label.name}",
            remedy=found.shift or "Name the label and the tolerance of the run, or take method label-free",
        )
    if found.shift:
        resources.progress.message(found.shift, "warning")
    if impurities is not None:
        found = replace(found, corrected=corrected(found.measured, impurities))
    form, ions = _by_ion(identified, design, found, parameters)
    is_measured = found.refused == 0
    counts = {
        "reporter_spectra": int(is_measured.sum()),
        "ms3_spectra": int((is_measured & (found.level == 3)).sum()),
        "refused": int((~is_measured).sum()),
    }
    return Measured(ions, form, {REPORTER_IONS.name: _table(identified, design, label, found)}, counts)


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
        rows = np.flatnonzero(matches.file == file)
        regions = read_reporter_regions(path, label.mz.min() - margin, label.mz.max() + margin, resources.progress)
        n_profiles += regions.n_profiles
        place = np.minimum(np.searchsorted(regions.index, matches.index[rows]), len(regions) - 1)
        if (regions.index[place] != matches.index[rows]).any():
            raise InputError(path, "lacks spectra that were identified", remedy="Identify it again")
        shown, at, level[rows] = _shown_in(path, regions, place, label, margin, parameters, resources)
        n_profiles += shown.n_profiles if shown is not regions else 0
        has = np.flatnonzero(at >= 0)
        of_file = reporter_peaks(shown, at[has], label.mz, parameters.reporter_tolerance, parameters.reporter_peak)
        lacks_third[rows[at < 0]] = True
        shifts[rows[has]] = reporter_shifts(shown, at[has], label, parameters.reporter_tolerance)
        for column, values in zip(peaks, of_file, strict=True):
            column[rows[has]] = values
        try:
            surveys = read_surveys(path, progress=resources.progress, spool=spool)
        except InputError:
            without += 1
            continue
        foreign[rows] = interference(
            surveys,
            regions.retention_time[place],
            regions.precursor_mz[place],
            matches.charge[rows],
            regions.isolation_width[place],
            parameters.precursor_tolerance,
        )
    shift = shift_message(shifts[~lacks_third], label, parameters.reporter_tolerance)
    if n_profiles:
        resources.progress.message(f"{n_profiles:,} fragment spectra in profile mode were centroided")
    if without:
        resources.progress.message(f"{without:,} files have no survey spectra (MS1): the interference of their spectra is not known")
    refused = np.zeros(n, np.int8)
    refused[_mean_signal_to_noise(peaks) < parameters.minimum_signal_to_noise] = _NOISY
    refused[foreign > parameters.maximum_interference] = _MIXED
    refused[np.isnan(peaks.intensity).all(axis=1)] = _NOTHING
    refused[lacks_third] = _NO_THIRD
    if parameters.minimum_signal_to_noise and np.isnan(peaks.signal_to_noise).all():
        resources.progress.message(
            "The files tell no noise, so that none could be refused by its signal-to-noise ratio: convert the runs with it, or take 0",
            "warning",
        )
    return _Reporters(peaks.intensity, peaks.mz, peaks.signal_to_noise, peaks.intensity, foreign, refused, level, shift)


def _shown_in(
    path: str,
    regions: ReporterRegions,
    place: NDArray[np.int64],
    label: Label,
    margin: float,
    parameters: QuantificationParameters,
    resources: Resources,
) -> tuple[ReporterRegions, NDArray[np.int64], int]:
    """Return the spectra that show the reporter ions of some of MS2, the row of each there, -1 for none, and their level of MS."""
    wanted, name = parameters.reporter_level, PurePath(path).name
    if wanted == "ms2" or (wanted == "automatic" and not regions.n_deeper):
        return regions, place, 2
    third = read_reporter_regions(path, label.mz.min() - margin, label.mz.max() + margin, resources.progress, level=3)
    at = ms3_spectra(regions, third)[place]
    n_found = int((at >= 0).sum())
    if not n_found and wanted == "automatic":
        resources.progress.message(f"{name}: no spectrum of MS3 is of an identified one, so that reporter ions are read from MS2")
        return regions, place, 2
    if not n_found:
        raise InputError(path, "has no spectrum of MS3 that tells an identified one as its source", remedy="Take reporter ions of ms2")
    resources.progress.message(f"{name}: reporter ions are read from MS3, which {n_found:,} of {len(at):,} identified spectra have")
    return third, at, 3


def _mean_signal_to_noise(peaks: ReporterPeaks) -> NDArray[np.float64]:
    """Of each spectrum over its channels, (n,), one without a peak counting as 0; NaN where the noise is not known."""
    known = ~np.isnan(peaks.signal_to_noise).all(axis=1)
    return np.where(known, np.nansum(peaks.signal_to_noise, axis=1) / peaks.signal_to_noise.shape[1], np.nan)


def _by_ion(
    identified: Identified, design: Design, found: _Reporters, parameters: QuantificationParameters
) -> tuple[NDArray[np.int64], Amounts]:
    """Return the peptidoform of each ion, and amounts of ions by sample: sum or median of their spectra in the files of the sample, in its
    channel.
    """
    matches, n_samples = identified.matches, len(design.samples)
    keys, of_match = ion_keys(matches)
    value = np.full((len(keys), n_samples), np.nan)
    state = np.full((len(keys), n_samples), State.NOT_SEEN, np.int8)
    files = [np.zeros(len(identified.files), np.bool_) for _ in design.samples]
    channel = np.zeros(n_samples, np.int64)
    for part in design.parts:
        files[part.sample][part.file] = True
        channel[part.sample] = part.channel
    for sample in range(n_samples):
        rows = np.flatnonzero(files[sample][matches.file])
        own = found.corrected[rows, channel[sample]]
        of_spectrum = np.where(np.isnan(own), State.TOO_LOW, State.MEASURED)
        of_spectrum[found.refused[rows] > _NOTHING] = State.REFUSED
        amounts = Amounts(np.where(found.refused[rows] == 0, own, np.nan)[:, None], of_spectrum.astype(np.int8)[:, None])
        summed = amounts.summed(of_match[rows], len(keys))
        by_median = parameters.peptide_quantity == "median"
        value[:, sample] = (medians(amounts.value, of_match[rows], len(keys)) if by_median else summed.value)[:, 0]
        state[:, sample] = summed.state[:, 0]
    return keys[:, 0], Amounts(value, state)


def _table(identified: Identified, design: Design, label: Label, found: _Reporters) -> pa.Table:
    """Return a row for each identified spectrum and each channel that is a sample."""
    matches, k = identified.matches, len(label)
    sample = np.full((len(identified.files), k), -1, np.int64)
    for part in design.parts:
        sample[part.file, part.channel] = part.sample
    spectrum, channel = np.nonzero(sample[matches.file] >= 0)
    refused = found.refused[spectrum].astype(np.int64)
    return REPORTER_IONS.arrow(
        {
            "peptide": taken(identified.forms.peptide, matches.form[spectrum]),
            "charge": matches.charge[spectrum],
            "file": taken([PurePath(one.path).name for one in identified.files], matches.file[spectrum]),
            "spectrum_id": taken(matches.spectrum_id, spectrum),
            "level": found.level[spectrum].astype(np.int64),
            "channel": taken(label.channels, channel),
            "sample": taken([one.name for one in design.samples], sample[matches.file[spectrum], channel]),
            "measured": or_null(found.measured[spectrum, channel]),
            "intensity": or_null(found.corrected[spectrum, channel]),
            "signal_to_noise": or_null(found.signal_to_noise[spectrum, channel]),
            "mz_error": or_null(found.mz[spectrum, channel] - label.mz[channel]),
            "interference": or_null(found.foreign[spectrum]),
            "refused": taken(_REFUSED, np.where(refused == 0, -1, refused)),
        }
    )
