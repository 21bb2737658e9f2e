"""``proteoscope convert`` writes the selected spectra and rejects invalid requests in a sentence."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.project import Project
from tests.conftest import leave_advice_out
from tests.searching import few_proteins

SPECTRA = resources.path("samples", "BSA1.mzML.gz")
REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an identification of two files with paths relative to their folder."""
    folder = tmp_path_factory.mktemp("convert")
    (folder / "run.mzML.gz").write_bytes(SPECTRA.read_bytes())
    arguments = ["--database", str(few_proteins(folder)), "--preset", "low-resolution", "--out", "project", "--quiet", "--device", "cpu"]
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        leave_advice_out(patched)
        assert main(["convert", "run.mzML.gz", "--out", "late.mgf", "--retention-time", "2000..", "--quiet"]) == 0
        assert main(["identify", "late.mgf", "run.mzML.gz", *arguments]) == 0
    return folder / "project"


def converted(*arguments: object) -> int:
    return main(["convert", *map(str, arguments)])


def test_convert_writes_the_format_of_the_suffix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = read_spectra([SPECTRA])
    for name in ("out.MGF", "out.ms2", "out.mzML"):
        assert converted(SPECTRA, "--out", tmp_path / name) == 0
        converted_spectra = read_spectra([tmp_path / name])
        np.testing.assert_array_equal(converted_spectra.mz, expected.mz)
        assert f"1,120 of 1,120 spectra written: {tmp_path / name}" in capsys.readouterr().out


def test_convert_joins_several_files(tmp_path: Path) -> None:
    first = tmp_path / "first.mgf"
    assert converted(SPECTRA, "--out", first, "--charge", 3, "--quiet") == 0
    assert converted(SPECTRA, first, "--out", tmp_path / "both.mzML", "--quiet") == 0
    joined, expected = read_spectra([tmp_path / "both.mzML"]), read_spectra([SPECTRA, first])
    np.testing.assert_array_equal(joined.mz, expected.mz)
    assert len(set(joined.identifier)) == len(expected)


def test_convert_rejects_a_repeated_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link, out = tmp_path / "again.mzML.gz", tmp_path / "out.mgf"
    link.symlink_to(SPECTRA)
    for second in (SPECTRA, link):
        assert converted(SPECTRA, second, "--out", out) == 2
        assert "is given twice. Name each file once" in capsys.readouterr().err and not out.exists()


def test_convert_selects_spectra_that_meet_all_options(tmp_path: Path) -> None:
    out = tmp_path / "out.mgf"
    choices = ("--charge", "2,3", "--precursor-mass", "900..1500", "--retention-time", "1600..")
    assert converted(SPECTRA, "--out", out, *choices, "--quiet") == 0
    selected, spectra = read_spectra([out]), read_spectra([SPECTRA])
    charge = np.log2(spectra.charge_mask).astype(int)
    mass = charge * (spectra.precursor_mz - 1.00727646688)
    wanted = np.isin(charge, (2, 3)) & (mass >= 900) & (mass <= 1500) & (spectra.retention_time >= 1600)
    assert selected.scan.tolist() == spectra.scan[wanted].tolist() and 0 < len(selected) < len(spectra)


@pytest.mark.parametrize("q_value", [None, 0.3])
def test_convert_separates_identified_from_unidentified(project: Path, tmp_path: Path, q_value: float | None) -> None:
    threshold = () if q_value is None else ("--q-value", q_value)
    psms = pq.read_table(Project.open(project).table("psms", "identify-0001")).to_pylist()
    best = [psm for psm in psms if psm["rank"] == 1 and not psm["is_decoy"] and psm["q_value"] <= (q_value or 0.01)]
    for name in ("run.mzML.gz", "late.mgf"):
        copy = tmp_path / f"copied elsewhere {name}"
        copy.write_bytes((project.parent / name).read_bytes())
        for choice in ("identified", "unidentified"):
            assert converted(copy, "--out", tmp_path / f"{choice}.mgf", f"--{choice}", project, *threshold, "--quiet") == 0
        identified, rest = (read_spectra([tmp_path / f"{choice}.mgf"]).scan.tolist() for choice in ("identified", "unidentified"))
        expected = {psm["scan"] for psm in best if psm["spectrum_file"] == name}
        assert expected and set(identified) == expected
        assert sorted(identified + rest) == sorted(read_spectra([copy]).scan.tolist())


def test_convert_writes_only_spectra_to_standard_output(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "proteoscope.engine.command_line",
        "convert",
        str(SPECTRA),
        "--out",
        "-",
        "--format",
        "mzml",
        "--charge",
        "2",
    ]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True, env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    (tmp_path / "out.mzML").write_bytes(done.stdout)
    assert set(read_spectra([tmp_path / "out.mzML"]).charge_mask.tolist()) == {4}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "out.txt"], "expected a name that ends with .mzml, .mgf or .ms2"),
        (["--out", "-"], "give --format too"),
        (["--out", "out.mgf", "--charge", "two"], "'two' is not a list of charges"),
        (["--out", "out.mgf", "--charge", "32"], "from 1 to 31"),
        (["--out", "out.mgf", "--precursor-mass", "5"], "is not a range of masses"),
        (["--out", "out.mgf", "--retention-time", "9..5"], "is not a range of times"),
        (["--out", "out.mgf", "--charge", "30"], "none of the 1,120 spectra matches the selection"),
        (["--out", "out.mgf", "--run", "identify-0001"], "need --identified or --unidentified"),
        (["--out", "out.mgf", "--identified", "nowhere"], "nowhere"),
        (["--out", "out.mgf", "--identified", "nowhere", "--q-value", "2"], "is not a q-value"),
    ],
)
def test_convert_reports_invalid_requests_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert converted(SPECTRA, *arguments, "--quiet") == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
    assert not any(tmp_path.iterdir())


def test_convert_identified_rejects_file_not_read_by_the_run(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.mzML"
    other.write_bytes(gzip.decompress(SPECTRA.read_bytes()))
    assert converted(other, "--out", tmp_path / "out.mgf", "--identified", project, "--quiet") == 2
    assert "was not read by run 'identify-0001' of" in capsys.readouterr().err


def test_convert_does_not_overwrite_its_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.mgf"
    assert converted(SPECTRA, "--out", path, "--quiet") == 0
    before = path.read_bytes()
    assert converted(path, "--out", path, "--quiet") == 2
    assert "would be overwritten" in capsys.readouterr().err and path.read_bytes() == before
