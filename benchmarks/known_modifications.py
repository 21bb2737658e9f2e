"""Accepted and false PSMs of the search for known modifications at their residues, on spectra of samples.

    python -m benchmarks.known_modifications --data FOLDER [SET ...] [--seeds N]

A share of the aspartates of each database is replaced by asparagine that is annotated as deamidated, which has the same mass. The sequences
in the spectra are then present only with a known modification. As many proteins of shuffled peptides are added, and all have, at random, as
many annotations per residue as a well-studied proteome: phosphorylation, acetylation and methylation, which no spectrum shows.

A JSON line for each set, seed and search: PSMs at 1 %, how many of them are false (twice those in shuffled proteins), and PSMs at a
measured share of 1 %. Searches: ``before`` (the original aspartates), ``idle`` (the same with the annotations that no spectrum shows),
``without`` (without the known modifications), ``known`` (with them), and ``variable`` (with deamidation of any asparagine instead). Lines
also have the CPU seconds, including those for the index.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

from benchmarks.entrapment_databases import digested
from benchmarks.entrapment_estimators import at_equal_share
from benchmarks.figures import emit, existing
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.project import Project
from tests.engine.formats.entry_files import swiss_prot_entry
from tests.peers.peer_datasets import DATASETS, read_fasta
from tests.searching import identify

SETS = ("qc_shew", "ecoli_ltq")
_DEAMIDATED = 0.3  # of the aspartates
_AT_RANDOM = (("STY", 0.03), ("K", 0.02), ("R", 0.01), ("N", 0.02))
_NAMES = {
    "S": "Phosphoserine",
    "T": "Phosphothreonine",
    "Y": "Phosphotyrosine",
    "K": "N6-acetyllysine",
    "R": "Omega-N-methylarginine",
    "N": "Deamidated asparagine",
}

Marked = list[tuple[str, str]]
"""Residues, each with its known modification, or ''."""


def planted(sequence: str, chance: random.Random, *, is_planted: bool) -> Marked:
    """Return a protein with aspartates that became deamidated asparagines, and with annotations at random."""
    marked = []
    for residue in sequence:
        name = ""
        if is_planted and residue == "D" and chance.random() < _DEAMIDATED:
            residue, name = "N", _NAMES["N"]
        elif any(residue in residues and chance.random() < share for residues, share in _AT_RANDOM):
            name = _NAMES[residue]
        marked.append((residue, name))
    return marked


def shuffled(marked: Marked, chance: random.Random) -> Marked:
    """Return the protein with the residues of each tryptic peptide shuffled except the last, with their modifications."""
    result, at = [], 0
    for peptide in digested("".join(residue for residue, _ in marked)):
        segment = marked[at : at + len(peptide)]
        result += [*chance.sample(segment[:-1], len(segment) - 1), segment[-1]]
        at += len(peptide)
    return result


def entry(number: int, prefix: str, marked: Marked) -> str:
    """Return an entry in Swiss-Prot's text format."""
    features = "".join(
        f'FT   MOD_RES         {at}\nFT                   /note="{name}"\n' for at, (_, name) in enumerate(marked, 1) if name
    )
    return swiss_prot_entry(f"{prefix}{number:06d}", f"{prefix}{number}_X", "".join(residue for residue, _ in marked), features)


def searched(spectra: list[Path], database: Path, folder: Path, parameters: IdentificationParameters) -> dict[str, object]:
    """Return figures of a search."""
    begun = time.process_time()
    summary = identify(spectra, [database], folder, parameters, threads=2)
    seconds = time.process_time() - begun
    rows = parquet.read_table(Project.open(folder).table("psms", None), columns=["rank", "is_decoy", "score", "q_value", "proteins"])
    rows = [row for row in rows.to_pylist() if row["rank"] == 1 and not row["is_decoy"]]
    rows.sort(key=lambda row: -row["score"])
    is_false = np.array([all("|T" in name for name in row["proteins"]) for row in rows])
    accepted = np.array([row["q_value"] for row in rows], np.float64) <= 0.01  # missing in small classes
    at_share = at_equal_share(np.arange(1, len(rows) + 1.0), 2.0 * np.cumsum(is_false), 0.01)
    return {
        "psms": int(accepted.sum()),
        "false": int(2 * (accepted & is_false).sum()),
        "psms_at_equal_share": round(at_share, 1),
        "peptides_in_index": summary.n_peptides_in_index,
        "seconds": round(seconds, 1),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for name in options.sets:
        dataset = DATASETS[name]
        spectra = [existing(options.data / path) for path in dataset.spectra]
        proteins = list(read_fasta(options.data / dataset.database).values())
        base = IdentificationParameters.checked(read_preset("identify", dataset.preset))
        with_known = base.changed(known_modifications=True)
        variable = base.changed(variable_modifications=(*base.variable_modifications, "Deamidated (N)"))
        for seed in range(options.seeds):
            with tempfile.TemporaryDirectory() as folder:
                for search, parameters in (
                    ("before", base),
                    ("idle", with_known),
                    ("without", base),
                    ("known", with_known),
                    ("variable", variable),
                ):
                    chance, text = random.Random(seed), []
                    for number, sequence in enumerate(proteins):
                        marked = planted(sequence, chance, is_planted=search not in ("before", "idle"))
                        text += [entry(number, "P", marked), entry(number, "T", shuffled(marked, chance))]
                    path = Path(folder) / f"{search}.dat"
                    path.write_text("".join(text))
                    figures = searched(spectra, path, Path(folder) / search, parameters)
                    emit({"set": name, "seed": seed, "search": search}, **figures)


if __name__ == "__main__":
    main()
