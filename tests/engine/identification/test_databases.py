"""Searches in databases of other formats than FASTA."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as parquet
import pytest
from Bio.Seq import Seq

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats import read_proteins
from proteoscope.engine.formats.translation import parse_frame_name
from proteoscope.engine.identification import IDENTIFICATION
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.project import Project
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.hits import read_query_bars
from proteoscope.engine.views.identification import read_group_coverage
from tests.engine.formats.entry_files import swiss_prot_entry
from tests.searching import align, identify

SAMPLES = Path(__file__).resolve().parents[3] / "resources" / "samples"
N_PROTEINS = 200
FEATURES_OF_ALBUMIN = """FT   SIGNAL          1..18
FT   DOMAIN          19..210
FT                   /note="Albumin 1"
FT   MOD_RES         82
FT                   /note="Phosphoserine"
FT   VARIANT         214
FT                   /note="A -> T"
FT   DISULFID        77..86
FT   HELIX           590..606
"""
DESCRIPTION = "Protein p{0} (Fragment) OS=Bos taurus OX=9913 GN=gene{1} PE=1 SV=3"


def chosen_proteins() -> list[str]:
    """Return bovine albumin, the source of the sample's spectra, and other proteins."""
    proteins = read_proteins([SAMPLES / "18Protein_SoCe_Tr_detergents_trace.fasta.gz"])
    albumin = next(i for i in range(len(proteins)) if proteins.accession(i) == "P02769|ALBU_BOVIN")
    return [proteins.sequence(i) for i in (albumin, *range(N_PROTEINS - 1))]


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Write the same proteins as FASTA and as UniProt text."""
    folder = tmp_path_factory.mktemp("databases")
    chosen = chosen_proteins()
    fasta, text = [], []
    for i, sequence in enumerate(chosen):
        accession, name = f"A0A{i:07d}", f"P{i}_BOVIN"
        fasta.append(f">sp|{accession}|{name} {DESCRIPTION.format(i, accession[-1])}\n{sequence}\n")
        text.append(swiss_prot_entry(accession, name, sequence, FEATURES_OF_ALBUMIN if i == 0 else ""))
    (folder / "same.fasta").write_text("".join(fasta))
    (folder / "same.dat").write_text("".join(text))
    return folder / "same.fasta", folder / "same.dat"


@pytest.fixture(scope="module")
def identified(databases: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Write projects with a search of each database."""
    folder = tmp_path_factory.mktemp("identified")
    parameters = IdentificationParameters.checked(read_preset("identify", "low-resolution"))
    for path in databases:
        assert identify([SAMPLES / "BSA1.mzML.gz"], [path], folder / path.suffix, parameters, threads=2).n_peptides > 0
    return folder / databases[0].suffix, folder / databases[1].suffix


def test_identify_gives_same_tables_for_uniprot_text_and_fasta(identified: tuple[Path, Path]) -> None:
    for name in ("psms", "peptides", "proteins"):
        plain, annotated = ((folder / "exports" / f"{name}.tsv").read_bytes() for folder in identified)
        assert plain == annotated and b"A0A0000000" in plain


def test_identify_stores_features_of_identified_proteins(identified: tuple[Path, Path]) -> None:
    bare, annotated = map(open_run, identified)
    assert "features" not in bare.tables.paths
    source = annotated.tables.source("features")
    rows = source.query("SELECT accession, kind, first, last, description FROM features").to_pylist()
    albumin = "sp|A0A0000000|P0_BOVIN"
    assert [tuple(row.values()) for row in rows] == [
        (albumin, "signal peptide", 1, 18, ""),
        (albumin, "domain", 19, 210, "Albumin 1"),
        (albumin, "modified residue", 82, 82, "Phosphoserine"),
        (albumin, "variant", 214, 214, "A -> T"),
        (albumin, "disulfide bond", 77, 86, ""),
        (albumin, "helix", 590, 606, ""),
    ]
    proteins = annotated.tables.source("proteins")
    place = proteins.query("SELECT file_row_number AS row FROM proteins WHERE list_contains(accessions, ?)", [albumin])["row"][0].as_py()
    coverage = read_group_coverage(proteins, place, 0.01)
    assert [(feature.kind, feature.start, feature.end) for feature in coverage.features] == [
        (row["kind"], row["first"] - 1, row["last"]) for row in rows
    ]
    assert read_group_coverage(bare.tables.source("proteins"), place, 0.01).features == ()
    for run in (bare, annotated):
        run.tables.close()


def _some_variants(sequence: str) -> str:
    """Return features that exchange each tenth residue by tryptophan."""
    return "".join(
        f'FT   VARIANT         {at + 1}\nFT                   /note="{sequence[at]} -> W"\n' for at in range(5, len(sequence), 10)
    )


def test_identify_finds_and_names_known_variant_only_on_request(tmp_path: Path) -> None:
    albumin, *others = chosen_proteins()
    at = albumin.index("HLVDEPQNLIK") + 9
    # The database has another residue than the source of the spectra, but lists the variant.
    other = albumin[:at] + "A" + albumin[at + 1 :]
    feature = f'FT   VARIANT         {at + 1}\nFT                   /note="A -> I (in a breed)"\n'
    text = [swiss_prot_entry("A0A0000000", "P0_BOVIN", other, feature)]
    # Variants of other proteins: a class of fewer than 20 targets would have no error rate.
    text += [
        swiss_prot_entry(f"A0A{i:07d}", f"P{i}_BOVIN", sequence, _some_variants(sequence)) for i, sequence in enumerate(others, start=1)
    ]
    path = tmp_path / "variants.dat"
    path.write_text("".join(text))
    parameters = IdentificationParameters.checked(read_preset("identify", "low-resolution"))
    proteins_of_peptides = {}
    for is_requested in (False, True):
        folder = tmp_path / f"requested-{is_requested}"
        identify([SAMPLES / "BSA1.mzML.gz"], [path], folder, parameters.changed(known_variants=is_requested), threads=2)
        rows = parquet.read_table(Project.open(folder).table("peptides", None)).to_pylist()
        proteins_of_peptides[is_requested] = {
            row["sequence"]: row["proteins"]
            for row in rows
            if not row["is_decoy"] and row["q_value"] is not None and row["q_value"] <= 0.01
        }
    assert "HLVDEPQNLIK" not in proteins_of_peptides[False]
    run = open_run(tmp_path / "requested-True")
    source = run.tables.source("proteins")
    where = "FROM proteins WHERE list_contains(accessions, ?)"
    row = source.query(f"SELECT file_row_number AS row, coverage, length {where}", [f"sp|A0A0000000|P0_BOVIN:A{at + 1}I"]).to_pylist()[0]
    shown = read_group_coverage(source, row["row"], 0.01)
    whole = other[:at] + "I" + other[at + 1 :]
    assert shown.sequence == whole and row["length"] == len(whole)
    assert {(peptide.start, peptide.end) for peptide in shown.peptides} == {(at - 9, at + 2)}
    assert [(feature.kind, feature.start, feature.end) for feature in shown.features] == [("variant", at, at + 1)]
    assert row["coverage"] == pytest.approx(11 / len(whole)) and shown.fraction == pytest.approx(11 / len(whole))
    starts = run.tables.source("psms").query(
        "SELECT DISTINCT protein_starts AS s FROM psms WHERE sequence = 'HLVDEPQNLIK' AND NOT is_decoy"
    )
    assert starts["s"].to_pylist() == [[at - 8]]
    run.tables.close()
    assert proteins_of_peptides[True].pop("HLVDEPQNLIK") == [f"sp|A0A0000000|P0_BOVIN:A{at + 1}I"]
    assert all(":" not in name for names in proteins_of_peptides[True].values() for name in names)


def test_sequence_search_stores_features_of_queries_and_hits(databases: tuple[Path, Path], tmp_path: Path) -> None:
    query = tmp_path / "query.dat"
    whole = read_proteins([databases[1]]).sequence(0)
    query.write_text(swiss_prot_entry("Q1", "QUERY", whole[60:120], "FT   SITE            5\nFT   REGION          50..60\n"))
    align([query], [databases[1]], None, SequenceSearchParameters(), project_folder=tmp_path / "project", threads=2)
    run = open_run(tmp_path / "project")
    bars = read_query_bars(run.tables.source("queries"), 0)
    assert [(feature.kind, feature.start, feature.end) for feature in bars.features] == [("site", 4, 5), ("region", 49, 60)]
    best = bars.bars[0]
    assert best.name == "sp|A0A0000000|P0_BOVIN" and (best.start, best.end) == (1, 60)
    # Features of residues 61 to 120 of albumin; signal, variant and helix are not shown for hits.
    assert [(feature.kind, feature.start, feature.end) for feature in best.features] == [
        ("domain", 18, 210),
        ("modified residue", 81, 82),
        ("disulfide bond", 76, 86),
    ]
    run.tables.close()


def test_sequence_search_is_equal_for_uniprot_text_and_fasta(databases: tuple[Path, Path], tmp_path: Path) -> None:
    query = tmp_path / "query.fasta"
    query.write_text("".join(databases[0].read_text().splitlines(keepends=True)[:4]))
    tables = []
    for path in databases:
        align([query], [path], tmp_path / f"{path.suffix}.tsv", SequenceSearchParameters(), threads=2)
        tables.append((tmp_path / f"{path.suffix}.tsv").read_text())
    assert tables[0] == tables[1] and tables[0].count("\n") > 2


CODONS = {
    "A": "GCT",
    "C": "TGT",
    "D": "GAT",
    "E": "GAA",
    "F": "TTT",
    "G": "GGT",
    "H": "CAT",
    "I": "ATT",
    "K": "AAA",
    "L": "CTG",
    "M": "ATG",
    "N": "AAT",
    "P": "CCG",
    "Q": "CAG",
    "R": "CGT",
    "S": "TCT",
    "T": "ACT",
    "V": "GTT",
    "W": "TGG",
    "Y": "TAT",
}


def test_peptides_of_translated_database_are_located_at_codons(tmp_path: Path) -> None:
    genes = ["".join(CODONS[residue] for residue in sequence if residue in CODONS) for sequence in chosen_proteins()]
    # Albumin on the reverse strand, and half of it on the forward strand of another contig, with ends that shift the frames.
    contigs = {
        "one 1": "AC" + str(Seq("ATG" + genes[0] + "TAA").reverse_complement()) + "G",
        "two;2": "T" + genes[0][: len(genes[0]) // 6 * 3] + "TAACC" + "TAA".join(genes[1:]),
    }
    genome = tmp_path / "genome.fasta"
    genome.write_text("".join(f">{name}\n{text}\n" for name, text in contigs.items()))
    parameters = IdentificationParameters.checked(read_preset("identify", "low-resolution")).changed(
        translation="six-frame", minimum_frame=20
    )
    summary = identify([SAMPLES / "BSA1.mzML.gz"], [genome], tmp_path / "project", parameters, threads=2)
    assert summary.n_peptides > 5
    project = Project.open(tmp_path / "project")
    run = project.latest("identify")
    for name in ("gff3", "bed"):
        IDENTIFICATION.export(project, ExportRequest(run, name, tmp_path / f"places.{name}"), Progress())
    peptides = project.table("peptides", run)
    accepted = {row["sequence"] for row in parquet.read_table(peptides).to_pylist() if not row["is_decoy"] and row["q_value"] <= 0.01}
    by_name = {name.split()[0]: text for name, text in contigs.items()}
    placed = []
    lines = (tmp_path / "places.gff3").read_text().splitlines()
    assert lines[0] == "##gff-version 3"
    for line in lines[1:]:
        name, source, kind, first, last, score, strand, phase, attributes = line.split("\t")
        assert (source, kind, phase) == ("Proteoscope", "CDS", "0") and 0 <= float(score) <= 0.01
        attributes = dict(pair.split("=") for pair in attributes.split(";"))
        place = parse_frame_name(unquote(attributes["reading_frame"]))
        assert place is not None and place.first <= int(first) <= int(last) <= place.last and place.strand == strand
        spelt = Seq(by_name[unquote(name)][int(first) - 1 : int(last)])
        spelt = str((spelt if strand == "+" else spelt.reverse_complement()).translate())
        assert spelt == re.sub(r"\[[^]]*\]|-", "", unquote(attributes["Name"]))
        placed.append((unquote(name), int(first), int(last), strand, spelt))
    assert {spelt for *_, spelt in placed} == accepted
    # Every position of the codons of an accepted peptide in a reading frame, by brute force.
    everywhere = set()
    for name, text in by_name.items():
        for strand, read in (("+", text), ("-", str(Seq(text).reverse_complement()))):
            for frame in range(3):
                protein = str(Seq(read[frame : frame + (len(read) - frame) // 3 * 3]).translate())
                for spelt in accepted:
                    for at in (hit.start() for hit in re.finditer(f"(?={spelt})", protein)):
                        first = frame + 3 * at + 1
                        last = first + 3 * len(spelt) - 1
                        everywhere.add(
                            (name, first, last, "+", spelt)
                            if strand == "+"
                            else (name, len(text) - last + 1, len(text) - first + 1, "-", spelt)
                        )
    # A peptide has no position where the enzyme would not cut.
    assert set(placed) <= everywhere and len(placed) == len(set(placed)) and {name for name, *_ in placed} == set(by_name)
    bed = [line.split("\t") for line in (tmp_path / "places.bed").read_text().splitlines()]
    assert [(name, int(start) + 1, int(end), strand) for name, start, end, _, _, strand in bed] == [place[:4] for place in placed]
    assert all(0 <= int(score) <= 1000 and peptide for *_, peptide, score, _ in bed)
    frames = parquet.read_table(project.table("reading_frames", run)).to_pylist()
    assert ("one", 6, 6 + len(genes[0]) + 2, "-") in [(row["sequence"], row["first"], row["last"], row["strand"]) for row in frames]


def test_genome_position_export_requires_translation(databases: tuple[Path, Path], tmp_path: Path) -> None:
    parameters = IdentificationParameters.checked(read_preset("identify", "low-resolution"))
    identify([SAMPLES / "BSA1.mzML.gz"], [databases[0]], tmp_path / "project", parameters, threads=2)
    project = Project.open(tmp_path / "project")
    with pytest.raises(ParameterError, match=r"the run translated no nucleotides.*translation=six-frame"):
        IDENTIFICATION.export(project, ExportRequest(project.latest("identify"), "bed", tmp_path / "places.bed"), Progress())


def test_sequence_search_finds_proteins_in_reading_frames(databases: tuple[Path, Path], tmp_path: Path) -> None:
    protein = read_proteins([databases[0]]).sequence(0)
    gene = "".join(CODONS[residue] for residue in protein)
    contig = "CCA" + str(Seq("TAA" + gene + "TAG").reverse_complement()) + "AC"
    query, genome, out = tmp_path / "query.fasta", tmp_path / "genome.fasta", tmp_path / "hits.tsv"
    query.write_text(f">Q\n{protein[100:200]}\n")
    genome.write_text(f">contig\n{contig}\n")
    align([query], [genome], out, SequenceSearchParameters().changed(translation="six-frame"), threads=2)
    with out.open(encoding="utf-8", newline="") as file:
        best = next(csv.DictReader(file, delimiter="\t"))
    place = parse_frame_name(best["subject"])
    assert place is not None and (place.first, place.last, place.strand) == (7, 6 + len(gene), "-")
    assert (float(best["identity"]), best["subject_start"], best["subject_end"]) == (1.0, "101", "200")
