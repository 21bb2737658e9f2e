"""Writing of a run's result files, which the project registers together at the end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proteoscope.engine.errors import ParameterError, StorageError
from proteoscope.engine.files import atomic_file, atomic_path, storage_errors
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project.digests import file_digest

__all__ = ["ROW_GROUP", "Run", "TableWriter", "WrittenFile"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
ROW_GROUP = 1 << 17


@dataclass(frozen=True)
class WrittenFile:
    """A result file on disk that is not yet registered; only tables have a number of `rows`."""

    name: str
    path: Path
    rows: int | None
    bytes: int
    sha256: str


class TableWriter:
    """Writer of a table in chunks, so that it is never in memory as a whole."""

    def __init__(self, write: Callable[[pa.RecordBatch | pa.Table], None]) -> None:
        self._write = write
        self.rows = 0

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows, which must have the schema of the writer."""
        self._write(batch)
        self.rows += batch.num_rows


class Run:
    """A run in progress, created by `Project.run`.

    Files in the run's folder become results when the block of `Project.run` succeeds.
    """

    def __init__(self, number: str, folder: Path, device: str, log: Callable[[str, str], None], name: str) -> None:
        self.id = name
        """Id of the run when it is done."""
        self.number = number
        """Id under which it is computed, which differs if it replaces a finished run."""
        self.folder = folder
        """Folder of the results, which has the name of the run when it is done."""
        self.message = ""
        """Sentence about the finished run, shown in the list of runs."""
        self.device = device
        """Device of the run: the requested device until it is known which device computed."""
        self._log = log
        self._written: dict[str, WrittenFile] = {}

    @property
    def written(self) -> tuple[WrittenFile, ...]:
        """Result files written so far, ordered by name, since several threads write them."""
        return tuple(self._written[name] for name in sorted(self._written))

    def log(self, level: str, text: str) -> None:
        """Add a line to the run's log, which remains even if the run fails. `level` is ``info``, ``warning`` or ``error``."""
        self._log(level, text)

    def write_table(self, name: str, table: pa.Table | pa.RecordBatchReader, rows_per_group: int = ROW_GROUP) -> Path:
        """Write an Arrow table, or the batches of a reader, as ``NAME.parquet`` and return its path.

        `rows_per_group` is the number of rows per Parquet row group. Reading a single row decodes a whole group, so use a small number for
        long rows that are read one by one.

        Raises
        ------
        ParameterError
            If the name is invalid or already used.
        StorageError
            If writing fails.
        """
        with self.table_writer(name, table.schema, rows_per_group) as writer:
            if hasattr(table, "read_next_batch"):
                for batch in table:
                    writer.write(batch)
            else:
                writer.write(table)
        return self._written[name].path

    @contextmanager
    def table_writer(self, name: str, schema: pa.Schema, rows_per_group: int = ROW_GROUP) -> Iterator[TableWriter]:
        """Write ``NAME.parquet`` in chunks; the table counts as written if the block succeeds.

        Raises
        ------
        ParameterError
            If the name is invalid or already used.
        StorageError
            If writing fails.
        """
        path = self._new_path(name, ".parquet")
        with atomic_path(path) as temporary:
            options = {"compression": "zstd", "compression_level": 1, "use_dictionary": _text_columns(schema)}
            with pa.parquet.ParquetWriter(temporary, schema, **options) as parquet:
                writer = TableWriter(lambda batch: parquet.write(batch, row_group_size=rows_per_group))
                yield writer
            digest, size = file_digest(temporary), temporary.stat().st_size
        self._written[name] = WrittenFile(name, path, writer.rows, size, digest)

    def write_json(self, name: str, value: Any) -> Path:
        """Write a value as ``NAME.json`` and return the path.

        Raises
        ------
        ParameterError
            If the name is invalid or already used.
        StorageError
            If writing fails.
        """
        path = self._new_path(name, ".json")
        with atomic_file(path) as file:
            file.write(json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n")
        with storage_errors(path):
            self._written[name] = WrittenFile(name, path, None, path.stat().st_size, file_digest(path))
        return path

    def _new_path(self, name: str, suffix: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ParameterError(f"{name!r} cannot name a result; use a to z, A to Z, digits, _, - and dots")
        if name in self._written:
            raise ParameterError(f"Run {self.id} has written {name!r} already; results do not change")
        if not self.folder.is_dir():
            raise StorageError(f"{self.folder}: the folder of run '{self.id}' is missing. Search again.")
        return self.folder / f"{name}{suffix}"


def _text_columns(schema: pa.Schema) -> list[str]:
    """Return the Parquet names of text columns and lists of text. Only these are dictionary-encoded, since numbers rarely repeat."""
    lists = (pa.list_(pa.string()), pa.large_list(pa.string()))
    texts = [column.name for column in schema if column.type == pa.string()]
    return texts + [f"{column.name}.list.element" for column in schema if column.type in lists]
