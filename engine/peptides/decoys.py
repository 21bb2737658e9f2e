"""Decoys of proteins by reversal or shuffling of their residues."""

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels

__all__ = ["DECOY_METHODS", "DECOY_SEED", "make_decoys"]

DECOY_METHODS = ("reverse", "pseudo-reverse", "shuffle", "existing", "none")
DECOY_SEED = 20141


def make_decoys(
    residues: NDArray[np.uint8], offsets: NDArray[np.int64], method: str, cleaves: NDArray[np.bool_], *, with_origin: bool = False
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the residues of decoys, which have the same offsets as their targets.

    Parameters
    ----------
    residues : ndarray of uint8, shape (total,)
        Residues of the targets.
    offsets : ndarray of int64, shape (n + 1,)
        Target i is ``residues[offsets[i]:offsets[i + 1]]``.
    method : str
        ``reverse``, ``pseudo-reverse`` or ``shuffle``.
    cleaves : ndarray of bool, shape (26, 26)
        True for bonds that the enzyme cuts, by the residues before and after the bond; pseudo-reversal and shuffling do not move the
        residues before such bonds.
    with_origin : bool
        True to return the original positions, which take eight times the memory of the residues.

    Returns
    -------
    decoys : ndarray of uint8, shape (total,)
        Residues of the decoys.
    origin : ndarray of int64, shape (total,) or (0,)
        Position of each decoy residue in `residues`; empty without `with_origin`.
    """
    decoys, origin = np.empty_like(residues), np.empty(len(residues) if with_origin else 0, np.int64)
    kernels.cpu.peptides.write_decoys(residues, offsets, DECOY_METHODS.index(method), cleaves, DECOY_SEED, decoys, origin)
    return decoys, origin
