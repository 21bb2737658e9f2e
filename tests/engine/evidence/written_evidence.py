"""What is written of a run of `write_identification` and its evidence, held against the files that it was made from."""

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
from tests.engine.evidence.evidence_projects import planted_places, write_albumin
from tests.engine.evidence.written_pages import html_tables, pdf_texts

__all__ = ["check_gff3", "check_pages", "check_structures", "check_tables", "script_colours"]

COLOURED = {
    ".pml": r"(?m)^color 0x(?P<colour>\w{6}), \w+(?: and resi (?P<which>.+))?$",
    ".cxc": r"(?m)^color #1(?::(?P<which>\S+))? #(?P<colour>\w{6})$",
}
"""Lines of scripts of PyMOL and ChimeraX that colour residues."""


def check_tables(folder: Path, project: Project, run: str) -> None:
    """Tables as text have the rows of the run's, and peptides stand at all their places."""
    for one in TABLES:
        head, *lines = (folder / text_file_name(one)).read_text().splitlines()
        stored = read_stored(project, run, one, one.saved)
        assert head.split("\t") == list(one.saved) and len(lines) == len(stored), one.name
    written = [line.split("\t") for line in (folder / text_file_name(PEPTIDE_PLACES)).read_text().splitlines()]
    columns = [written[0].index(name) for name in ("accession", "peptide", "first", "last", "n_psms")]
    wanted = Counter((*one[:2], *map(str, one[2:5])) for one in planted_places(project.folder.parent))
    assert Counter(tuple(line[k] for k in columns) for line in written[1:]) == wanted


def check_gff3(path: Path, project: Project) -> None:
    """Every peptide at its places and every oxidised residue has its line, and nothing else has one."""
    head, *lines = path.read_text().splitlines()
    regions = [line for line in lines if line.startswith("#")]
    sequences = sequences_of(project)
    assert head == "##gff-version 3"
    assert regions == [f"##sequence-region {name} 1 {len(letters)}" for name, letters in sequences.items()]
    found = Counter[tuple[str, str, int, int, str, int]]()
    for line in lines[len(regions) :]:
        name, source, kind, first, last, score, strand, phase, told = line.split("\t")
        facts = dict(one.split("=") for one in told.split(";"))
        assert (source, float(score), strand, phase) == ("Proteoscope", 0.001, ".", ".")
        found[name, kind, int(first), int(last), unquote(facts["Name"]), int(facts["psms"])] += 1
    placed = planted_places(project.folder.parent)
    wanted = Counter((one.accession, "peptide", one.first, one.last, one.peptide, one.n_psms) for one in placed)
    sites = Counter[tuple[str, int]]()
    for one in placed:
        if one.site is not None:
            sites[one.accession, one.site] += one.n_psms
    wanted.update({(name, "modified_residue", place, place, "Oxidation", n): 1 for (name, place), n in sites.items()})
    assert sites and found == wanted


def sequences_of(project: Project) -> dict[str, str]:
    """What the database of the project has, by accession."""
    blocks = (block.split("\n") for block in (project.folder.parent / "proteins.fasta").read_text().split(">")[1:])
    return {block[0].split()[0]: "".join(block[1:]) for block in blocks}


def spectra_over(project: Project, accession: str) -> list[int]:
    """Of each residue of a protein how many spectra are of peptides over it."""
    n_psms = [0] * len(sequences_of(project)[accession])
    for one in planted_places(project.folder.parent):
        if one.accession == accession:
            for place in range(one.first - 1, one.last):
                n_psms[place] += one.n_psms
    return n_psms


def check_structures(folder: Path, project: Project, run: str) -> None:
    """B-factors are the spectra over each residue of the chain, and scripts colour the residues by them, by both programs' numbers."""
    chains = read_stored(project, run, CHAINS, ["accession"])["accession"].to_pylist()
    mapped = read_stored(project, run, MAPPED_RESIDUES, ["chain_row", "position", "author_number", "chain_residue"]).to_pylist()
    folders = {path.name.removeprefix("protein_"): path for path in folder.iterdir()}
    assert set(folders) == {"RELATIVE", "TWIN"}
    for accession, own in folders.items():
        n_psms = spectra_over(project, accession)
        sites = {one.site for one in planted_places(project.folder.parent) if one.accession == accession and one.site is not None}
        on_chain = [one for one in mapped if chains[one["chain_row"]] == accession and one["chain_residue"] is not None]
        place_of = {one["author_number"]: one["position"] for one in on_chain}
        assert len(on_chain) == len(place_of) > 150
        assert {path.name for path in own.iterdir()} == {
            f"protein_{accession}.cif",
            f"protein_{accession}.pdb",
            "picture.pml",
            "picture.cxc",
        }
        numbers = [str(one.seqid) for one in gemmi.read_structure(str(write_albumin(project.folder.parent)))[0][0]]
        expected = {number: float(n_psms[place_of[number] - 1]) if number in place_of else -1.0 for number in numbers}
        for path in own.glob("protein_*"):
            found = {str(one.seqid): {atom.b_iso for atom in one} for one in gemmi.read_structure(str(path))[0][0]}
            assert found == {number: {n} for number, n in expected.items()}
        for suffix in COLOURED:
            colours = script_colours(own / f"picture{suffix}", numbers)
            of_number = dict[float, set[str]]()
            modified = {colours[number] for number, place in place_of.items() if place in sites}
            assert len(modified) == bool(sites)
            for number, n in expected.items():
                if place_of.get(number) not in sites:
                    of_number.setdefault(n, set()).add(colours[number])
            # One colour for as many spectra, another for others, and one for modified residues alone.
            kinds = [*of_number.values(), *([modified] if modified else [])]
            assert all(len(one) == 1 for one in kinds) and len(set().union(*kinds)) == len(kinds) > 3


def script_colours(path: Path, numbers: Sequence[str]) -> dict[str, str]:
    """The colour that a script of PyMOL or ChimeraX gives each of some residues, known by their numbers with insertion codes.

    A range of numbers takes residues with whatever codes; of several lines the last counts.
    """
    colours = dict[str, str]()
    for line in re.finditer(COLOURED[path.suffix], path.read_text()):
        for part in re.split("[+,]", (line["which"] or "-9999-9999").replace("\\", "")):
            match = re.fullmatch(r"(-?\d+)([A-Z]?)(?:-(-?\d+))?", part)
            assert match is not None, part
            if match[2]:
                named = [one for one in numbers if one == f"{match[1]}{match[2]}"]
            else:
                first, last = int(match[1]), int(match[3] or match[1])
                named = [one for one in numbers if first <= int(re.sub("[A-Z]", "", one)) <= last]
            colours.update(dict.fromkeys(named, line["colour"]))
    return colours


def check_pages(folder: Path, project: Project) -> None:
    """Pages of both kinds tell the coverage, the peptides, the modified residues and the sequence of each protein."""
    written = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    sequences, placed = sequences_of(project), planted_places(project.folder.parent)
    for accession, sequence in sequences.items():
        html, pdf = (next(path for name, path in written.items() if name.endswith(f"_{accession}.{kind}")) for kind in ("html", "pdf"))
        n_covered = sum(n > 0 for n in spectra_over(project, accession))
        sites = sorted({one.site for one in placed if one.accession == accession and one.site is not None})
        told = f"{len(sequence)} residues, {n_covered / len(sequence) * 100:.1f} % of them covered; {len(sites)} modified."
        own = [one for one in placed if one.accession == accession]
        tables = html_tables(html.read_text())
        assert f"<h1>{accession}</h1>" in html.read_text() and f"<p>{told}</p>" in html.read_text()
        rows = [(one["Peptide"], one["From"], one["To"], one["PSMs"]) for one in tables["Peptides at their places"]]
        assert Counter(rows) == Counter((one.peptide, str(one.first), str(one.last), str(one.n_psms)) for one in own)
        assert [one["Position"] for one in tables.get("Modified residues", [])] == [str(site) for site in sites]
        # Bold is what peptides cover.
        marked = re.sub("[^A-Z<>/b]", "", html.read_text().split("<pre>")[1].split("</pre>")[0].replace("mark>", ">"))
        assert re.sub("<[^>]*>", "", marked) == sequence
        assert len("".join(re.findall("<b>([A-Z]*)</b>", marked))) == n_covered
        texts = pdf_texts(pdf)
        assert pdf.read_bytes().startswith(b"%PDF-") and texts[0] == accession and told in texts
        assert "".join(re.sub("[^A-Z]", "", text) for text in between(texts, "     1 ", "Near chains", "Never seen")) == sequence
        # A long one goes over several lines of its cell.
        cells = "".join(texts[texts.index("Peptides at their places") :])
        assert all(one.peptide in cells for one in own) and len(sites) == sum(str(site) in texts for site in sites)
    assert {Path(name).stem.split("_")[-1] for name in written if name.endswith(".pdf")} == set(sequences)


def between(texts: list[str], first: str, *behind: str) -> list[str]:
    """Of texts those from the first of a kind to the one before others."""
    rest = texts[texts.index(first) :]
    return rest[: min(rest.index(one) for one in behind if one in rest)]
