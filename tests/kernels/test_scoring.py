"""The search kernel against brute force over all peptides, forms and isotope errors, and match features against their definitions.

The brute force is written from the papers (Li 2014, Fu 2004, Fenyö & Beavis 2003, Eng 2008), with masses from pyteomics.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pyteomics import mass as pyteomics_mass

from proteoscope.kernels.cpu.candidates import count_candidates, search_queries
from proteoscope.kernels.cpu.fragment_intensities import match_bonds
from proteoscope.kernels.cpu.matches import feature_names, measure_matches
from proteoscope.kernels.layouts import (
    HitArrays,
    MatchArrays,
    ModificationArrays,
    PeptideArrays,
    QueryArrays,
    ScoringSettings,
    SpectrumArrays,
)
from proteoscope.kernels.score_kinds import HYPERSCORE, KSDP, SDP, XCORR
from tests.shim.search_inputs import NOT_STOPPED, as_in_index

PROTON, SPACING = 1.007276466621, 1.0033548378
RESIDUES = {
    residue: value for residue, value in pyteomics_mass.std_aa_mass.items() if len(residue) == 1 and residue in "ACDEFGHIKLMNPQRSTVWY"
}
COMPOSITION = {"a": "C-1O-1", "b": "", "c": "NH3", "x": "CO2", "y": "H2O", "z": "OH-1N-1H1"}
# Neutral mass of a fragment minus that of its residues; z is the radical of electron transfer, S + O - NH (Biemann 1988).
SERIES = {series: pyteomics_mass.calculate_mass(formula=text) if text else 0.0 for series, text in COMPOSITION.items() if series != "z"}
SERIES["z"] = pyteomics_mass.calculate_mass(formula="O") - pyteomics_mass.calculate_mass(formula="N")
WATER = pyteomics_mass.calculate_mass(formula="H2O")
NOTHING = 255
BINS, WIDTHS = 40, {SDP: 0.05, KSDP: 0.2, HYPERSCORE: 0.5, XCORR: 0.05}


@dataclass(frozen=True)
class Modification:
    mass: float
    residues: str = ""
    place: int = 0


@dataclass(frozen=True)
class Peptide:
    sequence: str
    flags: int
    mass: float


@dataclass(frozen=True)
class Case:
    """A small search: inputs of the kernel in the terms of the brute force."""

    peptides: list[Peptide]
    spectra: list[list[tuple[float, float, float]]]
    queries: list[tuple[int, int, float]]
    modifications: tuple[Modification, ...] = ()
    most: int = 0
    maximum_forms: int = 1000
    precursor: tuple[float, float] = (0.0, 1e-5)
    isotope_errors: tuple[int, ...] = (0,)
    isotope_minimum: tuple[float, ...] = ()
    fragment: tuple[float, float] = (0.02, 0.0)
    series: str = "by"
    maximum_charge: int = 2
    score: int = SDP
    minimum_matched: int = 0
    n_hits: int = 6
    window: int = 5
    power: float = 3.0
    correlation_bin: float = 0.02
    correlation_offset: float = 0.0
    n_term: float = 0.0
    c_term: float = 0.0

    @property
    def combinations(self) -> list[tuple[int, ...]]:
        """Numbers of each modification, the empty combination first."""
        every = product(range(self.most + 1), repeat=len(self.modifications))
        return sorted(
            (counts for counts in every if sum(counts) <= self.most), key=lambda counts: (sum(counts), [-count for count in counts])
        )


def settings_of(case: Case) -> ScoringSettings:
    order = sorted(range(len(case.isotope_errors)), key=lambda i: -case.isotope_errors[i])
    minimum = case.isotope_minimum or (0.0,) * len(case.isotope_errors)
    largest = max((peak[0] for peaks in case.spectra for peak in peaks), default=0.0)
    return ScoringSettings(
        *case.precursor,
        np.array([case.isotope_errors[i] for i in order], np.int64),
        np.array([minimum[i] for i in order], np.float64),
        SPACING,
        *case.fragment,
        np.array([SERIES[series] + PROTON for series in case.series if series in "abc"], np.float64),
        np.array([SERIES[series] + PROTON for series in case.series if series in "xyz"], np.float64),
        case.maximum_charge,
        min(0.5, max(0.01, case.fragment[0] + 1000 * case.fragment[1])),
        largest + 2.0,
        case.correlation_bin,
        case.correlation_offset,
        case.window,
        case.power,
        case.score,
        case.minimum_matched,
    )


def arrays_of(case: Case) -> tuple[SpectrumArrays, QueryArrays, PeptideArrays, ModificationArrays]:
    flat = [peak for peaks in case.spectra for peak in peaks]
    columns = [np.array([peak[i] for peak in flat], kind) for i, kind in enumerate((np.float64, np.float32, np.float32))]
    spectra = SpectrumArrays(np.cumsum([0, *map(len, case.spectra)]).astype(np.int64), *columns)
    spectrum, charge, mass = ([query[i] for query in case.queries] for i in range(3))
    queries = QueryArrays(np.array(spectrum, np.int64), np.array(charge, np.int64), np.array(mass, np.float64))
    masses = np.full(26, np.nan)
    for residue, value in RESIDUES.items():
        masses[ord(residue) - 65] = value
    text = "".join(peptide.sequence for peptide in case.peptides)
    peptides = as_in_index(
        PeptideArrays(
            np.array([peptide.mass for peptide in case.peptides]),
            np.cumsum([0, *(len(peptide.sequence) for peptide in case.peptides)])[:-1].astype(np.uint32),
            np.array([len(peptide.sequence) for peptide in case.peptides], np.uint8),
            np.array([peptide.flags for peptide in case.peptides], np.uint8),
            np.array([sum(1 << ord(residue) - 65 for residue in set(peptide.sequence)) for peptide in case.peptides], np.uint32),
            np.frombuffer(text.encode(), np.uint8).copy(),
            masses,
            case.n_term,
            case.c_term,
        )
    )
    counts = np.array(case.combinations, np.int64).reshape(len(case.combinations), len(case.modifications))
    added = np.array([modification.mass for modification in case.modifications], np.float64)
    modifications = ModificationArrays(
        added,
        np.array(
            [sum(1 << ord(residue) - 65 for residue in modification.residues) or 0xFFFFFFFF for modification in case.modifications],
            np.uint32,
        ),
        np.array([modification.place for modification in case.modifications], np.int64),
        counts @ added,
        counts,
        case.maximum_forms,
    )
    return spectra, queries, peptides, modifications


def new_hits(case: Case) -> HitArrays:
    n, slots = len(case.queries), max(1, case.most)
    return HitArrays(
        np.full((n, case.n_hits), -np.inf, np.float32),
        np.full((n, case.n_hits), -1, np.int64),
        np.zeros((n, case.n_hits), np.int8),
        np.full((n, case.n_hits, slots), NOTHING, np.uint8),
        np.full((n, case.n_hits, slots), NOTHING, np.uint8),
        np.zeros(n, np.int64),
        np.zeros((n, BINS), np.int32),
        WIDTHS[case.score],
    )


def search(case: Case, parts: list[tuple[int, int]] | None = None) -> HitArrays:
    spectra, queries, peptides, modifications = arrays_of(case)
    hits = new_hits(case)
    for first, last in parts or [(0, len(case.queries))]:
        search_queries(spectra, queries, peptides, modifications, settings_of(case), hits, first, last, NOT_STOPPED)
    return hits


# The brute force.

Form = tuple[tuple[int, int], ...]  # (site, modification) of each


def sites(peptide: Peptide, modification: Modification) -> list[int]:
    residues, length = modification.residues, len(peptide.sequence)
    if modification.place <= 0:
        last = length if modification.place == 0 or peptide.flags & 2 else length - 1
        return [i for i, residue in enumerate(peptide.sequence[:last], 1) if not residues or residue in residues]
    at_n_term = modification.place in (1, 3)
    if (modification.place == 3 and not peptide.flags & 1) or (modification.place == 4 and not peptide.flags & 2):
        return []
    place = 1 if at_n_term else length
    if residues:
        return [place] if peptide.sequence[place - 1] in residues else []
    return [0 if at_n_term else length + 1]


def forms(case: Case, peptide: Peptide, counts: tuple[int, ...]) -> Iterator[Form]:
    """List arrangements in lexicographic order, none with two modifications on one site."""
    choices = [combinations(sites(peptide, modification), count) for modification, count in zip(case.modifications, counts, strict=True)]
    for chosen in product(*choices):
        form = tuple((site, number) for number, places in enumerate(chosen) for site in places)
        if len({site for site, _ in form}) == len(form):
            yield form


@dataclass(frozen=True)
class Matched:
    """Match the ions of a form: rows for each series and charge, columns from the end of the series."""

    mz: NDArray[np.float64]
    peak: NDArray[np.int64]
    is_n: NDArray[np.bool_]


def match(case: Case, peptide: Peptide, form: Form, charge: int, peaks: list[tuple[float, float, float]]) -> Matched:
    added = [0.0] * (len(peptide.sequence) + 2)
    for site, number in form:
        added[site] += case.modifications[number].mass
    added[0] += case.n_term
    added[-1] += case.c_term
    residues = [RESIDUES[residue] + added[i] for i, residue in enumerate(peptide.sequence, 1)]
    ladders = {
        True: added[0] + np.cumsum(residues)[:-1],
        False: added[-1] + np.cumsum(residues[::-1])[:-1],
    }
    charges = range(1, max(1, min(case.maximum_charge, charge - 1)) + 1)
    ordered = [series for series in case.series if series in "abc"] + [series for series in case.series if series in "xyz"]
    rows = [((ladders[series in "abc"] + SERIES[series]) / z + PROTON, series in "abc") for series in ordered for z in charges]
    mz, is_n = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    at, weight = np.array([peak[0] for peak in peaks]), np.array([peak[1] for peak in peaks], np.float32)
    half = case.fragment[0] + case.fragment[1] * mz
    within = np.abs(at[None, None, :] - mz[:, :, None]) <= half[:, :, None]
    best = np.where(within, weight[None, None, :], -1.0).argmax(axis=2)
    return Matched(mz, np.where(within.any(axis=2), best, -1), is_n)


def background_subtracted(case: Case, peaks: list[tuple[float, float, float]], n: int) -> NDArray[np.float64]:
    """Apply equation 6 of Eng 2008: each bin minus the mean of the 75 on either side."""
    raw = np.zeros(n + 300)
    for mz, _, height in peaks:
        place = int(mz / case.correlation_bin + 1 - case.correlation_offset)
        raw[place] = max(raw[place], height)
    sums = np.concatenate((np.zeros(76), np.cumsum(raw), np.full(75, raw.sum())))
    around = sums[151:] - sums[:-151]
    return (raw - (around - raw) / 150)[:n]


def ksdp(case: Case, values: NDArray[np.float64]) -> float:
    """Compute equation 6 of Fu 2004 for each row; `values` (rows, ions) are the weights of matching peaks, 0 without a match."""
    before, after, total = math.floor((case.window - 1) / 2), math.ceil((case.window - 1) / 2), 0.0
    for row in values:
        for j in range(len(row)):
            total += sum(value ** (1 / case.power) for value in row[max(0, j - before) : j + after + 1]) ** case.power
    return total


def hyperscore(count_n: int, count_c: int, dot: float) -> float:
    return math.log(math.factorial(count_n)) + math.log(math.factorial(count_c)) + math.log(1 + 100 * dot) if dot > 0 else 0.0


def scores(
    case: Case, matching: Matched, peaks: list[tuple[float, float, float]], vector: NDArray[np.float64]
) -> tuple[dict[int, float], int, int]:
    weight = np.array([*(peak[1] for peak in peaks), 0.0], np.float32).astype(np.float64)
    matched = matching.peak >= 0
    count_n, count_c = int(matched[matching.is_n].sum()), int(matched[~matching.is_n].sum())
    values = weight[matching.peak]
    places = (matching.mz / case.correlation_bin + 1 - case.correlation_offset).astype(np.int64)
    every = {
        SDP: float(values.sum()),
        HYPERSCORE: hyperscore(count_n, count_c, float(values.sum())),
        KSDP: ksdp(case, values) if case.score == KSDP else 0.0,
        XCORR: float(vector[places].sum()) * 0.005 if case.score == XCORR else 0.0,
    }
    return every, count_n, count_c


Hit = tuple[float, int, int, Form]


def brute_force(case: Case, query: int) -> tuple[list[Hit], int, list[float]]:
    """Return all reportable candidates in the order of scoring, the number of all candidates, and all scores."""
    spectrum, charge, query_mass = case.queries[query]
    peaks = case.spectra[spectrum]
    hits: list[Hit] = []
    every: list[float] = []
    if not peaks:
        return [], 0, []
    minimum = dict(zip(case.isotope_errors, case.isotope_minimum or (0.0,) * len(case.isotope_errors), strict=True))
    vector = background_subtracted(case, peaks, int(9000 / case.correlation_bin)) if case.score == XCORR else np.zeros(1)
    for counts in case.combinations:
        added = sum(count * modification.mass for count, modification in zip(counts, case.modifications, strict=True))
        done = set()
        for error in sorted(case.isotope_errors, reverse=True):
            if query_mass < minimum[error]:
                continue
            observed = query_mass - error * SPACING
            tolerance = case.precursor[0] + case.precursor[1] * observed
            for number, peptide in enumerate(case.peptides):
                if number in done or not abs(peptide.mass + added - observed) <= tolerance:
                    continue
                done.add(number)
                for form in islice(forms(case, peptide, counts), case.maximum_forms):
                    result, count_n, count_c = scores(case, match(case, peptide, form, charge, peaks), peaks, vector)
                    every.append(result[case.score])
                    if count_n + count_c >= case.minimum_matched:
                        hits.append((result[case.score], number, error, form))
    return hits, len(every), every


def form_of(hits: HitArrays, query: int, place: int) -> Form:
    rows = zip(hits.site[query, place].tolist(), hits.modification[query, place].tolist(), strict=True)
    return tuple((site, number) for site, number in rows if number != NOTHING)


def check(case: Case, *, exact: bool) -> int:
    """Compare all hits, with `exact` also the order of equal scores, and return the number of candidates."""
    hits, total = search(case), 0
    for query in range(len(case.queries)):
        candidates, n, every = brute_force(case, query)
        total += n
        assert hits.n_candidates[query] == n
        histogram = hits.histogram[query].astype(np.int64)
        assert histogram.sum() == n
        if exact:
            bins = [min(BINS - 1, max(0, math.floor(score * (1 / WIDTHS[case.score])))) for score in every]
            assert np.array_equal(histogram, np.bincount(bins, minlength=BINS))
        best = sorted(candidates, key=lambda entry: -np.float32(entry[0]))[: case.n_hits]
        reported = [
            (float(hits.score[query, k]), int(hits.peptide[query, k]), int(hits.isotope_error[query, k]), form_of(hits, query, k))
            for k in range(case.n_hits)
            if hits.peptide[query, k] >= 0
        ]
        assert [hit[0] for hit in reported] == pytest.approx([hit[0] for hit in best], rel=2e-5, abs=1e-5)
        if exact:
            assert [hit[1:] for hit in reported] == [hit[1:] for hit in best]
            continue
        score_of = {candidate[1:]: candidate[0] for candidate in candidates}
        assert len({hit[1:] for hit in reported}) == len(reported)
        for hit in reported:
            assert score_of[hit[1:]] == pytest.approx(hit[0], rel=2e-5, abs=1e-5)
    return total


def dictionary(sequences: list[str], case_mass: float = 0.0, flags: list[int] | None = None) -> list[Peptide]:
    given = flags or [0] * len(sequences)
    rows = [
        Peptide(sequence, flag, sum(map(RESIDUES.__getitem__, sequence)) + WATER + case_mass)
        for sequence, flag in zip(sequences, given, strict=True)
    ]
    return sorted(rows, key=lambda peptide: peptide.mass)


def random_case(seed: int, n_peptides: int = 60, n_spectra: int = 6, *, dyadic: bool = True, **changes: Any) -> Case:
    """Generate random peptides, some of them permutations of others, and noisy spectra of some of their fragments.

    With `dyadic` weights are multiples of 1/64, so that sums are exact and equal scores are equal to the last bit.
    """
    random = np.random.default_rng(seed)
    sequences = {"".join(random.choice(list("ACDEFGHIKLMNPQRSTVWYMSSTQ"), random.integers(3, 11))) for _ in range(n_peptides)}
    for sequence in sorted(sequences)[: n_peptides // 2]:
        sequences |= {"".join(random.permutation(list(sequence))), sequence.replace("I", "L")}
    ordered = sorted(sequences)
    blank = Case([], [], [], **changes)
    peptides = dictionary(ordered, blank.n_term + blank.c_term, random.integers(0, 4, len(ordered)).tolist())
    spectra, queries = [], []
    for number in range(n_spectra):
        truth, charge = peptides[int(random.integers(len(peptides)))], int(random.integers(1, 5))
        counts = blank.combinations[int(random.integers(len(blank.combinations)))]
        arrangements = list(islice(forms(blank, truth, counts), 20)) or [()]
        form = arrangements[int(random.integers(len(arrangements)))]
        ions = match(replace(blank, peptides=peptides), truth, form, charge, [(50.0, 1.0, 1.0)]).mz.ravel()
        real = random.choice(ions, max(1, len(ions) // 2), replace=False) * (1 + random.normal(0, 4e-6, max(1, len(ions) // 2)))
        mz = np.sort(np.concatenate((real, random.uniform(60, 1200, 40))))
        weight = random.integers(1, 33, len(mz)) / 64 if dyadic else random.random(len(mz)) * 0.4
        height = random.random(len(mz)).astype(np.float32) * 50
        spectra.append(list(zip(mz.tolist(), weight.astype(np.float32).tolist(), height.tolist(), strict=True)))
        added = sum(blank.modifications[number].mass for _, number in form)
        error = int(random.choice(blank.isotope_errors))
        queries.append((number, charge, (truth.mass + added + error * SPACING) * (1 + random.normal(0, 2e-6))))
    queries.sort(key=lambda query: query[2])
    return replace(blank, peptides=peptides, spectra=spectra, queries=queries)


WIDE = (1.6, 0.0)
OXIDATION, PHOSPHO = Modification(15.994915, "M"), Modification(79.966331, "STY")
ACETYL, AMIDE = Modification(42.010565, "", 3), Modification(-0.984016, "", 4)
PYRO, CARBAMYL, METHYL = Modification(-17.026549, "QM", 1), Modification(43.005814, "", 1), Modification(14.01565, "", 2)
CUSTOM_END = Modification(21.981943, "DEK", 2)


@pytest.mark.parametrize("score", [SDP, HYPERSCORE])
@pytest.mark.parametrize("precursor", [(0.0, 1e-5), WIDE, (30.0, 0.0), (0.0, 5e-3)])
@pytest.mark.parametrize("fragment", [(0.02, 0.0), (0.0, 2e-5), (0.5, 0.0)])
def test_spectrum_search_hits_equal_brute_force(score: int, precursor: tuple[float, float], fragment: tuple[float, float]) -> None:
    case = random_case(1, score=score, precursor=precursor, fragment=fragment)
    assert check(case, exact=True) >= len(case.queries)


@pytest.mark.parametrize("score", [KSDP, XCORR])
@pytest.mark.parametrize(
    "changes", [{}, {"window": 4, "power": 2.0, "correlation_bin": 1.0005079, "correlation_offset": 0.4}, {"window": 1}]
)
def test_ksdp_and_xcorr_equal_the_published_formulas(score: int, changes: dict[str, Any]) -> None:
    case = random_case(2, dyadic=False, score=score, precursor=(60.0, 0.0), **changes)
    assert check(case, exact=False) > 50


@pytest.mark.parametrize("series", ["b", "y", "by", "cz", "abcxyz", "ax"])
@pytest.mark.parametrize("charge", [1, 2, 4])
def test_spectrum_search_equals_brute_force_for_any_ion_series(series: str, charge: int) -> None:
    assert check(random_case(3, series=series, maximum_charge=charge, precursor=(5.0, 0.0)), exact=True) > 6


@pytest.mark.parametrize(
    ("modifications", "most"),
    [
        ((OXIDATION,), 1),
        ((OXIDATION, PHOSPHO), 3),
        ((ACETYL, AMIDE), 2),
        ((PYRO, OXIDATION), 3),  # both may occur on the first M
        ((CARBAMYL, METHYL, CUSTOM_END), 3),
        ((PHOSPHO, Modification(14.01565, "STKR"), OXIDATION), 3),  # conflicts on S and T
        ((Modification(0.984016, ""), ACETYL), 2),  # on any residue
        ((Modification(114.042927, "KR", -1), OXIDATION), 3),  # not on the last residue
    ],
)
@pytest.mark.parametrize("score", [SDP, HYPERSCORE])
def test_spectrum_search_scores_all_modification_arrangements(modifications: tuple[Modification, ...], most: int, score: int) -> None:
    case = random_case(4, modifications=modifications, most=most, score=score, precursor=(1.0, 0.0), n_hits=10)
    assert check(case, exact=True) > 10


@pytest.mark.parametrize("score", [KSDP, XCORR])
def test_ksdp_and_xcorr_of_modified_peptides_equal_brute_force(score: int) -> None:
    case = random_case(
        5, dyadic=False, modifications=(OXIDATION, PHOSPHO, ACETYL), most=3, score=score, precursor=(1.0, 0.0), n_term=229.163
    )
    assert check(case, exact=False) > 10


@pytest.mark.parametrize("maximum_forms", [1, 2, 5])
def test_spectrum_search_limits_arrangements_of_a_combination(maximum_forms: int) -> None:
    limited = random_case(6, modifications=(PHOSPHO, OXIDATION), most=3, maximum_forms=maximum_forms, precursor=(40.0, 0.0))
    n = check(limited, exact=True)
    assert n < check(replace(limited, maximum_forms=1000), exact=True)


@pytest.mark.parametrize("errors", [(0, 1, 2, 3), (-1, 0, 1), (2,), (-3, 5)])
@pytest.mark.parametrize("precursor", [(0.0, 1e-5), (0.7, 0.0), (3.0, 0.0)])
def test_search_with_isotope_errors_scores_each_peptide_once(errors: tuple[int, ...], precursor: tuple[float, float]) -> None:
    case = random_case(7, isotope_errors=errors, precursor=precursor, modifications=(OXIDATION,), most=1)
    assert check(case, exact=True) >= len(case.queries)
    hits = search(case)
    for query in range(len(case.queries)):
        keys = [(int(hits.peptide[query, k]), form_of(hits, query, k)) for k in range(case.n_hits) if hits.peptide[query, k] >= 0]
        assert len(set(keys)) == len(keys)


def test_isotope_errors_apply_from_their_minimum_mass() -> None:
    case = random_case(8, 150, isotope_errors=(0, 1, 2), isotope_minimum=(0.0, 700.0, 900.0), precursor=(0.1, 0.0))
    check(case, exact=True)


@pytest.mark.parametrize("least", [1, 4, 9])
def test_candidates_with_few_ions_are_counted_but_not_reported(least: int) -> None:
    case = random_case(9, precursor=(10.0, 0.0), minimum_matched=least)
    assert check(case, exact=True) > int((search(case).peptide >= 0).sum())


def test_fixed_terminal_modifications_shift_the_ions() -> None:
    case = random_case(10, n_term=229.162932, c_term=-0.984016, precursor=(2.0, 0.0), modifications=(OXIDATION, CARBAMYL), most=2)
    check(case, exact=True)


def test_spectrum_without_peaks_has_no_candidates() -> None:
    case = random_case(11, precursor=(10.0, 0.0))
    empty = replace(case, spectra=[[] if i % 2 else peaks for i, peaks in enumerate(case.spectra)])
    check(empty, exact=True)
    hits = search(empty)
    for query, (spectrum, _, _) in enumerate(empty.queries):
        if not empty.spectra[spectrum]:
            assert hits.n_candidates[query] == 0
            assert np.all(hits.peptide[query] == -1)


def test_spectrum_search_accepts_no_spectra_and_no_peptides() -> None:
    search(replace(random_case(12), spectra=[], queries=[]))
    assert np.all(search(replace(random_case(12), peptides=[])).peptide == -1)


def single_peptide_case(sequence: str, spectrum: list[tuple[float, float, float]], mass_shift: float = 0.0, **changes: Any) -> Case:
    peptides = dictionary([sequence])
    return Case(peptides, [spectrum], [(0, 2, peptides[0].mass + mass_shift)], **changes)


def test_precursor_tolerance_includes_the_edge() -> None:
    peak = [(300.0, 0.5, 1.0)]
    half = 0.25  # a power of two, which is added to a mass and subtracted without rounding
    mass = dictionary(["PEPTIDE"])[0].mass
    assert mass + half - half == mass
    for shift, n in ((half, 1), (-half, 1), (half * (1 + 1e-9), 0), (-half * (1 + 1e-9), 0)):
        assert search(single_peptide_case("PEPTIDE", peak, shift, precursor=(half, 0.0))).n_candidates[0] == n


@pytest.mark.parametrize("fragment", [(0.5, 0.0), (0.03, 0.0), (20.0, 0.0), (0.0, 2e-5), (0.0, 4e-4), (0.0, 0.02), (0.0, 0.1)])
def test_fragment_tolerance_excludes_peaks_just_outside(fragment: tuple[float, float]) -> None:
    b3 = pyteomics_mass.fast_mass("PEP", ion_type="b", charge=1)
    half = fragment[0] + fragment[1] * b3
    for offset, n in ((1 - 1e-6, 1), (1 + 1e-6, 0), (-1 + 1e-6, 1), (-1 - 1e-6, 0)):
        hits = search(
            single_peptide_case(
                "PEPTIDE", [(b3 + offset * half, 0.5, 1.0)], fragment=fragment, maximum_charge=1, series="b", minimum_matched=1
            )
        )
        assert int((hits.peptide[0] >= 0).sum()) == n, (offset, fragment)


def test_spectrum_search_matches_highest_peak_within_tolerance() -> None:
    b3 = pyteomics_mass.fast_mass("PEP", ion_type="b", charge=1)
    peaks = [(b3 - 0.019, 0.25, 1.0), (b3, 0.125, 1.0), (b3 + 0.018, 0.5, 1.0), (b3 + 0.021, 0.9, 1.0)]
    assert search(single_peptide_case("PEPTIDE", peaks, series="b", maximum_charge=1)).score[0, 0] == 0.5


@pytest.mark.parametrize("score", [SDP, HYPERSCORE, KSDP, XCORR])
def test_hits_of_equal_score_have_the_order_of_the_peptide_index(score: int) -> None:
    """I and L have the same mass, so all eight score the same; the weights have no exact binary form, like real ones."""
    peptides = dictionary([f"PEPT{a}DE{b}K{c}R" for a in "IL" for b in "IL" for c in "IL"])
    ladder = np.cumsum([RESIDUES[residue] for residue in "PEPTIDEIKI"]) + PROTON
    spectrum = [(float(mz), 0.1 + 0.037 * i, 7.3 + i) for i, mz in enumerate(ladder)]
    for retained in (3, 6, 10):
        hits = search(Case(peptides, [spectrum], [(0, 2, peptides[0].mass)], score=score, n_hits=retained))
        assert len(set(hits.score[0, : min(8, retained)].tolist())) == 1
        assert hits.peptide[0, : min(8, retained)].tolist() == list(range(min(8, retained)))


@pytest.mark.parametrize("score", [SDP, KSDP, HYPERSCORE, XCORR])
def test_spectrum_search_hits_do_not_depend_on_partitions(score: int) -> None:
    case = random_case(13, n_spectra=12, dyadic=False, score=score, precursor=(5.0, 0.0), modifications=(OXIDATION, PHOSPHO), most=2)
    whole, n = search(case), len(case.queries)
    for parts in ([(i, i + 1) for i in reversed(range(n))], [(5, n), (0, 5)], [(0, 0), (0, n), (n, n)]):
        for left, right in zip(whole, search(case, parts), strict=True):
            assert np.array_equal(np.asarray(left), np.asarray(right))


@pytest.mark.parametrize(
    "sequences", [["S" * 50], [f"S{'SST' * 4}{first}{second}" for first in "ACDEFGHIKLMNPQRTVWY" for second in "ACDEFGHIKLM"]]
)
def test_spectrum_search_stops_inside_a_query_when_requested(sequences: list[str]) -> None:
    """One peptide with millions of forms, and many peptides with some thousand."""
    case = Case(
        dictionary(sequences),
        [[(300.0 + 7.0 * i, 0.2, 1.0) for i in range(60)]],
        [(0, 2, 3000.0)],
        modifications=(PHOSPHO,),
        most=5,
        maximum_forms=1 << 40,
        precursor=(5000.0, 0.0),
        score=KSDP,
    )
    sites = [sum(residue in PHOSPHO.residues for residue in sequence) for sequence in sequences]
    every = sum(math.comb(n, k) for n in sites for k in range(6))
    spectra, queries, peptides, modifications = arrays_of(case)
    stop, hits = np.ones(1, np.uint8), new_hits(case)
    search_queries(spectra, queries, peptides, modifications, settings_of(case), hits, 0, 1, stop)
    assert hits.n_candidates[0] == 0
    stop[0] = 0
    thread = threading.Thread(
        target=search_queries, args=(spectra, queries, peptides, modifications, settings_of(case), hits, 0, 1, stop), daemon=True
    )
    thread.start()
    while thread.is_alive() and hits.n_candidates[0] == 0:
        time.sleep(1e-3)
    stop[0] = 1
    thread.join()
    assert 0 < hits.n_candidates[0] < every


def test_match_features_are_not_measured_after_a_stop() -> None:
    case = single_peptide_case("PEPTIDE", [(300.0, 0.5, 1.0)])
    spectra, _, peptides, modifications = arrays_of(case)
    out, nothing = np.full((1, len(feature_names())), -1.0), np.full((1, 1), NOTHING, np.uint8)
    matches = MatchArrays(column([0]), column([2]), column([0]), nothing, nothing)
    arguments = spectra, matches, peptides, modifications.mass, settings_of(case), 0, 1, out
    measure_matches(*arguments, np.ones(1, np.uint8))
    assert (out == -1.0).all()
    measure_matches(*arguments, NOT_STOPPED)
    assert out[0, 1] > 0


def test_candidate_counts_exclude_modification_arrangements() -> None:
    case = random_case(
        14, modifications=(OXIDATION, PHOSPHO), most=2, precursor=(3.0, 0.0), isotope_errors=(0, 1), isotope_minimum=(0.0, 800.0)
    )
    _, queries, peptides, modifications = arrays_of(case)
    out = np.zeros(len(case.queries), np.int64)
    count_candidates(queries, peptides.mass, modifications, settings_of(case), 0, len(out), out)
    for query, (_, _, mass) in enumerate(case.queries):
        windows = [(mass - error * SPACING) for error in case.isotope_errors if mass >= {0: 0.0, 1: 800.0}[error]]
        added = [
            sum(n * modification.mass for n, modification in zip(counts, case.modifications, strict=True)) for counts in case.combinations
        ]
        assert out[query] == sum(abs(peptide.mass + more - at) <= 3.0 for at in windows for more in added for peptide in case.peptides)


# Features of given matches.


def column(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def measure_features(case: Case, rows: list[tuple[int, int, Form]]) -> list[dict[str, float]]:
    """Measure features of `rows`: query, peptide and form."""
    spectra, _, peptides, modifications = arrays_of(case)
    slots = max(1, case.most)
    site, modification = np.full((len(rows), slots), NOTHING, np.uint8), np.full((len(rows), slots), NOTHING, np.uint8)
    for i, (_, _, form) in enumerate(rows):
        for k, (place, number) in enumerate(form):
            site[i, k], modification[i, k] = place, number
    out = np.zeros((len(rows), len(feature_names())))
    spectrum, charge = (column([case.queries[row[0]][k] for row in rows]) for k in range(2))
    matches = MatchArrays(spectrum, charge, column([row[1] for row in rows]), site, modification)
    measure_matches(spectra, matches, peptides, modifications.mass, settings_of(case), 0, len(rows), out, NOT_STOPPED)
    return [dict(zip(feature_names(), row.tolist(), strict=True)) for row in out]


def longest(flags: list[bool]) -> int:
    return max(len(run) for run in "".join("x" if flag else " " for flag in flags).split(" "))


def expected_features(case: Case, query: int, number: int, form: Form) -> dict[str, float]:
    from scipy.stats import binom

    spectrum, charge, _ = case.queries[query]
    peaks, peptide = case.spectra[spectrum], case.peptides[number]
    matching = match(case, peptide, form, charge, peaks)
    matched = matching.peak >= 0
    weight = np.array([peak[1] for peak in peaks], np.float32).astype(np.float64)
    mz = np.array([peak[0] for peak in peaks])
    both = {
        kind: scores(replace(case, score=kind), matching, peaks, background_subtracted(case, peaks, int(9000 / case.correlation_bin)))[0][
            kind
        ]
        for kind in WIDTHS
    }
    errors = [(mz[peak] - ion) / ion * 1e6 for ion, peak in zip(matching.mz.ravel(), matching.peak.ravel(), strict=True) if peak >= 0]
    used = sorted({int(peak) for peak in matching.peak.ravel() if peak >= 0})
    covered = float(np.sum(2 * (case.fragment[0] + case.fragment[1] * mz)))
    probability = min(0.5, covered / max(mz[-1] - mz[0], 100.0))
    length = len(peptide.sequence)
    has_n, has_c = (np.atleast_1d(matched[rows].any(axis=0)).tolist() for rows in (matching.is_n, ~matching.is_n))
    n_matched = int(matched.sum())
    return {
        "matched_ions": n_matched,
        "total_ions": matched.size,
        "matched_n_term_ions": int(matched[matching.is_n].sum()),
        "matched_c_term_ions": int(matched[~matching.is_n].sum()),
        "spectral_dot_product": both[SDP],
        "hyperscore": both[HYPERSCORE],
        "ksdp": both[KSDP],
        "xcorr": both[XCORR],
        "longest_run": max(longest(row.tolist()) for row in matched),
        "complementary_pairs": sum(bool(has_n[i] and has_c[length - 2 - i]) for i in range(length - 1)),
        "explained_weight": float(sum(weight[peak] ** 2 for peak in used)),
        "matched_peaks": len(used),
        "mean_fragment_error": sum(errors) / max(1, len(errors)),
        "mean_absolute_fragment_error": sum(map(abs, errors)) / max(1, len(errors)),
        "top_peaks_matched": sum(int((weight > weight[peak]).sum()) < 10 for peak in used),
        "c_term_dot_product": float(weight[[peak for peak in matching.peak[~matching.is_n].ravel() if peak >= 0]].sum()),
        "chance": float(binom.logsf(n_matched - 1, matched.size, probability)) / math.log(10),
    }


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"fragment": (0.0, 2e-5), "series": "abcxyz", "maximum_charge": 3},
        {"fragment": (0.5, 0.0), "correlation_bin": 1.0005079, "correlation_offset": 0.4},
        {"modifications": (OXIDATION, PHOSPHO, CARBAMYL, METHYL), "most": 3, "c_term": 17.5},
    ],
)
def test_match_features_equal_their_definitions(changes: dict[str, Any]) -> None:
    case = random_case(15, n_spectra=8, dyadic=False, precursor=(2.0, 0.0), **changes)
    rows = [(query, hit[1], hit[3]) for query in range(len(case.queries)) for hit in brute_force(case, query)[0][:6]]
    assert len(rows) > 10
    for row, features in zip(rows, measure_features(case, rows), strict=True):
        assert features == pytest.approx(expected_features(case, *row), rel=1e-4, abs=2e-4), row


@pytest.mark.parametrize("score", [SDP, KSDP, HYPERSCORE, XCORR])
@pytest.mark.parametrize("low_resolution", [False, True])
def test_match_feature_score_equals_the_search_score(score: int, low_resolution: bool) -> None:
    """The sparse XCorr of the features equals the dense one of the search, also beyond the last peak of a spectrum."""
    low: dict[str, Any] = {"correlation_bin": 1.0005079, "correlation_offset": 0.4, "fragment": (0.5, 0.0)}
    case = random_case(
        16,
        n_spectra=8,
        dyadic=False,
        score=score,
        precursor=(5.0, 0.0),
        modifications=(OXIDATION,),
        most=2,
        **(low if low_resolution else {}),
    )
    case = replace(case, spectra=[[peak for peak in peaks if peak[0] < 500] for peaks in case.spectra])
    hits = search(case)
    rows = [
        (q, int(hits.peptide[q, k]), form_of(hits, q, k))
        for q in range(len(case.queries))
        for k in range(case.n_hits)
        if hits.peptide[q, k] >= 0
    ]
    name = {SDP: "spectral_dot_product", KSDP: "ksdp", HYPERSCORE: "hyperscore", XCORR: "xcorr"}[score]
    values = [features[name] for features in measure_features(case, rows)]
    assert values == pytest.approx([float(score) for score in hits.score[hits.peptide >= 0]], rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("n_peaks", [0, 1])
def test_match_features_of_a_spectrum_with_few_peaks_are_finite(n_peaks: int) -> None:
    case = single_peptide_case("PEPTIDEK", [(300.0, 1.0, 50.0)][:n_peaks])
    assert np.all(np.isfinite(list(measure_features(case, [(0, 0, ())])[0].values())))


def test_match_features_with_zero_tolerance_are_finite() -> None:
    case = single_peptide_case("PEPTIDEK", [(200.0, 1.0, 50.0), (300.0, 1.0, 50.0)], fragment=(0.0, 0.0))
    assert np.all(np.isfinite(list(measure_features(case, [(0, 0, ())])[0].values())))


@pytest.mark.parametrize("charge", [3, 6])
def test_match_features_equal_definitions_for_1860_ions(charge: int) -> None:
    """62 bonds, six series and up to five charges: 1,860 ions; about half of the singly charged ones match here."""
    sequence = "ACDEFGHIKLMNPQRSTVWY" * 3 + "AAK"
    peaks = [(100.3 + 1.7 * i, 0.1, 1.0) for i in range(2500)]
    case = single_peptide_case(sequence, peaks, series="abcxyz", maximum_charge=5, fragment=(0.3, 0.0))
    case = replace(case, queries=[(0, charge, case.queries[0][2])])
    actual, expected = measure_features(case, [(0, 0, ())])[0], expected_features(case, 0, 0, ())
    assert actual["total_ions"] == 62 * 6 * (charge - 1)
    assert actual == pytest.approx(expected, rel=1e-4, abs=2e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"fragment": (0.5, 0.0), "series": "aybx", "maximum_charge": 3},
        {"modifications": (OXIDATION, PHOSPHO, CARBAMYL, METHYL), "most": 3, "c_term": 17.5},
        {"maximum_charge": 1},
    ],
)
def test_bond_peaks_equal_the_peaks_of_their_b_and_y_ions(changes: dict[str, Any]) -> None:
    case = random_case(31, n_spectra=8, dyadic=False, precursor=(2.0, 0.0), **changes)
    case = replace(case, queries=[(spectrum, 2 + i % 3, mass) for i, (spectrum, _, mass) in enumerate(case.queries)])
    rows = [(query, hit[1], hit[3]) for query in range(len(case.queries)) for hit in brute_force(case, query)[0][:6]]
    assert len(rows) > 10
    spectra, _, peptides, modifications = arrays_of(case)
    slots = max(1, case.most)
    site, modification = np.full((len(rows), slots), NOTHING, np.uint8), np.full((len(rows), slots), NOTHING, np.uint8)
    for i, (_, _, form) in enumerate(rows):
        for k, (place, number) in enumerate(form):
            site[i, k], modification[i, k] = place, number
    offsets = np.concatenate(([0], np.cumsum([len(case.peptides[row[1]].sequence) for row in rows]))).astype(np.int64)
    n_term, c_term = ([series for series in case.series if series in ends] for ends in ("abc", "xyz"))
    out = np.zeros((offsets[-1], 4), np.float32)
    spectrum_of, charge_of = (column([case.queries[row[0]][k] for row in rows]) for k in range(2))
    matches = MatchArrays(spectrum_of, charge_of, column([row[1] for row in rows]), site, modification)
    given = spectra, matches, peptides, modifications.mass, settings_of(case), (n_term.index("b"), c_term.index("y")), offsets
    for first, last in ((0, 3), (3, len(rows))):
        match_bonds(*given, first, last, out, np.zeros(1, np.uint8))
    some = 0
    for i, (query, number, form) in enumerate(rows):
        spectrum, charge, _ = case.queries[query]
        matched = match(case, case.peptides[number], form, charge, case.spectra[spectrum])
        charges = max(1, min(case.maximum_charge, charge - 1))
        expected = np.zeros((offsets[i + 1] - offsets[i], 4), np.float32)
        for z in range(min(2, charges)):
            for series, place in ((n_term.index("b"), z), (len(n_term) + c_term.index("y"), 2 + z)):
                for ion, peak in enumerate(matched.peak[series * charges + z].tolist()):
                    bond = ion if place < 2 else len(expected) - 2 - ion  # the ions of the C-terminus are counted from there
                    if peak >= 0:
                        expected[bond, place] = case.spectra[spectrum][peak][1]
        assert out[offsets[i] : offsets[i + 1]].tolist() == expected.tolist()
        some += int((expected > 0).sum())
    assert some > 20
