"""What the window remembers between two starts: a small JSON file with a version."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import atomic_file, open_regular

__all__ = [
    "LETTER_SIZES",
    "RecentProject",
    "SearchSettings",
    "Settings",
    "SettingsFile",
    "default_settings_path",
    "sample_project",
]

_N_RECENT = 10
_MAXIMUM_BYTES = 4 << 20
LETTER_SIZES = (80, 90, 100, 115, 130, 150, 175, 200)
"""In percent of the system's, of which one is chosen."""
_VERSION = 1
"""Version of the settings file; only files of this version are read."""

_logger = logging.getLogger(__name__)


class SearchSettings(BaseModel):
    """What is remembered of one kind of search. `folders`: where file dialogs open, and `files`: those that are kept, both by the names of
    the search's inputs. `workers`, `certificates`: what computes in place of the program.
    `results_layout` is the results view's own. `stage_seconds`: what each stage of the last finished one took.
    """

    model_config = ConfigDict(validate_assignment=True)

    preset: str = ""
    preset_folder: str = ""
    device: str = "auto"
    workers: str = ""
    certificates: str = ""
    folders: dict[str, str] = {}
    files: dict[str, tuple[str, ...]] = {}
    results_layout: str = ""
    stage_seconds: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = {}


class RecentProject(BaseModel):
    """What is remembered of a recent project: the kinds of its finished runs and when the last one began, in ISO 8601."""

    kinds: tuple[str, ...] = ()
    last_run: str = ""


class Settings(BaseModel):
    """The remembered values. `letter_size` is in percent of the system's; `tour_seen`: the tour of the window was gone through or left.
    `geometry` and `layout` are Qt's own, in base 64; `searches` are by the kind of search, `recent_runs` by the folders of recent projects;
    `comparison_layout` is the own of the view of several runs.
    """

    model_config = ConfigDict(validate_assignment=True)

    theme: Literal["system", "light", "dark"] = "system"
    letter_size: int = Field(default=100, ge=LETTER_SIZES[0], le=LETTER_SIZES[-1])
    tour_seen: bool = False
    geometry: str = ""
    layout: str = ""
    comparison_layout: str = ""
    recent_projects: tuple[str, ...] = Field(default=(), max_length=_N_RECENT)
    recent_runs: dict[str, RecentProject] = {}
    searches: dict[str, SearchSettings] = {}

    def remember_project(self, folder: Path, runs: RecentProject | None = None) -> None:
        """Put a project on top of the recent ones, with what is known of its runs."""
        self.recent_projects = (str(folder), *(recent_project for recent_project in self.recent_projects if recent_project != str(folder)))[
            :_N_RECENT
        ]
        known = self.recent_runs if runs is None else {**self.recent_runs, str(folder): runs}
        self.recent_runs = {name: of_project for name, of_project in known.items() if name in self.recent_projects}

    def forget_project(self, folder: str) -> None:
        """Take a project from the recent ones."""
        self.recent_projects = tuple(recent_project for recent_project in self.recent_projects if recent_project != folder)


def default_settings_path() -> Path:
    """Where the settings of this user lie."""
    return platformdirs.user_config_path("proteoscope", appauthor=False) / "settings.json"


def sample_project() -> Path:
    """The project that samples are run in unless the user chooses another: beside files that ship there is no place for any."""
    try:
        home = Path.home()
    except RuntimeError:  # HOME is '~', or a user without a name has no HOME
        home = Path.cwd()
    return home.absolute() / "proteoscope_sample"


class SettingsFile:
    """The settings and their file.

    Settings are never worth an error: a damaged file, or one of another version, is put aside under another name and the
    defaults are taken; what cannot be written is noted in the log. A thread writes them, since a disk takes its time; it ends when there is
    nothing to write, and a program that ends waits for it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._unwritten: bytes | None = None
        self._writer: threading.Thread | None = None
        self.values = self._read()

    def save(self) -> None:
        """Have the file written as the settings are now, whole or not at all; `flush` waits until it is."""
        content = {"version": _VERSION, **self.values.model_dump()}
        written = json.dumps(content, indent=2).encode() + b"\n"  # in ASCII: names of folders need not be UTF-8
        with self._lock:
            self._unwritten = written
            if self._writer is None:
                self._writer = threading.Thread(target=self._write, name="settings")
                self._writer.start()

    def flush(self) -> None:
        """Wait until what was saved is on the disk."""
        writer = self._writer
        if writer is not None:
            writer.join()

    def _write(self) -> None:
        """Write what was saved last, until nothing newer is there; runs in a thread."""
        while True:
            with self._lock:
                content, self._unwritten = self._unwritten, None
                if content is None:
                    self._writer = None
                    return
            try:
                with atomic_file(self._path) as file:
                    file.write(content)
            except StorageError as error:
                _logger.warning("The settings cannot be saved: %s", error)

    def _read(self) -> Settings:
        try:
            with open_regular(self._path) as file:
                text = file.read(_MAXIMUM_BYTES + 1)
            if len(text) > _MAXIMUM_BYTES:
                raise ValueError(f"longer than {_MAXIMUM_BYTES} bytes")
            content = json.loads(text)
            version = content.pop("version")
            if version != _VERSION:
                self._put_aside(f"version-{version}")
                return Settings()
            return Settings.model_validate(content)
        except FileNotFoundError:
            return Settings()
        except OSError as error:
            _logger.warning("The settings cannot be read: %s", error)
            return Settings()
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError, ValidationError):
            self._put_aside("damaged")
            return Settings()

    def _put_aside(self, why: str) -> None:
        aside = self._path.with_name(f"{self._path.stem}.{''.join(c for c in why if c.isalnum() or c == '-')[:40]}.json")
        try:
            self._path.replace(aside)
            _logger.warning("The settings in %s could not be used; they are kept as %s", self._path, aside.name)
        except OSError as error:
            _logger.warning("The settings in %s cannot be used: %s", self._path, error)
