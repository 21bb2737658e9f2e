"""Results on standard output, and input from standard input."""

from __future__ import annotations

import gzip
import io
import shutil
import sys
from pathlib import Path

import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from tests.conftest import leave_advice_out

SAMPLES = resources.path("samples")
QUERIES = str(SAMPLES / "protein_queries.fasta")
GENOME, READS = (str(SAMPLES / name) for name in ("lambda_phage.fasta.gz", "lambda_reads.fastq.gz"))
FOLDS, DOMAIN = (str(SAMPLES / name) for name in ("folds.pdb.gz", "albumin_domain_3.pdb.gz"))
SPECTRA, PROTEINS = (str(SAMPLES / name) for name in ("BSA1.mzML.gz", "albumin_proteins.fasta.gz"))
CPU = ("--device", "cpu", "--threads", "2", "--quiet")
ALIGN = ("align", QUERIES, QUERIES, *CPU)


def run_in(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    assert main(arguments) == 0


def give_input(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Make the content the standard input of this process."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


READING = {
    "query": (("align", "-", QUERIES, *CPU, "--out", "o"), QUERIES, "o"),
    "database": (("align", QUERIES, "-", *CPU, "--out", "o"), QUERIES, "o"),
    "reads": (("reads", GENOME, "-", *CPU, "--preset", "map-to-genome", "--out", "o"), READS, "o"),
    "structure": (("structures", "-", "--database", FOLDS, *CPU, "--out", "o"), DOMAIN, "o"),
    "spectra": (("convert", "-", "--quiet", "--format", "mgf", "--out", "o"), SPECTRA, "o"),
    "predict": (("predict", "-", "--quiet", "--format", "msp", "--out", "o"), QUERIES, "o"),
}


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", READING)
def test_dash_as_input_file_reads_standard_input(name: str, *, is_packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, path, out = READING[name]
    content = Path(path).read_bytes()
    content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    shutil.copyfile(path, tmp_path / "stdin")  # the name in the results
    run_in(tmp_path, monkeypatch, *("stdin" if argument == "-" else argument for argument in arguments))
    expected = (tmp_path / out).read_bytes()
    give_input(monkeypatch, gzip.compress(content) if is_packed else content)
    run_in(tmp_path, monkeypatch, *arguments)
    assert (tmp_path / out).read_bytes() == expected != b""


def test_identification_reads_spectra_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_advice_out(monkeypatch)
    arguments = ("--database", PROTEINS, "--preset", "low-resolution", *CPU, "--out")
    give_input(monkeypatch, Path(SPECTRA).read_bytes())
    assert main(["identify", "-", *arguments, str(tmp_path / "piped")]) == 0
    shutil.copyfile(SPECTRA, tmp_path / "stdin")
    assert main(["identify", str(tmp_path / "stdin"), *arguments, str(tmp_path / "file")]) == 0
    for table in ("psms", "peptides", "proteins"):
        piped, file = (tmp_path / folder / "exports" / f"{table}.tsv" for folder in ("piped", "file"))
        assert piped.read_bytes() == file.read_bytes()


def test_preset_is_read_from_standard_input_and_gzip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    preset = b"[parameters]\nmissed_cleavages = 7\n"
    give_input(monkeypatch, preset)
    assert main(["parameters", "identify", "--preset", "-"]) == 0
    (tmp_path / "mine.toml.gz").write_bytes(gzip.compress(preset))
    assert main(["parameters", "identify", "--preset", str(tmp_path / "mine.toml.gz")]) == 0
    assert capsys.readouterr().out.count("missed_cleavages = 7 ") == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("align", "-", "-", "--out", "o"), "standard input can be read only once"),
        (("align", QUERIES, QUERIES, "--out", "-", "--all-scores", "-"), "standard output takes only one file of results"),
        (("align", QUERIES, QUERIES, "--out", "-", "--json"), "standard output takes only one file of results"),
        (("predict", PROTEINS, "--out", "-"), "standard output has no file name that determines the format"),
        (("convert", SPECTRA, "--out", "-", "--format", "mgf", "--json"), "standard output takes only the results"),
        (("estimate", "align", "-", QUERIES, "--out", "o"), "standard input has no size before it is read"),
    ],
)
def test_dash_is_rejected_when_the_stream_cannot_be_used(
    arguments: tuple[str, ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    give_input(monkeypatch, b">P1\nACDEFGHIK\n")
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ((*ALIGN, "--out", "h.tsv"), "h.tsv"),
        (("predict", QUERIES, "--quiet", "--format", "msp", "--out", "l.msp"), "l.msp"),
        (("cluster", SPECTRA, *CPU, "--out", "p", "--preset", "low-resolution", "--consensus", "c.mgf"), "c.mgf"),
        ((*ALIGN, "--out", "h.tsv", "--all-scores", "s.npy"), "s.npy"),
    ],
    ids=["align", "predict", "consensus", "all scores"],
)
def test_dash_as_output_file_writes_standard_output(
    arguments: tuple[str, ...], written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    run_in(tmp_path / "file", monkeypatch, *arguments)
    capfdbinary.readouterr()
    run_in(tmp_path / "printed", monkeypatch, *("-" if argument == written else argument for argument in arguments))
    sys.stdout.flush()
    printed = capfdbinary.readouterr().out
    assert printed.replace(b"output", written.encode()) == (tmp_path / "file" / written).read_bytes() != b""
    assert not (tmp_path / "printed" / "-").exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "standard input: the file is empty"),
        (b"\x1f\x8bgarbage", "standard input, before byte 9: the gzip data are damaged"),
    ],
)
def test_unusable_standard_input_is_named_in_the_error(
    content: bytes, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    give_input(monkeypatch, content)
    assert main(["align", "-", QUERIES, *CPU, "--out", "o"]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())
