"""Scoring of spectra: settings, combinations, ranks, independence of threads, and spectra of known peptides."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pyteomics import mass as pyteomics_mass

from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats import Proteins, read_proteins, read_spectra
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.matches import scoring
from proteoscope.engine.matches.psms import collect_psms
from proteoscope.engine.matches.scoring import Matches, plan_scoring
from proteoscope.engine.matches.scoring_settings import modification_arrays, scoring_settings
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.peptide_index import PeptideIndex, build_peptide_index
from proteoscope.engine.peptides.protein_index import ProteinIndex, build_protein_index
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectrum_index import build_spectrum_index
from proteoscope.kernels.cpu import candidates
from proteoscope.kernels.layouts import PeptideArrays, ScoringSettings

PROTON = 1.00727646688
SCORES = ("spectral-dot-product", "ksdp", "hyperscore", "xcorr")


@dataclass(frozen=True)
class Database:
    proteins: ProteinIndex
    peptides: PeptideIndex

    def sequence(self, peptide: int) -> str:
        start = int(self.peptides.position[peptide])
        return bytes(self.proteins.proteins.residues[start : start + int(self.peptides.length[peptide])]).decode()


def database(folder: Path, proteins: Proteins, missed: int = 2, decoys: str = "reverse") -> Database:
    cleaves = enzyme("Trypsin").cleavage_table()
    index = build_protein_index(folder, proteins, database="x.fasta", decoys=decoys, decoy_prefix="DECOY_", cleaves=cleaves)
    fixed = (parse_modification("Carbamidomethyl (C)"),)
    how = Digestion(enzyme("Trypsin"), 2, missed, 7, 50, True, 500.0, 6000.0, fixed)
    return Database(index, build_peptide_index(folder, index, how, Resources(2), memory_bytes=1 << 29))


def search(spectra: Spectra, searched: Database, parameters: IdentificationParameters, threads: int = 2) -> Matches:
    variable = tuple(parse_modification(name) for name in parameters.variable_modifications)
    index = build_spectrum_index(spectra, parameters, Resources(threads))
    run = plan_scoring(
        index, searched.peptides.arrays(searched.proteins), modification_arrays(variable, parameters), parameters, Resources(threads)
    )
    return run.run()


def fasta(folder: Path, sequences: Sequence[str]) -> Proteins:
    path = folder / "random.fasta"
    path.write_text("".join(f">P{i}\n{sequence}\n" for i, sequence in enumerate(sequences)), encoding="ascii")
    return read_proteins([path])


def fragments(sequence: str, added: dict[int, float] | None = None) -> list[float]:
    """Return m/z of singly charged b and y ions, with masses added by site."""
    extra = {i: 57.02146372 for i, residue in enumerate(sequence, 1) if residue == "C"}
    for site, mass in (added or {}).items():
        extra[site] = extra.get(site, 0.0) + mass
    ions = []
    for i in range(1, len(sequence)):
        ions.append(pyteomics_mass.fast_mass(sequence[:i], ion_type="b", charge=1) + sum(mass for site, mass in extra.items() if site <= i))
        ions.append(pyteomics_mass.fast_mass(sequence[i:], ion_type="y", charge=1) + sum(mass for site, mass in extra.items() if site > i))
    return ions


def create_spectra(rows: list[tuple[list[float], list[float], float, int]]) -> Spectra:
    """Create spectra from rows of m/z, intensities, neutral mass and charge mask; the precursor m/z is that of the lowest charge."""
    n = len(rows)
    sorted_rows = [sorted(zip(mz, height, strict=True)) for mz, height, _, _ in rows]
    lowest = [(mask & -mask).bit_length() - 1 for _, _, _, mask in rows]
    flat = [peak for peaks in sorted_rows for peak in peaks]
    return Spectra(
        ("x.mgf",),
        np.zeros(n, np.int32),
        [str(i) for i in range(n)],
        np.full(n, -1),
        np.arange(n),
        np.full(n, np.nan),
        np.array([mass / z + PROTON for (_, _, mass, _), z in zip(rows, lowest, strict=True)]),
        np.zeros(n, np.float32),
        np.array([mask for _, _, _, mask in rows], np.uint32),
        np.cumsum([0, *map(len, sorted_rows)]).astype(np.int64),
        np.array([peak[0] for peak in flat]),
        np.array([peak[1] for peak in flat], np.float32),
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Database:
    folder, random = tmp_path_factory.mktemp("small"), np.random.default_rng(5)
    residues = list("AACDEEFGGHIKKLLMMNPQRRSSTTVVWY")
    return database(folder, fasta(folder, ["M" + "".join(random.choice(residues, 300)) for _ in range(150)]))


@pytest.fixture(scope="module")
def simulated(small: Database) -> tuple[Spectra, list[str]]:
    """Simulate spectra with half of the fragments of random peptides and noise; the last third has only noise."""
    random, rows, truth = np.random.default_rng(6), [], []
    for number in range(150):
        peptide = int(random.integers(len(small.peptides)))
        sequence, mass = small.sequence(peptide), float(small.peptides.mass[peptide])
        oxidised = [i for i, residue in enumerate(sequence, 1) if residue == "M"][: int(random.integers(3))]
        ions = np.array(fragments(sequence, dict.fromkeys(oxidised, 15.99491462)))
        mass += 15.99491462 * len(oxidised)
        real = random.choice(ions, len(ions) // 2, replace=False) if number < 100 else np.empty(0)
        noise = random.uniform(110, 1400, 30)
        mz = np.concatenate((real * (1 + random.normal(0, 4e-6, len(real))), noise))
        heights = np.concatenate((random.uniform(20, 100, len(real)), random.uniform(5, 60, len(noise))))
        mask = 0b1100 if number % 10 == 0 else 1 << int(random.integers(2, 4))
        rows.append((mz.tolist(), heights.tolist(), mass * (1 + random.normal(0, 3e-6)), mask))
        truth.append(sequence)
    return create_spectra(rows), truth


@pytest.mark.parametrize("score", SCORES)
def test_scoring_finds_the_peptides_of_simulated_spectra(small: Database, simulated: tuple[Spectra, list[str]], score: Any) -> None:
    spectra, truth = simulated
    matches = search(spectra, small, IdentificationParameters(score=score))
    best = {int(s): small.sequence(int(p)) for s, p, r in zip(matches.spectrum, matches.peptide, matches.rank, strict=True) if r == 1}
    assert sum(best.get(i) == truth[i] for i in range(100)) >= 98


@pytest.mark.parametrize("score", SCORES)
def test_scoring_is_equal_on_any_threads(small: Database, simulated: tuple[Spectra, list[str]], score: Any) -> None:
    parameters = IdentificationParameters(
        score=score, hits_per_spectrum=3, precursor_tolerance="0.5 Da", variable_modifications=("Oxidation (M)", "Phospho (STY)")
    )
    first = search(simulated[0], small, parameters, 1)
    assert len(first) > 280
    for threads in (2, 5):
        other = search(simulated[0], small, parameters, threads)
        for name in (
            "spectrum",
            "charge",
            "rank",
            "peptide",
            "isotope_error",
            "site",
            "modification",
            "score",
            "delta_score",
            "expectation",
        ):
            assert np.array_equal(getattr(first, name), getattr(other, name)), name
        for name, values in first.features.items():
            assert np.array_equal(values, other.features[name], equal_nan=True), name


def test_psm_ranks_and_delta_scores_equal_the_definition(small: Database, simulated: tuple[Spectra, list[str]]) -> None:
    parameters = IdentificationParameters(
        hits_per_spectrum=20, minimum_matched_ions=1, variable_modifications=("Oxidation (M)", "Phospho (STY)")
    )
    matches, checked = search(simulated[0], small, parameters), 0
    for spectrum in np.unique(matches.spectrum):
        rows = np.flatnonzero(matches.spectrum == spectrum)
        assert matches.rank[rows].tolist() == list(range(1, len(rows) + 1))
        score, peptide = matches.score[rows], matches.peptide[rows]
        assert np.all(np.diff(score) <= 0)
        for k in range(len(rows) - 4 if len(rows) == 20 else len(rows)):
            # Four further rows are considered, as with one hit per spectrum.
            following = range(k + 1, min(k + 5, len(rows)))
            rivals = [score[j] for j in following if peptide[j] != peptide[k]]
            same = [score[j] for j in following if peptide[j] == peptide[k]]
            expected = rivals[0] if rivals else same[-1] if same else 0.0
            assert matches.delta_score[rows[k]] == pytest.approx(score[k] - expected, abs=1e-6)
            checked += 1
    assert checked > 100


def test_scoring_first_hits_do_not_depend_on_hits_per_spectrum(small: Database, simulated: tuple[Spectra, list[str]]) -> None:
    parameters = IdentificationParameters(minimum_matched_ions=1, variable_modifications=("Oxidation (M)", "Phospho (STY)"))
    single, many = (search(simulated[0], small, parameters.changed([f"hits_per_spectrum={hits}"])) for hits in (1, 20))
    first = many.rank == 1
    assert first.sum() < len(first)
    for name in ("spectrum", "peptide", "score", "delta_score", "expectation", "n_candidates", "site", "modification"):
        np.testing.assert_array_equal(getattr(single, name), getattr(many, name)[first])


def test_scoring_chooses_the_best_charge_of_a_spectrum(small: Database) -> None:
    peptide = next(i for i in range(len(small.peptides)) if small.peptides.length[i] == 14)
    sequence, mass = small.sequence(peptide), float(small.peptides.mass[peptide])
    ions = fragments(sequence)
    spectra = create_spectra([(ions, [10.0 + i for i in range(len(ions))], mass, 0b100)])
    unknown = Spectra(**{**spectra.__dict__, "charge_mask": np.zeros(1, np.uint32)})
    matches = search(unknown, small, IdentificationParameters(minimum_charge=1, maximum_charge=5, hits_per_spectrum=5))
    assert small.sequence(int(matches.peptide[0])) == sequence
    assert matches.charge[0] == 2
    assert matches.query_mass[0] == pytest.approx(mass, abs=1e-5)
    assert np.all(matches.spectrum == 0)


def test_scoring_gives_no_row_for_spectra_without_a_match(small: Database) -> None:
    spectra = create_spectra([([150.0 + 9 * i for i in range(12)], [1.0] * 12, 1000.9, 0b100), ([], [], 1500.0, 0b100)])
    assert len(search(spectra, small, IdentificationParameters(precursor_tolerance="1 ppm"))) == 0
    assert len(search(create_spectra([]), small, IdentificationParameters())) == 0


@pytest.mark.parametrize("score", SCORES)
def test_score_expectations_are_finite_and_near_one_for_noise(small: Database, score: Any) -> None:
    """By definition the best wrong candidate has a median expectation of ln 2 = 10^-0.16."""
    random = np.random.default_rng(8)
    rows = [
        (random.uniform(110, 1400, 60).tolist(), random.uniform(1, 100, 60).tolist(), float(random.uniform(900, 2200)), 0b100)
        for _ in range(200)
    ]
    parameters = IdentificationParameters(
        precursor_tolerance="30 Da",
        isotope_errors=(0,),
        fragment_tolerance="0.5 Da",
        correlation_bin=1.0005,
        minimum_matched_ions=1,
        score=score,
    )
    matches = search(create_spectra(rows), small, parameters)
    assert len(matches) > 180
    assert np.all(np.isfinite(matches.expectation))
    assert abs(float(np.median(matches.expectation)) + 0.16) < 0.7


def test_score_expectations_decrease_with_score(small: Database, simulated: tuple[Spectra, list[str]]) -> None:
    matches = search(simulated[0], small, IdentificationParameters(hits_per_spectrum=5, precursor_tolerance="0.5 Da"))
    same = (matches.spectrum[1:] == matches.spectrum[:-1]) & (matches.charge[1:] == matches.charge[:-1])
    assert same.sum() > 100
    assert np.all(matches.expectation[:-1][same] <= matches.expectation[1:][same] + 1e-9)


def test_scoring_stops_at_cancel(small: Database, simulated: tuple[Spectra, list[str]]) -> None:
    parameters, progress = IdentificationParameters(), Progress()
    index = build_spectrum_index(simulated[0], parameters, Resources(1))
    run = plan_scoring(
        index, small.peptides.arrays(small.proteins), modification_arrays((), parameters), parameters, Resources(2, progress=progress)
    )
    progress.cancel()
    with pytest.raises(Cancelled):
        run.run()


@pytest.mark.parametrize("threads", [1, 2])
def test_scoring_stops_at_cancel_within_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """Cancel a search that would take about 15 seconds: 200,000 forms of each peptide."""
    progress = Progress()
    searched_database = database(tmp_path, fasta(tmp_path, ["S" * 40 + residue + "K" for residue in "ADEFGHILMNPQVWY"]), decoys="none")
    parameters = IdentificationParameters(
        score="ksdp",
        precursor_tolerance="10000 Da",
        variable_modifications=("Phospho (S)",),
        maximum_modifications=5,
        maximum_forms=100_000,
    )
    index = build_spectrum_index(
        create_spectra([([150.0 + 9 * i for i in range(60)], [1.0] * 60, 4000.0, 0b100)]), parameters, Resources(1)
    )
    variable = tuple(parse_modification(name) for name in parameters.variable_modifications)
    run = plan_scoring(
        index,
        searched_database.peptides.arrays(searched_database.proteins),
        modification_arrays(variable, parameters),
        parameters,
        Resources(threads, progress=progress),
    )
    searched: list[Any] = []
    kernel = candidates.search_queries

    def recording(*arguments: Any) -> None:
        searched.append(arguments[5])
        kernel(*arguments)
        searched.append(None)  # end of the kernel

    monkeypatch.setattr(candidates, "search_queries", recording)

    def cancel() -> None:
        while not searched or searched[0].n_candidates[0] == 0:
            time.sleep(1e-3)
        progress.cancel()

    watcher = threading.Thread(target=cancel, daemon=True)
    watcher.start()
    with pytest.raises(Cancelled):
        run.run()
    forms = sum(min(100_000, math.comb(40, k)) for k in range(6))
    assert len(searched) == 2, "no further kernel runs"
    assert searched[0].n_candidates[0] < len(searched_database.peptides) * forms / 2


def test_scoring_ignores_peaks_above_the_heaviest_ion(
    small: Database, simulated: tuple[Spectra, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    spectra, parameters = simulated[0], IdentificationParameters(variable_modifications=("Oxidation (M)",), score="xcorr")
    sizes, answers = [], []

    def recording(parameters: IdentificationParameters, series: str, maximum_mz: float) -> ScoringSettings:
        sizes.append(maximum_mz)
        return scoring_settings(parameters, series, maximum_mz)

    def with_peak(mz: float) -> Spectra:
        first = int(spectra.offsets[1])
        return Spectra(
            **{
                **spectra.__dict__,
                "offsets": np.concatenate(([0], spectra.offsets[1:] + 1)),
                "mz": np.insert(spectra.mz, first, mz),
                "intensity": np.insert(spectra.intensity, first, 50.0),
            }
        )

    monkeypatch.setattr(scoring, "scoring_settings", recording)
    assert len(search(with_peak(1e9), small, parameters)) >= 100
    for bound in (scoring.heaviest_ion, lambda *_: np.inf):
        monkeypatch.setattr(scoring, "heaviest_ion", bound)
        answers.append(search(with_peak(20_000.0), small, parameters))
    heaviest = float(small.peptides.mass.max()) + 3 * 15.9949
    assert heaviest < sizes[0] == sizes[1] < heaviest + 200 < sizes[2]
    for name in ("spectrum", "peptide", "score", "delta_score", "site", "expectation"):
        np.testing.assert_array_equal(getattr(answers[0], name), getattr(answers[1], name))
    for name, values in answers[0].features.items():
        np.testing.assert_array_equal(values, answers[1].features[name])


@pytest.mark.parametrize(("residue", "c_term"), [(0.0, 0.0), (-120.0, 0.0), (0.0, -300.0)])
def test_heaviest_ion_bounds_all_fragment_masses(residue: float, c_term: float) -> None:
    """Check also negative masses, which make a fragment heavier than its peptide."""
    masses = np.full(26, np.nan)
    masses[[0, 6, 10]] = 71.03711 + residue, 57.02146, 128.09496
    names = ("-80.0 (K)", "+100.0 (G)")
    variable = modification_arrays(tuple(parse_modification(name) for name in names), IdentificationParameters(maximum_modifications=2))
    heaviest = 0.0
    sequences = ["GAKGA", "GGGGGGKKKAAAAAA", "A" * 30 + "G"]
    of_residue = [masses[np.frombuffer(sequence.encode(), np.uint8) - 65] for sequence in sequences]
    for sequence, base in zip(sequences, of_residue, strict=True):
        symbols = np.array(list(sequence))
        for counts in variable.combination_count:
            if all(count <= np.sum(symbols == residue) for count, residue in zip(counts, "KG", strict=True)):
                added = base.copy()
                added[np.flatnonzero(symbols == "G")[: counts[1]]] += 100.0
                added[np.flatnonzero(symbols == "K")[::-1][: counts[0]]] -= 80.0
                heaviest = max(heaviest, np.cumsum(added)[:-1].max(), np.cumsum(added[::-1])[:-1].max() + c_term) + 44.0
    mass = np.array([base.sum() + 18.0106 + c_term for base in of_residue])
    empty = np.zeros(0, np.uint8)
    peptides = PeptideArrays(mass, empty, empty, empty, empty, empty, masses, 0.0, c_term)  # type: ignore[arg-type]
    assert scoring.heaviest_ion(peptides, variable) > heaviest


def test_scoring_settings_equal_search_parameters() -> None:
    parameters = IdentificationParameters(
        precursor_tolerance="0.5 Da", fragment_tolerance="20 ppm", isotope_errors=(0, -1, 2), score="xcorr"
    )
    settings = scoring_settings(parameters, "abcxyzb", 1200.0)
    assert (settings.precursor_absolute, settings.precursor_relative) == (0.5, 0.0)
    assert (settings.fragment_absolute, settings.fragment_relative) == (0.0, pytest.approx(2e-5))
    assert settings.isotope_errors.tolist() == [2, 0, -1]
    assert SCORES[settings.score] == "xcorr"
    assert settings.maximum_mz > 1200

    def offset(series: str) -> float:
        return float(pyteomics_mass.fast_mass("GAS", ion_type=series, charge=1)) - sum(
            pyteomics_mass.std_aa_mass[residue] for residue in "GAS"
        )

    assert settings.n_term_series == pytest.approx([offset("a"), offset("b"), offset("c")], abs=1e-5)
    assert settings.c_term_series == pytest.approx([offset("x"), offset("y"), offset("z-dot")], abs=1e-5)


def test_isotope_errors_are_searched_from_2_percent_abundance() -> None:
    settings = scoring_settings(IdentificationParameters(isotope_errors=(-1, 0, 1, 2, 3)), "by", 1000.0)
    for error, mass in zip(settings.isotope_errors.tolist(), settings.isotope_minimum_mass.tolist(), strict=True):
        if error <= 0:
            assert mass == 0
        else:
            expected_isotopes = mass / 1800
            assert expected_isotopes**error / math.factorial(error) == pytest.approx(0.02)


@pytest.mark.parametrize("maximum", [0, 1, 3])
@pytest.mark.parametrize(
    "names",
    [
        (),
        ("Oxidation (M)",),
        ("Oxidation (M)", "Phospho (STY)", "Deamidated (NQ)"),
        ("Acetyl (Protein N-term)", "Carbamyl (N-term)", "Amidated (C-term)", "Oxidation (M)"),
        ("Gln->pyro-Glu (N-term Q)", "Acetyl (N-term)"),
    ],
)
def test_modification_combinations_are_all_valid_multisets(names: tuple[str, ...], maximum: int) -> None:
    variable = tuple(parse_modification(name) for name in names)
    arrays = modification_arrays(variable, IdentificationParameters(variable_modifications=names, maximum_modifications=maximum))
    expected = set()
    for counts in product(range(maximum + 1), repeat=len(variable)):
        ends = Counter(
            modification.position.split()[1]
            for modification, count in zip(variable, counts, strict=True)
            for _ in range(count)
            if modification.position != "anywhere"
        )
        if sum(counts) <= maximum and max(ends.values(), default=0) <= 1:
            expected.add(counts)
    rows = [tuple(row) for row in arrays.combination_count.tolist()]
    assert len(set(rows)) == len(rows)
    assert set(rows) == expected
    assert sum(rows[0]) == 0, "the empty combination comes first"
    assert arrays.combination_mass == pytest.approx(
        [sum(n * modification.mass for n, modification in zip(row, variable, strict=True)) for row in rows], abs=1e-9
    )
    for mask, modification in zip(arrays.residue_mask.tolist(), variable, strict=True):
        residues = {residue for residue in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if mask >> ord(residue) - 65 & 1}
        assert residues == set(modification.residues or "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


# Spectra of known peptides, among all proteins of five species.

KNOWN = ("massivekb_selected_500", "proteometools_171_kuester_test")


def known_peptides(folder: Path, name: str) -> dict[str, str]:
    """Return identifier and peptide of spectra with carbamidomethyl on each C and no variable modification but oxidation of M."""
    if name == KNOWN[1]:
        lines = (folder / f"{name}.mgf").read_text(encoding="utf-8").splitlines()
        titles, sequences = ([line[len(key) :] for line in lines if line.startswith(key)] for key in ("TITLE=", "SEQ="))
        return dict(zip(titles, sequences, strict=True))
    peptides = {}
    for line in (folder / f"{name}.peprec").read_text(encoding="utf-8").splitlines()[1:]:
        identifier, modifications, sequence, _ = line.split()
        carried = Counter(modifications.split("|")[1::2])
        cysteines = carried.pop("Carbamidomethyl", 0)
        if set(carried) <= {"Oxidation"} and cysteines == sequence.count("C") and 7 <= len(sequence) <= 50:
            peptides[identifier] = sequence
    return peptides


@pytest.fixture(scope="module")
def combo(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Database:
    folder = tmp_path_factory.mktemp("combo")
    sequences = sorted(
        {known_peptide for name in KNOWN for known_peptide in known_peptides(shared_data / "spectra" / "known_ids", name).values()}
    )
    (folder / "known.fasta").write_text("".join(f">known{i}\n{sequence}\n" for i, sequence in enumerate(sequences)), encoding="ascii")
    return database(folder, read_proteins([shared_data / "proteomes" / "combo.fasta", folder / "known.fasta"]), missed=3)


def identified_share(
    folder: Path, name: str, searched_database: Database, parameters: IdentificationParameters
) -> tuple[float, int, NDArray[np.bool_]]:
    """Return the share of known peptides that rank first (I = L), their number, and whether each best hit is a decoy."""
    truth, spectra = known_peptides(folder, name), read_spectra([folder / f"{name}.mgf"])
    matches = search(spectra, searched_database, parameters)
    psms = collect_psms(
        matches,
        searched_database.peptides,
        searched_database.proteins,
        tuple(parse_modification(variable_modification) for variable_modification in parameters.variable_modifications),
    )
    best = {
        spectra.identifier[int(spectrum)]: searched_database.sequence(int(peptide)).replace("I", "L")
        for spectrum, peptide, rank in zip(matches.spectrum, matches.peptide, matches.rank, strict=True)
        if rank == 1
    }
    right = sum(best.get(identifier) == sequence.replace("I", "L") for identifier, sequence in truth.items())
    return right / len(truth), len(truth), psms.is_decoy[psms.rank == 1]


# Measured: SDP 400, KSDP 400, hyperscore 401 and XCorr 399 of 408, among 6.5 million peptides.
@pytest.mark.parametrize("score", SCORES)
def test_known_peptides_of_massivekb_rank_first(shared_data: Path, combo: Database, score: Any) -> None:
    share, n, _ = identified_share(shared_data / "spectra" / "known_ids", KNOWN[0], combo, IdentificationParameters(score=score))
    assert n == 408
    assert share >= 0.965


def test_known_peptides_rank_first_with_wide_fragment_bins(shared_data: Path, combo: Database) -> None:
    parameters = IdentificationParameters(fragment_tolerance="0.5 Da", correlation_bin=1.0005, deisotope=False, score="hyperscore")
    share, _, _ = identified_share(shared_data / "spectra" / "known_ids", KNOWN[0], combo, parameters)
    assert share >= 0.9


# Measured: all 171.
def test_synthetic_peptides_of_proteometools_rank_first(shared_data: Path, combo: Database) -> None:
    share, n, is_decoy = identified_share(shared_data / "spectra" / "known_ids", KNOWN[1], combo, IdentificationParameters())
    assert n == 171
    assert share >= 0.98
    assert is_decoy.mean() <= 0.01
