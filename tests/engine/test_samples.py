"""Sample data of each search: a search of each kind finds the known results in them."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from proteoscope import resources
from proteoscope.engine.command_line import search as search_command
from proteoscope.engine.command_line.main import main
from proteoscope.engine.entry import Search
from proteoscope.engine.project import Project
from proteoscope.engine.searches import SEARCHES, run_search, search_of_kind
from proteoscope.engine.summary import Summary
from tests.conftest import REPOSITORY, leave_advice_out
from tests.output_schema import check_output


def rows(folder: Path, run: str, table: str) -> list[dict[str, Any]]:
    """Return the rows of a result table of a run."""
    records: list[dict[str, Any]] = pq.read_table(folder / "results" / run / f"{table}.parquet").to_pylist()
    return records


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the project of a demo."""
    return tmp_path_factory.mktemp("demos") / "bench"


@pytest.fixture(autouse=True)
def _also_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the summary of each demo can be written as JSON, as the shipped schema describes."""
    plain = search_command.summary_lines

    def lines(entry: Search, summary: Summary, out: str | None) -> Iterator[str]:
        check_output(entry.kind, summary.record())
        yield from plain(entry, summary, out)

    monkeypatch.setattr(search_command, "summary_lines", lines)
    leave_advice_out(monkeypatch)


def accepted(folder: Path, run: str, table: str) -> list[dict[str, Any]]:
    """Return the targets of a result table that are accepted at 1 %."""
    return [row for row in rows(folder, run, table) if not row["is_decoy"] and row["q_value"] is not None and row["q_value"] <= 0.01]


def of(kind: str, bench: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Run the demo of a search, and return the id of its run and its messages."""
    assert main(["demo", *kind.split(), "--out", str(bench), "--device", "cpu", "--threads", "2"]) == 0
    return [run.id for run in Project.open(bench).runs() if run.kind == kind.split()[0]][-1], capsys.readouterr().out


def test_every_search_has_a_sample() -> None:
    assert [search.kind for search in SEARCHES if search.demo is None] == []


def test_library_sample_finds_spectra_with_library_of_other_runs(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, said = of("library", bench, capsys)
    psms = accepted(bench, run, "psms")
    # The sample is albumin digested with trypsin, which also digests itself.
    contaminants = [row for row in psms if any(name in row["proteins"][0] for name in ("ALBU_BOVIN", "TRYP_PIG"))]
    assert len(contaminants) >= 40 and len(psms) - len(contaminants) <= 1
    assert "1 % FDR" in said


@pytest.mark.parametrize("search", [search for search in SEARCHES if search.demo is not None], ids=lambda search: search.kind)
def test_files_and_presets_of_samples_are_shipped(search: Any) -> None:
    text = resources.path("samples", "SOURCES.md").read_text()
    for demo in search.demos:
        search.parameters_of(demo.preset)
        needed = {input_file.name for input_file in search.inputs if not (input_file.is_optional or input_file.content == "project")}
        assert demo.after or needed == set(demo.samples) & needed
        assert not demo.after or search_of_kind(demo.after).demo_with(demo.data) is not None
        for path in [*(path for paths in demo.inputs.values() for path in paths), *demo.option_files.values()]:
            assert path.is_file() and f"`{path.name}`" in text


def test_sample_files_are_within_the_size_limit() -> None:
    assert sum(path.stat().st_size for path in resources.path("samples").iterdir()) <= 12_000_000


def test_sample_runs_identify_albumin_in_many_spectra(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, said = of("identify", bench, capsys)
    psms = accepted(bench, run, "psms")
    assert len(psms) >= 160 and sum("ALBU_BOVIN" in row["proteins"][0] for row in psms) >= 0.85 * len(psms)
    assert {row["spectrum_file"] for row in psms} == {"BSA1.mzML.gz", "BSA2.mzML.gz", "BSA3.mzML.gz"}
    assert "few" not in said.partition("PSMs")[2].partition("\n")[0]


def test_sample_runs_quantify_albumin_in_each_run(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = of("quantify --data measured", bench, capsys)
    amounts = [row for row in rows(bench, run, "protein_quantities") if "ALBU_BOVIN" in row["accession"]]
    assert len(amounts) == 3 and all(row["quantity"] > 0 for row in amounts)


def test_quantify_sample_finds_increased_and_decreased_proteins(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = of("quantify", bench, capsys)
    truth = dict(line.split("\t") for line in resources.path("samples", "simulated_tmt10_truth.tsv").read_text().splitlines()[1:])
    changes = {row["accession"]: row for row in rows(bench, run, "protein_changes")}
    changed = {accession: row["log2_fold_change"] for accession, row in changes.items() if row["q_value"] <= 0.05}
    planted = {accession: float(change) for accession, change in truth.items() if float(change)}
    assert sum(change > 0 for change in changed.values()) >= 10 and sum(change < 0 for change in changed.values()) >= 10
    assert all(change * planted.get(accession, 0.0) > 0 for accession, change in changed.items())
    # Reporter ions of few peptides scatter: the median error is below a quarter of a doubling.
    assert statistics.median(abs(changed[accession] - planted[accession]) for accession in changed) < 0.25


def test_modified_sample_finds_simulated_modifications(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, said = of("modified --data simulated", bench, capsys)
    assert len(accepted(bench, run, "psms")) >= 100
    counts = {name: int(n) for name, n in re.findall(r"^  (\w+) .* Da +(\d+) PSMs", said, re.MULTILINE)}
    planted = {"Phospho": 60, "Methyl": 25, "Oxidation": 20, "Nitro": 15, "Acetyl": 10}
    assert all(0.7 * n <= counts[name] <= n for name, n in planted.items())


def test_demo_rejects_sample_data_that_the_search_does_not_offer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "align", "--data", "simulated", "--out", str(tmp_path / "bench")]) == 2
    assert "demo align has no simulated data" in capsys.readouterr().err


def test_sample_search_finds_bovine_relative_of_human_albumin(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = of("align", bench, capsys)
    best = next(row for row in rows(bench, run, "hits") if row["query"] == "1AO6_A")
    # 76 % of the residues are identical (Peters 1995, All about albumin).
    assert "ALBU_BOVIN" in best["subject"] and 0.74 < best["identity"] < 0.78


def test_sample_albumin_domains_share_one_fold(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = of("structures", bench, capsys)
    scores = {row["target"][-1]: row["tm_score_query"] for row in rows(bench, run, "hits")}
    # Chains of one fold have TM-scores above 0.5 (Xu and Zhang 2010).
    assert scores["K"] > 0.99 and min(scores["I"], scores["J"]) > 0.5
    assert all(scores.get(other, 0.0) < 0.5 for other in "CD")


def test_reads_sample_maps_simulated_reads_to_their_origin(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = of("reads", bench, capsys)
    placed = {row["pattern"]: row for row in rows(bench, run, "alignments") if row["text"]}
    names = {name: re.fullmatch(r"read\d+_at_(\d+)([+-])", name) for name in placed}
    assert len(placed) == 400 and all(names.values()), "random reads are not mapped"
    right = [
        abs(row["text_start"] - int(match[1])) <= 12 and row["strand"] == match[2]
        for name, row in placed.items()
        if (match := names[name]) is not None
    ]
    assert sum(right) >= 396
    assert any(row["gaps"] for row in placed.values())


def test_sample_comet_results_name_the_sample_protein(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, said = of("import", bench, capsys)
    assert len(accepted(bench, run, "psms")) >= 100
    assert "matches of Comet imported" in said and "ALBU_BOVIN" in said


def test_explain_sample_explains_unidentified_spectra(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = of("explain", bench, capsys)
    explained = [row for row in rows(bench, run, "explained") if row["q_value"] is not None and row["q_value"] <= 0.01]
    assert len(explained) >= 12 and {row["spectrum_file"] for row in explained} >= {"BSA1.mzML.gz", "BSA2.mzML.gz"}


def test_sample_spectra_form_clusters(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = of("cluster", bench, capsys)
    sizes = [row["n_members"] for row in rows(bench, run, "clusters")]
    assert sum(size >= 2 for size in sizes) >= 20


def test_dependent_samples_run_after_identification(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, said = of("evidence", bench, capsys)
    kinds = [run.kind for run in Project.open(bench).runs()]
    assert kinds[-3:] == ["identify", "modified", "evidence"]
    assert re.search(r"Guanidinyl|Methylthio|Carbamidomethyl", said), "residues of albumin are modified"
    assert "1 of these proteins has a similar chain among the structures" in said
    nearest = next(sequence for sequence in rows(bench, run, "proteins") if sequence["chain"])
    assert "ALBU_BOVIN" in nearest["accession"] and 0.7 < nearest["identity"] < 0.8
    # The sample has guanidinated lysines, on and below the surface, and near enough to others to be linked.
    sites = rows(bench, run, "sites")
    lysines = [site for site in sites if site["modification"] == "Guanidinyl" and site["site_probability"] > 0.9]
    assert {lysine["residue"] for lysine in lysines} == {"K"} and {site["place"] for site in sites} >= {"surface", "buried"}
    assert "Carbamidomethyl" not in {site["modification"] for site in sites}, "the search assumed it on all cysteines"
    assert nearest["n_sites"] == len(
        {site["position"] for site in sites if site["accession"] == nearest["accession"] and not site["is_alternative"]}
    )
    assert any(row["is_modified"] for row in rows(bench, run, "contacts"))
    done = run_search("explain", {"project": [bench]}, preset=search_of_kind("explain").demo.preset, device="cpu", threads=2)
    assert rows(bench, str(done.run_id), "explained")


def test_demo_rejects_settings_that_change_its_usual_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "align", "--out", str(tmp_path / "bench"), "--set", "matrix=BLOSUM45"]) == 2
    assert "its default parameters" in capsys.readouterr().err
    assert main(["demo", "evidence", "--out", str(tmp_path / "bench"), "--set", "run=x"]) == 2
    assert "runs identify and then modified and then evidence" in capsys.readouterr().err


def test_sample_run_starts_gpu_detection_after_its_imports() -> None:
    # Concurrent threads may import a package incompletely; this needs its own process, since it is imported here already.
    program = """
import sys, threading
from proteoscope.engine.command_line import search
seen = []
class Thread(threading.Thread):
    def start(self):
        names = "proteoscope.engine.execution.devices", "proteoscope.engine.project.index_store"
        seen.extend(name for name in names if name in sys.modules)
search.threading.Thread = Thread
search.begin_gpus("cpu")
print(*seen)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["proteoscope.engine.execution.devices", "proteoscope.engine.project.index_store"]
