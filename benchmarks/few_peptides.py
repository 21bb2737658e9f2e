"""Measured false discovery rate at a reported 1 % in libraries of few peptides, with spectra whose peptides are known.

    python -m benchmarks.few_peptides --data FOLDER [--peptides 20 100 1000] [--trials 200] [--short]

A library has predicted spectra of peptides of a proteome (`18Protein_SoCe_Tr_detergents_trace.fasta`). Three of five of these peptides have
one to five spectra each in the run: predicted peaks, some of them missing, others with changed heights, and noise. As many spectra, also
one to five per peptide, are of other peptides of the proteome whose mass is within 10 ppm of that of a peptide in the library; replicates
then match the same false entry repeatedly. A match accepted at 1 % is false if the spectrum is not of the peptide of its entry. The figure
is the mean over trials of the share of false matches (0 if none is accepted), as in the definition of a false discovery rate, with two
standard errors. `--short` uses peptides of 5 and 6 residues, which have few different orders. With `single`, each peptide has one decoy,
even in small libraries; otherwise it has as many as the search creates. The fragment tolerance is 0.5 Da.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.figures import emit, existing
from benchmarks.library_search import searched
from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.prediction import PredictedLibrary
from proteoscope.engine.library_search.prediction_parameters import PredictionParameters
from proteoscope.engine.peptides.indexes import Databases, build_indexes
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.library_entries import spectral_library
from proteoscope.engine.spectra.spectral_library import SpectralLibrary

RESOURCES = Resources(2)
MOST_SPECTRA, NOISE_PEAKS = 5, 30


def proteome(database: Path, *, is_short: bool) -> SpectralLibrary:
    """Return a library of all peptides with two charges, in order of their masses."""
    lengths = {"minimum_length": 5, "maximum_length": 6, "minimum_precursor_mz": 100.0} if is_short else {"minimum_length": 7}
    parameters = PredictionParameters().changed(missed_cleavages=0, minimum_charge=2, maximum_charge=2, **lengths)
    with tempfile.TemporaryDirectory() as folder:
        indexes = build_indexes(Databases([database], [], {}), Path(folder), parameters, RESOURCES)
        library = spectral_library(list(PredictedLibrary(indexes, parameters, RESOURCES).batches()), database)
    library = library.take(np.flatnonzero(np.diff(library.offsets) >= 5))
    return library.take(np.argsort(library.precursor_mz, kind="stable"))


class Trial:
    """A library, and spectra with known peptides."""

    def __init__(self, whole: SpectralLibrary, n_peptides: int, generator: np.random.Generator) -> None:
        self._whole, self._generator = whole, generator
        plain = pc.replace_substring(whole.sequence, "I", "L")
        chosen = np.sort(generator.choice(len(whole), n_peptides, replace=False))
        self.library, present = whole.take(chosen), generator.permutation(chosen)[: -(-n_peptides * 3 // 5)]
        chosen_identifiers = set(plain.take(pa.array(chosen)).to_pylist())
        foreign = list[int]()
        while len(foreign) < len(present):
            mz = whole.precursor_mz[generator.choice(chosen)]
            low, high = np.searchsorted(whole.precursor_mz, (mz * (1 - 1e-5), mz * (1 + 1e-5)))
            start = int(generator.integers(low, high))
            if plain[start].as_py() not in chosen_identifiers:
                foreign.append(start)
        of = np.concatenate((present, np.array(foreign, np.int64)))
        self.row = np.repeat(of, generator.integers(1, MOST_SPECTRA + 1, len(of)))
        self.is_foreign = ~np.isin(self.row, chosen)
        self.spectra = self._spectra()

    def _spectra(self) -> Spectra:
        """Return peaks as an instrument might measure them."""
        whole, generator, n = self._whole, self._generator, len(self.row)
        mz, intensity, counts = list[np.ndarray](), list[np.ndarray](), np.empty(n, np.int64)
        for k, row in enumerate(self.row.tolist()):
            peaks = slice(*whole.offsets[row : row + 2])
            is_retained = generator.random(peaks.stop - peaks.start) < generator.uniform(0.3, 1.0)
            seen = whole.mz[peaks][is_retained] * (1 + generator.normal(0, 1e-4, is_retained.sum()))
            heights = whole.intensity[peaks][is_retained] * generator.lognormal(0, 0.7, is_retained.sum())
            noise = generator.exponential(generator.uniform(200, 2000), NOISE_PEAKS)
            all_mz = np.concatenate((seen, generator.uniform(100, 2 * whole.precursor_mz[row], NOISE_PEAKS)))
            order = np.argsort(all_mz)
            mz.append(all_mz[order])
            intensity.append(np.concatenate((heights, noise))[order].astype(np.float32))
            counts[k] = len(order)
        precursor = whole.precursor_mz[self.row] * (1 + generator.normal(0, 2e-6, n))
        return Spectra(
            (Path("made"),),
            np.zeros(n, np.int32),
            [str(k) for k in range(n)],
            np.full(n, -1, np.int64),
            np.arange(n),
            np.full(n, np.nan),
            precursor,
            np.zeros(n, np.float32),
            np.full(n, 1 << 2, np.uint32),
            segment_offsets(counts),
            np.concatenate(mz),
            np.concatenate(intensity),
        )


def measure(whole: SpectralLibrary, n_peptides: int, n_trials: int, **about: object) -> None:
    """Print shares of false matches, with several decoys per peptide, and with one."""
    for decoys, per_peptide in (("several", 0), ("single", 1)):
        shares, accepted, recovered, ratios = np.zeros((4, n_trials))
        for trial in range(n_trials):
            made = Trial(whole, n_peptides, np.random.default_rng((n_peptides, trial)))
            parameters = LibrarySearchParameters().changed(
                fragment_tolerance="0.5 Da", minimum_matched_peaks=5, seed=trial, decoys_per_peptide=per_peptide, minimum_similarity=0.1
            )
            matches, made_references, _ = searched(made.library, made.spectra, parameters)
            rows = (matches.q_value <= parameters.fdr) & ~matches.is_decoy & (matches.similarity >= parameters.minimum_similarity)
            library = made.library.sequence.take(pa.array(made_references.entry[matches.reference[rows]]))
            true = whole.sequence.take(pa.array(made.row[matches.spectrum[rows]]))
            accepted[trial] = rows.sum()
            shares[trial] = rows.sum() and pc.sum(pc.not_equal(library, true)).as_py() / rows.sum()
            recovered[trial] = (rows.sum() * (1 - shares[trial])) / max(1, (~made.is_foreign).sum())
            ratios[trial] = made_references.decoy_ratio
        error = 2 * shares.std(ddof=1) / np.sqrt(n_trials)
        emit(
            {},
            figure="few peptides",
            peptides=n_peptides,
            decoys=decoys,
            trials=n_trials,
            accepted=int(accepted.sum()),
            found_of_right=round(recovered.mean(), 3),
            trials_with_matches=round((accepted > 0).mean(), 3),
            false_share=round(shares.mean(), 4),
            two_errors=round(error, 4),
            decoy_ratio=round(ratios.mean(), 2),
            **about,
        )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--peptides", type=int, nargs="+", default=[20, 100, 1000])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    database = existing(given.data / "proteomes" / "18Protein_SoCe_Tr_detergents_trace.fasta")
    whole = proteome(database, is_short=given.short)
    for n_peptides in given.peptides:
        measure(
            whole, n_peptides, given.trials if n_peptides < 1000 else max(2, given.trials // 10), length="5-6" if given.short else "7-50"
        )


if __name__ == "__main__":
    main()
