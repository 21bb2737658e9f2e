"""Search for modified peptides: known modifications that it finds, and all results, compared with other searches.

    python -m benchmarks.modified --data FOLDER [--only put-back planted names entrapment replicates open filter]
        [--seeds N] [--first-seed N] [--threads N] [--jobs N] [--set FIELD=VALUE ...]

One JSON line for each figure, all at 1 % FDR:

* put back: spectra identified with an oxidation, a deamidation or an acetylated N-terminus are searched without specifying this
  modification. `matched` are matched to the right peptide with the right shift; of these, `found` are accepted at 1 %, `named` have the
  correct name, and `sited` are on the right residue. Spectra that are also identified without the modification, with an isotope error in
  its place, are left out and counted as `doubtful`. The last line counts only spectra that were found without an isotope error, since an
  isotope error may hide another modification.
* planted: in half of the spectra that are identified without a modification, the peaks of ions that contain a certain residue, and the
  precursor, are moved.
* names: single planted modifications that are hard to distinguish from others: `named` are named correctly, `tied` have the correct name
  among the names that are as likely as the first, and `listed` have it among all possible names.
* entrapment: in databases with a shuffled partner for each peptide (`entrapment_databases.py`), the share of false PSMs by the combined
  estimator, for all PSMs and by group, pooled over `--seeds` databases of each set, with a 95 % interval from resampling the sets, then the
  databases within sets; also for the open and the narrow search of the same spectra.
* replicates: the same for `modified` only, with spectra that repeat each other and mostly are of no peptide in the database: `tmt` and
  `made`, synthetic spectra with and without a label, five to ten for each peptide, four of five of them of sequences that are in no
  protein; `copies`, yeast and HeLa spectra, five copies of each with noise; `known`, spectra of synthetic and library peptides
  (`made_spectra.py`).
* filter: of the spectra that have a match at E <= 0.01 if every peptide within the range of shifts is localised and scored, the number that
  have the same match among the candidates with most matching masses. `--spectra` is the number of random spectra of each set.
* open: PSMs, peptides and seconds of `modified`, of `identify --preset open`, and of the narrow search, with the same spectra and proteins.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.entrapment_databases import ENTRAPMENT, paired_databases, write_fasta
from benchmarks.entrapment_spectra import noisy_copies
from benchmarks.figures import emit, existing
from benchmarks.made_spectra import LABEL, host_proteins, known_peptides, make_spectra
from benchmarks.modified_spectra import accepted, known_modifications, plant, read_psms, recovered
from proteoscope.engine.execution.resources import Resources, available_threads
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.modified_search.candidate_search import Candidates, find_candidates
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
from proteoscope.engine.modified_search.passes import plan_search
from proteoscope.engine.modified_search.ranking import place_candidates, rank_candidates
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.peptides.indexes import Databases, build_indexes
from proteoscope.engine.spectra.spectrum_index import build_spectrum_index
from proteoscope.kernels.layouts import QueryArrays
from tests.peers.peer_datasets import DATASETS, HUMAN, read_fasta
from tests.searching import find_modified, identify

_SETS = ("qc_shew", "metaproteome", "bench")
_VARIABLE = "Oxidation (M); Deamidated (NQ); Acetyl (Protein N-term)"
_PARTS = ("put-back", "planted", "names", "entrapment", "replicates", "open", "filter")
_ENTRAPPED = ("qc_shew", "metaproteome", "yeast_velos", "hela_a549")
_REPEATED = ("tmt", "made", "copies", "known")
_PRESENT, _ABSENT, _REPLICATES = 60, 240, (5, 10)  # peptides of synthetic spectra, in the database and in no protein, and spectra of each
_AMBIGUOUS = (("Formyl", "STK"), ("Phospho", "STY"), ("Sulfo", "STY"))
_LIBRARY = ("massivekb_selected_500.mgf", "proteometools_171_kuester_test.mgf")
_PRESETS = ("open", IdentificationParameters), ("high-resolution", IdentificationParameters)
_RESAMPLES = 1000
_SURE = -2.0  # log10 of the E-value of a match that counts as correct


Counts = NDArray[np.float64]  # accepted, entrapped, and false by the combined estimator


class _Search(NamedTuple):
    """Input of a search: files, proteins of the sample, parameters."""

    spectra: list[Path]
    proteins: dict[str, str]
    parameters: ModifiedSearchParameters


def _search_of(data: Path, name: str, seed: int, parameters: ModifiedSearchParameters, folder: Path) -> _Search:
    """Return the search of a set; synthetic spectra are written to the folder."""
    if name in DATASETS:
        dataset = DATASETS[name]
        return _Search(
            [existing(data / spectrum) for spectrum in dataset.spectra],
            read_fasta(data / (dataset.proteome or dataset.database)),
            parameters,
        )
    if name == "copies":
        sets = [DATASETS[name] for name in ("yeast_velos", "hela_a549")]
        spectra = [existing(data / path) for dataset in sets for path in dataset.spectra]
        proteins = {accession: text for dataset in sets for accession, text in read_fasta(data / dataset.database).items()}
        copied = noisy_copies(spectra, read_spectra(spectra), sets[0].precursor, sets[0].fragment, folder, seed)
        return _Search(copied, proteins, parameters)
    answers, human = known_peptides(data), read_fasta(data / HUMAN)
    proteins = host_proteins(human, answers.sequences)
    if name == "known":
        return _Search([existing(data / "spectra" / "known_ids" / name) for name in _LIBRARY], proteins, parameters)
    is_labelled = name == "tmt"
    made = make_spectra(answers, _PRESENT, _ABSENT, _REPLICATES, seed, folder / "made.mgf", is_labelled=is_labelled)
    label = {"fixed_modifications": ("Carbamidomethyl (C)", f"{LABEL} (K)", f"{LABEL} (N-term)"), "minimum_fragment_mz": 132.0}
    return _Search([made.path], proteins, parameters.changed(**label) if is_labelled else parameters)


def entrapped(
    data: Path, name: str, seed: int, parameters: ModifiedSearchParameters, how: dict[str, Any], searches: tuple[str, ...]
) -> dict[tuple[str, str], Counts]:
    """Return the counts of one database of a set, by search and group."""
    presets, counts = [preset for preset in _PRESETS if preset[0] in searches], dict[tuple[str, str], Counts]()
    with tempfile.TemporaryDirectory() as folder_name:
        fasta, folder = Path(folder_name) / "database.fasta", Path(folder_name)
        inputs = _search_of(data, name, seed, parameters, folder)
        (database,) = paired_databases(inputs.proteins, range(seed, seed + 1))
        write_fasta(database.proteins, fasta)
        find_modified(inputs.spectra, [fasta], folder / "modified", inputs.parameters, **how)
        for preset, model in presets:
            identify(inputs.spectra, [fasta], folder / preset, model.checked(read_preset("identify", preset)), **how)
        for search in searches:
            for row in accepted(read_psms(folder / search)):
                is_false = all(accession.startswith(ENTRAPMENT) for accession in row["proteins"].split(";"))
                is_false = is_false and database.is_entrapment(row["sequence"])
                kind = row.get("shift_kind", "")
                for group in ("all", *([kind] if kind else []), *(["with a shift"] if kind not in ("", "none") else [])):
                    counts.setdefault((search, group), np.zeros(3))[:] += 1, is_false, is_false * (1.0 + 1.0 / database.ratio)
    return counts


def entrapment(
    data: Path,
    sets: tuple[str, ...],
    seeds: range,
    jobs: int,
    parameters: ModifiedSearchParameters,
    how: dict[str, Any],
    searches: tuple[str, ...],
) -> None:
    """Print the shares of false PSMs by search, set and group, and of all sets together."""
    tasks = [(name, seed) for seed in seeds for name in sets]
    if jobs > 1:
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
            done = list(pool.map(entrapped, *zip(*((data, *task, parameters, how, searches) for task in tasks), strict=True)))
    else:
        done = [entrapped(data, *task, parameters, how, searches) for task in tasks]
    table = dict(zip(tasks, done, strict=True))
    nothing = np.zeros(3)
    for search, group in sorted({key for counts in done for key in counts}):
        by_set = [np.array([table[name, seed].get((search, group), nothing) for seed in seeds]) for name in sets]
        for name, counts in (*zip(sets, by_set, strict=True), ("all sets", np.concatenate(by_set))):
            n, n_false, weighted = counts.sum(axis=0).tolist()
            low, high = _interval(by_set if name == "all sets" else [counts])
            emit(
                {"what": "entrapment", "search": search, "group": group, "set": name},
                databases=len(seeds),
                psms=int(n),
                entrapped=int(n_false),
                false_share=round(weighted / max(n, 1.0), 4),
                low=low,
                high=high,
            )


def _interval(by_set: list[Counts]) -> tuple[float, float]:
    """Return the 95 % interval of the pooled share, by resampling sets and databases within them."""
    random, shares = np.random.default_rng(1), []
    for _ in range(_RESAMPLES):
        drawn = [by_set[i] for i in random.integers(len(by_set), size=len(by_set))]
        n, _, weighted = sum(counts[random.integers(len(counts), size=len(counts))].sum(axis=0) for counts in drawn)
        shares.append(weighted / max(n, 1.0))
    low, high = np.quantile(shares, (0.025, 0.975)).round(4).tolist()
    return low, high


def lost_by_filter(
    spectra: list[Path], database: list[Path], n_spectra: int, parameters: ModifiedSearchParameters, threads: int | None
) -> dict[str, int]:
    """Count the matches of scoring every peptide within the shifts, and those that the filter by matching masses retains."""
    resources = Resources(threads=threads or available_threads())
    read = read_spectra(spectra)
    chosen = np.sort(np.random.default_rng(1).permutation(len(read))[:n_spectra])
    with tempfile.TemporaryDirectory() as folder:
        indexes = build_indexes(Databases(database, [], {}), Path(folder), parameters, resources)
        index = build_spectrum_index(read.only(chosen), parameters, resources)
        ((_, peptides, lists, settings, shifts),) = plan_search(index, indexes, parameters)
        candidates = find_candidates(index, peptides, settings, lists, parameters.candidates, 1 << 30, resources)
        counts = {"exhaustive": 0, "kept": 0}
        for query, mass in enumerate(index.queries.mass.tolist()):
            first, last = np.searchsorted(peptides.mass, [mass - lists.high, mass - lists.low]).tolist()
            if last - first <= parameters.candidates:
                continue
            single = replace(index, queries=QueryArrays(*(column[query : query + 1] for column in index.queries)))
            every = Candidates(np.arange(first, last)[None], np.zeros((1, last - first), np.int32))
            placed = place_candidates(single, peptides, every, settings, shifts, resources)
            best = rank_candidates(single, peptides, every, placed, settings, shifts, 1, by_count=False, resources=resources).matches
            if len(best) and best.expectation[0] <= _SURE:
                counts["exhaustive"] += 1
                counts["kept"] += bool((candidates.peptide[query] == best.peptide[0]).any())
    return counts


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the unpacked test data")
    parser.add_argument("--only", nargs="+", choices=_PARTS, default=_PARTS)
    parser.add_argument("--sets", nargs="+", choices=_SETS, default=_SETS)
    parser.add_argument("--seeds", type=int, default=4, help="databases of each set")
    parser.add_argument("--first-seed", type=int, default=1, help="to show with databases that nothing was chosen on")
    parser.add_argument("--spectra", type=int, default=100, help="of each set, for the filter")
    parser.add_argument("--jobs", type=int, default=1, help="processes for entrapment")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE")
    options = parser.parse_args()
    parameters = ModifiedSearchParameters.checked(read_preset("modified", "standard")).changed(options.set)
    narrow = IdentificationParameters.checked(read_preset("identify", "high-resolution"))
    how: dict[str, Any] = {"threads": options.threads, "device": options.device}
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    if "entrapment" in options.only:
        entrapment(options.data, _ENTRAPPED, seeds, options.jobs, parameters, how, ("modified", "open", "high-resolution"))
    if "replicates" in options.only:
        entrapment(options.data, _REPEATED, seeds, options.jobs, parameters, how, ("modified",))
    for name in options.sets:
        dataset = DATASETS[name]
        spectra = [existing(options.data / path) for path in dataset.spectra]
        database = [existing(options.data / dataset.database)]
        with tempfile.TemporaryDirectory() as folder_name:
            folder = Path(folder_name)
            if "put-back" in options.only:
                identify(spectra, database, folder / "known", narrow.changed(variable_modifications=_VARIABLE), **how)
                find_modified(spectra, database, folder / "found", parameters, **how)
                identify(spectra, database, folder / "unmodified", narrow.changed(variable_modifications=""), **how)
                every, rows = known_modifications(read_psms(folder / "known")), read_psms(folder / "found")
                plain = {int(row["spectrum"]): row["sequence"] for row in accepted(read_psms(folder / "unmodified"))}
                answers = {spectrum: answer for spectrum, answer in every.items() if plain.get(spectrum) != answer.sequence}
                for modification in ("Oxidation", "Deamidated", "Acetyl", ""):
                    some = {spectrum: answer for spectrum, answer in answers.items() if modification in ("", answer.name)}
                    n_every = sum(modification in ("", answer.name) for answer in every.values())
                    counts = {"doubtful": n_every - len(some), **recovered(some, rows)}
                    emit({"what": "put back", "set": name, "modification": modification or "all"}, **counts)
                some = {spectrum: answer for spectrum, answer in answers.items() if answer.isotope_error == 0}
                counts = {"doubtful": len(every) - len(some), **recovered(some, rows)}
                emit({"what": "put back", "set": name, "modification": "all without an isotope error"}, **counts)
            if {"planted", "names"} & set(options.only):
                identify(spectra, database, folder / "plain", narrow.changed(variable_modifications=""), **how)
            for single in _AMBIGUOUS if "names" in options.only else ():
                answers = plant(read_spectra(spectra), read_psms(folder / "plain"), 0.5, 1, folder / f"{single[0]}.mgf", (single,))
                find_modified([folder / f"{single[0]}.mgf"], database, folder / single[0], parameters, **how)
                emit({"what": "names", "set": name, "modification": single[0]}, **recovered(answers, read_psms(folder / single[0])))
            if "planted" in options.only:
                read = read_spectra(spectra)
                answers = plant(read, read_psms(folder / "plain"), 0.5, 1, folder / "planted.mgf")
                find_modified([folder / "planted.mgf"], database, folder / "of_planted", parameters, **how)
                emit({"what": "planted", "set": name}, **recovered(answers, read_psms(folder / "of_planted")))
            if "filter" in options.only:
                emit({"what": "filter", "set": name}, **lost_by_filter(spectra, database, options.spectra, parameters, options.threads))
            if "open" in options.only:
                wide = IdentificationParameters.checked(read_preset("identify", "open"))
                for what, run in (
                    ("modified", lambda out: find_modified(spectra, database, out, parameters, **how)),  # noqa: B023
                    ("identify open", lambda out: identify(spectra, database, out, wide, **how)),  # noqa: B023
                    ("identify narrow", lambda out: identify(spectra, database, out, narrow, **how)),  # noqa: B023
                ):
                    began = time.perf_counter()
                    summary = run(folder / what.replace(" ", "-"))
                    seconds = round(time.perf_counter() - began, 2)
                    rows = accepted(read_psms(folder / what.replace(" ", "-")))
                    emit(
                        {"what": "open", "set": name, "search": what},
                        psms=len(rows),
                        peptides=summary.n_peptides,
                        seconds=seconds,
                        device=summary.device,
                    )


if __name__ == "__main__":
    main()
