"""Numbers of operations of a search, computed from the size of its input.

`OperationCounts` are the operations of a GPU in terms of the ATGPU model (Carroll & Wong 2017, "An improved abstract GPU model with data
transfer"); tests compare them with counts of running kernels. The other functions return nanoseconds of one CPU thread. With these the
engine chooses between scoring every candidate and searching a fragment-ion index, and divides the queries. The choice changes the last
digits of results; therefore the constants are fixed here and not measured on each machine. Only their ratios matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.layouts import PEPTIDOFORMS_OF_CHUNK

__all__ = [
    "CANDIDATES_OF_PARTITION",
    "COST_OF_QUERY",
    "CROWDING",
    "NANOSECONDS_OF_PARTITION",
    "TIMES_LONGER",
    "OperationCounts",
    "covered_share",
    "digest_count",
    "exhaustive_search",
    "fragment_index_building",
    "fragment_index_search",
    "index_building",
    "index_search",
    "scoring_costs",
    "spectrum_search",
    "spectrum_search_bytes",
    "total",
]

COST_OF_QUERY = 50
"""Cost of a query, for the bit table of its peaks, as a number of candidates."""
CANDIDATES_OF_PARTITION = 300_000
"""Number of candidates that one thread scores in about a tenth of a second, the interval of progress."""
NANOSECONDS_OF_PARTITION = 1e8
TIMES_LONGER = 2.0
"""Minimum ratio of the times of exhaustive scoring and of index search at which an index is built.

An index needs memory and CPU time; in this time a GPU would have scored all candidates of a narrow window.
"""
CROWDING = 20.0
"""Ratio of the density of ions at peaks to their mean density.

Peaks are in a tenth of each dalton, and at the few masses of the smallest fragments.
"""

# Nanoseconds of one thread, measured on one core of an EPYC 9005 with benchmarks/open_search.py. Only their ratios matter.
_PER_ION = 6.0  # scoring every candidate: one look-up of an ion in the bit table of peaks
_PER_LISTED = 220.0  # building: counting and listing a peptide with a combination of modifications
_PER_POSTING = 35.0  # building: a posting (fragment ion)
_PER_FORM = 100.0  # building: a form
_PER_PAIR = 4000.0  # searching a chunk for a query: looking up segments, clearing counters
_PER_VISIT = 0.7
_PER_RANK = 0.8  # computing the score of a form from its counter
_MASS_OF_A_LOOKUP = 800.0  # Da: mass at which scoring a candidate costs as much as finding it, on an H200
_TYPICAL_FRAGMENT = 600.0  # thomson

_WORD, _BLOCK = 4, 32  # bytes
_POINTERS = 25  # number of pointers in the struct Inputs of search.cuh


# ------------------------------------------------------------------------------------------------------------ of a CPU's threads


def exhaustive_search(candidates: NDArray[np.integer], charges: NDArray[np.integer], ions: float) -> float:
    """Return the nanoseconds of scoring all candidates of q queries.

    `candidates` (q,) and `charges` (q,) are the numbers of candidates and of fragment charges of each query, `ions` is the mean number of
    ions of a candidate per charge.
    """
    return _PER_ION * float((candidates * charges).sum()) * ions


def fragment_index_building(listed: float, forms: float, postings: float) -> float:
    """Return the nanoseconds of building an index of `forms` peptidoforms and `postings` ions.

    `listed` is the number of (peptide, modification combination) pairs that are enumerated.
    """
    return _PER_LISTED * listed + _PER_POSTING * postings + _PER_FORM * forms


def fragment_index_search(
    forms: NDArray[np.integer], ions: float, charges: NDArray[np.integer] | int, covered: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the nanoseconds of searching each query in a fragment-ion index, (q,).

    `forms` (q,) is the number of peptidoforms in the windows of each query, `ions` the mean number of ions of a peptidoform per charge,
    `charges` (q,) the number of fragment charges, and `covered` (q,) the fraction of the ions of a charge within the tolerance of a peak.
    """
    chunks = forms / PEPTIDOFORMS_OF_CHUNK + 1.0
    visits = chunks * PEPTIDOFORMS_OF_CHUNK * ions * charges * covered
    return chunks * _PER_PAIR + visits * _PER_VISIT + forms * _PER_RANK


def covered_share(
    peaks: NDArray[np.integer], mass: NDArray[np.float64], fragment_absolute: float, fragment_relative: float
) -> NDArray[np.float64]:
    """Return an estimate of the fraction of each query's m/z range that is within the tolerance of a peak.

    `peaks` and `mass` are the number of peaks and the mass (dalton) of each query.
    """
    reach = min(1.0, CROWDING * 2.0 * (fragment_absolute + fragment_relative * _TYPICAL_FRAGMENT))
    return np.minimum(1.0, peaks * reach / np.maximum(mass, 100.0))


def scoring_costs(candidates: NDArray[np.integer], mass: NDArray[np.float64], *, is_modified: bool) -> NDArray[np.float64]:
    """Return the relative costs of queries in exhaustive scoring, (q,).

    The cost of a candidate is one look-up plus its ions. The number of ions is proportional to the mass or, if `is_modified`, to the
    squared mass, because the number of modified forms increases with the mass too.
    """
    return (candidates + COST_OF_QUERY) * (1.0 + (mass / _MASS_OF_A_LOOKUP) ** (2 if is_modified else 1))


# ----------------------------------------------------------------------------------------------------------------------- of a GPU


class OperationCounts(NamedTuple):
    """Numbers of operations of a GPU.

    Attributes
    ----------
    rounds
        Number of batches.
    operations
        Number of innermost steps of all threads, as defined by each function.
    memory_blocks
        Estimated number of blocks of 32 bytes that are read or written in global memory.
    words_in, words_out
        Number of words of 4 bytes copied from and to the host.
    transfers
        Number of copies; 0 if too few to matter.
    shared_bytes
        Maximum dynamic shared memory of a block, bytes.
    """

    rounds: int
    operations: int
    memory_blocks: int
    words_in: int
    words_out: int
    shared_bytes: int
    transfers: int = 0


def total(*works: OperationCounts) -> OperationCounts:
    """Return the sum of the operations of successive steps."""
    sums = (sum(values) for values in zip(*works, strict=True))
    return OperationCounts(*sums)._replace(shared_bytes=max(work.shared_bytes for work in works))


def spectrum_search(
    *,
    queries: int,
    peaks: int,
    items: int,
    candidates: int,
    ions: int,
    hits: int,
    slots: int,
    bins: int,
    windows: int,
    with_heights: bool,
    shared_bytes: int,
    rounds: int = 1,
) -> OperationCounts:
    """Return the operations of searching queries one by one among peptides on a GPU (see `proteoscope.kernels.cuda.scoring`).

    Parameters
    ----------
    items
        Number of thread blocks.
    candidates
        Number of candidates in all mass windows.
    ions
        Number of ions of all peptidoforms of the candidates, (length - 1) x series x charges each; a look-up in the bit table is one
        operation.
    hits, slots, bins
        Maximum number of hits per query, of modifications per hit, and number of bins of the histogram of scores per query.
    windows
        Number of combinations of modifications and isotope errors.
    with_heights
        True if the peaks have heights, for XCorr.
    rounds
        Number of batches.
    """
    out = queries * (hits * (13 + 2 * slots) + 8 + 4 * bins)
    return OperationCounts(
        rounds,
        ions,
        candidates + 22 * windows * items + (12 * peaks + out) // _BLOCK,
        5 * queries + (4 if with_heights else 3) * peaks + 2 * items + rounds * (2 + 2 * _POINTERS),
        -(-out // _WORD),
        shared_bytes,
        rounds * (16 + with_heights),
    )


def spectrum_search_bytes(
    peaks: NDArray[np.int64], items: NDArray[np.int64], *, hits: int, slots: int, bins: int, candidate_bytes: int, with_heights: bool
) -> NDArray[np.int64]:
    """Return the bytes of device memory that each query needs in a batch, (q,): input, output, and the best hits of each block."""
    of_query = 40 + 4 * bins + hits * (13 + 2 * slots)
    return peaks * (16 if with_heights else 12) + items * (8 + hits * candidate_bytes) + of_query


def index_building(*, forms: int, ions: int, slots: int, chunks: int) -> OperationCounts:
    """Return the operations of building a fragment-ion index or a section of it; the unit is one ion."""
    in_bytes = 8 * forms + 2 * slots * forms + 16 * (chunks + 1)
    return OperationCounts(1, 2 * ions, 2 * ions + in_bytes // _BLOCK, -(-in_bytes // _WORD), 0, 0, 4 if slots else 2)


def index_search(
    *,
    queries: int,
    segments: int,
    windows: int,
    pairs: int,
    forms_of_chunk: int,
    visits: int,
    hits: int,
    bins: int,
    scores: int,
    shared_bytes: int,
    rounds: int = 1,
) -> OperationCounts:
    """Return the operations of searching queries in an index on a GPU (see `proteoscope.kernels.cuda.fragment_index`).

    Each visit of a posting, and each read of a counter, is an operation.

    Parameters
    ----------
    segments
        Number of key ranges of all queries.
    windows
        Number of precursor windows per query.
    pairs
        Number of pairs of a query and a chunk.
    visits
        Number of postings in the key ranges.
    scores
        Number of entries of both arrays of `proteoscope.kernels.layouts.ScoreTables`.
    """
    in_bytes = 4 * (queries + 1) + 10 * segments + 8 * windows * queries + 4 * scores + 12 * hits * queries + 16 * pairs
    out_words = queries * (3 * hits + bins)
    blocks = visits * _WORD // _BLOCK + 2 * segments + pairs * bins
    return OperationCounts(rounds, visits + pairs * forms_of_chunk, blocks, -(-in_bytes // _WORD), out_words, shared_bytes, 9 + rounds + 3)


def digest_count(*, residues: int, proteins: int, shares: int, buckets: int, looked_at: int, rounds: int = 1) -> OperationCounts:
    """Return the operations of counting the peptides of a digest; the unit is one residue that is added to a peptide.

    Parameters
    ----------
    shares, buckets
        Number of ranges of proteins, and number of mass buckets; peptides are counted in each bucket for each range.
    looked_at
        Number of residues visited from all start positions. With non-specific digestion, these are the residues of the longest peptide that
        begins at each position.
    """
    in_bytes = residues + 8 * (proteins + 1) + 8 * (shares + 1) + 26 * 26 + 8 * (26 + 12)
    return OperationCounts(rounds, looked_at, residues // _BLOCK + looked_at // _BLOCK, -(-in_bytes // _WORD), shares * buckets, 0, 6)
