"""Peptides on proteins on structures: each number against an independent computation."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gemmi
import numpy as np
import pytest
from Bio import Align
from Bio.PDB import PDBParser
from numpy.typing import NDArray
from pyteomics import mass

from proteoscope.engine.chemistry.enzymes import digest, enzyme
from proteoscope.engine.command_line.main import main
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError, ParameterError, ProteoscopeError
from proteoscope.engine.evidence.entry import EVIDENCE
from proteoscope.engine.evidence.identified_peptides import IdentifiedPeptides, Modifications, ProteinEntry
from proteoscope.engine.evidence.peptide_positions import find_peptide_places, residue_evidence
from proteoscope.engine.evidence.tables import (
    CHAINS,
    CONTACTS,
    MAPPED_RESIDUES,
    MISSED,
    PARALOGUES,
    PEPTIDE_PLACES,
    PROTEINS,
    RESIDUES,
    SITES,
    TABLES,
)
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.results.columns import Table
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.searches import run_search
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.exposure import read_chain_atoms, residue_areas
from proteoscope.engine.structures.reading import read_structure
from tests.engine.evidence.evidence_projects import OXIDATION, changed, made_proteins, write_albumin, write_identification


@pytest.fixture(scope="module")
def albumin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_albumin(tmp_path_factory.mktemp("structure"))


@pytest.fixture(scope="module")
def chain(albumin: Path) -> Chains:
    return read_structure(albumin).chains


@pytest.fixture(scope="module")
def proteins(chain: Chains) -> dict[str, str]:
    return made_proteins(chain.sequence(0))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, proteins: dict[str, str]) -> Path:
    return write_identification(tmp_path_factory.mktemp("evidence"), proteins)


@pytest.fixture(scope="module")
def run(project: Path, albumin: Path) -> str:
    done = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2)
    assert done.run_id is not None
    return done.run_id


def rows(project: Path, run: str, table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_stored(Project.open(project), run, table, list(table.by_name)).to_pylist()
    return found


def test_peptides_lie_where_their_letters_are_read(project: Path, run: str, proteins: dict[str, str]) -> None:
    found = {(one["accession"], one["sequence"], one["first"], one["last"]) for one in rows(project, run, PEPTIDE_PLACES)}
    peptides = {one[1] for one in found}
    alike = {name: sequence.replace("I", "L") for name, sequence in proteins.items()}
    wanted = {
        (name, peptide, at + 1, at + len(peptide))
        for name, sequence in alike.items()
        for peptide in peptides
        for at in range(len(sequence))
        if sequence[at : at + len(peptide)] == peptide.replace("I", "L")
    }
    assert found == wanted and len(peptides) > 20
    covered = {(name, at) for name, _, first, last in wanted for at in range(first, last + 1)}
    of_residues = rows(project, run, RESIDUES)
    names = [one["accession"] for one in rows(project, run, PROTEINS)]
    assert {(names[one["protein"]], one["position"]) for one in of_residues if one["n_peptides"]} == covered
    for name, one in zip(names, rows(project, run, PROTEINS), strict=True):
        assert one["coverage"] == pytest.approx(sum(key[0] == name for key in covered) / len(proteins[name]))


def test_residues_stand_where_another_aligner_puts_them(project: Path, run: str, proteins: dict[str, str], chain: Chains) -> None:
    aligner = Align.PairwiseAligner(mode="local", substitution_matrix=Align.substitution_matrices.load("BLOSUM62"))
    aligner.open_gap_score, aligner.extend_gap_score = -12, -1
    chains = rows(project, run, CHAINS)
    mapped = rows(project, run, MAPPED_RESIDUES)
    assert {one["accession"] for one in chains} == {"RELATIVE", "TWIN"}
    for number, one in enumerate(chains):
        best = aligner.align(proteins[one["accession"]], chain.sequence(0))[0]
        wanted = {(a + i + 1, b + i) for (a, stop), (b, _) in zip(*best.aligned, strict=True) for i in range(stop - a)}
        own = [row for row in mapped if row["chain_row"] == number and row["chain_residue"] is not None]
        found = {(row["position"], row["chain_residue"]) for row in own}
        assert len(found & wanted) >= 0.99 * len(wanted) and len(found) == one["n_aligned"]
        for row in own:
            at = row["chain_residue"]
            assert row["author_number"] == str(chain.author_number[at]) and row["chain_letter"] == chain.sequence(0)[at]
            assert row["is_identical"] == (proteins[one["accession"]][row["position"] - 1] == row["chain_letter"])
        same = np.mean([row["is_identical"] for row in own])
        assert one["identity"] == pytest.approx(same) and one["kind"] == ("same" if same >= 0.95 else "homologous")
    assert [one["n_chains"] for one in rows(project, run, PROTEINS) if one["accession"] == "NOWHERE"] == [0]


def test_exposure_is_what_random_points_say(albumin: Path, chain: Chains) -> None:
    areas = residue_areas([one for one in read_chain_atoms(albumin, [chain]) if not isinstance(one, InputError)], [len(chain.residue)])[0]
    parsed = PDBParser(QUIET=True).get_structure("albumin", str(albumin))[0]["A"]
    radius = {"N": 1.65, "CA": 1.87, "C": 1.76, "O": 1.40}
    known = np.array([radius.get(atom.get_name(), 1.8) for atom in parsed.get_atoms()])
    some = np.linspace(0, len(chain.residue) - 1, 12).astype(int)
    position = np.array([atom.coord for atom in parsed.get_atoms()], float)
    owner = np.repeat(np.arange(len(chain.residue)), [len(residue) for residue in parsed])
    generator = np.random.default_rng(5)
    points = generator.normal(size=(5_000, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    for residue in some.tolist():
        area = 0.0
        for atom in np.flatnonzero(owner == residue):
            reach = known[atom] + 1.4
            near = np.flatnonzero(np.linalg.norm(position - position[atom], axis=1) < reach + known + 1.4)
            near = near[near != atom]
            surface = position[atom] + reach * points
            apart = np.linalg.norm(surface[:, None] - position[near][None], axis=2)
            area += 4 * np.pi * reach**2 * (apart >= known[near] + 1.4).all(axis=1).mean()
        assert areas[residue] == pytest.approx(area, rel=0.05, abs=3.0)


def test_atoms_that_lie_nowhere_are_not_there(albumin: Path, tmp_path: Path) -> None:
    found = []
    for name, place in (("far", 2e5), ("without", None)):
        structure = gemmi.read_structure(str(albumin))
        structure.setup_entities()
        for number, residue in enumerate(structure[0]["A"]):
            at = next((i for i, atom in enumerate(residue) if atom.name == "CB"), None)
            if number % 3 or at is None:
                continue
            if place is None:
                del residue[at]
            else:
                residue[at].pos = gemmi.Position(place, 0.0, 0.0)
        path = tmp_path / f"{name}.cif"
        path.write_text(structure.make_mmcif_document().as_string())
        chains = read_structure(path).chains
        (atoms,) = read_chain_atoms(path, [chains])
        assert not isinstance(atoms, InputError)
        found.append(residue_areas([atoms], [len(chains.residue)])[0])
    np.testing.assert_array_equal(found[0], found[1])


def test_sites_and_contacts_are_measured_in_plain_coordinates(project: Path, run: str, chain: Chains, albumin: Path) -> None:
    sites = rows(project, run, SITES)
    mapped = {(one["chain_row"], one["position"]): one for one in rows(project, run, MAPPED_RESIDUES)}
    assert len(sites) > 2 and all(one["residue"] == "M" and one["mass"] == pytest.approx(OXIDATION, abs=1e-3) for one in sites)
    for one in sites:
        others = [other for other in sites if other["chain_row"] == one["chain_row"] and other["position"] != one["position"]]
        if one["chain_row"] is None:
            assert one["place"] == "unknown" and one["exposure"] is None
            continue
        row = mapped[one["chain_row"], one["position"]]
        assert (one["exposure"], one["author_number"]) == (row["exposure"], row["author_number"])
        assert one["place"] == ("surface" if one["exposure"] >= 0.25 else "buried")
        here = chain.position[row["chain_residue"]].astype(float)
        apart = {
            other["position"]: float(np.linalg.norm(chain.position[mapped[one["chain_row"], other["position"]]["chain_residue"]] - here))
            for other in others
        }
        if apart:
            nearest = min(apart, key=lambda position: apart[position])
            assert (one["nearest_site"], one["site_distance"]) == (nearest, pytest.approx(apart[nearest], abs=1e-3))
    atoms = {residue.seqid.num: residue for residue in gemmi.read_structure(str(albumin))[0]["A"]}
    for one in rows(project, run, CONTACTS)[:60]:
        first, second = (mapped[one["chain_row"], one[f"{name}_position"]] for name in ("first", "second"))
        assert one["alpha_distance"] <= 30.0
        near = min(a.pos.dist(b.pos) for a in atoms[int(first["author_number"])] for b in atoms[int(second["author_number"])])
        assert one["atom_distance"] == pytest.approx(near, abs=1e-3)
        assert one["first_residue"] == "K" or one["is_modified"]


@pytest.mark.parametrize(("distance", "separation"), [(30.0, 6), (12.0, 1), (25.0, 40)])
def test_contacts_are_all_pairs_that_are_near_in_space_and_not_along_the_sequence(
    project: Path, albumin: Path, tmp_path: Path, distance: float, separation: int
) -> None:
    project = Path(shutil.copytree(project, tmp_path / "project"))
    options: dict[str, Any] = (
        {} if (distance, separation) == (30.0, 6) else {"contact_distance": distance, "minimum_separation": separation}
    )
    done = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2, **options)
    assert done.run_id is not None
    proteins = {number: one["sequence"] for number, one in enumerate(rows(project, done.run_id, PROTEINS))}
    sites = {(one["protein"], one["position"]) for one in rows(project, done.run_id, SITES)}
    nearest = {number: one["protein"] for number, one in enumerate(rows(project, done.run_id, CHAINS)) if one["rank"] == 1}
    places = {str(residue.seqid): np.array(residue["CA"][0].pos.tolist()) for residue in gemmi.read_structure(str(albumin))[0]["A"]}
    standing: dict[int, dict[int, NDArray[np.float64]]] = {}
    for one in rows(project, done.run_id, MAPPED_RESIDUES):
        if one["chain_row"] in nearest and one["author_number"] is not None and one["chain_residue"] is not None:
            protein, position = nearest[one["chain_row"]], one["position"]
            if proteins[protein][position - 1] == "K" or (protein, position) in sites:
                standing.setdefault(protein, {})[position] = places[one["author_number"]]
    wanted = {
        (protein, a, b): apart
        for protein, known in standing.items()
        for a, here in known.items()
        for b, there in known.items()
        if b - a >= separation and (apart := float(np.linalg.norm(here - there))) <= distance
    }
    found = rows(project, done.run_id, CONTACTS)
    assert {(one["protein"], one["first_position"], one["second_position"]) for one in found} == set(wanted) and len(wanted) > 10
    for one in found:
        key = one["protein"], one["first_position"], one["second_position"]
        assert one["alpha_distance"] == pytest.approx(wanted[key], abs=1e-3)
        assert one["is_modified"] == ((key[0], key[1]) in sites or (key[0], key[2]) in sites)
    # Those that tell the most come first: modified ones, and of these the nearest.
    assert found == sorted(found, key=lambda one: (one["protein"], not one["is_modified"], one["alpha_distance"]))


def test_it_is_told_where_not_all_residues_are_looked_at_for_contacts(
    project: Path, albumin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Path(shutil.copytree(project, tmp_path / "project"))
    told = []
    for most in (10_000, 20):
        monkeypatch.setattr("proteoscope.engine.evidence.questions._MAXIMUM_OF_A_PROTEIN", most)
        done = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2)
        told.append([one for one in done.messages if "contacts are only computed for the first ones" in one])
    assert not told[0] and len(told[1]) == 1 and "more than 20" in told[1][0]


def test_what_was_missed_is_what_no_peptide_covers_and_enzymes_would_show_it(project: Path, run: str, proteins: dict[str, str]) -> None:
    of_residues = rows(project, run, RESIDUES)
    names = [one["accession"] for one in rows(project, run, PROTEINS)]
    missed = {(names[one["protein"]], one["position"]) for one in of_residues if not one["n_peptides"]}
    found = rows(project, run, MISSED)
    assert {(one["accession"], at) for one in found for at in range(one["first"], one["last"] + 1)} == missed
    one = max(found, key=lambda stretch: stretch["length"])
    name, _, n = one["enzymes"][0].rpartition(" (")
    sequence = proteins[one["accession"]]
    spans = digest(sequence, enzyme(name), minimum_length=7, maximum_length=30)
    seen = {at for span in spans if mass.fast_mass(sequence[span.start : span.stop]) <= 4600 for at in range(span.start, span.stop)}
    assert int(n.rstrip(")")) == len(seen & set(range(one["first"] - 1, one["last"])))


def test_shared_peptides_tell_proteins_apart(project: Path, run: str) -> None:
    places = rows(project, run, PEPTIDE_PLACES)
    own: dict[str, set[str]] = {}
    for one in places:
        own.setdefault(one["accession"], set()).add(one["sequence"].replace("I", "L"))
    for one in rows(project, run, PARALOGUES):
        first, other = own[one["accession"]], own[one["other"]]
        assert (one["n_shared"], one["n_own"], one["n_of_other"]) == (len(first & other), len(first - other), len(other - first))


def test_leucine_is_isoleucine_and_places_overlap() -> None:
    none = Modifications.of(np.zeros(2, np.int64), [], [], [])
    peptides = IdentifiedPeptides(("LLL", "AIA"), ("LLL", "AIA"), none, np.array([2, 1]), np.array([0.01, 0.002]), np.full(2, np.nan))
    found = find_peptide_places(peptides, [ProteinEntry("P", (), "", "AILILAI", 0.0), ProteinEntry("Q", (), "", "ALA", 0.0)])
    assert [tuple(map(int, one)) for one in zip(found.peptide, found.protein, found.start, found.end, strict=True)] == [
        (0, 0, 1, 4),
        (0, 0, 2, 5),
        (1, 1, 0, 3),
    ]
    evidence = residue_evidence(peptides, [ProteinEntry("P", (), "", "AILILAI", 0.0), ProteinEntry("Q", (), "", "ALA", 0.0)], found)
    assert evidence.n_psms.tolist() == [0, 2, 4, 4, 2, 0, 0, 1, 1, 1]


def test_exports_are_read_by_others(project: Path, run: str, albumin: Path, tmp_path: Path) -> None:
    opened = Project.open(project)
    written = EVIDENCE.export(opened, ExportRequest(run, "tsv", tmp_path / "tables"), Progress())
    assert [path.name for path in written] == [f"evidence_{one.name}.tsv" for one in TABLES]
    published = {path.name: path.read_bytes() for path in (project / "exports").glob("evidence_*.tsv")}
    assert {path.name: path.read_bytes() for path in written} == published
    (gff,) = EVIDENCE.export(opened, ExportRequest(run, "gff3", tmp_path / "sites.gff3"), Progress())
    lines = [line.split("\t") for line in gff.read_text().splitlines() if not line.startswith("#")]
    assert {(line[0], int(line[3]), int(line[4])) for line in lines if line[2] == "peptide"} == {
        (one["accession"], one["first"], one["last"]) for one in rows(project, run, PEPTIDE_PLACES)
    }
    EVIDENCE.export(opened, ExportRequest(run, "structures", tmp_path / "structures", structures=(albumin,)), Progress())
    names = [one["accession"] for one in rows(project, run, PROTEINS)]
    relative = names.index("RELATIVE")
    psms = {one["position"]: one["n_psms"] for one in rows(project, run, RESIDUES) if one["protein"] == relative}
    number = next(i for i, one in enumerate(rows(project, run, CHAINS)) if one["accession"] == "RELATIVE")
    wanted = {
        int(one["author_number"]): psms[one["position"]]
        for one in rows(project, run, MAPPED_RESIDUES)
        if one["chain_row"] == number and one["author_number"]
    }
    structure = gemmi.read_structure(str(tmp_path / "structures" / "protein_RELATIVE" / "protein_RELATIVE.cif"))
    found = {residue.seqid.num: residue[0].b_iso for residue in structure[0][0]}
    assert {at: value for at, value in found.items() if value >= 0} == wanted
    assert (tmp_path / "structures" / "protein_RELATIVE" / "picture.pml").read_text().startswith("# Open in PyMOL")


def test_proteins_are_chosen_by_name_and_what_is_wrong_is_said(project: Path, run: str, albumin: Path, tmp_path: Path) -> None:
    where = {"project": [project], "structures": [albumin]}
    done = run_search("evidence", where, device="cpu", proteins=("TWIN",), threads=2)
    assert done.run_id is not None
    assert [one["accession"] for one in rows(project, done.run_id, PROTEINS)] == ["TWIN"]
    with pytest.raises(ParameterError, match="no protein group of the run has it"):
        run_search("evidence", where, device="cpu", proteins=("nobody",))
    with pytest.raises(ParameterError, match="is no finished identification"):
        run_search("evidence", where, device="cpu", run=run)
    (tmp_path / "empty.pdb").write_text("")
    for structures in ([tmp_path / "empty.pdb"], [tmp_path / "absent.pdb"], []):
        with pytest.raises(ProteoscopeError):
            run_search("evidence", {"project": [project], "structures": structures}, device="cpu")
    with pytest.raises(InputError, match="has no peptide"):
        run_search("evidence", where, device="cpu", psm_fdr=1e-9)


def test_a_file_that_changed_leaves_what_its_columns_tell(project: Path, albumin: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.pdb"
    moved.write_bytes(albumin.read_bytes())
    assert main(["structure-database", "build", str(moved), "--out", str(tmp_path / "database")]) == 0
    moved.unlink()
    done = run_search("evidence", {"project": [project], "structures": [tmp_path / "database"]}, device="cpu", threads=2)
    assert done.run_id is not None and any("Exposure and distances are not known" in text for text in done.messages)
    assert all(one["exposure"] is None and one["place"] == "unknown" for one in rows(project, done.run_id, SITES))
    assert [one["has_atoms"] for one in rows(project, done.run_id, CHAINS)] == [False, False]


def test_pages_hold_what_the_tables_tell_and_nothing_that_runs(project: Path, run: str, tmp_path: Path) -> None:
    pages = EVIDENCE.write_pages(Project.open(project), run, tmp_path / "pages", Progress())
    assert pages[-1].name == "index.html" and len(pages) == 1 + 2 * len(rows(project, run, PROTEINS))
    names = [one["accession"] for one in rows(project, run, PROTEINS)]
    page = next(one for one in pages if one.name.endswith("_RELATIVE.html")).read_text()
    for one in rows(project, run, MISSED):
        if names[one["protein"]] == "RELATIVE":
            assert all(name.split(" (")[0] in page for name in one["enzymes"])
    drawn = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    wanted = sum(one["accession"] == "RELATIVE" for one in rows(project, run, PEPTIDE_PLACES))
    tips = [one.text or "" for one in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert sum("PSMs:" in tip for tip in tips) == wanted
    assert "Smith-Waterman" in page and "No structure" in next(one for one in pages if one.name.endswith("_NOWHERE.html")).read_text()
    assert not re.search(r"<script|javascript:|https?://(?!www\.w3\.org/2000/svg)", page)


def test_names_with_markup_are_shown_as_text(tmp_path: Path) -> None:
    evil = '<img/src=x/onerror=alert(1)>"&\u202e'
    source = tmp_path / "made"
    source.mkdir()
    albumin = write_albumin(source)
    sequence = read_structure(albumin).chains.sequence(0)
    made = write_identification(source, {evil: sequence, "../../victim": changed(sequence, 4)})
    report = tmp_path / "report"
    done = run_search("evidence", {"project": [made], "structures": [albumin]}, device="cpu", options={"report": report}, threads=2)
    assert done.run_id is not None
    written = sorted(path.name for path in report.iterdir())
    assert len(written) == 5 and sorted(path.name for path in tmp_path.iterdir()) == ["made", "report"]
    texts = "".join(path.read_text() for path in report.glob("*.html"))
    assert "<img" not in texts and "&lt;img" in texts and "\u202e" not in texts
    opened = Project.open(made)
    EVIDENCE.export(opened, ExportRequest(done.run_id, "structures", tmp_path / "structures", structures=(albumin,)), Progress())
    assert all(path.is_relative_to(tmp_path / "structures") for path in (tmp_path / "structures").rglob("*"))
    EVIDENCE.export(opened, ExportRequest(done.run_id, "gff3", tmp_path / "sites.gff3"), Progress())
    assert "<img" not in (tmp_path / "sites.gff3").read_text()
