"""TSV export: equal to the Parquet tables, with documented column names and order."""

import csv
import math
import re
import resource
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.errors import InputError, StorageError
from proteoscope.engine.jobs.progress import Cancelled
from proteoscope.engine.matches.writers.tables import IdentificationTables
from tests.effort import CancelCheckProgress
from tests.engine.identification_tables import Identification, identification, many_psms
from tests.engine.matches.exported import export

COLUMNS = {
    "psms": """
        spectrum_file spectrum_id scan retention_time precursor_mz charge observed_mass calculated_mass mass_error_ppm isotope_error peptide
        sequence proteins missed_cleavages matched_ions total_ions spectral_dot_product hyperscore score delta_score q_value
        posterior_error_probability rank is_decoy""",
    "peptides": "peptide sequence proteins n_psms best_score q_value is_decoy",
    "proteins": "group accessions description n_peptides n_unique_peptides n_psms coverage score q_value is_decoy",
}


@pytest.fixture(scope="module")
def small() -> Identification:
    return identification()


@pytest.fixture(scope="module")
def exported(small, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tsv")
    paths = export(small.write(folder / "results"), "tsv", folder / "exports")
    assert paths == [folder / "exports" / name for name in ("psms.tsv", "peptides.tsv", "proteins.tsv")]
    return folder / "exports"


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.parametrize("table", ["psms", "peptides", "proteins"])
def test_tsv_starts_with_documented_columns(small, exported, table):
    names = COLUMNS[table].split()
    header = (exported / f"{table}.tsv").read_text(encoding="utf-8").splitlines()[0].split("\t")
    assert header[: len(names)] == names
    assert set(header) == set(getattr(small, table).column_names)


@pytest.mark.parametrize("table", ["psms", "peptides", "proteins"])
def test_tsv_cells_match_tables(small, exported, table):
    written, expected = read(exported / f"{table}.tsv"), getattr(small, table).to_pylist()
    assert len(written) == len(expected) > 0
    for line, row in zip(written, expected, strict=True):
        for name, value in row.items():
            _check(line[name], value, name)


def _check(text: str, value: object, name: str) -> None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        assert text == "", name
    elif isinstance(value, bool):
        assert text == ("true" if value else "false")
    elif isinstance(value, float):
        absolute = {"retention_time": 5e-4, "mass_error_ppm": 5e-5, "coverage": 5e-5}.get(name, 5e-7) if abs(value) > 1e-3 else 0
        assert float(text) == pytest.approx(
            value, rel=1e-6 if name.startswith("feature") else 1e-9, abs=absolute if abs(value) > 1e-3 else 0
        )
        assert len(text) <= 20
    elif isinstance(value, list):
        assert text.count(";") == max(0, len(value) - 1)
        for part, item in zip(text.split(";"), value, strict=False):
            _check(part, item, name)
    elif isinstance(value, str):
        assert text == re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", value)
    else:
        assert text == str(value)


def test_duckdb_detects_column_types_of_tsv(small, exported):
    path = exported / "psms.tsv"
    types = dict(duckdb.sql(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM read_csv('{path}', delim = '\t'))").fetchall())
    assert types["is_decoy"] == "BOOLEAN"
    assert types["scan"] == "BIGINT"
    assert types["q_value"] == "DOUBLE"
    row = duckdb.sql(f"SELECT count(*), count(scan), sum(is_decoy::int), max(hyperscore) FROM read_csv('{path}', delim = '\t')").fetchall()[
        0
    ]
    scores = small.psms["hyperscore"].to_pylist()
    assert row[:3] == (len(scores), len(scores) - small.psms["scan"].null_count, sum(small.psms["is_decoy"].to_pylist()))
    assert row[3] == pytest.approx(max(scores), rel=1e-9)


def test_tsv_without_psms_has_headers(tmp_path):
    empty = identification(0)
    export(empty.write(tmp_path), "tsv", tmp_path / "exports")
    assert {path.name: len(path.read_text().splitlines()) for path in (tmp_path / "exports").iterdir()} == {
        "psms.tsv": 1,
        "peptides.tsv": 1,
        "proteins.tsv": 1,
    }


def test_tsv_is_identical_for_tables_in_memory_and_files(small, exported, tmp_path):
    folder = tmp_path / "it's [a] *folder*? ä%"
    export(small.write(folder), "tsv", folder / "out")
    export(IdentificationTables(small.psms, small.peptides, small.proteins), "tsv", tmp_path / "memory")
    for name in ("psms.tsv", "peptides.tsv", "proteins.tsv"):
        assert (folder / "out" / name).read_bytes() == (tmp_path / "memory" / name).read_bytes() == (exported / name).read_bytes()


def test_tsv_export_rejects_invalid_tables(small, tmp_path):
    with pytest.raises(InputError, match=r"psms\.parquet: does not exist"):
        export(tmp_path, "tsv", tmp_path / "out")
    small.write(tmp_path)
    pq.write_table(small.psms.drop_columns(["hyperscore"]), tmp_path / "psms.parquet")
    with pytest.raises(InputError, match="has no column hyperscore"):
        export(tmp_path, "tsv", tmp_path / "out")
    (tmp_path / "psms.parquet").write_bytes(b"garbage")
    with pytest.raises(InputError, match="cannot be read as a table"):
        export(tmp_path, "tsv", tmp_path / "out")
    assert list((tmp_path / "out").glob("*")) == []


def test_failed_tsv_export_leaves_existing_file_unchanged(small, tmp_path):
    script = (
        "import resource, sys; from pathlib import Path; from tests.engine.matches.exported import export\n"
        "from proteoscope.engine.errors import StorageError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "try: export(Path(sys.argv[1]), 'tsv', Path(sys.argv[2]))\n"
        "except StorageError as error: print(error)"
    )
    small.write(tmp_path / "in")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "psms.tsv").write_text("old")
    done = subprocess.run(
        [sys.executable, "-B", "-c", script, tmp_path / "in", tmp_path / "out"],  # bytecode would be cut off too
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert "psms.tsv: the file grew beyond the limit" in done.stdout, done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["psms.tsv"]
    assert (tmp_path / "out" / "psms.tsv").read_text() == "old"
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="a file"):
        export(tmp_path / "in", "tsv", tmp_path / "file")


def test_tsv_export_writes_all_of_22690_psms(small, tmp_path):
    tables = IdentificationTables(many_psms(small, 22_690), small.peptides, small.proteins)
    export(tables, "tsv", tmp_path)
    assert len((tmp_path / "psms.tsv").read_bytes().splitlines()) == 22_691


def test_tsv_export_has_bounded_memory_and_fast_cancel(small, tmp_path):
    large = many_psms(small, 300_000)
    small.write(tmp_path)
    pq.write_table(large, tmp_path / "psms.parquet", row_group_size=1 << 17)
    del large
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    whole, cancelled = CancelCheckProgress(), CancelCheckProgress(6)
    export(tmp_path, "tsv", tmp_path / "out", progress=whole)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert (tmp_path / "out" / "psms.tsv").stat().st_size > 100e6
    assert grown < 500_000, "kilobytes"

    (tmp_path / "out" / "psms.tsv").unlink()
    assert whole.n_checks >= 300_000 / 10_000
    with pytest.raises(Cancelled):
        export(tmp_path, "tsv", tmp_path / "out", progress=cancelled)
    assert cancelled.n_checks_after_cancel == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["peptides.tsv", "proteins.tsv"]


FORMULAS = ["=1+1", "+cmd|' /C calc'!A1", "-2+3", "@SUM(A1)", " =1", "\t=1", '=HYPERLINK("http://x")', "＝1"]
HARMLESS = ["sp|P1|ONE", "a=b", "x-1", "", '"=1"', "[Acetyl]-PEPTIDE"]


@pytest.fixture(scope="module")
def with_formulas(small) -> IdentificationTables:
    """Return the small identification with texts that a spreadsheet would interpret as formulas."""
    texts = (FORMULAS + HARMLESS)[: small.psms.num_rows]
    assert len(texts) == len(FORMULAS + HARMLESS)
    psms = small.psms.slice(0, len(texts))
    for name, column in (("spectrum_id", pa.array(texts)), ("proteins", pa.array([[text, "=2"] for text in texts]))):
        psms = psms.set_column(psms.column_names.index(name), name, column)
    mass_errors = pa.array([-1.5] * len(texts))
    psms = psms.set_column(psms.column_names.index("mass_error_ppm"), "mass_error_ppm", mass_errors)
    return IdentificationTables(psms, small.peptides, small.proteins)


def test_spreadsheet_safe_tsv_contains_no_formulas(with_formulas, tmp_path):
    texts = FORMULAS + HARMLESS
    export(with_formulas, "tsv", tmp_path / "safe", spreadsheet_safe=True)
    written = read(tmp_path / "safe" / "psms.tsv")
    expected = ["'" + text.replace("\t", " ") for text in FORMULAS] + HARMLESS
    assert [line["spectrum_id"] for line in written] == expected
    # The second item of a list is not at the beginning of the cell.
    assert [line["proteins"] for line in written] == [f"{text};=2" for text in expected]
    assert {line["mass_error_ppm"] for line in written} == {"-1.5000"}
    assert len(written) == len(texts)


def test_tsv_texts_are_unchanged_unless_spreadsheet_safe(with_formulas, tmp_path):
    export(with_formulas, "tsv", tmp_path / "plain")
    assert [line["spectrum_id"] for line in read(tmp_path / "plain" / "psms.tsv")] == [
        text.replace("\t", " ") for text in FORMULAS + HARMLESS
    ]
