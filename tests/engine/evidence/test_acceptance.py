"""Evidence on real chains against independent computations: Biopython's aligner, coordinates, and FreeSASA if installed.

The spectra are synthetic (`synthetic_runs`), since there are no measurements of these proteins.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gemmi
import numpy as np
import pytest
from Bio import Align
from Bio.PDB import MMCIFParser

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.evidence.entry import EVIDENCE
from proteoscope.engine.evidence.tables import CHAINS, CONTACTS, MAPPED_RESIDUES, PEPTIDE_PLACES, PROTEINS, RESIDUES, SITES
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.results.columns import Table
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.searches import run_search
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.exposure import GREATEST_AREA
from proteoscope.engine.structures.reading import read_structure
from tests.engine.evidence.synthetic_runs import SyntheticRun, write_run

N_CHAINS = 12
STANDARD = set("ACDEFGHIKLMNPQRSTVWY")


def rows(project: Path, run: str, table: Table) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = read_stored(Project.open(project), run, table, list(table.by_name)).to_pylist()
    return records


class ChainEvidence:
    """A project of synthetic spectra of real chains, its evidence, and the chains by protein name."""

    def __init__(self, folder: Path, files: list[Path]) -> None:
        self.paths = {f"OF_{path.stem}": path for path in files}
        self.chains: dict[str, Chains] = {name: read_structure(path).chains for name, path in self.paths.items()}
        self.proteins = {name: chains.sequence(0) for name, chains in self.chains.items()}
        self.made: SyntheticRun = write_run(folder, self.proteins, {"Oxidation": "M"}, 11, share=0.6)
        inputs = {"spectra": [self.made.spectra], "database": [self.made.database]}
        self.project = folder / "p"
        search = run_search("identify", inputs, project=self.project, device="cpu", threads=2)
        done = run_search("evidence", {"project": [self.project], "structures": files}, device="cpu", threads=2)
        assert search.run_id is not None and done.run_id is not None
        self.run = done.run_id
        self.rows = {table.name: rows(self.project, self.run, table) for table in (PROTEINS, CHAINS, MAPPED_RESIDUES, SITES, CONTACTS)}


@pytest.fixture(scope="module")
def evidence(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> ChainEvidence:
    usable = []
    for path in sorted((shared_data / "structures" / "pdbchains").iterdir()):
        chains = read_structure(path).chains
        # With a single chain of standard residues per file, Biopython numbers residues as this program does.
        if len(chains) == 1 and 120 <= len(chains.residue) <= 350 and set(chains.sequence(0)) <= STANDARD:
            usable.append(path)
    step = max(1, len(usable) // N_CHAINS)
    return ChainEvidence(tmp_path_factory.mktemp("acceptance"), usable[::step][:N_CHAINS])


def test_spectra_of_real_chains_map_to_their_structures(evidence: ChainEvidence) -> None:
    nearest = {row["accession"]: row for row in evidence.rows[CHAINS.name] if row["rank"] == 1}
    assert len(nearest) >= 0.8 * len(evidence.proteins)
    for name, chain in nearest.items():
        assert chain["chain"].split(":")[0].startswith(evidence.paths[name].stem) and chain["identity"] == 1.0 and chain["kind"] == "same"
    places = rows(evidence.project, evidence.run, PEPTIDE_PLACES)
    planted = {(peptide.protein, peptide.sequence, peptide.start + 1) for peptide in evidence.made.planted.values()}
    unique = {(place["accession"], place["sequence"], place["first"]) for place in places if place["n_places"] == 1}
    assert len(unique) > 50 and len(unique & planted) >= 0.98 * len(unique)


def test_mapped_residues_of_real_chains_match_biopython(evidence: ChainEvidence) -> None:
    aligner = Align.PairwiseAligner(mode="local", substitution_matrix=Align.substitution_matrices.load("BLOSUM62"))
    aligner.open_gap_score, aligner.extend_gap_score = -12, -1
    by_chain: dict[int, list[dict[str, Any]]] = {}
    for residue in evidence.rows[MAPPED_RESIDUES.name]:
        by_chain.setdefault(residue["chain_row"], []).append(residue)
    stems = {path.stem: name for name, path in evidence.paths.items()}
    checked = 0
    for number, chain in enumerate(evidence.rows[CHAINS.name]):
        target = evidence.chains[next(name for stem, name in stems.items() if chain["chain"].startswith(stem))]
        best = aligner.align(evidence.proteins[chain["accession"]], target.sequence(0))
        pairs = {(row["position"] - 1, row["chain_residue"]) for row in by_chain[number] if row["chain_residue"] is not None}
        wanted = {(a + i, b + i) for (a, stop), (b, _) in zip(*best[0].aligned, strict=True) for i in range(stop - a)}
        # The aligner may choose another of equally good alignments.
        assert len(pairs & wanted) >= (0.99 if chain["identity"] > 0.9 else 0.8) * len(wanted)
        checked += 1
    assert checked >= 8


def test_contact_distances_match_gemmi_coordinates(evidence: ChainEvidence) -> None:
    nearest = {number: chain for number, chain in enumerate(evidence.rows[CHAINS.name]) if chain["rank"] == 1}
    numbers = {(residue["chain_row"], residue["position"]): residue["author_number"] for residue in evidence.rows[MAPPED_RESIDUES.name]}
    n = 0
    for row, chain in nearest.items():
        structure = gemmi.read_structure(str(evidence.paths[chain["accession"]]))
        residues = {f"{residue.seqid.num}{residue.seqid.icode.strip()}": residue for residue in structure[0][0]}
        for contact in [contact for contact in evidence.rows[CONTACTS.name] if contact["chain_row"] == row][:15]:
            a, b = (residues[numbers[row, contact[f"{name}_position"]]] for name in ("first", "second"))
            assert contact["alpha_distance"] == pytest.approx(a["CA"][0].pos.dist(b["CA"][0].pos), abs=2e-3)
            heavy = [[atom.pos for atom in residue if not atom.is_hydrogen()] for residue in (a, b)]
            if contact["atom_distance"] is not None:
                assert contact["atom_distance"] == pytest.approx(min(p.dist(q) for p in heavy[0] for q in heavy[1]), abs=2e-3)
            n += 1
    assert n > 50


def test_solvent_exposure_matches_freesasa(evidence: ChainEvidence) -> None:
    freesasa = pytest.importorskip("freesasa", reason="FreeSASA is not installed (pip install freesasa)")
    radius = {"N": 1.65, "CA": 1.87, "C": 1.76, "O": 1.40}
    for name in list(evidence.paths)[:4]:
        chain = next(number for number, row in enumerate(evidence.rows[CHAINS.name]) if row["accession"] == name and row["rank"] == 1)
        exposures = {
            residue["author_number"]: residue["exposure"]
            for residue in evidence.rows[MAPPED_RESIDUES.name]
            if residue["chain_row"] == chain
        }
        structure = gemmi.read_structure(str(evidence.paths[name]))
        atoms = [(r, a) for r in structure[0][0] if r["CA"] for a in r if not a.is_hydrogen()]
        coordinates = [x for _, a in atoms for x in a.pos.tolist()]
        result = freesasa.calcCoord(
            coordinates,
            [radius.get(a.name, 1.8) for _, a in atoms],
            freesasa.Parameters({"algorithm": freesasa.ShrakeRupley, "n-points": 1000, "probe-radius": 1.4}),
        )
        areas: dict[str, float] = {}
        for k, (residue, _) in enumerate(atoms):
            key = f"{residue.seqid.num}{residue.seqid.icode.strip()}"
            areas[key] = areas.get(key, 0.0) + result.atomArea(k)
        chains = evidence.chains[name]
        ours, theirs = [], []
        for at, number in enumerate(chains.author_number.tolist()):
            code = int(chains.insertion[at])
            key = f"{number}{chr(code) if code else ''}"
            if exposures.get(key) is not None and exposures[key] < 1.0:
                ours.append(exposures[key] * GREATEST_AREA[chains.residue[at]])
                theirs.append(areas[key])
        assert len(ours) > 80
        assert sum(ours) == pytest.approx(sum(theirs), rel=0.05)
        assert np.corrcoef(ours, theirs)[0, 1] > 0.995


def test_exported_structure_b_factors_equal_psm_counts(evidence: ChainEvidence, tmp_path: Path) -> None:
    project = Project.open(evidence.project)
    EVIDENCE.export(
        project, ExportRequest(evidence.run, "structures", tmp_path / "structures", structures=tuple(evidence.paths.values())), Progress()
    )
    names = [row["accession"] for row in evidence.rows[PROTEINS.name]]
    psms: dict[str, dict[int, int]] = {}
    for residue in rows(evidence.project, evidence.run, RESIDUES):
        psms.setdefault(names[residue["protein"]], {})[residue["position"]] = residue["n_psms"]
    checked = 0
    for number, chain in enumerate(evidence.rows[CHAINS.name]):
        if chain["rank"] != 1:
            continue
        folder = tmp_path / "structures" / re.sub("[^A-Za-z0-9_]", "_", chain["accession"])[:40]
        mapped = [row for row in evidence.rows[MAPPED_RESIDUES.name] if row["chain_row"] == number and row["author_number"]]
        wanted = {row["author_number"]: psms[chain["accession"]][row["position"]] for row in mapped}
        (cif,) = folder.glob("*.cif")
        by_gemmi = {f"{r.seqid.num}{r.seqid.icode.strip()}": r[0].b_iso for r in gemmi.read_structure(str(cif))[0][0]}
        read = next(iter(MMCIFParser(QUIET=True).get_structure("x", str(cif))[0]))
        by_biopython = {f"{r.id[1]}{r.id[2].strip()}": next(iter(r)).get_bfactor() for r in read}
        assert by_gemmi == by_biopython
        assert {key: value for key, value in by_gemmi.items() if value >= 0} == wanted
        _check_scripts(folder)
        checked += 1
    assert checked >= 8


def _check_scripts(folder: Path) -> None:
    """Check scripts without the viewers: supported commands, existing files, and closed brackets and quotes."""
    written = {path.name for path in folder.iterdir()}
    commands_of = {
        ".pml": {"load", "set", "hide", "show", "alter", "rebuild", "color", "cartoon", "orient"},
        ".cxc": {"open", "hide", "show", "setattr", "cartoon", "color", "set", "lighting", "view"},
    }
    for suffix, commands in commands_of.items():
        (script,) = folder.glob(f"*{suffix}")
        lines = [line.strip() for line in script.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
        assert lines and {re.split(r"[ ,]", line)[0] for line in lines} <= commands
        for line in lines:
            assert line.count('"') % 2 == 0 and line.count("(") == line.count(")") and line.isprintable()
            if line.startswith(("load", "open")):
                assert re.split(r"[ ,]+", line)[1].strip('"') in written


def test_gff3_read_by_gffutils_matches_evidence_tables(evidence: ChainEvidence, tmp_path: Path) -> None:
    (path,) = EVIDENCE.export(Project.open(evidence.project), ExportRequest(evidence.run, "gff3", tmp_path / "sites.gff3"), Progress())
    places = rows(evidence.project, evidence.run, PEPTIDE_PLACES)
    lines = path.read_text().splitlines()
    assert lines[0] == "##gff-version 3"
    kinds = {"peptide": len(places), "modified_residue": len(evidence.rows[SITES.name])}
    features = [line.split("\t") for line in lines if not line.startswith("#")]
    assert {kind: sum(feature[2] == kind for feature in features) for kind in kinds} == kinds
    lengths = {row["accession"]: row["length"] for row in evidence.rows[PROTEINS.name]}
    assert all(len(feature) == 9 and 1 <= int(feature[3]) <= int(feature[4]) <= lengths[feature[0]] for feature in features)
    assert len({feature[8].split(";")[0] for feature in features}) == len(features)
    gffutils = pytest.importorskip("gffutils", reason="gffutils is not installed (pip install gffutils)")
    database = gffutils.create_db(str(path), ":memory:", merge_strategy="error")
    assert {kind: database.count_features_of_type(kind) for kind in kinds} == kinds
    features_read = {
        (feature.seqid, feature.start, feature.end, feature.attributes["psms"][0]) for feature in database.features_of_type("peptide")
    }
    assert features_read == {(place["accession"], place["first"], place["last"], str(place["n_psms"])) for place in places}
