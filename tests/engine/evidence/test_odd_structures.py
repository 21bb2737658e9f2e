"""Structures of ligands, nucleic acids, water, Cα only, unknown residues, alternative locations and odd numbers.

Each is shown as it is, or rejected with a message.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import gemmi
import numpy as np
import pytest

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.evidence.entry import EVIDENCE
from proteoscope.engine.evidence.summary import EvidenceSummary
from proteoscope.engine.evidence.tables import CHAINS, MAPPED_RESIDUES, RESIDUES, SITES
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.views.evidence_pages import write_pages
from tests.engine.evidence.evidence_projects import write_albumin, write_identification
from tests.engine.evidence.test_evidence import rows
from tests.engine.evidence.written_evidence import script_colours


class AlbuminProject(NamedTuple):
    """A project with albumin, the file of its structure, and its sequence."""

    folder: Path
    project: Path
    albumin: Path
    sequence: str

    def run(self, structure: Path) -> EvidenceSummary:
        """Run evidence on a structure file."""
        done = run_search("evidence", {"project": [self.project], "structures": [structure]}, device="cpu", threads=2)
        assert isinstance(done, EvidenceSummary) and done.run_id is not None
        return done

    def changed(self, name: str, change: Callable[[gemmi.Chain], None], is_cif: bool = True) -> Path:
        """Write albumin's structure with a changed chain."""
        structure = gemmi.read_structure(str(self.albumin))
        change(structure[0][0])
        structure.setup_entities()
        path = self.folder / f"{name}.{'cif' if is_cif else 'pdb'}"
        if is_cif:
            structure.make_mmcif_document().write_file(str(path))
        else:
            path.write_text(structure.make_pdb_string())
        return path

    def mapped(self, done: EvidenceSummary) -> dict[int, dict[str, object]]:
        """Return the mapped residues of a run by their position in albumin."""
        return {row["position"]: row for row in rows(self.project, str(done.run_id), MAPPED_RESIDUES)}


@pytest.fixture(scope="module")
def albumin_project(tmp_path_factory: pytest.TempPathFactory) -> AlbuminProject:
    folder = tmp_path_factory.mktemp("odd")
    albumin = write_albumin(folder)
    sequence = read_structure(albumin).chains.sequence(0)
    return AlbuminProject(folder, write_identification(folder, {"WHOLE": sequence}), albumin, sequence)


@pytest.mark.parametrize("is_cif", [True, False])
@pytest.mark.parametrize(
    ("names", "atoms", "n", "message"),
    [
        (("HEM", "PLP"), ("FE", "NA", "CHA"), 9, "only ligands, solvent or atoms of other kinds"),
        (("HOH",), ("O",), 60, "only ligands, solvent or atoms of other kinds"),
        (("DA", "DC", "DG", "DT"), ("P", "C1'", "C3'", "N1"), 12, "chain A is DNA or RNA"),
        (("A", "C", "G", "U"), ("P", "C1'", "C3'", "N1"), 12, "chain A is DNA or RNA"),
        (("LYS",), ("N", "CA", "C", "O"), 3, "chain A has 3 residues with Cα, and 4 are the minimum"),
        (("LYS", "GLY"), ("N", "CB", "C", "O"), 30, "chain A has no Cα"),
    ],
    ids=["ligands", "water", "DNA", "RNA", "three residues", "no Cα"],
)
def test_evidence_rejects_structures_without_protein(
    albumin_project: AlbuminProject, names: tuple[str, ...], atoms: tuple[str, ...], n: int, message: str, is_cif: bool
) -> None:
    def change(chain: gemmi.Chain) -> None:
        while len(chain):
            del chain[0]
        chain.name = "A"
        for number in range(n):
            residue = gemmi.Residue()
            residue.name, residue.seqid = names[number % len(names)], gemmi.SeqId(str(number + 1))
            for k, name in enumerate(atoms):
                atom = gemmi.Atom()
                atom.name, atom.element = name, gemmi.Element(name[0])
                atom.pos = gemmi.Position(number * 3.8, 1.5 * k, number % 3)
                residue.add_atom(atom)
            chain.add_residue(residue)

    before = len(Project.open(albumin_project.project).runs())
    with pytest.raises(InputError) as error:
        albumin_project.run(albumin_project.changed("none", change, is_cif))
    assert message in str(error.value) and "holds no protein chain of 4 residues or more" in str(error.value)
    assert "\n" not in str(error.value) and str(error.value).count("none.") == 1
    assert not [record for record in Project.open(albumin_project.project).runs()[before:] if record.status == "done"]


@pytest.mark.parametrize("is_cif", [True, False])
def test_exposure_is_unknown_for_chains_of_alpha_carbons(albumin_project: AlbuminProject, is_cif: bool, tmp_path: Path) -> None:
    def change(chain: gemmi.Chain) -> None:
        for residue in chain:
            for k in reversed(range(len(residue))):
                if residue[k].name != "CA":
                    del residue[k]

    done = albumin_project.run(albumin_project.changed("trace", change, is_cif))
    (chain,) = rows(albumin_project.project, str(done.run_id), CHAINS)
    assert chain["identity"] == 1 and not chain["has_atoms"]
    assert {row["exposure"] for row in albumin_project.mapped(done).values()} == {None}
    sites = rows(albumin_project.project, str(done.run_id), SITES)
    assert sites and {site["place"] for site in sites} == {"unknown"}
    assert any(f"0 on the surface, 0 buried, {len(sites)} unknown because the file lacks atoms" in line for line in done.lines())
    (page, *_) = write_pages(Project.open(albumin_project.project), str(done.run_id), tmp_path, Progress())
    assert ">unknown<" in page.read_text() and ">surface<" not in page.read_text()


def test_unknown_residues_never_count_as_identical(albumin_project: AlbuminProject) -> None:
    def unknown(every: int) -> Callable[[gemmi.Chain], None]:
        def change(chain: gemmi.Chain) -> None:
            for k, residue in enumerate(chain):
                if k % every == 0:
                    residue.name = "UNK"

        return change

    done = albumin_project.run(albumin_project.changed("unknown", unknown(1)))
    assert rows(albumin_project.project, str(done.run_id), CHAINS) == [] and done.n_on_structures == 0
    done = albumin_project.run(albumin_project.changed("partly", unknown(4)))
    (chain,) = rows(albumin_project.project, str(done.run_id), CHAINS)
    mapped = albumin_project.mapped(done)
    standard = {position for position in range(1, len(albumin_project.sequence) + 1) if (position - 1) % 4}
    assert {position for position, row in mapped.items() if row["is_identical"]} == standard
    assert {position for position, row in mapped.items() if row["exposure"] is not None} == standard
    assert chain["identity"] == pytest.approx(len(standard & set(mapped)) / len(mapped))
    assert {row["chain_letter"] for position, row in mapped.items() if position not in standard} == {"X"}


@pytest.mark.parametrize("is_cif", [True, False])
def test_exposure_counts_atoms_with_alternative_locations(albumin_project: AlbuminProject, is_cif: bool) -> None:
    def change(chain: gemmi.Chain) -> None:
        for residue in chain:
            for atom in residue:
                atom.altloc, atom.occ = "B", 0.4

    exposure = {position: row["exposure"] for position, row in albumin_project.mapped(albumin_project.run(albumin_project.albumin)).items()}
    mapped = albumin_project.mapped(albumin_project.run(albumin_project.changed("alternatives", change, is_cif)))
    assert {position: row["exposure"] for position, row in mapped.items()} == exposure and None not in exposure.values()


@pytest.mark.parametrize("is_cif", [True, False])
def test_structure_export_colours_negative_residue_numbers(albumin_project: AlbuminProject, is_cif: bool, tmp_path: Path) -> None:
    codes = ("", "A", "B")
    names = [f"{k // 3 - 60}{codes[k % 3]}" for k in range(len(albumin_project.sequence))]

    def change(chain: gemmi.Chain) -> None:
        for k, residue in enumerate(chain):
            identity = gemmi.SeqId(str(k // 3 - 60))
            identity.icode = codes[k % 3] or " "
            residue.seqid = identity

    path = albumin_project.changed("numbers", change, is_cif)
    done = albumin_project.run(path)
    mapped = albumin_project.mapped(done)
    assert [mapped[k + 1]["author_number"] for k in range(len(names))] == names
    request = ExportRequest(str(done.run_id), "structures", tmp_path / "out", structures=(path,))
    EVIDENCE.export(Project.open(albumin_project.project), request, Progress())
    n_psms = [row["n_psms"] for row in rows(albumin_project.project, str(done.run_id), RESIDUES)]
    modified = {site["position"] - 1 for site in rows(albumin_project.project, str(done.run_id), SITES)}
    for suffix in (".pml", ".cxc"):
        (script,) = (tmp_path / "out").rglob(f"*{suffix}")
        colours = script_colours(script, names)
        kinds = dict[object, set[str]]()
        for k, number in enumerate(names):
            kinds.setdefault("modified" if k in modified else n_psms[k], set()).add(colours[number])
        assert all(len(colours_of_kind) == 1 for colours_of_kind in kinds.values()) and len(set().union(*kinds.values())) == len(kinds) > 3


def test_exposure_is_finite_when_all_atoms_have_one_position(albumin_project: AlbuminProject) -> None:
    def change(chain: gemmi.Chain) -> None:
        for residue in chain:
            for atom in residue:
                atom.pos = gemmi.Position(0, 0, 0)

    done = albumin_project.run(albumin_project.changed("heap", change))
    exposure = [row["exposure"] for row in albumin_project.mapped(done).values()]
    assert len(exposure) == len(albumin_project.sequence) and all(value is None or np.isfinite(value) for value in exposure)
