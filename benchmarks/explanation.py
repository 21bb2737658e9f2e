"""Error rates of explanations, measured by repeatedly leaving peptides out of the library.

    python -m benchmarks.explanation --data FOLDER [--trials 12]

Each set is first identified with a shipped preset. In each trial a fraction of the peptide sequences is left out, the library contains one
spectrum of each other peptide and charge, and all other spectra of the run are explained. One JSON line per set and fraction: rows with
q <= 0.01 in all trials, and among these the spectra of peptides that were left out, and those of retained peptides that joined another
sequence; with ``--mass-difference`` also with other masses.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.figures import emit
from proteoscope.engine.clustering.parameters import ExplanationParameters
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.matches.identified_spectra import read_identified
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.project import Project
from proteoscope.engine.spectra.tables import read_spectra_table
from tests.engine.clustering.leave_outs import leave_out
from tests.searching import identify

_SETS = {
    "metaproteome": ("spectra/metaproteome_qe/*.mzML", "spectra/metaproteome_qe/*.fasta", "high-resolution", "standard"),
    "qc_shew": ("spectra/qc_shew_qe/*.mzXML", "spectra/qc_shew_qe/*.fasta", "high-resolution", "standard"),
    "bench": ("spectra/bench_hires_2269.mgf", "proteomes/combo.fasta", "high-resolution", "standard"),
    "bsa": ("spectra/bsa_ltq/BSA1.mzML", "proteomes/18Protein_SoCe_Tr_detergents_trace.fasta", "low-resolution", "low-resolution"),
    "ecoli": ("spectra/Ecoli_MS2_small.mzML", "proteomes/ecoli_13spiked_2021_04.fasta", "low-resolution", "low-resolution"),
}


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the unpacked test data")
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--mass-difference", type=float, default=0.0)
    options = parser.parse_args()
    for name, (spectra, database, preset, known_database) in _SETS.items():
        searched = IdentificationParameters.checked(read_preset("identify", preset))
        parameters = ExplanationParameters.checked(read_preset("explain", known_database)).changed(mass_difference=options.mass_difference)
        with tempfile.TemporaryDirectory() as folder:
            files, proteins = sorted(options.data.glob(spectra)), sorted(options.data.glob(database))
            identify(files, proteins, Path(folder) / "p", searched, device="cpu")
            project = Project.open(Path(folder) / "p")
            held = read_spectra_table(project.table("spectra"))
            identified = read_identified(project.table("psms"), len(held), 0.01)
        for share in (0.3, 0.5):
            trials = [leave_out(held, identified, share, seed, parameters, searched.fragment_tolerance) for seed in range(options.trials)]
            rows, left_out, other = (sum(column) for column in zip(*trials, strict=True))
            emit(
                {"what": "leave-outs", "set": name, "share": share, "trials": options.trials, "mass_difference": options.mass_difference},
                identified=len(identified),
                peptides=len(identified.peptides),
                rows=rows,
                left_out=left_out,
                other=other,
            )


if __name__ == "__main__":
    main()
