"""Spectra for scripts: read, annotated with the ions of a peptide, and written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

from proteoscope.engine import api, formats, views
from proteoscope.engine.api.arguments import OnProgress, PathLike, number, one_path, progress_of
from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.chemistry.activation import activation_names, parse_activation
from proteoscope.engine.chemistry.peptidoforms import parse
from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.searches import Files, paths_of
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.views.annotation import LOSSES, AnnotatedSpectrum, AnnotationChoice, IonSettings, annotate_peptidoform
from proteoscope.engine.views.peaks import Peaks

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

__all__ = ["Spectrum", "SpectrumAnnotation", "SpectrumList", "annotate", "read_spectra"]

_MAXIMUM_CHARGE = 100


@dataclass(frozen=True, eq=False)
class Spectrum:
    """A spectrum with its precursor.

    Attributes
    ----------
    mz : ndarray of float64, shape (n,)
        m/z in thomson, ascending.
    intensity : ndarray of float64, shape (n,)
        Intensities.
    precursor_mz : float
        m/z of the precursor in thomson, NaN if unknown.
    charges : tuple of int
        Possible charges of the precursor; empty if unknown.
    retention_time : float
        Retention time in seconds, NaN if unknown.
    identifier : str
        Name of the spectrum in its file.
    activation : str
        Fragmentation method, such as ``HCD``; '' if unknown.
    """

    mz: NDArray[np.float64]
    intensity: NDArray[np.float64]
    precursor_mz: float = float("nan")
    charges: tuple[int, ...] = ()
    retention_time: float = float("nan")
    identifier: str = ""
    activation: str = ""

    @classmethod
    def from_peaks(cls, mz: ArrayLike, intensity: ArrayLike) -> Spectrum:
        """Return a spectrum of peaks in any order.

        Raises
        ------
        ParameterError
            If `mz` and `intensity` are not finite numbers of the same count.
        """
        try:
            x, y = np.asarray(mz, np.float64), np.asarray(intensity, np.float64)
        except (TypeError, ValueError):
            raise ParameterError("the peaks are not numbers; give m/z and intensities as two arrays") from None
        if x.ndim != 1 or x.shape != y.shape:
            raise ParameterError(f"the peaks have shapes {x.shape} and {y.shape}; give as many m/z as intensities")
        if not (np.isfinite(x) & np.isfinite(y) & (x > 0) & (y >= 0)).all():
            raise ParameterError("the peaks have a negative, infinite or missing value; leave these peaks out")
        order = np.argsort(x, kind="stable")
        return cls(x[order], y[order])

    def __len__(self) -> int:
        return len(self.mz)

    def __repr__(self) -> str:
        charges = " or ".join(f"{charge}+" for charge in self.charges)
        precursor = f"{self.precursor_mz:.4f} {charges}".strip()
        return f"Spectrum({self.identifier or 'without a name'}: {len(self)} peaks, precursor {precursor})"


class SpectrumList:
    """MS2 spectra of files, which `read_spectra` returns.

    Attributes
    ----------
    columns : Spectra
        All spectra as arrays.
    """

    def __init__(self, columns: Spectra, rows: Sequence[int] | None = None) -> None:
        self.columns, self._rows = columns, range(len(columns)) if rows is None else rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, number: int) -> Spectrum: ...

    @overload
    def __getitem__(self, number: slice) -> SpectrumList: ...

    def __getitem__(self, number: int | slice) -> Spectrum | SpectrumList:
        if isinstance(number, slice):
            return SpectrumList(self.columns, self._rows[number])
        row, of = SpectrumRow(self._rows[number]), self.columns
        mz, intensity = of.peaks(row)
        mask = int(of.charge_mask[row])
        return Spectrum(
            mz,
            intensity.astype(np.float64),
            float(of.precursor_mz[row]),
            tuple(charge for charge in range(1, 32) if mask >> charge & 1),
            float(of.retention_time[row]),
            of.identifier[row],
            activation_names(of.activation[row : row + 1])[0] or "",
        )

    def __iter__(self) -> Iterator[Spectrum]:
        return (self[number] for number in range(len(self)))

    def find(self, identifier: str) -> Spectrum:
        """Return the first spectrum with the given name.

        Raises
        ------
        ParameterError
            If there is no such spectrum.
        """
        names = self.columns.identifier
        row = next((number for number, row in enumerate(self._rows) if names[row] == identifier), None)
        if row is None:
            raise ParameterError(f"no spectrum is named {identifier!r:.100}; the first is named {names[0]!r:.100}")
        return self[row]

    def to_arrow(self) -> pa.Table:
        """Return a table of the spectra without their peaks."""
        of, rows = self.columns, np.asarray(self._rows, np.int64)
        return pa.table(
            {
                "spectrum_file": [of.file_names[file] for file in of.file[rows].tolist()],
                "spectrum_id": [of.identifier[row] for row in rows.tolist()],
                "scan": of.scan[rows],
                "retention_time": of.retention_time[rows],
                "precursor_mz": of.precursor_mz[rows],
                "n_peaks": np.diff(of.offsets)[rows],
            }
        )

    def write(self, path: PathLike, *, format: str = "", progress: OnProgress = None) -> Path:
        """Write the spectra to a file: ``.mgf``, ``.ms2`` or ``.mzML``.

        Parameters
        ----------
        path : str or Path
            File to write.
        format : str
            Name of the format; by default the extension determines it.
        progress : callable or Progress, optional
            Receives each `ProgressEvent`.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ParameterError
            If the format is unknown.
        StorageError
            If the file cannot be written.
        """
        out, rows = one_path("path", path), np.asarray(self._rows, np.int64)
        formats.writing.write_spectrum_file(out, self.columns, format=format, rows=rows, progress=progress_of(progress))
        return out

    def __repr__(self) -> str:
        return f"SpectrumList({len(self):,} spectra of {', '.join(self.columns.file_names)})"


def read_spectra(files: Files, *, strict: bool = False, threads: int | None = None, progress: OnProgress = None) -> SpectrumList:
    """Read the MS2 spectra of files.

    Parameters
    ----------
    files : str, Path or iterable of these
        Spectrum files in any format of the program, also gzipped.
    strict : bool
        True to refuse files with spectra that cannot be read; otherwise these spectra are left out, and a message reports their number.
    threads : int, optional
        Number of CPU threads; by default up to four.
    progress : callable or Progress, optional
        Receives each `ProgressEvent`.

    Returns
    -------
    SpectrumList
        Spectra in the order of the files.

    Raises
    ------
    InputError
        If a file cannot be used.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> spectra = proteoscope.read_spectra(path("samples", "BSA1.mzML.gz"))
    >>> len(spectra), spectra.find("spectrum=2861")
    (1120, Spectrum(spectrum=2861: 90 peaks, precursor 395.2390 2+))
    """
    paths = paths_of("files", files)
    return SpectrumList(formats.read_spectra(paths, strict=strict, threads=threads, progress=progress_of(progress)))


class SpectrumAnnotation:
    """A spectrum with the ions of a peptide; Jupyter shows its figure.

    Attributes
    ----------
    spectrum : AnnotatedSpectrum
        Peaks, expected ions and matches, as arrays.
    """

    def __init__(self, spectrum: AnnotatedSpectrum) -> None:
        self.spectrum = spectrum

    @property
    def peptide(self) -> str:
        """The peptide in ProForma, with the charge."""
        return str(self.spectrum.peptidoform)

    @property
    def explained(self) -> float:
        """Fraction of the intensity in matched peaks, 0 to 1."""
        return self.spectrum.explained

    @property
    def ions(self) -> pa.Table:
        """Matched peaks: m/z, intensity, ion, charge, and errors in Da and ppm."""
        of = self.spectrum
        peak, ion = of.matches.peak, of.matches.ion
        matches = pa.table(
            {
                "mz": of.peaks.mz[peak],
                "intensity": of.peaks.intensity[peak],
                "ion": of.labels,
                "charge": of.ions.charge[ion],
                "error": of.matches.error,
                "error_ppm": of.matches.error_ppm,
            }
        )
        return matches.sort_by("mz")

    def save(self, path: PathLike) -> Path:
        """Write the figure as ``.svg``, ``.pdf`` or ``.png``, and return the file.

        Raises
        ------
        StorageError
            If the extension is not one of these, or the file cannot be written.
        """
        out = one_path("path", path)
        views.figure_files.write_figure(out, views.figure_layout.lay_out(views.spectrum_figures.spectrum_figure(self.spectrum)))
        return out

    def plot(self, figure: MatplotlibFigure | None = None) -> MatplotlibFigure:
        """Draw the figure with matplotlib, which must be installed.

        Parameters
        ----------
        figure : matplotlib.figure.Figure, optional
            Figure to draw into; by default a new one.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, with one axes for the peaks and one for the m/z errors of the matches.

        Raises
        ------
        ProteoscopeError
            If matplotlib is not installed.
        """
        return api.plots.plot_figure(views.spectrum_figures.spectrum_figure(self.spectrum), figure)

    def __repr__(self) -> str:
        of = self.spectrum
        peaks = f"{len(of.matches)} of {len(of.peaks.mz)} peaks"
        return f"SpectrumAnnotation({of.peptidoform}: {peaks}, {of.explained * 100:.0f} % of the intensity)"

    def _repr_svg_(self) -> str:
        drawing = views.figure_layout.lay_out(views.spectrum_figures.spectrum_figure(self.spectrum))
        return views.drawings.svg(drawing).decode()


def annotate(
    spectrum: Spectrum | tuple[ArrayLike, ArrayLike],
    peptide: str,
    *,
    tolerance: str = "20 ppm",
    series: str = BY_ACTIVATION,
    maximum_charge: int = 2,
    losses: Sequence[str] = LOSSES,
    precursor: bool = True,
    immonium: bool = False,
    minimum_label: float = 0.0,
) -> SpectrumAnnotation:
    """Annotate a spectrum with the ions of a peptide.

    Parameters
    ----------
    spectrum : Spectrum, or tuple of m/z and intensities
        Spectrum of `read_spectra`, or arrays of its peaks.
    peptide : str
        Peptide in ProForma with its charge, such as ``PEPTIDEK/2`` or ``PEPT[Phospho]IDEK/3``; without it, the charge of the spectrum is
        used.
    tolerance : str
        Fragment tolerance, such as ``20 ppm`` or ``0.5 Da``.
    series : str
        Ion series: characters of ``abcxyz``, such as ``by``; or ``activation`` for the series of the fragmentation method.
    maximum_charge : int
        Maximum charge of fragments, which is always below that of the precursor.
    losses : sequence of str
        Neutral losses: some of ``H2O``, ``NH3`` and ``of modifications``.
    precursor, immonium : bool
        True to annotate the precursor, and immonium ions.
    minimum_label : float
        Minimum height of a labelled peak, in percent of the highest peak.

    Returns
    -------
    SpectrumAnnotation
        The matched ions; `SpectrumAnnotation.plot` draws them.

    Raises
    ------
    ParameterError
        If an argument is wrong.

    Examples
    --------
    >>> import proteoscope
    >>> annotation = proteoscope.annotate(([148.0604, 263.0874, 376.1714], [10, 30, 20]), "PEPTIDE/2")
    >>> annotation.ions["ion"].to_pylist()
    ['y1', 'y2', 'y3']
    """
    if isinstance(spectrum, tuple) and len(spectrum) == 2:
        spectrum = Spectrum.from_peaks(*spectrum)
    if not isinstance(spectrum, Spectrum):
        raise ParameterError(f"spectrum = {type(spectrum).__name__}: expected a Spectrum, or a tuple of m/z and intensities")
    if not isinstance(peptide, str):
        raise ParameterError(f"peptide = {peptide!r:.100}: expected ProForma, as PEPTIDEK/2")
    peptidoform = parse(peptide)
    charge = peptidoform.charge or (spectrum.charges[0] if len(spectrum.charges) == 1 else None)
    if charge is None:
        raise ParameterError(f"peptide = {peptide!r:.100}: has no charge; write {peptide:.80}/2 for two protons")
    if not isinstance(maximum_charge, int) or isinstance(maximum_charge, bool):
        raise ParameterError(f"maximum_charge = {maximum_charge!r:.100}: expected a whole number")
    most = int(number("maximum_charge", maximum_charge, 1, _MAXIMUM_CHARGE))
    settings = _choice(
        series="" if series == BY_ACTIVATION else series,
        losses=[losses] if isinstance(losses, str) else losses,
        tolerance=tolerance,
        shows_precursor=precursor,
        shows_immonium=immonium,
        least_labelled=minimum_label,
    ).settings(IonSettings(Tolerance(0.0, "ppm"), BY_ACTIVATION, most))
    peaks = Peaks(spectrum.mz, spectrum.intensity, parse_activation(spectrum.activation))
    form = replace(peptidoform, charge=charge)
    return SpectrumAnnotation(annotate_peptidoform(form, spectrum.precursor_mz, peaks, settings, spectrum.identifier))


_ARGUMENTS = {"shows_precursor": "precursor", "shows_immonium": "immonium", "least_labelled": "minimum_label"}


def _choice(**values: Any) -> AnnotationChoice:
    """Return the settings of `annotate` that select ions, after validation.

    Raises
    ------
    ParameterError
        If a value is wrong.
    """
    try:
        return AnnotationChoice(**values)
    except ValidationError as error:
        detail = error.errors()[0]
        name, message = str(detail["loc"][0]), str(detail["msg"]).removeprefix("Value error, ")
        raise ParameterError(f"{_ARGUMENTS.get(name, name)} = {values[name]!r:.100}: {message[:1].lower()}{message[1:]}") from None
