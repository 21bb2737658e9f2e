"""Results that other programs misread according to public reports: small files of the same kind, against masses of pyteomics.

The address of each report is in the docstring of its test.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyteomics import mass

from proteoscope.engine.errors import InputError
from proteoscope.engine.imported.reading import read_identifications
from proteoscope.engine.project import Project
from tests.searching import import_results

ACETYL, CARBAMIDOMETHYL, PHOSPHO = 42.010565, 57.021464, 79.966331


def imported(path: Path) -> list[dict]:
    """Return the PSMs of a result file with one spectrum."""
    folder = path.parent
    (folder / "run.mgf").write_text("BEGIN IONS\nTITLE=scan=1\nSCANS=1\nPEPMASS=500.25\nCHARGE=2+\n110.5 1\n175.1 2\n300.2 3\nEND IONS\n")
    import_results([path], [folder / "run.mgf"], folder / "project")
    return pq.read_table(Project.open(folder / "project").table("psms", "import-0001")).to_pylist()


def idxml(path: Path, sequence: str) -> Path:
    path.write_text(
        '<?xml version="1.0"?><IdXML version="1.5"><SearchParameters id="S"/><IdentificationRun search_engine="Comet">'
        '<ProteinIdentification score_type="" higher_score_better="true" significance_threshold="0"><ProteinHit id="PH_0" accession="P1" '
        'score="0" sequence=""/></ProteinIdentification><PeptideIdentification score_type="expect" higher_score_better="false" '
        f'significance_threshold="0" MZ="500.25" RT="1" spectrum_reference="scan=1"><PeptideHit score="0.01" sequence="{sequence}" '
        'charge="2" protein_refs="PH_0"/></PeptideIdentification></IdentificationRun></IdXML>'
    )
    return path


@pytest.mark.parametrize(
    ("written", "sequence", "added"),
    [
        ("PEPT[+0.001]IDE", "PEPTIDE", 0.001),
        ("PEPT[-0.5]IDE", "PEPTIDE", -0.5),
        ("PEPT[+0.00335]IDE", "PEPTIDE", 0.00335),
        ("AEADNLDDK[306.025304840900048]K", "AEADNLDDKK", 306.0253048409),
        (".(Gln-&gt;pyro-Glu)QPEPK", "QPEPK", -17.026549),
        ("Q(Gln-&gt;pyro-Glu)PEPK", "QPEPK", -17.026549),
        ("C[143]PEPTIDEK", "CPEPTIDEK", CARBAMIDOMETHYL - 17.026549),
        ("PEPK.(Amidated)", "PEPK", -0.984016),
    ],
)
def test_imported_idxml_peptides_have_the_stated_masses(tmp_path: Path, written: str, sequence: str, added: float) -> None:
    """Check reports on OpenMS.

    https://github.com/OpenMS/OpenMS/issues/10029, 10006, 2445 and https://github.com/OpenMS/OpenMS/pull/3957
    """
    (row,) = imported(idxml(tmp_path / "x.idXML", written))
    assert row["calculated_mass"] == pytest.approx(mass.fast_mass(sequence) + added, abs=2e-4) and row["sequence"] == sequence


def pepxml(path: Path, sequence: str, information: str, neutral: float) -> Path:
    path.write_text(
        '<?xml version="1.0"?><msms_pipeline_analysis xmlns="http://regis-web.systemsbiology.net/pepXML"><msms_run_summary base_name="run" '
        'raw_data=".mgf"><search_summary base_name="run" search_engine="X! Tandem"/><spectrum_query spectrum="run.00001.00001.2" '
        f'start_scan="1" end_scan="1" precursor_neutral_mass="{neutral:.4f}" assumed_charge="2" index="1"><search_result><search_hit '
        f'hit_rank="1" peptide="{sequence}" protein="P1" num_tot_proteins="1" calc_neutral_pep_mass="{neutral:.4f}" massdiff="0.0">'
        f'<modification_info {information}</modification_info><search_score name="expect" value="0.01"/></search_hit></search_result>'
        "</spectrum_query></msms_run_summary></msms_pipeline_analysis>"
    )
    return path


@pytest.mark.parametrize(
    ("sequence", "information", "positions", "added"),
    [
        ("WETEERPR", 'mod_nterm_mass="33.0643" mod_cterm_mass="17.0031">', 1, 33.0643 - 1.007825),
        ("THNDIIHNENMR", 'mod_nterm_mass="37.0836" mod_cterm_mass="17.0031">', 1, 37.0836 - 1.007825),
        ("WETEERPR", 'mod_nterm_mass="1.00783" mod_cterm_mass="17.0027">', 0, 0.0),
        ("AHTMVHDQVSR", '><mod_aminoacid_mass mass="147.0354" position="4"/>', 1, 15.9949),
    ],
)
def test_pepxml_terminal_masses_become_modifications(tmp_path: Path, sequence: str, information: str, positions: int, added: float) -> None:
    """Check that masses of unmodified termini do not become modifications of 0.0004 Da.

    https://github.com/OpenMS/OpenMS/pull/1933, https://github.com/CompOmics/psm_utils/issues/100
    """
    expected = mass.fast_mass(sequence) + added
    (row,) = imported(pepxml(tmp_path / "x.pep.xml", sequence, information, expected))
    assert row["calculated_mass"] == pytest.approx(expected, abs=5e-4) and len(row["modification_masses"]) == positions


def mztab(path: Path, modifications: str, reference: str = "ms_run[1]:scan=1", time: str = "90.5") -> Path:
    columns = [
        "sequence",
        "PSM_ID",
        "accession",
        "unique",
        "database",
        "database_version",
        "search_engine",
        "search_engine_score[1]",
        "modifications",
        "retention_time",
        "charge",
        "exp_mass_to_charge",
        "calc_mass_to_charge",
        "spectra_ref",
        "pre",
        "post",
        "start",
        "end",
    ]
    cells = ["CEEFLSTR", "1", "P1", "1", "db", "null", "null", "0.001", modifications, time, "2", "500.25", "null", reference, *"KR19"]
    path.write_text(
        "MTD\tmzTab-version\t1.0.0\nMTD\tms_run[1]-location\tfile:///run.mgf\nMTD\tms_run[2]-location\tfile:///other.mgf\n"
        "MTD\tpsm_search_engine_score[1]\t[MS, MS:1002257, Comet:expectation value, ]\n"
        + "\t".join(["PSH", *columns])
        + "\n"
        + "\t".join(["PSM", *cells])
        + "\n"
    )
    return path


@pytest.mark.parametrize(
    ("modifications", "added"),
    [
        ("1-UniMod:4", CARBAMIDOMETHYL),
        ("0-UNIMOD:1,1-UNIMOD:4", ACETYL + CARBAMIDOMETHYL),
        ("6|7-UNIMOD:21", PHOSPHO),
        ("6[MS,MS:1001876,modification probability,0.8]|7[MS,MS:1001876,modification probability,0.2]-UNIMOD:21", PHOSPHO),
        ("1-CHEMMOD:+57.021464", CARBAMIDOMETHYL),
        ("9-CHEMMOD:-0.984016", -0.984016),
        ("6-[MS,MS:1001524,fragment neutral loss,97.97],6-UNIMOD:21", PHOSPHO),
        ("6-UNIMOD:21|[MS,MS:1001524,neutral loss,97.97]", PHOSPHO),
    ],
)
def test_imported_mztab_modifications_have_the_stated_masses(tmp_path: Path, modifications: str, added: float) -> None:
    """Check reports on OpenMS.

    https://github.com/OpenMS/OpenMS/issues/2017, https://github.com/OpenMS/OpenMS/issues/2779
    """
    (row,) = imported(mztab(tmp_path / "x.mzTab", modifications))
    assert row["calculated_mass"] == pytest.approx(mass.fast_mass("CEEFLSTR") + added, abs=1e-4)


@pytest.mark.parametrize("modifications", ["UNIMOD:4", "null-UNIMOD:4", "1-UNIMOD:4,UNIMOD:21", "99-UNIMOD:4"])
def test_mztab_modifications_without_site_are_rejected(tmp_path: Path, modifications: str) -> None:
    """Check a report on OpenMS.

    https://github.com/OpenMS/OpenMS/issues/4835
    """
    with pytest.raises(InputError, match=r"is not a modification with a position|is outside"):
        read_identifications([mztab(tmp_path / "x.mzTab", modifications)])


@pytest.mark.parametrize("separator", ["|", " | "])
def test_import_uses_first_of_several_mztab_spectra(tmp_path: Path, separator: str) -> None:
    """Check a report on mzTab.

    https://github.com/HUPO-PSI/mzTab/issues/178
    """
    path = mztab(tmp_path / "x.mzTab", "null", separator.join(("ms_run[1]:scan=1", "ms_run[2]:scan=7")), separator.join(("90.5", "99")))
    identifications = read_identifications([path])
    assert (identifications.native_id.to_pylist(), identifications.run.to_pylist(), identifications.retention_time.tolist()) == (
        ["scan=1"],
        ["file:///run.mgf"],
        [90.5],
    )
    assert len(imported(path)) == 1


@pytest.mark.parametrize(("unit", "seconds"), [("UO:0000031", 3063.0186), ("UO:0000010", 51.05031)])
def test_mzidentml_retention_times_have_the_unit_of_the_file(tmp_path: Path, unit: str, seconds: float) -> None:
    """Check reports on MS-GF+ and OpenMS.

    https://github.com/MSGFPlus/msgfplus/issues/2, https://github.com/OpenMS/OpenMS/issues/2127
    """
    path = tmp_path / "x.mzid"
    path.write_text(
        '<MzIdentML xmlns="http://psidev.info/psi/pi/mzIdentML/1.1" id="x" version="1.1.0"><SequenceCollection><Peptide id="p">'
        "<PeptideSequence>SAMPLEK</PeptideSequence></Peptide></SequenceCollection><DataCollection><AnalysisData>"
        '<SpectrumIdentificationList id="l"><SpectrumIdentificationResult id="r" spectrumID="scan=1" spectraData_ref="sd">'
        '<SpectrumIdentificationItem id="i" rank="1" chargeState="2" peptide_ref="p" experimentalMassToCharge="500" passThreshold="true"/>'
        f'<cvParam accession="MS:1000016" name="scan start time" value="51.05031" unitAccession="{unit}"/>'
        "</SpectrumIdentificationResult></SpectrumIdentificationList></AnalysisData></DataCollection></MzIdentML>"
    )
    assert read_identifications([path]).retention_time.tolist() == [pytest.approx(seconds)]
