"""Areas of identified peptides in real runs compared with OpenMS's FeatureFinderIdentification for the same spectra."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.quantification.identified import identified, sources
from proteoscope.engine.searches import run_search
from tests.engine.quantification.synthetic_runs import table_of
from tests.peers.test_openms import python_of

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def areas(shared_data, tmp_path_factory) -> tuple[dict, dict]:
    """Areas by peptidoform, charge and file: ours, and those of OpenMS with a shape that may tail."""
    folder, files = tmp_path_factory.mktemp("bsa"), [shared_data / "spectra" / "bsa_ltq" / f"BSA{i}.mzML" for i in (1, 2, 3)]
    database, python = shared_data / "proteomes" / "18Protein_SoCe_Tr_detergents_trace.fasta", python_of("pyopenms")
    tolerances = {"precursor_tolerance": "10 ppm", "fragment_tolerance": "0.5 Da"}
    run_search("identify", {"spectra": files, "database": [database]}, project=folder / "p", device="cpu", **tolerances)
    run_search("quantify", {"project": [folder / "p"]}, device="cpu", normalisation="none")
    peptides = identified(sources(folder / "p", ()), 0.01, 0.01, uses_razor=True)
    matches, theirs = peptides.matches, {}
    script = Path(__file__).with_name("features_with_pyopenms.py")
    for number, file in enumerate(peptides.files):
        given = [
            {
                "peptide": as_openms(peptides.forms.peptide[matches.form[i]]),
                "charge": int(matches.charge[i]),
                "mz": float(peptides.forms.mass[matches.form[i]] / matches.charge[i] + PROTON_MASS),
                "time": float(matches.retention_time[i]),
            }
            for i in np.flatnonzero(matches.file == number).tolist()
        ]
        (folder / "given.json").write_text(json.dumps(given))
        command = [python, script, file.path, folder / "given.json", folder / "found.json", "asymmetric"]
        subprocess.run(command, check=True, capture_output=True)
        for feature in json.loads((folder / "found.json").read_text()):
            theirs[feature["peptide"], feature["charge"], Path(file.path).name] = feature["area"]
    rows = [row for row in table_of(folder / "p", "ion_traces") if row["area"]]
    ours = {(as_openms(row["peptide"]), row["charge"], row["file"]): row["area"] for row in rows}
    return ours, theirs


def as_openms(peptide: str) -> str:
    """Return a ProForma peptidoform in the notation of OpenMS."""
    return re.sub(r"\[([^\]]*)\]", r"(\1)", re.sub(r"^\[([^\]]*)\]-", r".(\1)", peptide))


def test_peak_areas_correlate_with_openms_for_as_many_peptides(areas):
    ours, theirs = areas
    both = sorted(set(ours) & set(theirs))
    assert len(both) > 50
    assert np.corrcoef(np.log([ours[key] for key in both]), np.log([theirs[key] for key in both]))[0, 1] >= 0.95
    assert len({key[0] for key in ours}) >= len({key[0] for key in theirs})


def test_area_ratios_between_runs_equal_openms_within_5_percent(areas):
    ours, theirs = areas
    both = set(ours) & set(theirs)
    for left, right in combinations(sorted({key[2] for key in both}), 2):
        shared = [key[:2] for key in both if key[2] == left and (*key[:2], right) in both]
        assert len(shared) > 10
        apart = [np.log(ours[*key, left] / ours[*key, right] / theirs[*key, left] * theirs[*key, right]) for key in shared]
        assert abs(np.median(apart)) < np.log(1.05)
