"""A structure search from files to its table."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from engine.command_line.main import main
from engine.errors import InputError
from engine.project import Project
from engine.structure_search.parameters import StructureSearchParameters
from engine.structure_search.results import COLUMNS
from engine.structure_search.search import find_structures
from engine.structures.building import build_database
from engine.structures.reading import read_structure

NAMES = ("1bvyf", "1c7na", "1biaa", "1bvoa", "1a6ja", "1a4ia", "1a8la", "1a99a", "1aora", "1a2oa", "1b25a", "1b63a")
"""1bvyf is a flavodoxin-like domain; others are of any folds."""


@pytest.fixture
def folder(shared_data, tmp_path) -> Path:
    found = tmp_path / "structures"
    found.mkdir()
    for name in NAMES:
        path = shared_data / "structures" / "bench_ca" / "pdb" / f"{name}.pdb"
        if path.exists():
            shutil.copy(path, found)
    return found


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def without_skipping(**changes) -> StructureSearchParameters:
    return StructureSearchParameters().changed(qualification_threshold=0, **changes)


@pytest.mark.parametrize("mode", ["sensitive", "published"])
def test_hits_are_what_their_transformation_and_alignment_say(folder, tmp_path, mode):
    out = tmp_path / "hits.tsv"
    summary = find_structures([folder / "1bvyf.pdb"], [folder], out, without_skipping(mode=mode), device="cpu")
    rows = rows_of(out)
    assert tuple(rows[0]) == COLUMNS and len(rows) == summary.n_hits > 5
    assert rows[0]["target"] == "1bvyf" and float(rows[0]["tm_score_query"]) == pytest.approx(1.0) and rows[0]["rmsd"] == "0"
    query = read_structure(folder / "1bvyf.pdb").chains
    for row in rows:
        target = read_structure(folder / f"{row['target']}.pdb").chains
        i = j = 0
        pairs = []
        for count, kind in re.findall(r"(\d+)([MID])", row["cigar"]):
            if kind == "M":
                pairs += [(i + k, j + k) for k in range(int(count))]
            i, j = i + int(count) * (kind != "D"), j + int(count) * (kind != "I")
        assert (i, j) == (len(query.position), len(target.position)) and len(pairs) == int(row["aligned_length"])
        rotation = np.array(row["rotation"].split(","), float).reshape(3, 3)
        assert np.linalg.det(rotation) == pytest.approx(1.0, abs=1e-5)
        moved = target.position @ rotation.T + np.array(row["translation"].split(","), float)
        own, other = np.array(pairs).T
        squares = ((query.position[own] - moved[other]) ** 2).sum(axis=1)
        assert float(row["rmsd"]) == pytest.approx(np.sqrt(squares.mean()), abs=0.01)
        assert float(row["identity"]) == pytest.approx((query.residue[own] == target.residue[other]).mean(), abs=1e-3)
        assert float(row["query_coverage"]) == pytest.approx(len(pairs) / i, abs=1e-3)
    if mode == "published":
        scores = [float(row["score"]) for row in rows]
        assert scores == sorted(scores, reverse=True)


def test_a_database_gives_the_hits_of_its_files(folder, tmp_path, own_cache):
    build_database([str(folder)], tmp_path / "database", processes=1)
    parameters, tables = without_skipping(top=8), []
    for k, given in enumerate(([folder], [tmp_path / "database"], [tmp_path / "database"])):
        out = tmp_path / f"{k}.tsv"
        find_structures([folder / "1c7na.pdb"], given, out, parameters, device="cpu")
        tables.append([{name: row[name] for name in ("target", "score", "rmsd", "cigar", "z_score")} for row in rows_of(out)])
    assert tables[0] == tables[1] == tables[2]


def test_the_threshold_leaves_chains_and_zero_skips_phase_1(folder, tmp_path):
    found = {}
    for threshold in (0.0, 0.2, 0.9):
        out = tmp_path / f"{threshold}.tsv"
        parameters = StructureSearchParameters().changed(qualification_threshold=threshold)
        summary = find_structures([folder / "1bvyf.pdb"], [folder], out, parameters, device="cpu")
        rows = rows_of(out)
        found[threshold] = summary.n_aligned
        assert all((row["phase1_ratio"] == "") == (threshold == 0) for row in rows)
        assert all(float(row["phase1_ratio"]) >= threshold for row in rows if row["phase1_ratio"])
    assert found[0.0] == summary.n_chains and found[0.0] >= found[0.2] > found[0.9] >= 1


def test_a_project_keeps_the_run_and_exports_the_same_table(folder, tmp_path):
    out = tmp_path / "hits.tsv"
    arguments = [
        str(folder / "1bvyf.pdb"),
        "--database",
        str(folder),
        "--out",
        str(out),
        "--device",
        "cpu",
        "--project",
        str(tmp_path / "p"),
    ]
    assert main(["structures", *arguments, "--quiet", "--weights", "1,1,1,0"]) == 0
    run = Project.open(tmp_path / "p").runs()[0]
    assert run.kind == "structures" and run.parameters["weights"] == [1, 1, 1, 0]
    assert main(["export", str(tmp_path / "p"), "--format", "tsv", "--out", str(tmp_path / "again.tsv")]) == 0
    assert (tmp_path / "again.tsv").read_bytes() == out.read_bytes()


def test_hits_are_written_superposed_into_folders_that_lie_where_they_should(folder, tmp_path):
    shutil.copy(folder / "1bvyf.pdb", folder / "..; rm x $(y).pdb")
    target = tmp_path / "superposed"
    find_structures([folder / "..; rm x $(y).pdb"], [folder], None, without_skipping(top=3), superpose=target, device="cpu")
    places = sorted(path for path in target.glob("*/*"))
    assert len(places) == 3 and all(re.fullmatch(r"[0-9A-Za-z_-]+", part) for path in places for part in path.relative_to(target).parts)
    assert all({"superposition.tsv", "superposition.pml", "superposition.cxc"} <= {one.name for one in path.iterdir()} for path in places)
    assert not any("$(" in one.read_text(encoding="utf-8") for path in places for one in path.glob("*.[pc][mx][lc]"))


def test_a_chain_that_is_not_there_is_told_with_those_that_are(shared_data, folder, tmp_path):
    parameters = without_skipping()
    with pytest.raises(InputError, match=r"has no chain 'Q'.*It has the protein chain A"):
        find_structures([f"{folder / '1bvyf.pdb'}:Q"], [folder], None, parameters, device="cpu")
    summary = find_structures([f"{folder / '1bvyf.pdb'}:{'A'}"], [folder], None, parameters, device="cpu")
    assert summary.n_queries == 1
    (tmp_path / "list.txt").write_text(f"# two\n{folder / '1bvyf.pdb'}\n\n{folder / '1c7na.pdb'}\n", encoding="utf-8")
    assert find_structures([tmp_path / "list.txt"], [folder], None, parameters, device="cpu").n_queries == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no files of structures"):
        find_structures([tmp_path / "empty"], [folder], None, parameters, device="cpu")
