"""Tables of tab-separated values: one header line, one line a row.

Lists are joined by semicolons, truths are ``true`` and ``false``, a missing value is empty. A text that holds a double quote stands in
double quotes, with those inside doubled (RFC 4180); tabs and line breaks within texts become spaces.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import InputError
from engine.files import atomic_file
from engine.formats.spreadsheet import FORMULA
from engine.jobs.progress import Progress
from engine.matches.writers.tables import columns, identifier, scalar, write_lines

if TYPE_CHECKING:
    import duckdb

__all__ = ["COLUMNS", "write_table"]

COLUMNS: dict[str, tuple[str, ...]] = {
    "psms": (
        *("spectrum_file", "spectrum_id", "scan", "retention_time", "precursor_mz", "charge", "observed_mass", "calculated_mass"),
        *("mass_error_ppm", "isotope_error", "peptide", "sequence", "proteins", "missed_cleavages", "matched_ions", "total_ions"),
        *("spectral_dot_product", "hyperscore", "score", "delta_score", "q_value", "posterior_error_probability", "rank", "is_decoy"),
    ),
    "peptides": ("peptide", "sequence", "proteins", "n_psms", "best_score", "q_value", "is_decoy"),
    "proteins": (
        *("group", "accessions", "description", "n_peptides", "n_unique_peptides", "n_psms", "coverage", "score", "q_value", "is_decoy"),
    ),
}
"""Columns of each table and their order, which others rely on. Further columns of the table follow them."""

_FIXED = {"retention_time": 3, "mass_error_ppm": 4, "coverage": 4, "precursor_mz": 6, "observed_mass": 6, "calculated_mass": 6}
"""Decimals: a microdalton is a tenth of the best instruments' error, a millisecond far below a scan's time."""

_SIGNIFICANT_DOUBLE, _SIGNIFICANT_SINGLE = 10, 7
"""Digits of other numbers: what a float32 holds; and for float64 enough that scores that differ are written differently."""


def write_table(
    connection: duckdb.DuckDBPyConnection, table: str, out: Path, progress: Progress | None = None, *, spreadsheet_safe: bool = False
) -> None:
    """Write ``psms``, ``peptides`` or ``proteins`` of a `tables.database` connection to the file `out`.

    `spreadsheet_safe`: texts are written as `no_formula` makes them; numbers stay as they are.

    Raises
    ------
    InputError : the table lacks a column.
    StorageError : the disk refused.
    """
    present = columns(connection, table)
    missing = [name for name in COLUMNS[table] if name not in present]
    if missing:
        raise InputError(f"{table}.parquet", f"lacks the columns {', '.join(missing)}", remedy="Run the identification again")
    names = [*COLUMNS[table], *(name for name in present if name not in COLUMNS[table])]
    if progress is not None:
        progress.stage(f"writing {out.name}", scalar(connection, f"SELECT count(*) FROM {table}"))
    cells = ", ".join(
        _no_formula(_cell(name, present[name])) if spreadsheet_safe and present[name].startswith("VARCHAR") else _cell(name, present[name])
        for name in names
    )
    with atomic_file(out) as file:
        file.write(("\t".join(names) + "\n").encode())
        write_lines(connection, f"SELECT concat_ws(chr(9), {cells}) || chr(10) FROM {table}", file, progress)


def _cell(name: str, kind: str) -> str:
    """SQL for a column's text, never NULL."""
    return f"coalesce({_text(identifier(name), name, kind)}, '')"


def _text(value: str, name: str, kind: str) -> str:
    if kind.endswith("[]"):
        inner = _text("item", name, kind.removesuffix("[]"))
        joined = f"array_to_string([coalesce({inner}, '') FOR item IN {value}], ';')"
        return _quoted(joined) if kind == "VARCHAR[]" else joined
    if kind == "VARCHAR":
        plain = f"translate({value}, chr(9) || chr(10) || chr(13), '   ')"
        return plain if value == "item" else _quoted(plain)
    if kind in ("DOUBLE", "FLOAT"):
        digits = _SIGNIFICANT_DOUBLE if kind == "DOUBLE" else _SIGNIFICANT_SINGLE
        pattern = f"{{:.{_FIXED[name]}f}}" if name in _FIXED else f"{{:.{digits}g}}"
        # Asked of the text: Parquet's bounds of a column leave out not-a-number, and DuckDB takes them for proof that it holds none.
        return f"nullif(nullif(format('{pattern}', {value}), 'nan'), '-nan')"
    return f"CAST({value} AS VARCHAR)"


def _quoted(text: str) -> str:
    return f"""CASE WHEN contains({text}, '"') THEN '"' || replace({text}, '"', '""') || '"' ELSE {text} END"""


def _no_formula(cell: str) -> str:
    """SQL for `no_formula` of a cell; a text that stands in double quotes gets the apostrophe within them."""
    return f"""regexp_replace({cell}, '^("?)({FORMULA})', '\\1''\\2')"""
