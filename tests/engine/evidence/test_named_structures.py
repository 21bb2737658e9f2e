"""The export of structures reads the files that the user names, and no path that a project records."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import gemmi
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.arrays import ProteinRow
from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError
from proteoscope.engine.evidence import export
from proteoscope.engine.evidence.export import NamedStructures, recorded_folders
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.structures.reading import StructureFile
from proteoscope.engine.views import evidence
from proteoscope.engine.views.finished_run import open_run
from tests.engine.evidence.evidence_projects import project_with_evidence, write_albumin

RUN = "evidence-0002"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project_with_evidence(tmp_path_factory.mktemp("evidence") / "made")


@pytest.fixture
def albumin(original: Project) -> Path:
    return original.folder.parent / "1ao6_A.pdb"


@pytest.fixture
def untrusted(original: Project, tmp_path: Path) -> Callable[..., Path]:
    def forge(*paths: str) -> Path:
        """Return a copy of the project whose table of chains names these files; the last path fills all further rows."""
        folder = tmp_path / "theirs"
        shutil.copytree(original.folder, folder)
        table = folder / "results" / RUN / "chains.parquet"
        chains = pq.read_table(table)
        named = [paths[min(row, len(paths) - 1)] for row in range(len(chains))]
        pq.write_table(chains.set_column(chains.column_names.index("path"), "path", pa.array(named)), table)
        content = table.read_bytes()
        with closing(sqlite3.connect(folder / "project.sqlite")) as connection:
            sha256 = hashlib.sha256(content).hexdigest()
            path = f"results/{RUN}/chains.parquet"
            connection.execute("UPDATE results SET bytes = ?, sha256 = ? WHERE path = ?", (len(content), sha256, path))
            # The record of inputs can be forged too.
            connection.execute("UPDATE inputs SET path = ? WHERE kind = 'structures'", (paths[0],))
            connection.commit()
        return folder

    return forge


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a list to which the export adds the path of each structure that it reads."""
    paths = list[Path]()
    original = export.read_structure

    def recording(path: Path) -> StructureFile:
        paths.append(path)
        return original(path)

    monkeypatch.setattr(export, "read_structure", recording)
    return paths


def export_structures(project: Path, out: Path, *structures: Path) -> int:
    named = ["--structures", *map(str, structures)] if structures else []
    return main(["export", str(project), "--run", RUN, "--format", "structures", "--out", str(out), *named])


def written(out: Path) -> set[str]:
    return {path.parent.name.removeprefix("protein_") for path in out.rglob("*.cif")}


def test_structure_export_requires_structure_files(
    original: Project, albumin: Path, tmp_path: Path, read: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert export_structures(original.folder, tmp_path / "out") == 2
    output, errors = capsys.readouterr()
    assert output == "" and errors == (
        f"proteoscope: the structures of {RUN} are files outside the project, which are read only if you name them:"
        f" --structures {albumin.parent}\n"
    )
    assert read == [] and not (tmp_path / "out").exists()
    assert export_structures(original.folder, tmp_path / "out", albumin) == 0
    assert read == [albumin] * 2 and written(tmp_path / "out") == {"RELATIVE", "PARTIAL"}


def test_structure_export_finds_moved_files_by_name(original: Project, albumin: Path, tmp_path: Path, read: list[Path]) -> None:
    (tmp_path / "moved" / "deep").mkdir(parents=True)
    moved = shutil.copy(albumin, tmp_path / "moved" / "deep")
    assert export_structures(original.folder, tmp_path / "out", tmp_path / "moved") == 0
    assert read == [Path(moved)] * 2 and written(tmp_path / "out") == {"RELATIVE", "PARTIAL"}


@pytest.mark.parametrize("name", ["secret/1ao6_A.pdb", "secret/private.pdb"])
def test_structure_export_opens_no_path_recorded_in_the_project(
    untrusted: Callable[..., Path], albumin: Path, tmp_path: Path, read: list[Path], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    secret = tmp_path / name
    secret.parent.mkdir()
    shutil.copy(albumin, secret)
    project = untrusted(str(secret))
    assert export_structures(project, tmp_path / "out") == 2 and read == []
    code = export_structures(project, tmp_path / "out", albumin)
    # A named file of the same name is read; the recorded path is not.
    assert (code, read) == ((0, [albumin] * 2) if secret.name == albumin.name else (2, []))
    if code:
        assert f"{secret}: is not among the named files" in capsys.readouterr().err and not (tmp_path / "out").exists()


@pytest.mark.parametrize("path", [r"\\host\share\x.pdb", "//host/share/x.pdb", "/dev/zero", "http://host/x.pdb", "x" * 5000, ".", "a:b"])
def test_structure_export_opens_no_device_or_network_path(
    untrusted: Callable[..., Path], albumin: Path, tmp_path: Path, read: list[Path], capsys: pytest.CaptureFixture[str], path: str
) -> None:
    project = untrusted(path)
    for structures in ((), (albumin,)):
        assert export_structures(project, tmp_path / "out", *structures) == 2
        assert "Traceback" not in capsys.readouterr().err
    assert read == [] and not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["other bytes", "pipe", "device", "gone", "same bytes"])
def test_shown_structure_opens_only_file_with_recorded_digest(
    untrusted: Callable[..., Path], albumin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    secret = tmp_path / "secret" / albumin.name
    secret.parent.mkdir()
    if kind == "other bytes":
        secret.write_bytes(b"REMARK private\n" + albumin.read_bytes())
    elif kind == "pipe":
        os.mkfifo(secret)
    elif kind == "device":
        secret = Path("/dev/zero")
    elif kind == "same bytes":
        shutil.copy(albumin, secret)
    opened: list[Path] = []
    reader = evidence.read_structure

    def note(path: Path) -> StructureFile:
        opened.append(path)
        return reader(path)

    monkeypatch.setattr(evidence, "read_structure", note)
    with open_run(untrusted(str(secret)), RUN) as run:
        protein = evidence.protein_evidence(run.tables.source("proteins"), ProteinRow(0))
        fold = evidence.read_shown_structure(run, protein, protein.chains[0])
    assert (opened, fold.trace is None) == (([secret], False) if kind == "same bytes" else ([], True))
    assert kind == "same bytes" or str(secret) in fold.note


def test_structure_export_counts_and_names_omitted_proteins(
    untrusted: Callable[..., Path], albumin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = untrusted(str(albumin), str(tmp_path / "gone.pdb"))
    assert export_structures(project, tmp_path / "out", albumin) == 0
    errors = capsys.readouterr().err
    (left_out,) = {"RELATIVE", "PARTIAL"} - written(tmp_path / "out")
    assert f"{left_out} is left out: {tmp_path / 'gone.pdb'}: is not among the named files" in errors
    assert f"1 of 2 proteins left out of the structures ({left_out})" in errors


def test_structure_export_omits_different_file_of_same_name(
    original: Project, albumin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    atoms = gemmi.read_structure(str(albumin))
    for residue in atoms[0][0]:
        residue.name = "GLY"
    (tmp_path / albumin.name).write_text(atoms.make_pdb_string())
    assert export_structures(original.folder, tmp_path / "out", tmp_path / albumin.name) == 2
    errors = capsys.readouterr().err
    assert "no longer holds 1ao6_A as the run read it. Restore the original file, or run evidence again." in errors
    assert "2 of 2 proteins left out" in errors and not (tmp_path / "out").exists()


def test_structure_files_of_equal_name_need_the_recorded_path(albumin: Path, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_albumin(tmp_path / folder)
    named = NamedStructures([tmp_path], Progress())
    assert named.find(str(tmp_path / "b" / albumin.name)) == tmp_path / "b" / albumin.name
    with pytest.raises(InputError, match="2 of the named files have this name"):
        named.find(f"/elsewhere/{albumin.name}")
    single = NamedStructures([tmp_path / "a"], Progress())
    assert single.find(rf"C:\data\{albumin.name}") == tmp_path / "a" / albumin.name


def test_structure_export_rejects_missing_file_or_empty_folder(
    original: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    for path, reason in ((tmp_path / "missing.pdb", "there is no such file"), (tmp_path / "empty", "contains no structure files")):
        assert export_structures(original.folder, tmp_path / "out", path) == 2
        errors = capsys.readouterr().err
        assert reason in errors and errors.count("\n") == 1


def test_structure_export_rejects_a_structure_database(
    original: Project, albumin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["structure-database", "build", str(albumin), "--out", str(tmp_path / "database")]) == 0
    capsys.readouterr()
    assert export_structures(original.folder, tmp_path / "out", tmp_path / "database") == 2
    assert "is a structure database, which holds no atoms to export. Give the source files of the run." in capsys.readouterr().err


def test_tsv_export_rejects_structures_option(original: Project, albumin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["export", str(original.folder), "--run", RUN, "--format", "tsv", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--structures", str(albumin)]) == 2
    assert "reads no structures; leave --structures out" in capsys.readouterr().err


def test_recorded_structure_folders_are_listed_once(original: Project) -> None:
    assert recorded_folders(original, RUN) == [str(original.folder.parent)]
