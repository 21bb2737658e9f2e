"""A new export is a writer and an entry: command line, window and checks follow from the entry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from proteoscope.engine import searches
from proteoscope.engine.command_line.main import main
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.files import atomic_file
from proteoscope.engine.identification import IDENTIFICATION
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches import exports
from proteoscope.engine.matches.writers.tables import MatchesSource
from proteoscope.engine.project import Project


def write_peptide_list(source: MatchesSource, out: Path, progress: Progress) -> list[Path]:
    """Write the accepted peptides, one per line."""
    with source.connection(progress) as connection, atomic_file(out) as file:
        query = "SELECT peptide FROM peptides WHERE NOT is_decoy AND q_value <= ? ORDER BY peptide"
        for (peptide,) in connection.execute(query, [source.search.threshold]).fetchall():
            file.write(f"{peptide}\n".encode())
    return [out]


@pytest.fixture(autouse=True)
def entry(monkeypatch):
    monkeypatch.setattr(exports, "WRITERS", dict(exports.WRITERS))
    export = exports._matches("peptide-list", "Accepted peptides", lambda: write_peptide_list, ".peptides")
    changed = replace(IDENTIFICATION, exports=(*IDENTIFICATION.exports, export))
    others = [search for search in searches.SEARCHES if search.kind != "identify"]
    monkeypatch.setattr(searches, "SEARCHES", (changed, *others))
    return changed


def test_command_line_lists_and_writes_a_new_export(identified_sample, tmp_path, capsys):
    assert main(["export", "--help"]) == 0
    assert "peptide-list" in capsys.readouterr().out
    assert main(["export", str(identified_sample), "--format", "peptide-list", "--out", str(tmp_path / "list.peptides")]) == 0
    peptides = pq.read_table(Project.open(identified_sample).table("peptides", "identify-0001")).to_pylist()
    expected = sorted(row["peptide"] for row in peptides if not row["is_decoy"] and row["q_value"] <= 0.01)
    assert (tmp_path / "list.peptides").read_text().splitlines() == expected and expected


def test_new_export_does_not_overwrite_an_input(identified_sample, entry):
    project = Project.open(identified_sample)
    spectra = next(source.path for source in project.inputs("identify-0001") if source.kind == "spectra")
    with pytest.raises(Exception, match="is read and would be overwritten"):
        entry.export(project, ExportRequest("identify-0001", "peptide-list", Path(spectra)), Progress())
