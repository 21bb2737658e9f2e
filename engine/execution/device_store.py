"""Store of facts about the devices of this machine, in a file of the user's cache that several processes use.

::

    CACHE/devices.json    {"calibrations": {KEY: [SECONDS, VALUE], ...}, "gpus": ..., "runs": ..., "speeds": ...}

SECONDS is the time at which a fact was stored, in seconds since 1970. Each change is made under a lock and replaces the file atomically, so
that simultaneous changes by several processes are not lost. Each kind of facts has a maximum number, beyond which the oldest are removed.
The file is untrusted: facts with an invalid type are ignored, and a damaged file is reported, ignored and replaced at the next change.
Facts only make searches faster, so failed writes are ignored.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import atomic_file, open_regular
from proteoscope.engine.project.index_store import cache_folder
from proteoscope.engine.project.locks import FileLock
from proteoscope.engine.shared_folders import make_folder

__all__ = ["Facts"]

_KINDS = ("calibrations", "gpus", "runs", "speeds")
_MAXIMUM_BYTES = 4 << 20
_MAXIMUM_KEY = 500  # characters
_LATEST = 253370764800.0  # seconds since 1970: in the year 9999, the last that every time zone can represent
_LOCK_SECONDS = 10.0
_logger = logging.getLogger(__name__)

Value = TypeVar("Value")


class _Fact(NamedTuple, Generic[Value]):
    """Fact with the time at which it was stored, in seconds since 1970."""

    stored: float
    value: Value


class Facts(Generic[Value]):
    """Facts of one kind by key.

    Parameters
    ----------
    kind : str
        "calibrations", "gpus", "runs" or "speeds".
    form : type
        Type of the facts, with which pydantic validates them.
    maximum : int
        Maximum number of stored facts; the oldest are removed.
    """

    def __init__(self, kind: str, form: Any, maximum: int) -> None:
        assert kind in _KINDS
        self._kind, self._maximum = kind, maximum
        self._adapter: TypeAdapter[Value] = TypeAdapter(form)

    def get(self, key: str, *, maximum_age: float | None = None) -> Value | None:
        """Return the fact with a key; None if it is missing, invalid, or older than `maximum_age` seconds."""
        fact = self._facts(key).get(key)
        if fact is None or (maximum_age is not None and not 0.0 <= time.time() - fact.stored <= maximum_age):
            return None
        return fact.value

    def all(self) -> dict[str, Value]:
        """Return all valid facts, by key."""
        return {key: fact.value for key, fact in self._facts().items()}

    def stored_at(self, key: str) -> datetime | None:
        """Return the time at which the fact with a key was stored; None if it is missing."""
        fact = self._facts(key).get(key)
        return None if fact is None else datetime.fromtimestamp(fact.stored, UTC)

    def store(self, facts: Mapping[str, Value]) -> None:
        """Store facts by key; earlier facts with the same keys are replaced."""
        if facts:
            self._change(lambda present: present | {key: _Fact(time.time(), value) for key, value in facts.items()})

    def update(self, key: str, change: Callable[[Value | None], Value]) -> None:
        """Replace the fact with a key by ``change(fact)``; `change` receives None if the fact is missing."""
        self._change(lambda present: present | {key: _Fact(time.time(), change(present[key].value if key in present else None))})

    def clear(self) -> None:
        """Remove all facts of this kind."""
        if self._facts():
            self._change(lambda _: {})

    def _facts(self, only: str | None = None) -> dict[str, _Fact[Value]]:
        """Return the valid facts by key; if `only` is given, just the fact with this key."""
        result = dict[str, _Fact[Value]]()
        entries = _content().get(self._kind, {})
        for key in entries if only is None else {only} & set(entries):
            with suppress(ValidationError, RecursionError):
                result[key] = _Fact(entries[key][0], self._adapter.validate_python(entries[key][1]))
        return result

    def _change(self, change: Callable[[dict[str, _Fact[Value]]], dict[str, _Fact[Value]]]) -> None:
        path = cache_folder() / "devices.json"
        lock = FileLock(path.with_suffix(".lock"))
        with suppress(StorageError, OSError):
            make_folder(path.parent)
            if not lock.acquire("storing facts about devices", _LOCK_SECONDS):
                return
            try:
                facts = {key: fact for key, fact in change(self._facts()).items() if len(key) <= _MAXIMUM_KEY}
                newest = sorted(facts, key=lambda key: facts[key].stored)[-self._maximum :]
                entries = {key: [facts[key].stored, self._adapter.dump_python(facts[key].value, mode="json")] for key in newest}
                content = json.dumps({**_content(), self._kind: entries})
                with atomic_file(path) as file:
                    file.write((content if len(content) <= _MAXIMUM_BYTES else json.dumps({self._kind: entries})).encode())
            finally:
                lock.release()


def _content() -> dict[str, dict[str, Any]]:
    """Return the entries of the file by kind and key, before validation of the values."""
    path = cache_folder() / "devices.json"
    try:
        state = path.stat()
    except OSError:
        return {}
    return _parsed(path, state.st_mtime_ns, state.st_ino, state.st_size)


@lru_cache(maxsize=1)
def _parsed(path: Path, *_state: int) -> dict[str, dict[str, Any]]:
    try:
        with open_regular(path) as file:
            text = file.read(_MAXIMUM_BYTES + 1)
        if len(text) > _MAXIMUM_BYTES:
            raise ValueError(f"it is larger than {_MAXIMUM_BYTES >> 20} MiB")
        content = json.loads(text)
        return {kind: {key: entry for key, entry in content.get(kind, {}).items() if _is_entry(entry)} for kind in _KINDS}
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        _logger.warning("%s is ignored, and replaced when a device is used next: %s", path, str(error).splitlines()[0][:200])
        return {}


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], int | float) and 0 <= entry[0] < _LATEST
