"""Counts of an identification, compared with plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from proteoscope.engine.statistics.target_decoy import false_share_interval
from proteoscope.engine.views.identification import accepted_counts
from proteoscope.engine.views.tables import ResultTables
from tests.engine.identification_tables import Identification, identification


def accepted(rows: list[dict[str, Any]], q_value: float = 0.01) -> list[dict[str, Any]]:
    return [row for row in rows if row["q_value"] <= q_value and not row["is_decoy"]]


@pytest.mark.parametrize("fdr", [0.0, 0.001, 0.01, 0.3, 1.0])
def test_accepted_counts_equal_targets_and_decoys_of_tables(tmp_path: Path, fdr: float) -> None:
    results = identification(n_spectra=150)
    # Decoys and targets have similar q-values, as in a search.
    random = np.random.default_rng(5)

    def mixed(table: pa.Table) -> pa.Table:
        return table.set_column(table.schema.get_field_index("q_value"), "q_value", pa.array(10.0 ** random.uniform(-4, 0, len(table))))

    psms, peptides, proteins = mixed(results.psms), mixed(results.peptides), mixed(results.proteins)
    Identification(psms, peptides, proteins, results.database, results.spectra).write(tmp_path)
    tables = ResultTables({name: tmp_path / f"{name}.parquet" for name in ("psms", "peptides", "proteins")})
    counts = accepted_counts(tables.source("psms"), fdr)
    tables.close()
    for count, rows in (
        (counts.psms, [row for row in psms.to_pylist() if row["rank"] == 1]),
        (counts.peptides, peptides.to_pylist()),
        (counts.proteins, proteins.to_pylist()),
    ):
        passing = [row["is_decoy"] for row in rows if row["q_value"] <= fdr]
        assert (count.number, count.certainty.decoys) == (passing.count(False), passing.count(True))
        assert (count.certainty.low, count.certainty.high) == false_share_interval(count.number, count.certainty.decoys)
    assert counts.sequences == len({row["sequence"] for row in accepted(peptides.to_pylist(), fdr)})
