"""Mirror plot of a spectrum to which two runs give different peptides: ions of one peptide above, of the other below."""

from itertools import combinations
from typing import Any

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.row_numbers import SpectrumRow
from proteoscope.engine.views.annotation import IonSettings, annotate_match, ions_looked_for, ions_to_show
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.identification import PSM_DETAILS
from proteoscope.engine.views.mirror import Half, MirroredSpectra
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.run_comparison import RunComparison
from proteoscope.engine.views.tables import TableSource

__all__ = ["compared_answers", "differing_runs"]

_UNKNOWN = IonSettings(Tolerance(20, "ppm"))
"""Ion settings if the runs have none, as for imported runs."""


def compared_answers(comparison: RunComparison, source: TableSource, row: int, runs: tuple[int, int] | None = None) -> MirroredSpectra:
    """Mirror the answers of two runs to the spectrum in a row of the table ``spectra``.

    The peaks are taken from a run that stores them.

    Parameters
    ----------
    runs
        Indices of two runs; None selects them with `differing_runs`.

    Raises
    ------
    ProteoscopeError
        If a run has no answer, or if neither run stored peaks.
    """
    names = [name for symbol in comparison.symbols for name in (f"psm_{symbol}", f"peptide_{symbol}", f"accepted_from_{symbol}")]
    answers = source.row(row, [*names, "spectrum_id"])
    first, second = runs or differing_runs(comparison, answers)
    if any(answers[f"psm_{comparison.symbols[run]}"] is None for run in (first, second)):
        raise ProteoscopeError(f"Only one of the runs has an answer for the spectrum {answers['spectrum_id']}.")
    details = [_psm(comparison.runs[run], int(answers[f"psm_{comparison.symbols[run]}"])) for run in (first, second)]
    retained = [_peaks(comparison.runs[run], SpectrumRow(int(psm["spectrum"]))) for run, psm in zip((first, second), details, strict=True)]
    there = next((peaks for peaks in retained if isinstance(peaks, Peaks)), None)
    if there is None:
        raise ProteoscopeError(str(retained[0]))
    halves = []
    for run, psm, peaks in zip((first, second), details, retained, strict=True):
        q_value = "no q-value" if psm["q_value"] is None else f"q-value {psm['q_value']:.2g}"
        name = f"{comparison.symbols[run]}: {psm['peptide']} ({psm['charge']}+), {q_value}"
        shown = peaks if isinstance(peaks, Peaks) else there
        halves.append(Half(name, shown, annotate_match(psm, shown, _settings(comparison, (run, first, second)))))
    title = f"{answers['spectrum_id']}: {comparison.labels[first]} above, {comparison.labels[second]} below"
    tolerance = _settings(comparison, (first, second)).tolerance
    return MirroredSpectra(title, halves[0], halves[1], tolerance, is_one_spectrum=True)


def differing_runs(comparison: RunComparison, answers: dict[str, Any]) -> tuple[int, int]:
    """Return the two runs with the best answers that differ, or else the first two runs with an answer.

    Parameters
    ----------
    answers
        Values of a row of ``spectra``, with ``peptide_A`` and ``accepted_from_A`` for each run A.
    """
    there = [run for run, symbol in enumerate(comparison.symbols) if answers[f"psm_{symbol}"] is not None]
    if len(there) < 2:
        raise ProteoscopeError("Only one of the runs has an answer for this spectrum.")

    def order(pair: tuple[int, int]) -> tuple[bool, float]:
        first_symbol, other = (comparison.symbols[run] for run in pair)
        is_same = answers[f"peptide_{first_symbol}"] == answers[f"peptide_{other}"]
        return is_same, max(answers[f"accepted_from_{first_symbol}"], answers[f"accepted_from_{other}"])

    return min(combinations(there, 2), key=order)


def _psm(run: FinishedRun, row: int) -> dict[str, Any]:
    source = run.tables.source("psms")
    details = source.row(row, PSM_DETAILS)
    source.close()
    return details


def _peaks(run: FinishedRun, spectrum: SpectrumRow) -> Peaks | ProteoscopeError:
    try:
        return run.peaks().peaks(spectrum)
    except ProteoscopeError as error:
        return error


def _settings(comparison: RunComparison, runs: tuple[int, ...]) -> IonSettings:
    """Return the ion settings of the first of the given runs that has settings, or else `_UNKNOWN`."""
    for run in runs:
        if ions_looked_for(comparison.runs[run].parameters) is not None:
            return ions_to_show(comparison.runs[run].parameters)
    return _UNKNOWN
