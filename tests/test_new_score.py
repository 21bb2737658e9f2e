"""A score added in three files ranks candidates, and tables, exports, help, manual and window report it."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from pyteomics import parser

from tests.engine.simulation import Simulation, proteins_of
from tests.extended_program import REPOSITORY, extended_program, read_sections

N_PROTEINS, N_SPECTRA = 60, 36
RUN = "identify-0001"
EXPORTS = {"tsv": "tables", "mzid": "matches.mzid", "pepxml": "matches.pep.xml", "pin": "matches.pin"}

EXPORTING = """
import sys
from proteoscope.engine.command_line.main import main
for name, out in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    assert main(["export", "project", "--format", name, "--out", out]) == 0
"""

OLDER_TABLES = """
import sys
from pathlib import Path
from tests.engine.identification_tables import identification
from tests.engine.matches.exported import export
from proteoscope.engine.matches.writers.tables import IdentificationTables
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.matches.columns import PSMS
folder, older = Path(sys.argv[1]), identification()
older.write(folder)
with TableFile(folder / "psms.parquet", PSMS) as table:
    assert "morpheus" in PSMS.by_name and "morpheus" not in table.columns
for name in ("tsv", "mzid", "pepxml", "pin"):
    export(folder, name, folder / f"exported.{name}" if name != "tsv" else folder / "exported")
"""

METHODS = """
import sys
from proteoscope.engine.project import Project
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.views.run_account import run_account
project = Project.open(sys.argv[1])
run, = project.runs("identify")
print(run_account(project, run, search_of_kind(run.kind)).methods)
"""

WINDOW = """
import json, sys
from pathlib import Path
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from proteoscope.engine.identification.tables import TABLES
from proteoscope.engine.views.tables import ResultTables
from proteoscope.gui.tables.model import ParquetTableModel
application = QGuiApplication([])
tables = ResultTables({"psms": Path(sys.argv[1])})
model = ParquetTableModel(TABLES[2].columns, TABLES[2].links, QGuiApplication.palette)
model.open(tables.source("psms"))
names = [column.name for column in model.columns]
model.set_shown(names)
model.show()
while model.is_busy:
    application.processEvents()
section, horizontal, role = names.index("morpheus"), Qt.Orientation.Horizontal, Qt.ItemDataRole
print(json.dumps({
    "title": model.headerData(section, horizontal),
    "tip": model.headerData(section, horizontal, role.ToolTipRole),
    "texts": [model.index(row, section).data() for row in range(model.rowCount())],
}))
model.close()
tables.close()
"""


class Searched(NamedTuple):
    """A project of a search by the new score, and the environment of the program that has it."""

    folder: Path
    environment: dict[str, str]

    def run(self, *command: str | Path) -> str:
        """Return the output of Python."""
        done = subprocess.run([sys.executable, *command], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def psms(self) -> list[dict[str, Any]]:
        """Return the rows of the table of PSMs."""
        return pq.read_table(self.folder / "project" / "results" / RUN / "psms.parquet").to_pylist()

    def export(self, name: str) -> str:
        """Return the text of an exported file."""
        path = self.folder / EXPORTS[name]
        return (path / "psms.tsv" if name == "tsv" else path).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    folder = tmp_path_factory.mktemp("new-score")
    made = Searched(folder, extended_program(folder, read_sections()["A score"]))
    proteins = dict(list(proteins_of(REPOSITORY / "resources/samples/18Protein_SoCe_Tr_detergents_trace.fasta.gz").items())[:N_PROTEINS])
    (folder / "proteins.fasta").write_text("".join(f">{name} a protein\n{sequence}\n" for name, sequence in proteins.items()))
    peptides = {peptide for sequence in proteins.values() for peptide in parser.cleave(sequence, "trypsin") if 8 <= len(peptide) <= 20}
    simulation = Simulation(1, 5, 10)
    for peptide in sorted(peptide for peptide in peptides if set(peptide) <= set("ADEFGHIKLMNPQRSTVWY"))[:N_SPECTRA]:
        simulation.add(peptide, 2)
    simulation.write(folder / "spectra.mgf")
    # Few peptides with a wide tolerance: fragment intensities are not predicted, whose kernels would be compiled anew, too.
    settings = ("--set", "score=morpheus", "--set", "hits_per_spectrum=3", "--set", "fragment_tolerance=0.5Da", "--advice", "none")
    settings = (*settings, "--device", "cpu", "--threads", "2", "--quiet")
    made.run("-m", "proteoscope", "identify", "spectra.mgf", "--database", "proteins.fasta", *settings, "--out", "project")
    made.run("-c", EXPORTING, *(word for export in EXPORTS.items() for word in export))
    return made


def assert_values(actual: Sequence[str], searched: Searched) -> None:
    """Assert that an export has the scores of all PSMs, in any order."""
    assert sorted(map(float, actual)) == pytest.approx(sorted(row["morpheus"] for row in searched.psms()), rel=1e-6)


def test_new_score_changes_at_most_three_files() -> None:
    assert len({addition.path for addition in read_sections()["A score"].additions}) == 3


def test_new_score_ranks_candidates(searched: Searched) -> None:
    rows = searched.psms()
    assert len({row["spectrum"] for row in rows}) == N_SPECTRA < len(rows)
    for row in rows:
        assert row["morpheus"] == pytest.approx(row["matched_ions"] + row["spectral_dot_product"], rel=1e-12)
    by_spectrum: dict[int, list[tuple[int, float]]] = {}
    for row in rows:
        by_spectrum.setdefault(row["spectrum"], []).append((row["rank"], row["morpheus"]))
    for ranked in by_spectrum.values():
        scores = [score for _, score in sorted(ranked)]
        assert scores == sorted(scores, reverse=True)


def test_new_score_is_a_column_of_the_exported_tsv_table(searched: Searched) -> None:
    table = list(csv.DictReader(searched.export("tsv").splitlines(), delimiter="\t"))
    assert_values([row["morpheus"] for row in table], searched)


def test_new_score_is_exported_to_mzidentml_with_its_cv_term(searched: Searched) -> None:
    text = searched.export("mzid")
    assert_values(re.findall(r'accession="MS:1002662" name="Morpheus:Morpheus score" value="([^"]+)"', text), searched)


def test_new_score_is_exported_to_pepxml(searched: Searched) -> None:
    assert_values(re.findall(r'<search_score name="morpheus_score" value="([^"]+)"', searched.export("pepxml")), searched)


def test_new_score_is_a_feature_in_the_percolator_export(searched: Searched) -> None:
    rows = list(csv.reader(searched.export("pin").splitlines(), delimiter="\t"))
    place = rows[0].index("feature_morpheus")
    assert_values([row[place] for row in rows[1:]], searched)


def test_new_score_is_in_the_methods_paragraph(searched: Searched) -> None:
    text = searched.run("-c", METHODS, "project")
    assert "Candidates were ranked by Morpheus's score" in text
    assert "Wenger CD, Coon JJ. J Proteome Res 2013, 12:1377." in text


def test_new_score_is_in_help_and_manual(searched: Searched) -> None:
    assert re.search(r"score = hyperscore.*morpheus", searched.run("-m", "proteoscope", "parameters", "identify"))
    write = "import sys; from pathlib import Path; from installer.manual import write_pages; write_pages(Path(sys.argv[1]))"
    searched.run("-c", write, "manual")
    pages = searched.folder / "manual" / "reference"
    assert "| `morpheus` | Morpheus | `double`, may be missing | Matched ions + SDP |" in (pages / "columns_identify.md").read_text()
    assert "`morpheus`" in (pages / "parameters_identify.md").read_text()


def test_new_score_is_a_column_of_the_table_in_the_window(searched: Searched) -> None:
    pytest.importorskip("PySide6.QtGui", reason="Qt's libraries are not installed", exc_type=ImportError)
    shown = json.loads(searched.run("-c", WINDOW, f"project/results/{RUN}/psms.parquet"))
    assert (shown["title"], shown["tip"]) == ("Morpheus", "Matched ions + SDP")
    assert shown["texts"] == [f"{row['morpheus']:.4f}" for row in searched.psms()]


def test_tables_written_before_a_new_score_can_be_exported(searched: Searched) -> None:
    older = searched.folder / "older"
    older.mkdir()
    searched.run("-c", OLDER_TABLES, older)
    for name in ("mzid", "pepxml", "pin"):
        assert "orpheus" not in (older / f"exported.{name}").read_text()
