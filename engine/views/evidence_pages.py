"""A page for each protein of an evidence run: coverage, near chains, sites, what was missed, contacts; and one that lists them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np

from engine.evidence.tables import CHAINS, CONTACTS, HOMOLOGUES, MISSED, PARALOGUES, PEPTIDE_PLACES, SITES
from engine.files import atomic_file, storage_errors
from engine.jobs.progress import Progress
from engine.project import Project
from engine.results.columns import Table
from engine.searches import search_of_kind
from engine.views.drawings import svg
from engine.views.evidence import ProteinEvidence, of_protein, protein_evidence
from engine.views.evidence_drawings import draw_protein
from engine.views.finished_run import open_run
from engine.views.html_pages import html_page, result_rows, section, shown
from engine.views.run_account import run_account
from engine.views.tables import TableSource

__all__ = ["MAXIMUM_PAGES", "write_pages"]

MAXIMUM_PAGES = 1000
"""Of proteins, those that come first; the tables have all."""
_MAXIMUM_ROWS = 300
_SHOWN = (CHAINS, SITES, MISSED, CONTACTS, PARALOGUES, PEPTIDE_PLACES, HOMOLOGUES)
_ROW_LETTERS, _GROUP = 60, 10
_MAXIMUM_NAME = 40
_INDEX = "index.html"


def write_pages(project: Project, run_id: str, folder: Path, progress: Progress) -> list[Path]:
    """Write a page for each protein of a finished run, and ``index.html``, into a folder that is made where it is missing; their paths.

    Raises
    ------
    InputError, StorageError : the run's tables are missing or damaged, or the disk refused. Cancelled : the user asked to stop.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    written = []
    with open_run(project, run_id) as run:
        account = run_account(project, run.run, search_of_kind(run.run.kind))
        source = run.tables.source("proteins")
        n = source.total
        progress.stage("Writing pages", min(n, MAXIMUM_PAGES))
        names = []
        for row in range(min(n, MAXIMUM_PAGES)):
            progress.check()
            protein = protein_evidence(source, row)
            name = f"{row + 1:04d}_{re.sub('[^A-Za-z0-9]', '_', protein.accession)[:_MAXIMUM_NAME]}.html"
            names.append((name, protein))
            written.append(_write(folder / name, _page(protein, source, account.methods)))
            progress.advance(1)
        told = f"{n:,} proteins" + (f", the first {MAXIMUM_PAGES:,} of them" if n > MAXIMUM_PAGES else "")
        rows = [
            f'<tr><td><a href="{name}">{shown(one.accession)}</a></td><td class="n">{one.coverage.fraction * 100:.1f} %</td>'
            f'<td class="n">{int(one.is_modified.sum()):,}</td><td>{shown(one.folds[0].values["chain"]) if one.folds else "none"}</td>'
            f"<td>{shown(one.coverage.description)}</td></tr>"
            for name, one in names
        ]
        head = "<tr><th>Protein</th><th>Coverage</th><th>Modified residues</th><th>Nearest chain</th><th>Description</th></tr>"
        parts = [f"<h1>{shown(account.title)}</h1><p>{told}</p>", f"<table>{head}{''.join(rows)}</table>", _methods(account.methods)]
        written.append(_write(folder / _INDEX, html_page(account.title, parts)))
    return written


def _write(path: Path, text: str) -> Path:
    with atomic_file(path) as file:
        file.write(text.encode(errors="replace"))
    return path


def _methods(text: str) -> str:
    return section("Methods", f"<pre>{shown(text, 20_000)}</pre>")


def _page(protein: ProteinEvidence, source: TableSource, methods: str) -> str:
    coverage = protein.coverage
    parts = [
        f'<p><a href="{_INDEX}">All proteins</a></p><h1>{shown(protein.accession)}</h1><p>{shown(coverage.description, 1000)}</p>',
        f"<p>{len(protein):,} residues, {coverage.fraction * 100:.1f} % of them covered; {int(protein.is_modified.sum()):,} modified.</p>",
        "" if protein.folds else "<p>No structure of the database is near this protein.</p>",
        section("Coverage", f"<figure>{svg(draw_protein(protein)).decode()}</figure><pre>{_sequence(protein)}</pre>"),
    ]
    for table in _SHOWN:
        rows = source.beside(table.name)
        parts.append(section(table.title, _rows(rows, table, protein.row)))
    return html_page(protein.accession, [*parts, _methods(methods)])


def _sequence(protein: ProteinEvidence) -> str:
    """Residues in rows of sixty: covered ones bold, modified ones marked."""
    kinds = np.where(protein.is_modified, 2, protein.coverage.covered.astype(np.int8))
    tags = (("", ""), ("<b>", "</b>"), ("<mark><b>", "</b></mark>"))
    lines = []
    for first in range(0, len(protein), _ROW_LETTERS):
        last = min(first + _ROW_LETTERS, len(protein))
        row = kinds[first:last]
        # Where the kind changes, and where a group of ten ends.
        cuts = {0, last - first, *range(0, last - first, _GROUP), *(np.flatnonzero(np.diff(row)) + 1).tolist()}
        parts = []
        for begin, end in pairwise(sorted(cuts)):
            before, after = tags[int(row[begin])]
            gap = " " if begin and begin % _GROUP == 0 else ""
            parts.append(f"{gap}{before}{shown(protein.coverage.sequence[first + begin : first + end])}{after}")
        lines.append(f"{first + 1:>6} {''.join(parts)} {last}")
    return "\n".join(lines)


def _rows(source: TableSource, table: Table, protein: int) -> str:
    columns = [one for one in table.columns if one.is_shown and one.name in source.types and one.name != "accession"]
    n_rows = source.count(of_protein(protein))
    if not n_rows:
        return ""
    values = source.values(source.rows(of_protein(protein), most=_MAXIMUM_ROWS), [one.name for one in columns]).to_pylist()
    return result_rows(columns, values, n_rows)
