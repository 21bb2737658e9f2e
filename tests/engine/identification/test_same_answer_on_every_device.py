"""A search gives the same answer to the last bit with any number of threads, on one or two GPUs, and on GPUs with the CPU.

The GPUs are those of tests/shim. Every preset with every score runs through the kernels for sparse and dense windows and the
fragment-ion index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats import read_proteins
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.matches import scoring
from proteoscope.engine.matches.fragment_index import FragmentIndexSearch
from proteoscope.engine.matches.scoring import Matches, ScoringPass, plan_scoring
from proteoscope.engine.matches.scoring_settings import modification_arrays
from proteoscope.engine.parameters import preset_names, read_preset
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.peptide_index import build_peptide_index
from proteoscope.engine.peptides.protein_index import build_protein_index
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex, build_spectrum_index
from proteoscope.kernels.cuda.modules import Gpu
from proteoscope.kernels.cuda.scoring import SpectrumSearch
from proteoscope.kernels.layouts import HitArrays, PeptideArrays
from tests.shim.shim_gpu import ShimGpu, missing_compiler

pytestmark = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")

PROTON = 1.007276466621
PRESETS = preset_names("identify")
SCORES = ("spectral-dot-product", "ksdp", "hyperscore", "xcorr")
DENSE = {"spectral-dot-product": "search_tile_by_dot_product", "hyperscore": "search_tile_by_hyperscore"}
SPARSE = {
    "spectral-dot-product": "search_by_dot_product",
    "ksdp": "search_by_kernel_dot_product",
    "hyperscore": "search_by_hyperscore",
    "xcorr": "search_by_cross_correlation",
}


def peptides_for(folder: Path, parameters: IdentificationParameters) -> PeptideArrays:
    random = np.random.default_rng(11)
    is_wide = str(parameters.precursor_tolerance) == "500 Da"
    n, length = (2, 120) if parameters.specificity == "non-specific" else (10, 200) if is_wide else (150, 300)
    residues = list("AACDEEFGGHIKKLLMMNPQRRSSTTVVWY")
    (folder / "random.fasta").write_text("".join(f">P{i}\nM{''.join(random.choice(residues, length))}\n" for i in range(n)))
    digestion = Digestion.from_settings(parameters, parameters.specificity)
    proteins = build_protein_index(
        folder,
        read_proteins([folder / "random.fasta"]),
        database="random.fasta",
        decoys="reverse",
        decoy_prefix="DECOY_",
        cleaves=digestion.enzyme.cleavage_table(),
    )
    peptides = build_peptide_index(folder, proteins, digestion, Resources(2), memory_bytes=1 << 28)
    return peptides.arrays(proteins)


def spectra_for(peptides: PeptideArrays, parameters: IdentificationParameters, n: int = 10) -> Spectra:
    """Simulate fragments of peptides with noise, some at the tolerance limit; each spectrum twice, and once with reversed heights."""
    random = np.random.default_rng(12)
    tolerance = parameters.fragment_tolerance.value
    is_relative = parameters.fragment_tolerance.unit == "ppm"
    charge = min(2, parameters.maximum_charge)
    rows, precursors = [], []
    middle = int(np.searchsorted(peptides.mass, 1500.0))
    for row in middle + random.choice(6 * n, n, replace=False):  # neighbours in mass, so that windows share candidates
        start, length = int(peptides.position[row]), int(peptides.length[row])
        sums = np.cumsum(peptides.residue_mass[peptides.residues[start : start + length].astype(int) - 65])[:-1] + peptides.n_term_mass
        ions = np.concatenate((sums + PROTON, peptides.mass[row] - sums + PROTON))
        ions = ions[random.random(len(ions)) < 0.6]
        ions += random.choice([-1.0, 0.0, 1.0], len(ions)) * (ions * tolerance * 1e-6 if is_relative else tolerance)
        peaks = np.sort(np.concatenate((ions[ions > 130.0], random.uniform(140.0, 1200.0, 30))))
        heights = random.uniform(1.0, 100.0, len(peaks)).astype(np.float32)
        for other in (heights, heights, heights[::-1]):
            rows.append((peaks, other))
            precursors.append(float(peptides.mass[row]) / charge + PROTON)
    m = len(rows)
    return Spectra(
        ("x.mgf",),
        np.zeros(m, np.int32),
        [str(i) for i in range(m)],
        np.full(m, -1),
        np.arange(m),
        np.full(m, np.nan),
        np.array(precursors),
        np.zeros(m, np.float32),
        np.full(m, 1 << charge, np.uint32),
        np.cumsum([0, *(len(peaks) for peaks, _ in rows)]),
        np.concatenate([peaks for peaks, _ in rows]),
        np.concatenate([heights for _, heights in rows]).astype(np.float32),
    )


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[PeptideArrays, Spectra]]:
    """Return a function that makes and caches peptides and spectra for a preset."""
    made: dict[str, tuple[PeptideArrays, Spectra]] = {}

    def of(preset: str) -> tuple[PeptideArrays, Spectra]:
        if preset not in made:
            parameters = IdentificationParameters.checked(read_preset("identify", preset))
            peptides = peptides_for(tmp_path_factory.mktemp(preset), parameters)
            made[preset] = peptides, spectra_for(peptides, parameters)
        return made[preset]

    return of


def shim_gpus(n: int) -> list[ShimGpu]:
    made = [ShimGpu() for _ in range(n)]
    for number, gpu in enumerate(made):
        gpu.name = f"shim:{number}"
    return made


def answer(
    preset: str,
    score: str,
    prepared: Callable[[str], tuple[PeptideArrays, Spectra]],
    monkeypatch: pytest.MonkeyPatch,
    threads: int,
    gpus: list[ShimGpu],
    *,
    with_processor: bool = False,
) -> tuple[HitArrays, Matches]:
    """Preprocess spectra, search them, and return the result."""
    peptides, spectra = prepared(preset)
    parameters = IdentificationParameters.checked(read_preset("identify", preset)).changed(score=score, minimum_peaks=5)
    variable = tuple(parse_modification(name) for name in parameters.variable_modifications)
    index = build_spectrum_index(spectra, parameters, Resources(threads))
    used: list[Gpu] = [*gpus]
    search = plan_scoring(index, peptides, modification_arrays(variable, parameters), parameters, Resources(threads, used, with_processor))
    hits = search.score()
    assert len(used) == len(gpus), "a GPU failed"
    with monkeypatch.context() as patch:
        patch.setattr(ScoringPass, "score", lambda _: hits)
        return hits, search.run(with_bonds=True)


def assert_same(actual: tuple[HitArrays, Matches], expected: tuple[HitArrays, Matches]) -> None:
    (hits, matches), (other_hits, other_matches) = actual, expected
    for name, array, other_array in zip(HitArrays._fields, hits, other_hits, strict=True):
        assert np.asarray(array).tobytes() == np.asarray(other_array).tobytes(), name
    for field in fields(Matches):
        array, other_array = getattr(matches, field.name), getattr(other_matches, field.name)
        for name, values in array.items() if isinstance(array, dict) else ((field.name, array),):
            expected_values = other_array[name] if isinstance(other_array, dict) else other_array
            assert values.dtype == expected_values.dtype
            assert values.tobytes() == expected_values.tobytes(), name


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("preset", PRESETS)
def test_identify_tables_are_equal_on_any_threads_gpus_and_both(preset, score, prepared, monkeypatch):
    expected = answer(preset, score, prepared, monkeypatch, 1, [])
    assert expected[0].n_candidates.sum() > 80
    assert len(expected[1]) >= 10
    for threads in (2, 16):
        assert_same(answer(preset, score, prepared, monkeypatch, threads, []), expected)
    for n_gpus, with_processor in ((1, False), (2, False), (1, True)):
        gpus = shim_gpus(n_gpus)
        actual = answer(preset, score, prepared, monkeypatch, 2, gpus, with_processor=with_processor)
        if not with_processor:
            assert all(SPARSE[score] in gpu.launched or DENSE.get(score) in gpu.launched for gpu in gpus)
        assert_same(actual, expected)


@pytest.mark.parametrize("score", DENSE)
@pytest.mark.parametrize("preset", PRESETS)
def test_dense_precursor_windows_give_equal_tables_on_gpu(preset, score, prepared, monkeypatch):
    monkeypatch.setattr(SpectrumSearch, "minimum_sharing", 0.0)
    expected, gpus = answer(preset, score, prepared, monkeypatch, 2, []), shim_gpus(1)
    assert_same(answer(preset, score, prepared, monkeypatch, 2, gpus), expected)
    assert DENSE[score] in gpus[0].launched


@pytest.mark.parametrize("score", SCORES)
def test_spectra_too_large_for_a_gpu_are_searched_on_the_cpu(score, prepared, monkeypatch):
    preset = "low-resolution"
    expected, spectra = answer(preset, score, prepared, monkeypatch, 1, []), prepared(preset)[1]
    middle = int(np.median(np.diff(spectra.offsets))) - 3
    monkeypatch.setattr(scoring, "MAXIMUM_PEAKS", (middle,) * len(scoring.MAXIMUM_PEAKS))
    gpus = shim_gpus(1)
    assert_same(answer(preset, score, prepared, monkeypatch, 3, gpus), expected)
    assert SPARSE[score] in gpus[0].launched


@pytest.mark.parametrize("preset", ["open", "high-resolution", "ion-trap"])
@pytest.mark.parametrize("score", DENSE)
def test_identify_tables_with_fragment_index_are_equal_on_gpus(preset, score, prepared, monkeypatch):
    monkeypatch.setattr(FragmentIndexSearch, "is_worthwhile", lambda *_: True)
    expected = answer(preset, score, prepared, monkeypatch, 1, [])
    for threads in (2, 16):
        assert_same(answer(preset, score, prepared, monkeypatch, threads, []), expected)
    for n_gpus in (1, 2):
        gpus = shim_gpus(n_gpus)
        assert_same(answer(preset, score, prepared, monkeypatch, 2, gpus, with_processor=n_gpus == 1), expected)
        assert any("search_chunks" in gpu.launched for gpu in gpus)
        assert not any(SPARSE[score] in gpu.launched for gpu in gpus)


@pytest.mark.parametrize("factor", [0.05, 1.0, 20.0])
def test_fragment_index_is_chosen_by_candidate_counts_only(factor, prepared, monkeypatch):
    """The choice does not depend on GPUs, threads and memory, near the break-even point and far from it."""
    peptides, spectra = prepared("open")
    parameters = IdentificationParameters.checked(read_preset("identify", "open")).changed(minimum_peaks=5)
    index = build_spectrum_index(spectra, parameters, Resources(2))
    modifications = modification_arrays((), parameters)
    search = plan_scoring(index, peptides, modifications, parameters, Resources(2))
    candidates = search.n_candidates
    monkeypatch.setattr("proteoscope.kernels.counts._PER_ION", factor * _border(index, search, peptides, candidates))
    answers = {
        FragmentIndexSearch(index, peptides, modifications, search.settings, Resources(threads, list(gpus)), memory).is_worthwhile(
            candidates
        )
        for threads in (1, 2, 16)
        for memory in (1 << 20, 1 << 30)
        for gpus in ([], shim_gpus(1), shim_gpus(2))
    }
    assert answers == {factor > 1.0}


def _border(index: SpectrumIndex, search: ScoringPass, peptides: PeptideArrays, candidates: np.ndarray) -> float:
    """Find by bisection the cost of an ion lookup at which both ways take equally long."""
    low, high = 1e-3, 1e6
    modifications = search.modifications
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(60):
            middle = (low * high) ** 0.5
            patch.setattr("proteoscope.kernels.counts._PER_ION", middle)
            index_search = FragmentIndexSearch(index, peptides, modifications, search.settings, Resources(1), 1 << 30)
            low, high = (low, middle) if index_search.is_worthwhile(candidates) else (middle, high)
    return low
