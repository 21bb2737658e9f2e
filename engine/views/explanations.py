"""Data of the view of explained spectra (unidentified spectra that resemble identified spectra): filters, counts and compared spectra."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.entry import recorded_parameters
from proteoscope.engine.errors import InputError
from proteoscope.engine.views.annotation import AnnotatedSpectrum, IonSettings, annotate_text, ions_looked_for
from proteoscope.engine.views.conditions import Condition, contains_in, given
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.mirror import Half, MirroredSpectra
from proteoscope.engine.views.peaks import Peaks, PeaksOfRun
from proteoscope.engine.views.run_map import EXPLAINED, STATUS_NAMES, UNEXPLAINED
from proteoscope.engine.views.tables import TableSource

__all__ = [
    "EXPLANATION_DETAILS",
    "ComparedExplanation",
    "ExplanationFilter",
    "SourceSpectra",
    "compared_explanation",
    "explanation_conditions",
    "explanation_counts",
    "read_spectrum_status",
    "source_run",
    "source_spectra",
    "spectrum_alone",
]

EXPLANATION_DETAILS = (
    *("spectrum", "nearest", "spectrum_id", "nearest_spectrum", "peptide", "charge", "similarity", "mass_difference", "q_value"),
    *("precursor_mz", "retention_time", "kind", "spectrum_file"),
)
"""Columns shown about the compared explained spectrum."""
_NO_PEAKS = "The peaks of the run '{}', whose spectra are explained, are not stored."


@dataclass(frozen=True)
class ExplanationFilter:
    """Filter of explained spectra; `kind` is ``same`` (mass of the peptide) or ``modified``, and None means no restriction."""

    text: str = ""
    q_value: float | None = None
    kind: str | None = None


def explanation_conditions(chosen: ExplanationFilter) -> list[Condition]:
    """Return the conditions of a filter on explained spectra."""
    bounds = given(("q_value", "<=", chosen.q_value), ("kind", "=", chosen.kind))
    return [*bounds, *contains_in(("peptide", "spectrum_id", "nearest_spectrum"), chosen.text)]


def explanation_counts(source: TableSource, fdr: float) -> dict[str, int]:
    """Count the spectra explained at a false discovery rate and, if the run has a map, all spectra and identified spectra.

    The keys are ``explained``, ``modified``, ``peptides`` and ``at_5_percent``; with a map also ``spectra`` and ``identified``. `source` is
    any open table of the run.
    """
    accepted = source.query(
        "SELECT count(*) FILTER (q_value <= $1) AS explained, count(*) FILTER (q_value <= $1 AND kind = 'modified') AS modified, "
        "count(DISTINCT peptide) FILTER (q_value <= $1) AS peptides, count(*) FILTER (q_value <= 0.05) AS at_5_percent FROM explained",
        [fdr],
    )
    counts: dict[str, int] = accepted.to_pylist()[0]
    if "map" in source.paths:
        counts |= source.query("SELECT count(*) AS spectra, count(*) FILTER (status = 1) AS identified FROM map").to_pylist()[0]
    return counts


def read_spectrum_status(source: TableSource, spectrum: SpectrumRow) -> dict[str, Any]:
    """Return ``status`` (see `proteoscope.engine.views.run_map`) and ``peptide`` of a spectrum.

    A spectrum that is not in the map is unexplained. `source` is any table of the run.
    """
    result = source.query("SELECT status, peptide FROM map WHERE spectrum = ?", [spectrum]).to_pylist()
    row: dict[str, Any] = result[0] if result else {"status": UNEXPLAINED, "peptide": None}
    return {**row, "status": min(row["status"], EXPLAINED)}


def source_run(run: FinishedRun) -> str:
    """Return the identifier of the identification whose spectra a run explains, from the record of the run.

    Raises
    ------
    InputError
        If the record does not name the identification.
    """
    path = run.project.table("run", run.run.id)
    source = run.project.record(run.run.id).get("source_run")
    if not isinstance(source, str):
        raise InputError(path, "does not name the explained run", remedy="Explain the identification again")
    return source


@dataclass(frozen=True)
class SourceSpectra:
    """Peaks and ion settings of the identification with the id `run_id`; `ions` has the value None if the settings are unknown."""

    run_id: str
    peaks: PeaksOfRun
    ions: IonSettings | None

    def annotated(self, peptide: str | None, charge: int | None, peaks: Peaks) -> AnnotatedSpectrum | None:
        """Annotate a spectrum with the ions of a peptide; return None if the peptide cannot be parsed or has no mass."""
        return annotate_text(peptide, charge, peaks, self.ions)


def source_spectra(run: FinishedRun) -> SourceSpectra:
    """Return the spectra of the identification whose unidentified spectra a run explains.

    Raises
    ------
    InputError
        If the run's record does not name the identification, or if the recorded parameters of the identification are damaged.
    """
    source = source_run(run)
    record = next((candidate for candidate in run.project.runs() if candidate.id == source), None)
    peaks = run.peaks(run_id=source)
    if not peaks.is_there:
        peaks = PeaksOfRun("", _NO_PEAKS.format(source) if record is not None else f"The run '{source}' is no longer in the project.")
    return SourceSpectra(source, peaks, None if record is None else ions_looked_for(recorded_parameters(run.project, record)))


@dataclass(frozen=True)
class ComparedExplanation:
    """Explained spectrum mirrored with the identified spectrum that it resembles; `details` are values of `EXPLANATION_DETAILS`."""

    details: Mapping[str, Any]
    spectra: MirroredSpectra


def compared_explanation(source: TableSource, row: int, run: FinishedRun) -> ComparedExplanation:
    """Mirror the spectrum in a row of the explained spectra with the most similar identified spectrum.

    Raises
    ------
    ProteoscopeError
        If the peaks are missing or damaged.
    """
    result = source.row(row, EXPLANATION_DETAILS)
    of_source = source_spectra(run)
    of_nearest = of_source.peaks.peaks(result["nearest"])
    upper = Half(result["spectrum_id"] or "", of_source.peaks.peaks(result["spectrum"]))
    ions = of_source.annotated(result["peptide"], result["charge"], of_nearest)
    lower = Half(f"{result['nearest_spectrum'] or ''}, identified as {result['peptide']}", of_nearest, ions)
    title = f"{upper.name} resembles {result['peptide']}"
    return ComparedExplanation(result, MirroredSpectra(title, upper, lower, _tolerance(run), result["similarity"]))


def spectrum_alone(source: TableSource, spectrum: SpectrumRow, run: FinishedRun) -> MirroredSpectra:
    """Return a single spectrum of the map, annotated if identified; `source` is any open table of the run.

    Raises
    ------
    ProteoscopeError
        If the peaks are missing or damaged.
    """
    row, of_source = read_spectrum_status(source, spectrum), source_spectra(run)
    peaks = of_source.peaks.peaks(spectrum)
    status = STATUS_NAMES[row["status"]]
    title = status if row["peptide"] is None else f"{status} as {row['peptide']}"
    return MirroredSpectra(title, Half("", peaks, of_source.annotated(row["peptide"], None, peaks)), None, _tolerance(run))


def _tolerance(run: FinishedRun) -> Tolerance:
    return Tolerance(float(run.parameters["bin_width"]), "Da")
