"""Exports of an identification and libraries, read and validated by the programs that they are written for."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from proteoscope.engine.formats.libraries.writing import write_library
from proteoscope.engine.jobs.progress import Progress
from tests.engine.formats.libraries.written import entries
from tests.engine.identification_tables import Identification, identification
from tests.engine.matches.exported import export
from tests.peers.test_openms import python_of

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def small() -> Identification:
    """Tables with a modification of an N-terminal residue, and the charge flags that the program learns from."""
    made = identification()
    rows = made.psms.to_pylist()
    rows[0] |= {
        "sequence": "QSAMPLEK",
        "peptide": "Q[Gln->pyro-Glu]SAMPLEK",
        "modification_positions": [1],
        "modification_masses": [-17.026549],
        "modification_names": ["Gln->pyro-Glu"],
        "modification_unimod": [28],
    }
    psms = pa.Table.from_pylist(rows, made.psms.schema)
    for name, is_so in (("2", lambda z: z == 2), ("3", lambda z: z == 3), ("4_or_more", lambda z: z >= 4)):
        psms = psms.append_column(f"feature_charge_{name}", pa.array([float(is_so(row["charge"])) for row in rows]))
    return Identification(**{**made.__dict__, "psms": psms})


def exported(identification: Identification, format: str, path: Path) -> Path:
    export(
        identification.write(path.parent),
        format,  # type: ignore[arg-type]
        path,
        identification.parameters,
        spectra=identification.spectra,
        databases=["/data/db.fasta"],
        version="1.0",
    )
    return path


@pytest.mark.parametrize(("format", "name"), [("mzid", "x.mzid"), ("pepxml", "x.pep.xml"), ("pin", "x.pin")])
def test_psm_utils_reads_peptides_scores_and_decoys_of_exports(small, tmp_path, format, name):
    path = exported(small, format, tmp_path / name)
    script = Path(__file__).with_name("read_identifications.py")
    command = [python_of("psm_utils"), script, {"pin": "percolator"}.get(format, format), path]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    actual = json.loads(done.stdout.splitlines()[-1])
    rows = small.psms.to_pylist()
    if format == "pin":
        named = {f"{Path(row['spectrum_file']).name}_{row['spectrum']}_{row['charge']}_{row['rank']}": row for row in rows}
        pairs = [(row, named[row[0]]) for row in actual]
    else:
        rows.sort(
            key=lambda row: (row["spectrum_file"], row["spectrum"], row["rank"] if format == "mzid" else (row["charge"], row["rank"]))
        )
        pairs = list(zip(actual, sorted(rows, key=lambda row: _order(row, format)), strict=True))
    assert len(actual) == len(rows)
    for (_, peptidoform, charge, is_decoy, q_value, score, proteins, is_decoy_by_name), row in pairs:
        assert charge == row["charge"] and peptidoform.endswith(f"/{charge}")
        assert is_decoy_by_name == row["is_decoy"] and proteins == row["proteins"]
        if format == "pepxml":  # psm_utils reads neither decoys nor q-values of it
            assert score == pytest.approx(row["score"], rel=1e-6)
        else:
            assert is_decoy == row["is_decoy"]
        if format == "mzid":
            assert q_value == pytest.approx(row["q_value"], rel=1e-6)


def _order(row: dict, format: str) -> tuple:
    by = (row["rank"], row["charge"]) if format == "mzid" else (row["charge"], row["rank"])
    return (row["spectrum_file"], row["spectrum"], *by, row["psm_id"])


def test_openms_reads_terminal_modifications_from_mzidentml(small, tmp_path):
    path = exported(small, "mzid", tmp_path / "x.mzid")
    script = (
        "import sys, json, pyopenms as o; runs, spectra = [], o.PeptideIdentificationList();"
        "o.MzIdentMLFile().load(sys.argv[1], runs, spectra);"
        "print(json.dumps([hit.getSequence().toString() for i in range(spectra.size()) for hit in spectra[i].getHits()]))"
    )
    done = subprocess.run([python_of("pyopenms"), "-c", script, path], check=True, capture_output=True, text=True)
    peptides = [peptide for peptide in json.loads(done.stdout.splitlines()[-1]) if "QSAMPLEK" in peptide]
    assert peptides == [".(Gln->pyro-Glu)QSAMPLEK"]


def test_matchms_reads_precursors_and_charges_of_msp(tmp_path):
    part = entries(30, 4)
    write_library(tmp_path / "x.msp", iter([part]), "msp", Progress())
    script = (
        "import sys, json; from matchms.importing import load_from_msp;"
        "print(json.dumps([(one.get('precursor_mz'), one.get('charge')) for one in load_from_msp(sys.argv[1])]))"
    )
    done = subprocess.run([python_of("matchms"), "-c", script, tmp_path / "x.msp"], check=True, capture_output=True, text=True)
    mz, charge = zip(*json.loads(done.stdout.splitlines()[-1]), strict=True)
    assert mz == pytest.approx(part.precursor_mz, abs=6e-6) and list(charge) == part.charge.tolist()


@pytest.mark.parametrize("origin", ["best", "merged", "predicted"])
def test_mzspeclib_accepts_written_libraries(tmp_path, origin):
    write_library(tmp_path / "x.mzlib.txt", iter([entries(30, 4, origin=origin)]), "mzspeclib", Progress())
    command = [python_of("mzspeclib"), "-m", "mzspeclib.tools.cli", "validate", tmp_path / "x.mzlib.txt"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "30/30" in done.stdout + done.stderr or "27/30" in done.stdout + done.stderr
    assert "failed to validate" not in done.stdout + done.stderr
