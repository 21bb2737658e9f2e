"""Proteins of real structures, against computations of others: Biopython's aligner, plain coordinates, FreeSASA where it is installed.

The peptides are of spectra that the model of intensities makes (`made_runs`), since nobody measured these proteins here.
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
from tests.engine.evidence.made_runs import MadeRun, make_run

N_CHAINS = 12
STANDARD = set("ACDEFGHIKLMNPQRSTVWY")


def rows(project: Path, run: str, table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_stored(Project.open(project), run, table, list(table.by_name)).to_pylist()
    return found


class Found:
    """A project of made spectra of real chains, its evidence, and the chains by name of the protein."""

    def __init__(self, folder: Path, files: list[Path]) -> None:
        self.paths = {f"OF_{path.stem}": path for path in files}
        self.chains: dict[str, Chains] = {name: read_structure(path).chains for name, path in self.paths.items()}
        self.proteins = {name: one.sequence(0) for name, one in self.chains.items()}
        self.made: MadeRun = make_run(folder, self.proteins, {"Oxidation": "M"}, 11, share=0.6)
        inputs = {"spectra": [self.made.spectra], "database": [self.made.database]}
        self.project = folder / "p"
        found = run_search("identify", inputs, project=self.project, device="cpu", threads=2)
        done = run_search("evidence", {"project": [self.project], "structures": files}, device="cpu", threads=2)
        assert found.run_id is not None and done.run_id is not None
        self.run = done.run_id
        self.rows = {one.name: rows(self.project, self.run, one) for one in (PROTEINS, CHAINS, MAPPED_RESIDUES, SITES, CONTACTS)}


@pytest.fixture(scope="module")
def found(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Found:
    usable = []
    for path in sorted((shared_data / "structures" / "pdbchains").iterdir()):
        chains = read_structure(path).chains
        # Chains alone of their file, of plain residues: then Biopython counts as we do.
        if len(chains) == 1 and 120 <= len(chains.residue) <= 350 and set(chains.sequence(0)) <= STANDARD:
            usable.append(path)
    step = max(1, len(usable) // N_CHAINS)
    return Found(tmp_path_factory.mktemp("acceptance"), usable[::step][:N_CHAINS])


def test_spectra_of_real_chains_lead_to_their_own_structures(found: Found) -> None:
    nearest = {one["accession"]: one for one in found.rows[CHAINS.name] if one["rank"] == 1}
    assert len(nearest) >= 0.8 * len(found.proteins)
    for name, one in nearest.items():
        assert one["chain"].split(":")[0].startswith(found.paths[name].stem) and one["identity"] == 1.0 and one["kind"] == "same"
    places = rows(found.project, found.run, PEPTIDE_PLACES)
    planted = {(one.protein, one.sequence, one.start + 1) for one in found.made.planted.values()}
    own = {(one["accession"], one["sequence"], one["first"]) for one in places if one["n_places"] == 1}
    assert len(own) > 50 and len(own & planted) >= 0.98 * len(own)


def test_residues_stand_where_biopython_aligns_them(found: Found) -> None:
    aligner = Align.PairwiseAligner(mode="local", substitution_matrix=Align.substitution_matrices.load("BLOSUM62"))
    aligner.open_gap_score, aligner.extend_gap_score = -12, -1
    by_chain: dict[int, list[dict[str, Any]]] = {}
    for one in found.rows[MAPPED_RESIDUES.name]:
        by_chain.setdefault(one["chain_row"], []).append(one)
    stems = {path.stem: name for name, path in found.paths.items()}
    checked = 0
    for number, one in enumerate(found.rows[CHAINS.name]):
        target = found.chains[next(name for stem, name in stems.items() if one["chain"].startswith(stem))]
        best = aligner.align(found.proteins[one["accession"]], target.sequence(0))
        pairs = {(row["position"] - 1, row["chain_residue"]) for row in by_chain[number] if row["chain_residue"] is not None}
        wanted = {(a + i, b + i) for (a, stop), (b, _) in zip(*best[0].aligned, strict=True) for i in range(stop - a)}
        # Of equally good alignments either may be told.
        assert len(pairs & wanted) >= (0.99 if one["identity"] > 0.9 else 0.8) * len(wanted)
        checked += 1
    assert checked >= 8


def test_distances_are_those_of_plain_coordinates(found: Found) -> None:
    nearest = {number: one for number, one in enumerate(found.rows[CHAINS.name]) if one["rank"] == 1}
    numbers = {(one["chain_row"], one["position"]): one["author_number"] for one in found.rows[MAPPED_RESIDUES.name]}
    n = 0
    for row, chain in nearest.items():
        structure = gemmi.read_structure(str(found.paths[chain["accession"]]))
        residues = {f"{one.seqid.num}{one.seqid.icode.strip()}": one for one in structure[0][0]}
        for one in [one for one in found.rows[CONTACTS.name] if one["chain_row"] == row][:15]:
            a, b = (residues[numbers[row, one[f"{name}_position"]]] for name in ("first", "second"))
            assert one["alpha_distance"] == pytest.approx(a["CA"][0].pos.dist(b["CA"][0].pos), abs=2e-3)
            heavy = [[atom.pos for atom in residue if not atom.is_hydrogen()] for residue in (a, b)]
            if one["atom_distance"] is not None:
                assert one["atom_distance"] == pytest.approx(min(p.dist(q) for p in heavy[0] for q in heavy[1]), abs=2e-3)
            n += 1
    assert n > 50


def test_exposure_is_that_of_freesasa(found: Found) -> None:
    freesasa = pytest.importorskip("freesasa", reason="FreeSASA is not installed (pip install freesasa)")
    radius = {"N": 1.65, "CA": 1.87, "C": 1.76, "O": 1.40}
    for name in list(found.paths)[:4]:
        chain = next(number for number, one in enumerate(found.rows[CHAINS.name]) if one["accession"] == name and one["rank"] == 1)
        told = {one["author_number"]: one["exposure"] for one in found.rows[MAPPED_RESIDUES.name] if one["chain_row"] == chain}
        structure = gemmi.read_structure(str(found.paths[name]))
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
        chains = found.chains[name]
        ours, theirs = [], []
        for at, number in enumerate(chains.author_number.tolist()):
            code = int(chains.insertion[at])
            key = f"{number}{chr(code) if code else ''}"
            if told.get(key) is not None and told[key] < 1.0:
                ours.append(told[key] * GREATEST_AREA[chains.residue[at]])
                theirs.append(areas[key])
        assert len(ours) > 80
        assert sum(ours) == pytest.approx(sum(theirs), rel=0.05)
        assert np.corrcoef(ours, theirs)[0, 1] > 0.995


def test_files_are_read_by_other_programs(found: Found, tmp_path: Path) -> None:
    project = Project.open(found.project)
    EVIDENCE.export(
        project, ExportRequest(found.run, "structures", tmp_path / "structures", structures=tuple(found.paths.values())), Progress()
    )
    names = [one["accession"] for one in found.rows[PROTEINS.name]]
    psms: dict[str, dict[int, int]] = {}
    for one in rows(found.project, found.run, RESIDUES):
        psms.setdefault(names[one["protein"]], {})[one["position"]] = one["n_psms"]
    checked = 0
    for number, one in enumerate(found.rows[CHAINS.name]):
        if one["rank"] != 1:
            continue
        folder = tmp_path / "structures" / re.sub("[^A-Za-z0-9_]", "_", one["accession"])[:40]
        mapped = [row for row in found.rows[MAPPED_RESIDUES.name] if row["chain_row"] == number and row["author_number"]]
        wanted = {row["author_number"]: psms[one["accession"]][row["position"]] for row in mapped}
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
    """What can be said of scripts without the viewers: commands that these have, files that are there, brackets and quotes that close."""
    written = {path.name for path in folder.iterdir()}
    known = {
        ".pml": {"load", "set", "hide", "show", "alter", "rebuild", "color", "cartoon", "orient"},
        ".cxc": {"open", "hide", "show", "setattr", "cartoon", "color", "set", "lighting", "view"},
    }
    for suffix, commands in known.items():
        (script,) = folder.glob(f"*{suffix}")
        lines = [line.strip() for line in script.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
        assert lines and {re.split(r"[ ,]", line)[0] for line in lines} <= commands
        for line in lines:
            assert line.count('"') % 2 == 0 and line.count("(") == line.count(")") and line.isprintable()
            if line.startswith(("load", "open")):
                assert re.split(r"[ ,]+", line)[1].strip('"') in written


def test_gff3_is_what_its_parser_reads(found: Found, tmp_path: Path) -> None:
    (path,) = EVIDENCE.export(Project.open(found.project), ExportRequest(found.run, "gff3", tmp_path / "sites.gff3"), Progress())
    places = rows(found.project, found.run, PEPTIDE_PLACES)
    lines = path.read_text().splitlines()
    assert lines[0] == "##gff-version 3"
    kinds = {"peptide": len(places), "modified_residue": len(found.rows[SITES.name])}
    features = [line.split("\t") for line in lines if not line.startswith("#")]
    assert {kind: sum(one[2] == kind for one in features) for kind in kinds} == kinds
    lengths = {one["accession"]: one["length"] for one in found.rows[PROTEINS.name]}
    assert all(len(one) == 9 and 1 <= int(one[3]) <= int(one[4]) <= lengths[one[0]] for one in features)
    assert len({one[8].split(";")[0] for one in features}) == len(features)
    gffutils = pytest.importorskip("gffutils", reason="gffutils is not installed (pip install gffutils)")
    database = gffutils.create_db(str(path), ":memory:", merge_strategy="error")
    assert {one: database.count_features_of_type(one) for one in kinds} == kinds
    told = {(one.seqid, one.start, one.end, one.attributes["psms"][0]) for one in database.features_of_type("peptide")}
    assert told == {(one["accession"], one["first"], one["last"], str(one["n_psms"])) for one in places}
