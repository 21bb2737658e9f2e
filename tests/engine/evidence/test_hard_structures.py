"""Structures with gaps, insertion codes, selenomethionine and several models, and proteins that are isoforms or remote relatives."""

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
UNIQUE_END = "GGSHHEALLKNNDEAFGHILKPPSEQTHAVLKSSNPQSTVKDDEELLGGK"


def rows(project: Path, run: str, table: Table) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = read_stored(Project.open(project), run, table, list(table.by_name)).to_pylist()
    return records


class HardEvidence(NamedTuple):
    """A project, its run, the sequence of albumin, and structure files.

    `hard` is the structure file of the run as PDB and as mmCIF; `plain` is a file with one model, and methionine for selenomethionine.
    """

    project: Path
    run: str
    sequence: str
    hard: tuple[Path, Path]
    plain: Path


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> HardEvidence:
    """Return a project with the sequence of albumin, an isoform with a deletion, and a distant relative."""
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
        folder, {"WHOLE": sequence, "ISOFORM": sequence[:150] + sequence[290:] + UNIQUE_END, "DISTANT": distant(sequence)}
    )
    return HardEvidence(project, run_evidence(project, path), sequence, (path, crystal), plain)


def run_evidence(project: Path, structure: Path) -> str:
    done = run_search("evidence", {"project": [project], "structures": [structure]}, device="cpu", threads=2, maximum_e_value=10.0)
    assert done.run_id is not None
    return done.run_id


def test_mapped_residues_retain_author_numbers_and_gaps(evidence: HardEvidence) -> None:
    project, run, sequence = evidence[:3]
    chains = rows(project, run, CHAINS)
    whole = next(number for number, row in enumerate(chains) if row["accession"] == "WHOLE")
    mapped = {row["position"]: row for row in rows(project, run, MAPPED_RESIDUES) if row["chain_row"] == whole}
    first = int(mapped[1]["author_number"])
    by_number = {row["author_number"]: row for row in mapped.values() if row["author_number"]}
    assert by_number[f"{INSERTED - 1}{CODE}"]["position"] == INSERTED - first + 1 and str(INSERTED) not in by_number
    assert by_number[str(SELENIUM)]["chain_letter"] == "M" and by_number[str(SELENIUM)]["is_identical"]
    unseen = {position for position, row in mapped.items() if row["chain_residue"] is None}
    assert unseen == {number - first + 1 for number in GONE} and chains[whole]["n_unseen"] == len(GONE)
    assert chains[whole]["identity"] == 1 and chains[whole]["n_aligned"] == len(sequence) - len(GONE)
    assert [row["chain"] for row in chains if row["accession"] == "WHOLE"] == ["1ao6_A"]


def test_evidence_is_equal_with_second_model_or_selenomethionine(evidence: HardEvidence) -> None:
    columns = ("author_number", "chain_letter", "is_identical", "secondary_structure", "exposure", "position", "chain_residue")

    def residues(run: str) -> list[tuple[Any, ...]]:
        chains = [number for number, row in enumerate(rows(evidence.project, run, CHAINS)) if row["accession"] == "WHOLE"]
        assert len(chains) == 1
        residues = [row for row in rows(evidence.project, run, MAPPED_RESIDUES) if row["chain_row"] == chains[0]]
        return [tuple(row[name] for name in columns) for row in residues]

    plain = residues(run_evidence(evidence.project, evidence.plain))
    seen = [residue for residue in plain if residue[-1] is not None]
    assert len(seen) == len(evidence.sequence) - len(GONE) and all(residue[columns.index("exposure")] is not None for residue in seen)
    assert len({residue[columns.index("secondary_structure")] for residue in seen}) > 1
    assert residues(evidence.run) == plain
    assert residues(run_evidence(evidence.project, evidence.hard[1])) == plain


def test_read_chain_atoms_reads_all_atoms_of_selenomethionine(evidence: HardEvidence) -> None:
    methionines = [k for k, residue in enumerate(read_structure(evidence.plain).chains.sequence(0)) if residue == "M"]
    assert len(methionines) > 5
    for path in (evidence.plain, *evidence.hard):
        chains = read_structure(path).chains
        (atoms,) = read_chain_atoms(path, [chains])
        assert isinstance(atoms, ChainAtoms) and atoms.is_whole.all()
        n_atoms = np.bincount(atoms.residue, minlength=len(chains.residue))
        assert [int(n_atoms[k]) for k in methionines] == [8] * len(methionines)  # N, CA, C, O, CB, CG, SD or SE, CE
        # The number of atoms in the file's first model.
        assert len(atoms.residue) == sum(len(residue) for residue in gemmi.read_structure(str(path))[0][0])


def test_isoforms_share_all_peptides_outside_a_deletion(evidence: HardEvidence) -> None:
    project, run = evidence[:2]
    shared = {frozenset((row["accession"], row["other"])): row for row in rows(project, run, PARALOGUES)}
    pair = shared[frozenset(("WHOLE", "ISOFORM"))]
    n_unique = pair["n_own"] if pair["accession"] == "WHOLE" else pair["n_of_other"]
    assert pair["n_shared"] > 5 and n_unique > 0
    places = rows(project, run, PEPTIDE_PLACES)
    assert {place["accession"] for place in places if place["n_places"] == 2} >= {"WHOLE", "ISOFORM"}


def test_distantly_related_chain_is_marked_in_tables_and_pages(evidence: HardEvidence, tmp_path: Path) -> None:
    project, run, sequence = evidence[:3]
    (number, chain), *others = [row for row in enumerate(rows(project, run, CHAINS)) if row[1]["accession"] == "DISTANT"]
    assert not others
    relative = distant(sequence)
    # Residues by author number, read by gemmi.
    of_file = [
        (str(residue.seqid), gemmi.find_tabulated_residue(residue.name).one_letter_code.upper()) for residue in gemmi_chain(evidence.plain)
    ]
    residue_of = dict(of_file)
    seen = [row for row in rows(project, run, MAPPED_RESIDUES) if row["chain_row"] == number and row["chain_residue"] is not None]
    upper, lower = "".join(relative[row["position"] - 1] for row in seen), "".join(residue_of[row["author_number"]] for row in seen)
    plain = sum(a == b for a, b in zip(upper, lower, strict=True)) / len(seen)
    assert plain == pytest.approx(chain["identity"]) and 0.2 < plain < 0.3
    # The pairs are those of a best alignment, by another program.
    aligner = Align.PairwiseAligner(mode="local", substitution_matrix=Align.substitution_matrices.load("BLOSUM62"))
    aligner.open_gap_score, aligner.extend_gap_score = -12, -1
    order = {residue: k for k, (residue, _) in enumerate(of_file)}
    score = sum(aligner.substitution_matrix[a][b] for a, b in zip(upper, lower, strict=True))
    for pair, next_pair in pairwise(seen):
        for apart in (next_pair["position"] - pair["position"], order[next_pair["author_number"]] - order[pair["author_number"]]):
            score -= 11 + apart - 1 if apart > 1 else 0
    assert score == aligner.score(relative, "".join(residue for _, residue in of_file))
    assert chain["kind"] == "distant"

    description, cell = f"1ao6_A, distant, {plain * 100:.1f} % identity", f"{plain * 100:.2f}"
    pages = {path.name[5:]: path for path in write_pages(Project.open(project), run, tmp_path, Progress())}
    html = pages["DISTANT.html"].read_text()
    (row,) = html_tables(html)["Similar chains"]
    assert row["Kind"] == "distant" and row["Identity (%)"] == cell
    assert description in html and "1ao6_A (distant)" in html
    texts = pdf_texts(pages["DISTANT.pdf"])
    assert {description, "1ao6_A (distant)", "distant", cell} <= set(texts)
    (listed,) = html_tables((tmp_path / "index.html").read_text()).values()
    index = {row["Protein"]: row["Closest chain"] for row in listed}
    assert index["DISTANT"] == "1ao6_A (distant)" and index["WHOLE"] == "1ao6_A"
    EVIDENCE.export(Project.open(project), ExportRequest(run, "tsv", tmp_path / "tables"), Progress())
    head, *lines = [line.split("\t") for line in (tmp_path / "tables" / "evidence_chains.tsv").read_text().splitlines()]
    (saved,) = [dict(zip(head, line, strict=True)) for line in lines if line[head.index("accession")] == "DISTANT"]
    assert saved["kind"] == "distant" and float(saved["identity"]) == pytest.approx(plain, abs=1e-4)


def gemmi_chain(path: Path) -> gemmi.Chain:
    return gemmi.read_structure(str(path))[0][0].clone()
