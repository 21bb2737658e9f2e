"""mzIdentML export: equal to the tables when read by pyteomics, and valid by the schema if available."""

import gzip
import importlib.util
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lxml import etree
from pyteomics import mzid

from proteoscope.engine.formats.xml_text import attribute
from proteoscope.engine.matches.site_columns import PSM_SITES
from tests.engine.identification_tables import Identification, identification
from tests.engine.matches.exported import export

LEFT_OPEN = ("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
"""Warnings of pyteomics, which uses psims, if installed, for the vocabulary; psims leaves the file open."""

NAMESPACE = {"m": "http://psidev.info/psi/pi/mzIdentML/1.2"}


@pytest.fixture(scope="module")
def small() -> Identification:
    return identification()


def write(tables: Identification, folder: Path, **parameters) -> Path:
    (path,) = export(
        tables.write(folder),
        "mzid",
        folder / "x.mzid",
        {**tables.parameters, **parameters},
        spectra=tables.spectra,
        databases=["/data/odd & <db>.fasta", "/data/contaminants.fasta"],
        version="1.0",
    )
    return path


@pytest.fixture(scope="module")
def path(small, tmp_path_factory) -> Path:
    return write(small, tmp_path_factory.mktemp("mzid"))


@pytest.fixture(scope="module")
def root(path) -> etree._Element:
    return etree.parse(path, etree.XMLParser(resolve_entities=False, no_network=True)).getroot()


def psims_file(*parts: str) -> Path:
    """Return a file of the package psims, which has the schema and the vocabulary."""
    spec = importlib.util.find_spec("psims")
    folder = Path(spec.origin).parent if spec and spec.origin else Path(os.environ.get("PROTEOSCOPE_PSIMS", "/nowhere"))
    file = folder.joinpath(*parts)
    if not file.is_file():
        pytest.skip("the package psims, which ships the PSI's schema and vocabulary, is missing (PROTEOSCOPE_PSIMS may name its folder)")
    return file


def validate(path: Path) -> None:
    schema = etree.XMLSchema(etree.parse(psims_file("validation", "xsd", "mzIdentML1.2.0.xsd")))
    schema.assertValid(etree.parse(path))


def test_mzidentml_is_valid(path):
    validate(path)


@pytest.mark.parametrize("specificity", ["specific", "semi-specific", "non-specific"])
def test_mzidentml_is_valid_with_any_description(small, tmp_path, specificity):
    validate(write(small, tmp_path, specificity=specificity))
    export(small.write(tmp_path), "mzid", tmp_path / "bare.mzid")
    validate(tmp_path / "bare.mzid")


@pytest.mark.filterwarnings(*LEFT_OPEN)
def test_mzidentml_without_psms_is_readable(tmp_path):
    path = write(identification(0), tmp_path)
    with mzid.read(str(path), use_index=False) as reader:
        assert list(reader) == []
    # The schema requires at least one result; this is the only violation.
    with pytest.raises(etree.DocumentInvalid, match=r"SpectrumIdentificationList.*Missing child element") as refusal:
        validate(path)
    assert len(refusal.value.error_log) == 1


def test_mzidentml_terms_match_the_vocabulary(root):
    names = {}
    with gzip.open(psims_file("controlled_vocabulary", "vendor", "psi-ms.obo.gz"), "rt", encoding="utf-8") as file:
        for accession, name in re.findall(r"^id: (MS:\d+)\nname: (.*)$", file.read(), re.MULTILINE):
            names[accession] = name.replace("\\", "")
    used = {(term.get("accession"), term.get("name")) for term in root.iter("{*}cvParam") if term.get("cvRef") == "PSI-MS"}
    assert {accession for accession, _ in used} - set(names) <= {"MS:1003434"}
    assert all(names.get(accession, name) == name for accession, name in used)


@pytest.mark.filterwarnings(*LEFT_OPEN)
def test_mzidentml_psms_equal_tables(small, path):
    expected = defaultdict(list)
    for row in small.psms.to_pylist():
        expected[row["spectrum"]].append(row)
    with mzid.read(str(path), retrieve_refs=True) as reader:
        results = {int(result["id"].removeprefix("SIR_")) if "id" in result else i: result for i, result in enumerate(reader)}
    assert len(results) == len(expected)
    by_reference = {(Path(result["location"]).name, result["spectrumID"]): result for result in results.values()}
    assert len(by_reference) == len(expected)
    for rows in expected.values():
        _check_result(by_reference, rows)


def _check_result(by_reference: dict, rows: list[dict]) -> None:
    first = rows[0]
    in_mgf = first["spectrum_file"].endswith(".mgf")
    name = Path(first["spectrum_file"]).as_uri().rpartition("/")[2]
    result = by_reference[name, f"index={first['spectrum_index']}" if in_mgf else first["spectrum_id"]]
    assert result.get("spectrum title") == (first["spectrum_id"] if in_mgf else None)
    assert result.get("retention time") == first["retention_time"]
    assert result.get("scan number") == first["scan"]
    items = result["SpectrumIdentificationItem"]
    assert [item["rank"] for item in items] == [row["rank"] for row in rows]
    for item, row in zip(items, rows, strict=True):
        assert item["chargeState"] == row["charge"]
        assert item["experimentalMassToCharge"] == pytest.approx(row["precursor_mz"], abs=1e-6)
        assert item["calculatedMassToCharge"] == pytest.approx(row["calculated_mass"] / row["charge"] + 1.00727646688, abs=1e-6)
        assert item["passThreshold"] == (row["rank"] == 1 and not row["is_decoy"] and row["q_value"] <= 0.01)
        assert item["X!Tandem:hyperscore"] == pytest.approx(row["hyperscore"], rel=1e-7)
        assert item["PSM-level q-value"] == pytest.approx(row["q_value"], rel=1e-7)
        assert item["PSM-level local FDR"] == pytest.approx(row["posterior_error_probability"], rel=1e-7)
        assert item["number of matched peaks"] == row["matched_ions"]
        assert ("delta score" in item) == (row["delta_score"] is not None)
        assert ("KSDP" in item) == (row["ksdp"] == row["ksdp"])
        assert item["PeptideSequence"] == row["sequence"]
        modifications = [
            (modification["location"], modification.get("residues"), modification["monoisotopicMassDelta"])
            for modification in item.get("Modification", [])
        ]
        residues = f" {row['sequence']} "
        assert modifications == [
            (position, [residues[position]] if residues[position].strip() else None, pytest.approx(delta, abs=1e-6))
            for position, delta in zip(row["modification_positions"], row["modification_masses"], strict=True)
        ]
        evidence = item["PeptideEvidenceRef"]
        assert [protein["accession"] for protein in evidence] == [attribute_text(accession) for accession in row["proteins"]]
        assert [protein["start"] for protein in evidence] == row["protein_starts"]
        assert [protein["end"] for protein in evidence] == [start + len(row["sequence"]) - 1 for start in row["protein_starts"]]
        assert [protein["pre"] for protein in evidence] == row["residues_before"]
        assert [protein["post"] for protein in evidence] == row["residues_after"]
        assert {bool(protein.get("isDecoy")) for protein in evidence} == {row["is_decoy"]}


def attribute_text(text: str) -> str:
    return etree.fromstring(f'<a b="{attribute(text)}"/>').get("b")


def test_mzidentml_peptide_positions_match_protein_sequences(small, root):
    """Each peptide occurs in its protein's sequence at the exported position, between the exported residues."""
    sequences = {
        element.get("id"): small.database[element.get("accession")].sequence for element in root.iterfind(".//m:DBSequence", NAMESPACE)
    }
    peptides = {
        element.get("id"): element.findtext("m:PeptideSequence", namespaces=NAMESPACE)
        for element in root.iterfind(".//m:Peptide", NAMESPACE)
    }
    n_checked = 0
    for element in root.iterfind(".//m:PeptideEvidence", NAMESPACE):
        protein = f"-{sequences[element.get('dBSequence_ref')]}-"
        start, end = int(element.get("start")), int(element.get("end"))
        assert protein[start : end + 1] == peptides[element.get("peptide_ref")]
        assert (protein[start - 1], protein[end + 1]) == (element.get("pre"), element.get("post"))
        n_checked += 1
    assert n_checked > len(peptides)


def test_mzidentml_modifications_have_unimod_terms(small, root):
    expected = set()
    for row in small.psms.to_pylist():
        expected |= set(zip(row["modification_names"], row["modification_unimod"], strict=True))
    exported = set()
    for element in root.iterfind(".//m:Modification/m:cvParam", NAMESPACE):
        if element.get("cvRef") == "UNIMOD":
            exported.add((element.get("name"), int(element.get("accession").removeprefix("UNIMOD:"))))
        else:
            assert (element.get("accession"), element.get("name")) == ("MS:1001460", "unknown modification")
            assert element.get("value") is None  # the term has no value
            exported.add((None, None))
    assert exported == {(name if number else None, number) for name, number in expected}
    searched = {
        (element.find("m:cvParam", NAMESPACE).get("name"), element.get("fixedMod"), element.get("residues"))
        for element in root.iterfind(".//m:SearchModification", NAMESPACE)
    }
    assert searched == {
        ("Carbamidomethyl", "true", "C"),
        ("Oxidation", "false", "M"),
        ("Phospho", "false", "S T Y"),
        ("Acetyl", "false", "."),
        ("Amidated", "false", "."),
        ("unknown modification", "false", "K"),
    }
    assert [element.get("accession") for element in root.iterfind(".//m:SpecificityRules/m:cvParam", NAMESPACE)] == [
        "MS:1002057",
        "MS:1001190",
    ]


def test_mzidentml_puts_terminal_modifications_at_the_terminus(small, tmp_path):
    rows = small.psms.to_pylist()
    rows[0] |= {
        "sequence": "QSAMPLEK",
        "peptide": "Q[Gln->pyro-Glu]SAMPLEK",
        "modification_positions": [1],
        "modification_masses": [-17.026549],
        "modification_names": ["Gln->pyro-Glu"],
        "modification_unimod": [28],
    }
    changed = Identification(**{**small.__dict__, "psms": pa.Table.from_pylist(rows, small.psms.schema)})
    root = etree.parse(write(changed, tmp_path)).getroot()
    (term,) = root.iterfind(".//m:Modification/m:cvParam[@accession='UNIMOD:28']", NAMESPACE)
    assert (term.getparent().get("location"), term.getparent().get("residues")) == ("0", "Q")


def test_mzidentml_lists_a_file_once_if_psms_use_another_path(small, tmp_path):
    rows = small.psms.to_pylist()
    names = {path: f"{folder}/run.mzML" for path, folder in zip(small.spectra, ("A", "../B/A"), strict=True)}
    for row in rows:
        row["spectrum_file"] = names[row["spectrum_file"]]
    psms = pa.Table.from_pylist(rows, small.psms.schema)
    paths = ["/d/A/run.mzML", "/d/B/A/run.mzML", "/d/silent.mgf"]
    root = etree.parse(write(Identification(**{**small.__dict__, "psms": psms, "spectra": paths}), tmp_path)).getroot()
    locations = {element.get("id"): element.get("location") for element in root.iterfind(".//m:SpectraData", NAMESPACE)}
    assert sorted(locations.values()) == ["B/A/run.mzML", "d/A/run.mzML", "silent.mgf"]
    assert len(root.findall(".//m:InputSpectra", NAMESPACE)) == 3
    by_spectrum = {
        (locations[element.get("spectraData_ref")], element.get("spectrumID"))
        for element in root.iterfind(".//m:SpectrumIdentificationResult", NAMESPACE)
    }
    address = {"A/run.mzML": "d/A/run.mzML", "../B/A/run.mzML": "B/A/run.mzML"}
    assert by_spectrum == {(address[row["spectrum_file"]], row["spectrum_id"]) for row in rows}


def test_mzidentml_file_locations_are_relative_to_export_folder(small, tmp_path):
    paths = [str(tmp_path / "in" / "A" / "run 1.mzML"), str(tmp_path / "in" / "B" / "run 1.mzML")]
    rows = small.psms.to_pylist()
    names = dict(zip(small.spectra, ("A/run 1.mzML", "B/run 1.mzML"), strict=True))
    for row in rows:
        row["spectrum_file"] = names[row["spectrum_file"]]
    psms = pa.Table.from_pylist(rows, small.psms.schema)
    (tmp_path / "out").mkdir()
    path = write(Identification(**{**small.__dict__, "psms": psms, "spectra": paths}), tmp_path / "out")
    locations = [element.get("location") for element in etree.parse(path).getroot().iterfind(".//m:SpectraData", NAMESPACE)]
    assert sorted(locations) == ["../in/A/run%201.mzML", "../in/B/run%201.mzML"]
    assert str(tmp_path) not in Path(path).read_text(encoding="utf-8")


def test_mzidentml_references_are_resolved(root):
    names = [element.get("id") for element in root.iter() if element.get("id") is not None]
    assert len(names) == len(set(names))
    references = {value for element in root.iter("{*}*") for name, value in element.attrib.items() if name.endswith("_ref")}
    assert references <= set(names)


def test_mzidentml_describes_the_search(root):
    def terms(element_path: str) -> dict[str, tuple[str | None, str | None]]:
        return {
            element.get("accession"): (element.get("value"), element.get("unitAccession"))
            for element in root.iterfind(f".//m:{element_path}/m:cvParam", NAMESPACE)
        }

    assert terms("FragmentTolerance") == {"MS:1001412": ("0.02", "UO:0000221"), "MS:1001413": ("0.02", "UO:0000221")}
    assert terms("ParentTolerance") == {"MS:1001412": ("10", "UO:0000169"), "MS:1001413": ("10", "UO:0000169")}
    assert set(terms("EnzymeName")) == {"MS:1001251"}
    assert terms("SpectrumIdentificationProtocol/m:Threshold") == {"MS:1002260": ("0.01", None)}
    assert terms("SearchDatabase")["MS:1001283"] == ("^DECOY_", None)
    assert [element.get("location") for element in root.iterfind(".//m:SpectraData", NAMESPACE)] == [
        "run%201%20%26%202.mzML",
        "sp%C3%A4te.mgf",
    ]
    assert [element.get("accession") for element in root.iterfind(".//m:SpectrumIDFormat/m:cvParam", NAMESPACE)] == [
        "MS:1000768",
        "MS:1000774",
    ]
    parameters = {
        element.get("name"): element.get("value") for element in root.iterfind(".//m:AdditionalSearchParams/m:userParam", NAMESPACE)
    }
    assert parameters["isotope_errors"] == "0, 1"


@pytest.mark.parametrize(
    ("settings", "pattern"),
    [
        ({"decoy_prefix": "sp|DECOY_"}, r"(?:^|\|)sp\|DECOY_"),
        ({"decoy_prefix": "DECOY_"}, r"^(?:[^|]*\|)?DECOY_|^[^|]*\|.*\|DECOY_(?:[A-Z0-9]{0,5}[^A-Z0-9|]|[A-Z0-9]{6})"),
        ({"decoy_suffix": "_REVERSED"}, r"_REVERSED(?:\||$)"),
    ],
)
def test_mzidentml_describes_existing_decoys_by_prefix_or_suffix(small, tmp_path, settings, pattern):
    written = etree.parse(write(small, tmp_path, decoys="existing", **settings))
    assert {element.get("value") for element in written.iterfind(".//m:cvParam[@accession='MS:1001283']", NAMESPACE)} == {pattern}


def test_mzidentml_recognises_decoys_by_suffix(small, root, tmp_path):
    suffix = next(element.get("accession") for element in root.iterfind(".//m:DBSequence", NAMESPACE))[-3:]
    written = etree.parse(write(small, tmp_path, decoys="existing", decoy_suffix=suffix))
    accessions = {element.get("id"): element.get("accession") for element in written.iterfind(".//m:DBSequence", NAMESPACE)}
    for evidence in written.iterfind(".//m:PeptideEvidence", NAMESPACE):
        if accessions[evidence.get("dBSequence_ref")].endswith(suffix):
            assert evidence.get("isDecoy") == "true"


def test_mzidentml_protein_groups_reference_accepted_psms(small, root):
    psms = small.psms.to_pylist()
    groups = root.findall(".//m:ProteinAmbiguityGroup", NAMESPACE)
    assert len(groups) == len(small.proteins)
    accessions = {element.get("id"): element.get("accession") for element in root.iterfind(".//m:DBSequence", NAMESPACE)}
    for group, row in zip(groups, small.proteins.to_pylist(), strict=True):
        hypotheses = group.findall("m:ProteinDetectionHypothesis", NAMESPACE)
        assert [accessions[hypothesis.get("dBSequence_ref")] for hypothesis in hypotheses] == row["accessions"]
        assert {hypothesis.get("passThreshold") for hypothesis in hypotheses} == {
            "true" if row["q_value"] <= 0.01 and not row["is_decoy"] else "false"
        }
        terms = {element.get("accession"): element.get("value") for element in group.iterfind("m:cvParam", NAMESPACE)}
        assert float(terms["MS:1002373"]) == pytest.approx(row["q_value"])
        for hypothesis in hypotheses:
            accession = accessions[hypothesis.get("dBSequence_ref")]
            supporting = [psm for psm in psms if psm["rank"] == 1 and accession in psm["proteins"]]
            passing = [psm for psm in supporting if psm["q_value"] <= 0.01]
            expected = {f"SII_{psm['psm_id']}" for psm in passing or supporting}
            support = {reference.get("spectrumIdentificationItem_ref") for reference in hypothesis.iter("{*}SpectrumIdentificationItemRef")}
            assert support == expected or (not passing and support < {f"SII_{psm['psm_id']}" for psm in psms})
    n_passing = sum(row["q_value"] <= 0.01 and not row["is_decoy"] for row in small.proteins.to_pylist())
    (count,) = root.findall("m:DataCollection/m:AnalysisData/m:ProteinDetectionList/m:cvParam", NAMESPACE)
    assert (count.get("accession"), count.get("value")) == ("MS:1002404", str(n_passing))


def test_attribute_text_escapes_only_control_characters():
    """Accessions are restored by readers, except for control characters that XML excludes."""
    text = "".join(map(chr, [*range(0x20, 0x7F), 0xE9, 0x3A9, 0x1F600]))
    assert attribute_text(text) == text
    assert attribute_text("a\x00\x01\tb\n\ufffe") == "a   b  "
    assert attribute_text("a\x7f\x85\x9bb\xa0") == "a   b\xa0"


@pytest.mark.peers
@pytest.mark.skipif("PROTEOSCOPE_PEER_PYTHON" not in os.environ, reason="PROTEOSCOPE_PEER_PYTHON names no Python with pyopenms")
def test_openms_reads_all_psms_of_mzidentml(small, path):
    script = (
        "import sys, pyopenms as o; runs, spectra = [], o.PeptideIdentificationList();"
        "o.MzIdentMLFile().load(sys.argv[1], runs, spectra);"
        "print('READ', spectra.size(), sum(len(spectra[i].getHits()) for i in range(spectra.size())))"
    )
    done = subprocess.run([os.environ["PROTEOSCOPE_PEER_PYTHON"], "-c", script, str(path)], check=True, capture_output=True, text=True)
    assert f"READ {len(set(small.psms['spectrum'].to_pylist()))} {len(small.psms)}" in done.stdout


def test_mzidentml_proteins_have_organism_of_the_description(root):
    organisms = []
    for element in root.iterfind(".//m:DBSequence", NAMESPACE):
        terms = {term.get("accession"): term.get("value") for term in element.iterfind("m:cvParam", NAMESPACE)}
        organisms.append(terms.get("MS:1001469"))
        assert organisms[-1] == (terms.get("MS:1001088", "").partition(" OS=")[2] or None)
    assert None in organisms and "Homo sapiens" in organisms


PATTERN = re.compile(r"(?P<index>[0-9]+):(?P<score>[01][.][0-9]+(?:[Ee][+\\-]?[0-9]+)?):(?P<position>[0-9]+):(?P<passes>true|false)")
"""Pattern of MS:1002505, here with a single position."""


def phospho_sites(rows: list[dict]) -> list[dict]:
    """Return sites of the phosphorylated PSMs: the last possible ones, whereas the search may have others."""
    sites = []
    for row, psm in enumerate(rows):
        n = psm["modification_names"].count("Phospho")
        possible = [i for i, residue in enumerate(psm["sequence"], 1) if residue in "STY"]
        if n == 0 or psm["rank"] > 1 or psm["is_decoy"]:
            continue
        shares = [1.0] * len(possible) if n == len(possible) else [0.2 * n / (len(possible) - n)] * (len(possible) - n) + [0.8] * n
        for k, position in enumerate(possible[-n:]):
            starts = [start + position - 1 for start in psm["protein_starts"]]
            site = {name: psm[name] for name in ("peptide", "charge", "proteins")} | {"psm": row, "protein_positions": starts}
            site |= {"modification": "Phospho", "residue": psm["sequence"][position - 1], "position": position}
            site |= {"site_probability": shares[-1], "site_score": 1.0, "has_alternative": n < len(possible), "mixed_with": None}
            site |= {"localisation_q_value": (0.002, 0.2, float("nan"))[k] if n < len(possible) else None}
            sites.append(site | {"possible_positions": possible, "probabilities": shares})
    return sites


@pytest.fixture(scope="module")
def localised(small, tmp_path_factory) -> tuple[Path, list[dict]]:
    folder = tmp_path_factory.mktemp("localised")
    sites = phospho_sites(small.psms.to_pylist())
    pq.write_table(PSM_SITES.arrow({name: [site[name] for site in sites] for name in sites[0]}), folder / "psm_sites.parquet")
    return write(small, folder), sites


def test_mzidentml_with_localised_sites_is_valid(localised):
    path, _ = localised
    validate(path)
    root = etree.parse(path).getroot()
    test_mzidentml_terms_match_the_vocabulary(root)
    assert not root.findall(".//m:AdditionalSearchParams/m:cvParam[@accession='MS:1002495']", NAMESPACE)
    assert len(root.findall(".//m:AdditionalSearchParams/m:cvParam[@accession='MS:1002491']", NAMESPACE)) == 1


def test_mzidentml_without_sites_states_no_special_processing(root):
    assert len(root.findall(".//m:AdditionalSearchParams/m:cvParam[@accession='MS:1002495']", NAMESPACE)) == 1
    for accession in ("MS:1002491", "MS:1002504", "MS:1002507"):
        assert not root.findall(f".//m:cvParam[@accession='{accession}']", NAMESPACE)


@pytest.mark.filterwarnings(*LEFT_OPEN)
def test_mzidentml_has_probability_of_each_possible_site(small, localised):
    path, sites = localised
    psms = small.psms.to_pylist()
    expected, rates = defaultdict(dict), defaultdict(dict)
    for site in sites:
        number = psms[site["psm"]]["psm_id"]
        for position, share in zip(site["possible_positions"], site["probabilities"], strict=True):
            expected[number].setdefault(position, [share, False])
        expected[number][site["position"]][1] = True
        if site["localisation_q_value"] == site["localisation_q_value"] is not None:
            rates[number][site["position"]] = [site["localisation_q_value"], site["localisation_q_value"] <= 0.01]
    with mzid.read(str(path), retrieve_refs=True) as reader:
        items = {psm["psm_id"]: None for psm in psms}
        in_order = [item for result in reader for item in result["SpectrumIdentificationItem"]]
    numbers = re.findall(r'<SpectrumIdentificationItem id="SII_(\d+)"', path.read_text(encoding="utf-8"))
    items |= dict(zip(map(int, numbers), in_order, strict=True))
    moved = 0
    for number, item in items.items():
        values = [item.get(name, []) for name in ("modification site probability", "modification rescoring:false localization rate")]
        texts = [[value] if isinstance(value, str) else list(value) for value in values]
        written = [{}, {}]
        for target, texts_of_kind in zip(written, texts, strict=True):
            for text in texts_of_kind:
                value = PATTERN.fullmatch(text)
                modification = item["Modification"][int(value["index"]) - 1]
                assert modification["modification index"] == int(value["index"]) and modification["name"] == "Phospho"
                target[int(value["position"])] = [pytest.approx(float(value["score"]), abs=1e-6), value["passes"] == "true"]
                moved += value["passes"] == "true" and modification["location"] != int(value["position"])
        assert written == [expected.get(number, {}), rates.get(number, {})]
    assert moved > 5 and sum(map(len, expected.values())) > sum(map(len, rates.values())) > 10


def test_mzidentml_numbers_each_localised_modification(small, localised):
    """Two modifications of one name have different numbers, in the order of their sites."""
    path, sites = localised
    root = etree.parse(path).getroot()
    counts = defaultdict(list)
    for site in sites:
        counts[site["psm"]].append(site["position"])
    several = {psm: positions for psm, positions in counts.items() if len(positions) > 1}
    assert several
    for psm, positions in several.items():
        (item,) = root.iterfind(f".//m:SpectrumIdentificationItem[@id='SII_{small.psms['psm_id'][psm]}']", NAMESPACE)
        terms = item.iterfind("m:userParam[@name='modification site probability']", NAMESPACE)
        values = [PATTERN.fullmatch(term.get("value")) for term in terms]
        accepted = {int(value["position"]): int(value["index"]) for value in values if value["passes"] == "true"}
        assert sorted(accepted) == positions and list(accepted.values()) == sorted(set(accepted.values()))
