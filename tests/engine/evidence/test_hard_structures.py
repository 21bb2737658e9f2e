"""Gaps, insertion codes, selenomethionine, several models, isoforms and remote relatives are shown as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gemmi
import pytest

from engine.evidence.tables import CHAINS, MAPPED_RESIDUES, PARALOGUES, PEPTIDE_PLACES, PROTEINS
from engine.project import Project
from engine.results.columns import Table
from engine.results.reader import read_stored
from engine.searches import run_search
from engine.structures.reading import read_structure
from tests.engine.evidence.evidence_projects import write_albumin, write_identification

GONE = range(200, 206)
INSERTED, SELENIUM = 100, 123
CODE = "a"
OWN = "GGSHHEALLKNNDEAFGHILKPPSEQTHAVLKSSNPQSTVKDDEELLGGK"


def rows(project: Path, run: str, table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_stored(Project.open(project), run, table, list(table.by_name)).to_pylist()
    return found


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A project with the sequence of albumin, an isoform that lacks a part, and a relative of few identities; and its run."""
    folder = tmp_path_factory.mktemp("hard")
    path = write_albumin(folder)
    sequence = read_structure(path).chains.sequence(0)
    structure = gemmi.read_structure(str(path))
    chain = structure[0][0]
    for at in reversed(range(len(chain))):
        residue = chain[at]
        if residue.seqid.num in GONE:
            del chain[at]
        elif residue.seqid.num == INSERTED:
            residue.seqid = gemmi.SeqId(f"{INSERTED - 1}{CODE}")
        elif residue.seqid.num == SELENIUM:
            assert residue.name == "MET"
            residue.name, residue.het_flag = "MSE", "H"
            for atom in residue:
                if atom.name == "SD":
                    atom.name, atom.element = "SE", gemmi.Element("Se")
    other = structure[0].clone()
    other.num = 2
    for residue in other[0]:
        for atom in residue:
            atom.pos = gemmi.Position(atom.pos.x + 500, atom.pos.y, atom.pos.z)
    structure.add_model(other)
    path.write_text(structure.make_pdb_string())
    remote = "".join(letter if i % 6 == 0 or letter in "CW" else "ASGTEDKRNQ"[(i * 7) % 10] for i, letter in enumerate(sequence))
    project = write_identification(folder, {"WHOLE": sequence, "ISOFORM": sequence[:150] + sequence[290:] + OWN, "REMOTE": remote})
    done = run_search("evidence", {"project": [project], "structures": [path]}, device="cpu", threads=2, maximum_e_value=10.0)
    assert done.run_id is not None
    return project, done.run_id, sequence


def test_numbers_letters_and_missing_residues_are_those_of_the_file(found: tuple[Path, str, str]) -> None:
    project, run, sequence = found
    chains = rows(project, run, CHAINS)
    whole = next(number for number, one in enumerate(chains) if one["accession"] == "WHOLE")
    mapped = {one["position"]: one for one in rows(project, run, MAPPED_RESIDUES) if one["chain_row"] == whole}
    first = int(mapped[1]["author_number"])
    by_number = {one["author_number"]: one for one in mapped.values() if one["author_number"]}
    assert by_number[f"{INSERTED - 1}{CODE}"]["position"] == INSERTED - first + 1 and str(INSERTED) not in by_number
    assert by_number[str(SELENIUM)]["chain_letter"] == "M" and by_number[str(SELENIUM)]["is_identical"]
    unseen = {position for position, one in mapped.items() if one["chain_residue"] is None}
    assert unseen == {number - first + 1 for number in GONE} and chains[whole]["n_unseen"] == len(GONE)
    assert chains[whole]["identity"] == 1 and chains[whole]["n_aligned"] == len(sequence) - len(GONE)
    # One chain of the first model, whose exposure no copy of it changes.
    assert [one["chain"] for one in chains if one["accession"] == "WHOLE"] == ["1ao6_A"]
    assert all(one["exposure"] is not None for one in mapped.values() if one["chain_residue"] is not None)


def test_isoforms_share_peptides_and_a_part_that_one_lacks_supports_the_other(found: tuple[Path, str, str]) -> None:
    project, run, _ = found
    shared = {frozenset((one["accession"], one["other"])): one for one in rows(project, run, PARALOGUES)}
    one = shared[frozenset(("WHOLE", "ISOFORM"))]
    own = one["n_own"] if one["accession"] == "WHOLE" else one["n_of_other"]
    assert one["n_shared"] > 5 and own > 0
    places = rows(project, run, PEPTIDE_PLACES)
    assert {place["accession"] for place in places if place["n_places"] == 2} >= {"WHOLE", "ISOFORM"}


def test_a_remote_relative_is_told_with_its_identity_or_left_out(found: tuple[Path, str, str]) -> None:
    project, run, _ = found
    assert "REMOTE" in {one["accession"] for one in rows(project, run, PROTEINS)}
    remote = [one for one in rows(project, run, CHAINS) if one["accession"] == "REMOTE"]
    assert len(remote) == 1
    assert remote[0]["kind"] == ("homologous" if remote[0]["identity"] >= 0.3 else "distant") and remote[0]["identity"] < 0.3
