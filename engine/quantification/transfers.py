"""Match between runs: ions that one file identified, measured in others at their aligned times, with the rate of false transfers.

Donors are ions of peptides that are accepted over the whole experiment, and of accepted proteins: a wrong identification would be found in
other files as well as a right one, and no decoy counts it. Each transfer has a decoy: the same ion at the same time, with an m/z that is as
far off as no isotope or modification of it, and as usual for a peptide of its charge. What is found there is what chance gives, and shows
how much of what is found at the ions' own m/z is chance. Transfers are ranked by how near the time is, how well the isotopes agree with the
formula, and how near the area is to that of the other files.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.surveys import Surveys
from proteoscope.engine.quantification.ion_traces import TraceQuery, is_low, measured_traces
from proteoscope.engine.quantification.ions import Ions
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.retention_times import Alignment, aligned
from proteoscope.engine.statistics.target_decoy import q_values
from proteoscope.kernels.cpu.elution import AGREEMENT, AREA, N_VALUES, POINTS, TIME

__all__ = ["Transfers", "transferred"]

_REACH = 5.0  # of the spreads of both alignments together
_DECOY_STEP, _FEWEST_STEPS, _MOST_STEPS = 1.000476, 5, 14
"""Da: masses of peptides lie near multiples of it (Wolski et al. 2006, BMC Bioinformatics 7:203); and how many of them
decoys are shifted by."""
_AREA_SPREAD = 1.0  # of the natural logarithm of areas between files
_DISAGREEMENT = 0.01  # of the cosine from 1


@dataclass(frozen=True)
class Transfers:
    """Accepted transfers, t of them.

    Attributes
    ----------
    file : (t,) int64, place among the files. ion : (t,) int64. values : (t, N_VALUES). q_value : (t,) float64.
    """

    file: NDArray[np.int64]
    ion: NDArray[np.int64]
    values: NDArray[np.float64]
    q_value: NDArray[np.float64]


@dataclass(frozen=True)
class _Tried:
    """What was found of ions in a file where they are expected, and of their decoys: k rows each."""

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
    surveys_of: Callable[[int], Surveys],
    parameters: QuantificationParameters,
    resources: Resources,
) -> Transfers:
    """Ions in files that did not identify them, up to a rate of false transfers.

    Parameters
    ----------
    values : (files, ions, N_VALUES), reason : (files, ions), as `proteoscope.engine.quantification.label_free` measured them: 0 where there
        is an area, -1 where the file did not identify it. surveys_of : reads the survey spectra of a file.
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
    surveys: Surveys,
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
    found = [
        _measured(surveys, ions, rows, shift, time, _REACH * spread, parameters, resources)
        for shift in (np.zeros(len(rows)), _decoy_shift(ions, rows))
    ]
    scores = [_scores(one, is_low(one, ions.pattern[rows], surveys), time, spread, area, parameters) for one in found]
    return _Tried(place, rows, found[0], *scores)


def _decoy_shift(ions: Ions, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Shift of the m/z of each ion's decoy: so many steps of mass that no other ion of the table has it, up or down, drawn by the ion."""
    rng = np.random.default_rng(0)
    steps = rng.integers(_FEWEST_STEPS, _MOST_STEPS + 1, len(rows)) * rng.choice([-1, 1], len(rows))
    return steps * _DECOY_STEP / ions.charge[rows]


def _measured(
    surveys: Surveys,
    ions: Ions,
    rows: NDArray[np.int64],
    shift: NDArray[np.float64],
    time: NDArray[np.float64],
    reach: float,
    parameters: QuantificationParameters,
    resources: Resources,
) -> NDArray[np.float64]:
    found = np.zeros((len(rows), N_VALUES))
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
        found[is_at] = measured_traces(surveys, query, parameters, resources)
    return found


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
    """Return how well what was found fits what was expected; minus infinity where it is no trace."""
    is_there = (values[:, POINTS] >= parameters.minimum_points) & (values[:, AGREEMENT] >= parameters.minimum_agreement) & ~low
    found = np.full(len(values), -np.inf)
    some = values[is_there]
    found[is_there] = (
        -0.5 * ((some[:, TIME] - time[is_there]) / spread) ** 2
        - 0.5 * ((np.log(some[:, AREA]) - area[is_there]) / _AREA_SPREAD) ** 2
        - (1 - some[:, AGREEMENT]) / _DISAGREEMENT
        + np.log(some[:, POINTS])
    )
    return found


def _accepted(tried: list[_Tried], parameters: QuantificationParameters, resources: Resources) -> Transfers:
    """Return the transfers up to the rate, of all files together."""
    score = np.concatenate([np.zeros(0), *(one.score for one in tried)])
    decoy = np.concatenate([np.zeros(0), *(one.decoy_score for one in tried)])
    is_there, decoys = np.isfinite(score), decoy[np.isfinite(decoy)]
    every = np.concatenate([score[is_there], decoys])
    q = q_values(every, np.arange(len(every)) >= int(is_there.sum()), plus_one=True)[: int(is_there.sum())]
    q_value = np.ones(len(score))
    q_value[is_there] = q
    kept = np.flatnonzero(is_there & (q_value <= parameters.transfer_fdr))
    n_decoys = int((decoys >= score[kept].min()).sum()) if len(kept) else 0
    resources.progress.message(
        f"{len(kept):,} of {len(score):,} ions were found in files that did not identify them, and {n_decoys:,} of as many decoys. The rate"
        f" of {parameters.transfer_fdr:.3g} is that of ions that are not there; wrong identities are limited among the donors, to"
        f" {parameters.donor_fdr:.3g} of those of one file and of those of several"
    )
    file = np.concatenate([np.zeros(0, np.int64), *(np.full(len(one.ion), one.file, np.int64) for one in tried)])
    ion = np.concatenate([np.zeros(0, np.int64), *(one.ion for one in tried)])
    values = np.concatenate([np.zeros((0, N_VALUES)), *(one.values for one in tried)])
    return Transfers(file[kept], ion[kept], values[kept], q_value[kept])
