"""Spectra of PSMs mirrored with the predicted spectrum of the peptide or with the spectrum of another PSM."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from proteoscope.engine import matches
from proteoscope.engine.chemistry.fragments import SERIES, annotate, fragment_ions
from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.spectra.columns import spectrum_ion_series
from proteoscope.engine.views.annotation import (
    AnnotatedSpectrum,
    IonSettings,
    SelectedSite,
    annotate_match,
    annotate_peptidoform,
    moved,
    residue_name,
)
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.identification import psm_name, read_psm_row
from proteoscope.engine.views.mirror import Half, MirroredSpectra
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.tables import TableSource

__all__ = ["mirrored_arrangements", "mirrored_with_other", "mirrored_with_prediction", "mirrored_with_psm", "spectral_cosine"]

_PREDICTED = IonSettings(Tolerance(1, "ppm"), "by", 2, losses=(), shows_precursor=False)
_OTHER_ACTIVATION = "Only intensities of b and y ions are predicted, and this activation does not produce these ions."
_NO_OTHER = "No other PSM of this peptide."
_LOW_RESOLUTION = 0.1
"""Tolerance in thomson above which spectra are from an ion trap, in which peptides fragment differently than in the model."""
_LABELS = ("TMT", "iTRAQ")


def mirrored_with_prediction(row: Mapping[str, Any], peaks: Peaks, settings: IonSettings) -> MirroredSpectra:
    """Mirror the spectrum of a PSM with the b and y ions of its peptide as predicted by the model of the program.

    The similarity is the cosine between two vectors: square roots of the predicted intensities, and of the intensities of matching peaks.

    Raises
    ------
    ProteoscopeError
        If the mass of the peptide is undefined, or if the peptide is too long for the model.
    """
    upper = annotate_match(row, peaks, settings)
    searched = spectrum_ion_series(BY_ACTIVATION, peaks.activation)
    if not matches.fragment_intensities.has_predicted_series(searched):
        return MirroredSpectra(psm_name(row), Half(psm_name(row), peaks, upper), None, settings.tolerance, note=_OTHER_ACTIVATION)
    peptidoform = upper.peptidoform
    shares = matches.fragment_intensities.predicted_shares(peptidoform.sequence, int(row["charge"]))
    ions = fragment_ions(peptidoform.sequence, peptidoform.mass_deltas(), series="by", maximum_charge=2)
    column = 2 * (ions.series == SERIES.index("y")) + ions.charge - 1
    fraction = shares[ions.position - 1, column]
    expected = np.flatnonzero(fraction > 0)
    order = expected[np.argsort(ions.mz[expected], kind="stable")]
    predicted = Peaks(ions.mz[order], fraction[order])

    result = annotate(peaks.mz, peaks.intensity, ions, settings.tolerance)
    observed = np.zeros(len(ions))
    observed[result.ion] = peaks.intensity[result.peak]
    weights = np.sqrt(observed[expected] * fraction[expected]).sum()
    norm = np.sqrt(observed[expected].sum() * fraction[expected].sum())
    plain = replace(_PREDICTED, least_labelled=settings.least_labelled)
    lower = annotate_peptidoform(peptidoform, upper.precursor_mz, predicted, plain)
    return MirroredSpectra(
        f"{psm_name(row)}, measured and predicted",
        Half(psm_name(row), peaks, upper),
        Half("predicted b and y ions", predicted, lower),
        settings.tolerance,
        float(weights / norm) if norm > 0 else 0.0,
        _doubt(row, settings.tolerance),
    )


def mirrored_arrangements(row: Mapping[str, Any], peaks: Peaks, settings: IonSettings) -> MirroredSpectra:
    """Mirror a spectrum with itself: annotated with a modification at its best site above, and at the best alternative site below.

    Parameters
    ----------
    row
        Values of the PSM with its selected ``site`` (`proteoscope.engine.views.sites.with_site`).

    Raises
    ------
    ProteoscopeError
        If the mass of the peptide is undefined.
    """
    site: SelectedSite = row["site"]
    upper = annotate_match(row, peaks, settings)
    title = f"{psm_name(row)}, {site.modification}"
    halves = [Half(_site_name(upper, site), peaks, upper)]
    if site.alternative is not None:
        placed = moved(upper.peptidoform, site).modifications
        columns = ("modification_positions", "modification_names", "modification_masses")
        arrangement = {column: [modification[at] for modification in placed] for at, column in enumerate(columns)}
        lower = annotate_match({**row, **arrangement, "site": site.swapped}, peaks, settings)
        halves.append(Half(_site_name(lower, site.swapped), peaks, lower))
    note = "" if site.alternative is not None else "The peptide has no other possible site."
    return MirroredSpectra(title, halves[0], halves[1] if len(halves) > 1 else None, settings.tolerance, note=note, is_one_spectrum=True)


def _site_name(spectrum: AnnotatedSpectrum, site: SelectedSite) -> str:
    return f"{residue_name(spectrum.peptidoform.sequence, site.position)}, prob. {site.probability:.3f}"


def mirrored_with_psm(
    first: tuple[Mapping[str, Any], Peaks], other: tuple[Mapping[str, Any], Peaks], settings: IonSettings
) -> MirroredSpectra:
    """Mirror the spectra of two PSMs, with their similarity (`spectral_cosine`).

    Raises
    ------
    ProteoscopeError
        If the mass of a peptide is undefined.
    """
    halves = [Half(psm_name(row), peaks, _ions(row, peaks, settings)) for row, peaks in (first, other)]
    mirrored = MirroredSpectra(f"{halves[0].name} and {halves[1].name}", halves[0], halves[1], settings.tolerance)
    return replace(mirrored, similarity=spectral_cosine(mirrored))


def mirrored_with_other(
    source: TableSource, row: int, match: Mapping[str, Any], peaks: Peaks, run: FinishedRun, settings: IonSettings
) -> MirroredSpectra:
    """Mirror the spectrum of a PSM with the spectrum of the best other PSM of its peptide, preferably with the same charge.

    Raises
    ------
    ProteoscopeError
        If the run did not store its spectra, or if the mass of a peptide is undefined.
    """
    result = source.query(
        "SELECT file_row_number AS row FROM psms WHERE rank = 1 AND peptide = ? AND file_row_number != ? AND spectrum != ? "
        "ORDER BY charge != ?, is_decoy, q_value, score DESC, row LIMIT 1",
        [match["peptide"], row, match["spectrum"], match["charge"]],
    )["row"].to_pylist()
    if not result:
        upper = Half(psm_name(match), peaks, _ions(match, peaks, settings))
        return MirroredSpectra(psm_name(match), upper, None, settings.tolerance, note=_NO_OTHER)
    return mirrored_with_psm((match, peaks), read_psm_row(source, int(result[0]), run), settings)


def spectral_cosine(mirrored: MirroredSpectra) -> float:
    """Return the cosine similarity of two spectra, 0 to 1, from square roots of intensities; peaks that are not shared reduce it."""
    if mirrored.lower is None:
        return 0.0
    upper, other = mirrored.upper.peaks.intensity, mirrored.lower.peaks.intensity
    norm = float(np.sqrt(upper.sum() * other.sum()))
    shared = mirrored.shared
    return float(np.sqrt(upper[shared[:, 0]] * other[shared[:, 1]]).sum()) / norm if norm > 0 else 0.0


def _ions(row: Mapping[str, Any], peaks: Peaks, settings: IonSettings) -> AnnotatedSpectrum | None:
    try:
        return annotate_match(row, peaks, settings)
    except ProteoscopeError:
        return None


def _doubt(row: Mapping[str, Any], tolerance: Tolerance) -> str:
    """Return the reason why the prediction may be inaccurate, or ''."""
    label = next((name for name in row["modification_names"] or () if str(name).startswith(_LABELS)), "")
    if label:
        return f"The model was not trained on {label}."
    modified = ", ".join(dict.fromkeys(map(str, row["modification_names"] or ())))
    if tolerance.width(1000.0) > _LOW_RESOLUTION:
        return "The model was trained on beam-type collisions (HCD), not on ion-trap collisions."
    return f"Predicted for the peptide without {modified}." if modified else ""
