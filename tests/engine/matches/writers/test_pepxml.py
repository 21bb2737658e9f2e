"""pepXML export: equal to the tables when read by pyteomics."""

import math
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

import pytest
from pyteomics import mass, pepxml

from tests.engine.identification_tables import Identification, identification
from tests.engine.matches.exported import export

RESIDUES = mass.std_aa_mass
HYDROGEN = mass.calculate_mass(formula="H")
HYDROXYL = mass.calculate_mass(formula="OH")
NAMESPACE = "{http://regis-web.systemsbiology.net/pepXML}"


@pytest.fixture(scope="module")
def small() -> Identification:
    return identification()


@pytest.fixture(scope="module")
def path(small, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pepxml")
    database = ['/data/"odd" & <db>.fasta']
    (written,) = export(
        small.write(folder), "pepxml", folder / "x.pep.xml", small.parameters, spectra=small.spectra, databases=database, version="1.0"
    )
    return written


def test_pepxml_psms_equal_tables(small, path):
    expected = defaultdict(list)
    for row in small.psms.to_pylist():
        expected[row["spectrum_file"], row["spectrum"], row["charge"]].append(row)
    with pepxml.read(str(path)) as reader:
        queries = list(reader)
    assert len(queries) == len(expected)
    assert [query["index"] for query in queries] == list(range(1, len(queries) + 1))
    for query, rows in zip(queries, (expected[key] for key in sorted(expected)), strict=True):
        _check_query(query, rows)


def _check_query(query: dict, rows: list[dict]) -> None:
    first = rows[0]
    scan = first["scan"] if first["scan"] is not None else first["spectrum_index"] + 1
    stem = Path(first["spectrum_file"]).stem
    assert query["start_scan"] == query["end_scan"] == scan
    assert query["spectrum"] == f"{stem}.{scan:05d}.{scan:05d}.{first['charge']}"
    assert query["spectrumNativeID"] == first["spectrum_id"]
    assert query["assumed_charge"] == first["charge"]
    assert query["precursor_neutral_mass"] == pytest.approx(first["observed_mass"], abs=1e-6)
    assert query.get("retention_time_sec") == first["retention_time"]
    assert len(query["search_hit"]) == len(rows)
    for hit, row in zip(query["search_hit"], rows, strict=True):
        assert (hit["peptide"], hit["hit_rank"]) == (row["sequence"], row["rank"])
        assert hit["calc_neutral_pep_mass"] == pytest.approx(row["calculated_mass"], abs=1e-6)
        assert hit["massdiff"] == pytest.approx(row["observed_mass"] - row["calculated_mass"], abs=1e-6)
        assert (hit["num_matched_ions"], hit["tot_num_ions"]) == (row["matched_ions"], row["total_ions"])
        assert hit["num_missed_cleavages"] == row["missed_cleavages"]
        assert [protein["protein"] for protein in hit["proteins"]] == row["proteins"]
        assert [protein["peptide_prev_aa"] for protein in hit["proteins"]] == row["residues_before"]
        assert [protein["peptide_next_aa"] for protein in hit["proteins"]] == row["residues_after"]
        protein = f"{row['residues_before'][0]}{row['sequence']}{row['residues_after'][0]}"
        cuts = [re.fullmatch(r"-.|.-|[KR][^P]", bond) is not None for bond in (protein[:2], protein[-2:])]
        assert hit["proteins"][0]["num_tol_term"] == sum(cuts)
        _check_modifications(hit, row)
        for name, value in hit["search_score"].items():
            assert value == pytest.approx(row["xcorr" if name == "cross_correlation" else name], rel=1e-7)
        missing = {name for name in ("hyperscore", "delta_score", "ksdp", "q_value") if row[name] is None or math.isnan(row[name])}
        assert missing & set(hit["search_score"]) == set()


def _check_modifications(hit: dict, row: dict) -> None:
    """Compare masses of modified residues with the residue (or H, OH at the ends) plus all its modifications."""
    expected: dict[int, float] = defaultdict(float)
    for position, delta in zip(row["modification_positions"], row["modification_masses"], strict=True):
        expected[position] += delta
    last = len(row["sequence"]) + 1
    masses = {modification["position"]: modification["mass"] for modification in hit["modifications"]}
    assert masses == {
        position: pytest.approx(
            delta + {0: HYDROGEN, last: HYDROXYL}.get(position, 0) + RESIDUES.get((row["sequence"] + "-")[position - 1], 0), abs=2e-6
        )
        if position not in (0, last)
        else pytest.approx(delta + {0: HYDROGEN, last: HYDROXYL}[position], abs=2e-6)
        for position, delta in expected.items()
    }


def test_pepxml_describes_the_search(path):
    root = ElementTree.parse(path).getroot()
    summaries = root.findall(f"{NAMESPACE}msms_run_summary")
    assert [summary.get("base_name") for summary in summaries] == ["run 1 & 2", "späte"]
    assert [summary.get("raw_data") for summary in summaries] == [".mzML", ".mgf"]
    specificity = summaries[0].find(f"{NAMESPACE}sample_enzyme/{NAMESPACE}specificity")
    assert (specificity.get("sense"), specificity.get("cut"), specificity.get("no_cut")) == ("C", "KR", "P")
    search = summaries[0].find(f"{NAMESPACE}search_summary")
    assert search.find(f"{NAMESPACE}search_database").get("local_path") == '"odd" & <db>.fasta'
    modified = {element.get("aminoacid"): element for element in search.findall(f"{NAMESPACE}aminoacid_modification")}
    assert {residue: element.get("variable") for residue, element in modified.items()} == {
        **dict.fromkeys("MSTYK", "Y"),
        "C": "N",
    }
    assert float(modified["M"].get("mass")) == pytest.approx(RESIDUES["M"] + 15.994915, abs=2e-6)
    ends = {element.get("terminus"): element for element in search.findall(f"{NAMESPACE}terminal_modification")}
    assert ends["N"].get("protein_terminus") == "Y"
    assert float(ends["N"].get("mass")) == pytest.approx(HYDROGEN + 42.010565, abs=2e-6)
    parameters = {element.get("name"): element.get("value") for element in search.findall(f"{NAMESPACE}parameter")}
    assert parameters["precursor_tolerance"] == "10 ppm"
    assert parameters["second_pass"] == "false"


def test_pepxml_without_psms_is_readable(tmp_path):
    empty = identification(0)
    for parameters, spectra in (({}, ()), (empty.parameters, empty.spectra)):
        export(empty.write(tmp_path), "pepxml", tmp_path / "x.pep.xml", parameters, spectra=spectra)
        with pepxml.read(str(tmp_path / "x.pep.xml"), use_index=False) as reader:
            assert list(reader) == []


@pytest.mark.parametrize("enzyme", ["Asp-N", "no cleavage", "unspecific cleavage", "Formic_acid"])
def test_pepxml_describes_any_enzyme(small, tmp_path, enzyme):
    parameters = {**small.parameters, "enzyme": enzyme, "specificity": "semi-specific"}
    export(small.write(tmp_path), "pepxml", tmp_path / "x.pep.xml", parameters)
    root = ElementTree.parse(tmp_path / "x.pep.xml").getroot()
    assert root.find(f".//{NAMESPACE}sample_enzyme").get("name") == enzyme
    assert root.find(f".//{NAMESPACE}specificity") is not None


@pytest.mark.peers
@pytest.mark.skipif("PROTEOSCOPE_PEER_PYTHON" not in os.environ, reason="PROTEOSCOPE_PEER_PYTHON names no Python with pyopenms")
def test_openms_reads_all_psms_of_pepxml(small, path):
    script = (
        "import sys, pyopenms as o; runs, spectra = [], o.PeptideIdentificationList();"
        "o.PepXMLFile().load(sys.argv[1], runs, spectra); print('READ', len(runs), spectra.size())"
    )
    done = subprocess.run([os.environ["PROTEOSCOPE_PEER_PYTHON"], "-c", script, str(path)], check=True, capture_output=True, text=True)
    n_queries = len({(row["spectrum"], row["charge"]) for row in small.psms.to_pylist()})
    assert f"READ 2 {n_queries}" in done.stdout
