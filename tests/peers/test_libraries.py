"""Written libraries, read by other programs: the same peptides, precursors and peaks."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from proteoscope.engine.chemistry.peptidoforms import parse
from proteoscope.engine.formats.libraries.writing import write_library
from proteoscope.engine.jobs.progress import Progress
from tests.engine.formats.libraries.written import entries
from tests.peers.test_openms import python_of

pytestmark = pytest.mark.peers


@pytest.mark.parametrize(
    ("program", "format", "name"),
    [
        ("matchms", "msp", "library.msp"),
        ("mzspeclib", "msp", "library.msp"),
        ("mzspeclib", "mzspeclib", "library.mzlib.txt"),
        ("mzspeclib", "blib", "library.blib"),
    ],
)
def test_other_programs_read_equal_spectra_from_libraries(program, format, name, tmp_path):
    # mzspeclib reads -1 in MSP, SpectraST's N-terminus, as the last residue.
    part = entries(60, 1, ends=format == "mzspeclib")
    write_library(tmp_path / name, iter([part]), format, Progress())
    script = Path(__file__).with_name("read_libraries.py")
    done = subprocess.run([python_of(program), script, program, tmp_path / name], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    spectra = json.loads(done.stdout.splitlines()[-1])
    assert len(spectra) == len(part)
    for i, (peptide, mz, intensity, precursor_mz) in enumerate(spectra):
        rows = slice(part.offsets[i], part.offsets[i + 1])
        assert re.sub(r"\[[^]]*\]|-", "", peptide) == f"{part.sequence[i]}/{part.charge[i]}"
        if program == "mzspeclib" and not (format == "msp" and i % 3 == 2):  # mzspeclib does not read the +8.0142 of this entry from MSP
            assert parse(peptide).mass == pytest.approx(part.mass[i], abs=1e-3)
        assert mz == pytest.approx(part.mz[rows].tolist(), abs=1e-9)
        assert intensity == pytest.approx(part.intensity[rows].tolist(), rel=1e-6)
        assert precursor_mz is None or precursor_mz == pytest.approx(part.precursor_mz[i], abs=6e-6)
