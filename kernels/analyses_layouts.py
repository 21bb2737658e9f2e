"""Benchmark problems of the ATGPU model, their costs in terms of the model, and the basic operations whose rates are measured.

The problems are those of Carroll's thesis (2018), section 4.4. Their cost is computed for the kernels of kernels/cuda/analyses.cu; tests
compare it with counts of the running kernels.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "BLOCK",
    "OPERATIONS",
    "PROBLEMS",
    "TILE",
    "TOGETHER",
    "Round",
    "Spent",
    "addition_rounds",
    "multiplication_rounds",
    "reduction_rounds",
    "scan_levels",
    "scan_rounds",
]

BLOCK, TILE = 256, 16
"""Number of threads of a block; side of the tiles of a matrix product."""
OPERATIONS = ("integer", "packed", "bytes", "float", "lookup", "atomic", "cached")
"""Basic operations whose rates `rate` measures, in the order of their numbers in analyses.cu.

They are a maximum of integer sums, the same for two sums in a word (DPX from compute capability 9.0 on), a selection of bytes, a fused
multiply-add, a read from shared memory, an addition in shared memory, and a read of a word of global memory that is in the cache of the
whole device.
"""
TOGETHER = 8
"""Number of independent operations of a thread per step of its loop."""
_WARP = 32
_TREE = 9  # levels of the binary tree over the 2 * BLOCK values of a block


class Round(NamedTuple):
    """Round of the ATGPU model: k thread `blocks`, each with t sequential `operations` per thread and m `shared_words` of shared memory.

    Attributes
    ----------
    memory_blocks
        Number q of memory blocks of 32 words that all thread blocks together read from or write to global memory.
    cached_blocks
        Number of these memory blocks that are already in the device's cache; the thesis does not distinguish them.
    words_in, words_out
        Words of 4 bytes that are copied from and to the host, in the given number of transfers.
    """

    blocks: int
    operations: float
    memory_blocks: float
    shared_words: int = 0
    words_in: int = 0
    words_out: int = 0
    transfers_in: int = 0
    transfers_out: int = 0
    cached_blocks: float = 0.0


class Spent(NamedTuple):
    """Measured seconds of a problem: transfer to the device, kernels, and transfer back. On the CPU only the kernels take time."""

    transfer_in: float
    kernel: float
    transfer_out: float

    @property
    def seconds(self) -> float:
        """Total seconds."""
        return self.transfer_in + self.kernel + self.transfer_out


def addition_rounds(n: int) -> tuple[Round, ...]:
    """Return the single round of adding two vectors of n words: 2 n words are transferred in, and n words out."""
    return (Round(-(-n // BLOCK), 1, 3 * n / _WARP, 0, 2 * n, n, 2, 1),)


def multiplication_rounds(n: int) -> tuple[Round, ...]:
    """Return the rounds of multiplying two n by n matrices: one round, with 2 n / TILE tiles read and one written per block.

    Concurrent blocks share tiles: only the first read of a tile is not from the cache.
    """
    tiles = -(-n // TILE)
    read = tiles * tiles * tiles * 2 * TILE * TILE / _WARP
    again = read - 2 * tiles * tiles * TILE * TILE / _WARP
    return (Round(tiles * tiles, tiles * TILE, read + n * n / _WARP, 2 * TILE * TILE, 2 * n * n, n * n, 2, 1, again),)


def scan_levels(n: int) -> list[int]:
    """Return the number of input values of each round (kernel launch) of a reduction or prefix scan.

    The first round has n values, each further round one value per block of the previous round. The last round has one block.
    """
    levels = [n]
    while levels[-1] > 2 * BLOCK:
        levels.append(-(-levels[-1] // (2 * BLOCK)))
    return levels


def reduction_rounds(n: int) -> tuple[Round, ...]:
    """Return the rounds of reducing n words to one word: log n / log 512 rounds; n words are transferred in, and one word out."""
    levels = scan_levels(n)
    result = [Round(-(-size // (2 * BLOCK)), 1 + _TREE, (size + -(-size // (2 * BLOCK))) / _WARP, BLOCK) for size in levels]
    result[0] = result[0]._replace(words_in=n, transfers_in=1)
    result[-1] = result[-1]._replace(words_out=1, transfers_out=1)
    return tuple(result)


def scan_rounds(n: int) -> tuple[Round, ...]:
    """Return the rounds of a prefix scan of n words: the levels of a reduction, then all but the last level in reverse order.

    n words are transferred in, and n words out.
    """
    levels = scan_levels(n)
    up = [Round(-(-size // (2 * BLOCK)), 2 + 2 * _TREE, 2 * size / _WARP, 2 * BLOCK) for size in levels]
    down = [Round(-(-size // (2 * BLOCK)), 2, 2 * size / _WARP) for size in reversed(levels[:-1])]
    result = [*up, *down]
    result[0] = result[0]._replace(words_in=n, transfers_in=1)
    result[-1] = result[-1]._replace(words_out=n, transfers_out=1)
    return tuple(result)


PROBLEMS = {
    "vector addition": ("add", addition_rounds),
    "matrix multiplication": ("multiply", multiplication_rounds),
    "reduction": ("reduce", reduction_rounds),
    "prefix scan": ("scan", scan_rounds),
}
"""Method of `Analyses`, and function that returns the rounds, of each problem; the size of a problem is the length of its vectors or the
side of its matrices."""
