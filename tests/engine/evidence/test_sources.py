"""Evidence from each type of run that identifies peptides: counts and sites against the run's own tables."""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from proteoscope import resources
from proteoscope.engine.chemistry.modifications import unimod
from proteoscope.engine.chemistry.peptidoforms import parse
from proteoscope.engine.clustering.parameters import ExplanationParameters
from proteoscope.engine.clustering.workload import estimate_explanation_workload
from proteoscope.engine.command_line.main import main
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.evidence.parameters import EvidenceParameters
from proteoscope.engine.evidence.tables import CONTACTS, PEPTIDE_PLACES, PROTEINS, SITES
from proteoscope.engine.evidence.workload import estimate_workload
from proteoscope.engine.matches.site_columns import PSM_SITES
from proteoscope.engine.project import Project
from proteoscope.engine.results.columns import Table
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.searches import run_search
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.views.evidence import protein_evidence
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.identification import fixed_modifications, read_group_coverage
from tests.engine.evidence.evidence_projects import synthetic_proteins, write_albumin, write_identification
from tests.engine.evidence.synthetic_runs import SyntheticRun, write_run
from tests.engine.simulation import proteins_of

SAMPLE = resources.path("samples", "18Protein_SoCe_Tr_detergents_trace.fasta.gz")
ALBUMIN = "HUMAN_ALBUMIN"
ACCEPTED = 0.01
N_OTHERS = 40


def rows(project: Path, run: str, table: Table) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = read_stored(Project.open(project), run, table, list(table.by_name)).to_pylist()
    return records


def stored(project: Path, run: str, name: str) -> list[dict[str, Any]]:
    """Read a table of a run with pyarrow."""
    records: list[dict[str, Any]] = pq.read_table(Project.open(project).table(name, run)).to_pylist()
    return records


def accepted(project: Path, run: str) -> list[dict[str, Any]]:
    return [
        psm
        for psm in stored(project, run, "psms")
        if psm["rank"] == 1 and not psm["is_decoy"] and psm["q_value"] is not None and psm["q_value"] <= ACCEPTED
    ]


def add_evidence(project: Path, run: str, structures: Path, *more: str) -> str:
    """Run ``proteoscope evidence`` and return the new run."""
    command = ["evidence", str(project), "--run", run, "--structures", str(structures), "--device", "cpu", "--threads", "2", "--quiet"]
    assert main([*command, *more]) == 0
    added = Project.open(project).latest("evidence")
    assert added is not None
    return str(added)


@pytest.fixture(scope="module")
def albumin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_albumin(tmp_path_factory.mktemp("albumin"))


@pytest.fixture(scope="module")
def proteins(albumin: Path) -> dict[str, str]:
    others = list(proteins_of(SAMPLE).items())[:N_OTHERS]
    return {ALBUMIN: read_structure(albumin).chains.sequence(0), **dict(others)}


@pytest.fixture(scope="module")
def synthetic(proteins: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> SyntheticRun:
    return write_run(tmp_path_factory.mktemp("synthetic"), proteins, {"Phospho": "ST", "Acetyl": "K", "Methyl": "DE"}, 7, every=2)


# ------------------------------------------------------------------------------------------------------- modified peptides


@pytest.fixture(scope="module")
def modified(synthetic: SyntheticRun, albumin: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Return a project with an open modification search, the search run, and its evidence run."""
    project = tmp_path_factory.mktemp("modified") / "p"
    search = run_search(
        "modified", {"spectra": [synthetic.spectra], "database": [synthetic.database]}, project=project, device="cpu", threads=2
    )
    assert search.run_id is not None
    return project, search.run_id, add_evidence(project, search.run_id, albumin)


def test_evidence_maps_shifts_of_open_search_to_residues(
    modified: tuple[Path, str, str], synthetic: SyntheticRun, proteins: dict[str, str]
) -> None:
    project, run, evidence = modified
    wanted: dict[tuple[str, int, str], list[tuple[int, float | None]]] = {}
    localised = {(site["psm"], site["modification"]): site for site in rows(project, run, PSM_SITES)}
    assert localised
    for number, psm in enumerate(accepted(project, run)):
        for position, name in zip(psm["modification_positions"], psm["modification_names"], strict=True):
            if name == "Carbamidomethyl":
                continue  # each cysteine carries it
            probability = psm["site_probability"] if position == psm["shift_position"] else None
            if site := localised.get((psm["psm_id"], name)):
                position, probability = site["position"], site["site_probability"]
            for protein, residues in proteins.items():
                at = residues.find(psm["sequence"])
                if at >= 0:
                    residue = at + min(max(position, 1), len(psm["sequence"]))
                    wanted.setdefault((protein, residue, name), []).append((number, probability))
    proteins_with_evidence = {row["accession"] for row in rows(project, evidence, PROTEINS)}
    placed = [site for site in rows(project, evidence, SITES) if not site["is_alternative"]]
    sites = {(site["accession"], site["position"], site["modification"]): site for site in placed}
    assert ALBUMIN in proteins_with_evidence and len(sites) > 20
    assert {key for key in wanted if key[0] in proteins_with_evidence} == set(sites)
    for key, site in sites.items():
        assert site["n_psms"] == len({number for number, _ in wanted[key]}) <= site["n_covering"]
        probabilities = [probability for _, probability in wanted[key] if probability is not None]
        assert site["site_probability"] == (pytest.approx(max(probabilities)) if probabilities else None)


def test_evidence_locates_planted_modifications(modified: tuple[Path, str, str], synthetic: SyntheticRun) -> None:
    project, run, evidence = modified
    titles = [psm["spectrum_id"] for psm in accepted(project, run)]
    planted = {
        synthetic.planted[title] for title in titles if synthetic.planted[title].site >= 0 and synthetic.planted[title].protein == ALBUMIN
    }
    sites = {(site["position"] - 1, site["mass"]): site for site in rows(project, evidence, SITES) if site["accession"] == ALBUMIN}
    masses = {peptide.name: unimod().by_name(peptide.name).mass for peptide in planted}
    right = [peptide for peptide in planted if any(at == peptide.site and abs(mass - masses[peptide.name]) < 0.02 for at, mass in sites)]
    # A neighbour that could carry the modification is sometimes preferred, and the probability shows it.
    assert len(planted) >= 5 and len(right) >= 0.7 * len(planted)
    # The structure has the protein's sequence, with numbers from 5.
    numbers = {site["author_number"] for site in sites.values()}
    assert {str(at + 5) for at, _ in sites} == numbers and {site["chain"] for site in sites.values()} == {"1ao6_A"}


def test_evidence_uses_the_only_identification_of_a_project(modified: tuple[Path, str, str], albumin: Path) -> None:
    project, run, evidence = modified
    done = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2)
    assert done.run_id is not None
    assert Project.open(project).record(done.run_id)["source_run"] == run
    assert rows(project, done.run_id, SITES) == rows(project, evidence, SITES)


# ------------------------------------------------------------------------------------------------------------ explanations


@pytest.fixture(scope="module")
def explained(explained_once: tuple[Path, str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Return a copy of a project with an identification of the sample and its explanation, and both runs."""
    folder, identified, explaining = explained_once
    return Path(shutil.copytree(folder, tmp_path_factory.mktemp("explained") / "p")), identified, explaining


def test_evidence_counts_spectra_added_by_an_explanation(explained: tuple[Path, str, str], albumin: Path) -> None:
    project, identified, explaining = explained
    before = Counter(psm["peptide"] for psm in accepted(project, identified))
    joined = [spectrum for spectrum in stored(project, explaining, "explained") if spectrum["q_value"] <= ACCEPTED]
    assert len(joined) >= 5
    together = before + Counter(spectrum["peptide"] for spectrum in joined)
    q_values = {}
    for run, counts in ((identified, before), (explaining, together)):
        added = add_evidence(project, run, albumin)
        assert Project.open(project).record(added)["source_run"] == identified
        places = rows(project, added, PEPTIDE_PLACES)
        sequences = [protein["sequence"].replace("I", "L") for protein in rows(project, added, PROTEINS)]
        is_there = {name: any(parse(name).sequence.replace("I", "L") in sequence for sequence in sequences) for name in counts}
        assert {place["peptide"]: place["n_psms"] for place in places} == {name: n for name, n in counts.items() if is_there[name]}
        q_values[run] = {place["peptide"]: place["q_value"] for place in places}
    lowest = {spectrum["peptide"]: 1.0 for spectrum in joined}
    for spectrum in joined:
        lowest[spectrum["peptide"]] = min(lowest[spectrum["peptide"]], spectrum["q_value"])
    for name, q_value in q_values[explaining].items():
        assert q_value == min(q_values[identified].get(name, 1.0), lowest.get(name, 1.0))


def test_evidence_uses_newest_identification_by_default(explained: tuple[Path, str, str], albumin: Path) -> None:
    project, identified, _ = explained
    done = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2)
    assert done.run_id is not None and Project.open(project).record(done.run_id)["source_run"] == identified


def test_evidence_rejects_run_without_identification(explained: tuple[Path, str, str], albumin: Path) -> None:
    project, identified, _ = explained
    where = {"project": [project], "structures": [albumin]}
    evidence = Project.open(project).latest("evidence") or run_search("evidence", where, device="cpu", threads=2).run_id
    with pytest.raises(ParameterError, match=f"expected a finished identification; finished are {identified}"):
        run_search("evidence", where, device="cpu", run=evidence)
    with pytest.raises((InputError, ParameterError), match="absent"):
        run_search("evidence", {**where}, device="cpu", run="absent")


# --------------------------------------------------------------------------------------------------------------- libraries


def test_evidence_maps_modifications_of_library_entries(
    albumin: Path, proteins: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    synthetic = write_run(tmp_path, proteins, {"Oxidation": "M"}, 3, share=0.8)
    library = tmp_path / "library.msp"
    library.write_text("\n".join(_library_entries(synthetic)))
    inputs = {"spectra": [synthetic.spectra], "library": [library], "database": [synthetic.database]}
    search = run_search("library", inputs, project=tmp_path / "p", device="cpu", threads=2)
    assert search.run_id is not None
    psms = accepted(tmp_path / "p", search.run_id)
    assert len(psms) > 50
    evidence = add_evidence(tmp_path / "p", search.run_id, albumin)
    wanted = Counter(psm["peptide"] for psm in psms)
    places = rows(tmp_path / "p", evidence, PEPTIDE_PLACES)
    assert places and all(place["n_psms"] == wanted[place["peptide"]] for place in places)
    sequence = proteins[ALBUMIN]
    of_albumin = [site for site in rows(tmp_path / "p", evidence, SITES) if site["accession"] == ALBUMIN]
    sites = {(site["position"], site["modification"]): site["n_psms"] for site in of_albumin if site["modification"] == "Oxidation"}
    expected: Counter[tuple[int, str]] = Counter()
    for psm in psms:
        at = sequence.find(psm["sequence"])
        for position, name, _ in parse(psm["peptide"]).modifications if at >= 0 else ():
            if name == "Oxidation":
                expected[at + position, name] += 1
    assert sites == dict(expected) and len(sites) >= 2


def _library_entries(synthetic: SyntheticRun) -> list[str]:
    entries = []
    for block in synthetic.spectra.read_text().split("BEGIN IONS\n")[1:]:
        lines = block.split("END IONS")[0].split("\n")
        fields = dict(line.split("=", 1) for line in lines if "=" in line)
        peaks = [line.replace(" ", "\t") for line in lines if line[:1].isdigit()]
        peptide = synthetic.planted[fields["TITLE"]]
        carried = [(k, residue, "Carbamidomethyl") for k, residue in enumerate(peptide.sequence) if residue == "C"]
        if peptide.site >= 0:
            carried = sorted([*carried, (peptide.site - peptide.start, peptide.sequence[peptide.site - peptide.start], peptide.name)])
        mods = "".join(f"({k},{residue},{name})" for k, residue, name in carried)
        entries.append(
            f'Name: {peptide.sequence}/2\nComment: Mods={len(carried)}{mods} Parent={fields["PEPMASS"]} Protein="{peptide.protein}"\n'
            f"Num peaks: {len(peaks)}\n" + "\n".join(peaks) + "\n"
        )
    return entries


def test_evidence_tables_are_exported_as_text(modified: tuple[Path, str, str]) -> None:
    project, _, evidence = modified
    with (project / "exports" / "evidence_sites.tsv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file, delimiter="\t"))
    sites = rows(project, evidence, SITES)
    assert [(line["accession"], line["position"], line["modification"]) for line in lines] == [
        (site["accession"], str(site["position"]), site["modification"]) for site in sites
    ]
    for line, site in zip(lines, sites, strict=True):
        probability = None if line["site_probability"] == "" else pytest.approx(float(line["site_probability"]))
        assert site["site_probability"] == probability


# ------------------------------------------------------------------------------------------------------- fixed modifications


def test_evidence_counts_imported_fixed_modifications_on_request(tmp_path: Path) -> None:
    albumin = write_albumin(tmp_path)
    project = write_identification(tmp_path, {ALBUMIN: read_structure(albumin).chains.sequence(0)}, is_alkylated=True)
    peptides = stored(project, Project.open(project).runs()[-1].id, "psms")
    carried = {name for psm in peptides for name in psm["modification_names"]}
    assert carried == {"Carbamidomethyl", "Oxidation"}
    where = {"project": [project], "structures": [albumin]}
    plain = run_search("evidence", where, device="cpu", threads=2)
    with_fixed = run_search("evidence", where, device="cpu", threads=2, fixed_sites=True)
    assert plain.run_id is not None and with_fixed.run_id is not None
    assert any("Carbamidomethyl (C)" in text for text in plain.messages)
    assert {site["modification"] for site in rows(project, plain.run_id, SITES)} == {"Oxidation"}
    assert {site["modification"] for site in rows(project, with_fixed.run_id, SITES)} == carried
    # Pairs, the structure and the coverage map mark the sites of the table only.
    for run, residues in ((plain.run_id, {"M"}), (with_fixed.run_id, {"M", "C"})):
        with open_run(project, run) as opened:
            shown = protein_evidence(opened.tables.source("proteins"), 0)
        sequence = shown.coverage.sequence
        assert {sequence[place] for place in shown.coverage.modified} == residues
        assert {sequence[place] for peptide in shown.coverage.peptides for place, _ in peptide.modifications} == residues
        assert set(shown.coverage.modified) == set(np.flatnonzero(shown.is_modified).tolist()) == set(shown.sites)
        modified = {
            (contact[f"{end}_position"], contact[f"{end}_residue"])
            for contact in rows(project, run, CONTACTS)
            for end in ("first", "second")
        }
        assert {residue for _, residue in modified} == residues | {"K"}


def test_evidence_reads_fixed_modifications_from_parameters(tmp_path: Path) -> None:
    """Use two cysteines, which could be modified by chance: only the parameters show that the modification is fixed."""
    protein = "MAAELVCAGSTEDLLKGGSTVAEDLYCKSAELLDDYTPAEEVLKSSTVEEPLMDAK"
    synthetic = write_run(tmp_path, {"MADE": protein, **dict(list(proteins_of(SAMPLE).items())[:N_OTHERS])}, {}, 3)
    out = tmp_path / "project"
    assert (
        main(["identify", str(synthetic.spectra), "--database", str(synthetic.database), "--out", str(out), "--device", "cpu", "--quiet"])
        == 0
    )
    run = Project.open(out).runs()[-1].id
    assert any("Carbamidomethyl" in psm["modification_names"] for psm in accepted(out, run))
    added = add_evidence(out, run, write_albumin(tmp_path))
    assert "Carbamidomethyl" not in {site["modification"] for site in rows(out, added, SITES)}
    with open_run(out, run) as opened:
        source = opened.tables.source("proteins")
        fixed = fixed_modifications(source, opened)
        assert fixed == {("Carbamidomethyl", "C")}
        for row in range(3):
            assert any("C[" in peptide.peptide for peptide in read_group_coverage(source, row, 0.01).peptides) or row
            assert "Carbamidomethyl" not in str(read_group_coverage(source, row, 0.01, fixed).modified)


def test_evidence_workload_estimate_uses_the_selected_run(tmp_path: Path) -> None:
    albumin = write_albumin(tmp_path)
    sequence = read_structure(albumin).chains.sequence(0)
    folder = write_identification(tmp_path, synthetic_proteins(sequence))
    write_identification(tmp_path, {"WHOLE": sequence}, folder)
    project = Project.open(folder)
    run_of_three, run_of_one = [run.id for run in project.runs()]
    # The newest run of the project does not identify peptides.
    run_search("evidence", {"project": [folder], "structures": [albumin]}, device="cpu", threads=2)
    assert project.latest() not in (run_of_three, run_of_one)
    for run, n in {"": 1, run_of_one: 1, run_of_three: 3, "nothing": 500}.items():
        request = SearchRequest({"project": [folder], "structures": [albumin]}, EvidenceParameters(run=run))
        assert estimate_workload(request).counts["proteins"] == n
    spectra = {run: project.record(run)["counts"]["spectra"] for run in (run_of_three, run_of_one)}
    assert spectra[run_of_three] != spectra[run_of_one]
    for run, n in (spectra | {"": spectra[run_of_one]}).items():
        request = SearchRequest({"project": [folder]}, ExplanationParameters(run=run))
        assert estimate_explanation_workload(request).counts["spectra"] == n


@pytest.mark.parametrize("name", ["{}_REVERSED", "Q{}"])
def test_evidence_rejects_decoys_imported_as_proteins(name: str, tmp_path: Path, albumin: Path) -> None:
    sequence = read_structure(albumin).chains.sequence(0)
    targets = {f"P{first}": sequence[first : first + 100] for first in range(0, 500, 100)}
    mirrors = {name.format(target): residues[::-1] for target, residues in targets.items()}
    project = write_identification(tmp_path, targets | mirrors)
    with pytest.raises(InputError, match="protein groups are decoys that the run searched as target proteins"):
        run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu")
