"""Reading speed of spectra and proteins, compared with installed peers: one JSON line for each figure.

    python -m benchmarks.reading DATA_FOLDER [--threads N]

DATA_FOLDER is the unpacked test data. A large mzML is made by repeating the spectra of a real one (``bsa_ltq/BSA1.mzML``: plain arrays;
``metaproteome_qe/2016_Jan_12_QE2_47_trimmed.mzML``: zlib). Each figure is the best of three runs, after one that compiles the kernels.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from proteoscope.engine.formats import read_proteins, read_spectra

REPEATS = {"bsa_ltq/BSA1.mzML": 15, "metaproteome_qe/2016_Jan_12_QE2_47_trimmed.mzML": 40}


def repeated(path: Path, times: int, folder: Path) -> Path:
    """Return an mzML file with the repeated spectra of another."""
    text = path.read_bytes()
    start, stop = text.index(b"<spectrum "), text.rindex(b"</spectrum>") + len(b"</spectrum>")
    target = folder / f"{path.stem}_x{times}.mzML"
    with target.open("wb") as out:
        out.write(text[:start])
        for _ in range(times):
            out.write(text[start:stop] + b"\n")
        out.write(text[stop:])
    return target


def best_of_three(read: Callable[[], int], runs: int = 3) -> tuple[int, float]:
    """Return the result of `read` and the seconds of its fastest run."""
    seconds, n = float("inf"), 0
    for _ in range(runs):
        start = time.perf_counter()
        n = read()
        seconds = min(seconds, time.perf_counter() - start)
    return n, seconds


def report(reader: str, path: Path, unit: str, n: int, seconds: float, **more: object) -> None:
    """Print one figure."""
    line = {"reader": reader, "file": path.name, "megabytes": round(path.stat().st_size / 1e6, 1), unit: n}
    print(json.dumps(line | {"seconds": round(seconds, 4), f"{unit}_per_second": round(n / seconds), **more}), flush=True)


def read_with_pyteomics(path: Path) -> int:
    from pyteomics import mgf, mzml, mzxml

    if path.suffix == ".mgf":
        with mgf.MGF(str(path), use_header=False, convert_arrays=1, read_charges=False) as reader:
            return sum(1 for _ in reader)
    with (mzml.MzML if path.suffix == ".mzML" else mzxml.MzXML)(str(path), use_index=False) as reader:
        return sum(len(spectrum["m/z array"]) >= 0 and spectrum.get("ms level", spectrum.get("msLevel")) == 2 for spectrum in reader)


def read_with_pymzdata(path: Path) -> int:
    import pymzdata

    n = 0
    with pymzdata.MZReader(str(path)) as reader:
        for spectrum in reader:
            spectrum.mz_array()
            spectrum.intensity_array()
            n += spectrum.ms_level == 2
    return n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--memory-of", type=Path, help="only read this file and print the peak memory (used by the benchmark)")
    arguments = parser.parse_args()
    if arguments.memory_of:
        spectra = read_spectra([arguments.memory_of], threads=arguments.threads)
        # The kernel's own maximum is used, because ru_maxrss begins with the memory of the parent process.
        status = Path("/proc/self/status")
        peak = int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024 if status.exists() else 0
        print(json.dumps({"peak": peak, "peaks": spectra.mz.nbytes + spectra.intensity.nbytes}))
        return
    spectra_folder = arguments.data / "spectra"
    with tempfile.TemporaryDirectory() as folder:
        paths = [repeated(spectra_folder / name, times, Path(folder)) for name, times in REPEATS.items()]
        paths += [spectra_folder / "qc_shew_qe" / "QC_Shew_18_02_Excerpt.mzXML", spectra_folder / "bench_x10.mgf"]
        for path in paths:
            read_spectra([path], threads=arguments.threads)
            report("proteoscope", path, "spectra", *best_of_three(lambda path=path: len(read_spectra([path], threads=arguments.threads))))
            report("pyteomics", path, "spectra", *best_of_three(lambda path=path: read_with_pyteomics(path), runs=1))
            if importlib.util.find_spec("pymzdata") and path.suffix != ".mzXML":
                report("pymzdata", path, "spectra", *best_of_three(lambda path=path: read_with_pymzdata(path)))
        for path in paths:
            command = [sys.executable, "-m", "benchmarks.reading", str(arguments.data), "--memory-of", str(path)]
            if arguments.threads:
                command += ["--threads", str(arguments.threads)]
            memory = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            figure = {"reader": "proteoscope", "file": path.name, "peak_megabytes": round(memory["peak"] / 1e6)}
            print(json.dumps(figure | {"megabytes_of_peaks": round(memory["peaks"] / 1e6)}), flush=True)
    fasta = arguments.data / "proteomes" / "combo.fasta"
    read_proteins([fasta])
    report("proteoscope", fasta, "proteins", *best_of_three(lambda: len(read_proteins([fasta]))))

    def with_biopython() -> int:
        from Bio.SeqIO.FastaIO import SimpleFastaParser

        with fasta.open() as handle:
            return sum(1 for _ in SimpleFastaParser(handle))

    report("biopython", fasta, "proteins", *best_of_three(with_biopython))


if __name__ == "__main__":
    main()
