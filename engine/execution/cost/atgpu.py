"""Cost model ATGPU(b, k', M, G): time of the rounds of a kernel with transfers (Carroll's thesis, 2018, chapter 4; Carroll & Wong 2017).

A machine has k' multiprocessors of b cores, M words of shared memory per multiprocessor, and G words of global memory. A round sends I
words in I^ transfers, runs k blocks, fetches O words in O^ transfers, and is synchronised. A block executes t operations and uses m words
of shared memory; all blocks together access q memory blocks. A multiprocessor holds at most H blocks. A block executes gamma operations per
second. Accessing a memory block costs lambda operations, a transfer alpha seconds and beta seconds per word, and a synchronisation sigma
seconds::

    (4.2)   sum over rounds of   I^ alpha + I beta + (ceil(k / (k' l)) t + lambda q) / gamma + O^ alpha + O beta + sigma
            with                 l = min(floor(M / m), H)

The implementation differs from the thesis in four points:

- Lambda is the cost of a memory block at full bandwidth, since the thesis sums q over all multiprocessors, and q thus counts the accesses
of the whole device. The latency of a single access is longer.
- Memory blocks that were read before come from the device's cache, which the thesis does not model. They have a separate, lower lambda.
- The host waits for a round only if it transfers data or is the first; otherwise the round costs a launch instead of sigma.
- The time of a transfer is not linear in its size: small transfers stay in the host's caches, and large ones use new memory pages. A
  measured curve of seconds by size replaces alpha and beta if there is one.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from proteoscope.kernels.analyses_layouts import Round

__all__ = ["Cost", "Machine", "occupancy", "serial_cost"]


TransferSeconds = Callable[[float, bool], float]
"""Function that returns the seconds of a transfer, given the number of bytes and True for transfers to the device."""


class Machine(NamedTuple):
    """Parameters of the model ATGPU(b, k', M, G), with costs.

    Attributes
    ----------
    cores
        Cores of a multiprocessor, b.
    multiprocessors
        Number of multiprocessors, k'.
    shared_words
        Words of shared memory of a multiprocessor, M.
    global_words
        Words of global memory, G.
    resident_blocks
        Maximum number of blocks on a multiprocessor, H.
    alpha_in, alpha_out
        Seconds to start a transfer to and from the device.
    beta_in, beta_out
        Seconds to transfer a word of 4 bytes.
    sigma
        Seconds of a synchronisation.
    launch
        Seconds to launch a kernel without waiting for it.
    gamma
        Operations of a block per second if each multiprocessor holds its maximum number of blocks.
    lambda_
        Time of accessing a memory block of 32 words, as the number of operations that a block executes in this time.
    cached_lambda
        The same for a memory block in the cache; None to use `lambda_`.
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
    """Predicted time in seconds, summed over all rounds.

    Attributes
    ----------
    transfer_in, transfer_out
        Transfers to and from the device.
    kernel
        Kernels: operations, and accesses to memory blocks.
    synchronisation
        Synchronisations, and launches for which the host does not wait.
    """

    transfer_in: float
    kernel: float
    transfer_out: float
    synchronisation: float

    @property
    def seconds(self) -> float:
        """Sum of all components, seconds."""
        return sum(self)

    @property
    def transfer_share(self) -> float:
        """Fraction of the total time in transfers, the criterion of the thesis."""
        return (self.transfer_in + self.transfer_out) / self.seconds if self.seconds else 0.0


def occupancy(machine: Machine, shared_words: int) -> int:
    """Return the number l of blocks that a multiprocessor holds at the same time.

    Parameters
    ----------
    machine : Machine
        Parameters of the device.
    shared_words : int
        Words of shared memory per block.

    Raises
    ------
    ValueError
        If a block needs more shared memory than a multiprocessor has.
    """
    if shared_words > machine.shared_words:
        raise ValueError(f"a block needs {shared_words:,} words of shared memory; a multiprocessor has {machine.shared_words:,}")
    return min(machine.shared_words // shared_words if shared_words else machine.resident_blocks, machine.resident_blocks)


def serial_cost(machine: Machine, rounds: Sequence[Round], transfer: TransferSeconds | None = None) -> Cost:
    """Return the cost by expression 4.2: blocks run in successive groups, each of as many blocks as the machine holds.

    Parameters
    ----------
    machine : Machine
        Parameters of the device.
    rounds : sequence of Round
        Rounds of the kernel.
    transfer : callable, optional
        Measured seconds of a transfer by size and direction, which replace alpha and beta.

    Raises
    ------
    ValueError
        If the rounds need more shared or global memory than the machine has.
    """
    largest = max((round_.words_in + round_.words_out for round_ in rounds), default=0)
    if largest > machine.global_words:
        raise ValueError(f"a round needs {largest:,} words of global memory; the machine has {machine.global_words:,}")
    turns = [-(-round_.blocks // (machine.multiprocessors * occupancy(machine, round_.shared_words))) for round_ in rounds]

    def moved(transfers: int, words: int, is_inward: bool) -> float:
        if transfer is not None:
            return transfers * transfer(4.0 * words / transfers, is_inward) if transfers else 0.0
        alpha, beta = (machine.alpha_in, machine.beta_in) if is_inward else (machine.alpha_out, machine.beta_out)
        return transfers * alpha + words * beta

    def memory(round_: Round) -> float:
        cached = machine.lambda_ if machine.cached_lambda is None else machine.cached_lambda
        return machine.lambda_ * (round_.memory_blocks - round_.cached_blocks) + cached * round_.cached_blocks

    n_waited = sum(number == 0 or round_.words_in > 0 for number, round_ in enumerate(rounds))
    return Cost(
        sum(moved(round_.transfers_in, round_.words_in, True) for round_ in rounds),
        sum((turn * round_.operations + memory(round_)) / machine.gamma for round_, turn in zip(rounds, turns, strict=True)),
        sum(moved(round_.transfers_out, round_.words_out, False) for round_ in rounds),
        n_waited * machine.sigma + (len(rounds) - n_waited) * machine.launch,
    )
