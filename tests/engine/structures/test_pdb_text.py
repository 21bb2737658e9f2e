"""PDB files of other programs are read completely, and skipped or differently read lines are counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import gemmi
import numpy as np
import pytest

from proteoscope.engine.structures import pdb_text
from proteoscope.engine.structures.reading import StructureFile, read_structure
from tests.engine.structures.examples import RESIDUES, as_pdb, atoms_of, helix

A, B = atoms_of(helix(8)), atoms_of(helix(8) + 30.0, "B")


def records(rows: list[tuple]) -> list[str]:
    """Return the records of the atoms, without TER and END."""
    return as_pdb(rows).decode().splitlines()[: len(rows)]


def read(folder: Path, lines: Sequence[str], **settings) -> StructureFile:
    path = folder / "x.pdb"
    path.write_text("\n".join(lines) + "\n")
    return read_structure(path, **settings)


def lengths(structures: StructureFile) -> dict[str, int]:
    return dict(zip(structures.chain_names, structures.chains.lengths.tolist(), strict=True))


def renumbered(rows: list[tuple], number: Callable[[int], str]) -> list[str]:
    """Return records with the five columns of residue number and insertion code given by `number`."""
    return [line[:22] + number(int(line[22:26])) + line[27:] for line in records(rows)]


CASES = {
    "pdb_ter_inside/ter_mid_end.pdb": {"A": 141},
    "pdb_ter_inside/ter_mid_noend.pdb": {"A": 141},
    "pdb_ter_inside/k_A1terA2_Bter.pdb": {"A": 141, "B": 141},
    "pdb_ter_inside/small.pdb": {"A": 12},
    "pdb_end_inside/end_between.pdb": {"A": 141, "B": 141},
    "pdb_end_inside/small.pdb": {"A": 12, "B": 12},
    "pdb_same_chain_twice/blank_dimer_2ter.pdb": {"": 141, "_2": 141},
    "pdb_same_chain_twice/blank_dimer_restart.pdb": {"": 141, "_2": 141},
    "pdb_same_chain_twice/segid.pdb": {"": 141, "_2": 141},
    "pdb_same_chain_twice/small.pdb": {"": 12, "_2": 12},
    "pdb_four_letter_residues/k_HISD.pdb": {"A": 141},
    "pdb_four_letter_residues/k_NALA.pdb": {"A": 141},
    "pdb_four_letter_residues/small.pdb": {"A": 12},
    "pdb_md_names/k_HID.pdb": {"A": 141},
    "pdb_md_names/mdnames.pdb": {"A": 141},
    "pdb_models_assembly/asm.pdb1": {"A": 141},
    "pdb_models_assembly/asmmodels.cif": {"A": 141},
    "pdb_wide_numbers/five.pdb": {"A": 141},
    "pdb_wide_numbers/h36res.pdb": {"A": 141},
    "pdb_wide_numbers/hexres.pdb": {"A": 141},
}


@pytest.mark.parametrize("name", CASES)
def test_read_structure_reads_pdb_files_of_other_programs(shared_cases: Path, name: str) -> None:
    structures = read_structure(shared_cases / name)
    assert lengths(structures) == CASES[name]
    assert not any("X" in structures.chains.sequence(i) for i in range(len(structures.chains)))


@pytest.mark.parametrize("name", ["five", "h36res", "hexres"])
def test_read_structure_reads_wide_residue_numbers_of_real_files(shared_cases: Path, name: str) -> None:
    structures = read_structure(shared_cases / "pdb_wide_numbers" / f"{name}.pdb")
    assert structures.chains.author_number.tolist() == list(range(9901, 10042))
    assert not structures.chains.insertion.any()


@pytest.mark.parametrize("name", ["asm.pdb1", "asmmodels.cif"])
def test_read_structure_reads_all_models_of_pdb_assembly(shared_cases: Path, name: str) -> None:
    path = shared_cases / "pdb_models_assembly" / name
    assert lengths(read_structure(path, models="all")) == {"A": 141, "B": 141}
    (message,) = read_structure(path).messages
    assert "first of 2 models" in message and "1,154 atoms" in message


@pytest.mark.parametrize("name", ["af3like.pdb", "af2like.pdb"])
def test_read_structure_filters_by_plddt_or_reports_b_factors(shared_cases: Path, name: str) -> None:
    path = shared_cases / "pdb_per_atom_plddt" / name
    structures = read_structure(path, minimum_plddt=70.0)
    is_filtered = len(structures.chains.residue) == 101
    assert is_filtered != any("does not state whether its B-factors are pLDDT" in text for text in structures.messages)
    assert not read_structure(path).messages


def test_read_structure_reads_pdb_atoms_after_end_record(tmp_path: Path) -> None:
    structures = read(tmp_path, [*records(A), "TER", "END", *records(B), "END", *records(atoms_of(helix(5) - 30.0, "C")), "END"])
    assert lengths(structures) == {"A": 8, "B": 8, "C": 5}


def test_read_structure_reads_pdb_trajectory_frames_as_models(tmp_path: Path) -> None:
    moved = records(atoms_of(helix(8) + 1.0))
    lines = [*records(A), "END", *moved, "END", *moved, "END"]
    structures = read(tmp_path, lines)
    assert lengths(structures) == {"A": 8} and "first of 3 models" in structures.messages[0]
    assert lengths(read(tmp_path, lines, models="all")) == {"A": 8, "A_2": 8, "A_3": 8}


def test_read_structure_separates_pdb_models_without_endmdl(tmp_path: Path) -> None:
    lines = ["MODEL        1", *records(A), "MODEL        2", *records(A), "END"]
    assert "first of 2 models is read (24 atoms" in read(tmp_path, lines).messages[0]
    assert lengths(read(tmp_path, lines, models="all")) == {"A": 8, "A_2": 8}


def test_pdb_residues_after_ter_record_stay_in_their_chain(tmp_path: Path) -> None:
    lines = records(A)
    ligand = lines[0].replace("ATOM  ", "HETATM").replace("   1    ", " 900    ")
    structures = read(tmp_path, [*lines[:9], "TER", *lines[9:], "TER", ligand])
    assert structures.chains.sequence(0) == RESIDUES and not structures.messages


@pytest.mark.parametrize("between", [["TER"], ["END"], []])
def test_second_pdb_molecule_of_equal_name_is_renamed(tmp_path: Path, between: list[str]) -> None:
    second = records([(*row[:4], "A", *row[5:]) for row in B[6:]])
    structures = read(tmp_path, [*records(A), *between, *second])
    assert lengths(structures) == {"A": 8, "A_2": 6}
    assert np.allclose(structures.chains.position[8:], helix(8)[2:] + 30.0, atol=6e-4)
    assert f"2 molecules with the same residue numbers, the second from line {25 + len(between)}" in structures.messages[0]


def test_hydrogens_listed_after_a_pdb_chain_join_its_residues(tmp_path: Path) -> None:
    hydrogens = [line[:12] + " H  " + line[16:76] + " H" for line in records(A) if line[12:16] == "  N "]
    structures = read(tmp_path, [*records(A), *hydrogens])
    assert lengths(structures) == {"A": 8} and not structures.messages


NUMBERS = {
    "asterisks": lambda n: f"{n + 9995:4d} " if n < 5 else "**** ",
    "hexadecimal": lambda n: f"{n + 9995:4d} " if n < 5 else f"{n + 9995:4x} ",
    "upper hexadecimal": lambda n: f"{n + 9995:4d} " if n < 5 else f"{n + 9995:4X} ",
    "hybrid": lambda n: f"{n + 9995:4d} " if n < 5 else f"A{n - 5:03d} ",
    "five digits": lambda n: f"{n + 9995:<5d}" if n >= 5 else f"{n + 9995:4d} ",
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_read_structure_reads_pdb_residue_numbers_beyond_9999(tmp_path: Path, kind: str) -> None:
    structures = read(tmp_path, renumbered(A, NUMBERS[kind]))
    assert structures.chains.author_number.tolist() == list(range(9996, 10004))
    assert structures.chains.sequence(0) == RESIDUES
    expected = {"asterisks": "4 residues of chain A (from line 13) have no readable number", "five digits": "", "hybrid": ""}
    wanted = expected.get(kind, "4 residues of chain A (from line 13) have numbers that were read as hexadecimal")
    assert [text[: len(wanted)] for text in structures.messages] == ([wanted] if wanted else [])


def test_residue_numbers_that_restart_after_9999_continue(tmp_path: Path) -> None:
    rows = atoms_of(np.concatenate([helix(100) + 60.0 * k for k in range(101)]))
    structures = read(tmp_path, renumbered_rows(rows))
    assert structures.chains.author_number.tolist() == list(range(1, 10_101))
    assert "restart after 9999" in structures.messages[0]


def renumbered_rows(rows: list[tuple]) -> list[str]:
    """Return records with the last four digits of residue numbers and five of serial numbers."""
    return [
        f"{row[0]:<6}{i % 100_000:>5}  {row[1]:<3} {row[3]:>3} {row[4]}{row[5] % 10_000:>4}    {row[7]:8.3f}{row[8]:8.3f}{row[9]:8.3f}"
        for i, row in enumerate(rows, 1)
    ]


@pytest.mark.parametrize("serial", ["*****", "186a0", "A0000", "99999", "     "])
def test_read_structure_ignores_pdb_serial_numbers(tmp_path: Path, serial: str) -> None:
    structures = read(tmp_path, [line[:6] + serial + line[11:] for line in records(A)])
    assert structures.chains.sequence(0) == RESIDUES and not structures.messages


def test_read_structure_reads_shifted_pdb_columns(tmp_path: Path) -> None:
    lines = [f"{line[:6]}{100_000 + i}{line[11:]}" for i, line in enumerate(records(A))]
    structures = read(tmp_path, [*records(B), *lines])
    assert lengths(structures) == {"B": 8, "A": 8}
    assert np.allclose(structures.chains.position[8:], helix(8), atol=6e-4)
    assert structures.messages[0].startswith("24 records of atoms")


@pytest.mark.parametrize("coordinate", ["********", "     nan", "   1.2.3", "        "])
def test_read_structure_counts_unreadable_pdb_coordinates(tmp_path: Path, coordinate: str) -> None:
    lines = records(A)
    lines[4] = lines[4][:38] + coordinate + lines[4][46:]
    structures = read(tmp_path, [*lines, lines[-1][:40]])
    assert structures.chains.author_number.tolist() == [1, 3, 4, 5, 6, 7, 8]
    assert structures.messages[0].startswith("2 atoms without readable coordinates left out, the first in line 5")
    assert structures.messages[1].startswith("1 amino acid without a Cα")


MD_NAMES = {
    "H": "HID HIE HIP HIN HSD HSE HSP HISD HISE HISH HISP HIS1 HIS2 NHID CHIE",
    "C": "CYX CYM CYN CYS2 CYSH NCYX",
    "D": "ASH ASPP CASP",
    "E": "GLH GLUP GLUH NGLU",
    "K": "LYN LSN LYSH LYSP CLYS",
    "R": "ARN ARGN NARG",
    "Y": "TYM CTYR",
    "A": "NALA CALA",
}


@pytest.mark.parametrize("residue, name", [(residue, name) for residue, names in MD_NAMES.items() for name in names.split()])
def test_read_structure_accepts_pdb_residue_names_of_simulations(tmp_path: Path, residue: str, name: str) -> None:
    lines = [line[:17] + f"{name:<4}" + line[21:] if int(line[22:26]) in (4, 6) else line for line in records(A)]
    structures = read(tmp_path, lines)
    assert lengths(structures) == {"A": 8}
    assert structures.chains.sequence(0) == f"AGM{residue}S{residue}DV"


def test_read_structure_reads_residue_names_with_four_characters(tmp_path: Path) -> None:
    lines = [line[:16] + "HISE" + line[20:] if int(line[22:26]) == 4 else line for line in records(A)]
    assert read(tmp_path, lines).chains.sequence(0) == "AGMHSKDV"


def test_unknown_residue_name_of_four_characters_is_shortened(tmp_path: Path) -> None:
    lines = [line[:20] + "Q" + line[21:] if int(line[22:26]) == 4 else line for line in records(A)]
    structures = read(tmp_path, lines)
    assert lengths(structures) == {"A": 8} and structures.chains.sequence(0) == RESIDUES


def test_read_structure_reads_chain_names_of_two_characters(tmp_path: Path) -> None:
    structures = read(tmp_path, [line[:20] + "D" + line[21:] for line in records(A + B)])
    assert lengths(structures) == {"DA": 8, "DB": 8} and not structures.messages


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_read_structure_reads_any_pdb_line_end(tmp_path: Path, end: str) -> None:
    path = tmp_path / "x.pdb"
    path.write_bytes(end.join([*records(A), "END", *records(B), "END", ""]).encode())
    assert lengths(read_structure(path)) == {"A": 8, "B": 8}


def test_read_structure_matches_gemmi_on_plain_pdb_files(shared_data: Path) -> None:
    import gemmi

    for path in sorted((shared_data / "structures" / "pdbchains").rglob("*.pdb"))[:20]:
        structures = read_structure(path)
        chains = [gemmi.read_pdb(str(path))[0][name] for name in structures.chain_names]
        for i, chain in enumerate(chains):
            expected = [residue.seqid.num for residue in chain.first_conformer() if residue.find_atom("CA", "*")]
            rows = slice(int(structures.chains.offsets[i]), int(structures.chains.offsets[i + 1]))
            assert structures.chains.author_number[rows].tolist() == expected


@pytest.mark.parametrize("end", ["  xx", "  1", "  C2", "  0.12 extra text"])
def test_read_structure_ignores_text_after_pdb_element_column(tmp_path: Path, end: str) -> None:
    structures = read(tmp_path, [line[:76] + end for line in records(A)])
    assert structures.chains.sequence(0) == RESIDUES and not structures.messages


def changed_text(random: np.random.Generator, lines: list[str]) -> str:
    """Return records with some changed characters, lines or blocks of lines."""
    lines = list(lines)
    for _ in range(random.integers(1, 4)):
        at = int(random.integers(len(lines)))
        match random.integers(5):
            case 0:
                column = int(random.integers(max(1, len(lines[at]))))
                lines[at] = lines[at][:column] + random.choice(list(" A1-.9+")) + lines[at][column + 1 :]
            case 1:
                lines.insert(at, str(random.choice(["TER", "END", "MODEL        2", "ENDMDL", "REMARK"])))
            case 2:
                lines[at:at] = lines[int(random.integers(len(lines))) :][: int(random.integers(1, 20))]
            case 3:
                del lines[at]
            case 4:
                lines += ["MODEL        9", *lines[: int(random.integers(1, 20))], "ENDMDL"]
        lines = lines or ["REMARK"]
    return str(random.choice(["\n", "\r\n"])).join(lines) + "\n"


def atoms_in(text: bytes) -> list[tuple] | str:
    """Return the atoms read by gemmi, or its error."""
    try:
        structure = gemmi.read_pdb_string(text)
    except RuntimeError as error:
        return str(error)
    return [
        (chain.name, str(residue.seqid), residue.name, atom.name, atom.altloc, *atom.pos.tolist())
        for model in structure
        for chain in model
        for residue in chain
        for atom in residue
    ]


def test_fast_pdb_reader_agrees_with_tolerant_reader() -> None:
    random = np.random.default_rng(5)
    lines = [*records(A), "TER", *records(B), "TER", "END"]
    n_plain = 0
    for _ in range(600):
        text = changed_text(random, lines).encode()
        for all_models in (False, True):
            plain = pdb_text._plain_form(text, all_models)
            if plain is None:
                continue
            n_plain += 1
            expected = pdb_text._Rewriting(text, all_models).result()
            assert plain.notes == expected.notes and not expected.chain_names
            assert atoms_in(plain.text) == atoms_in(expected.text)
    assert n_plain > 200
