"""`identify` writes the same bytes on the CPU with any number of threads, on each GPU, on several, and on all devices together.

The bundled sample data takes two to three minutes with 16 CPU cores, the large run in the shared data one minute more:

    python -m pytest -m gpu tests/gpu/test_same_tables_on_gpu.py -q
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.execution.devices import gpus, resolve_device
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.fragment_index import FragmentIndexSearch
from proteoscope.engine.parameters import preset_names, read_preset
from tests.searching import identify

pytestmark = pytest.mark.gpu

SAMPLES = Path(__file__).resolve().parents[2] / "resources" / "samples"
SCORES = ("spectral-dot-product", "ksdp", "hyperscore", "xcorr")
TABLES = ("psms.tsv", "peptides.tsv", "proteins.tsv")
N_PROTEINS = {"non-specific": 200, "phospho": 1500, "open": 400}
"""Number of proteins for presets with many candidates, which are slow with one thread; other presets use 3,000."""
N_SPECTRA = {"open": 200, "phospho": 600}


@dataclass(frozen=True)
class Run:
    """Device and number of threads of an `identify` call."""

    device: str
    threads: int

    def __str__(self) -> str:
        return f"{self.device} with {self.threads} threads"


@pytest.fixture(scope="module")
def runs(number: int) -> list[Run]:
    """List the devices and thread counts to compare, the reference first."""
    usable = [gpu.numbers[0] for gpu in gpus() if gpu.usable]
    assert number in usable
    threads = available_threads()
    runs = [Run("cpu", min(16, threads)), Run("cpu", 1), Run("cpu", 2), Run("cpu", 16)]
    runs += [Run(f"cuda:{gpu}", threads) for gpu in usable]
    runs += [Run(f"cuda:{number}", 2), Run("all", threads)]
    if len(usable) > 1:
        runs.append(Run("auto", threads))
    return list(dict.fromkeys(runs))


def parameters_of(preset: str, **changes: Any) -> IdentificationParameters:
    """Parameters of a preset, reporting every spectrum with a candidate: ion trap spectra have few matches at 20 ppm."""
    return IdentificationParameters.checked(read_preset("identify", preset)).changed(minimum_matched_ions=1, **changes)


def tables_of(run: Run, spectra: Path, database: Path, parameters: IdentificationParameters, folder: Path) -> dict[str, bytes]:
    """Return the three tables of a run whose GPUs must not fail."""
    reported: list[str] = []
    summary = identify(
        [spectra],
        [database],
        folder,
        parameters,
        device=run.device,
        threads=run.threads,
        progress=Progress(lambda event: reported.append(event.message)),
    )
    assert not [text for text in reported if "elsewhere" in text], reported
    names = {f"cuda:{number}" for number in resolve_device(run.device).numbers}
    assert names <= set(summary.device.split("+"))
    return {name: (folder / "exports" / name).read_bytes() for name in TABLES}


def assert_same(actual: dict[str, bytes], expected: dict[str, bytes], run: Run) -> None:
    """Compare tables byte by byte and show the first lines that differ."""
    for name in TABLES:
        if actual[name] == expected[name]:
            continue
        lines, others = actual[name].split(b"\n"), expected[name].split(b"\n")
        different = [i for i, (left, right) in enumerate(zip(lines, others, strict=False)) if left != right]
        header = lines[0].split(b"\t")
        at = different[0] if different else min(len(lines), len(others)) - 1
        columns = [
            (title.decode(), left.decode(), right.decode())
            for title, left, right in zip(header, lines[at].split(b"\t"), others[at].split(b"\t"), strict=False)
            if left != right
        ]
        pytest.fail(
            f"{run}: {name} has {len(lines)} lines against {len(others)}, {len(different)} of them different; line {at + 1}: {columns[:6]}"
        )


@pytest.fixture(scope="module")
def sample_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Path, Path]]]:
    """Sample spectra (MGF) and proteins for each preset."""
    folder = tmp_path_factory.mktemp("samples")
    with gzip.open(SAMPLES / "18Protein_SoCe_Tr_detergents_trace.fasta.gz", "rt", encoding="utf-8") as file:
        entries = file.read().split(">")[1:]
    # The eighteen proteins of the mixture and their frequent contaminants are at the end.
    entries = entries[::-1]
    read = read_spectra([SAMPLES / "BSA1.mzML.gz"])
    files = {}
    for preset in preset_names("identify"):
        database, spectra = folder / f"{preset}.fasta", folder / f"{preset}.mgf"
        database.write_text("".join(f">{entry}" for entry in entries[: N_PROTEINS.get(preset, 3000)]), encoding="utf-8")
        with spectra.open("w", encoding="utf-8") as out:
            for row in np.linspace(0, len(read) - 1, N_SPECTRA.get(preset, 1000), dtype=int).tolist():
                part = slice(int(read.offsets[row]), int(read.offsets[row + 1]))
                charge, mz = max(1, int(read.charge_mask[row]).bit_length() - 1), float(read.precursor_mz[row])
                if preset == "maldi-tof-tof":
                    charge, mz = 1, (mz - PROTON_MASS) * charge + PROTON_MASS
                out.write(f"BEGIN IONS\nTITLE={row}\nPEPMASS={mz:.6f}\nCHARGE={charge}+\n")
                out.writelines(f"{at:.6f} {height:.4f}\n" for at, height in zip(read.mz[part], read.intensity[part], strict=True))
                out.write("END IONS\n")
        files[preset] = spectra, database
    yield files
    shutil.rmtree(folder)


@pytest.mark.parametrize("preset", preset_names("identify"))
def test_identify_tables_are_equal_on_all_devices_for_all_scores(preset, runs, sample_files, tmp_path):
    """Search in a project for each run, so that each builds its own peptide index."""
    spectra, database = sample_files[preset]
    for score in SCORES:
        parameters = parameters_of(preset, score=score)
        expected = tables_of(runs[0], spectra, database, parameters, tmp_path / "0")
        assert expected["psms.tsv"].count(b"\n") > 20
        for number, run in enumerate(runs[1:], 1):
            if score != "hyperscore" and number > 1 and run.device == "cpu":
                continue  # saves time: other thread counts are compared with the hyperscore only
            assert_same(tables_of(run, spectra, database, parameters, tmp_path / str(number)), expected, run)


@pytest.mark.parametrize("preset", ["open", "low-resolution"])
def test_identify_with_fragment_index_is_equal_on_all_devices(preset, runs, sample_files, tmp_path, monkeypatch):
    used = []

    def is_worthwhile(search: FragmentIndexSearch, *_: object) -> bool:
        used.append(search)
        return True

    monkeypatch.setattr(FragmentIndexSearch, "is_worthwhile", is_worthwhile)
    spectra, database = sample_files[preset]
    for memory in (2000, 256):
        parameters = parameters_of(preset, index_memory=memory)
        expected = tables_of(runs[0], spectra, database, parameters, tmp_path / "0")
        for number, run in enumerate(runs[1:], 1):
            used.clear()
            assert_same(tables_of(run, spectra, database, parameters, tmp_path / str(number)), expected, run)
            assert used, run


def test_identify_tables_are_equal_with_little_gpu_memory(runs, sample_files, tmp_path):
    spectra, database = sample_files["high-resolution"]
    expected = tables_of(runs[0], spectra, database, parameters_of("high-resolution"), tmp_path / "0")
    limited = parameters_of("high-resolution", device_memory=400)
    for number, run in enumerate((run for run in runs if run.device != "cpu"), 1):
        assert_same(tables_of(run, spectra, database, limited, tmp_path / str(number)), expected, run)


@pytest.mark.parametrize("score", ["hyperscore", "xcorr"])
def test_identify_tables_are_equal_on_all_devices_for_large_runs(score, runs, shared_data, tmp_path):
    """Use a number of spectra for which scoring every candidate and a fragment-ion index take about the same time."""
    spectra, database = shared_data / "spectra" / "bench_x10.mgf", shared_data / "proteomes" / "combo.fasta"
    parameters = parameters_of("high-resolution", score=score)
    expected = tables_of(runs[0], spectra, database, parameters, tmp_path / "0")
    assert expected["psms.tsv"].count(b"\n") > 20_000
    for number, run in enumerate(runs[1:], 1):
        if run.device == "cpu" and run.threads < 16:
            continue
        assert_same(tables_of(run, spectra, database, parameters, tmp_path / str(number)), expected, run)
