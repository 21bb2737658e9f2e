"""Checks of the exported files of `write_identification` and its evidence run against the files that it read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import gemmi

from proteoscope.engine.evidence.tables import CHAINS, MAPPED_RESIDUES, PEPTIDE_PLACES, TABLES, text_file_name
from proteoscope.engine.project import Project
from proteoscope.engine.results.reader import read_stored
from tests.engine.evidence.evidence_projects import planted_positions, write_albumin
from tests.engine.evidence.written_pages import html_tables, pdf_texts

__all__ = ["check_gff3", "check_pages", "check_structures", "check_tables", "script_colours"]

COLOURED = {
    ".pml": r"(?m)^color 0x(?P<colour>\w{6}), \w+(?: and resi (?P<which>.+))?$",
    ".cxc": r"(?m)^color #1(?::(?P<which>\S+))? #(?P<colour>\w{6})$",
}
"""Lines of scripts of PyMOL and ChimeraX that colour residues."""


def check_tables(folder: Path, project: Project, run: str) -> None:
    """Check that text tables have the run's rows, and that peptides are listed at all their positions."""
    for table in TABLES:
        head, *lines = (folder / text_file_name(table)).read_text().splitlines()
        stored = read_stored(project, run, table, table.saved)
        names = head.split("\t")
        # A search without localised sites has no alternatives.
        assert names == [name for name in table.saved if name in names or not table.by_name[name].is_optional], table.name
        assert len(lines) == len(stored), table.name
    written = [line.split("\t") for line in (folder / text_file_name(PEPTIDE_PLACES)).read_text().splitlines()]
    columns = [written[0].index(name) for name in ("accession", "peptide", "first", "last", "n_psms")]
    wanted = Counter((*peptide[:2], *map(str, peptide[2:5])) for peptide in planted_positions(project.folder.parent))
    assert Counter(tuple(line[k] for k in columns) for line in written[1:]) == wanted


def check_gff3(path: Path, project: Project) -> None:
    """Check that each position of a peptide and each oxidised residue has a line, and that there are no others."""
    head, *lines = path.read_text().splitlines()
    regions = [line for line in lines if line.startswith("#")]
    sequences = read_sequences(project)
    assert head == "##gff-version 3"
    assert regions == [f"##sequence-region {name} 1 {len(residues)}" for name, residues in sequences.items()]
    features = Counter[tuple[str, str, int, int, str, int]]()
    for line in lines[len(regions) :]:
        name, source, kind, first, last, score, strand, phase, attributes = line.split("\t")
        facts = dict(attribute.split("=") for attribute in attributes.split(";"))
        assert (source, float(score), strand, phase) == ("Proteoscope", 0.001, ".", ".")
        features[name, kind, int(first), int(last), unquote(facts["Name"]), int(facts["psms"])] += 1
    placed = planted_positions(project.folder.parent)
    wanted = Counter((peptide.accession, "peptide", peptide.first, peptide.last, peptide.peptide, peptide.n_psms) for peptide in placed)
    sites = Counter[tuple[str, int]]()
    for peptide in placed:
        if peptide.site is not None:
            sites[peptide.accession, peptide.site] += peptide.n_psms
    wanted.update({(name, "modified_residue", place, place, "Oxidation", n): 1 for (name, place), n in sites.items()})
    assert sites and features == wanted


def read_sequences(project: Project) -> dict[str, str]:
    """Read the sequences of the project's database, by accession."""
    blocks = (block.split("\n") for block in (project.folder.parent / "proteins.fasta").read_text().split(">")[1:])
    return {block[0].split()[0]: "".join(block[1:]) for block in blocks}


def count_spectra(project: Project, accession: str) -> list[int]:
    """Count the spectra of peptides over each residue of a protein."""
    n_psms = [0] * len(read_sequences(project)[accession])
    for peptide in planted_positions(project.folder.parent):
        if peptide.accession == accession:
            for place in range(peptide.first - 1, peptide.last):
                n_psms[place] += peptide.n_psms
    return n_psms


def check_structures(folder: Path, project: Project, run: str) -> None:
    """Check that B-factors are the numbers of spectra that cover each residue, and that both viewers' scripts colour residues by them."""
    chains = read_stored(project, run, CHAINS, ["accession"])["accession"].to_pylist()
    mapped = read_stored(project, run, MAPPED_RESIDUES, ["chain_row", "position", "author_number", "chain_residue"]).to_pylist()
    folders = {path.name.removeprefix("protein_"): path for path in folder.iterdir()}
    assert set(folders) == {"RELATIVE", "PARTIAL"}
    for accession, subfolder in folders.items():
        n_psms = count_spectra(project, accession)
        sites = {
            peptide.site
            for peptide in planted_positions(project.folder.parent)
            if peptide.accession == accession and peptide.site is not None
        }
        on_chain = [residue for residue in mapped if chains[residue["chain_row"]] == accession and residue["chain_residue"] is not None]
        place_of = {residue["author_number"]: residue["position"] for residue in on_chain}
        assert len(on_chain) == len(place_of) > 150
        assert {path.name for path in subfolder.iterdir()} == {
            f"protein_{accession}.cif",
            f"protein_{accession}.pdb",
            "picture.pml",
            "picture.cxc",
        }
        numbers = [str(residue.seqid) for residue in gemmi.read_structure(str(write_albumin(project.folder.parent)))[0][0]]
        expected = {number: float(n_psms[place_of[number] - 1]) if number in place_of else -1.0 for number in numbers}
        for path in subfolder.glob("protein_*"):
            b_factors = {str(residue.seqid): {atom.b_iso for atom in residue} for residue in gemmi.read_structure(str(path))[0][0]}
            assert b_factors == {number: {n} for number, n in expected.items()}
        for suffix in COLOURED:
            colours = script_colours(subfolder / f"picture{suffix}", numbers)
            of_number = dict[float, set[str]]()
            modified = {colours[number] for number, place in place_of.items() if place in sites}
            assert len(modified) == bool(sites)
            for number, n in expected.items():
                if place_of.get(number) not in sites:
                    of_number.setdefault(n, set()).add(colours[number])
            # A colour for each number of spectra, and another for modified residues.
            kinds = [*of_number.values(), *([modified] if modified else [])]
            assert all(len(colours_of_kind) == 1 for colours_of_kind in kinds) and len(set().union(*kinds)) == len(kinds) > 3


def script_colours(path: Path, numbers: Sequence[str]) -> dict[str, str]:
    """Return the colour that a script of PyMOL or ChimeraX gives each residue, by its number with insertion code.

    A range of numbers includes residues with any code. The last line for a residue applies.
    """
    colours = dict[str, str]()
    for line in re.finditer(COLOURED[path.suffix], path.read_text()):
        for part in re.split("[+,]", (line["which"] or "-9999-9999").replace("\\", "")):
            match = re.fullmatch(r"(-?\d+)([A-Z]?)(?:-(-?\d+))?", part)
            assert match is not None, part
            if match[2]:
                named = [number for number in numbers if number == f"{match[1]}{match[2]}"]
            else:
                first, last = int(match[1]), int(match[3] or match[1])
                named = [number for number in numbers if first <= int(re.sub("[A-Z]", "", number)) <= last]
            colours.update(dict.fromkeys(named, line["colour"]))
    return colours


def check_pages(folder: Path, project: Project) -> None:
    """Check that HTML and PDF pages show the coverage, peptides, modified residues and sequence of each protein."""
    written = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    sequences, placed = read_sequences(project), planted_positions(project.folder.parent)
    for accession, sequence in sequences.items():
        html, pdf = (next(path for name, path in written.items() if name.endswith(f"_{accession}.{kind}")) for kind in ("html", "pdf"))
        n_covered = sum(n > 0 for n in count_spectra(project, accession))
        sites = sorted({peptide.site for peptide in placed if peptide.accession == accession and peptide.site is not None})
        summary = f"{len(sequence)} residues, {n_covered / len(sequence) * 100:.1f} % of them covered; {len(sites)} modified."
        peptides = [peptide for peptide in placed if peptide.accession == accession]
        tables = html_tables(html.read_text())
        assert f"<h1>{accession}</h1>" in html.read_text() and f"<p>{summary}</p>" in html.read_text()
        rows = [(row["Peptide"], row["From"], row["To"], row["PSMs"]) for row in tables["Mapped peptides"]]
        assert Counter(rows) == Counter(
            (peptide.peptide, str(peptide.first), str(peptide.last), str(peptide.n_psms)) for peptide in peptides
        )
        assert [row["Position"] for row in tables.get("Modified residues", [])] == [str(site) for site in sites]
        # Covered residues are bold.
        marked = re.sub("[^A-Z<>/b]", "", html.read_text().split("<pre>")[1].split("</pre>")[0].replace("mark>", ">"))
        assert re.sub("<[^>]*>", "", marked) == sequence
        assert len("".join(re.findall("<b>([A-Z]*)</b>", marked))) == n_covered
        texts = pdf_texts(pdf)
        assert pdf.read_bytes().startswith(b"%PDF-") and texts[0] == accession and summary in texts
        assert "".join(re.sub("[^A-Z]", "", text) for text in between(texts, "     1 ", "Similar chains", "Uncovered regions")) == sequence
        # A long peptide wraps within its cell.
        cells = "".join(texts[texts.index("Mapped peptides") :])
        assert all(peptide.peptide in cells for peptide in peptides) and len(sites) == sum(str(site) in texts for site in sites)
    assert {Path(name).stem.split("_")[-1] for name in written if name.endswith(".pdf")} == set(sequences)


def between(texts: list[str], first: str, *ends: str) -> list[str]:
    """Return the texts from `first` up to the nearest of `ends`."""
    rest = texts[texts.index(first) :]
    return rest[: min(rest.index(end) for end in ends if end in rest)]
