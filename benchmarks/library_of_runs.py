"""Search of runs in a library made from the same or other runs, compared with the identification of these runs.

    python -m benchmarks.library_of_runs --data FOLDER [--consensus merged best]

The runs BSA1, BSA2 and BSA3 are identified with a database of 18 proteins and an absent proteome (preset low-resolution), and exported as a
library. Since each run matches its own spectra in this library, a library of two runs is also searched with the third run, for each run in
turn, and compared with the identification of the third run. Output: one JSON line per figure.

psms, peptides
    Accepted target matches at 1 % FDR, and their distinct sequences.
same, others
    Numbers of spectra that both searches identify with the same peptide, and with different peptides.
library of one run
    BSA2 and BSA3 searched in the library of BSA1. `identify_of_library` counts the identified spectra whose peptides are in the library.
predicted library
    All runs searched in a library predicted from bovine albumin, and from albumin and `absent_proteins` proteins of the absent proteome.
    `foreign` counts spectra that match peptides of absent proteins.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.figures import emit, existing
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.library_search.prediction import predict_library
from proteoscope.engine.library_search.prediction_parameters import PredictionParameters
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search, search_of_kind

RUNS = ("BSA1", "BSA2", "BSA3")


def identified(folder: Path) -> dict[str, str]:
    """Return peptides by spectra of the newest run of a project: targets at 1 %."""
    project = Project.open(folder)
    run = project.runs()[-1].id
    table = pq.read_table(project.table("psms", run), columns=["spectrum_id", "spectrum_file", "sequence", "rank", "is_decoy", "q_value"])
    wanted = pc.and_(pc.and_(pc.equal(table["rank"], 1), pc.invert(table["is_decoy"])), pc.less_equal(table["q_value"], 0.01))
    rows = table.filter(pc.fill_null(wanted, False)).to_pylist()
    return {f"{Path(row['spectrum_file']).name} {row['spectrum_id']}": row["sequence"] for row in rows}


def report(figure: str, peptides: dict[str, str], expected: dict[str, str], **more: Any) -> None:
    """Print a line of figures."""
    both = [(peptide, peptides[name]) for name, peptide in expected.items() if name in peptides]
    same = sum(first == other for first, other in both)
    emit(
        {},
        figure=figure,
        psms=len(peptides),
        peptides=len(set(peptides.values())),
        identify_psms=len(expected),
        identify_peptides=len(set(expected.values())),
        same=same,
        others=len(both) - same,
        **more,
    )


class Comparison:
    """Identifies, exports and searches runs in a folder."""

    def __init__(self, data: Path, folder: Path) -> None:
        self._folder, self._n = folder, 0
        self._spectra = {name: existing(data / "spectra" / "bsa_ltq" / f"{name}.mzML") for name in RUNS}
        self._database = existing(data / "proteomes" / "18Protein_SoCe_Tr_detergents_trace.fasta")

    def _project(self) -> Path:
        self._n += 1
        return self._folder / f"project{self._n}"

    def identify(self, names: Sequence[str]) -> tuple[Path, dict[str, str]]:
        """Return the project, and the accepted peptides."""
        project = self._project()
        inputs = {"spectra": [self._spectra[name] for name in names], "database": [self._database]}
        run_search("identify", inputs, project=project, preset="low-resolution", device="cpu")
        return project, identified(project)

    def library(self, project: Path, consensus: Any) -> Path:
        """Return the library of a project."""
        out = self._folder / f"{project.name}_{consensus}.msp"
        opened = Project.open(project)
        request = ExportRequest(opened.runs()[-1].id, "msp", out, consensus=consensus)
        search_of_kind("identify").export(opened, request, Progress())
        return out

    def predicted(self, n_others: int) -> tuple[Path, str]:
        """Return the library predicted from bovine albumin and `n_others` absent proteins, and albumin's sequence."""
        open_text = gzip.open if self._database.suffix == ".gz" else open
        with open_text(self._database, "rt") as source:
            entries = source.read().split(">")[1:]
        (albumin,) = (entry for entry in entries if entry.startswith("P02769|ALBU_BOVIN"))
        others = [entry for entry in entries if "_SORC5 " in entry]
        proteins, out = self._folder / "proteins.fasta", self._folder / f"predicted{n_others}.msp"
        proteins.write_text("".join(f">{entry}" for entry in [albumin, *others[:: len(others) // max(1, n_others)][:n_others]]))
        predict_library([proteins], out, PredictionParameters().changed(variable_modifications="Oxidation (M)"))
        return out, "".join(albumin.split("\n")[1:])

    def search(self, library: Path, names: Sequence[str]) -> dict[str, str]:
        """Return the peptides found in a library, by spectrum."""
        project = self._project()
        inputs = {"spectra": [self._spectra[name] for name in names], "library": [library]}
        run_search("library", inputs, project=project, preset="low-resolution", device="cpu")
        return identified(project)


def main() -> None:
    """Identify the runs, build the libraries, search them, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--consensus", nargs="+", choices=("merged", "best"), default=["merged", "best"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(given.data, Path(folder))
        first, of_first = comparison.identify(RUNS[:1])
        alone = {RUNS[0]: of_first} | {name: comparison.identify([name])[1] for name in RUNS[1:]}
        whole, of_all = comparison.identify(RUNS)
        others = {name: comparison.identify([run for run in RUNS if run != name])[0] for name in RUNS}
        two = comparison.identify(RUNS[1:])[1]
        for n_others in (0, 40):
            library, albumin = comparison.predicted(n_others)
            peptides = comparison.search(library, RUNS)
            report(
                "predicted library",
                peptides,
                of_all,
                absent_proteins=n_others,
                foreign=sum(peptide not in albumin for peptide in peptides.values()),
            )
        for consensus in given.consensus:
            library = comparison.library(first, consensus)
            held = set(read_libraries([library]).sequence.to_pylist())
            of_library = sum(peptide in held for peptide in two.values())
            report("library of one run", comparison.search(library, RUNS[1:]), two, consensus=consensus, identify_of_library=of_library)
            report("own library", comparison.search(comparison.library(whole, consensus), RUNS), of_all, consensus=consensus)
            every: dict[str, str] = {}
            every_alone: dict[str, str] = {}
            for name in RUNS:
                peptides = comparison.search(comparison.library(others[name], consensus), [name])
                report("library of the others", peptides, alone[name], consensus=consensus, run=name)
                every |= peptides
                every_alone |= alone[name]
            report("library of the others, all", every, every_alone, consensus=consensus)


if __name__ == "__main__":
    main()
