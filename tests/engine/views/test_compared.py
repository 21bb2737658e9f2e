"""Spectra shown next to others: their peaks match the stored tables, and the partner is the recorded one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.errors import InputError, ProteoscopeError
from proteoscope.engine.project import Project
from proteoscope.engine.views.annotation import LOSSES
from proteoscope.engine.views.clusters import compared_member
from proteoscope.engine.views.explanations import compared_explanation, explanation_counts, source_run, spectrum_alone
from proteoscope.engine.views.finished_run import FinishedRun, open_run
from proteoscope.engine.views.identification import annotated_psm, read_psm_row
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.spectrum_list import open_spectrum_list, read_spectrum_map
from tests.engine.views.cluster_projects import project_with_clusters, project_with_explanation
from tests.engine.views.result_projects import fragment_mz, project_with_results, rows_of


def peaks_in(project: Project, table: str, row: int) -> list[float]:
    mz: list[float] = pq.read_table(project.table(table))["mz"][row].as_py()
    return mz


def assert_same(peaks: Peaks, mz: list[float]) -> None:
    assert peaks.mz.tolist() == sorted(mz)


def test_cluster_member_is_compared_with_the_cluster_consensus(tmp_path: Path) -> None:
    project = project_with_clusters(tmp_path / "project")
    clusters = {row["cluster"]: row for row in rows_of(project, "clusters")}
    with open_run(project) as run:
        source = run.tables.source("members")
        for row, member in enumerate(rows_of(project, "members")):
            compared = compared_member(source, row, run)
            assert_same(compared.spectra.upper.peaks, peaks_in(project, "spectra", member["spectrum"]))
            cluster = clusters.get(member["cluster"])
            assert (compared.consensus is None) == (compared.spectra.lower is None) == (cluster is None)
            if compared.spectra.lower is not None and cluster is not None:
                assert_same(compared.spectra.lower.peaks, peaks_in(project, "consensus", cluster["consensus"]))
                assert compared.spectra.similarity == member["similarity_to_consensus"] and compared.member["title"] == member["title"]


def test_explained_spectrum_is_compared_with_identified_spectrum(tmp_path: Path) -> None:
    project = project_with_explanation(tmp_path / "project")
    with open_run(project) as run:
        source = run.tables.source("explained")
        assert source_run(run) == "identify-0001"
        for row, explained in enumerate(rows_of(project, "explained")[:4]):
            spectra = compared_explanation(source, row, run).spectra
            assert_same(spectra.upper.peaks, peaks_in(project, "spectra", explained["spectrum"]))
            assert spectra.lower is not None and spectra.lower.ions is not None
            assert_same(spectra.lower.peaks, peaks_in(project, "spectra", explained["nearest"]))
            assert str(spectra.lower.ions.peptidoform).startswith(explained["peptide"])
        assert read_spectrum_map(open_spectrum_list(run)).counts[2] == explanation_counts(source, run.fdr)["explained"]
        identified = next(row for row in rows_of(project, "map") if row["status"] == 1)
        alone = spectrum_alone(source, identified["spectrum"], run)
        assert alone.lower is None and alone.title == f"identified as {identified['peptide']}" and alone.upper.ions is not None


def test_psm_is_annotated_with_ion_settings_of_the_run(tmp_path: Path) -> None:
    project, _ = project_with_results(tmp_path / "project")
    rows = rows_of(project, "psms")
    with open_run(project.folder, "identify-0001") as run:
        source = run.tables.source("psms")
        for row in np.arange(5):
            details, peaks = read_psm_row(source, row, run)
            assert details["peptide"] == rows[row]["peptide"]
            assert_same(peaks, peaks_in(project, "spectra", rows[row]["spectrum"]))
            spectrum = annotated_psm(source, row, run)
            ions = spectrum.ions
            for series, number in (("b", 2), ("y", 3)):
                mz = fragment_mz(rows[row], series, number, 1)
                assert np.abs(ions.mz - mz).min() < 1e-3
            assert spectrum.settings.losses == LOSSES and spectrum.settings.series == "by"


def assert_without_peaks(run: FinishedRun) -> None:
    with pytest.raises(ProteoscopeError, match="The peaks of the run 'identify-0001' are not stored"):
        annotated_psm(run.tables.source("psms"), 0, run)
    assert run.peaks().count() is None


def test_annotated_psm_rejects_run_without_peaks(tmp_path: Path) -> None:
    project, _ = project_with_results(tmp_path / "project", with_spectra=False)
    with open_run(project) as run:
        assert_without_peaks(run)


def test_source_run_rejects_explain_run_without_record(tmp_path: Path) -> None:
    with (
        open_run(project_with_explanation(tmp_path / "project", with_record=False)) as run,
        pytest.raises(InputError, match=r"holds no finished result 'run'|does not name the explained run"),
    ):
        source_run(run)
