"""Modifications of mzIdentML without a location, replaced residues, rows that are left out, and files of the same name."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyteomics import mass

from proteoscope.engine.errors import InputError
from proteoscope.engine.imported.reading import read_identifications
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.matches.match_lists.identifications import MatchCollector
from proteoscope.engine.matches.match_lists.references import find_spectra
from proteoscope.engine.project import Project
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.unfolding import Unfolding
from tests.searching import import_results

ACETYL = '<Modification{}monoisotopicMassDelta="42.010565"><cvParam cvRef="UNIMOD" accession="UNIMOD:1" name="Acetyl"/></Modification>'
PHOSPHO = '<Modification{}monoisotopicMassDelta="79.966331"><cvParam cvRef="UNIMOD" accession="UNIMOD:21" name="Phospho"/></Modification>'
PYRO = '<Modification{}monoisotopicMassDelta="-17.026549"><cvParam accession="UNIMOD:28" name="Gln->pyro-Glu"/></Modification>'
UNKNOWN = '<Modification{}monoisotopicMassDelta="100.5"><cvParam accession="MS:1001460" name="unknown modification"/></Modification>'
REPLACED = '<SubstitutionModification location="{}" originalResidue="{}" replacementResidue="{}"/>'
AT_C_TERMINUS = (
    '<SearchModification fixedMod="false" massDelta="100.5" residues="."><SpecificityRules><cvParam accession="MS:1001190" '
    'name="modification specificity peptide C-term"/></SpecificityRules><cvParam accession="MS:1001460" name="unknown modification"/>'
    "</SearchModification>"
)


def write(path: Path, *peptides: tuple[str, str], scan: str = "7", searched: str = "") -> Path:
    """Write an mzIdentML file with a match of each peptide, given as its sequence and modifications."""
    written = "".join(
        f'<Peptide id="p{i}"><PeptideSequence>{peptide}</PeptideSequence>{two}</Peptide>' for i, (peptide, two) in enumerate(peptides)
    )
    results = "".join(
        f'<SpectrumIdentificationResult id="r{i}" spectrumID="index={i}" spectraData_ref="sd"><SpectrumIdentificationItem id="i{i}" '
        f'rank="1" chargeState="2" peptide_ref="p{i}" experimentalMassToCharge="500" passThreshold="true"/>'
        f'<cvParam accession="MS:1003057" name="scan number" value="{scan}"/></SpectrumIdentificationResult>'
        for i in range(len(peptides))
    )
    path.write_text(
        f'<MzIdentML xmlns="http://psidev.info/psi/pi/mzIdentML/1.2" id="x" version="1.2.0"><SequenceCollection>{written}'
        f"</SequenceCollection><AnalysisProtocolCollection>{searched}</AnalysisProtocolCollection><DataCollection><Inputs>"
        '<SpectraData id="sd" location="file:///d/run.mgf"/></Inputs><AnalysisData><SpectrumIdentificationList id="l">'
        f"{results}</SpectrumIdentificationList></AnalysisData></DataCollection></MzIdentML>"
    )
    return path


@pytest.mark.parametrize(
    ("sequence", "written", "searched", "position"),
    [
        ("SAMPLEK", ACETYL.format(" "), "", 0),  # Unimod lists only one terminus as its site.
        ("SAMPLEK", UNKNOWN.format(" "), AT_C_TERMINUS, 8),
        ("SAMPLEK", PHOSPHO.format(' residues="S" '), "", 1),
        ("QAMPLEK", PYRO.format(' location="0" '), "", 1),  # Position 1 is the residue for search engines that write 1.
        ("SAMPLEK", ACETYL.format(' location="0" '), "", 0),
    ],
)
def test_mzidentml_modification_gets_its_only_possible_site(tmp_path, sequence, written, searched, position):
    identifications = read_identifications([write(tmp_path / "x.mzid", (sequence, written), searched=searched)])
    assert [modification.position for modification in identifications.peptides[0].modifications] == [position]
    assert not len(identifications.unread) and identifications.scan.tolist() == [7]


def test_mzidentml_modifications_without_site_are_listed(tmp_path):
    rows = [
        ("SAMSLEK", PHOSPHO.format(' residues="S" '), "no location"),
        ("SAMPLEK", PHOSPHO.format(" "), "no location"),
        ("SAMPLEK", PHOSPHO.format(' location="9" '), "outside its sequence"),
        ("SAM-LEK", "", "not a sequence of residues"),
        ("SAMPLEK", REPLACED.format(3, "W", "V"), "substitution"),
        ("SAMPLEK", REPLACED.format(3, "M", "?"), "substitution"),
    ]
    path = write(tmp_path / "x.mzid", *((first, second) for first, second, _ in rows), ("SAMPLEK", ""))
    identifications = read_identifications([path])
    assert len(identifications) == 1 and identifications.place.tolist() == [7]
    for row, (sequence, _, reason) in zip(identifications.unread.to_pylist(), rows, strict=True):
        assert row["peptide"] == sequence and row["charge"] == 2 and reason in row["reason"]
        assert row["spectrum"] == f"file:///d/run.mgf index={row['line'] - 1}"


def test_import_warns_of_modifications_without_a_site(tmp_path):
    progress = RecordingProgress(Progress())
    read_identifications([write(tmp_path / "x.mzid", ("SAMPLEK", ACETYL.format(" ")), ("SAMK", ""))], progress)
    assert [text for text in progress.messages if "1 peptides have a modification without a location" in text]


def test_mzidentml_substitution_gives_the_observed_sequence(tmp_path):
    path = write(tmp_path / "x.mzid", ("SAXPLEK", REPLACED.format(3, "X", "W")), ("SAWPLEK", REPLACED.format(3, "M", "W")))
    assert [peptide.sequence for peptide in read_identifications([path]).peptides] == ["SAWPLEK"]


@pytest.mark.parametrize("scan", [" " * 15, "9" * 5000, "12.5", "- 3", "²" * 5])
def test_invalid_mzidentml_scan_numbers_are_not_stored(tmp_path, scan):
    assert read_identifications([write(tmp_path / "x.mzid", ("SAMPLEK", ""), scan=scan)]).scan.tolist() == [-1]


@pytest.mark.parametrize(("case", "file"), [("no_location", "noloc.mzid"), ("substitution", "sub.mzid")])
def test_imported_mzidentml_peptides_have_the_measured_masses(shared_cases, tmp_path, case, file):
    folder = shared_cases / f"import_mzidentml_{case}"
    summary = import_results([folder / file], [folder / "imp.mzML"], tmp_path / "project")
    assert (summary.n_imported, summary.left_out) == (120, {})
    project = Project.open(tmp_path / "project")
    for row in pq.read_table(project.table("psms", "import-0001")).to_pylist():
        expected = mass.fast_mass(row["sequence"]) + sum(row["modification_masses"])
        assert row["calculated_mass"] == pytest.approx(expected, abs=1e-3) and abs(row["mass_error_ppm"]) < 20


def test_import_lists_unreadable_table_rows(tmp_path):
    from tests.engine.imported.small_results import TRUTH, write_results, write_spectra

    path = write_results("maxquant", tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    sequence = lines[0].split("\t").index("Modified sequence")
    cells = lines[2].split("\t")
    cells[sequence] = "_AxC_"
    path.write_text("".join([*lines[:2], "\t".join(cells), *lines[3:]]))
    summary = import_results([path], [write_spectra(tmp_path / "run.mgf")], tmp_path / "project")
    with (tmp_path / "project" / "exports" / "left_out.tsv").open() as file:
        (row,) = csv.DictReader(file, delimiter="\t")
    assert (row["line"], row["peptide"]) == ("3", "_AxC_") and "it has 'x'" in row["reason"]
    assert summary.n_imported == len(TRUTH) - 1 and sum(summary.left_out.values()) == 1


def test_import_separates_equal_file_names_by_folder(tmp_path):
    import numpy as np

    zeros = np.zeros(2)
    spectra = Spectra(
        (str(tmp_path / "B" / ".." / "A" / "run.mzML"), str(tmp_path / "B" / "run.mzML")),
        np.array([0, 1], np.int32),
        ["scan=1", "scan=1"],
        np.ones(2, np.int64),
        np.zeros(2, np.int64),
        zeros,
        zeros + 500,
        zeros.astype(np.float32),
        np.zeros(2, np.uint32),
        np.zeros(3, np.int64),
        np.zeros(0),
        np.zeros(0, np.float32),
    )
    names = {
        (tmp_path / "A" / "run.mzML").as_uri(): 0,
        "B/run.mzML": 1,
        "/elsewhere/B/run.mzML": 1,
        "C:\\data\\A\\run.mzML": 0,
        "run.mzML": -2,
        "/elsewhere/C/run.mzML": -2,
        "A/other.mzML": -1,
    }
    for name, row in names.items():
        collected = MatchCollector("mzIdentML", Unfolding(tmp_path, 1000))
        collected.add(
            collected.peptide(read_identifications([write(tmp_path / "x.mzid", ("SAMPLEK", ""))]).peptides[0]),
            [],
            {},
            native_id="scan=1",
            run=name,
        )
        assert find_spectra(collected.finish(), spectra).spectrum.tolist() == [row], name


def test_mzidentml_without_readable_match_is_rejected(tmp_path):
    with pytest.raises(InputError, match="no location"):
        read_identifications([write(tmp_path / "x.mzid", ("SAMPLEK", PHOSPHO.format(" ")))])


@pytest.mark.parametrize("name", ["comet", "percolator", "mokapot", "sage", "msfragger", "dia-nn", "mztab", "pepxml", "xtandem", "idxml"])
def test_import_lists_unreadable_peptides_of_every_format(tmp_path, name):
    from tests.engine.imported.small_results import write_results

    path = write_results(name, tmp_path)
    text = path.read_text()
    n = len(read_identifications([path]))
    path.write_text(text.replace("GGSWAVLR", "GGSW1VLR").replace("ACDMKGK", "ACDM1GK"))
    identifications = read_identifications([path])
    assert len(identifications) + len(identifications.unread) == n
    assert len(identifications.unread) and all(
        row["reason"] and row["spectrum"] and "1" in row["peptide"] for row in identifications.unread.to_pylist()
    )
