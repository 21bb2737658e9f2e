"""Is 1 % true in small libraries of real spectra: half of the peptides of a run are left out of the library that is made of it.

    python -m benchmarks.left_out_entries --data FOLDER [--sets ltq qe nist] [--entries 20 50 100 300] [--trials 20] [--first 0]
        [--tolerance "10 ppm"] [--all]

`ltq`: BSA1-3 against 18 proteins and a proteome that is not there; `qe`: Shewanella on a Q Exactive. A run is identified, and what is
accepted at 1 % is taken for the truth. In each trial half of the peptides, by sequence, are left out; of the others up to so many entries
(peptidoform and charge) are chosen, each a spectrum of its own, which is not searched. All other identified spectra are searched in this
library. An accepted match whose entry is of another peptide than the spectrum (I as L) is false: `left_out` of spectra whose peptide the
library does not have, `others` of the rest. `nist`: BSA1-3 against the entries of NIST's library of BSA, half of its peptides left out, as
of spectra that were not identified. With `--all` the spectra that were not identified are searched too. Of these an accepted match is
false, `resembling`, if the spectrum resembles an entry of a left out peptide more, in the library of all peptides: other false ones of
them are not seen, so that their share is the least that is possible. `unidentified` of the accepted ones are of such spectra. `share` is
pooled over trials, with a 95 % interval from drawing trials anew (they share their spectra, so that it is rather too narrow); `mean_share`
is the mean of the trials' shares, 0 where nothing is accepted, which a false discovery rate promises to hold. Trials are numbered, so that
others (`--first`) can confirm what some suggest. One JSON line for each.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.figures import emit, existing
from benchmarks.library_search import searched
from proteoscope.engine.arrays import take_runs
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.library_search.entry import LIBRARY_SEARCH
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectral_library import SpectralLibrary

SHEWANELLA = "spectra/qc_shew_qe"
SETS = {
    "ltq": (
        "low-resolution", [f"spectra/bsa_ltq/BSA{number}.mzML" for number in (1, 2, 3)],
        "proteomes/18Protein_SoCe_Tr_detergents_trace.fasta",
    ),
    "qe": (
        "high-resolution", [f"{SHEWANELLA}/QC_Shew_18_02_Excerpt.mzXML"],
        f"{SHEWANELLA}/Shewanella_oneidensis_MR1_2010-04-22_Tryp_Pig_Bov.fasta",
    ),
}  # fmt: skip
N_DRAWN = 2000


@dataclass(frozen=True)
class Identified:
    """Identified spectra, n of them, the best first.

    Attributes
    ----------
    spectra : Spectra
        All of the runs.
    row : ndarray of int64, shape (n,)
        Row in `spectra`.
    peptidoform, sequence : StringArray, shape (n,)
        Sequences with L for I.
    charge : ndarray of int64, shape (n,)
    """

    spectra: Spectra
    row: NDArray[np.int64]
    peptidoform: pa.StringArray
    sequence: pa.StringArray
    charge: NDArray[np.int64]

    @classmethod
    def from_search(cls, data: Path, name: str) -> Identified:
        """Identify the runs of a set and return what is accepted at 1 %."""
        preset, runs, database = SETS[name]
        files = [existing(data / one) for one in runs]
        with tempfile.TemporaryDirectory() as folder:
            inputs = {"spectra": files, "database": [existing(data / database)]}
            run_search("identify", inputs, project=Path(folder) / "project", preset=preset, device="cpu")
            project = Project.open(Path(folder) / "project")
            columns = ["spectrum", "peptide", "sequence", "charge", "rank", "is_decoy", "q_value", "score"]
            table = pq.read_table(project.table("psms", project.runs()[-1].id), columns=columns)
        wanted = pc.and_(pc.and_(pc.equal(table["rank"], 1), pc.invert(table["is_decoy"])), pc.less_equal(table["q_value"], 0.01))
        table = table.filter(pc.fill_null(wanted, False)).sort_by([("score", "descending")]).combine_chunks()
        row, charge = (table[name].to_numpy().astype(np.int64) for name in ("spectrum", "charge"))
        sequence = pc.replace_substring(table["sequence"], "I", "L").combine_chunks()
        return cls(read_spectra(files, threads=2), row, table["peptide"].combine_chunks(), sequence, charge)

    def library(self, rows: NDArray[np.int64]) -> SpectralLibrary:
        """Make a library of some spectra, one entry each."""
        spectra, n, of = self.spectra, len(rows), self.row[rows]
        mz, offsets = take_runs(spectra.mz, spectra.offsets, of)
        intensity, _ = take_runs(spectra.intensity, spectra.offsets, of)
        nothing, taken = pa.nulls(n, pa.string()), pa.array(rows)
        texts = [self.peptidoform.take(taken).cast(pa.string()), self.sequence.take(taken).cast(pa.string())]
        return SpectralLibrary(
            (Path("made"),), np.zeros(n, np.int64), np.arange(n) + 1, texts[0], *texts, nothing, nothing, nothing, nothing,
            self.charge[rows], spectra.precursor_mz[of], np.full(n, np.nan), np.zeros(n, np.bool_), np.ones(n, np.int64), offsets, mz,
            intensity,
        )  # fmt: skip


def trial(found: Identified, parameters: LibrarySearchParameters, n_entries: int, number: int, *, is_all: bool) -> tuple[int, ...]:
    """Return the number of entries, of accepted matches, of false ones of left out and of other peptides, of accepted and of false ones
    of spectra that were not identified."""
    generator = np.random.default_rng((n_entries, number))
    code = found.sequence.dictionary_encode().indices.to_numpy()
    n_peptides = int(code.max()) + 1
    is_left_out = np.zeros(n_peptides, np.bool_)
    is_left_out[generator.permutation(n_peptides)[: n_peptides // 2]] = True
    form = pc.binary_join_element_wise(found.peptidoform.cast(pa.string()), pa.array(found.charge.astype(str)), "/")
    # Any spectrum of a peptidoform and charge may be its entry.
    order = generator.permutation(len(code))
    _, first = np.unique(form.dictionary_encode().indices.to_numpy()[order], return_index=True)
    every = order[np.sort(first)]
    entries = np.sort(every[~is_left_out[code[every]]][:n_entries])
    is_there = np.isin(code, code[entries])
    asked = np.setdiff1d(np.arange(len(code)), entries)
    searched_rows = np.setdiff1d(np.arange(len(found.spectra)), found.row[every]) if is_all else found.row[asked]
    judged, references, _ = searched(found.library(entries), found.spectra.only(searched_rows), parameters.changed(seed=number))
    rows = (judged.q_value <= parameters.fdr) & ~judged.is_decoy & (judged.found.similarity >= parameters.minimum_similarity)
    at = np.full(len(found.spectra), -1)
    at[found.row] = np.arange(len(found.row))
    spectrum = at[judged.found.spectrum[rows]]
    is_known = spectrum >= 0
    n_resembling = 0
    if is_all:
        left_out_entries = np.sort(every[is_left_out[code[every]]])
        beside, _, _ = searched(found.library(left_out_entries), found.spectra.only(searched_rows), parameters.changed(decoys="none"))
        similarity = np.zeros(len(found.spectra))
        similarity[beside.found.spectrum] = beside.found.similarity
        n_resembling = int((similarity[judged.found.spectrum[rows]] > judged.found.similarity[rows])[~is_known].sum())
    spectrum = spectrum[is_known]
    is_false = code[entries[references.entry[judged.found.reference[rows]][is_known]]] != code[spectrum]
    left_out, others = is_false & ~is_there[spectrum], is_false & is_there[spectrum]
    n_unidentified = int((~is_known).sum())
    return len(entries), n_unidentified + len(spectrum), int(left_out.sum()), int(others.sum()), n_unidentified, n_resembling


class LibraryTrials:
    """Trials with the entries of a library, searched with all spectra of some runs."""

    def __init__(self, data: Path, parameters: LibrarySearchParameters) -> None:
        self._parameters = parameters
        self._library = read_libraries([data / "libraries" / "nist-bsa_consensus.msp"])
        self._spectra = read_spectra([existing(data / one) for one in SETS["ltq"][1]], threads=2)
        self._code = pc.replace_substring(self._library.sequence, "I", "L").dictionary_encode().indices.to_numpy()
        found, references, _ = searched(self._library, self._spectra, parameters.changed(decoys="none"))
        self._similarity, self._best = np.zeros(len(self._spectra)), np.full(len(self._spectra), -1)
        self._similarity[found.found.spectrum] = found.found.similarity
        self._best[found.found.spectrum] = self._code[references.entry[found.found.reference]]

    def trial(self, n_entries: int, number: int) -> tuple[int, ...]:
        """Return the same as `trial`."""
        generator, n_peptides = np.random.default_rng((n_entries, number)), int(self._code.max()) + 1
        is_left_out = np.zeros(n_peptides, np.bool_)
        is_left_out[generator.permutation(n_peptides)[: n_peptides // 2]] = True
        entries = np.sort(generator.permutation(np.flatnonzero(~is_left_out[self._code]))[:n_entries])
        parameters = self._parameters.changed(seed=number)
        judged, references, _ = searched(self._library.take(entries), self._spectra, parameters)
        rows = (judged.q_value <= parameters.fdr) & ~judged.is_decoy & (judged.found.similarity >= parameters.minimum_similarity)
        spectrum = judged.found.spectrum[rows]
        code = self._code[entries[references.entry[judged.found.reference[rows]]]]
        is_false = (self._best[spectrum] != code) & (self._similarity[spectrum] > judged.found.similarity[rows])
        return len(entries), len(spectrum), 0, 0, len(spectrum), int(is_false.sum())


def measure(
    made: Callable[[int, int], tuple[int, ...]], n_entries: int, first: int, n_trials: int, **labels: object
) -> None:  # fmt: skip
    """Print the share of false matches over some trials, which `made` makes by the number of entries and their own."""
    counts = [made(n_entries, first + k) for k in range(n_trials)]
    entries, accepted, left_out, others, unidentified, resembling = np.array(counts).T
    false = left_out + others + resembling
    drawn = np.random.default_rng(1).integers(0, n_trials, (N_DRAWN, n_trials))
    low, high = np.quantile(false[drawn].sum(axis=1) / np.maximum(1, accepted[drawn].sum(axis=1)), (0.025, 0.975))
    shares = false / np.maximum(1, accepted)
    emit(labels, figure="left out entries", entries=n_entries, most_entries=int(entries.max()), trials=n_trials, first=first,
         accepted=int(accepted.sum()), with_matches=int((accepted > 0).sum()), left_out=int(left_out.sum()), others=int(others.sum()),
         unidentified=int(unidentified.sum()), resembling=int(resembling.sum()),
         share=round(float(false.sum() / max(1, accepted.sum())), 4), low=round(float(low), 4), high=round(float(high), 4),
         mean_share=round(float(shares.mean()), 4))  # fmt: skip


def main() -> None:
    """See the head."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=(*SETS, "nist"), default=[*SETS, "nist"])
    parser.add_argument("--entries", type=int, nargs="+", default=[20, 50, 100, 300])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--tolerance", default="", help="of precursors (default: that of the preset)")
    parser.add_argument("--all", action="store_true", help="search the spectra that were not identified too")
    given = parser.parse_args()
    for name in given.sets:
        parameters = LIBRARY_SEARCH.parameters_of("low-resolution" if name == "nist" else SETS[name][0])
        if given.tolerance:
            parameters = parameters.changed(precursor_tolerance=given.tolerance)
        made: Callable[[int, int], tuple[int, ...]]
        if name == "nist":
            made = LibraryTrials(given.data, parameters).trial
        else:
            found = Identified.from_search(given.data, name)
            emit({}, figure="identified", set=name, spectra=len(found.charge), peptides=len(found.sequence.unique()))
            made = partial(trial, found, parameters, is_all=given.all)
        for n_entries in given.entries:
            labels = {"set": name, "tolerance": str(parameters.precursor_tolerance), "all": given.all or name == "nist"}
            measure(made, n_entries, given.first, given.trials, **labels)


if __name__ == "__main__":
    main()
