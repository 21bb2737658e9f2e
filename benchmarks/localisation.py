"""Localisation of modifications in real spectra with planted sites: false localisation rates, and sites found at equal error.

    python -m benchmarks.localisation --data FOLDER [--splits N] [--first-split N] [--sets known qc_shew metaproteome] [--threads N]
        [--table FILE] [--search identify|modified|library] [--second-isomer SHARE]
        [--lost SHARE]

In spectra that were identified without a modification, a serine, threonine or tyrosine is selected at random; the peaks of ions that
contain it, and the precursor, are moved by the mass of phosphate (`modified_spectra.plant`). No intensities are predicted. Each split
selects other sites. The spectra are then searched with the preset `phospho` of `identify`, by `modified`, or in a library predicted from
the identified peptides with phosphate at each of these residues. One JSON line for each set and for all of them:

* sites: accepted matches of the planted peptide that have an alternative site, and how many of them report the planted residue;
* flr: of the peptidoform sites accepted at a reported false localisation rate of 1 % and 5 %, the share at another residue than planted;
* calibration: matches by site probability, and the share at the planted residue; also with each spectrum counted once, with its mean over
  the splits, since peaks that favour one site by chance are in all splits;
* equal: sites at the planted residue when matches are ranked by site score, down to a measured rate of 1 % and 5 %;
* time: seconds of the localisation and of the whole search;
* mixture: with `--second-isomer`, each spectrum is the sum of two isomers, with this share of the second. Matches by the probability of the
  reported site, how many of these are at the first and at the second residue, and the mean probability of both;
* mixed: matches with a second isomer (`mixed_with`), of all matches and of those with a site probability above 0.95, and how many of them
  name the two planted residues. With `--lost`, the modified fragments lose this share of their intensity to fragments without modification.

`--table` writes the matches (split, set, spectrum, peptide, planted and reported site, score) for the comparison with other programs.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.entrapment_databases import write_fasta
from benchmarks.figures import emit, existing
from benchmarks.made_spectra import host_proteins, known_peptides
from benchmarks.modified_spectra import Known, accepted, plant, read_psms
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.identification import search as identification_search
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.library_search import search as library_search
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.prediction import predict_library
from proteoscope.engine.library_search.prediction_parameters import PredictionParameters
from proteoscope.engine.modified_search import search as modified_search
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
from proteoscope.engine.parameters import SearchParameters, read_preset
from tests.peers.peer_datasets import DATASETS, HUMAN, read_fasta
from tests.searching import identify

_LIBRARY = ("massivekb_selected_500.mgf", "proteometools_171_kuester_test.mgf")
_SETS = ("known", "qc_shew", "metaproteome")
_PHOSPHO = (("Phospho", "STY"),)
_LEVELS = (0.01, 0.05)
_SURE = 0.95
_EDGES = (0.0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.01)


@dataclass
class Outcome:
    """Matches of planted peptides with an alternative site, and accepted peptidoform sites, of some splits."""

    matches: list[tuple[float, float, bool]] = field(default_factory=list)
    """Site score, site probability, and True if the site is the planted one."""
    spectra: list[tuple[str, int]] = field(default_factory=list)
    """Set and spectrum of each match."""
    mixtures: list[tuple[float, int, float, float]] = field(default_factory=list)
    """For mixtures of two isomers: site probability, isomer at this site (1, 2, or 0 for neither), and the probabilities of both sites."""
    mixed: list[tuple[float, bool, bool]] = field(default_factory=list)
    """Site probability, True for matches with a second isomer, and True if the two sites are the planted ones."""
    accepted: dict[float, list[bool]] = field(default_factory=lambda: {level: [] for level in _LEVELS})
    """True for right peptidoform sites, by reported rate."""
    planted: int = 0
    other_peptide: int = 0
    seconds: float = 0.0
    seconds_of_search: float = 0.0

    def add(self, other: Outcome) -> None:
        """Add another outcome."""
        self.matches += other.matches
        self.spectra += other.spectra
        self.mixtures += other.mixtures
        self.mixed += other.mixed
        for level in _LEVELS:
            self.accepted[level] += other.accepted[level]
        for name in ("planted", "other_peptide", "seconds", "seconds_of_search"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def _same(first: str, second: str) -> bool:
    return first.replace("I", "L") == second.replace("I", "L")


def _sequence(peptide: str) -> str:
    """Return the residues of a peptide in ProForma."""
    depth, residues = 0, []
    for character in peptide:
        depth += (character == "[") - (character == "]")
        if depth == 0 and character.isupper():
            residues.append(character)
    return "".join(residues)


def evaluate(
    project: Path, answers: dict[int, Known], summary: Any, name: str
) -> tuple[Outcome, list[tuple[int, str, int, int, float, float]]]:
    """Compare the sites of a run with the planted ones; return the counts, and the rows of the table."""
    result = Outcome(planted=len(answers))
    run = max((project / "results").iterdir(), key=lambda folder: folder.stat().st_mtime)
    psms = pq.read_table(run / "psms.parquet", columns=["spectrum"])["spectrum"].to_pylist()
    rows = []
    for site in pq.read_table(run / "psm_sites.parquet").to_pylist():
        answer = answers.get(psms[site["psm"]])
        if site["modification"] != "Phospho" or not site["has_alternative"]:
            continue
        if answer is None or not _same(_sequence(site["peptide"]), answer.sequence):
            result.other_peptide += 1
            continue
        is_right = site["position"] == answer.site
        result.matches.append((site["site_score"], site["site_probability"], is_right))
        result.spectra.append((name, psms[site["psm"]]))
        pair = {site["position"], site["mixed_with"]} == {answer.site, answer.second_site}
        result.mixed.append((site["site_probability"], site["mixed_with"] is not None, pair))
        if answer.second_site:
            isomers = answer.site, answer.second_site
            of_site = dict(zip(site["possible_positions"], site["probabilities"], strict=True))
            number = isomers.index(site["position"]) + 1 if site["position"] in isomers else 0
            result.mixtures.append((site["site_probability"], number, *(of_site.get(isomer, 0.0) for isomer in isomers)))
        rows.append((psms[site["psm"]], answer.sequence, answer.site, site["position"], site["site_score"], site["site_probability"]))
    for site in pq.read_table(run / "peptidoform_sites.parquet").to_pylist():
        answer = answers.get(psms[site["best_psm"]])
        if site["is_decoy"] or site["localisation_q_value"] is None or answer is None:
            continue
        if _same(_sequence(site["peptide"]), answer.sequence):
            for level in _LEVELS:
                if site["localisation_q_value"] <= level:
                    result.accepted[level].append(site["position"] == answer.site)
    stages = {name: stage["seconds"] if isinstance(stage, dict) else stage for name, stage in summary.stages.items()}
    result.seconds, result.seconds_of_search = stages.get("localise", 0.0), sum(stages.values())
    return result, rows


def at_equal_error(matches: Iterable[tuple[float, bool]], level: float) -> int:
    """Return the number of right sites above the lowest score at which the measured rate does not exceed a level."""
    ranked = sorted(matches, key=lambda match: -match[0])
    right = np.cumsum([is_right for _, is_right in ranked])
    accepted = np.arange(1, len(ranked) + 1)
    ends = np.flatnonzero((accepted - right) / accepted <= level)
    return int(right[ends[-1]]) if len(ends) else 0


def by_spectrum(outcome: Outcome, low: float, high: float) -> list[list[tuple[float, bool]]]:
    """Return site probabilities from `low` to `high`, and True for planted sites, of each spectrum."""
    groups: dict[tuple[str, int], list[tuple[float, bool]]] = {}
    for spectrum, (_, probability, is_right) in zip(outcome.spectra, outcome.matches, strict=True):
        if low <= probability < high:
            groups.setdefault(spectrum, []).append((probability, is_right))
    return list(groups.values())


def report(name: str, splits: int, outcome: Outcome) -> None:
    """Print the figures of a set."""
    size = {"what": "localisation", "set": name, "splits": splits}
    right = sum(is_right for *_, is_right in outcome.matches)
    emit(size | {"figure": "sites"}, planted=outcome.planted, rated=len(outcome.matches), right=right, other_peptide=outcome.other_peptide)
    for level in _LEVELS:
        sites = outcome.accepted[level]
        wrong = len(sites) - sum(sites)
        emit(size | {"figure": "flr"}, reported=level, sites=len(sites), wrong=wrong, measured=round(wrong / max(len(sites), 1), 4))
        emit(size | {"figure": "equal"}, measured=level, right=at_equal_error(((score, ok) for score, _, ok in outcome.matches), level))
    for low, high in pairwise(_EDGES):
        some = [(probability, ok) for _, probability, ok in outcome.matches if low <= probability < high]
        if some:
            mean, right = (sum(column) / len(some) for column in zip(*some, strict=True))
            figures = {"matches": len(some), "mean": round(mean, 4), "right": round(right, 4)}
            of_spectra = [list(zip(*group, strict=True)) for group in by_spectrum(outcome, low, high)]
            mean, right = (sum(sum(group[i]) / len(group[i]) for group in of_spectra) / len(of_spectra) for i in (0, 1))
            figures |= {"spectra": len(of_spectra), "mean_of_spectra": round(mean, 4), "right_of_spectra": round(right, 4)}
            emit(size | {"figure": "calibration"}, low=low, high=high, **figures)
        mixed = [mixture[1:] for mixture in outcome.mixtures if low <= mixture[0] < high]
        if mixed:
            counts = {f"at_{number}": sum(mixture[0] == number for mixture in mixed) for number in (1, 2)}
            means = {f"mean_{number}": round(sum(mixture[number] for mixture in mixed) / len(mixed), 4) for number in (1, 2)}
            emit(size | {"figure": "mixture"}, low=low, high=high, matches=len(mixed), **counts, **means)
    for low in (0.0, _SURE):
        flags = [flags for probability, *flags in outcome.mixed if probability > low]
        mixed, right = (sum(column) for column in zip(*flags, strict=True)) if flags else (0, 0)
        emit(size | {"figure": "mixed"}, above=low, matches=len(flags), mixed=mixed, planted_pair=right)
    share = round(outcome.seconds / max(outcome.seconds_of_search - outcome.seconds, 1e-9), 4)
    emit(size | {"figure": "time"}, localisation=round(outcome.seconds, 2), search=round(outcome.seconds_of_search, 2), share=share)


def _inputs(data: Path, name: str, folder: Path) -> tuple[list[Path], Path]:
    """Return the spectra and the database of a set."""
    if name != "known":
        return [existing(data / path) for path in DATASETS[name].spectra], existing(data / DATASETS[name].database)
    write_fasta(host_proteins(read_fasta(data / HUMAN), known_peptides(data).sequences), folder / "known.fasta")
    return [existing(data / "spectra" / "known_ids" / file) for file in _LIBRARY], folder / "known.fasta"


_SEARCHES: dict[str, Callable[[SearchRequest], Any]] = {
    "identify": identification_search.identify,
    "modified": modified_search.find_modified,
    "library": library_search.search_library,
}


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the unpacked test data")
    parser.add_argument("--sets", nargs="+", choices=_SETS, default=_SETS)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--first-split", type=int, default=1)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--spectra", type=Path, help="folder in which the planted spectra are written and left")
    parser.add_argument("--search", choices=("identify", "modified", "library"), default="identify")
    parser.add_argument("--second-isomer", type=float, default=0.0, metavar="SHARE", help="share of the intensity, from 0 to 1")
    parser.add_argument("--lost", type=float, default=0.0, metavar="SHARE", help="share of the intensity, from 0 to 1")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE")
    options = parser.parse_args()
    plain = IdentificationParameters.checked(read_preset("identify", "high-resolution")).changed(variable_modifications=())
    phospho: SearchParameters = IdentificationParameters.checked(read_preset("identify", "phospho")).changed(options.set)
    if options.search == "modified":
        phospho = ModifiedSearchParameters.checked(read_preset("modified", "standard")).changed(options.set)
    if options.search == "library":
        phospho = LibrarySearchParameters.checked(read_preset("library", "high-resolution")).changed(options.set)
    every, table = Outcome(), []
    for name in options.sets:
        of_set = Outcome()
        with tempfile.TemporaryDirectory() as folder_name:
            folder = Path(folder_name)
            spectra, database = _inputs(options.data, name, folder)
            identify(spectra, [database], folder / "plain", plain, device="cpu", threads=options.threads, advice="none")
            read, rows = read_spectra(spectra), read_psms(folder / "plain")
            if options.search == "library":
                write_fasta({row["sequence"]: row["sequence"] for row in accepted(rows)}, folder / "peptides.fasta")
                parameters = PredictionParameters(variable_modifications=("Phospho (STY)",))
                predict_library([folder / "peptides.fasta"], folder / "library.msp", parameters)
            for split in range(options.first_split, options.first_split + options.splits):
                planted = (options.spectra or folder) / f"{name}-{split}.mgf"
                answers = plant(read, rows, 1.0, split, planted, _PHOSPHO, options.second_isomer, options.lost)
                files = {"spectra": [planted], "database": [database]}
                files |= {"library": [folder / "library.msp"]} if options.search == "library" else {}
                request = SearchRequest(files, phospho, folder / f"planted-{split}", None, "", {}, "cpu", options.threads)
                summary = _SEARCHES[options.search](request)
                outcome, written = evaluate(folder / f"planted-{split}", answers, summary, name)
                of_set.add(outcome)
                table += [(split, name, *row) for row in written]
        report(name, options.splits, of_set)
        every.add(of_set)
    report("all", options.splits, every)
    if options.table:
        with options.table.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t")
            writer.writerow(("split", "set", "spectrum", "sequence", "planted", "reported", "score", "probability"))
            writer.writerows(table)


if __name__ == "__main__":
    main()
