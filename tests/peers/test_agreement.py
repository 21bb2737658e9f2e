"""Comparison with Comet and X!Tandem on real runs: the same peptides, and no foreign ones. Needs tests/peers/install.sh."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers.peer_datasets import DATASETS, EIGHTEEN_PROTEINS, read_fasta
from tests.peers.peer_figures import accepted, agreement, entrapment
from tests.peers.peer_programs import installed, run_peer, run_proteoscope

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(
        not (installed("comet") and installed("xtandem")),
        reason="Comet and X!Tandem are not installed; run bash tests/peers/install.sh",
    ),
]


@pytest.mark.parametrize("name", ["qc_shew", "metaproteome"])
def test_spectra_accepted_by_all_programs_have_equal_peptides(name: str, shared_data: Path, tmp_path: Path) -> None:
    dataset = DATASETS[name]
    ours = accepted(run_proteoscope(dataset, shared_data, tmp_path / "project", threads=2).matches)
    theirs = [accepted(run_peer(program, dataset, shared_data, threads=2).matches) for program in ("comet", "xtandem")]
    same, common = agreement(ours, *theirs)
    assert common >= 0.8 * min(map(len, theirs))
    assert same >= 0.99 * common


@pytest.mark.parametrize("name", ["entrapment_shew", "entrapment_yeast"])
def test_entrapment_fraction_is_about_1_percent_at_1_percent_fdr(name: str, shared_data: Path, tmp_path: Path) -> None:
    dataset = DATASETS[name]
    ours = accepted(run_proteoscope(dataset, shared_data, tmp_path / "project", threads=2).matches)
    proteome, database, eighteen_proteins = (
        read_fasta(shared_data / path) for path in (dataset.proteome, dataset.database, EIGHTEEN_PROTEINS)
    )
    result = entrapment(ours, proteome, database, eighteen_proteins)
    assert result.accepted > 0
    # One foreign match above 1.5 % is within chance for such short lists.
    assert result.foreign <= 0.015 * result.accepted + 1
