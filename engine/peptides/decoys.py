"""How decoys are made of proteins, one of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels

__all__ = ["DECOY_METHODS", "DECOY_SEED", "decoys_of"]

DECOY_METHODS = ("reverse", "pseudo-reverse", "shuffle", "existing", "none")
DECOY_SEED = 20141


def decoys_of(
    residues: NDArray[np.uint8], offsets: NDArray[np.int64], method: str, cleaves: NDArray[np.bool_], *, with_origin: bool = False
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Residues of the decoys, at the same offsets, and where each stood in its target.

    Parameters
    ----------
    residues, offsets : (total,) uint8 and (n + 1,) int64, the targets. method : "reverse", "pseudo-reverse" or "shuffle".
    cleaves : (26, 26) bool, the enzyme's cuts (pseudo-reversal and shuffling keep the residues before them).
    with_origin : where each stood takes eight times the room of the residues, and has no elements without this.
    """
    decoys, origin = np.empty_like(residues), np.empty(len(residues) if with_origin else 0, np.int64)
    kernels.cpu.peptides.write_decoys(residues, offsets, DECOY_METHODS.index(method), cleaves, DECOY_SEED, decoys, origin)
    return decoys, origin
