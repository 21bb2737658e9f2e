"""Searches in databases that are written in other formats than FASTA."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.identification.parameters import IdentificationParameters
from engine.parameters import read_preset
from engine.sequence_search.parameters import SequenceSearchParameters
from tests.engine.formats.entry_files import swiss_prot_entry
from tests.engine.simulation import proteins_of
from tests.searching import align, identify

SAMPLES = Path(__file__).resolve().parents[3] / "resources" / "samples"
N_PROTEINS = 40
DESCRIPTION = "Protein p{0} (Fragment) OS=Bos taurus OX=9913 GN=gene{1} PE=1 SV=3"


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same proteins as FASTA and as UniProt's text."""
    folder = tmp_path_factory.mktemp("databases")
    known = proteins_of(SAMPLES / "18Protein_SoCe_Tr_detergents_trace.fasta.gz")
    albumin = next(sequence for name, sequence in known.items() if "ALBU_BOVIN" in name)
    chosen = [albumin, *[sequence for sequence in known.values() if sequence != albumin][: N_PROTEINS - 1]]
    fasta, text = [], []
    for i, sequence in enumerate(chosen):
        accession, name = f"A0A{i:07d}", f"P{i}_BOVIN"
        fasta.append(f">sp|{accession}|{name} {DESCRIPTION.format(i, accession[-1])}\n{sequence}\n")
        text.append(swiss_prot_entry(accession, name, sequence))
    (folder / "same.fasta").write_text("".join(fasta))
    (folder / "same.dat").write_text("".join(text))
    return folder / "same.fasta", folder / "same.dat"


def test_uniprot_text_is_searched_as_its_fasta_is(databases: tuple[Path, Path], tmp_path: Path) -> None:
    parameters = IdentificationParameters.checked(read_preset("identify", "low-resolution"))
    for path in databases:
        found = identify([SAMPLES / "BSA1.mzML.gz"], [path], tmp_path / path.suffix, parameters, threads=2)
        assert found.n_peptides > 0
    for name in ("psms", "peptides", "proteins"):
        one, other = ((tmp_path / path.suffix / "exports" / f"{name}.tsv").read_bytes() for path in databases)
        assert one == other and b"A0A0000000" in one


def test_sequences_are_found_in_uniprot_text_as_in_its_fasta(databases: tuple[Path, Path], tmp_path: Path) -> None:
    query = tmp_path / "query.fasta"
    query.write_text("".join(databases[0].read_text().splitlines(keepends=True)[:4]))
    tables = []
    for path in databases:
        align([query], [path], tmp_path / f"{path.suffix}.tsv", SequenceSearchParameters(), threads=2)
        tables.append((tmp_path / f"{path.suffix}.tsv").read_text())
    assert tables[0] == tables[1] and tables[0].count("\n") > 2
