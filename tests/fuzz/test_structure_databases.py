"""Untrusted structure databases, and builds that are killed, run simultaneously, or meet a full disk."""

import os
import subprocess

import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError
from proteoscope.engine.structure_search.structures import sources_of
from proteoscope.engine.structures.building import structure_files
from proteoscope.engine.structures.database import open_database
from tests.engine.structures.examples import as_pdb, atoms_of, helix
from tests.fuzz import full_disk, structure_databases
from tests.fuzz.forks import run_forked


@pytest.mark.skipif(os.name != "posix", reason="links differ there")
def test_changed_structure_database_is_used_or_rejected(tmp_path):
    assert structure_databases.change(200, 5, tmp_path) > 150


@pytest.mark.skipif(os.name != "posix", reason="processes are killed differently there")
def test_killed_build_leaves_a_complete_structure_database(tmp_path):
    structure_databases.kill(3, 2, tmp_path, n_files=40)


def test_concurrent_structure_database_builds_give_no_traceback(tmp_path):
    assert not any("Traceback" in text for text in structure_databases.build_simultaneously(tmp_path, n_files=20))


def test_structure_database_build_reports_full_disk_in_one_line(tmp_path):
    if not full_disk.can_mount():
        pytest.skip("a small disk can only be mounted by root")
    files, place = structure_databases.structures(tmp_path / "files", 40), tmp_path / "disk"
    environment = structure_databases.environment(tmp_path)

    def build() -> subprocess.CompletedProcess[str]:
        return run_forked(structure_databases.arguments(files, place / "database"), environment)

    with full_disk.disk(place, 400_000):
        assert build().returncode == 0
        before = structure_databases.content(open_database(place / "database"))
        used = sum(-(-file.stat().st_size // 4096) * 4096 for file in place.rglob("*") if file.is_file())
        (place / "filler").write_bytes(bytes(400_000 - used - 40_000))
        (files / "s7.pdb").unlink()
        done = build()
        last = done.stderr.splitlines()[-1]
        assert done.returncode == 2 and "the disk is full" in last and "Traceback" not in done.stderr, done.stderr
        assert structure_databases.content(open_database(place / "database")) == before
        (place / "filler").unlink()
        assert build().returncode == 0
        assert len(open_database(place / "database").chains) == 39


@pytest.mark.parametrize(
    "content",
    [
        b"/dev/zero\n" * 3,
        b"list.txt\n",
        b"../../../../../etc/passwd\n",
        b"\xff\xfe\x00" * 50,
        b"no such file\n" * 20_000,
        b"~/x;$(touch owned)\n",
        b"x" * 100_000 + b"\n",
        b".\n" * 1000,
    ],
)
def test_untrusted_list_of_structures_is_read_or_rejected(tmp_path, content, capsys):
    (tmp_path / "list.txt").write_bytes(content)
    for read in (structure_files, sources_of):
        try:
            paths = read([tmp_path / "list.txt"])
        except InputError as error:
            assert "\n" not in str(error) and len(str(error)) < 2000
        else:
            assert len(paths) <= 20_000
    out = str(tmp_path / "hits.tsv")
    query = tmp_path / "query.pdb"
    query.write_bytes(as_pdb(atoms_of(helix(12))))
    for arguments in (
        ["structures", str(query), "--database", str(tmp_path / "list.txt"), "--out", out, "--quiet", "--device", "cpu"],
        ["structure-database", "build", str(tmp_path / "list.txt"), "--out", str(tmp_path / "database")],
    ):
        assert main(arguments) in (0, 2)
        errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("proteoscope:")]
        assert len(errors) <= 1
    assert not (tmp_path / "owned").exists()
