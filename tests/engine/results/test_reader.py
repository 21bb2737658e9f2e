"""Untrusted tables are read as described, or rejected with file, column and remedy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.results import reader
from proteoscope.engine.results.columns import Column, Rule, Table
from proteoscope.engine.results.queries import create_view, restrict_to_files
from proteoscope.engine.results.reader import TableFile, row_count
from tests.effort import lines_run

TURN = [float(number) for number in range(9)]
TABLE = Table.from_columns(
    "things",
    "Things",
    (
        Column("name", "Name", "What it is called", pattern="[a-z ]*"),
        Column("count", "Count", "How many", "integer", type="int32", low=0, high=100),
        Column("share", "Share", "A part", "number", is_nullable=True, low=0, high=1),
        Column("turn", "Turn", "Nine numbers", "numbers", type="double[9]"),
        Column("places", "Places", "Where", "numbers", type="list<int16>"),
        Column("masses", "Masses", "What is there", "numbers", as_long_as="places"),
        Column("row", "Row", "Row of others", "identifier", rows_of="others"),
        Column("late", "Late", "What some runs do not write", is_optional=True),
    ),
    rules=(Rule(("count", "row"), "counts more than rows", lambda count, row: bool((count.to_numpy() >= row.to_numpy()).all())),),
)
GOOD: dict[str, Any] = {
    "name": pa.array(["a", "b c", ""]),
    "count": pa.array([1, 2, 3], pa.int32()),
    "share": pa.array([0.5, None, float("nan")]),
    "turn": pa.array([TURN] * 3, pa.list_(pa.float64(), 9)),
    "places": pa.array([[1], [], [2, 3]], pa.list_(pa.int16())),
    "masses": pa.array([[1.5], [], [2.5, 3.5]]),
    "row": pa.array([0, 1, 2]),
}


def written(path: Path, columns: dict[str, Any] | pa.Table, **options: Any) -> Path:
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, **options)
    return path


def read(path: Path, **options: Any) -> pa.Table:
    with TableFile(path, TABLE, n_rows_of={"others": 3}, **options) as source:
        return source.read()


def test_table_reader_reads_valid_table_whole_and_in_batches(tmp_path: Path):
    path = written(tmp_path / "t.parquet", GOOD, row_group_size=2)
    table = read(path)
    assert table.schema == TABLE.schema(GOOD) and table.num_rows == 3 and table["turn"].to_pylist() == [TURN] * 3
    with TableFile(path, TABLE, n_rows_of={"others": 3}) as source:
        assert [len(batch) for batch in source.batches(["name"], rows=1)] == [1, 1, 1]
        assert source.read_group(1, ["count", "name"]).to_pylist() == [{"count": 3, "name": ""}] and source.group_rows == [2, 1]
    assert row_count(path) == 3
    assert row_count(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("name", pa.array(["a", "b c", ""], pa.large_string())),
        ("name", pa.array(["a", "b c", ""]).dictionary_encode()),
        ("count", pa.array([1, 2, 3], pa.int64())),
        ("count", pa.array([1, 2, 3], pa.uint8())),
        ("share", pa.array([0.5, None, 0.0], pa.float32())),
        ("share", pa.nulls(3)),
        ("turn", pa.array([TURN] * 3)),
        ("places", pa.array([[1], [], [2, 3]], pa.large_list(pa.int64()))),
    ],
)
def test_table_reader_converts_equivalent_column_types(name: str, values: Any, tmp_path: Path):
    table = read(written(tmp_path / "t.parquet", {**GOOD, name: values}))
    assert table.schema == TABLE.schema(GOOD)
    if name != "share":
        assert table[name].to_pylist() == pa.table(GOOD)[name].to_pylist()


def not_utf_8() -> pa.Array:
    return pa.StringArray.from_buffers(3, pa.py_buffer(np.array([0, 1, 2, 3], np.int32)), pa.py_buffer(b"a\xffb"))


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("name", pa.array([1, 2, 3]), "whole numbers instead of texts"),
        ("name", not_utf_8(), "cannot be read"),
        ("name", pa.array(["a", None, "b"]), "missing"),
        ("name", pa.array(["a", "B", "c"]), "does not write"),
        ("name", pa.array([b"a", b"b", b"c"]), "binary"),
        ("name", pa.array([["a"]] * 3), "lists of texts"),
        ("count", pa.array([1, 2, 101]), "outside 0 to 100"),
        ("count", pa.array([1, 2, -1]), "outside 0"),
        ("count", pa.array([1, 2, 1 << 40]), "cannot be read"),
        ("count", pa.array([1.0, 2.0, 3.0]), "numbers instead of whole numbers"),
        ("count", pa.array([True] * 3), "truths"),
        ("share", pa.array([0.5, float("inf"), 0.1]), "outside"),
        ("share", pa.array(["a"] * 3), "texts"),
        ("turn", pa.array([TURN[:8]] * 3), "9 items"),
        ("turn", pa.array([",".join(map(str, TURN))] * 3), "texts instead of lists of numbers"),
        ("turn", pa.array([TURN, None, TURN]), "missing"),
        ("turn", pa.array([[float("nan")] * 9] * 3), "not a number"),
        ("places", pa.array([[[1]]] * 3), "lists of lists"),
        ("places", pa.array([{"a": 1}] * 3), "struct"),
        ("places", pa.array([[1], None, [2]], pa.list_(pa.int16())), "missing"),
        ("places", pa.array([[1], [None], [2, 3]], pa.list_(pa.int16())), "missing"),
        ("masses", pa.array([[1.5], [1.0], [2.5, 3.5]]), "items than"),
        ("row", pa.array([0, 1, 3]), "rows that others does not have"),
        ("row", pa.array([0, -1, 2]), "rows that others does not have"),
        ("count", pa.array([1, 2, 1], pa.int32()), "counts more than rows"),
    ],
)
def test_table_reader_rejects_invalid_values_and_names_column(name: str, values: Any, said: str, tmp_path: Path):
    path = written(tmp_path / "t.parquet", {**GOOD, name: values})
    with pytest.raises(InputError) as error:
        read(path)
    assert str(path) in str(error.value) and said in str(error.value) and "Do the search again" in str(error.value)
    assert f"column {name}" in str(error.value) or name == "places"


def test_table_reader_rejects_missing_and_duplicate_columns(tmp_path: Path):
    good = pa.table(GOOD)
    with pytest.raises(InputError, match="has no column count"):
        read(written(tmp_path / "t.parquet", good.drop_columns(["count"])))
    read(written(tmp_path / "t.parquet", good.drop_columns(["count"])), needed=("name",))
    for again in ("count", "COUNT", "unexpected"):
        table = good.append_column("unexpected", pa.array([1] * 3)).append_column(again, good["count"])
        with pytest.raises(InputError, match="twice"):
            read(written(tmp_path / "t.parquet", table))
    result = read(written(tmp_path / "t.parquet", good.append_column("unexpected", pa.array([b"\xff"] * 3))))
    assert result.column_names == good.column_names


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"x" * 100 + b"PAR1", b"text\n" * 1000])
def test_table_reader_rejects_invalid_parquet_files(content: bytes, tmp_path: Path):
    (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as a table"):
        read(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="cannot be read as a table"):
        read(tmp_path / "none.parquet")


def test_table_view_has_only_described_columns_and_types(tmp_path: Path):
    secret = tmp_path / "secret.txt"
    secret.write_text("years of work")
    changed = {**GOOD, "turn": pa.array([TURN] * 3), "count": pa.array([1, 2, 3]), "unexpected": pa.array([1] * 3)}
    path = written(tmp_path / "t[1]*.parquet", changed)
    connection = duckdb.connect()
    with TableFile(path, TABLE, n_rows_of={"others": 3}) as source:
        source.check()
        create_view(connection, source, has_rows=True)
    restrict_to_files(connection, [path])
    types = dict(connection.execute("SELECT column_name, column_type FROM (DESCRIBE things)").fetchall())
    assert types == {
        "name": "VARCHAR",
        "count": "INTEGER",
        "share": "DOUBLE",
        "turn": "DOUBLE[]",
        "places": "SMALLINT[]",
        "masses": "DOUBLE[]",
        "row": "BIGINT",
        "late": "VARCHAR",
        "file_row_number": "BIGINT",
    }
    assert connection.execute("SELECT DISTINCT late FROM things").fetchall() == [(None,)]
    assert connection.execute("SELECT turn FROM things WHERE file_row_number = 2").fetchall() == [(TURN,)]
    with pytest.raises(duckdb.Error):
        connection.execute(f"SELECT * FROM read_text('{secret}')").fetchall()
    connection.close()


def n_executed_lines(path: Path, n_others: int = 3) -> int:
    """Return the number of Python lines executed for checking all rows."""
    with TableFile(path, TABLE, n_rows_of={"others": n_others}) as source:
        return lines_run(source.check)


def test_table_reader_rechecks_a_table_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader, "_SETTLED_NS", -(10**18))
    path = written(tmp_path / "t.parquet", GOOD)
    first = n_executed_lines(path)
    assert n_executed_lines(path) < 30 < first
    assert n_executed_lines(path, n_others=4) > 30, "nothing was known about the other tables"
    assert n_executed_lines(path) < 30
    corrupt = written(tmp_path / "corrupt.parquet", {**GOOD, "count": pa.array([1, 2, 101], pa.int32())})
    before = path.stat()
    path.write_bytes(corrupt.read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    for _ in range(2):
        with pytest.raises(InputError, match="contains numbers outside 0 to 100"):
            n_executed_lines(path)


def test_table_reader_checks_a_recently_written_table_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader, "_SETTLED_NS", 10**18)
    path = written(tmp_path / "t.parquet", GOOD)
    first = n_executed_lines(path)
    assert n_executed_lines(path) > first / 2


def test_table_reader_rejects_files_that_unpack_excessively(tmp_path: Path) -> None:
    """Check a text of 1 MB shared by thousands of rows, which is stored once and must not be copied for each row."""
    table = Table("t", "T", (Column("name", "Name"), Column("names", "Names", kind="texts")))
    path, text = tmp_path / "t.parquet", "A" * 1_000_000
    dictionary = pa.DictionaryArray.from_arrays(pa.array(np.zeros(4000, np.int32)), pa.array([text]))
    lists = pa.ListArray.from_arrays(pa.array(np.arange(4001, dtype=np.int32)), dictionary)
    for names, name in ((pa.array([["a"]] * 4000), dictionary), (lists, pa.array(["a"] * 4000))):
        pq.write_table(pa.table({"name": name, "names": names}), path, compression="zstd")
        assert path.stat().st_size < 100_000
        with TableFile(path, table) as file, pytest.raises(InputError, match=r"expands to more than [\d,]+ bytes"):
            file.check()
