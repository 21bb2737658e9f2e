"""Prediction of a spectral library from proteins, in several parts, with the steps read, index and predict."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.threads import available_threads
from proteoscope.engine.files import storage_errors, temporary_folder
from proteoscope.engine.formats.libraries.writing import library_format, write_library
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.library_search.prediction import PredictedLibrary
from proteoscope.engine.library_search.prediction_parameters import PredictionParameters
from proteoscope.engine.peptides.indexes import Databases, build_indexes
from proteoscope.engine.project.outputs import check_outputs, refuse_packed
from proteoscope.engine.spectra.library_entries import LibraryEntries

__all__ = ["LIMITS", "Prediction", "predict_library"]

LIMITS = (
    "Intensities are those of b and y ions in beam-type collisions (HCD) of tryptic peptides, whatever the collision energy; a modified "
    "residue is predicted as the residue without it, with its mass. Not predicted are neutral losses and retention times; ion traps break "
    "peptides otherwise."
)
"""Limitations of predicted spectra, shown to users."""


class Prediction(NamedTuple):
    """Path of a written library, and the numbers of its peptides and entries."""

    out: Path
    n_peptides: int
    n_entries: int


def predict_library(
    proteins: Sequence[str | Path],
    out: str | Path,
    parameters: PredictionParameters | None = None,
    progress: Progress | None = None,
    *,
    format: str = "",
    threads: int | None = None,
) -> Prediction:
    """Predict the spectra of the peptides of proteins, and write them as a library, which appears only when complete.

    Parameters
    ----------
    proteins : sequence of str or Path
        Protein files.
    out : str or Path
        Path of the library.
    parameters : PredictionParameters, optional
        Parameters of the prediction.
    progress : Progress, optional
        Progress of the prediction.
    format : str
        ``msp``, ``mzspeclib`` or ``blib``; '' selects the format by the suffix of `out`.
    threads : int, optional
        Number of CPU threads; None for all.

    Returns
    -------
    Prediction
        Path of the library and its numbers of peptides and entries.

    Raises
    ------
    ParameterError
        If the format is unknown.
    InputError
        If a file has no proteins, or no peptide is within the limits.
    StorageError
        If the library cannot be written.
    Cancelled
        If the user cancels.
    """
    parameters, progress, path = parameters or PredictionParameters(), progress or Progress(), Path(out)
    files = [Path(protein) for protein in proteins]
    chosen = library_format(format or path.name)
    if chosen == "blib":
        refuse_packed(path, chosen)
    check_outputs([path], files, None)
    compile_kernels(["predict"], progress)
    resources = Resources(threads or available_threads(), progress=progress)
    with ExitStack() as stack:
        with storage_errors(path):
            index = stack.enter_context(temporary_folder(path))
        indexes = build_indexes(Databases(files, [], {}), index, parameters, resources)
        library, written = PredictedLibrary(indexes, parameters, resources), 0

        def counted() -> Iterator[LibraryEntries]:
            nonlocal written
            for chunk in library.batches():
                written += len(chunk)
                yield chunk
            if not written:
                raise InputError(files[0], "none of its peptides has an m/z within the limits", remedy="Check limits and charges")

        total = (parameters.maximum_charge - parameters.minimum_charge + 1) * library.n_forms
        write_library(path, counted(), chosen, progress, total=total, threads=resources.threads)
        progress.message(LIMITS)
        return Prediction(path, library.n_peptides, written)
