"""Work, counted from the size of its input before it is done.

The counts are those of the ATGPU model (Koike & Sadakane 2014) for a card, and the same for the processor, whose rounds are calls of
kernels. What they are for: planning, sizes of batches, and how work is shared out.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Work"]


class Work(NamedTuple):
    """rounds : launches, or calls of a kernel. operations : what the work is made of, such as cells. memory_blocks : read from the device's
    memory or written to it. words_in, words_out : of four bytes, brought to the device and back. shared_bytes : of a block, at most.
    """

    rounds: int
    operations: int
    memory_blocks: int
    words_in: int
    words_out: int
    shared_bytes: int
