"""Wall time of whole commands, each from start to end of a separate process; one JSON line per figure.

    python -m benchmarks.whole_command --data FOLDER [--kinds identify align structures] [--devices cpu cuda] [--repeats N]
        [--threads N] [--phases] [--keep] [--remark WORDS]

FOLDER is the unpacked test data (its files may be compressed with gzip).

parameters
    the list of the parameters of `identify`: a process that computes nothing.
identify-small
    2,269 high-resolution spectra against the proteome of yeast.
identify
    2,269 high-resolution spectra, each ten times (22,690; one MGF of 40 MB), against five proteomes with reversed decoys; preset
    high-resolution. `index` is built by each run, or was stored in the project by the previous run. `reading_seconds` is the time to read
    the spectra in a process that has read them before; `reading_command_seconds` is the time of a process that only reads them, a lower
    bound for all commands that read them.
modified
    the 2,269 spectra against five proteomes, in a modification search.
align
    the 20 queries of the CUDASW++ papers against 20,000 proteins, whose packed copy is cached.
cluster
    39,212 spectra of MassBank.
structures
    one chain against a structure database of the 855 chains of ``bench_ca``. There are as many queries as repeats, selected by name
    (``--repeats 21`` takes every 40th), with one command each.
structure-folder
    the same against the folder of their files.
structure-set
    60 of the chains, one command, the best 100 of each.

A first run, which is not counted, compiles kernels, writes bytecode and stores indexes. `seconds` is the median time of the process over
the runs; `own_seconds` and `steps` are reported by the fastest run; `processor_seconds` (the median, for all threads) and `peak_megabytes`
are reported by the system. ``--phases`` adds the seconds of the phases of the fastest run (see `benchmarks.phases`), of its main thread and
of its other threads, and prints a table of all commands at the end. With ``--keep`` the lines are added to `results/whole_command.jsonl`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.figures import emit, existing
from benchmarks.phases import PHASES, STARTED
from proteoscope.engine.execution.devices import devices
from proteoscope.engine.execution.resources import available_threads

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("results") / "whole_command.jsonl"
SIMPLE = ("parameters", "identify-small", "modified", "cluster")
KINDS = (*SIMPLE, "identify", "align", "structures", "structure-folder", "structure-set")
TIMES = 10
_SET = 60  # queries of a set
READ = """
import sys, time
from proteoscope.engine.formats import read_spectra
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    n = len(read_spectra([sys.argv[1]], threads=int(sys.argv[3])))
    print(time.perf_counter() - began)
"""


class Used(NamedTuple):
    """Output of a process, its wall and CPU seconds, its peak memory in bytes, and the seconds of its phases if they were measured."""

    text: str
    seconds: float
    processor_seconds: float
    peak: int
    phases: dict[str, dict[str, float]]


class Case(NamedTuple):
    """Commands to measure, an optional command before them that is not counted, and facts about them."""

    about: dict[str, Any]
    commands: Sequence[list[str]]
    before: Sequence[str] = ()


def unpacked(path: Path) -> bytes:
    """Return the content of a file, decompressed if needed."""
    path = existing(path)
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def run(*arguments: str, phases: bool = False) -> Used:
    """Run a Python process in the repository and return its output, times and memory; with `phases`, a command and measure its phases."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a program that is installed has its bytecode
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output, tempfile.NamedTemporaryFile("r", encoding="utf-8") as report:
        if phases:
            assert arguments[:2] == ("-m", "proteoscope")
            arguments = "-m", "benchmarks.phases", report.name, *arguments[2:]
            environment[STARTED] = repr(time.monotonic())
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, *arguments], cwd=REPOSITORY, env=environment, stdout=output)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{' '.join(arguments)} ended with {process.returncode}")
        output.seek(0)
        measured = json.load(report) if phases else {}
        return Used(output.read(), seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, measured)


def command(kind: str, *arguments: str | Path) -> list[str]:
    """Return the arguments of Python for a command of the program."""
    return ["-m", "proteoscope", kind, *map(str, arguments)]


def simple(kind: str, data: Path, folder: Path, common: Sequence[str], repeats: int) -> Iterator[Case]:
    """Yield a command that is run again as it is."""
    if kind == "parameters":
        yield Case({}, [command(kind, "identify", "--json")] * repeats)
        return
    about: dict[str, Any] = {"spectra": 39_212} if kind == "cluster" else {"spectra": 2269}
    spectra, database = folder / "spectra.mgf", folder / "database.fasta"
    spectra.write_bytes(unpacked(data / ("clustering/massbank_esi_ms2.mgf" if kind == "cluster" else "spectra/bench_hires_2269.mgf")))
    rest: list[str] = []
    if kind != "cluster":
        database.write_bytes(
            unpacked(data / ("proteomes/combo.fasta" if kind == "modified" else "proteomes/yeast_2021_04_reviewed_UPS.fasta"))
        )
        rest = ["--database", str(database)]
    search = command("identify" if kind == "identify-small" else kind, spectra, *rest, "--out", folder / "project", "--json", *common)
    yield Case(about, [search] * repeats, search)


def identifications(data: Path, folder: Path, common: Sequence[str], repeats: int, threads: str) -> Iterator[Case]:
    """Yield `identify` with its index built, and with its index stored."""
    spectra, database = folder / "bench_x10.mgf", folder / "combo.fasta"
    spectra.write_bytes(unpacked(data / "spectra" / "bench_hires_2269.mgf") * TIMES)
    database.write_bytes(unpacked(data / "proteomes" / "combo.fasta"))
    run("-c", READ, str(spectra), "1", threads)
    reading = min(map(float, run("-c", READ, str(spectra), str(repeats), threads).text.split()))
    alone = min(run("-c", READ, str(spectra), "1", threads).seconds for _ in range(repeats))
    about = {"spectra": 2269 * TIMES, "megabytes": round(spectra.stat().st_size / 1e6, 1)}
    about |= {"reading_seconds": round(reading, 2), "reading_command_seconds": round(alone, 2)}
    identify = command("identify", "--preset", "high-resolution", "--json", *common, "--database", database, spectra, "--out")
    first = [*identify, str(folder / "first")]
    yield Case(about | {"index": "built"}, [[*identify, str(folder / f"project-{number}")] for number in range(repeats)], first)
    yield Case(about | {"index": "kept"}, [first] * repeats)


def alignments(data: Path, folder: Path, common: Sequence[str], repeats: int) -> Iterator[Case]:
    """Yield `align` of 20 queries against 20,000 proteins."""
    database = folder / "proteins.fasta"
    database.write_bytes(unpacked(data / "sequences" / "mmseqs_DB.fasta"))
    align = command("align", data / "sequences" / "cudasw_queries20.fasta", database, "--out", folder / "hits.tsv", "--json", *common)
    yield Case({"queries": 20, "subjects": 20_000}, [align] * repeats, align)


def structures(kind: str, data: Path, folder: Path, common: Sequence[str], repeats: int) -> Iterator[Case]:
    """Yield `structures` with single chains, or a set of them."""
    files, database = sorted((data / "structures" / "bench_ca" / "pdb").iterdir()), folder / "database"
    if kind == "structure-folder":
        database = files[0].parent
    else:
        run(*command("structure-database", "build", files[0].parent, "--out", database))
    queries = files[:: len(files) // repeats][:repeats]
    if kind == "structure-set":
        chosen = folder / "queries.txt"
        chosen.write_text("\n".join(map(str, files[:: len(files) // _SET][:_SET])))
        queries = [chosen] * repeats
    rest: tuple[str | Path, ...] = ("--database", database, "--out", folder / "hits.tsv", "--set", "hits_per_query=100", "--json", *common)
    commands = [command("structures", query, *rest) for query in queries]
    yield Case({"queries": _SET if kind == "structure-set" else 1, "chains": len(files)}, commands, commands[0])


def cases(kind: str, data: Path, folder: Path, device: str, options: argparse.Namespace) -> Iterator[Case]:
    """Yield the cases of a kind on a device."""
    common = ("--device", device, "--threads", str(options.threads))
    if kind in SIMPLE:
        return simple(kind, data, folder, common, options.repeats)
    if kind == "identify":
        return identifications(data, folder, common, options.repeats, str(options.threads))
    return alignments(data, folder, common, options.repeats) if kind == "align" else structures(kind, data, folder, common, options.repeats)


def measured(case: Case, *, phases: bool) -> dict[str, Any]:
    """Return the figures of a case."""
    if case.before:
        run(*case.before)
    results = [run(*command, phases=phases) for command in case.commands]
    fastest, seconds = min(results, key=lambda result: result.seconds), [result.seconds for result in results]
    reported, answer = dict[str, Any](), json.loads(fastest.text)
    if "stages" in answer:  # the answer of a search
        reported = {"own_seconds": answer["seconds"], "steps": {name: round(step["seconds"], 3) for name, step in answer["stages"].items()}}
    if phases:
        reported["phases"] = {
            name: [round(fastest.phases[threads].get(name, 0.0), 3) for threads in ("main", "others")]
            for name in PHASES
            if any(name in fastest.phases[threads] for threads in ("main", "others"))
        }
    return {
        **case.about,
        "commands": len(results),
        "seconds": round(median(seconds), 3),
        "least_seconds": round(min(seconds), 3),
        "most_seconds": round(max(seconds), 3),
        "processor_seconds": round(median(result.processor_seconds for result in results), 3),
        **reported,
        "peak_megabytes": round(max(result.peak for result in results) / 1e6),
    }


def phase_table(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table of the phases of commands: seconds of the main thread, and after ``+`` those of other threads."""
    names = [" ".join(filter(None, (line["kind"], line["device"], line.get("index", "")))) for line in lines]
    widths = [max(len(name), 12) for name in names]
    yield "  ".join([f"{'seconds':<13}", *(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))])
    for phase in PHASES:
        cells = [line["phases"].get(phase) for line in lines]
        if any(cells):
            texts = ["" if cell is None else f"{cell[0]:.3f}" + (f" +{cell[1]:.3f}" if cell[1] else "") for cell in cells]
            yield "  ".join([f"{phase:<13}", *(f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))])
    for total in ("least_seconds", "processor_seconds"):
        cells = [f"{line[total]:.3f}" for line in lines]
        yield "  ".join([f"{total.split('_')[0]:<13}", *(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["identify"], metavar="KIND")
    parser.add_argument("--devices", nargs="+", default=["cpu"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--phases", action="store_true", help="measure the phases of each command, and print a table of them")
    parser.add_argument("--keep", action="store_true", help=f"add the lines to {RESULTS.name}")
    parser.add_argument("--remark", default="", help="what else is to be known of the figures")
    options = parser.parse_args()
    lines: list[dict[str, Any]] = []
    described = {device.name: device.description for device in devices()}
    for kind in options.kinds:
        for device in options.devices:
            about = {"figure": "whole command" if kind == "identify" else f"whole command {kind}", "date": str(date.today())}
            about |= {"threads": options.threads, "device": device}
            about["device_description"] = described.get("cuda:0" if device == "cuda" else device, "")
            with tempfile.TemporaryDirectory(prefix="proteoscope-benchmark-") as scratch:
                for case in cases(kind, options.data, Path(scratch), device, options):
                    line = measured(case, phases=options.phases) | ({"remark": options.remark} if options.remark else {})
                    emit(about, **line)
                    lines.append(about | line | {"kind": kind})
                    if options.keep:
                        with RESULTS.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(about | line) + "\n")
    if options.phases:
        print("\n".join(phase_table(lines)))


if __name__ == "__main__":
    main()
