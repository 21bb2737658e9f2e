"""Fragment-ion index searches on the CPU and on a GPU from the same inputs, for comparing them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.cpu import peptidoforms, postings
from proteoscope.kernels.cpu import segments as cpu
from proteoscope.kernels.cuda.fragment_index import FragmentSearch
from proteoscope.kernels.cuda.modules import Gpu
from proteoscope.kernels.layouts import BestArrays, IndexHits, ScoreTables, SegmentArrays
from tests.shim.search_inputs import NOT_STOPPED, random_search
from tests.shim.tuning import limited

__all__ = [
    "Answer",
    "FragmentInputs",
    "assert_same_answer",
    "empty_answer",
    "fragment_inputs",
    "on_gpu",
    "on_processor",
    "random_fragment_search",
]

_BINS, _N_HITS = 96, 8


class FragmentInputs(NamedTuple):
    """Inputs of both devices: `inputs` of `random_search`, the forms, and the key ranges and windows of the queries."""

    inputs: tuple[Any, ...]
    form_mass: NDArray[np.float64]
    form_code: NDArray[np.int64]
    tables: ScoreTables
    segments: SegmentArrays
    windows: NDArray[np.int64]


class Answer(NamedTuple):
    """Arrays that a search writes to."""

    best: BestArrays
    histogram: NDArray[np.int32]
    n_candidates: NDArray[np.int64]


def fragment_inputs(inputs: tuple[Any, ...]) -> FragmentInputs:
    """Prepare inputs from spectra, queries, peptides, modifications and settings."""
    spectra, queries, peptides, modifications, settings = inputs
    assert cpu.unsupported_reason(spectra, peptides, modifications, settings) == ""
    tables = cpu.score_tables(spectra, settings)
    mass, code = peptidoforms.list_peptidoforms(peptides, modifications, 0.0, 1e6)
    n = len(queries.mass)
    segments = SegmentArrays(*cpu.make_segments(spectra, queries, settings, tables, 0, n))
    return FragmentInputs(inputs, mass, code, tables, segments, cpu.precursor_windows(mass, queries, settings, 0, n))


def random_fragment_search(seed: int, score: int, **options: Any) -> FragmentInputs:
    """Prepare inputs of `random_search`, by default with 8 queries with windows of 40 dalton."""
    return fragment_inputs(random_search(seed, score, **({"precursor": (40.0, 0.0), "n_peptides": 1000, "n_queries": 8} | options)))


def empty_answer(n: int, n_hits: int) -> Answer:
    return Answer(cpu.empty_best(n, n_hits), np.zeros((n, _BINS), np.int32), np.zeros(n, np.int64))


def on_processor(work: FragmentInputs, width: float, *, n_hits: int = _N_HITS) -> Answer:
    """Return the answer of `proteoscope.kernels.cpu.postings` for all queries in one run."""
    _, queries, peptides, modifications, settings = work.inputs
    index = postings.empty_index(peptides, modifications, settings, work.form_mass, work.form_code)
    code = peptidoforms.peptidoform_code(peptides, modifications)
    postings.build_chunks(peptides, modifications, settings, code, index, 0, len(index.chunk_start) - 1, NOT_STOPPED)
    n = len(queries.mass)
    answer = empty_answer(n, n_hits)
    actual = IndexHits(answer.best, answer.histogram, width, answer.n_candidates)
    postings.search_chunks(index, work.segments, work.windows, work.tables, code, settings, 0, n, actual, NOT_STOPPED)
    return answer


def on_gpu(
    gpu: Gpu, work: FragmentInputs, width: float, *, n_hits: int = _N_HITS, halves: bool = False, **options: Any
) -> tuple[Answer, list[int]]:
    """Return the answer of `proteoscope.kernels.cuda.fragment_index` and the values it yields; with `halves`, from two runs."""
    _, queries, peptides, modifications, settings = work.inputs
    kind, gpu = limited(FragmentSearch, gpu, options)
    search = kind(gpu, peptides, modifications, settings, work.form_mass, work.form_code)
    n = len(queries.mass)
    answer, ends = empty_answer(n, n_hits), []
    middle = n // 2 if halves else 0
    for first, last in ((0, middle), (middle, n)):
        low, high = work.segments.offsets[first], work.segments.offsets[last]
        segments = SegmentArrays(work.segments.offsets[first : last + 1] - low, *(column[low:high] for column in work.segments[1:]))
        ends += search.search_chunks(
            segments, work.windows[first:last], work.tables, first, last, answer.best, answer.histogram, width, answer.n_candidates
        )
    return answer, ends


def assert_same_answer(actual: Answer, expected: Answer) -> None:
    """Compare two answers bit for bit."""
    np.testing.assert_array_equal(actual.n_candidates, expected.n_candidates)
    np.testing.assert_array_equal(actual.histogram, expected.histogram)
    np.testing.assert_array_equal(actual.best.score, expected.best.score)
    np.testing.assert_array_equal(actual.best.code, expected.best.code)
