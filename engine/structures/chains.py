"""Chains of protein structures as concatenated columns, with one row per residue.

::

    names      1a8o     1lcd:A    1lcd:B
    offsets    0        70        141       212
    position   x y z of Cα, one row for each residue
    ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ChainRow, Texts, segment_offsets, take_segments
from proteoscope.engine.sequences.matrices import SYMBOLS

__all__ = ["COIL", "FEWEST_RESIDUES", "HELIX", "NO_CHAINS", "RESIDUE_COLUMNS", "STATE_SYMBOLS", "STRAND", "Chains", "concatenated"]

COIL, HELIX, STRAND = 0, 1, 2
"""Codes of secondary structure in `Chains.secondary`."""
STATE_SYMBOLS = "CHE"
"""Symbols of the codes of secondary structure, in files and in the window."""
_SYMBOLS, _STATE_SYMBOLS = (np.frombuffer(alphabet.encode(), np.uint8) for alphabet in (SYMBOLS, STATE_SYMBOLS))
FEWEST_RESIDUES = 4
"""Minimum length of a chain in residues; a shorter chain does not have two angles between successive Cα vectors."""


@dataclass(frozen=True)
class Chains:
    """Protein chains (n) as columns; row i of all residue columns (r rows) describes the same residue.

    Attributes
    ----------
    names : tuple of str
        Name of each chain: file name without suffix, or ``NAME:CHAIN`` for a file with several chains; names may repeat.
    descriptions : tuple of str
        Name of the molecule or of the entry in the file; may be ''.
    offsets : ndarray of int64, shape (n + 1,)
        Residues of chain i are rows ``offsets[i]:offsets[i + 1]``.
    position : ndarray of float32, shape (r, 3)
        Coordinates of Cα in Å; residues without Cα are omitted.
    residue : ndarray of int8, shape (r,)
        Residue code, an index in `proteoscope.engine.sequences.matrices.SYMBOLS`; X for an unknown parent residue (MSE is M).
    secondary : ndarray of uint8, shape (r,)
        Secondary structure: 0 coil, 1 helix (DSSP's H, G, I), 2 strand (E, B).
    confidence : ndarray of float32, shape (r,)
        pLDDT of predicted structures (0 to 100), otherwise NaN.
    author_number, insertion : ndarray of int32 and of uint8, shape (r,)
        Author residue number, and insertion code in ASCII, 0 for none.
    label_number : ndarray of int32, shape (r,)
        Position in the sequence of the entity, from 1 (mmCIF's label_seq_id); counted if the file does not contain it.
    """

    names: tuple[str, ...]
    descriptions: tuple[str, ...]
    offsets: NDArray[np.int64]
    position: NDArray[np.float32]
    residue: NDArray[np.int8]
    secondary: NDArray[np.uint8]
    confidence: NDArray[np.float32]
    author_number: NDArray[np.int32]
    insertion: NDArray[np.uint8]
    label_number: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of residues of each chain, shape (n,)."""
        return np.diff(self.offsets)

    def unrated(self, minimum_plddt: float) -> str:
        """Return a message about chains without pLDDT, to which a minimum pLDDT cannot be applied; '' if all have pLDDT.

        Parameters
        ----------
        minimum_plddt : float
            Minimum pLDDT; 0 for no minimum.
        """
        if not (minimum_plddt > 0 and len(self)):
            return ""
        n = int((np.add.reduceat(~np.isnan(self.confidence), self.offsets[:-1]) == 0).sum()) if len(self.confidence) else len(self)
        some = "none of the chains has a" if n == len(self) else f"{n:,} of {len(self):,} chains have no"
        return f"Minimum pLDDT {minimum_plddt:g}: {some} pLDDT; all residues of these chains are used" if n else ""

    def rows(self, i: ChainRow) -> slice:
        """Return the rows of the residues of chain `i`."""
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))

    def sequence(self, i: ChainRow) -> str:
        """Return the sequence of chain `i`."""
        return _SYMBOLS[self.residue[self.rows(i)]].tobytes().decode()

    def alone(self, i: ChainRow) -> Chains:
        """Return a `Chains` object with only chain `i`, as views of the columns."""
        rows = self.rows(i)
        columns = {name: getattr(self, name)[rows] for name in RESIDUE_COLUMNS}
        return Chains(self.names[i : i + 1], self.descriptions[i : i + 1], self.offsets[i : i + 2] - self.offsets[i], **columns)

    def states(self, i: ChainRow) -> str:
        """Return the secondary structure of chain `i` as text, with one symbol per residue."""
        return _STATE_SYMBOLS[self.secondary[self.rows(i)]].tobytes().decode()

    def texts(self, order: NDArray[np.int64]) -> tuple[Texts, Texts]:
        """Return the sequences, and the secondary structures as symbols, of the chains with the given indices."""
        residues, offsets = take_segments(self.residue, self.offsets, order)
        return Texts(_SYMBOLS[residues], offsets), Texts(_STATE_SYMBOLS[take_segments(self.secondary, self.offsets, order)[0]], offsets)

    def taken(self, order: NDArray[np.int64] | Sequence[int]) -> Chains:
        """Return the chains with the given indices, in this order."""
        order = np.asarray(order, np.int64)
        offsets = segment_offsets(self.lengths[order])
        columns = {name: take_segments(getattr(self, name), self.offsets, order)[0] for name in RESIDUE_COLUMNS if name != "position"}
        position = np.empty((int(offsets[-1]), 3), np.float32)
        for axis in range(3):
            position[:, axis] = take_segments(self.position[:, axis], self.offsets, order)[0]
        return Chains(
            tuple(self.names[i] for i in order), tuple(self.descriptions[i] for i in order), offsets, position=position, **columns
        )


RESIDUE_COLUMNS = tuple(field.name for field in fields(Chains) if field.name not in ("names", "descriptions", "offsets"))
"""Names of the columns with one row per residue."""

NO_CHAINS = Chains(
    (),
    (),
    np.zeros(1, np.int64),
    np.empty((0, 3), np.float32),
    np.empty(0, np.int8),
    np.empty(0, np.uint8),
    np.empty(0, np.float32),
    np.empty(0, np.int32),
    np.empty(0, np.uint8),
    np.empty(0, np.int32),
)


def concatenated(parts: Sequence[Chains]) -> Chains:
    """Return the given chains, concatenated in order."""
    if not parts:
        return NO_CHAINS
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in RESIDUE_COLUMNS}
    return Chains(
        tuple(name for part in parts for name in part.names),
        tuple(text for part in parts for text in part.descriptions),
        segment_offsets(np.concatenate([part.lengths for part in parts])),
        **columns,
    )
