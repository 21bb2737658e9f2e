"""Tables of a quantification with impossible content, whose digests agree: exports end with one message, or write valid files."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError, ProteoscopeError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.searches import search_of_kind
from tests.engine.quantification.synthetic_sites import localised_project, quantify_sites

FILES = {"tsv": "tables", "matrix": "matrix", "msstats": "rows.tsv", "msstats-ptm": "ptm", "mztab": "q.mzTab"}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Write a project with a quantification of sites, and return its folder and the id of the run."""
    path, _ = localised_project(tmp_path_factory.mktemp("untrusted"))
    return path, quantify_sites(path).run_id


def changed(good: tuple[Path, str], folder: Path, table: str, change: Callable[[Path], Any]) -> Project:
    """Return a copy of the project in which a table of the run is changed, with the digest of the new file."""
    shutil.copytree(good[0], folder)
    path = Path(Project.open(folder).table(table, good[1]))
    change(path)
    if path.exists():
        with closing(sqlite3.connect(folder / "project.sqlite")) as database, database:
            values = file_digest(path), path.stat().st_size, table, good[1]
            assert database.execute("UPDATE results SET sha256 = ?, bytes = ? WHERE name = ? AND run = ?", values).rowcount == 1
    return Project.open(folder)


def with_column(name: str, value: Any, *, is_everywhere: bool = False) -> Callable[[Path], None]:
    """Return a function that sets the values of a column, or the value in the middle row."""

    def change(path: Path) -> None:
        table = pq.read_table(path)
        values = table[name].to_pylist()
        for row in range(len(values)) if is_everywhere else [len(values) // 2]:
            values[row] = value
        at = table.schema.get_field_index(name)
        pq.write_table(table.set_column(at, name, pa.array(values, table.schema.field(at).type)), path)

    return change


def export(project: Project, run: str, name: str, folder: Path) -> list[Path]:
    return search_of_kind("quantify").export(project, ExportRequest(run, name, folder / FILES[name]), Progress())


@pytest.mark.parametrize(
    ("table", "column", "value", "format", "message"),
    [
        ("peptide_quantities", "quantity", float("inf"), "tsv", "column quantity: contains an infinite number"),
        ("peptide_quantities", "quantity", -1.0, "matrix", "column quantity: contains numbers outside 0"),
        ("peptide_quantities", "log2_quantity", float("-inf"), "tsv", "column log2_quantity: contains numbers outside"),
        ("ion_traces", "begin", float("inf"), "tsv", "column begin: contains numbers outside"),
        ("ion_traces", "area", float("inf"), "msstats", "column area: contains an infinite number"),
        ("ion_traces", "file", "other.mzML", "msstats", "is not consistent with the other tables"),
        ("ion_traces", "file", "other.mzML", "msstats-ptm", "is not consistent with the other tables"),
        ("quantified_samples", "parts", [], "mztab", "column parts: contains a sample without files"),
        ("quantified_samples", "sample", "control_1", "mztab", "does not contain every sample"),
        ("site_peptidoforms", "site_probability", float("nan"), "msstats-ptm", "contains a value that is not a number"),
    ],
)
def test_export_names_the_table_with_an_impossible_value(table, column, value, format, message, good, tmp_path):
    project = changed(good, tmp_path / "project", table, with_column(column, value, is_everywhere=column == "sample"))
    with pytest.raises(InputError, match=message) as caught:
        export(project, good[1], format, tmp_path)
    text = str(caught.value)
    assert "\n" not in text and ".parquet" in text and text.endswith(("Do the search again.", "Quantify again."))
    assert not list(tmp_path.glob("**/*.tmp")) and not (tmp_path / FILES[format]).is_file()


@pytest.mark.parametrize("format", FILES)
def test_exports_treat_quantities_that_are_no_numbers_as_missing(format, good, tmp_path):
    with_nan, with_null = (
        changed(good, tmp_path / name, "peptidoform_quantities", with_column("quantity", value))
        for name, value in (("nan", float("nan")), ("null", None))
    )
    written = [export(project, good[1], format, tmp_path / f"{project.folder.name}-out") for project in (with_nan, with_null)]
    assert [path.read_bytes() for path in written[0]] == [path.read_bytes() for path in written[1]]


@pytest.mark.parametrize("table", ["protein_quantities", "peptidoform_quantities", "ion_traces", "quantified_samples", "site_peptidoforms"])
@pytest.mark.parametrize("change", ["cut", "gone", "other table", "no rows"])
def test_exports_end_with_one_message_if_a_table_is_not_itself(change, table, good, tmp_path):
    other = Project.open(good[0]).table("missing_values", good[1])
    changes: dict[str, Callable[[Path], Any]] = {
        "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        "gone": Path.unlink,
        "other table": lambda path: shutil.copyfile(other, path),
        "no rows": lambda path: pq.write_table(pq.read_table(path).slice(0, 0), path),
    }
    project, messages = changed(good, tmp_path / "project", table, changes[change]), list[str]()
    for format in FILES:
        try:
            export(project, good[1], format, tmp_path)
        except ProteoscopeError as error:
            messages.append(str(error))
    assert messages or change == "no rows"
    assert not [message for message in messages if "\n" in message or len(message) > 600]
