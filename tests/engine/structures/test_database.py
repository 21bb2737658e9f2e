"""Structure databases: building, adding and removing; interrupted builds; and untrusted folders."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.structures import building, reading_processes
from proteoscope.engine.structures.building import add_to_database, build_database, remove_from_database, structure_files
from proteoscope.engine.structures.chains import RESIDUE_COLUMNS
from proteoscope.engine.structures.database import open_database
from proteoscope.engine.structures.reading import read_structure
from tests.engine.structures.examples import as_mmcif, as_pdb, atoms_of, helix

LENGTHS = {"c": 30, "a": 8, "b": 12}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "structures"
    folder.mkdir()
    for name, n in LENGTHS.items():
        (folder / f"{name}.pdb").write_bytes(as_pdb(atoms_of(helix(n))))
    (folder / "broken.cif").write_bytes(b"data_x\nloop_\n_atom_site.id\n")
    (folder / "notes.txt").write_text("not a structure")
    return folder


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Read files in this process, which is faster, and list them."""
    read: list[Path] = []

    def read_in_process(paths, processes, progress, *, minimum_plddt=0.0, models="first"):
        for number, path in enumerate(paths):
            progress.check()
            read.append(path)
            try:
                structures = read_structure(path, minimum_plddt=minimum_plddt, models=models)
                yield number, structures if len(structures.chains) else str(structures.empty_error())
            except InputError as error:
                yield number, str(error)

    monkeypatch.setattr(building, "read_structures", read_in_process)
    return read


def same(database, folder: Path) -> None:
    """Check that the database contains what its files contain."""
    for i, name in enumerate(database.chains.names):
        expected = read_structure(folder / f"{name}.pdb").chains
        for column in RESIDUE_COLUMNS:
            assert np.array_equal(getattr(database.chains, column)[database.chains.rows(i)], getattr(expected, column), equal_nan=True)


def test_structure_database_equals_files_and_skips_corrupt_file(folder: Path, tmp_path: Path) -> None:
    database = build_database([folder], tmp_path / "db", processes=2)
    assert database.chains.names == ("a", "b", "c")  # Sorted by length.
    same(database, folder)
    assert [(Path(path).name, chain) for path, chain, _ in database.skipped] == [("broken.cif", "")]
    assert "broken.cif\t\tholds no coordinates" in (tmp_path / "db" / "skipped.tsv").read_text()
    same(open_database(tmp_path / "db"), folder)


def test_structure_reader_loses_only_file_of_killed_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [folder / "a.pdb", folder / "b.pdb", folder / "c.pdb"]
    serve = reading_processes._serve
    assert serve is not None
    monkeypatch.setattr(reading_processes, "_serve", read_until_b)
    results = dict(reading_processes.read_structures(paths, 1, Progress()))
    assert [isinstance(results[i], str) for i in range(3)] == [False, True, False]
    assert "crashed the process" in str(results[1])


def read_until_b(connection, minimum_plddt, models) -> None:
    while True:
        path = Path(connection.recv())
        if path.name == "b.pdb":
            os._exit(9)
        connection.send(read_structure(path))


def test_structure_database_reads_unchanged_files_once(folder: Path, tmp_path: Path, in_process: list[Path]) -> None:
    build_database([folder], tmp_path / "db")
    assert len(in_process) == 4
    (folder / "d.pdb").write_bytes(as_pdb(atoms_of(helix(10))))
    (folder / "a.pdb").unlink()
    database = build_database([folder], tmp_path / "db")
    assert [path.name for path in in_process[4:]] == ["d.pdb"]
    assert database.chains.names == ("d", "b", "c")
    same(database, folder)


def test_structure_database_adds_and_removes_chains(folder: Path, tmp_path: Path, in_process: list[Path]) -> None:
    build_database([folder / "a.pdb", folder / "b.pdb"], tmp_path / "db")
    first = open_database(tmp_path / "db")
    database = add_to_database([folder / "c.pdb"], tmp_path / "db")
    assert database.chains.names == ("a", "b", "c")
    assert database.identity != first.identity
    database = remove_from_database(["b"], tmp_path / "db")
    assert database.chains.names == ("a", "c")
    same(database, folder)
    with pytest.raises(ParameterError, match="no chain 'b'"):
        remove_from_database(["b"], tmp_path / "db")
    assert build_database([folder], tmp_path / "db").chains.names == ("a", "b", "c")
    assert [path.name for path in in_process if path.name != "broken.cif"] == ["a.pdb", "b.pdb", "c.pdb", "b.pdb"]


def test_structure_database_accepts_a_removed_chain_again(tmp_path: Path, in_process: list[Path]) -> None:
    path = tmp_path / "two.cif"
    path.write_bytes(as_mmcif(atoms_of(helix(8)) + atoms_of(helix(9) + 20.0, "B")))
    build_database([path], tmp_path / "db")
    assert remove_from_database(["two:A"], tmp_path / "db").chains.names == ("two:B",)
    assert build_database([path], tmp_path / "db").chains.names == ("two:A", "two:B")
    assert remove_from_database(["two:B"], tmp_path / "db").chains.names == ("two:A",)


def test_structure_database_build_resumes_after_interruption(
    folder: Path, tmp_path: Path, in_process: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "_FILES_OF_A_PART", 1)
    progress = Progress()
    handler = Progress(lambda event: progress.cancel() if event.done >= 2 else None, interval=0.0)
    monkeypatch.setattr(handler, "check", progress.check)
    with pytest.raises(Cancelled):
        build_database([folder], tmp_path / "db", progress=handler)
    with pytest.raises(InputError, match="not a valid structure database"):
        open_database(tmp_path / "db")
    before = len(in_process)
    assert 0 < before < 4
    database = build_database([folder], tmp_path / "db")
    assert len(in_process) < before + 4
    assert database.chains.names == ("a", "b", "c")
    same(database, folder)
    assert not (tmp_path / "db" / "parts").exists()


def test_structure_list_files_name_paths_relative_to_the_list(folder: Path, tmp_path: Path) -> None:
    names = folder / "list.txt"
    names.write_text("# mine\nc.pdb\n\na.pdb # a comment\n")
    assert structure_files([names]) == [folder / "c.pdb", folder / "a.pdb"]
    assert [path.name for path in structure_files([folder])] == ["a.pdb", "b.pdb", "broken.cif", "c.pdb"]
    with pytest.raises(InputError, match="neither a structure nor a list"):
        structure_files([folder / "notes.txt"])


def test_structure_database_rejects_folder_with_other_files(folder: Path, in_process: list[Path]) -> None:
    with pytest.raises(InputError, match="other things"):
        build_database([folder], folder)


CORRUPT = {
    "residue": lambda column: np.full_like(column, 99),
    "secondary": lambda column: np.full_like(column, 7),
    "position": lambda column: np.full_like(column, np.nan),
    "offsets": lambda column: column[::-1].copy(),
    "source": lambda column: np.full_like(column, 1000),
    "names_offsets": lambda column: column + 1,
    "label_number": lambda column: column[:-1].copy(),
    "author_number": lambda column: column.astype(np.int64),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_structure_database_reports_corrupt_column(folder: Path, tmp_path: Path, in_process: list[Path], name: str) -> None:
    database = build_database([folder], tmp_path / "db")
    path = tmp_path / "db" / database.identity / f"{name}.npy"
    column = np.load(path)
    del database
    np.save(path, CORRUPT[name](column))
    with pytest.raises(InputError, match="not a valid structure database"):
        open_database(tmp_path / "db")
    # After another build it is complete.
    assert build_database([folder], tmp_path / "db").chains.names == ("a", "b", "c")


@pytest.mark.skipif(os.name != "posix", reason="links differ there")
def test_structure_database_rejects_links_and_paths_outside(folder: Path, tmp_path: Path, in_process: list[Path]) -> None:
    database = build_database([folder], tmp_path / "db")
    columns = tmp_path / "db" / database.identity
    manifest = tmp_path / "db" / "database.json"
    content = json.loads(manifest.read_text())
    for name in ("../elsewhere", "/etc", "columns-..", ""):
        manifest.write_text(json.dumps({**content, "columns": name}))
        with pytest.raises(InputError, match="names no columns"):
            open_database(tmp_path / "db")
    manifest.write_text(json.dumps(content))
    outside = tmp_path / "outside.npy"
    (columns / "residue.npy").rename(outside)
    (columns / "residue.npy").symlink_to(outside)
    with pytest.raises(InputError, match="is a link"):
        open_database(tmp_path / "db")


def test_structure_database_gives_no_path_of_a_changed_file(folder: Path, tmp_path: Path, in_process: list[Path]) -> None:
    database = build_database([folder / "a.pdb"], tmp_path / "db")
    path = folder / "a.pdb"
    assert database.file_of(0) == path
    content, modified = path.read_bytes(), path.stat().st_mtime_ns
    path.write_bytes(content[:-1] + b" ")
    os.utime(path, ns=(modified, modified + 1))
    other = database.file_of(0)
    assert other.name == path.name and not other.exists()
    with pytest.raises(InputError):
        read_structure(other)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", ["database.json", "position.npy", "numbers.json"])
def test_structure_database_open_does_not_block_on_a_pipe(folder: Path, tmp_path: Path, in_process: list[Path], name: str) -> None:
    build_database([folder / "a.pdb"], tmp_path / "db")
    (path,) = (tmp_path / "db").rglob(name)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match="this is a pipe or a device, not a file"):
        open_database(tmp_path / "db")
