"""Spectra annotated with the ions of a peptide, and the settings that select the ions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from proteoscope.engine.arrays import row_mask
from proteoscope.engine.chemistry.fragments import (
    IMMONIUM,
    PRECURSOR,
    SERIES,
    Annotation,
    FragmentIons,
    annotate,
    fragment_ions,
    immonium_ions,
    modification_losses,
)
from proteoscope.engine.chemistry.peptidoforms import Peptidoform, PlacedModification, parse
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.spectra.columns import spectrum_ion_series
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.shown_peaks import LOSS, UNMATCHED, ShownPeaks, relative_intensity

__all__ = [
    "LOSSES",
    "OF_MODIFICATIONS",
    "SHOWN_SERIES",
    "WIDEST_TOLERANCE",
    "AnnotatedSpectrum",
    "AnnotationChoice",
    "IonSettings",
    "SelectedSite",
    "SiteIons",
    "annotate_match",
    "annotate_peptidoform",
    "annotate_text",
    "ions_looked_for",
    "ions_to_show",
    "moved",
    "residue_name",
]

SHOWN_SERIES = SERIES[:PRECURSOR]
"""Fragment series that can be annotated."""
OF_MODIFICATIONS = "of modifications"
LOSSES = ("H2O", "NH3", OF_MODIFICATIONS)
"""Neutral losses that can be annotated: water, ammonia, and the losses that Unimod lists for modifications."""

_FROM_THE_FRONT = "abc"
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class IonSettings:
    """Settings that select the ions to annotate: those of the run, changed by the user's choice (`AnnotationChoice`).

    Attributes
    ----------
    series
        Characters of `SHOWN_SERIES`, or `proteoscope.engine.chemistry.series_choice.BY_ACTIVATION`.
    losses
        Subset of `LOSSES`.
    least_labelled
        Minimum height of labelled peaks, percent of the base peak.
    """

    tolerance: Tolerance
    series: str = "by"
    maximum_charge: int = 2
    losses: tuple[str, ...] = LOSSES
    shows_precursor: bool = True
    shows_immonium: bool = False
    least_labelled: float = 0.0

    def for_peaks(self, peaks: Peaks) -> IonSettings:
        """Return the settings for a spectrum: ion series that depend on the activation are replaced by those of its activation."""
        series = spectrum_ion_series(self.series, peaks.activation)
        return self if series == self.series else replace(self, series=series)


@dataclass(frozen=True)
class SelectedSite:
    """Modification of a peptide at its site, and the most probable other site of this modification.

    Attributes
    ----------
    modification
        Name of the modification.
    position, alternative
        This site and the other site: residue from 1; 0 for the N-terminus, length + 1 for the C-terminus. If no other site is possible,
        `alternative` has the value None.
    probability, alternative_probability
        Probabilities of both sites.
    """

    modification: str
    position: int
    probability: float
    alternative: int | None = None
    alternative_probability: float = 0.0

    @property
    def swapped(self) -> SelectedSite:
        """The modification at the alternative site, with this site as the alternative; self if there is no alternative."""
        if self.alternative is None:
            return self
        return SelectedSite(self.modification, self.alternative, self.alternative_probability, self.position, self.probability)


@dataclass(frozen=True)
class SiteIons:
    """Peaks that distinguish a site of a modification from the alternative site.

    Attributes
    ----------
    site, alternative
        Display names of the sites, such as ``S3``.
    peaks
        Peaks that match an ion only if the modification is at `site`, (k,).
    """

    site: str
    alternative: str
    peaks: NDArray[np.int64]

    @property
    def text(self) -> str:
        """Text for legends: the sites that the ions distinguish."""
        return f"only with {self.site}, not {self.alternative}"


@dataclass(frozen=True)
class AnnotatedSpectrum:
    """Spectrum annotated with the fragment ions of one peptide.

    Attributes
    ----------
    title
        Display name of the spectrum.
    peptidoform
        Peptide with the charge of the precursor.
    precursor_mz
        Measured precursor m/z, in thomson.
    ions
        Theoretical ions that are compared with the peaks.
    matches
        Pairs of a peak and its ion; each peak has at most one ion.
    is_matched
        True for ions that match a peak, (ions,), including ions whose peak is assigned to another ion in `matches`.
    shift
        Modification that was found as a mass shift, or None.
    site
        Ions that distinguish the selected site of a modification from another site, or None.
    """

    title: str
    peptidoform: Peptidoform
    precursor_mz: float
    peaks: Peaks
    settings: IonSettings
    ions: FragmentIons
    matches: Annotation
    is_matched: NDArray[np.bool_]
    shift: PlacedModification | None = None
    site: SiteIons | None = None

    @cached_property
    def relative(self) -> NDArray[np.float64]:
        """Intensities in percent of the base peak, shape (peaks,)."""
        return relative_intensity(self.peaks.intensity)

    @cached_property
    def shown(self) -> ShownPeaks:
        """Peaks with their kinds, and with labels on peaks that reach `settings.least_labelled`."""
        kinds = np.full(len(self.peaks.mz), UNMATCHED, dtype="<U8")
        kinds[self.matches.peak] = self.kinds
        named = np.flatnonzero(self.relative[self.matches.peak] >= self.settings.least_labelled)
        return ShownPeaks(self.peaks.mz, self.relative, kinds, self.matches.peak[named], [self.labels[at] for at in named.tolist()])

    @cached_property
    def kinds(self) -> list[str]:
        """Kind of each match: the symbol of its series, or `LOSS`."""
        return [LOSS if self.ions.loss[ion] else SERIES[self.ions.series[ion]] for ion in self.matches.ion.tolist()]

    @cached_property
    def labels(self) -> list[str]:
        """Display name of the ion of each match in `matches`; a star marks ions that contain the mass shift."""
        return [f"{self.name(ion)}{'*' if self.carries_shift[ion] else ''}" for ion in self.matches.ion.tolist()]

    @cached_property
    def carries_shift(self) -> NDArray[np.bool_]:
        """True for fragment ions that contain the residue or terminus with the mass shift, shape (ions,); False for precursor ions."""
        if self.shift is None:
            return np.zeros(len(self.ions), np.bool_)
        is_front = np.isin(self.ions.series, [SERIES.index(symbol) for symbol in _FROM_THE_FRONT])
        is_before = self.shift.position <= self.ions.position
        of_residue = (self.ions.series == IMMONIUM) & (self.ions.position == self.shift.position)
        is_fragment = (self.ions.series != PRECURSOR) & (self.ions.series != IMMONIUM)
        return np.where(is_fragment, np.where(is_front, is_before, ~is_before), of_residue)

    @cached_property
    def match_of_peak(self) -> dict[int, int]:
        """Index in `matches` by index of the matched peak."""
        return {peak: match for match, peak in enumerate(self.matches.peak.tolist())}

    @cached_property
    def explained(self) -> float:
        """Fraction of the total intensity that matched peaks explain, 0 to 1."""
        total = float(self.peaks.intensity.sum())
        return float(self.peaks.intensity[self.matches.peak].sum()) / total if total else 0.0

    def name(self, ion: int) -> str:
        """Return the display name of an ion, such as ``y7²⁺``, ``b5−H2O``, ``[M+2H]²⁺`` or ``iY``."""
        ions = self.ions
        if ions.series[ion] == IMMONIUM:
            return f"i{ions.residues[ions.number[ion] - 1]}"
        charge = int(ions.charge[ion])
        raised = ("" if charge == 1 else str(charge).translate(_RAISED)) + "⁺"
        loss = f"−{ions.loss_names[ions.loss[ion]]}" if ions.loss[ion] else ""
        if ions.series[ion] == PRECURSOR:
            return f"[M+{'' if charge == 1 else charge}H{loss}]{raised}"
        return f"{SERIES[ions.series[ion]]}{ions.number[ion]}{loss}{raised if charge > 1 else ''}"

    def bonds(self, series: str) -> NDArray[np.int64]:
        """Return the peptide bonds at which an ion of the given series, with or without loss, is matched.

        A bond is the number of residues before it; bonds are ascending.
        """
        codes = [SERIES.index(symbol) for symbol in series]
        return np.unique(self.ions.position[self.is_matched & np.isin(self.ions.series, codes)]).astype(np.int64)


def ions_looked_for(parameters: Mapping[str, Any]) -> IonSettings | None:
    """Return the ion settings of a spectrum search from its parameters; None if the parameters do not define ions."""
    try:
        return IonSettings(
            Tolerance.parse(str(parameters["fragment_tolerance"])),
            str(parameters["ion_series"]),
            int(parameters["maximum_fragment_charge"]),
            losses=(),
            shows_precursor=False,
        )
    except (ProteoscopeError, KeyError, TypeError, ValueError):
        return None


def ions_to_show(parameters: Mapping[str, Any]) -> IonSettings:
    """Return the ion settings of a spectrum search from its parameters, for display: neutral losses and the precursor are added.

    Raises
    ------
    ProteoscopeError
        If the parameters of the search do not define the ions.
    """
    result = ions_looked_for(parameters)
    if result is None:
        raise ProteoscopeError("The parameters of this run do not name the ions that were searched. Run the search again.")
    return replace(result, losses=LOSSES, shows_precursor=True)


def annotate_match(row: Mapping[str, Any], peaks: Peaks, settings: IonSettings, title: str = "") -> AnnotatedSpectrum:
    """Annotate the spectrum of a PSM with the ions of its peptide.

    Fragment charges are at most `settings.maximum_charge` and below the precursor's charge, as in the search. The precursor is matched
    only at its own charge.

    If the row has a ``shift_position``, the modification at that position was found as a mass shift. If it has a ``site``
    (`SelectedSite`), ions that distinguish this site are marked.

    Raises
    ------
    ParameterError
        If the mass of the row's peptide is undefined.
    """
    placed = tuple(
        PlacedModification(int(position), str(name), float(mass))
        for position, name, mass in zip(
            row["modification_positions"] or (), row["modification_names"] or (), row["modification_masses"] or (), strict=True
        )
    )
    peptidoform = Peptidoform(str(row["sequence"]), placed, int(row["charge"]))
    spectrum = annotate_peptidoform(peptidoform, float(row["precursor_mz"]), peaks, settings, title)
    at, name = row.get("shift_position"), row.get("modification")
    shift = next((modification for modification in placed if modification.position == at and modification.name == name), None)
    spectrum = spectrum if shift is None else replace(spectrum, shift=shift)
    site = row.get("site")
    return replace(spectrum, site=_site_ions(spectrum, site)) if isinstance(site, SelectedSite) else spectrum


def moved(peptidoform: Peptidoform, site: SelectedSite) -> Peptidoform:
    """Return a peptidoform with the modification of a site at the alternative site."""
    placed = list(peptidoform.modifications)
    at = next((i for i, (position, name, _) in enumerate(placed) if (position, name) == (site.position, site.modification)), None)
    if at is None or site.alternative is None:
        return peptidoform
    placed[at] = placed[at]._replace(position=site.alternative)
    return replace(peptidoform, modifications=tuple(sorted(placed, key=lambda modification: modification.position)))


def residue_name(sequence: str, position: int) -> str:
    """Return the display name of a site in a peptide: ``S3``, ``N-term`` or ``C-term``."""
    if position <= 0:
        return "N-term"
    return f"{sequence[position - 1]}{position}" if position <= len(sequence) else "C-term"


def _site_ions(spectrum: AnnotatedSpectrum, site: SelectedSite) -> SiteIons | None:
    """Return the peaks that distinguish a site from its alternative, or None without an alternative.

    Matched ions between both sites distinguish them, unless another ion with the modification at the alternative site has the same m/z.
    """
    form = spectrum.peptidoform
    other = moved(form, site)
    if other == form or site.alternative is None:
        return None
    ions, (low, high) = spectrum.ions, sorted((site.position, site.alternative))
    is_fragment = (ions.series != PRECURSOR) & (ions.series != IMMONIUM)
    is_between = is_fragment & (low <= ions.position) & (ions.position < high)
    # A peak proves nothing if an ion of the other arrangement has the same m/z, for example because it lost water instead of phosphate.
    elsewhere = annotate_peptidoform(other, spectrum.precursor_mz, spectrum.peaks, spectrum.settings)
    also = annotate(spectrum.peaks.mz, spectrum.peaks.intensity, elsewhere.ions, spectrum.settings.tolerance).peak
    peaks = np.setdiff1d(spectrum.matches.peak[is_between[spectrum.matches.ion]], also)
    here, there = (residue_name(form.sequence, position) for position in (site.position, site.alternative))
    return SiteIons(here, there, peaks)


def annotate_text(peptide: str | None, charge: int | None, peaks: Peaks, settings: IonSettings | None) -> AnnotatedSpectrum | None:
    """Annotate peaks with the ions of a ProForma peptide; return None if the peptide cannot be parsed or has no mass."""
    if settings is None or peptide is None:
        return None
    try:
        parsed = parse(peptide)
        form = replace(parsed, charge=abs(charge or parsed.charge or settings.maximum_charge + 1))
        return annotate_peptidoform(form, float(form.mz or 0.0), peaks, settings)
    except ProteoscopeError:
        return None


def annotate_peptidoform(
    peptidoform: Peptidoform, precursor_mz: float, peaks: Peaks, settings: IonSettings, title: str = ""
) -> AnnotatedSpectrum:
    """Annotate a spectrum with the ions of a peptidoform, whose charge is the charge of the precursor; see `annotate_match`."""
    sequence, charge, settings = peptidoform.sequence, peptidoform.charge, settings.for_peaks(peaks)
    assert charge is not None
    losses = tuple(name for name in settings.losses if name != OF_MODIFICATIONS)
    lost = modification_losses(peptidoform) if OF_MODIFICATIONS in settings.losses else {}
    deltas = peptidoform.mass_deltas()
    ions = fragment_ions(
        sequence,
        deltas,
        series=settings.series,
        maximum_charge=max(1, min(settings.maximum_charge, charge - 1)),
        neutral_losses=losses,
        losses_of_modifications=lost,
    )
    if settings.shows_precursor:
        whole = fragment_ions(sequence, deltas, series="p", maximum_charge=charge, neutral_losses=losses, losses_of_modifications=lost)
        ions = _joined(ions, whole, np.flatnonzero(whole.charge == charge))
    if settings.shows_immonium:
        single = immonium_ions(peptidoform)
        ions = _joined(ions, single, np.arange(len(single)))
    every = annotate(peaks.mz, peaks.intensity, ions, settings.tolerance)
    result = row_mask(len(ions), every.ion)
    matches = annotate(peaks.mz, peaks.intensity, ions, settings.tolerance, one_ion_per_peak=True)
    return AnnotatedSpectrum(title, peptidoform, precursor_mz, peaks, settings, ions, matches, result)


def _joined(fragments: FragmentIons, others: FragmentIons, rows: NDArray[np.int64]) -> FragmentIons:
    """Return fragments followed by the ions with the indices `rows` of `others`; both must have the same table of neutral losses."""
    columns = {
        name: np.concatenate((getattr(fragments, name), getattr(others, name)[rows]))
        for name in ("mz", "series", "number", "charge", "loss", "position")
    }
    residues = others.residues or fragments.residues
    return FragmentIons(**columns, loss_names=fragments.loss_names, loss_masses=fragments.loss_masses, residues=residues)


WIDEST_TOLERANCE = {"ppm": 5000.0, "Da": 5.0}
"""Maximum tolerance by unit; with a wider tolerance, almost any peak would match an ion."""


class AnnotationChoice(BaseModel):
    """Choices of the user on annotated ions and labelled peaks.

    Attributes
    ----------
    series
        Ion series as characters of `SHOWN_SERIES`, in that order; empty for the series of the search.
    losses
        Neutral losses to annotate, a subset of `LOSSES`.
    tolerance
        Fragment tolerance; None for the tolerance of the search.
    least_labelled
        Minimum height of labelled peaks, percent of the base peak.

    Examples
    --------
    >>> searched = IonSettings(Tolerance(20, "ppm"), "by")
    >>> AnnotationChoice(series="bcyz", tolerance="0.5 Da").settings(searched).series
    'bcyz'
    """

    model_config = ConfigDict(frozen=True)

    series: str = ""
    losses: tuple[str, ...] = LOSSES
    shows_precursor: bool = True
    shows_immonium: bool = False
    tolerance: Tolerance | None = None
    least_labelled: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0

    @field_validator("series")
    @classmethod
    def _known_series(cls, series: str) -> str:
        if set(series) - set(SHOWN_SERIES):
            raise ValueError(f"expected characters of {SHOWN_SERIES}")
        return "".join(symbol for symbol in SHOWN_SERIES if symbol in series)

    @field_validator("losses")
    @classmethod
    def _known_losses(cls, losses: tuple[str, ...]) -> tuple[str, ...]:
        if set(losses) - set(LOSSES):
            raise ValueError(f"expected some of {', '.join(LOSSES)}")
        return tuple(name for name in LOSSES if name in losses)

    @field_validator("tolerance")
    @classmethod
    def _possible_tolerance(cls, tolerance: Tolerance | None) -> Tolerance | None:
        if tolerance is not None and not 0 < tolerance.value <= WIDEST_TOLERANCE[tolerance.unit]:
            raise ValueError(f"expected more than 0 and at most {WIDEST_TOLERANCE[tolerance.unit]:g} {tolerance.unit}")
        return tolerance

    @classmethod
    def restored(cls, stored: Any) -> Self:
        """Return a stored choice, or the default choice if the stored value is invalid."""
        try:
            return cls.model_validate(stored)
        except (ValidationError, TypeError):
            return cls()

    def settings(self, requested: IonSettings) -> IonSettings:
        """Return the ion settings `requested` (those of the search), changed by this choice."""
        return replace(
            requested,
            tolerance=self.tolerance or requested.tolerance,
            series=self.series or requested.series,
            losses=self.losses,
            shows_precursor=self.shows_precursor,
            shows_immonium=self.shows_immonium,
            least_labelled=self.least_labelled,
        )
