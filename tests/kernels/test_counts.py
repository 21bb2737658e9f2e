"""Predicted work equals the work counted while kernels run through tests/shim."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels import counts
from proteoscope.kernels.cpu import candidates
from proteoscope.kernels.cuda import digestion
from proteoscope.kernels.cuda.fragment_index import FragmentSearch
from proteoscope.kernels.cuda.scoring import SpectrumSearch
from proteoscope.kernels.score_kinds import HYPERSCORE, SDP, XCORR
from tests.kernels.test_cuda_digestion import random_proteins, rules
from tests.shim.fragment_inputs import empty_answer, random_fragment_search
from tests.shim.search_inputs import empty_hits, random_search
from tests.shim.shim_gpu import ShimGpu, missing_compiler
from tests.shim.tuning import tuned

pytestmark = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")


def reset_counts(gpu: ShimGpu) -> ShimGpu:
    """Set all counts of a GPU to zero, and return the GPU."""
    gpu.operations = gpu.bytes_in = gpu.bytes_out = gpu.transfers = gpu.shared_bytes = 0
    return gpu


def assert_moved(gpu: ShimGpu, work: counts.OperationCounts) -> None:
    """Check words, copies and shared memory exactly."""
    assert (-(-gpu.bytes_in // 4), -(-gpu.bytes_out // 4), gpu.transfers, gpu.shared_bytes) == (
        work.words_in,
        work.words_out,
        work.transfers,
        work.shared_bytes,
    )


@pytest.mark.parametrize("score", [SDP, HYPERSCORE, XCORR])
def test_predicted_work_of_single_spectra_equals_counted_work(score):
    spectra, queries, peptides, modifications, how = random_search(200 + score, score, n_queries=30, n_peptides=3000, most=0)
    n, gpu = len(queries.mass), ShimGpu()
    hits, cost = empty_hits(n), np.zeros(n, np.int64)
    search = tuned(SpectrumSearch, minimum_sharing=np.inf)(gpu, peptides, modifications, how)
    reset_counts(gpu)
    search.count_candidates(queries, 0, n, cost)
    before = (gpu.bytes_in, gpu.bytes_out, gpu.transfers)
    scalars = search._scalars.nbytes
    assert before == (scalars + 8 * n, 8 * n, 3)
    reset_counts(gpu)
    list(search.search_queries(spectra, queries, hits, 0, n))
    peaks = np.diff(spectra.offsets)[queries.spectrum]
    charges = np.maximum(1, np.minimum(how.maximum_fragment_charge, queries.charge - 1))
    ions = int((hits.n_candidates * charges).sum() * 2 * (peptides.length.mean() - 1))  # b and y
    work = counts.spectrum_search(
        queries=n,
        peaks=int(peaks.sum()),
        items=n,
        candidates=int(cost.sum()),
        ions=ions,
        hits=5,
        slots=3,
        bins=96,
        windows=len(how.isotope_errors),
        with_heights=score == XCORR,
        shared_bytes=gpu.shared_bytes,
    )
    gpu.bytes_in -= 2 * scalars + 8 * n  # without the settings and the counting of candidates
    gpu.bytes_out -= 8 * n
    gpu.transfers -= 4
    assert_moved(gpu, work)
    assert work.operations == pytest.approx(gpu.operations, rel=0.2)  # peptides of the windows have about the average length
    assert work.rounds == gpu.launched.count("merge_hits")
    exact = candidates_by_length(spectra, queries, peptides, modifications, how, charges)
    assert gpu.operations == exact


def candidates_by_length(spectra, queries, peptides, modifications, how, charges):
    """Count the look-ups in bit tables for the unmodified peptides of the windows of each query."""
    n_lookups = 0
    for q in range(len(queries.mass)):
        chosen = np.zeros(len(peptides.mass), bool)
        for error, least in zip(how.isotope_errors, how.isotope_minimum_mass, strict=True):
            if queries.mass[q] >= least and spectra.offsets[queries.spectrum[q] + 1] > spectra.offsets[queries.spectrum[q]]:
                observed = queries.mass[q] - error * how.isotope_spacing
                chosen |= np.abs(peptides.mass - observed) <= how.precursor_absolute + how.precursor_relative * observed
        n_lookups += int(2 * charges[q] * (peptides.length[chosen].astype(int) - 1).sum())
    return n_lookups


def test_predicted_transfers_of_query_tiles_equal_counted_ones():
    spectra, queries, *others = random_search(210, HYPERSCORE, n_queries=64, n_peptides=600, most=0, precursor=(3.0, 0.0))
    n, gpu = len(queries.mass), ShimGpu()
    search, hits = tuned(SpectrumSearch, minimum_sharing=0.0)(gpu, *others), empty_hits(n)
    reset_counts(gpu)
    list(search.search_queries(spectra, queries, hits, 0, n))
    assert "search_tile_by_hyperscore" in gpu.launched
    blocks = gpu.bytes_in - 2 * search._scalars.nbytes - 8 * n
    work = counts.spectrum_search(
        queries=n,
        peaks=int(np.diff(spectra.offsets)[queries.spectrum].sum()),
        items=0,
        candidates=0,
        ions=0,
        hits=5,
        slots=3,
        bins=96,
        windows=4,
        with_heights=False,
        shared_bytes=gpu.shared_bytes,
    )
    assert 0 < blocks // 4 - work.words_in <= 2 * n  # two words for each block of a tile
    assert -(-(gpu.bytes_out - 8 * n) // 4) == work.words_out


@pytest.mark.parametrize("most", [0, 1])
def test_predicted_work_of_fragment_index_equals_counted_work(most):
    work_of = random_fragment_search(220 + most, HYPERSCORE, n_peptides=600, most=most)
    _, queries, peptides, modifications, how = work_of.inputs
    gpu = ShimGpu()
    kind = tuned(FragmentSearch, forms_of_chunk=512, threads=64, bin_shift=12)
    search = kind(gpu, peptides, modifications, how, work_of.form_mass, work_of.form_code)
    reset_counts(gpu)
    list(search.build())
    forms, code = len(work_of.form_mass), search._code
    peptide = work_of.form_code >> code.arrangement_bits & (1 << code.peptide_bits) - 1
    ions = int(2 * (peptides.length[peptide].astype(int) - 1).sum())
    chunks = -(-forms // 512)
    building = counts.index_building(forms=forms, ions=ions, slots=most, chunks=chunks)
    assert_moved(gpu, building)
    assert gpu.operations == building.operations
    reset_counts(gpu)
    n, answer = len(queries.mass), empty_answer(len(queries.mass), 8)
    list(
        search.search_chunks(
            work_of.segments, work_of.windows, work_of.tables, 0, n, answer.best, answer.histogram, 0.5, answer.n_candidates
        )
    )
    inside = work_of.windows[..., 1] > work_of.windows[..., 0]
    has_peaks = np.diff(work_of.segments.offsets) > 0
    reached = [
        {c for e in np.flatnonzero(inside[q]) for c in range(work_of.windows[q, e, 0] // 512, (work_of.windows[q, e, 1] - 1) // 512 + 1)}
        for q in np.flatnonzero(has_peaks)
    ]
    pairs = sum(map(len, reached))
    keys = work_of.segments.high.astype(np.int64) - work_of.segments.low
    share = keys.sum() / (how.maximum_mz * (1 << 19)) / len(keys)
    visits = int(share * np.diff(work_of.segments.offsets).mean() * ions / chunks * pairs)
    searching = counts.index_search(
        queries=n,
        segments=len(work_of.segments.low),
        windows=work_of.windows.shape[1],
        pairs=pairs,
        forms_of_chunk=512,
        visits=visits,
        hits=8,
        bins=96,
        scores=len(work_of.tables.of_count) + len(work_of.tables.of_dot),
        shared_bytes=gpu.shared_bytes,
    )
    assert_moved(gpu, searching)
    assert searching.operations == pytest.approx(gpu.operations, rel=0.3)  # visits are estimated


def test_predicted_work_of_digestion_equals_counted_work():
    _, residues, offsets = random_proteins(230)
    gpu, actual = ShimGpu(), np.zeros((2, 9000 // 50 + 1), np.int64)
    bounds, longest = np.array([0, 20, len(offsets) - 1]), 9
    how = rules("Trypsin", 0, 0, (4, longest), (0, 9000), True)
    residue_codes = np.full(len(residues), 65, np.uint8)  # all residues have masses
    list(digestion.count_peptides(gpu, residue_codes, offsets, bounds, how, actual))
    ends = np.repeat(offsets[1:], np.diff(offsets))
    looked_at = int(np.minimum(longest, ends - np.arange(len(residues))).sum())
    work = counts.digest_count(residues=len(residues), proteins=len(offsets) - 1, shares=2, buckets=actual.shape[1], looked_at=looked_at)
    assert_moved(gpu, work)
    assert gpu.operations == work.operations
    assert work.rounds == gpu.n_launches


def test_total_of_operation_counts_is_the_sum_over_tasks():
    operations = counts.OperationCounts(1, 10, 3, 5, 7, 400, 2)
    assert counts.total(operations, operations._replace(shared_bytes=100)) == counts.OperationCounts(2, 20, 6, 10, 14, 400, 4)


def test_partition_costs_are_computed_from_candidates_and_masses():
    _, queries, peptides, modifications, how = random_search(240, HYPERSCORE, n_queries=10, n_peptides=500)
    actual = np.zeros(10, np.int64)
    candidates.count_candidates(queries, peptides.mass, modifications, how, 0, 10, actual)
    plain, modified = (counts.scoring_costs(actual, queries.mass, is_modified=is_modified) for is_modified in (False, True))
    np.testing.assert_allclose(plain, (actual + 50) * (1 + queries.mass / 800))
    np.testing.assert_allclose(modified, (actual + 50) * (1 + (queries.mass / 800) ** 2))
