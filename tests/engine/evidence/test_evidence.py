"""Evidence of peptides on proteins and structures: each number against an independent computation."""

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
from proteoscope.engine.evidence.peptide_positions import find_peptide_positions, residue_evidence
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
from tests.engine.evidence.evidence_projects import OXIDATION, changed, synthetic_proteins, write_albumin, write_identification


@pytest.fixture(scope="module")
def albumin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_albumin(tmp_path_factory.mktemp("structure"))


@pytest.fixture(scope="module")
def chain(albumin: Path) -> Chains:
    return read_structure(albumin).chains


@pytest.fixture(scope="module")
def proteins(chain: Chains) -> dict[str, str]:
    return synthetic_proteins(chain.sequence(0))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, proteins: dict[str, str]) -> Path:
    return write_identification(tmp_path_factory.mktemp("evidence"), proteins)


@pytest.fixture(scope="module")
def run(project: Path, albumin: Path) -> str:
    done = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2)
    assert done.run_id is not None
    return done.run_id


def rows(project: Path, run: str, table: Table) -> list[dict[str, Any]]:
    stored: list[dict[str, Any]] = read_stored(Project.open(project), run, table, list(table.by_name)).to_pylist()
    return stored


def test_peptide_positions_match_string_search(project: Path, run: str, proteins: dict[str, str]) -> None:
    positions = {(row["accession"], row["sequence"], row["first"], row["last"]) for row in rows(project, run, PEPTIDE_PLACES)}
    peptides = {position[1] for position in positions}
    alike = {name: sequence.replace("I", "L") for name, sequence in proteins.items()}
    wanted = {
        (name, peptide, at + 1, at + len(peptide))
        for name, sequence in alike.items()
        for peptide in peptides
        for at in range(len(sequence))
        if sequence[at : at + len(peptide)] == peptide.replace("I", "L")
    }
    assert positions == wanted and len(peptides) > 20
    covered = {(name, at) for name, _, first, last in wanted for at in range(first, last + 1)}
    of_residues = rows(project, run, RESIDUES)
    names = [row["accession"] for row in rows(project, run, PROTEINS)]
    assert {(names[row["protein"]], row["position"]) for row in of_residues if row["n_peptides"]} == covered
    for name, row in zip(names, rows(project, run, PROTEINS), strict=True):
        assert row["coverage"] == pytest.approx(sum(key[0] == name for key in covered) / len(proteins[name]))


def test_mapped_residues_match_alignment_by_biopython(project: Path, run: str, proteins: dict[str, str], chain: Chains) -> None:
    aligner = Align.PairwiseAligner(mode="local", substitution_matrix=Align.substitution_matrices.load("BLOSUM62"))
    aligner.open_gap_score, aligner.extend_gap_score = -12, -1
    chains = rows(project, run, CHAINS)
    mapped = rows(project, run, MAPPED_RESIDUES)
    assert {row["accession"] for row in chains} == {"RELATIVE", "PARTIAL"}
    for number, nearest in enumerate(chains):
        best = aligner.align(proteins[nearest["accession"]], chain.sequence(0))[0]
        wanted = {(a + i + 1, b + i) for (a, stop), (b, _) in zip(*best.aligned, strict=True) for i in range(stop - a)}
        aligned = [row for row in mapped if row["chain_row"] == number and row["chain_residue"] is not None]
        pairs = {(row["position"], row["chain_residue"]) for row in aligned}
        assert len(pairs & wanted) >= 0.99 * len(wanted) and len(pairs) == nearest["n_aligned"]
        for row in aligned:
            at = row["chain_residue"]
            assert row["author_number"] == str(chain.author_number[at]) and row["chain_letter"] == chain.sequence(0)[at]
            assert row["is_identical"] == (proteins[nearest["accession"]][row["position"] - 1] == row["chain_letter"])
        same = np.mean([row["is_identical"] for row in aligned])
        assert nearest["identity"] == pytest.approx(same) and nearest["kind"] == ("same" if same >= 0.95 else "homologous")
    assert [row["n_chains"] for row in rows(project, run, PROTEINS) if row["accession"] == "NOWHERE"] == [0]


def test_residue_areas_match_random_point_estimate(albumin: Path, chain: Chains) -> None:
    areas = residue_areas(
        [atoms for atoms in read_chain_atoms(albumin, [chain]) if not isinstance(atoms, InputError)], [len(chain.residue)]
    )[0]
    parsed = PDBParser(QUIET=True).get_structure("albumin", str(albumin))[0]["A"]
    radius = {"N": 1.65, "CA": 1.87, "C": 1.76, "O": 1.40}
    radii = np.array([radius.get(atom.get_name(), 1.8) for atom in parsed.get_atoms()])
    some = np.linspace(0, len(chain.residue) - 1, 12).astype(int)
    position = np.array([atom.coord for atom in parsed.get_atoms()], float)
    owner = np.repeat(np.arange(len(chain.residue)), [len(residue) for residue in parsed])
    generator = np.random.default_rng(5)
    points = generator.normal(size=(5_000, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    for residue in some.tolist():
        area = 0.0
        for atom in np.flatnonzero(owner == residue):
            reach = radii[atom] + 1.4
            near = np.flatnonzero(np.linalg.norm(position - position[atom], axis=1) < reach + radii + 1.4)
            near = near[near != atom]
            surface = position[atom] + reach * points
            apart = np.linalg.norm(surface[:, None] - position[near][None], axis=2)
            area += 4 * np.pi * reach**2 * (apart >= radii[near] + 1.4).all(axis=1).mean()
        assert areas[residue] == pytest.approx(area, rel=0.05, abs=3.0)


def test_residue_areas_ignore_atoms_at_impossible_positions(albumin: Path, tmp_path: Path) -> None:
    areas = []
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
        areas.append(residue_areas([atoms], [len(chains.residue)])[0])
    np.testing.assert_array_equal(areas[0], areas[1])


def test_site_and_contact_distances_match_coordinates(project: Path, run: str, chain: Chains, albumin: Path) -> None:
    sites = rows(project, run, SITES)
    mapped = {(row["chain_row"], row["position"]): row for row in rows(project, run, MAPPED_RESIDUES)}
    assert len(sites) > 2 and all(site["residue"] == "M" and site["mass"] == pytest.approx(OXIDATION, abs=1e-3) for site in sites)
    for site in sites:
        others = [other for other in sites if other["chain_row"] == site["chain_row"] and other["position"] != site["position"]]
        if site["chain_row"] is None:
            assert site["place"] == "unknown" and site["exposure"] is None
            continue
        row = mapped[site["chain_row"], site["position"]]
        assert (site["exposure"], site["author_number"]) == (row["exposure"], row["author_number"])
        assert site["place"] == ("surface" if site["exposure"] >= 0.25 else "buried")
        here = chain.position[row["chain_residue"]].astype(float)
        apart = {
            other["position"]: float(np.linalg.norm(chain.position[mapped[site["chain_row"], other["position"]]["chain_residue"]] - here))
            for other in others
        }
        if apart:
            nearest = min(apart, key=lambda position: apart[position])
            assert (site["nearest_site"], site["site_distance"]) == (nearest, pytest.approx(apart[nearest], abs=1e-3))
    atoms = {residue.seqid.num: residue for residue in gemmi.read_structure(str(albumin))[0]["A"]}
    for contact in rows(project, run, CONTACTS)[:60]:
        first, second = (mapped[contact["chain_row"], contact[f"{name}_position"]] for name in ("first", "second"))
        assert contact["alpha_distance"] <= 30.0
        near = min(a.pos.dist(b.pos) for a in atoms[int(first["author_number"])] for b in atoms[int(second["author_number"])])
        assert contact["atom_distance"] == pytest.approx(near, abs=1e-3)
        assert contact["first_residue"] == "K" or contact["is_modified"]


@pytest.mark.parametrize(("distance", "separation"), [(30.0, 6), (12.0, 1), (25.0, 40)])
def test_contacts_equal_all_close_pairs_of_lysines_and_sites(
    project: Path, albumin: Path, tmp_path: Path, distance: float, separation: int
) -> None:
    project = Path(shutil.copytree(project, tmp_path / "project"))
    options: dict[str, Any] = (
        {} if (distance, separation) == (30.0, 6) else {"contact_distance": distance, "minimum_separation": separation}
    )
    done = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2, **options)
    assert done.run_id is not None
    proteins = {number: row["sequence"] for number, row in enumerate(rows(project, done.run_id, PROTEINS))}
    sites = {(row["protein"], row["position"]) for row in rows(project, done.run_id, SITES)}
    nearest = {number: row["protein"] for number, row in enumerate(rows(project, done.run_id, CHAINS)) if row["rank"] == 1}
    places = {str(residue.seqid): np.array(residue["CA"][0].pos.tolist()) for residue in gemmi.read_structure(str(albumin))[0]["A"]}
    mapped: dict[int, dict[int, NDArray[np.float64]]] = {}
    for row in rows(project, done.run_id, MAPPED_RESIDUES):
        if row["chain_row"] in nearest and row["author_number"] is not None and row["chain_residue"] is not None:
            protein, position = nearest[row["chain_row"]], row["position"]
            if proteins[protein][position - 1] == "K" or (protein, position) in sites:
                mapped.setdefault(protein, {})[position] = places[row["author_number"]]
    wanted = {
        (protein, a, b): apart
        for protein, positions in mapped.items()
        for a, here in positions.items()
        for b, there in positions.items()
        if b - a >= separation and (apart := float(np.linalg.norm(here - there))) <= distance
    }
    contacts = rows(project, done.run_id, CONTACTS)
    assert {(row["protein"], row["first_position"], row["second_position"]) for row in contacts} == set(wanted) and len(wanted) > 10
    for row in contacts:
        key = row["protein"], row["first_position"], row["second_position"]
        assert row["alpha_distance"] == pytest.approx(wanted[key], abs=1e-3)
        assert row["is_modified"] == ((key[0], key[1]) in sites or (key[0], key[2]) in sites)
    # Modified ones come first, then the nearest.
    assert contacts == sorted(contacts, key=lambda row: (row["protein"], not row["is_modified"], row["alpha_distance"]))


def test_contacts_warn_of_omitted_residues(project: Path, albumin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Path(shutil.copytree(project, tmp_path / "project"))
    warnings = []
    for most in (10_000, 20):
        monkeypatch.setattr("proteoscope.engine.evidence.questions._MAXIMUM_OF_A_PROTEIN", most)
        done = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2)
        warnings.append([message for message in done.messages if "contacts are only computed for the first ones" in message])
    assert not warnings[0] and len(warnings[1]) == 1 and "more than 20" in warnings[1][0]


def test_uncovered_stretches_have_all_residues_without_peptides(project: Path, run: str, proteins: dict[str, str]) -> None:
    of_residues = rows(project, run, RESIDUES)
    names = [row["accession"] for row in rows(project, run, PROTEINS)]
    missed = {(names[row["protein"]], row["position"]) for row in of_residues if not row["n_peptides"]}
    stretches = rows(project, run, MISSED)
    assert {(row["accession"], at) for row in stretches for at in range(row["first"], row["last"] + 1)} == missed
    longest = max(stretches, key=lambda stretch: stretch["length"])
    name, _, n = longest["enzymes"][0].rpartition(" (")
    sequence = proteins[longest["accession"]]
    spans = digest(sequence, enzyme(name), minimum_length=7, maximum_length=30)
    seen = {at for span in spans if mass.fast_mass(sequence[span.start : span.stop]) <= 4600 for at in range(span.start, span.stop)}
    assert int(n.rstrip(")")) == len(seen & set(range(longest["first"] - 1, longest["last"])))


def test_paralogue_table_counts_shared_and_unique_peptides(project: Path, run: str) -> None:
    places = rows(project, run, PEPTIDE_PLACES)
    peptides_of: dict[str, set[str]] = {}
    for place in places:
        peptides_of.setdefault(place["accession"], set()).add(place["sequence"].replace("I", "L"))
    for row in rows(project, run, PARALOGUES):
        first, other = peptides_of[row["accession"]], peptides_of[row["other"]]
        assert (row["n_shared"], row["n_own"], row["n_of_other"]) == (len(first & other), len(first - other), len(other - first))


def test_peptide_positions_equate_i_and_l_and_may_overlap() -> None:
    none = Modifications.from_columns(np.zeros(2, np.int64), [], [], [])
    peptides = IdentifiedPeptides(("LLL", "AIA"), ("LLL", "AIA"), none, np.array([2, 1]), np.array([0.01, 0.002]), np.full(2, np.nan))
    places = find_peptide_positions(peptides, [ProteinEntry("P", (), "", "AILILAI", 0.0), ProteinEntry("Q", (), "", "ALA", 0.0)])
    assert [tuple(map(int, place)) for place in zip(places.peptide, places.protein, places.start, places.end, strict=True)] == [
        (0, 0, 1, 4),
        (0, 0, 2, 5),
        (1, 1, 0, 3),
    ]
    evidence = residue_evidence(peptides, [ProteinEntry("P", (), "", "AILILAI", 0.0), ProteinEntry("Q", (), "", "ALA", 0.0)], places)
    assert evidence.n_psms.tolist() == [0, 2, 4, 4, 2, 0, 0, 1, 1, 1]


def test_exported_structures_read_by_gemmi_match_tables(project: Path, run: str, albumin: Path, tmp_path: Path) -> None:
    opened = Project.open(project)
    written = EVIDENCE.export(opened, ExportRequest(run, "tsv", tmp_path / "tables"), Progress())
    assert [path.name for path in written] == [f"evidence_{table.name}.tsv" for table in TABLES]
    published = {path.name: path.read_bytes() for path in (project / "exports").glob("evidence_*.tsv")}
    assert {path.name: path.read_bytes() for path in written} == published
    (gff,) = EVIDENCE.export(opened, ExportRequest(run, "gff3", tmp_path / "sites.gff3"), Progress())
    lines = [line.split("\t") for line in gff.read_text().splitlines() if not line.startswith("#")]
    assert {(line[0], int(line[3]), int(line[4])) for line in lines if line[2] == "peptide"} == {
        (row["accession"], row["first"], row["last"]) for row in rows(project, run, PEPTIDE_PLACES)
    }
    EVIDENCE.export(opened, ExportRequest(run, "structures", tmp_path / "structures", structures=(albumin,)), Progress())
    names = [row["accession"] for row in rows(project, run, PROTEINS)]
    relative = names.index("RELATIVE")
    psms = {row["position"]: row["n_psms"] for row in rows(project, run, RESIDUES) if row["protein"] == relative}
    number = next(i for i, row in enumerate(rows(project, run, CHAINS)) if row["accession"] == "RELATIVE")
    wanted = {
        int(row["author_number"]): psms[row["position"]]
        for row in rows(project, run, MAPPED_RESIDUES)
        if row["chain_row"] == number and row["author_number"]
    }
    structure = gemmi.read_structure(str(tmp_path / "structures" / "protein_RELATIVE" / "protein_RELATIVE.cif"))
    b_factors = {residue.seqid.num: residue[0].b_iso for residue in structure[0][0]}
    assert {at: value for at, value in b_factors.items() if value >= 0} == wanted
    assert (tmp_path / "structures" / "protein_RELATIVE" / "picture.pml").read_text().startswith("# Open in PyMOL")


def test_evidence_selects_proteins_and_rejects_invalid_input(project: Path, run: str, albumin: Path, tmp_path: Path) -> None:
    where = {"project": [project], "structures": [albumin]}
    done = run_search("evidence", where, device="cpu", proteins=("PARTIAL",), threads=2)
    assert done.run_id is not None
    assert [row["accession"] for row in rows(project, done.run_id, PROTEINS)] == ["PARTIAL"]
    with pytest.raises(ParameterError, match="no protein group of the run has it"):
        run_search("evidence", where, device="cpu", proteins=("ABSENT",))
    with pytest.raises(ParameterError, match="finished identification"):
        run_search("evidence", where, device="cpu", run=run)
    (tmp_path / "empty.pdb").write_text("")
    for structures in ([tmp_path / "empty.pdb"], [tmp_path / "absent.pdb"], []):
        with pytest.raises(ProteoscopeError):
            run_search("evidence", {"project": [project], "structures": structures}, device="cpu")
    with pytest.raises(InputError, match="has no peptide"):
        run_search("evidence", where, device="cpu", psm_fdr=1e-9)


def test_missing_structure_file_leaves_exposure_empty(project: Path, albumin: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.pdb"
    moved.write_bytes(albumin.read_bytes())
    assert main(["structure-database", "build", str(moved), "--out", str(tmp_path / "database")]) == 0
    moved.unlink()
    done = run_search("evidence", {"project": [project], "structures": [tmp_path / "database"]}, device="cpu", threads=2)
    assert done.run_id is not None and any("Exposure and distances are not known" in text for text in done.messages)
    assert all(row["exposure"] is None and row["place"] == "unknown" for row in rows(project, done.run_id, SITES))
    assert [row["has_atoms"] for row in rows(project, done.run_id, CHAINS)] == [False, False]


def test_protein_pages_match_tables_and_contain_no_scripts(project: Path, run: str, tmp_path: Path) -> None:
    pages = EVIDENCE.write_pages(Project.open(project), run, tmp_path / "pages", Progress())
    assert pages[-1].name == "index.html" and len(pages) == 1 + 2 * len(rows(project, run, PROTEINS))
    names = [row["accession"] for row in rows(project, run, PROTEINS)]
    page = next(path for path in pages if path.name.endswith("_RELATIVE.html")).read_text()
    for row in rows(project, run, MISSED):
        if names[row["protein"]] == "RELATIVE":
            assert all(name.split(" (")[0] in page for name in row["enzymes"])
    drawn = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    wanted = sum(row["accession"] == "RELATIVE" for row in rows(project, run, PEPTIDE_PLACES))
    tips = [title.text or "" for title in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert sum("PSMs:" in tip for tip in tips) == wanted
    assert (
        "Smith-Waterman" in page
        and "No chain of the database" in next(path for path in pages if path.name.endswith("_NOWHERE.html")).read_text()
    )
    assert not re.search(r"<script|javascript:|https?://(?!www\.w3\.org/2000/svg)", page)


def test_protein_pages_show_names_with_markup_as_text(tmp_path: Path) -> None:
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
