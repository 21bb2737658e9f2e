"""Untrusted input of evidence runs: names that are commands, paths or markup, and runs without results."""

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
"""Names without blanks, which end a name in FASTA, and without semicolons, which separate proteins in tables."""
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
    """Write the first half of albumin as mmCIF with names that are commands of PyMOL, ChimeraX or a shell."""
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
    """Export a run with the structures that its project records."""
    paths = tuple(source.path for source in project.inputs(run) if source.kind == "structures")
    EVIDENCE.export(project, ExportRequest(run, "structures", target, structures=paths), Progress())


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """Return a project and a run whose proteins and structure have hostile names."""
    folder = tmp_path_factory.mktemp("untrusted")
    path = hostile_structure(folder)
    sequence = read_structure(path).chains.sequence(0)
    # Each protein has every fourth to sixth residue exchanged at other positions, so that no peptide is shared.
    kinds = [(every, shift) for every in (4, 5, 6) for shift in range(every)]
    relatives = {name: changed("G" * k + sequence, n)[k:] for name, (n, k) in zip(NAMES, kinds, strict=False)}
    project = write_identification(folder, relatives)
    done = run_search("evidence", {"project": [project], "structures": [path]}, device="cpu", threads=2, protein_fdr=1.0)
    assert done.run_id is not None
    return Project.open(project), done.run_id


def test_structure_export_escapes_untrusted_names(hostile_run: tuple[Project, str], tmp_path: Path) -> None:
    project, run = hostile_run
    near = [row["accession"] for row in rows(project.folder, run, CHAINS) if row["rank"] == 1]
    assert len(near) == len(NAMES)
    export_structures(project, run, tmp_path / "out" / "structures")
    assert [path.name for path in tmp_path.iterdir()] == ["out"] and [path.name for path in (tmp_path / "out").iterdir()] == ["structures"]
    folders = sorted((tmp_path / "out" / "structures").iterdir())
    # Names of folders also differ without regard to case, and none is a keyword of PyMOL or a reserved name of Windows.
    assert len({path.name.casefold() for path in folders}) == len(near)
    for folder in folders:
        assert re.fullmatch("[A-Za-z0-9_]{1,60}", folder.name) and folder.name.casefold() not in {"all", "con", "com1", "7"}
        assert len(list(folder.glob("*.cif"))) == 1
        for suffix, allowed in SCRIPT_LINE.items():
            (script,) = folder.glob(f"*{suffix}")
            lines = [line for line in script.read_text().splitlines() if line and not line.startswith("# Open in")]
            assert len(lines) > 5 and not [line for line in lines if not allowed.fullmatch(line)]


def test_gff3_and_tsv_escape_separators_in_untrusted_names(hostile_run: tuple[Project, str], tmp_path: Path) -> None:
    project, run = hostile_run
    (path,) = EVIDENCE.export(project, ExportRequest(run, "gff3", tmp_path / "sites.gff3"), Progress())
    names = set()
    for line in path.read_text().splitlines():
        if not line.startswith("##"):
            cells = line.split("\t")
            assert len(cells) == 9 and not set(cells[0]) & set(" ;=&,<>\"'")
            names.add(unquote(cells[0]))
            assert all(len(attribute.split("=")) == 2 and attribute.isprintable() for attribute in cells[8].split(";"))
    assert names == {row["accession"] for row in rows(project.folder, run, CHAINS)} == set(NAMES)
    tables = EVIDENCE.export(project, ExportRequest(run, "tsv", tmp_path / "tables"), Progress())
    for table in tables:
        lines = table.read_text().splitlines()
        assert len({line.count("\t") for line in lines}) == 1


def test_protein_pages_show_untrusted_names_as_text(hostile_run: tuple[Project, str], tmp_path: Path) -> None:
    project, run = hostile_run
    written = EVIDENCE.write_pages(project, run, tmp_path / "pages", Progress())
    assert len(written) == 2 * len(NAMES) + 1 and all(path.parent == tmp_path / "pages" for path in written)
    texts = "".join(path.read_text() for path in written if path.suffix == ".html")
    assert "<script" not in texts and "&amp;quot&lt;script&gt;" in texts


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """Return a project and a run with parts of albumin as chains with hostile names, one for each protein."""
    folder = tmp_path_factory.mktemp("chains")
    structure = gemmi.read_structure(str(write_albumin(folder)))
    residues = [residue.clone() for residue in structure[0][0]]
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


def test_untrusted_chain_names_stay_distinct_and_run_no_commands(chains: tuple[Project, str], tmp_path: Path) -> None:
    project, run = chains
    near = [row for row in rows(project.folder, run, CHAINS) if row["rank"] == 1]
    sequence_of = {row["accession"]: row["sequence"] for row in rows(project.folder, run, PROTEINS)}
    assert len({row["chain"] for row in near}) == len(near) == len(sequence_of) == len(CHAINS_CALLED)
    assert all(row["kind"] == "same" and row["identity"] == 1 and row["has_atoms"] for row in near)
    # Names without blanks are unchanged.
    assert {"parts:a_b", "parts:AAA-long-name", "parts:../../x"} < {row["chain"] for row in near}
    assert all(row["exposure"] is not None for row in rows(project.folder, run, MAPPED_RESIDUES))
    export_structures(project, run, tmp_path / "structures")
    for chain in near:
        (path,) = (tmp_path / "structures" / chain["accession"]).glob("*.cif")
        assert read_structure(path).chains.sequence(0) == sequence_of[chain["accession"]]
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
            fold = read_shown_structure(opened, protein, protein.chains[0])
            assert fold.note == "" and fold.trace is not None
            assert fold.pair.query == fold.pair.subject == protein.coverage.sequence


def test_evidence_rejects_run_without_accepted_peptides(hostile_run: tuple[Project, str], tmp_path: Path) -> None:
    project, _ = hostile_run
    before = [record.id for record in project.runs() if record.status == "done"]
    given = {"project": [project.folder], "structures": [write_albumin(tmp_path)]}
    with pytest.raises(InputError, match=r"no peptide up to the false discovery rate.*raise psm_fdr"):
        run_search("evidence", given, device="cpu", threads=2, psm_fdr=1e-9)
    assert [record.id for record in project.runs() if record.status == "done"] == before


def test_unrelated_structure_does_not_change_sequence_evidence(hostile_run: tuple[Project, str], tmp_path: Path) -> None:
    project, _ = hostile_run
    atoms = gemmi.read_structure(str(write_albumin(tmp_path)))
    for residue in atoms[0][0]:
        residue.name = "GLY"
    other = tmp_path / "glycines.pdb"
    other.write_text(atoms.make_pdb_string())
    given = {"project": [project.folder], "structures": [other]}
    done = run_search("evidence", given, device="cpu", threads=2, proteins=NAMES[3:5])
    assert done.run_id is not None
    assert [len(rows(project.folder, done.run_id, table)) for table in (PROTEINS, CHAINS)] == [2, 0]
    with pytest.raises(InputError, match=f"{done.run_id} has no structure similar to a protein"):
        export_structures(project, done.run_id, tmp_path / "structures")
    pages = EVIDENCE.write_pages(project, done.run_id, tmp_path / "pages", Progress())
    assert "No chain of the database" in pages[0].read_text()


@pytest.fixture(scope="module")
def evidence_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project with an evidence run; its structure is in the parent folder."""
    return project_with_evidence(tmp_path_factory.mktemp("evidence") / "evidence_project")


def test_report_path_of_a_file_is_rejected_before_the_run(evidence_project: Project, tmp_path: Path) -> None:
    project = evidence_project
    n = len(project.runs())
    (tmp_path / "pages").write_text("mine")
    for kind, inputs in (("evidence", {"structures": [evidence_project.folder.parent / "1ao6_A.pdb"]}), ("quantify", {})):
        parameters = {"method": "counts"} if kind == "quantify" else {}
        with pytest.raises(InputError, match="pages: is a file; expected a folder"):
            run_search(kind, {"project": [project.folder], **inputs}, options={"report": tmp_path / "pages"}, device="cpu", **parameters)
    assert len(project.runs()) == n and (tmp_path / "pages").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_structure_export_rejects_a_pipe(evidence_project: Project, tmp_path: Path) -> None:
    path = evidence_project.folder.parent / "1ao6_A.pdb"
    path.rename(tmp_path / "original")
    try:
        os.mkfifo(path)
        run, progress = str(evidence_project.latest("evidence")), RecordingProgress(Progress())
        request = ExportRequest(run, "structures", tmp_path / "structures", structures=(path,))
        with pytest.raises(InputError, match=r"1ao6_A.pdb: is a pipe or a device"):
            EVIDENCE.export(evidence_project, request, progress)
        pages = EVIDENCE.write_pages(evidence_project, run, tmp_path / "pages", Progress())
    finally:
        (tmp_path / "original").replace(path)
    text = pages[0].read_text()
    assert "1ao6_A.pdb: has changed since the run read it" in text and str(evidence_project.folder.parent) not in text
