"""Thresholds for hits of a structure search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from proteoscope.engine.views.structure_hits import BOUNDED, StructureFilter, StructureSummary, structure_conditions, threshold_columns
from proteoscope.engine.views.tables import ResultTables, TableSource
from tests.effort import lines_run


def test_structure_threshold_counts_run_no_python_code_per_hit(tmp_path: Path) -> None:
    lines = []
    for n in (100, 100_000):
        random = np.random.default_rng(3)
        table = pa.table({"query_index": np.zeros(n, np.int64), **{name: random.random(n) for name in BOUNDED}})
        path = tmp_path / f"{n}.parquet"
        pq.write_table(table, path)
        tables = ResultTables({"hits": path})
        source = tables.source("hits")
        counts: list[int] = []

        def count(source: TableSource = source, counts: list[int] = counts) -> None:
            columns = threshold_columns(source, 0)
            counts.extend(columns.count(name, 0.5) for name in BOUNDED)

        lines.append(lines_run(count))
        for name, count in zip(BOUNDED, counts, strict=True):
            values = table[name].to_numpy()
            assert count == ((values >= 0.5) if BOUNDED[name] == ">=" else (values <= 0.5)).sum()
        source.close()
        tables.close()
    assert lines[1] <= lines[0] + 50


def test_structure_hit_with_nan_score_passes_no_threshold(tmp_path: Path) -> None:
    pq.write_table(pa.table({name: [np.nan, 1.0] for name in BOUNDED}), tmp_path / "hits.parquet")
    tables = ResultTables({"hits": tmp_path / "hits.parquet"})
    source = tables.source("hits")
    for name in BOUNDED:
        assert source.rows(structure_conditions(StructureFilter(bounds={name: 1.0}))).tolist() == [1]
        assert threshold_columns(source, None).count(name, 1.0) == 1
    source.close()
    tables.close()


def test_is_all_chance_depends_on_e_value_or_probability() -> None:
    def is_chance(e_value: float | None, probability: float | None, n_hits: int = 9) -> bool:
        return StructureSummary("q", n_hits, 1, 1, 100, e_value, probability).is_all_chance

    assert is_chance(3.0, 0.02) and is_chance(1.0, None) and is_chance(None, 0.1)
    assert not is_chance(0.5, 0.02) and not is_chance(30.0, 0.7) and not is_chance(None, None) and not is_chance(3.0, 0.02, 0)
