"""Every search that computes on devices gives the same tables on workers, to the byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.project import Project
from proteoscope.engine.searches import SEARCHES
from tests.engine.execution.cluster.processes import Workers, scheduler_with_workers
from tests.engine.views.read_projects import read_files
from tests.engine.views.search_projects import search_files
from tests.engine.views.structure_projects import write_structures
from tests.searching import few_proteins

SPECTRA, DATABASE = (
    resources.path("samples", "Ecoli_MS2_small.mzML.gz"),
    resources.path("samples", "18Protein_SoCe_Tr_detergents_trace.fasta.gz"),
)
BOVINE = resources.path("samples", "BSA1.mzML.gz")
WITHOUT_DEVICES = {"import", "explain", "quantify"}
LONG = {"modified", "evidence"}
"""Searches that build on an identification, which takes long."""


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    with scheduler_with_workers(tmp_path_factory.mktemp("workers"), 2) as started:
        yield started


@pytest.fixture(scope="module")
def identified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Project with an identification, on whose copies other searches build."""
    folder = tmp_path_factory.mktemp("identified") / "project"
    assert main(["identify", str(BOVINE), "--database", str(DATABASE), "--preset", "low-resolution", "--out", str(folder), *HERE]) == 0
    return folder


HERE = ["--quiet", "--device", "cpu", "--threads", "2"]


def commands(kind: str, folder: Path, identified: Path) -> list[str]:
    """Return the arguments of a small search of a kind, with ``OUT`` for the folder of its results."""
    genome = "".join(np.random.default_rng(3).choice(list("ACGT"), 6000))
    match kind:
        case "identify":
            return ["identify", str(SPECTRA), "--database", str(few_proteins(folder)), "--preset", "low-resolution", "--out", "OUT"]
        case "modified":
            return ["modified", "--from-project", str(identified), "--preset", "low-resolution", "--out", "OUT"]
        case "cluster":
            return ["cluster", str(SPECTRA), "--preset", "low-resolution", "--out", "OUT"]
        case "align":
            queries, database = search_files(folder / "files", 2, 6, 60)
            return ["align", str(queries), str(database), "--out", "OUT/hits.tsv", "--project", "OUT/project"]
        case "reads":
            texts, reads = read_files(folder / "files", genome, 30)
            return ["reads", str(texts), str(reads), "--out", "OUT/reads.tsv", "--project", "OUT/project"]
        case "structures":
            query, searched = write_structures(folder / "files")
            return ["structures", str(query), "--database", str(searched), "--out", "OUT/hits.tsv", "--project", "OUT/project"]
        case "library":
            library = folder / "library.msp"
            assert main(["predict", str(resources.path("samples", "protein_queries.fasta")), "--out", str(library)]) == 0
            return ["library", str(BOVINE), "--library", str(library), "--preset", "low-resolution", "--out", "OUT"]
        case "evidence":
            structure = resources.path("samples", "1ao6_A.pdb.gz")
            return ["evidence", str(identified), "--structures", str(structure), "--out", "OUT/proteins.tsv"]
    raise AssertionError(f"there is no small search of the kind {kind}")


def results(out: Path) -> dict[str, object]:
    """Return all tables and files of a search that do not depend on time."""
    contents: dict[str, object] = {}
    for path in sorted(out.rglob("*")):
        if path.suffix == ".parquet":
            contents[path.name] = pq.read_table(path).to_pydict()
        elif path.suffix in (".tsv", ".fasta", ".mgf"):
            contents[path.name] = path.read_bytes()
    return contents


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(search.kind, marks=[pytest.mark.long] * (search.kind in LONG))
        for search in SEARCHES
        if search.kind not in WITHOUT_DEVICES
    ],
)
def test_search_tables_are_identical_on_workers(kind: str, workers: Workers, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    arguments = commands(kind, tmp_path, request.getfixturevalue("identified") if kind in LONG else tmp_path)
    contents = []
    for name, options in (("here", HERE), ("workers", [*HERE, *workers.options])):
        out = tmp_path / name
        out.mkdir()
        assert main([argument.replace("OUT", str(out)) for argument in [*arguments, *options]]) == 0
        contents.append(results(out))
    assert contents[0] and contents[0].keys() == contents[1].keys()
    for name, content in contents[0].items():
        assert content == contents[1][name], name


def test_searches_without_devices_do_not_accept_workers() -> None:
    assert {search.kind for search in SEARCHES if not search.takes_workers} == WITHOUT_DEVICES


def test_run_record_lists_workers(workers: Workers, tmp_path: Path) -> None:
    queries, database = search_files(tmp_path / "files", 1, 3, 20)
    given = ["align", str(queries), str(database), "--out", str(tmp_path / "hits.tsv"), "--project", str(tmp_path / "project")]
    assert main([*given, *HERE, *workers.options]) == 0
    (run,) = Project.open(tmp_path / "project").runs()
    assert "worker" in run.device
