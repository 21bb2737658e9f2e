"""Measured false discovery rate at a reported 1 % in small libraries of real spectra that lack half of the peptides of the run.

    python -m benchmarks.left_out_entries --data FOLDER [--sets ltq ecoli qe metaproteome velos hela nist] [--entries 20 50 100 300]
        [--trials 20] [--first 0] [--tolerance "10 ppm"] [--decoys 0] [--all] [--moved]

Ion traps: `ltq`, BSA1-3 against 18 proteins and an absent proteome; `ecoli`. Q Exactive: `qe`, Shewanella; `metaproteome`.
Orbitrap Velos: `velos`, yeast; `hela`. A run is identified, and matches accepted at 1 % are assumed to be true. In each trial half of
the peptides, by sequence, are left out; of the other peptides, up to `--entries` entries (peptidoform and charge) are chosen; each entry is
one spectrum, which is not searched. All other identified spectra are searched in this library. An accepted match is false if the peptide of
its entry differs from that of the spectrum (I as L): `left_out` counts false matches of spectra whose peptide is not in the library,
`others` those of other spectra. Of the false matches, `homologous` have entries whose fragments share half of their masses with the peptide
of the spectrum. In `contained` others, the spectrum has more fragments of the entry's peptide that its own peptide does not explain than
for 99 of 100 other orders of the residues, so that both peptides were isolated together. `nist`: BSA1-3 are searched in the entries of
NIST's library of BSA, with half of its peptides left out; all spectra are treated as spectra that were not identified (see below). With
`--all`, spectra that were not identified are searched too. An accepted match of such a spectrum is false (`resembling`) if, in the library
of all peptides, the spectrum is more similar to an entry of a left-out peptide. Other false matches of these spectra are not recognised, so
that their share is a lower bound. `unidentified` is the number of accepted matches of such spectra. `share` is pooled over trials, with a
95 % interval from resampling trials (it is somewhat too narrow, since trials share their spectra). `mean_share` is the mean of the shares
of the trials, 0 for trials in which nothing is accepted, as in the definition of a false discovery rate. Trials are numbered, so that
results of some trials can be confirmed on others (`--first`).

`--moved` tests whether decoys match as often as foreign peptides. The library has all entries, and the precursors of all identified spectra
are moved by 7 to 19 Th, so that each match within 3 Da is false; entries of the spectrum's own peptide, and homologous ones, are not
counted. For each similarity: `targets`, `decoys_by_ratio` (winning decoys divided by the number of decoys per target), and their `ratio`,
which is 1 if decoys match as often as foreign peptides. `accepted` is the number accepted at 1 %. One JSON line for each figure.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.false_matches import FalseMatches
from benchmarks.figures import emit, existing
from benchmarks.library_search import searched
from proteoscope.engine.arrays import take_segments
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.library_search.entry import LIBRARY_SEARCH
from proteoscope.engine.library_search.error_rates import RatedMatches
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectral_library import SpectralLibrary

SHEWANELLA, METAPROTEOME = "spectra/qc_shew_qe", "spectra/metaproteome_qe"
SETS = {
    "ltq": (
        "low-resolution",
        [f"spectra/bsa_ltq/BSA{number}.mzML" for number in (1, 2, 3)],
        "proteomes/18Protein_SoCe_Tr_detergents_trace.fasta",
    ),
    "ecoli": ("low-resolution", ["spectra/Ecoli_MS2_small.mzML"], "proteomes/ecoli_13spiked_2021_04.fasta"),
    "qe": (
        "high-resolution",
        [f"{SHEWANELLA}/QC_Shew_18_02_Excerpt.mzXML"],
        f"{SHEWANELLA}/Shewanella_oneidensis_MR1_2010-04-22_Tryp_Pig_Bov.fasta",
    ),
    "metaproteome": ("high-resolution", [f"{METAPROTEOME}/2016_Jan_12_QE2_47_trimmed.mzML"], f"{METAPROTEOME}/metapeptides.fasta"),
    "velos": ("high-resolution", ["spectra/SmallCalibratible_Yeast.mzML"], "proteomes/yeast_2021_04_reviewed_UPS.fasta"),
    "hela": (
        "high-resolution",
        ["spectra/hela_velos/TaGe_SA_HeLa_04_subset_longestSeq.mzML", "spectra/hela_velos/TaGe_SA_A549_3_snip.mzML"],
        "proteomes/human.small.comet.fasta",
    ),
}
MOVES, SIMILARITIES = (-19.0, -13.0, -7.0, 7.0, 13.0, 19.0), (0.1, 0.2, 0.3, 0.4)
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
        """Identify the runs of a set and return the matches accepted at 1 %."""
        preset, runs, database = SETS[name]
        files = [existing(data / run) for run in runs]
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
        mz, offsets = take_segments(spectra.mz, spectra.offsets, of)
        intensity, _ = take_segments(spectra.intensity, spectra.offsets, of)
        nothing, taken = pa.nulls(n, pa.string()), pa.array(rows)
        texts = [self.peptidoform.take(taken).cast(pa.string()), self.sequence.take(taken).cast(pa.string())]
        return SpectralLibrary(
            (Path("made"),),
            np.zeros(n, np.int64),
            np.arange(n) + 1,
            texts[0],
            *texts,
            nothing,
            nothing,
            nothing,
            nothing,
            self.charge[rows],
            spectra.precursor_mz[of],
            np.full(n, np.nan),
            np.zeros(n, np.bool_),
            np.ones(n, np.int64),
            offsets,
            mz,
            intensity,
        )


class Counts(NamedTuple):
    """Counts of a trial.

    Entries; accepted matches; false ones of left out and of other peptides; homologous and contained ones of these; accepted and false ones
    of spectra that were not identified.
    """

    entries: int
    accepted: int
    left_out: int = 0
    others: int = 0
    homologous: int = 0
    contained: int = 0
    unidentified: int = 0
    resembling: int = 0


def _accepted(matches: RatedMatches, parameters: LibrarySearchParameters) -> NDArray[np.bool_]:
    return (matches.q_value <= parameters.fdr) & ~matches.is_decoy & (matches.similarity >= parameters.minimum_similarity)


class RunTrials:
    """Trials with libraries made of the identified spectra of some runs."""

    def __init__(self, identified: Identified, parameters: LibrarySearchParameters, *, is_all: bool) -> None:
        self._identified, self._parameters, self._is_all = identified, parameters, is_all
        self._code = identified.sequence.dictionary_encode().indices.to_numpy()
        form = pc.binary_join_element_wise(identified.peptidoform.cast(pa.string()), pa.array(identified.charge.astype(str)), "/")
        self._form = form.dictionary_encode().indices.to_numpy()
        self._number = np.full(len(identified.spectra), -1)
        self._number[identified.row] = np.arange(len(identified.row))
        self._examined = FalseMatches(identified.spectra, identified.peptidoform, parameters.fragment_tolerance)

    def trial(self, n_entries: int, number: int) -> Counts:
        """Search a library of up to `n_entries` entries, without half of the peptides."""
        identified, code, generator = self._identified, self._code, np.random.default_rng((n_entries, number))
        n_peptides = int(code.max()) + 1
        is_left_out = np.zeros(n_peptides, np.bool_)
        is_left_out[generator.permutation(n_peptides)[: n_peptides // 2]] = True
        # Any spectrum of a peptidoform and charge may be its entry.
        order = generator.permutation(len(code))
        every = order[np.sort(np.unique(self._form[order], return_index=True)[1])]
        entries = np.sort(every[~is_left_out[code[every]]][:n_entries])
        without = np.setdiff1d(np.arange(len(code)), entries)
        rows = np.setdiff1d(np.arange(len(identified.spectra)), identified.row[every]) if self._is_all else identified.row[without]
        parameters = self._parameters.changed(random_seed=number)
        matches, references, _ = searched(identified.library(entries), identified.spectra.only(rows), parameters)
        accepted = matches.take(np.flatnonzero(_accepted(matches, parameters)))
        spectrum, entry = self._number[accepted.spectrum], entries[references.entry[accepted.reference]]
        is_known = spectrum >= 0
        n_resembling = 0
        if self._is_all:
            left_out_entries = np.sort(every[is_left_out[code[every]]])
            others, _, _ = searched(identified.library(left_out_entries), identified.spectra.only(rows), parameters.changed(decoys="none"))
            similarity = np.zeros(len(identified.spectra))
            similarity[others.identified.spectrum] = others.identified.similarity
            n_resembling = int((similarity[accepted.spectrum] > accepted.similarity)[~is_known].sum())
        is_false = is_known & (code[entry] != code[spectrum])
        is_there = np.isin(code, code[entries])[spectrum]
        homologous, contained = self._kinds(spectrum[is_false], entry[is_false])
        return Counts(
            len(entries),
            len(spectrum),
            int((is_false & ~is_there).sum()),
            int((is_false & is_there).sum()),
            homologous,
            contained,
            int((~is_known).sum()),
            n_resembling,
        )

    def _kinds(self, spectrum: NDArray[np.int64], entry: NDArray[np.int64]) -> tuple[int, int]:
        """Return the numbers of false matches of homologous peptides, and of other peptides that the spectrum contains."""
        homologous = contained = 0
        for query, reference in zip(spectrum.tolist(), entry.tolist(), strict=True):
            if self._examined.is_homologous(reference, query):
                homologous += 1
            else:
                contained += self._examined.is_contained(
                    int(self._identified.row[query]), query, reference, int(self._identified.charge[query])
                )
        return homologous, contained

    def moved(self, labels: dict[str, object]) -> None:
        """Print how often targets and decoys win where each match is false."""
        identified, code = self._identified, self._code
        entries = np.sort(np.unique(self._form, return_index=True)[1])
        library, targets, decoys, accepted = identified.library(entries), np.zeros(len(SIMILARITIES)), np.zeros(len(SIMILARITIES)), 0
        parameters = self._parameters.changed(precursor_tolerance="3 Da")
        for seed, move in enumerate(MOVES):
            spectra = replace(identified.spectra, precursor_mz=identified.spectra.precursor_mz + move).only(identified.row)
            matches, references, _ = searched(library, spectra, parameters.changed(random_seed=seed))
            spectrum, entry = self._number[matches.spectrum], entries[references.entry[matches.reference]]
            pairs = zip(entry.tolist(), spectrum.tolist(), strict=True)
            is_foreign = (code[spectrum] != code[entry]) & ~np.array([self._examined.is_homologous(*pair) for pair in pairs], np.bool_)
            accepted += int((_accepted(matches, parameters) & is_foreign).sum())
            similar = is_foreign[:, None] & (matches.similarity[:, None] >= np.array(SIMILARITIES)[None])
            targets += (similar & ~matches.is_decoy[:, None]).sum(axis=0)
            decoys += (similar & matches.is_decoy[:, None]).sum(axis=0) / references.decoy_ratio
        for similarity, n_targets, n_decoys in zip(SIMILARITIES, targets.tolist(), decoys.tolist(), strict=True):
            emit(
                labels,
                figure="moved precursors",
                similarity=similarity,
                spectra=len(code) * len(MOVES),
                targets=int(n_targets),
                decoys_by_ratio=round(n_decoys, 1),
                ratio=round(n_targets / max(n_decoys, 1e-9), 2) if n_decoys else None,
                accepted=accepted,
            )


class LibraryTrials:
    """Trials with the entries of a library, searched with all spectra of some runs."""

    def __init__(self, data: Path, parameters: LibrarySearchParameters) -> None:
        self._parameters = parameters
        self._library = read_libraries([existing(data / "libraries" / "nist-bsa_consensus.msp")])
        self._spectra = read_spectra([existing(data / run) for run in SETS["ltq"][1]], threads=2)
        self._code = pc.replace_substring(self._library.sequence, "I", "L").dictionary_encode().indices.to_numpy()
        identified, references, _ = searched(self._library, self._spectra, parameters.changed(decoys="none"))
        self._similarity, self._best = np.zeros(len(self._spectra)), np.full(len(self._spectra), -1)
        self._similarity[identified.spectrum] = identified.similarity
        self._best[identified.spectrum] = self._code[references.entry[identified.reference]]

    def trial(self, n_entries: int, number: int) -> Counts:
        """Search a library of up to `n_entries` entries, without half of the peptides."""
        generator, n_peptides = np.random.default_rng((n_entries, number)), int(self._code.max()) + 1
        is_left_out = np.zeros(n_peptides, np.bool_)
        is_left_out[generator.permutation(n_peptides)[: n_peptides // 2]] = True
        entries = np.sort(generator.permutation(np.flatnonzero(~is_left_out[self._code]))[:n_entries])
        parameters = self._parameters.changed(random_seed=number)
        matches, references, _ = searched(self._library.take(entries), self._spectra, parameters)
        rows = _accepted(matches, parameters)
        spectrum = matches.spectrum[rows]
        code = self._code[entries[references.entry[matches.reference[rows]]]]
        is_false = (self._best[spectrum] != code) & (self._similarity[spectrum] > matches.similarity[rows])
        return Counts(len(entries), len(spectrum), unidentified=len(spectrum), resembling=int(is_false.sum()))


def measure(made: Callable[[int, int], Counts], n_entries: int, first: int, n_trials: int, **labels: object) -> None:
    """Print the share of false matches over some trials; `made` runs a trial, given the number of entries and the trial's number."""
    counts = Counts(*np.array([made(n_entries, first + k) for k in range(n_trials)]).T)
    accepted, false = np.asarray(counts.accepted), np.asarray(counts.left_out + counts.others + counts.resembling)
    drawn = np.random.default_rng(1).integers(0, n_trials, (N_DRAWN, n_trials))
    low, high = np.quantile(false[drawn].sum(axis=1) / np.maximum(1, accepted[drawn].sum(axis=1)), (0.025, 0.975))
    shares = false / np.maximum(1, accepted)
    sums = {name: int(np.sum(values)) for name, values in counts._asdict().items() if name != "entries"}
    emit(
        labels,
        figure="left out entries",
        entries=n_entries,
        most_entries=int(np.max(counts.entries)),
        trials=n_trials,
        first=first,
        with_matches=int((accepted > 0).sum()),
        **sums,
        share=round(float(false.sum() / max(1, accepted.sum())), 4),
        low=round(float(low), 4),
        high=round(float(high), 4),
        mean_share=round(float(shares.mean()), 4),
    )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=(*SETS, "nist"), default=[*SETS, "nist"])
    parser.add_argument("--entries", type=int, nargs="+", default=[20, 50, 100, 300])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--tolerance", default="", help="of precursors (default: that of the preset)")
    parser.add_argument("--decoys", type=int, default=0, help="of each peptide (default: by the size of the library)")
    parser.add_argument("--all", action="store_true", help="search the spectra that were not identified too")
    parser.add_argument("--moved", action="store_true", help="move precursors, so that each match is false; not nist")
    given = parser.parse_args()
    for name in given.sets:
        parameters = LIBRARY_SEARCH.parameters_of("low-resolution" if name == "nist" else SETS[name][0])
        parameters = parameters.changed(decoys_per_peptide=given.decoys)
        if given.tolerance:
            parameters = parameters.changed(precursor_tolerance=given.tolerance)
        labels = {
            "set": name,
            "tolerance": str(parameters.precursor_tolerance),
            "decoys": given.decoys,
            "all": given.all or name == "nist",
        }
        if name == "nist":
            made: Callable[[int, int], Counts] = LibraryTrials(given.data, parameters).trial
        else:
            identified = Identified.from_search(given.data, name)
            emit({}, figure="identified", set=name, spectra=len(identified.charge), peptides=len(identified.sequence.unique()))
            trials = RunTrials(identified, parameters, is_all=given.all)
            if given.moved:
                trials.moved({"set": name, "decoys": given.decoys})
                continue
            made = trials.trial
        for n_entries in given.entries:
            measure(made, n_entries, given.first, given.trials, **labels)


if __name__ == "__main__":
    main()
