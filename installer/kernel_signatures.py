"""Write `resources/kernels.json`, which lists the kernels of each search with their argument types.

    python -m installer.kernel_signatures

It runs the commands below in new processes with an empty cache, and records which kernels Numba compiles, and which kernels these call.
`proteoscope compile` and the first search of each kind compile this list ahead of use. Run it after kernels or their calls have changed:
tests fail if the list lacks a signature. It takes some minutes.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.matches import fragment_intensities
from proteoscope.engine.structure_search.prepared_chains import FEWEST_FILES
from proteoscope.engine.structures import projection
from proteoscope.engine.structures.meshes import spheres
from proteoscope.engine.structures.projection import Projection
from proteoscope.engine.views import run_map
from proteoscope.kernels.cpu import signatures

__all__ = ["COMMANDS", "Record", "prepare_folder", "record_group"]

_SAMPLES = resources.path("samples", "SOURCES.md").parent
_SPECTRA, _PROTEINS = str(_SAMPLES / "BSA1.mzML.gz"), str(_SAMPLES / "18Protein_SoCe_Tr_detergents_trace.fasta.gz")
_DOMAIN, _FOLDS, _CHAIN = (str(_SAMPLES / name) for name in ("albumin_domain_3.pdb.gz", "folds.pdb.gz", "1ao6_A.pdb.gz"))
_GENOME, _READS = str(_SAMPLES / "lambda_phage.fasta.gz"), str(_SAMPLES / "lambda_reads.fastq.gz")

_KNOWN_FORMS = """ID   ONE_BOVIN               Reviewed;          20 AA.
AC   A0A0000000;
FT   MOD_RES         5
FT                   /note="Phosphoserine"
SQ   SEQUENCE   20 AA;  2000 MW;  0000000000000000 CRC64;
     MGASSPVTKC LINDQEHFYR
//
"""
_PACKAGE = "proteoscope."
_SOME_PROTEINS = 300
_WITHOUT_DEVICE = {"convert", "export", "predict", "superpose", "structure-database"}
_TRYPTOPHANS = "".join(f">s{number}\n{'W' * (30 if number else 7000)}\n" for number in range(130))  # 16-bit and 32-bit scores
_INPUTS = {"known.dat": _KNOWN_FORMS, "tryptophans.fasta": _TRYPTOPHANS, "pair.fasta": ">a\nACGTACGTTACGGATCA\n>b\nACGTACGTACGGATCA\n"}

COMMANDS: dict[str, tuple[str, ...]] = {
    "identify": (
        f"identify {_SPECTRA} --database {_PROTEINS} --preset low-resolution --out identified",
        f"convert {_SPECTRA} --out spectra.mgf",
        "identify spectra.mgf --database some.fasta --preset low-resolution --advice none --out read",
    ),
    "fragment-intensities": (f"identify {_SPECTRA} --database {_PROTEINS} --preset low-resolution --advice none --out learnt",),
    "fragment-index": (
        f"identify {_SPECTRA} --database some.fasta --preset low-resolution --set precursor_tolerance=500Da --advice none --out wide",
    ),
    "known-modifications": (
        f"identify {_SPECTRA} --database known.dat --preset low-resolution --set known_modifications=true --advice none --out known",
    ),
    "localisation": (
        f"identify {_SPECTRA} --database {_PROTEINS} --preset low-resolution --set localise=all --set fdr=0.5 --advice none --out sites",
    ),
    "translation": (f"align pair.fasta {_GENOME} --set translation=six-frame --out frames.tsv",),
    "modified": (
        "modified --from-project identified --preset low-resolution --out identified",
        "modified spectra.mgf --database some.fasta --preset low-resolution --mass-shift=-1..1 --out shifted",  # by vectors
    ),
    "import": (
        f"import {_SAMPLES / 'BSA1_comet.pep.xml.gz'} --spectra {_SPECTRA} --database {_PROTEINS} --out imported",
        "convert spectra.mgf --out spectra.ms2",
    ),
    "library": (
        f"library {_SPECTRA} --library {_SAMPLES / 'bsa_library.msp.gz'} --database {_PROTEINS} --out searched",
        f"library {_SPECTRA} --library {_SAMPLES / 'bsa_library.msp.gz'} --similarity cosine --out searched",
        f"library spectra.mgf --library {_SAMPLES / 'bsa_library.msp.gz'} --precursor-tolerance 100Da --out searched",
    ),
    "predict": (
        "predict known.dat --set variable_modifications=Oxidation(M) --out predicted.msp",
        "export identified --format msp --out identified.msp",
    ),
    "explain": ("explain identified --preset low-resolution --mass-difference 100",),
    "quantify": ("quantify identified --method label-free",),
    "cluster": (
        *(
            f"cluster {_SPECTRA} --preset low-resolution --set consensus_spectrum=mean {options} --out clusters"
            for options in (
                "--linkage average",
                "--linkage complete",
                "--method dbscan --set minimum_neighbours=3",
                "--method k-means --clusters 20",
            )
        ),
        "cluster spectra.mgf --preset low-resolution --out clusters",
    ),
    "align": (
        f"align {_SAMPLES / 'protein_queries.fasta'} {_PROTEINS} --out hits.tsv",
        "align tryptophans.fasta tryptophans.fasta --out tryptophans.tsv",
        "align tryptophans.fasta tryptophans.fasta --gap-open 100000 --out costly.tsv",
        "align tryptophans.fasta tryptophans.fasta --set composition=false --out plain.tsv",  # hits with 32-bit scores
    ),
    "superposition": (
        f"superpose {_DOMAIN} {_CHAIN} --out superposed",
        f"structure-database build {_FOLDS} --threads 1 --out database",
    ),
    "structures": (
        f"structures {_DOMAIN} --database {_FOLDS} --out structures.tsv",
        f"structures {_DOMAIN} --database {_FOLDS} --published --out published.tsv",
        f"structures {_DOMAIN} --database folds --out folder.tsv",
    ),
    "drawing": ("",),
    "evidence": (f"evidence identified --structures {_CHAIN}",),
    "reads": (
        f"reads {_GENOME} {_READS} --preset map-to-genome --out reads.sam",
        f"reads {_GENOME} {_READS} --preset map-to-genome --out reads.paf",
        f"reads {_GENOME} {_READS} --mates {_READS} --set mate_pairing=name --out mates.sam",
        "reads pair.fasta pair.fasta --out pairs.tsv",
        "reads pair.fasta pair.fasta --match 100000 --mismatch=-100000 --out costly.tsv",
    ),
}
"""Commands by the group of kernels that they need, as words separated by spaces. Later groups may use output of earlier ones."""


class Record(NamedTuple):
    """Kernels that a process used, each as JSON of its name and types: kernels called from Python, and the callees of each kernel."""

    roots: list[str]
    calls: dict[str, list[str]]


def prepare_folder() -> None:
    """Write the inputs of the commands that are not among the samples into the working directory."""
    for name, text in _INPUTS.items():
        Path(name).write_text(text, encoding="ascii")
    proteins = gzip.decompress(Path(_PROTEINS).read_bytes()).split(b">")
    Path("some.fasta").write_bytes(b">".join(proteins[:_SOME_PROTEINS]))
    Path("folds").mkdir()
    for number in range(FEWEST_FILES):
        Path("folds", f"fold{number}.pdb").write_bytes(gzip.decompress(Path(_DOMAIN).read_bytes()))


def record_group(group: str) -> Record:
    """Run the commands of a group in this process, which must not have called kernels before, and return the kernels used."""
    stacks, roots, calls = threading.local(), set[str](), dict[str, set[str]]()
    compile_now = Dispatcher.compile

    def compile_and_note(kernel: Any, arguments: Any) -> Any:
        if isinstance(kernel._cache, NullCache) or not kernel.py_func.__module__.startswith(f"{_PACKAGE}kernels."):
            return compile_now(kernel, arguments)  # this kernel is not cached, but kernels that it calls may be
        stack = vars(stacks).setdefault("stack", [])
        name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}".removeprefix(_PACKAGE)
        entry = json.dumps([name, [signatures.describe_type(argument) for argument in arguments]])
        calls.setdefault(entry, set())
        (calls[stack[-1]] if stack else roots).add(entry)
        stack.append(entry)
        try:
            return compile_now(kernel, arguments)
        finally:
            stack.pop()

    Dispatcher.compile = compile_and_note
    signatures.is_compiled, signatures.load_kernels = lambda group: True, lambda group, module: None  # compile when called
    if group == "fragment-intensities":
        fragment_intensities.learn_intensities.__kwdefaults__["fewest_peptides"] = 1  # the sample has few peptides
    for command in COMMANDS[group]:
        sys.stdout.write(f"proteoscope {command}\n")
        words = command.split(" ")
        if not command:
            _draw()
        elif main(words if words[0] in _WITHOUT_DEVICE else [*words, "--device", "cpu", "--threads", "2"]):
            raise SystemExit(f"the group '{group}' could not be recorded")
    return Record(sorted(roots), {entry: sorted(callees) for entry, callees in sorted(calls.items())})


def _draw() -> None:
    """Draw a structure, and the points of a run as dots and as counts."""
    projection.drawn(spheres(np.zeros((1, 3))), np.zeros((1, 3), np.uint8), Projection(np.eye(3), np.zeros(3), 8.0), 16, 16)
    place, numbers = np.full(1, 0.5, np.float32), np.zeros(1, np.int64)
    points = run_map.MapPoints(numbers, place, place, np.zeros(1, np.uint8), True, 0, numbers)
    shades = np.zeros((len(run_map.STATUS_NAMES), 2), np.uint32)
    for largest_dots in (0, 1):
        run_map.draw_points(points, ((0.0, 1.0), (0.0, 1.0)), (8, 8), shades, frozenset({0}), largest_dots=largest_dots)


def _listed(records: Mapping[str, Record]) -> dict[str, Any]:
    """Return the content of `kernels.json`: kernels, each after its callees, and the kernel numbers of each group."""
    calls: dict[str, list[str]] = {}
    for record in records.values():  # if a group found a kernel in the cache, its record lacks the callees
        for entry, callees in record.calls.items():
            calls[entry] = sorted({*calls.get(entry, ()), *callees})
    number = {entry: place for place, entry in enumerate(TopologicalSorter(calls).static_order())}
    kernels = [[*json.loads(entry), sorted(number[callee] for callee in calls[entry])] for entry in number]
    return {"groups": {group: sorted(number[entry] for entry in record.roots) for group, record in records.items()}, "kernels": kernels}


def _write_list() -> None:
    records, program = dict[str, Record](), Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "NUMBA_CACHE_DIR": f"{folder}/kernels",
            "PROTEOSCOPE_CACHE": f"{folder}/cache",
            "PYTHONPATH": str(program),
            "NUMBA_OPT": "1",
        }
        for group in COMMANDS:
            record = Path(folder, f"{group}.json")
            subprocess.run([sys.executable, "-m", __spec__.name, group, str(record)], cwd=folder, env=os.environ | settings, check=True)
            records[group] = Record(**json.loads(record.read_text(encoding="utf-8")))
    content = _listed(records)
    lines = ",\n".join(json.dumps(kernel, separators=(",", ":")) for kernel in content["kernels"])
    groups = json.dumps(content["groups"])
    resources.path("kernels.json").write_text(f'{{"groups": {groups},\n"kernels": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        _write_list()
    else:
        if not Path("folds").exists():
            prepare_folder()
        Path(sys.argv[2]).write_text(json.dumps(record_group(sys.argv[1])._asdict()), encoding="utf-8")
