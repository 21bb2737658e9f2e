"""Pages of proteins: links between HTML and PDF, vector figures, and no active content or external addresses."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.results.columns import Column
from proteoscope.engine.searches import run_search
from proteoscope.engine.views.drawings import Curve, Label, text_width
from proteoscope.engine.views.evidence import protein_evidence, read_shown_structure
from proteoscope.engine.views.evidence_pages import draw_fold, write_pages
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.pdf_pages import PdfPages
from tests.engine.evidence.evidence_projects import project_with_evidence, write_albumin
from tests.engine.evidence.written_pages import pdf_streams


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project_with_evidence(tmp_path_factory.mktemp("pages") / "made")


@pytest.fixture(scope="module")
def pages(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    write_pages(project, str(project.latest("evidence")), folder, Progress())
    return folder


def test_protein_pages_link_html_and_pdf(pages: Path) -> None:
    names = sorted(path.stem for path in pages.glob("*.html") if path.stem != "index")
    assert names == sorted(path.stem for path in pages.glob("*.pdf")) and len(names) == 3
    index = (pages / "index.html").read_text()
    for name in names:
        assert f'href="{name}.html"' in index and f'href="{name}.pdf"' in index
        assert f'href="{name}.pdf"' in (pages / f"{name}.html").read_text()
        data = (pages / f"{name}.pdf").read_bytes()
        assert data.startswith(b"%PDF-") and data.rstrip().endswith(b"%%EOF")
        # Figures are vectors, and there is no active content, link or attachment.
        assert not re.search(rb"/Subtype\s*/Image|/JavaScript|/JS\b|/URI|/Launch|/EmbeddedFile", data)


def test_protein_pdf_has_vector_figures_and_sequence_as_text(pages: Path) -> None:
    drawn = b"\n".join(pdf_streams(next(pages.glob("*RELATIVE.pdf"))))
    assert drawn.count(b" re\n") + drawn.count(b" re f") > 20 and drawn.count(b" l ") > 500
    residues = b"".join(re.findall(rb"\(([A-Z ]+)\) Tj", drawn)).replace(b" ", b"")
    assert b"MKWVTFISLLLLFSSAYS" in residues


def test_protein_pages_are_identical_when_written_again(project: Project, pages: Path, tmp_path: Path) -> None:
    write_pages(project, str(project.latest("evidence")), tmp_path, Progress())
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (pages / path.name).read_bytes()


def test_relative_structure_path_is_found_from_any_folder(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(project.folder, tmp_path / "made")
    write_albumin(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = run_search("evidence", {"project": [Path("made")], "structures": [Path("1ao6_A.pdb")]}, device="cpu", threads=2)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with open_run(Project.open(tmp_path / "made"), str(done.run_id)) as run:
        protein = protein_evidence(run.tables.source("proteins"), 0)
        fold = read_shown_structure(run, protein, protein.chains[0])
    assert fold.note == "" and fold.trace is not None


def test_structure_drawing_has_the_projected_coordinates(project: Project) -> None:
    with open_run(project, str(project.latest("evidence"))) as run:
        source = run.tables.source("proteins")
        protein = protein_evidence(source, 0)
        fold = read_shown_structure(run, protein, protein.chains[0])
        drawing = draw_fold(protein, fold)
    assert drawing is not None and fold.trace is not None and fold.trace.evidence is not None
    lines = [curve for curve in drawing.shapes if isinstance(curve, Curve) and curve.ink != "background"]
    n_bonds = sum(len(curve.x) - 1 for curve in lines)
    apart = np.linalg.norm(np.diff(fold.trace.position.astype(float), axis=0), axis=1)
    assert n_bonds == int((apart <= 4.6).sum())
    # A projection never lengthens bonds; the longest bonds set the scale.
    lengths = np.concatenate([np.hypot(np.diff(curve.x), np.diff(curve.y)) for curve in lines])
    assert lengths.max() <= lengths.max() / 3.9 * 4.6
    covered = sum(len(curve.x) - 1 for curve in lines if curve.ink == "target")
    assert covered > 0 and covered <= int((fold.trace.evidence.n_psms > 0).sum())
    # The drawing is wider than high.
    spread = np.ptp(np.concatenate([curve.x for curve in lines])), np.ptp(np.concatenate([curve.y for curve in lines]))
    assert spread[0] >= spread[1]


def test_structure_drawing_labels_do_not_overlap(project: Project) -> None:
    with open_run(project, str(project.latest("evidence"))) as run:
        protein = protein_evidence(run.tables.source("proteins"), 0)
        fold = read_shown_structure(run, protein, protein.chains[0])
    assert fold.trace is not None and fold.trace.evidence is not None
    # Many more labels than fit into the drawing.
    crowded = replace(fold.trace.evidence, is_modified=fold.trace.evidence.position >= 0)
    drawing = draw_fold(protein, replace(fold, trace=replace(fold.trace, evidence=crowded)))
    assert drawing is not None
    names = {protein.name_of(place) for place in range(len(protein))}
    boxes = [
        (label.x, label.y - 8.0, label.x + text_width(label.text, 8.0), label.y)
        for label in drawing.shapes
        if isinstance(label, Label) and label.text in names
    ]
    assert len(boxes) > 10
    for k, (left, top, right, bottom) in enumerate(boxes):
        assert left >= 0 and top >= 0 and right <= drawing.width and bottom <= drawing.height
        assert not any(left < other[2] and other[0] < right and top < other[3] and other[1] < bottom for other in boxes[:k])


def test_protein_pdf_wraps_long_and_non_latin_texts(tmp_path: Path) -> None:
    pages = PdfPages("a\u202etitle", "somewhere")
    pages.heading("\u0000heading" * 40)
    pages.paragraph("W" * 5000 + "\n" + "\u8056\U0001f9ec α β Å " * 50)
    columns = [Column("a", "A long header of many words", "", "text"), Column("b", "Cα to Cα", "", "number", unit="Å")]
    pages.rows(columns, [{"a": "X" * 3000, "b": float(k)} for k in range(120)], 5000)
    pages.rows(columns, [{"a": "", "b": float("nan")}], 1)
    pages.rows([Column(f"c{k}", f"Column {k}", "", "text") for k in range(40)], [{f"c{k}": "text " * 9 for k in range(40)}] * 3, 3)
    path = tmp_path / "long.pdf"
    path.write_bytes(pages.finished())
    drawn = b"\n".join(pdf_streams(path))
    # All text starts within the page.
    places = [float(place) for place in re.findall(rb"1 0 0 1 ([-\d.]+) [-\d.]+ Tm", drawn)]
    assert places and min(places) >= 0 and max(places) < 842
