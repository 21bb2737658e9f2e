"""`align` on GPUs, with and without the CPU, writes the same files as on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.execution.devices import gpus
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from tests.searching import align

pytestmark = pytest.mark.gpu


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Keep the packed databases and speeds of the test out of the user's cache."""
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def files(tmp_path):
    """Queries and a database with relatives, runs of W with scores beyond 16 bits, empty sequences and a very long sequence."""
    generator, residues = np.random.default_rng(1), list("ARNDCQEGHILKMFPSTWYVX")
    proteins = ["".join(generator.choice(residues, length)) for length in (*generator.integers(0, 900, 3000), 36_000)]
    runs = ["W" * length for length in (1, 200, 3000, 6500)]
    queries = [proteins[-1][400:900], *proteins[5:12], proteins[3][:40] + proteins[3][50:], runs[3], "", "K"]
    for name, sequences in (("queries", queries), ("database", proteins + runs)):
        (tmp_path / f"{name}.fasta").write_text("".join(f">{name}{k}\n{sequence}\n" for k, sequence in enumerate(sequences)))
    return tmp_path / "queries.fasta", tmp_path / "database.fasta"


@pytest.mark.parametrize("requested", ["cuda", "all"])
@pytest.mark.parametrize(("matrix", "gap_open", "gap_extend"), [("BLOSUM62", 11, 1), ("PAM250", 14, 2), ("BLOSUM45", 0, 3)])
def test_align_on_gpus_writes_the_same_files_as_on_cpu(own_cache, files, tmp_path, requested, matrix, gap_open, gap_extend):
    if not any(gpu.usable for gpu in gpus()):
        pytest.skip(f"no usable GPU: {gpus()[0].reason}")
    parameters = SequenceSearchParameters(matrix=matrix, gap_open=gap_open, gap_extend=gap_extend)
    for device in ("cpu", requested):
        summary = align(
            [files[0]], [files[1]], tmp_path / device / "hits.tsv", parameters, all_scores=tmp_path / device / "scores.npy", device=device
        )
    assert any(share.device.startswith("cuda") for share in summary.shares)
    for name in ("hits.tsv", "scores.npy"):
        assert (tmp_path / "cpu" / name).read_bytes() == (tmp_path / requested / name).read_bytes()
    scores = np.load(tmp_path / requested / "scores.npy")
    assert matrix != "BLOSUM62" or scores[9, -1] == 11 * 6500
