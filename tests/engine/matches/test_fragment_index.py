"""Open searches with a fragment-ion index: same matches as scoring all candidates, bounded memory, and unlisted masses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyteomics import mass as pyteomics_mass

from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats import read_proteins, read_spectra
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Cancelled, Progress, ProgressEvent
from proteoscope.engine.matches.fragment_index import FragmentIndexSearch
from proteoscope.engine.matches.scoring import Matches, ScoringPass, plan_scoring
from proteoscope.engine.matches.scoring_settings import modification_arrays, scoring_settings
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.peptide_index import PeptideIndex, build_peptide_index
from proteoscope.engine.peptides.protein_index import ProteinIndex, build_protein_index
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex, build_spectrum_index
from proteoscope.kernels.cuda.modules import Gpu
from proteoscope.kernels.layouts import HitArrays
from tests.shim.shim_gpu import ShimGpu, missing_compiler

PROTON, PHOSPHO, CARBAMIDOMETHYL = 1.00727646688, 79.966331, 57.02146372
OPEN = IdentificationParameters.checked(read_preset("identify", "open"))


@dataclass(frozen=True)
class Database:
    proteins: ProteinIndex
    peptides: PeptideIndex

    def sequence(self, peptide: int) -> str:
        start = int(self.peptides.position[peptide])
        return bytes(self.proteins.proteins.residues[start : start + int(self.peptides.length[peptide])]).decode()


def database(folder: Path, files: list[Path]) -> Database:
    digestion = Digestion.from_settings(OPEN, "specific")
    index = build_protein_index(
        folder, read_proteins(files), database="x.fasta", decoys="reverse", decoy_prefix="DECOY_", cleaves=digestion.enzyme.cleavage_table()
    )
    return Database(index, build_peptide_index(folder, index, digestion, Resources(2), memory_bytes=1 << 28))


@pytest.fixture(scope="module")
def shewanella(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Database:
    return database(tmp_path_factory.mktemp("shewanella"), [shared_data / "proteomes" / "shew.fasta"])


@pytest.fixture(scope="module")
def sample(shared_data: Path) -> Spectra:
    """Return real spectra of Shewanella."""
    return read_spectra([shared_data / "spectra" / "qc_shew_qe" / "QC_Shew_18_02_Excerpt.mzXML"])


@pytest.fixture(scope="module")
def real(sample: Spectra) -> Spectra:
    """Return sixty spectra of the sample."""
    return sample.only(np.arange(0, 300, 5))


class StageRecorder(Progress):
    """Recorder of the titles of all stages."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        super().__init__(lambda event: self.stages.append(event.stage))


def prepared(
    spectra: Spectra, searched_database: Database, parameters: IdentificationParameters, progress: Progress | None = None
) -> tuple[SpectrumIndex, ScoringPass]:
    variable = tuple(parse_modification(name) for name in parameters.variable_modifications)
    resources = Resources(2, progress=progress or StageRecorder())
    index = build_spectrum_index(spectra, parameters, resources)
    search = plan_scoring(
        index,
        searched_database.peptides.arrays(searched_database.proteins),
        modification_arrays(variable, parameters),
        parameters,
        resources,
    )
    return index, search


def stages(search: ScoringPass) -> tuple[Matches, list[str]]:
    """Return the matches and the titles of all stages."""
    recorder = search.resources.progress
    assert isinstance(recorder, StageRecorder)
    recorder.stages.clear()
    return search.run(), list(dict.fromkeys(recorder.stages))


def without_index(monkeypatch: pytest.MonkeyPatch, search: ScoringPass) -> Matches:
    with monkeypatch.context() as patch:
        patch.setattr(FragmentIndexSearch, "is_worthwhile", lambda *_: False)
        matches, seen = stages(search)
    assert "Indexing fragments" not in seen
    return matches


def assert_same(actual: Matches, expected: Matches) -> None:
    for name in ("spectrum", "charge", "rank", "peptide", "isotope_error", "site", "modification", "score", "n_candidates"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name), name)
    np.testing.assert_allclose(actual.delta_score, expected.delta_score, atol=1e-6)
    # Rounded scores may fall into the next bin of the histogram, which can decide whether the bin is part of the fit.
    difference = np.abs(actual.expectation - expected.expectation)
    assert np.quantile(difference, 0.9) < 0.01
    assert difference.max() < 0.5
    for name, values in expected.features.items():
        np.testing.assert_array_equal(actual.features[name], values, name)


CHANGES: dict[str, dict[str, Any]] = {
    "the preset": {},
    "spectral dot product": {"score": "spectral-dot-product", "hits_per_spectrum": 10},
    "3 Da, with modifications": {
        "precursor_tolerance": "3 Da",
        "variable_modifications": ["Oxidation (M)", "Acetyl (Protein N-term)", "Deamidated (NQ)"],
        "maximum_modifications": 2,
        "isotope_errors": [-1, 0, 1],
    },
    "wide fragments": {"precursor_tolerance": "20 Da", "fragment_tolerance": "0.5 Da", "deisotope": False, "maximum_fragment_charge": 1},
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_fragment_index_search_equals_scoring_of_all_candidates(
    changes: dict[str, Any], shewanella: Database, real: Spectra, monkeypatch: pytest.MonkeyPatch
) -> None:
    spectra = real if "variable_modifications" not in changes else real.only(np.arange(0, 300, 15))
    _, search = prepared(spectra, shewanella, OPEN.changed(**changes))
    with monkeypatch.context() as patch:
        patch.setattr(FragmentIndexSearch, "is_worthwhile", lambda *_: True)
        matches, seen = stages(search)
    assert "Indexing fragments" in seen
    assert "Scoring spectra" in seen
    assert len(np.unique(matches.spectrum)) >= 0.8 * np.count_nonzero(np.diff(spectra.offsets))
    assert_same(matches, without_index(monkeypatch, search))


def empty_hits(n: int) -> HitArrays:
    return HitArrays(
        np.full((n, 5), -np.inf, np.float32),
        np.full((n, 5), -1, np.int64),
        np.zeros((n, 5), np.int8),
        np.full((n, 5, 3), 255, np.uint8),
        np.full((n, 5, 3), 255, np.uint8),
        np.zeros(n, np.int64),
        np.zeros((n, 96), np.int32),
        0.5,
    )


def fragment_search(
    spectra: Spectra,
    searched_database: Database,
    parameters: IdentificationParameters,
    threads: int,
    memory: int,
    gpus: Sequence[Gpu] = (),
    progress: Progress | None = None,
) -> FragmentIndexSearch:
    index, _ = prepared(spectra, searched_database, parameters)
    variable = modification_arrays(tuple(parse_modification(name) for name in parameters.variable_modifications), parameters)
    settings = scoring_settings(parameters, index.series, float(index.arrays.mz.max()))
    return FragmentIndexSearch(
        index,
        searched_database.peptides.arrays(searched_database.proteins),
        variable,
        settings,
        Resources(threads, list(gpus), progress=progress or Progress()),
        memory,
    )


def test_fragment_index_hits_do_not_depend_on_memory_and_threads(shewanella: Database, real: Spectra) -> None:
    spectra, parameters = (
        real.only(np.arange(0, 300, 20)),
        OPEN.changed(precursor_tolerance="10 Da", variable_modifications=["Oxidation (M)"]),
    )
    answers, n_parts = [], []
    for threads, memory in ((2, 1 << 30), (1, 4 << 20), (3, 1 << 20)):
        seen: set[str] = set()
        progress = Progress(lambda event, seen=seen: seen.add(event.stage))
        search = fragment_search(spectra, shewanella, parameters, threads, memory, progress=progress)
        hits = empty_hits(search._index.queries.mass.size)
        search.run(hits)
        answers.append(hits)
        n_parts.append(sum(stage.startswith("Indexing") for stage in seen))
    assert n_parts[0] == 1
    assert n_parts[2] > n_parts[1] > 3
    for other in answers[1:]:
        for name, first, second in zip(HitArrays._fields, answers[0], other, strict=True):
            assert np.array_equal(np.asarray(first), np.asarray(second)), name


@pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
@pytest.mark.parametrize(
    "full", [(False,), (False, False), (True, False), (True,)], ids=["one GPU", "two GPUs", "one full GPU of two", "one full GPU"]
)
def test_fragment_index_hits_are_equal_on_gpu_and_cpu(full: tuple[bool, ...], shewanella: Database, real: Spectra) -> None:
    """Parts that exceed the memory of a GPU are searched by other GPUs, or by threads of the CPU."""
    spectra, parameters = real.only(np.arange(0, 300, 60)), OPEN.changed(precursor_tolerance="1 Da")
    answers, on_gpus = [], tuple(ShimGpu() for _ in full)
    for gpu, is_full in zip(on_gpus, full, strict=True):
        gpu.largest_buffer = 1000 if is_full else 1 << 40
    for gpus in ((), on_gpus):
        search, hits = fragment_search(spectra, shewanella, parameters, 2, 1 << 26, gpus), empty_hits(5)
        search.run(hits)
        answers.append(hits)
    assert (answers[0].peptide[:, 0] >= 0).sum() >= 3
    for name, by_threads, by_gpus in zip(HitArrays._fields, *answers, strict=True):
        assert np.array_equal(np.asarray(by_threads), np.asarray(by_gpus)), name


def test_fragment_index_is_used_only_for_many_candidates(shewanella: Database, sample: Spectra) -> None:
    for changes, expected in (
        ({}, True),
        ({"precursor_tolerance": "40 Da", "variable_modifications": ["Oxidation (M)"]}, True),
        ({"precursor_tolerance": "10 ppm"}, False),
        ({"score": "ksdp"}, False),
        ({"score": "xcorr"}, False),
        ({"maximum_fragment_charge": 5, "ion_series": "abcxyz"}, False),  # more ions than a counter counts
    ):
        _, search = prepared(sample, shewanella, OPEN.changed(**changes))
        search_by_index = fragment_search(sample, shewanella, OPEN.changed(**changes), 2, 1 << 29)
        assert search_by_index.is_worthwhile(search.n_candidates) == expected, changes
    few = sample.only(np.arange(1))
    _, search = prepared(few, shewanella, OPEN)
    assert not fragment_search(few, shewanella, OPEN, 2, 1 << 29).is_worthwhile(search.n_candidates)


def test_fragment_index_choice_skips_counting_for_narrow_windows(
    shewanella: Database, real: Spectra, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FragmentIndexSearch, "_count_forms", lambda *_: pytest.fail("the forms were counted"))
    for window in ("10 ppm", "0.5 Da"):
        parameters = OPEN.changed(precursor_tolerance=window, variable_modifications=["Oxidation (M)"])
        _, search = prepared(real, shewanella, parameters)
        assert not fragment_search(real, shewanella, parameters, 2, 1 << 29).is_worthwhile(search.n_candidates)


def test_wide_search_without_fragment_index_logs_the_reason(shewanella: Database, real: Spectra) -> None:
    parameters = OPEN.changed(score="xcorr")
    _, search = prepared(real, shewanella, parameters)
    messages: list[str] = []
    progress = Progress(lambda event: messages.append(event.message))
    assert not fragment_search(real, shewanella, parameters, 2, 1 << 29, progress=progress).is_worthwhile(search.n_candidates)
    assert messages == ["Every candidate is scored, without a fragment-ion index: the score is not a sum over matching ions"]


@pytest.mark.parametrize("stage", ["Counting forms", "Indexing fragments", "Scoring spectra"])
def test_fragment_index_search_stops_at_cancel_in_any_stage(stage: str, shewanella: Database, real: Spectra) -> None:
    def listen(event: ProgressEvent) -> None:
        if event.stage == stage:
            progress.cancel()

    progress = Progress(listen)
    _, search = prepared(real, shewanella, OPEN, progress)
    with pytest.raises(Cancelled):
        search.run()


def shifted(spectra: Spectra, row: int, sequence: str, site: int) -> tuple[np.ndarray, float]:
    """Return the peaks and precursor of a spectrum with a phosphate at a site (from 1): ions with the site are heavier."""
    mz = spectra.mz[spectra.offsets[row] : spectra.offsets[row + 1]].copy()
    charge = int(spectra.charge_mask[row]).bit_length() - 1
    for i in range(1, len(sequence)):
        for ion, part in (("b", sequence[:i]), ("y", sequence[i:])):
            has_site = site <= i if ion == "b" else site > i
            for z in range(1, max(2, charge) if has_site else 1):
                at = pyteomics_mass.fast_mass(part, ion_type=ion, charge=z) + CARBAMIDOMETHYL * part.count("C") / z
                mz[np.abs(mz - at) < 3e-5 * at] += PHOSPHO / z
    return mz, float(spectra.precursor_mz[row]) + PHOSPHO / charge


def test_open_search_finds_unlisted_modification_in_real_spectra(shared_data: Path, tmp_path: Path) -> None:
    """Spectra of synthetic peptides have a phosphate added to fragments and precursor; the search has no such modification."""
    source = shared_data / "spectra" / "known_ids" / "proteometools_171_kuester_test.mgf"
    spectra = read_spectra([source])
    lines = source.read_text(encoding="utf-8").splitlines()
    titles, sequences = ([line[len(key) :] for line in lines if line.startswith(key)] for key in ("TITLE=", "SEQ="))
    sequence_of = dict(zip(titles, sequences, strict=True))
    rows = [row for row, title in enumerate(spectra.identifier) if len(sequence_of[title]) >= 9 and "M" not in sequence_of[title]]
    assert len(rows) > 60
    (tmp_path / "known.fasta").write_text("".join(f">known{i}\n{peptide}\n" for i, peptide in enumerate(sorted(set(sequence_of.values())))))
    searched_database = database(tmp_path, [shared_data / "proteomes" / "shew.fasta", tmp_path / "known.fasta"])
    mz, precursors = spectra.mz.copy(), spectra.precursor_mz.copy()
    intensity, random = spectra.intensity.copy(), np.random.default_rng(3)
    for row in rows:
        sequence = sequence_of[spectra.identifier[row]]
        peaks, precursors[row] = shifted(spectra, row, sequence, int(random.integers(2, len(sequence))))
        order = np.argsort(peaks)
        part = slice(spectra.offsets[row], spectra.offsets[row + 1])
        mz[part], intensity[part] = peaks[order], intensity[part][order]
    changed = replace(spectra, mz=mz, intensity=intensity, precursor_mz=precursors).only(np.array(rows))
    _, search = prepared(changed, searched_database, OPEN)
    matches, seen = stages(search)
    assert "Indexing fragments" in seen
    delta = matches.query_mass - searched_database.peptides.mass[matches.peptide]
    right = [
        searched_database.sequence(int(peptide)).replace("I", "L") == sequence_of[changed.identifier[int(spectrum)]].replace("I", "L")
        for spectrum, peptide in zip(matches.spectrum, matches.peptide, strict=True)
    ]
    assert sum(right) >= 0.7 * len(rows)
    # Precursors may be one isotope too heavy.
    assert np.median(np.abs(delta[right] - PHOSPHO)) < 0.01
    assert np.mean(np.abs(delta[right] - PHOSPHO) < 1.02) > 0.95
