"""The shipped simulated sample equals the output of its script."""

from __future__ import annotations

import gzip

from installer.simulated_run import SIMULATED, simulate
from proteoscope import resources


def test_simulation_script_reproduces_the_shipped_sample_files() -> None:
    made = simulate(gzip.decompress(resources.path("samples", f"{SIMULATED}_proteins.fasta.gz").read_bytes()).decode())
    assert gzip.decompress(resources.path("samples", f"{SIMULATED}.mzML.gz").read_bytes()).decode() == made.run
    assert resources.path("samples", f"{SIMULATED}_design.tsv").read_text() == made.design
    assert resources.path("samples", f"{SIMULATED}_truth.tsv").read_text() == made.truth
