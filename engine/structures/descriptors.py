"""Descriptors of the residues of a chain: codes in several alphabets, lengths and angles of the Cα trace, secondary structure.

The descriptors of Mrozek et al. (2014, J Mol Model 20:2067, equations 3 and 6) are the residue, its secondary structure, the length of the
vector to the next Cα, and the angle between this vector and the next. The other alphabets are specific to this program; their centres and
bounds are in `resources/structures/descriptors.json`, computed by `benchmarks/structure_tables.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels, resources
from proteoscope.engine.arrays import is_group_start, read_only
from proteoscope.engine.execution.resources import run_on_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.structures.chains import Chains
from proteoscope.kernels.device import Partition, equal_partitions
from proteoscope.kernels.structure_layouts import ANGLE_STEPS, BITS, StructureArrays

__all__ = ["ALPHABETS", "ANGLE_UNITS", "LENGTH_UNITS", "Alphabets", "Elements", "alphabets", "describe", "find_elements", "first_code"]

ALPHABETS = ("residue", "secondary", "conformation", "neighbour", "separation", "burial")
"""Alphabets whose codes form the word (integer) of a residue, five bits each, from the lowest bits upwards."""
_PAIRS_OF_PART = 5e7  # pairs of residues per partition, which take a thread a tenth of a second
LENGTH_UNITS = 512
"""Integer value of a length of 1 Å; lengths of 128 Å and more, and chain breaks, have the value of 128 Å."""
ANGLE_UNITS = (ANGLE_STEPS - 1) / np.pi
"""Integer value of an angle of 1 radian between two Cα vectors; angles are at most π."""


@dataclass(frozen=True)
class Alphabets:
    """Classes of conformation, neighbour, separation and burial (see `proteoscope.kernels.cpu.structure_descriptors`).

    Attributes
    ----------
    conformations : ndarray of float64, shape (k, 8)
        Centres of the classes of conformations.
    neighbours : ndarray of float64, shape (k, 10)
        Centres of the classes of the nearest neighbour.
    separations, burials : ndarray of int64
        Ascending bounds: the code of a value is the number of bounds below the value. `separations` contains bounds for neighbours before
        the residue, and bounds for neighbours after it.
    """

    conformations: NDArray[np.float64]
    neighbours: NDArray[np.float64]
    separations: NDArray[np.int64]
    burials: NDArray[np.int64]

    @classmethod
    def from_json(cls, content: Any) -> Alphabets:
        """Create alphabets from the parsed content of their JSON file."""
        return cls(
            np.array(content["conformations"], np.float64),
            np.array(content["neighbours"], np.float64),
            np.array(content["separations"], np.int64),
            np.array(content["burials"], np.int64),
        )


@lru_cache(maxsize=1)
def alphabets() -> Alphabets:
    """Return the alphabets that are shipped with the program."""
    return Alphabets.from_json(json.loads(resources.path("structures", "descriptors.json").read_text(encoding="utf-8")))


def first_code(alphabet: str) -> int:
    """Return the position of the lowest bit of an alphabet's code in the integer that stores all codes of a residue (`StructureArrays`)."""
    return BITS * ALPHABETS.index(alphabet)


@dataclass(frozen=True)
class Elements:
    """Secondary structure elements of n chains: segments of residues in the same state.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Elements of chain i are ``offsets[i]:offsets[i + 1]``.
    type : ndarray of uint8, shape (e,)
        State of each element: 0 coil, 1 helix, 2 strand.
    length : ndarray of int32, shape (e,)
        Number of residues of each element.
    """

    offsets: NDArray[np.int64]
    type: NDArray[np.uint8]
    length: NDArray[np.int32]


def find_elements(secondary: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Elements:
    """Return the secondary structure elements of chains.

    Parameters
    ----------
    secondary : ndarray of uint8, shape (r,)
        State of each residue, coded as in `Chains.secondary`.
    offsets : ndarray of int64, shape (n + 1,)
        Residues of chain i are ``offsets[i]:offsets[i + 1]``.

    Returns
    -------
    Elements
        Elements of the n chains.

    Examples
    --------
    >>> elements = find_elements(np.array([0, 0, 1, 1, 1, 1, 2], np.uint8), np.array([0, 4, 7]))
    >>> elements.offsets.tolist(), elements.type.tolist(), elements.length.tolist()
    ([0, 2, 4], [0, 1, 1, 2], [2, 2, 2, 1])
    """
    begins = is_group_start(secondary)
    begins[offsets[:-1][offsets[:-1] < len(secondary)]] = True
    positions = np.flatnonzero(begins)
    length = np.diff(np.append(positions, len(secondary))).astype(np.int32)
    return Elements(np.searchsorted(positions, offsets).astype(np.int64), secondary[positions], length)


def describe(chains: Chains, using: Alphabets | None = None, *, threads: int = 1, progress: Progress | None = None) -> StructureArrays:
    """Compute the descriptors of chains, as input of the alignment kernels.

    Parameters
    ----------
    chains : Chains
        Chains to describe.
    using : Alphabets, optional
        Alphabets; by default those shipped with the program.
    threads : int
        Number of threads.
    progress : Progress, optional
        Progress, which advances by one step per chain and is checked for cancellation.

    Returns
    -------
    StructureArrays
        Descriptors of the chains.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    using = using or alphabets()
    coding = kernels.cpu.structure_descriptors.Coding(
        using.conformations, using.neighbours, using.separations, using.burials, LENGTH_UNITS, ANGLE_UNITS
    )
    n = int(chains.offsets[-1])
    length, angle, states = np.zeros(n, np.uint16), np.zeros(n, np.uint16), np.zeros((4, n), np.uint8)
    # Columns of a database are memory-mapped.
    position, offsets = read_only(np.ascontiguousarray(chains.position)), read_only(chains.offsets)

    def work(part: Partition) -> None:
        kernels.cpu.structure_descriptors.describe_residues(position, offsets, part.first, part.last, coding, length, angle, states)

    # Each residue is compared with all other residues of its chain.
    parts = equal_partitions(chains.lengths.astype(np.float64) ** 2, threads, maximum_cost=_PAIRS_OF_PART)
    run_on_threads(work, parts, threads, progress or Progress(), steps=lambda part: part.last - part.first)
    state = np.zeros(n, np.uint32)
    for alphabet, codes in zip(ALPHABETS, (chains.residue, chains.secondary, *states), strict=True):
        state |= codes.astype(np.uint32) << np.uint32(first_code(alphabet))
    elements = find_elements(chains.secondary, chains.offsets)
    state, length, angle = read_only(state), read_only(length), read_only(angle)
    return StructureArrays(offsets, state, length, angle, elements.offsets, elements.type, elements.length)
