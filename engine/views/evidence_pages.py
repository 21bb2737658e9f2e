"""Pages of an evidence run: one HTML page and one PDF page per protein with their drawings, and an index.

Pages show coverage, structure, similar chains, sites, uncovered residues and contacts.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ProteinRow, row_range
from proteoscope.engine.evidence.tables import CHAINS, CONTACTS, HOMOLOGUES, MISSED, PARALOGUES, PEPTIDE_PLACES, SITES
from proteoscope.engine.files import atomic_file, storage_errors
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.results.counts import counted
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.shared_names import without_folders
from proteoscope.engine.views.drawings import Bar, Curve, Drawing, Label, Shape, Stroke, format_colour, shortened, svg, text_width
from proteoscope.engine.views.evidence import ProteinEvidence, ShownStructure, protein_evidence, read_shown_structure, refers_to_protein
from proteoscope.engine.views.finished_run import FinishedRun, open_run
from proteoscope.engine.views.html_pages import html_page, result_rows, scrolled_table, section, shown
from proteoscope.engine.views.label_layout import place_near_dots
from proteoscope.engine.views.palette import Ink
from proteoscope.engine.views.pdf_pages import PdfPages
from proteoscope.engine.views.run_account import run_account
from proteoscope.engine.views.tables import TableSource
from proteoscope.engine.views.ticks import nice_ticks

__all__ = ["MAXIMUM_PAGES", "draw_fold", "draw_protein", "write_pages"]

_WIDTH, _LEFT, _RIGHT = 680.0, 110.0, 12.0
_BAR, _STEP = 5.0, 7.0
_MAXIMUM_LANES, _MAXIMUM_CHAINS, _MAXIMUM_SITES = 12, 20, 300
_SEEN: Ink = "target"
_MISSED: Ink = "grid"
_MODIFIED: Ink = "mark"
_CHAIN: Ink = 5
_FOREIGN: Ink = "faint"
"""Colour of residues of a structure that are not aligned with the protein."""
_SIDE, _TALLEST, _FRAME = 400.0, 360.0, 26.0
_NEIGHBOURS = 4.6  # Å, maximum Cα distance of bonded residues
_MAXIMUM_BONDS_OF_LINE = 6  # maximum number of bonds that are drawn as one line, at the same depth
_MAXIMUM_BONDS, _MAXIMUM_NAMES = 20_000, 60
_FONT_SIZE = 8.0


def draw_protein(protein: ProteinEvidence) -> Drawing:
    """Draw the coverage of a protein with the aligned ranges of similar chains."""
    n = max(len(protein), 1)
    scale = (_WIDTH - _LEFT - _RIGHT) / n
    shapes: list[Shape] = []
    top = 22.0
    shapes.append(Label(0, 11, shortened(protein.accession, _WIDTH, 8), is_bold=True))

    def bar(first: int, end: int, y: float, ink: Ink, tip: str) -> Bar:
        return Bar(_LEFT + first * scale, y, max((end - first) * scale, 0.6), _BAR, ink, tip=tip)

    lanes = 1 + max((peptide.lane for peptide in protein.coverage.peptides), default=0)
    shapes.append(Label(0, top + _BAR, "peptides"))
    for peptide in protein.coverage.peptides:
        if peptide.lane < _MAXIMUM_LANES:
            tip = f"{peptide.peptide}, {peptide.start + 1} to {peptide.end}, PSMs: {peptide.n_psms}"
            shapes.append(bar(peptide.start, peptide.end, top + peptide.lane * _STEP, _SEEN, tip))
    top += min(lanes, _MAXIMUM_LANES) * _STEP + 3
    shapes.append(Label(0, top + _BAR, "not observed"))
    cuts = np.flatnonzero(np.diff(np.concatenate(([0], (~protein.coverage.covered).astype(np.int8), [0]))))
    shapes += [bar(first, end, top, _MISSED, f"{first + 1} to {end}") for first, end in cuts.reshape(-1, 2).tolist()]
    top += _STEP + 3
    if protein.is_modified.any():
        shapes.append(Label(0, top + _BAR, "modified"))
        # Alternatives are paler, and below the sites.
        dots = [(position, chance) for position, chance in sorted(protein.alternatives.items())[:_MAXIMUM_SITES]]
        dots += [(position, 1.0) for position in np.flatnonzero(protein.is_modified)[:_MAXIMUM_SITES].tolist()]
        for position, opacity in dots:
            x, tip = _LEFT + (position + 0.5) * scale, protein.site_text(position)
            shapes += [
                Stroke(x, top, x, top + _BAR, "text", 0.5),
                Bar(x - 2, top, 4, 4, _MODIFIED, True, tip=tip, opacity=opacity),
            ]
        top += _STEP + 3
    for near in protein.chains[:_MAXIMUM_CHAINS]:
        shapes.append(Label(0, top + _BAR, shortened(near.name, _LEFT - 6, 8)))
        stretches = np.split(near.position, np.flatnonzero(np.diff(near.position) != 1) + 1) if len(near.position) else []
        tip = f"{near.values['chain']}, {near.values['kind']}, {near.values['identity'] * 100:.1f} % identity"
        shapes += [bar(int(stretch[0]), int(stretch[-1]) + 1, top, _CHAIN, tip) for stretch in stretches]
        top += _STEP + 2
    bottom = top + 4
    shapes.append(Stroke(_LEFT, bottom, _WIDTH - _RIGHT, bottom))
    for tick in nice_ticks(1, max(n, 2), 10, whole=True):
        x = _LEFT + (tick - 0.5) * scale
        shapes += [Stroke(x, bottom, x, bottom + 4), Label(x, bottom + 13, f"{tick:,.0f}", "middle")]
    shapes.append(Label((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 25, "Residue", "middle"))
    return Drawing(_WIDTH, bottom + 34, f"Coverage of {protein.accession}", tuple(shapes))


def draw_fold(protein: ProteinEvidence, fold: ShownStructure) -> Drawing | None:
    """Draw the Cα trace of a similar chain from its widest side; return None if the file is unreadable or the chain is too short.

    Colours distinguish covered, uncovered and unaligned residues; modified residues are dots.
    """
    trace = fold.trace
    if trace is None or trace.evidence is None:
        return None
    evidence, n = trace.evidence, min(len(trace.position), _MAXIMUM_BONDS)
    position = trace.position[:n].astype(np.float64)
    is_place = np.asarray(np.isfinite(position).all(axis=1), np.bool_)
    if is_place.sum() < 3:
        return None
    seen = _seen_from(position, is_place)
    low, high = seen[is_place].min(axis=0), seen[is_place].max(axis=0)
    scale = min((_SIDE - 2 * _FRAME) / max(high[0] - low[0], 1.0), (_TALLEST - 2 * _FRAME) / max(high[1] - low[1], 1.0))
    flat = (seen[:, :2] - low[:2]) * scale + _FRAME
    height = float((high[1] - low[1]) * scale + 2 * _FRAME) + 30
    shapes: list[Shape] = []
    inks: list[Ink] = [_FOREIGN, _MISSED, _SEEN]
    kind = np.where(evidence.position[:n] < 0, 0, np.where(evidence.n_psms[:n] > 0, 2, 1))
    apart = np.linalg.norm(np.diff(position, axis=0), axis=1)
    is_bond = (apart <= _NEIGHBOURS) & is_place[1:] & is_place[:-1]
    lines = _lines(kind, is_bond)
    # Draw the farthest lines first, and each line on a wider line in the background colour, so that nearer lines interrupt farther lines.
    for first, last in sorted(lines, key=lambda line: float(seen[line[0] : line[1] + 1, 2].mean())):
        x, y = flat[first : last + 1].T
        shapes += [Curve(x, y, "background", 5.0), Curve(x, y, inks[int(kind[first])], 2.2)]
    modified = np.flatnonzero(evidence.is_modified[:n] & is_place)
    names = [protein.name_of(int(position)) for position in evidence.position[modified].tolist()]
    is_alternative = np.isin(evidence.position[:n], list(protein.alternatives)) & is_place
    for row in (*np.flatnonzero(is_alternative).tolist(), *modified.tolist()):
        (x, y), at = flat[row].tolist(), int(evidence.position[row])
        tip = f"{protein.site_text(at)}, {trace.label(row)} of {trace.name}"
        shapes.append(Bar(x - 3, y - 3, 6, 6, _MODIFIED, True, tip=tip, opacity=protein.alternatives.get(at, 1.0)))
    shapes += _place_names(flat[modified], names, height - 30)
    reported: tuple[tuple[str, Ink], ...] = (
        ("covered", _SEEN),
        ("not observed", _MISSED),
        ("not part of the protein", _FOREIGN),
        ("modified", _MODIFIED),
    )
    for k, (text, ink) in enumerate(reported):
        shapes += [Bar(8 + k * 95, height - 14, 8, 8, ink), Label(20 + k * 95, height - 7, text)]
    remote = f", remote: by the fold of {fold.near.values['through']}" if fold.near.values["kind"] == "remote" else ""
    title = f"{trace.name}, {fold.near.values['kind']}, {fold.near.values['identity'] * 100:.1f} % identity{remote}"
    shapes.append(Label(0, 11, shortened(title, _SIDE, 8), is_bold=True))
    return Drawing(_SIDE, height, f"{protein.accession} on {trace.name}", tuple(shapes))


def _place_names(dots: NDArray[np.float64], names: Sequence[str], height: float) -> list[Shape]:
    """Draw names near their dots; names without free space are omitted."""
    widths = np.array([text_width(name, _FONT_SIZE) for name in names])
    shapes: list[Shape] = []
    for label in place_near_dots(dots[:_MAXIMUM_NAMES], widths[:_MAXIMUM_NAMES], _FONT_SIZE, dots, (0.0, _FRAME / 2, _SIDE, height)):
        if label.leader is not None:
            x, y = dots[label.label].tolist()
            shapes.append(Stroke(x, y, *label.leader, "faint", 0.4))
        shapes.append(Label(label.left, label.top + 0.85 * _FONT_SIZE, names[label.label]))
    return shapes


def _seen_from(position: NDArray[np.float64], is_place: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return coordinates (n, 3), rotated such that the variances of the residues `is_place` are largest along x and y, least along z."""
    centred = position - position[is_place].mean(axis=0)
    axes = np.linalg.svd(centred[is_place], full_matrices=False)[2]
    # The signs of axes are arbitrary. The residue farthest along an axis sets its sign, so that a chain always looks the same, never
    # mirrored.
    for k in range(2):
        along = centred[is_place] @ axes[k]
        axes[k] *= np.sign(along[np.abs(along).argmax()]) or 1.0
    axes[2] = np.cross(axes[0], axes[1])
    # On paper y grows downwards; without the change of sign, the drawing would be a mirror image.
    return np.asarray(centred @ (axes * np.array([[1.0], [-1.0], [1.0]])).T)


def _lines(kind: NDArray[np.int64], is_bond: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Divide a chain into lines of one colour, which are drawn by depth; return the first and last residue of each line.

    Lines are so short that their residues have about the same depth. A bond has the colour of its first residue.
    """
    result, first = [], 0
    for row in range(len(is_bond) + 1):
        ends = row == len(is_bond) or not is_bond[row]
        if row > first and (ends or kind[row] != kind[first] or row - first >= _MAXIMUM_BONDS_OF_LINE):
            result.append((first, row))
            first = row
        if ends:
            first = row + 1
    return result


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
        reported = counted(n, "protein") + (f", the first {MAXIMUM_PAGES:,} of them" if n > MAXIMUM_PAGES else "")
        rows = [
            f'<tr><td><a href="{name}.html">{shown(protein.accession)}</a></td><td><a href="{name}.pdf">PDF</a></td>'
            f'<td class="n">{protein.coverage.fraction * 100:.1f} %</td>'
            f'<td class="n">{int(protein.is_modified.sum()):,}</td><td>{shown(protein.chains[0].name) if protein.chains else "none"}</td>'
            f"<td>{shown(protein.coverage.description)}</td></tr>"
            for name, protein in names
        ]
        head = "<tr><th>Protein</th><th></th><th>Coverage</th><th>Modified residues</th><th>Closest chain</th><th>Description</th></tr>"
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
        reported.append("No chain of the database is similar to this protein.")
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
    """Return a sequence with a space between groups of ten residues, and the kind of each character, 0 for spaces."""
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
