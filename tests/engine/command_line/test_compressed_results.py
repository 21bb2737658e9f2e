"""Results whose name ends with .gz are gzipped."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.files import atomic_file
from proteoscope.engine.searches import SEARCHES, search_of_kind
from tests.fuzz.result_tables import make

SAMPLES = resources.path("samples")
QUERIES = str(SAMPLES / "protein_queries.fasta")
GENOME, READS = (str(SAMPLES / name) for name in ("lambda_phage.fasta.gz", "lambda_reads.fastq.gz"))
SPECTRA, PROTEINS = (str(SAMPLES / name) for name in ("BSA1.mzML.gz", "albumin_proteins.fasta.gz"))
CPU = ("--device", "cpu", "--threads", "2", "--quiet")
ALIGN = ("align", QUERIES, QUERIES, *CPU)

WRITING = {
    "align": ((*ALIGN, "--out", "h.tsv"), "h.tsv"),
    "stack": ((*ALIGN, "--out", "h.sto"), "h.sto"),
    "reads": (("reads", GENOME, READS, *CPU, "--preset", "map-to-genome", "--out", "r.sam"), "r.sam"),
    "sorted reads": (("reads", GENOME, READS, *CPU, "--preset", "map-to-genome", "--out", "r.sorted.sam"), "r.sorted.sam"),
    "consensus": (("cluster", SPECTRA, *CPU, "--out", "p", "--preset", "low-resolution", "--consensus", "c.mgf"), "c.mgf"),
    "convert": (("convert", SPECTRA, "--quiet", "--out", "s.mzML"), "s.mzML"),
    "predict": (("predict", QUERIES, "--quiet", "--out", "l.msp"), "l.msp"),
}


def run_in(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    assert main(arguments) == 0


@pytest.mark.parametrize("name", WRITING)
def test_output_file_is_compressed_if_its_name_ends_with_gz(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, written = WRITING[name]
    run_in(tmp_path / "plain", monkeypatch, *arguments)
    run_in(tmp_path / "packed", monkeypatch, *(f"{argument}.gz" if argument == written else argument for argument in arguments))
    packed = (tmp_path / "packed" / f"{written}.gz").read_bytes()
    plain = (tmp_path / "plain" / written).read_bytes()
    assert len(plain) > len(packed)
    assert gzip.decompress(packed).replace(f"{written}.gz".encode(), written.encode()) == plain
    assert packed[:2] == b"\x1f\x8b" and packed[3] == 0 and packed[4:8] == bytes(4)  # RFC 1952: no name, no time


def test_every_export_of_a_single_text_file_can_be_compressed(tmp_path: Path) -> None:
    n_compressed = n_refused = 0
    for kind in ("quantify", "cluster", "align", "structures", "reads"):  # the first has an identification, too
        project, out = make(kind, tmp_path / kind), tmp_path / f"exported-{kind}"
        for run in project.runs():
            for export in search_of_kind(run.kind).exports:
                if export.is_folder:
                    continue
                arguments = ["export", str(project.folder), "--run", run.id, "--format", export.name, "--quiet", "--out"]
                plain, packed = out / f"{run.id}{export.endings[0]}", out / f"{run.id}{export.endings[0]}.gz"
                status = main([*arguments, str(packed)])
                if export.is_binary:
                    assert status == 2 and not packed.exists()
                    n_refused += 1
                elif main([*arguments, str(plain)]) == 0:
                    assert status == 0
                    unpacked = gzip.decompress(packed.read_bytes()).replace(packed.name.encode(), plain.name.encode())
                    n_different = sum(a != b for a, b in zip(unpacked.splitlines(), plain.read_bytes().splitlines(), strict=True))
                    assert n_different <= 1, export.name  # the line with the time of writing
                    n_compressed += 1
    assert n_compressed > 20 and n_refused >= 3


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("reads", GENOME, READS, *CPU, "--out", "r.bam.gz"), "bam"),
        (("reads", GENOME, READS, *CPU, "--out", "r.gz", "--format", "sorted-bam"), "sorted-bam"),
        (("predict", PROTEINS, "--quiet", "--out", "l.blib.gz"), "blib"),
        ((*ALIGN, "--out", "h.tsv", "--all-scores", "s.npy.gz"), "an array for NumPy"),
    ],
)
def test_gz_suffix_is_rejected_if_the_format_is_not_text(
    arguments: tuple[str, ...], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert f"{what} is not text, and is not written gzipped; choose a name without .gz" in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_export_formats_that_are_not_utf8_are_marked_as_binary() -> None:
    binary = {export.name for search in SEARCHES for export in search.exports if export.is_binary}
    assert binary == {"bam", "sorted-bam", "blib"}


def test_samples_command_copies_gzipped_files_unchanged(tmp_path: Path) -> None:
    assert main(["samples", str(tmp_path), "--quiet"]) == 0
    assert (tmp_path / "BSA1.mzML.gz").read_bytes() == (SAMPLES / "BSA1.mzML.gz").read_bytes()


def test_failed_writing_of_a_compressed_file_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), atomic_file(tmp_path / "x.tsv.gz") as file:
        file.write(b"a")
        _ = 1 / 0
    assert not list(tmp_path.iterdir())
