"""Record the macro sets with which usual searches compile the CUDA sources, by running searches of every kind on a GPU.

    python -m benchmarks.gpu_forms --data FOLDER [--write]

FOLDER is the unpacked test data. Prints each source with its macros; with ``--write`` they become `kernels/cuda/usual_forms.json`, which
`proteoscope compile` compiles ahead. Run it after a change of the macros of a source, or of how a form is chosen.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import proteoscope.kernels.cuda as package
from benchmarks.figures import existing, usable_gpus
from benchmarks.simulated_reads import genome_of, write_reads
from proteoscope.engine.searches import run_search
from proteoscope.kernels.cuda.modules import CudaGpu

FORMS = Path(package.__path__[0]) / "usual_forms.json"


def searches(data: Path, folder: Path) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield kind, inputs and further arguments of searches as users do them, from their most usual settings to others."""
    spectra, proteins = (
        existing(data / "spectra" / "bench_hires_2269.mgf"),
        existing(data / "proteomes" / "yeast_2021_04_reviewed_UPS.fasta"),
    )
    of_spectra: dict[str, Any] = {"spectra": [spectra], "database": [proteins]}
    project = folder / "identified"
    yield "identify", of_spectra, {"project": project, "preset": "high-resolution"}
    yield "identify", of_spectra, {"project": folder / "low", "preset": "low-resolution"}
    yield "identify", of_spectra, {"project": folder / "open", "preset": "open"}
    yield "modified", of_spectra, {"project": folder / "modified"}
    yield "explain", {"project": [project]}, {"out": folder / "explained.tsv"}
    yield "cluster", {"spectra": [spectra]}, {"project": folder / "clusters"}
    yield "cluster", {"spectra": [spectra]}, {"project": folder / "means", "method": "k-means"}
    queries, database = data / "sequences" / "cudasw_queries20.fasta", data / "sequences" / "mmseqs_DB.fasta"
    yield "align", {"queries": [existing(queries)], "database": [existing(database)]}, {"out": folder / "hits.tsv"}
    chains = sorted((data / "structures" / "bench_ca" / "pdb").glob("*.pdb"))
    for mode in ("sensitive", "published"):
        for number in (0, 10, 100, 400, 800):
            structures: dict[str, Any] = {"queries": [chains[number]], "database": chains[::8]}
            yield "structures", structures, {"out": folder / "folds.tsv", "mode": mode}
    genome, reads = data / "dna" / "dna_lambda.fasta", folder / "reads.fastq"
    write_reads(reads, genome_of(genome), 20_000)
    for mode in ("within", "local", "prefix"):
        yield "reads", {"texts": [genome], "patterns": [reads]}, {"out": folder / "places.sam", "mode": mode}


def main() -> None:
    """Run the searches and print the forms."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--write", action="store_true", help=f"keep them as {FORMS.name}")
    options = parser.parse_args()
    usable_gpus(needed=True)
    forms_of_file: dict[str, set[tuple[str, ...]]] = {}
    compiled = CudaGpu._compiled

    def note(gpu: CudaGpu, file: str, macros: tuple[str, ...], kernel: str) -> Any:
        forms_of_file.setdefault(file, set()).add(macros)
        return compiled(gpu, file, macros, kernel)

    CudaGpu._compiled = note  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory(prefix="proteoscope-forms-") as scratch:
        for kind, inputs, more in searches(options.data, Path(scratch)):
            before = sum(map(len, forms_of_file.values()))
            try:
                run_search(kind, inputs, device="cuda", **more)
            except Exception as error:
                print(f"{kind} {more}: {error}", flush=True)
            print(f"{kind} {more.get('preset', more.get('mode', ''))}: {sum(map(len, forms_of_file.values())) - before} forms", flush=True)
    listed = {file: sorted(map(list, forms)) for file, forms in sorted(forms_of_file.items())}
    print(json.dumps(listed))
    if options.write:
        FORMS.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
