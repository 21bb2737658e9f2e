"""False PSMs of each class at a reported 1 %, on spectra of known peptides that are planted into classes.

    python -m benchmarks.class_rates --data FOLDER [--splits N] [--first-split N]

The spectra are those of `known_ids` with high resolution whose peptides have no modification but carbamidomethylation, and those of two
runs that a plain search accepts at 1 %; their peptides are taken as the truth, without homologous peptides. For each split, the peptides
are divided at random into classes, and a database is written in which the peptides of each class can be found only as members of the class:

specific            between two cleavage sites
isotope error       as specific; the precursor of the spectrum is moved by one or two isotopes
semi-specific       after a bond that the enzyme does not cut
known modification  an aspartate becomes an asparagine that the database annotates as deamidated (same mass)
variant             a residue is exchanged, and the database annotates the peptide's residue as a variant
contaminant         in the contaminant file
second pass         an aspartate becomes an asparagine, which only the second pass searches as deamidated

In each class except the first, half of the peptides are shuffled, so that all matches of their spectra are false; a shuffled peptide is not
homologous to the original. Near-isobaric members are added for a quarter of the peptides in the database: peptides in which a residue or
pair of residues is replaced by another with nearly the same mass (0.015 or 0.021 Da away, or 0.019 Da from that of an isotope). They are
semi-specific, variant or contaminant. 600 proteins of yeast without these peptides are searched in addition. Decoys are peptides reversed
between cleavage sites, since a shuffled peptide has the mass of its spectrum, and only such decoys have this mass too. A match is false if
its sequence (I = L) is not that of its spectrum; `near` counts the false matches of near-isobaric members and of parts of them.

A JSON line for each split with accepted and false PSMs by class, and one for each class with the sums of all splits. `in_one_list` has the
matches that are accepted at 1 % with the same scores if all classes are in one list. Three peptides have about 50 spectra, which one wrong
peptide explains together, and each peptide is in every split. Therefore the sums also count each peptide of a spectrum once in a class of a
split (`peptides`, and `false_peptides` with a false match), and have the 95 % bootstrap interval of the percentage of false PSMs, for which
peptides are drawn with their spectra of all splits.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from benchmarks.entrapment_spectra import sample
from benchmarks.figures import emit, existing
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.matches.class_counts import CLASSES
from proteoscope.engine.matches.tables import error_rates
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.project import Project
from tests.engine.formats.entry_files import swiss_prot_entry
from tests.peers.peer_datasets import DATASETS, YEAST, read_fasta
from tests.searching import identify

RUNS = ("qc_shew", "metaproteome")
_PLANTED = ("isotope error", "semi-specific", "known modification", "variant", "contaminant", "second pass")
_SPECIFIC = 0.22  # of the spectra
_SHUFFLED, _NEAR = 0.5, 0.25
_BACKGROUND, _IN_PROTEIN = 600, 12
_RESIDUES = "ACDEFGHILMNQSTVWY"
_NEARLY_EQUAL = (
    *(("D", "N"), ("N", "D"), ("E", "Q"), ("Q", "E")),  # 0.984 Da, an isotope is 1.003 Da
    *(("EG", "W"), ("AD", "W"), ("W", "EG"), ("VS", "W"), ("W", "VS")),  # 0.015 and 0.021 Da
)
_FDR = 0.01
_COUNTS = ("accepted", "false", "near", "in_one_list", "false_in_one_list")
_DRAWS = 2000


class Known(NamedTuple):
    """Spectrum with its peptide, in MGF without the lines that begin and end it."""

    peptide: str
    lines: list[str]


def known_spectra(data: Path, folder: Path) -> list[Known]:
    """Return the spectra with a known tryptic peptide."""
    shared = data / "spectra" / "known_ids"
    table = existing(shared / "massivekb_selected_500.peprec").read_text().splitlines()[1:]
    unmodified = [fields for fields in map(str.split, table) if set(fields[1].split("|")[1::2]) <= {"Carbamidomethyl"}]
    of_title = {fields[0]: fields[-2] for fields in unmodified}
    spectra = []
    for name in ("massivekb_selected_500.mgf", "proteometools_171_kuester_test.mgf"):
        for block in existing(shared / name).read_text().split("BEGIN IONS")[1:]:
            lines = block.partition("END IONS")[0].strip().splitlines()
            title = next(line[6:] for line in lines if line.startswith("TITLE="))
            given = re.search(r"^SEQ=([A-Z]+)", block, re.MULTILINE)
            if not re.search(r"^USER03=.", block, re.MULTILINE):  # modifications of the peptide, which SEQ does not show
                spectra.append(Known(given[1] if given else of_title.get(title, ""), lines))
    for name in RUNS:
        dataset = DATASETS[name]
        parameters = IdentificationParameters.checked(read_preset("identify", dataset.preset)).changed(second_pass=False)
        files = [existing(data / path) for path in dataset.spectra]
        identify(files, [existing(data / dataset.database)], folder / name, parameters, threads=2, advice="none")
        columns = ["rank", "is_decoy", "q_value", "sequence", "spectrum", "isotope_error", "modification_names"]
        rows = parquet.read_table(Project.open(folder / name).table("psms", None), columns=columns).to_pylist()
        accepted = {
            row["spectrum"]: row["sequence"]
            for row in rows
            if row["rank"] == 1
            and not row["is_decoy"]
            and row["q_value"] is not None
            and row["q_value"] <= _FDR
            and row["isotope_error"] == 0
            and set(row["modification_names"]) <= {"Carbamidomethyl"}
        }
        path = sample(read_spectra(files), np.array(sorted(accepted)), folder / f"{name}.mgf")
        for number, block in zip(sorted(accepted), path.read_text().split("BEGIN IONS")[1:], strict=True):
            spectra.append(Known(accepted[number], block.partition("END IONS")[0].strip().splitlines()))
    spectra = [spectrum for spectrum in spectra if re.fullmatch(r"[ACDEFGHILMNQSTVWY][A-Z]{5,40}[KR]", spectrum.peptide)]
    every = "|".join(_leucine(peptide) for peptide in sorted({spectrum.peptide for spectrum in spectra}))
    alone = {spectrum.peptide for spectrum in spectra if every.count(_leucine(spectrum.peptide)) == 1}  # in no other peptide
    unlike = {peptide for peptide in alone if not any(_are_alike(peptide, other) for other in alone if other != peptide)}
    return [spectrum for spectrum in spectra if spectrum.peptide in unlike]


def _are_alike(first: str, second: str) -> bool:
    """Return True for homologues, since either may be the truth: equal lengths, and at most two different residues (I = L)."""
    return len(first) == len(second) and sum(a != b for a, b in zip(_leucine(first), _leucine(second), strict=True)) <= 2


def _leucine(sequence: str) -> str:
    return sequence.replace("I", "L")


class Planted(NamedTuple):
    """Peptides of a split: the sequence that a right match of each spectrum has ('' if it is shuffled), and the members of classes."""

    right: dict[int, str]
    shifted: dict[int, int]
    members: dict[str, list[tuple[str, int]]]
    """For each class, sequences in the database and the position of the changed residue, or -1."""
    near: set[str]


def plant(spectra: Sequence[Known], chance: random.Random) -> Planted:
    """Divide the peptides into classes, shuffle members, and add near-isobaric ones."""
    peptides = sorted({spectrum.peptide for spectrum in spectra})
    class_of, written, position = dict[str, str](), dict[str, str](), dict[str, int]()
    near = set[str]()
    members: dict[str, list[tuple[str, int]]] = {name: [] for name in ("specific", *_PLANTED)}
    for peptide in peptides:
        name = "specific" if chance.random() < _SPECIFIC else chance.choice(_PLANTED)
        needs_aspartate = name in ("known modification", "second pass")
        places = [i for i, residue in enumerate(peptide[:-1]) if i and (residue == "D" if needs_aspartate else residue not in "KRPIL")]
        if name in ("known modification", "second pass", "variant") and not places:
            name = "specific"
        class_of[peptide], position[peptide] = name, -1
        sequence = peptide
        if name in ("known modification", "second pass", "variant"):
            position[peptide] = chance.choice(places)
        if needs_aspartate and name != "specific":
            sequence = peptide[: position[peptide]] + "N" + peptide[position[peptide] + 1 :]
        if name != "specific" and chance.random() < _SHUFFLED:
            order, shuffled = list[int](), sequence
            while _are_alike(shuffled, sequence):
                order = chance.sample(range(len(peptide) - 1), len(peptide) - 1)
                shuffled = "".join(sequence[i] for i in order) + sequence[-1]
            members[name].append((shuffled, order.index(position[peptide]) if position[peptide] >= 0 else -1))
            written[peptide] = ""
            continue
        written[peptide] = sequence
        members[name].append((sequence, position[peptide]))
        changes = [(i, old, new) for old, new in _NEARLY_EQUAL for i in range(2, len(peptide) - 3)]
        # The residue that was changed for the class is not changed again.
        changes = [change for change in changes if sequence.startswith(change[1], change[0]) and change[0] != position[peptide]]
        if chance.random() < _NEAR and changes:
            i, old, new = chance.choice(changes)
            near.add(sequence[:i] + new + sequence[i + len(old) :])
            members[chance.choice(("semi-specific", "variant", "contaminant"))].append((sequence[:i] + new + sequence[i + len(old) :], i))
    right = {number: written[spectrum.peptide] for number, spectrum in enumerate(spectra)}
    shifted = {number: chance.choice((1, 1, 2)) for number, spectrum in enumerate(spectra) if class_of[spectrum.peptide] == "isotope error"}
    return Planted(right, shifted, members, near)


def write_inputs(spectra: Sequence[Known], planted: Planted, background: Sequence[str], chance: random.Random, folder: Path) -> None:
    """Write ``spectra.mgf``, ``database.dat`` and ``contaminants.fasta``."""
    with (folder / "spectra.mgf").open("w") as file:
        for number, spectrum in enumerate(spectra):
            charge = int(re.findall(r"CHARGE=(\d)", "\n".join(spectrum.lines))[0])
            shift = planted.shifted.get(number, 0) * ISOTOPE_SPACING / charge
            lines = [_changed(line, number, shift) for line in spectrum.lines if not line.startswith(("SEQ=", "USER"))]
            file.write("\n".join(["BEGIN IONS", *lines, "END IONS", "", ""]))
    entries, contaminants = [], []
    second = list(planted.members["second pass"])
    for name, members in planted.members.items():
        if name == "second pass":
            continue
        chance.shuffle(members)
        for at in range(0, len(members), _IN_PROTEIN):
            sequence, features = "MAGTSEK", ""
            for peptide, changed in members[at : at + _IN_PROTEIN]:
                if name == "semi-specific":
                    sequence += "".join(chance.choices("AGSTVNQ", k=4))
                place = len(sequence) + changed + 1
                if name == "known modification":
                    features += f'FT   MOD_RES         {place}\nFT                   /note="Deamidated asparagine"\n'
                elif name == "variant":
                    residue = peptide[changed]
                    other = chance.choice([symbol for symbol in _RESIDUES if symbol not in (residue, "I", "L")])
                    peptide = peptide[:changed] + other + peptide[changed + 1 :]
                    features += f'FT   VARIANT         {place}\nFT                   /note="{other} -> {residue}"\n'
                sequence += peptide
            if name == "specific":  # the proteins of the second pass are found by these
                sequence += "".join(peptide for peptide, _ in second[:_IN_PROTEIN])
                del second[:_IN_PROTEIN]
            if name == "contaminant":
                contaminants.append(sequence)
            else:
                entries.append((sequence, features))
    assert not second
    entries += [(sequence, "") for sequence in chance.sample(background, _BACKGROUND)]
    chance.shuffle(entries)
    texts = [swiss_prot_entry(f"P{i:06d}", f"P{i:06d}_X", sequence, features) for i, (sequence, features) in enumerate(entries)]
    (folder / "database.dat").write_text("".join(texts))
    (folder / "contaminants.fasta").write_text("".join(f">C{i}\n{sequence}\n" for i, sequence in enumerate(contaminants)))


def _changed(line: str, number: int, shift: float) -> str:
    """Return a line of a spectrum with the number as title, and a shifted precursor."""
    if line.startswith("TITLE="):
        return f"TITLE={number}"
    if line.startswith("PEPMASS="):
        return f"PEPMASS={float(line[8:].split()[0]) + shift:.8f}"
    return line


class Searched(NamedTuple):
    """Results of a split: counts by class, accepted and false PSMs by class and number of the spectrum's peptide, and CPU seconds."""

    counts: dict[str, dict[str, int]]
    by_peptide: dict[str, NDArray[np.int64]]
    """For each class, (peptides, 2)."""
    seconds: float


def searched(planted: Planted, peptide_of: Sequence[int], folder: Path) -> Searched:
    """Search a split; `peptide_of` is the number of each spectrum's peptide."""
    parameters = IdentificationParameters.checked(read_preset("identify", "high-resolution")).changed(
        decoys="pseudo-reverse",
        specificity="semi-specific",
        known_variants=True,
        known_modifications=True,
        second_pass=True,
        contaminants=(str(folder / "contaminants.fasta"),),
    )
    begun = time.process_time()
    identify([folder / "spectra.mgf"], [folder / "database.dat"], folder / "project", parameters, threads=2, advice="none")
    seconds = time.process_time() - begun
    columns = ["rank", "is_decoy", "q_value", "sequence", "spectrum_id", "match_class", "score"]
    rows = parquet.read_table(Project.open(folder / "project").table("psms", None), columns=columns).to_pylist()
    rows = [row for row in rows if row["rank"] == 1]
    in_list, _ = error_rates(np.array([row["score"] for row in rows]), np.array([row["is_decoy"] for row in rows]), parameters)
    counts = {name: dict.fromkeys(_COUNTS, 0) for name in CLASSES}
    by_peptide = {name: np.zeros((max(peptide_of) + 1, 2), np.int64) for name in CLASSES}
    for row, of_list in zip(rows, in_list.tolist(), strict=True):
        if row["is_decoy"]:
            continue
        is_false = _leucine(row["sequence"]) != _leucine(planted.right[int(row["spectrum_id"])])
        of_class = counts[row["match_class"]]
        if row["q_value"] is not None and row["q_value"] <= _FDR:
            of_class["accepted"] += 1
            of_class["false"] += is_false
            of_class["near"] += is_false and any(row["sequence"] in sequence for sequence in planted.near)
            by_peptide[row["match_class"]][peptide_of[int(row["spectrum_id"])]] += 1, is_false
        if of_list <= _FDR:
            of_class["in_one_list"] += 1
            of_class["false_in_one_list"] += is_false
    return Searched(counts, by_peptide, seconds)


def interval(by_peptide: NDArray[np.int64]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the percentage of false PSMs, given accepted and false PSMs of each peptide, (peptides, 2)."""
    some = by_peptide[by_peptide[:, 0] > 0]
    if not len(some):
        return 0.0, 100.0
    drawn = some[np.random.default_rng(0).integers(len(some), size=(_DRAWS, len(some)))].sum(axis=1)
    low, high = np.percentile(100 * drawn[:, 1] / drawn[:, 0], (2.5, 97.5)).round(2).tolist()
    return low, high


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=30)
    parser.add_argument("--first-split", type=int, default=0)
    options = parser.parse_args()
    background = list(read_fasta(existing(options.data / YEAST)).values())
    total = {name: dict.fromkeys(_COUNTS, 0) for name in CLASSES}
    with tempfile.TemporaryDirectory() as shared:
        spectra = known_spectra(options.data, Path(shared))
        every = {_leucine(spectrum.peptide) for spectrum in spectra}
        numbers = {peptide: number for number, peptide in enumerate(sorted({spectrum.peptide for spectrum in spectra}))}
        peptide_of = [numbers[spectrum.peptide] for spectrum in spectra]
        by_peptide = {name: np.zeros((len(numbers), 2), np.int64) for name in CLASSES}
        once = {name: np.zeros(2, np.int64) for name in CLASSES}
        background = [protein for protein in background if not any(peptide in _leucine(protein) for peptide in every)]
        for split in range(options.first_split, options.first_split + options.splits):
            chance = random.Random(split)
            planted = plant(spectra, chance)
            with tempfile.TemporaryDirectory() as folder:
                write_inputs(spectra, planted, background, chance, Path(folder))
                result = searched(planted, peptide_of, Path(folder))
            emit({"split": split, "spectra": len(spectra)}, seconds=round(result.seconds, 1), classes=result.counts)
            for name, of_class in result.counts.items():
                for key, number in of_class.items():
                    total[name][key] += number
                by_peptide[name] += result.by_peptide[name]
                once[name] += np.count_nonzero(result.by_peptide[name], axis=0)
    for name, of_class in total.items():
        share = round(100 * of_class["false"] / max(of_class["accepted"], 1), 2)
        in_list = round(100 * of_class["false_in_one_list"] / max(of_class["in_one_list"], 1), 2)
        peptides = dict(zip(("peptides", "false_peptides"), once[name].tolist(), strict=True))
        shares = {"false_percent": share, "interval": interval(by_peptide[name]), "false_percent_in_one_list": in_list}
        emit({"class": name, "splits": options.splits}, **of_class, **peptides, **shares)


if __name__ == "__main__":
    main()
