"""How much work a search is, counted from the size of its input, before it is done.

Two things are counted. `OperationCounts` is what a card is asked to do, in the terms of ATGPU (Carroll & Wong 2017, "An improved abstract
GPU model with data transfer"); the tests compare it with what is counted while the kernels run.
The other functions give nanoseconds of one thread of a processor: by them the engine chooses between scoring every candidate and an index
of fragment ions, and cuts queries into partitions. The choice changes the last digits of results: the constants, whose ratios alone
matter, are calibrated once and stand here and nowhere else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.layouts import PEPTIDOFORMS_OF_CHUNK

__all__ = [
    "CANDIDATES_OF_PIECE",
    "COST_OF_QUERY",
    "CROWDING",
    "NANOSECONDS_OF_PIECE",
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
"""In candidates: the bit table of its peaks."""
CANDIDATES_OF_PIECE = 300_000
"""At most about a tenth of a second of one thread: between two steps of the progress."""
NANOSECONDS_OF_PIECE = 1e8
TIMES_LONGER = 2.0
"""How much longer scoring every candidate must take for an index to be made. It takes memory, and threads list its forms for a card, which
would have scored all of a narrow window by then."""
CROWDING = 20.0
"""Ions crowd, where peaks are too, at a tenth of the places of each dalton and at few masses of the smallest fragments."""

# Nanoseconds of one thread, measured on one core of an EPYC 9005 with benchmarks/open_search.py. Only their ratios matter.
_PER_ION = 6.0  # scoring every candidate: an ion of a form is looked for in the bit table of peaks
_PER_LISTED = 220.0  # building: a peptide with a combination of modifications is counted, and listed, whether it has forms or not
_PER_POSTING = 35.0  # building
_PER_FORM = 100.0  # building
_PER_PAIR = 4000.0  # a query and a chunk: looking up the ends of segments, clearing counters
_PER_VISIT = 0.7
_PER_RANK = 0.8  # a form's counter becomes a score
_MASS_OF_A_LOOK = 800.0  # dalton: where the forms of a candidate cost as much as finding it, on an H200
_TYPICAL_FRAGMENT = 600.0  # thomson

_WORD, _BLOCK = 4, 32  # bytes
_POINTERS = 25  # of the struct Inputs of search.cuh


# ------------------------------------------------------------------------------------------------------------ of a processor's threads


def exhaustive_search(candidates: NDArray[np.integer], charges: NDArray[np.integer], ions: float) -> float:
    """Nanoseconds for scoring candidates (q,) with so many charges of fragments (q,), of `ions` ions of one charge on average."""
    return _PER_ION * float((candidates * charges).sum()) * ions


def fragment_index_building(listed: float, forms: float, postings: float) -> float:
    """Nanoseconds for an index of forms and postings, of so many pairs of a peptide and a combination of modifications."""
    return _PER_LISTED * listed + _PER_POSTING * postings + _PER_FORM * forms


def fragment_index_search(
    forms: NDArray[np.integer], ions: float, charges: NDArray[np.integer] | int, covered: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Nanoseconds for searching queries in an index, (q,).

    `forms` (q,): in the windows of each. `ions`: of one charge of a form, on average. `charges`: of fragments. `covered` (q,): the share of
    the ions of a charge that lie within reach of a peak.
    """
    chunks = forms / PEPTIDOFORMS_OF_CHUNK + 1.0
    visits = chunks * PEPTIDOFORMS_OF_CHUNK * ions * charges * covered
    return chunks * _PER_PAIR + visits * _PER_VISIT + forms * _PER_RANK


def covered_share(
    peaks: NDArray[np.integer], mass: NDArray[np.float64], fragment_absolute: float, fragment_relative: float
) -> NDArray[np.float64]:
    """Of the range of m/z of queries with so many peaks and such masses (dalton), the share that tolerances cover, as the ions see it."""
    reach = min(1.0, CROWDING * 2.0 * (fragment_absolute + fragment_relative * _TYPICAL_FRAGMENT))
    return np.minimum(1.0, peaks * reach / np.maximum(mass, 100.0))


def scoring_costs(candidates: NDArray[np.integer], mass: NDArray[np.float64], *, is_modified: bool) -> NDArray[np.float64]:
    """What queries cost beside each other where every candidate is scored, (q,), in no unit.

    A candidate costs a look, and of each of its forms, as many as modifications find places, as many ions as it has residues.
    """
    return (candidates + COST_OF_QUERY) * (1.0 + (mass / _MASS_OF_A_LOOK) ** (2 if is_modified else 1))


# ----------------------------------------------------------------------------------------------------------------------- of a card


class OperationCounts(NamedTuple):
    """Operations asked of a card.

    Attributes
    ----------
    rounds : batches. operations : innermost steps of all threads, see the functions. memory_blocks : of 32 bytes, read or written in
    global memory by those steps; an estimate. words_in, words_out : of 4 bytes, between host and device.
    transfers : copies, where they are many.
    shared_bytes : the most that a block has, besides the static part.
    """

    rounds: int
    operations: int
    memory_blocks: int
    words_in: int
    words_out: int
    shared_bytes: int
    transfers: int = 0


def total(*works: OperationCounts) -> OperationCounts:
    """Of several pieces of work, one after the other."""
    sums = (sum(values) for values in zip(*works, strict=True))
    return OperationCounts(*sums)._replace(shared_bytes=max(work.shared_bytes for work in works))


def spectrum_search(
    *,
    queries: int,
    peaks: int,
    items: int,
    candidates: int,
    ions: int,
    kept: int,
    slots: int,
    bins: int,
    windows: int,
    with_heights: bool,
    shared_bytes: int,
    rounds: int = 1,
) -> OperationCounts:
    """Queries whose peptides are on the device, one by one, see `proteoscope.kernels.cuda.scoring`.

    Parameters
    ----------
    items : blocks. candidates : in all windows. ions : of all forms of the candidates, (length - 1) x series x charges for each: a look
    into the bit table is an operation. kept, slots, bins : of the hits. windows : combinations of modifications and isotope errors.
    with_heights : of peaks, for XCorr. rounds : batches.
    """
    out = queries * (kept * (13 + 2 * slots) + 8 + 4 * bins)
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
    peaks: NDArray[np.int64], items: NDArray[np.int64], *, kept: int, slots: int, bins: int, candidate_bytes: int, with_heights: bool
) -> NDArray[np.int64]:
    """Device memory that each query takes in a batch, (q,): what goes in, what comes out, and the best of each block."""
    of_query = 40 + 4 * bins + kept * (13 + 2 * slots)
    return peaks * (16 if with_heights else 12) + items * (8 + kept * candidate_bytes) + of_query


def index_building(*, forms: int, ions: int, slots: int, chunks: int) -> OperationCounts:
    """A fragment-ion index, or a part of it, see `kernels.cuda.fragment_index`; an ion that is counted or placed is an operation."""
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
    kept: int,
    bins: int,
    scores: int,
    shared_bytes: int,
    rounds: int = 1,
) -> OperationCounts:
    """Queries in an index that is on the device, see `proteoscope.kernels.cuda.fragment_index`.

    Parameters
    ----------
    segments : ranges of keys of all queries. windows : of a query. pairs : of a query and a chunk. visits : postings in the ranges.
    scores : entries of the two tables. A posting that is visited, and a counter that is looked at, is an operation.
    """
    in_bytes = 4 * (queries + 1) + 10 * segments + 8 * windows * queries + 4 * scores + 12 * kept * queries + 16 * pairs
    out_words = queries * (3 * kept + bins)
    blocks = visits * _WORD // _BLOCK + 2 * segments + pairs * bins
    return OperationCounts(rounds, visits + pairs * forms_of_chunk, blocks, -(-in_bytes // _WORD), out_words, shared_bytes, 9 + rounds + 3)


def digest_count(*, residues: int, proteins: int, shares: int, buckets: int, looked_at: int, rounds: int = 1) -> OperationCounts:
    """Counting the peptides of a digest, see `proteoscope.kernels.cuda.digestion`; a residue that a peptide is lengthened by is an
    operation.

    `looked_at`: those of all first residues together; with a digest that is not specific the longest peptide for each.
    """
    in_bytes = residues + 8 * (proteins + 1) + 8 * (shares + 1) + 26 * 26 + 8 * (26 + 12)
    return OperationCounts(rounds, looked_at, residues // _BLOCK + looked_at // _BLOCK, -(-in_bytes // _WORD), shares * buckets, 0, 6)
