"""Conversion of spectrum files for scripts."""

from __future__ import annotations

from collections.abc import Iterable

from proteoscope.engine import matches
from proteoscope.engine.api.arguments import OnProgress, PathLike, number, one_path, progress_of
from proteoscope.engine.api.searching import ProjectLike, project_and_run
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.searches import Files, check_threads, paths_of
from proteoscope.engine.spectra.selection import SpectrumSelection

__all__ = ["convert"]

_HIGHEST = 1e9
Range = tuple[float, float]


def convert(
    spectra: Files,
    out: PathLike,
    *,
    format: str = "",
    charges: Iterable[int] | None = None,
    precursor_mass: Range | None = None,
    retention_time: Range | None = None,
    identified: ProjectLike | None = None,
    unidentified: ProjectLike | None = None,
    run: str = "",
    q_value: float = 0.01,
    strict: bool = False,
    threads: int | None = None,
    progress: OnProgress = None,
) -> int:
    """Write all or selected spectra in another format.

    Parameters
    ----------
    spectra : str, Path or iterable of these
        Spectrum files.
    out : str or Path
        File to write, gzipped if it ends with ``.gz``.
    format : str
        Name of the format; by default the extension of `out` determines it.
    charges : iterable of int, optional
        Only spectra of precursors with one of these charges.
    precursor_mass, retention_time : tuple of two floats, optional
        Only spectra in this range of neutral precursor masses (Da), or of retention times (s).
    identified, unidentified : str, Path, OpenProject or Result, optional
        Only spectra that were identified, or not identified, in this project.
    run : str
        Id of the identification; by default that of the given result, or the last identification of the project.
    q_value : float
        Maximum q-value of identified spectra.
    strict : bool
        True to refuse files with spectra that cannot be read, instead of leaving out these spectra.
    threads, progress
        See `identify`.

    Returns
    -------
    int
        Number of spectra that were written.

    Raises
    ------
    ParameterError
        If an argument is wrong, or no spectrum is selected.
    InputError, StorageError
        If a file cannot be used, or writing fails.

    Examples
    --------
    >>> import proteoscope, tempfile
    >>> from proteoscope.resources import path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     proteoscope.convert(path("samples", "BSA1.mzML.gz"), f"{folder}/some.mgf", charges=[2], precursor_mass=(900, 1500))
    468
    """
    if identified is not None and unidentified is not None:
        raise ParameterError("identified and unidentified are both given; give one of them")
    given = unidentified if identified is None else identified
    if given is None and run:
        raise ParameterError(f"run = {run!r:.100}: needs identified or unidentified, the project of the run")
    condition = None
    if given is not None:
        project, run = project_and_run(given, run, "unidentified" if identified is None else "identified")
        largest = float(number("q_value", q_value, 0, 1))
        condition = matches.conversion.IdentifiedIn(project.path, identified is not None, run, largest)
    check_threads(threads)
    selection = SpectrumSelection(
        None if charges is None else _charges(charges),
        None if precursor_mass is None else _range("precursor_mass", precursor_mass),
        None if retention_time is None else _range("retention_time", retention_time),
    )
    files, path = paths_of("spectra", spectra), one_path("out", out)
    request = matches.conversion.ConversionRequest(tuple(files), path, format, selection, condition, strict, threads)
    return matches.conversion.convert_spectra(request, progress_of(progress)).n_written


def _charges(given: object) -> tuple[int, ...]:
    several = [*given] if isinstance(given, Iterable) and not isinstance(given, str | bytes) else [given]
    if not several or not all(isinstance(charge, int) and not isinstance(charge, bool) and 1 <= charge <= 31 for charge in several):
        raise ParameterError(f"charges = {given!r:.100}: expected whole numbers from 1 to 31")
    return tuple(charge for charge in several if isinstance(charge, int))


def _range(name: str, given: object) -> Range:
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise ParameterError(f"{name} = {given!r:.100}: expected two numbers, the lowest and the highest")
    low, high = (float(number(name, value, 0, _HIGHEST)) for value in given)
    if low > high:
        raise ParameterError(f"{name} = {given!r:.100}: the lowest is above the highest")
    return low, high
