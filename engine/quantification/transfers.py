"""Match between runs: ions identified in some files are measured in others at their aligned times.

The transferred ions (donors) belong to peptides accepted over the whole experiment, with an accepted protein. The rate of false transfers
is estimated by the competition of PIP-ECHO (Solivais et al. 2025, J. Proteome Res. 24:4437). In each file, each ion is measured at its
expected time and at a random time (the time of another ion of similar mass), and only the better measurement takes part. Donors are the
peptides and also the decoy peptides of the search. Among the measurements down to a score, peptides at random times estimate the number of
ions that are not in the file but have a signal at their m/z by chance. Decoy peptides at their expected times, minus those at random times,
estimate the number of wrong identifications: their ions are found in other files as often as those of correct identifications. One is added
to the sum of both numbers, and the result is divided by the number of peptides at their expected times. (The authors' program divides by
the number of all measurements, which gives a lower rate.)

Transfers are ranked by the differences from the expected time, m/z and area, and by the agreement of the isotope pattern with the formula.
A trace that belongs to an identified ion of the file, or to a transfer with a better score, is not used. Ions are compared with the
consensus of all files, so that work grows with the number of files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.ms1_spectra import Ms1Spectra
from proteoscope.engine.quantification.amounts import group_medians
from proteoscope.engine.quantification.features import Features, FeatureWriter
from proteoscope.engine.quantification.ion_traces import TraceQuery, is_low, mass_errors, measured_traces
from proteoscope.engine.quantification.ions import Ions, traces_of_others
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.retention_times import Alignment, aligned
from proteoscope.kernels.cpu.elution import AGREEMENT, AREA, N_VALUES, POINTS, TIME, WIDTH

__all__ = ["Donors", "Transfers", "random_times", "transfer_q_values", "transferred"]

_REACH = 5.0  # search range, in standard deviations of the expected time
_SMALLEST_STEP, _LARGEST_STEP = 5.0, 11.0
"""Minimum and maximum mass difference (Da) to the ion that provides the random time.

The minimum excludes isotopes of the ion. Ions of similar mass have similar times.
"""
_DRAWS = 30
_WIDTHS = 2.0
"""Number of median peak widths that are added to twice the search range: the minimum distance of a random time from the expected time."""
_LEAST_AREA_SPREAD = 0.1  # minimum standard deviation of ln(area)
_AREA_TAIL, _MASS_TAIL = 3.0, 8.0
"""Degrees of freedom of two distributions: of areas, which change between samples, and of mass errors, which grow in overlapping peaks."""
_LEAST_MASS_SPREAD = 2e-7
_DISAGREEMENT = 0.01  # scale of 1 - cosine
_ROUNDS, _MAD = 3, 1.4826


class Donors(NamedTuple):
    """Ions of peptides or of decoy peptides with their traces in the files that identified them.

    Attributes
    ----------
    ions : Ions
        The n ions.
    sequence : ndarray of int64, shape (n,)
        Index of each ion's sequence.
    features : Features
        Traces of the ions.
    """

    ions: Ions
    sequence: NDArray[np.int64]
    features: Features


@dataclass(frozen=True)
class Transfers:
    """Transfers of ions to files that did not identify them.

    Attributes
    ----------
    features : Features
        Traces (t) of the transfers; traces of rejected transfers are not used (index `n_ions`).
    q_value : ndarray of float64, shape (t,)
        q-value of each transfer.
    counts : dict of str to int
        Counts for the record of the run: accepted transfers, and random times and decoy peptides that score at least as high.
    """

    features: Features
    q_value: NDArray[np.float64]
    counts: dict[str, int]


class _Expected(NamedTuple):
    """Expected values of n ions: ions of peptides, followed by ions of decoy peptides.

    Attributes
    ----------
    ions : Ions
        The ions.
    sequence : ndarray of int64, shape (n,)
        Index of each ion's sequence.
    is_donor : ndarray of bool, shape (n,)
        True for ions that may be transferred.
    time : ndarray of float64, shape (n,)
        Consensus time, s.
    n_files : ndarray of int64, shape (n,)
        Number of files with a time.
    log_area : ndarray of float64, shape (n,)
        Consensus of ln(area).
    shift : ndarray of float64, shape (files,)
        Difference of ln(area) of each file from the consensus.
    area_spread : float
        Standard deviation of ln(area) in a file.
    alignments : list of (Alignment or None)
        Alignment of each file to the consensus times.
    """

    ions: Ions
    sequence: NDArray[np.int64]
    is_donor: NDArray[np.bool_]
    time: NDArray[np.float64]
    n_files: NDArray[np.int64]
    log_area: NDArray[np.float64]
    shift: NDArray[np.float64]
    area_spread: float
    alignments: list[Alignment | None]


def transferred(
    donors: Sequence[Donors],
    files: list[int],
    read_file: Callable[[int], Ms1Spectra],
    parameters: QuantificationParameters,
    resources: Resources,
    spool: Path | None,
) -> Transfers:
    """Measure ions in files that did not identify them, up to an estimated rate of false transfers.

    Parameters
    ----------
    donors : sequence of Donors
        Ions of peptides, and possibly ions of decoy peptides.
    files : list of int
        Indices of the files.
    read_file : callable
        Function that returns the MS1 spectra of a file.
    parameters : QuantificationParameters
        Parameters of the quantification.
    resources : Resources
        Devices, threads and progress of the run.
    spool : Path or None
        Folder of temporary files.

    Returns
    -------
    Transfers
    """
    expected, n_targets = _expected(donors), len(donors[0].ions)
    resources.progress.message(
        f"{int(expected.is_donor[:n_targets].sum()):,} of {int((expected.n_files[:n_targets] > 0).sum()):,} measured ions are searched in"
        " other files: those of accepted proteins whose peptides have a q-value of at most"
        f" {parameters.donor_fdr:.3g} over all files together"
    )
    writer, parts, n_tried, n_without = FeatureWriter(spool), list[_Competition](), 0, 0
    for position, file in enumerate(files):
        alignment = expected.alignments[position]
        if alignment is None:
            resources.progress.message(
                f"Nothing is transferred to file {position + 1} of {len(files)}: it has too few ions in common with the others", "warning"
            )
            continue
        result = _compete(donors, expected, (position, alignment), read_file(file), parameters, resources)
        n_tried, n_without = n_tried + result.n_tried, n_without + result.n_without
        parts.append(result)
        n = len(result.ion)
        writer.append(position, 0, result.ion, result.values, np.zeros(n, np.int8), np.zeros(n))
        result.values = np.zeros((0, N_VALUES))
    if n_without:
        resources.progress.message(
            f"{n_without:,} ions were not searched for in a file: no other ion elutes far enough away for a comparison"
        )
    features = writer.finish(np.arange(n_targets)[:, None], n_targets, len(files))
    return _accepted(features, parts, n_tried, parameters, resources)


def _expected(donors: Sequence[Donors]) -> _Expected:
    """Return the expected times and areas of all ions. Files are aligned and scaled with ions of peptides, not of decoy peptides."""
    starts = np.cumsum([0, *(len(part.ions) for part in donors)])
    has = [np.flatnonzero((part.features.reason == 0) & (part.features.ion < part.features.n_ions)) for part in donors]
    ion = np.concatenate([start + part.features.ion[rows] for part, rows, start in zip(donors, has, starts[:-1], strict=True)])
    file = np.concatenate([part.features.file[rows] for part, rows in zip(donors, has, strict=True)])
    time, area = (np.concatenate([part.features.values[rows, k] for part, rows in zip(donors, has, strict=True)]) for k in (TIME, AREA))
    n, n_files, of_target = int(starts[-1]), donors[0].features.n_files, slice(len(has[0]))
    alignments = aligned(ion[of_target], file[of_target], time[of_target], len(donors[0].ions), n_files).of_file
    common = np.full(len(time), np.nan)
    for position, alignment in enumerate(alignments):
        if alignment is not None:
            rows = np.flatnonzero(file == position)
            common[rows] = alignment.to_reference(time[rows])
    logs, shift = np.log(area), np.zeros(n_files)
    for _ in range(_ROUNDS):
        centre = group_medians(logs - shift[file], ion, n)
        shared = np.flatnonzero(np.bincount(ion, minlength=n)[ion] > 1)
        shared = shared[ion[shared] < len(donors[0].ions)]
        shift = np.nan_to_num(group_medians((logs - centre[ion])[shared], file[shared], n_files))
    count = np.bincount(ion, minlength=n)[ion[shared]]
    apart = np.abs(logs - shift[file] - centre[ion])[shared] * np.sqrt(count / (count - 1))
    spread = max(_LEAST_AREA_SPREAD, _MAD * float(np.median(apart))) if len(shared) else 1.0
    times = group_medians(common, ion, n)
    ions = _concatenated([part.ions for part in donors])
    return _Expected(
        ions,
        np.concatenate([part.sequence for part in donors]),
        ions.is_donor & ~np.isnan(times),
        times,
        np.bincount(ion[~np.isnan(common)], minlength=n),
        group_medians(logs - shift[file], ion, n),
        shift,
        spread,
        alignments,
    )


def _concatenated(parts: Sequence[Ions]) -> Ions:
    names = ("form", "charge", "mz", "isotopes", "is_donor", "voltage")
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Ions(**columns, n_isotopes=parts[0].n_isotopes, of_match=np.zeros(0, np.int64))


@dataclass
class _Competition:
    """Results of the competition in a file.

    Attributes
    ----------
    ion : ndarray of int64, shape (t,)
        Ions of peptides that are better at their expected times.
    values : ndarray of float64, shape (t, N_VALUES)
        Measured traces of the ions `ion`.
    score : ndarray of float64, shape (k,)
        Scores of all k ions with a trace, those of `ion` first.
    is_random, is_decoy : ndarray of bool, shape (k,)
        True for ions that are better at a random time, and for ions of decoy peptides.
    n_tried, n_without : int
        Number of peptide ions that were searched, and number of ions without a random time.
    """

    ion: NDArray[np.int64]
    values: NDArray[np.float64]
    score: NDArray[np.float64]
    is_random: NDArray[np.bool_]
    is_decoy: NDArray[np.bool_]
    n_tried: int
    n_without: int


def _compete(
    donors: Sequence[Donors],
    expected: _Expected,
    at: tuple[int, Alignment],
    ms1_spectra: Ms1Spectra,
    parameters: QuantificationParameters,
    resources: Resources,
) -> _Competition:
    """Measure all ions that were not identified in a file, at expected times and at random times; return the results.

    `at` is the index of the file and its alignment.
    """
    (position, alignment), n_targets = at, len(donors[0].ions)
    is_tried = expected.is_donor.copy()
    for start, part in zip((0, n_targets), donors, strict=False):
        is_tried[start + part.features.ion[part.features.rows_of_file(position)]] = False
    features = donors[0].features
    identified = features.rows_of_file(position)
    identified = identified[features.reason[identified] == 0]
    of_identified = features.ion[identified], np.array(features.values[identified]), features.distance[identified]
    rows = np.flatnonzero(is_tried)
    time = alignment.from_reference(expected.time[rows])
    error = alignment.spread * np.sqrt(1 + 1 / expected.n_files[rows])
    apart = 2 * _REACH * error + _WIDTHS * (float(np.median(of_identified[1][:, WIDTH])) if len(identified) else 0.0)
    every = np.flatnonzero(expected.is_donor)
    other = random_times(
        np.random.default_rng(position),
        (time, _masses(expected.ions, rows), apart),
        alignment.from_reference(expected.time[every]),
        _masses(expected.ions, every),
    )
    has_other = ~np.isnan(other)
    rows, time, other, error, n_without = rows[has_other], time[has_other], other[has_other], error[has_other], int((~has_other).sum())
    area = expected.log_area[rows] + expected.shift[position]
    of_identifications = _mass_errors(ms1_spectra, expected.ions, *of_identified[:2], parameters)
    of_identifications = of_identifications[~np.isnan(of_identifications)]
    centre = float(np.median(of_identifications)) if len(of_identifications) else 0.0
    spread = max(_LEAST_MASS_SPREAD, _MAD * float(np.median(np.abs(of_identifications - centre)))) if len(of_identifications) else 1.0
    values, scores = list[NDArray[np.float64]](), list[NDArray[np.float64]]()
    for times in (time, other):
        traces = _traced(ms1_spectra, expected.ions, rows, times, _REACH * error, parameters, resources)
        low = is_low(traces, expected.ions.pattern[rows], ms1_spectra)
        mass_error = _mass_errors(ms1_spectra, expected.ions, rows, traces, parameters)
        score = _scores(traces, low, (times, error), (area, expected.area_spread), (mass_error - centre) / spread, parameters)
        score[_are_taken(expected, rows, traces, score, of_identified, parameters)] = -np.inf
        values.append(traces)
        scores.append(score)
    is_random, score = scores[1] >= scores[0], np.maximum(*scores)
    is_decoy = rows >= n_targets
    moved = np.flatnonzero(~is_random & ~is_decoy)
    rest = np.flatnonzero(np.isfinite(score) & (is_random | is_decoy))
    order = np.concatenate([moved, rest])
    n_tried = int((~is_decoy).sum())
    return _Competition(rows[moved], values[0][moved], score[order], is_random[order], is_decoy[order], n_tried, n_without)


def _masses(ions: Ions, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return approximate neutral masses (1 Da is subtracted per proton), Da."""
    return ions.mz[rows] * ions.charge[rows] - ions.charge[rows]


def random_times(
    rng: np.random.Generator,
    ions: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    times: NDArray[np.float64],
    mass: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return a random time for each of n ions: the time of another ion; NaN if none is far enough.

    Parameters
    ----------
    rng : Generator
        Source of random numbers.
    ions : tuple of ndarray of float64, shape (n,)
        Expected time (s), mass (Da) and minimum distance of the random time (s) of each ion.
    times, mass : ndarray of float64, shape (m,)
        Times and masses of the other ions. Ions of similar mass are preferred.
    """
    expected, of_ion, apart = ions
    order = np.argsort(mass, kind="stable")
    times, mass = times[order], mass[order]
    low, high, from_above, end = (
        np.searchsorted(mass, of_ion + step) for step in (-_LARGEST_STEP, -_SMALLEST_STEP, _SMALLEST_STEP, _LARGEST_STEP)
    )
    n_lighter, n_similar = high - low, high - low + end - from_above
    result = np.full(len(expected), np.nan)
    for draw in range(2 * _DRAWS if len(times) else 0):
        is_any = draw >= _DRAWS
        pick = (rng.random(len(expected)) * (len(times) if is_any else n_similar)).astype(np.int64)
        which = pick if is_any else np.where(pick < n_lighter, low + pick, from_above + pick - n_lighter) % len(times)
        is_chosen = np.isnan(result) & (np.abs(times[which] - expected) >= apart) & (is_any | (n_similar > 0))
        result[is_chosen] = times[which[is_chosen]]
    return result


def _traced(
    ms1_spectra: Ms1Spectra,
    ions: Ions,
    rows: NDArray[np.int64],
    time: NDArray[np.float64],
    reach: NDArray[np.float64],
    parameters: QuantificationParameters,
    resources: Resources,
) -> NDArray[np.float64]:
    """Return the traces of the ions `rows` near the times `time`, (k, N_VALUES)."""
    result = np.zeros((len(rows), N_VALUES))
    for voltage in ms1_spectra.voltages:
        is_at = _is_at(ions, rows, voltage)
        if not is_at.any():
            continue
        some = rows[is_at]
        query = TraceQuery(
            ions.mz[some],
            ions.charge[some],
            ions.pattern[some],
            np.arange(len(some) + 1),
            time[is_at],
            reach[is_at],
            float(reach.max()) + parameters.retention_window / 2,
            voltage,
        )
        result[is_at] = measured_traces(ms1_spectra, query, parameters, resources)
    return result


def _mass_errors(
    ms1_spectra: Ms1Spectra, ions: Ions, rows: NDArray[np.integer], values: NDArray[np.float64], parameters: QuantificationParameters
) -> NDArray[np.float64]:
    """Return the relative m/z errors of the traces of the ions `rows`, (k,)."""
    result = np.full(len(rows), np.nan)
    for voltage in ms1_spectra.voltages:
        some = np.flatnonzero(_is_at(ions, rows, voltage))
        at = rows[some]
        result[some] = mass_errors(ms1_spectra, ions.mz[at], ions.charge[at], ions.pattern[at], values[some], voltage, parameters)
    return result


def _is_at(ions: Ions, rows: NDArray[np.integer], voltage: float) -> NDArray[np.bool_]:
    is_at: NDArray[np.bool_] = (ions.voltage[rows] == voltage) | (np.isnan(ions.voltage[rows]) & np.isnan(voltage))
    return is_at


def _scores(
    values: NDArray[np.float64],
    low: NDArray[np.bool_],
    times: tuple[NDArray[np.float64], NDArray[np.float64]],
    areas: tuple[NDArray[np.float64], float],
    mass_error: NDArray[np.float64],
    parameters: QuantificationParameters,
) -> NDArray[np.float64]:
    """Return scores of how well traces agree with the expected time, area and mass; higher is better, -inf means no trace.

    `times` are expected times with their standard deviations (s), `areas` are expected ln(area) with its standard deviation, and
    `mass_error` are mass errors in units of their standard deviation.
    """
    is_there = (values[:, POINTS] >= parameters.minimum_points) & (values[:, AGREEMENT] >= parameters.minimum_agreement) & ~low
    result = np.full(len(values), -np.inf)
    some, (time, error), (area, spread) = values[is_there], times, areas
    result[is_there] = (
        -0.5 * ((some[:, TIME] - time[is_there]) / error[is_there]) ** 2
        - 0.5 * (_AREA_TAIL + 1) * np.log1p(((np.log(some[:, AREA]) - area[is_there]) / spread) ** 2 / _AREA_TAIL)
        - 0.5 * (_MASS_TAIL + 1) * np.log1p(mass_error[is_there] ** 2 / _MASS_TAIL)
        - (1 - some[:, AGREEMENT]) / _DISAGREEMENT
        + np.log(some[:, POINTS])
    )
    return result


def _are_taken(
    expected: _Expected,
    rows: NDArray[np.int64],
    values: NDArray[np.float64],
    score: NDArray[np.float64],
    identified: tuple[NDArray[np.integer], NDArray[np.float64], NDArray[np.float64]],
    parameters: QuantificationParameters,
) -> NDArray[np.bool_]:
    """Return True for traces that belong to an identified ion or to another transfer with a better score.

    `identified` are the ions of the file with their traces and the distances from their spectra.
    """
    result = np.zeros(len(rows), np.bool_)
    some = np.flatnonzero(np.isfinite(score))
    ion, traces, distance = identified
    ions = np.concatenate([ion, rows[some]]).astype(np.int64)
    # The ion with the lowest rank gets the trace: identified ions by ascending distance, followed by transfers by descending score.
    rank = np.concatenate([distance, distance.max(initial=0.0) + 1 + score.max(initial=0.0, where=np.isfinite(score)) - score[some]])
    of_others = traces_of_others(
        expected.ions.part(ions), expected.sequence[ions], np.concatenate([traces, values[some]]), rank, parameters
    )
    result[some] = of_others[len(ion) :]
    return result


def transfer_q_values(score: NDArray[np.float64], is_random: NDArray[np.bool_], is_decoy: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the minimum rate of false transfers at which each transfer is accepted.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Scores, higher is better. Equal scores are accepted together.
    is_random, is_decoy : ndarray of bool, shape (n,)
        True for ions that are better at a random time, and for ions of decoy peptides.

    Returns
    -------
    ndarray of float64, shape (n,)
        q-values up to 1.

    Examples
    --------
    >>> is_random, is_decoy = np.array([[0, 0, 0, 1, 0], [0, 0, 0, 0, 1]], bool)
    >>> transfer_q_values(np.array([9.0, 8.0, 8.0, 7.0, 6.0]), is_random, is_decoy).round(3).tolist()
    [0.333, 0.333, 0.333, 0.667, 1.0]
    """
    if not len(score):
        return np.zeros(0)
    _, which = np.unique(-score, return_inverse=True)
    n = int(which.max()) + 1
    counts = [
        np.cumsum(np.bincount(which[(is_random == random) & (is_decoy == decoy)], minlength=n))
        for random in (False, True)
        for decoy in (False, True)
    ]
    moved, of_decoys, at_random, of_decoys_at_random = counts
    rate = (1 + at_random + np.maximum(of_decoys - of_decoys_at_random, 0)) / np.maximum(moved, 1)
    q_value: NDArray[np.float64] = np.minimum(np.minimum.accumulate(rate[::-1])[::-1], 1.0)[which]
    return q_value


def _accepted(
    features: Features, parts: Sequence[_Competition], n_tried: int, parameters: QuantificationParameters, resources: Resources
) -> Transfers:
    """Return the transfers accepted at the requested rate of false transfers, estimated over all files."""
    moved = np.concatenate([np.zeros(0, np.bool_), *(np.arange(len(part.score)) < len(part.ion) for part in parts)])
    score = np.concatenate([np.zeros(0), *(part.score for part in parts)])
    is_random, is_decoy = (
        np.concatenate([np.zeros(0, np.bool_), *(getattr(part, name) for part in parts)]) for name in ("is_random", "is_decoy")
    )
    q_value = transfer_q_values(score, is_random, is_decoy)
    is_accepted = q_value[moved] <= parameters.transfer_fdr
    # Rejected transfers are not features of the file.
    features.ion[~is_accepted] = features.n_ions
    reached = score >= score[moved][is_accepted].min(initial=np.inf)
    counts = {
        "transferred": int(is_accepted.sum()),
        "random_time_transfers": int((reached & is_random & ~is_decoy).sum()),
        "decoy_transfers": int((reached & ~is_random & is_decoy).sum()),
        "decoy_random_time_transfers": int((reached & is_random & is_decoy).sum()),
    }
    n, at_random, of_decoys, both = counts.values()
    resources.progress.message(
        f"{n:,} of {n_tried:,} ions were found in files that did not identify them: {at_random:,} others were better at a random time, and"
        f" {of_decoys:,} decoy peptides were found ({both:,} at a random time). The estimated rate of false transfers is"
        f" {100 * (1 + at_random + max(0, of_decoys - both)) / max(1, n):.2f} %"
    )
    return Transfers(features, q_value[moved], counts)
