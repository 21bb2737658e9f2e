"""Annotated databases against Biopython and equivalent FASTA, and broken files."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from Bio import SeqIO

from proteoscope import resources
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import Proteins, read_proteins
from proteoscope.engine.formats.features import FEATURE_GROUPS, FEATURE_KINDS
from proteoscope.engine.formats.registry import FORMATS
from proteoscope.engine.formats.sequence_type import count_sequences
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from tests.engine.formats import entry_files

TEXTS = {
    "Swiss-Prot text": ("swiss", entry_files.SWISS_PROT, ".dat"),
    "UniProt XML": ("uniprot-xml", entry_files.UNIPROT_XML.replace("https://uniprot", "http://uniprot"), ".xml"),
    "GenBank": ("genbank", entry_files.GENBANK_PROTEIN, ".gp"),
    "PIR": ("pir", entry_files.PIR.replace("C;Species: unknown\n", ""), ".pir"),
}
FEATURES = [
    ("signal peptide", 1, 18, ""),
    ("chain", 19, 65, "Protein one"),
    ("domain", 20, 60, "A domain of a name that goes on in the next line; truncated"),
    ("modified residue", 30, 30, "Phosphoserine"),
    ("variant", 40, 40, "E -> K (in a breed; dbSNP:rs1)"),
    ("disulfide bond", 55, 58, ""),
    ("strand", 3, 7, ""),
]


def records(proteins: Proteins) -> list[tuple[str, str, str]]:
    return [(proteins.accession(i), proteins.description(i), proteins.sequence(i)) for i in range(len(proteins))]


def list_features(proteins: Proteins, i: int) -> list[tuple[str, int, int, str]]:
    assert proteins.features is not None
    result = proteins.features.take(np.array([i]))
    return [
        (FEATURE_KINDS[kind].name, first, last, text)
        for kind, first, last, text in zip(
            result.kind.tolist(), result.first.tolist(), result.last.tolist(), result.texts.strings(), strict=True
        )
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_sequences_of_annotated_entries_equal_biopython(written: Callable[..., Path], name: str) -> None:
    parser, text, suffix = TEXTS[name]
    expected = [str(record.seq) for record in SeqIO.parse(io.BytesIO(text.encode()) if "xml" in parser else io.StringIO(text), parser)]
    proteins = read_proteins([written(text, f"database{suffix}")])
    assert [sequence for _, _, sequence in records(proteins)] == expected


@pytest.mark.parametrize("text", [entry_files.SWISS_PROT, entry_files.UNIPROT_XML])
def test_uniprot_text_and_xml_equal_the_fasta_file(written: Callable[..., Path], text: str) -> None:
    expected = records(read_proteins([written(entry_files.FASTA_OF_UNIPROT, "same.fasta")]))
    assert records(read_proteins([written(text, "database.dat")])) == expected


@pytest.mark.parametrize("text", [entry_files.SWISS_PROT, entry_files.UNIPROT_XML])
def test_features_of_isoforms_or_unknown_positions_are_skipped(written: Callable[..., Path], text: str) -> None:
    proteins = read_proteins([written(text, "database.dat")])
    assert list_features(proteins, 0) == FEATURES
    assert list_features(proteins, 1) == []


def test_genbank_features_have_the_feature_kinds_of_uniprot(written: Callable[..., Path]) -> None:
    proteins = read_proteins([written(entry_files.GENBANK_PROTEIN, "one.gp")])
    assert records(proteins) == [("NP_000001.2", "protein one [Bos taurus]", entry_files.SEQUENCES["Q00001"])]
    assert list_features(proteins, 0) == [
        ("signal peptide", 1, 18, ""),
        ("chain", 19, 65, "protein one"),
        ("region", 20, 60, "A domain"),
        ("modified residue", 30, 30, "phosphorylation"),
        ("disulfide bond", 55, 58, "disulfide"),
        ("strand", 3, 7, "sheet"),
    ]


@pytest.mark.parametrize("text", [entry_files.GENBANK, entry_files.EMBL])
def test_nucleotide_entry_gives_coded_proteins_or_its_sequence(written: Callable[..., Path], text: str) -> None:
    path = written(text, "contig.gb")
    coded = records(read_proteins([path]))
    assert coded == [("TOY1.1", "first protein [Toy bacterium]", "MKWVTFI"), ("TOY_2", "second protein [Toy bacterium]", "MQFRA")]
    assert records(read_proteins([path], with_chromosomes=True)) == [("CTG1.1", "A contig", entry_files.CONTIG)]


@pytest.mark.parametrize("name", [*TEXTS, "EMBL"])
def test_entries_are_equal_for_any_line_end_gzip_and_block_size(
    written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text = entry_files.EMBL if name == "EMBL" else TEXTS[name][1]
    expected = records(read_proteins([written(text, "plain.dat")]))
    forms = (("\ufeff" + text).replace("\n", "\r\n").encode(), text.replace("\n", "\r").encode(), gzip.compress(text.encode()))
    assert all(records(read_proteins([written(form, "other.dat")])) == expected for form in forms)
    monkeypatch.setattr("proteoscope.engine.formats.sources.blocks.__defaults__", (300,))
    proteins = read_proteins([written(text * 3 if name != "UniProt XML" else text, "plain.dat")])
    assert records(proteins) == expected


def test_database_may_have_files_of_several_formats(written: Callable[..., Path]) -> None:
    paths = [written(">A\nACD\n", "a.fasta"), written(entry_files.SWISS_PROT, "b.dat"), written(entry_files.FASTA_OF_UNIPROT, "c.fasta")]
    proteins = read_proteins(paths)
    assert [proteins.accession(i) for i in range(len(proteins))] == ["A", "sp|Q00001|ONE_BOVIN", "tr|Q00002|TWO_BOVIN"]
    assert list_features(proteins, 0) == [] and list_features(proteins, 1) == FEATURES


def test_entry_formats_are_recognised_by_content(written: Callable[..., Path]) -> None:
    from proteoscope.engine.formats.recognition import recognise
    from proteoscope.engine.formats.sources import ByteSource

    texts = {
        "Swiss-Prot text": entry_files.SWISS_PROT,
        "UniProt XML": entry_files.UNIPROT_XML,
        "GenBank": entry_files.GENBANK,
        "EMBL": entry_files.EMBL,
        "PIR": entry_files.PIR,
        "FASTA": ">P1;a name\nACDEF\n>P2\nACD*\n",
    }
    for name, text in texts.items():
        path = written(text, "database.txt")
        with ByteSource(path) as source:
            assert recognise(source).name == name
        assert (count_sequences(path) is None) == (name != "FASTA")


def test_count_sequences_returns_none_for_an_unreadable_file(tmp_path: Path) -> None:
    path, packed = tmp_path / "a.fasta.gz", bytearray(gzip.compress(b">a\nMKK\n" * 5000))
    path.write_bytes(packed)
    assert count_sequences(path) is not None
    packed[20:22] = b"\xff\xff"
    path.write_bytes(packed)
    assert count_sequences(path) is None
    assert count_sequences(tmp_path / "absent.fasta") is None


def test_feature_kinds_have_known_groups_and_unique_names() -> None:
    assert {kind.group for kind in FEATURE_KINDS} == set(FEATURE_GROUPS)
    names = [name for kind in FEATURE_KINDS for name in {kind.name, *kind.names}]
    assert len(names) == len(set(names))


SWISS, XML, GENBANK = entry_files.SWISS_PROT, entry_files.UNIPROT_XML, entry_files.GENBANK_PROTEIN
_SECOND = SWISS.count("\n", 0, SWISS.index("ID   TWO")) + 1
BROKEN = {
    "text cut off in a sequence": (SWISS[:-40], rf"line {_SECOND}: .*cut off"),
    "text cut off at an entry": (SWISS[: SWISS.index("SQ   ")], r"line 1: .*cut off"),
    "no end between two": (SWISS.replace("//\n", "", 1), r"line 1: the entry is broken|line \d+: "),
    "a sequence too short": (SWISS.replace("MADEAALALQ", "MADEA"), rf"line {_SECOND}: the sequence has 53 residues, .* 58"),
    "a sequence of signs": (SWISS.replace("MADEAALALQ", "MADE#ALALQ"), rf"line {_SECOND}: '#' in the sequence of tr.Q00002.TWO_BOVIN"),
    "no accession": (SWISS.replace("AC   Q00002; Z99999;\n", ""), rf"line {_SECOND}: the entry has no accession"),
    "XML cut off": (XML[:-30], r"cut off"),
    "XML cut off in an entry": (XML[: XML.index("<proteinExistence")], r"line 3: .*cut off"),
    "XML that is not nested": (XML.replace("</gene>", "", 1), r"line \d+: the XML is broken"),
    "an entity": (XML.replace("Protein one", "&bomb;", 1), r"line 6: the XML is broken \(undefined entity"),
    "XML without sequence": (XML.replace('length="58"', 'length="57"'), r"the sequence has 58 residues, and its element declares 57"),
    "a record cut off": (GENBANK[:-4], r"line 1: the last record is cut off"),
    "two records in one": (GENBANK.replace("//\n", "") + GENBANK, r"line 1: the record is cut off: another record begins before its end"),
    "a record too short": (GENBANK.replace("mkwvtfisll", "mkwv"), r"line 1: the sequence has 59 residues, and the record declares 65"),
    "a record with a reference to its sequence": (
        GENBANK[: GENBANK.index("ORIGIN")] + "CONTIG      join(AB1.1:1..65)\n//\n",
        r"line 1: the record has no sequence, only a reference to it",
    ),
    "features without an end": (GENBANK[: GENBANK.index("ORIGIN")] + "//\n", r"line 1: the record is broken \(Premature end of features"),
    "another before the record": ("//\n" + GENBANK, "no known format|begin with LOCUS"),
    "PIR without sequence": (entry_files.PIR + ">P1;THREE\n", r"line 10: the record"),
    "PIR without an end": (entry_files.PIR.replace("*\nC;Species: unknown\n", ""), r"line 6: the record is broken"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_entry_error_has_file_reason_and_remedy(written: Callable[..., Path], name: str) -> None:
    text, expected = BROKEN[name]
    path = written(text, "database.dat")
    with pytest.raises(InputError, match=expected) as raised:
        read_proteins([path])
    assert str(raised.value).startswith(str(path)) and "\n" not in str(raised.value) and raised.value.remedy


@pytest.mark.parametrize("begins", [SWISS[:200], GENBANK[:300], SWISS + "ID   " + "x" * 100])
def test_entry_with_an_endless_line_is_rejected(written: Callable[..., Path], begins: str) -> None:
    path = written(begins + "A" * (9 << 20), "database.dat")
    with pytest.raises(InputError, match=r"line \d+: the line is longer than 1,048,576 bytes"):
        read_proteins([path])


def test_uniprot_xml_with_doctype_declaration_is_rejected(written: Callable[..., Path]) -> None:
    bomb = '<!DOCTYPE uniprot [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;"><!ENTITY f SYSTEM "file:///etc/passwd">]>'
    before, _, after = XML.partition("<uniprot")
    for text in (f"{before}{bomb}<uniprot{after}", XML.replace("<entry", f"{bomb}<entry", 1), XML.replace("<gene>", f"{bomb}<gene>", 1)):
        with pytest.raises(InputError, match=r"document type declaration|XML is broken"):
            read_proteins([written(text, "database.xml")])
    # After so much other text it is not searched for, and not parsed.
    far = before + "<!-- " + "x" * (1 << 18) + " -->" + bomb + "<uniprot" + after
    with pytest.raises(InputError):
        read_proteins([written(far.replace("Protein one", "&b;", 1), "database.xml")])


def test_features_outside_the_sequence_are_reported(written: Callable[..., Path]) -> None:
    progress = RecordingProgress(Progress())
    path = written(SWISS.replace("55..58", "55..66").replace("3..7", "66..70"), "database.dat")
    proteins = read_proteins([path], progress=progress)
    assert [feature for feature in FEATURES if feature[0] not in ("disulfide bond", "strand")] == list_features(proteins, 0)
    assert any("2 features that lie outside their sequences" in text for text in map(str, progress.messages))


def test_feature_with_too_many_lines_is_rejected(written: Callable[..., Path]) -> None:
    lines = "FT                   word word word\n" * 100_000
    text = SWISS.replace(
        'FT                   /note="Protein one"\n', f'FT                   /note="Protein\n{lines}FT                   one"\n'
    )
    with pytest.raises(InputError, match="a feature has more than 500 lines"):
        read_proteins([written(text, "database.dat")])


def test_biopython_is_imported_only_for_entry_formats(written: Callable[..., Path]) -> None:
    code = "import sys; from proteoscope.engine.formats import read_proteins; read_proteins([sys.argv[1]]); print('Bio' in sys.modules)"
    for text, expected in ((entry_files.FASTA_OF_UNIPROT, "False"), (SWISS, "True")):
        path = written(text, "database.dat")
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True, cwd=resources.path().parent)
        assert done.stdout.strip() == expected


def test_entry_readers_have_the_format_names_of_the_registry() -> None:
    for written_as in FORMATS:
        if written_as.content == "proteins" and written_as.reader:
            assert written_as.reader()().name == written_as.name


@pytest.mark.parametrize("place", ["x..y", "3..7..9", "-4..z", "P1:Q2:5..9", "99999999999999999999..7"])
def test_feature_with_an_invalid_position_is_reported(written: Callable[..., Path], place: str) -> None:
    progress = RecordingProgress(Progress())
    proteins = read_proteins([written(SWISS.replace("3..7", place), "database.dat")], progress=progress)
    whole = read_proteins([written(SWISS, "whole.dat")])
    assert proteins.residues.tolist() == whole.residues.tolist()
    assert set(FEATURES) - set(list_features(proteins, 0)) == {feature for feature in FEATURES if (feature[1], feature[2]) == (3, 7)}
    assert any("1 feature with an invalid" in text or "1 feature that lies outside" in text for text in map(str, progress.messages))


def test_invalid_position_in_xml_skips_only_that_feature(written: Callable[..., Path]) -> None:
    entry = (
        '<entry dataset="Swiss-Prot"><accession>{0}</accession><name>N{0}</name><protein><recommendedName><fullName>T</fullName>'
        '</recommendedName></protein><organism><name type="scientific">B</name></organism>{1}'
        '<sequence length="5">MAAAK</sequence></entry>\n'
    )
    feature = '<feature type="site"><location><position position="{}"/></location></feature>'
    places = {"P1": "1", "P2": "2x3", "P3": "4", "P4": "y"}
    entries = (entry.format(name, "".join(map(feature.format, positions))) for name, positions in places.items())
    progress = RecordingProgress(Progress())
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<uniprot xmlns="http://uniprot.org/uniprot">\n{"".join(entries)}</uniprot>\n'
    proteins = read_proteins([written(text, "database.xml")], progress=progress)
    assert [proteins.accession(i) for i in range(len(proteins))] == [f"sp|{name}|N{name}" for name in places]
    assert proteins.features is not None and proteins.features.first.tolist() == [1, 2, 3, 4]
    assert any("2 features with an invalid" in text for text in map(str, progress.messages))


BROKEN_PLACES = ("x..y", "3..7..9", "join(1..2,", "complement(2..", "99999999999999999999..7", "P1:Q2:5..9")


@pytest.mark.parametrize("place", BROKEN_PLACES)
def test_broken_genbank_feature_does_not_affect_other_features(written: Callable[..., Path], place: str) -> None:
    progress = RecordingProgress(Progress())
    whole = read_proteins([written(GENBANK, "whole.gp")])
    proteins = read_proteins([written(GENBANK.replace("20..>60", place), "one.gp")], progress=progress)
    assert proteins.residues.tolist() == whole.residues.tolist()
    remaining = [feature for feature in list_features(whole, 0) if (feature[1], feature[2]) != (20, 60)]
    assert list_features(proteins, 0) == remaining and len(remaining) == len(list_features(whole, 0)) - 1
    assert any("1 feature with an invalid position or text left out" in text for text in map(str, progress.messages))


@pytest.mark.parametrize("place", BROKEN_PLACES)
@pytest.mark.parametrize("text", [entry_files.GENBANK, entry_files.EMBL])
def test_broken_coding_sequence_is_skipped_and_reported(written: Callable[..., Path], text: str, place: str) -> None:
    progress = RecordingProgress(Progress())
    proteins = read_proteins([written(text.replace(" 1..24\n", f" {place}\n"), "contig.dat")], progress=progress)
    assert [proteins.accession(i) for i in range(len(proteins))] == ["TOY_2"]
    n = text.count(" 1..24\n")  # the gene with the same location is a second feature
    message = f"{n} feature{'s' * (n > 1)} with an invalid position or text"
    assert any(f"{message} left out" in line for line in map(str, progress.messages))


@pytest.mark.parametrize("text", [entry_files.GENBANK, entry_files.EMBL])
def test_unterminated_quote_skips_only_that_feature(written: Callable[..., Path], text: str) -> None:
    progress = RecordingProgress(Progress())
    proteins = read_proteins([written(text.replace('"MKWVTFI"', '"MKWVTFI'), "contig.dat")], progress=progress)
    assert [proteins.accession(i) for i in range(len(proteins))] == ["TOY_2"]
    assert any("1 feature with an invalid position or text left out" in line for line in map(str, progress.messages))


@pytest.mark.parametrize("text", [entry_files.GENBANK, entry_files.EMBL])
def test_record_with_only_broken_coding_sequences_is_rejected(written: Callable[..., Path], text: str) -> None:
    text = text.replace(" 1..24\n", " join(1..2,\n").replace("complement(34..48)", "3..4..5")
    with pytest.raises(InputError, match="no protein sequence"):
        read_proteins([written(text, "contig.dat")])
