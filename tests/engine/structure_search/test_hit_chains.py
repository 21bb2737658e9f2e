"""Chains of a run's hits are found again in its files, and hits are written superposed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.structure_search.hit_chains import HitChains, write_hit, write_hits
from proteoscope.engine.structures.building import build_database
from proteoscope.engine.structures.counting import count_database, count_structures
from proteoscope.engine.structures.reading import read_structure
from tests.engine.structures.examples import as_mmcif, as_pdb, atoms_of, helix


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Write a helix, a file with two chains, and an invalid file."""
    made = {"one": tmp_path / "one.cif", "two": tmp_path / "two.pdb", "bad": tmp_path / "bad.pdb"}
    made["one"].write_bytes(as_mmcif(atoms_of(helix(12)), shift=7))
    made["two"].write_bytes(as_pdb(atoms_of(helix(9), "A") + atoms_of(helix(14) + 30.0, "B")))
    made["bad"].write_text("nothing of the kind\n")
    return made


def row_of(query, target, rotation=None, translation=(1.0, 2.0, 3.0)) -> dict:
    n = min(len(query.position), len(target.position))
    turned = np.eye(3) if rotation is None else rotation
    more = len(query.position) - n
    return {
        "query": query.names[0],
        "target": target.names[0],
        "score": 12.5,
        "z_score": 3.0,
        "phase1_ratio": float("nan"),
        "rmsd": 1.5,
        "tm_score_query": 0.5,
        "tm_score_target": 0.25,
        "cigar": f"{n}M" + (f"{more}I" if more else ""),
        "rotation": turned.ravel().tolist(),
        "translation": ",".join(map(str, translation)),
    }


def test_hit_chains_are_found_in_files_and_in_a_database(files: dict[str, Path], tmp_path: Path) -> None:
    database = build_database([files["one"], files["two"]], tmp_path / "database", processes=1)
    both = read_structure(files["two"]).chains
    for inputs in ([("database", files["one"]), ("database", files["two"])], [("database", tmp_path / "database" / "database.json")]):
        chains = HitChains([("queries", files["two"]), *inputs])
        assert chains.query("two:B", both.sequence(1)).chains.position.tolist() == both.position[both.rows(1)].tolist()
        # In a database, a chain has another position than in its file.
        number = database.chains.names.index("two:A")
        trace = chains.target("two:A", both.sequence(0), number)
        assert trace.chains.names == ("two:A",) and trace.path == files["two"]
        assert chains.target("two:A", both.sequence(0), 77).chains.names == ("two:A",)
        # Of a comparison of all chains, the queries are the database.
        query = HitChains(inputs).query("two:B", both.sequence(1))
        assert query.chains.position.tolist() == both.position[both.rows(1)].tolist() and query.path == files["two"]


def test_hit_chain_is_distinct_from_chain_of_equal_sequence(files: dict[str, Path], tmp_path: Path) -> None:
    files["like"] = tmp_path / "like.pdb"
    files["like"].write_bytes(as_pdb(atoms_of(helix(9), "A")))
    database = build_database([files["two"], files["like"]], tmp_path / "database", processes=1)
    sequence, names = read_structure(files["two"]).chains.sequence(0), database.chains.names
    chains = HitChains([("queries", files["two"]), ("database", tmp_path / "database" / "database.json")])
    for index in range(len(names)):
        assert chains.target("two:A", sequence, index).path == files["two"]
        assert chains.target("like", sequence, index).path == files["like"]


def test_hit_chains_report_missing_or_changed_file(files: dict[str, Path]) -> None:
    chains = HitChains([("queries", files["one"])])
    with pytest.raises(InputError, match="no longer holds one as it was searched"):
        chains.query("one", "WWWWWWWWWWWW")
    files["one"].unlink()
    with pytest.raises(InputError):
        HitChains([("queries", files["one"])]).query("one", "AGMWSKDV")


def test_written_structure_hit_has_all_atoms_superposed(files: dict[str, Path], tmp_path: Path) -> None:
    query, target = read_structure(files["one"]).chains, read_structure(files["two"]).chains.taken([0])
    chains = HitChains([("queries", files["one"]), ("database", files["two"])])
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    hit = row_of(query, target, turn)
    traces = chains.query("one", query.sequence(0)), chains.target("two:A", target.sequence(0), 0)
    written, messages = write_hit(tmp_path / "out", *traces, hit)
    assert not messages and {"query.cif", "target.pdb", "alignment.fasta", "superposition.pml"} <= {path.name for path in written}
    moved = read_structure(tmp_path / "out" / "target.cif").chains
    assert np.allclose(moved.position, target.position @ turn.T + [1.0, 2.0, 3.0], atol=1e-3)
    assert (tmp_path / "out" / "target.pdb").read_text().count("ATOM") + (tmp_path / "out" / "target.pdb").read_text().count("HETATM") == 27
    files["two"].unlink()
    _, messages = write_hit(tmp_path / "again", *traces, hit)
    assert len(messages) == 1 and "only Cα" in messages[0]
    assert np.allclose(read_structure(tmp_path / "again" / "target.cif").chains.position, moved.position, atol=1e-3)


def test_written_structure_hits_have_the_colours_of_the_picture(files: dict[str, Path], tmp_path: Path) -> None:
    query, two = read_structure(files["one"]).chains, read_structure(files["two"]).chains
    chains = HitChains([("queries", files["one"]), ("database", files["two"])])
    trace = chains.query("one", query.sequence(0))
    hits = []
    for k, shift in ((0, (1.0, 2.0, 3.0)), (1, (-30.0, 0.0, 4.0))):
        target = two.taken([k])
        hits.append((chains.target(two.names[k], two.sequence(k), k), row_of(query, target, translation=shift)))
    colours = [
        np.full((len(trace_of_hit.chains.position), 3), 40 * k, np.uint8)
        for k, trace_of_hit in enumerate([trace, *(hit for hit, _ in hits)], 1)
    ]
    written, messages = write_hits(tmp_path / "out", trace, hits, colours, "tube", (0, 0, 0))
    assert not messages
    assert {path.name for path in written} == {
        *(f"{name}.{ending}" for name in ("query", "hit_1", "hit_2") for ending in ("cif", "pdb")),
        "picture.pml",
        "picture.cxc",
    }
    for k, (hit, row) in enumerate(hits, 1):
        moved = read_structure(tmp_path / "out" / f"hit_{k}.cif").chains.position
        assert np.allclose(moved, hit.chains.position + np.array(row["translation"].split(","), float), atol=1e-3)
    script = (tmp_path / "out" / "picture.pml").read_text()
    assert "color 0x282828, query\n" in script and "color 0x787878, hit_2\n" in script
    # The read chains are unchanged: superposing again gives the same positions.
    again, _ = write_hits(tmp_path / "out", trace, hits, colours)
    assert np.allclose(read_structure(again[2]).chains.position, hits[0][0].chains.position + np.array([1.0, 2.0, 3.0]), atol=1e-3)


def test_count_structures_counts_chains_residues_and_errors(files: dict[str, Path], tmp_path: Path) -> None:
    counted = count_structures([(files["one"], ""), (files["two"], "B"), (files["bad"], "")], most=10)
    assert counted is not None and (counted.n_files, counted.n_chains, counted.n_residues) == (3, 2, 26) and "bad.pdb" in counted.problem
    some = count_structures([(files["two"], ""), (files["bad"], "")], most=1)
    assert some is not None and (some.n_files, some.n_read, some.n_chains, some.problem) == (2, 1, 2, "")
    assert count_structures([(files["one"], "")], most=1, is_wanted=lambda: False) is None
    rows = [(*row[:11], 80.0) for row in atoms_of(helix(9))]
    (tmp_path / "predicted.pdb").write_bytes(as_pdb(rows, "TITLE     ALPHAFOLD MODEL\n"))
    predicted = count_structures([(tmp_path / "predicted.pdb", "")], most=1)
    assert predicted is not None and predicted.n_predicted == 1
    build_database([tmp_path / "predicted.pdb", files["one"]], tmp_path / "database", processes=1)
    held = count_database(tmp_path / "database")
    assert (held.n_chains, held.n_residues, held.n_predicted, held.problem) == (2, 21, 1, "")
    assert count_database(tmp_path).problem
