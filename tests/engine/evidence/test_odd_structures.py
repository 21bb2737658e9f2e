"""Structures of ligands, nucleic acids, water, a residue, Cα alone, unknown residues, alternatives and odd numbers: shown as they are, or
refused in a sentence."""

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


class Made(NamedTuple):
    """A project with albumin, its file, and its sequence."""

    folder: Path
    project: Path
    albumin: Path
    sequence: str

    def run(self, structure: Path) -> EvidenceSummary:
        """Evidence on a file."""
        done = run_search("evidence", {"project": [self.project], "structures": [structure]}, device="cpu", threads=2)
        assert isinstance(done, EvidenceSummary) and done.run_id is not None
        return done

    def changed(self, name: str, change: Callable[[gemmi.Chain], None], is_cif: bool = True) -> Path:
        """Albumin's file with something else in its chain."""
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
        """What stands on the chain of a run, by residue of albumin."""
        return {one["position"]: one for one in rows(self.project, str(done.run_id), MAPPED_RESIDUES)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("odd")
    albumin = write_albumin(folder)
    sequence = read_structure(albumin).chains.sequence(0)
    return Made(folder, write_identification(folder, {"WHOLE": sequence}), albumin, sequence)


@pytest.mark.parametrize("is_cif", [True, False])
@pytest.mark.parametrize(
    ("names", "atoms", "n", "told"),
    [
        (("HEM", "PLP"), ("FE", "NA", "CHA"), 9, "only ligands, solvent or atoms of other kinds"),
        (("HOH",), ("O",), 60, "only ligands, solvent or atoms of other kinds"),
        (("DA", "DC", "DG", "DT"), ("P", "C1'", "C3'", "N1"), 12, "chain A is DNA or RNA"),
        (("A", "C", "G", "U"), ("P", "C1'", "C3'", "N1"), 12, "chain A is DNA or RNA"),
        (("LYS",), ("N", "CA", "C", "O"), 3, "chain A has 3 residues with Cα, and 4 are the least"),
        (("LYS", "GLY"), ("N", "CB", "C", "O"), 30, "chain A has no Cα"),
    ],
    ids=["ligands", "water", "DNA", "RNA", "three residues", "no Cα"],
)
def test_what_holds_no_protein_is_refused_in_a_sentence(
    made: Made, names: tuple[str, ...], atoms: tuple[str, ...], n: int, told: str, is_cif: bool
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

    before = len(Project.open(made.project).runs())
    with pytest.raises(InputError) as error:
        made.run(made.changed("none", change, is_cif))
    assert told in str(error.value) and "holds no protein chain of 4 residues or more" in str(error.value)
    assert "\n" not in str(error.value) and str(error.value).count("none.") == 1
    assert not [one for one in Project.open(made.project).runs()[before:] if one.status == "done"]


@pytest.mark.parametrize("is_cif", [True, False])
def test_of_alpha_carbons_alone_nobody_knows_what_lies_on_the_surface(made: Made, is_cif: bool, tmp_path: Path) -> None:
    def change(chain: gemmi.Chain) -> None:
        for residue in chain:
            for k in reversed(range(len(residue))):
                if residue[k].name != "CA":
                    del residue[k]

    done = made.run(made.changed("trace", change, is_cif))
    (chain,) = rows(made.project, str(done.run_id), CHAINS)
    assert chain["identity"] == 1 and not chain["has_atoms"]
    assert {one["exposure"] for one in made.mapped(done).values()} == {None}
    sites = rows(made.project, str(done.run_id), SITES)
    assert sites and {one["place"] for one in sites} == {"unknown"}
    assert any(f"0 on the surface, 0 buried, {len(sites)} where the file lacks the atoms to measure it" in line for line in done.lines())
    (page, *_) = write_pages(Project.open(made.project), str(done.run_id), tmp_path, Progress())
    assert ">unknown<" in page.read_text() and ">surface<" not in page.read_text()


def test_unknown_residues_are_like_none(made: Made) -> None:
    def unknown(every: int) -> Callable[[gemmi.Chain], None]:
        def change(chain: gemmi.Chain) -> None:
            for k, residue in enumerate(chain):
                if k % every == 0:
                    residue.name = "UNK"

        return change

    done = made.run(made.changed("unknown", unknown(1)))
    assert rows(made.project, str(done.run_id), CHAINS) == [] and done.n_on_structures == 0
    done = made.run(made.changed("partly", unknown(4)))
    (chain,) = rows(made.project, str(done.run_id), CHAINS)
    mapped = made.mapped(done)
    known = {position for position in range(1, len(made.sequence) + 1) if (position - 1) % 4}
    assert {position for position, one in mapped.items() if one["is_identical"]} == known
    assert {position for position, one in mapped.items() if one["exposure"] is not None} == known
    assert chain["identity"] == pytest.approx(len(known & set(mapped)) / len(mapped))
    assert {one["chain_letter"] for position, one in mapped.items() if position not in known} == {"X"}


@pytest.mark.parametrize("is_cif", [True, False])
def test_atoms_that_are_alternatives_alone_count_as_others_do(made: Made, is_cif: bool) -> None:
    def change(chain: gemmi.Chain) -> None:
        for residue in chain:
            for atom in residue:
                atom.altloc, atom.occ = "B", 0.4

    exposure = {position: one["exposure"] for position, one in made.mapped(made.run(made.albumin)).items()}
    found = made.mapped(made.run(made.changed("alternatives", change, is_cif)))
    assert {position: one["exposure"] for position, one in found.items()} == exposure and None not in exposure.values()


@pytest.mark.parametrize("is_cif", [True, False])
def test_numbers_below_nought_with_insertion_codes_are_told_and_coloured(made: Made, is_cif: bool, tmp_path: Path) -> None:
    codes = ("", "A", "B")
    names = [f"{k // 3 - 60}{codes[k % 3]}" for k in range(len(made.sequence))]

    def change(chain: gemmi.Chain) -> None:
        for k, residue in enumerate(chain):
            identity = gemmi.SeqId(str(k // 3 - 60))
            identity.icode = codes[k % 3] or " "
            residue.seqid = identity

    path = made.changed("numbers", change, is_cif)
    done = made.run(path)
    mapped = made.mapped(done)
    assert [mapped[k + 1]["author_number"] for k in range(len(names))] == names
    request = ExportRequest(str(done.run_id), "structures", tmp_path / "out", structures=(path,))
    EVIDENCE.export(Project.open(made.project), request, Progress())
    n_psms = [one["n_psms"] for one in rows(made.project, str(done.run_id), RESIDUES)]
    modified = {one["position"] - 1 for one in rows(made.project, str(done.run_id), SITES)}
    for suffix in (".pml", ".cxc"):
        (script,) = (tmp_path / "out").rglob(f"*{suffix}")
        colours = script_colours(script, names)
        kinds = dict[object, set[str]]()
        for k, number in enumerate(names):
            kinds.setdefault("modified" if k in modified else n_psms[k], set()).add(colours[number])
        assert all(len(one) == 1 for one in kinds.values()) and len(set().union(*kinds.values())) == len(kinds) > 3


def test_residues_that_lie_at_one_place_are_told_without_a_number_that_is_none(made: Made) -> None:
    def change(chain: gemmi.Chain) -> None:
        for residue in chain:
            for atom in residue:
                atom.pos = gemmi.Position(0, 0, 0)

    done = made.run(made.changed("heap", change))
    exposure = [one["exposure"] for one in made.mapped(done).values()]
    assert len(exposure) == len(made.sequence) and all(one is None or np.isfinite(one) for one in exposure)
