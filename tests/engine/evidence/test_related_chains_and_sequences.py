"""Homologues and their conservation, chains that only the fold leads to, and intensities: each beside what is known otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from Bio import Align
from Bio.SVDSuperimposer import SVDSuperimposer
from pyteomics import mgf

from proteoscope.engine.command_line.main import main
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.evidence.entry import EVIDENCE
from proteoscope.engine.evidence.tables import CHAINS, HOMOLOGUES, MAPPED_RESIDUES, PEPTIDE_PLACES, PROTEINS, RESIDUES, SITES
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.results.columns import Table
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.searches import run_search
from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.sequences.statistics import BACKGROUND
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.views.evidence_pages import write_pages
from tests.engine.evidence.evidence_projects import changed, write_albumin, write_identification
from tests.searching import import_results

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
LYSINES = "LIK"


def rows(project: Path, run: str, table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_stored(Project.open(project), run, table, list(table.by_name)).to_pylist()
    return found


@pytest.fixture(scope="module")
def with_homologues(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, dict[str, str], dict[str, str]]:
    """Albumin with five relatives without gaps, one with one, itself and a stranger; a protein with two relatives; its project and run."""
    folder = tmp_path_factory.mktemp("homologues")
    albumin = write_albumin(folder)
    sequence = read_structure(albumin).chains.sequence(0)
    proteins = {"WHOLE": sequence, "LONELY": LYSINES + "GSTDEWWYRK".join(["HVFQ", "NDCPM", "TAGLK", "EEYVD", "PQRSW"]) * 3}
    relatives = {f"EVERY{k}": changed(sequence, k) for k in (3, 4, 5, 7)}
    relatives["PART"] = changed(sequence, 6)[200:350]
    relatives["GAP"] = sequence[:300] + sequence[303:]
    relatives |= {"ITSELF": sequence, "STRANGER": "WHWHHWCCWH" * 20}
    relatives |= {f"OF_LONELY{k}": changed(proteins["LONELY"], k) for k in (9, 11)}
    write_sequences(folder / "relatives.fasta", relatives)
    project = write_identification(folder, proteins)
    where = {"project": [project], "structures": [albumin], "homologues": [folder / "relatives.fasta"]}
    done = run_search("evidence", where, device="cpu", threads=2)
    assert done.run_id is not None
    return project, done.run_id, proteins, relatives


def test_homologues_are_those_that_resemble_and_the_protein_itself_is_none(
    with_homologues: tuple[Path, str, dict[str, str], dict[str, str]],
) -> None:
    project, run, proteins, relatives = with_homologues
    found = rows(project, run, HOMOLOGUES)
    assert {one["subject"] for one in found if one["accession"] == "WHOLE"} == {"EVERY3", "EVERY4", "EVERY5", "EVERY7", "PART", "GAP"}
    assert {one["subject"] for one in found if one["accession"] == "LONELY"} == {"OF_LONELY9", "OF_LONELY11"}
    counted = {one["accession"]: one["n_homologues"] for one in rows(project, run, PROTEINS)}
    assert counted == {"WHOLE": 6, "LONELY": 2}
    aligner = Align.PairwiseAligner(mode="local", substitution_matrix=Align.substitution_matrices.load("BLOSUM62"))
    aligner.open_gap_score, aligner.extend_gap_score = -12, -1
    for one in found:
        assert one["score"] == aligner.score(proteins[one["accession"]], relatives[one["subject"]])


def test_conservation_is_the_divergence_of_each_column_by_its_definition(
    with_homologues: tuple[Path, str, dict[str, str], dict[str, str]],
) -> None:
    project, run, proteins, _ = with_homologues
    names = [one["accession"] for one in rows(project, run, PROTEINS)]
    of_residues = rows(project, run, RESIDUES)
    own = [one for one in of_residues if names[one["protein"]] == "WHOLE"]
    lines = [proteins["WHOLE"]]
    for one in rows(project, run, HOMOLOGUES):
        if one["accession"] == "WHOLE":
            kept = "".join(b for a, b in zip(one["aligned_query"], one["aligned_subject"], strict=True) if a != "-")
            lines.append(("-" * (one["query_start"] - 1) + kept).ljust(len(lines[0]), "-"))
    wanted = plain_conservation(lines)
    # The program adds a ten-millionth to the count of each residue, twenty times in a column.
    np.testing.assert_allclose([one["conservation"] for one in own], wanted, atol=1e-4)
    assert [one["n_homologues"] for one in own] == [sum(line[k] != "-" for line in lines[1:]) for k in range(len(lines[0]))]
    # Two are too few to tell.
    assert all(one["conservation"] is None for one in of_residues if names[one["protein"]] == "LONELY")
    by_place = {one["position"]: one["conservation"] for one in own}
    sites = [one for one in rows(project, run, SITES) if one["accession"] == "WHOLE"]
    assert sites and all(one["conservation"] == by_place[one["position"]] for one in sites)


def plain_conservation(lines: list[str]) -> list[float]:
    """Capra & Singh (2007) with the weights of Henikoff & Henikoff (1994), letter by letter."""
    weights = [0.0] * len(lines)
    columns = list(zip(*lines, strict=True))
    for column in columns:
        kinds = {letter for letter in column if letter in AMINO_ACIDS}
        for k, letter in enumerate(column):
            if letter in kinds:
                weights[k] += 1 / (len(kinds) * column.count(letter))
    weights = [one / sum(weights) for one in weights]
    background = {letter: float(BACKGROUND[SYMBOLS.index(letter)]) for letter in AMINO_ACIDS}
    whole = sum(background.values())
    found = []
    for column in columns:
        share = {one: sum(w for w, letter in zip(weights, column, strict=True) if letter == one) for one in AMINO_ACIDS}
        seen = sum(share.values())
        divergence = 0.0
        for one in AMINO_ACIDS:
            p, q = share[one] / seen, background[one] / whole
            divergence += (p * log2(p / ((p + q) / 2)) if p else 0.0) / 2 + q * log2(q / ((p + q) / 2)) / 2
        found.append(divergence * seen)
    return found


def test_without_homologues_nothing_is_told_of_conservation(tmp_path: Path) -> None:
    albumin = write_albumin(tmp_path)
    project = write_identification(tmp_path, {"WHOLE": read_structure(albumin).chains.sequence(0)})
    done = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2)
    assert done.run_id is not None
    assert rows(project, done.run_id, HOMOLOGUES) == []
    assert {one["conservation"] for one in rows(project, done.run_id, RESIDUES)} == {None}
    # What the files tell of precursors, summed by peptide.
    with mgf.read(str(tmp_path / "run.mgf"), use_index=False) as spectra:
        told = {one["params"]["title"].split(".")[1]: one["params"]["pepmass"][1] for one in spectra}
    sums: dict[str, float] = {}
    for line in (tmp_path / "found.target.psms.tsv").read_text().splitlines()[1:]:
        name, *_, peptide, _ = line.split("\t")
        bare = "".join(letter for letter in peptide.split(".", 1)[1].rsplit(".", 1)[0] if letter.isalpha())
        sums[bare] = sums.get(bare, 0.0) + told[name.split("_")[1]]
    places = rows(project, done.run_id, PEPTIDE_PLACES)
    for one in places:
        assert one["intensity"] == pytest.approx(sums[one["sequence"]])
    # The site's is that of the peptides over it which carry it, of which there is one here.
    for site in rows(project, done.run_id, SITES):
        over = [one for one in places if one["first"] <= site["position"] <= one["last"] and "[" in one["peptide"]]
        assert site["intensity"] == pytest.approx(sum(one["intensity"] for one in over)) and site["n_psms"] <= site["n_covering"]


def test_letters_of_any_kind_are_read_and_no_protein_is_its_own_homologue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    albumin = write_albumin(tmp_path)
    sequence = read_structure(albumin).chains.sequence(0)
    # Spectra of plain ones, and a database that has other letters in them, whose peptides are where these are not.
    plain = {"ODD": sequence, "LOWER": sequence[::-1], "ENDS": changed(sequence, 5)[300:]}
    write_identification(tmp_path, plain, tmp_path / "plain")
    odd = {"ODD": f"{sequence[:100]}BXUJZO{sequence[100:]}*", "LOWER": plain["LOWER"].lower(), "ENDS": f"{'X' * 3}{plain['ENDS']}*XB*"}
    write_sequences(tmp_path / "proteins.fasta", odd)
    relatives = {"SAME": sequence, **{f"EVERY{k}": changed(sequence, k) for k in (3, 7)}}
    write_sequences(tmp_path / "relatives.fasta", {**odd, **relatives})
    with (tmp_path / "relatives.fasta").open("a") as file:
        file.writelines(f">{name} once more\n{letters}\n" for name, letters in [*odd.items(), ("EVERY3", changed(sequence, 4))])
    project = tmp_path / "project"
    import_results([tmp_path / "found.target.psms.tsv"], [tmp_path / "run.mgf"], project, [tmp_path / "proteins.fasta"])
    where = {"project": [project], "structures": [albumin], "homologues": [tmp_path / "relatives.fasta"]}
    run = str(run_search("evidence", where, device="cpu", threads=2).run_id)
    proteins = {one["accession"]: one for one in rows(project, run, PROTEINS)}
    letters = {name: re.sub("[^A-Z]", "X", one.upper().removesuffix("*")) for name, one in odd.items()}
    assert {name: one["sequence"] for name, one in proteins.items()} == letters
    # Peptides stand where their letters do, and nowhere over the others.
    for one in rows(project, run, PEPTIDE_PLACES):
        assert letters[one["accession"]][one["first"] - 1 : one["last"]] == one["sequence"]
    (near,) = [one for one in rows(project, run, CHAINS) if one["accession"] == "ODD"]
    assert (near["kind"], near["identity"], near["n_aligned"], near["n_gaps"]) == ("same", 1.0, len(sequence), 6)
    homologues = rows(project, run, HOMOLOGUES)
    found = {name: sorted(one["subject"] for one in homologues if one["accession"] == name) for name in odd}
    assert found["ODD"] == ["ENDS", "ENDS", "EVERY3", "EVERY3", "EVERY7", "SAME"] and found["LOWER"] == []
    assert found["ENDS"] == ["EVERY3", "EVERY3", "EVERY7", "ODD", "ODD", "SAME"]

    write_sequences(tmp_path / "relatives.fasta", {"UNKNOWN": "X" * 50, "SHORT": sequence[:3]})
    assert main(["evidence", str(project), *("--structures", str(albumin)), *("--homologues", str(tmp_path / "relatives.fasta"))]) == 0
    assert "No protein has a homologue among the sequences given" in "".join(capsys.readouterr())


def write_sequences(path: Path, sequences: Mapping[str, str]) -> None:
    path.write_text("".join(f">{name} made\n{letters}\n" for name, letters in sequences.items()))


@pytest.fixture(scope="module")
def with_remote(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Mapping[str, Path]]:
    """The globin of a sea hare, on the structures of globins; of other chains none is near by its sequence."""
    folder = tmp_path_factory.mktemp("remote")
    globins = {path.name: path for path in sorted((shared_data / "structures" / "globins").iterdir())}
    own = read_structure(globins["d1mbaa_"]).chains
    project = write_identification(folder, {"GLOBIN": own.sequence(0)})
    where = {"project": [project], "structures": [*globins.values()]}
    done = run_search("evidence", where, device="cpu", threads=2, chains_per_protein=1, remote_chains=4)
    assert done.run_id is not None
    return project, done.run_id, globins


def test_remote_chains_have_the_fold_and_the_histidine_that_binds_the_haem(with_remote: tuple[Path, str, Mapping[str, Path]]) -> None:
    project, run, globins = with_remote
    chains = rows(project, run, CHAINS)
    assert [one["kind"] for one in chains] == ["same", *["remote"] * 4] and [one["rank"] for one in chains] == [1, 2, 3, 4, 5]
    mapped = rows(project, run, MAPPED_RESIDUES)
    own = read_structure(globins["d1mbaa_"]).chains
    # Of the sea hare's myoglobin it is residue 95 (Bolognesi and others, J Mol Biol 205, 1989, 529-544).
    proximal = own.author_number.tolist().index(95)
    assert own.sequence(0)[proximal] == "H"
    for number, one in enumerate(chains[1:], 1):
        assert one["through"] == "d1mbaa_" and one["e_value"] is None and one["bit_score"] is None
        pairs = [(row["position"] - 1, row["chain_residue"], row["chain_letter"]) for row in mapped if row["chain_row"] == number]
        pairs = [pair for pair in pairs if pair[1] is not None]
        assert len(pairs) == one["n_aligned"]
        assert {letter for place, _, letter in pairs if place == proximal} == {"H"}
        # Superposed by another program, these residues lie together.
        other = read_structure(globins[one["chain"]]).chains
        imposer = SVDSuperimposer()
        imposer.set(own.position[[a for a, _, _ in pairs]].astype(float), other.position[[b for _, b, _ in pairs]].astype(float))
        imposer.run()
        apart = np.linalg.norm(imposer.get_transformed() - own.position[[a for a, _, _ in pairs]], axis=1)
        scale = 1.24 * np.cbrt(len(own.residue) - 15) - 1.8
        plain = (1 / (1 + (apart / scale) ** 2)).sum() / len(own.residue)
        # Least squares of all pairs are not the best for the TM-score, but near.
        assert 0.5 < plain <= one["tm_score"] + 0.01 and plain > one["tm_score"] - 0.15


def test_remote_chains_are_told_as_such_in_files_and_pages(with_remote: tuple[Path, str, Mapping[str, Path]], tmp_path: Path) -> None:
    project, run, _ = with_remote
    opened = Project.open(project)
    pages = write_pages(opened, run, tmp_path / "pages", Progress())
    assert "(remote)" in pages[0].read_text() and ">remote<" in pages[0].read_text()
    EVIDENCE.export(opened, ExportRequest(run, "tsv", tmp_path / "tables"), Progress())
    lines = [line.split("\t") for line in (tmp_path / "tables" / "evidence_chains.tsv").read_text().splitlines()]
    kind = lines[0].index("kind")
    assert [line[kind] for line in lines[1:]] == ["same", *["remote"] * 4]
    (gff,) = EVIDENCE.export(opened, ExportRequest(run, "gff3", tmp_path / "sites.gff3"), Progress())
    sites = rows(project, run, SITES)
    marked = [line for line in gff.read_text().splitlines() if "\tmodified_residue\t" in line]
    assert len(marked) == len(sites)
    for site, line in zip(sites, marked, strict=True):
        assert (f"structure_kind={site['chain_kind']}" in line) == (site["chain"] is not None)


def test_no_chain_is_remote_where_no_fold_is_alike(tmp_path: Path) -> None:
    albumin = write_albumin(tmp_path)
    project = write_identification(tmp_path, {"WHOLE": read_structure(albumin).chains.sequence(0)})
    done = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2, remote_chains=3)
    assert done.run_id is not None
    assert [one["kind"] for one in rows(project, done.run_id, CHAINS)] == ["same"]
