"""Results of Comet, mokapot and X!Tandem, made during the test by the programs, compared match by match with their files."""

from __future__ import annotations

import csv
import os
import random
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from pyteomics import pepxml

from proteoscope.engine.project import Project
from tests.peers.peer_datasets import PPM, with_reversed_decoys
from tests.peers.peer_programs import COMET_PARAMETERS, peers_folder
from tests.searching import import_results

pytestmark = pytest.mark.peers
SAMPLE = 100
RUN = "QC_Shew_18_02_Excerpt.mzXML"


@pytest.fixture(scope="module")
def folder(shared_data, tmp_path_factory) -> Path:
    """A run, its database with reversed decoys, and the results of Comet and X!Tandem."""
    binaries = peers_folder() / "debian" / "usr" / "bin"
    if not (binaries / "comet-ms").exists():
        pytest.skip("Comet and X!Tandem are not there; tests/peers/install.sh fetches them")
    made = tmp_path_factory.mktemp("peers")
    source = shared_data / "spectra" / "qc_shew_qe"
    (made / RUN).write_bytes((source / RUN).read_bytes())
    with_reversed_decoys(next(source.glob("*.fasta")), made / "database.fasta")
    parameters = COMET_PARAMETERS.format(
        version="2019.01 rev. 5",
        database=made / "database.fasta",
        threads=2,
        isotope_errors=1,
        precursor=10,
        precursor_unit=2,
        bin=0.02,
        offset=0.0,
        theoretical=0,
    )
    for name in ("pepxmlfile", "percolatorfile"):
        parameters = parameters.replace(f"output_{name} = 0", f"output_{name} = 1")
    (made / "comet.params").write_text(parameters.replace("num_output_lines = 1", "num_output_lines = 3"))
    libraries = {**os.environ, "LD_LIBRARY_PATH": str(peers_folder() / "debian" / "usr" / "lib")}
    subprocess.run([binaries / "comet-ms", "-Pcomet.params", RUN], cwd=made, env=libraries, check=True, capture_output=True)
    settings = {
        "list path, taxonomy information": "taxonomy.xml",
        "protein, taxon": "all",
        "spectrum, path": RUN,
        "output, path": "output.xml",
        "output, path hashing": "no",
        "output, results": "all",
        "output, maximum valid expectation value": "100",
        "output, proteins": "yes",
        "output, spectra": "yes",
        "spectrum, fragment monoisotopic mass error": "20",
        "spectrum, parent monoisotopic mass error plus": "10",
        "spectrum, fragment monoisotopic mass error units": PPM,
        "spectrum, parent monoisotopic mass error minus": "10",
        "spectrum, parent monoisotopic mass error units": PPM,
        "residue, modification mass": "57.021464@C",
        "residue, potential modification mass": "15.994915@M",
        "protein, cleavage site": "[RK]|{P}",
        "refine": "no",
        "spectrum, use noise suppression": "no",
        "scoring, maximum missed cleavage sites": "2",
    }
    notes = "".join(f'<note type="input" label="{name}">{value}</note>\n' for name, value in settings.items())
    (made / "input.xml").write_text(f'<?xml version="1.0"?>\n<bioml>\n{notes}</bioml>\n')
    taxon = f'<taxon label="all"><file format="peptide" URL="{made / "database.fasta"}"/></taxon>'
    (made / "taxonomy.xml").write_text(f'<?xml version="1.0"?>\n<bioml>{taxon}</bioml>\n')
    subprocess.run([binaries / "tandem", "input.xml"], cwd=made, check=True, capture_output=True)
    return made


def rows_of(results: Path | list[Path], folder: Path, tmp_path: Path) -> list[dict]:
    import_results([results] if isinstance(results, Path) else results, [folder / RUN], tmp_path / "p", [folder / "database.fasta"])
    opened = Project.open(tmp_path / "p")
    return pq.read_table(opened.table("psms", opened.latest("import"))).to_pylist()


def sampled(rows: list) -> list:
    return random.Random(3).sample(rows, SAMPLE)


def test_import_of_comet_text_has_each_match(folder, tmp_path):
    path = folder / RUN.replace(".mzXML", ".txt")
    with path.open() as file:
        next(file)
        table = list(csv.DictReader(file, delimiter="\t"))
    expected = {(int(row["scan"]), int(row["charge"]), row["modified_peptide"][2:-2]): row for row in table}
    rows = rows_of(path, folder, tmp_path)
    assert len(rows) == len(table) == len(expected)
    for row in sampled(rows):
        # Comet marks only variable modifications.
        plain = row["peptide"].replace("[Carbamidomethyl]", "").replace("[Oxidation]", "[15.9949]")
        record = expected[row["scan"], row["charge"], plain]
        assert row["score_e_value"] == pytest.approx(float(record["e-value"])) and row["score_xcorr"] == pytest.approx(
            float(record["xcorr"])
        )
        assert row["calculated_mass"] == pytest.approx(float(record["calc_neutral_mass"]), abs=1e-3)
        assert row["proteins"] == record["protein"].split(",") and row["is_decoy"] == record["protein"].startswith("DECOY_")
        assert row["residues_before"][0] == record["prev_aa"] and row["residues_after"][0] == record["next_aa"]
        assert row["sequence"].count("C") == row["peptide"].count("[Carbamidomethyl]")


def test_import_of_comet_pepxml_and_pin_equals_text(folder, tmp_path):
    stem = RUN.replace(".mzXML", "")
    hits = []
    for name in (f"{stem}.txt", f"{stem}.pep.xml", f"{stem}.pin"):
        rows = rows_of(folder / name, folder, tmp_path / name)
        hits.append({(row["scan"], row["charge"], row["peptide"].replace("[Carbamidomethyl]", ""), tuple(row["proteins"])) for row in rows})
    # Comet's pin does not have fixed modifications, like MaxQuant.
    assert hits[0] == hits[1] == hits[2]


def test_import_of_comet_pepxml_equals_pyteomics(folder, tmp_path):
    path = folder / RUN.replace(".mzXML", ".pep.xml")
    with pepxml.read(str(path)) as reader:
        expected = [(query["start_scan"], query["assumed_charge"], hit) for query in reader for hit in query.get("search_hit", ())]
    rows = rows_of(path, folder, tmp_path)
    assert len(rows) == len(expected)
    names = {"Oxidation": 147.0354, "Carbamidomethyl": 160.0306}
    by_match = {}
    for row in rows:
        places = zip(row["modification_positions"], (names[name] for name in row["modification_names"]), strict=True)
        by_match[row["scan"], row["charge"], row["sequence"], tuple(places)] = row
    for scan, charge, hit in sampled(expected):
        places = tuple((modification["position"], round(modification["mass"], 4)) for modification in hit["modifications"])
        row = by_match[scan, charge, hit["peptide"], places]
        assert row["score_xcorr"] == pytest.approx(hit["search_score"]["xcorr"])
        assert row["score_e_value"] == pytest.approx(hit["search_score"]["expect"])
        assert row["proteins"] == [protein["protein"] for protein in hit["proteins"]]


def test_import_of_mokapot_tables_has_each_match(folder, tmp_path):
    program = peers_folder() / "mokapot" / "bin" / "mokapot"
    if not program.exists():
        pytest.skip("mokapot is not there; tests/peers/install.sh fetches it")
    pin = folder / RUN.replace(".mzXML", ".pin")
    # With few spectra, each third must have some below the limit.
    limits = ["--train_fdr", "0.05", "--test_fdr", "0.05", "--seed", "2"]
    subprocess.run([program, "--keep_decoys", *limits, "--dest_dir", tmp_path, pin], check=True, capture_output=True)
    tables = [tmp_path / "mokapot.psms.txt", tmp_path / "mokapot.decoy.psms.txt"]
    expected = {}
    for path in tables:
        with path.open() as file:
            expected |= {row["SpecId"]: row for row in csv.DictReader(file, delimiter="\t", restkey="more proteins")}
    by_match = {(int(row["ScanNr"]), row["Peptide"][2:-2]): row for row in expected.values()}
    rows = rows_of(tables, folder, tmp_path)
    assert len(rows) == len(expected) == len(by_match) > 500
    assert sum(row["q_value"] <= 0.01 and not row["is_decoy"] for row in rows) == sum(
        float(row["mokapot q-value"]) <= 0.01 and row["Label"] == "True" for row in expected.values()
    )
    for row in sampled(rows):
        # Comet marks only variable modifications.
        plain = row["peptide"].replace("[Carbamidomethyl]", "").replace("[Oxidation]", "[15.9949]")
        record = by_match[row["scan"], plain]
        assert row["charge"] == int(record["SpecId"].split("_")[-2]) and row["is_decoy"] == (record["Label"] == "False")
        assert row["q_value"] == pytest.approx(float(record["mokapot q-value"]))
        assert row["posterior_error_probability"] == pytest.approx(float(record["mokapot PEP"]))
        assert row["score_mokapot"] == pytest.approx(float(record["mokapot score"]))
        assert row["proteins"] == [*record["Proteins"].split("\t"), *record.get("more proteins", ())]


def test_import_of_x_tandem_xml_has_each_match(folder, tmp_path):
    expected = {}
    for _, group in ElementTree.iterparse(folder / "output.xml"):
        if group.tag == "group" and group.get("type") == "model":
            for protein in group.iter("protein"):
                for domain in protein.iter("domain"):
                    placed = frozenset(
                        (int(residue.get("at")) - int(domain.get("start")) + 1, f"{float(residue.get('modified')):.1f}")
                        for residue in domain.iter("aa")
                    )
                    key = int(group.get("id")), domain.get("seq"), placed
                    expected.setdefault(key, (group, domain, []))[2].append(protein.get("label").split()[0])
    rows = rows_of(folder / "output.xml", folder, tmp_path)
    assert len(rows) == len(expected)
    for row in sampled(rows):
        places = zip(row["modification_positions"], row["modification_masses"], strict=True)
        group, domain, proteins = expected[row["scan"], row["sequence"], frozenset((place, f"{mass:.1f}") for place, mass in places)]
        assert row["charge"] == int(group.get("z")) and row["score_hyperscore"] == pytest.approx(float(domain.get("hyperscore")))
        assert row["score_e_value"] == pytest.approx(float(domain.get("expect")))
        assert row["calculated_mass"] + 1.00728 == pytest.approx(float(domain.get("mh")), abs=2e-3)
        assert row["proteins"] == list(dict.fromkeys(proteins))
