"""Tests of the files and the source run shown in the header of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from proteoscope.engine.identification.entry import IDENTIFICATION
from proteoscope.engine.project import RunInput
from proteoscope.engine.views.finished_run import open_finished_run
from proteoscope.gui.results.facts import files_facts, inputs_of_source
from tests.engine.views.result_projects import project_with_results


def test_header_names_the_source_run_of_a_follow_up_search(tmp_path: Path) -> None:
    project, _ = project_with_results(tmp_path / "project")
    spectra, database, contaminants = (tmp_path / name for name in ("shew.mzML", "shew.fasta", "dust.fasta"))
    for path in (spectra, database, contaminants):
        path.write_text(path.name, encoding="utf-8")
    with project.run("identify", {}, [RunInput(spectra, "spectra"), RunInput(database, "database")]) as run:
        source = run.id
    opened_run = open_finished_run(project, IDENTIFICATION, "identify-0001")
    folder = project.folder / "results" / source
    tables = [(f"project_{name}", folder / f"{name}.parquet") for name in ("spectra", "psms", "proteins")]
    try:
        following = replace(opened_run, inputs=(*tables, ("contaminants", contaminants)))
        assert files_facts(following) == (f"unidentified spectra of {source}", "contaminants: dust.fasta")
        assert inputs_of_source(following) == (("spectra", spectra), ("database", database))
        assert inputs_of_source(replace(opened_run, inputs=(("spectra", spectra),))) == ()
        gone = [("project_spectra", tmp_path / "away" / "results" / source / "spectra.parquet")]
        assert inputs_of_source(replace(opened_run, inputs=tuple(gone))) == ()
    finally:
        opened_run.close()
