"""`reads` writes the same bytes on the CPU, on the GPU and on both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from tests.searching import align_reads
from tests.shim.read_inputs import damaged_reads

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Write references and reads."""
    folder = tmp_path_factory.mktemp("reads")
    texts, patterns = damaged_reads(3000, 46, most=300)
    residues, paths = np.frombuffer(b"ACGT", np.uint8), (folder / "texts.fasta", folder / "reads.fasta")
    for path, every in zip(paths, (texts, patterns), strict=True):
        lines = [f">s{k}\n{residues[np.append(codes, [0, 1, 2])].tobytes().decode()}\n" for k, codes in enumerate(every)]
        path.write_text("".join(lines))
    return paths


@pytest.mark.parametrize("mode", ["prefix", "within", "local"])
def test_align_reads_writes_the_same_table_on_cpu_gpu_and_both(number, files, mode, tmp_path):
    written = []
    for device, threads in (("cpu", 2), (f"cuda:{number}", 2), ("all", 4)):
        messages: list[str] = []
        out = tmp_path / f"{threads}-{device.replace(':', '')}.tsv"
        align_reads(
            *files,
            out,
            ReadAlignmentParameters.checked({"mode": mode}),
            pairs=True,
            device=device,
            threads=threads,
            progress=Progress(lambda event, log=messages: log.append(event.message)),  # type: ignore[misc]
        )
        assert not [text for text in messages if "elsewhere" in text], messages
        written.append(out.read_bytes())
    assert len(written[0].splitlines()) == 3001
    assert written[1] == written[0]
    assert written[2] == written[0]
