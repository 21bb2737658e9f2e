"""Conditions on table rows, compared with plain Python predicates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.results.columns import Column
from proteoscope.engine.views.conditions import (
    Condition,
    Selected,
    accepted_at,
    all_of,
    among,
    any_of,
    compares,
    contains,
    contains_in,
    equals,
    has_any,
    is_empty,
    is_finite,
    is_missing,
    matches_pattern,
    negated,
    none_finite,
    rounds_to,
    text_in_columns,
)
from proteoscope.engine.views.tables import ResultTables, TableSource

ROWS: list[dict[str, Any]] = [
    {"name": "it's\tone", "other": "x", "q_value": 0.001, "n": 1, "tags": ["a", "b"]},
    {"name": '"; DROP', "other": '"; DROP', "q_value": math.nan, "n": 2, "tags": []},
    {"name": "IT'S TWO", "other": "ONE", "q_value": None, "n": None, "tags": ["C; d"]},
    {"name": None, "other": "it", "q_value": 0.5, "n": 3, "tags": ["b"]},
]
UNRATED = [{"q_value": math.nan}, {"q_value": None}]
OTHERS = [{"key": 1, "members": ["b"]}, {"key": 2, "members": ["C; d"]}]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableSource]:
    folder = tmp_path_factory.mktemp("tables")
    for name, rows in (("rows", ROWS), ("others", OTHERS), ("unrated", UNRATED)):
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    tables = ResultTables({name: folder / f"{name}.parquet" for name in ("rows", "others", "unrated")})
    yield tables.source("rows")
    tables.close()


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (compares("n", ">=", 2), lambda row: row["n"] is not None and row["n"] >= 2),
        (compares("name", "=", '"; DROP'), lambda row: row["name"] == '"; DROP'),
        (equals("name", "other"), lambda row: row["name"] == row["other"]),
        (is_missing("n"), lambda row: row["n"] is None),
        (negated(is_missing("n")), lambda row: row["n"] is not None),
        (is_finite("q_value"), lambda row: row["q_value"] is not None and math.isfinite(row["q_value"])),
        (is_empty("tags"), lambda row: not row["tags"]),
        (contains("name", "IT's o"), lambda row: "it's o" in (row["name"] or "").lower().replace("\t", " ")),
        (contains("name", "S\tON"), lambda row: "s on" in (row["name"] or "").lower().replace("\t", " ")),
        (contains("name", "ONE"), lambda row: "one" in (row["name"] or "").lower()),
        (has_any("tags", ("b",)), lambda row: "b" in row["tags"]),
        (contains("other", "one", is_capital=True), lambda row: "ONE" in row["other"]),
        (contains("tags", "A; B", is_list=True), lambda row: "a; b" in "; ".join(row["tags"]).lower()),
        (matches_pattern("other", "^[a-z]"), lambda row: row["other"][0].islower()),
        (rounds_to("q_value", 1000, 1), lambda row: row["q_value"] == 0.001),
        (has_any("tags", ("b", "none")), lambda row: "b" in row["tags"]),
        (has_any("tags", Selected("others", "members", (compares("key", "=", 2),))), lambda row: "C; d" in row["tags"]),
        (has_any("tags", Selected("others", "members", (compares("key", "=", 9),))), lambda _: False),
        (among("n", Selected("others", "key")), lambda row: row["n"] in (1, 2)),
        (any_of((compares("n", "=", 1), compares("n", "=", 3))), lambda row: row["n"] in (1, 3)),
        (all_of((compares("n", ">", 1), compares("n", "<", 3))), lambda row: row["n"] == 2),
        (any_of(()), lambda _: False),
        (all_of(()), lambda _: True),
        (accepted_at(0.01, "rows"), lambda row: row["q_value"] is not None and row["q_value"] <= 0.01),
        (accepted_at(0.01, "unrated"), lambda _: True),
        (none_finite("rows", "q_value"), lambda _: False),
    ],
)
def test_table_condition_selects_same_rows_as_python(
    source: TableSource, condition: Condition, holds: Callable[[dict[str, Any]], bool]
) -> None:
    expected = [i for i, row in enumerate(ROWS) if holds(row)]
    assert source.rows([condition]).tolist() == expected
    assert source.rows([condition], limit=1).tolist() == expected[:1]
    assert source.count([condition]) == len(expected)
    assert source.columns(["other"], [condition])["other"].to_pylist() == [ROWS[i]["other"] for i in expected]


def test_table_text_search_uses_only_text_columns(source: TableSource) -> None:
    columns = [Column("name"), Column("tags", kind="texts"), Column("n", kind="integer")]
    assert source.rows(text_in_columns(columns, " c; D ")).tolist() == [2]
    assert source.rows(contains_in(["name", "other"], "one")).tolist() == [0, 2]
    assert text_in_columns(columns[2:], "one") == text_in_columns(columns, " ") == contains_in(["name"], " ") == []
