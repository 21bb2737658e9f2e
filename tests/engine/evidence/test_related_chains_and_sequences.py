"""Homologues, conservation, remote chains and intensities against independent computations."""

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
from proteoscope.engine.sequences.statistics import BACKGROUND
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.views.evidence_pages import write_pages
from tests.engine.evidence.evidence_projects import changed, write_albumin, write_identification
from tests.searching import import_results

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
LYSINES = "LIK"


def rows(project: Path, run: str, table: Table) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = read_stored(Project.open(project), run, table, list(table.by_name)).to_pylist()
    return records


@pytest.fixture(scope="module")
def with_homologues(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, dict[str, str], dict[str, str]]:
    """Return a project and its run, the proteins, and the sequences searched for homologues.

    Albumin has five relatives without gaps, one with a gap, and itself; another protein has two relatives; one sequence is unrelated.
    """
    folder = tmp_path_factory.mktemp("homologues")
    albumin = write_albumin(folder)
    sequence = read_structure(albumin).chains.sequence(0)
    proteins = {"WHOLE": sequence, "LONELY": LYSINES + "GSTDEWWYRK".join(["HVFQ", "NDCPM", "TAGLK", "EEYVD", "PQRSW"]) * 3}
    relatives = {f"EVERY{k}": changed(sequence, k) for k in (3, 4, 5, 7)}
    relatives["PART"] = changed(sequence, 6)[200:350]
    relatives["GAP"] = sequence[:300] + sequence[303:]
    relatives |= {"ITSELF": sequence, "UNRELATED": "WHWHHWCCWH" * 20}
    relatives |= {f"OF_LONELY{k}": changed(proteins["LONELY"], k) for k in (9, 11)}
    write_sequences(folder / "relatives.fasta", relatives)
    project = write_identification(folder, proteins)
    where = {"project": [project], "structures": [albumin], "homologues": [folder / "relatives.fasta"]}
    done = run_search("evidence", where, device="cpu", threads=2)
    assert done.run_id is not None
    return project, done.run_id, proteins, relatives


def test_homologues_exclude_the_protein_and_unrelated_proteins(
    with_homologues: tuple[Path, str, dict[str, str], dict[str, str]],
) -> None:
    project, run, proteins, relatives = with_homologues
    homologues = rows(project, run, HOMOLOGUES)
    assert {row["subject"] for row in homologues if row["accession"] == "WHOLE"} == {"EVERY3", "EVERY4", "EVERY5", "EVERY7", "PART", "GAP"}
    assert {row["subject"] for row in homologues if row["accession"] == "LONELY"} == {"OF_LONELY9", "OF_LONELY11"}
    counted = {row["accession"]: row["n_homologues"] for row in rows(project, run, PROTEINS)}
    assert counted == {"WHOLE": 6, "LONELY": 2}
    aligner = Align.PairwiseAligner(mode="local", substitution_matrix=Align.substitution_matrices.load("BLOSUM62"))
    aligner.open_gap_score, aligner.extend_gap_score = -12, -1
    for homologue in homologues:
        assert homologue["score"] == aligner.score(proteins[homologue["accession"]], relatives[homologue["subject"]])


def test_conservation_matches_capra_singh_definition(
    with_homologues: tuple[Path, str, dict[str, str], dict[str, str]],
) -> None:
    project, run, proteins, _ = with_homologues
    names = [row["accession"] for row in rows(project, run, PROTEINS)]
    of_residues = rows(project, run, RESIDUES)
    residues = [row for row in of_residues if names[row["protein"]] == "WHOLE"]
    lines = [proteins["WHOLE"]]
    for homologue in rows(project, run, HOMOLOGUES):
        if homologue["accession"] == "WHOLE":
            aligned = "".join(b for a, b in zip(homologue["aligned_query"], homologue["aligned_subject"], strict=True) if a != "-")
            lines.append(("-" * (homologue["query_start"] - 1) + aligned).ljust(len(lines[0]), "-"))
    wanted = plain_conservation(lines)
    # The program adds 1e-7 to the count of each of the twenty residues of a column.
    np.testing.assert_allclose([row["conservation"] for row in residues], wanted, atol=1e-4)
    assert [row["n_homologues"] for row in residues] == [sum(line[k] != "-" for line in lines[1:]) for k in range(len(lines[0]))]
    # Two homologues are too few for a conservation.
    assert all(row["conservation"] is None for row in of_residues if names[row["protein"]] == "LONELY")
    by_place = {row["position"]: row["conservation"] for row in residues}
    sites = [row for row in rows(project, run, SITES) if row["accession"] == "WHOLE"]
    assert sites and all(site["conservation"] == by_place[site["position"]] for site in sites)


def plain_conservation(lines: list[str]) -> list[float]:
    """Compute conservation by Capra & Singh (2007) with the weights of Henikoff & Henikoff (1994), residue by residue."""
    weights = [0.0] * len(lines)
    columns = list(zip(*lines, strict=True))
    for column in columns:
        kinds = {residue for residue in column if residue in AMINO_ACIDS}
        for k, residue in enumerate(column):
            if residue in kinds:
                weights[k] += 1 / (len(kinds) * column.count(residue))
    weights = [weight / sum(weights) for weight in weights]
    background = {residue: float(BACKGROUND[ord(residue) - ord("A")]) for residue in AMINO_ACIDS}
    whole = sum(background.values())
    conservation = []
    for column in columns:
        share = {residue: sum(w for w, other in zip(weights, column, strict=True) if other == residue) for residue in AMINO_ACIDS}
        seen = sum(share.values())
        divergence = 0.0
        for residue in AMINO_ACIDS:
            p, q = share[residue] / seen, background[residue] / whole
            divergence += (p * log2(p / ((p + q) / 2)) if p else 0.0) / 2 + q * log2(q / ((p + q) / 2)) / 2
        conservation.append(divergence * seen)
    return conservation


def test_conservation_is_empty_without_homologues(tmp_path: Path) -> None:
    albumin = write_albumin(tmp_path)
    project = write_identification(tmp_path, {"WHOLE": read_structure(albumin).chains.sequence(0)})
    done = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2)
    assert done.run_id is not None
    assert rows(project, done.run_id, HOMOLOGUES) == []
    assert {row["conservation"] for row in rows(project, done.run_id, RESIDUES)} == {None}
    # Precursor intensities of the file, summed by peptide.
    with mgf.read(str(tmp_path / "run.mgf"), use_index=False) as spectra:
        intensities = {spectrum["params"]["title"].split(".")[1]: spectrum["params"]["pepmass"][1] for spectrum in spectra}
    sums: dict[str, float] = {}
    for line in (tmp_path / "found.target.psms.tsv").read_text().splitlines()[1:]:
        name, *_, peptide, _ = line.split("\t")
        bare = "".join(character for character in peptide.split(".", 1)[1].rsplit(".", 1)[0] if character.isalpha())
        sums[bare] = sums.get(bare, 0.0) + intensities[name.split("_")[1]]
    places = rows(project, done.run_id, PEPTIDE_PLACES)
    for place in places:
        assert place["intensity"] == pytest.approx(sums[place["sequence"]])
    # A site has the intensity of the peptides that carry it; here there is one.
    for site in rows(project, done.run_id, SITES):
        over = [place for place in places if place["first"] <= site["position"] <= place["last"] and "[" in place["peptide"]]
        assert site["intensity"] == pytest.approx(sum(place["intensity"] for place in over)) and site["n_psms"] <= site["n_covering"]


def test_homologue_search_accepts_unusual_residues_and_repeats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    albumin = write_albumin(tmp_path)
    sequence = read_structure(albumin).chains.sequence(0)
    # Spectra of standard sequences, and a database with other residue codes, outside the identified peptides.
    plain = {"ODD": sequence, "LOWER": sequence[::-1], "ENDS": changed(sequence, 5)[300:]}
    write_identification(tmp_path, plain, tmp_path / "plain")
    odd = {"ODD": f"{sequence[:100]}BXUJZO{sequence[100:]}*", "LOWER": plain["LOWER"].lower(), "ENDS": f"{'X' * 3}{plain['ENDS']}*XB*"}
    write_sequences(tmp_path / "proteins.fasta", odd)
    relatives = {"SAME": sequence, **{f"EVERY{k}": changed(sequence, k) for k in (3, 7)}}
    write_sequences(tmp_path / "relatives.fasta", {**odd, **relatives})
    with (tmp_path / "relatives.fasta").open("a") as file:
        file.writelines(f">{name} once more\n{residues}\n" for name, residues in [*odd.items(), ("EVERY3", changed(sequence, 4))])
    project = tmp_path / "project"
    import_results([tmp_path / "found.target.psms.tsv"], [tmp_path / "run.mgf"], project, [tmp_path / "proteins.fasta"])
    where = {"project": [project], "structures": [albumin], "homologues": [tmp_path / "relatives.fasta"]}
    run = str(run_search("evidence", where, device="cpu", threads=2).run_id)
    proteins = {row["accession"]: row for row in rows(project, run, PROTEINS)}
    sequences = {name: re.sub("[^A-Z]", "X", residues.upper().removesuffix("*")) for name, residues in odd.items()}
    assert {name: row["sequence"] for name, row in proteins.items()} == sequences
    # Peptides are mapped to their residues only, never over other codes.
    for place in rows(project, run, PEPTIDE_PLACES):
        assert sequences[place["accession"]][place["first"] - 1 : place["last"]] == place["sequence"]
    (near,) = [row for row in rows(project, run, CHAINS) if row["accession"] == "ODD"]
    assert (near["kind"], near["identity"], near["n_aligned"], near["n_gaps"]) == ("same", 1.0, len(sequence), 6)
    homologues = rows(project, run, HOMOLOGUES)
    subjects = {name: sorted(row["subject"] for row in homologues if row["accession"] == name) for name in odd}
    assert subjects["ODD"] == ["ENDS", "ENDS", "EVERY3", "EVERY3", "EVERY7", "SAME"] and subjects["LOWER"] == []
    assert subjects["ENDS"] == ["EVERY3", "EVERY3", "EVERY7", "ODD", "ODD", "SAME"]

    write_sequences(tmp_path / "relatives.fasta", {"UNKNOWN": "X" * 50, "SHORT": sequence[:3]})
    assert main(["evidence", str(project), *("--structures", str(albumin)), *("--homologues", str(tmp_path / "relatives.fasta"))]) == 0
    assert "No protein has a homologue among the sequences given" in "".join(capsys.readouterr())


def write_sequences(path: Path, sequences: Mapping[str, str]) -> None:
    path.write_text("".join(f">{name} made\n{residues}\n" for name, residues in sequences.items()))


@pytest.fixture(scope="module")
def with_remote(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Mapping[str, Path]]:
    """Return a project with the globin of a sea hare, a run on structures of globins, and these structures."""
    folder = tmp_path_factory.mktemp("remote")
    globins = {path.name: path for path in sorted((shared_data / "structures" / "globins").iterdir())}
    chains = read_structure(globins["d1mbaa_"]).chains
    project = write_identification(folder, {"GLOBIN": chains.sequence(0)})
    where = {"project": [project], "structures": [*globins.values()]}
    done = run_search("evidence", where, device="cpu", threads=2, chains_per_protein=1, remote_chains=4)
    assert done.run_id is not None
    return project, done.run_id, globins


def test_remote_globin_chains_align_the_haem_binding_histidine(with_remote: tuple[Path, str, Mapping[str, Path]]) -> None:
    project, run, globins = with_remote
    chains = rows(project, run, CHAINS)
    assert [chain["kind"] for chain in chains] == ["same", *["remote"] * 4] and [chain["rank"] for chain in chains] == [1, 2, 3, 4, 5]
    mapped = rows(project, run, MAPPED_RESIDUES)
    myoglobin = read_structure(globins["d1mbaa_"]).chains
    # Residue 95 in the sea hare's myoglobin (Bolognesi and others, J Mol Biol 205, 1989, 529-544).
    proximal = myoglobin.author_number.tolist().index(95)
    assert myoglobin.sequence(0)[proximal] == "H"
    for number, chain in enumerate(chains[1:], 1):
        assert chain["through"] == "d1mbaa_" and chain["e_value"] is None and chain["bit_score"] is None
        pairs = [(row["position"] - 1, row["chain_residue"], row["chain_letter"]) for row in mapped if row["chain_row"] == number]
        pairs = [pair for pair in pairs if pair[1] is not None]
        assert len(pairs) == chain["n_aligned"]
        assert {residue for place, _, residue in pairs if place == proximal} == {"H"}
        # Biopython's superposition of these residues agrees.
        other = read_structure(globins[chain["chain"]]).chains
        imposer = SVDSuperimposer()
        imposer.set(myoglobin.position[[a for a, _, _ in pairs]].astype(float), other.position[[b for _, b, _ in pairs]].astype(float))
        imposer.run()
        apart = np.linalg.norm(imposer.get_transformed() - myoglobin.position[[a for a, _, _ in pairs]], axis=1)
        scale = 1.24 * np.cbrt(len(myoglobin.residue) - 15) - 1.8
        plain = (1 / (1 + (apart / scale) ** 2)).sum() / len(myoglobin.residue)
        # Least squares over all pairs do not maximise the TM-score, but come close.
        assert 0.5 < plain <= chain["tm_score"] + 0.01 and plain > chain["tm_score"] - 0.15


def test_remote_chains_are_marked_in_files_and_pages(with_remote: tuple[Path, str, Mapping[str, Path]], tmp_path: Path) -> None:
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


def test_remote_chains_are_empty_without_similar_structures(tmp_path: Path) -> None:
    albumin = write_albumin(tmp_path)
    project = write_identification(tmp_path, {"WHOLE": read_structure(albumin).chains.sequence(0)})
    done = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2, remote_chains=3)
    assert done.run_id is not None
    assert [chain["kind"] for chain in rows(project, done.run_id, CHAINS)] == ["same"]
