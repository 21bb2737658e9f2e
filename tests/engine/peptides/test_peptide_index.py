"""The peptide inverted index against the reference digest, with masses added up by pyteomics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyteomics import mass as pyteomics_mass

from proteoscope.engine.chemistry.enzymes import Specificity, digest, enzyme
from proteoscope.engine.chemistry.masses import RESIDUE_MASS, WATER_MASS
from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.peptide_index import PeptideIndex, build_peptide_index, open_peptide_index
from proteoscope.engine.peptides.protein_index import ProteinIndex, build_protein_index

SPECIFICITIES: tuple[Specificity, ...] = ("non-specific", "semi-specific", "specific")
WITHOUT_MASS = set("BXZ")
ALL_RESIDUES = "ACDEFGHIKLMNPQRSTVWY" * 4 + "KKRRPPMM" + "UOBXZJ"
Entry = tuple[str, int, tuple[int, ...]]


def protein_index(folder: Path, sequences: list[str], decoys: str = "reverse", agent: str = "Trypsin") -> ProteinIndex:
    folder.mkdir(exist_ok=True)
    names = [f"P{i}" for i in range(len(sequences))]

    def column(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        return np.frombuffer("".join(texts).encode(), np.uint8).copy(), np.cumsum([0, *map(len, texts)]).astype(np.int64)

    held = Proteins(*column(sequences), *column(names), *column([""] * len(names)))
    cleaves = enzyme(agent).cleavage_table()
    return build_protein_index(folder, held, database="x.fasta", decoys=decoys, decoy_prefix="DECOY_", cleaves=cleaves)


def digestion(agent: str = "Trypsin", ends: int = 2, missed: int = 2, **changes: Any) -> Digestion:
    values: dict[str, Any] = {
        "minimum_length": 5,
        "maximum_length": 30,
        "clip_methionine": True,
        "minimum_mass": 300.0,
        "maximum_mass": 4000.0,
        "fixed": (),
    }
    return Digestion(enzyme(agent), ends, missed, **{**values, **changes})


def build(folder: Path, proteins: ProteinIndex, how: Digestion, threads: int = 2, memory: int = 1 << 28, **more: Any) -> PeptideIndex:
    folder.mkdir(exist_ok=True)
    return build_peptide_index(folder, proteins, how, Resources(threads), memory_bytes=memory, **more)


def listed(index: PeptideIndex, proteins: ProteinIndex) -> list[Entry]:
    """Return (sequence, flags, positions) in the order of the index, after checking its invariants."""
    text = bytes(np.asarray(proteins.proteins.residues)).decode()
    bounds = index.pointer.tolist()
    assert len(bounds) == len(index) + 1
    assert bounds[0] == 0
    assert bounds[-1] == len(index.occurrence)
    entries = []
    for i in range(len(index)):
        places = tuple(index.occurrence[bounds[i] : bounds[i + 1]].tolist())
        assert list(places) == sorted(set(places)), "positions ascend"
        assert places[0] == index.position[i]
        entries.append((text[places[0] : places[0] + int(index.length[i])], int(index.flags[i]), places))
    assert len({entry[0] for entry in entries}) == len(entries), "peptides are distinct"
    assert np.all(np.diff(index.mass) >= 0)
    return entries


def residue_mass(residue: str, how: Digestion) -> int:
    """Return the mass in 1e-9 dalton."""
    added = sum(modification.mass for modification in how.fixed if modification.position == "anywhere" and residue in modification.residues)
    return round((RESIDUE_MASS[ord(residue) - 65] + added) * 1e9)


def reference(proteins: ProteinIndex, how: Digestion, chosen: list[int] | None = None) -> dict[str, Entry]:
    held = proteins.proteins
    result: dict[str, Entry] = {}
    terminal = round((WATER_MASS + sum(modification.mass for modification in how.fixed if modification.position != "anywhere")) * 1e9)
    for number in range(len(held)) if chosen is None else chosen:
        sequence = held.sequence(number)
        spans = digest(
            sequence,
            how.enzyme,
            how.maximum_missed,
            SPECIFICITIES[how.required_ends],
            how.minimum_length,
            how.maximum_length,
            how.clip_methionine,
        )
        for start, stop, missed in spans:
            peptide = sequence[start:stop]
            if WITHOUT_MASS & set(peptide):
                continue
            if (
                not round(how.minimum_mass * 1e9)
                <= terminal + sum(residue_mass(residue, how) for residue in peptide)
                <= round(how.maximum_mass * 1e9)
            ):
                continue
            at_start = start == 0 or (how.clip_methionine and start == 1 and sequence[0] == "M")
            _, flags, places = result.get(peptide, (peptide, missed << 2, ()))
            first_is_target = not places or places[0] < proteins.first_decoy_residue
            if number < proteins.n_targets or not places or not first_is_target:
                flags |= int(at_start) | int(stop == len(sequence)) << 1
            result[peptide] = (peptide, flags, (*places, int(held.offsets[number]) + start))
    return result


SEQUENCES = st.lists(st.text(ALL_RESIDUES, max_size=60).map(lambda text: text + text[:12]), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    SEQUENCES,
    st.sampled_from(["Trypsin", "Trypsin/P", "Asp-N", "V8-DE", "Lys-N", "Chymotrypsin", "PepsinA", "no cleavage"]),
    st.integers(0, 2),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
)
def test_peptide_index_equals_the_reference_digest(
    tmp_path: Path, sequences: list[str], agent: str, ends: int, missed: int, clip: bool, modified: bool
) -> None:
    fixed = tuple(parse_modification(name) for name in ("Carbamidomethyl (C)", "TMT6plex (N-term)", "TMT6plex (K)")) if modified else ()
    how = digestion(agent, ends, missed, clip_methionine=clip, fixed=fixed)
    if ends == 0:
        how = digestion(agent, ends, 62, clip_methionine=clip, fixed=fixed, maximum_length=12)
    proteins = protein_index(tmp_path / "index", sequences, "pseudo-reverse", agent)
    peptides = listed(build(tmp_path / "index", proteins, how), proteins)
    assert {entry[0]: entry for entry in peptides} == reference(proteins, how)


def random_proteome(n: int = 40, seed: int = 3, residues: str = ALL_RESIDUES) -> list[str]:
    random = np.random.default_rng(seed)
    sequences = ["M" + "".join(random.choice(list(residues), random.integers(1, 300))) for _ in range(n)]
    return [*sequences, sequences[0], sequences[1][:100] + sequences[2][50:], "", "M"]


def test_peptide_index_masses_equal_pyteomics(tmp_path: Path) -> None:
    proteins = protein_index(tmp_path, random_proteome(residues="ACDEFGHIKLMNPQRSTVWYUO"))
    index = build(tmp_path, proteins, digestion(fixed=(parse_modification("Carbamidomethyl (C)"), parse_modification("Amidated (C-term)"))))
    assert len(index) > 500
    masses = {**pyteomics_mass.std_aa_mass}
    for (sequence, _, _), result in zip(listed(index, proteins), index.mass, strict=True):
        expected = pyteomics_mass.fast_mass(sequence, aa_mass=masses) + 57.02146372 * sequence.count("C") - 0.98401558
        assert result == pytest.approx(expected, abs=3e-5)


def test_equal_compositions_have_masses_equal_to_the_last_bit(tmp_path: Path) -> None:
    """Check that integer masses do not depend on the order of the sum."""
    proteins = protein_index(tmp_path, random_proteome(residues="GASPVTK"))
    index = build(tmp_path, proteins, digestion())
    by_composition: dict[str, set[float]] = {}
    for (sequence, _, _), result in zip(listed(index, proteins), index.mass, strict=True):
        by_composition.setdefault("".join(sorted(sequence)), set()).add(float(result))
    assert max(map(len, by_composition.values())) == 1
    assert len(by_composition) < len(index)
    assert len(set().union(*by_composition.values())) <= len(by_composition)


@pytest.mark.parametrize("ends", [2, 1])
def test_peptide_index_is_equal_for_any_threads_and_memory(tmp_path: Path, ends: int) -> None:
    proteins = protein_index(tmp_path, random_proteome(15 if ends == 2 else 4))
    how = digestion(ends=ends, maximum_mass=2000.0)
    first = build(tmp_path / "a", proteins, how, threads=1)
    expected = {
        name: np.array(getattr(first, name)) for name in ("mass", "position", "length", "flags", "letters", "pointer", "occurrence")
    }
    for number, (threads, memory) in enumerate([(2, 1 << 28), (5, 1 << 28), (1, 40_000), (3, 10_000), (2, 2_000)]):
        other = build(tmp_path / f"b{number}", proteins, how, threads, memory)
        for name, column in expected.items():
            assert np.array_equal(getattr(other, name), column), (name, threads, memory)


@pytest.mark.parametrize("memory", [1 << 28, 30_000])
def test_peptide_index_of_selected_proteins_has_their_positions(tmp_path: Path, memory: int) -> None:
    proteins = protein_index(tmp_path, random_proteome())
    how, chosen = digestion(), [0, 3, 17, 41, 44, 47, 60]
    index = build(tmp_path, proteins, how, memory=memory, selected=np.array(chosen))
    assert {entry[0]: entry for entry in listed(index, proteins)} == reference(proteins, how, chosen)


@pytest.mark.parametrize("memory", [1 << 28, 30_000])
def test_peptide_index_of_mass_windows_omits_distant_peptides(tmp_path: Path, memory: int) -> None:
    proteins, how = protein_index(tmp_path / "p", random_proteome(8)), digestion()
    whole = build(tmp_path / "whole", proteins, how, memory=memory)
    masses = whole.mass[::40]
    windows = np.column_stack((masses - 0.02, masses + 0.02))
    distant = np.array([[-5.0, -4.0], [9e6, 9e6 + 1]])
    near = build(tmp_path / "near", proteins, how, memory=memory, windows=np.concatenate((windows, distant)))
    result, every = listed(near, proteins), listed(whole, proteins)
    assert [entry for entry in every if entry in set(result)] == result and len(result) < len(every)
    distance = np.array([np.abs(masses - mass).min() for mass in whole.mass])
    assert {entry for entry, away in zip(every, distance, strict=True) if away <= 0.02} <= set(result)
    assert not {entry for entry, away in zip(every, distance, strict=True) if away > 0.25} & set(result)
    assert len(build(tmp_path / "none", proteins, how, memory=memory, windows=distant)) == 0


def test_peptide_index_of_all_selected_proteins_is_complete(tmp_path: Path) -> None:
    proteins = protein_index(tmp_path, random_proteome())
    whole = build(tmp_path / "a", proteins, digestion())
    same = build(tmp_path / "b", proteins, digestion(), selected=np.arange(len(proteins)))
    assert listed(whole, proteins) == listed(same, proteins)


def test_peptide_of_target_and_decoy_counts_as_target(tmp_path: Path) -> None:
    proteins = protein_index(tmp_path, ["GGAAAAAKLLLDR", "KAAAAAGGR"])
    index = build(tmp_path, proteins, digestion(missed=0))
    entry = next(listed_entry for listed_entry in listed(index, proteins) if listed_entry[0] == "GGAAAAAK")
    assert entry[2] == (0, 13 + 9 + 13 + 1)
    assert entry[2][0] < proteins.first_decoy_residue <= entry[2][1]


def test_peptide_length_and_mass_limits_are_inclusive(tmp_path: Path) -> None:
    proteins = protein_index(tmp_path, ["GASPVTLNDK"], "none")
    mass = pyteomics_mass.fast_mass("GASPVTLNDK")
    exact = sum(round(float(RESIDUE_MASS[ord(residue) - 65]) * 1e9) for residue in "GASPVTLNDK") + round(WATER_MASS * 1e9)
    assert exact * 1e-9 == pytest.approx(mass, abs=1e-5)
    for change in ({"minimum_mass": exact / 1e9}, {"maximum_mass": exact / 1e9}, {"minimum_length": 10}, {"maximum_length": 10}):
        assert len(build(tmp_path, proteins, digestion(**change))) == 1, change
    for change in ({"minimum_mass": (exact + 1) / 1e9}, {"maximum_mass": (exact - 1) / 1e9}, {"minimum_length": 11}, {"maximum_length": 9}):
        assert len(build(tmp_path, proteins, digestion(**change))) == 0, change


def test_peptides_may_contain_u_and_o_but_no_ambiguous_residues(tmp_path: Path) -> None:
    proteins = protein_index(tmp_path, ["AGIAUAAK", "GAOTAAAR", "LLXLLLLK", "MMB*MMMK", "TTTTTZR", "VVVVJVVK"], "none")
    index = build(tmp_path, proteins, digestion())
    results = {entry[0]: float(mass) for entry, mass in zip(listed(index, proteins), index.mass, strict=True)}
    assert set(results) == {"AGIAUAAK", "GAOTAAAR", "VVVVJVVK"}
    plain = pyteomics_mass.fast_mass("AGIAAAK")
    assert results["AGIAUAAK"] - plain == pytest.approx(150.95363, abs=1e-4)  # selenocysteine, C3H5NOSe
    assert results["GAOTAAAR"] - pyteomics_mass.fast_mass("GATAAAR") == pytest.approx(237.147727, abs=1e-4)  # pyrrolysine, C12H19N3O2


def test_peptide_index_opens_by_memory_map(tmp_path: Path) -> None:
    proteins = protein_index(tmp_path, random_proteome())
    built = build(tmp_path, proteins, digestion())
    opened = open_peptide_index(tmp_path, proteins, digestion())
    assert listed(opened, proteins) == listed(built, proteins)
    assert all(isinstance(getattr(opened, name), np.memmap) for name in ("mass", "position", "occurrence"))
    assert not list(tmp_path.glob("*.tmp"))


def test_peptide_index_without_peptides_opens(tmp_path: Path) -> None:
    proteins = protein_index(tmp_path, ["AAA", ""], "none")
    assert len(build(tmp_path, proteins, digestion())) == 0
    assert open_peptide_index(tmp_path, proteins, digestion()).pointer.tolist() == [0]


def test_peptide_index_build_stops_at_cancel(tmp_path: Path) -> None:
    proteins, progress = protein_index(tmp_path, random_proteome()), Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        build_peptide_index(tmp_path, proteins, digestion(), Resources(2, progress=progress), memory_bytes=1 << 28)


def test_peptide_index_arrays_equal_the_columns(tmp_path: Path) -> None:
    proteins = protein_index(tmp_path, random_proteome(5))
    how = digestion(fixed=tuple(parse_modification(text) for text in ("Carbamidomethyl (C)", "Acetyl (N-term)", "Amidated (C-term)")))
    arrays = build(tmp_path, proteins, how).arrays(proteins)
    assert arrays.residue_mass[ord("C") - 65] == pytest.approx(160.030649, abs=1e-5)
    assert arrays.n_term_mass == pytest.approx(42.010565, abs=1e-5)
    assert arrays.c_term_mass == pytest.approx(-0.984016, abs=1e-5)
    for i in range(0, len(arrays.mass), 7):
        start = int(arrays.position[i])
        residues = arrays.residues[start : start + int(arrays.length[i])]
        total = arrays.residue_mass[residues - 65].sum() + arrays.n_term_mass + arrays.c_term_mass + WATER_MASS
        assert arrays.mass[i] == pytest.approx(total, abs=1e-6)


def test_target_peptide_equal_to_decoy_end_is_not_terminal(tmp_path: Path) -> None:
    # The reversed second protein begins with a peptide from the middle of the first.
    proteins = protein_index(tmp_path / "proteins", ["GGGGKACDEFGHIKLLLLR", "RLLLKIHGFEDCA"])
    entries = listed(build(tmp_path / "peptides", proteins, digestion(missed=0)), proteins)
    (entry,) = (entry for entry in entries if entry[0] == "ACDEFGHIK")
    assert entry[1] == 0
    assert len(entry[2]) == 2


@pytest.mark.parametrize("decoys", ["reverse", "pseudo-reverse", "shuffle", "none", "existing"])
@pytest.mark.parametrize("ends", [2, 1, 0])
def test_stop_codon_inside_protein_separates_peptides(tmp_path: Path, decoys: str, ends: int) -> None:
    """Check that a protein with stops has the target and decoy peptides of its parts as separate proteins."""
    sequences = ["MAAAAKCCCCC*MDDDDDKEEEEER*K", "GGGGGKHHHHHK", "*MAAAAK**LLLLLL"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    names = ["P", "DECOY_x"] if decoys == "existing" else ["P", "Q", "R"]
    how = digestion(ends=ends)

    def made(folder: Path, some: list[str], accessions: list[str]) -> dict[str, bool]:
        folder.mkdir()
        residues, offsets = np.frombuffer("".join(some).encode(), np.uint8).copy(), np.cumsum([0, *map(len, some)]).astype(np.int64)
        names = np.frombuffer("".join(accessions).encode(), np.uint8).copy(), np.cumsum([0, *map(len, accessions)]).astype(np.int64)
        empty = np.empty(0, np.uint8), np.zeros(len(some) + 1, np.int64)
        table = how.enzyme.cleavage_table()
        held = build_protein_index(
            folder, Proteins(residues, offsets, *names, *empty), database="x", decoys=decoys, decoy_prefix="DECOY_", cleaves=table
        )
        selected = np.arange(len(held))
        result = listed(build(folder / "all", held, how), held)
        assert result == listed(build(folder / "selected", held, how, selected=selected), held)
        return {peptide: min(places) >= held.first_decoy_residue for peptide, _, places in result}

    if decoys == "existing":
        sequences = sequences[:2]
    cut = [[part for part in sequence.split("*") if part] for sequence in sequences]
    expected = made(parts, [part for some in cut for part in some], [name for name, some in zip(names, cut, strict=True) for _ in some])
    result = made(whole, sequences, names)
    assert not any("X" in peptide or "*" in peptide for peptide in result)
    assert decoys == "shuffle" or set(result) == set(expected)
    targets, others = ({peptide for peptide, is_decoy in entries.items() if not is_decoy} for entries in (result, expected))
    assert targets == others and {"CCCCC", "MDDDDDK"} <= targets
