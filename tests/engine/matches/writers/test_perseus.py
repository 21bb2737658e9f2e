"""Sites for Perseus: one row for each residue of a leading protein, equal to the tables by plain loops."""

import csv
from pathlib import Path

import pytest
from pyarrow.parquet import read_table

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.identification.entry import IDENTIFICATION
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.writers.perseus import write_perseus
from proteoscope.engine.matches.writers.tables import IdentificationTables, MatchesSource
from tests.engine.identification_tables import identification
from tests.engine.views.site_projects import project_with_sites


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return project_with_sites(tmp_path_factory.mktemp("sites") / "project")


def perseus(run, out: Path, **changes) -> list[dict[str, str]]:
    (entry,) = (entry for entry in IDENTIFICATION.exports if entry.name == "perseus")
    entry.write()(run[0], ExportRequest(run[0].runs()[-1].id, "perseus", out, **changes), Progress())
    with out.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def leading_protein(project, psm) -> tuple[str, list[str]]:
    groups = [row["accessions"] for row in read_table(project.table("proteins", project.runs()[-1].id)).to_pylist() if not row["is_decoy"]]
    for group in groups:
        if held := [accession for accession in psm["proteins"] if accession in group]:
            return held[0], sorted(held)
    raise AssertionError


def test_perseus_rows_are_sites_of_leading_proteins(run, tmp_path):
    project, psms, sites, proteins = run
    rows = perseus(run, tmp_path / "sites.txt")
    expected = {}
    for site in proteins:
        lead, group = leading_protein(project, psms[site["best_psm"]])
        if site["protein"] == lead and not site["is_decoy"]:
            expected[lead, site["position"]] = site, group
    assert len(rows) == len(expected) > 20
    assert [row["id"] for row in rows] == [str(i) for i in range(len(rows))]
    assert any(";" in row["Leading proteins"] for row in rows)
    psm_sites = {site["psm"]: site for site in sites}
    for row in rows:
        site, group = expected[row["Protein"].replace('""', '"'), int(row["Position"])]
        psm, of_psm = psms[site["best_psm"]], psm_sites[site["best_psm"]]
        assert row["Proteins"] == ";".join(name.replace(";", "%3B") for name in psm["proteins"])
        assert [int(at) for at in row["Positions within proteins"].split(";")] == of_psm["protein_positions"]
        assert row["Leading proteins"].split(";") == group
        assert float(row["Localization prob"]) == pytest.approx(site["site_probability"])
        assert row["Localization FLR"] == ("" if not site["has_alternative"] else f"{site['localisation_q_value']:.10g}")
        assert float(row["PEP"]) == pytest.approx(psm["posterior_error_probability"])
        assert float(row["Score"]) == pytest.approx(psm["score"])
        assert (row["Modification"], row["Amino acid"]) == ("Phospho", psm["sequence"][of_psm["position"] - 1])
        assert (row["Multiplicity"], row["Position in peptide"]) == ("1", str(of_psm["position"]))
        shares = dict(zip(of_psm["possible_positions"], of_psm["probabilities"], strict=True))
        text = "".join(residue + (f"({shares[i]:.3f})" if i in shares else "") for i, residue in enumerate(psm["sequence"], 1))
        assert row["Probabilities"] == text
        assert row["Reverse"] == "" and len(row["Sequence window"]) == 15


def test_perseus_writes_only_accepted_sites_on_request(run, tmp_path):
    every, accepted = (perseus(run, tmp_path / f"{only}.txt", accepted_only=only) for only in (False, True))
    chosen = [row for row in every if row["Localization FLR"] == "" or float(row["Localization FLR"]) <= 0.01]
    assert 0 < len(accepted) == len(chosen) < len(every)
    assert [row["Protein"] for row in accepted] == [row["Protein"] for row in chosen]


def test_perseus_export_rejects_runs_without_sites(tmp_path):
    tables = IdentificationTables.from_folder(identification(20).write(tmp_path))
    with pytest.raises(ParameterError, match="localised no modification"):
        write_perseus(MatchesSource(tables), tmp_path / "sites.txt", Progress())
    assert not (tmp_path / "sites.txt").exists()
