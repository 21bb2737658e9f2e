"""The unit in the description of a column is the unit of its values in files; the displayed unit is that of the header."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyteomics import mass, mzml

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.project import Project
from proteoscope.engine.results.columns import Column
from proteoscope.engine.searches import SEARCHES, search_of_kind
from proteoscope.engine.views.comparison_tables import _ITEMS
from tests.conftest import leave_advice_out

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
"""pyteomics uses psims, if installed, which leaves its vocabularies open."""

PROTON = 1.00727646688  # CODATA 2018, Da
TIMES = {"retention_time", "begin", "end"}
UNITS = {
    **dict.fromkeys(TIMES, ("s", "min")),
    **dict.fromkeys(("calculated_mass", "observed_mass", "mass_difference", "mass", "mass_shift"), ("Da", "Da")),
    **dict.fromkeys(
        (
            *("coverage", "identity", "query_coverage", "subject_coverage", "target_coverage", "same_fold_probability", "label_share"),
            *("share_unmodified", "mapped", "mapped_coverage", "covered", "exposure"),
        ),
        ("", "%"),
    ),
    **dict.fromkeys(("rmsd", "site_distance", "ligand_distance", "alpha_distance", "atom_distance"), ("Å", "Å")),
    "mass_error_ppm": ("ppm", "ppm"),
    "precursor_mz": ("Th", "Th"),
    "voltage": ("V", "V"),
    "width": ("s", "s"),
}
"""Unit of the values in files, and of displayed values, of all columns with a unit."""


def columns() -> list[Column]:
    """Return all columns with a unit."""
    stored = [column for search in SEARCHES for table in search.all_tables for column in table.by_name.values()]
    compared = [column for items in _ITEMS.values() for column in items]
    return [column for column in (*stored, *compared) if column.unit or column.has_own_unit]


def test_columns_have_the_listed_stored_and_shown_units() -> None:
    units = {(column.name, column.unit, column.shown_unit) for column in columns()}
    assert {name for name, _, _ in units} == set(UNITS)
    assert units == {(name, *UNITS[name]) for name, _, _ in units}


def test_column_header_and_description_state_the_units() -> None:
    for column in columns():
        if column.title:
            assert column.header == f"{column.title} ({column.shown_unit})"
        assert column.in_unit(90.0) == 90.0 * {("s", "min"): 1 / 60, ("", "%"): 100.0}.get((column.unit, column.shown_unit), 1.0)
        if column.unit != column.shown_unit:
            assert column.description.endswith("; in files in s" if column.unit else "; in files a fraction, from 0 to 1")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a project with runs of the sample spectra."""
    folder = tmp_path_factory.mktemp("units") / "p"
    with pytest.MonkeyPatch.context() as patched:
        leave_advice_out(patched)
        for kind in ("quantify", "cluster", "library", "modified"):  # those of quantify and modified identify first
            data = ("--data", "measured") if kind == "quantify" else ()
            assert main(["demo", kind, *data, "--out", str(folder), "--device", "cpu", "--threads", "2", "--quiet"]) == 0
    return folder


@pytest.fixture(scope="module")
def seconds() -> np.ndarray:
    """Return the times of all scans of the sample files as another program reads them, in seconds."""
    times = []
    for name in ("BSA1.mzML.gz", "BSA2.mzML.gz", "BSA3.mzML.gz"):
        with gzip.open(resources.path("samples", name)) as file, mzml.read(file, use_index=False) as scans:
            for scan in scans:
                time = scan["scanList"]["scan"][0]["scan start time"]
                times.append(float(time) * {"minute": 60.0, "second": 1.0}[time.unit_info])
    return np.array(times)


def test_stored_time_columns_are_in_seconds(project: Path, seconds: np.ndarray) -> None:
    n_columns = 0
    for run in Project.open(project).runs():
        for table in search_of_kind(run.kind).all_tables:
            for name in TIMES & table.by_name.keys():
                path = project / "results" / run.id / f"{table.name}.parquet"
                if not path.exists():
                    continue
                values = pq.read_table(path, columns=[name])[name].drop_null().to_numpy()
                values = values[np.isfinite(values)]
                if not len(values) or (run.kind == "library" and table.name == "references"):  # those of another file
                    continue
                assert table.by_name[name].unit == "s"
                nearest = np.abs(values[:, None] - seconds[None, :]).min(1)
                # Apices, and the bounds of traces, lie between scans.
                assert np.quantile(nearest, 0.9) < (5.0 if table.name == "ion_traces" else 0.01), (run.id, table.name, name)
                assert values.max() > seconds.max() / 60, "more than the same number of minutes"
                n_columns += 1
    assert n_columns >= 10


def test_exported_psm_values_have_the_described_units(project: Path, seconds: np.ndarray, tmp_path: Path) -> None:
    described = search_of_kind("identify").result_tables
    units = {column.name: column.unit for table in described if table.name == "psms" for column in table.by_name.values()}
    assert (units["retention_time"], units["observed_mass"], units["mass_error_ppm"]) == ("s", "Da", "ppm")
    assert main(["export", str(project), "--run", "identify-0001", "--format", "tsv", "--out", str(tmp_path)]) == 0
    with (tmp_path / "psms.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert rows
    plain = [row for row in rows if row["peptide"] == row["sequence"]]
    assert plain
    for row in rows:
        assert np.abs(seconds - float(row["retention_time"])).min() < 0.001
        charge = int(row["charge"])
        neutral = charge * (float(row["precursor_mz"]) - PROTON)
        assert float(row["observed_mass"]) == pytest.approx(neutral, abs=1e-4)
    for row in plain:
        assert float(row["calculated_mass"]) == pytest.approx(mass.fast_mass(row["sequence"]), abs=1e-4)
    rows_of_proteins = (tmp_path / "proteins.tsv").read_text(encoding="utf-8").splitlines()
    at = rows_of_proteins[0].split("\t").index("coverage")
    assert all(0 < float(line.split("\t")[at]) <= 1 for line in rows_of_proteins[1:]), "fractions"
