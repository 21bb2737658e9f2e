"""Files of the last run that a project shows: ``exports`` and ``run.json``, which always belong to one registered run.

A run makes them in its own folder, ``results/RUN/exports`` and ``results/RUN/run.json``. When it is registered they are moved: first the
files, then the record, and last the run's own folder of them goes. As long as that is there, the move has not come to its end, and the next
opening of the project completes it.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from proteoscope.engine.files import atomic_file, open_regular, storage_errors, sync_folder
from proteoscope.engine.project.paths import EXPORTS, RESULTS, RUN_JSON, entries, inside

__all__ = ["has_unpublished", "publish", "show_record", "unpublish"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MAXIMUM_JSON = 16 << 20


def has_unpublished(project: Path, run_id: str) -> bool:
    """Whether a run has exports that the project does not show."""
    return inside(project, RESULTS, run_id, EXPORTS).is_dir()


def publish(project: Path, run_id: str) -> None:
    """Let the project in a folder show the exports of a registered run and its record, instead of what it shows; nothing without exports.

    The caller holds the project's lock. What users put beside them stays.

    Raises
    ------
    StorageError : the disk refused, or there are links.
    """
    if not has_unpublished(project, run_id):
        return
    own, shown = inside(project, RESULTS, run_id, EXPORTS), inside(project, EXPORTS)
    record, of_run = inside(project, RUN_JSON), inside(project, RESULTS, run_id, RUN_JSON)
    with storage_errors(shown):
        shown.mkdir(exist_ok=True)
        new = [path for path in entries(own) if path.is_file() and not path.is_symlink()]
        # Its own may be shown already, when a kill came in between.
        for name in _exports(record) - _exports(of_run) - {path.name for path in new}:
            former = inside(shown, name)
            if former.is_file():
                former.unlink()
        for path in new:
            path.replace(shown / path.name)
        if of_run.is_file():
            with atomic_file(record) as file, of_run.open("rb") as content:
                shutil.copyfileobj(content, file)
        sync_folder(shown)
        shutil.rmtree(own)


def show_record(project: Path, run_id: str) -> None:
    """Copy the record of a run again, if it is the one that a project shows. The caller holds the project's lock.

    Raises
    ------
    StorageError : the disk refused, or there are links.
    """
    record, of_run = inside(project, RUN_JSON), inside(project, RESULTS, run_id, RUN_JSON)
    if _read(record).get("run") == run_id:
        with storage_errors(record), atomic_file(record) as file, of_run.open("rb") as content:
            shutil.copyfileobj(content, file)


def unpublish(project: Path, run_id: str) -> None:
    """Let a project show the exports of a run no more, if it is those of this run that it shows. What users put beside them stays.

    The caller holds the project's lock.

    Raises
    ------
    StorageError : the disk refused, or there are links.
    """
    shown, record = inside(project, EXPORTS), inside(project, RUN_JSON)
    if _read(record).get("run") != run_id:
        return
    with storage_errors(shown):
        for name in _exports(record):
            path = inside(shown, name)
            if path.is_file():
                path.unlink()
        record.unlink()


def _exports(record: Path) -> set[str]:
    """Names of the files that a record says are exports; none where it cannot be read."""
    names = _read(record).get("exports", [])
    return {name for name in names if isinstance(name, str) and _NAME.fullmatch(name)} if isinstance(names, list) else set()


def _read(record: Path) -> dict[str, Any]:
    """What a record says; nothing where it cannot be read."""
    try:
        with open_regular(record) as file:
            found = json.loads(file.read(_MAXIMUM_JSON))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
