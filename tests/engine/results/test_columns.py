"""Every column is described once, and every writer of a table writes all of its columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.formats.protein_names import NAMES
from proteoscope.engine.matches.columns import EXPORTED_PSMS, KNOWN_PLACES, MATCH_CLASS, PEPTIDES, PROTEINS, PSMS, SHIFTED_PSMS
from proteoscope.engine.modified_search.tables import MODIFICATIONS
from proteoscope.engine.results.columns import Column, Table, arrow_type
from proteoscope.engine.searches import SEARCHES, search_of_kind
from proteoscope.engine.sequences.hits import Hits, hits_schema
from proteoscope.engine.structure_search.tables import HITS
from proteoscope.engine.structures.outputs import ROW_COLUMNS
from tests.fuzz.result_tables import KINDS, make

each = pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)

OF_LISTS = {
    "align": {"hits", "queries", "score_counts", "score_expectations"},
    "structures": {"hits", "queries"},
    "reads": {"alignments", "patterns", "texts"},
}
"""Searches run by these tests; tables of other searches are checked in their own tests."""
OPTIONAL_TABLES = {"clusters", "features"}
"""Tables that only some runs have: clusters of all chains, and features of databases with more than sequences."""


@each
def test_result_tables_have_distinct_described_columns(search):
    for table in search.all_tables:
        names = [column.name for column in table.stored]
        assert len(set(names)) == len(names)
        assert {*table.links, *table.saved, *(column.name for column in table.columns)} <= set(names)
        assert all(column is table.by_name[column.name] for column in table.columns), "each column is described once"
        assert all(column.meaning for column in table.stored), table.name
        assert {column.as_long_as for column in table.stored} - {""} <= set(names)
        assert {name for rule in table.rules for name in rule.columns} <= set(names)
        assert {column.rows_of for column in table.stored} - {""} <= {all_table.name for all_table in search.all_tables}
        assert table.schema().names == names


@pytest.mark.parametrize("table", [PSMS, PEPTIDES, PROTEINS, MODIFICATIONS, HITS], ids=lambda table: table.name)
def test_table_writer_rejects_missing_and_undescribed_columns(table: Table):
    whole = {name: pa.array([], arrow_type(column.type_name)) for name, column in table.by_name.items()}
    assert table.arrow(whole).schema == table.schema()
    for name in whole:
        with pytest.raises(KeyError, match=name):
            table.arrow({other: column for other, column in whole.items() if other != name})
    with pytest.raises(KeyError, match="unexpected"):
        table.arrow({**whole, "unexpected": pa.array([])})


@pytest.mark.parametrize("kind", OF_LISTS)
def test_runs_write_described_columns_and_types(kind: str, tmp_path: Path):
    assert kind in KINDS
    project = make(kind, tmp_path / "project")
    described = {all_table.name: all_table for all_table in search_of_kind(kind).all_tables}
    run = project.latest(kind)
    written = {result.name for result in project.results(run) if result.path.suffix == ".parquet"}
    assert written == OF_LISTS[kind] == described.keys() - OPTIONAL_TABLES
    for name in written:
        assert pq.read_schema(project.table(name, run)).remove_metadata() == described[name].schema()


def test_tables_of_hits_and_psms_have_the_described_columns():
    computed = {column.name for column in NAMES}
    assert list(Hits.__dataclass_fields__) == [name for name in hits_schema().names if name not in computed]
    assert HITS.saved == (*ROW_COLUMNS, *(column.name for column in NAMES))
    assert EXPORTED_PSMS.saved == SHIFTED_PSMS.saved == PSMS.saved
    always = [column.name for column in PSMS.stored if column not in (KNOWN_PLACES, MATCH_CLASS)]
    assert [column.name for column in SHIFTED_PSMS.stored][: len(always)] == always


def test_list_columns_of_fixed_length_are_built_from_array_rows():
    table = Table.from_columns("t", "T", (Column("turn", type="double[9]", kind="numbers"),))
    made = table.arrow({"turn": np.arange(18.0).reshape(2, 9)})
    assert made["turn"].to_pylist() == [list(np.arange(9.0)), list(np.arange(9.0, 18.0))]


def test_psm_score_columns_retain_their_order():
    stored, shown = " ".join(PSMS.by_name), " ".join(column.name for column in PSMS.columns)
    assert "total_ions spectral_dot_product hyperscore score" in stored
    assert "search_score xcorr ksdp expectation" in stored
    assert "delta_score hyperscore xcorr spectral_dot_product ksdp observed_mass" in shown
