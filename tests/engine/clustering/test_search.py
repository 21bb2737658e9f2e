"""Clustering and explaining through the registry, from files to tables, and rejected input."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyteomics import mgf

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.entry import ExportRequest, SearchRequest
from proteoscope.engine.errors import InputError, ParameterError, ProteoscopeError
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.searches import search_of_kind

ECOLI = resources.path("samples", "Ecoli_MS2_small.mzML.gz")
CLUSTER, EXPLAIN = search_of_kind("cluster"), search_of_kind("explain")


@pytest.fixture(scope="module")
def spectra(tmp_path_factory) -> Path:
    """Write twenty spectra three times with varied heights, three negative ones, one without charge and one without peaks."""
    random = np.random.default_rng(11)
    entries = []
    for k in range(20):
        mz, heights = np.sort(random.uniform(120, 900, 15)), random.uniform(1, 100, 15)
        entries += [(f"s{k}.{copy}", 400 + k * 0.5, "2+", mz, heights * random.uniform(0.8, 1.2, 15)) for copy in range(3)]
    mz, heights = entries[0][3], entries[0][4]
    entries += [(f"negative{k}", 400.0, "2-", mz, heights) for k in range(3)]
    entries += [("unknown", 400.0, "", mz, heights), ("empty", 400.0, "2+", mz[:0], heights[:0])]
    path = tmp_path_factory.mktemp("spectra") / "some.mgf"
    with path.open("w", encoding="utf-8") as file:
        for title, precursor, charge, places, values in entries:
            file.write(f"BEGIN IONS\nTITLE={title}\nPEPMASS={precursor:.5f}\n" + (f"CHARGE={charge}\n" if charge else ""))
            file.writelines(f"{m:.5f} {h:.4f}\n" for m, h in zip(places, values, strict=True))
            file.write("END IONS\n\n")
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines(), delimiter="\t"))


def run_search(search: Any, progress: Progress | None = None, options: dict[str, Any] | None = None, **values: Any) -> Any:
    inputs, project, out = values.pop("inputs"), values.pop("project", None), values.pop("out", None)
    request = SearchRequest(inputs, search.model().changed(**values), project, out, options=options or {}, device="cpu", threads=2)
    return search.run(request, progress or Progress())


@pytest.mark.parametrize("method", ["hierarchical", "dbscan", "k-means"])
def test_cluster_groups_copies_and_writes_a_row_per_spectrum(method, spectra, tmp_path):
    more = {"clusters": 22, "seeding": "k-means++"} if method == "k-means" else {}
    summary = run_search(CLUSTER, inputs={"spectra": [spectra]}, project=tmp_path / "p", method=method, **more)
    rows = rows_of(tmp_path / "p" / "exports" / "clusters.tsv")
    assert list(rows[0]) == [
        "spectrum_file",
        "spectrum_id",
        "title",
        "cluster",
        "precursor_mz",
        "charge",
        "similarity_to_consensus",
        "is_consensus",
    ]
    assert len(rows) == 65 == summary.n_spectra
    groups: dict[str, set[str]] = {}
    for row in rows:
        name = row["title"].split(".")[0]
        groups.setdefault(row["cluster"], set()).add(name.rstrip("012") if "negative" in name else name)
    if method != "k-means":
        assert len(groups) == 20 + 1 + 1 + 1 and all(len(titles) == 1 for titles in groups.values())
    assert all(not ({"negative", "unknown"} & titles) or len(titles) == 1 for titles in groups.values()), "not clustered together"
    assert sum(row["is_consensus"] == "true" for row in rows) == len(groups)
    assert {row["charge"] for row in rows} == {"2", "-2", ""}
    record = json.loads((tmp_path / "p" / "run.json").read_text())
    assert record["kind"] == "cluster" and record["counts"]["spectra"] == 65


def test_dbscan_clusters_more_spectra_than_complete_linkage(spectra, tmp_path):
    n_clustered = {
        name: run_search(CLUSTER, inputs={"spectra": [spectra]}, project=tmp_path / name, maximum_distance=0.05, **values).n_clustered
        for name, values in (("complete", {"linkage": "complete"}), ("average", {}), ("dbscan", {"method": "dbscan"}))
    }
    assert n_clustered["complete"] <= n_clustered["average"] <= n_clustered["dbscan"]


def test_consensus_mgf_titles_contain_cluster_and_members(spectra, tmp_path):
    out = tmp_path / "consensus.mgf"
    run_search(CLUSTER, inputs={"spectra": [spectra]}, project=tmp_path / "p", options={"consensus": out}, consensus_spectrum="mean")
    rows = rows_of(tmp_path / "p" / "exports" / "clusters.tsv")
    with mgf.read(str(out), use_index=False) as reader:
        read = list(reader)
    assert len(read) == 21
    for spectrum in read:
        number = spectrum["params"]["cluster"]
        members = [row["title"] for row in rows if row["cluster"] == number]
        assert sorted(spectrum["params"]["members"].split(";")) == sorted(members)
        assert spectrum["params"]["title"].startswith(f"cluster {number} ({len(members)} spectra): ")
        assert (np.diff(spectrum["m/z array"]) >= 0).all() and len(spectrum["m/z array"]) >= 10
    exported = CLUSTER.export(Project.open(tmp_path / "p"), ExportRequest("cluster-0001", "mgf", tmp_path / "again.mgf"), Progress())
    assert exported == [tmp_path / "again.mgf"] and (tmp_path / "again.mgf").read_bytes() == out.read_bytes()
    CLUSTER.export(Project.open(tmp_path / "p"), ExportRequest("cluster-0001", "tsv", tmp_path / "again.tsv"), Progress())
    assert (tmp_path / "again.tsv").read_bytes() == (tmp_path / "p" / "exports" / "clusters.tsv").read_bytes()


def test_cluster_export_rejects_table_with_missing_titles(spectra, tmp_path):
    run_search(CLUSTER, inputs={"spectra": [spectra]}, project=tmp_path / "p")
    project = Project.open(tmp_path / "p")
    path = project.table("members")
    members = pq.read_table(path)
    titles = pa.array([None, *members["title"].to_pylist()[1:]], pa.string())
    pq.write_table(members.set_column(members.column_names.index("title"), "title", titles), path)
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection, connection:
        values = (file_digest(path), path.stat().st_size, path.stem)
        connection.execute("UPDATE results SET sha256 = ?, bytes = ? WHERE name = ?", values)
    for format in ("mgf", "tsv"):
        with pytest.raises(InputError, match="column title: contains a missing value"):
            CLUSTER.export(project, ExportRequest("cluster-0001", format, tmp_path / format), Progress())


def test_cluster_reports_quality_from_given_labels(spectra, tmp_path):
    (tmp_path / "labels.tsv").write_text("title\tlabel\n" + "".join(f"s{k}.{c}\tpeptide{k}\n" for k in range(20) for c in range(3)))
    summary = run_search(CLUSTER, inputs={"spectra": [spectra]}, project=tmp_path / "p", options={"labels": tmp_path / "labels.tsv"})
    assert summary.quality.labelled == 60 and summary.quality.incorrect == 0.0 and summary.quality.completeness == pytest.approx(1.0)
    table = pq.read_table(Project.open(tmp_path / "p").table("clusters"))
    assert sorted(name for name in table["label"].to_pylist() if name) == sorted(f"peptide{k}" for k in range(20))


def test_cluster_files_are_independent_of_threads(spectra, tmp_path):
    for threads in (1, 2, 5):
        out = tmp_path / str(threads)
        assert main(["cluster", str(spectra), "--out", str(out), "--threads", str(threads), "--device", "cpu", "--quiet"]) == 0
    files = [(tmp_path / str(threads) / "exports" / "clusters.tsv").read_bytes() for threads in (1, 2, 5)]
    assert files[0] == files[1] == files[2]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"maximum_distance": "1.5"}, "maximum_distance"),
        ({"bin_width": "0"}, "bin_width"),
        ({"precursor_tolerance": "5"}, "precursor_tolerance"),
        ({"minimum_mz": "500", "maximum_mz": "400"}, "minimum_mz"),
        ({"bin_width": "0.001", "maximum_mz": "20000"}, "bins"),
        ({"method": "spectral"}, "method"),
    ],
)
def test_cluster_error_names_invalid_parameter(changes, reason):
    with pytest.raises(ParameterError, match=reason):
        CLUSTER.model.checked(changes)


def test_cluster_rejects_more_clusters_than_spectra(spectra, tmp_path):
    with pytest.raises(ParameterError, match="clusters = 1000"):
        run_search(CLUSTER, inputs={"spectra": [spectra]}, project=tmp_path / "p", method="k-means", clusters=1000)


def test_cluster_rejects_overwriting_input_and_wrong_files(spectra, tmp_path):
    with pytest.raises(ParameterError, match="would be overwritten"):
        run_search(CLUSTER, inputs={"spectra": [spectra]}, project=tmp_path / "p", options={"consensus": spectra})
    with pytest.raises(InputError, match="FASTA"):
        run_search(
            CLUSTER, inputs={"spectra": [resources.path("samples", "18Protein_SoCe_Tr_detergents_trace.fasta.gz")]}, project=tmp_path / "p"
        )


def test_cluster_cancelled_in_any_stage_leaves_no_result(spectra, tmp_path):
    class Stops(Progress):
        def __init__(self, at: str) -> None:
            super().__init__()
            self.at = at

        def stage(self, title: str, total: int = 0) -> None:
            if title == self.at:
                self.cancel()
            super().stage(title, total)

    stages = (
        "Reading spectra",
        "Computing vectors of spectra",
        "Comparing spectra",
        "Comparing spectra with their clusters",
        "Writing clusters",
    )
    for stage in stages:
        with pytest.raises(Cancelled):
            run_search(CLUSTER, Stops(stage), inputs={"spectra": [spectra]}, project=tmp_path / "p")
    project = Project.open(tmp_path / "p")
    assert [run.status for run in project.runs()] == ["cancelled"] * 5 and project.results() == []


@pytest.fixture(scope="module")
def identified(identified_once, tmp_path_factory) -> Path:
    """A project with an identification of the sample."""
    return Path(shutil.copytree(identified_once, tmp_path_factory.mktemp("identified") / "p"))


def test_explain_writes_consistent_tables(identified, tmp_path):
    summary = run_search(
        EXPLAIN, inputs={"project": [identified]}, out=tmp_path / "explained.tsv", bin_width=0.4, bin_spread=0.5, rare_peak_weight=0.5
    )
    project = Project.open(identified)
    assert (tmp_path / "explained.tsv").read_bytes() == (identified / "exports" / "explained.tsv").read_bytes()
    rows = rows_of(tmp_path / "explained.tsv")
    table = pq.read_table(project.table("explained", summary.run_id)).to_pylist()
    assert len(rows) == len(table) > 0 and summary.n_explained == sum(row["q_value"] <= 0.01 for row in table)
    assert list(rows[0]) == [
        "spectrum_file",
        "spectrum_id",
        "peptide",
        "charge",
        "similarity",
        "mass_difference",
        "q_value",
        "nearest_spectrum",
    ]
    psms = pq.read_table(project.table("psms", summary.source_run)).to_pylist()
    accepted = [row for row in psms if row["rank"] == 1 and not row["is_decoy"] and row["q_value"] <= 0.01]
    psm_of = {row["spectrum"]: row for row in accepted}
    for row in table:
        assert row["spectrum"] not in psm_of and row["similarity"] >= 0.6
        assert psm_of[row["nearest"]]["peptide"] == row["peptide"] and psm_of[row["nearest"]]["charge"] == row["charge"]
        assert abs(row["mass_difference"]) <= 1e-5 * psm_of[row["nearest"]]["calculated_mass"] * 1.01
    status = pq.read_table(project.table("map", summary.run_id)).column("status").to_pylist()
    assert status.count(1) == len(psm_of) == summary.n_identified and status.count(2) == summary.n_explained
    assert len(status) == summary.n_spectra
    assert json.loads(project.table("run", summary.run_id).read_text())["source_run"] == summary.source_run


def test_explain_command_explains_and_exports(identified, tmp_path, capsys):
    assert main(["explain", str(identified), "--device", "cpu", "--minimum-similarity", "0.7", "--preset", "low-resolution"]) == 0
    assert "resemble one of" in capsys.readouterr().out
    assert main(["export", str(identified), "--format", "tsv", "--out", str(tmp_path / "e.tsv")]) == 0
    assert (tmp_path / "e.tsv").read_text().startswith("spectrum_file\tspectrum_id\tpeptide\t")


def test_explain_rejects_projects_without_identification(identified, spectra, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        run_search(EXPLAIN, inputs={"project": [tmp_path / "nothing"]})
    with pytest.raises(InputError, match="has no run 'identify-0099'"):
        run_search(EXPLAIN, inputs={"project": [identified]}, run="identify-0099")
    run_search(CLUSTER, inputs={"spectra": [spectra]}, project=tmp_path / "p")
    with pytest.raises(InputError, match="no finished identification"):
        run_search(EXPLAIN, inputs={"project": [tmp_path / "p"]})
    with pytest.raises(ParameterError, match="expected a finished identification"):
        run_search(EXPLAIN, inputs={"project": [tmp_path / "p"]}, run="cluster-0001")
    with pytest.raises(ProteoscopeError, match=r"would be overwritten|belongs to the project"):
        run_search(EXPLAIN, inputs={"project": [identified]}, out=identified / "results" / "x.tsv")


@pytest.mark.parametrize(("table", "reason"), [("spectra", "no stored peaks"), ("psms", "no PSM up to a q-value")])
def test_explain_rejects_identifications_without_peaks_or_psms(table, reason, identified, tmp_path):
    source = Project.open(identified)
    project = Project.create_or_open(tmp_path / "p")
    with project.run("identify", source.runs()[0].parameters, version="1") as run:
        for name in ("psms", "spectra"):
            read = pq.read_table(source.table(name, "identify-0001"))
            if name == "psms" == table:
                read = read.slice(0, 0)
            if name != table or table == "psms":
                run.write_table(name, read)
    with pytest.raises(InputError, match=reason):
        run_search(EXPLAIN, inputs={"project": [tmp_path / "p"]})
