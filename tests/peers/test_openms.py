"""Results of OpenMS, made during the test by the program: each match compared with its own value, read by other means."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from proteoscope.engine.project import Project
from tests.peers.peer_programs import peers_folder
from tests.searching import import_results

pytestmark = pytest.mark.peers
SAMPLE = 100


def python_of(module: str) -> Path:
    """Return the peers' Python if it has a module."""
    python = peers_folder() / "python" / "bin" / "python"
    if not python.exists() or subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode:
        pytest.skip(f"{module} is not there; tests/peers/install.sh fetches it")
    return python


def imported(results: list[Path], spectra: Path, folder: Path) -> list[dict]:
    import_results(results, [spectra], folder)
    opened = Project.open(folder)
    return pq.read_table(opened.table("psms", opened.latest("import"))).to_pylist()


def sampled(rows: list) -> list:
    return random.Random(3).sample(rows, min(SAMPLE, len(rows)))


@pytest.fixture(scope="module")
def openms(shared_data, tmp_path_factory) -> tuple[Path, Path]:
    """A run, and the folder with OpenMS's results."""
    made = tmp_path_factory.mktemp("openms")
    spectra = shared_data / "spectra" / "SmallCalibratible_Yeast.mzML"
    database = shared_data / "proteomes" / "yeast_2021_04_reviewed_UPS.fasta"
    script = Path(__file__).with_name("search_with_pyopenms.py")
    subprocess.run([python_of("pyopenms"), script, spectra, database, made], check=True, capture_output=True)
    return spectra, made


@pytest.mark.parametrize("suffix", ["idXML", "mzid", "mzTab"])
def test_import_of_openms_has_each_match(openms, tmp_path, suffix):
    spectra, made = openms
    expected = json.loads((made / "openms.json").read_text())
    rows = imported([made / f"openms.{suffix}"], spectra, tmp_path / "p")
    assert len(rows) == len(expected)
    by_match = {(row["spectrum_id"], row["charge"], row["sequence"]): row for row in rows}
    for psm in sampled(expected):
        row = by_match[psm["spectrum"], psm["charge"], psm["sequence"]]
        placed = [list(pair) for pair in zip(row["modification_positions"], row["modification_names"], strict=True)]
        # In mzIdentML OpenMS calls a match of target and decoy a decoy.
        assert placed == psm["modifications"] and row["is_decoy"] == (
            psm["kind"] == "decoy" or (psm["kind"], suffix) == ("target+decoy", "mzid")
        )
        assert row["q_value"] == pytest.approx(psm["q_value"], abs=1e-6)
