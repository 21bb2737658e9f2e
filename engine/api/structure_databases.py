"""Databases of protein structures for scripts."""

from pathlib import Path
from typing import get_args

from proteoscope.engine import structures
from proteoscope.engine.api.arguments import OnProgress, PathLike, choice, number, one_path, progress_of
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.searches import Files, check_threads, paths_of
from proteoscope.engine.structures.reading import Models

__all__ = ["structure_database"]


def structure_database(
    files: Files,
    out: PathLike,
    *,
    minimum_plddt: float = 0.0,
    models: Models = "first",
    threads: int | None = None,
    progress: OnProgress = None,
) -> Path:
    """Build a database with exactly the chains of the given files, so that many searches need to read the files only once.

    Parameters
    ----------
    files : str, Path or iterable of these
        Structure files, folders or lists of files. Files that are already in the database are not read again.
    out : str or Path
        Folder of the database, created if missing; its ``skipped.tsv`` lists what was left out, with reasons.
    minimum_plddt : float
        Minimum pLDDT of residues of predicted structures, 0 to 100.
    models : str
        Models to read from a file: ``first``, or ``all``, so that the chains of all models form one assembly.
    threads : int, optional
        Number of processes that read files; by default one per CPU core.
    progress : callable or Progress, optional
        Receives each `ProgressEvent`.

    Returns
    -------
    Path
        Folder of the database, for `structures` and `evidence`.

    Raises
    ------
    InputError
        If no file has a protein chain, or if `out` has other contents.
    StorageError
        If writing fails.

    Examples
    --------
    >>> import proteoscope, tempfile
    >>> from proteoscope.resources import path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = proteoscope.structure_database(path("samples", "folds.pdb.gz"), f"{folder}/folds")
    ...     proteoscope.structures(path("samples", "albumin_domain_3.pdb.gz"), database).hits["target"][1].as_py()
    'folds:J'
    """
    paths, folder = paths_of("files", files), one_path("out", out)
    choice("models", models, get_args(Models))
    plddt = number("minimum_plddt", minimum_plddt, 0, 100)
    check_threads(threads)
    reports = progress_of(progress)
    compile_kernels(["superposition"], reports)
    structures.building.build_database(paths, folder, minimum_plddt=plddt, models=models, processes=threads, progress=reports)
    return folder
