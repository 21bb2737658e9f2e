"""Untrusted tables: column names are never executed, and queries cannot access files outside the tables."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.errors import InputError, ProteoscopeError
from proteoscope.engine.matches.writers.tables import IdentificationTables, database
from tests.engine.identification_tables import PARAMETERS, identification
from tests.engine.matches.exported import FORMATS, OF_GENOMES, export


@pytest.fixture(scope="module")
def small():
    return identification()


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret.txt"
    path.write_text("confidential content")
    return path


def evil_names(secret, out):
    read = f"(SELECT content FROM read_text('{secret}'))"
    return [
        f"""a" || {read} || \"""",
        f"""a", {read} AS "b""",
        f"""feature_a" || {read} || \"""",
        f"""feature_a"; COPY (SELECT 1) TO '{out}'; SELECT \"""",
        f"""feature_a" AS DOUBLE)) FROM psms; COPY (SELECT 1) TO '{out}'; --""",
        'quote " inside',
        "feature_UPPER",
        "",
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_column_names_are_not_executed_as_sql(small, tmp_path, secret, format):
    written = tmp_path / "written.csv"
    folder = small.write(tmp_path / "results", is_translated=format in OF_GENOMES)
    clean = tmp_path / "clean"
    export(folder, format, clean, PARAMETERS)
    for name in ("psms", "peptides", "proteins"):
        table = pq.read_table(folder / f"{name}.parquet")
        for column in evil_names(secret, written):
            table = table.append_column(column, pa.array([1.5] * len(table)))
        pq.write_table(table, folder / f"{name}.parquet")
    target = tmp_path / "exported"
    export(folder, format, target, PARAMETERS)
    assert not written.exists()
    for exported, expected_file in [(target, clean)] if clean.is_file() else [(target / path.name, path) for path in clean.iterdir()]:
        # Dates and file names may differ.
        lines = [
            [line for line in path.read_text(encoding="utf-8").splitlines() if "Date=" not in line and " date=" not in line]
            for path in (exported, expected_file)
        ]
        assert lines[0] == lines[1]
        assert "confidential" not in exported.read_text(encoding="utf-8")


def test_in_memory_column_names_are_not_executed_as_sql(small, tmp_path, secret):
    names = [name for name in evil_names(secret, tmp_path / "written.csv") if name]
    psms = small.psms
    for name in names:
        psms = psms.append_column(name, pa.array([1.5] * len(psms)))
    export(IdentificationTables(psms, small.peptides, small.proteins), "tsv", tmp_path)
    header, first = (tmp_path / "psms.tsv").read_text(encoding="utf-8").splitlines()[:2]
    assert header.split("\t")[-len(names) :] == names
    assert first.split("\t")[-len(names) :] == ["1.5"] * len(names)
    assert not (tmp_path / "written.csv").exists()


@pytest.mark.parametrize("of_files", [True, False])
def test_table_queries_cannot_access_other_files(small, tmp_path, secret, of_files):
    folder = small.write(tmp_path / "results [x]? *'")
    pq.write_table(small.psms, folder / "psmss.parquet")
    tables = IdentificationTables.from_folder(folder) if of_files else IdentificationTables(small.psms, small.peptides, small.proteins)
    out = tmp_path / "out.csv"
    refused = [
        f"SELECT * FROM read_text('{secret}')",
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM read_parquet('{tmp_path}/*/psmss.parquet')",
        f"COPY (SELECT 1) TO '{out}'",
        f"ATTACH '{tmp_path / 'other.duckdb'}'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM small",
    ]
    with database(tables) as connection:
        assert connection.execute("SELECT count(*) FROM psms").fetchall() == [(len(small.psms),)]
        for query in refused:
            with pytest.raises(duckdb.Error):
                connection.execute(query).fetchall()
        assert connection.execute("SELECT count(*) FROM psms JOIN peptides USING (peptide)").fetchall()[0][0] > 0
    assert not out.exists()


def test_table_query_larger_than_memory_spills_to_disk(small, tmp_path, monkeypatch):
    monkeypatch.setattr("proteoscope.engine.matches.writers.tables._MEMORY", "60MB")
    folder = small.write(tmp_path / "results")
    n = 1_000_000
    pq.write_table(pa.table({"peptide": [f"P{(i * 7919) % n:012d}" * 4 for i in range(n)]}), folder / "peptides.parquet")
    with database(IdentificationTables.from_folder(folder)) as connection:
        rows = connection.execute("SELECT peptide FROM peptides ORDER BY peptide").fetchmany(2)
    assert rows == [("P000000000000" * 4,), ("P000000000001" * 4,)]


def test_exhausted_memory_of_a_query_is_not_an_input_error(small, tmp_path, monkeypatch):
    monkeypatch.setattr("proteoscope.engine.matches.writers.tables._MEMORY", "1MB")
    folder = small.write(tmp_path / "results")
    pq.write_table(pa.table({"peptide": [f"P{i:099d}" for i in range(300_000)]}), folder / "peptides.parquet")
    with pytest.raises(ProteoscopeError, match="memory") as error, database(IdentificationTables.from_folder(folder)) as connection:
        connection.execute("SELECT list(peptide ORDER BY peptide DESC) FROM peptides").fetchall()
    assert not isinstance(error.value, InputError)
    assert "cannot be read" not in str(error.value)


def test_export_rejects_table_without_required_column(small, tmp_path):
    folder = small.write(tmp_path / "results")
    pq.write_table(pa.table({"unexpected": [1]}), folder / "peptides.parquet")
    with pytest.raises(InputError, match="has no column peptide"):
        export(folder, "tsv", tmp_path / "out")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("value", [None, float("nan")])
def test_export_rejects_psms_without_precursor_mz(small, tmp_path, format, value):
    folder = small.write(tmp_path / "results", is_translated=format in OF_GENOMES)
    at = small.psms.column_names.index("precursor_mz")
    precursor_mz = pa.array([value, *small.psms["precursor_mz"].to_pylist()[1:]], pa.float64())
    pq.write_table(small.psms.set_column(at, "precursor_mz", precursor_mz), folder / "psms.parquet")
    with pytest.raises(InputError, match=r"psms\.parquet, column precursor_mz: contains "):
        export(folder, format, tmp_path / "exported", PARAMETERS)
