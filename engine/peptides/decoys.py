"""Generate one decoy per protein."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels

__all__ = ["DECOY_METHODS", "DECOY_SEED", "make_decoys"]

DECOY_METHODS = ("reverse", "pseudo-reverse", "shuffle", "existing", "none")
DECOY_SEED = 20141


def make_decoys(
    residues: NDArray[np.uint8], offsets: NDArray[np.int64], method: str, cleaves: NDArray[np.bool_], *, with_origin: bool = False
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the residues of the decoys, at the offsets of their targets, and their original positions.

    Parameters
    ----------
    residues : ndarray of uint8, shape (total,)
        Targets.
    offsets : ndarray of int64, shape (n + 1,)
    method : str
        ``reverse``, ``pseudo-reverse`` or ``shuffle``.
    cleaves : ndarray of bool, shape (26, 26)
        Bonds that the enzyme cuts; pseudo-reversal and shuffling retain the residues before them.
    with_origin : bool
        Return the original positions, which take eight times the memory of the residues; otherwise they are empty.

    Returns
    -------
    decoys : ndarray of uint8, shape (total,)
    origin : ndarray of int64, shape (total,) or (0,)
        Position of each residue in the targets.
    """
    decoys, origin = np.empty_like(residues), np.empty(len(residues) if with_origin else 0, np.int64)
    kernels.cpu.peptides.write_decoys(residues, offsets, DECOY_METHODS.index(method), cleaves, DECOY_SEED, decoys, origin)
    return decoys, origin
