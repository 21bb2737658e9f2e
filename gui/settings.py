"""Settings that persist between program starts: a small JSON file with a version."""

import json
import logging
import threading
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proteoscope.engine.entry import SampleData
from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import atomic_file, open_regular

_N_RECENT = 10
_MAXIMUM_BYTES = 4 << 20
FONT_SCALES = (80, 90, 100, 115, 130, 150, 175, 200)
"""Font sizes in percent of the system's size."""
_VERSION = 1
"""Version of the settings file; other versions are not read."""

_logger = logging.getLogger(__name__)


class SearchSettings(BaseModel):
    """Stored settings of one kind of search.

    Attributes
    ----------
    workers, certificates : str
        Value of ``--workers`` for remote workers, and the folder of their certificates; '' for none.
    folders : dict
        Start folder of the file dialog, by input name.
    files : dict
        Files of the last search, by input name.
    results_layout : str
        Layout of the results view, as a text that only this view interprets.
    stage_seconds : dict
        Durations of the stages of the last finished run, in seconds, by stage name.
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
    """Summary of a recent project in the settings.

    `kinds` are the search kinds of its finished runs, `last_run` is the start time of the last run in ISO 8601.
    """

    kinds: tuple[str, ...] = ()
    last_run: str = ""


class Settings(BaseModel):
    """Settings of the window that are stored between program starts.

    Attributes
    ----------
    font_scale : int
        Font size in percent of the system's size.
    tour_seen : bool
        True if the tour was completed or skipped.
    jobs_closed : bool
        True if the user has closed the list of jobs, so that it does not open automatically.
    geometry, layout : str
        Window geometry and layout as saved by Qt, in base 64.
    comparison_layout : str
        Layout of the comparison view, as a text that only this view interprets.
    recent_runs : dict
        Summaries of recent projects, by folder.
    searches : dict
        Settings by kind of search.
    """

    model_config = ConfigDict(validate_assignment=True)

    theme: Literal["system", "light", "dark", "contrast"] = "system"
    font_scale: int = Field(default=100, ge=FONT_SCALES[0], le=FONT_SCALES[-1])
    tour_seen: bool = False
    jobs_closed: bool = False
    geometry: str = ""
    layout: str = ""
    comparison_layout: str = ""
    recent_projects: tuple[str, ...] = Field(default=(), max_length=_N_RECENT)
    recent_runs: dict[str, RecentProject] = {}
    searches: dict[str, SearchSettings] = {}

    def remember_project(self, folder: Path, runs: RecentProject | None = None) -> None:
        """Move a project to the top of the recent projects, and store a summary of its runs if given."""
        self.recent_projects = (str(folder), *(recent_project for recent_project in self.recent_projects if recent_project != str(folder)))[
            :_N_RECENT
        ]
        projects = self.recent_runs if runs is None else {**self.recent_runs, str(folder): runs}
        self.recent_runs = {name: of_project for name, of_project in projects.items() if name in self.recent_projects}

    def forget_project(self, folder: str) -> None:
        """Remove a project from the recent projects."""
        self.recent_projects = tuple(recent_project for recent_project in self.recent_projects if recent_project != folder)


def default_settings_path() -> Path:
    """Return the path of the user's settings file."""
    return platformdirs.user_config_path("proteoscope", appauthor=False) / "settings.json"


def sample_project(data: SampleData = "measured") -> Path:
    """Return the default project folder for runs on sample data, in the user's home folder, since the sample files may be read-only."""
    try:
        home = Path.home()
    except RuntimeError:  # the home folder is unknown
        home = Path.cwd()
    return home.absolute() / ("proteoscope_sample" if data == "measured" else f"proteoscope_sample_{data}")


class SettingsFile:
    """Settings and their file.

    Reading and writing never raise an error: a damaged file, or a file of another version, is renamed and the defaults are used; failures
    to write are logged. A thread writes the file because disks can be slow. The thread ends when everything is written, and the program
    waits for it before it exits.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._unwritten: dict[str, Any] | None = None
        self._writer: threading.Thread | None = None
        self.values = self._read()

    def save(self) -> None:
        """Start writing the current settings in a background thread; `flush` waits for its end. The old file remains until then."""
        content = {"version": _VERSION, **self.values.model_dump()}
        with self._lock:
            self._unwritten = content
            if self._writer is None:
                self._writer = threading.Thread(target=self._write, name="settings")
                self._writer.start()

    def flush(self) -> None:
        """Wait until saved settings are on disk."""
        writer = self._writer
        if writer is not None:
            writer.join()

    def _write(self) -> None:
        """Write the newest settings, and repeat while `save` has added newer ones. Called in a background thread."""
        while True:
            with self._lock:
                content, self._unwritten = self._unwritten, None
                if content is None:
                    self._writer = None
                    return
            try:
                with atomic_file(self._path) as file:
                    file.write(json.dumps(content, indent=2).encode() + b"\n")  # ASCII, because folder names need not be UTF-8
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
                self._rename_unusable(f"version-{version}")
                return Settings()
            return Settings.model_validate(content)
        except FileNotFoundError:
            return Settings()
        except OSError as error:
            _logger.warning("The settings cannot be read: %s", error)
            return Settings()
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError, ValidationError):
            self._rename_unusable("damaged")
            return Settings()

    def _rename_unusable(self, why: str) -> None:
        renamed = self._path.with_name(f"{self._path.stem}.{''.join(c for c in why if c.isalnum() or c == '-')[:40]}.json")
        try:
            self._path.replace(renamed)
            _logger.warning("The settings in %s could not be used and were renamed to %s", self._path, renamed.name)
        except OSError as error:
            _logger.warning("The settings in %s cannot be used: %s", self._path, error)
