"""Filtering, sorting and reading of table rows, compared with plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError
from proteoscope.engine.views.conditions import compares, has_any
from proteoscope.engine.views.tables import ResultTables, TableSource
from tests.engine.identification_tables import identification, many_psms


@pytest.fixture(scope="module")
def psms() -> pa.Table:
    return many_psms(identification(400), 900)


@pytest.fixture
def source(psms: pa.Table, tmp_path: Path) -> Iterator[TableSource]:
    yield from opened(psms, tmp_path)


def opened(psms: pa.Table, folder: Path) -> Iterator[TableSource]:
    """Open a table of PSMs in a file with several row groups."""
    # DuckDB would interpret these brackets as a pattern.
    path = folder / "ps[m]s *.parquet"
    pq.write_table(psms, path, row_group_size=300)
    tables = ResultTables({"psms": path})
    yield tables.source("psms")
    tables.close()


def by_definition(values: list[Any], descends: bool) -> list[int]:
    """Return the order by Python's stable sort, with missing values and NaN at the end."""
    present = [i for i, value in enumerate(values) if value is not None and not (isinstance(value, float) and math.isnan(value))]
    missing = sorted(set(range(len(values))) - set(present))
    key = (lambda i: values[i].encode()) if present and isinstance(values[present[0]], str) else (lambda i: values[i])
    in_order = sorted(present, key=key)
    if descends:
        in_order = sorted(present, key=key, reverse=True)
    return in_order + missing


@pytest.mark.parametrize("name", ["score", "q_value", "charge", "peptide", "scan", "ksdp", "delta_score", "is_decoy"])
@pytest.mark.parametrize("descends", [False, True])
def test_table_rows_have_the_same_order_as_sorted_by_python(source: TableSource, psms: pa.Table, name: str, descends: bool) -> None:
    assert source.rows(order=[(name, descends)]).tolist() == by_definition(psms[name].to_pylist(), descends)


def test_filtered_table_rows_satisfy_all_conditions(source: TableSource, psms: pa.Table) -> None:
    selected = source.rows([compares("q_value", "<=", 0.01), has_any("modification_names", ("Phospho",))])
    expected = [i for i, row in enumerate(psms.to_pylist()) if row["q_value"] <= 0.01 and "Phospho" in row["modification_names"]]
    assert expected
    assert selected.tolist() == expected
    assert source.count([compares("q_value", "<=", 0.01)]) == sum(q <= 0.01 for q in psms["q_value"].to_pylist())


@pytest.mark.parametrize(
    "rows",
    [
        np.random.default_rng(1).permutation(900)[:200],
        np.arange(250, 650),  # of three row groups
        np.arange(650, 250, -1),
        np.delete(np.arange(250, 650), 7),
        np.array([899]),
        np.array([], np.int64),
    ],
    ids=["any", "consecutive", "descending", "one missing", "single", "none"],
)
def test_table_values_are_in_the_order_of_rows(source: TableSource, psms: pa.Table, rows: NDArray[np.int64]) -> None:
    values = source.values(rows, ["psm_id", "peptide", "proteins"])
    assert values.to_pylist() == psms.select(["psm_id", "peptide", "proteins"]).take(pa.array(rows)).to_pylist()


@pytest.mark.parametrize("damage", [lambda content: b"not a table", lambda content: content[: len(content) // 2], lambda content: b""])
def test_damaged_table_error_names_the_file(psms: pa.Table, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "psms.parquet"
    pq.write_table(psms, path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=r"psms\.parquet"):
        ResultTables({"psms": path})


def test_missing_table_error_is_a_plain_sentence(psms: pa.Table, tmp_path: Path) -> None:
    for source in opened(psms, tmp_path):
        next(tmp_path.iterdir()).unlink()
        with pytest.raises(InputError, match="no longer exists") as error:
            source.rows(order=[("score", True)])
        assert "IO Error" not in str(error.value) and "moved or deleted" in str(error.value)
