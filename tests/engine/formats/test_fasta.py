"""FASTA variants against Biopython, and broken files."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from Bio.SeqIO.FastaIO import SimpleFastaParser

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import Proteins, read_proteins

PROTEOMES = ("shew.fasta", "human.small.comet.fasta", "ecoli_13spiked_2021_04.fasta", "combo.fasta")


def records(proteins: Proteins) -> list[tuple[str, str, str]]:
    return [(proteins.accession(i), proteins.description(i), proteins.sequence(i)) for i in range(len(proteins))]


@pytest.mark.parametrize("name", PROTEOMES)
def test_fasta_records_equal_biopython(shared_data: Path, name: str) -> None:
    path = shared_data / "proteomes" / name
    expected = []
    with path.open() as handle:
        for header, sequence in SimpleFastaParser(handle):
            accession, _, description = header.partition(" ")
            expected.append((accession, description.strip(), sequence.upper().rstrip("*")))
    expected = list(dict.fromkeys(record for record in expected if record[2]))
    proteins = read_proteins([path])
    assert records(proteins) == expected


def test_fasta_proteins_are_equal_for_any_block_size_and_gzip(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shared_data / "proteomes" / "shew.fasta"
    whole = records(read_proteins([path]))
    packed = tmp_path / "packed.fasta"
    packed.write_bytes(gzip.compress(path.read_bytes(), 1))
    monkeypatch.setattr("proteoscope.engine.formats.sources.blocks.__defaults__", (10_000,))
    assert records(read_proteins([path])) == whole
    assert records(read_proteins([packed])) == whole


ODD = (
    """;a comment
>sp|P1|ONE first  protein, é
acde FGH 10
iklm-N.*

;another
>P2\ttab
XBZJOU*ACD**
>P3 nothing
>P4
*
>  P5   blanks
"""
    + "A" * 200_000
    + "\n"
)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_read_proteins_accepts_fasta_variants(written: Callable[..., Path], end: str) -> None:
    proteins = read_proteins([written(("\ufeff" + ODD).replace("\n", end))])
    assert records(proteins) == [
        ("sp|P1|ONE", "first  protein, é", "ACDEFGHIKLMN"),
        ("P2", "tab", "XBZJOU*ACD"),
        ("P5", "blanks", "A" * 200_000),
    ]
    assert proteins.residues.dtype == np.uint8
    assert proteins.offsets.dtype == np.int64
    assert len(proteins) == 3


def test_fasta_headers_in_latin_1_are_read(written: Callable[..., Path]) -> None:
    assert read_proteins([written(">P1 Köln\nACD\n".encode("latin-1"))]).description(0) == "Köln"


def test_repeated_fasta_record_is_read_once(written: Callable[..., Path]) -> None:
    first = written(">P1 a\nACD\n>P2\nEFG\n>P1 b\nACD\n", "one.fasta")
    second = written(">P2\nEFG\n>P3\nACD\n", "other.fasta")
    proteins = read_proteins([first, second])
    assert records(proteins) == [("P1", "a", "ACD"), ("P2", "", "EFG"), ("P3", "", "ACD")]


def test_fasta_accession_with_two_sequences_is_rejected(written: Callable[..., Path]) -> None:
    first = written(">P1\nACD\n>P2\nEFG\n", "one.fasta")
    second = written("\n>P1\nACE\n", "other.fasta")
    with pytest.raises(
        InputError, match=r"other\.fasta, line 2: the accession P1 has a different sequence in .*one\.fasta, line 1\. Rename"
    ):
        read_proteins([first, second])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (">P1\nACD\n>P2\nAC@D\n", r"line 4: '@' is not a residue"),
        (">P1\nAC\x01D\n", r"line 2: byte 1 is not a residue"),
        (">P1\nACD\n>\nEFG\n", r"line 3: the record has no name"),
        (";x\nACD\n>P1\nACD\n", r"line 1: is in no known format"),
        (">P1\n>P2\n*\n", r"it contains no protein sequence"),
        (">c1\n" + "ACGTN" * 300 + "\n", r"the sequences are nucleotides"),
    ],
)
def test_broken_fasta_is_rejected_with_a_reason(written: Callable[..., Path], content: str, message: str) -> None:
    path = written(content)
    with pytest.raises(InputError, match=message) as raised:
        read_proteins([path])
    assert str(path) in str(raised.value)
    assert raised.value.remedy


@pytest.mark.parametrize("content", ["MKVLAARND\n", "Dear reader,\nthis is a note.\n", "1 2 3\n4 5\n", "<html></html>", "a\0b"])
def test_error_for_a_sequence_search_file_suggests_only_fasta(written: Callable[..., Path], content: str) -> None:
    with pytest.raises(InputError) as raised:
        read_proteins([written(content)], every_record=True)
    assert raised.value.remedy == "Give a FASTA file: begin each sequence with a line > and a name"
    with pytest.raises(InputError, match=r"mzML|spectra"):
        read_proteins([written(content)])


def test_fasta_chromosomes_are_read_on_request(written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    chromosome = np.frombuffer(b"ACGTacgtN", np.uint8)[random.integers(0, 9, 18_000_000)].tobytes().decode()
    wrapped = "\n".join(chromosome[k : k + 70] for k in range(0, 1_500_000, 70))
    file = written(f">first of two\n{wrapped}\n>second\n{chromosome}\n>third\nRYNACGT\n")
    proteins = read_proteins([file], every_record=True, with_chromosomes=True)
    assert [proteins.sequence(k) for k in range(3)] == [wrapped.replace("\n", "").upper(), chromosome.upper(), "RYNACGT"]
    with pytest.raises(InputError, match="the sequence is a chromosome of nucleotides, not a protein"):
        read_proteins([file], every_record=True)
    monkeypatch.setattr("proteoscope.engine.formats.fasta.MAXIMUM_NUCLEOTIDES", 17_000_000)
    with pytest.raises(InputError, match="line 21431: the sequence has more than 17,000,000 nucleotides"):
        read_proteins([file], every_record=True, with_chromosomes=True)


@pytest.mark.parametrize("length", [1_000_001, 17_000_000])
def test_fasta_proteins_as_long_as_chromosomes_are_rejected(written: Callable[..., Path], length: int) -> None:
    with pytest.raises(InputError, match="the sequence has more than 1,000,000 residues"):
        read_proteins([written(">P1\n" + "ACDEFGHIKLMNPQRSTVWY" * (length // 20 + 1))], every_record=True, with_chromosomes=True)


def test_fasta_rejects_long_names(tmp_path):
    path = tmp_path / "proteins.fasta"
    path.write_text(f">a\nMKK\n>{'n' * 1001}\nMKKA\n")
    with pytest.raises(InputError, match=r"line 3: the name is longer than 1,000 bytes\. Put a blank"):
        read_proteins([path])
    path.write_text(f">a\nMKK\n>{'n' * 1000} {'d' * 5000}\nMKKA\n")
    assert len(read_proteins([path]).accession(1)) == 1000
