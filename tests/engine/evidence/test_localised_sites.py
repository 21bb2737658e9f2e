"""Evidence of runs that localise modifications: planted sites that differ from those of the search, counted by plain loops."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.evidence.identified_peptides import identified_peptides, source_tables
from proteoscope.engine.evidence.localised_sites import LocalisedSites
from proteoscope.engine.evidence.tables import PEPTIDE_PLACES, PROTEINS, SITES
from proteoscope.engine.matches.site_columns import PSM_SITES
from proteoscope.engine.project import Project
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.searches import run_search
from proteoscope.engine.views.evidence import protein_evidence
from proteoscope.engine.views.finished_run import open_run
from tests.engine.evidence.evidence_projects import write_albumin
from tests.engine.views.site_projects import SITE_PARAMETERS, project_with_sites

TABLES = ("psms", "peptides", "proteins", "spectra")
ACCEPTED = 0.01


def moved(peptide: str, position: int) -> str:
    """Return the peptide with its phosphate at another residue."""
    parts = re.findall(r"-?\[[^]]*\]-?|[A-Z]", peptide.replace("[Phospho]", ""))
    residues = [at for at, part in enumerate(parts) if part.isalpha()]
    parts.insert(residues[position - 1] + 1, "[Phospho]")
    return "".join(parts)


def planted(site: dict[str, Any]) -> dict[str, Any]:
    """Return a row of PSM sites at the last possible residue, certain in every fourth match."""
    possible = site["possible_positions"]
    position, best = possible[-1], 1.0 if len(possible) == 1 else 0.97 if site["psm"] % 4 == 0 else 0.7
    others = [(1 - best) / max(len(possible) - 1, 1)] * (len(possible) - 1)
    probabilities = {"site_probability": best, "probabilities": [*others, best]}
    return {**site, **probabilities, "position": position, "peptide": moved(site["peptide"], position)}


def write_sites(project: Project, sites: list[dict[str, Any]]) -> str:
    """Add an identification with the tables of the last one and the given PSM sites, and return it."""
    last = project.runs()[-1].id
    with project.run("identify", SITE_PARAMETERS) as run:
        for name in TABLES:
            run.write_table(name, pq.read_table(project.table(name, last)))
        run.write_table("psm_sites", PSM_SITES.arrow({name: [site[name] for site in sites] for name in sites[0]}))
    return str(project.runs()[-1].id)


class Planted(NamedTuple):
    """A project, its identification and evidence run, and the PSMs and planted sites."""

    project: Project
    source: str
    evidence: str
    psms: list[dict[str, Any]]
    sites: dict[int, dict[str, Any]]

    def rows(self, table: Any) -> list[dict[str, Any]]:
        stored: list[dict[str, Any]] = read_stored(self.project, self.evidence, table, list(table.by_name)).to_pylist()
        return stored


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    folder = tmp_path_factory.mktemp("localised")
    project, psms, chosen, _ = project_with_sites(folder / "project")
    sites = [planted(site) for site in chosen]
    assert sum(site["position"] != other["position"] for site, other in zip(sites, chosen, strict=True)) > 10
    source = write_sites(project, sites)
    inputs = {"project": [project.folder], "structures": [write_albumin(folder)]}
    done = run_search("evidence", inputs, device="cpu", threads=2, run=source)
    assert done.run_id is not None
    return Planted(project, source, done.run_id, psms, {site["psm"]: site for site in sites})


def test_evidence_has_the_localised_sites_and_alternatives(run: Planted) -> None:
    forms: dict[str, list[dict[str, Any] | None]] = defaultdict(list)
    sequences, searched = {}, {}
    for row, psm in enumerate(run.psms):
        if psm["rank"] == 1 and not psm["is_decoy"] and psm["q_value"] <= ACCEPTED:
            peptide = run.sites[row]["peptide"] if row in run.sites else psm["peptide"]
            forms[peptide].append(run.sites.get(row))
            sequences[peptide] = psm["sequence"]
            searched[peptide] = [
                at for at, name in zip(psm["modification_positions"], psm["modification_names"], strict=True) if name == "Phospho"
            ]
    entries: dict[tuple[str, int, bool], list[tuple[str, float | None]]] = defaultdict(list)
    proteins = {row["accession"]: row["sequence"].replace("I", "L") for row in run.rows(PROTEINS)}
    for peptide, localised in forms.items():
        with_sites, sequence = [site for site in localised if site], sequences[peptide].replace("I", "L")
        at: dict[tuple[int, bool], float | None] = dict.fromkeys(((place, False) for place in searched[peptide]), None)
        if with_sites:
            at = {(with_sites[0]["position"], False): max(site["site_probability"] for site in with_sites)}
            for k, place in enumerate(with_sites[0]["possible_positions"][:-1]):
                least = min(site["probabilities"][k] for site in with_sites)
                at |= {(place, True): least} if least >= 0.05 else {}
        for accession, residues in proteins.items():
            for start in (k for k in range(len(residues)) if residues.startswith(sequence, k)):
                for (place, is_alternative), probability in at.items():
                    residue = start + min(max(place, 1), len(sequence))
                    entries[accession, residue, is_alternative].append((peptide, probability))
    wanted = {}
    for (accession, residue, is_alternative), carried in entries.items():
        if is_alternative and (accession, residue, False) in entries:
            continue
        known_probabilities = [probability for _, probability in carried if probability is not None]
        best = pytest.approx(max(known_probabilities)) if known_probabilities else None
        wanted[accession, residue, is_alternative] = (sum(len(forms[peptide]) for peptide, _ in carried), len(carried), best)
    reported_sites = {
        (site["accession"], site["position"], site["is_alternative"]): (site["n_psms"], site["n_peptides"], site["site_probability"])
        for site in run.rows(SITES)
        if site["modification"] == "Phospho"
    }
    assert reported_sites == wanted
    assert sum(is_alternative for _, _, is_alternative in reported_sites) > 10
    assert {row["peptide"] for row in run.rows(PEPTIDE_PLACES)} <= set(forms)


def test_alternatives_are_not_counted_as_modified_residues(run: Planted) -> None:
    sites = run.rows(SITES)
    n_alternative = 0
    with open_run(run.project, run.evidence) as opened:
        source = opened.tables.source("proteins")
        for row, protein in enumerate(run.rows(PROTEINS)):
            of_protein = [site for site in sites if site["protein"] == row]
            reported = {site["position"] - 1 for site in of_protein if not site["is_alternative"]}
            alternative = {site["position"] - 1: site["site_probability"] for site in of_protein if site["is_alternative"]}
            shown = protein_evidence(source, row)
            assert protein["n_sites"] == len(reported)
            assert set(np.flatnonzero(shown.is_modified).tolist()) == reported
            assert shown.alternatives == pytest.approx({at: chance for at, chance in alternative.items() if at not in reported})
            n_alternative += len(shown.alternatives)
    assert n_alternative > 10
    assert run.project.record(run.evidence)["counts"]["sites"] == sum(protein["n_sites"] for protein in run.rows(PROTEINS))


def test_site_is_rejected_if_its_match_lacks_the_modification(run: Planted, tmp_path: Path) -> None:
    project, _, chosen, _ = project_with_sites(tmp_path / "project")
    source = write_sites(project, [{**site, "modification": "Acetyl"} for site in chosen])
    with pytest.raises(InputError, match="site of a modification that the match does not have"):
        identified_peptides(source_tables(project.folder, source), ACCEPTED)


def test_localised_sites_leave_fixed_modifications_of_equal_name() -> None:
    site = {"psm": 3, "peptide": "GASDEC[Methyl]VTD[Methyl]K", "charge": 2, "modification": "Methyl", "residue": "D", "position": 9}
    site |= {"site_probability": 0.8, "site_score": 1.0, "localisation_q_value": 0.01, "has_alternative": True, "proteins": ["one"]}
    site |= {"mixed_with": None}
    site |= {"possible_positions": [4, 5, 9], "probabilities": [0.02, 0.18, 0.8], "protein_positions": [9]}
    table = PSM_SITES.arrow({name: [value] for name, value in site.items()})
    sites = LocalisedSites(Path("psm_sites.parquet"), table, np.array([3]))
    owner = np.array([0, 0])
    placed = sites.place(np.array([3]), np.array([0]), owner, np.array([4, 6]), ["Methyl", "Methyl"], np.array([14.01, 14.01]))
    assert placed.position.tolist() == [5, 6, 9] and placed.is_alternative.tolist() == [True, False, False]
    assert np.isnan(placed.probability[1]) and placed.probability[[0, 2]] == pytest.approx([0.18, 0.8])
