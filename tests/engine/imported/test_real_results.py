"""Results of other programs, compared match by match with other readers."""

from __future__ import annotations

import csv
import random
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from lxml import etree
from pyteomics import mzid
from pyteomics.openms import idxml

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from tests.engine.matches.exported import export
from tests.searching import explain, import_results

SAMPLE = 100
SPECTRA = resources.path("samples", "BSA1.mzML.gz")
PROTEINS = resources.path("samples", "18Protein_SoCe_Tr_detergents_trace.fasta.gz")


def rows_of(project: Path) -> list[dict]:
    opened = Project.open(project)
    return pq.read_table(opened.table("psms", opened.latest("import"))).to_pylist()


def sampled(rows: list) -> list:
    return random.Random(1).sample(rows, min(SAMPLE, len(rows)))


@pytest.fixture(scope="module")
def omssa(shared_data, tmp_path_factory):
    """Return a project with imported OMSSA results, and the summary of the import."""
    folder, project = shared_data / "spectra" / "bsa_ltq", tmp_path_factory.mktemp("omssa") / "p"
    database = shared_data / "proteomes" / "18Protein_SoCe_Tr_detergents_trace.fasta"
    return project, import_results([folder / "BSA1_OMSSA.idXML"], [folder / "BSA1.mzML"], project, [database])


def test_omssa_psms_are_assigned_by_retention_time_and_mz(omssa, shared_data):
    folder = shared_data / "spectra" / "bsa_ltq"
    project, summary = omssa
    with idxml.read(str(folder / "BSA1_OMSSA.idXML")) as reader:
        expected = {(round(record["RT"], 2), hit["sequence"], int(hit["charge"])): hit for record in reader for hit in record["PeptideHit"]}
    rows = rows_of(project)
    assert len(rows) == len(expected) == summary.n_imported == 44
    assert summary.found_by == {"retention time and m/z": 44} and summary.source_of["psms"] == "file"
    for row in rows:
        written = row["peptide"].replace("[", "(").replace("]", ")").replace("()-", ".()")
        hit = expected[round(row["retention_time"], 2), written, row["charge"]]
        assert (
            row["q_value"] == pytest.approx(float(hit["score"])) and row["score_e_value" if "score_e_value" in row else "score"] is not None
        )
        assert abs(row["mass_error_ppm"]) < 200
    assert summary.n_psms == sum(float(hit["score"]) <= 0.01 for hit in expected.values())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # pyteomics leaves the file of its vocabulary open.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_imported_x_tandem_mzidentml_agrees_with_pyteomics(shared_data, tmp_path):
    folder = shared_data / "spectra" / "known_ids"
    import_results([folder / "55merge_tandem.mzid"], [folder / "55merge.mgf"], tmp_path / "p")
    rows = rows_of(tmp_path / "p")
    with mzid.read(str(folder / "55merge_tandem.mzid"), retrieve_refs=True) as reader:
        expected = {
            (record["spectrum title"].strip(), item["PeptideSequence"]): item
            for record in reader
            for item in record["SpectrumIdentificationItem"]
        }
    assert len(rows) == len(expected) == 170
    for row in sampled(rows):
        item = expected[row["spectrum_id"], row["sequence"]]
        assert row["charge"] == item["chargeState"]
        assert row["score_e_value"] == pytest.approx(item["X\\!Tandem:expect"], rel=1e-6)
        assert row["score_hyperscore"] == pytest.approx(item["X\\!Tandem:hyperscore"])
        assert row["calculated_mass"] == pytest.approx((item["calculatedMassToCharge"] - 1.007276) * item["chargeState"], abs=0.02)
        placed = [
            (modification["location"], round(modification["monoisotopicMassDelta"], 2)) for modification in item.get("Modification", [])
        ]
        assert sorted(zip(row["modification_positions"], (round(mass, 2) for mass in row["modification_masses"]), strict=True)) == sorted(
            placed
        )
        assert row["proteins"] == list(dict.fromkeys(evidence["accession"] for evidence in item["PeptideEvidenceRef"]))


def test_peptideshaker_psms_are_assigned_by_spectrum_title(shared_data, tmp_path):
    folder = shared_data / "spectra" / "metaproteome_qe"
    results = folder / "reference_psms_peptideshaker.tsv"
    summary = import_results([results], [folder / "2016_Jan_12_QE2_47_trimmed.mzML"], tmp_path / "p", [folder / "metapeptides.fasta"])
    with results.open() as file:
        expected = {(int(row["Spectrum Title"].split(".")[1]), row["Sequence"]): row for row in csv.DictReader(file, delimiter="\t")}
    rows = rows_of(tmp_path / "p")
    assert len(rows) == len(expected) == 582 and summary.source_of["psms"] == "none"
    # The database names its entries differently than the report.
    assert any("proteins of the results are not in the database" in message for message in summary.messages)
    for row in sampled(rows):
        expected_row = expected[row["scan"], row["sequence"]]
        assert f"{row['charge']}+" == expected_row["Identification Charge"]
        assert row["calculated_mass"] == pytest.approx(float(expected_row["Theoretical Mass"]), abs=2e-4)
        assert ", ".join(row["proteins"]) == expected_row["Protein(s)"]
        assert row["score_peptideshaker_confidence"] == pytest.approx(float(expected_row["Confidence [%]"]))
        assert row["q_value"] is None
    # Most bonds of these peptides have fragments in their high-resolution spectra.
    assert sorted(row["matched_ions"] / (len(row["sequence"]) - 1) for row in rows)[len(rows) // 2] > 0.5


def test_import_rejects_a_spectrum_file_that_was_not_searched(shared_data, tmp_path):
    folder = shared_data / "spectra"
    with pytest.raises(InputError, match="none of its 44 matches can be imported; of the first, its spectrum is in none of the files"):
        import_results([folder / "bsa_ltq" / "BSA1_OMSSA.idXML"], [folder / "Ecoli_MS2_small.mzML"], tmp_path / "p")


def test_explain_accepts_an_imported_run(omssa, tmp_path):
    from proteoscope.engine.clustering.parameters import ExplanationParameters

    project, summary = omssa
    shutil.copytree(project, tmp_path / "p")
    explained = explain(tmp_path / "p", ExplanationParameters().changed(run=summary.run_id), device="cpu")
    assert explained.source_run == summary.run_id and explained.n_identified == summary.n_psms == 14


@pytest.mark.parametrize("format", ["mzid", "pepxml"])
def test_exported_import_is_equal_after_import(format, omssa, shared_data, tmp_path):
    folder = shared_data / "spectra" / "bsa_ltq"
    database = shared_data / "proteomes" / "18Protein_SoCe_Tr_detergents_trace.fasta"
    project, first = omssa
    tables = Project.open(project).table("psms", first.run_id).parent
    (path,) = export(tables, format, tmp_path / f"x.{format}", {"fdr": 0.01}, spectra=[folder / "BSA1.mzML"])
    import_results([path], [folder / "BSA1.mzML"], tmp_path / "again", [database])
    names = ("peptide", "charge", "proteins", "protein_starts", "rank", "is_decoy", "matched_ions")
    before, after = (
        {(row["spectrum_id"], f"{row['q_value']:.5g}", *(str(row[name]) for name in names)) for row in rows_of(folder)}
        for folder in (project, tmp_path / "again")
    )
    assert before == after and len(before) == 44


def test_export_of_import_names_engine_and_converter(omssa, shared_data, tmp_path):
    from proteoscope.engine.entry import ExportRequest
    from proteoscope.engine.imported import IMPORT

    folder = shared_data / "spectra" / "bsa_ltq"
    summary, project = omssa[1], Project.open(omssa[0])
    assert summary.program == "OMSSA"
    for format in ("mzid", "pepxml"):
        IMPORT.export(project, ExportRequest(summary.run_id, format, tmp_path / f"x.{format}"), Progress())
    namespace = "{http://psidev.info/psi/pi/mzIdentML/1.2}"
    tree = etree.parse(tmp_path / "x.mzid")
    named = {element.get("id"): element.get("name") for element in tree.iter(f"{namespace}AnalysisSoftware")}
    found_by = next(tree.iter(f"{namespace}SpectrumIdentificationProtocol")).get("analysisSoftware_ref")
    assert sorted(named.values()) == ["OMSSA", "Proteoscope"] and named[found_by] == "OMSSA"
    searched = next(etree.parse(tmp_path / "x.pepxml").iter("{*}search_summary"))
    assert searched.get("search_engine") == "OMSSA"
    assert any(
        element.get("name") == "converted by" and element.get("value").startswith("Proteoscope")
        for element in searched.iter("{*}parameter")
    )
    again = import_results([tmp_path / "x.mzid"], [folder / "BSA1.mzML"], tmp_path / "again")
    assert again.program == "OMSSA"


@pytest.mark.parametrize("format", ["mzid", "pepxml", "pin"])
def test_exported_identification_has_equal_psms_after_import(format, identified_once, tmp_path):
    project = Project.open(identified_once)
    before = pq.read_table(project.table("psms", project.latest("identify"))).to_pylist()
    path = tmp_path / f"x.{format}"
    assert main(["export", str(identified_once), "--format", format, "--out", str(path)]) == 0
    summary = import_results([path], [SPECTRA], tmp_path / "again", [PROTEINS])
    after = {psm_of(row): row for row in rows_of(tmp_path / "again")}
    assert len(before) == len(after) == summary.n_imported > 800 and {psm_of(row) for row in before} == after.keys()
    for row in before:
        assert set(after[psm_of(row)]["proteins"]) == set(row["proteins"])
    if format == "pin":  # These have features in place of q-values.
        assert summary.source_of["psms"] == "decoys" and any("have no q-values" in message for message in summary.messages)
        return
    assert (
        summary.source_of["psms"] == "file"
        and summary.n_psms == sum(row["q_value"] <= 0.01 and row["rank"] == 1 and not row["is_decoy"] for row in before) > 10
    )
    for row in before:
        assert after[psm_of(row)]["q_value"] == pytest.approx(row["q_value"], abs=1e-7)


def psm_of(row: dict) -> tuple:
    """Return spectrum, charge, rank, peptidoform, and True for a decoy."""
    return tuple(row[name] for name in ("spectrum_id", "charge", "rank", "peptide", "is_decoy"))
