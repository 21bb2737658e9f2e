"""Runs of former versions: a hit's rotation as a text is read as nine numbers, and what they did not know stays empty."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from proteoscope.engine.command_line.main import main
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.structure_search.tables import HITS
from tests.fuzz.result_tables import make


def with_hits(project: Project, table: pa.Table) -> Project:
    """The project with another table of hits, registered as its own."""
    path = project.table("hits")
    pq.write_table(table, path)
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection, connection:
        digest = file_digest(path), path.stat().st_size
        connection.execute("UPDATE results SET sha256 = ?, bytes = ? WHERE name = 'hits'", digest)
    return Project.open(project.folder)


def test_a_rotation_that_is_a_text_is_read_as_the_numbers_in_it(tmp_path: Path) -> None:
    project = make("structures", tmp_path / "project")
    path = project.table("hits")
    exported = [tmp_path / "now.tsv", tmp_path / "former.tsv"]
    assert main(["export", str(project.folder), "--format", "tsv", "--out", str(exported[0])]) == 0
    table = pq.read_table(path)
    assert len(table) > 5 and table.schema.field("rotation").type == pa.list_(pa.float64(), 9)
    texts = [",".join(f"{one:.7f}" for one in row) for row in table["rotation"].to_pylist()]
    former = table.set_column(table.schema.get_field_index("rotation"), "rotation", pa.array(texts))
    project = with_hits(project, former)
    assert read_stored(project, project.latest("structures"), HITS, ("rotation",))["rotation"].to_pylist() == table["rotation"].to_pylist()
    assert main(["export", str(project.folder), "--format", "tsv", "--out", str(exported[1])]) == 0
    assert exported[0].read_bytes() == exported[1].read_bytes()


def test_hits_without_e_values_and_probabilities_are_exported_with_empty_cells(tmp_path: Path) -> None:
    project = make("structures", tmp_path / "project")
    table = pq.read_table(project.table("hits"))
    project = with_hits(project, table.drop_columns(["e_value", "same_fold_probability"]))
    assert main(["export", str(project.folder), "--format", "tsv", "--out", str(tmp_path / "hits.tsv")]) == 0
    header, *lines = [line.split("\t") for line in (tmp_path / "hits.tsv").read_text().splitlines()]
    assert tuple(header) == HITS.saved and len(lines) == len(table)
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    assert {(row["e_value"], row["same_fold_probability"]) for row in rows} == {("", "")}
    assert [row["target"] for row in rows] == table["target"].to_pylist()
