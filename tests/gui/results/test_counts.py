"""Tests that header, tables and exports of a run have the same counts, or explain why they differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pytestqt.qtbot import QtBot

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project, RunRecord
from proteoscope.engine.searches import SEARCHES, search_of_kind
from proteoscope.gui import searches as window_searches
from proteoscope.gui.results.quantity_view import QuantityView
from proteoscope.gui.results.run_view import RunView
from proteoscope.gui.theme import Theme
from tests.gui.result_views import opened, settle

KINDS = [search.kind for search in SEARCHES]
RATED = ("psms", "peptides", "proteins", "matches", "explained")
"""Tables whose rows are accepted up to a q-value."""
OF_TABLES = {
    "identify": {"PSM": "psms", "peptide": "peptides", "protein group": "proteins"},
    "modified": {"PSM": "psms", "peptide": "peptides", "protein group": "proteins"},
    "import": {"PSM": "psms", "peptide": "peptides", "protein group": "proteins"},
    "align": {"hit": "hits"},
    "structures": {"hit": "hits"},
    "cluster": {"cluster": "clusters"},
    "explain": {"spectr(?:um|a) explained": "explained"},
    "library": {"spectr(?:um|a) matched": "matches"},
    "reads": {"alignment": "alignments"},
    "evidence": {"protein": "proteins", "modifications? of residues?": "sites"},
    "quantify": {"proteins? quantified": "protein_quantities", "peptides? quantified": "peptide_quantities"},
}
"""Tables counted by the numbers of a header, by the words after the number."""
ENTRIES: dict[str, tuple[str, bytes]] = {
    "mzid": ("psms", rb"<SpectrumIdentificationItem "),
    "pepxml": ("psms", rb"<search_hit "),
    "blast6": ("hits", rb"(?m)^[^#\n]"),
    "paf": ("alignments", rb"(?m)^."),
    "mgf": ("clusters", rb"BEGIN IONS"),
    "sam": ("alignments", rb"(?m)^[^@\n]"),
}
"""Start of an entry of an export, and the table of its rows."""


class Run:
    """Finished run with its tables, read from their files, and the texts of its exports."""

    def __init__(self, project: Project, kind: str, out: Path) -> None:
        self.project, self.kind, self._out = project, kind, out
        self.record: RunRecord = next(run for run in reversed(project.runs()) if run.kind == kind)
        self._folder = project.folder / "results" / self.record.id

    def table(self, name: str) -> Any:
        return pq.read_table(self._folder / f"{name}.parquet")

    def accepted(self, name: str) -> int:
        """Return the accepted rows of a table: targets up to the FDR of the run, each protein or peptide once."""
        table = self.table(name)
        if name in ("protein_quantities", "peptide_quantities"):
            key = "accession" if name == "protein_quantities" else "sequence"
            return len(set(table.filter(pc.is_valid(table["quantity"]))[key].to_pylist()))
        if name == "alignments":
            return int(pc.count(table["text_start"]).as_py())
        if name not in RATED or "q_value" not in table.column_names or not len(table) or table["q_value"].null_count == len(table):
            return len(table)
        is_in = pc.less_equal(table["q_value"], float(self.record.parameters.get("fdr", 1.0)))
        if "is_decoy" in table.column_names:
            is_in = pc.and_(is_in, pc.invert(table["is_decoy"]))
        return int(pc.sum(pc.cast(is_in, "int64")).as_py() or 0)

    def exported(self, format: str, endings: tuple[str, ...]) -> tuple[list[Path], str]:
        """Return the files of an export and its messages, or nothing if the run has no rows for it."""
        said: list[str] = []
        progress = Progress(lambda event: said.append(event.message))
        target = self._out / f"{self.kind}-{format}{endings[0] if endings else ''}"
        try:
            files = search_of_kind(self.kind).export(self.project, ExportRequest(self.record.id, format, target), progress)
        except ProteoscopeError as error:
            return [], str(error)
        return files, "\n".join(said)


@pytest.fixture(params=KINDS)
def run(request: pytest.FixtureRequest, finished_run: Callable[[str], Path], tmp_path: Path) -> Run:
    kind = request.param
    return Run(Project.open(finished_run("evidence" if kind == "import" else kind)), kind, tmp_path)


@pytest.fixture
def view(run: Run, qtbot: QtBot, theme: Theme) -> Iterator[RunView]:
    shown = window_searches._view_of(run.kind)(search_of_kind(run.kind))
    opened(shown, run.project, qtbot)
    yield shown
    shown.clear()


def number_before(words: str, text: str) -> int | None:
    match = re.search(rf"([\d,]+) {words}s?\b", text)
    return None if match is None else int(re.sub(r"\D", "", match[1]))


def test_header_of_each_result_counts_the_rows_of_its_tables(run: Run, view: RunView, qtbot: QtBot) -> None:
    for words, name in OF_TABLES[run.kind].items():
        assert number_before(words, view.header.text) == run.accepted(name), (view.header.text, name)
    for name, panel in view.panels.items():
        if panel.scope_text:
            view.show_all(name)
            settle(view, qtbot)
        assert panel.count_label.text().replace(",", "") == str(len(panel.model.rows))
        if isinstance(view, QuantityView):
            continue
        n_all, n_counted = len(run.table(name)), run.accepted(name)
        n_shown = len(panel.model.rows)
        assert n_shown in (n_all, n_counted), name
        if n_shown != n_counted:
            # Reads without an alignment are listed too.
            assert f"{n_shown - n_counted} without an alignment" in view.header.text


def test_exported_files_have_the_rows_of_the_result_tables(run: Run) -> None:
    for export in search_of_kind(run.kind).exports:
        files, said = run.exported(export.name, export.endings)
        if not files:
            assert said
            continue
        if export.name == "tsv":
            for path in files:
                name = path.stem.removeprefix("evidence_") if path.is_relative_to(path.parent) and len(files) > 1 else _table_of(run.kind)
                rows = path.read_text(encoding="utf-8").splitlines()[1:]
                assert len(rows) == len(run.table(name)), path
                if run.accepted(name) < len(rows) and name in RATED:
                    assert f"{run.accepted(name):,} of {len(rows):,} rows are" in said, (path, said)
        elif export.name == "pin":
            assert len(files[0].read_text(encoding="utf-8").splitlines()) - 1 == len(run.table("psms"))
        elif export.name in ENTRIES and not (run.kind == "align" and export.name == "sam"):
            name, begin = ENTRIES[export.name]
            assert len(re.findall(begin, files[0].read_bytes())) == len(run.table(name)), export.name


def _table_of(kind: str) -> str:
    return {"align": "hits", "structures": "hits", "cluster": "members", "explain": "explained", "reads": "alignments"}[kind]
