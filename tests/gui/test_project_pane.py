"""Tests that the list of runs updates only what has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from proteoscope.engine.errors import InputError
from proteoscope.engine.project import Project
from proteoscope.gui.project_pane import ProjectPane
from proteoscope.gui.theme import Theme


def finish(project: Project, name: str) -> None:
    with project.run("identify", {}, name=name):
        pass


def texts(pane: ProjectPane) -> list[str]:
    return [str(pane.runs.item(row).data(Qt.ItemDataRole.AccessibleTextRole)).split(", ")[1] for row in range(pane.runs.count())]


def test_project_pane_refresh_updates_only_changed_runs(
    theme: Theme, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, pane = Project.create_or_open(tmp_path / "p"), ProjectPane()
    qtbot.addWidget(pane)
    for name in "abcd":
        finish(project, name)
    pane.show_project(project)
    filled: list[str] = []
    fill = pane._fill
    monkeypatch.setattr(pane, "_fill", lambda row, record, is_resumable: (filled.append(record.id), fill(row, record, is_resumable)))
    pane.select("b")
    pane.refresh()
    assert texts(pane) == ["d", "c", "b", "a"] and filled == []
    finish(project, "e")
    project.delete_run("c")
    pane.refresh()
    assert texts(pane) == ["e", "d", "b", "a"] and filled == ["e"] and pane.state.text() == "4 runs"
    assert [run.id for run in pane.selected_runs] == ["b"], "the selection remains"
    project.restore_run("c")
    pane.refresh()
    assert texts(pane) == ["e", "d", "c", "b", "a"] and filled == ["e", "c"]
    with pytest.raises(InputError), project.run("identify", {}, name="f"):
        pane.refresh()
        assert pane.runs.item(0).data(Qt.ItemDataRole.UserRole).status == "running"
        raise InputError(tmp_path, "is a test")
    pane.refresh()
    assert filled[2:] == ["f", "f"] and "failed" in pane.runs.item(0).toolTip()


def test_project_pane_lists_a_replaced_run_as_the_newest(theme: Theme, tmp_path: Path, qtbot: QtBot) -> None:
    project, pane = Project.create_or_open(tmp_path / "p"), ProjectPane()
    qtbot.addWidget(pane)
    for name in "abc":
        finish(project, name)
    pane.show_project(project)
    with project.run("identify", {"fdr": 0.05}, name="a", overwrite=True):
        pass
    pane.refresh()
    assert texts(pane) == [run.id for run in reversed(project.runs())] and len(set(texts(pane))) == 3
    changed = next(item for item in map(pane.runs.item, range(3)) if item.data(Qt.ItemDataRole.UserRole).id == "a")
    assert changed.data(Qt.ItemDataRole.UserRole).parameters == {"fdr": 0.05}
