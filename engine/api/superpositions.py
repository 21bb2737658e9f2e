"""Superposition of two structures for scripts."""

from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine import structures
from proteoscope.engine.api.arguments import OnProgress, PathLike, choice, one_folder, one_path, progress_of
from proteoscope.engine.structures.reading import Models
from proteoscope.engine.structures.superposed_files import SuperposedFiles

__all__ = ["Superposition", "superpose"]


class Superposition:
    """Superposition of a target on a query; x' = R x + t moves the target onto the query.

    Attributes
    ----------
    query, target : str
        Names of the chains.
    tm_score_query, tm_score_target : float
        TM-scores normalised by the length of the query and of the target.
    rmsd : float
        RMSD of the aligned Cα atoms in Å.
    rotation : ndarray of float64, shape (3, 3)
        Rotation R.
    translation : ndarray of float64, shape (3,)
        Translation t in Å.
    pairs : ndarray of int32, shape (n, 2)
        Aligned residues of query and target, from 0.
    messages : tuple of str
        Warnings about the files.
    """

    def __init__(self, files: SuperposedFiles) -> None:
        aligned, result = files.aligned, files.aligned.superpositions
        self._files = files
        self.query, self.target = aligned.query.names[0], aligned.target.names[0]
        self.tm_score_query, self.tm_score_target = float(result.tm_score_query[0]), float(result.tm_score_target[0])
        self.rmsd = float(result.rmsd[0])
        self.rotation: NDArray[np.float64] = result.rotation[0]
        self.translation: NDArray[np.float64] = result.translation[0]
        self.pairs: NDArray[np.int32] = aligned.pairs
        self.messages = files.messages

    @property
    def sequences(self) -> tuple[str, str]:
        """Sequences of the query and of the target."""
        return self._files.aligned.sequences

    @property
    def cigar(self) -> str:
        """CIGAR of both chains: M for aligned residues, I for residues of the query only, D for residues of the target only."""
        query, target = self.sequences
        return structures.outputs.cigar(self.pairs, len(query), len(target))

    def write(self, folder: PathLike) -> list[Path]:
        """Write table, coordinates, alignment, and scripts for PyMOL and ChimeraX into a folder, created if missing; return the files.

        Raises
        ------
        StorageError
            If writing fails.
        """
        return self._files.write(one_path("folder", folder))

    def __repr__(self) -> str:
        return (
            f"Superposition({self.query}, {self.target}: TM-score {self.tm_score_query:.4f} by the query's length, "
            f"{self.tm_score_target:.4f} by the target's, RMSD {self.rmsd:.2f} Å of {len(self.pairs)} pairs)"
        )


def superpose(
    query: PathLike, target: PathLike, *, out: PathLike | None = None, models: Models = "first", progress: OnProgress = None
) -> Superposition:
    """Superpose a chain on another chain so that the TM-score is maximal.

    Parameters
    ----------
    query, target : str or Path
        Structure file, or ``FILE:CHAIN`` if the file has several chains; the target is moved onto the query.
    out : str or Path, optional
        Folder for table, coordinates, alignment and scripts; by default nothing is written.
    models : str
        Models to read from a file: ``first``, or ``all``, so that the chains of all models form one assembly.
    progress : callable or Progress, optional
        Receives each `ProgressEvent`.

    Returns
    -------
    Superposition
        Transformation, scores and aligned residues.

    Raises
    ------
    InputError
        If a file cannot be used, or has several chains.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> folds = path("samples", "folds.pdb.gz")
    >>> proteoscope.superpose(path("samples", "albumin_domain_3.pdb.gz"), f"{folds}:J")
    Superposition(albumin_domain_3, folds:J: TM-score 0.7030 by the query's length, 0.7363 by the target's, RMSD 3.08 Å of 179 pairs)
    """
    choice("models", models, get_args(Models))
    folder = None if out is None else one_folder("out", out)
    places = [str(one_path(name, given)) for name, given in (("query", query), ("target", target))]
    result = Superposition(structures.superposed_files.superpose_files(places[0], places[1], models, progress_of(progress)))
    if folder is not None:
        result.write(folder)
    return result
