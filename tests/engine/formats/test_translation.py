"""Reading frames of nucleotides, against Biopython's translation and plain loops."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from Bio.Data.CodonTable import ambiguous_dna_by_id
from Bio.Seq import Seq

from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.formats import Proteins, read_proteins
from proteoscope.engine.formats.translation import Translation, parse_frame_name
from proteoscope.engine.jobs.progress import Progress
from tests.engine.formats import entry_files


def records(proteins: Proteins) -> list[tuple[str, str]]:
    return [(proteins.accession(i), proteins.sequence(i)) for i in range(len(proteins))]


def by_biopython(name: str, nucleotides: str, direction: str, code: int, minimum: int) -> set[tuple[str, str]]:
    """Return the reading frames between stop codons in Biopython's translation; their locations are counted."""
    length, result = len(nucleotides), set()
    for strand in "+-" if direction == "six-frame" else "+" if direction == "forward" else "-":
        read = Seq(nucleotides) if strand == "+" else Seq(nucleotides).reverse_complement()
        for frame in range(3):
            whole = read[frame : frame + (length - frame) // 3 * 3]
            at = frame
            for protein in str(whole.translate(table=code)).split("*"):
                first, last = at + 1, at + 3 * len(protein)
                if strand == "-":
                    first, last = length - last + 1, length - first + 1
                if len(protein.replace("X", "")) >= minimum:
                    result.add((f"{name}:{first}-{last}({strand})", protein))
                at += 3 * len(protein) + 3
    return result


@pytest.mark.filterwarnings("ignore:This table contains")
@pytest.mark.parametrize("direction", ["six-frame", "forward", "reverse"])
@pytest.mark.parametrize("code", [1, 2, 11, 27])
def test_reading_frames_equal_biopython(written: Callable[..., Path], direction: str, code: int) -> None:
    chance = random.Random(code)
    contigs = {f"contig{n}": "".join(chance.choices("ACGTNRY", (9, 9, 9, 9, 0.2, 0.1, 0.1), k=n)) for n in (1, 2, 3, 4, 5, 61, 1000, 5003)}
    path = written("".join(f">{name} a contig\n{text.lower()}\n" for name, text in contigs.items()), "genome.fasta")
    result = records(Translation(direction, code, 5).read([path], Progress()))  # type: ignore[arg-type]
    expected = set()
    for name, text in contigs.items():
        expected |= by_biopython(name, text, direction, code, 5)
    assert len(result) == len(set(result)) and set(result) == expected


def test_reading_frame_is_the_translation_of_its_location(shared_data: Path) -> None:
    path = shared_data / "dna" / "dna_lambda.fasta"
    genome = read_proteins([path], with_chromosomes=True).sequence(0)
    proteins = Translation("six-frame", 11, 100).read([path], Progress())
    assert len(proteins) > 100
    for accession, protein in records(proteins):
        place = parse_frame_name(accession)
        assert place is not None
        spelt = Seq(genome[place.first - 1 : place.last])
        assert str((spelt if place.strand == "+" else spelt.reverse_complement()).translate(table=11)) == protein


def test_codons_of_each_genetic_code_equal_biopython() -> None:
    from proteoscope.engine.formats.translation import _codons
    from proteoscope.kernels.cpu.translation import BASES

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in some tables, a codon is a stop and a residue
        for code in ambiguous_dna_by_id:
            codons = list(map("".join, product(BASES, repeat=3)))
            translated = iter(str(Seq("".join(codon for codon in codons if "-" not in codon)).translate(table=code)))
            assert bytes(_codons(code)[: len(codons)]).decode() == "".join("X" if "-" in codon else next(translated) for codon in codons)
            assert next(translated, None) is None


def test_translation_reads_rna_and_genbank_sequences(written: Callable[..., Path]) -> None:
    path = written(entry_files.GENBANK, "contig.gb")
    result = records(Translation("six-frame", 11, 5).read([path], Progress()))
    assert ("CTG1.1:1-21(+)", "MKWVTFI") in result and ("CTG1.1:34-48(-)", "MQFRA") in [
        (name, text[:5]) for name, text in result if text[:2] == "MQ"
    ]
    rna = written(f">CTG1.1\n{entry_files.CONTIG.replace('T', 'U')}\n", "rna.fasta")
    assert records(Translation("six-frame", 11, 5).read([rna], Progress())) == result


def test_translation_error_names_the_protein_file_among_genomes(written: Callable[..., Path]) -> None:
    genome, proteins = written(">c\n" + "ACGT" * 500, "genome.fasta"), written(entry_files.FASTA_OF_UNIPROT, "p.fasta")
    for files in ([genome, proteins], [proteins, genome]):
        with pytest.raises(InputError, match="the sequences are proteins") as raised:
            Translation("six-frame", 1, 30).read(files, Progress())
        assert raised.value.path == str(proteins)


def test_translation_rejects_proteins_and_unknown_codes(written: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=r"the sequences are proteins, and cannot be translated.*translation=none"):
        Translation("six-frame", 1, 30).read([written(entry_files.FASTA_OF_UNIPROT, "p.fasta")], Progress())
    with pytest.raises(InputError, match="no reading frame has 1,000 residues"):
        Translation("six-frame", 1, 1000).read([written(">c\nACGTACGT\n", "c.fasta")], Progress())
    with pytest.raises(ParameterError, match="genetic_code: NCBI has no code 7; expected one of 1, 2, 3"):
        Translation("six-frame", 7, 30)


def test_reading_frame_name_without_location_is_not_parsed() -> None:
    assert [parse_frame_name(name) for name in ("sp|P1|A", "c:0-3(+)", "c:1-3", "c:1-3(.)", "")] == [None] * 5
    place = parse_frame_name("a:b:4-9(-)")
    assert place is not None and (place.sequence, place.first, place.last, place.strand) == ("a:b", 4, 9, "-")


def test_translation_cache_key_has_codons_not_code_number() -> None:
    contents = [Translation("six-frame", code, 30).content() for code in (1, 2)]
    assert contents[0] != contents[1] and not any(np.isin([1, 2], list(content.values())).any() for content in contents)
