"""Files of instrument vendors are recognised by content, and converted if a converter is installed.

A script with the name of a converter replaces it; it writes its arguments and a given mzML file.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.vendor import COMPOUND_MAGIC, THERMO_MAGIC, find_converter, vendor_format
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import file_digest
from tests.searching import few_proteins

SAMPLE = resources.path("samples", "BSA1.mzML.gz")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="scripts replace the converters")

WRITES = """
words = sys.argv[1:]
out = [word[3:] for word in words if word.startswith("-b=")] or [words[words.index("-o") + 1] + "/" + words[words.index("--outfile") + 1]]
pathlib.Path(out[0]).write_bytes(gzip.decompress(pathlib.Path({sample!r}).read_bytes()))
"""


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put only this script on the path; it records its arguments and then runs its code."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))

    def script(name: str, does: str = WRITES) -> Path:
        notes = tmp_path / "words"
        head = f"#!{sys.executable}\nimport gzip, os, pathlib, subprocess, sys, time\n"
        head += f"pathlib.Path({str(notes)!r}).write_text('\\n'.join(sys.argv[1:]))\n"
        (programs / name).write_text(head + does.replace("{sample!r}", repr(str(SAMPLE))))
        (programs / name).chmod(0o755)
        return notes

    return script


def thermo(folder: Path) -> Path:
    path = folder / "a run.RAW"
    path.write_bytes(THERMO_MAGIC + bytes(100))
    return path


def folder_with(folder: Path, name: str, *files: str) -> Path:
    for file in files:
        (folder / name / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / file).write_bytes(b"x")
    return folder / name


def files_of_makers(folder: Path) -> dict[str, Path]:
    wiff = folder / "run.wiff"
    wiff.write_bytes(COMPOUND_MAGIC + bytes(100))
    other = folder / "other.bin"
    other.write_bytes(COMPOUND_MAGIC + bytes(100))
    (folder / "other.bin.scan").write_bytes(b"x")
    return {
        "Thermo raw file": thermo(folder),
        "SCIEX": wiff,
        "SCIEX .wiff file": other,
        "Waters": folder_with(folder, "waters", "_FUNC001.DAT", "_HEADER.TXT"),
        "Bruker timsTOF": folder_with(folder, "tims.d", "analysis.tdf", "analysis.tdf_bin"),
        "Bruker run": folder_with(folder, "baf.d", "analysis.baf"),
        "Agilent": folder_with(folder, "agilent.d", "AcqData/MSScan.bin"),
    }


def test_unsupported_vendor_content_is_reported_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("proteoscope.engine.formats.vendor.find_spec", lambda name: None)
    for name, path in files_of_makers(tmp_path).items():
        file_format = vendor_format(path)
        assert file_format is not None and name in file_format.name and find_converter(file_format) is None
        with pytest.raises(InputError, match=rf"is an? {name}.*Convert it to mzML with .*msconvert.*PATH") as raised:
            read_spectra([path])
        assert "\n" not in str(raised.value) and ("ThermoRawFileParser" in str(raised.value)) == (name == "Thermo raw file")


def test_other_files_and_folders_are_not_vendor_formats(tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").write_bytes(COMPOUND_MAGIC + bytes(100))
    assert vendor_format(tmp_path / "thesis.doc") is None
    assert vendor_format(SAMPLE) is None and vendor_format(tmp_path) is None and vendor_format(tmp_path / "nothing") is None


@pytest.mark.parametrize("program", ["ThermoRawFileParser", "ThermoRawFileParser.sh", "msconvert"])
def test_thermo_file_is_read_by_the_installed_converter(tmp_path: Path, play: Callable[..., Path], program: str) -> None:
    notes = play(program)
    path = thermo(tmp_path)
    stages: list[str] = []
    spectra = read_spectra([path, SAMPLE], progress=Progress(lambda event: stages.append(event.stage)))
    expected = read_spectra([SAMPLE])
    np.testing.assert_array_equal(spectra.mz, np.concatenate([expected.mz, expected.mz]))
    assert spectra.files == (str(path), str(SAMPLE))
    assert stages[0].startswith("Converting a run.RAW with ") and "Reading spectra" in stages
    words = notes.read_text().splitlines()
    assert (f"-i={path}" in words) != (str(path) in words)
    out = Path(next(word for word in words if "proteoscope." in word).removeprefix("-b="))
    assert not out.exists() and not out.parent.is_relative_to(tmp_path)


def test_vendor_folders_are_converted_with_their_options(tmp_path: Path, play: Callable[..., Path]) -> None:
    notes = play("msconvert")
    for path in files_of_makers(tmp_path).values():
        assert len(read_spectra([path])) == 1120
        words = notes.read_text().splitlines()
        assert words[0] == str(path) and words[words.index("--filter") + 1].startswith("peakPicking vendor")
        assert ("--combineIonMobilitySpectra" in words) == (path.name == "tims.d")


def test_progress_of_vendor_converter_is_shown(tmp_path: Path, play: Callable[..., Path]) -> None:
    play("msconvert", "for n in (10, 40, 90):\n    print(f'{n}%', flush=True)\n    time.sleep(0.4)\n" + WRITES)
    shares: list[tuple[int, int]] = []
    read_spectra(
        [thermo(tmp_path)],
        progress=Progress(lambda event: shares.append((event.done, event.total)) if "Converting" in event.stage else None, interval=0),
    )
    assert (40, 100) in shares and shares == sorted(shares)


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("print('Unhandled: no licence'); sys.exit(3)", "could not convert it: Unhandled: no licence"),
        ("sys.exit(7)", "ended with code 7"),
        ("print('done')", "could not convert it: done"),
        ("pathlib.Path(sys.argv[3], 'converted.mzML').write_text('nonsense')", "is in no known format"),
    ],
)
def test_failing_vendor_converter_is_reported_in_one_sentence(tmp_path: Path, play: Callable[..., Path], does: str, words: str) -> None:
    play("msconvert", does)
    path = thermo(tmp_path)
    with pytest.raises(InputError, match=words) as raised:
        read_spectra([path])
    assert raised.value.path == str(path) and "\n" not in str(raised.value)


def test_cancel_ends_vendor_converter_and_child_processes(tmp_path: Path, play: Callable[..., Path]) -> None:
    converter, child = tmp_path / "own", tmp_path / "child"
    play(
        "msconvert",
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"pathlib.Path({str(child)!r}).write_text(str(child.pid))\npathlib.Path({str(converter)!r}).write_text(str(os.getpid()))\ntime.sleep(600)\n",
    )
    progress = Progress()

    def cancel() -> None:
        for _ in range(1000):
            if converter.exists() and converter.read_text():
                break
            threading.Event().wait(0.02)
        progress.cancel()

    waiting = threading.Thread(target=cancel)
    waiting.start()
    with pytest.raises(Cancelled):
        read_spectra([thermo(tmp_path)], progress=progress)
    waiting.join()
    for noted in (converter, child):
        assert _has_ended(int(noted.read_text()))


def _has_ended(process: int) -> bool:
    """Return True if a process is gone, or is a zombie."""
    for _ in range(500):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        threading.Event().wait(0.02)
    return False


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_run_records_the_vendor_file_as_input(tmp_path: Path, play: Callable[..., Path], kind: str) -> None:
    play("msconvert")
    path = thermo(tmp_path) if kind == "file" else folder_with(tmp_path, "tims.d", "analysis.tdf", "deep/x")
    out, proteins = tmp_path / "project", few_proteins(tmp_path)
    arguments = ["identify", path, "--database", proteins, "--preset", "low-resolution", "--out", out, "--quiet", "--device", "cpu"]
    assert main(list(map(str, arguments))) == 0
    project = Project.open(out)
    (record,) = [entry for entry in project.inputs("identify-0001") if entry.kind == "spectra"]
    assert record.path == path and record.sha256 == file_digest(path)
    assert record.size == (len(THERMO_MAGIC) + 100 if kind == "file" else 2)
    assert main(["export", str(out), "--format", "mzid", "--out", str(tmp_path / "out.mzid")]) == 0


def test_vendor_folder_digest_covers_names_and_contents(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "run.d", "a", "b/c")
    first = file_digest(folder)
    assert file_digest(shutil.copytree(folder, tmp_path / "copy")) == first
    (folder / "b" / "c").rename(folder / "b" / "d")
    renamed = file_digest(folder)
    (folder / "a").write_bytes(b"y")
    assert len({first, renamed, file_digest(folder)}) == 3


def test_vendor_converter_in_the_data_folder_is_not_run(play: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play("ThermoRawFileParser")
    file_format = vendor_format(thermo(tmp_path))
    assert file_format is not None and find_converter(file_format) is not None
    monkeypatch.chdir(tmp_path / "programs")
    assert find_converter(file_format) is None
