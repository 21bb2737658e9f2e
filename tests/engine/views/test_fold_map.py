"""Map of folds: the pairs and clusters of a search of all chains against all, compared with its tables, and exported without Qt."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.project import Project
from proteoscope.engine.structure_search.tables import CLUSTERS, HITS, QUERIES
from proteoscope.engine.views.drawings import Bar, Cells, Label, text_width
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.fold_map import FoldMap, draw_fold_map, has_fold_clusters, read_fold_map
from proteoscope.engine.views.tables import ResultTables
from tests.engine.views.structure_projects import project_of_all_chains, project_with_structures


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project_of_all_chains(tmp_path_factory.mktemp("folds") / "project")


@pytest.fixture(scope="module")
def folds(project: Project) -> Iterator[FoldMap]:
    with open_run(project) as run:
        assert has_fold_clusters(run)
        read = read_fold_map(run.tables.source("clusters"))
        assert read is not None
        yield read


def test_fold_map_equals_tables_of_hits_and_clusters(folds: FoldMap, project: Project) -> None:
    hits = pq.read_table(project.table("hits")).to_pylist()
    lengths = {row["query"]: row["length"] for row in pq.read_table(project.table("queries")).to_pylist()}
    clusters = {row["chain"]: row for row in pq.read_table(project.table("clusters")).to_pylist()}
    assert sorted(folds.names) == sorted(clusters) and folds.n_chains == len(clusters)
    assert folds.cluster.tolist() == [clusters[name]["cluster"] for name in folds.names]
    assert folds.size.tolist() == [clusters[name]["size"] for name in folds.names]
    pairs = {}
    for number, row in enumerate(hits):
        by_longer = row["tm_score_target" if row["target_length"] > lengths[row["query"]] else "tm_score_query"]
        pairs[frozenset((row["query"], row["target"]))] = (number, by_longer)
    assert 0 < len(pairs) < len(folds.names) * (len(folds.names) - 1) // 2, "the example has pairs that were not superposed"
    for i, j in combinations(range(len(folds.names)), 2):
        number, score = pairs.get(frozenset((folds.names[i], folds.names[j])), (-1, np.nan))
        for a, b in ((i, j), (j, i)):
            assert folds.hits[a, b] == number
            np.testing.assert_equal(folds.scores[a, b], score)
    assert (folds.scores.diagonal() == 1).all() and (folds.hits.diagonal() == -1).all()


def test_fold_map_puts_the_chains_of_a_fold_together(folds: FoldMap) -> None:
    places = [at for at, name in enumerate(folds.names) if name.startswith("relative")]
    assert places == list(range(places[0], places[0] + 3)), folds.names
    # Average linkage: the merge of the last step has the mean distance of all pairs of its two groups.
    distance = 1 - np.nan_to_num(folds.scores)
    first, second = (leaves(folds.tree, int(node)) for node in folds.tree[-1, :2])
    order = leaves(folds.tree, len(folds.names) + len(folds.tree) - 1)
    place = {leaf: at for at, leaf in enumerate(order)}
    mean = distance[np.ix_([place[leaf] for leaf in first], [place[leaf] for leaf in second])].mean()
    assert folds.tree[-1, 2] == pytest.approx(mean)


def leaves(tree: np.ndarray, node: int) -> list[int]:
    n = len(tree) + 1
    return [node] if node < n else [leaf for child in tree[node - n, :2] for leaf in leaves(tree, int(child))]


def test_fold_map_of_many_chains_has_only_the_largest_clusters(project: Project) -> None:
    with open_run(project) as run:
        few = read_fold_map(run.tables.source("clusters"), most=3)
        assert read_fold_map(run.tables.source("clusters"), most=1) is None
    assert few is not None and few.n_chains > 3
    largest = pq.read_table(project.table("clusters"))["chain"].to_pylist()[:3]
    assert sorted(few.names) == sorted(largest)
    assert "the 3 chains of the largest clusters, of" in draw_fold_map(few).title


@pytest.mark.parametrize("size", [(400.0, 440.0), (230.0, 600.0), (900.0, 150.0)])
def test_fold_map_drawing_fits_its_page_and_selects_pairs(folds: FoldMap, size: tuple[float, float]) -> None:
    drawing = draw_fold_map(folds, *size)
    (cells,) = (shape for shape in drawing.shapes if isinstance(shape, Cells))
    assert cells.width == cells.height and cells.x + cells.width <= size[0] and cells.y + cells.height <= size[1]
    assert cells.targets is folds.hits and np.isnan(cells.values).sum() == np.isnan(folds.scores).sum()
    row, column = (int(at) for at in np.argwhere(folds.hits >= 0)[0])
    assert cells.tip is not None
    assert cells.tip(row, column) == f"{folds.names[row]} and {folds.names[column]}: TM-score {folds.scores[row, column]:.3f}"
    row, column = (int(at) for at in np.argwhere(np.isnan(folds.scores))[0])
    assert cells.tip(row, column).endswith("not superposed")
    texts = [shape for shape in drawing.shapes if isinstance(shape, Label)]
    assert all(shape.x + text_width(shape.text, drawing.font_size) <= size[0] for shape in texts)
    strip = [shape for shape in drawing.shapes if isinstance(shape, Bar) and shape.tip]
    coloured = sum(round(bar.height / cells.height * len(folds.names)) for bar in strip)
    assert coloured == int((folds.size > 1).sum())
    names = [shape.text for shape in drawing.shapes if isinstance(shape, Label) and shape.x > cells.x + cells.width and shape.y > cells.y]
    assert names in ([], list(folds.names))


def test_fold_map_shows_repeated_chains_and_pairs_once(tmp_path: Path) -> None:
    cluster = [(1, 2, "a", 0), (1, 2, "a", 0), (2, 1, "b", 1)]
    tables = {
        "clusters": pa.table(dict(zip(("cluster", "size", "chain", "chain_index"), zip(*cluster, strict=True), strict=True))),
        "queries": pa.table({"query_index": [0, 1], "length": [5, 6]}),
        "hits": pa.table(
            {
                "query_index": [0, 0, 1, 1],
                "target_index": [1, 1, 1, 7],
                "target_length": [6, 6, 6, 6],
                "tm_score_query": [0.1, 0.2, 0.9, 0.9],
                "tm_score_target": [0.3, 7.0, 0.9, 0.9],
            }
        ),
    }
    for name, table in tables.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    opened = ResultTables({name: tmp_path / f"{name}.parquet" for name in tables})
    folds = read_fold_map(opened.source("clusters"))
    opened.close()
    assert folds is not None and sorted(folds.names) == ["a", "b"] and folds.scores.tolist() == [[1, 1], [1, 1]]


def test_fold_map_is_exported_without_the_window(project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    starts = {"svg": b"<svg", "pdf": b"%PDF", "png": b"\x89PNG"}
    for kind, start in starts.items():
        assert main(["export", str(project.folder), "--format", "figures", "--out", str(tmp_path), "--figure-type", kind]) == 0
        content = (tmp_path / f"fold-map.{kind}").read_bytes()
        assert start in content[:200]
    assert b"relative0" in (tmp_path / "fold-map.svg").read_bytes()
    assert main(["export", str(project.folder), "--format", "figures", "--out", str(tmp_path / "x"), "--q-value", "0.1"]) == 2
    assert "no thresholds" in capsys.readouterr().err and not (tmp_path / "x").exists()


def test_fold_map_is_absent_if_the_search_had_queries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = project_with_structures(tmp_path / "project")
    with open_run(project) as run:
        assert not has_fold_clusters(run)
    assert main(["export", str(project.folder), "--format", "figures", "--out", str(tmp_path / "figures")]) == 2
    assert "has no map of folds. Search with --all" in capsys.readouterr().err and not (tmp_path / "figures").exists()


def test_structures_all_tables_have_the_described_columns(project: Project) -> None:
    for table in (CLUSTERS, HITS, QUERIES):
        assert pq.read_schema(project.table(table.name)).equals(table.schema())
