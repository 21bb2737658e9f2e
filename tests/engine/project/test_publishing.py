"""The exports of a project always belong to one registered run, also after a kill at any moment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proteoscope.engine.project import Project
from proteoscope.engine.project import publishing as module
from proteoscope.engine.project.publishing import has_unpublished


class Killed(BaseException):
    """Raised at the point where the process would be killed."""


def do_run(project: Project, text: str, names: tuple[str, ...] = ("psms.tsv", "peptides.tsv")) -> str:
    with project.run("identify", {}) as run:
        (run.folder / "exports").mkdir()
        for name in names:
            (run.folder / "exports" / name).write_text(text)
        run.write_json("run", {"run": run.id, "exports": list(names)})
    return run.id


def shown(folder: Path) -> tuple[str, dict[str, str]]:
    """Return the run that the exports folder records, and its files."""
    record = json.loads((folder / "run.json").read_text())
    return record["run"], {path.name: path.read_text() for path in (folder / "exports").iterdir()}


def test_exports_folder_holds_last_run_and_retains_user_files(tmp_path):
    project = Project.create_or_open(tmp_path / "p")
    do_run(project, "first", ("psms.tsv", "clusters.tsv"))
    (tmp_path / "p" / "exports" / "notes.txt").write_text("mine")
    second = do_run(project, "second")
    assert shown(tmp_path / "p") == (second, {"psms.tsv": "second", "peptides.tsv": "second", "notes.txt": "mine"})


@pytest.mark.parametrize("step", range(6))
def test_project_open_completes_exports_after_a_kill(tmp_path, monkeypatch, step):
    project = Project.create_or_open(tmp_path / "p")
    first = do_run(project, "first", ("psms.tsv", "clusters.tsv"))
    steps = iter(range(step + 2))  # The record of the run is renamed, and its lock removed, before this.

    def count(work):
        def counted(*arguments, **options):
            if next(steps, None) is None:
                raise Killed
            return work(*arguments, **options)

        return counted

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Path, "replace", count(Path.replace))
        patch.setattr(Path, "unlink", count(Path.unlink))
        patch.setattr(module, "atomic_file", count(module.atomic_file))
        patch.setattr(module.shutil, "rmtree", count(module.shutil.rmtree))
        patch.setattr(module, "sync_folder", count(module.sync_folder))
        do_run(project, "second")
        raise Killed  # Some cases have fewer steps.
    again = Project.open(tmp_path / "p")
    second = again.latest()
    assert second != first and not has_unpublished(tmp_path / "p", second)
    assert shown(tmp_path / "p") == (second, {"psms.tsv": "second", "peptides.tsv": "second"})
    assert again.verify() == []


def test_run_without_exports_does_not_change_the_exports_folder(tmp_path):
    project = Project.create_or_open(tmp_path / "p")
    first = do_run(project, "first")
    with project.run("align", {}) as run:
        run.write_json("run", {"run": run.id})
    assert shown(tmp_path / "p")[0] == first


@pytest.mark.parametrize("names", [["../../victim"], ["/etc/passwd"], [7], "victim", None])
def test_untrusted_run_record_removes_no_file_outside_exports(tmp_path, names):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    project = Project.create_or_open(tmp_path / "p")
    do_run(project, "first")
    (tmp_path / "p" / "run.json").write_text(json.dumps({"exports": names}))
    second = do_run(project, "second")
    assert victim.read_text() == "mine" and shown(tmp_path / "p")[0] == second
