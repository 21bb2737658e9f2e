"""Table of a run's spectra, and chromatograms, compared with plain Python on real files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyteomics import mzml

from proteoscope import resources
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import InputError, ProteoscopeError
from proteoscope.engine.formats.ms1_spectra import Ms1Spectra, read_ms1_spectra
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.project import Project
from proteoscope.engine.spectra.tables import spectra_table
from proteoscope.engine.views.chromatograms import base_peaks, extracted, total_ions
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.spectrum_list import (
    SPECTRUM_LIST,
    SpectrumFilter,
    open_spectrum_list,
    plain_spectrum,
    read_spectrum_map,
    spectrum_chromatogram,
    spectrum_conditions,
)
from tests.engine.identification_tables import Identification, identification
from tests.engine.spectra.made import spectra
from tests.engine.views.result_projects import PARAMETERS, project_with_results

N = 40


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    random = np.random.default_rng(4)
    sizes = random.integers(0, 30, N).tolist()
    columns = [(np.sort(random.uniform(100, 900, n)).tolist(), random.lognormal(3, 1, n).tolist()) for n in sizes]
    peaks = [list(zip(*columns_of_spectrum, strict=True)) for columns_of_spectrum in columns]
    stored = spectra(peaks, random.uniform(400, 900, N).tolist(), [4 + 8 * (i % 2) for i in range(N)])
    time = np.where(np.arange(N) == 9, np.nan, random.uniform(0, 600, N))
    table = spectra_table(replace(stored, scan=np.arange(100, 100 + N), retention_time=time))
    results = without_rate(identification(n_spectra=30))
    created = Project.create_or_open(tmp_path_factory.mktemp("list") / "p")
    with created.run("identify", PARAMETERS) as run:
        for name in ("psms", "peptides", "proteins"):
            run.write_table(name, getattr(results, name))
        run.write_table("spectra", table)
    return created


def without_rate(results: Identification) -> Identification:
    """Return the identification without the q-value of one accepted match, whose class is too small for an error rate."""
    psms = results.psms.to_pylist()
    row = next(i for i, psm in enumerate(psms) if psm["rank"] == 1 and not psm["is_decoy"] and psm["q_value"] <= 0.01)
    rates = [None if i == row else psm["q_value"] for i, psm in enumerate(psms)]
    place = results.psms.column_names.index("q_value")
    return replace(results, psms=results.psms.set_column(place, "q_value", pa.array(rates, pa.float64())))


def by_definition(project: Project) -> list[dict]:
    psms = pq.read_table(project.table("psms")).to_pylist()
    rows = []
    for at, row in enumerate(pq.read_table(project.table("spectra")).to_pylist()):
        candidates = [(psm["rank"] * 2 + psm["is_decoy"], i) for i, psm in enumerate(psms) if psm["spectrum"] == at]
        best = psms[min(candidates)[1]] if candidates else None
        is_rated = best is not None and best["rank"] == 1 and best["q_value"] is not None
        is_identified = is_rated and not best["is_decoy"] and best["q_value"] <= 0.01
        top = int(np.argmax(row["intensity"])) if row["mz"] else None
        rows.append(
            {
                "scan": row["scan"],
                "retention_time": row["retention_time"],
                "precursor_mz": row["precursor_mz"],
                "charges": ", ".join(str(z) for z in range(1, 32) if row["charge_mask"] >> z & 1),
                "n_peaks": len(row["mz"]),
                "total_ion_current": pytest.approx(sum(row["intensity"])),
                "base_peak_mz": None if top is None else row["mz"][top],
                "base_peak_intensity": 0 if top is None else row["intensity"][top],
                "is_identified": is_identified,
                "peptide": best["peptide"] if best and is_identified else None,
                "q_value": best["q_value"] if best else None,
                "spectrum_file": row["spectrum_file"],
                "spectrum_id": row["spectrum_id"],
                "psm": min(candidates)[1] if candidates else None,
            }
        )
    return rows


@pytest.mark.parametrize("maximum_in_memory", [N, 0])
def test_spectrum_list_equals_brute_force(project: Project, maximum_in_memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test the list in memory and read from the file."""
    monkeypatch.setattr("proteoscope.engine.views.spectrum_list._MAXIMUM_CACHED", maximum_in_memory)
    expected = by_definition(project)
    with open_run(project) as run:
        source = open_spectrum_list(run)
        assert source.total == N
        rows = source.values(np.arange(N), list(SPECTRUM_LIST.by_name)).to_pylist()
        assert rows == expected
        assert {row["is_identified"] for row in rows} == {True, False}
        again = open_spectrum_list(run)
        assert again.rows(order=[("n_peaks", True)])[0] == max(range(N), key=lambda at: (expected[at]["n_peaks"], -at))
        mz, scan = expected[3]["precursor_mz"], str(expected[5]["scan"])
        for spectrum_filter, passes in (
            (SpectrumFilter(is_identified=True), lambda row: row["is_identified"]),
            (SpectrumFilter(is_identified=False), lambda row: not row["is_identified"]),
            (SpectrumFilter(f"{mz:.3f}"), lambda row: abs(row["precursor_mz"] - mz) < 0.0105),
            (SpectrumFilter(scan), lambda row: scan in f"{row['scan']} {row['spectrum_id']}"),
        ):
            assert source.rows(spectrum_conditions(spectrum_filter)).tolist() == [at for at, row in enumerate(expected) if passes(row)]
        points = read_spectrum_map(source)
        assert sorted(points.spectrum.tolist()) == [at for at in range(N) if at != 9] and points.n_missing == 1
        chromatogram = spectrum_chromatogram(source, "total_ion_current")
        for minutes, intensity, row in zip(chromatogram.minutes, chromatogram.intensity, chromatogram.spectrum.tolist(), strict=True):
            assert minutes == expected[row]["retention_time"] / 60 and intensity == expected[row]["total_ion_current"]
        peaks = plain_spectrum(run, 7, "scan 8").upper.peaks
        assert len(peaks.mz) == expected[7]["n_peaks"]


def test_spectrum_list_rejects_missing_or_damaged_spectra(tmp_path: Path) -> None:
    without, _ = project_with_results(tmp_path / "without", with_spectra=False)
    with open_run(without) as run, pytest.raises(ProteoscopeError, match="are not stored"):
        open_spectrum_list(run)
    damaged, _ = project_with_results(tmp_path / "damaged")
    path = damaged.table("spectra")
    content = bytearray(path.read_bytes())
    content[100:2000] = bytes(1900)
    path.write_bytes(content)
    with open_run(damaged) as run:
        for _ in range(2):
            with pytest.raises(InputError, match=r"spectra\.parquet"):
                open_spectrum_list(run)
        assert run.tables.source("psms").total > 0


def test_spectrum_list_stops_opening_at_cancel(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    # The other tests may have validated the file already.
    monkeypatch.setattr("proteoscope.engine.results.reader._validated", set())

    def stop() -> None:
        raise Cancelled

    with open_run(project) as run:
        with pytest.raises(Cancelled):
            open_spectrum_list(run, stop)
        assert open_spectrum_list(run).total == N, "a cancelled list is not reused"


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the sample run, which has MS1 and MS2 spectra, as uncompressed mzML."""
    import gzip

    path = tmp_path_factory.mktemp("run") / "BSA1.mzML"
    with gzip.open(resources.path("samples", "BSA1.mzML.gz")) as packed:
        path.write_bytes(packed.read())
    return path


@pytest.fixture(scope="module")
def ms1_spectra(run_file: Path) -> Iterator[Ms1Spectra]:
    yield read_ms1_spectra(run_file)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # pyteomics' vocabulary leaves a file open
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_chromatograms_match_pyteomics(run_file: Path, ms1_spectra: Ms1Spectra) -> None:
    with mzml.MzML(str(run_file), use_index=False) as reader:
        rows = [spectrum for spectrum in reader if spectrum["ms level"] == 1]
    assert len(ms1_spectra) == len(rows) > 100
    time = [float(spectrum["scanList"]["scan"][0]["scan start time"]) for spectrum in rows]
    assert ms1_spectra.retention_time == pytest.approx(time)
    tolerance = Tolerance(10, "ppm")
    inside = [np.abs(spectrum["m/z array"] - 722.325) <= 722.325e-5 for spectrum in rows]
    at_mz = [spectrum["intensity array"][is_inside].sum(dtype=float) for spectrum, is_inside in zip(rows, inside, strict=True)]
    cases = (
        (total_ions(ms1_spectra), [spectrum["intensity array"].sum(dtype=float) for spectrum in rows]),
        (base_peaks(ms1_spectra), [spectrum["intensity array"].max(initial=0) for spectrum in rows]),
        (extracted(ms1_spectra, 722.325, tolerance), at_mz),
    )
    for chromatogram, expected in cases:
        assert chromatogram.intensity == pytest.approx(np.array(expected), rel=1e-5)
        assert chromatogram.intensity.max() > 0


def test_chromatogram_outline_retains_minima_and_maxima(ms1_spectra: Ms1Spectra) -> None:
    whole = total_ions(ms1_spectra)
    x, y = whole.outline(whole.minutes[0], whole.minutes[-1], 20)
    assert len(x) == 40 and y.max() == whole.intensity.max() and y.min() == whole.intensity.min()
    x, y = whole.outline(whole.minutes[100], whole.minutes[110], 20)
    assert x.tolist() == whole.minutes[99:112].tolist()
    assert whole.nearest(whole.minutes[7] + 1e-6) == 7


def test_read_ms1_spectra_rejects_unsuitable_files(tmp_path: Path, run_file: Path) -> None:
    (tmp_path / "x.mgf").write_text("BEGIN IONS\nPEPMASS=500\n100 1\n200 2\nEND IONS\n")
    with pytest.raises(InputError, match="does not contain MS1 spectra"):
        read_ms1_spectra(tmp_path / "x.mgf")
    (tmp_path / "cut.mzML").write_bytes(run_file.read_bytes()[:900_000])
    with pytest.raises(InputError, match="cut off"):
        read_ms1_spectra(tmp_path / "cut.mzML")
    with pytest.raises(InputError):
        read_ms1_spectra(tmp_path / "missing.mzML")
    stopped = Progress()
    stopped.cancel()
    with pytest.raises(Cancelled):
        read_ms1_spectra(run_file, progress=stopped)
