"""Output of a superposition: superposed coordinates, an alignment, and scripts in which no name is a command."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.structures.commands import COMMANDS
from proteoscope.engine.structures.outputs import ROW_COLUMNS, cigar, identity
from proteoscope.engine.structures.reading import read_structure
from tests.engine.structures.examples import as_mmcif, as_pdb, atoms_of, helix
from tests.engine.structures.test_superposition import walk

HOSTILE = "x;system('touch owned');$(touch owned)`touch owned`&exec"
COMMAND = {command.name: command for command in COMMANDS}


def run(name: str, *arguments: object) -> list[str]:
    parser = ArgumentParser()
    COMMAND[name].add(parser)
    received: list[str] = []
    COMMAND[name].run(parser.parse_args([str(argument) for argument in arguments]), Progress(lambda event: received.append(event.message)))
    return [line for line in received if line]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    place = np.concatenate([helix(20), walk(25, 3) + 25.0])
    query, target = folder / f"{HOSTILE}.pdb", folder / "target.cif"
    query.write_bytes(as_pdb(atoms_of(place, ";")))
    turned = place[:, [1, 2, 0]] + 40.0
    target.write_bytes(as_mmcif(atoms_of(turned[5:]), -20).replace(b"'a helix'", b"'a helix; delete all'"))
    return folder / "out", query, target


def test_superpose_command_writes_all_atoms(pair: tuple[Path, Path, Path]) -> None:
    out, query, target = pair
    messages = run("superpose", query, target, "--out", out)
    assert "TM-score" in messages[-1]
    assert {path.name for path in out.iterdir()} == {
        "superposition.tsv",
        "alignment.fasta",
        "query.cif",
        "query.pdb",
        "target.cif",
        "target.pdb",
        "superposition.pml",
        "superposition.cxc",
    }
    header, line = (out / "superposition.tsv").read_text().splitlines()
    row = dict(zip(header.split("\t"), line.split("\t"), strict=True))
    assert tuple(row) == ROW_COLUMNS
    assert float(row["tm_score_target"]) == pytest.approx(1.0, abs=1e-3)
    assert (row["aligned_length"], row["cigar"]) == ("40", "5I40M")
    for ending in ("pdb", "cif"):
        fixed, moved = (read_structure(out / f"{name}.{ending}").chains for name in ("query", "target"))
        assert np.allclose(fixed.position[5:], moved.position, atol=3e-3)
    rotation = np.array(row["rotation"].split(","), float).reshape(3, 3)
    translation = np.array(row["translation"].split(","), float)
    before = read_structure(target).chains.position
    assert np.allclose(before @ rotation.T + translation, read_structure(out / "target.cif").chains.position, atol=2e-3)


def test_superpose_scripts_contain_no_commands_from_names(pair: tuple[Path, Path, Path]) -> None:
    out, query, target = pair
    run("superpose", query, target, "--out", out)
    for name in ("superposition.pml", "superposition.cxc"):
        text = (out / name).read_text()
        assert not re.search(r"touch|owned|system|exec|delete|\$|`|'|;", text)
        assert not re.search(r"[^\w #,.:+\\\n-]", text)
    pymol = (out / "superposition.pml").read_text()
    # A minus sign of a number is written so that it does not become a range.
    assert "target and resi \\-19-" in pymol


def test_superpose_alignment_contains_both_complete_sequences(pair: tuple[Path, Path, Path]) -> None:
    out, query, target = pair
    run("superpose", query, target, "--out", out)
    records = [record.partition("\n")[2].replace("\n", "") for record in (out / "alignment.fasta").read_text().split(">")[1:]]
    assert len(records[0]) == len(records[1])
    assert records[0].replace("-", "") == read_structure(query).chains.sequence(0)
    assert records[1].replace("-", "") == read_structure(target).chains.sequence(0)


def test_superpose_error_requests_a_chain_when_ambiguous(tmp_path: Path) -> None:
    path = tmp_path / "two.pdb"
    path.write_bytes(as_pdb(atoms_of(helix(8)) + atoms_of(helix(9) + 20.0, "B")))
    with pytest.raises(InputError, match="A, B"):
        run("superpose", path, path, "--out", tmp_path / "out")
    run("superpose", f"{path}:A", f"{path}:B", "--out", tmp_path / "out")


@pytest.mark.parametrize("seed", range(20))
def test_superpose_cigar_reproduces_the_alignment(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 12, 2)
    k = rng.integers(0, min(n, m) + 1)
    pairs = np.stack([np.sort(rng.choice(n, k, replace=False)), np.sort(rng.choice(m, k, replace=False))], axis=1)
    i = j = 0
    rebuilt = []
    for count, kind in re.findall(r"(\d+)([MID])", cigar(pairs, n, m)):
        for _ in range(int(count)):
            if kind == "M":
                rebuilt.append([i, j])
            i, j = i + (kind != "D"), j + (kind != "I")
    assert (rebuilt, i, j) == (pairs.tolist(), n, m)


def test_superpose_identity_excludes_unknown_residues() -> None:
    a = np.array([0, 23, 2], np.int8)
    assert identity(a, a, np.array([[0, 0], [1, 1], [2, 2]])) == pytest.approx(2 / 3)
