"""Prediction of spectral libraries for scripts."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

from proteoscope.engine import library_search
from proteoscope.engine.api.arguments import OnProgress, PathLike, one_path, progress_of
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.files import scratch_folder
from proteoscope.engine.searches import Files, check_threads, paths_of

if TYPE_CHECKING:
    from proteoscope.engine.library_search.prediction_parameters import PredictionParameters

__all__ = ["PredictedLibrary", "predict"]


class PredictedLibrary:
    """A predicted spectral library, which `proteoscope.library` and `proteoscope.read_spectra` accept instead of a file name.

    Attributes
    ----------
    path : Path
        File of the library.
    n_peptides, n_entries : int
        Numbers of peptides and of entries.
    """

    def __init__(self, path: Path, n_peptides: int, n_entries: int, stack: ExitStack) -> None:
        self.path, self.n_peptides, self.n_entries = path, n_peptides, n_entries
        self._finalizer = finalize(self, stack.close)

    def __fspath__(self) -> str:
        return str(self.path)

    def close(self) -> None:
        """Remove a temporary library."""
        self._finalizer()

    def __repr__(self) -> str:
        return f"PredictedLibrary({self.path.name}: {self.n_entries:,} entries of {self.n_peptides:,} peptides)"


def predict(
    proteins: Files,
    *,
    out: PathLike | None = None,
    format: str = "",
    parameters: PredictionParameters | None = None,
    threads: int | None = None,
    progress: OnProgress = None,
    **settings: Any,
) -> PredictedLibrary:
    """Predict a spectral library from proteins.

    Parameters
    ----------
    proteins : str, Path or iterable of these
        Protein sequences.
    out : str or Path, optional
        File of the library: ``.msp``, ``.mzspeclib.txt`` or ``.blib``; by default, an MSP file in the temporary folder of the system, which
        is removed when the result is no longer used or Python ends.
    format : str
        ``msp``, ``mzspeclib`` or ``blib``; by default the extension determines it.
    parameters : PredictionParameters, optional
        All parameters; by default, their default values.
    threads, progress, **settings
        See `identify`.

    Returns
    -------
    PredictedLibrary
        The file, and the numbers of peptides and entries.

    Raises
    ------
    ParameterError
        If an argument is wrong.
    InputError, StorageError
        If a file cannot be used, or the library cannot be written.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> proteoscope.predict(path("samples", "protein_queries.fasta"), missed_cleavages=0).n_entries > 100
    True
    """
    model = library_search.prediction_parameters.PredictionParameters
    if parameters is not None and not isinstance(parameters, model):
        raise ParameterError(f"parameters = {type(parameters).__name__}: predict takes {model.__name__}")
    check_threads(threads)
    chosen = (model() if parameters is None else parameters).changed(**settings)
    files = paths_of("proteins", proteins)
    with ExitStack() as stack:
        path = stack.enter_context(scratch_folder()) / "predicted.msp" if out is None else one_path("out", out)
        made = library_search.prediction.predict_library(files, path, chosen, progress_of(progress), format=format, threads=threads)
        return PredictedLibrary(path, made.n_peptides, made.n_entries, stack.pop_all())
