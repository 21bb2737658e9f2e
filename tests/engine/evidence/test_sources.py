"""Evidence from every kind of run that identifies peptides: each count and site against the run's own tables, read plainly."""

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
from proteoscope.engine.project import Project
from proteoscope.engine.results.columns import Table
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.searches import run_search
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.views.evidence import protein_evidence
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.identification import fixed_modifications, read_group_coverage
from tests.engine.evidence.evidence_projects import made_proteins, write_albumin, write_identification
from tests.engine.evidence.made_runs import MadeRun, make_run
from tests.engine.simulation import proteins_of

SAMPLE = resources.path("samples", "18Protein_SoCe_Tr_detergents_trace.fasta.gz")
ALBUMIN = "HUMAN_ALBUMIN"
ACCEPTED = 0.01
N_OTHERS = 40


def rows(project: Path, run: str, table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_stored(Project.open(project), run, table, list(table.by_name)).to_pylist()
    return found


def stored(project: Path, run: str, name: str) -> list[dict[str, Any]]:
    """A table of a run, by another reader."""
    found: list[dict[str, Any]] = pq.read_table(Project.open(project).table(name, run)).to_pylist()
    return found


def accepted(project: Path, run: str) -> list[dict[str, Any]]:
    return [
        one
        for one in stored(project, run, "psms")
        if one["rank"] == 1 and not one["is_decoy"] and one["q_value"] is not None and one["q_value"] <= ACCEPTED
    ]


def evidence_of(project: Path, run: str, structures: Path, *more: str) -> str:
    """The run that ``proteoscope evidence`` adds, as a command."""
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
def made(proteins: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    return make_run(tmp_path_factory.mktemp("made"), proteins, {"Phospho": "ST", "Acetyl": "K", "Methyl": "DE"}, 7, every=2)


# ------------------------------------------------------------------------------------------------------- modified peptides


@pytest.fixture(scope="module")
def modified(made: MadeRun, albumin: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A project with a search for modified peptides and nothing else, its run, and the run of evidence."""
    project = tmp_path_factory.mktemp("modified") / "p"
    found = run_search("modified", {"spectra": [made.spectra], "database": [made.database]}, project=project, device="cpu", threads=2)
    assert found.run_id is not None
    return project, found.run_id, evidence_of(project, found.run_id, albumin)


def test_a_search_for_modified_peptides_puts_its_shifts_on_residues(
    modified: tuple[Path, str, str], made: MadeRun, proteins: dict[str, str]
) -> None:
    project, run, evidence = modified
    wanted: dict[tuple[str, int, str], list[tuple[int, float | None]]] = {}
    for number, one in enumerate(accepted(project, run)):
        for position, name in zip(one["modification_positions"], one["modification_names"], strict=True):
            if name == "Carbamidomethyl":
                continue  # every cysteine carries it
            probability = one["site_probability"] if position == one["shift_position"] else None
            for protein, residues in proteins.items():
                at = residues.find(one["sequence"])
                if at >= 0:
                    residue = at + min(max(position, 1), len(one["sequence"]))
                    wanted.setdefault((protein, residue, name), []).append((number, probability))
    looked_at = {one["accession"] for one in rows(project, evidence, PROTEINS)}
    found = {(one["accession"], one["position"], one["modification"]): one for one in rows(project, evidence, SITES)}
    assert ALBUMIN in looked_at and len(found) > 20
    assert {key for key in wanted if key[0] in looked_at} == set(found)
    for key, one in found.items():
        assert one["n_psms"] == len({number for number, _ in wanted[key]}) <= one["n_covering"]
        known = [probability for _, probability in wanted[key] if probability is not None]
        assert one["site_probability"] == (pytest.approx(max(known)) if known else None)


def test_planted_modifications_lie_where_they_were_planted(modified: tuple[Path, str, str], made: MadeRun) -> None:
    project, run, evidence = modified
    titles = [one["spectrum_id"] for one in accepted(project, run)]
    planted = {made.planted[one] for one in titles if made.planted[one].site >= 0 and made.planted[one].protein == ALBUMIN}
    found = {(one["position"] - 1, one["mass"]): one for one in rows(project, evidence, SITES) if one["accession"] == ALBUMIN}
    masses = {one.name: unimod().by_name(one.name).mass for one in planted}
    right = [one for one in planted if any(at == one.site and abs(mass - masses[one.name]) < 0.02 for at, mass in found)]
    # Where neighbours could carry it as well, the spectrum decides, and errs now and then: the probability says so.
    assert len(planted) >= 5 and len(right) >= 0.7 * len(planted)
    # On the structure, whose sequence is the protein's: its numbers begin at 5.
    numbers = {one["author_number"] for one in found.values()}
    assert {str(at + 5) for at, _ in found} == numbers and {one["chain"] for one in found.values()} == {"1ao6_A"}


def test_a_project_with_nothing_else_needs_no_run(modified: tuple[Path, str, str], albumin: Path) -> None:
    project, run, evidence = modified
    done = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2)
    assert done.run_id is not None
    assert Project.open(project).record(done.run_id)["source_run"] == run
    assert rows(project, done.run_id, SITES) == rows(project, evidence, SITES)


# ------------------------------------------------------------------------------------------------------------ explanations


@pytest.fixture(scope="module")
def explained(explained_once: tuple[Path, str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A project with an identification of the sample and its explanation, and both runs."""
    folder, identified, explaining = explained_once
    return Path(shutil.copytree(folder, tmp_path_factory.mktemp("explained") / "p")), identified, explaining


def test_an_explanation_adds_its_spectra_to_those_of_the_identification(explained: tuple[Path, str, str], albumin: Path) -> None:
    project, identified, explaining = explained
    before = Counter(one["peptide"] for one in accepted(project, identified))
    joined = [one for one in stored(project, explaining, "explained") if one["q_value"] <= ACCEPTED]
    assert len(joined) >= 5
    together = before + Counter(one["peptide"] for one in joined)
    told = {}
    for run, counts in ((identified, before), (explaining, together)):
        added = evidence_of(project, run, albumin)
        assert Project.open(project).record(added)["source_run"] == identified
        places = rows(project, added, PEPTIDE_PLACES)
        texts = [one["sequence"].replace("I", "L") for one in rows(project, added, PROTEINS)]
        is_there = {name: any(parse(name).sequence.replace("I", "L") in text for text in texts) for name in counts}
        assert {one["peptide"]: one["n_psms"] for one in places} == {name: n for name, n in counts.items() if is_there[name]}
        told[run] = {one["peptide"]: one["q_value"] for one in places}
    least = {one["peptide"]: 1.0 for one in joined}
    for one in joined:
        least[one["peptide"]] = min(least[one["peptide"]], one["q_value"])
    for name, q_value in told[explaining].items():
        assert q_value == min(told[identified].get(name, 1.0), least.get(name, 1.0))


def test_the_newest_identification_is_shown_where_no_run_is_named(explained: tuple[Path, str, str], albumin: Path) -> None:
    project, identified, _ = explained
    done = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2)
    assert done.run_id is not None and Project.open(project).record(done.run_id)["source_run"] == identified


def test_a_run_that_is_none_is_named(explained: tuple[Path, str, str], albumin: Path) -> None:
    project, identified, _ = explained
    where = {"project": [project], "structures": [albumin]}
    with pytest.raises(ParameterError, match=f"is no finished identification; there are {identified}"):
        run_search("evidence", {**where}, device="cpu", run=Project.open(project).latest("evidence"))
    with pytest.raises((InputError, ParameterError), match="nobody"):
        run_search("evidence", {**where}, device="cpu", run="nobody")


# --------------------------------------------------------------------------------------------------------------- libraries


def test_a_library_search_is_shown_with_the_modifications_of_its_entries(
    albumin: Path, proteins: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    made = make_run(tmp_path, proteins, {"Oxidation": "M"}, 3, share=0.8)
    library = tmp_path / "library.msp"
    library.write_text("\n".join(_entries(made)))
    inputs = {"spectra": [made.spectra], "library": [library], "database": [made.database]}
    found = run_search("library", inputs, project=tmp_path / "p", device="cpu", threads=2)
    assert found.run_id is not None
    psms = accepted(tmp_path / "p", found.run_id)
    assert len(psms) > 50
    evidence = evidence_of(tmp_path / "p", found.run_id, albumin)
    wanted = Counter(one["peptide"] for one in psms)
    places = rows(tmp_path / "p", evidence, PEPTIDE_PLACES)
    assert places and all(one["n_psms"] == wanted[one["peptide"]] for one in places)
    own = proteins[ALBUMIN]
    of_albumin = [one for one in rows(tmp_path / "p", evidence, SITES) if one["accession"] == ALBUMIN]
    sites = {(one["position"], one["modification"]): one["n_psms"] for one in of_albumin if one["modification"] == "Oxidation"}
    expected: Counter[tuple[int, str]] = Counter()
    for one in psms:
        at = own.find(one["sequence"])
        for position, name, _ in parse(one["peptide"]).modifications if at >= 0 else ():
            if name == "Oxidation":
                expected[at + position, name] += 1
    assert sites == dict(expected) and len(sites) >= 2


def _entries(made: MadeRun) -> list[str]:
    entries = []
    for block in made.spectra.read_text().split("BEGIN IONS\n")[1:]:
        lines = block.split("END IONS")[0].split("\n")
        told = dict(line.split("=", 1) for line in lines if "=" in line)
        peaks = [line.replace(" ", "\t") for line in lines if line[:1].isdigit()]
        one = made.planted[told["TITLE"]]
        carried = [(k, letter, "Carbamidomethyl") for k, letter in enumerate(one.sequence) if letter == "C"]
        if one.site >= 0:
            carried = sorted([*carried, (one.site - one.start, one.sequence[one.site - one.start], one.name)])
        mods = "".join(f"({k},{letter},{name})" for k, letter, name in carried)
        entries.append(
            f'Name: {one.sequence}/2\nComment: Mods={len(carried)}{mods} Parent={told["PEPMASS"]} Protein="{one.protein}"\n'
            f"Num peaks: {len(peaks)}\n" + "\n".join(peaks) + "\n"
        )
    return entries


def test_the_tables_are_written_as_text_too(modified: tuple[Path, str, str]) -> None:
    project, _, evidence = modified
    with (project / "exports" / "evidence_sites.tsv").open(encoding="utf-8", newline="") as file:
        told = list(csv.DictReader(file, delimiter="\t"))
    found = rows(project, evidence, SITES)
    assert [(one["accession"], one["position"], one["modification"]) for one in told] == [
        (one["accession"], str(one["position"]), one["modification"]) for one in found
    ]
    for line, one in zip(told, found, strict=True):
        told_probability = None if line["site_probability"] == "" else pytest.approx(float(line["site_probability"]))
        assert one["site_probability"] == told_probability


# ------------------------------------------------------------------------------------------------------- fixed modifications


def test_what_all_cysteines_carry_makes_no_site_of_an_imported_run_unless_it_is_asked_for(tmp_path: Path) -> None:
    albumin = write_albumin(tmp_path)
    project = write_identification(tmp_path, {ALBUMIN: read_structure(albumin).chains.sequence(0)}, is_alkylated=True)
    peptides = stored(project, Project.open(project).runs()[-1].id, "psms")
    carried = {name for one in peptides for name in one["modification_names"]}
    assert carried == {"Carbamidomethyl", "Oxidation"}
    where = {"project": [project], "structures": [albumin]}
    plain = run_search("evidence", where, device="cpu", threads=2)
    asked = run_search("evidence", where, device="cpu", threads=2, fixed_sites=True)
    assert plain.run_id is not None and asked.run_id is not None
    assert any("Carbamidomethyl (C)" in text for text in plain.messages)
    assert {one["modification"] for one in rows(project, plain.run_id, SITES)} == {"Oxidation"}
    assert {one["modification"] for one in rows(project, asked.run_id, SITES)} == carried
    # Pairs, the fold and the coverage map mark what the table of sites has, and nothing else.
    for run, letters in ((plain.run_id, {"M"}), (asked.run_id, {"M", "C"})):
        with open_run(project, run) as opened:
            shown = protein_evidence(opened.tables.source("proteins"), 0)
        sequence = shown.coverage.sequence
        assert {sequence[place] for place in shown.coverage.modified} == letters
        assert {sequence[place] for one in shown.coverage.peptides for place, _ in one.modifications} == letters
        assert set(shown.coverage.modified) == set(np.flatnonzero(shown.is_modified).tolist()) == set(shown.sites)
        modified = {(one[f"{end}_position"], one[f"{end}_residue"]) for one in rows(project, run, CONTACTS) for end in ("first", "second")}
        assert {letter for _, letter in modified} == letters | {"K"}


def test_fixed_modifications_of_a_search_are_known_by_its_parameters(tmp_path: Path) -> None:
    """With two cysteines, which could carry the same by chance, the parameters alone tell."""
    protein = "MAAELVCAGSTEDLLKGGSTVAEDLYCKSAELLDDYTPAEEVLKSSTVEEPLMDAK"
    made = make_run(tmp_path, {"MADE": protein, **dict(list(proteins_of(SAMPLE).items())[:N_OTHERS])}, {}, 3)
    out = tmp_path / "project"
    assert main(["identify", str(made.spectra), "--database", str(made.database), "--out", str(out), "--device", "cpu", "--quiet"]) == 0
    run = Project.open(out).runs()[-1].id
    assert any("Carbamidomethyl" in one["modification_names"] for one in accepted(out, run))
    added = evidence_of(out, run, write_albumin(tmp_path))
    assert "Carbamidomethyl" not in {one["modification"] for one in rows(out, added, SITES)}
    with open_run(out, run) as opened:
        source = opened.tables.source("proteins")
        fixed = fixed_modifications(source, opened)
        assert fixed == {("Carbamidomethyl", "C")}
        for row in range(3):
            assert any("C[" in one.peptide for one in read_group_coverage(source, row, 0.01).peptides) or row
            assert "Carbamidomethyl" not in str(read_group_coverage(source, row, 0.01, fixed).modified)


def test_what_is_expected_is_told_by_the_run_that_is_meant(tmp_path: Path) -> None:
    albumin = write_albumin(tmp_path)
    sequence = read_structure(albumin).chains.sequence(0)
    folder = write_identification(tmp_path, made_proteins(sequence))
    write_identification(tmp_path, {"WHOLE": sequence}, folder)
    project = Project.open(folder)
    three, one = [run.id for run in project.runs()]
    # The newest run of the project is none whose peptides are shown.
    run_search("evidence", {"project": [folder], "structures": [albumin]}, device="cpu", threads=2)
    assert project.latest() not in (three, one)
    for run, n in {"": 1, one: 1, three: 3, "nothing": 500}.items():
        request = SearchRequest({"project": [folder], "structures": [albumin]}, EvidenceParameters(run=run))
        assert estimate_workload(request).counts["proteins"] == n
    spectra = {run: project.record(run)["counts"]["spectra"] for run in (three, one)}
    assert spectra[three] != spectra[one]
    for run, n in (spectra | {"": spectra[one]}).items():
        request = SearchRequest({"project": [folder]}, ExplanationParameters(run=run))
        assert estimate_explanation_workload(request).counts["spectra"] == n


@pytest.mark.parametrize("name", ["{}_REVERSED", "Q{}"])
def test_decoys_that_a_run_took_as_proteins_are_refused(name: str, tmp_path: Path, albumin: Path) -> None:
    sequence = read_structure(albumin).chains.sequence(0)
    targets = {f"P{first}": sequence[first : first + 100] for first in range(0, 500, 100)}
    mirrors = {name.format(target): residues[::-1] for target, residues in targets.items()}
    project = write_identification(tmp_path, targets | mirrors)
    with pytest.raises(InputError, match="protein groups are decoys that the run took as proteins"):
        run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu")
