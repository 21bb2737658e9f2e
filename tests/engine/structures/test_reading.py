"""Structure files are read correctly as chains, or rejected with the reason."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from proteoscope import resources
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.protein_names import name_columns
from proteoscope.engine.structures.chain_references import parse_chain_reference, read_chain, read_chains
from proteoscope.engine.structures.chains import concatenated
from proteoscope.engine.structures.reading import read_structure, stem
from tests.engine.structures.examples import RESIDUES, as_binary_cif, as_mmcif, as_pdb, atoms_of, helix

ROWS = atoms_of(helix(8))


def written(folder: Path, content: bytes, name: str = "1abc.pdb") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name, content", [("a.pdb", as_pdb(ROWS)), ("a.cif", as_mmcif(ROWS)), ("a.bcif", as_binary_cif(ROWS))])
@pytest.mark.parametrize("packed", [False, True])
def test_every_structure_format_gives_the_same_chain(tmp_path: Path, name: str, content: bytes, packed: bool) -> None:
    path = written(tmp_path, gzip.compress(content, mtime=0) if packed else content, name + (".gz" if packed else ""))
    structures = read_structure(path)
    assert structures.chains.names == ("a",)
    assert structures.chain_names == ("A",)
    assert structures.chains.sequence(0) == RESIDUES  # MSE is M
    assert np.allclose(structures.chains.position, helix(8), atol=6e-4)
    assert structures.chains.author_number.tolist() == list(range(1, 9))
    assert np.isnan(structures.chains.confidence).all()


@pytest.mark.parametrize("write", [as_mmcif, as_binary_cif])
def test_read_structure_stores_author_and_label_numbers(tmp_path: Path, write) -> None:
    chains = read_structure(written(tmp_path, write(ROWS, 100))).chains
    assert chains.author_number.tolist() == list(range(101, 109))
    assert chains.label_number.tolist() == list(range(1, 9))


def test_read_structure_uses_the_location_with_highest_occupancy(tmp_path: Path) -> None:
    rows = []
    for row in ROWS:
        if row[5] == 3:
            rows.append((*row[:2], "A", *row[3:10], 0.4, 20.0))
            rows.append((*row[:2], "B", *row[3:7], row[7] + 1.0, *row[8:10], 0.6, 20.0))
        else:
            rows.append(row)
    chains = read_structure(written(tmp_path, as_pdb(rows))).chains
    assert len(chains.residue) == 8
    assert chains.position[2, 0] == pytest.approx(helix(8)[2, 0] + 1.0, abs=1e-3)


def test_read_structure_uses_the_residue_with_higher_occupancy(tmp_path: Path) -> None:
    rows = [(*row[:10], 0.3, 20.0) if row[5] == 4 else row for row in ROWS]
    others = [(*row[:2], "", "GLU", *row[4:10], 0.7, 20.0) for row in ROWS if row[5] == 4]
    at = max(i for i, row in enumerate(rows) if row[5] == 4) + 1
    chains = read_structure(written(tmp_path, as_pdb(rows[:at] + others + rows[at:]))).chains
    assert chains.sequence(0) == "AGMESKDV"


def test_read_structure_retains_insertion_codes_and_order(tmp_path: Path) -> None:
    rows = [(*row[:5], 5, "A", *row[7:]) if row[5] == 6 else row for row in ROWS]
    chains = read_structure(written(tmp_path, as_pdb(rows))).chains
    assert chains.author_number.tolist() == [1, 2, 3, 4, 5, 5, 7, 8]
    assert chains.insertion.tolist() == [0, 0, 0, 0, 0, ord("A"), 0, 0]


def test_read_structure_uses_the_first_model(tmp_path: Path) -> None:
    other = as_pdb(atoms_of(helix(8) + 50.0)).removesuffix(b"END\n")
    models = b"MODEL        1\n" + as_pdb(ROWS).removesuffix(b"END\n") + b"ENDMDL\nMODEL        2\n" + other + b"ENDMDL\nEND\n"
    chains = read_structure(written(tmp_path, models)).chains
    assert np.allclose(chains.position, helix(8), atol=6e-4)


def test_read_structure_skips_residues_without_alpha_carbon(tmp_path: Path) -> None:
    rows = [row for row in ROWS if not (row[5] == 2 and row[1] == "CA")]
    assert read_structure(written(tmp_path, as_pdb(rows))).chains.author_number.tolist() == [1, 3, 4, 5, 6, 7, 8]


def test_chain_of_alpha_carbons_has_secondary_structure(tmp_path: Path) -> None:
    rows = [row for row in atoms_of(helix(12)) if row[1] == "CA"]
    assert read_structure(written(tmp_path, as_pdb(rows))).chains.states(0) == "CC" + "H" * 8 + "CC"


def test_read_structure_names_chains_and_reports_short_chains(tmp_path: Path) -> None:
    rows = atoms_of(helix(8)) + atoms_of(helix(5) + 30.0, "B") + atoms_of(helix(3) - 30.0, "C")
    structures = read_structure(written(tmp_path, as_pdb(rows)))
    assert structures.chains.names == ("1abc:A", "1abc:B")
    assert [(chain.chain, chain.reason) for chain in structures.skipped] == [("C", "has 3 residues with Cα, and 4 are the minimum")]


def test_read_structure_reports_dna_chain(tmp_path: Path) -> None:
    rows = [("ATOM", name, "", "DA", "B", i, "", 1.0 * i, 2.0, 3.0, 1.0, 2.0) for i in range(1, 9) for name in ("P", "C1'")]
    structures = read_structure(written(tmp_path, as_pdb(rows)))
    assert len(structures.chains) == 0
    assert "chain B is DNA or RNA" in str(structures.empty_error())


COMPOUNDS = """COMPND    MOL_ID: 1;
COMPND   2 MOLECULE: SERUM ALBUMIN;
COMPND   3 CHAIN: A, C;
COMPND   4 MOL_ID: 2;
COMPND   5 MOLECULE: PEPTIDE;
COMPND   6 CHAIN: B
SOURCE    MOL_ID: 1;
SOURCE   2 ORGANISM_SCIENTIFIC: ESCHERICHIA COLI
SOURCE   3 K-12;
SOURCE   4 ORGANISM_TAXID: 83333;
SOURCE   5 GENE: ALB, GIG20;
SOURCE   6 MOL_ID: 2;
SOURCE   7 SYNTHETIC: YES
"""
ENTITY_SOURCES = """loop_
_entity_src_gen.entity_id
_entity_src_gen.pdbx_gene_src_scientific_name
_entity_src_gen.pdbx_gene_src_ncbi_taxonomy_id
_entity_src_gen.pdbx_gene_src_gene
1 'Escherichia coli K-12' 83333 'ALB, GIG20'
2 ? ? ?
"""


def test_pdb_chain_descriptions_have_organism_and_gene(tmp_path: Path) -> None:
    rows = [row for at, chain in enumerate("ABC") for row in atoms_of(helix(8) + 30.0 * at, chain)]
    chains = read_structure(written(tmp_path, as_pdb(rows, f"TITLE     A COMPLEX\n{COMPOUNDS}"))).chains
    source = "OS=Escherichia coli K-12 OX=83333 GN=ALB"
    assert chains.descriptions == (f"A COMPLEX {source}", "A COMPLEX", f"A COMPLEX {source}")
    names = name_columns(chains.descriptions)
    assert names["organism"].to_pylist() == ["Escherichia coli K-12", None, "Escherichia coli K-12"]
    assert names["gene"].to_pylist() == ["ALB", None, "ALB"]


@pytest.mark.parametrize(
    ("more", "description"),
    [
        (ENTITY_SOURCES, "a helix OS=Escherichia coli K-12 OX=83333 GN=ALB"),
        ("_entity_src_nat.entity_id 1\n_entity_src_nat.pdbx_organism_scientific 'Bos taurus'\n", "a helix OS=Bos taurus"),
        (
            "_ma_target_ref_db_details.target_entity_id 1\n_ma_target_ref_db_details.gene_name ALB\n"
            "_ma_target_ref_db_details.organism_scientific 'Homo sapiens'\n",
            "a helix OS=Homo sapiens GN=ALB",
        ),
        ("_entity_src_nat.entity_id 1\n_entity_src_nat.pdbx_organism_scientific ?\n", "a helix"),
    ],
)
def test_mmcif_chain_descriptions_have_organism_and_gene(tmp_path: Path, more: str, description: str) -> None:
    assert read_structure(written(tmp_path, as_mmcif(ROWS, more=more), "a.cif")).chains.descriptions == (description,)


def test_chain_description_has_organism_of_a_real_entry() -> None:
    (description,) = read_structure(resources.path("samples", "1ao6_A.pdb.gz")).chains.descriptions
    assert description == "CRYSTAL STRUCTURE OF HUMAN SERUM ALBUMIN OS=Homo sapiens OX=9606"


def predicted(values: list[float], head: str) -> bytes:
    rows = [(*row[:11], values[row[5] - 1]) for row in ROWS]
    return as_pdb(rows, head)


PLDDT = [90.0, 80.0, 95.5, 40.0, 91.0, 92.0, 30.0, 88.0]


def test_read_structure_reads_plddt_and_filters_residues(tmp_path: Path) -> None:
    path = written(tmp_path, predicted(PLDDT, "TITLE     ALPHAFOLD MONOMER V2.0 PREDICTION FOR X\n"))
    assert read_structure(path).chains.confidence.tolist() == PLDDT
    some = read_structure(path, minimum_plddt=50.0)
    assert some.chains.author_number.tolist() == [1, 2, 3, 5, 6, 8]
    none = read_structure(path, minimum_plddt=91.5)
    assert "has 2 residues with a pLDDT of 91.5 or more" in str(none.empty_error())


def test_read_structure_reports_chains_without_plddt(tmp_path: Path) -> None:
    rated, bare = (
        read_structure(written(tmp_path, predicted(PLDDT, head), name)).chains
        for head, name in (("TITLE     ALPHAFOLD MONOMER V2.0 PREDICTION FOR X\n", "a.pdb"), ("EXPDTA    X-RAY DIFFRACTION\n", "b.pdb"))
    )
    assert rated.unrated(50.0) == bare.unrated(0.0) == ""
    assert bare.unrated(50.0).startswith("Minimum pLDDT 50: none of the chains has a pLDDT")
    assert concatenated([rated, bare]).unrated(50.0).startswith("Minimum pLDDT 50: 1 of 2 chains have no pLDDT")


def test_experimental_b_factors_are_not_read_as_plddt(tmp_path: Path) -> None:
    path = written(tmp_path, predicted(PLDDT, "HEADER    X\nEXPDTA    X-RAY DIFFRACTION\n"))
    assert np.isnan(read_structure(path, minimum_plddt=50.0).chains.confidence).all()
    assert len(read_structure(path, minimum_plddt=50.0).chains.residue) == 8


def test_read_structure_reads_plddt_of_model_archive_table(tmp_path: Path) -> None:
    quality = "loop_\n_ma_qa_metric.id\n_ma_qa_metric.mode\n1 global\n2 local\nloop_\n" + "".join(
        f"_ma_qa_metric_local.{name}\n" for name in ("label_asym_id", "label_seq_id", "metric_id", "metric_value")
    )
    quality += "".join(f"A {i} 2 {value}\n" for i, value in enumerate(PLDDT, 1))
    chains = read_structure(written(tmp_path, as_mmcif(ROWS, more=quality), "m.cif")).chains
    # gemmi uses its own names for parts of chains to find this chain in mmCIF.
    assert np.allclose(chains.confidence, PLDDT, equal_nan=False)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "empty"),
        (b"   \n \n", "only blanks"),
        (b"hello\nworld\n", "not a structure in a known format"),
        (b"<html></html>", "XML"),
        (b"PK\x03\x04\0\0\0", "zip archive"),
        (b"data_x\n_entry.id x\n", "_atom_site"),
        (b"data_x\nloop_\n_atom_site.id\n_atom_site.type_symbol\n1\n", "not a valid mmCIF"),
        (b"HEADER    NOTHING\nEND\n", "no coordinates"),
        (as_binary_cif(ROWS)[:500], "cut off"),
        (as_binary_cif(ROWS).replace(b"\xa5tests", b"\xc1tests"), "MessagePack does not define"),
        (b"\x8b\xabmmtfVersion\xa51.0.0" + b"\0" * 20, "MMTF"),
        (gzip.compress(as_pdb(ROWS), mtime=0)[:100], "cut off"),
    ],
)
def test_read_structure_rejects_invalid_files_with_reason(tmp_path: Path, content: bytes, message: str) -> None:
    path = written(tmp_path, content, "file")
    with pytest.raises(InputError, match=message) as refused:
        read_structure(path)
    assert str(path) in str(refused.value)


def test_binary_cif_with_too_large_row_count_is_rejected(tmp_path: Path) -> None:
    honest = as_binary_cif(ROWS)
    assert b"rowCount" in honest
    with pytest.raises(InputError, match=r"expands to more than [\d,]+ rows of a category"):
        read_structure(written(tmp_path, honest.replace(b"rowCount\x18", b"rowCount\xce\x7f\xff\xff\xff"), "a.bcif"))


def test_chain_name_after_colon_is_read_unless_path_exists(tmp_path: Path) -> None:
    rows = atoms_of(helix(8)) + atoms_of(helix(6) + 30.0, "B")
    path = written(tmp_path, as_pdb(rows))
    assert read_chain(f"{path}:B").chains.names == ("1abc:B",)
    assert len(read_chains(str(path)).chains) == 2
    if os.name == "posix":
        other = written(tmp_path, as_pdb(ROWS), "1abc.pdb:B")
        assert parse_chain_reference(str(other)).chain is None
    with pytest.raises(InputError, match=r"one is needed.*A, B"):
        read_chain(str(path))
    with pytest.raises(InputError, match=r"no chain 'Z'.*A, B"):
        read_chain(f"{path}:Z")


def test_structure_names_contain_no_tabs_or_blanks(tmp_path: Path) -> None:
    assert stem(Path("a b\tc.cif.gz")) == "a_b_c"
    assert stem(Path("1abc.PDB")) == "1abc"
    assert stem(Path("d1b0ba_")) == "d1b0ba_"


ODD_REFUSED = {
    "1A8O.mmtf",
    "1MOM_min.cif",
    "1SSU_mod.cif",
    "1SSU_mod.pdb",
    "4CUP.mmtf",
    "4Q9R_min.cif",
    "4ZHL.mmtf",
    "biojava_388d_v23.pdb",
    "biojava_5pti_noid.cif",
    "biojava_5pti_noid.pdb",
    "biotite_1crr.bcif",
    "biotite_1gid.cif",
    "biotite_1nkw.cif",
    "biotite_1xnr.cif",
    "biotite_altloc.cif",
    "biotite_dppc_n128.pdb",
    "biotite_hetatm.pdb",
    "biotite_res_ids.cif",
    "biotite_waterbox_md.pdb",
}
"""Files in MMTF; without coordinates; with fewer than four residues; truncated; with only DNA, RNA, lipids or water."""


def test_read_structure_reads_or_rejects_unusual_files(shared_data: Path) -> None:
    files = sorted((shared_data / "structures" / "odd").iterdir())
    assert len(files) == 47
    lengths: dict[str, list[int]] = {}
    for path in files:
        try:
            structures = read_structure(path)
            lengths[path.name] = structures.chains.lengths.tolist()
        except InputError as error:
            assert str(path) in str(error)
    assert {path.name for path in files if not lengths.get(path.name)} == ODD_REFUSED
    # These are the counts of the entries.
    assert lengths["1A8O.cif"] == lengths["1A8O.pdb"] == [70]
    assert lengths["2BEG.cif"] == lengths["2BEG.pdb"] == [26] * 5
    assert lengths["1LCD.cif"] == [51]
    assert lengths["biotite_1aki.bcif"] == lengths["biotite_1aki.cif"] == [129]
    assert lengths["3JQH.cif"] == [23]


def test_alpha_carbon_positions_of_real_files_equal_biopython(shared_data: Path) -> None:
    from Bio.PDB.PDBParser import PDBParser

    for name in ("1A8O", "2XHE", "1LCD", "biojava_1lnl"):
        path = shared_data / "structures" / "odd" / f"{name}.pdb"
        model = next(iter(PDBParser(QUIET=True).get_structure(name, path)))
        expected = [
            residue["CA"].coord
            for chain in model
            for residue in chain
            if "CA" in residue and (residue.id[0] == " " or residue.resname == "MSE") and residue["CA"].element == "C"
        ]
        assert np.allclose(read_structure(path).chains.position, np.array(expected), atol=1e-3)
