"""Read files with the program in the working directory, and print the CPU seconds of each reading.

    cd CHECKOUT; PYTHONPATH=CHECKOUT python timed_reader.py

Each line on standard input is a JSON list: the kind of reading (see `READERS`) and the paths. The answer is a line with the CPU seconds of
all threads, or the reason why this program cannot read the files. Only the standard library and the modules of the program are imported,
since the program may be an earlier version, in which the packages were not within the package `proteoscope`.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# An installed program would be found by its name too: the folder decides.
PREFIX = "proteoscope." if Path("proteoscope").is_dir() else ""


def _module(name: str) -> Any:
    return importlib.import_module(f"{PREFIX}engine.{name}")


def _progress() -> Any:
    return _module("jobs.progress").Progress()


def read_spectra(paths: Sequence[str]) -> None:
    """Read spectra, and leave out broken ones, which an earlier program does only on request."""
    read = _module("formats.reading").read_spectra
    leave_out = {"skip_broken": True} if "skip_broken" in inspect.signature(read).parameters else {}
    read(paths, threads=1, **leave_out)


def read_library(paths: Sequence[str]) -> None:
    _module("formats.libraries.reading").read_libraries(paths)


def read_proteins(paths: Sequence[str]) -> None:
    _module("formats").read_proteins(paths)


def read_reads(paths: Sequence[str]) -> None:
    for path in paths:
        _module("formats.fastq").read_fastq(path)


def read_pairs(paths: Sequence[str]) -> None:
    """Read two files of mates, and compare their names."""
    load_reads = _module("read_alignment.sequences").load_reads
    ones, others = map(Path, paths)
    if "parameters" in inspect.signature(load_reads).parameters:
        parameters = _module("read_alignment.parameters").ReadAlignmentParameters()
        load_reads(ones, others, parameters, _progress())
    else:
        load_reads(ones, others, _progress())


def read_structures(paths: Sequence[str]) -> None:
    read_structure = _module("structures.reading").read_structure
    for path in paths:
        read_structure(path)


READERS: dict[str, Callable[[Sequence[str]], None]] = {
    "spectra": read_spectra,
    "library": read_library,
    "proteins": read_proteins,
    "reads": read_reads,
    "pairs": read_pairs,
    "structures": read_structures,
}


def main() -> None:
    """Answer each line of standard input."""
    for line in sys.stdin:
        kind, *paths = json.loads(line)
        began = time.process_time()
        try:
            READERS[kind](paths)
            answer: dict[str, Any] = {"seconds": time.process_time() - began}
        except Exception as error:
            answer = {"reason": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
