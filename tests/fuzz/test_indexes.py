"""A changed index never crashes the process."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

HARMLESS = {
    # Other numbers within the bounds of all columns: they change the results, but point to nothing outside.
    "peptide_flags",
    "peptide_letters",
    "peptide_position",
    "peptide_length",
    "peptide_occurrence",
    "protein_residues",
    "protein_accession_bytes",
    "protein_description_bytes",
    "protein_stops",
    "residues",
    "file_index",
    "accessions",
    "accession_lengths",
    "descriptions",
    "description_lengths",
    "proteins.n_targets",
    "proteins.n_contaminants",
    "proteins.decoy_prefix",
    "proteins.decoy_suffix",
    "proteins.n_left_out",
    "database.n_repeated_names",
    "database.n_nucleotides",
}


def test_index_with_a_corrupt_column_never_causes_a_crash(own_cache):
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.indexes", "--one-of", "12"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert int(lines[-1].split()[0]) > 400
    taken = [line.removeprefix("taken: ") for line in lines if line.startswith("taken: ")]
    assert {what.rpartition(": ")[0] for what in taken} <= HARMLESS
    assert len(taken) < 80
