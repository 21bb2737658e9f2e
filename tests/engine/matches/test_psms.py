"""Columns of PSMs, compared with string search in the proteins and masses of pyteomics."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyteomics import mass as pyteomics_mass

from proteoscope.engine.chemistry.enzymes import digest, enzyme
from proteoscope.engine.chemistry.modifications import parse_modification, with_replaced_masses
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats import read_proteins
from proteoscope.engine.matches.psms import (
    Psms,
    SystematicErrors,
    collect_psms,
    joined_psms,
    peptide_families,
    rescoring_features,
    search_score,
)
from proteoscope.engine.matches.scoring import Matches
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.peptide_index import PeptideIndex, build_peptide_index
from proteoscope.engine.peptides.protein_index import ProteinIndex, build_protein_index
from proteoscope.kernels.cpu.matches import feature_names

FIXED = tuple(parse_modification(name) for name in ("Carbamidomethyl (C)", "TMT6plex (N-term)", "TMT6plex (K)", "Amidated (C-term)"))
VARIABLE = with_replaced_masses([parse_modification(name) for name in ("Oxidation (M)", "Acetyl (Protein N-term)", "Phospho (STY)")], FIXED)
MASS = {
    "Oxidation": 15.994915,
    "Acetyl": 42.010565,
    "Phospho": 79.966331,
    "Carbamidomethyl": 57.021464,
    "TMT6plex": 229.162932,
    "Amidated": -0.984016,
}
TARGETS = ["MACMSTKCCMYRGGGSTMKLLVVC", "WWCMSTKCCMYRPPPPPK", "MACMSTKCCMYRAAAAAK", "MLLSTGAAAWK"]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> tuple[ProteinIndex, PeptideIndex]:
    folder: Path = tmp_path_factory.mktemp("psms")
    # The decoy of the last protein equals the third target, so that a target peptide occurs in decoys.
    sequences = [*TARGETS, TARGETS[2][::-1]]
    path = folder / "x.fasta"
    path.write_text("".join(f">P{i}\n{sequence}\n" for i, sequence in enumerate(sequences)), encoding="ascii")
    proteins = build_protein_index(
        folder, read_proteins([path]), database="x", decoys="reverse", decoy_prefix="D_", cleaves=enzyme("Trypsin").cleavage_table()
    )
    how = Digestion(enzyme("Trypsin"), 2, 2, 4, 40, True, 100.0, 6000.0, FIXED)
    return proteins, build_peptide_index(folder, proteins, how, Resources(1), memory_bytes=1 << 26)


def sequence_of(proteins: ProteinIndex, position: int, length: int) -> str:
    return bytes(np.asarray(proteins.proteins.residues[position : position + length])).decode()


def synthetic_matches(indexes: tuple[ProteinIndex, PeptideIndex]) -> Matches:
    """Return a match for each peptide, with M oxidised and an acetylated N-terminus for each second peptide."""
    proteins, peptides = indexes
    n = len(peptides)
    site, modification = np.full((n, 3), 255, np.uint8), np.full((n, 3), 255, np.uint8)
    for i in range(n):
        sequence = sequence_of(proteins, int(peptides.position[i]), int(peptides.length[i]))
        placed = [(position, 0) for position, residue in enumerate(sequence, 1) if residue == "M"][:2] + ([(0, 1)] if i % 2 else [])
        for k, (position, number) in enumerate(placed):
            site[i, k], modification[i, k] = position, number
    random = np.random.default_rng(2)
    numbers = np.arange(n)
    return Matches(
        numbers * 3,
        np.full(n, 2),
        np.ones(n, np.int64),
        peptides.mass[numbers] + 1.0033548378 * (numbers % 2),
        numbers,
        numbers % 2,
        site,
        modification,
        random.random(n),
        random.random(n),
        numbers + 5,
        -random.random(n),
        {name: random.random(n) for name in feature_names()},
        random.random((int(peptides.length.sum()), 4)).astype(np.float32),
        np.arange(n) % 2 == 0,
    )


@pytest.fixture(scope="module")
def psms(indexes: tuple[ProteinIndex, PeptideIndex]) -> Psms:
    return collect_psms(synthetic_matches(indexes), indexes[1], indexes[0], VARIABLE)


def placed(psms: Psms, row: int) -> list[tuple[int, str]]:
    inside = slice(psms.modification_offsets[row], psms.modification_offsets[row + 1])
    numbers = psms.modification[inside].tolist()
    return [(site, psms.modifications[number].name) for site, number in zip(psms.modification_site[inside].tolist(), numbers, strict=True)]


def test_psms_have_variable_and_fixed_modifications(indexes: tuple[ProteinIndex, PeptideIndex], psms: Psms) -> None:
    assert len(psms) == len(indexes[1]) > 15
    for row in range(len(psms)):
        sequence = sequence_of(indexes[0], int(psms.position[row]), int(psms.length[row]))
        expected = [(i, {"C": "Carbamidomethyl", "K": "TMT6plex"}[residue]) for i, residue in enumerate(sequence, 1) if residue in "CK"]
        expected += [(len(sequence) + 1, "Amidated")] + ([] if row % 2 else [(0, "TMT6plex")])  # acetyl replaces the label
        variable = [(i, "Oxidation") for i, residue in enumerate(sequence, 1) if residue == "M"][:2] + ([(0, "Acetyl")] if row % 2 else [])
        assert sorted(placed(psms, row)) == sorted(expected + variable)
        assert [site for site, _ in placed(psms, row)] == sorted(site for site, _ in placed(psms, row))
        assert psms.n_variable[row] == len(variable)
        total = pyteomics_mass.fast_mass(sequence) + sum(MASS[name] for _, name in expected + variable)
        assert psms.calculated_mass[row] == pytest.approx(total, abs=1e-4)
        assert psms.missed_cleavages[row] == sum(residue in "KR" and next_residue != "P" for residue, next_residue in pairwise(sequence))


def test_positions_of_target_psms_exclude_decoy_proteins(indexes: tuple[ProteinIndex, PeptideIndex], psms: Psms) -> None:
    proteins = indexes[0]
    names = [(proteins.proteins.accession(i), proteins.proteins.sequence(i)) for i in range(len(proteins))]
    both = 0
    for row in range(len(psms)):
        sequence = sequence_of(proteins, int(psms.position[row]), int(psms.length[row]))
        holders = {name for name, text in names if sequence in digested_peptides(text)}
        targets = {name for name in holders if not name.startswith("D_")}
        both += bool(targets) and holders != targets
        positions = psms.occurrences[psms.occurrence_offsets[row] : psms.occurrence_offsets[row + 1]]
        accessions = {proteins.proteins.accession(int(number)) for number in proteins.protein_of(positions)}
        assert accessions == (targets or holders)
        assert bool(psms.is_decoy[row]) == (not targets)
        assert all(sequence_of(proteins, int(position), len(sequence)) == sequence for position in positions)
        assert positions[0] == psms.position[row]
    assert both > 0


def digested_peptides(text: str) -> set[str]:
    return {text[start:stop] for start, stop, _ in digest(text, enzyme("Trypsin"), 2, clip_methionine=True)}


def test_psm_mass_errors_exclude_the_isotope_error(psms: Psms) -> None:
    expected = (psms.observed_mass - psms.isotope_error * 1.0033548378 - psms.calculated_mass) / psms.calculated_mass * 1e6
    assert psms.mass_error_ppm == pytest.approx(expected, rel=1e-9, abs=1e-6)
    plain = psms.n_variable == 0
    assert plain.any()
    assert np.all(np.abs(psms.mass_error_ppm[plain]) < 1e-6)


def rows_of(psms: Psms) -> list[tuple]:
    rows = []
    for row in range(len(psms)):
        flat = [getattr(psms, field.name)[row] for field in fields(psms) if field.name not in NOT_BY_ROW]
        positions = psms.occurrences[psms.occurrence_offsets[row] : psms.occurrence_offsets[row + 1]]
        assert psms.bonds is not None
        bonds = slice(psms.bonds.offsets[row], psms.bonds.offsets[row + 1])
        peaks = psms.bonds.residues[bonds].tobytes(), psms.bonds.weight[bonds].tobytes()
        rows.append((*flat, *peaks, tuple(positions), tuple(placed(psms, row)), tuple(column[row] for column in psms.features.values())))
    return rows


NOT_BY_ROW = (
    "bonds",
    "decoy_ratio",
    "features",
    "modifications",
    "occurrence_offsets",
    "occurrences",
    "modification_offsets",
    "modification_site",
    "modification",
)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_psms_take_retains_all_columns(psms: Psms, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(psms) - 1), max_size=12))
    every = rows_of(psms)
    taken = psms.take(np.array(rows, np.int64))
    assert len(taken) == len(rows)
    assert rows_of(taken) == [every[row] for row in rows]


def test_joined_psms_retain_all_columns(indexes: tuple[ProteinIndex, PeptideIndex], psms: Psms) -> None:
    matches = synthetic_matches(indexes)
    other = collect_psms(matches, indexes[1], indexes[0], (VARIABLE[0], VARIABLE[2]))  # acetyl has become phospho
    first, second = psms.take(np.array([5, 2, 7])), other.take(np.array([1, 3]))
    assert rows_of(joined_psms(first, second)) == rows_of(first) + rows_of(second)
    nothing = psms.take(np.empty(0, np.int64))
    assert rows_of(joined_psms(nothing, first)) == rows_of(first) == rows_of(joined_psms(first, nothing))
    assert len(joined_psms(nothing, nothing)) == 0


def test_psm_bonds_have_residues_of_the_peptide(indexes: tuple[ProteinIndex, PeptideIndex], psms: Psms) -> None:
    bonds = psms.bonds
    assert bonds is not None
    for row in range(len(psms)):
        residues = bonds.residues[bonds.offsets[row] : bonds.offsets[row + 1]]
        assert residues.tobytes().decode() == sequence_of(indexes[0], int(psms.position[row]), int(psms.length[row]))
    without = collect_psms(replace(synthetic_matches(indexes), bond_weights=None), indexes[1], indexes[0], VARIABLE)
    assert without.bonds is None
    assert without.take(np.array([1])).bonds is joined_psms(without, without).bonds is None


def test_no_matches_give_no_psms(indexes: tuple[ProteinIndex, PeptideIndex], psms: Psms) -> None:
    matches = synthetic_matches(indexes)
    values = {field.name: getattr(matches, field.name)[:0] for field in fields(matches) if field.name != "features"}
    none = collect_psms(
        Matches(**values, features={name: column[:0] for name, column in matches.features.items()}), indexes[1], indexes[0], ()
    )
    assert len(none) == 0
    assert none.modification_offsets.tolist() == none.occurrence_offsets.tolist() == [0]
    assert search_score(none).shape == (0,)
    assert all(column.shape == (0,) for column in rescoring_features(none, SystematicErrors.from_matches(none, np.empty(0, bool))).values())


def test_psm_search_score_is_weighted_mean_of_log_expectations(psms: Psms) -> None:
    for row, score in enumerate(search_score(psms)):
        by_chance = 10 ** psms.features["chance"][row] * (psms.n_candidates[row] + 1)
        assert 10 ** (-3 * score) == pytest.approx(by_chance * 10 ** (2 * psms.expectation[row]))


def test_rescoring_features_are_finite_and_label_free(psms: Psms) -> None:
    systematic = SystematicErrors.from_matches(psms, np.zeros(len(psms), bool))
    features = rescoring_features(psms, systematic)
    for name, column in features.items():
        assert column.shape == (len(psms),), name
        assert column.dtype == np.float64, name
        assert np.all(np.isfinite(column)), name
    swapped = Psms(**{**{field.name: getattr(psms, field.name) for field in fields(psms)}, "is_decoy": ~psms.is_decoy})
    for name, column in rescoring_features(swapped, systematic).items():
        assert np.array_equal(column, features[name]), name


def test_precursor_error_feature_is_distance_to_median_error(psms: Psms) -> None:
    confident = np.arange(len(psms)) % 2 == 0
    assert confident.sum() >= 10
    systematic, error = SystematicErrors.from_matches(psms, confident), psms.mass_error_ppm
    distance = rescoring_features(psms, systematic)["precursor_error"]
    ascending = sorted(error[confident].tolist())
    middle = (ascending[(len(ascending) - 1) // 2] + ascending[len(ascending) // 2]) / 2
    assert distance == pytest.approx([abs(value - middle) for value in error], abs=1e-6)


@pytest.mark.parametrize("agent", ["Trypsin", "Asp-N", "Lys-C", "unspecific cleavage"])
@pytest.mark.parametrize("decoys", ["reverse", "pseudo-reverse", "shuffle"])
def test_peptide_families_join_decoys_and_their_targets(agent: str, decoys: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    target_sequences = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 300)) for _ in range(20)]
    path = tmp_path / "proteins.fasta"
    path.write_text("".join(f">P{number}\n{sequence}\n" for number, sequence in enumerate(target_sequences)))
    table = enzyme(agent).cleavage_table()
    index = build_protein_index(
        tmp_path, read_proteins([path]), database="", decoys=decoys, decoy_prefix="DECOY_", cleaves=table, contaminants=None
    )
    decoy_sequences = [index.proteins.sequence(number) for number in range(20, 40)]
    missed, specificity = (0, "non-specific") if agent.startswith("unspecific") else (2, "specific")

    def families(sequences: list[str]) -> np.ndarray:
        peptides = [
            sequence[span.start : span.stop]
            for sequence in sequences
            for span in digest(sequence, enzyme(agent), missed, specificity, 7, 12)
        ]
        residues = np.frombuffer("".join(peptides).encode(), np.uint8)
        return peptide_families(residues, np.concatenate(([0], np.cumsum([len(peptide) for peptide in peptides]))), enzyme(agent))

    of_targets, of_decoys = families(target_sequences), families(decoy_sequences)
    if agent.startswith("unspecific") and decoys != "reverse":
        return  # cleavage at each bond leaves each residue in its place
    assert np.isin(of_decoys, of_targets).mean() > 0.85, "all but those at the ends of proteins"
    elsewhere = families(["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 300)) for _ in range(20)])
    assert np.isin(elsewhere, of_targets).mean() < 0.05


def test_peptide_families_treat_leucine_as_isoleucine() -> None:
    residues = np.frombuffer(b"PEPTIDEKPEPTLDERPEPTVDEK", np.uint8)
    first, second, third = peptide_families(residues, np.array([0, 8, 16, 24]), enzyme("Trypsin"))
    assert first == second != third
