"""What strangers hand over to evidence on structures: names that are commands, paths or markup, and runs without anything to show."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

import gemmi
import pytest

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.evidence.entry import EVIDENCE
from proteoscope.engine.evidence.tables import CHAINS, MAPPED_RESIDUES, PROTEINS
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.views.evidence import protein_evidence, read_shown_structure
from proteoscope.engine.views.finished_run import open_run
from tests.engine.evidence.evidence_projects import changed, project_with_evidence, write_albumin, write_identification
from tests.engine.evidence.test_evidence import rows

NAMES = (
    "../../../etc/passwd",
    "A|system('touch${IFS}owned')",
    "A_system__touch__IFS_owned__",
    "all",
    "ALL",
    "con",
    "COM1",
    "7",
    "%2e%2e%2f",
    "python\\end",
    "x" * 1_000,
    "&quot<script>alert(1)</script>",
)
"""No blank stands in them, behind which a FASTA file has the description, and no semicolon, which parts proteins in tables."""
N_RESIDUES = 300
HOSTILE = "'); quit; delete all #"
CHAINS_CALLED = (
    "AAA-long-name",
    'it\'s "quoted" or not',
    "<script>alert(1)</script>",
    "A;quit",
    "$(touch owned)",
    "all or chain B",
    "../../x",
    "a b",
    "a_b",
    "a\tb",
    "Z" * 90 + "1",
    "Z" * 90 + "2",
)
SCRIPT_LINE = {
    ".pml": re.compile(
        r"load [A-Za-z0-9_]+\.cif, [A-Za-z0-9_]+|hide everything|show cartoon|set [a-z_]+, [][0-9., ]+|rebuild|orient"
        r"|alter [A-Za-z0-9_]+( and resi [0-9A-Za-z+\\-]+)?, ss=\"[LHS]\"|color 0x[0-9a-f]{6}, [A-Za-z0-9_]+( and resi [0-9A-Za-z+\\-]+)?"
    ),
    ".cxc": re.compile(
        r"open [A-Za-z0-9_]+\.cif|hide atoms|show cartoons|setattr #1(:[0-9A-Za-z,-]+)? residues ss_type [012]"
        r"|color #1(:[0-9A-Za-z,-]+)? #[0-9a-f]{6}|set bgColor #[0-9a-f]{6}|lighting depthCue true|view"
    ),
}


def hostile_structure(folder: Path) -> Path:
    """The first half of albumin as mmCIF, with names of all that has one which are commands of PyMOL, ChimeraX and a shell."""
    structure = gemmi.read_structure(str(write_albumin(folder)))
    del structure[0][0][N_RESIDUES:]
    structure.name = HOSTILE
    structure.info["_struct.title"] = f"{HOSTILE}\nrun evil.py"
    structure[0][0].name = "A;q"
    structure.setup_entities()
    structure.assign_label_seq_id()
    for entity in structure.entities:
        entity.name = HOSTILE
    path = folder / "a; quit.cif"
    structure.make_mmcif_document().write_file(str(path))
    return path


def export_structures(project: Project, run: str, target: Path) -> None:
    """Export a run with the structures that its project records, which is of this user."""
    paths = tuple(one.path for one in project.inputs(run) if one.kind == "structures")
    EVIDENCE.export(project, ExportRequest(run, "structures", target, structures=paths), Progress())


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """A run whose proteins and structure have such names."""
    folder = tmp_path_factory.mktemp("strangers")
    path = hostile_structure(folder)
    sequence = read_structure(path).chains.sequence(0)
    # Every fourth to sixth residue is another, in each protein at other places: none shares a peptide.
    kinds = [(every, shift) for every in (4, 5, 6) for shift in range(every)]
    relatives = {name: changed("G" * k + sequence, n)[k:] for name, (n, k) in zip(NAMES, kinds, strict=False)}
    project = write_identification(folder, relatives)
    done = run_search("evidence", {"project": [project], "structures": [path]}, device="cpu", threads=2, protein_fdr=1.0)
    assert done.run_id is not None
    return Project.open(project), done.run_id


def test_a_name_is_no_command_and_no_path_in_what_is_exported(found: tuple[Project, str], tmp_path: Path) -> None:
    project, run = found
    near = [one["accession"] for one in rows(project.folder, run, CHAINS) if one["rank"] == 1]
    assert len(near) == len(NAMES)
    export_structures(project, run, tmp_path / "out" / "structures")
    assert [path.name for path in tmp_path.iterdir()] == ["out"] and [path.name for path in (tmp_path / "out").iterdir()] == ["structures"]
    folders = sorted((tmp_path / "out" / "structures").iterdir())
    # Each has its own, also on a disk that does not tell capitals apart, and none is a word of PyMOL or Windows.
    assert len({path.name.casefold() for path in folders}) == len(near)
    for folder in folders:
        assert re.fullmatch("[A-Za-z0-9_]{1,60}", folder.name) and folder.name.casefold() not in {"all", "con", "com1", "7"}
        assert len(list(folder.glob("*.cif"))) == 1
        for suffix, allowed in SCRIPT_LINE.items():
            (script,) = folder.glob(f"*{suffix}")
            lines = [line for line in script.read_text().splitlines() if line and not line.startswith("# Open in")]
            assert len(lines) > 5 and not [line for line in lines if not allowed.fullmatch(line)]


def test_a_name_stays_in_its_cell_of_gff3_and_text(found: tuple[Project, str], tmp_path: Path) -> None:
    project, run = found
    (path,) = EVIDENCE.export(project, ExportRequest(run, "gff3", tmp_path / "sites.gff3"), Progress())
    names = set()
    for line in path.read_text().splitlines():
        if not line.startswith("##"):
            cells = line.split("\t")
            assert len(cells) == 9 and not set(cells[0]) & set(" ;=&,<>\"'")
            names.add(unquote(cells[0]))
            assert all(len(one.split("=")) == 2 and one.isprintable() for one in cells[8].split(";"))
    assert names == {one["accession"] for one in rows(project.folder, run, CHAINS)} == set(NAMES)
    tables = EVIDENCE.export(project, ExportRequest(run, "tsv", tmp_path / "tables"), Progress())
    for table in tables:
        lines = table.read_text().splitlines()
        assert len({line.count("\t") for line in lines}) == 1


def test_names_are_text_on_pages_and_no_paths(found: tuple[Project, str], tmp_path: Path) -> None:
    project, run = found
    written = EVIDENCE.write_pages(project, run, tmp_path / "pages", Progress())
    assert len(written) == 2 * len(NAMES) + 1 and all(path.parent == tmp_path / "pages" for path in written)
    texts = "".join(path.read_text() for path in written if path.suffix == ".html")
    assert "<script" not in texts and "&amp;quot&lt;script&gt;" in texts


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """Parts of albumin as chains with such names, each with a protein of its own."""
    folder = tmp_path_factory.mktemp("chains")
    structure = gemmi.read_structure(str(write_albumin(folder)))
    residues = [one.clone() for one in structure[0][0]]
    structure[0].remove_chain(structure[0][0].name)
    length = len(residues) // len(CHAINS_CALLED)
    for number in range(len(CHAINS_CALLED)):
        part = gemmi.Chain(f"C{number}")
        part.append_residues(residues[number * length : (number + 1) * length])
        structure[0].add_chain(part)
    structure.setup_entities()
    document = structure.make_mmcif_document()
    names = document.sole_block().find_values("_atom_site.auth_asym_id")
    for row in range(len(names)):
        names[row] = gemmi.cif.quote(CHAINS_CALLED[int(names[row][1:])])
    path = folder / "parts.cif"
    document.write_file(str(path))
    read = read_structure(path)
    assert len(read.chains) == len(CHAINS_CALLED)
    proteins = {f"PART{number}": read.chains.sequence(number) for number in range(len(read.chains))}
    project = write_identification(folder, proteins)
    done = run_search("evidence", {"project": [project], "structures": [path]}, device="cpu", threads=2, protein_fdr=1.0)
    assert done.run_id is not None
    return Project.open(project), done.run_id


def test_chains_of_any_name_are_told_apart_and_are_no_commands(chains: tuple[Project, str], tmp_path: Path) -> None:
    project, run = chains
    near = [one for one in rows(project.folder, run, CHAINS) if one["rank"] == 1]
    sequence_of = {one["accession"]: one["sequence"] for one in rows(project.folder, run, PROTEINS)}
    assert len({one["chain"] for one in near}) == len(near) == len(sequence_of) == len(CHAINS_CALLED)
    assert all(one["kind"] == "same" and one["identity"] == 1 and one["has_atoms"] for one in near)
    # Those that have no blank keep their names.
    assert {"parts:a_b", "parts:AAA-long-name", "parts:../../x"} < {one["chain"] for one in near}
    assert all(one["exposure"] is not None for one in rows(project.folder, run, MAPPED_RESIDUES))
    export_structures(project, run, tmp_path / "structures")
    for one in near:
        (path,) = (tmp_path / "structures" / one["accession"]).glob("*.cif")
        assert read_structure(path).chains.sequence(0) == sequence_of[one["accession"]]
        for suffix, allowed in SCRIPT_LINE.items():
            (script,) = path.parent.glob(f"*{suffix}")
            lines = [line for line in script.read_text().splitlines() if line and not line.startswith("# Open in")]
            assert len(lines) > 5 and not [line for line in lines if not allowed.fullmatch(line)]
    written = EVIDENCE.write_pages(project, run, tmp_path / "pages", Progress())
    texts = "".join(path.read_text() for path in written if path.suffix == ".html")
    assert "<script" not in texts and texts.count("parts:&lt;script&gt;") > 1
    with open_run(project, run) as opened:
        source = opened.tables.source("proteins")
        for row in range(source.total):
            protein = protein_evidence(source, row)
            fold = read_shown_structure(opened, protein, protein.folds[0])
            assert fold.note == "" and fold.trace is not None
            assert fold.pair.query == fold.pair.subject == protein.coverage.sequence


def test_without_matches_one_sentence_says_what_to_do(found: tuple[Project, str], tmp_path: Path) -> None:
    project, _ = found
    before = [one.id for one in project.runs() if one.status == "done"]
    given = {"project": [project.folder], "structures": [write_albumin(tmp_path)]}
    with pytest.raises(InputError, match=r"no peptide up to the false discovery rate.*raise psm_fdr"):
        run_search("evidence", given, device="cpu", threads=2, psm_fdr=1e-9)
    assert [one.id for one in project.runs() if one.status == "done"] == before


def test_a_structure_of_another_protein_leaves_all_that_needs_none(found: tuple[Project, str], tmp_path: Path) -> None:
    project, _ = found
    atoms = gemmi.read_structure(str(write_albumin(tmp_path)))
    for residue in atoms[0][0]:
        residue.name = "GLY"
    other = tmp_path / "glycines.pdb"
    other.write_text(atoms.make_pdb_string())
    given = {"project": [project.folder], "structures": [other]}
    done = run_search("evidence", given, device="cpu", threads=2, proteins=NAMES[3:5])
    assert done.run_id is not None
    assert [len(rows(project.folder, done.run_id, table)) for table in (PROTEINS, CHAINS)] == [2, 0]
    with pytest.raises(InputError, match=f"{done.run_id} has no structure near any protein"):
        export_structures(project, done.run_id, tmp_path / "structures")
    pages = EVIDENCE.write_pages(project, done.run_id, tmp_path / "pages", Progress())
    assert "No structure" in pages[0].read_text()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a run of evidence; the structure lies beside it."""
    return project_with_evidence(tmp_path_factory.mktemp("evidence") / "made")


def test_a_report_that_is_a_file_is_told_before_anything_is_computed(made: Project, tmp_path: Path) -> None:
    project = made
    n = len(project.runs())
    (tmp_path / "pages").write_text("mine")
    for kind, inputs in (("evidence", {"structures": [made.folder.parent / "1ao6_A.pdb"]}), ("quantify", {})):
        parameters = {"method": "counts"} if kind == "quantify" else {}
        with pytest.raises(InputError, match="pages: is a file, where a folder is wanted"):
            run_search(kind, {"project": [project.folder], **inputs}, options={"report": tmp_path / "pages"}, device="cpu", **parameters)
    assert len(project.runs()) == n and (tmp_path / "pages").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_place_of_a_structure_keeps_nobody_waiting(made: Project, tmp_path: Path) -> None:
    path = made.folder.parent / "1ao6_A.pdb"
    path.rename(tmp_path / "kept")
    try:
        os.mkfifo(path)
        run, progress = str(made.latest("evidence")), RecordingProgress(Progress())
        request = ExportRequest(run, "structures", tmp_path / "structures", structures=(path,))
        with pytest.raises(InputError, match=r"1ao6_A.pdb: is a pipe or a device"):
            EVIDENCE.export(made, request, progress)
        pages = EVIDENCE.write_pages(made, run, tmp_path / "pages", Progress())
    finally:
        (tmp_path / "kept").replace(path)
    text = pages[0].read_text()
    assert "1ao6_A.pdb: has changed since the run read it" in text and str(made.folder.parent) not in text
