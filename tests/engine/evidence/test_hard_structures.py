"""Gaps, insertion codes, selenomethionine, several models, isoforms and remote relatives are shown as they are."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import gemmi
import numpy as np
import pytest
from Bio import Align

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.evidence.entry import EVIDENCE
from proteoscope.engine.evidence.tables import CHAINS, MAPPED_RESIDUES, PARALOGUES, PEPTIDE_PLACES
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.results.columns import Table
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.searches import run_search
from proteoscope.engine.structures.exposure import ChainAtoms, read_chain_atoms
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.views.evidence_pages import write_pages
from tests.engine.evidence.evidence_projects import distant, write_albumin, write_identification
from tests.engine.evidence.written_pages import html_tables, pdf_texts

GONE = range(200, 206)
INSERTED, SELENIUM = 100, 123
CODE = "a"
APART = 2.0  # Å from one model to the next, near enough that the atoms of both would hide each other
OWN = "GGSHHEALLKNNDEAFGHILKPPSEQTHAVLKSSNPQSTVKDDEELLGGK"


def rows(project: Path, run: str, table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_stored(Project.open(project), run, table, list(table.by_name)).to_pylist()
    return found


class Found(NamedTuple):
    """A project with its run, the sequence of albumin, and the files: that of the run, the same as mmCIF, and one of one model and MET."""

    project: Path
    run: str
    sequence: str
    hard: tuple[Path, Path]
    plain: Path


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
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
    plain = folder / "plain.pdb"
    plain.write_text(structure.make_pdb_string())
    for residue in chain:
        if residue.name == "MET":
            residue.name, residue.het_flag = "MSE", "H"
            for atom in residue:
                if atom.name == "SD":
                    atom.name, atom.element = "SE", gemmi.Element("Se")
    other = structure[0].clone()
    other.num = 2
    for residue in other[0]:
        for atom in residue:
            atom.pos = gemmi.Position(atom.pos.x + APART, atom.pos.y, atom.pos.z)
    structure.add_model(other)
    path.write_text(structure.make_pdb_string())
    structure.setup_entities()
    crystal = folder / "hard.cif"
    structure.make_mmcif_document().write_file(str(crystal))
    project = write_identification(
        folder, {"WHOLE": sequence, "ISOFORM": sequence[:150] + sequence[290:] + OWN, "DISTANT": distant(sequence)}
    )
    return Found(project, run_of(project, path), sequence, (path, crystal), plain)


def run_of(project: Path, structure: Path) -> str:
    done = run_search("evidence", {"project": [project], "structures": [structure]}, device="cpu", threads=2, maximum_e_value=10.0)
    assert done.run_id is not None
    return done.run_id


def test_numbers_letters_and_missing_residues_are_those_of_the_file(found: Found) -> None:
    project, run, sequence = found[:3]
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
    assert [one["chain"] for one in chains if one["accession"] == "WHOLE"] == ["1ao6_A"]


def test_a_second_model_near_the_first_and_selenomethionine_change_nothing(found: Found) -> None:
    told = ("author_number", "chain_letter", "is_identical", "secondary_structure", "exposure", "position", "chain_residue")

    def residues(run: str) -> list[tuple[Any, ...]]:
        chains = [number for number, one in enumerate(rows(found.project, run, CHAINS)) if one["accession"] == "WHOLE"]
        assert len(chains) == 1
        own = [one for one in rows(found.project, run, MAPPED_RESIDUES) if one["chain_row"] == chains[0]]
        return [tuple(one[name] for name in told) for one in own]

    plain = residues(run_of(found.project, found.plain))
    seen = [one for one in plain if one[-1] is not None]
    assert len(seen) == len(found.sequence) - len(GONE) and all(one[told.index("exposure")] is not None for one in seen)
    assert len({one[told.index("secondary_structure")] for one in seen}) > 1
    assert residues(found.run) == plain
    assert residues(run_of(found.project, found.hard[1])) == plain


def test_selenomethionine_keeps_its_atoms(found: Found) -> None:
    methionines = [k for k, letter in enumerate(read_structure(found.plain).chains.sequence(0)) if letter == "M"]
    assert len(methionines) > 5
    for path in (found.plain, *found.hard):
        chains = read_structure(path).chains
        (atoms,) = read_chain_atoms(path, [chains])
        assert isinstance(atoms, ChainAtoms) and atoms.is_whole.all()
        n_atoms = np.bincount(atoms.residue, minlength=len(chains.residue))
        assert [int(n_atoms[k]) for k in methionines] == [8] * len(methionines)  # N, CA, C, O, CB, CG, SD or SE, CE
        # As many as the file has in its first model, and none of the second.
        assert len(atoms.residue) == sum(len(residue) for residue in gemmi.read_structure(str(path))[0][0])


def test_isoforms_share_peptides_and_a_part_that_one_lacks_supports_the_other(found: Found) -> None:
    project, run = found[:2]
    shared = {frozenset((one["accession"], one["other"])): one for one in rows(project, run, PARALOGUES)}
    one = shared[frozenset(("WHOLE", "ISOFORM"))]
    own = one["n_own"] if one["accession"] == "WHOLE" else one["n_of_other"]
    assert one["n_shared"] > 5 and own > 0
    places = rows(project, run, PEPTIDE_PLACES)
    assert {place["accession"] for place in places if place["n_places"] == 2} >= {"WHOLE", "ISOFORM"}


def test_a_relative_of_few_identities_is_told_with_these_and_marked_everywhere(found: Found, tmp_path: Path) -> None:
    project, run, sequence = found[:3]
    (number, chain), *others = [one for one in enumerate(rows(project, run, CHAINS)) if one[1]["accession"] == "DISTANT"]
    assert not others
    own = distant(sequence)
    # Letters by the author's numbers, as gemmi reads the file: what the alignment is of.
    of_file = [(str(one.seqid), gemmi.find_tabulated_residue(one.name).one_letter_code.upper()) for one in gemmi_chain(found.plain)]
    letter_of = dict(of_file)
    seen = [one for one in rows(project, run, MAPPED_RESIDUES) if one["chain_row"] == number and one["chain_residue"] is not None]
    upper, lower = "".join(own[one["position"] - 1] for one in seen), "".join(letter_of[one["author_number"]] for one in seen)
    plain = sum(a == b for a, b in zip(upper, lower, strict=True)) / len(seen)
    assert plain == pytest.approx(chain["identity"]) and 0.2 < plain < 0.3
    # The pairs are those of a best alignment, by another program.
    aligner = Align.PairwiseAligner(mode="local", substitution_matrix=Align.substitution_matrices.load("BLOSUM62"))
    aligner.open_gap_score, aligner.extend_gap_score = -12, -1
    order = {residue: k for k, (residue, _) in enumerate(of_file)}
    score = sum(aligner.substitution_matrix[a][b] for a, b in zip(upper, lower, strict=True))
    for one, other in pairwise(seen):
        for apart in (other["position"] - one["position"], order[other["author_number"]] - order[one["author_number"]]):
            score -= 11 + apart - 1 if apart > 1 else 0
    assert score == aligner.score(own, "".join(letter for _, letter in of_file))
    assert chain["kind"] == "distant"

    told, cell = f"1ao6_A, distant, {plain * 100:.1f} % identity", f"{plain * 100:.2f}"
    pages = {path.name[5:]: path for path in write_pages(Project.open(project), run, tmp_path, Progress())}
    html = pages["DISTANT.html"].read_text()
    (row,) = html_tables(html)["Near chains"]
    assert row["Kind"] == "distant" and row["Identity (%)"] == cell
    assert told in html and "1ao6_A (distant)" in html
    texts = pdf_texts(pages["DISTANT.pdf"])
    assert {told, "1ao6_A (distant)", "distant", cell} <= set(texts)
    (listed,) = html_tables((tmp_path / "index.html").read_text()).values()
    index = {one["Protein"]: one["Nearest chain"] for one in listed}
    assert index["DISTANT"] == "1ao6_A (distant)" and index["WHOLE"] == "1ao6_A"
    EVIDENCE.export(Project.open(project), ExportRequest(run, "tsv", tmp_path / "tables"), Progress())
    head, *lines = [line.split("\t") for line in (tmp_path / "tables" / "evidence_chains.tsv").read_text().splitlines()]
    (saved,) = [dict(zip(head, line, strict=True)) for line in lines if line[head.index("accession")] == "DISTANT"]
    assert saved["kind"] == "distant" and float(saved["identity"]) == pytest.approx(plain, abs=1e-4)


def gemmi_chain(path: Path) -> gemmi.Chain:
    return gemmi.read_structure(str(path))[0][0].clone()
