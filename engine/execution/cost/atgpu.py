"""ATGPU(b, k, M, G): what rounds of a kernel with their transfers cost (Carroll's thesis, 2018, chapter 4; Carroll & Wong 2017).

A machine has k' multiprocessors of b cores, M words of shared memory in each and G words in all. A round sends words, runs k blocks,
fetches words, and is synchronised. With t operations of a block, q memory blocks and m words of shared memory of a block, rate gamma of
operations in a second, lambda operations for a memory block, alpha seconds for a transfer, beta for a word and sigma for a
synchronisation::

    (4.2)   sum over rounds of   I^ alpha + I beta + (ceil(k / (k' l)) t + lambda q) / gamma + O^ alpha + O beta + sigma
            with                 l = min(floor(M / m), H)

Some things differ from the thesis. Lambda is what a memory block costs
where the memory delivers as fast as it can, the whole device's q together, as the thesis sums q over all multiprocessors; a single access
that nobody waits beside costs more. Blocks that were read before come out of the device's cache, which the thesis does not know of and
which is faster: they cost a lambda of their own. A round that moves nothing is not waited for by the host: it costs a launch instead of
sigma. And what a transfer takes is no straight line (small ones stay in the host's caches, pages of large ones are new to the system):
where it was measured by size, that curve stands in the place of alpha and beta.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from proteoscope.kernels.analyses_layouts import Round

__all__ = ["Cost", "Machine", "occupancy", "serial_cost"]


TransferSeconds = Callable[[float, bool], float]
"""Seconds to transfer this number of bytes to or from the device."""


class Machine(NamedTuple):
    """ATGPU(b, k', M, G) with its costs.

    Attributes
    ----------
    cores
        B, of a multiprocessor.
    multiprocessors
        K'.
    shared_words
        M, of each.
    global_words
        G.
    resident_blocks
        H, the maximum that a multiprocessor holds.
    alpha_in, alpha_out
        Seconds that a transfer takes to begin.
    beta_in, beta_out
        Of a word of 4 bytes.
    sigma
        Of a synchronisation.
    launch
        Of a kernel that is not waited for.
    gamma
        Operations of a block in a second.
    lambda_
        Operations in the time of a memory block of 32 words.
    cached_lambda
        The same of one that the device's cache holds; None where nobody knows: lambda.
    """

    cores: int
    multiprocessors: int
    shared_words: int
    global_words: int
    resident_blocks: int
    alpha_in: float
    beta_in: float
    alpha_out: float
    beta_out: float
    sigma: float
    launch: float
    gamma: float
    lambda_: float
    cached_lambda: float | None = None


class Cost(NamedTuple):
    """Seconds of all rounds."""

    transfer_in: float
    kernel: float
    transfer_out: float
    synchronisation: float

    @property
    def seconds(self) -> float:
        """Sum of all parts."""
        return sum(self)

    @property
    def transfer_share(self) -> float:
        """The thesis's measure: what transfers take of the whole."""
        return (self.transfer_in + self.transfer_out) / self.seconds if self.seconds else 0.0


def occupancy(machine: Machine, shared_words: int) -> int:
    """l, blocks that a multiprocessor holds at a time, each with so many words of shared memory.

    Raises
    ------
    ValueError
        Not even one does: the algorithm cannot be run on this machine.
    """
    if shared_words > machine.shared_words:
        raise ValueError(f"a block wants {shared_words:,} words of shared memory; a multiprocessor has {machine.shared_words:,}")
    return min(machine.shared_words // shared_words if shared_words else machine.resident_blocks, machine.resident_blocks)


def serial_cost(machine: Machine, rounds: Sequence[Round], transfer: TransferSeconds | None = None) -> Cost:
    """Expression 4.2: blocks take turns, as many at a time as the machine holds. `transfer`: as it was measured by size.

    Raises
    ------
    ValueError
        The rounds need more shared or global memory than the machine has.
    """
    largest = max((one.words_in + one.words_out for one in rounds), default=0)
    if largest > machine.global_words:
        raise ValueError(f"a round needs {largest:,} words of global memory; the machine has {machine.global_words:,}")
    turns = [-(-one.blocks // (machine.multiprocessors * occupancy(machine, one.shared_words))) for one in rounds]

    def moved(transfers: int, words: int, is_inward: bool) -> float:
        if transfer is not None:
            return transfers * transfer(4.0 * words / transfers, is_inward) if transfers else 0.0
        alpha, beta = (machine.alpha_in, machine.beta_in) if is_inward else (machine.alpha_out, machine.beta_out)
        return transfers * alpha + words * beta

    def memory(one: Round) -> float:
        cached = machine.lambda_ if machine.cached_lambda is None else machine.cached_lambda
        return machine.lambda_ * (one.memory_blocks - one.cached_blocks) + cached * one.cached_blocks

    n_waited = sum(number == 0 or one.words_in > 0 for number, one in enumerate(rounds))
    return Cost(
        sum(moved(one.transfers_in, one.words_in, True) for one in rounds),
        sum((turn * one.operations + memory(one)) / machine.gamma for one, turn in zip(rounds, turns, strict=True)),
        sum(moved(one.transfers_out, one.words_out, False) for one in rounds),
        n_waited * machine.sigma + (len(rounds) - n_waited) * machine.launch,
    )
