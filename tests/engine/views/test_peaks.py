"""Reading of the stored peaks of a run by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.views.peaks import SpectraReader


@pytest.mark.parametrize("row_group_size", [7, 1000])
def test_spectra_reader_returns_peaks_of_each_row(tmp_path: Path, row_group_size: int) -> None:
    random = np.random.default_rng(2)
    lists = [np.sort(random.uniform(100, 1000, size)).tolist() for size in random.integers(0, 60, 40)]
    lists[11] = lists[11][::-1]
    intensities = [[mz / 10 for mz in values] for values in lists]
    table = pa.table({"mz": pa.array(lists, pa.large_list(pa.float64())), "intensity": pa.array(intensities, pa.list_(pa.float32()))})
    path = tmp_path / "spectra.parquet"
    pq.write_table(table, path, row_group_size=row_group_size)
    reader = SpectraReader(path)
    assert len(reader) == 40
    for row in [*range(40), 3, 39, 11]:
        peaks = reader.peaks(row)
        assert peaks.mz.tolist() == sorted(lists[row])
        assert peaks.intensity == pytest.approx(np.array(sorted(lists[row])) / 10, rel=1e-6)
    with pytest.raises(InputError, match="has no spectrum 40"):
        reader.peaks(40)
    reader.close()


def test_spectra_reader_error_names_the_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "spectra.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match=r"spectra\.parquet"):
        SpectraReader(path)
    pq.write_table(pa.table({"spectrum": [1]}), path)
    with pytest.raises(InputError, match="mz"):
        SpectraReader(path)
