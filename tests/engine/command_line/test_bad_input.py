"""Wrong use and wrong input: exit code 2, one clear line on stderr, nothing on stdout, and earlier results are unchanged."""

import errno
import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.project import Project

REPOSITORY = Path(__file__).resolve().parents[3]
PROTEINS = (
    ">P1 first\nMAGTAFDFENMKRSSPGESFTWVEEVGCEPDLITQRGCSKTLAESALQMLYAAK\n"
    ">P2 second\nMKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFKGLVLIAFSQYLQQCPFDEHVK\n"
)
SPECTRUM = "BEGIN IONS\nTITLE=one\nPEPMASS=582.319\nCHARGE=2+\n" + "".join(f"{150 + 37 * i}.25 {i + 1}\n" for i in range(20)) + "END IONS\n"
GARBAGE = np.random.default_rng(1).integers(0, 256, 50_000, np.uint8).tobytes()


@pytest.fixture
def work(tmp_path):
    """Write a valid spectrum and database and return their folder."""
    (tmp_path / "good.mgf").write_text(SPECTRUM)
    (tmp_path / "good.fasta").write_text(PROTEINS)
    return tmp_path


@pytest.fixture
def refused(work, capsys):
    """Return a function that identifies, expects a rejection and returns the line on stderr."""

    def run(spectra="good.mgf", database="good.fasta", *options, out="out"):
        code = main(["identify", str(work / spectra), "--database", str(work / database), "--out", str(work / out), "--quiet", *options])
        captured = capsys.readouterr()
        assert (code, captured.out) == (2, "")
        assert captured.err.startswith("proteoscope: ")
        assert captured.err.count("\n") == 1
        return captured.err

    return run


def sample_without(replaced, by):
    with gzip.open(REPOSITORY / "resources" / "samples" / "Ecoli_MS2_small.mzML.gz") as file:
        return file.read().replace(replaced, by)


SPECTRA = {
    "empty": ("a.mzML", lambda: b"", "is empty"),
    "empty gzip": ("a.mgf.gz", lambda: gzip.compress(b""), "holds only blanks"),
    "blank": ("a.mgf", lambda: b"\n \n", "blank"),
    "cut off": (
        "a.mzML.gz",
        lambda: (REPOSITORY / "resources" / "samples" / "Ecoli_MS2_small.mzML.gz").read_bytes()[:100_000],
        "byte 100000: the gzip file is cut off",
    ),
    "garbage": ("a.mzML", lambda: GARBAGE, "binary data in no known format"),
    "garbage without a suffix": ("a", lambda: GARBAGE, "binary data in no known format"),
    "sequences": ("a.mzML", lambda: PROTEINS.encode(), "is a FASTA file of sequences, not a file of spectra"),
    "no MS2": ("a.mzML", lambda: sample_without(b'name="ms level" value="2"', b'name="ms level" value="1"'), "no MS2 spectra"),
}


@pytest.mark.parametrize("case", SPECTRA)
def test_identify_rejects_files_without_spectra(case, work, refused):
    name, content, reason = SPECTRA[case]
    (work / name).write_bytes(content())
    message = refused(spectra=name)
    assert str(work / name) in message
    assert reason in message


NOTHING_TO_SEARCH = {
    "no peaks": (
        "BEGIN IONS\nTITLE=one\nPEPMASS=582.319\nCHARGE=2+\nEND IONS\n" * 3,
        "none of the 3 spectra can be searched: 3 have no peaks",
    ),
    "few peaks": (SPECTRUM.split("261.25")[0] + "END IONS\n", "none of the 1 spectra can be searched: they have fewer than minimum_peaks="),
}


@pytest.mark.parametrize("case", NOTHING_TO_SEARCH)
def test_identify_fails_without_searchable_spectra(case, work, refused):
    content, reason = NOTHING_TO_SEARCH[case]
    (work / "nopeaks.mgf").write_text(content)
    message = refused("nopeaks.mgf")
    assert str(work / "nopeaks.mgf") in message
    assert reason in message
    assert not (work / "out").exists(), "a failed run leaves no new project"


def test_invalid_spectrum_is_skipped_unless_strict(work, refused, capsys):
    (work / "absurd.mgf").write_text(SPECTRUM + SPECTRUM.replace("582.319", "1e308"))
    arguments = ["identify", str(work / "absurd.mgf"), "--database", str(work / "good.fasta"), "--out", str(work / "skipping")]
    assert main([*arguments, "--strict"]) == 2
    assert "line 26: the precursor m/z is larger than 100,000" in capsys.readouterr().err
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert "1 of 2 MS2 spectra left out; the first: line 26: the precursor m/z is larger than 100,000" in captured.err
    assert "1 of 1 spectrum searched" in captured.out


DATABASES = {
    "empty": (b"", "is empty"),
    "garbage": (GARBAGE, "binary data"),
    "spectra": (SPECTRUM.encode(), "is a file of spectra (MGF); expected a FASTA file of proteins"),
    "decoys only": (PROTEINS.replace(">", ">DECOY_").encode(), "every protein is a decoy"),
    "some decoys": ((PROTEINS + PROTEINS.replace(">", ">DECOY_")).encode(), "2 proteins have names of decoys (the first is DECOY_"),
    "decoys of another name": (PROTEINS.replace(">", ">rev_").encode(), "every accession begins with 'rev_'"),
    "no peptide": (b">A\nMK\n>B\nGGG\n", "no protein gives a peptide within the limits"),
}


@pytest.mark.parametrize("case", DATABASES)
def test_unusable_databases_are_rejected(case, work, refused):
    content, reason = DATABASES[case]
    (work / "a.fasta").write_bytes(content)
    message = refused(database="a.fasta")
    assert str(work / "a.fasta") in message
    assert reason in message


def test_identify_rejects_decoy_prefix_absent_from_database(refused):
    message = refused("good.mgf", "good.fasta", "--set", "decoys=existing", "--set", "decoy_prefix=rev_")
    assert "no accession begins with the decoy prefix 'rev_'" in message
    assert "decoys=reverse" in message


def test_missing_folder_and_repeated_files_are_rejected(work, refused, capsys):
    (work / "folder.mzML").mkdir()
    assert "nowhere.mgf: does not exist" in refused(spectra="nowhere.mgf")
    assert "nowhere.fasta: does not exist" in refused(database="nowhere.fasta")
    assert "folder.mzML: is a folder" in refused(spectra="folder.mzML")
    assert "is a folder" in refused(database="folder.mzML")
    twice = [str(work / "good.mgf"), str(work / "." / "folder.mzML" / ".." / "good.mgf")]
    assert main(["identify", *twice, "--database", str(work / "good.fasta"), "--out", str(work / "out")]) == 2
    assert "is given twice" in capsys.readouterr().err
    assert not (work / "out").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="file names are Unicode on other systems")
@pytest.mark.parametrize("command", ["identify", "align", "export"])
def test_project_name_that_is_not_utf8_is_rejected_at_start(command, work, capsysbinary):
    folder, database = str(work / os.fsdecode(b"p\xff")), str(work / "good.fasta")
    arguments = {
        "identify": [str(work / "good.mgf"), "--database", database, "--out", folder],
        "align": [database, database, "--out", str(work / "hits.tsv"), "--project", folder],
        "export": [folder, "--format", "tsv", "--out", str(work / "hits.tsv")],
    }
    assert main([command, *arguments[command]]) == 2
    captured = capsysbinary.readouterr().err
    assert b"the path is not valid UTF-8" in captured.splitlines()[-1]
    assert b"Traceback" not in captured
    assert sorted(path.name for path in work.iterdir()) == ["good.fasta", "good.mgf"]


@pytest.mark.skipif(sys.platform != "linux", reason="file names are Unicode on other systems")
def test_file_name_that_is_not_utf8_is_rejected_at_start(work, capsysbinary):
    name = os.fsdecode(b"n\xff.mgf")
    shutil.copy(work / "good.mgf", work / name)
    assert main(["identify", str(work / name), "--database", str(work / "good.fasta"), "--out", str(work / "out")]) == 2
    captured = capsysbinary.readouterr().err
    assert b"not valid UTF-8" in captured
    assert captured.count(b"\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="file names have other limits on other systems")
def test_spectrum_file_with_a_name_of_255_bytes_is_searched(work: Path) -> None:
    name = work / ("x" * 251 + ".mgf")
    shutil.copy(work / "good.mgf", name)
    assert main(["identify", str(name), "--database", str(work / "good.fasta"), "--out", str(work / "out"), "--quiet"]) == 0


@pytest.mark.parametrize("command", ["align", "runs", "export"])
@pytest.mark.parametrize("path", ["x" * 300, "x/" * 2500])
def test_too_long_path_is_reported_in_one_short_sentence(command: str, path: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = str(work / "good.fasta")
    arguments = {"align": [database, path, "--out", "hits.tsv"], "runs": [path], "export": [path, "--format", "tsv", "--out", "x"]}
    assert main([command, *arguments[command]]) == 2
    captured = capsys.readouterr().err
    assert "the name is too long. Choose a shorter one." in captured or "does not exist" in captured
    assert captured.count("\n") == 1 and len(captured) < 500


WRONG_USE = {
    "unknown preset": (["--preset", "phosho"], ("no preset 'phosho'", "phospho, tmt")),
    "unknown parameter": (["--set", "missed_cleavage=1"], ("'missed_cleavage'", "did you mean missed_cleavages?")),
    "out of bounds": (["--set", "missed_cleavages=99"], ("missed_cleavages = '99'", "10")),
    "bad tolerance": (["--set", "fragment_tolerance=20"], ("fragment_tolerance = '20'", "20 ppm or 0.02 Da")),
    "unknown modification": (["--set", "variable_modifications=Oxidatoin (M)"], ("variable_modifications", "Oxidatoin", "Oxidation")),
    "unknown enzyme": (["--set", "enzyme=Trypsine"], ("enzyme = 'Trypsine'", "Trypsin")),
    "no setting": (["--set", "missed_cleavages"], ("'missed_cleavages' is not a setting", "field=value")),
    "unknown device": (["--device", "tpu"], ("device = 'tpu'", "cuda:N")),
    "no threads": (["--threads", "0"], ("'0'", "1 to 1024")),
    "too many threads": (["--threads", "99999"], ("'99999'", "1 to 1024")),
    "threads as a word": (["--threads", "two"], ("'two'", "1 to 1024")),
    "threads in another script": (["--threads", "²"], ("'²'", "1 to 1024")),
    "quiet and json": (["--json"], ("--json", "--quiet")),
    "unknown option": (["--sett", "a=b", "--colour"], ("--colour",)),
}


@pytest.mark.parametrize("case", WRONG_USE)
def test_wrong_options_are_rejected_before_the_run(case, refused, work):
    options, parts = WRONG_USE[case]
    message = refused("good.mgf", "good.fasta", *options)
    for part in parts:
        assert part in message
    assert not (work / "out").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[parameters", "is not a preset"),
        (b"\xff\xfe", "is not a preset"),
        (b"nothing = 3", "no parameter 'nothing'"),
        (b"missed_cleavages = 'x'", "missed_cleavages = 'x'"),
        (b"fixed_modifications = 3", "fixed_modifications = 3"),
    ],
)
def test_error_names_the_invalid_preset_file(content, reason, work, refused):
    (work / "mine.toml").write_bytes(content)
    message = refused("good.mgf", "good.fasta", "--preset", str(work / "mine.toml"))
    assert str(work / "mine.toml") in message
    assert reason in message


@pytest.mark.parametrize(
    "arguments",
    [
        ["identif"],
        ["identify"],
        ["identify", "a.mgf", "--out", "b"],
        ["export", "x", "--format", "xls", "--out", "y"],
        ["export", "/nowhere/at/all", "--format", "tsv", "--out", "y"],
        ["parameters", "clusterings"],
        ["parameters", "identify", "--preset", "nosuch"],
    ],
)
def test_unknown_commands_are_rejected(arguments, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("proteoscope: ")
    assert captured.err.count("\n") == 1


def test_folder_that_is_not_a_project_is_not_changed(work, refused):
    (work / "thesis").mkdir()
    (work / "thesis" / "chapter.txt").write_text("Once upon a time")
    assert "is a folder with other things in it (chapter.txt)" in refused(out="thesis")
    assert "is a file, not a folder" in refused(out="good.fasta")
    assert [path.name for path in (work / "thesis").iterdir()] == ["chapter.txt"]
    assert (work / "good.fasta").read_text() == PROTEINS


def test_failed_run_leaves_earlier_runs_unchanged(work, refused):
    assert main(["identify", str(work / "good.mgf"), "--database", str(work / "good.fasta"), "--out", str(work / "out"), "--quiet"]) == 0
    before = {path: path.read_bytes() for path in (work / "out").rglob("*") if path.is_file() and path.name.endswith((".tsv", ".json"))}
    (work / "bad.mgf").write_bytes(GARBAGE)
    refused(spectra="bad.mgf")
    refused(database="bad.mgf")
    assert {path: path.read_bytes() for path in before} == before
    project = Project.open(work / "out")
    assert [run.status for run in project.runs()] == ["done", "failed", "failed"]
    assert project.verify() == []


def mounted(kind, options, folder):
    """True if a file system could be mounted on `folder`; only root can."""
    return (
        os.name == "posix"
        and subprocess.run(["mount", "-t", kind, "-o", f"{options},mode=0700", "none", folder], capture_output=True).returncode == 0
    )


def identify_in_process(work, **options):
    """Identify in a separate process, which releases the disk at its end, with a database whose index takes megabytes.

    A limit on the size of files would also truncate compiled modules, which Python would then load as if they were complete.
    """
    residues = "".join("ACDEFGHILMNPQSTVWYKR"[i] for i in np.random.default_rng(2).integers(0, 20, 400_000))
    (work / "large.fasta").write_text("".join(f">P{i}\n{residues[i : i + 400]}\n" for i in range(0, len(residues), 400)))
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "proteoscope.engine.command_line",
            "identify",
            "good.mgf",
            "--database",
            "large.fasta",
            "--out",
            "disk/out",
            "--quiet",
        ],
        cwd=work,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        **options,
    )


@pytest.mark.parametrize("size", ["16k", pytest.param("64k", marks=pytest.mark.long), "120k"])
def test_full_disk_is_reported_in_one_line(size, work):
    disk = work / "disk"
    disk.mkdir()
    if not mounted("tmpfs", f"size={size}", disk):
        pytest.skip("a small disk can only be mounted by root")
    try:
        done = identify_in_process(work)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "the disk is full" in done.stderr
        assert [path for path in disk.rglob("*") if path.name.endswith(".partial")] == []
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.skipif(os.name != "posix", reason="this system sets limits of files differently")
def test_file_size_limit_is_reported_in_one_line(work, own_cache):
    import resource

    done = identify_in_process(work, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "full" in done.stderr or "limit" in done.stderr


def test_unwritable_folder_is_reported_in_one_line(work, capsys):
    disk = work / "disk"
    disk.mkdir()
    if mounted("tmpfs", "ro", disk):
        unlock = ["umount", disk]
    elif os.name == "posix" and os.geteuid() != 0:
        disk.chmod(0o555)
        unlock = ["chmod", "755", disk]
    else:
        pytest.skip("root may write everywhere, and no read-only disk could be mounted")
    try:
        code = main(["identify", str(work / "good.mgf"), "--database", str(work / "good.fasta"), "--out", str(disk / "project"), "--quiet"])
        captured = capsys.readouterr().err
        assert (code, captured.count("\n")) == (2, 1)
        assert "read-only" in captured or "may not write" in captured
    finally:
        subprocess.run(unlock, check=True)


def test_full_standard_output_is_reported_in_one_line():
    if not Path("/dev/full").exists():
        pytest.skip(f"there is no device that is always full ({os.strerror(errno.ENOENT)})")
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            [sys.executable, "-m", "proteoscope.engine.command_line", "presets"],
            cwd=REPOSITORY,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert os.strerror(errno.ENOSPC) in done.stderr


UNWRITABLE_CACHES = {
    "a file in the way": lambda folder, run: folder.write_text("in the way"),
    "read-only": lambda folder, run: (folder.mkdir(), run("tmpfs", "ro", folder)),
    "full": lambda folder, run: (folder.mkdir(), run("tmpfs", "size=16k", folder)),
}


@pytest.mark.parametrize("case", UNWRITABLE_CACHES)
@pytest.mark.parametrize("command", ["identify", "align"])
def test_unwritable_cache_does_not_stop_a_search(command, case, work, capsys, monkeypatch):
    folder = work / "cache"
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(folder))
    needs_mount = case != "a file in the way"
    arguments = {
        "identify": ["identify", str(work / "good.mgf"), "--database", str(work / "good.fasta"), "--out", str(work / "out")],
        "align": ["align", str(work / "good.fasta"), str(work / "good.fasta"), "--out", str(work / "hits.tsv")],
    }[command]
    is_mounted = []
    UNWRITABLE_CACHES[case](folder, lambda *mount: is_mounted.append(mounted(*mount)))
    if needs_mount and not is_mounted[0]:
        pytest.skip("such a disk can only be mounted by root")
    try:
        assert main(arguments) == 0
    finally:
        if needs_mount:
            subprocess.run(["umount", folder], check=True)
    warnings = [line for line in capsys.readouterr().err.splitlines() if "could not be stored" in line or "could not be cached" in line]
    assert len(warnings) == 1 and str(folder) in warnings[0] and "requested and" not in warnings[0]
    if command == "identify":
        left = [path.name for path in (work / "out" / "results" / "identify-0001").iterdir()]
        assert all(name.endswith((".parquet", ".json")) for name in left), "the temporary index of this run is removed"


@pytest.mark.skipif(os.name != "posix", reason="this system has other file modes")
def test_search_warns_of_a_cache_folder_that_others_can_change(work, capsys, monkeypatch):
    folder = work / "shared cache"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / "private"))
    assert main(["align", str(work / "good.fasta"), str(work / "good.fasta"), "--out", str(work / "hits.tsv")]) == 0
    assert f"is not used: other users can change files in {folder}" in capsys.readouterr().err
    assert list(folder.iterdir()) == []
