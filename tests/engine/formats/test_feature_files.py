"""Features of proteins as columns of an index are opened as written, and checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.arrays import Texts, read_only
from proteoscope.engine.formats import Proteins, read_proteins
from proteoscope.engine.formats.features import FEATURE_KINDS, FeatureRow, Features, open_features, write_features
from proteoscope.engine.peptides.protein_index import build_protein_index, open_protein_index
from proteoscope.engine.project.index_store import InvalidIndexError
from tests.engine.formats import entry_files

OFFSETS = np.array([0, 10, 10, 15])
ROWS = [[FeatureRow(0, 1, 10, "é"), FeatureRow(29, 3, 3, "A -> T")], [], [FeatureRow(6, 2, 5, "x" * 1000)]]


def content(features: Features) -> list[tuple[int, int, int, int, str]]:
    owner = np.repeat(np.arange(len(features.offsets) - 1), np.diff(features.offsets))
    columns = (owner.tolist(), features.kind.tolist(), features.first.tolist(), features.last.tolist(), features.texts.strings())
    return list(zip(*columns, strict=True))


def test_features_round_trip_and_can_be_selected_and_joined(tmp_path: Path) -> None:
    features = Features.from_rows(ROWS)
    expected = [(0, 0, 1, 10, "é"), (0, 29, 3, 3, "A -> T"), (2, 6, 2, 5, "x" * 300)]
    assert content(features) == expected
    write_features(tmp_path, features)
    opened = open_features(tmp_path, OFFSETS)
    assert opened is not None and content(opened) == expected
    assert content(features.take(np.array([2, 0]))) == [(0, *expected[2][1:]), (1, *expected[0][1:]), (1, *expected[1][1:])]
    joined = Features.joined([features.take(np.array([2])), Features.none(2), features])
    assert content(joined) == [(0, *expected[2][1:]), *((owner + 3, *rest) for owner, *rest in expected)]
    assert open_features(tmp_path / "elsewhere", OFFSETS) is None


CORRUPTED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "offsets": lambda column: column[::-1].copy(),
    "kind": lambda column: np.full_like(column, len(FEATURE_KINDS)),
    "first": lambda column: column - 1,
    "last": lambda column: column + 1,
    "text_bytes": lambda column: np.full_like(column, 0xFF),
    "text_offsets": lambda column: column[:-1].copy(),
}


@pytest.mark.parametrize("name", CORRUPTED)
def test_corrupt_feature_columns_are_rejected(tmp_path: Path, name: str) -> None:
    write_features(tmp_path, Features.from_rows(ROWS))
    path = tmp_path / f"feature_{name}.npy"
    np.save(path, CORRUPTED[name](np.load(path)))
    with pytest.raises(InvalidIndexError):
        open_features(tmp_path, OFFSETS)


def test_open_features_rejects_files_with_unknown_feature_kinds(tmp_path: Path) -> None:
    write_features(tmp_path, Features.from_rows(ROWS))
    path = tmp_path / "feature_kinds.json"
    path.write_text(json.dumps({"kinds": "something else"}))
    with pytest.raises(InvalidIndexError, match="feature kinds differ"):
        open_features(tmp_path, OFFSETS)


@pytest.mark.parametrize(("decoys", "prefix"), [("reverse", "DECOY_"), ("none", "DECOY_"), ("existing", "tr|")])
def test_protein_index_stores_features(tmp_path: Path, written: Callable[..., Path], decoys: str, prefix: str) -> None:
    proteins: Proteins = read_proteins([written(entry_files.SWISS_PROT, "database.dat")])
    contaminants = None if decoys == "existing" else read_proteins([written(">C\nACDEFGHIK\n", "contaminants.fasta")])
    cuts = read_only(np.zeros((26, 26), bool))
    build_protein_index(tmp_path, proteins, database="x", decoys=decoys, decoy_prefix=prefix, cleaves=cuts, contaminants=contaminants)
    index = open_protein_index(tmp_path)
    assert index.features is not None and len(index.features.offsets) == index.n_targets + 1
    assert [row[1:] for row in content(index.features)] == [row[1:] for row in content(proteins.features.take(np.array([0])))]  # type: ignore[union-attr]
    assert isinstance(index.features.texts, Texts) and index.peptide_bounds is None


def test_protein_index_stores_no_features_of_fasta(tmp_path: Path, written: Callable[..., Path]) -> None:
    proteins = read_proteins([written(entry_files.FASTA_OF_UNIPROT, "database.fasta")])
    cuts = read_only(np.zeros((26, 26), bool))
    build_protein_index(tmp_path, proteins, database="x", decoys="reverse", decoy_prefix="DECOY_", cleaves=cuts)
    assert open_protein_index(tmp_path).features is None and not list(tmp_path.glob("feature*"))
