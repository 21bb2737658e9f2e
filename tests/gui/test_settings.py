"""What is remembered between two starts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal

import pytest

from proteoscope.engine.files import atomic_file
from proteoscope.gui import settings as settings_module
from proteoscope.gui.settings import SearchSettings, Settings, SettingsFile, default_settings_path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "settings.json"


def test_a_first_start_has_the_defaults(path: Path) -> None:
    assert SettingsFile(path).values == Settings()
    assert not path.exists()


def test_saved_values_are_there_at_the_next_start(path: Path) -> None:
    file = SettingsFile(path)
    file.values.theme = "dark"
    file.values.searches["identify"] = SearchSettings(preset="phospho")
    file.values.remember_project(Path("/data/Größe 1"))
    file.save()
    file.flush()
    again = SettingsFile(path).values
    assert (again.theme, again.searches["identify"].preset, again.recent_projects) == ("dark", "phospho", ("/data/Größe 1",))
    assert json.loads(path.read_text(encoding="utf-8"))["version"] == 3


def test_settings_of_the_one_search_that_there_was_become_those_of_identification(path: Path) -> None:
    path.parent.mkdir()
    old = {"version": 1, "theme": "dark", "preset": "tmt", "databases": ["/d.fasta"], "spectra_folder": "/s", "database_folder": "/d"}
    path.write_text(json.dumps(old | {"preset_folder": "/p", "results_layout": "{}"}), encoding="utf-8")
    kept = SettingsFile(path).values
    assert kept.theme == "dark"
    assert kept.searches == {
        "identify": SearchSettings(
            preset="tmt", files={"database": ("/d.fasta",)}, folders={"spectra": "/s", "database": "/d"}, preset_folder="/p",
            results_layout="{}",
        )
    }  # fmt: skip


def test_settings_that_knew_of_databases_alone_name_the_files_by_what_they_are_for(path: Path) -> None:
    path.parent.mkdir()
    own = {"device": "cpu", "databases": ["/d.fasta"], "folders": {"queries": "/q", "databases": "/d"}}
    path.write_text(json.dumps({"version": 2, "searches": {"align": own}}), encoding="utf-8")
    kept = SearchSettings(device="cpu", files={"database": ("/d.fasta",)}, folders={"queries": "/q", "database": "/d"})
    assert SettingsFile(path).values.searches == {"align": kept}


def test_recent_projects_are_few_and_each_once_with_the_last_on_top() -> None:
    settings = Settings()
    for i in range(14):
        settings.remember_project(Path(f"/p/{i}"))
    settings.remember_project(Path("/p/9"))
    assert settings.recent_projects[:3] == ("/p/9", "/p/13", "/p/12")
    assert len(settings.recent_projects) == len(set(settings.recent_projects)) == 10
    settings.forget_project("/p/13")
    assert "/p/13" not in settings.recent_projects


@pytest.mark.parametrize("content", ["", "{", "[]", '{"theme": "dark"}', '{"version": 1, "theme": "pink"}', '{"version": "x"}', "null"])
def test_a_damaged_file_is_put_aside_and_the_defaults_are_taken(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content, encoding="utf-8")
    assert SettingsFile(path).values == Settings()
    aside = list(path.parent.iterdir())
    assert len(aside) == 1 and aside[0] != path
    assert aside[0].read_text(encoding="utf-8") == content


def test_the_file_of_a_newer_version_is_kept_for_it(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('{"version": 7, "theme": "dark"}', encoding="utf-8")
    file = SettingsFile(path)
    file.save()
    file.flush()
    assert file.values == Settings()
    assert json.loads((path.parent / "settings.version-7.json").read_text(encoding="utf-8"))["theme"] == "dark"


def test_old_settings_go_through_every_migration_in_order(path: Path) -> None:
    def first(content: dict[str, Any]) -> dict[str, Any]:
        return {"look": content["colours"]}

    def second(content: dict[str, Any]) -> dict[str, Any]:
        return {"theme": content["look"]}

    path.parent.mkdir()
    path.write_text('{"version": 1, "colours": "dark"}', encoding="utf-8")
    file = SettingsFile(path, (first, second))
    assert (file.version, file.values.theme) == (3, "dark")
    file.save()
    file.flush()
    assert json.loads(path.read_text(encoding="utf-8"))["version"] == 3
    assert SettingsFile(path, (first, second)).values.theme == "dark"


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    file = SettingsFile(tmp_path / "file" / "settings.json")
    file.save()
    file.flush()
    assert "cannot be saved" in caplog.text


def test_of_what_is_saved_while_the_disk_is_busy_the_last_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever saves does not wait for the disk, and no older settings are written over newer ones."""
    written: list[str] = []
    may_write = threading.Event()

    @contextmanager
    def slowly(at: Path) -> Iterator[BinaryIO]:
        assert may_write.wait(30)
        with atomic_file(at) as file:
            yield file
        written.append(json.loads(at.read_bytes())["theme"])

    monkeypatch.setattr(settings_module, "atomic_file", slowly)
    file = SettingsFile(path)
    themes: tuple[Literal["dark", "light", "system"], ...] = ("dark", "light", "system", "dark")
    for theme in themes:
        file.values.theme = theme
        file.save()
    assert not path.exists(), "nobody has waited"
    may_write.set()
    file.flush()
    assert written[-1] == "dark" and len(written) <= 2
    assert SettingsFile(path).values.theme == "dark"


def test_the_settings_lie_in_the_user_s_configuration() -> None:
    assert default_settings_path().name == "settings.json"
    assert default_settings_path().parent.name == "proteoscope"
