"""Classes of the CPU and the GPU accept the same calls and give the same results; the GPU kernels run through tests/shim."""

from __future__ import annotations

import time

import numpy as np
import pytest

from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import backend_module
from proteoscope.kernels.score_kinds import HYPERSCORE, KSDP, SDP, XCORR
from tests.shim.fragment_inputs import assert_same_answer, empty_answer, on_processor, random_fragment_search
from tests.shim.search_inputs import assert_same_hits, empty_hits, random_search
from tests.shim.shim_gpu import ShimGpu, missing_compiler
from tests.shim.tuning import tuned

pytestmark = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")

WIDTH = {SDP: 0.1, KSDP: 0.5, HYPERSCORE: 0.5, XCORR: 0.05}


def overwritten_hits(n, width):
    """Return rows that hold the results of another search."""
    hits = empty_hits(n, width=width)
    for column in hits[:-1]:
        column[...] = 7
    return hits


@pytest.mark.parametrize("score", [SDP, KSDP, HYPERSCORE, XCORR])
def test_spectrum_search_is_the_same_on_both_backends(score):
    spectra, queries, *others = random_search(100 + score, score, n_peptides=2000, n_queries=20)
    n, answers = len(queries.mass), []
    for device in (Processor(2), ShimGpu()):
        search, hits, cost = (
            backend_module(device, "scoring").SpectrumSearch(device, *others),
            overwritten_hits(n, WIDTH[score]),
            np.full(n, -1),
        )
        search.count_candidates(queries, 2, n, cost)
        ends = list(search.search_queries(spectra, queries, hits, 2, n))
        assert ends == sorted(ends)
        assert ends[-1] == n
        answers.append((hits, cost))
    assert answers[0][1][2:].sum() > n
    np.testing.assert_array_equal(answers[0][1], answers[1][1])
    assert_same_hits(*(hits for hits, _ in answers))
    assert all((column[:2] == 7).all() for column in answers[0][0][:-1]), "rows that were not requested"


def test_spectrum_search_is_the_same_for_any_partition_size():
    spectra, queries, *others = random_search(110, HYPERSCORE, n_peptides=3000, n_queries=30)
    kind, answers = backend_module(Processor(1), "scoring").SpectrumSearch, []
    for threads, candidates in ((1, 10**9), (3, 20)):
        hits = overwritten_hits(30, 0.5)
        list(tuned(kind, candidates_of_partition=candidates)(Processor(threads), *others).search_queries(spectra, queries, hits, 0, 30))
        answers.append(hits)
    assert_same_hits(*answers)


@pytest.mark.parametrize("score", [SDP, HYPERSCORE])
@pytest.mark.parametrize("is_built", [False, True])
def test_fragment_index_search_is_the_same_on_both_backends(score, is_built):
    work = random_fragment_search(120 + score, score, n_peptides=400, most=1)
    n, expected = len(work.windows), on_processor(work, WIDTH[score])
    for device, options in ((Processor(2), {"nanoseconds_of_partition": 1e4}), (ShimGpu(), {"forms_of_chunk": 512, "threads": 64})):
        kind = tuned(backend_module(device, "fragment_index").FragmentSearch, **options)
        search, actual = kind(device, *work.inputs[2:], work.form_mass, work.form_code), empty_answer(n, 8)
        if is_built:
            assert list(search.build())[-1] == len(work.form_mass)
        ends = list(
            search.search_chunks(
                work.segments, work.windows, work.tables, 0, n, actual.best, actual.histogram, WIDTH[score], actual.n_candidates
            )
        )
        assert ends == sorted(ends)
        assert ends[-1] == n
        assert_same_answer(actual, expected)


def test_fragment_index_leaves_rows_of_other_queries_unchanged():
    work = random_fragment_search(130, HYPERSCORE, n_peptides=400, most=1)
    n, device = len(work.windows), Processor(2)
    search = backend_module(device, "fragment_index").FragmentSearch(device, *work.inputs[2:], work.form_mass, work.form_code)
    expected, actual = on_processor(work, 0.5), empty_answer(n, 8)
    for first, last in ((0, 3), (3, n)):
        low, high = work.segments.offsets[[first, last]]
        segments = type(work.segments)(work.segments.offsets[first : last + 1] - low, *(segment[low:high] for segment in work.segments[1:]))
        list(
            search.search_chunks(
                segments, work.windows[first:last], work.tables, first, last, actual.best, actual.histogram, 0.5, actual.n_candidates
            )
        )
        assert (actual.n_candidates[last:] == 0).all()
    assert_same_answer(actual, expected)


def test_cpu_spectrum_search_stops_immediately_when_closed():
    inputs = random_search(140, HYPERSCORE, n_peptides=60_000, n_queries=8, precursor=(2000.0, 0.0), most=2, maximum_forms=500)
    hits, device = empty_hits(8), Processor(1)
    work = backend_module(device, "scoring").SpectrumSearch(device, *inputs[2:]).search_queries(*inputs[:2], hits, 0, 8)
    assert next(work) < 8
    work.close()
    counted = hits.n_candidates.copy()
    assert counted[-1] == 0, "the last query had been begun"
    time.sleep(0.05)  # a thread that still computed would continue
    np.testing.assert_array_equal(hits.n_candidates, counted)


def test_search_builds_the_fragment_index_after_a_stopped_build():
    work = random_fragment_search(150, HYPERSCORE, n_peptides=3000, most=2)
    n, device = len(work.windows), Processor(1)
    search = backend_module(device, "fragment_index").FragmentSearch(device, *work.inputs[2:], work.form_mass, work.form_code)
    building = search.build()
    next(building)
    building.close()
    actual = empty_answer(n, 8)
    list(search.search_chunks(work.segments, work.windows, work.tables, 0, n, actual.best, actual.histogram, 0.5, actual.n_candidates))
    assert_same_answer(actual, on_processor(work, 0.5))
