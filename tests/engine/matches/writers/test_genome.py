"""Genome positions of peptides in GFF3 and BED, compared with counting codons in plain Python."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.jobs.progress import Cancelled, Progress
from tests.engine.identification_tables import Identification, identification
from tests.engine.matches.exported import OF_GENOMES, export


@pytest.fixture(scope="module")
def small() -> Identification:
    return identification()


def expected_places(small: Identification, fdr: float) -> list[tuple[str, int, int, str, str]]:
    """Return sequence, first and last nucleotide from 1, strand and peptide for all positions of accepted peptides."""
    frames = {row["accession"]: row for row in small.reading_frames.to_pylist()}
    psms = {row["psm_id"]: row for row in small.psms.to_pylist()}
    positions = []
    for peptide in small.peptides.to_pylist():
        if peptide["is_decoy"] or peptide["q_value"] is None or peptide["q_value"] > fdr:
            continue
        best = psms[peptide["best_psm"]]
        for accession, start in zip(best["proteins"], best["protein_starts"], strict=True):
            frame, length = frames[accession], len(peptide["sequence"])
            codons = [range(frame["first"] + 3 * k, frame["first"] + 3 * k + 3) for k in range((frame["last"] - frame["first"] + 1) // 3)]
            if frame["strand"] == "-":
                codons.reverse()
            bases = [base for codon in codons[start - 1 : start - 1 + length] for base in codon]
            positions.append((frame["sequence"], min(bases), max(bases), frame["strand"], peptide["peptide"]))
    return positions


@pytest.mark.parametrize("fdr", [0.01, 0.2])
def test_genome_gff3_and_bed_have_all_accepted_peptides(small: Identification, tmp_path: Path, fdr: float) -> None:
    folder = small.write(tmp_path / "run", is_translated=True)
    expected = sorted(expected_places(small, fdr))
    assert expected or fdr < 0.1
    export(folder, "gff3", tmp_path / "places.gff3", {"fdr": fdr})
    export(folder, "bed", tmp_path / "places.bed", {"fdr": fdr})
    lines = (tmp_path / "places.gff3").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "##gff-version 3"
    positions, names = [], []
    for line in lines[1:]:
        name, source, kind, first, last, score, strand, phase, written_attributes = line.split("\t")
        # By the specification, special characters are escaped and each line has its own identifier.
        assert re.fullmatch(r"([a-zA-Z0-9.:^*$@!+_?|~-]|%[0-9A-F]{2})+", name)
        assert (source, kind, phase) == ("Proteoscope", "CDS", "0") and float(score) <= fdr
        attributes = dict(pair.split("=") for pair in written_attributes.split(";"))
        names.append(attributes["ID"])
        positions.append((unquote(name), int(first), int(last), strand, unquote(attributes["Name"])))
    assert sorted(positions) == expected and len(set(names)) == len(names)
    assert [position[1] for position in positions] == sorted(position[1] for position in positions)
    bed = []
    for line in (tmp_path / "places.bed").read_text(encoding="utf-8").splitlines():
        name, start, end, peptide, score, strand = line.split("\t")
        assert " " not in name and 0 <= int(score) <= 1000
        bed.append((unquote(name), int(start) + 1, int(end), strand, peptide))
    assert sorted(bed) == expected


@pytest.mark.parametrize("format", OF_GENOMES)
def test_genome_export_rejects_run_without_translation(small: Identification, tmp_path: Path, format: str) -> None:
    with pytest.raises(ParameterError, match="the run translated no nucleotides"):
        export(small.write(tmp_path / "run"), format, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format", OF_GENOMES)
def test_cancelled_genome_export_leaves_existing_file_unchanged(small: Identification, tmp_path: Path, format: str) -> None:
    folder = small.write(tmp_path / "run", is_translated=True)
    (tmp_path / "out").write_text("old")
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        export(folder, format, tmp_path / "out", {}, progress)
    assert (tmp_path / "out").read_text() == "old"


@pytest.mark.parametrize(("column", "value"), [("last", 5), ("strand", "?"), ("first", 0)])
def test_genome_export_rejects_invalid_reading_frames(small: Identification, tmp_path: Path, column: str, value: object) -> None:
    folder = small.write(tmp_path / "run", is_translated=True)
    frames = small.reading_frames
    at = frames.column_names.index(column)
    invalid = pa.array([value, *frames[column].to_pylist()[1:]], frames.schema.field(column).type)
    pq.write_table(frames.set_column(at, column, invalid), folder / "reading_frames.parquet")
    with pytest.raises(InputError, match=r"reading_frames\.parquet"):
        export(folder, "bed", tmp_path / "out")


@pytest.mark.parametrize("name", ["track1", "browser", "#1", "chr 1", "a\tb\nc", "%23"])
def test_bed_escapes_sequence_names_that_look_like_headers(small: Identification, tmp_path: Path, name: str) -> None:
    frames = small.reading_frames
    named = frames.set_column(frames.column_names.index("sequence"), "sequence", pa.array([name] * len(frames)))
    folder = small.write(tmp_path / "run", is_translated=True)
    pq.write_table(named, folder / "reading_frames.parquet")
    export(folder, "bed", tmp_path / "places.bed", {"fdr": 0.2})
    lines = (tmp_path / "places.bed").read_text(encoding="utf-8").split("\n")[:-1]
    assert lines
    assert {line.count("\t") for line in lines} == {5}
    assert not any(line.startswith(("track", "browser", "#")) for line in lines)
    assert {unquote(line.split("\t")[0]) for line in lines} == {name}
