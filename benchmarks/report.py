"""HTML page of measurements: published figures next to ours, false shares, and every benchmark's newest rows.

    python -m benchmarks.report --out FILE.html [--rows 40]

Nothing is measured: the page is built only from `results/*.jsonl`, and shows for each figure its date, its GPU or CPU, and the command that
measured it (as in the first lines of its module). Published figures are in `published.toml`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.entrapment_tables import print_tables
from proteoscope.engine.files import atomic_file
from proteoscope.engine.views.html_pages import html_page, rows_table, section, shown

__all__ = ["Benchmark", "Published", "benchmarks", "published_figures", "report"]

HERE = Path(__file__).parent
RESULTS = HERE / "results"
_EXAMINATIONS = ("entrapment", "entrapment_paired", "entrapment_foreign", "entrapment_variants")
"""Whose rows are counts of thousands of searches, and are shown as the tables that are made of them."""
_MODULE_OF = {**dict.fromkeys(_EXAMINATIONS, "entrapment"), "structures_at_scale": "structures_at_scale"}
_FIRST = ("date", "figure", "part", "workload", "what", "device", "card", "machine", "processor")
_MOST_CHARACTERS = 120
_TITLE = "Proteoscope: what was measured"


@dataclass(frozen=True)
class Published:
    """A figure of a paper or a peer, with ours; `value` may be None."""

    what: str
    source: str
    by: str
    value: float | None
    unit: str
    higher_is_better: bool
    ours: float
    date: str
    device: str
    file: str

    @property
    def ratio(self) -> float | None:
        """Ratio by which ours is better."""
        if self.value is None:
            return None
        return self.ours / self.value if self.higher_is_better else self.value / self.ours


@dataclass(frozen=True)
class Benchmark:
    """A file of results: `name`, subject, commands, and rows, oldest first."""

    name: str
    title: str
    commands: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]


def read_rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a file of results."""
    return [json.loads(line) for line in (RESULTS / f"{name}.jsonl").read_text().splitlines() if line.strip()]


def published_figures() -> list[Published]:
    """Return published figures, each with the newest row of ours to compare.

    Raises
    ------
    LookupError
        If no row matches a published figure.
    """
    figures = []
    for entry in tomllib.loads((HERE / "published.toml").read_text())["figure"]:
        rows = [row for row in read_rows(entry["file"]) if all(row.get(name) == value for name, value in entry["where"].items())]
        rows = [row for row in rows if isinstance(row.get(entry["field"]), int | float)]
        if not rows:
            raise LookupError(f"{entry['what']}: no row of {entry['file']}.jsonl has {entry['where']} and {entry['field']}")
        row = rows[-1]
        figures.append(
            Published(
                entry["what"],
                entry["source"],
                entry["by"],
                entry.get("published"),
                entry["unit"],
                entry["higher_is_better"],
                float(row[entry["field"]]),
                str(row.get("date", "")),
                _device(row),
                entry["file"],
            )
        )
    return figures


def benchmarks() -> list[Benchmark]:
    """Return every file of results, by name, with the description of the module that measured it."""
    figures = []
    for path in sorted(RESULTS.glob("*.jsonl")):
        module = HERE / f"{_MODULE_OF.get(path.stem, path.stem)}.py"
        text = ast.get_docstring(ast.parse(module.read_text())) or ""
        commands = tuple(line.strip() for line in text.splitlines() if line.startswith("    ") and "python -m benchmarks" in line)
        figures.append(Benchmark(path.stem, text.split("\n", 1)[0], commands, tuple(read_rows(path.stem))))
    return figures


def report(most_rows: int) -> str:
    """Return the page with at most `most_rows` newest rows of each benchmark."""
    parts = [
        "<h1>Proteoscope: what was measured</h1>",
        section("Published figures, and the best of today, next to ours", _published_table()),
    ]
    for entry in benchmarks():
        commands = "".join(f"<pre>{shown(command, 300)}</pre>" for command in entry.commands)
        content = _examination_text(entry.rows) if entry.name in _EXAMINATIONS else _rows(entry.rows, most_rows)
        parts.append(section(f"{entry.name}: {entry.title}", f"{commands}{content}"))
    return html_page(_TITLE, parts)


def _published_table() -> str:
    head = ("what", "source", "on", "published", "ours", "times better", "ours on", "measured", "command of")
    rows = [
        (
            figure.what,
            figure.source,
            figure.by,
            "" if figure.value is None else f"{figure.value:,.4g} {figure.unit}",
            f"{figure.ours:,.4g} {figure.unit}",
            "" if figure.ratio is None else f"{figure.ratio:,.3g}",
            figure.device,
            figure.date,
            figure.file,
        )
        for figure in published_figures()
    ]
    return rows_table(head, rows)


def _examination_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the text that an examination prints of its rows."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print_tables(list(rows))
    return f"<pre>{shown(text.getvalue(), 200_000)}</pre>"


def _rows(rows: Sequence[Mapping[str, Any]], most: int) -> str:
    """Return the newest rows, those with the same columns in one table."""
    tables, shown = dict[tuple[str, ...], list[Mapping[str, Any]]](), rows[-most:]
    for row in shown:
        names = tuple(name for name in _FIRST if name in row) + tuple(name for name in row if name not in _FIRST)
        tables.setdefault(names, []).append(row)
    html = ""
    for names, some in tables.items():
        cells = [[_cell(row[name]) for name in names] for row in some]
        html += f'<div class="wide">{rows_table([name.replace("_", " ") for name in names], cells)}</div>'
    more = f"<p>The newest {len(shown)} of {len(rows):,} rows.</p>" if len(shown) < len(rows) else ""
    return more + html


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_cell(part)}" for name, part in value.items())[:_MOST_CHARACTERS]
    if isinstance(value, list):
        return ", ".join(map(_cell, value))[:_MOST_CHARACTERS]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _device(row: Mapping[str, Any]) -> str:
    return str(row.get("device_description") or row.get("card") or row.get("device") or row.get("machine") or row.get("processor") or "")


def main(words: Sequence[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--out", type=Path, required=True, help="the page")
    parser.add_argument("--rows", type=int, default=40, help="of each benchmark, the newest")
    options = parser.parse_args(words)
    with atomic_file(options.out) as file:
        file.write(report(options.rows).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
