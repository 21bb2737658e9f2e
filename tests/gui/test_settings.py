"""Tests of the settings remembered between starts."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

import pytest

pytest.importorskip("PySide6.QtCore", exc_type=ImportError)

from PySide6.QtCore import QLocale

from proteoscope.engine.files import atomic_file
from proteoscope.gui import settings as settings_module
from proteoscope.gui.application import set_locale
from proteoscope.gui.settings import SearchSettings, Settings, SettingsFile, default_settings_path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "settings.json"


def test_settings_without_a_file_are_the_defaults(path: Path) -> None:
    assert SettingsFile(path).values == Settings()
    assert not path.exists()


def test_saved_settings_are_loaded_at_the_next_start(path: Path) -> None:
    file = SettingsFile(path)
    file.values.theme = "dark"
    file.values.searches["identify"] = SearchSettings(preset="phospho")
    file.values.remember_project(Path("/data/Größe 1"))
    file.save()
    file.flush()
    again = SettingsFile(path).values
    assert (again.theme, again.searches["identify"].preset, again.recent_projects) == ("dark", "phospho", ("/data/Größe 1",))
    assert json.loads(path.read_text(encoding="utf-8"))["version"] == 1


def test_recent_projects_are_at_most_ten_unique_and_newest_first() -> None:
    settings = Settings()
    for i in range(14):
        settings.remember_project(Path(f"/p/{i}"))
    settings.remember_project(Path("/p/9"))
    assert settings.recent_projects[:3] == ("/p/9", "/p/13", "/p/12")
    assert len(settings.recent_projects) == len(set(settings.recent_projects)) == 10
    settings.forget_project("/p/13")
    assert "/p/13" not in settings.recent_projects


@pytest.mark.parametrize("content", ["", "{", "[]", '{"theme": "dark"}', '{"version": 1, "theme": "pink"}', '{"version": "x"}', "null"])
def test_damaged_settings_file_is_replaced_by_defaults(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content, encoding="utf-8")
    assert SettingsFile(path).values == Settings()
    aside = list(path.parent.iterdir())
    assert len(aside) == 1 and aside[0] != path
    assert aside[0].read_text(encoding="utf-8") == content


@pytest.mark.parametrize("version", [0, 2, 7])
def test_settings_file_of_another_version_is_renamed(path: Path, version: int) -> None:
    path.parent.mkdir()
    path.write_text(f'{{"version": {version}, "theme": "dark"}}', encoding="utf-8")
    file = SettingsFile(path)
    file.save()
    file.flush()
    assert file.values == Settings()
    assert json.loads((path.parent / f"settings.version-{version}.json").read_text(encoding="utf-8"))["theme"] == "dark"


def test_settings_in_an_unwritable_folder_raise_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    file = SettingsFile(tmp_path / "file" / "settings.json")
    file.save()
    file.flush()
    assert "cannot be saved" in caplog.text


def test_newest_settings_are_written_while_the_disk_is_busy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that saving does not wait for the disk, and that older settings never overwrite newer ones."""
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
    assert not path.exists(), "the file is not written yet"
    may_write.set()
    file.flush()
    assert written[-1] == "dark" and len(written) <= 2
    assert SettingsFile(path).values.theme == "dark"


def test_default_settings_path_is_in_configuration_folder() -> None:
    assert default_settings_path().name == "settings.json"
    assert default_settings_path().parent.name == "proteoscope"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"version": 1, "searches": {"identify": {"stage_seconds": {"a": 1e999}}}}',
        '{"version": 1, "searches": {"identify": {"stage_seconds": {"a": -1}}}}',
        "\0" * 9,
        '{"version": 1, "font_scale": ' + "9" * 5000 + "}",
        json.dumps({"version": 1, "recent_projects": ["/x"] * 1_000_000}),
        '{"version": 1, "theme": "' + "x" * (5 << 20) + '"}',
    ],
    ids=["deep nesting", "infinite", "negative", "null bytes", "many digits", "many projects", "long text"],
)
def test_settings_file_with_extreme_values_is_renamed_as_damaged(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    assert SettingsFile(path).values == Settings()
    assert path.with_name("settings.damaged.json").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_settings_file_that_is_a_pipe_does_not_block(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path)
    assert SettingsFile(path).values == Settings()


def test_recent_projects_with_non_utf8_names_are_remembered(path: Path) -> None:
    file, name = SettingsFile(path), os.fsdecode(b"/data/\xff")
    file.values.remember_project(Path(name))
    file.save()
    file.flush()
    assert SettingsFile(path).values.recent_projects == (name,)


@pytest.mark.parametrize(("system", "number"), [("C", "1,234"), ("de_DE", "1.234")])
def test_set_locale_has_thousands_separators_in_any_locale(system: str, number: str) -> None:
    before = QLocale()
    try:
        QLocale.setDefault(QLocale(system))
        set_locale()
        assert QLocale().toString(1234) == number
    finally:
        QLocale.setDefault(before)
