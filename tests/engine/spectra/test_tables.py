"""Tables of spectra are read back unchanged, and other content is rejected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope import resources
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.project import Project
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.spectra.tables import SPECTRA, read_spectra_table, spectra_table, write_spectra
from tests.engine.spectra.made import spectra

HELD = spectra([[(100.0, 1.0), (200.0, 2.0)], [], [(150.5, 3.0)]], [500.0, np.nan, 600.0], [4, 0, 8])


def test_real_spectra_round_trip_through_spectra_table(tmp_path: Path):
    held = read_spectra([resources.path("samples", "Ecoli_MS2_small.mzML.gz")])
    pq.write_table(spectra_table(held), tmp_path / "spectra.parquet", row_group_size=7)
    read = read_spectra_table(tmp_path / "spectra.parquet")
    assert not len(held.others.spectrum)
    for name, value in held.__dict__.items():
        if name == "others":
            continue
        other = getattr(read, name)
        if name == "files":
            value = held.file_names
        same = np.array_equal(value, other, equal_nan=value.dtype.kind == "f") if isinstance(value, np.ndarray) else value == other
        assert same, name


def test_spectra_table_round_trips_empty_and_missing_values(tmp_path: Path):
    pq.write_table(spectra_table(HELD), tmp_path / "spectra.parquet")
    read = read_spectra_table(tmp_path / "spectra.parquet")
    assert read.offsets.tolist() == [0, 2, 2, 3] and np.isnan(read.precursor_mz[1]) and read.charge_mask.tolist() == [4, 0, 8]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("mz", [[200.0, 100.0], [], [150.5]]),
        ("mz", [[100.0], [], [150.5]]),
        ("mz", [[100.0, np.nan], [], [150.5]]),
        ("mz", [1.0, 2.0, 3.0]),
        ("intensity", [[1.0, -2.0], [], [3.0]]),
        ("intensity", [[1.0, None], [], [3.0]]),
        ("mz", [None, [], [150.5]]),
        ("spectrum_id", ["a", None, "c"]),
        ("charge_mask", ["x", "y", "z"]),
        ("spectrum_file", ["a", None, "c"]),
    ],
)
def test_spectra_table_rejects_invalid_columns(column, values, tmp_path: Path):
    table = spectra_table(HELD)
    at = table.schema.get_field_index(column)
    pq.write_table(table.set_column(at, column, pa.array(values)), tmp_path / "spectra.parquet")
    with pytest.raises(InputError, match=r"spectra\.parquet"):
        read_spectra_table(tmp_path / "spectra.parquet")


@pytest.mark.parametrize(("peaks", "groups"), [(2, [4096, 904]), (64, [512] * 9 + [392]), (300, [256] * 19 + [136]), (0, [4096, 904])])
def test_row_groups_have_few_peaks_but_many_spectra(peaks: int, groups: list[int], tmp_path: Path):
    held = spectra([[(100.0 + i, 1.0) for i in range(peaks)]] * 5000, [500.0] * 5000, [4] * 5000)
    with Project.create_or_open(tmp_path).run("identify", {}, []) as run:
        write_spectra(run, held, Progress())
    path = run.written[0].path
    assert TableFile(path, SPECTRA).group_rows == groups
    assert np.array_equal(read_spectra_table(path).mz, held.mz)


def test_spectra_table_without_peaks_is_reported(tmp_path: Path):
    pq.write_table(spectra_table(HELD).drop_columns(["mz"]), tmp_path / "spectra.parquet")
    with pytest.raises(InputError, match="has no column mz"):
        read_spectra_table(tmp_path / "spectra.parquet")
    (tmp_path / "spectra.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(InputError):
        read_spectra_table(tmp_path / "spectra.parquet")
