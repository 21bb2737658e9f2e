"""Searches for known modifications: residues of the database are replaced, and annotated with modifications that restore the mass."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet as parquet
import pytest

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.identification import IDENTIFICATION
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.project import Project
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.identification import read_group_coverage
from tests.engine.formats.entry_files import swiss_prot_entry
from tests.engine.identification.test_databases import SAMPLES, chosen_proteins
from tests.searching import identify

ASPARTATE = "N[Deamidated]"
"""Deamidated asparagine has the mass of aspartate."""


def features(sequence: str, residue: str, name: str) -> str:
    return "".join(
        f'FT   MOD_RES         {at}\nFT                   /note="{name}"\n' for at, symbol in enumerate(sequence, 1) if symbol == residue
    )


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Write a plain database with bovine albumin, and a planted one.

    In the planted database, albumin has asparagines with known deamidation in place of aspartates. The asparagines of other proteins have
    known deamidation too.
    """
    folder = tmp_path_factory.mktemp("databases")
    plain, planted = [], []
    for i, sequence in enumerate(chosen_proteins()):
        name = f"A0A{i:07d}", f"P{i}_BOVIN"
        plain.append(swiss_prot_entry(*name, sequence))
        annotation = features(sequence, "D" if i == 0 else "N", "Deamidated asparagine; partial")
        planted.append(swiss_prot_entry(*name, sequence.replace("D", "N") if i == 0 else sequence, annotation))
    (folder / "plain.dat").write_text("".join(plain))
    (folder / "planted.dat").write_text("".join(planted))
    return folder / "plain.dat", folder / "planted.dat"


def parameters(**changes: Any) -> IdentificationParameters:
    return IdentificationParameters.checked(read_preset("identify", "low-resolution")).changed(known_modifications=True, **changes)


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(Project.open(folder).table(name, None)).to_pylist()
    return [row for row in rows if not row["is_decoy"]]


@pytest.fixture(scope="module")
def projects(databases: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Write projects with a search of each database."""
    folder = tmp_path_factory.mktemp("projects")
    for path in databases:
        identify([SAMPLES / "BSA1.mzML.gz"], [path], folder / path.stem, parameters(), threads=2)
    return folder / "plain", folder / "planted"


def test_known_deamidation_scores_like_aspartate_of_equal_mass(projects: tuple[Path, Path]) -> None:
    plain, planted = (
        {row["spectrum"]: row for row in rows_of(folder, "psms") if row["q_value"] is not None and row["q_value"] <= 0.01}
        for folder in projects
    )
    both = [(plain[spectrum], planted[spectrum]) for spectrum in plain.keys() & planted.keys()]
    assert len(both) > 30
    of_known = [(plain_psm, planted_psm) for plain_psm, planted_psm in both if "Deamidated" in planted_psm["peptide"]]
    assert len(of_known) > 15
    for plain_psm, planted_psm in both:
        # Forms with more than three known modifications are not searched.
        assert plain_psm["peptide"] == planted_psm["peptide"].replace(ASPARTATE, "D")
        assert plain_psm["calculated_mass"] == pytest.approx(planted_psm["calculated_mass"], abs=1e-4)
        for score in ("hyperscore", "xcorr", "spectral_dot_product", "matched_ions", "search_score"):
            assert plain_psm[score] == pytest.approx(planted_psm[score], abs=1e-6), score
        assert planted_psm["feature_variable_modifications"] == plain_psm["feature_variable_modifications"] + planted_psm["peptide"].count(
            ASPARTATE
        )


def test_tables_name_known_modifications_by_protein_residue(projects: tuple[Path, Path]) -> None:
    rows = {row["peptide"]: row for row in rows_of(projects[1], "peptides")}
    albumin = chosen_proteins()[0]
    at = albumin.index("HLVDEPQNLIK") + 4
    assert rows["HLVN[Deamidated]EPQNLIK"]["known_modifications"] == [f"sp|A0A0000000|P0_BOVIN:N{at} Deamidated"]
    assert rows["HLVN[Deamidated]EPQNLIK"]["proteins"] == ["sp|A0A0000000|P0_BOVIN"]
    assert rows["AEFVEVTK"]["known_modifications"] == []
    header, *lines = (projects[1] / "exports" / "psms.tsv").read_text().splitlines()
    assert "known_modifications" in header.split("\t") and any(f"N{at} Deamidated" in line for line in lines)


def test_variable_modification_at_a_known_site_counts_as_known(databases: tuple[Path, Path], tmp_path: Path) -> None:
    settings = parameters(variable_modifications=("Deamidated (N)",))
    identify([SAMPLES / "BSA1.mzML.gz"], [databases[1]], tmp_path / "project", settings, threads=2)
    rows = {row["peptide"]: row for row in rows_of(tmp_path / "project", "psms") if row["rank"] == 1}
    assert rows["HLVN[Deamidated]EPQNLIK"]["known_modifications"]


def test_peptide_with_variant_and_known_modification_is_found(tmp_path: Path) -> None:
    albumin, *others = chosen_proteins()
    at = albumin.index("DLGEEHFK") + 1
    annotation = (
        f'FT   MOD_RES         {at}\nFT                   /note="Deamidated asparagine"\n'
        f'FT   VARIANT         {at + 4}\nFT                   /note="M -> E (in a breed)"\n'
    )
    entries = [
        ("P0", albumin.replace("DLGEEHFK", "NLGEMHFK"), annotation),
        *((f"P{i}", sequence, "") for i, sequence in enumerate(others, 1)),
    ]
    path = tmp_path / "variant.dat"
    path.write_text(
        "".join(swiss_prot_entry(f"A0A000000{name}", f"{name}_BOVIN", sequence, annotation) for name, sequence, annotation in entries)
    )
    identify([SAMPLES / "BSA1.mzML.gz"], [path], tmp_path / "project", parameters(known_variants=True), threads=2)
    rows = {row["peptide"]: row for row in rows_of(tmp_path / "project", "peptides")}
    variant = f"sp|A0A000000P0|P0_BOVIN:M{at + 4}E"
    assert rows["N[Deamidated]LGEEHFK"]["proteins"] == [variant]
    assert rows["N[Deamidated]LGEEHFK"]["known_modifications"] == [f"{variant}:N{at} Deamidated"]
    # A single variant is too small a class for an error rate, and is not accepted.
    assert (rows["N[Deamidated]LGEEHFK"]["match_class"], rows["N[Deamidated]LGEEHFK"]["q_value"]) == ("variant", None)


def test_second_pass_searches_known_modifications(databases: tuple[Path, Path], tmp_path: Path) -> None:
    settings = parameters(second_pass=True, second_pass_maximum_modifications=2)
    summary = identify([SAMPLES / "BSA1.mzML.gz"], [databases[1]], tmp_path, settings, threads=2)
    assert [search_pass.known_modifications for search_pass in summary.passes] == [("Deamidated (N)",)] * 2
    rows = rows_of(tmp_path, "psms")
    assert all(row["peptide"].count("[Deamidated]") >= len(row["known_modifications"]) for row in rows if len(row["proteins"]) == 1)
    assert "HLVN[Deamidated]EPQNLIK" in {row["peptide"] for row in rows if row["q_value"] is not None and row["q_value"] <= 0.01}


def test_identify_reports_unsearched_known_modifications(databases: tuple[Path, Path], tmp_path: Path) -> None:
    messages: list[str] = []

    class MessageRecorder(Progress):
        def message(self, text: str, level: str = "info") -> None:
            messages.append(text)

    identify(
        [SAMPLES / "BSA1.mzML.gz"], [databases[1]], tmp_path, parameters(maximum_modifications=0), threads=2, progress=MessageRecorder()
    )
    assert any("Known modifications are not searched" in text for text in messages)
    assert not any("[Deamidated]" in row["peptide"] for row in rows_of(tmp_path, "psms"))


def test_known_modifications_without_annotations_change_no_table(
    databases: tuple[Path, Path], projects: tuple[Path, Path], tmp_path: Path
) -> None:
    identify([SAMPLES / "BSA1.mzML.gz"], [databases[0]], tmp_path, parameters().changed(known_modifications=False), threads=2)
    for name in ("psms", "peptides", "proteins"):
        assert (projects[0] / "exports" / f"{name}.tsv").read_bytes() == (tmp_path / "exports" / f"{name}.tsv").read_bytes()


def test_exports_list_searched_known_modifications(projects: tuple[Path, Path], tmp_path: Path) -> None:
    project = Project.open(projects[1])
    for name in ("mzid", "pepxml"):
        IDENTIFICATION.export(project, ExportRequest(project.latest("identify"), name, tmp_path / f"found.{name}"), Progress())
        ElementTree.parse(tmp_path / f"found.{name}")
    mzid, pepxml = ((tmp_path / f"found.{name}").read_text() for name in ("mzid", "pepxml"))
    assert '<SearchModification fixedMod="false" massDelta="0.984016" residues="N">' in mzid
    assert "1 kind of known modifications at their residues" in mzid
    assert '<aminoacid_modification aminoacid="N" massdiff="+0.984016"' in pepxml


def test_protein_coverage_marks_identified_known_modifications(projects: tuple[Path, Path]) -> None:
    run = open_run(projects[1])
    proteins = run.tables.source("proteins")
    query = "SELECT file_row_number AS row FROM proteins WHERE list_contains(accessions, 'sp|A0A0000000|P0_BOVIN')"
    coverage = read_group_coverage(proteins, proteins.query(query)["row"][0].as_py(), 0.01)
    at = chosen_proteins()[0].index("HLVDEPQNLIK") + 3
    by_start = {feature.start: feature for feature in coverage.features}
    assert by_start[at].text == f"modified residue: Deamidated asparagine; partial (residue {at + 1}, found)"
    carried = {place for place, names in coverage.modified.items() if "Deamidated" in names}
    assert {feature.start for feature in coverage.features if feature.is_found} == carried
    assert 5 < len(carried) < len(coverage.features)
    run.tables.close()
