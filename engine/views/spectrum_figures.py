"""Figures of spectra: annotated spectra with mass errors, mirrored spectra, and peptides with their fragments."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np

from proteoscope.engine.results.counts import counted
from proteoscope.engine.views.annotation import AnnotatedSpectrum, SiteIons
from proteoscope.engine.views.drawings import Axis, Label, Shape, Stroke, text_width
from proteoscope.engine.views.figures import Corner, Figure, LegendEntry, Mark, Names, Panel, Picked, Rule, Scatter, Spikes, Strip
from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.engine.views.palette import Ink, Ion
from proteoscope.engine.views.shown_peaks import UNMATCHED, ShownPeaks

__all__ = [
    "LADDER_LINES",
    "SPECTRUM_HEIGHTS",
    "ErrorUnit",
    "draw_ladder",
    "mirror_figure",
    "mirrored_peak",
    "mirrored_peak_text",
    "peak_text",
    "spectrum_figure",
]

ErrorUnit = Literal["ppm", "Da"]

SPECTRUM_HEIGHTS = 3.2, 1.0
"""Relative heights of the peaks and the mass errors in the figure of an annotated spectrum."""
_SPECTRUM_TOP, _MIRROR_TOP = 116.0, 134.0
"""Upper ends of the axes of single and mirrored spectra, percent of the base peak, to leave space for labels."""
_SITE_SIZE = 5.0
"""Diameter of the dots on peaks that distinguish a site, points."""
_NEAR = 7.0
"""Maximum horizontal distance between the pointer and the selected peak, pixels."""
_LEAST = (0.02, 0.01)
"""Minimum visible range, thomson and percent."""
_INTENSITY, _SHORT_INTENSITY = "Relative intensity (%)", ("Intensity (%)", "%")
_LINE = 1.25
"""Height of a line of text, in font sizes."""
LADDER_LINES = 6 * _LINE
"""Height of the drawing of a peptide in font sizes, for modifications (two lines), residues, marks and fragment numbers."""
_WIDEST = 2.1
"""Maximum width of a residue, relative to the height of a line."""


def spectrum_figure(spectrum: AnnotatedSpectrum, unit: ErrorUnit | None = None) -> Figure:
    """Return the figure of an annotated spectrum, with the peptide above and the mass errors below.

    Parameters
    ----------
    unit
        Unit of the mass errors; None for the unit of the tolerance.
    """
    unit = unit or spectrum.settings.tolerance.unit
    shown, peptidoform = spectrum.shown, spectrum.peptidoform
    x = _mz_axis([shown])
    reach = _error_reach(spectrum, unit)
    bounds = (-reach, reach) if spectrum.settings.tolerance.unit == unit else ()
    errors = spectrum.matches.error_ppm if unit == "ppm" else spectrum.matches.error
    mz, kinds = spectrum.peaks.mz[spectrum.matches.peak], np.array(spectrum.kinds, dtype=str)
    dots = [Scatter(mz[kinds == kind], errors[kinds == kind], Ion(kind), 4.0) for kind in dict.fromkeys(spectrum.kinds)]
    rules = [Rule(0.0, is_upright=False, ink="faint", width=0.5, is_dashed=False)]
    rules += [Rule(at, is_upright=False, ink="grid", width=0.5) for at in bounds]
    peaks = Panel(
        x,
        Axis(0.0, _SPECTRUM_TOP, _INTENSITY, short_titles=_SHORT_INTENSITY),
        (*_peaks(shown), *_site_marks(shown, spectrum.site, is_alone=True)),
        SPECTRUM_HEIGHTS[0],
        _LEAST,
        is_base_fixed=True,
        pick=partial(_pick, [shown]),
    )
    return Figure(
        f"{peptidoform.sequence}_{peptidoform.charge}+",
        f"Annotated spectrum of {peptidoform}: {len(spectrum.matches):,} of {counted(len(shown.mz), 'peak')} explained",
        (
            peaks,
            Panel(
                x,
                Axis(-1.2 * reach, 1.2 * reach, f"Error ({unit})", short_titles=(unit,)),
                (*rules, *dots),
                SPECTRUM_HEIGHTS[1],
                (_LEAST[0], None),
            ),
        ),
        tuple(text for text in (str(peptidoform), spectrum.title) if text),
        () if spectrum.site is None else (LegendEntry(f"Peaks {spectrum.site.text}", "mark"),),
        size=(510.0, 360.0),
        strip=Strip(LADDER_LINES, partial(draw_ladder, spectrum)),
    )


def mirror_figure(mirrored: MirroredSpectra) -> Figure:
    """Return the figure of a spectrum and, if there is one, of the mirrored spectrum.

    The target of a click is the index of the peak for the upper spectrum, and ``~index`` for the lower one (see `mirrored_peak`).
    """
    is_alone = mirrored.lower is None
    marks: list[Mark] = [Rule(0.0, is_upright=False, width=0.5, is_dashed=False)]
    sites = [None if half.ions is None else half.ions.site for half in mirrored.halves]
    for shown, site in zip(mirrored.shown, sites, strict=True):
        marks += [*_peaks(shown), *_site_marks(shown, site)]
    if mirrored.similarity is not None:
        marks.append(Corner(f"{mirrored.similarity_name} {mirrored.similarity:.3f}", is_right=True))
    marks.append(Corner(mirrored.upper.name))
    if mirrored.lower is not None:
        marks.append(Corner(mirrored.lower.name, is_low=True))
    if mirrored.n_moved:
        marks.append(Corner(f"{counted(mirrored.n_moved, 'peak')} moved by {mirrored.shift:.4f} Th", is_right=True, is_low=True))
    y = Axis(0.0 if is_alone else -_MIRROR_TOP, _MIRROR_TOP, _INTENSITY, is_mirrored=True, short_titles=_SHORT_INTENSITY)
    panel = Panel(_mz_axis(mirrored.shown), y, tuple(marks), smallest=_LEAST, is_base_fixed=True, pick=partial(_pick, mirrored.shown))
    legend = (LegendEntry("Peaks of only one site", "mark"),) if any(sites) else ()
    return Figure(mirrored.title, mirrored.title, (panel,), (mirrored.title,), legend, size=(510.0, 320.0))


def mirrored_peak(target: int) -> tuple[int, int]:
    """Return the spectrum (0 upper, 1 lower) and the index of the peak that a click target in `mirror_figure` means."""
    return (1, ~target) if target < 0 else (0, target)


def peak_text(spectrum: AnnotatedSpectrum, peak: int) -> str:
    """Return a line of text with m/z, intensity, ion and errors of a peak."""
    text = f"m/z {spectrum.peaks.mz[peak]:,.4f}   intensity {spectrum.peaks.intensity[peak]:.4g} ({spectrum.relative[peak]:.1f} %)"
    match = spectrum.match_of_peak.get(peak)
    if match is None:
        return f"{text}   not explained"
    error, error_ppm = float(spectrum.matches.error[match]), float(spectrum.matches.error_ppm[match])
    return f"{text}   {spectrum.labels[match]}   {error_ppm:.2f} ppm   {error:.4f} Da{_site_text(spectrum.site, peak, '   ')}"


def mirrored_peak_text(mirrored: MirroredSpectra, half: int, peak: int) -> str:
    """Return a line of text with the descriptions of a peak and of its counterpart in the other spectrum."""

    def described(at: int, peak: int) -> str:
        of = mirrored.halves[at]
        name = "" if of.ions is None or peak not in of.ions.match_of_peak else f"{of.ions.labels[of.ions.match_of_peak[peak]]}, "
        site = _site_text(None if of.ions is None else of.ions.site, peak, ", ")
        return f"{name}m/z {of.peaks.mz[peak]:,.4f}, intensity {of.peaks.intensity[peak]:.4g} ({of.relative[peak]:.1f} %){site}"

    partner = mirrored.partner(half, peak)
    side = ("above: ", "below: ") if mirrored.lower is not None else ("", "")
    if partner is None:
        return side[half] + described(half, peak) + ("" if mirrored.lower is None or mirrored.is_one_spectrum else "   only in this one")
    both = {half: peak, 1 - half: partner}
    difference = float(mirrored.upper.peaks.mz[both[0]] - mirrored.halves[1].peaks.mz[both[1]])
    return f"{side[0]}{described(0, both[0])}   {side[1]}{described(1, both[1])}   {difference:.4f} Th apart"


def _mz_axis(spectra: Sequence[ShownPeaks]) -> Axis:
    """Return an m/z axis that contains all peaks with a margin, or 0 to 1000 without peaks."""
    ends = [float(end) for shown in spectra if len(shown.mz) for end in shown.mz[[0, -1]]]
    if not ends:
        return Axis(0.0, 1000.0, "m/z")
    margin = max(2.0, (max(ends) - min(ends)) * 0.03)
    return Axis(max(0.0, min(ends) - margin), max(ends) + margin, "m/z")


def _peaks(shown: ShownPeaks) -> tuple[Mark, ...]:
    """Return the marks of peaks by kind, unmatched peaks at the back, and their labels."""
    y = shown.side * shown.height
    marks: list[Mark] = []
    for kind in sorted(dict.fromkeys(shown.kinds.tolist()), key=lambda kind: kind != UNMATCHED):
        peaks = np.flatnonzero(shown.kinds == kind)
        width = 0.6 if kind == UNMATCHED else 1.2
        marks.append(Spikes(shown.mz[peaks], y[peaks], Ion(kind), width, targets=~peaks if shown.is_below else peaks))
    named = shown.named
    inks: list[Ink] = [Ion(kind) for kind in shown.kinds[named].tolist()]
    return (*marks, Names(shown.mz[named], y[named], shown.labels, shown.height[named], inks, shown.mz, y, shown.is_below))


def _site_marks(shown: ShownPeaks, site: SiteIons | None, *, is_alone: bool = False) -> tuple[Mark, ...]:
    """Return dots on the peaks that distinguish a site, and a text in a corner that explains the dots.

    The text names the alternative site only if `is_alone`: in a mirror plot, the other spectrum shows it.
    """
    if site is None:
        return ()
    which = site.text if is_alone else f"only with {site.site}"
    explanation = Corner(f"• {counted(len(site.peaks), 'peak')} {which}", is_right=True, is_low=shown.is_below)
    return explanation, Scatter(shown.mz[site.peaks], shown.side * shown.height[site.peaks], "mark", _SITE_SIZE)


def _site_text(site: SiteIons | None, peak: int, between: str) -> str:
    return "" if site is None or peak not in site.peaks else f"{between}{site.text}"


def _pick(spectra: Sequence[ShownPeaks], x: float, y: float, width: float, height: float) -> Picked | None:
    """Return the peak near a point, or None; among peaks that are close to each other, high peaks are preferred.

    `width` and `height` are the size of a pixel in axis values.
    """
    shown = spectra[-1] if y < 0 else spectra[0]
    first, last = np.searchsorted(shown.mz, (x - _NEAR * width, x + _NEAR * width))
    if first == last:
        return None
    above = np.maximum(0.0, y * shown.side - shown.height[first:last]) / height
    distance = np.abs(shown.mz[first:last] - x) / width + 0.2 * above - 0.02 * shown.height[first:last]
    peak = int(first + np.argmin(distance))
    return Picked(~peak if shown.is_below else peak)


def _error_reach(spectrum: AnnotatedSpectrum, unit: ErrorUnit) -> float:
    """Return the maximum mass error to show, in a unit."""
    tolerance = spectrum.settings.tolerance
    if tolerance.unit == unit:
        return max(tolerance.value, 1e-6)
    # In the other unit the tolerance depends on m/z, so use the maximum observed error.
    errors = np.abs(spectrum.matches.error_ppm if unit == "ppm" else spectrum.matches.error)
    return max(float(errors.max(initial=0.0)), 1e-4)


def draw_ladder(spectrum: AnnotatedSpectrum, left: float, top: float, width: float, font_size: float) -> list[Shape]:
    """Draw the peptide with marks of its matched fragments, centred in a width and scaled down if necessary.

    Marks that point left from a bond are N-terminal ions (a, b, c); marks that point right are C-terminal ions (x, y, z). The numbers are
    fragment numbers. The drawing is `LADDER_LINES` lines high.
    """
    sequence, line = spectrum.peptidoform.sequence, _LINE * font_size
    length = len(sequence)
    step = min(line * _WIDEST, (width - line) / max(length, 1))
    residue_size, middle = min(1.1 * line, 0.95 * step), top + 3.35 * line
    start, half = left + (width - step * length) / 2, 0.62 * residue_size
    changed = {min(max(position, 1), length) for position, _, _ in spectrum.peptidoform.modifications}
    shapes: list[Shape] = [
        Label(
            start + step * (index - 0.5),
            middle + 0.36 * residue_size,
            residue,
            "middle",
            "mark" if index in changed else "text",
            is_bold=True,
            size=residue_size / font_size,
        )
        for index, residue in enumerate(sequence, start=1)
    ]
    shapes += _modifications(spectrum, left, left + width, start, step, middle - half - 0.98 * line, font_size)
    small = 0.75 * font_size
    # Fragment numbers are omitted if they would overlap.
    every = 1 if step > 1.1 * text_width("00", small) else 5
    for symbols, side in (("acb", 1), ("xzy", -1)):
        # If several series break the same bond, the most common one (listed last) gives the colour.
        proven = {bond: symbol for symbol in symbols for bond in spectrum.bonds(symbol).tolist()}
        for bond, series in proven.items():
            x, foot = start + step * bond, middle + side * (half + 0.18 * line)
            pen = (Ion(series), 0.1 * line)
            shapes += [Stroke(x, middle, x, foot, *pen), Stroke(x, foot, x - side * 0.42 * step, foot, *pen)]
            number = bond if side == 1 else length - bond
            if number % every == 0:
                y = foot + (small if side == 1 else -0.3 * small)
                shapes.append(Label(x - side * 0.24 * step, y, str(number), "middle", Ion(series), size=small / font_size))
    return shapes


def _modifications(
    spectrum: AnnotatedSpectrum, left: float, right: float, start: float, step: float, bottom: float, font_size: float
) -> list[Shape]:
    """Draw the name of each modification above its residue in one of two lines; without space, draw its mass or nothing."""
    small = 0.75 * font_size
    shapes: list[Shape] = []
    ends = [left, left]
    for position, name, mass in spectrum.peptidoform.modifications:
        x = start + step * (min(max(position, 1), len(spectrum.peptidoform.sequence)) - 0.5)
        for text in (name, f"{mass:+.0f}"):
            width = text_width(text, small)
            begin = min(max(x - width / 2, left), right - width)
            level = next((line for line in (0, 1) if begin >= ends[line] + 3), None)
            if level is not None:
                y = bottom - level * _LINE * small
                shapes.append(Label(begin + width / 2, y - 0.25 * small, text, "middle", "mark", size=small / font_size))
                if level:
                    shapes.append(Stroke(x, y, x, bottom, "mark"))
                ends[level] = begin + width
                break
    return shapes
