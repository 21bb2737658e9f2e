"""Searches of known modifications: spectra of a protein whose database has other residues, and knows what these carry."""

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
"""Deamidated asparagine weighs as much as aspartate."""


def features(sequence: str, residue: str, name: str) -> str:
    return "".join(
        f'FT   MOD_RES         {at}\nFT                   /note="{name}"\n' for at, one in enumerate(sequence, 1) if one == residue
    )


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Bovine albumin among others as it is, which the database knows nothing of; and with asparagines, known to be deamidated, for its
    aspartates, among others whose asparagines are."""
    folder = tmp_path_factory.mktemp("databases")
    plain, planted = [], []
    for i, sequence in enumerate(chosen_proteins()):
        name = f"A0A{i:07d}", f"P{i}_BOVIN"
        plain.append(swiss_prot_entry(*name, sequence))
        known = features(sequence, "D" if i == 0 else "N", "Deamidated asparagine; partial")
        planted.append(swiss_prot_entry(*name, sequence.replace("D", "N") if i == 0 else sequence, known))
    (folder / "plain.dat").write_text("".join(plain))
    (folder / "planted.dat").write_text("".join(planted))
    return folder / "plain.dat", folder / "planted.dat"


def parameters(**changes: Any) -> IdentificationParameters:
    return IdentificationParameters.checked(read_preset("identify", "low-resolution")).changed(known_modifications=True, **changes)


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(Project.open(folder).table(name, None)).to_pylist()
    return [row for row in rows if not row["is_decoy"]]


@pytest.fixture(scope="module")
def found(databases: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Projects of a search of each."""
    folder = tmp_path_factory.mktemp("projects")
    for path in databases:
        identify([SAMPLES / "BSA1.mzML.gz"], [path], folder / path.stem, parameters(), threads=2)
    return folder / "plain", folder / "planted"


def test_what_is_known_there_is_found_with_the_scores_that_the_same_masses_have_without(found: tuple[Path, Path]) -> None:
    plain, planted = ({row["spectrum"]: row for row in rows_of(folder, "psms") if row["q_value"] <= 0.01} for folder in found)
    both = [(plain[spectrum], planted[spectrum]) for spectrum in plain.keys() & planted.keys()]
    assert len(both) > 40
    of_known = [(one, other) for one, other in both if "Deamidated" in other["peptide"]]
    assert len(of_known) > 15
    for one, other in both:
        # Forms with more than three are none.
        assert one["peptide"] == other["peptide"].replace(ASPARTATE, "D")
        assert one["calculated_mass"] == pytest.approx(other["calculated_mass"], abs=1e-4)
        for score in ("hyperscore", "xcorr", "spectral_dot_product", "matched_ions", "search_score"):
            assert one[score] == pytest.approx(other[score], abs=1e-6), score
        assert other["feature_variable_modifications"] == one["feature_variable_modifications"] + other["peptide"].count(ASPARTATE)


def test_tables_name_the_residues_of_the_protein(found: tuple[Path, Path]) -> None:
    rows = {row["peptide"]: row for row in rows_of(found[1], "peptides")}
    albumin = chosen_proteins()[0]
    at = albumin.index("HLVDEPQNLIK") + 4
    assert rows["HLVN[Deamidated]EPQNLIK"]["known_modifications"] == [f"sp|A0A0000000|P0_BOVIN:N{at} Deamidated"]
    assert rows["HLVN[Deamidated]EPQNLIK"]["proteins"] == ["sp|A0A0000000|P0_BOVIN"]
    assert rows["AEFVEVTK"]["known_modifications"] == []
    header, *lines = (found[1] / "exports" / "psms.tsv").read_text().splitlines()
    assert "known_modifications" in header.split("\t") and any(f"N{at} Deamidated" in line for line in lines)


def test_a_variable_modification_at_a_known_residue_is_named_too_and_is_one_form(databases: tuple[Path, Path], tmp_path: Path) -> None:
    settings = parameters(variable_modifications=("Deamidated (N)",))
    identify([SAMPLES / "BSA1.mzML.gz"], [databases[1]], tmp_path / "project", settings, threads=2)
    rows = {row["peptide"]: row for row in rows_of(tmp_path / "project", "psms") if row["rank"] == 1}
    assert rows["HLVN[Deamidated]EPQNLIK"]["known_modifications"]


def test_a_variant_is_found_with_what_is_known_beside_it_by_the_residue_of_its_protein(tmp_path: Path) -> None:
    albumin, *others = chosen_proteins()
    at = albumin.index("DLGEEHFK") + 1
    known = (
        f'FT   MOD_RES         {at}\nFT                   /note="Deamidated asparagine"\n'
        f'FT   VARIANT         {at + 4}\nFT                   /note="M -> E (in a breed)"\n'
    )
    entries = [("P0", albumin.replace("DLGEEHFK", "NLGEMHFK"), known), *((f"P{i}", one, "") for i, one in enumerate(others, 1))]
    path = tmp_path / "variant.dat"
    path.write_text("".join(swiss_prot_entry(f"A0A000000{name}", f"{name}_BOVIN", one, told) for name, one, told in entries))
    identify([SAMPLES / "BSA1.mzML.gz"], [path], tmp_path / "project", parameters(known_variants=True), threads=2)
    rows = {row["peptide"]: row for row in rows_of(tmp_path / "project", "peptides")}
    variant = f"sp|A0A000000P0|P0_BOVIN:M{at + 4}E"
    assert rows["N[Deamidated]LGEEHFK"]["proteins"] == [variant]
    assert rows["N[Deamidated]LGEEHFK"]["known_modifications"] == [f"{variant}:N{at} Deamidated"]
    assert rows["N[Deamidated]LGEEHFK"]["q_value"] <= 0.01


def test_a_second_pass_finds_them_on_the_proteins_of_the_first(databases: tuple[Path, Path], tmp_path: Path) -> None:
    settings = parameters(second_pass=True, second_pass_maximum_modifications=2)
    found = identify([SAMPLES / "BSA1.mzML.gz"], [databases[1]], tmp_path, settings, threads=2)
    assert [one.known_modifications for one in found.passes] == [("Deamidated (N)",)] * 2
    rows = rows_of(tmp_path, "psms")
    assert all(row["peptide"].count("[Deamidated]") >= len(row["known_modifications"]) for row in rows if len(row["proteins"]) == 1)
    assert "HLVN[Deamidated]EPQNLIK" in {row["peptide"] for row in rows if row["q_value"] is not None and row["q_value"] <= 0.01}


def test_where_a_peptide_may_carry_nothing_the_user_is_told(databases: tuple[Path, Path], tmp_path: Path) -> None:
    told: list[str] = []

    class Told(Progress):
        def message(self, text: str, level: str = "info") -> None:
            told.append(text)

    identify([SAMPLES / "BSA1.mzML.gz"], [databases[1]], tmp_path, parameters(maximum_modifications=0), threads=2, progress=Told())
    assert any("Known modifications are not searched" in text for text in told)
    assert not any("[Deamidated]" in row["peptide"] for row in rows_of(tmp_path, "psms"))


def test_a_database_that_knows_nothing_gives_the_tables_of_a_search_without(
    databases: tuple[Path, Path], found: tuple[Path, Path], tmp_path: Path
) -> None:
    identify([SAMPLES / "BSA1.mzML.gz"], [databases[0]], tmp_path, parameters().changed(known_modifications=False), threads=2)
    for name in ("psms", "peptides", "proteins"):
        assert (found[0] / "exports" / f"{name}.tsv").read_bytes() == (tmp_path / "exports" / f"{name}.tsv").read_bytes()


def test_exports_tell_what_was_searched_at_its_residues(found: tuple[Path, Path], tmp_path: Path) -> None:
    project = Project.open(found[1])
    for name in ("mzid", "pepxml"):
        IDENTIFICATION.export(project, ExportRequest(project.latest("identify"), name, tmp_path / f"found.{name}"), Progress())
        ElementTree.parse(tmp_path / f"found.{name}")
    mzid, pepxml = ((tmp_path / f"found.{name}").read_text() for name in ("mzid", "pepxml"))
    assert '<SearchModification fixedMod="false" massDelta="0.984016" residues="N">' in mzid
    assert "1 kind of known modifications at their residues" in mzid
    assert '<aminoacid_modification aminoacid="N" massdiff="+0.984016"' in pepxml


def test_the_coverage_tells_which_known_modifications_were_found(found: tuple[Path, Path]) -> None:
    run = open_run(found[1])
    proteins = run.tables.source("proteins")
    asked = "SELECT file_row_number AS row FROM proteins WHERE list_contains(accessions, 'sp|A0A0000000|P0_BOVIN')"
    coverage = read_group_coverage(proteins, proteins.query(asked)["row"][0].as_py(), 0.01)
    at = chosen_proteins()[0].index("HLVDEPQNLIK") + 3
    told = {one.start: one for one in coverage.features}
    assert told[at].told == f"modified residue: Deamidated asparagine; partial (residue {at + 1}, found)"
    carried = {place for place, names in coverage.modified.items() if "Deamidated" in names}
    assert {one.start for one in coverage.features if one.is_found} == carried
    assert 5 < len(carried) < len(coverage.features)
    run.tables.close()
