"""Protein index: order of targets, contaminants and decoys, and errors of unusable databases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.formats import read_proteins
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.peptides.protein_index import ProteinIndex, build_protein_index, open_protein_index

CLEAVES = enzyme("Trypsin").cleavage_table()
Records = list[tuple[str, str, str]]


def column(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encoded = [text.encode() for text in texts]
    offsets = np.concatenate(([0], np.cumsum([len(text) for text in encoded]))).astype(np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8).copy(), offsets


def proteins(records: Records) -> Proteins:
    names, descriptions, sequences = ([record[i] for record in records] for i in range(3))
    return Proteins(*column(sequences), *column(names), *column(descriptions))


def build(
    folder: Path, records: Records, decoys: str = "reverse", prefix: str = "DECOY_", contaminants: Records | None = None
) -> ProteinIndex:
    folder.mkdir(exist_ok=True)
    extra = proteins(contaminants) if contaminants else None
    return build_protein_index(
        folder, proteins(records), database="some.fasta", decoys=decoys, decoy_prefix=prefix, cleaves=CLEAVES, contaminants=extra
    )


def rows(index: ProteinIndex) -> Records:
    held = index.proteins
    return [(held.accession(i), held.description(i), held.sequence(i)) for i in range(len(index))]


TARGETS: Records = [("sp|P1|ä", "first β protein", "MAGIC"), ("P2", "", "WRLDK"), ("P3", "empty", ""), ("P4", "last", "AXB*UK")]
CLEAN: Records = [(name, text, sequence.replace("*", "X")) for name, text, sequence in TARGETS]


def test_protein_index_has_reversed_decoys_after_all_targets(tmp_path: Path) -> None:
    index = build(tmp_path, TARGETS)
    assert rows(index) == CLEAN + [(f"DECOY_{name}", text, sequence[::-1]) for name, text, sequence in CLEAN]
    assert index.n_targets == 4
    assert index.n_contaminants == 0
    assert index.first_decoy_residue == sum(len(record[2]) for record in TARGETS)
    assert index.partners().tolist() == [4, 5, 6, 7, 0, 1, 2, 3]


def test_protein_index_has_contaminants_before_decoys(tmp_path: Path) -> None:
    index = build(tmp_path, TARGETS, contaminants=[("KRT", "keratin", "SLQK")])
    assert [name for name, _, _ in rows(index)] == [
        "sp|P1|ä",
        "P2",
        "P3",
        "P4",
        "CONT_KRT",
        "DECOY_sp|P1|ä",
        "DECOY_P2",
        "DECOY_P3",
        "DECOY_P4",
        "DECOY_CONT_KRT",
    ]
    assert rows(index)[4] == ("CONT_KRT", "keratin", "SLQK")
    assert rows(index)[9] == ("DECOY_CONT_KRT", "keratin", "KQLS")
    assert (index.n_targets, index.n_contaminants) == (5, 1)


def test_protein_index_has_no_decoys_when_disabled(tmp_path: Path) -> None:
    index = build(tmp_path, TARGETS, "none")
    assert rows(index) == CLEAN
    assert index.n_targets == len(index) == 4
    assert index.partners().tolist() == [-1] * 4
    assert index.first_decoy_residue == len(index.proteins.residues)


def test_protein_index_moves_existing_decoys_after_targets(tmp_path: Path) -> None:
    records = [
        ("rev_A", "d", "CCC"),
        ("A", "a", "MK"),
        ("revB", "looks alike", "GGGG"),
        ("rev_B", "e", ""),
        ("B", "b", "WW"),
        ("rev_", "", "L"),
    ]
    index = build(tmp_path, records, "existing", "rev_")
    assert rows(index) == [records[i] for i in (1, 2, 4, 0, 3, 5)]
    assert index.n_targets == 3
    assert index.partners().tolist() == [3, -1, 4, 0, 2, -1]


@pytest.mark.parametrize("decoys", ["existing", "reverse", "shuffle", "none"])
def test_protein_index_rejects_database_of_decoys_only(tmp_path: Path, decoys: str) -> None:
    with pytest.raises(InputError, match="every protein is a decoy") as error:
        build(tmp_path, [("DECOY_A", "", "MK"), ("DECOY_B", "", "MR")], decoys)
    assert error.value.path == "some.fasta"


def test_protein_index_rejects_unused_decoy_prefix(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no accession begins with the decoy prefix 'XXX_'") as error:
        build(tmp_path, TARGETS, "existing", "XXX_")
    assert error.value.remedy


def test_protein_index_rejects_existing_decoys(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 accessions begin with 'DECOY_'"):
        build(tmp_path, [*TARGETS, ("DECOY_P1", "", "MM")], "reverse")


def test_protein_index_rejects_empty_database(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no protein"):
        build(tmp_path, [])


def test_protein_index_rejects_contaminants_with_existing_decoys(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="contaminants"):
        build(tmp_path, [("A", "", "MK"), ("DECOY_A", "", "KM")], "existing", contaminants=[("C", "", "AA")])


@pytest.mark.parametrize("decoys", ["reverse", "pseudo-reverse", "shuffle", "none"])
def test_protein_index_opens_by_memory_map(tmp_path: Path, decoys: str) -> None:
    built = build(tmp_path, TARGETS, decoys)
    opened = open_protein_index(tmp_path)
    assert rows(opened) == rows(built)
    assert (opened.n_targets, opened.decoy_prefix, opened.n_contaminants) == (built.n_targets, "DECOY_", 0)
    assert isinstance(opened.proteins.residues, np.memmap)


def test_protein_index_returns_the_protein_of_each_residue(tmp_path: Path) -> None:
    index = build(tmp_path, TARGETS)
    expected = [number for number, record in enumerate(rows(index)) for _ in record[2]]
    assert index.protein_of(np.arange(len(expected))).tolist() == expected


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["A", "ä", "rev_", "rev_x", "re", ""]), st.text("AKR", max_size=6)), min_size=1, max_size=8))
def test_protein_index_accepts_interleaved_existing_decoys(tmp_path: Path, parts: list[tuple[str, str]]) -> None:
    records = [(f"{name}{i}" if name != "rev_" else name, f"δ{i}", sequence) for i, (name, sequence) in enumerate(parts)]
    decoys = [record for record in records if record[0].startswith("rev_")]
    targets = [record for record in records if not record[0].startswith("rev_")]
    if not decoys or not targets:
        with pytest.raises(InputError):
            build(tmp_path / "index", records, "existing", "rev_")
        return
    index = build(tmp_path / "index", records, "existing", "rev_")
    assert rows(index) == targets + decoys


def test_protein_index_removes_stop_codon_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "stops.fasta"
    path.write_text(">A one\nMAGICK\nLAST*\n>B\nWW*RK\n", encoding="ascii")
    index = build_protein_index(tmp_path, read_proteins([path]), database=str(path), decoys="none", decoy_prefix="DECOY_", cleaves=CLEAVES)
    assert rows(index) == [("A", "one", "MAGICKLAST"), ("B", "", "WWXRK")]


@pytest.mark.parametrize("decoys", ["reverse", "existing", "none"])
@pytest.mark.parametrize("prefix", ["rev_", "REV_", "Rev_", "DECOY_", "decoy_", "XXX_", "xxx_", "reverse_"])
def test_protein_index_rejects_decoys_only_with_any_prefix(tmp_path: Path, prefix: str, decoys: str) -> None:
    records = [(f"{prefix}sp|P{i}|X", "", "PEPTIDEK") for i in range(3)]
    with pytest.raises(InputError, match=f"begins with '{prefix}'|every protein is a decoy"):
        build(tmp_path, records, decoys, "DECOY_")
    # One target is enough.
    if decoys != "existing" and prefix != "DECOY_":
        assert build(tmp_path, [*records, ("sp|Q1|Y", "", "ELVISK")], decoys, "DECOY_").n_targets == 4
