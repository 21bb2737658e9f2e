"""Pages of an evidence run: one HTML page and one PDF page per protein, and an index.

Pages show coverage, structure, similar chains, sites, uncovered residues and contacts.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from proteoscope.engine.evidence.tables import CHAINS, CONTACTS, HOMOLOGUES, MISSED, PARALOGUES, PEPTIDE_PLACES, SITES
from proteoscope.engine.files import atomic_file, storage_errors
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.row_numbers import ProteinRow, row_range
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.shared_names import without_folders
from proteoscope.engine.views.drawings import Drawing, format_colour, svg
from proteoscope.engine.views.evidence import ProteinEvidence, protein_evidence, read_shown_structure, refers_to_protein
from proteoscope.engine.views.evidence_drawings import draw_fold, draw_protein
from proteoscope.engine.views.finished_run import FinishedRun, open_run
from proteoscope.engine.views.html_pages import html_page, result_rows, scrolled_table, section, shown
from proteoscope.engine.views.pdf_pages import PdfPages
from proteoscope.engine.views.run_account import run_account
from proteoscope.engine.views.tables import TableSource

__all__ = ["MAXIMUM_PAGES", "write_pages"]

MAXIMUM_PAGES = 1000
"""Maximum number of proteins with pages; the tables contain all proteins."""
_MAXIMUM_ROWS, _MAXIMUM_PRINTED = 300, 60
_SHOWN = (CHAINS, SITES, MISSED, CONTACTS, PARALOGUES, PEPTIDE_PLACES, HOMOLOGUES)
_ROW_RESIDUES, _GROUP = 60, 10
_MAXIMUM_NAME = 40
_INDEX = "index.html"
_KINDS = (("#8a8a8a", False), (format_colour("target"), True), (format_colour("mark"), True))
"""Colours of uncovered, covered and modified residues, each with True for bold."""


@dataclass(frozen=True)
class _Section:
    """Section of a page: the first rows of a protein in a table."""

    table: Table
    columns: list[Column]
    values: list[dict[str, Any]]
    n_rows: int


@dataclass(frozen=True)
class _Page:
    """Content of the page of a protein, for HTML and PDF."""

    protein: ProteinEvidence
    notes: list[str]
    figures: list[Drawing]
    sections: list[_Section]
    methods: str

    @property
    def kinds(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Index into `_KINDS` for each residue, shape (r,)."""
        return np.where(self.protein.is_modified, 2, self.protein.coverage.covered.astype(np.int64))


def write_pages(project: Project, run_id: str, folder: Path, progress: Progress) -> list[Path]:
    """Write an HTML and a PDF page for each protein of a finished run, and ``index.html``, into a folder; return the paths.

    Raises
    ------
    InputError, StorageError
        If the run's tables are missing or damaged, or writing failed.
    Cancelled
        If the user cancelled.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    written = []
    with open_run(project, run_id) as run:
        account = run_account(project, run.run, search_of_kind(run.run.kind))
        source = run.tables.source("proteins")
        shown_tables = {table: source.sibling(table.name) for table in _SHOWN}
        n = source.total
        progress.stage("Writing pages", min(n, MAXIMUM_PAGES))
        names = []
        for row in row_range(ProteinRow, min(n, MAXIMUM_PAGES)):
            progress.check()
            page = _read_page(run, source, shown_tables, row, account.methods)
            name = f"{row + 1:04d}_{re.sub('[^A-Za-z0-9]', '_', page.protein.accession)[:_MAXIMUM_NAME]}"
            names.append((name, page.protein))
            written.append(_write(folder / f"{name}.html", _html(page, f"{name}.pdf").encode(errors="replace")))
            written.append(_write(folder / f"{name}.pdf", _pdf(page, account.title)))
            progress.advance(1)
        reported = f"{n:,} proteins" + (f", the first {MAXIMUM_PAGES:,} of them" if n > MAXIMUM_PAGES else "")
        rows = [
            f'<tr><td><a href="{name}.html">{shown(protein.accession)}</a></td><td><a href="{name}.pdf">PDF</a></td>'
            f'<td class="n">{protein.coverage.fraction * 100:.1f} %</td>'
            f'<td class="n">{int(protein.is_modified.sum()):,}</td><td>{shown(protein.chains[0].name) if protein.chains else "none"}</td>'
            f"<td>{shown(protein.coverage.description)}</td></tr>"
            for name, protein in names
        ]
        head = "<tr><th>Protein</th><th></th><th>Coverage</th><th>Modified residues</th><th>Nearest chain</th><th>Description</th></tr>"
        parts = [f"<h1>{shown(account.title)}</h1><p>{reported}</p>", scrolled_table(head + "".join(rows)), _methods(account.methods)]
        written.append(_write(folder / _INDEX, html_page(account.title, parts).encode(errors="replace")))
    return written


def _write(path: Path, content: bytes) -> Path:
    with atomic_file(path) as file:
        file.write(content)
    return path


def _read_page(run: FinishedRun, source: TableSource, shown_tables: Mapping[Table, TableSource], row: ProteinRow, methods: str) -> _Page:
    protein = protein_evidence(source, row)
    reported = [
        f"{len(protein):,} residues, {protein.coverage.fraction * 100:.1f} % of them covered; {int(protein.is_modified.sum()):,} modified."
    ]
    figures = [draw_protein(protein)]
    if protein.chains:
        fold = read_shown_structure(run, protein, protein.chains[0])
        drawn = draw_fold(protein, fold)
        if drawn is not None:
            figures.append(drawn)
        reported += [without_folders(fold.note)] if fold.note else []
    else:
        reported.append("No structure of the database is near this protein.")
    sections = []
    for table, rows in shown_tables.items():
        result = rows.rows(refers_to_protein(protein.row), limit=_MAXIMUM_ROWS + 1)
        if len(result):
            columns = [column for column in table.columns if column.is_shown and column.name in rows.types and column.name != "accession"]
            values = rows.values(result[:_MAXIMUM_ROWS], [column.name for column in columns]).to_pylist()
            n_rows = len(result) if len(result) <= _MAXIMUM_ROWS else rows.count(refers_to_protein(protein.row))
            sections.append(_Section(table, columns, values, n_rows))
    return _Page(protein, reported, figures, sections, methods)


def _methods(text: str) -> str:
    return section("Methods", f"<pre>{shown(text, 20_000)}</pre>")


def _html(page: _Page, pdf: str) -> str:
    protein = page.protein
    figures = "".join(f"<figure>{svg(figure).decode()}</figure>" for figure in page.figures)
    parts = [
        f'<p><a href="{_INDEX}">All proteins</a> · <a href="{pdf}">this page as PDF</a></p><h1>{shown(protein.accession)}</h1>',
        f"<p>{shown(protein.coverage.description, 1000)}</p>",
        *(f"<p>{shown(text, 1000)}</p>" for text in page.notes),
        section("Coverage", f"{figures}<pre>{_sequence(page)}</pre>"),
        *(section(part.table.title, result_rows(part.columns, part.values, part.n_rows)) for part in page.sections),
    ]
    return html_page(protein.accession, [*parts, _methods(page.methods)])


def _pdf(page: _Page, title: str) -> bytes:
    protein = page.protein
    pages = PdfPages(protein.accession, f"{protein.accession}, {title}")
    pages.heading(protein.accession, 14.0)
    for text in (protein.coverage.description, *page.notes):
        pages.paragraph(text, 1000)
    pages.heading("Coverage")
    for drawing in page.figures:
        pages.figure(drawing)
    rows = []
    for first, last in _sequence_rows(len(protein)):
        text, kinds = _grouped(protein.coverage.sequence[first:last], page.kinds[first:last].tolist())
        rows.append((f"{first + 1:>6}", text, kinds, str(last)))
    pages.residues(rows, _KINDS)
    for part in page.sections:
        pages.heading(part.table.title)
        pages.rows(part.columns, part.values[:_MAXIMUM_PRINTED], part.n_rows)
    pages.heading("Methods")
    pages.paragraph(page.methods)
    return pages.finished()


def _sequence_rows(n: int) -> list[tuple[int, int]]:
    return [(first, min(first + _ROW_RESIDUES, n)) for first in range(0, n, _ROW_RESIDUES)]


def _grouped(text: str, kinds: Sequence[int]) -> tuple[str, list[int]]:
    """Return the residues as HTML with a space after each group."""
    positions = [
        k for first in range(0, len(text), _GROUP) for k in (*([-1] if first else []), *range(first, min(first + _GROUP, len(text))))
    ]
    return "".join(" " if k < 0 else text[k] for k in positions), [0 if k < 0 else kinds[k] for k in positions]


def _sequence(page: _Page) -> str:
    """Return the residues in rows as HTML: covered residues bold, modified residues coloured."""
    tags = (("", ""), ("<b>", "</b>"), ("<mark><b>", "</b></mark>"))
    lines = []
    for first, last in _sequence_rows(len(page.protein)):
        row = page.kinds[first:last]
        # Cut where the kind changes and after each group of ten.
        cuts = {0, last - first, *range(0, last - first, _GROUP), *(np.flatnonzero(np.diff(row)) + 1).tolist()}
        parts = []
        for begin, end in pairwise(sorted(cuts)):
            before, after = tags[int(row[begin])]
            gap = " " if begin and begin % _GROUP == 0 else ""
            parts.append(f"{gap}{before}{shown(page.protein.coverage.sequence[first + begin : first + end])}{after}")
        lines.append(f"{first + 1:>6} {''.join(parts)} {last}")
    return "\n".join(lines)
