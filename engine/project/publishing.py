"""Publishing of the ``exports`` and ``run.json`` of a run in the top folder of the project, where both belong to the same registered run.

A run first writes ``results/RUN/exports`` and ``results/RUN/run.json``. After it is registered, its exports are moved to the top of the
project, then the record is copied there, and finally ``results/RUN/exports`` is removed. If this folder still exists, publishing was
interrupted, and the next opening of the project completes it.
"""

import contextlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

from proteoscope.engine.files import atomic_file, open_regular, storage_errors, sync_folder
from proteoscope.engine.project.paths import EXPORTS, RESULTS, RUN_JSON, inside
from proteoscope.engine.shared_folders import make_folder, pinned_folder

__all__ = ["has_unpublished", "publish", "read_record", "show_record", "unpublish"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MAXIMUM_JSON = 16 << 20


def has_unpublished(project: Path, run_id: str) -> bool:
    """Return True if a run has exports that are not completely published."""
    return inside(project, RESULTS, run_id, EXPORTS).is_dir()


def publish(project: Path, run_id: str) -> None:
    """Publish the exports and the record of a registered run in the project folder; do nothing if the run has no exports.

    The caller holds the project's lock. Other files of the user in ``exports`` remain.

    Raises
    ------
    StorageError
        If writing fails, or there are links.
    """
    if not has_unpublished(project, run_id):
        return
    for parts in ((RESULTS, run_id, EXPORTS), (RESULTS, run_id, RUN_JSON), (EXPORTS,), (RUN_JSON,)):
        inside(project, *parts)
    with storage_errors(project / EXPORTS):
        make_folder(project / EXPORTS)
        with pinned_folder(project / RESULTS / run_id / EXPORTS) as source, pinned_folder(project / EXPORTS) as shown:
            _publish(project, run_id, source, shown)


def _publish(project: Path, run_id: str, source: Path, shown: Path) -> None:
    """Move the exports of a run from the folder `source` to the folder `shown` (both folders are held open), and copy the run's record."""
    record, of_run = project / RUN_JSON, project / RESULTS / run_id / RUN_JSON
    new = [path for path in sorted(source.iterdir()) if path.is_file() and not path.is_symlink()]
    # After a kill, some exports of this run may already be in `shown`: keep them.
    _remove(shown, _exports(record) - _exports(of_run) - {path.name for path in new})
    for path in new:
        path.replace(shown / path.name)
    _copy_record(project, run_id)
    sync_folder(shown)
    with pinned_folder(project / RESULTS / run_id) as folder:
        shutil.rmtree(folder / EXPORTS)


def _remove(shown: Path, names: set[str]) -> None:
    """Remove files by name from the folder of published exports, which is held open."""
    for name in names:
        if inside(shown, name).is_file():
            (shown / name).unlink()


def _copy_record(project: Path, run_id: str) -> None:
    """Copy the record of a run, if there is one, to the top folder of the project."""
    with (
        contextlib.suppress(FileNotFoundError),
        pinned_folder(project / RESULTS / run_id) as folder,
        open_regular(folder / RUN_JSON, follows_link=False) as content,
        atomic_file(project / RUN_JSON) as file,
    ):
        shutil.copyfileobj(content, file)


def show_record(project: Path, run_id: str) -> None:
    """Copy the record of a run to the project's top folder again if the run is the published run. The caller holds the project's lock.

    Raises
    ------
    StorageError
        If writing fails, or there are links.
    """
    record, _ = inside(project, RUN_JSON), inside(project, RESULTS, run_id, RUN_JSON)
    if read_record(record).get("run") == run_id:
        with storage_errors(record):
            _copy_record(project, run_id)


def unpublish(project: Path, run_id: str) -> None:
    """Remove the published exports and the published record of a run; do nothing if another run, or no run, is published.

    The caller holds the project's lock. Other files of the user in ``exports`` remain.

    Raises
    ------
    StorageError
        If writing fails, or there are links.
    """
    shown, record = inside(project, EXPORTS), inside(project, RUN_JSON)
    if read_record(record).get("run") != run_id:
        return
    with storage_errors(shown), pinned_folder(project) as folder:
        if shown.is_dir():
            with pinned_folder(shown) as opened:
                _remove(opened, _exports(record))
        (folder / RUN_JSON).unlink()


def _exports(record: Path) -> set[str]:
    """Return the file names of the exports that a record lists; an empty set if the record is unreadable."""
    names = read_record(record).get("exports", [])
    return {name for name in names if isinstance(name, str) and _NAME.fullmatch(name)} if isinstance(names, list) else set()


def read_record(record: Path) -> dict[str, Any]:
    """Return the content of a record; an empty dictionary if it is unreadable."""
    try:
        with open_regular(record) as file:
            result = json.loads(file.read(_MAXIMUM_JSON))
    except (OSError, ValueError, RecursionError):
        return {}
    return result if isinstance(result, dict) else {}
