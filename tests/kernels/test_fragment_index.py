"""The fragment-ion index against its definition, and its answers against scoring every candidate."""

from __future__ import annotations

from itertools import combinations, islice, pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.kernels.cpu import peptidoforms as form_kernels
from proteoscope.kernels.cpu import postings
from proteoscope.kernels.cpu import segments as segment_kernels
from proteoscope.kernels.cpu.candidates import score_candidates, search_queries
from proteoscope.kernels.layouts import (
    C_TERMINAL,
    ISOTOPE_BITS,
    KEYS_OF_DALTON,
    PEPTIDOFORMS_OF_CHUNK,
    BestArrays,
    FragmentIndexArrays,
    HitArrays,
    IndexHits,
    ModificationArrays,
    PeptideArrays,
    QueryArrays,
    ScoringSettings,
    SegmentArrays,
    SpectrumArrays,
)
from proteoscope.kernels.score_kinds import HYPERSCORE, KSDP, SDP, XCORR
from tests.shim.search_inputs import NOT_STOPPED, as_in_index, empty_hits, random_search

PROTON = 1.007276466621
WIDTH = {SDP: 0.1, HYPERSCORE: 0.5}
ANY_RESIDUE = 0xFFFFFFFF
Inputs = tuple[SpectrumArrays, QueryArrays, PeptideArrays, ModificationArrays, ScoringSettings]


def build_index(inputs: Inputs, low: float = 0.0, high: float = 1e5, **options: Any) -> FragmentIndexArrays:
    _, _, peptides, modifications, settings_ = inputs
    index = postings.empty_index(
        peptides, modifications, settings_, *form_kernels.list_peptidoforms(peptides, modifications, low, high), **options
    )
    code, n_chunks = form_kernels.peptidoform_code(peptides, modifications), len(index.chunk_start) - 1
    for chunk in range(n_chunks):
        postings.build_chunks(peptides, modifications, settings_, code, index, chunk, chunk + 1, NOT_STOPPED)
    return index


def hits_before_exact_scores(
    inputs: Inputs, cuts: tuple[float, ...] = (), parts: tuple[int, ...] = (), *, n_hits: int = 5, slots: int = 3, **options: Any
) -> tuple[HitArrays, BestArrays]:
    """Search by an index in mass ranges that end at `cuts`, with partitions of the queries that end at `parts`; before the exact scores."""
    spectra, queries, peptides, modifications, settings_ = inputs
    assert segment_kernels.unsupported_reason(spectra, peptides, modifications, settings_) == ""
    n, code = len(queries.mass), form_kernels.peptidoform_code(peptides, modifications)
    tables, best = segment_kernels.score_tables(spectra, settings_), segment_kernels.empty_best(n, n_hits + 3)
    hits = empty_hits(n, n_hits=n_hits, slots=slots, width=WIDTH[settings_.score])
    for low, high in zip((0.0, *cuts), (*cuts, 1e5), strict=True):
        index = build_index(inputs, low, high, **options)
        for first, last in zip((0, *parts), (*parts, n), strict=True):
            segments = SegmentArrays(*segment_kernels.make_segments(spectra, queries, settings_, tables, first, last))
            windows = segment_kernels.precursor_windows(index.form_mass, queries, settings_, first, last)
            actual = IndexHits(best, hits.histogram, hits.histogram_width, hits.n_candidates)
            postings.search_chunks(index, segments, windows, tables, code, settings_, first, last, actual, NOT_STOPPED)
    return hits, best


def index_hits(inputs: Inputs, *where: tuple[Any, ...], **options: Any) -> HitArrays:
    """Search by an index, with exact scores."""
    hits, best = hits_before_exact_scores(inputs, *where, **options)
    score_candidates(*inputs, form_kernels.peptidoform_code(*inputs[2:4]), best, hits, 0, len(hits.score))
    return hits


def exhaustive_hits(inputs: Inputs, *, n_hits: int = 5, slots: int = 3) -> HitArrays:
    spectra, queries, peptides, modifications, settings_ = inputs
    hits = empty_hits(len(queries.mass), n_hits=n_hits, slots=slots, width=WIDTH[settings_.score])
    search_queries(spectra, queries, peptides, modifications, settings_, hits, 0, len(queries.mass), NOT_STOPPED)
    return hits


def assert_same(actual: HitArrays, expected: HitArrays) -> None:
    """Check that hits, their order and scores are equal; histograms may differ by scores on a bin border."""
    for name in ("n_candidates", "peptide", "score", "isotope_error", "site", "modification"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name), name)
    assert np.all(actual.histogram >= 0)
    np.testing.assert_array_equal(actual.histogram.sum(axis=1), expected.histogram.sum(axis=1))
    # A changed bin differs by one, because weights are rounded.
    reaching = [np.cumsum(hits.histogram[:, ::-1], axis=1) for hits in (actual, expected)]
    assert np.abs(reaching[0] - reaching[1]).sum() <= 0.01 * expected.histogram.sum()


def sites(peptides: PeptideArrays, peptide: int, sequence: str, modifications: ModificationArrays, m: int) -> list[int]:
    mask, place, flags = int(modifications.residue_mask[m]), int(modifications.place[m]), int(peptides.flags[peptide])
    carries = [mask >> ord(residue) - 65 & 1 for residue in sequence]
    if place == 0:
        return [i for i, can in enumerate(carries, 1) if can]
    if (place == 3 and not flags & 1) or (place == 4 and not flags & 2):
        return []
    at_n_term = place in (1, 3)
    if mask == ANY_RESIDUE:
        return [0 if at_n_term else len(sequence) + 1]
    return [1 if at_n_term else len(sequence)] if carries[0 if at_n_term else -1] else []


def sequence_of(peptides: PeptideArrays, peptide: int) -> str:
    start = int(peptides.position[peptide])
    return bytes(peptides.residues[start : start + int(peptides.length[peptide])]).decode()


def forms(peptides: PeptideArrays, modifications: ModificationArrays) -> list[tuple[float, int, int, int, dict[int, float]]]:
    """Return mass, combination, peptide, arrangement and the added masses by site of every form."""
    every = []
    for c, counts in enumerate(modifications.combination_count.tolist()):
        for peptide in range(len(peptides.mass)):
            residues = sequence_of(peptides, peptide)
            choices = [combinations(sites(peptides, peptide, residues, modifications, m), n) for m, n in enumerate(counts)]
            free = (
                {site: float(modifications.mass[m]) for m, chosen in enumerate(arrangement) for site in chosen}
                for arrangement in product(*choices)
                if len({site for chosen in arrangement for site in chosen}) == sum(counts)
            )
            mass = float(peptides.mass[peptide] + modifications.combination_mass[c])
            every += [(mass, c, peptide, i, added) for i, added in enumerate(islice(free, modifications.maximum_forms))]
    return sorted(every, key=lambda form: form[:4])


def fragments(inputs: Inputs, peptide: int, added: dict[int, float]) -> list[tuple[float, bool]]:
    """Return the neutral mass of each ion of a form, and if it is C-terminal."""
    _, _, peptides, _, settings_ = inputs
    residues = sequence_of(peptides, peptide)
    masses = [float(peptides.residue_mass[ord(residue) - 65]) + added.get(i, 0.0) for i, residue in enumerate(residues, 1)]
    n_term, c_term = peptides.n_term_mass + added.get(0, 0.0), peptides.c_term_mass + added.get(len(residues) + 1, 0.0)
    ions = []
    for i in range(1, len(residues)):
        ions += [(n_term + sum(masses[:i]) + offset - PROTON, False) for offset in settings_.n_term_series.tolist()]
        ions += [(c_term + sum(masses[i:]) + offset - PROTON, True) for offset in settings_.c_term_series.tolist()]
    return ions


@pytest.mark.parametrize("seed", range(6))
def test_fragment_index_lists_ions_of_all_peptidoforms_in_order(seed: int) -> None:
    series = [("b", "y"), ("c", "z"), ("abc", "xyz"), ("", "y"), ("b", ""), ("b", "y")][seed]
    inputs = random_search(seed, SDP, n_peptides=12, n_queries=4, most=(3, 3, 2)[seed % 3], maximum_forms=(40, 5)[seed % 2], series=series)
    _, _, peptides, modifications, _ = inputs
    index, code = build_index(inputs, bin_shift=(16, 12, 7, 16, 8, 13)[seed]), form_kernels.peptidoform_code(peptides, modifications)
    expected = forms(peptides, modifications)
    assert len(expected) > 50
    number = [
        ((c << ISOTOPE_BITS + code.peptide_bits) + peptide << code.arrangement_bits) + arrangement
        for _, c, peptide, arrangement, _ in expected
    ]
    assert index.form_mass.tolist() == [mass for mass, *_ in expected]
    assert index.form_code.tolist() == number
    assert len(index.chunk_start) == 2
    ions = [
        (mass, i | (C_TERMINAL if is_c_terminal else 0))
        for i, (_, _, peptide, _, added) in enumerate(expected)
        for mass, is_c_terminal in fragments(inputs, peptide, added)
    ]
    assert len(index.key) == len(index.form) == index.chunk_start[1] == len(ions)
    bins, postings = index.bin_start[0].astype(np.int64), np.arange(len(ions))
    high = np.searchsorted(bins, postings, side="right") - 1
    keys = (high << index.bin_shift) | (index.key & ((1 << index.bin_shift) - 1))
    assert np.all(index.key >> index.bin_shift == (high & ((1 << 16 - index.bin_shift) - 1)))
    assert np.all(np.diff(keys) >= 0)
    assert bins[0] == 0
    assert bins[-1] == len(ions)
    by_form = sorted(zip(index.form.tolist(), keys.tolist(), strict=True))
    for (form, key), (mass, expected_form) in zip(by_form, sorted(ions, key=lambda ion: (ion[1], ion[0])), strict=True):
        assert form == expected_form
        assert abs(key - max(0.0, mass * KEYS_OF_DALTON)) <= 1.01


def test_mass_ranges_contain_each_peptidoform_once() -> None:
    _, _, peptides, modifications, _ = random_search(3, SDP, n_peptides=400, most=2)
    mass, number = form_kernels.list_peptidoforms(peptides, modifications, 0.0, 1e5)
    assert np.all(np.diff(mass) >= 0)
    assert len(np.unique(number)) == len(number)
    cuts = [0.0, 700.0, float(mass[len(mass) // 2]), float(mass[-5]), 1e5]
    parts = [form_kernels.list_peptidoforms(peptides, modifications, low, high) for low, high in pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate([part[0] for part in parts]), mass)
    np.testing.assert_array_equal(np.concatenate([part[1] for part in parts]), number)
    n_forms, n_residues = np.zeros((2, 1000), np.int64)
    for first, last in ((0, 100), (100, 400)):
        form_kernels.count_peptidoforms(peptides, modifications, first, last, 10.0, n_forms, n_residues)
    np.testing.assert_array_equal(n_forms, np.histogram(mass, np.arange(1001) * 10.0)[0])
    code = form_kernels.peptidoform_code(peptides, modifications)
    lengths = peptides.length[(number >> code.arrangement_bits) & ((1 << code.peptide_bits) - 1)].astype(np.int64)
    assert n_residues.sum() == (lengths - 1).sum()


def one_spectrum(peaks: list[tuple[float, float]], charge: int, inputs: Inputs) -> tuple[SpectrumArrays, QueryArrays]:
    mz, weight = np.array([peak[0] for peak in peaks]), np.array([peak[1] for peak in peaks], np.float32)
    spectra = SpectrumArrays(np.array([0, len(peaks)]), mz, weight, weight)
    return spectra, QueryArrays(np.zeros(1, np.int64), np.array([charge]), np.array([inputs[1].mass.mean()]))


@settings(max_examples=150, deadline=None)
@given(
    peaks=st.lists(st.tuples(st.floats(100, 400), st.integers(1, 40)), max_size=25),
    close=st.booleans(),
    ions=st.lists(st.floats(98, 900), min_size=1, max_size=40),
    charge=st.integers(1, 4),
    fragment=st.sampled_from([(0.0, 2e-5), (0.5, 0.0), (0.02, 0.0), (2.0, 1e-4), (0.0, 1e-3)]),
)
def test_fragment_index_matches_highest_peak_within_tolerance(
    peaks: list[tuple[float, int]], close: bool, ions: list[float], charge: int, fragment: tuple[float, float]
) -> None:
    inputs = random_search(0, SDP, n_peptides=5, n_queries=4, fragment=fragment, fragment_charge=3)
    held = sorted((200 + (mz - 100) / 100 if close else mz, weight / 67) for mz, weight in peaks)
    spectra, queries = one_spectrum(held, charge, inputs)
    tables = segment_kernels.score_tables(spectra, inputs[4])
    offsets, low, high, weight = segment_kernels.make_segments(spectra, queries, inputs[4], tables, 0, 1)
    assert offsets.tolist() == [0, len(low)]
    assert np.all(low < high)
    charges = max(1, min(3, charge - 1))
    assert charges > 1 or np.all(high[:-1] <= low[1:])
    mz, peak_weight = spectra.mz, spectra.weight
    near = mz[: len(ions)] + np.resize([0.0, 0.001, -0.004, 0.3, 0.6], len(mz[: len(ions)]))
    for neutral in [*ions, *(z * (t - PROTON) for z in range(1, 4) for t in near.tolist())]:
        key = int(neutral * KEYS_OF_DALTON)
        actual = sorted(int(value) for value in weight[(low <= key) & (key < high)])
        expected = []
        for z in range(1, charges + 1):
            target = (neutral + z * PROTON) / z
            half = fragment[0] + fragment[1] * target
            if np.any(np.abs(np.abs(mz - target) - half) < 1e-5):
                return  # on an edge, where keys are not exact
            inside = np.abs(mz - target) <= half
            expected += [round(float(peak_weight[inside].max()) * tables.weight_scale)] if inside.any() else []
        assert actual == sorted(expected)


@pytest.mark.parametrize("score", [SDP, HYPERSCORE])
@pytest.mark.parametrize("fragment", [(0.0, 20e-6), (0.5, 0.0), (0.05, 1e-5)])
@pytest.mark.parametrize("precursor", [(500.0, 0.0), (3.0, 0.0), (0.0, 2e-2)])
def test_fragment_index_equals_full_scoring(score: int, fragment: tuple[float, float], precursor: tuple[float, float]) -> None:
    inputs = random_search(score + 1, score, fragment=fragment, precursor=precursor, n_peptides=3000, most=1)
    expected = exhaustive_hits(inputs)
    assert (expected.peptide[:, 0] >= 0).sum() >= 5
    assert_same(index_hits(inputs), expected)


@pytest.mark.parametrize("seed", range(8))
def test_fragment_index_equals_full_scoring_for_any_ion_series(seed: int) -> None:
    series = [("b", "y"), ("c", "z"), ("abc", "xyz"), ("", "y")][seed % 4]
    inputs = random_search(
        60 + seed,
        HYPERSCORE,
        series=series,
        fragment_charge=(1, 2, 1, 3)[seed % 4],
        most=3,
        maximum_forms=(3, 1, 50, 200)[seed // 2],
        n_peptides=600,
        precursor=(25.0, 0.0),
    )
    expected = exhaustive_hits(inputs)
    assert (expected.modification != 255).any()
    assert (expected.isotope_error > 0).any()
    assert_same(index_hits(inputs, bin_shift=(16, 13, 9, 4)[seed % 4]), expected)


@pytest.mark.parametrize("n_hits", [1, 5, 20])
def test_fragment_index_returns_the_requested_number_of_hits(n_hits: int) -> None:
    inputs = random_search(31, HYPERSCORE, n_peptides=500, precursor=(100.0, 0.0))
    assert_same(index_hits(inputs, n_hits=n_hits), exhaustive_hits(inputs, n_hits=n_hits))


@settings(max_examples=25, deadline=None)
@given(
    cuts=st.lists(st.floats(300, 3000), max_size=6),
    parts=st.lists(st.integers(0, 12), max_size=4),
    half=st.sampled_from([0.4, 3.0, 80.0]),
    seed=st.integers(0, 3),
)
def test_fragment_index_hits_do_not_depend_on_partitions(cuts: list[float], parts: list[int], half: float, seed: int) -> None:
    inputs = random_search(40 + seed, HYPERSCORE, n_peptides=400, precursor=(half, 0.0), most=1)
    whole, cut = index_hits(inputs), index_hits(inputs, tuple(sorted(cuts)), tuple(sorted(parts)))
    for name, left, right in zip(HitArrays._fields, whole, cut, strict=True):
        assert np.array_equal(np.asarray(left), np.asarray(right)), name


def test_fragment_index_accepts_mass_ranges_of_one_peptidoform() -> None:
    inputs = random_search(50, SDP, n_peptides=20, n_queries=6, precursor=(300.0, 0.0), most=0)
    mass, _ = form_kernels.list_peptidoforms(inputs[2], inputs[3], 0.0, 1e5)
    cuts = tuple(np.unique(mass)[1:].tolist())
    assert len(cuts) == 19
    assert_same(index_hits(inputs, cuts), exhaustive_hits(inputs))


def test_fragment_index_accepts_a_last_chunk_of_one_peptidoform() -> None:
    inputs = random_search(51, HYPERSCORE, n_peptides=PEPTIDOFORMS_OF_CHUNK + 1, n_queries=8, precursor=(400.0, 0.0), most=0)
    assert np.diff(build_index(inputs).chunk_start)[-1] == 2 * (int(inputs[2].length[-1]) - 1)
    assert_same(index_hits(inputs), exhaustive_hits(inputs))


@pytest.mark.parametrize("precursor", [(0.4, 0.0), (0.7, 0.0), (5.0, 0.0)])
def test_overlapping_isotope_windows_count_a_peptidoform_once(precursor: tuple[float, float]) -> None:
    inputs = random_search(52, HYPERSCORE, n_peptides=8000, precursor=precursor, most=1)
    assert len(inputs[4].isotope_errors) == 4
    expected = exhaustive_hits(inputs)
    assert len(np.unique(expected.isotope_error[expected.peptide >= 0])) > 1
    assert_same(index_hits(inputs), expected)


def test_fragment_index_precursor_window_includes_the_edge() -> None:
    inputs = random_search(53, SDP, n_peptides=50, precursor=(0.25, 0.0), most=0)
    queries, mass = inputs[1], inputs[2].mass
    exact = inputs[4]._replace(isotope_errors=np.zeros(1, np.int64), isotope_minimum_mass=np.zeros(1))
    shifts = np.array([0.25, -0.25, 0.25 * (1 + 1e-9), -0.25 * (1 + 1e-9)])
    at = queries._replace(mass=np.float64(mass[20]) + shifts)
    windows = segment_kernels.precursor_windows(mass[20:21], at, exact, 0, 4)
    assert (windows[:, 0, 1] - windows[:, 0, 0]).tolist() == [1, 1, 0, 0]


def test_fragment_index_has_no_candidates_without_peaks() -> None:
    inputs = random_search(54, HYPERSCORE, n_peptides=300, precursor=(200.0, 0.0))
    empty = inputs[0].offsets[inputs[1].spectrum] == inputs[0].offsets[inputs[1].spectrum + 1]
    assert empty.sum() == 1
    actual = index_hits(inputs)
    assert actual.n_candidates[empty] == 0
    assert np.all(actual.histogram[empty] == 0)
    assert np.all(actual.n_candidates[~empty] > 0)


def test_fragment_index_accepts_no_peptides_and_no_queries() -> None:
    inputs = random_search(55, SDP, n_peptides=30, precursor=(200.0, 0.0))
    none = inputs[1]._replace(**{name: getattr(inputs[1], name)[:0] for name in QueryArrays._fields})
    assert len(index_hits((inputs[0], none, *inputs[2:])).score) == 0
    columns = {name: getattr(inputs[2], name)[:0] for name in ("mass", "position", "length", "flags", "letters")}
    assert np.all(index_hits((*inputs[:2], inputs[2]._replace(**columns), *inputs[3:])).peptide == -1)


@pytest.mark.parametrize("score", [SDP, HYPERSCORE])
def test_fragment_index_counter_fits_the_longest_peptide(score: int) -> None:
    inputs = random_search(56, score, n_peptides=200, precursor=(50.0, 0.0), most=0, fragment_charge=2)
    peptides = inputs[2]
    longest = int(peptides.length.argmax())
    assert peptides.length[longest] == 63
    ions = np.array([mass for mass, _ in fragments(inputs, longest, {})])
    mz = np.sort(np.concatenate((ions + PROTON, (ions + 2 * PROTON) / 2)))
    for height in (1.0, 30.0, 1e-4):  # weights need not have unit length
        weight = np.full(len(mz), height, np.float32)
        spectra = SpectrumArrays(np.array([0, len(mz)]), mz, weight, weight)
        queries = QueryArrays(np.zeros(1, np.int64), np.array([3]), peptides.mass[longest : longest + 1].copy())
        single = (spectra, queries, *inputs[2:4], inputs[4]._replace(maximum_mz=float(mz.max()) + 2))
        actual, expected = index_hits(single), exhaustive_hits(single)
        assert actual.peptide[0, 0] == expected.peptide[0, 0] == longest
        np.testing.assert_array_equal(actual.score, expected.score)
        np.testing.assert_allclose(hits_before_exact_scores(single)[1].score[0, 0], actual.score[0, 0], rtol=0.01)


def test_fragment_index_orders_tied_hits_like_full_scoring() -> None:
    """All peptides have one sequence and two masses, and there are more of them than hits are reported."""
    inputs = random_search(57, HYPERSCORE, n_peptides=40, n_queries=4, precursor=(300.0, 0.0), most=2, which=(0, 1))
    peptides, n = inputs[2], 40
    row = int(np.argmax(inputs[2].letters & (1 << 12) > 0))
    same = as_in_index(
        peptides._replace(
            mass=np.full(n, peptides.mass[row]),
            position=np.full(n, peptides.position[row]),
            length=np.full(n, peptides.length[row]),
            flags=np.full(n, peptides.flags[row]),
            letters=np.full(n, peptides.letters[row]),
        )
    )
    queries = inputs[1]._replace(mass=np.full(len(inputs[1].mass), peptides.mass[row] + 20.0))
    every = (inputs[0], queries, same, *inputs[3:])
    expected = exhaustive_hits(every)
    assert (expected.score[:, 0] == expected.score[:, 4]).any()
    assert_same(index_hits(every), expected)


def test_fragment_index_reports_unsupported_settings() -> None:
    spectra, _, peptides, modifications, settings_ = random_search(58, SDP, n_peptides=50)
    assert segment_kernels.unsupported_reason(spectra, peptides, modifications, settings_) == ""
    heavy = spectra._replace(mz=spectra.mz + 6000.0)
    long = peptides._replace(mass=peptides.mass + 9000.0)
    cases: list[tuple[str, SpectrumArrays, PeptideArrays, ModificationArrays, ScoringSettings]] = [
        ("sum over", spectra, peptides, modifications, settings_._replace(score=KSDP)),
        ("sum over", spectra, peptides, modifications, settings_._replace(score=XCORR)),
        ("without matching", spectra, peptides, modifications, settings_._replace(minimum_matched_ions=0)),
        ("one number", spectra, peptides, modifications._replace(maximum_forms=1 << 60), settings_),
        ("more ions", spectra, peptides, modifications, settings_._replace(maximum_fragment_charge=5)),
        ("heavier", heavy, long, modifications, settings_._replace(maximum_mz=8000.0)),
        ("several ions", spectra, peptides, modifications, settings_._replace(fragment_absolute=30.0)),
        ("below", spectra._replace(mz=spectra.mz - spectra.mz.min() + 0.5), peptides, modifications, settings_),
    ]
    for reason, *held in cases:
        assert reason in segment_kernels.unsupported_reason(held[0], held[1], held[2], held[3]), reason  # type: ignore[arg-type]
